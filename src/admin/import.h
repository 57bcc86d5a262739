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
	int32_t owner;		    /* of all that is made */
	bool owned;		    /* the request says so */
	char *buffer;		    /* ADMIN_BUFFER bytes */
	uint64_t total;		    /* bytes of all files; 0: unknown */
	uint64_t bytes;		    /* read so far */
	uint64_t passed;	    /* bytes of files that an earlier import has completed */
	uint64_t objects, unchanged, skipped;
	uint64_t cleared; /* objects with set-id bits, which were not taken over */
	struct pending *pending;
	/* The names that the directory in the volume had before; NULL: none, or not known. */
	char *image;
	size_t image_length;
	void *linked; /* tree of the files of this directory that have several names */
	bool full;    /* the directory of the volume */
};

void admin_import_skip(struct admin_import *import, const char *path, const char *reason);
/* After a result of the store for an object: 0 if that was skipped, 1 if the import ends. */
int admin_import_refused(struct admin_import *import, const char *path, int rc);

/* Progress on the way, with a path that is being imported. */
void admin_import_progress(struct admin_import *import, const char *path);

/*
 * The `size` bytes of an open file, at least one, become the content of a new one; holes stay holes. The transaction
 * that completes it sets what `set` says, and each one before that only the time 0. 0; 1: the file was skipped; -1:
 * the import ends, after an error.
 */
int admin_import_data(struct admin_import *import, const char *path, int fd, uint64_t size,
		      const struct store_fid *fid, const struct store_set *set);

/*
 * Some file systems of the kernel have files that say they are empty, but have bytes. *size is set to how many, and these are in the
 * buffer. 0; 1: the file was skipped, because they are more.
 */
int admin_import_measure(struct admin_import *import, const char *path, int fd, uint64_t *size);
/* As admin_import_data(), of such a file: the bytes in the buffer. */
int admin_import_unsized(struct admin_import *import, const char *path, uint64_t size,
			 const struct store_fid *fid, const struct store_set *set);

#endif
