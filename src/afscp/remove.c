/* SPDX-License-Identifier: BSD-2-Clause */
/* Removal of files and trees. Links and mount points are removed, not followed. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "program/message.h"
#include "afscp/remove.h"

#define DEPTH_MAX 1536 /* directories below the one that is removed */

enum copy_result remove_one(struct copy *copy, const AFSFid *dir, const char *name, bool directory,
			    const char *label)
{
	struct change c = {.op = directory ? CHANGE_RMDIR : CHANGE_REMOVE,
			   .label = label,
			   .dir = *dir,
			   .name = name};
	struct afs_error error;
	enum copy_result rc = change_try(copy, &c, &error);

	/* Another client has removed it meanwhile. */
	if (rc != COPY_GOOD && copy->set->force && error.number == ENOENT)
		return COPY_GOOD;
	if (rc != COPY_GOOD)
		change_complain(copy, c.op, &error);
	return rc;
}

static enum copy_result remove_directory(struct copy *copy, const AFSFid *dir, const char *name,
					 const AFSFid *fid, const char *label, unsigned depth);

/* Remove the contents of a directory. COPY_FAILED: something is left. */
static enum copy_result remove_below(struct copy *copy, const AFSFid *fid, const char *label,
				     unsigned depth)
{
	enum copy_result rc, all = COPY_GOOD;
	struct entries entries;

	if (depth == DEPTH_MAX) {
		tools_error("%s: more than %d directories deep", label, DEPTH_MAX);
		return COPY_FAILED;
	}
	rc = entries_read(copy, fid, label, &entries);
	for (size_t i = 0; rc == COPY_GOOD && i < entries.count; i++) {
		const struct entry *e = &entries.list[i];
		char *path = copy_join_label(label, e->name);

		/* A directory of the volume has an odd number. */
		if (!path)
			rc = COPY_STOP;
		else if (e->fid.Vnode & 1)
			rc = remove_directory(copy, fid, e->name, &e->fid, path, depth + 1);
		else
			rc = remove_one(copy, fid, e->name, false, path);
		free(path);
		if (rc == COPY_FAILED) {
			all = rc;
			rc = COPY_GOOD;
		}
	}
	entries_free(&entries);
	return rc == COPY_GOOD ? all : rc;
}

static enum copy_result remove_directory(struct copy *copy, const AFSFid *dir, const char *name,
					 const AFSFid *fid, const char *label, unsigned depth)
{
	enum copy_result rc = remove_below(copy, fid, label, depth);

	return rc == COPY_GOOD ? remove_one(copy, dir, name, true, label) : rc;
}

enum copy_result remove_tree(struct copy *copy, const AFSFid *dir, const char *name,
			     const AFSFid *fid, const char *label)
{
	return remove_directory(copy, dir, name, fid, label, 0);
}
