/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Making a volume of given vnodes. A new one is hidden until its end. One that exists is busy, and a snapshot keeps what it had, to
 * which it goes back if the restore is given up. Vnodes are committed in groups.
 */
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "volume/store/maint/maint.h"
#include "volume/store/op/op.h"
#include "volume/store/op/restore.h"
#include "volume/store/op/whole.h"
#include "volume/store/txn/space.h"

#define BATCH	    256		/* vnodes of a transaction */
#define BATCH_BYTES (384 << 10) /* of their contents, after which it is run */
#define CACHED	    1024	/* vnodes of the volume that may be in the cache */

/* A vnode that waits to be committed. */
struct restore_item {
	uint32_t vnode;
	struct version *version; /* a reference; NULL: the vnode is removed */
	/* A version that is there gets only what the stream says beside its contents. */
	bool stamp;
};

struct store_restore {
	struct core *core;
	struct store_restore *next; /* that could not be given up */
	struct volrec
		old; /* of what was there before; epoch: that of the snapshot. `id` is the volume's */
	bool onto, finished;
	/* Other vnodes, names or links than before, so that the tree has to be checked. */
	bool reshaped;
	/* What was there, in order: files, directories. Those that were passed may come later. */
	struct whole_scan before[2];
	uint32_t passed_to[2]; /* the last vnode of that pass */
	struct restore_bits passed;
	uint32_t top_unique;
	uint32_t parent,
		parent_unique; /* the directory of the last file; it does not change any more */
	struct restore_item item[BATCH];
	unsigned count;
	size_t bytes;
	unsigned cached;
	struct restore_bits seen;
};

/* -- sets of vnodes -- */

int restore_bit_set(struct restore_bits *bits, uint32_t bit, bool *was)
{
	size_t at = bit / 8, room = bits->room ? bits->room : 4096;

	assert(bit < STORE_RESTORE_VNODE_MAX);
	while (room <= at)
		room *= 2;
	if (room > bits->room) {
		uint8_t *more = realloc(bits->byte, room);

		if (!more)
			return -ENOMEM;
		memset(more + bits->room, 0, room - bits->room);
		bits->byte = more;
		bits->room = room;
	}
	*was = bits->byte[at] >> bit % 8 & 1;
	bits->byte[at] |= (uint8_t)(1u << bit % 8);
	return 0;
}

bool restore_bit_get(const struct restore_bits *bits, uint32_t bit)
{
	return bit / 8 < bits->room && bits->byte[bit / 8] >> bit % 8 & 1;
}

void restore_bit_clear(struct restore_bits *bits, uint32_t bit)
{
	assert(bit / 8 < bits->room);
	bits->byte[bit / 8] &= (uint8_t) ~(1u << bit % 8);
}

/* -- transactions -- */

struct restore_op {
	struct txn_op txn;
	struct store_restore *restore;
	const struct store_header *header;
	const char *name;
	struct admin_used_id used;
	bool finish;
};

static int run_restore_op(struct store_restore *restore, struct restore_op *op,
			  int (*apply)(struct txn_op *txn, struct work *work))
{
	assert(!restore->finished);
	op->restore = restore;
	op->txn.apply = apply;
	op->txn.alone = true;
	return txn_run(restore->core->txn, &op->txn);
}

/* What the record says of the contents stays with them: a large file goes on in its map. */
static void stamp_version(const struct version *from, struct version *to)
{
	const struct vnode kept = to->v;

	to->v = from->v;
	to->v.length = kept.length;
	to->v.small = kept.small;
	to->v.flags = kept.flags;
	to->v.map = kept.map;
	to->v.slots = kept.slots;
	to->v.rows = kept.rows;
}

static void count_vnode(struct volrec *rec, const struct version *version, bool on)
{
	uint64_t blocks = space_blocks(&version->v);

	rec->files += on ? 1 : (uint64_t)-1;
	rec->used_kib += on ? blocks : -blocks;
}

/* Whether all names that lead to a file may stay as they are. */
static bool is_in_place_of(const struct version *now, const struct version *next)
{
	const struct vnode *a = &now->v, *b = &next->v;

	return b->kind != STORE_DIR && a->kind != STORE_DIR && a->unique == b->unique &&
	       a->links == b->links && a->parent == b->parent &&
	       a->parent_unique == b->parent_unique;
}

static int apply_item(struct store_restore *restore, const struct restore_item *item,
		      struct work *work, struct workvol *volume)
{
	struct node *node;
	int result = work_node(work, volume, item->vnode, &node);

	assert(item->version || !item->stamp);
	if (result)
		return result;
	if (!node->now || !item->version || !is_in_place_of(node->now, item->version))
		restore->reshaped = true;
	if (item->stamp) {
		result = node->now ? work_edit(work, node) : STORE_VNOVNODE;
		if (!result)
			stamp_version(item->version, node->now);
		return result;
	}
	if (node->now) {
		count_vnode(&volume->rec, node->now, false);
		work_remove(work, node);
	}
	if (!item->version)
		return 0;
	item->version->v.incarnation = work->base.incarnation;
	if (item->version->v.small)
		item->version->v.small = work_number(work);
	work_create(work, node, version_ref(item->version));
	count_vnode(&volume->rec, item->version, true);
	if (volume->rec.fresh[item->vnode & 1] < item->vnode + 2)
		volume->rec.fresh[item->vnode & 1] = item->vnode + 2;
	return 0;
}

static int apply_items(struct txn_op *txn, struct work *work)
{
	struct store_restore *restore = ((struct restore_op *)txn)->restore;
	struct workvol *volume;
	int result = work_any_volume(work, restore->old.id, &volume);

	if (!result)
		result = space_check_rows(restore->core, restore->bytes / 1024 + restore->count);
	for (unsigned i = 0; i < restore->count && !result; i++) {
		result = apply_item(restore, &restore->item[i], work, volume);
		work->broken |= result != 0;
	}
	if (!result)
		volume->changed = true;
	return result;
}

void restore_note_cached(struct store_restore *restore, unsigned count)
{
	restore->cached += count;
	if (restore->cached < CACHED)
		return;
	cache_drop(restore->core->cache, restore->old.group);
	restore->cached = 0;
}

static int commit_items(struct store_restore *restore)
{
	struct restore_op op = {0};
	unsigned count = restore->count;
	int result = restore->count ? run_restore_op(restore, &op, apply_items) : 0;

	/* The log was counted, and becomes short before the next transaction. */
	if (result == STORE_VDISKFULL)
		result = run_restore_op(restore, &op, apply_items);
	while (restore->count)
		version_unref(restore->item[--restore->count].version);
	restore->bytes = 0;
	restore_note_cached(restore, count);
	return result;
}

/* Takes the version. */
static int add_item(struct store_restore *restore, uint32_t vnode, struct version *version,
		    bool stamp)
{
	assert(restore->count < BATCH);
	restore->item[restore->count++] = (struct restore_item){vnode, version, stamp};
	restore->bytes += version ? version_memory(version) : 0;
	return restore->count == BATCH || restore->bytes >= BATCH_BYTES ? commit_items(restore) : 0;
}

int restore_remove(struct store_restore *restore, uint32_t vnode)
{
	return add_item(restore, vnode, NULL, false);
}

int restore_correct(struct store_restore *restore, uint32_t vnode, const struct version *now,
		    uint32_t links, uint32_t parent_unique)
{
	struct version *stamp = version_new();

	assert(now->v.kind);
	if (!stamp)
		return -ENOMEM;
	stamp->v = now->v;
	stamp->v.links = links;
	stamp->v.parent_unique = parent_unique;
	return add_item(restore, vnode, stamp, true);
}

int restore_flush(struct store_restore *restore)
{
	return commit_items(restore);
}

/* -- begin -- */

static int apply_new_volume(struct txn_op *txn, struct work *work)
{
	struct restore_op *op = (struct restore_op *)txn;
	struct volrec rec = {.id = op->restore->old.id,
			     .offline = VOLUME_HIDDEN,
			     .created = work->now,
			     .copied = work->now,
			     .updated = work->now};
	uint64_t version;
	int result;

	assert(!op->restore->onto);
	snprintf(rec.name, sizeof(rec.name), "%s", op->name);
	result = admin_add_volume(work, op->restore->core, &rec, &op->used, &version);
	if (!result)
		op->restore->old = rec;
	return result;
}

static int apply_busy(struct txn_op *txn, struct work *work)
{
	const struct restore_op *op = (const struct restore_op *)txn;
	struct workvol *volume;
	int result = work_any_volume(work, op->restore->old.id, &volume);

	assert(op->restore->onto);
	if (result)
		return result;
	volume->rec.offline |= VOLUME_BUSY;
	volume->changed = true;
	return 0;
}

static struct store_restore *new_restore(struct store *store, uint32_t id)
{
	struct store_restore *restore = calloc(1, sizeof(*restore));

	if (restore) {
		restore->core = core_of(store);
		restore->old.id = id;
	}
	return restore;
}

int store_restore_begin(struct store *store, const char *name, uint32_t id,
			struct store_restore **out)
{
	struct store_restore *restore = new_restore(store, id);
	struct restore_op op = {.name = name};
	int result = restore ? prune_removed(restore->core, id) : -ENOMEM;

	if (!result)
		result = ADMIN_USED_ID;
	while (result == ADMIN_USED_ID) {
		result = run_restore_op(restore, &op, apply_new_volume);
		if (result == ADMIN_USED_ID)
			cache_drop(restore->core->cache, op.used.group);
	}
	if (result)
		free(restore);
	else
		*out = restore;
	return result;
}

int store_restore_onto(struct store *store, uint32_t id, struct store_restore **out)
{
	struct store_restore *restore = new_restore(store, id);
	struct restore_op op = {0};
	int result = restore ? whole_snapshot_take(restore->core, id, &restore->old) : -ENOMEM;

	if (result) {
		free(restore);
		return result;
	}
	restore->onto = true;
	result = run_restore_op(restore, &op, apply_busy);
	if (result) {
		whole_snapshot_end(restore->core, &restore->old);
		free(restore);
	} else {
		*out = restore;
	}
	return result;
}

uint32_t store_restore_id(const struct store_restore *restore)
{
	return restore->old.id;
}

size_t store_restore_small(const struct store_restore *restore)
{
	return restore->core->small_max;
}

struct view restore_view(const struct store_restore *restore)
{
	return (struct view){.volume = restore->old.id,
			     .group = restore->old.group,
			     .epoch = CACHE_HEAD,
			     .type = STORE_RW,
			     .owner = restore->old.owner};
}

struct core *restore_core(const struct store_restore *restore)
{
	return restore->core;
}

/* -- vnodes -- */

/* The version that waits, or is in the volume. A reference. */
static int find_restored(const struct store_restore *restore, uint32_t vnode,
			 struct version **version)
{
	struct view view = restore_view(restore);

	for (unsigned i = restore->count; i--;)
		if (restore->item[i].vnode == vnode && restore->item[i].version) {
			*version = version_ref(restore->item[i].version);
			return 0;
		}
	return lookup_version(restore->core, &view, vnode, version);
}

/* The uniquifier of the directory. That of a directory is corrected at the end if it comes later. */
static int find_parent_unique(struct store_restore *restore, const struct store_vnode *vnode,
			      uint32_t *unique)
{
	struct version *parent;
	int result;

	*unique = vnode->vnode == STORE_ROOT_VNODE ? STORE_ROOT_UNIQUE : 0;
	if (vnode->kind != STORE_DIR && restore->parent == vnode->parent)
		*unique = restore->parent_unique;
	if (*unique)
		return 0;
	result = find_restored(restore, vnode->parent, &parent);
	if (result == STORE_VNOVNODE)
		return vnode->kind == STORE_DIR ? 0 : -ENOENT;
	if (result)
		return result;
	*unique = parent->v.kind == STORE_DIR ? parent->v.unique : 0;
	version_unref(parent);
	if (!*unique)
		return -ENOENT;
	if (restore_bit_get(&restore->seen, vnode->parent)) {
		restore->parent = vnode->parent;
		restore->parent_unique = *unique;
	}
	return 0;
}

static struct version *make_stamp(const struct store_vnode *vnode, uint32_t parent_unique)
{
	struct version *version = version_new();

	if (version)
		version->v = (struct vnode){.kind = (uint8_t)vnode->kind,
					    .mode = (uint16_t)(vnode->mode & 07777),
					    .links = vnode->links,
					    .unique = vnode->unique,
					    .version = vnode->version,
					    .author = vnode->author,
					    .owner = vnode->owner,
					    .group = vnode->group,
					    .parent = vnode->parent,
					    .parent_unique = parent_unique,
					    .client_mtime = vnode->client_mtime,
					    .server_mtime = vnode->server_mtime};
	return version;
}

static int load_directory(struct version *version, const void *image)
{
	struct store_pages *pages;
	int result = store_pages_load((uint8_t(*)[STORE_PAGE])(uintptr_t)image,
				      (unsigned)(version->v.length / STORE_PAGE), &pages);

	if (result)
		return result;
	store_pages_mark(pages);
	atomic_store(&version->pages, pages);
	return 0;
}

static int fill_small(struct version *version, const void *bytes)
{
	struct blob *blob = blob_new(version->v.length);

	assert(version->v.length > 0);
	if (!blob)
		return -ENOMEM;
	memcpy(blob->bytes, bytes, version->v.length);
	atomic_store(&version->blob, blob);
	version->v.small = 1; /* the transaction chooses the number */
	return 0;
}

/* The parts that a kind has beside its record. */
static int fill_restored(struct version *version, const struct store_vnode *vnode,
			 const void *bytes, bool small)
{
	version->v.length = vnode->length;
	switch (vnode->kind) {
	case STORE_DIR:
		version->acl = malloc(sizeof(*version->acl));
		if (!version->acl)
			return -ENOMEM;
		*version->acl = vnode->acl;
		return load_directory(version, bytes);
	case STORE_SYMLINK:
		version->text = strndup(bytes, vnode->length);
		if (!version->text)
			return -ENOMEM;
		return strlen(version->text) == vnode->length ? 0 : -EBADMSG;
	default:
		if (!small)
			version->v.length = 0;
		return version->v.length ? fill_small(version, bytes) : 0;
	}
}

/* Note that a vnode came. -EEXIST: it came before. */
static int note_restored(struct store_restore *restore, uint32_t vnode, uint32_t unique)
{
	bool was;
	int result = restore_bit_set(&restore->seen, vnode, &was);

	if (restore->top_unique < unique)
		restore->top_unique = unique;
	return result ? result : was ? -EEXIST : 0;
}

static bool has_same_acl(const struct store_acl *a, const struct store_acl *b)
{
	bool same = a->positive == b->positive && a->negative == b->negative;

	for (unsigned i = 0; same && i < a->positive + a->negative; i++)
		same = a->entry[i].id == b->entry[i].id && a->entry[i].rights == b->entry[i].rights;
	return same;
}

static bool has_same_record(const struct version *now, const struct store_vnode *next)
{
	const struct vnode *v = &now->v;

	return v->kind == next->kind && v->unique == next->unique && v->links == next->links &&
	       v->mode == (next->mode & 07777) && v->group == next->group &&
	       v->length == next->length && v->version == next->version &&
	       v->author == next->author && v->owner == next->owner && v->parent == next->parent &&
	       v->client_mtime == next->client_mtime && v->server_mtime == next->server_mtime &&
	       has_same_acl(now->acl, &next->acl);
}

static bool has_same_pages(const struct store_pages *pages, const uint8_t *image, uint64_t length)
{
	unsigned count = store_pages_count(pages);
	bool same = length == (uint64_t)count * STORE_PAGE;

	for (unsigned i = 0; same && i < count; i++)
		same = !memcmp(store_pages_page(pages, i), image + (size_t)i * STORE_PAGE,
			       STORE_PAGE);
	return same;
}

/* Dumps have directories that have not changed: those are not written again. What cannot be read is replaced. */
static bool has_directory_already(struct store_restore *restore, const struct store_vnode *vnode,
				  const void *image)
{
	struct found found = {.view = restore_view(restore),
			      .fid = {restore->old.id, vnode->vnode, vnode->unique}};
	struct store_pages *pages;
	bool same = false;

	if (!restore->onto || vnode->kind != STORE_DIR)
		return false;
	restore_note_cached(restore, 1);
	if (lookup_version(restore->core, &found.view, vnode->vnode, &found.version))
		return false;
	if (has_same_record(found.version, vnode) && !lookup_pages(restore->core, &found, &pages)) {
		same = has_same_pages(pages, image, vnode->length);
		store_pages_unref(pages);
	}
	version_unref(found.version);
	return same;
}

int store_restore_put(struct store_restore *restore, const struct store_vnode *vnode,
		      const void *bytes)
{
	bool small = vnode->length <= restore->core->small_max;
	struct version *version;
	uint32_t parent_unique;
	int result = restore_bit_get(&restore->seen, vnode->vnode)
			     ? -EEXIST
			     : find_parent_unique(restore, vnode, &parent_unique);

	assert((vnode->kind == STORE_DIR) == (vnode->vnode & 1));
	if (result)
		return result;
	if (has_directory_already(restore, vnode, bytes))
		return note_restored(restore, vnode->vnode, vnode->unique);
	version = make_stamp(vnode, parent_unique);
	result = version ? fill_restored(version, vnode, bytes, small) : -ENOMEM;
	if (!result)
		result = note_restored(restore, vnode->vnode, vnode->unique);
	if (!result)
		return add_item(restore, vnode->vnode, version, false);
	version_unref(version);
	return result;
}

int store_restore_write(struct store_restore *restore, const struct store_vnode *vnode,
			struct store_writer **writer)
{
	struct store_fid fid = {restore->old.id, vnode->vnode, vnode->unique};
	struct store_set set = {0};
	int result = commit_items(restore);

	assert(vnode->kind == STORE_FILE && restore_bit_get(&restore->seen, vnode->vnode));
	return result ? result
		      : write_begin(&restore->core->store, &whole_caller, &fid, &set, 0,
				    vnode->length, vnode->length, writer);
}

int store_restore_stamp(struct store_restore *restore, const struct store_vnode *vnode)
{
	uint32_t parent_unique;
	int result = find_parent_unique(restore, vnode, &parent_unique);
	struct version *version = result ? NULL : make_stamp(vnode, parent_unique);

	assert(restore_bit_get(&restore->seen, vnode->vnode));
	if (result || !version)
		return result ? result : -ENOMEM;
	/* The next data version follows on this one. */
	version->v.incarnation = restore->core->incarnation;
	return add_item(restore, vnode->vnode, version, true);
}

int store_restore_look(const struct store_restore *restore, uint32_t vnode, struct store_vnode *now)
{
	struct view view = restore_view(restore);
	struct version *version;
	int result = lookup_version(restore->core, &view, vnode, &version);

	if (result)
		return result;
	*now = (struct store_vnode){.vnode = vnode,
				    .unique = version->v.unique,
				    .kind = (enum store_kind)version->v.kind,
				    .mode = version->v.mode,
				    .version = version->v.version,
				    .owner = version->v.owner,
				    .client_mtime = version->v.client_mtime,
				    .server_mtime = version->v.server_mtime};
	version_unref(version);
	return 0;
}

/* -- what was there before -- */

/* It did not come yet, or not at all. */
static int note_passed(struct store_restore *restore, uint32_t vnode, bool finishing)
{
	bool was;

	if (restore_bit_get(&restore->seen, vnode))
		return 0;
	if (finishing || vnode >= STORE_RESTORE_VNODE_MAX)
		return restore_remove(restore, vnode);
	return restore_bit_set(&restore->passed, vnode, &was);
}

/*
 * The first vnode from `vnode` on, of its kind: 0 or -ENOENT. Those before it are noted. The restore itself changes only vnodes
 * that came.
 */
static int pass_to(struct store_restore *restore, uint32_t vnode, bool finishing,
		   struct outline *at)
{
	bool directories = vnode & 1;
	uint32_t *passed_to = &restore->passed_to[directories];
	struct view view = restore_view(restore);
	int result;

	assert(restore->onto && vnode > *passed_to);
	while (!(result = whole_next(restore->core, &view, &restore->before[directories],
				     directories, *passed_to, at)) &&
	       at->vnode < vnode) {
		*passed_to = at->vnode;
		result = note_passed(restore, at->vnode, finishing);
		if (result)
			return result;
	}
	*passed_to = vnode;
	return result;
}

/* Vnodes that are kept come in order, as a rule. */
static int find_kept_vnode(struct store_restore *restore, uint32_t vnode, uint32_t *unique)
{
	struct view view = restore_view(restore);
	struct version *version;
	struct outline at;
	int result;

	if (restore->onto && vnode > restore->passed_to[vnode & 1]) {
		result = pass_to(restore, vnode, false, &at);
		if (result || at.vnode != vnode)
			return result && result != -ENOENT ? result : STORE_VNOVNODE;
		*unique = at.unique;
		if (!at.damaged)
			return 0;
	}
	restore_note_cached(restore, 1);
	result = lookup_version(restore->core, &view, vnode, &version);
	if (result)
		return result;
	*unique = version->v.unique;
	version_unref(version);
	return 0;
}

int store_restore_keep(struct store_restore *restore, uint32_t vnode, uint32_t unique)
{
	uint32_t now = 0;
	int result = find_kept_vnode(restore, vnode, &now);

	if (result || now != unique)
		return result && result != STORE_VNOVNODE ? result : -ENOENT;
	return note_restored(restore, vnode, unique);
}

/* -- the end -- */

static int remove_passed(struct store_restore *restore)
{
	const struct restore_bits *passed = &restore->passed;
	int result = 0;

	for (uint32_t bit = 0; bit < passed->room * 8 && !result; bit++)
		if (!passed->byte[bit / 8])
			bit |= 7;
		else if (restore_bit_get(passed, bit) && !restore_bit_get(&restore->seen, bit))
			result = restore_remove(restore, bit);
	return result;
}

/* What was there, and did not come. */
static int remove_unseen(struct store_restore *restore)
{
	struct outline at;
	int result = pass_to(restore, UINT32_MAX - 1, true, &at);

	if (!result || result == -ENOENT)
		result = pass_to(restore, UINT32_MAX, true, &at);
	return result && result != -ENOENT ? result : remove_passed(restore);
}

/* The tree that was there is right, and stays what it is if only contents of files were replaced. */
static bool must_verify_tree(const struct store_restore *restore)
{
	return !restore->onto || restore->reshaped ||
	       !restore_bit_get(&restore->seen, STORE_ROOT_VNODE);
}

static uint32_t later(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

/*
 * The date by which clients compare sites. Copies of one release have that of the release. Other contents that replace what clients
 * knew get a later one.
 */
static uint32_t choose_restored_date(const struct volrec *rec, const struct store_volume *from,
				     bool known, uint32_t now)
{
	if (!known || (rec->as && from->created >= rec->created))
		return from->created;
	return later(now, rec->created + 1);
}

static int apply_finish(struct txn_op *txn, struct work *work)
{
	const struct restore_op *op = (const struct restore_op *)txn;
	const struct store_restore *restore = op->restore;
	const struct store_volume *from = &op->header->volume;
	struct db_prune prune = {.group = restore->old.group, .epoch = restore->old.epoch};
	bool known = restore->onto || restore->old.next_unique > 2;
	struct workvol *volume;
	struct volrec *rec;
	struct db *db;
	int result = work_any_volume(work, restore->old.id, &volume);

	assert(!restore->count);
	if (!result && restore->onto)
		result = work_db(work, &db);
	if (!result && restore->onto)
		result = db_prune_put(db, &prune);
	if (result)
		return result;
	rec = &volume->rec;
	rec->offline &= (uint8_t) ~(VOLUME_BUSY | VOLUME_HIDDEN);
	if (rec->cell & VOLUME_GHOST)
		rec->offline |= VOLUME_HIDDEN;
	rec->snapshot = 0;
	rec->quota_kib = from->quota_kib;
	rec->minimum = from->minimum;
	rec->owner = op->header->owner;
	rec->updated = from->updated;
	rec->next_unique =
		later(later(rec->next_unique, op->header->next_unique), restore->top_unique + 1);
	rec->incarnation = work->base.incarnation;
	rec->created = choose_restored_date(rec, from, known, work->now);
	volume->changed = true;
	volume->moves++;
	return 0;
}

int store_restore_finish(struct store_restore *restore, const struct store_header *header,
			 uint64_t *lost, char *message)
{
	struct restore_op op = {.header = header};
	int result = commit_items(restore);

	message[0] = '\0';
	*lost = 0;
	if (!result && restore->onto)
		result = remove_unseen(restore);
	if (!result)
		result = commit_items(restore);
	if (!result && must_verify_tree(restore))
		result = restore_verify(restore, lost, message);
	if (!result)
		result = commit_items(restore);
	if (!result)
		result = run_restore_op(restore, &op, apply_finish);
	restore->finished = !result;
	if (!result && restore->onto)
		keeper_wake(restore->core->keeper);
	return result;
}

/* -- giving up: what failed is tried again later, since the volume is busy until then -- */

static pthread_mutex_t stuck =
	PTHREAD_MUTEX_INITIALIZER; /* covers `stuck_restores` of all stores */

static void keep_stuck_restore(struct store_restore *restore)
{
	struct core *core = restore->core;

	assert(restore->onto && !restore->finished);
	pthread_mutex_lock(&stuck);
	restore->next = core->stuck_restores;
	core->stuck_restores = restore;
	pthread_mutex_unlock(&stuck);
}

static struct store_restore *take_stuck_restores(struct core *core)
{
	struct store_restore *first;

	pthread_mutex_lock(&stuck);
	first = core->stuck_restores;
	core->stuck_restores = NULL;
	pthread_mutex_unlock(&stuck);
	return first;
}

static int undo_restore(struct store_restore *restore)
{
	return revert_volume(restore->core, restore->old.id, restore->old.epoch, true);
}

int store_restore_end(struct store_restore *restore)
{
	int result = 0;

	if (!restore->finished && restore->onto)
		result = undo_restore(restore);
	else if (!restore->finished)
		result = admin_remove_hidden(&restore->core->store, restore->old.id);
	while (restore->count)
		version_unref(restore->item[--restore->count].version);
	free(restore->seen.byte);
	free(restore->passed.byte);
	restore->seen.byte = restore->passed.byte = NULL;
	if (result && restore->onto)
		keep_stuck_restore(restore);
	else
		free(restore);
	return result;
}

bool store_restores_retry(struct store *store)
{
	struct store_restore *next, *restore = take_stuck_restores(core_of(store));
	bool done = true;

	for (; restore; restore = next) {
		next = restore->next;
		if (undo_restore(restore)) {
			keep_stuck_restore(restore);
			done = false;
		} else {
			free(restore);
		}
	}
	return done;
}

void restores_forget(struct core *core)
{
	struct store_restore *next, *restore = take_stuck_restores(core);

	for (; restore; restore = next) {
		next = restore->next;
		free(restore);
	}
}
