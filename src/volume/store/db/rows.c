/* SPDX-License-Identifier: BSD-2-Clause */
/* The tables of the database. */
#include "volume/store/db/db_private.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "volume/store/db/slots.h"
#include "volume/store/disk/crc.h"

/* The next row; false: there is none, or there is a result. */
static bool find_next(struct db *db, sqlite3_stmt *statement, int *result)
{
	if (*result)
		return false;
	*result = db_step(db, statement);
	if (*result != DB_ROW)
		return false;
	*result = 0;
	return true;
}

static int end_rows(sqlite3_stmt *statement, int result)
{
	db_done(statement);
	return result;
}

/* A row of one number. -ENOENT. */
static int get_first_number(struct db *db, sqlite3_stmt *statement, uint64_t *number)
{
	int result = db_first(db, statement);

	if (!result)
		*number = (uint64_t)sqlite3_column_int64(statement, 0);
	return end_rows(statement, result);
}

static uint32_t get_column_number(sqlite3_stmt *statement, int i)
{
	return (uint32_t)sqlite3_column_int64(statement, i);
}

/* The bytes of a column: 0, -EBADMSG: none, or -ENOMEM, with which SQLite has none either. */
static int get_column_bytes(struct db *db, sqlite3_stmt *statement, int i, struct bytes *bytes)
{
	*bytes = (struct bytes){0};
	bytes->at = sqlite3_column_blob(statement, i);
	if (bytes->at) {
		bytes->left = (size_t)sqlite3_column_bytes(statement, i);
		return 0;
	}
	return sqlite3_errcode(db->sql) == SQLITE_NOMEM ? -ENOMEM : -EBADMSG;
}

/* -- volumes -- */

static int read_volume_row(struct db *db, sqlite3_stmt *statement, struct volrec *volume,
			   bool *damaged)
{
	uint32_t id = get_column_number(statement, 0);
	const char *name = (const char *)sqlite3_column_text(statement, 1);
	struct bytes record;
	int result = get_column_bytes(db, statement, 2, &record);

	if (result == -ENOMEM)
		return result;
	*damaged = result || volrec_decode(record.at, record.left, id, volume) != 0;
	if (!*damaged)
		return 0;
	report_damage(db->options.report,
		      "%s: the record of volume %u is damaged: it is not served; restore it",
		      db->options.path, id);
	memset(volume, 0, sizeof(*volume));
	volume->id = id;
	if (name)
		strncpy(volume->name, name, sizeof(volume->name) - 1);
	return 0;
}

int db_volumes(struct db *db, db_volume_fn each, void *arg)
{
	sqlite3_stmt *statement = db_statement(db, VOLUME_EACH);
	struct volrec volume;
	bool damaged;
	int result = 0;

	while (find_next(db, statement, &result)) {
		result = read_volume_row(db, statement, &volume, &damaged);
		if (!result)
			result = each(arg, &volume, damaged);
	}
	return end_rows(statement, result);
}

int db_volume_get(struct db *db, uint32_t id, struct volrec *volume, bool *damaged)
{
	sqlite3_stmt *statement = BIND(db, VOLUME_GET, id);
	int result = db_first(db, statement);

	if (!result)
		result = read_volume_row(db, statement, volume, damaged);
	return end_rows(statement, result);
}

int db_volume_put(struct db *db, const struct volrec *volume)
{
	uint8_t record[VOLREC_MAX];
	char number[16];
	size_t length = volrec_encode(volume, record);
	sqlite3_stmt *statement = BIND(db, VOLUME_PUT, volume->id);

	/* The column of names has each one once. */
	snprintf(number, sizeof(number), "#%u", (unsigned)volume->id);
	sqlite3_bind_text(statement, 2, volume->cell & VOLUME_NAMELESS ? number : volume->name, -1,
			  SQLITE_STATIC);
	sqlite3_bind_blob(statement, 3, record, (int)length, SQLITE_STATIC);
	return db_run(db, statement);
}

int db_volume_update(struct db *db, const struct volrec *volume)
{
	uint8_t record[VOLREC_MAX];
	size_t length = volrec_encode(volume, record);
	sqlite3_stmt *statement = BIND(db, VOLUME_UPDATE, volume->id);

	sqlite3_bind_blob(statement, 2, record, (int)length, SQLITE_STATIC);
	return db_run(db, statement);
}

int db_volume_delete(struct db *db, uint32_t id)
{
	return db_run(db, BIND(db, VOLUME_DELETE, id));
}

/* -- locations -- */

static int has_location_table(struct db *db, bool *has)
{
	sqlite3_stmt *statement = db_statement(db, LOCATION_TABLE);
	int result = db_first(db, statement);

	*has = !result;
	return end_rows(statement, result == -ENOENT ? 0 : result);
}

int db_make_locations(struct db *db)
{
	return db_sql(
		db,
		"CREATE TABLE IF NOT EXISTS location(id INTEGER PRIMARY KEY, entry BLOB NOT NULL)");
}

int db_location_put(struct db *db, uint32_t id, const void *entry, size_t length)
{
	sqlite3_stmt *statement;
	bool has;
	int result = has_location_table(db, &has);

	if (result || (!has && !length))
		return result;
	if (!has)
		result = db_make_locations(db);
	if (result || !length)
		return result ? result : db_run(db, BIND(db, LOCATION_DELETE, id));
	statement = BIND(db, LOCATION_PUT, id);
	sqlite3_bind_blob(statement, 2, entry, (int)length, SQLITE_STATIC);
	return db_run(db, statement);
}

int db_locations(struct db *db,
		 int (*each)(void *arg, uint32_t id, const void *entry, size_t length), void *arg)
{
	sqlite3_stmt *statement;
	struct bytes entry;
	bool has;
	int result = has_location_table(db, &has);

	if (result || !has)
		return result;
	statement = db_statement(db, LOCATION_EACH);
	while (find_next(db, statement, &result)) {
		result = get_column_bytes(db, statement, 1, &entry);
		if (!result)
			result = each(arg, get_column_number(statement, 0), entry.at, entry.left);
	}
	return end_rows(statement, result);
}

/* -- vnodes -- */

/* `at`: the column of the record. *version is NULL before. */
static int read_vnode_row(struct db *db, sqlite3_stmt *statement, int at,
			  const struct vnode_key *key, struct version **version)
{
	struct bytes record;
	int result = get_column_bytes(db, statement, at, &record);

	if (!result)
		result = version_decode(record.at, record.left, key, version);
	if (!result)
		return 0;
	version_unref(*version);
	*version = NULL;
	if (result != -EBADMSG)
		return result;
	report_damage(db->options.report,
		      "%s: the record of vnode %u of volume %u (epoch %u) is damaged: restore it",
		      db->options.path, key->vnode, key->group, key->epoch);
	return -EIO;
}

static int get_vnode_row(struct db *db, const struct vnode_key *key, bool whole,
			 struct version **version)
{
	sqlite3_stmt *statement = BIND(db, VNODE_GET, key->group, key->vnode, key->epoch);
	struct vnode_key found = *key;
	int result = db_first(db, statement);

	*version = NULL;
	if (!result) {
		found.epoch = get_column_number(statement, 0);
		result = read_vnode_row(db, statement, 1, &found, version);
	}
	/* The statement that gave the record is not done: nothing changes meanwhile. */
	if (!result && whole && (*version)->partial)
		result = db_slots_get(db, found.epoch, &found, *version);
	if (result) {
		version_unref(*version);
		*version = NULL;
	}
	return end_rows(statement, result);
}

int db_vnode_get(struct db *db, const struct vnode_key *key, struct version **version)
{
	return get_vnode_row(db, key, false, version);
}

int db_vnode_get_whole(struct db *db, const struct vnode_key *key, struct version **version)
{
	return get_vnode_row(db, key, true, version);
}

static int write_vnode_row(struct db *db, enum statement which, const struct vnode_key *key,
			   const struct version *version)
{
	uint8_t record[RECORD_MAX];
	size_t length = version_encode(version, key, record);
	sqlite3_stmt *statement = BIND(db, which, key->group, key->vnode, key->epoch);

	sqlite3_bind_blob(statement, 4, record, (int)length, SQLITE_STATIC);
	return db_run(db, statement);
}

int db_vnode_insert(struct db *db, const struct vnode_key *key, const struct version *version)
{
	return write_vnode_row(db, VNODE_INSERT, key, version);
}

int db_vnode_update(struct db *db, const struct vnode_key *key, const struct version *version)
{
	return write_vnode_row(db, VNODE_UPDATE, key, version);
}

int db_vnode_delete(struct db *db, const struct vnode_key *key)
{
	return db_run(db, BIND(db, VNODE_DELETE, key->group, key->vnode, key->epoch));
}

int db_vnode_rows(struct db *db, uint32_t group, uint32_t vnode, unsigned *damaged, db_row_fn each,
		  void *arg)
{
	struct vnode_key key = {.group = group, .vnode = vnode};
	sqlite3_stmt *statement = BIND(db, VNODE_ROWS, group, vnode, 0);
	int result = 0;

	*damaged = 0;
	while (find_next(db, statement, &result)) {
		struct version *version = NULL;

		key.epoch = get_column_number(statement, 1);
		result = read_vnode_row(db, statement, 2, &key, &version);
		if (result == -EIO) {
			(*damaged)++;
			result = 0;
		} else if (!result) {
			result = each(arg, &key, version);
		}
		version_unref(version);
	}
	return end_rows(statement, result);
}

int db_group_rows(struct db *db, const struct vnode_key *from, db_row_fn each, void *arg)
{
	struct vnode_key key = *from;
	sqlite3_stmt *statement = BIND(db, VNODE_GROUP, key.group, key.vnode, key.epoch);
	int result = 0;

	while (find_next(db, statement, &result)) {
		struct version *version = NULL;

		key.vnode = get_column_number(statement, 0);
		key.epoch = get_column_number(statement, 1);
		result = read_vnode_row(db, statement, 2, &key, &version);
		if (!result || result == -EIO)
			result = each(arg, &key, version);
		version_unref(version);
	}
	return end_rows(statement, result);
}

int db_group_outlines(struct db *db, uint32_t group, uint32_t from, uint32_t below,
		      db_outline_fn each, void *arg)
{
	struct vnode_key key = {.group = group};
	sqlite3_stmt *statement = BIND(db, VNODE_OUTLINE, group, from, below);
	struct outline outline;
	struct bytes record;
	int result = 0;

	while (find_next(db, statement, &result)) {
		key.vnode = get_column_number(statement, 0);
		key.epoch = get_column_number(statement, 1);
		result = get_column_bytes(db, statement, 2, &record);
		if (result == -ENOMEM)
			break;
		version_outline(record.at, record.left, &key, &outline);
		result = each(arg, &outline);
	}
	return end_rows(statement, result);
}

int db_group_next(struct db *db, uint32_t *group)
{
	uint64_t next = *group;
	int result = get_first_number(db, BIND(db, GROUP_NEXT, next), &next);

	*group = (uint32_t)next;
	return result;
}

int db_changes(struct db *db, uint32_t group, const struct db_change *after, uint32_t until,
	       struct db_change *change, unsigned room, unsigned *count)
{
	sqlite3_stmt *statement = BIND(db, CHANGES, group, after->epoch, after->vnode, until, room);
	int result = 0;

	*count = 0;
	while (*count < room && find_next(db, statement, &result))
		change[(*count)++] = (struct db_change){.epoch = get_column_number(statement, 0),
							.vnode = get_column_number(statement, 1)};
	return end_rows(statement, result);
}

/* -- pages -- */

static uint32_t compute_page_crc(const struct vnode_key *key, unsigned page, const uint8_t *bytes,
				 size_t length)
{
	uint8_t prefix[16], *at = prefix;

	put_little(&at, key->group, 4);
	put_little(&at, key->vnode, 4);
	put_little(&at, key->epoch, 4);
	put_little(&at, page, 4);
	return store_crc(store_crc(0, prefix, sizeof(prefix)), bytes, length);
}

static int read_page_row(struct db *db, sqlite3_stmt *statement, const struct vnode_key *key,
			 unsigned page, uint8_t out[STORE_PAGE])
{
	struct vnode_key found = *key;
	struct bytes from;
	int result = get_column_bytes(db, statement, 1, &from);
	uint32_t crc;

	if (result == -ENOMEM)
		return result;
	found.epoch = get_column_number(statement, 0);
	crc = from.at ? (uint32_t)get_little(&from, 4) : 0;
	if (!from.at || from.bad || from.left > STORE_PAGE ||
	    crc != compute_page_crc(&found, page, from.at, from.left)) {
		report_damage(
			db->options.report,
			"%s: page %u of directory %u of volume %u (epoch %u) is damaged: restore it",
			db->options.path, page, key->vnode, key->group, found.epoch);
		return -EIO;
	}
	memcpy(out, from.at, from.left);
	memset(out + from.left, 0, STORE_PAGE - from.left);
	return 0;
}

int db_page_get(struct db *db, const struct vnode_key *key, unsigned page, uint8_t out[STORE_PAGE])
{
	sqlite3_stmt *statement = BIND(db, PAGE_GET, key->group, key->vnode, page, key->epoch);
	int result = db_first(db, statement);

	if (!result) {
		result = read_page_row(db, statement, key, page, out);
	} else if (result == -ENOENT) {
		report_damage(db->options.report,
			      "%s: page %u of directory %u of volume %u is missing: restore it",
			      db->options.path, page, key->vnode, key->group);
		result = -EIO;
	}
	return end_rows(statement, result);
}

int db_directory_get(struct db *db, const struct vnode_key *key, uint64_t length,
		     struct store_pages **pages)
{
	unsigned count = (unsigned)(length / STORE_PAGE);
	uint8_t(*page)[STORE_PAGE];
	int result = 0;

	if (length % STORE_PAGE || !count || length / STORE_PAGE > STORE_PAGES_MAX)
		return -EBADMSG;
	page = malloc(length);
	if (!page)
		return -ENOMEM;
	for (unsigned i = 0; i < count && !result; i++)
		result = db_page_get(db, key, i, page[i]);
	if (!result)
		result = store_pages_load(page, count, pages);
	free(page);
	return result;
}

/* The row to replace: its id, 0 if there is none; its epoch becomes that of *key. */
static int find_page_row(struct db *db, struct vnode_key *key, uint32_t shared, unsigned page,
			 uint64_t *id)
{
	sqlite3_stmt *statement = BIND(db, PAGE_FIND, key->group, key->vnode, page, shared);
	int result = db_first(db, statement);

	*id = 0;
	if (!result) {
		*id = (uint64_t)sqlite3_column_int64(statement, 0);
		key->epoch = get_column_number(statement, 1);
	}
	return end_rows(statement, result == -ENOENT ? 0 : result);
}

static size_t measure_without_zeros(const uint8_t *bytes, size_t length)
{
	static const uint8_t zeros[64];

	/* Most pages are nearly empty. */
	while (length >= sizeof(zeros) &&
	       !memcmp(bytes + length - sizeof(zeros), zeros, sizeof(zeros)))
		length -= sizeof(zeros);
	while (length && !bytes[length - 1])
		length--;
	return length;
}

int db_page_put(struct db *db, const struct vnode_key *key, uint32_t shared, unsigned page,
		const uint8_t bytes[STORE_PAGE])
{
	struct vnode_key row = *key;
	uint8_t data[4 + STORE_PAGE], *at = data;
	size_t length = measure_without_zeros(bytes, STORE_PAGE);
	uint64_t id;
	int result = find_page_row(db, &row, shared, page, &id);
	sqlite3_stmt *statement;

	assert(shared < key->epoch);
	if (result)
		return result;
	put_little(&at, compute_page_crc(&row, page, bytes, length), 4);
	memcpy(at, bytes, length);
	statement = id ? BIND(db, PAGE_UPDATE, id)
		       : BIND(db, PAGE_INSERT, row.group, row.vnode, page, row.epoch);
	sqlite3_bind_blob(statement, id ? 2 : 5, data, (int)(4 + length), SQLITE_STATIC);
	return db_run(db, statement);
}

int db_pages_delete(struct db *db, const struct vnode_key *key)
{
	return db_run(db, BIND(db, PAGE_DELETE, key->group, key->vnode, key->epoch));
}

int db_pages_delete_some(struct db *db, const struct vnode_key *key, unsigned most, unsigned *count)
{
	int result =
		db_run(db, BIND(db, PAGE_DELETE_SOME, key->group, key->vnode, key->epoch, most));

	*count = result ? 0 : (unsigned)sqlite3_changes(db->sql);
	return result;
}

int db_pages_prune(struct db *db, uint32_t group, uint32_t vnode, const struct db_hidden *hidden)
{
	return db_run(db,
		      BIND(db, PAGE_PRUNE, group, vnode, hidden->from, hidden->to, hidden->next));
}

/* -- slots -- */

static uint32_t compute_slot_crc(const struct db_slot_key *key, const uint8_t *bytes, size_t length)
{
	uint8_t prefix[16], *at = prefix;

	put_little(&at, key->map, 8);
	put_little(&at, key->slot, 4);
	put_little(&at, key->epoch, 4);
	return store_crc(store_crc(0, prefix, sizeof(prefix)), bytes, length);
}

/* The columns slot, epoch, data. *slot: NULL: the row is damaged. 0 or -ENOMEM. */
static int read_slot_row(struct db *db, sqlite3_stmt *statement, uint64_t map,
			 struct db_slot_key *key, struct store_slot **slot)
{
	struct bytes from;
	int result = get_column_bytes(db, statement, 2, &from);

	*slot = NULL;
	*key = (struct db_slot_key){map, get_column_number(statement, 0),
				    get_column_number(statement, 1)};
	if (result || from.left < 6 ||
	    get_little(&from, 4) != compute_slot_crc(key, from.at, from.left))
		return result == -ENOMEM ? result : 0;
	result = store_slot_decode(from.at, from.left, slot);
	if (*slot)
		(*slot)->epoch = key->epoch;
	return result == -ENOMEM ? result : 0;
}

static struct store_slot *make_damaged_slot(uint32_t epoch)
{
	struct store_slot *slot = store_slot_new(0);

	if (slot) {
		slot->damaged = true;
		slot->epoch = epoch;
	}
	return slot;
}

static void report_slot(struct db *db, const struct vnode_key *owner, uint32_t slot,
			const char *what)
{
	report_damage(
		db->options.report,
		"%s: the map of vnode %u of volume %u is %s from offset %llu on: restore the file",
		db->options.path, owner->vnode, owner->group, what,
		(unsigned long long)slot * STORE_SLOT);
}

/* A later row of a slot replaces an earlier one; an empty one is a slot of holes. */
static int take_slot_row(struct db *db, sqlite3_stmt *statement, const struct vnode_key *owner,
			 struct version *version)
{
	struct db_slot_key key;
	struct store_slot *slot;
	int result = read_slot_row(db, statement, version->v.map, &key, &slot);

	if (result || !key.slot || key.slot >= version->v.slots) {
		store_slot_unref(slot);
		return result;
	}
	if (!slot) {
		report_slot(db, owner, key.slot, "damaged");
		slot = make_damaged_slot(key.epoch);
		if (!slot)
			return -ENOMEM;
	}
	if (!slot->count && !slot->damaged) {
		store_slot_unref(slot);
		slot = NULL;
	}
	return store_content_set(&version->content, key.slot, slot);
}

/* A row is missing, or is damaged and may be that of another slot: it is not known which of those without a row has lost it. */
static int mark_missing_slots(struct db *db, const struct vnode_key *owner, struct version *version)
{
	struct store_slot *damaged = make_damaged_slot(0);
	int result = damaged ? 0 : -ENOMEM;

	for (uint32_t i = 1; i < version->v.slots && !result; i++) {
		if (store_content_slot(&version->content, i))
			continue;
		report_slot(db, owner, i, "missing");
		result = store_content_set(&version->content, i, store_slot_ref(damaged));
	}
	store_slot_unref(damaged);
	return result;
}

static uint32_t count_sound_slots(const struct store_content *content)
{
	uint32_t count = 0;

	for (uint32_t at = 1; store_content_next(content, &at); at++)
		count += !store_content_slot(content, at)->damaged;
	return count;
}

int db_slots_get(struct db *db, uint32_t epoch, const struct vnode_key *owner,
		 struct version *version)
{
	sqlite3_stmt *statement = BIND(db, SLOT_GET, version->v.map, epoch);
	int result = 0;

	assert(version->partial);
	while (find_next(db, statement, &result))
		result = take_slot_row(db, statement, owner, version);
	db_done(statement);
	if (!result && count_sound_slots(&version->content) < version->v.rows)
		result = mark_missing_slots(db, owner, version);
	version->partial = result != 0;
	return result;
}

int db_slot_put(struct db *db, const struct db_slot_key *key, const struct store_slot *slot)
{
	static const struct store_slot nothing;
	uint8_t record[4 + STORE_SLOT_MAX], *at = record;
	size_t length = store_slot_encode(slot ? slot : &nothing, record + 4);
	sqlite3_stmt *statement = BIND(db, SLOT_PUT, key->map, key->slot, key->epoch);

	put_little(&at, compute_slot_crc(key, record + 4, length), 4);
	sqlite3_bind_blob(statement, 4, record, (int)(4 + length), SQLITE_STATIC);
	return db_run(db, statement);
}

int db_slot_delete(struct db *db, const struct db_slot_key *key)
{
	return db_run(db, BIND(db, SLOT_DELETE, key->map, key->slot, key->epoch));
}

static int visit_slot_rows(struct db *db, sqlite3_stmt *statement, uint64_t map, db_slot_fn each,
			   void *arg)
{
	struct db_slot_key key;
	struct store_slot *slot;
	int result = 0;

	while (find_next(db, statement, &result)) {
		result = read_slot_row(db, statement, map, &key, &slot);
		if (!result)
			result = each(arg, &key, slot);
		store_slot_unref(slot);
	}
	return end_rows(statement, result);
}

int db_slot_rows(struct db *db, uint64_t map, uint32_t slot, db_slot_fn each, void *arg)
{
	return visit_slot_rows(db, BIND(db, SLOT_ROWS, map, slot), map, each, arg);
}

struct other_maps {
	struct db *db;
	const struct db_slot_key *key;
	db_slot_fn each;
	void *arg;
};

static int visit_other_map(void *arg, const struct vnode_key *vnode, const struct version *version)
{
	const struct other_maps *others = arg;

	(void)vnode;
	if (!version->v.map || version->v.map == others->key->map)
		return 0;
	return db_slot_rows(others->db, version->v.map, others->key->slot, others->each,
			    others->arg);
}

int db_other_map_rows(struct db *db, const struct store_owner *owner, const struct db_slot_key *key,
		      unsigned *damaged, db_slot_fn each, void *arg)
{
	struct other_maps others = {db, key, each, arg};

	return db_vnode_rows(db, owner->group, owner->vnode, damaged, visit_other_map, &others);
}

int db_slots_each(struct db *db, uint64_t map, db_slot_fn each, void *arg)
{
	return visit_slot_rows(db, BIND(db, SLOT_EACH, map), map, each, arg);
}

int db_map_next(struct db *db, uint64_t *map)
{
	return get_first_number(db, BIND(db, MAP_NEXT, *map), map);
}

#define DROP_MOST 64

int db_slots_drop(struct db *db, struct db_drop *drop, unsigned limit, bool *more, db_slot_fn each,
		  void *arg)
{
	struct db_slot_key key[DROP_MOST];
	struct store_slot *slot[DROP_MOST] = {NULL};
	unsigned most = limit < DROP_MOST ? limit : DROP_MOST, count = 0;
	sqlite3_stmt *statement = BIND(db, SLOT_DROP, drop->map, drop->slot, drop->hidden.from,
				       drop->hidden.to, drop->hidden.next, most);
	int result = 0;

	for (; count < most && find_next(db, statement, &result); count++)
		result = read_slot_row(db, statement, drop->map, &key[count], &slot[count]);
	db_done(statement);
	for (unsigned i = 0; i < count; i++) {
		if (!result)
			result = each(arg, &key[i], slot[i]);
		if (!result)
			result = db_slot_delete(db, &key[i]);
		drop->slot = key[i].slot;
		store_slot_unref(slot[i]);
	}
	*more = count == most;
	return result;
}

/* -- small contents -- */

static uint32_t compute_small_crc(const struct db_small *small, const void *bytes, size_t length)
{
	uint8_t prefix[16], *at = prefix;

	put_little(&at, small->id, 8);
	put_little(&at, small->group, 4);
	put_little(&at, small->vnode, 4);
	return store_crc(store_crc(0, prefix, sizeof(prefix)), bytes, length);
}

static int read_small_row(struct db *db, sqlite3_stmt *statement, const struct db_small *small,
			  struct blob **blob)
{
	struct bytes from;
	int result = get_column_bytes(db, statement, 0, &from);
	uint32_t crc;

	if (result == -ENOMEM)
		return result;
	crc = from.at ? (uint32_t)get_little(&from, 4) : 0;
	if (!from.at || from.bad || crc != compute_small_crc(small, from.at, from.left)) {
		report_damage(
			db->options.report,
			"%s: the contents of vnode %u of volume %u are damaged: restore the file",
			db->options.path, small->vnode, small->group);
		return -EIO;
	}
	*blob = blob_new(from.left);
	if (!*blob)
		return -ENOMEM;
	memcpy((*blob)->bytes, from.at, from.left);
	return 0;
}

int db_small_get(struct db *db, const struct db_small *small, struct blob **blob)
{
	sqlite3_stmt *statement = BIND(db, SMALL_GET, small->id);
	int result = db_first(db, statement);

	*blob = NULL;
	if (!result)
		result = read_small_row(db, statement, small, blob);
	return end_rows(statement, result);
}

int db_small_put(struct db *db, const struct db_small *small, const struct blob *blob)
{
	size_t length = 4 + (size_t)blob->length;
	uint8_t *data = sqlite3_malloc64(length), *at = data;
	sqlite3_stmt *statement;

	if (!data)
		return -ENOMEM;
	put_little(&at, compute_small_crc(small, blob->bytes, blob->length), 4);
	memcpy(at, blob->bytes, blob->length);
	statement = BIND(db, SMALL_PUT, small->id);
	/* Frees the bytes, also if it fails. */
	sqlite3_bind_blob(statement, 2, data, (int)length, sqlite3_free);
	return db_run(db, statement);
}

int db_small_delete(struct db *db, uint64_t id)
{
	return db_run(db, BIND(db, SMALL_DELETE, id));
}

int db_smalls(struct db *db, uint64_t after, int (*each)(void *arg, uint64_t id), void *arg)
{
	sqlite3_stmt *statement = BIND(db, SMALL_EACH, after);
	int result = 0;

	while (find_next(db, statement, &result))
		result = each(arg, (uint64_t)sqlite3_column_int64(statement, 0));
	return end_rows(statement, result);
}

/* -- objects -- */

static void read_object_row(sqlite3_stmt *statement, struct db_object *object)
{
	object->id = (uint64_t)sqlite3_column_int64(statement, 0);
	object->owner.group = get_column_number(statement, 1);
	object->owner.vnode = get_column_number(statement, 2);
	object->owner.unique = get_column_number(statement, 3);
	object->refs = (uint64_t)sqlite3_column_int64(statement, 4);
	object->first = object->count = 0;
}

int db_object_get(struct db *db, uint64_t id, struct db_object *object)
{
	sqlite3_stmt *statement = BIND(db, OBJECT_GET, id);
	int result = db_first(db, statement);

	if (!result)
		read_object_row(statement, object);
	return end_rows(statement, result);
}

int db_object_put(struct db *db, const struct db_object *object)
{
	const struct store_owner *owner = &object->owner;

	return db_run(db, BIND(db, OBJECT_PUT, object->id, owner->group, owner->vnode,
			       owner->unique, object->refs));
}

int db_object_delete(struct db *db, uint64_t id)
{
	return db_run(db, BIND(db, OBJECT_DELETE, id));
}

int db_objects(struct db *db, bool dead_only, db_object_fn each, void *arg)
{
	sqlite3_stmt *statement = db_statement(db, dead_only ? OBJECT_DEAD : OBJECT_EACH);
	struct db_object object;
	int result = 0;

	while (find_next(db, statement, &result)) {
		read_object_row(statement, &object);
		result = each(arg, &object);
	}
	return end_rows(statement, result);
}

/* -- prunes -- */

int db_prune_first(struct db *db, uint32_t group, struct db_prune *prune)
{
	sqlite3_stmt *statement =
		group ? BIND(db, PRUNE_FIRST_OF, group) : db_statement(db, PRUNE_FIRST);
	int result = db_first(db, statement);

	if (!result) {
		prune->id = (uint64_t)sqlite3_column_int64(statement, 0);
		prune->group = get_column_number(statement, 1);
		prune->epoch = get_column_number(statement, 2);
		prune->done.epoch = get_column_number(statement, 3);
		prune->done.vnode = get_column_number(statement, 4);
	}
	return end_rows(statement, result);
}

int db_prune_put(struct db *db, const struct db_prune *prune)
{
	const struct db_change *done = &prune->done;

	return db_run(db, prune->id ? BIND(db, PRUNE_UPDATE, prune->id, done->epoch, done->vnode)
				    : BIND(db, PRUNE_INSERT, prune->group, prune->epoch,
					   done->epoch, done->vnode));
}

int db_prune_delete(struct db *db, uint64_t id)
{
	return db_run(db, BIND(db, PRUNE_DELETE, id));
}

int db_prune_count(struct db *db, uint32_t group, uint64_t *count)
{
	*count = 0;
	return get_first_number(db, BIND(db, PRUNE_COUNT, group), count);
}

int db_prune_has(struct db *db, uint32_t group, bool *has)
{
	uint64_t count = 0;
	int result = get_first_number(db, BIND(db, PRUNE_HAS, group), &count);

	*has = !result && count;
	return result == -ENOENT ? 0 : result;
}

/* -- rows of slots that wait to be deleted -- */

static void read_drop_row(sqlite3_stmt *statement, struct db_drop *drop)
{
	*drop = (struct db_drop){.id = (uint64_t)sqlite3_column_int64(statement, 0),
				 .map = (uint64_t)sqlite3_column_int64(statement, 1),
				 .hidden = {get_column_number(statement, 2),
					    get_column_number(statement, 3),
					    get_column_number(statement, 4)},
				 .slot = get_column_number(statement, 5)};
}

int db_drop_put(struct db *db, const struct db_drop *drop)
{
	sqlite3_stmt *statement = BIND(db, DROP_PUT, drop->id, drop->map, drop->hidden.from,
				       drop->hidden.to, drop->hidden.next, drop->slot);

	if (!drop->id)
		sqlite3_bind_null(statement, 1);
	return db_run(db, statement);
}

int db_drop_first(struct db *db, struct db_drop *drop)
{
	sqlite3_stmt *statement = db_statement(db, DROP_FIRST);
	int result = db_first(db, statement);

	if (!result)
		read_drop_row(statement, drop);
	return end_rows(statement, result);
}

int db_drop_delete(struct db *db, uint64_t id)
{
	return db_run(db, BIND(db, DROP_DELETE, id));
}

int db_drop_each(struct db *db, int (*each)(void *arg, const struct db_drop *drop), void *arg)
{
	sqlite3_stmt *statement = db_statement(db, DROP_EACH);
	struct db_drop drop;
	int result = 0;

	while (find_next(db, statement, &result)) {
		read_drop_row(statement, &drop);
		result = each(arg, &drop);
	}
	return end_rows(statement, result);
}

static int skip_probed_volume(void *arg, const struct volrec *volume, bool damaged)
{
	(void)arg, (void)volume, (void)damaged;
	return 0;
}

static int skip_probed_object(void *arg, const struct db_object *object)
{
	(void)arg, (void)object;
	return 0;
}

static int skip_probed_number(void *arg, const char *name, uint64_t value)
{
	(void)arg, (void)name, (void)value;
	return 0;
}

int db_probe(struct db *db)
{
	struct db_prune prune;
	int result = db_numbers(db, "", skip_probed_number, NULL);

	if (!result)
		result = db_volumes(db, skip_probed_volume, NULL);
	if (!result)
		result = db_objects(db, true, skip_probed_object, NULL);
	if (!result)
		result = db_prune_first(db, 0, &prune);
	return result == -ENOENT ? 0 : result;
}
