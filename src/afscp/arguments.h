/* SPDX-License-Identifier: BSD-2-Clause */
/* The command line of afscp beyond its options. */
#ifndef COPY_ARGUMENTS_H
#define COPY_ARGUMENTS_H

#include <stdbool.h>
#include <stddef.h>

#include "program/options.h"
#include "afscp/run.h"

struct run;

/* The arguments of a command. PLACE is VOLUME:PATH. */
enum arguments_shape {
	ARGUMENTS_PLACE,	/* PLACE */
	ARGUMENTS_PLACES,	/* PLACE... */
	ARGUMENTS_TO_LOCAL,	/* PLACE... [TEXT]: the last of several is the destination */
	ARGUMENTS_TO_PLACE,	/* TEXT... PLACE */
	ARGUMENTS_TWO_TEXTS,	/* TEXT TEXT */
	ARGUMENTS_TWO_PLACES,	/* PLACE PLACE... */
	ARGUMENTS_TEXT_PLACE,	/* TEXT PLACE */
	ARGUMENTS_TEXT_PLACES,	/* TEXT PLACE... */
	ARGUMENTS_PLACE_TEXTS,	/* PLACE [TEXT...] */
	ARGUMENTS_PLACE_COMMAND, /* PLACE TEXT... */
	ARGUMENTS_TEXTS		 /* TEXT... */
};

/*
 * Put the arguments into run->places, run->arguments (texts) and run->destination. 0, or
 * -1 after a message. free(run->places).
 */
int arguments_take(struct run *run, enum arguments_shape shape, const char *command, int count,
		   char **args);

/*
 * Before the options are parsed: some commands have short options of their own, which become long ones, also
 * together with other flags (a word "-sf" is changed): ln -s, du -sh, find -name. The command line that lock runs
 * keeps its options, behind a "--". Returns a copy of the array that ends with NULL, and its length in *argc; free() it. NULL: no memory.
 */
char **arguments_prepare(const struct tools_option *options, size_t option_count, int *argc,
			 char **argv);

/* Whether a text has a character of patterns: * ? [ */
bool glob_is_pattern(const char *text, size_t length);
/* As fnmatch(3): a "." at the begin is matched only by itself. */
bool glob_matches(const char *pattern, const char *name);
/* The name of source `i` at the destination, allocated; NULL: it has none. False: no memory. */
typedef bool source_name_fn(const void *arg, size_t i, char **name);

/*
 * For each of `count` sources the index of the first one with the same name, which may be its own.
 * free() the list. NULL, after a message: no memory.
 */
size_t *find_same_names(size_t count, source_name_fn *name, const void *arg);

#endif
