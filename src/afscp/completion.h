/* SPDX-License-Identifier: BSD-2-Clause */
/* Completion of command lines by shells. */
#ifndef COPY_COMPLETION_H
#define COPY_COMPLETION_H

#include "program/options.h"
#include "afscp/run.h"

/* A command, for shells that show what it does. */
struct completed_command {
	const char *name, *summary;
};

/*
 * Print the completion for "bash", "zsh" or "fish", made of the table of options. 0, or -1: another shell, without a message.
 */
int completion_print(const char *shell, const struct tools_program *program,
		     const struct completed_command *commands, size_t count);
/* Print the places that a beginning of one stands for, directories with a slash at the end. */
int completion_places(struct run *run, const char *text);

#endif
