/* SPDX-License-Identifier: BSD-2-Clause */
/* Files out of contents whose records are lost: blocks lie at the same offsets in the objects as in the file. */
#include "volume/store/maint/recordless.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "volume/store/db/slots.h"
#include "volume/store/disk/crc.h"

#define PATH_ROOM     96
#define FIRST_VERSION 131072 /* beyond what clients may have seen */

/* An object of a vnode that has no record. */
struct orphan {
	struct store_owner owner;
	uint64_t number, length;
	struct store_file *file; /* while its vnode gets a record; or NULL */
};

struct adoption {
	struct db *db;
	struct store_layer *layer;
	struct orphan *orphan;
	size_t count, room;
	uint64_t next_map;
	uint8_t block[STORE_BLOCK];
};

/* -- finding them -- */

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

static int note_orphan(void *arg, const struct store_owner *owner, uint64_t number)
{
	struct adoption *adoption = arg;
	struct db_object object = {.refs = 1};
	bool lost;
	int result = is_record_lost(adoption->db, owner, &lost);

	if (adoption->next_map <= number)
		adoption->next_map = number + 1;
	if (!result && lost)
		result = db_object_get(adoption->db, number, &object);
	result = result == -ENOENT ? 0 : result;
	/* One that waits for its removal has no references. */
	if (result || !lost || !object.refs)
		return result;
	if (adoption->count == adoption->room) {
		size_t room = adoption->room ? 2 * adoption->room : 256;
		struct orphan *more = realloc(adoption->orphan, room * sizeof(*more));

		if (!more)
			return -ENOMEM;
		adoption->orphan = more;
		adoption->room = room;
	}
	adoption->orphan[adoption->count++] = (struct orphan){.owner = *owner, .number = number};
	return 0;
}

static int compare_orphans(const void *a, const void *b)
{
	const struct orphan *x = a, *y = b;

	if (x->owner.group != y->owner.group)
		return x->owner.group < y->owner.group ? -1 : 1;
	if (x->owner.vnode != y->owner.vnode)
		return x->owner.vnode < y->owner.vnode ? -1 : 1;
	if (x->owner.unique != y->owner.unique)
		return x->owner.unique < y->owner.unique ? -1 : 1;
	return x->number < y->number ? -1 : x->number > y->number;
}

static int find_orphans(struct adoption *adoption)
{
	struct store_data *data;
	int result = store_data_open(adoption->layer, 16, &data);

	if (result)
		return result;
	result = store_data_list(data, note_orphan, adoption);
	store_data_close(data);
	if (adoption->count)
		qsort(adoption->orphan, adoption->count, sizeof(adoption->orphan[0]),
		      compare_orphans);
	return result;
}

/* -- their contents -- */

static void open_orphan(struct store_layer *layer, struct orphan *orphan)
{
	const struct store_owner *owner = &orphan->owner;
	char path[PATH_ROOM];

	snprintf(path, sizeof(path),
		 "files/%" PRIx32 "/%" PRIx32 "/%" PRIx32 ".%" PRIx32 ".%" PRIx64, owner->group,
		 owner->vnode >> 10, owner->vnode, owner->unique, orphan->number);
	if (layer->ops->open(layer, path, 0, &orphan->file))
		orphan->file = NULL;
	else if (layer->ops->size(orphan->file, &orphan->length))
		orphan->length = 0;
}

/* The newest object that has data at `offset`. One that cannot be read has none. */
static void find_orphan_block(struct adoption *adoption, const struct orphan *orphan, size_t count,
			      uint64_t offset, struct store_block *block)
{
	const struct iovec iov = {adoption->block, STORE_BLOCK};

	for (size_t i = count; i-- && !block->object;) {
		ssize_t n = orphan[i].length > offset
				    ? adoption->layer->ops->preadv(orphan[i].file, &iov, 1, offset,
								   false)
				    : 0;

		if (n <= 0 || (!adoption->block[0] &&
			       !memcmp(adoption->block, adoption->block + 1, (size_t)n - 1)))
			continue;
		*block = (struct store_block){.object = orphan[i].number,
					      .filled = (uint32_t)n,
					      .summed = (uint32_t)n,
					      .crc = store_crc(0, adoption->block, (size_t)n)};
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
			       const struct vnode_key *key, struct version *version)
{
	uint32_t slots = (uint32_t)((version->v.length + STORE_SLOT - 1) / STORE_SLOT);
	int result = 0;

	for (uint32_t i = 0; i < slots && !result; i++) {
		struct store_slot *slot = make_orphan_slot(adoption, orphan, count, i, &result);
		const struct db_slot_key row = {adoption->next_map, i, key->epoch};

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
		version->v.map = adoption->next_map++;
	return result;
}

/* -- their records -- */

static int find_orphan_key(struct db *db, const struct store_owner *owner, struct vnode_key *key,
			   struct vnode *v)
{
	struct volrec rec = {.epoch = 1};
	struct version *tomb = NULL;
	bool damaged;
	int result = db_volume_get(db, owner->group, &rec, &damaged);

	if (result && result != -ENOENT)
		return result;
	*key = (struct vnode_key){owner->group, owner->vnode, UINT32_MAX};
	result = db_vnode_get(db, key, &tomb);
	key->epoch = rec.epoch;
	v->owner = v->author = rec.owner;
	if (!result && tomb->epoch >= rec.epoch) {
		key->epoch = tomb->epoch;
		result = db_vnode_delete(db, key);
	} else if (!result) {
		v->flags |= VNODE_OLDER;
	}
	version_unref(tomb);
	return result == -ENOENT ? 0 : result;
}

static int insert_orphan_record(struct adoption *adoption, const struct orphan *orphan,
				size_t count, struct version *version)
{
	struct vnode_key key;
	int result;

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
	result = find_orphan_key(adoption->db, &orphan->owner, &key, &version->v);
	version->epoch = key.epoch;
	if (!result)
		result = make_orphan_content(adoption, orphan, count, &key, version);
	return result ? result : db_vnode_insert(adoption->db, &key, version);
}

/* The objects of one vnode. */
static int adopt_orphans(struct adoption *adoption, struct orphan *orphan, size_t count)
{
	struct version *version = version_new();
	int result = version ? 0 : -ENOMEM;

	assert(count > 0);
	for (size_t i = 0; i < count; i++)
		open_orphan(adoption->layer, &orphan[i]);
	if (!result)
		result = insert_orphan_record(adoption, orphan, count, version);
	for (size_t i = 0; i < count; i++)
		if (orphan[i].file)
			adoption->layer->ops->close(orphan[i].file);
	version_unref(version);
	return result;
}

static bool is_same_vnode(const struct orphan *a, const struct orphan *b)
{
	return a->owner.group == b->owner.group && a->owner.vnode == b->owner.vnode;
}

int recordless_adopt(struct db *db, struct store_layer *layer, uint64_t *count)
{
	struct adoption *adoption = calloc(1, sizeof(*adoption));
	int result = adoption ? 0 : -ENOMEM;

	*count = 0;
	if (result)
		return result;
	adoption->db = db;
	adoption->layer = layer;
	result = find_orphans(adoption);
	for (size_t from = 0, to; from < adoption->count && !result; from = to) {
		struct orphan *orphan = &adoption->orphan[from];

		for (to = from + 1;
		     to < adoption->count && is_same_vnode(orphan, &adoption->orphan[to]); to++)
			if (adoption->orphan[to].owner.unique !=
			    adoption->orphan[from].owner.unique)
				from = to; /* a vnode that was used again */
		result = adopt_orphans(adoption, &adoption->orphan[from], to - from);
		++*count;
	}
	free(adoption->orphan);
	free(adoption);
	return result;
}
