/* SPDX-License-Identifier: BSD-2-Clause */
/* Writing the changes of a transaction to the database; a part of work.c. */
#ifndef STORE_WORKWRITE_H
#define STORE_WORKWRITE_H

#include "volume/store/txn/work.h"

/* 0 or a result. The written version is the base of later changes in the transaction. */
int workwrite_node(struct work *work, struct node *node);
int workwrite_volume(struct work *work, struct workvol *volume);
/* The objects that were noted since the last call. */
int workwrite_objects(struct work *work);

/* An object is dead, unless it was made in this transaction. */
int workwrite_kill(struct work *work, uint64_t id);
/*
 * Remove the contents of a row that neither `now` (NULL: nothing) nor another row of the vnode
 * refers to: small contents at once; objects become dead, very many later, in the background. The row itself is gone, or replaced.
 */
int workwrite_release(struct work *work, const struct vnode_key *key, const struct version *old,
		      const struct version *now, bool others);

#endif
