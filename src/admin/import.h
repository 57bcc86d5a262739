/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside an import: its state, and what an update of objects that exist in the volume needs of the rest. */
#ifndef ADMIN_IMPORT_H
#define ADMIN_IMPORT_H

#include <sys/stat.h>

#include "admin/attributes.h"

#define ADMIN_BUFFER ((size_t)1 << 20) /* bytes that are read at once */

/* One import. One thread. */
struct admin_import {
	struct admin_run *run;
	int32_t owner; /* of all that is made */
	bool owned;    /* the request says so */
	bool update, compare,
		remove; /* what exists is replaced; contents are compared; others go */
	struct admin_attributes *attributes; /* NULL: the tree's own modes are taken */
	char *buffer;			     /* ADMIN_BUFFER bytes */
	uint64_t total;			     /* bytes of all files; 0: unknown */
	uint64_t bytes;			     /* read so far */
	uint64_t passed; /* bytes of files that an earlier import has completed */
	uint64_t objects, unchanged, removed, skipped;
	uint64_t cleared; /* objects with set-id bits, which were not taken over */
	struct admin_pending *pending;
	/* The names that the directory in the volume had before; NULL: none, or not known. */
	char *image;
	size_t image_length;
	void *linked; /* tree of the files of this directory that have several names */
	bool full;    /* the directory of the volume */
};

/* A part of a file. */
struct admin_piece {
	uint64_t start, end;
};

/* A file that is imported. */
struct admin_source {
	int fd;
	uint64_t size; /* if the file says 0: bytes that were read */
	const struct store_set *set;
	const struct store_fid
		*first; /* of a file with several names: what the first one led to; or NULL */
};

/* The nearest time that a volume can have: its times are 1970 to 2106. */
static inline uint32_t admin_store_time(const struct stat *st)
{
	return st->st_mtime < 0			   ? 0
	       : st->st_mtime > (time_t)UINT32_MAX ? UINT32_MAX
						   : (uint32_t)st->st_mtime;
}

void admin_import_skip(struct admin_import *import, const char *path, const char *reason);
/* Handles a result of the store for an object. 0: the object was skipped; 1: the import ends. */
int admin_import_refused(struct admin_import *import, const char *path, int rc);
/* Mode, time and owner of an object. 0, or 1 after an error. */
int admin_import_status(struct admin_import *import, const char *path, const struct store_fid *fid,
			const struct store_set *set);
/* Whether the directory had a name, and the status of that object. */
bool admin_import_existing(struct admin_import *import, const struct store_fid *dir,
			   const char *name, struct store_status *status);
/* An incomplete file is removed. 0 or a result. */
int admin_import_take_back(struct admin_import *import, const struct store_fid *dir,
			   const char *name);
/* Bytes of a file in one transaction. 0, a result of the store, or 1000 + errno of the file. */
int admin_import_piece(struct admin_import *import, const char *path, int fd, uint64_t size,
		       const struct admin_piece *piece, const struct store_fid *fid,
		       const struct store_set *set);
/* Reports such a result. 0; 1: the file was skipped; -1: the import ends, after an error. */
int admin_import_result(struct admin_import *import, const char *path, int rc);
/* Whether the open file is not as it was `before`: then it is skipped. */
bool admin_import_changed(struct admin_import *import, const char *path, int fd,
			  const struct stat *before);
/*
 * The `size` bytes of an open file, at least one, become the content of an empty one; holes stay holes. The transaction
 * that completes it sets what `set` says, and each one before that only the time 0. 0; 1: the file was skipped; -1:
 * the import ends, after an error.
 */
int admin_import_data(struct admin_import *import, const char *path, int fd, uint64_t size,
		      const struct store_fid *fid, const struct store_set *set);
/* A new file with the bytes of an open one. 0 and *status; 1: it was skipped, and none is left; -1: the import ends. */
int admin_import_bytes(struct admin_import *import, const struct store_fid *dir, const char *path,
		       const char *name, const struct admin_source *source,
		       struct store_status *status);
/* As admin_import_data(), of an open file that says that it is empty. `size`: bytes that it had before. */
int admin_import_unsized(struct admin_import *import, const char *path, int fd, uint64_t size,
			 const struct store_fid *fid, const struct store_set *set);

/*
 * A file is in this state from its creation to the transaction that completes it. Any change by a user ends it. Nobody has that id,
 * so that no user can make such a file.
 */
#define ADMIN_UNFINISHED_MODE  0
#define ADMIN_UNFINISHED_OWNER INT32_MIN
static inline bool admin_is_unfinished(const struct store_status *status)
{
	return status->kind == STORE_FILE && status->owner == ADMIN_UNFINISHED_OWNER &&
	       status->mode == ADMIN_UNFINISHED_MODE && status->client_mtime == 0;
}

/* All names of an open directory, sorted; it may not be one that this process can enter. Their number, or -errno. */
int admin_list_names(int fd, char ***names);
void admin_free_names(char **names, int count);

/* -- update.c: an update; 0, or -1 if the import ends -- */

/* 0: the name is free now; 1: done, *status if it stays; -1. */
int admin_update_file(struct admin_import *import, const struct store_fid *dir, const char *path,
		      const char *name, const struct admin_source *source,
		      struct store_status *status);
/* Remove what has a name, for another kind of object. 0; 1: it stays, which was reported; -1. */
int admin_update_clear(struct admin_import *import, const struct store_fid *dir, const char *path,
		       const char *name, const struct store_status *existing);
/* Remove what the directory of the volume had beside these names, which are sorted. Mount points stay. */
int admin_update_delete(struct admin_import *import, const struct store_fid *dir, const char *path,
			char **names, size_t count);
/* Status and access list of a directory, if they differ. */
int admin_update_directory(struct admin_import *import, const char *path,
			   const struct store_fid *dir, const struct store_set *set);

#endif
