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
	int result;
	sqlite3_stmt *statement = db_prepare(
		upgrade->db,
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
	while (!result && (result = db_step(upgrade->db, statement)) == DB_ROW)
		result = add_old_row(upgrade, statement);
	sqlite3_finalize(statement);
	return result;
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
	const struct vnode_key *key = &upgrade->key;
	sqlite3_stmt *statement =
		BIND(upgrade->db, VNODE_UPDATE, key->group, key->vnode, key->epoch);

	sqlite3_bind_blob(statement, 4, record, (int)length, SQLITE_STATIC);
	return db_run(upgrade->db, statement);
}

static int put_new_slots(struct upgrade *upgrade, const struct store_content *content, uint64_t map)
{
	int result = 0;

	for (uint32_t i = 1; i < content->count && !result; i++) {
		const struct db_slot_key key = {map, i, upgrade->key.epoch};
		const struct store_slot *slot = store_content_slot(content, i);

		if (slot)
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
	uint64_t map = rows ? take_upgrade_number(upgrade) : 0;
	int result = put_new_slots(upgrade, content, map);

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
	int result;
	sqlite3_stmt *statement = db_prepare(
		upgrade->db, "SELECT grp, vnode, epoch, record FROM temp.old_vnode", &result);

	while (!result && (result = db_step(upgrade->db, statement)) == DB_ROW) {
		upgrade->key = (struct vnode_key){(uint32_t)sqlite3_column_int64(statement, 0),
						  (uint32_t)sqlite3_column_int64(statement, 1),
						  (uint32_t)sqlite3_column_int64(statement, 2)};
		result = upgrade_record(upgrade, sqlite3_column_blob(statement, 3),
					(size_t)sqlite3_column_bytes(statement, 3));
	}
	sqlite3_finalize(statement);
	return result;
}

/* An attempt that was stopped has left objects. */
static int note_new_object(void *arg, uint64_t number)
{
	uint64_t *opened = arg;

	if (*opened < number >> 32)
		*opened = number >> 32;
	return 0;
}

int db_upgrade_contents(struct db *db, struct store_layer *layer)
{
	struct upgrade upgrade = {.db = db, .block = malloc(STORE_BLOCK)};
	uint64_t opened = 0;
	int result = upgrade.block ? db_number_get(db, "opened", &opened) : -ENOMEM;

	if (!result || result == -ENOENT)
		result = store_data_open(layer, 16, &upgrade.data);
	if (!result)
		result = store_data_list_new(upgrade.data, note_new_object, &opened);
	upgrade.numbers = (opened + 1) << 32;
	/* Then, the last column of an object said whether it was to be removed. */
	if (!result)
		result = db_sql(db, "CREATE TEMP TABLE old_vnode AS SELECT * FROM vnode;"
				    "UPDATE object SET refs=(refs=0)");
	if (!result)
		result = upgrade_rows(&upgrade);
	if (!result)
		result = db_sql(db, "DELETE FROM page WHERE vnode%2=0; DROP TABLE temp.old_vnode");
	if (upgrade.data)
		store_data_close(upgrade.data);
	free(upgrade.extent);
	free(upgrade.block);
	return result;
}
