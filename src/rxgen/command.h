/* SPDX-License-Identifier: BSD-2-Clause */
/* The command line, and what a run writes: outputs and the dependency file. */
#ifndef RXGEN_COMMAND_H
#define RXGEN_COMMAND_H

#include "rxgen/ast.h"

struct command {
	struct xg_options options;
	const char *input;
	bool wanted[XG_OUTPUTS];
	const char *names[XG_OUTPUTS]; /* of the files to write, NULL if not wanted */
	const char *depfile;	       /* -M, or NULL */
};

/*
 * Take the command line apart. Returns -1 to go on, else the exit status: --help, --version, or a
 * wrong line (2, which has been reported).
 */
int command_read(struct command *command, int argc, char **argv);
void command_free(struct command *command);

/*
 * Files of a run: written under temporary names in their own folders, then renamed, so that a run
 * that fails leaves nothing and destroys nothing.
 */
struct outputs {
	struct output {
		const char *name;
		char *temporary; /* NULL once it is renamed */
	} files[XG_OUTPUTS + 1];
	size_t count;
};

/* False if it failed, which has been reported. */
bool outputs_write(struct outputs *outputs, const char *name, const char *text, size_t length);
bool outputs_commit(struct outputs *outputs);
/* Remove what is not in its place. */
void outputs_drop(struct outputs *outputs);

/* Names of all files that a run has read. */
struct inputs {
	char **names;
	size_t count;
};

bool inputs_add(struct inputs *inputs, const struct xg_file *file);
void inputs_free(struct inputs *inputs);
/* Rules for make; malloc'ed, NULL if there is no memory. */
char *depfile_text(const struct command *command, const struct inputs *inputs, size_t *length);

#endif
