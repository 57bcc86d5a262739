/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Contents of format 2 become those of format 3. A content was a list of extents of any length, in the record of the vnode or in
 * rows of pages. A block that lies in one object as a whole stays there, and gets a checksum; others are copied.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/grow.h"
#include "volume/store/db/db_private.h"
#include "volume/store/db/upgrade.h"
#include "volume/store/disk/crc.h"

#define PREFIX	     73 /* bytes of a record in front of the content */
#define MAP	     (PREFIX)
#define EXTENTS_MOST 65536u
#define LIST_LEAST   16 /* bytes behind the list */
#define OLD_PAGE     2048u

struct old_extent {
	uint64_t start, end, object;
};

struct upgrade {
	struct db *db;
	struct store_data *data;
	uint64_t numbers; /* the last one that was given out */
	uint8_t *block;
	struct vnode_key key; /* of the row */
	struct store_owner owner;
	uint64_t length;
	struct old_extent *extent;
	size_t count, room;
};

static uint64_t take_upgrade_number(void *arg)
{
	return ++((struct upgrade *)arg)->numbers;
}

static int run_upgrade_sql(struct upgrade *upgrade, const char *sql)
{
	return db_result(upgrade->db, sql_run(upgrade->db->sql, sql));
}

static sqlite3_stmt *prepare_upgrade(struct upgrade *upgrade, const char *sql, int *result)
{
	sqlite3_stmt *statement = NULL;

	*result = db_result(upgrade->db,
			    sqlite3_prepare_v2(upgrade->db->sql, sql, -1, &statement, NULL));
	return statement;
}

/* -- the old list -- */

static int add_old_extent(struct upgrade *upgrade, struct bytes *from)
{
	struct old_extent extent = {get_little(from, 8), get_little(from, 8), get_little(from, 8)};

	if (from->bad || extent.start >= extent.end || !extent.object)
		return -EBADMSG;
	if (!grow_array(&upgrade->extent, &upgrade->room, upgrade->count, sizeof(extent)))
		return -ENOMEM;
	upgrade->extent[upgrade->count++] = extent;
	return 0;
}

/* A row of a list: a checksum, where its range begins, how many extents, and these. */
static int add_old_row(struct upgrade *upgrade, sqlite3_stmt *statement)
{
	uint8_t row[4 + OLD_PAGE] = {0};
	size_t length = (size_t)sqlite3_column_bytes(statement, 0);
	struct bytes from = {.at = row + 12, .left = OLD_PAGE - 8};
	uint64_t count;
	int result = 0;

	if (length < 4 || length > sizeof(row))
		return -EBADMSG;
	memcpy(row, sqlite3_column_blob(statement, 0), length);
	count = get_little(&from, 2);
	while (count-- && !result)
		result = add_old_extent(upgrade, &from);
	return result;
}

static int read_old_rows(struct upgrade *upgrade, uint64_t rows)
{
	int result, step = SQLITE_ROW;
	sqlite3_stmt *statement = prepare_upgrade(
		upgrade,
		"SELECT data FROM page AS p WHERE grp=?1 AND vnode=?2 AND page<?4 AND epoch="
		"(SELECT max(epoch) FROM page AS q WHERE q.grp=?1 AND q.vnode=?2 AND q.page=p.page"
		" AND q.epoch<=?3)",
		&result);

	if (result)
		return result;
	sqlite3_bind_int64(statement, 1, upgrade->key.group);
	sqlite3_bind_int64(statement, 2, upgrade->key.vnode);
	sqlite3_bind_int64(statement, 3, upgrade->key.epoch);
	sqlite3_bind_int64(statement, 4, (sqlite3_int64)rows);
	while (!result && (step = sqlite3_step(statement)) == SQLITE_ROW)
		result = add_old_row(upgrade, statement);
	sqlite3_finalize(statement);
	return result || step == SQLITE_DONE ? result : db_result(upgrade->db, step);
}

static int compare_old_extents(const void *a, const void *b)
{
	uint64_t x = ((const struct old_extent *)a)->start;
	uint64_t y = ((const struct old_extent *)b)->start;

	return x < y ? -1 : x > y;
}

static int read_old_list(struct upgrade *upgrade, unsigned format, struct bytes *from)
{
	int result = 0;

	upgrade->count = 0;
	if (format == 1) {
		for (uint64_t count = get_little(from, 2); count && !result; count--)
			result = add_old_extent(upgrade, from);
	} else {
		uint64_t rows = get_little(from, 4);

		get_little(from, 4);
		result = read_old_rows(upgrade, rows);
	}
	if (!result && (from->left != LIST_LEAST || upgrade->count > EXTENTS_MOST))
		result = -EBADMSG;
	if (upgrade->count)
		qsort(upgrade->extent, upgrade->count, sizeof(upgrade->extent[0]),
		      compare_old_extents);
	return result;
}

/* -- blocks -- */

/* The bytes of a block: how many, up to the last one that an extent has. */
static int compose_old_block(struct upgrade *upgrade, uint32_t at, uint64_t start, uint32_t *filled)
{
	int result = 0;

	memset(upgrade->block, 0, STORE_BLOCK);
	for (; at < upgrade->count && upgrade->extent[at].start < start + STORE_BLOCK && !result;
	     at++) {
		const struct old_extent *extent = &upgrade->extent[at];
		uint64_t from = extent->start > start ? extent->start : start;
		uint64_t to = extent->end < start + STORE_BLOCK ? extent->end : start + STORE_BLOCK;

		result =
			store_data_read(upgrade->data, &upgrade->owner, extent->object,
					upgrade->block + (from - start), (size_t)(to - from), from);
		*filled = (uint32_t)(to - start);
	}
	return result;
}

static int copy_old_block(struct upgrade *upgrade, struct store_content *content, uint64_t start,
			  uint32_t filled)
{
	const struct store_base base = {.content = content, .kept = start};
	struct store_patch patch;
	struct store_run *run;
	int result = store_run_begin(upgrade->data, &upgrade->owner, &base, start,
				     take_upgrade_number, upgrade, &run);

	if (result)
		return result;
	result = store_run_put(run, upgrade->block, filled);
	if (!result)
		result = store_run_finish(run, &base, &patch);
	if (!result)
		result = store_content_apply(content, UINT64_MAX, &patch);
	store_run_end(run, !result);
	return result;
}

/* One block that some extents have, the first of them with number `at`. */
static int upgrade_block(struct upgrade *upgrade, struct store_content *content, uint32_t at,
			 uint64_t start)
{
	const struct old_extent *extent = &upgrade->extent[at];
	uint32_t filled = 0;
	int result = compose_old_block(upgrade, at, start, &filled);
	struct store_block block = {extent->object, filled, filled, 0};

	if (result)
		return result;
	if (extent->start > start || extent->end < start + filled)
		return copy_old_block(upgrade, content, start, filled);
	block.crc = store_crc(0, upgrade->block, filled);
	return store_content_apply(content, UINT64_MAX,
				   &(struct store_patch){start / STORE_BLOCK, &block, 1});
}

static int upgrade_list(struct upgrade *upgrade, struct store_content *content)
{
	uint64_t next = 0; /* the first block that was not looked at */
	int result = 0;

	for (uint32_t i = 0; i < upgrade->count && !result; i++) {
		uint64_t last = (upgrade->extent[i].end - 1) / STORE_BLOCK;

		if (next < upgrade->extent[i].start / STORE_BLOCK)
			next = upgrade->extent[i].start / STORE_BLOCK;
		for (; next <= last && !result; next++)
			result = upgrade_block(upgrade, content, i, next * STORE_BLOCK);
	}
	return result;
}

/* -- records -- */

static int put_new_record(struct upgrade *upgrade, const uint8_t *record, size_t length)
{
	int result;
	sqlite3_stmt *statement = prepare_upgrade(
		upgrade, "UPDATE vnode SET record=?4 WHERE grp=?1 AND vnode=?2 AND epoch=?3",
		&result);

	if (result)
		return result;
	sqlite3_bind_int64(statement, 1, upgrade->key.group);
	sqlite3_bind_int64(statement, 2, upgrade->key.vnode);
	sqlite3_bind_int64(statement, 3, upgrade->key.epoch);
	sqlite3_bind_blob(statement, 4, record, (int)length, SQLITE_STATIC);
	result = sqlite3_step(statement);
	sqlite3_finalize(statement);
	return db_result(upgrade->db, result);
}

static int count_slot_objects(struct upgrade *upgrade, const struct store_slot *slot)
{
	struct db_object object;
	int result = 0;

	for (uint32_t i = 0; slot && i < slot->count && !result; i++) {
		bool seen = !slot->block[i].object;

		for (uint32_t k = 0; k < i && !seen; k++)
			seen = slot->block[k].object == slot->block[i].object;
		if (seen)
			continue;
		result = db_object_get(upgrade->db, slot->block[i].object, &object);
		if (result == -ENOENT)
			object = (struct db_object){.id = slot->block[i].object,
						    .owner = upgrade->owner};
		object.refs++;
		if (!result || result == -ENOENT)
			result = db_object_put(upgrade->db, &object);
	}
	return result;
}

static int put_new_slots(struct upgrade *upgrade, const struct store_content *content, uint64_t map)
{
	int result = 0;

	for (uint32_t i = 0; i < content->count && !result; i++) {
		const struct db_slot_key key = {map, i, upgrade->key.epoch};

		const struct store_slot *slot = store_content_slot(content, i);

		result = count_slot_objects(upgrade, slot);
		if (!result && i && slot)
			result = db_slot_put(upgrade->db, &key, slot);
	}
	return result;
}

/* The record of a file: everything but the content stays. */
static int put_new_content(struct upgrade *upgrade, uint8_t *record,
			   const struct store_content *content)
{
	uint8_t *at = record + MAP;
	uint32_t rows = store_content_rows(content);
	uint64_t map;
	int result;

	map = rows ? take_upgrade_number(upgrade) : 0;
	result = put_new_slots(upgrade, content, map);
	if (result)
		return result;
	put_little(&at, map, 8);
	put_little(&at, content->count, 4);
	put_little(&at, rows, 4);
	if (content->first)
		at += store_slot_encode(content->first, at);
	return put_new_record(upgrade, record,
			      version_seal(&upgrade->key, record, (size_t)(at - record)));
}

/* A damaged record stays as it is. */
static int upgrade_record(struct upgrade *upgrade, const uint8_t *old, size_t length)
{
	uint8_t record[RECORD_MAX];
	struct store_content content = {0};
	struct bytes from = {.at = old, .left = length};
	struct bytes unique = {.at = old + 13, .left = 4};
	unsigned format, kind;
	int result;

	if (length < 7)
		return 0;
	get_little(&from, 4);
	format = (unsigned)get_little(&from, 1);
	kind = (unsigned)get_little(&from, 1);
	if ((format != 1 && format != 2) || !version_is_sealed(&upgrade->key, old, length) ||
	    (kind == STORE_FILE ? length < PREFIX : length > sizeof(record)))
		return 0;
	memcpy(record, old, kind == STORE_FILE ? PREFIX : length);
	if (kind != STORE_FILE)
		return put_new_record(upgrade, record, version_seal(&upgrade->key, record, length));
	upgrade->owner = (struct store_owner){upgrade->key.group, upgrade->key.vnode,
					      (uint32_t)get_little(&unique, 4)};
	from = (struct bytes){.at = old + PREFIX, .left = length - PREFIX};
	result = read_old_list(upgrade, format, &from);
	if (!result)
		result = upgrade_list(upgrade, &content);
	if (!result)
		result = put_new_content(upgrade, record, &content);
	store_content_free(&content);
	return result;
}

static int upgrade_rows(struct upgrade *upgrade)
{
	int result, step = SQLITE_DONE;
	sqlite3_stmt *statement = prepare_upgrade(
		upgrade, "SELECT grp, vnode, epoch, record FROM temp.old_vnode", &result);

	while (!result && (step = sqlite3_step(statement)) == SQLITE_ROW) {
		upgrade->key = (struct vnode_key){(uint32_t)sqlite3_column_int64(statement, 0),
						  (uint32_t)sqlite3_column_int64(statement, 1),
						  (uint32_t)sqlite3_column_int64(statement, 2)};
		result = upgrade_record(upgrade, sqlite3_column_blob(statement, 3),
					(size_t)sqlite3_column_bytes(statement, 3));
	}
	sqlite3_finalize(statement);
	return result || step == SQLITE_DONE ? result : db_result(upgrade->db, step);
}

static const char *const new_tables =
	"CREATE TEMP TABLE old_vnode AS SELECT grp, vnode, epoch, record FROM main.vnode;"
	"ALTER TABLE object RENAME COLUMN dead TO refs;"
	"UPDATE object SET refs=0;"
	"DROP INDEX object_dead;"
	"CREATE INDEX object_dead ON object(id) WHERE refs=0;" DB_SLOT_TABLES
	"CREATE INDEX IF NOT EXISTS prune_group ON prune(grp);"
	"DROP TABLE IF EXISTS doomed;";

static int begin_numbers(struct upgrade *upgrade)
{
	uint64_t opened = 0;
	int result = db_number_get(upgrade->db, "opened", &opened);

	if (result && result != -ENOENT)
		return result;
	upgrade->numbers = (opened + 1) << 32;
	return db_number_put(upgrade->db, "opened", opened + 1);
}

static int upgrade_in_transaction(struct upgrade *upgrade)
{
	int result = run_upgrade_sql(upgrade, new_tables);

	if (!result)
		result = begin_numbers(upgrade);
	if (!result)
		result = upgrade_rows(upgrade);
	if (!result)
		result = run_upgrade_sql(upgrade, "DELETE FROM page WHERE vnode%2=0;"
						  "DROP TABLE temp.old_vnode;");
	/* New objects are on stable storage before anything refers to them. */
	return result ? result : store_data_sync(upgrade->data);
}

int db_upgrade_contents(struct db *db, struct store_layer *layer)
{
	struct upgrade upgrade = {.db = db, .block = malloc(STORE_BLOCK)};
	sqlite3_stmt *statement;
	int result = upgrade.block ? 0 : -ENOMEM;

	if (!result)
		result = store_data_open(layer, 16, &upgrade.data);
	if (result) {
		free(upgrade.block);
		return result;
	}
	statement =
		prepare_upgrade(&upgrade, "SELECT 1 FROM sqlite_master WHERE name='slot'", &result);
	/* It was done by a run that did not get further. */
	if (!result && sqlite3_step(statement) != SQLITE_ROW) {
		sqlite3_finalize(statement);
		statement = NULL;
		result = db_begin(db);
		if (!result)
			result = upgrade_in_transaction(&upgrade);
		if (!result)
			result = db_commit(db);
		else
			db_rollback(db);
	}
	sqlite3_finalize(statement);
	store_data_close(upgrade.data);
	free(upgrade.extent);
	free(upgrade.block);
	return result;
}
