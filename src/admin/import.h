/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside import: names and kinds (import.c), contents of files (importdata.c). */
#ifndef ADMIN_IMPORT_H
#define ADMIN_IMPORT_H

#include "admin/private.h"

#define ADMIN_BUFFER ((size_t)1 << 20) /* bytes that are read at once */

struct pending;

/* One import. One thread. */
struct admin_import {
	struct admin_run *run;
	int32_t owner;
	char *buffer;	/* ADMIN_BUFFER bytes */
	uint64_t total; /* bytes of all files; 0: unknown */
	uint64_t bytes; /* read so far */
	uint64_t objects, skipped;
	struct pending *pending;
	void *linked; /* tree of the files of this directory that have several names */
	bool full;    /* the directory of the volume */
};

void admin_import_skip(struct admin_import *import, const char *path, const char *reason);
/* After a result of the store for an object: 0 if that was skipped, 1 if the import ends. */
int admin_import_refused(struct admin_import *import, const char *path, int rc);

/*
 * The `size` bytes of an open file become the content of a new one; holes stay holes. 0; 1: the
 * file was skipped; -1: the import ends, after an error.
 */
int admin_import_data(struct admin_import *import, const char *path, int fd, uint64_t size,
		      const struct store_fid *fid, const struct store_set *set);

/* The lengths of all files below the directory. */
uint64_t admin_tree_bytes(struct admin_run *run);

#endif
