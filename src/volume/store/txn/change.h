/* SPDX-License-Identifier: BSD-2-Clause */
/* The common part of all operations that change something. */
#ifndef STORE_CHANGE_H
#define STORE_CHANGE_H

#include "volume/store/txn/core.h"
#include "volume/store/txn/rights.h"

/* The first member of each operation. */
struct change_op {
	struct txn_op txn;
	struct core *core;
	const struct store_caller *caller;
	struct store_changes *changes;
	int (*apply)(struct txn_op *op, struct work *work);
	struct work_loaded loaded;
};

/*
 * Check before the transaction whether a change is possible. 0, -EINVAL, a volume code; for a clone
 * what is wrong with the vnode, -ENOTDIR if `directory`, else -EROFS.
 */
int change_check(struct core *core, const struct store_caller *caller, const struct store_fid *fid,
		 bool directory);
/* Entries of directories, and maps of files, that the transaction lacks are read, and it is tried again. STORE_VBUSY: too often. */
int change_run(struct core *core, const struct store_caller *caller, struct change_op *op,
	       int (*apply)(struct txn_op *op, struct work *work));
/*
 * The same, or STORE_LATER if the caller lets others wait: then a copy of the operation, which has `size` bytes, is
 * submitted. `end`: as in struct txn_op; NULL: the result is that of the transaction, or STORE_AGAIN.
 */
int change_run_later(struct core *core, const struct store_caller *caller, struct change_op *op,
		     size_t size, int (*apply)(struct txn_op *op, struct work *work),
		     void (*end)(struct txn_op *op));

/* Find a vnode, or a directory, in the transaction. `caller`: as that of lookup(). */
int change_find(struct work *work, const struct store_caller *caller, const struct store_fid *fid,
		struct node **node);
int change_find_dir(struct work *work, const struct store_caller *caller,
		    const struct store_fid *fid, struct node **node);
/* The object that a directory names; -EIO if it is not there. */
int change_named(struct work *work, const struct node *dir, uint32_t vnode, uint32_t unique,
		 struct node **node);
/* The subject of rights on a node. `dir`: its directory, or itself. */
struct subject change_subject(const struct change_op *op, const struct node *node,
			      const struct node *dir);
/* The directory of a file or link, or the node itself. */
int change_dir_of(struct work *work, struct node *node, struct node **dir);
void change_status(const struct change_op *op, const struct node *node, const struct node *dir,
		   struct store_status *status);
/*
 * 0, -EINVAL, -ENAMETOOLONG; `dots` for "." and "..". The spelling of a new name is checked before the
 * rights, all else after them.
 */
int change_spelling(const char *name);
int change_name(const char *name, int dots);
/* Check a name to be removed: -EINVAL for "." and "..". Other invalid names do not exist. */
int change_old_name(const char *name);
void change_note(struct store_changes *changes, const struct node *node, bool for_all, bool gone);

#endif
