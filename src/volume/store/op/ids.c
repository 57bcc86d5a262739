/* SPDX-License-Identifier: BSD-2-Clause */
/* The last ids of users and groups, for the case that their database is lost. */
#include <errno.h>

#include "volume/store/txn/core.h"

#define USER  "user" /* numbers in the database */
#define GROUP "group"

struct note_op {
	struct txn_op txn;
	int32_t user, group;
};

static int raise_stored_number(struct db *db, const char *name, uint64_t value)
{
	uint64_t now = 0;
	int result = db_number_get(db, name, &now);

	if (result && result != -ENOENT)
		return result;
	return value > now ? db_number_put(db, name, value) : 0;
}

static int apply_id_note(struct txn_op *txn, struct work *work)
{
	const struct note_op *op = (const struct note_op *)txn;
	struct db *db;
	int result = work_db(work, &db);

	if (!result)
		result = raise_stored_number(db, USER, (uint64_t)op->user);
	if (!result)
		result = raise_stored_number(db, GROUP, (uint64_t) - (int64_t)op->group);
	return result;
}

int store_note_ids(struct store *store, int32_t user, int32_t group)
{
	struct note_op op = {
		.txn = {.apply = apply_id_note, .alone = true}, .user = user, .group = group};

	return txn_run(core_of(store)->txn, &op.txn);
}

int store_noted_ids(struct store *store, int32_t *user, int32_t *group)
{
	struct core *core = core_of(store);
	uint64_t last_user = 0, last_group = 0;
	struct db *db;
	int result = readers_get(core->readers, &db);

	if (result)
		return result;
	result = db_number_get(db, USER, &last_user);
	if (!result || result == -ENOENT)
		result = db_number_get(db, GROUP, &last_group);
	readers_put(core->readers, db);
	if (result && result != -ENOENT)
		return result;
	if (last_user > INT32_MAX || last_group > INT32_MAX)
		return -EIO;
	*user = (int32_t)last_user;
	*group = -(int32_t)last_group;
	return 0;
}
