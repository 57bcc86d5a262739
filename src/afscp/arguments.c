/* SPDX-License-Identifier: BSD-2-Clause */
/* The command line of afscp: arguments of the commands, and options that depend on the command. */
#include <stdlib.h>
#include <string.h>

#include "program/message.h"
#include "afscp/arguments.h"
#include "afscp/copy.h"

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
	[ARGUMENTS_TWO_PLACES] = {"VOLUME:PATH... and a destination VOLUME:PATH", 2, 0, ALL, 0},
	[ARGUMENTS_TEXT_PLACE] = {"TARGET and VOLUME:PATH", 2, 1, 1, 0},
	[ARGUMENTS_TEXT_PLACES] = {"MODE and VOLUME:PATH...", 2, 1, ALL, 0},
	[ARGUMENTS_PLACE_TEXTS] = {"VOLUME:PATH, and pairs of NAME and RIGHTS", 1, 0, 1, 0},
	[ARGUMENTS_PLACE_COMMAND] = {"VOLUME:PATH and a command", 2, 0, 1, 0},
};

/* "VOLUME:PATH"; the volume's name ends at the first colon. 0, or -1 after a message. */
static int parse_volume_path(char *text, struct copy_source *source)
{
	char *colon = strchr(text, ':');

	if (!colon || colon == text) {
		tools_error("\"%s\" is not VOLUME:PATH; the root of a volume is VOLUME:/", text);
		return -1;
	}
	*colon = 0;
	*source = (struct copy_source){.volume = text, .path = colon + 1};
	return 0;
}

static int parse_sources(struct run *run, int count, char **args)
{
	run->sources = calloc((size_t)count + 1, sizeof(*run->sources));
	if (!run->sources) {
		tools_error("no memory");
		return -1;
	}
	run->source_count = (size_t)count;
	for (int i = 0; i < count; i++)
		if (parse_volume_path(args[i], &run->sources[i]) < 0)
			return -1;
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
	return parse_sources(run, places, args + texts);
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

/* Whether a word has several flags and "s" is one of them: "-sf". */
static bool is_bundle(const struct tools_option *options, size_t count, const char *word)
{
	bool found = false;

	if (word[0] != '-' || word[1] == 0 || word[2] == 0)
		return false;
	for (word++; *word; word++) {
		size_t i = 0;

		while (i < count && options[i].letter != *word)
			i++;
		if (*word != 's' && (i == count || options[i].kind != TOOLS_FLAG))
			return false;
		found |= *word == 's';
	}
	return found;
}

/*
 * Make "-s -f" of "-sf" after the command, and change that word. Returns the new number of words.
 */
static int split_bundles(const struct tools_option *options, size_t count, int argc, char **argv,
			 int command, bool lock, char **words)
{
	static char flag[] = "-s";
	bool more = true;
	int n = 0;

	for (int i = 0; i < argc; i++) {
		char *word = argv[i], *to = word;

		/* Options after the place belong to the command that lock runs. */
		if (i > command && (strcmp(word, "--") == 0 || (lock && word[0] != '-')))
			more = false;
		if (i > command && more && is_bundle(options, count, word)) {
			words[n++] = flag;
			for (const char *from = word; *from; from++)
				if (*from != 's')
					*to++ = *from;
			*to = 0;
			if (word[1] == 0)
				continue;
		}
		words[n++] = word;
	}
	words[n] = NULL;
	return n;
}

/* The index at which the command that lock runs begins, or its options before that. */
static int end_of_lock(const struct tools_option *options, size_t count, int argc, char **words,
		       int command)
{
	int place = command + 1, stop;

	/* "-s" is a flag here. */
	while (place < argc && strcmp(words[place], "-s") == 0)
		place++;
	place = find_next_word(options, count, argc, words, place);
	stop = place < argc ? place + 1 : argc;
	while (stop < argc && strcmp(words[stop], "-s") == 0)
		stop++;
	return stop;
}

/* Replace "-s" after the command ln or lock. Returns the new number of words. */
static int replace_short_s(int argc, char **words, int command, bool lock, int stop, char **made)
{
	static char symbolic[] = "--symbolic", shared[] = "--shared", end[] = "--";
	int n = 0;

	for (int i = 0; i < argc; i++) {
		if (lock && i == stop && strcmp(words[i], "--") != 0 &&
		    (command == 1 || strcmp(words[command - 1], "--") != 0))
			made[n++] = end;
		if (i > command && i < stop && strcmp(words[i], "--") == 0)
			stop = i;
		made[n++] = i > command && i < stop && strcmp(words[i], "-s") == 0
				    ? (lock ? shared : symbolic)
				    : words[i];
	}
	return n;
}

char **arguments_prepare(const struct tools_option *options, size_t option_count, int *argc,
			 char **argv)
{
	size_t room = 2 * (size_t)*argc + 2;
	char **words = calloc(room, sizeof(char *)), **made = calloc(room, sizeof(char *));
	int command = find_next_word(options, option_count, *argc, argv, 1), stop = *argc;
	bool lock = command < *argc && strcmp(argv[command], "lock") == 0;

	if (!words || !made) {
		free(words);
		free(made);
		return NULL;
	}
	if (!lock && (command == *argc || strcmp(argv[command], "ln") != 0)) {
		memcpy(made, argv, (size_t)*argc * sizeof(char *));
	} else {
		*argc = split_bundles(options, option_count, *argc, argv, command, lock, words);
		stop = lock ? end_of_lock(options, option_count, *argc, words, command) : *argc;
		*argc = replace_short_s(*argc, words, command, lock, stop, made);
	}
	free(words);
	return made;
}
