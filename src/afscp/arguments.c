/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The command line of afscp: arguments of the commands, patterns in paths, sources that would get the
 * same name, and options that depend on the command.
 */
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "program/message.h"
#include "afscp/arguments.h"
#include "afscp/place.h"

#define ALL -1

static const struct {
	const char *form;
	int least;
	int texts_before, places; /* at most; ALL: as many as there are */
	int last;		  /* arguments that belong to what follows */
} shapes[] = {
	[ARGUMENTS_PLACE] = {"VOLUME:PATH", 1, 0, 1, 0},
	[ARGUMENTS_PLACES] = {"VOLUME:PATH...", 1, 0, ALL, 0},
	[ARGUMENTS_TO_LOCAL] = {"VOLUME:PATH... and a destination", 1, 0, ALL, 1},
	[ARGUMENTS_TO_PLACE] = {"SOURCE... and VOLUME:PATH", 2, ALL, 1, 1},
	[ARGUMENTS_TWO_TEXTS] = {"SOURCE and DESTINATION", 2, 2, 0, 0},
	[ARGUMENTS_TWO_PLACES] = {"VOLUME:PATH... and a destination VOLUME:PATH", 2, 0, ALL, 0},
	[ARGUMENTS_TEXT_PLACE] = {"TARGET and VOLUME:PATH", 2, 1, 1, 0},
	[ARGUMENTS_TEXT_PLACES] = {"MODE and VOLUME:PATH...", 2, 1, ALL, 0},
	[ARGUMENTS_PLACE_TEXTS] = {"VOLUME:PATH, and pairs of NAME and RIGHTS", 1, 0, 1, 0},
	[ARGUMENTS_PLACE_COMMAND] = {"VOLUME:PATH and a command", 2, 0, 1, 0},
	[ARGUMENTS_TEXTS] = {"bash, zsh or fish", 1, ALL, 0, 0},
};

static int parse_places(struct run *run, int count, char **args)
{
	run->places = calloc((size_t)count + 1, sizeof(*run->places));
	if (!run->places) {
		tools_error("no memory");
		return -1;
	}
	for (int i = 0; i < count; i++)
		if (place_require(run, args[i], &run->places[i]) < 0)
			return -1;
	run->place_count = (size_t)count;
	return 0;
}

/* "get VOLUME:PATH... [DEST]": the last of several is the destination. */
static int take_destination(struct run *run, int *count, char **args)
{
	if (*count < 2)
		return 0;
	run->destination = args[--*count];
	/* It may be a socket, which cannot be opened, or the end of a file. */
	if (strcmp(run->destination, "/dev/stdout") == 0)
		run->destination = "-";
	if (*count > 1 && strcmp(run->destination, "-") == 0) {
		tools_error("several sources cannot be written to standard output");
		return -1;
	}
	return 0;
}

int arguments_take(struct run *run, enum arguments_shape shape, const char *command, int count,
		   char **args)
{
	int texts = shapes[shape].texts_before, places = shapes[shape].places;
	bool rest = shape == ARGUMENTS_PLACE_TEXTS || shape == ARGUMENTS_PLACE_COMMAND;

	if (count < shapes[shape].least) {
		tools_error("%s takes %s; see afscp --help", command, shapes[shape].form);
		return -1;
	}
	if (shape == ARGUMENTS_TO_LOCAL && take_destination(run, &count, args) < 0)
		return -1;
	if (texts == ALL)
		texts = count - places;
	if (places == ALL)
		places = count - texts;
	if (texts + places < count && !rest) {
		tools_error("%s takes %s; see afscp --help", command, shapes[shape].form);
		return -1;
	}
	run->arguments = rest ? args + places : args;
	run->argument_count = (size_t)(rest ? count - places : texts);
	return parse_places(run, places, args + texts);
}

/* ---- options that depend on the command ---- */

/* Whether an option of the table, or a standard one, is a flag. The name may be abbreviated. */
static bool is_flag(const struct tools_option *options, size_t count, const char *name)
{
	static const char *const standard[] = {"help", "version", "check-config"};
	size_t length = strlen(name);

	for (size_t i = 0; i < sizeof(standard) / sizeof(standard[0]); i++)
		if (strncmp(standard[i], name, length) == 0)
			return true;
	for (size_t i = 0; i < count; i++)
		if (strncmp(options[i].name, name, length) == 0)
			return options[i].kind == TOOLS_FLAG;
	return false;
}

/* Whether the value of an option is the next argument. */
static bool wants_next(const struct tools_option *options, size_t count, const char *text)
{
	if (text[1] == '-')
		return !strchr(text, '=') && !is_flag(options, count, text + 2);
	for (text++; *text; text++)
		for (size_t i = 0; i < count; i++)
			if (options[i].letter == *text && options[i].kind != TOOLS_FLAG)
				return text[1] == 0;
	return false;
}

/* Index of the next argument that is no option, from `at` on; `argc` if there is none. */
static int find_next_word(const struct tools_option *options, size_t count, int argc, char **argv,
			  int at)
{
	for (; at < argc; at++) {
		if (strcmp(argv[at], "--") == 0)
			return at + 1 < argc ? at + 1 : argc;
		if (argv[at][0] != '-' || argv[at][1] == 0)
			return at;
		if (wants_next(options, count, argv[at]))
			at++;
	}
	return argc;
}

/* Short options that mean something else after a command. */
static struct special {
	const char *command;
	char letter;
	char option[24];
} specials[] = {
	{"ln", 's', "--symbolic"},	    {"lock", 's', "--shared"},
	{"sync", 'n', "--dry-run"},
	{"du", 's', "--summarize"},	    {"du", 'h', "--human-readable"},
	{"du", 'x', "--one-volume"},	    {"df", 'h', "--human-readable"},
	{"quota", 'h', "--human-readable"}, {"ls", 'x', "--one-volume"},
	{"find", 'x', "--one-volume"},
};

/* What find(1) has with one dash. */
static char conditions[][12] = {"--name", "--type", "--size", "--mtime", "--maxdepth", "--print0"};

#define SPECIAL_COUNT (sizeof(specials) / sizeof(specials[0]))

static struct special *find_special(const char *command, char letter)
{
	for (size_t i = 0; i < SPECIAL_COUNT; i++)
		if (specials[i].letter == letter && strcmp(specials[i].command, command) == 0)
			return &specials[i];
	return NULL;
}

static bool has_specials(const char *command)
{
	for (size_t i = 0; i < SPECIAL_COUNT; i++)
		if (strcmp(specials[i].command, command) == 0)
			return true;
	return false;
}

/* Whether a word has flags of which one is special: "-sf". */
static bool is_bundle(const struct tools_option *options, size_t count, const char *command,
		      const char *word)
{
	bool found = false;

	if (word[0] != '-' || word[1] == 0)
		return false;
	for (word++; *word; word++) {
		size_t i = 0;

		if (find_special(command, *word)) {
			found = true;
			continue;
		}
		while (i < count && options[i].letter != *word)
			i++;
		if (i == count || options[i].kind != TOOLS_FLAG)
			return false;
	}
	return found;
}

/*
 * Make "--symbolic -f" of "-sf", and change that word. Returns the new number of words.
 */
static int split_bundle(const char *command, char *word, char **words, int n)
{
	char *to = word;

	for (const char *from = word; *from; from++) {
		struct special *special = from > word ? find_special(command, *from) : NULL;

		if (!special)
			*to++ = *from;
		else if (n == 0 || words[n - 1] != special->option)
			words[n++] = special->option;
	}
	*to = 0;
	if (word[1])
		words[n++] = word;
	return n;
}

/* Whether a word is one letter, or flags, or a letter with its value. */
static bool are_letters(const struct tools_option *options, size_t count, const char *word)
{
	size_t i = 0;

	if (word[2] == 0)
		return true;
	while (*++word) {
		for (i = 0; i < count && options[i].letter != *word;)
			i++;
		if (i == count || options[i].kind != TOOLS_FLAG)
			break;
	}
	return *word == 0 || (i < count && options[i].kind != TOOLS_FLAG);
}

/* "-name" of find as "--name", and what it does not know likewise; else the word itself. */
static char *replace_condition(const struct tools_option *options, size_t count,
			       const char *command, char *word)
{
	static char unknown[64];

	if (strcmp(command, "find") != 0 || word[0] != '-' || word[1] == '-')
		return word;
	for (size_t i = 0; i < sizeof(conditions) / sizeof(conditions[0]); i++)
		if (strcmp(word, conditions[i] + 1) == 0)
			return conditions[i];
	/* Not the first letter is unknown, but all of it. */
	snprintf(unknown, sizeof(unknown), "-%s", word);
	return are_letters(options, count, word) ? word : unknown;
}

/*
 * The words with those after the command replaced that it has its own meaning for; the command line that lock runs keeps its
 * options behind a "--". Returns the new number of words.
 */
static int replace_words(const struct tools_option *options, size_t count, int argc, char **argv,
			 int command, char **words)
{
	static char end[] = "--";
	const char *name = argv[command];
	bool lock = strcmp(name, "lock") == 0, more = true;
	int n = 0, places = 0;

	for (int i = 0; i < argc; i++) {
		char *word = argv[i];

		if (i <= command || !more) {
			words[n++] = word;
		} else if (strcmp(word, "--") == 0) {
			words[n++] = word;
			more = false;
		} else if (lock && word[0] != '-' && places++ == 1) {
			/* Behind the place: the command. */
			if (strcmp(argv[command - 1], "--") != 0)
				words[n++] = end;
			words[n++] = word;
			more = false;
		} else if (is_bundle(options, count, name, word)) {
			n = split_bundle(name, word, words, n);
		} else {
			words[n++] = replace_condition(options, count, name, word);
			if (word[0] == '-' && i + 1 < argc &&
			    wants_next(options, count, words[n - 1]))
				words[n++] = argv[++i];
		}
	}
	words[n] = NULL;
	return n;
}

char **arguments_prepare(const struct tools_option *options, size_t option_count, int *argc,
			 char **argv)
{
	size_t room = 2 * SPECIAL_COUNT + 2;
	int command = find_next_word(options, option_count, *argc, argv, 1);
	char **words;

	for (int i = 0; i < *argc; i++)
		room += strlen(argv[i]) + 2;
	words = calloc(room, sizeof(char *));
	if (!words)
		return NULL;
	if (command < *argc && (has_specials(argv[command]) || strcmp(argv[command], "find") == 0))
		*argc = replace_words(options, option_count, *argc, argv, command, words);
	else
		memcpy(words, argv, (size_t)*argc * sizeof(char *));
	return words;
}

/* ---- patterns ---- */

bool glob_is_pattern(const char *text, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if (strchr("*?[", text[i]))
			return true;
	return false;
}

bool glob_matches(const char *pattern, const char *name)
{
	return fnmatch(pattern, name, FNM_PERIOD) == 0;
}

/* ---- equal names ---- */

struct named {
	char *name;
	size_t index;
};

/* The order of names; equal names have the order of their indices. */
static int compare_named(const void *a, const void *b)
{
	const struct named *x = a, *y = b;
	int order = strcmp(x->name, y->name);

	return order ? order : x->index < y->index ? -1 : 1;
}

/* The names of all sources that have one. False: no memory. */
static bool list_source_names(size_t count, source_name_fn *name, const void *arg,
			      struct named *list, size_t *n)
{
	for (size_t i = 0; i < count; i++) {
		char *text = NULL;

		if (!name(arg, i, &text))
			return false;
		if (text)
			list[(*n)++] = (struct named){text, i};
	}
	return true;
}

size_t *find_same_names(size_t count, source_name_fn *name, const void *arg)
{
	struct named *list = calloc(count + 1, sizeof(*list));
	size_t *first = calloc(count + 1, sizeof(*first)), n = 0;
	bool good = list && first && list_source_names(count, name, arg, list, &n);

	for (size_t i = 0; good && i < count; i++)
		first[i] = i;
	if (good)
		qsort(list, n, sizeof(*list), compare_named);
	for (size_t i = 1; good && i < n; i++)
		if (strcmp(list[i].name, list[i - 1].name) == 0)
			first[list[i].index] = first[list[i - 1].index];
	while (n)
		free(list[--n].name);
	free(list);
	if (good)
		return first;
	tools_error("no memory");
	free(first);
	return NULL;
}
