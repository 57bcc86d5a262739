/* SPDX-License-Identifier: BSD-2-Clause */
/* After rows were lost: references from records to contents are counted anew. */
#include <assert.h>
#include <errno.h>

#include "volume/store/db/carve.h"
#include "volume/store/db/db_private.h"
#include "volume/store/db/slots.h"

enum content_kind {
	CONTENT_OBJECT,
	CONTENT_SMALL,
	CONTENT_MAP
};

struct settling {
	struct db *db;
	struct store_owner owner; /* of the records that are looked at */
	uint32_t incarnation;
};

/* Zeros take no room in a row, and there are many small contents. */
static int refer_to(struct settling *settling, uint64_t number, enum content_kind kind)
{
	static const struct store_owner none;
	const struct store_owner *owner = kind == CONTENT_SMALL ? &none : &settling->owner;

	return db_run(settling->db, BIND(settling->db, REFERENCE_PUT, number, kind, owner->group,
					 owner->vnode, owner->unique));
}

static int refer_to_blocks(struct settling *settling, const struct store_slot *slot)
{
	int result = 0;

	for (uint32_t i = 0; slot && i < slot->count && !result; i++)
		if (store_slot_is_first(slot, i))
			result = refer_to(settling, slot->block[i].object, CONTENT_OBJECT);
	return result;
}

static int note_references(void *arg, const struct vnode_key *key, const struct version *version)
{
	struct settling *settling = arg;
	int result = 0;

	if (!version)
		return 0;
	if (settling->incarnation < version->v.incarnation)
		settling->incarnation = version->v.incarnation;
	settling->owner = (struct store_owner){key->group, key->vnode, version->v.unique};
	if (version->v.small)
		result = refer_to(settling, version->v.small, CONTENT_SMALL);
	if (!result && version->v.map)
		result = refer_to(settling, version->v.map, CONTENT_MAP);
	return result ? result : refer_to_blocks(settling, version->content.first);
}

static int note_slot_references(void *arg, const struct db_slot_key *key,
				const struct store_slot *slot)
{
	(void)key;
	return refer_to_blocks(arg, slot);
}

static int note_records(struct settling *settling)
{
	uint32_t group = 0;
	int result;

	while (!(result = db_group_next(settling->db, &group))) {
		const struct vnode_key from = {.group = group};

		result = db_group_rows(settling->db, &from, note_references, settling);
		if (result)
			return result;
	}
	return result == -ENOENT ? 0 : result;
}

/* A map belongs to the file whose record has it. */
static int note_maps(struct settling *settling)
{
	uint64_t map = 0;
	int result;

	while (!(result = db_map_next(settling->db, &map))) {
		sqlite3_stmt *row = BIND(settling->db, REFERENCE_OWNER, map);

		result = db_first(settling->db, row);
		settling->owner = (struct store_owner){(uint32_t)sqlite3_column_int64(row, 0),
						       (uint32_t)sqlite3_column_int64(row, 1),
						       (uint32_t)sqlite3_column_int64(row, 2)};
		db_done(row);
		if (!result)
			result = db_slots_each(settling->db, map, note_slot_references, settling);
		if (result && result != -ENOENT)
			return result;
	}
	return result == -ENOENT ? 0 : result;
}

static int find_greatest_number(struct db *db, uint64_t *greatest)
{
	int result;
	sqlite3_stmt *row = db_prepare(
		db,
		"SELECT max(id) FROM (SELECT max(id) AS id FROM object UNION ALL SELECT max(id) FROM small"
		" UNION ALL SELECT max(map) FROM slot UNION ALL SELECT max(id) FROM temp.reference)",
		&result);

	if (!result)
		result = db_first(db, row);
	if (!result && *greatest < (uint64_t)sqlite3_column_int64(row, 0))
		*greatest = (uint64_t)sqlite3_column_int64(row, 0);
	sqlite3_finalize(row);
	return result;
}

static const char *const begin =
	"CREATE TEMP TABLE reference(id INTEGER PRIMARY KEY, kind INTEGER, count INTEGER, grp INTEGER,"
	" vnode INTEGER, uniq INTEGER)";
/* Files of objects that only a lost record referred to stay where they are. */
static const char *const forget =
	"DELETE FROM object WHERE refs>0 AND id NOT IN (SELECT id FROM temp.reference WHERE kind=0)";
static const char *const settle =
	"INSERT OR IGNORE INTO object SELECT id, grp, vnode, uniq, 0 FROM temp.reference WHERE kind=0;"
	"UPDATE object SET refs=coalesce((SELECT count FROM temp.reference AS r"
	" WHERE r.id=object.id AND kind=0), 0);"
	"DELETE FROM small WHERE id NOT IN (SELECT id FROM temp.reference WHERE kind=1);"
	"DELETE FROM slot WHERE map NOT IN (SELECT id FROM temp.reference WHERE kind=2);"
	"DROP TABLE temp.reference";

int db_settle_contents(struct db *db, bool keep_files, uint64_t *greatest, uint32_t *incarnation)
{
	struct settling settling = {.db = db};
	int result = db_sql(db, begin);

	assert(db->begun);
	if (!result)
		result = note_records(&settling);
	if (!result)
		result = note_maps(&settling);
	if (!result)
		result = find_greatest_number(db, greatest);
	if (!result && keep_files)
		result = db_sql(db, forget);
	*incarnation = settling.incarnation;
	return result ? result : db_sql(db, settle);
}
