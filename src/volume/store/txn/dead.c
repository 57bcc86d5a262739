/* SPDX-License-Identifier: BSD-2-Clause */
/* Blocks that no version refers to any more, of objects that others refer to: their space is given back. */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "volume/store/txn/work.h"

struct dead_blocks {
	struct work *work;
	uint64_t map;	 /* 0: the slot is in the record of the vnode */
	uint32_t number; /* of the slot */
	uint32_t epoch;	 /* of the row that is not counted */
	uint64_t object[STORE_SLOT_BLOCKS];
	bool any;
};

/* The blocks of the old slot that the new one does not have. */
static void list_dead_blocks(struct dead_blocks *dead, const struct store_slot *old,
			     const struct store_slot *now)
{
	for (uint32_t i = 0; i < STORE_SLOT_BLOCKS; i++) {
		uint64_t object = store_slot_object(old, i);

		dead->object[i] = object != store_slot_object(now, i) ? object : 0;
		dead->any |= dead->object[i] != 0;
	}
}

static void keep_shown_blocks(struct dead_blocks *dead, const struct store_slot *other)
{
	for (uint32_t i = 0; i < STORE_SLOT_BLOCKS; i++)
		if (dead->object[i] == store_slot_object(other, i))
			dead->object[i] = 0;
}

static int keep_blocks_of_row(void *arg, const struct db_slot_key *key,
			      const struct store_slot *slot)
{
	struct dead_blocks *dead = arg;

	if (key->map == dead->map && key->epoch == dead->epoch)
		return 0;
	/* A damaged row may show them all. */
	if (slot)
		keep_shown_blocks(dead, slot);
	else
		memset(dead->object, 0, sizeof(dead->object));
	return 0;
}

static int keep_blocks_of_version(void *arg, const struct vnode_key *key,
				  const struct version *version)
{
	struct dead_blocks *dead = arg;

	if (key->epoch != dead->epoch && version->content.first)
		keep_shown_blocks(dead, version->content.first);
	return 0;
}

static void note_dead_blocks(const struct dead_blocks *dead)
{
	for (uint32_t i = 0, end; i < STORE_SLOT_BLOCKS; i = end) {
		struct db_object blocks = {.id = dead->object[i],
					   .first = (uint64_t)dead->number * STORE_SLOT_BLOCKS + i};

		for (end = i + 1; end < STORE_SLOT_BLOCKS && dead->object[end] == blocks.id; end++)
			;
		blocks.count = end - i;
		if (blocks.id)
			work_note_object(dead->work, &dead->work->dead, &blocks);
	}
}

/* The object of the first block, or 0. */
static uint64_t get_dead_object(const struct dead_blocks *dead)
{
	for (uint32_t i = 0; i < STORE_SLOT_BLOCKS; i++)
		if (dead->object[i])
			return dead->object[i];
	return 0;
}

/* A file that was cut may have gone on in another map, in which versions of it show the same blocks. */
static int keep_blocks_of_other_maps(struct dead_blocks *dead, const struct db_slot_key *key)
{
	struct db *db = dead->work->base.db;
	uint64_t id = get_dead_object(dead);
	struct db_object object;
	unsigned damaged = 0;
	int result;

	if (!id)
		return 0;
	result = db_object_get(db, id, &object);
	if (!result)
		result = db_other_map_rows(db, &object.owner, key, &damaged, keep_blocks_of_row,
					   dead);
	/* It is not known which versions show them. */
	if (result == -ENOENT || damaged)
		memset(dead->object, 0, sizeof(dead->object));
	return result == -ENOENT ? 0 : result;
}

/* The row of a slot with a number above 0 is replaced, or goes. `others`: older or newer rows may show its blocks. */
int work_dead_blocks(struct work *work, const struct db_slot_key *key, bool others,
		     const struct store_slot *old, const struct store_slot *now)
{
	struct dead_blocks dead = {
		.work = work, .map = key->map, .number = key->slot, .epoch = key->epoch};
	int result = 0;

	assert(key->map);
	list_dead_blocks(&dead, old, now);
	if (dead.any && others)
		result =
			db_slot_rows(work->base.db, key->map, key->slot, keep_blocks_of_row, &dead);
	if (dead.any && others && !result)
		result = keep_blocks_of_other_maps(&dead, key);
	if (dead.any && !result)
		note_dead_blocks(&dead);
	return result;
}

/* The same for the first slot, which is in the record of a vnode. */
int work_first_dead_blocks(struct work *work, const struct vnode_key *key, bool others,
			   const struct store_slot *old, const struct store_slot *now)
{
	struct dead_blocks dead = {.work = work, .epoch = key->epoch};
	unsigned damaged = 0;
	int result = 0;

	/* As of a small file. */
	if (!old)
		return 0;
	list_dead_blocks(&dead, old, now);
	if (dead.any && others)
		result = db_vnode_rows(work->base.db, key->group, key->vnode, &damaged,
				       keep_blocks_of_version, &dead);
	if (dead.any && !result && !damaged)
		note_dead_blocks(&dead);
	return result;
}
