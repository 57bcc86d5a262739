/* SPDX-License-Identifier: BSD-2-Clause */
/* Bytes of objects that a flush lost. */
#include "volume/store/maint/lost.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "volume/store/data/data_lost.h"
#include "volume/store/txn/lookup.h"

#define PREFIX \
	"lost-" /* of the numbers in the database, each with an object and the bytes that are safe */

struct record_op {
	struct txn_op txn;
	struct core *core;
	struct store_lost lost;
	bool known; /* the database has the object */
};

static void format_lost_name(uint64_t object, char name[32])
{
	snprintf(name, 32, PREFIX "%016llx", (unsigned long long)object);
}

/* A writer whose bytes were lost before its commit has left none. */
static int put_lost_record(struct db *db, struct record_op *op)
{
	struct db_object object;
	char name[32];
	int result = db_object_get(db, op->lost.object, &object);

	op->known = !result;
	if (result)
		return result == -ENOENT ? 0 : result;
	op->lost.owner = object.owner;
	format_lost_name(op->lost.object, name);
	return db_number_put(db, name, op->lost.safe);
}

static int apply_lost_record(struct txn_op *txn, struct work *work)
{
	struct db *db;
	int result = work_db(work, &db);

	return result ? result : put_lost_record(db, (struct record_op *)txn);
}

static void conclude_lost_record(const struct record_op *op)
{
	struct core *core = op->core;

	store_data_lost_recorded(core->data, &op->lost);
	if (op->known)
		report_damage(
			&core->report,
			"%s: the disk did not take bytes of vnode %u of volume %u, which are lost: restore the file",
			core->name, op->lost.owner.vnode, op->lost.owner.group);
}

int lost_record(struct core *core)
{
	struct record_op op = {.txn = {.apply = apply_lost_record, .alone = true}, .core = core};
	int result = 0;

	/* A commit may have to flush the log first. */
	core->recording = true;
	while (!result && store_data_lost_next(core->data, &op.lost)) {
		result = txn_run(core->txn, &op.txn);
		if (!result)
			conclude_lost_record(&op);
	}
	core->recording = false;
	return result;
}

int lost_record_first(struct core *core, struct db *db)
{
	struct record_op op = {.core = core};
	int result = 0;

	while (!result && store_data_lost_next(core->data, &op.lost)) {
		result = db_begin(db);
		if (!result)
			result = put_lost_record(db, &op);
		if (!result)
			result = db_commit(db);
		if (result)
			db_rollback(db);
		else
			conclude_lost_record(&op);
	}
	return result;
}

static int load_lost_record(void *arg, const char *name, uint64_t safe)
{
	struct core *core = arg;
	struct store_lost lost = {.object = strtoull(name + strlen(PREFIX), NULL, 16),
				  .safe = safe};
	struct db_object object;
	int result = db_object_get(core->writer, lost.object, &object);

	assert(!strncmp(name, PREFIX, strlen(PREFIX)));
	if (result)
		return result == -ENOENT ? 0 : result;
	lost.owner = object.owner;
	return store_data_set_lost(core->data, &lost);
}

int lost_load(struct core *core, struct db *db)
{
	return db_numbers(db, PREFIX, load_lost_record, core);
}

int lost_forget(struct core *core, struct db *db, uint64_t object)
{
	char name[32];

	if (!store_data_any_lost(core->data))
		return 0;
	format_lost_name(object, name);
	return db_number_delete(db, name);
}

int lost_check(struct core *core, const struct store_fid *fid)
{
	struct found found;
	int result;

	if (!store_data_any_lost(core->data) || lookup(core, NULL, fid, &found))
		return 0;
	result = store_data_is_lost(core->data, &found.version->content) ? -EIO : 0;
	lookup_end(&found);
	return result;
}
