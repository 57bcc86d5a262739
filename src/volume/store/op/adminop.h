/* SPDX-License-Identifier: BSD-2-Clause */
/* Operations that admin.c and clone.c share. */
#ifndef STORE_ADMINOP_H
#define STORE_ADMINOP_H

#include "volume/store/txn/core.h"

struct admin_op {
	struct txn_op txn;
	struct core *core;
	uint32_t id;
	enum store_type type;
	const struct store_new_volume *new;
	const struct store_volume *values;
	const char *name;
	unsigned mask;
	bool (*permits)(void *arg, const struct store_acl *root);
	void *arg;
};

/* Run the operation in a transaction of its own. */
int admin_run(struct store *store, struct admin_op *op,
	      int (*apply)(struct txn_op *op, struct work *work));
/* A volume of this type; else -EINVAL. */
int admin_find(struct work *work, uint32_t id, enum store_type type, struct workvol **volume);

#endif
