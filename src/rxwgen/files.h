/* SPDX-License-Identifier: BSD-2-Clause */
/* Files of a run: outputs, which appear complete or not at all, inputs, and the dependency file. */
#ifndef RXWGEN_FILES_H
#define RXWGEN_FILES_H

#include "rxwgen/xg.h"

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
/*
 * Rules for make, of outputs that may be NULL; malloc'ed, NULL if memory is exhausted.
 */
char *depfile_text(const char *const names[XG_OUTPUTS], const struct inputs *inputs,
		   size_t *length);

#endif
