/* SPDX-License-Identifier: BSD-2-Clause */
/* Steps that operations on names share, in a transaction. */
#ifndef STORE_ENTRY_H
#define STORE_ENTRY_H

#include "volume/store/txn/change.h"

/* A name in a directory. -ENOENT. */
int entry_find(struct work *work, struct node *dir, const char *name, uint32_t *vnode,
	       uint32_t *unique);
/* 0 if the caller has all these rights on the directory, else -EACCES. */
int entry_rights(const struct change_op *op, const struct node *dir, uint32_t rights);
/* The entries of a directory have changed: length, version, dates, author, charge. */
void entry_touch(const struct change_op *op, struct work *work, struct node *dir,
		 const struct store_pages *pages);
/*
 * An object has lost a name. It must be ready to be changed, if it has others. Noted in *changes.
 */
void entry_unlink(struct work *work, struct node *node, struct store_changes *changes);
/* Get ready for entry_unlink(). 0 or -ENOMEM. */
int entry_prepare_unlink(struct work *work, struct node *node);

#endif
