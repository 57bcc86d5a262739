/* SPDX-License-Identifier: BSD-2-Clause */
/* The database of a store, made anew out of whatever can be read of a damaged one: rows, objects, numbers, trees. */
#include "volume/store/maint/rebuild.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "volume/store/db/carve.h"
#include "volume/store/db/slots.h"
#include "volume/store/disk/replica.h"
#include "volume/store/disk/report.h"
#include "volume/store/maint/recordless.h"
#include "volume/store/maint/salvage.h"

struct filler {
	struct rebuild *user;
	uint64_t last_object;
	uint32_t incarnation;
	struct db *db;	  /* the new one */
	uint64_t *object; /* numbers that versions refer to, small contents and maps as well */
	size_t count, room;
	struct rescued_map {
		uint64_t map;
		struct store_owner owner;
	} * map; /* that versions have */
	size_t map_count, map_room, map_at;
};

__attribute__((format(printf, 2, 3))) static void tell_rebuild_user(const struct rebuild *user,
								    const char *format, ...)
{
	char line[600];
	va_list args;

	if (!user->line)
		return;
	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	user->line(user->arg, line);
}

/* -- the rows of the database -- */

/* `opened`: the result of opening the pages. */
static int carve_opened_pages(struct filler *filler, int opened, struct store_pageset *set,
			      struct carve_counts *counts)
{
	int result;

	if (opened)
		return opened == -ENOMEM ? opened : 0;
	result = db_carve(set, filler->db, counts);
	store_pageset_close(set);
	filler->user->pages += counts->pages;
	filler->user->damaged_pages += counts->damaged;
	return result;
}

/* The database, with the log of the copy if its own is damaged. */
static int carve_database(struct filler *filler, struct carve_counts *counts)
{
	struct rebuild *user = filler->user;
	struct store_layer *copy = user->copy ? user->copy : user->source;
	struct store_pageset *set = NULL;
	bool better = false, lost = false;
	int result = store_replica_judge_log(copy, user->source, &better, &lost);

	if (result == -ENOMEM)
		return result;
	if (better)
		tell_rebuild_user(
			user,
			"the log of the metadata is damaged or missing: that of the copy is used");
	if (lost)
		tell_rebuild_user(
			user,
			"the log of the metadata is damaged or missing: the last changes are lost");
	user->lost += lost;
	result = better ? store_pageset_open_with(user->source, "meta", copy, STORE_COPY, &set)
			: store_pageset_open(user->source, "meta", &set);
	/* The copy may have them. */
	if (!result)
		store_pageset_count_lost(set);
	return carve_opened_pages(filler, result, set, counts);
}

static void note_older_row(void *arg, uint32_t group, uint32_t vnode)
{
	struct rebuild *user = arg;

	user->older++;
	tell_rebuild_user(user, "vnode %u of volume %u is as the older copy has it",
			  (unsigned)vnode, (unsigned)group);
}

/* What the database has not, its copy may have. `alone`: the database has nothing. */
static int carve_copy(struct filler *filler, bool alone)
{
	struct rebuild *user = filler->user;
	enum store_relation relation = STORE_COPY_NONE;
	struct carve_counts counts = {.arg = user};
	struct store_pageset *set = NULL;
	bool older = store_replica_compare(user->copy, user->source, &relation) ||
		     relation != STORE_COPY_SAME;
	int result = store_pageset_open(user->copy, STORE_COPY, &set);
	char time[32];

	if (!result && store_pageset_pages(set)) {
		report_time(time, store_replica_written(user->copy));
		tell_rebuild_user(
			user,
			"the copy of the metadata in %s is read, which had all changes until %s%s",
			user->copy_name ? user->copy_name : "the store", time,
			older ? "; it may lack later ones" : "");
	}
	user->copy_only = alone && older;
	counts.taken = older && !alone ? note_older_row : NULL;
	return carve_opened_pages(filler, result, set, &counts);
}

static int carve_rows(struct filler *filler)
{
	struct carve_counts counts = {0};
	uint64_t lost = 0;
	int result = carve_database(filler, &counts);

	if (!result && (!counts.pages || counts.damaged) && filler->user->copy)
		result = carve_copy(filler, !counts.rows);
	if (!result)
		result = db_carve_losses(filler->db, &lost);
	filler->user->lost += lost;
	return result;
}

/* -- objects -- */

static int add_reference(struct filler *filler, uint64_t number)
{
	if (filler->count == filler->room) {
		size_t room = filler->room ? 2 * filler->room : 4096;
		uint64_t *more = realloc(filler->object, room * sizeof(*more));

		if (!more)
			return -ENOMEM;
		filler->object = more;
		filler->room = room;
	}
	filler->object[filler->count++] = number;
	if (filler->last_object < number)
		filler->last_object = number;
	return 0;
}

static int compare_references(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* How many versions and rows refer to a number. */
static uint64_t count_references(const struct filler *filler, uint64_t number)
{
	size_t low = 0, high = filler->count, first;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (filler->object[middle] < number)
			low = middle + 1;
		else
			high = middle;
	}
	assert(low == 0 || filler->object[low - 1] < number);
	for (first = low; low < filler->count && filler->object[low] == number; low++)
		;
	return low - first;
}

/* An object that a slot has, in the table of objects. */
static int need_object(struct filler *filler, const struct store_owner *owner, uint64_t number)
{
	struct db_object object = {.id = number, .owner = *owner, .refs = 1};
	struct db_object there;
	int result = add_reference(filler, number);

	if (!result)
		result = db_object_get(filler->db, number, &there);
	return result == -ENOENT ? db_object_put(filler->db, &object) : result;
}

static int need_slot_objects(struct filler *filler, const struct store_owner *owner,
			     const struct store_slot *slot)
{
	int result = 0;

	for (uint32_t i = 0; slot && i < slot->count && !result; i++)
		if (store_slot_is_first(slot, i))
			result = need_object(filler, owner, slot->block[i].object);
	return result;
}

/* Versions of a vnode may have several maps, and share them. */
static int note_map(struct filler *filler, const struct store_owner *owner, uint64_t map)
{
	for (size_t i = filler->map_count; i-- && filler->map[i].owner.vnode == owner->vnode;)
		if (filler->map[i].map == map)
			return 0;
	if (filler->map_count == filler->map_room) {
		size_t room = filler->map_room ? 2 * filler->map_room : 256;
		struct rescued_map *more = realloc(filler->map, room * sizeof(*more));

		if (!more)
			return -ENOMEM;
		filler->map = more;
		filler->map_room = room;
	}
	filler->map[filler->map_count++] = (struct rescued_map){map, *owner};
	return add_reference(filler, map);
}

static int note_references(void *arg, const struct vnode_key *key, const struct version *version)
{
	struct filler *filler = arg;
	int result = 0;

	if (!version)
		return 0;
	if (filler->incarnation < version->v.incarnation)
		filler->incarnation = version->v.incarnation;

	const struct store_owner owner = {key->group, key->vnode, version->v.unique};

	if (version->v.small)
		result = add_reference(filler, version->v.small);
	if (!result && version->content.first)
		result = need_slot_objects(filler, &owner, version->content.first);
	return result || !version->v.map ? result : note_map(filler, &owner, version->v.map);
}

static int note_slot_references(void *arg, const struct db_slot_key *key,
				const struct store_slot *slot)
{
	struct filler *filler = arg;

	(void)key;
	return need_slot_objects(filler, &filler->map[filler->map_at].owner, slot);
}

static int find_references(struct filler *filler)
{
	uint32_t group = 0;
	int result;

	while (!(result = db_group_next(filler->db, &group))) {
		struct vnode_key from = {.group = group};

		result = db_group_rows(filler->db, &from, note_references, filler);
		if (result)
			return result;
	}
	result = result == -ENOENT ? 0 : result;
	for (; filler->map_at < filler->map_count && !result; filler->map_at++)
		result = db_slots_each(filler->db, filler->map[filler->map_at].map,
				       note_slot_references, filler);
	if (filler->count)
		qsort(filler->object, filler->count, sizeof(filler->object[0]), compare_references);
	return result;
}

/* The server will remove what nothing refers to. In place, it does not know of the file, if its reference is lost. */
static int count_object_references(void *arg, const struct db_object *object)
{
	struct filler *filler = arg;
	struct db_object now = *object;

	if (filler->last_object < object->id)
		filler->last_object = object->id;
	now.refs = count_references(filler, object->id);
	if (filler->user->in_place && object->refs && !now.refs)
		return db_object_delete(filler->db, object->id);
	return now.refs == object->refs ? 0 : db_object_put(filler->db, &now);
}

static int drop_unused_small(void *arg, uint64_t id)
{
	struct filler *filler = arg;

	if (filler->last_object < id)
		filler->last_object = id;
	return count_references(filler, id) ? 0 : db_small_delete(filler->db, id);
}

static int ignore_slot(void *arg, const struct db_slot_key *key, const struct store_slot *slot)
{
	(void)arg, (void)key, (void)slot;
	return 0;
}

/* Maps whose versions are gone. */
static int drop_unused_maps(struct filler *filler)
{
	uint64_t map = 0;
	int result;

	while (!(result = db_map_next(filler->db, &map))) {
		struct db_drop drop = {.map = map, .hidden.to = UINT32_MAX};
		bool more = !count_references(filler, map);

		if (filler->last_object < map)
			filler->last_object = map;
		while (more && !result)
			result = db_slots_drop(filler->db, &drop, 64, &more, ignore_slot, NULL);
		if (result)
			return result;
	}
	return result == -ENOENT ? 0 : result;
}

static int settle_objects(struct filler *filler)
{
	int result = find_references(filler);

	if (!result)
		result = db_objects(filler->db, false, count_object_references, filler);
	if (!result)
		result = db_smalls(filler->db, 0, drop_unused_small, filler);
	return result ? result : drop_unused_maps(filler);
}

/* -- numbers -- */

static int raise_number(struct db *db, const char *name, uint64_t least)
{
	uint64_t value = 0;
	int result = db_number_get(db, name, &value);

	if (result && result != -ENOENT)
		return result;
	return value >= least ? 0 : db_number_put(db, name, least);
}

/* Numbers of objects and versions are new from now on, whatever the lost records had. */
static int settle_numbers(struct filler *filler)
{
	uint64_t incarnation = 1;
	int result = db_number_get(filler->db, "incarnation", &incarnation);

	if (result && result != -ENOENT)
		return result;
	if (filler->incarnation < incarnation)
		filler->incarnation = (uint32_t)incarnation;
	filler->incarnation++;
	result = db_number_put(filler->db, "incarnation", filler->incarnation);
	return result ? result
		      : raise_number(filler->db, "opened", (filler->last_object >> 32) + 1);
}

/* -- the whole -- */

static int fill_new_database(struct filler *filler)
{
	struct rebuild *user = filler->user;
	struct salvage salvage = {.line = user->line, .arg = user->arg};
	int result = carve_rows(filler);

	if (!result && user->contents)
		result = recordless_adopt(filler->db, user->contents, &user->recordless);
	if (user->recordless)
		tell_rebuild_user(
			user,
			"%llu files in lost+found, with names that end in .no-record, are made of "
			"contents alone, and may be damaged: their checksums are lost",
			(unsigned long long)user->recordless);
	if (!result)
		result = settle_objects(filler);
	if (!result)
		result = settle_numbers(filler);
	if (!result)
		result = salvage_volumes(filler->db, filler->incarnation, &salvage);
	user->volumes = salvage.volumes;
	user->files = salvage.kept;
	user->found = salvage.found;
	/* Most records have names. */
	if (user->lost < salvage.lost)
		user->lost = salvage.lost;
	return result;
}

int rebuild_database(struct rebuild *user, struct db *db, uint8_t uuid[16])
{
	struct filler filler = {.user = user, .db = db, .last_object = user->greatest};
	uint8_t found[16];
	int result = fill_new_database(&filler);

	if (!result && user->known)
		memcpy(uuid, user->uuid, 16);
	else if (!result && db_identity_get(db, found) == 0)
		memcpy(uuid, found, 16);
	free(filler.object);
	free(filler.map);
	return result;
}
