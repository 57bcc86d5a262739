/* SPDX-License-Identifier: BSD-2-Clause */
/* The command line, the output files and the dependency file. */
#ifndef RXWGEN_COMMAND_H
#define RXWGEN_COMMAND_H

#include "rxwgen/ast.h"

struct command {
	struct xg_options options;
	const char *input;
	bool wanted[XG_OUTPUTS];
	const char *names[XG_OUTPUTS]; /* of the output files, NULL if not wanted */
	const char *depfile;	       /* -M, or NULL */
	bool json, python;	       /* --json, --python */
	const char *tree_name;	       /* their output file; NULL: standard output */
};

/*
 * Parse the command line. Returns -1 to continue, else the exit status: 0 after --help or
 * --version, 2 after an error, which has been reported.
 */
int command_read(struct command *command, int argc, char **argv);
void command_free(struct command *command);

/*
 * Output files are written under temporary names in their own folders, then renamed: a failed run
 * neither creates nor changes a file. Anything but a regular file is written in place.
 */
struct outputs {
	struct output {
		const char *name;
		char *temporary; /* NULL after the file is renamed */
	} files[XG_OUTPUTS + 1];
	size_t count;
};

/* False on failure, which has been reported. */
bool outputs_write(struct outputs *outputs, const char *name, const char *text, size_t length);
bool outputs_commit(struct outputs *outputs);
/* Remove files that were not renamed. */
void outputs_drop(struct outputs *outputs);

/* Names of all files read. */
struct inputs {
	char **names;
	size_t count;
};

bool inputs_add(struct inputs *inputs, const struct xg_file *file);
/* Whether a file of this name is one of them, which is then reported. */
bool inputs_have(const struct inputs *inputs, const char *name);
void inputs_free(struct inputs *inputs);
/* Rules for make; malloc'ed, NULL if memory is exhausted. */
char *depfile_text(const struct command *command, const struct inputs *inputs, size_t *length);

#endif
