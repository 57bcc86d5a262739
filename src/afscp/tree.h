/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Trees of directories, depth first and in the order of names. Threads read directories ahead: several are
 * listed at a time, and the attributes of a large one are asked for in several calls at a time.
 */
#ifndef COPY_TREE_H
#define COPY_TREE_H

#include <rxafs/stream.h>

#include "afscp/session.h"

struct tree;

/* Objects that were seen. All zeros at first; one thread. */
struct fid_set {
	struct rxafs_fid *list; /* open addressing; vnode 0 = free */
	size_t room, count;
};
/* 0: it is new. 1: it was seen before. -1: no memory. */
int fid_set_add(struct fid_set *set, const struct rxafs_fid *fid);
void fid_set_free(struct fid_set *set);

struct tree_options {
	bool names_only; /* attributes are not needed; without `enter_mounts` they are not asked for */
	bool enter_mounts;
	bool may_go; /* a directory that is removed meanwhile is as good as empty */
	unsigned
		depth; /* directories below the root that are entered; UINT_MAX: all, as far as is allowed */
};

/* A directory that was read. */
struct tree_list {
	struct rxafs_names names; /* sorted */
	/* of each name; unknown if the names are all that is wanted */
	struct rxafs_attributes *attributes;
	int *results; /* 0 or a negative errno */
};

enum tree_event {
	TREE_ENTRY, /* a name of a directory; then, if it is a directory, that is entered */
	TREE_ENTER, /* what follows is in this directory */
	TREE_LEAVE, /* all of it was shown */
	TREE_FAILED /* the directory cannot be read; after a message */
};

/* All pointers are valid until the next call. */
struct tree_item {
	enum tree_event event;
	const char *path;	 /* "LABEL/NAME/NAME" */
	unsigned depth;		 /* of the root: 0 */
	rxafs_object *directory; /* that the name is in, or that is entered or left */
	/* TREE_ENTRY: */
	const struct rxafs_name *name;
	const struct rxafs_attributes *attributes;
	int result; /* 0, or a negative errno: the attributes are unknown */
	/* TREE_ENTER: */
	const struct tree_list *list;
};

/*
 * No directory is entered twice: not even a malicious server can cause work without end. That is a failure, but not
 * for another mount point of a volume.
 *
 * Begins with TREE_ENTER of the root, which is held. NULL after a message. */
struct tree *tree_open(struct run *run, rxafs_object *root, const char *label,
		       const struct tree_options *options);
/* 1 and *item; 0: the end. After an interrupt it ends soon. */
int tree_next(struct tree *tree, struct tree_item *item);
void tree_close(struct tree *tree);

#endif
