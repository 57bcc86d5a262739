/* SPDX-License-Identifier: BSD-2-Clause */
/* Programs with commands that work on the directory of a store, which -S names. */
#ifndef TOOLS_COMMAND_H
#define TOOLS_COMMAND_H

#include "program/options.h"

/* The beginning of each element of a program's table of commands. */
struct tools_command {
	const char *name;
	size_t least, most;    /* number of arguments */
	const char *arguments; /* for messages: "NAME NEWNAME" */
};

/*
 * The command that words[0] names, if as many arguments follow as it takes. `table` has `count`
 * elements of `size` bytes, each of which begins with a struct tools_command. NULL after a message.
 */
const void *tools_find_command(const struct tools_program *program, const void *table, size_t count,
			       size_t size, char **words, size_t word_count);

/*
 * Set the name of the program, parse the command line, and call `run` with its words unless an
 * option has ended the program. The exit status, for tools_finish().
 */
int tools_run_program(const struct tools_program *program, void *target, int argc, char **argv,
		      int (*run)(void *target, char **words, size_t count));

#endif
