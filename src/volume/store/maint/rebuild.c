/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The database of a store, made anew: the sound rows of the old one, of its log and of the copy; records for contents that have
 * none; then counts, numbers, and trees of names.
 */
#include "volume/store/maint/rebuild.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/grow.h"
#include "volume/store/db/carve.h"
#include "volume/store/db/slots.h"
#include "volume/store/db/upgrade.h"
#include "volume/store/disk/crc.h"
#include "volume/store/disk/mend.h"
#include "volume/store/disk/report.h"

#define FIRST_VERSION 131072 /* beyond what clients may have seen */

void rebuild_tell(const struct rebuild *rebuild, const char *format, ...)
{
	char line[1024];
	va_list args;

	if (!rebuild->out->line)
		return;
	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	rebuild->out->line(rebuild->out->arg, line);
}

/* -- the rows -- */

/* `opened`: the result of opening the pages. */
static int carve_opened_pages(struct rebuild *rebuild, struct db *db, int opened,
			      struct store_pageset *set, struct carve_counts *counts)
{
	int result;

	if (opened)
		return opened == -ENOMEM ? opened : 0;
	result = db_carve(set, db, counts);
	store_pageset_close(set);
	rebuild->out->pages += counts->pages;
	rebuild->out->damaged_pages += counts->damaged;
	return result;
}

/* The database may have pages of later moments than its log: that of the copy has none. */
static int carve_one_moment(struct rebuild *rebuild, struct db *db,
			    const struct store_log_state *log, struct carve_counts *counts)
{
	struct store_layer *copy = rebuild->copy ? rebuild->copy : rebuild->source;
	struct store_pageset *set = NULL;
	int result = log->goes_on ? store_pageset_open_with(copy, STORE_COPY, rebuild->source,
							    "meta", &set)
				  : store_pageset_open(copy, STORE_COPY, &set);

	if (!result)
		store_pageset_count_lost(set);
	return carve_opened_pages(rebuild, db, result, set, counts);
}

/* The database, with the log of the copy if its own is damaged. */
static int carve_database(struct rebuild *rebuild, struct db *db, struct carve_counts *counts)
{
	struct store_layer *copy = rebuild->copy ? rebuild->copy : rebuild->source;
	struct store_pageset *set = NULL;
	struct store_log_state log = {0};
	char time[32];
	int result = rebuild->before ? 0 : store_replica_judge_log(copy, rebuild->source, &log);

	if (result == -ENOMEM)
		return result;
	report_time(time, log.until);
	if (!rebuild->in_place && (log.better || log.lost))
		rebuild_tell(rebuild, "the log of the metadata is damaged or missing: %s%s%s%s%s",
			     log.better ? "that of the copy is used" : "",
			     log.better && log.lost ? "; " : "",
			     !log.lost	 ? ""
			     : log.until ? "changes after "
					 : "the last changes before the last stop",
			     log.lost && log.until ? time : "", log.lost ? " may be lost" : "");
	rebuild->out->log_lost = log.lost;
	if (log.based) {
		result = carve_one_moment(rebuild, db, &log, counts);
		if (result || !counts->damaged)
			return result;
	}
	result = log.better ? store_pageset_open_with(rebuild->source, "meta", copy, STORE_COPY,
						      &set)
			    : store_pageset_open(rebuild->source, "meta", &set);
	if (!result && rebuild->before)
		store_pageset_plain(set);
	/* The copy may have them. */
	if (!result)
		store_pageset_count_lost(set);
	return carve_opened_pages(rebuild, db, result, set, counts);
}

static void note_older_row(void *arg, uint32_t group, uint32_t vnode)
{
	struct rebuild *rebuild = arg;

	rebuild->out->older++;
	rebuild_tell(rebuild, "vnode %u of volume %u is as the older copy has it", (unsigned)vnode,
		     (unsigned)group);
}

/* What the database has not, its copy may have. `alone`: the database has nothing. */
static int carve_copy(struct rebuild *rebuild, struct db *db, bool alone)
{
	const struct store_rescue *out = rebuild->out;
	enum store_relation relation = STORE_COPY_NONE;
	struct carve_counts counts = {.arg = rebuild};
	struct store_pageset *set = NULL;
	bool older = store_replica_compare(rebuild->copy, rebuild->source, &relation) ||
		     relation != STORE_COPY_SAME;
	int result = store_pageset_open(rebuild->copy, STORE_COPY, &set);
	char copied[STORE_COPY_CLAUSE];

	if (!result && store_pageset_pages(set)) {
		store_replica_describe(rebuild->copy, copied);
		rebuild_tell(rebuild, "the copy of the metadata in %s is read, which %s%s",
			     out->copy	   ? out->copy
			     : out->source ? out->source
					   : "the store",
			     copied, older ? "; it may lack later ones" : "");
	}
	rebuild->out->copy_only = alone && older;
	counts.taken = older && !alone ? note_older_row : NULL;
	return carve_opened_pages(rebuild, db, result, set, &counts);
}

static int carve_rows(struct rebuild *rebuild, struct db *db)
{
	struct carve_counts counts = {0};
	uint64_t lost = 0;
	int result = rebuild->copy_only ? 0 : carve_database(rebuild, db, &counts);

	if (!result && (!counts.pages || counts.damaged) && rebuild->copy)
		result = carve_copy(rebuild, db, !counts.rows);
	if (!result)
		result = db_carve_losses(db, &lost);
	/* They are not in the count: nothing shows which ones there were. */
	if (!result && rebuild->out->damaged_pages)
		result = db_number_put(db, DB_LOCATIONS_LOST, 1);
	rebuild->out->lost += lost;
	return result;
}

/* -- contents without records: blocks lie at the same offsets in the objects as in the file -- */

/* An object of a vnode that has no record. */
struct orphan {
	struct store_owner owner;
	uint64_t number, length;
};

struct adoption {
	struct db *db;
	struct store_data *data;
	struct orphan *orphan;
	size_t count, room;
	uint64_t greatest; /* number of an object or map */
	uint8_t block[STORE_BLOCK];
};

/* A number that is there. */
static int get_stored_number(struct db *db, const char *name, uint64_t *value)
{
	int result = db_number_get(db, name, value);

	return result == -ENOENT ? 0 : result;
}

/* Whether the record of a vnode is lost, and not removed. */
static int is_record_lost(struct db *db, const struct store_owner *owner, bool *lost)
{
	const struct vnode_key key = {owner->group, owner->vnode, UINT32_MAX};
	struct version *version = NULL;
	int result = db_vnode_get(db, &key, &version);

	*lost = result == -ENOENT || result == -EIO ||
		(!result && !version->v.kind && version->v.flags & VNODE_LOST);
	version_unref(version);
	return result == -ENOENT || result == -EIO ? 0 : result;
}

static int note_object_number(void *arg, uint64_t number)
{
	struct adoption *adoption = arg;

	if (adoption->greatest < number)
		adoption->greatest = number;
	return 0;
}

static int note_orphan(void *arg, const struct store_owner *owner, uint64_t number)
{
	struct adoption *adoption = arg;
	struct orphan orphan = {.owner = *owner, .number = number};
	struct db_object object = {.refs = 1};
	bool lost;
	int result = is_record_lost(adoption->db, owner, &lost);

	note_object_number(adoption, number);
	if (!result && lost)
		result = db_object_get(adoption->db, number, &object);
	result = result == -ENOENT ? 0 : result;
	/* One that waits for its removal has no references. */
	if (result || !lost || !object.refs)
		return result;
	/* One that cannot be read has no data. */
	if (store_data_stat(adoption->data, owner, number, &orphan.length))
		orphan.length = 0;
	if (!grow_array(&adoption->orphan, &adoption->room, adoption->count, sizeof(orphan)))
		return -ENOMEM;
	adoption->orphan[adoption->count++] = orphan;
	return 0;
}

static int compare_orphans(const void *a, const void *b)
{
	const struct orphan *x = a, *y = b;
	const uint64_t keys[][2] = {{x->owner.group, y->owner.group},
				    {x->owner.vnode, y->owner.vnode},
				    {x->owner.unique, y->owner.unique},
				    {x->number, y->number}};

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (keys[i][0] != keys[i][1])
			return keys[i][0] < keys[i][1] ? -1 : 1;
	return 0;
}

/* Of the objects of one vnode, the newest one that has data at `offset`. */
static void find_orphan_block(struct adoption *adoption, const struct orphan *orphan, size_t count,
			      uint64_t offset, struct store_block *block)
{
	for (size_t i = count; i-- && !block->object;) {
		uint64_t left = orphan[i].length > offset ? orphan[i].length - offset : 0;
		uint32_t n = left < STORE_BLOCK ? (uint32_t)left : STORE_BLOCK;

		if (!n || store_data_read(adoption->data, &orphan[i].owner, orphan[i].number,
					  adoption->block, n, offset))
			continue;
		if (!adoption->block[0] && !memcmp(adoption->block, adoption->block + 1, n - 1))
			continue;
		*block = (struct store_block){.object = orphan[i].number,
					      .filled = n,
					      .summed = n,
					      .crc = store_crc(0, adoption->block, n)};
	}
}

/* NULL: it has only holes, or *result. */
static struct store_slot *make_orphan_slot(struct adoption *adoption, const struct orphan *orphan,
					   size_t count, uint32_t at, int *result)
{
	struct store_slot *slot = store_slot_new(STORE_SLOT_BLOCKS);
	uint32_t used = 0;

	*result = slot ? 0 : -ENOMEM;
	for (uint32_t i = 0; slot && i < STORE_SLOT_BLOCKS; i++) {
		find_orphan_block(adoption, orphan, count,
				  (uint64_t)at * STORE_SLOT + (uint64_t)i * STORE_BLOCK,
				  &slot->block[i]);
		if (slot->block[i].object)
			used = i + 1;
	}
	if (slot)
		slot->count = used;
	if (used)
		return slot;
	store_slot_unref(slot);
	return NULL;
}

static int make_orphan_content(struct adoption *adoption, const struct orphan *orphan, size_t count,
			       struct version *version)
{
	uint32_t slots = (uint32_t)((version->v.length + STORE_SLOT - 1) / STORE_SLOT);
	int result = 0;

	for (uint32_t i = 0; i < slots && !result; i++) {
		struct store_slot *slot = make_orphan_slot(adoption, orphan, count, i, &result);
		const struct db_slot_key row = {adoption->greatest + 1, i, version->epoch};

		if (slot && i)
			result = db_slot_put(adoption->db, &row, slot);
		if (slot && !result)
			result = store_content_set(&version->content, i, slot);
		else
			store_slot_unref(slot);
	}
	version->v.slots = version->content.count;
	version->v.rows = store_content_rows(&version->content);
	if (version->v.rows)
		version->v.map = ++adoption->greatest;
	return result;
}

/* The epoch, and what else the volume and the mark of the lost record tell. */
static int choose_orphan_epoch(struct db *db, const struct store_owner *owner,
			       struct version *version)
{
	struct vnode_key key = {owner->group, owner->vnode, UINT32_MAX};
	struct volrec rec = {.epoch = 1};
	struct version *mark = NULL;
	bool damaged;
	int result = db_volume_get(db, owner->group, &rec, &damaged);

	if (!result || result == -ENOENT)
		result = db_vnode_get(db, &key, &mark);
	version->epoch = rec.epoch;
	version->v.owner = version->v.author = rec.owner;
	if (!result && mark->epoch >= rec.epoch) {
		key.epoch = version->epoch = mark->epoch;
		result = db_vnode_delete(db, &key);
	} else if (!result) {
		version->v.flags |= VNODE_OLDER;
	}
	version_unref(mark);
	return result == -ENOENT ? 0 : result;
}

/* A record for the vnode of some objects. */
static int adopt_orphans(struct adoption *adoption, const struct orphan *orphan, size_t count)
{
	struct version *version = version_new();
	struct vnode_key key = {orphan->owner.group, orphan->owner.vnode, 0};
	int result;

	assert(count > 0);
	if (!version)
		return -ENOMEM;
	version->v = (struct vnode){.kind = STORE_FILE,
				    .flags = VNODE_LOST,
				    .mode = 0600,
				    .unique = orphan->owner.unique,
				    .version = FIRST_VERSION,
				    .parent = STORE_ROOT_VNODE,
				    .parent_unique = STORE_ROOT_UNIQUE,
				    .client_mtime = (uint32_t)time(NULL),
				    .server_mtime = (uint32_t)time(NULL),
				    .incarnation = 1};
	for (size_t i = 0; i < count; i++)
		if (version->v.length < orphan[i].length)
			version->v.length = orphan[i].length;
	result = choose_orphan_epoch(adoption->db, &orphan->owner, version);
	key.epoch = version->epoch;
	if (!result)
		result = make_orphan_content(adoption, orphan, count, version);
	if (!result)
		result = db_vnode_insert(adoption->db, &key, version);
	version_unref(version);
	return result;
}

/* The objects of each vnode whose record is lost, and of its last use only. */
static int adopt_all_orphans(struct adoption *adoption, uint64_t *count)
{
	uint64_t opened = adoption->greatest >> 32;
	int result = adoption->count ? get_stored_number(adoption->db, "opened", &opened) : 0;

	if (!adoption->count || result)
		return result;
	qsort(adoption->orphan, adoption->count, sizeof(adoption->orphan[0]), compare_orphans);
	/* Maps get numbers that no record has, also none that is lost. */
	if (opened < adoption->greatest >> 32)
		opened = adoption->greatest >> 32;
	adoption->greatest = (opened + 1) << 32;
	for (size_t from = 0, to; from < adoption->count && !result; from = to, ++*count) {
		const struct store_owner *first = &adoption->orphan[from].owner;

		for (to = from + 1; to < adoption->count; to++) {
			const struct store_owner *owner = &adoption->orphan[to].owner;

			if (owner->group != first->group || owner->vnode != first->vnode)
				break;
			if (owner->unique != adoption->orphan[from].owner.unique)
				from = to;
		}
		result = adopt_orphans(adoption, &adoption->orphan[from], to - from);
	}
	return result;
}

/*
 * Records with VNODE_LOST for what has contents alone. They have new checksums, which do not show whether the data are as they were.
 * *greatest: the greatest number of an object that has a file, or of a map.
 */
static int adopt_contents(struct rebuild *rebuild, struct db *db, uint64_t *greatest)
{
	struct adoption *adoption = calloc(1, sizeof(*adoption));
	uint64_t count = 0;
	int result = adoption ? store_data_open(rebuild->contents, 16, &adoption->data) : -ENOMEM;

	if (result) {
		free(adoption);
		return result;
	}
	adoption->db = db;
	result = store_data_list(adoption->data, note_orphan, adoption);
	if (!result)
		result = store_data_list_new(adoption->data, note_object_number, adoption);
	if (!result)
		result = adopt_all_orphans(adoption, &count);
	*greatest = adoption->greatest;
	store_data_close(adoption->data);
	free(adoption->orphan);
	free(adoption);
	if (count)
		rebuild_tell(
			rebuild,
			"files in lost+found that are made of contents alone: %llu; their names end in "
			".no-record, and they may be damaged: their checksums are lost",
			(unsigned long long)count);
	return result;
}

/* -- numbers -- */

/* Numbers of objects and versions are new from now on, whatever the lost records had. */
static int settle_numbers(struct rebuild *rebuild, struct db *db, uint64_t greatest)
{
	uint64_t incarnation = 1, opened = 0;
	int result = get_stored_number(db, "incarnation", &incarnation);

	if (!result)
		result = get_stored_number(db, "opened", &opened);
	if (rebuild->incarnation < incarnation)
		rebuild->incarnation = (uint32_t)incarnation;
	rebuild->incarnation++;
	if (opened <= greatest >> 32)
		opened = (greatest >> 32) + 1;
	if (!result)
		result = db_number_put(db, "incarnation", rebuild->incarnation);
	return result ? result : db_number_put(db, "opened", opened);
}

/* -- the whole -- */

int rebuild_database(struct rebuild *rebuild, struct db *db, uint8_t uuid[16])
{
	uint64_t greatest = 0, lost = 0;
	uint8_t found[16];
	int result = carve_rows(rebuild, db);

	if (!result && rebuild->before)
		result = db_upgrade_contents(db, rebuild->contents);
	if (!result)
		result = adopt_contents(rebuild, db, &greatest);
	if (!result)
		result =
			db_settle_contents(db, rebuild->in_place, &greatest, &rebuild->incarnation);
	if (!result)
		result = settle_numbers(rebuild, db, greatest);
	if (!result)
		result = rebuild_trees(rebuild, db, &lost);
	/* Most records have names. */
	if (rebuild->out->lost < lost)
		rebuild->out->lost = lost;
	if (!result && rebuild->known)
		memcpy(uuid, rebuild->uuid, 16);
	else if (!result && db_identity_get(db, found) == 0)
		memcpy(uuid, found, 16);
	return result;
}
