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
#include "afscp/lookup.h"

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

/* ---- patterns ---- */

#define MATCHES_MAX 1000000

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

struct globbing {
	struct copy *copy;
	const struct copy_source *source;
	struct copy_source *list; /* the new sources */
	size_t count, room;
};

static enum copy_result stop_without_memory(void)
{
	tools_error("no memory");
	return COPY_STOP;
}

/* Add a source with this path, which must live as long as the run. */
static enum copy_result add_source(struct globbing *g, const char *path)
{
	if (g->count == g->room) {
		size_t room = g->room ? 2 * g->room : 16;
		struct copy_source *list =
			room > MATCHES_MAX ? NULL : realloc(g->list, room * sizeof(*list));

		if (!list)
			return stop_without_memory();
		g->list = list;
		g->room = room;
	}
	g->list[g->count++] = (struct copy_source){g->source->volume, path};
	return COPY_GOOD;
}

/* Remember an allocated path until the end of the run. */
static enum copy_result add_matching_path(struct globbing *g, char *path)
{
	struct run *run = g->copy->run;
	char **more = path ? realloc(run->made, (run->made_count + 1) * sizeof(*more)) : NULL;

	if (!more) {
		free(path);
		return stop_without_memory();
	}
	run->made = more;
	more[run->made_count++] = path;
	return add_source(g, path);
}

static enum copy_result expand_pattern(struct globbing *g, const char *done, const char *rest);

/* The names in the directory `done` that the first part of `rest`, of `length` bytes, matches. */
static enum copy_result match_names(struct globbing *g, const char *done, const char *rest,
				    size_t length)
{
	const char *tail = rest + length, *more = tail + strspn(tail, "/");
	char pattern[AFSNAMEMAX + 1], label[320];
	struct entries entries;
	struct afs_object object;
	struct afs_error error;
	enum copy_result rc;

	if (length > AFSNAMEMAX)
		return COPY_GOOD;
	memcpy(pattern, rest, length);
	pattern[length] = 0;
	snprintf(label, sizeof(label), "%s:%.250s", g->source->volume, done);
	g->copy->path = done;
	if (copy_walk_try(g->copy, true, &object, &error) < 0) {
		if (error.number == ENOENT || error.number == ENOTDIR)
			return COPY_GOOD;
		copy_complain(g->copy, &error);
		return copy_interrupted(g->copy) ? COPY_STOP : COPY_FAILED;
	}
	if (object.status.FileType != AFS_TYPE_DIR)
		return COPY_GOOD;
	rc = entries_read(g->copy, &object.fid, label, &entries);
	for (size_t i = 0; rc == COPY_GOOD && i < entries.count; i++) {
		char *path = NULL;

		if (!glob_matches(pattern, entries.list[i].name))
			continue;
		if (asprintf(&path, "%s/%s%s", done, entries.list[i].name, *more ? "" : tail) < 0) {
			rc = stop_without_memory();
		} else if (*more) {
			rc = expand_pattern(g, path, more);
			free(path);
		} else {
			rc = add_matching_path(g, path);
		}
	}
	entries_free(&entries);
	return rc;
}

/* All paths that `rest` matches below `done`. */
static enum copy_result expand_pattern(struct globbing *g, const char *done, const char *rest)
{
	struct afs_object object;
	struct afs_error error;
	enum copy_result rc;
	size_t length;
	char *path;

	rest += strspn(rest, "/");
	length = strcspn(rest, "/");
	if (glob_is_pattern(rest, length))
		return match_names(g, done, rest, length);
	if (asprintf(&path, "%s/%.*s", done, (int)length, rest) < 0)
		return stop_without_memory();
	if (rest[length + strspn(rest + length, "/")]) {
		rc = expand_pattern(g, path, rest + length);
		free(path);
		return rc;
	}
	g->copy->path = path;
	if (copy_walk_try(g->copy, false, &object, &error) == 0)
		return add_matching_path(g, path);
	free(path);
	return copy_interrupted(g->copy) ? COPY_STOP : COPY_GOOD;
}

enum copy_result glob_sources(struct copy *copy)
{
	struct run *run = copy->run;
	struct globbing g = {.copy = copy};
	enum copy_result rc = COPY_GOOD;
	bool any = false;

	for (size_t i = 0; i < run->source_count; i++)
		any |= glob_is_pattern(run->sources[i].path, strlen(run->sources[i].path));
	if (!any)
		return COPY_GOOD;
	for (size_t i = 0; i < run->source_count && rc == COPY_GOOD; i++) {
		const char *path = run->sources[i].path;
		size_t before = g.count;

		g.source = &run->sources[i];
		if (glob_is_pattern(path, strlen(path))) {
			rc = copy_locate(copy, g.source) < 0 ? COPY_FAILED
							     : expand_pattern(&g, "", path);
			if (rc != COPY_GOOD)
				break;
		}
		if (g.count == before)
			rc = add_source(&g, path);
	}
	if (rc != COPY_GOOD) {
		free(g.list);
		return rc;
	}
	free(run->sources);
	run->sources = g.list;
	run->source_count = g.count;
	return COPY_GOOD;
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
