/* SPDX-License-Identifier: BSD-2-Clause */
/* The command line of afscp beyond its options. */
#ifndef COPY_ARGUMENTS_H
#define COPY_ARGUMENTS_H

#include <stddef.h>

#include "program/options.h"

struct run;

/* The arguments of a command. PLACE is VOLUME:PATH. */
enum arguments_shape {
	ARGUMENTS_PLACE,	/* PLACE */
	ARGUMENTS_PLACES,	/* PLACE... */
	ARGUMENTS_TO_LOCAL,	/* PLACE... [TEXT]: the last of several is the destination */
	ARGUMENTS_TO_PLACE,	/* TEXT... PLACE */
	ARGUMENTS_TWO_PLACES,	/* PLACE PLACE... */
	ARGUMENTS_TEXT_PLACE,	/* TEXT PLACE */
	ARGUMENTS_TEXT_PLACES,	/* TEXT PLACE... */
	ARGUMENTS_PLACE_TEXTS,	/* PLACE [TEXT...] */
	ARGUMENTS_PLACE_COMMAND /* PLACE TEXT... */
};

/*
 * Put the arguments into run->sources (places), run->arguments (texts) and run->destination. 0, or
 * -1 after a message. Changes args; free(run->sources).
 */
int arguments_take(struct run *run, enum arguments_shape shape, const char *command, int count,
		   char **args);

/*
 * Before the options are parsed: "-s" after the commands ln and lock means --symbolic and --shared,
 * also together with other flags ("-sf", a word that is changed), and the command line that lock
 * runs keeps its options, behind a "--". Returns a copy of the array that ends with NULL, and its
 * length in *argc; free() it. NULL: no memory.
 */
char **arguments_prepare(const struct tools_option *options, size_t option_count, int *argc,
			 char **argv);

#endif
