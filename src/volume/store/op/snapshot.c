/* SPDX-License-Identifier: BSD-2-Clause */
/* Reading a whole volume as it was at a moment: a snapshot is an epoch whose rows stay, without a volume of its own. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "volume/store/maint/maint.h"
#include "volume/store/op/op.h"
#include "volume/store/op/whole.h"

static const int32_t whole_ids[] = {STORE_ADMINISTRATORS, STORE_AUTHUSER, STORE_ANYUSER};
const struct store_caller whole_caller = {
	.ids = whole_ids,
	.id_count = sizeof(whole_ids) / sizeof(whole_ids[0]),
	.administrator = true,
	.unrestricted = true,
};

/* -- the vnodes of a view -- */

struct scan_rows {
	struct whole_scan *scan;
	uint32_t epoch;
	struct outline outline; /* the last row up to the epoch of the vnode that is being seen */
	uint32_t vnode;		/* of the rows that are being seen; 0: none */
	bool shown;		/* the view shows `outline` */
};

static void end_scanned_vnode(struct scan_rows *rows)
{
	assert(!rows->shown || rows->scan->count < WHOLE_BATCH);
	if (rows->shown)
		rows->scan->item[rows->scan->count++] = rows->outline;
	rows->shown = false;
}

static int see_scanned_row(void *arg, const struct outline *outline)
{
	struct scan_rows *rows = arg;

	if (outline->vnode != rows->vnode)
		end_scanned_vnode(rows);
	if (rows->scan->count == WHOLE_BATCH)
		return 1;
	rows->vnode = outline->vnode;
	if (outline->epoch > rows->epoch || rows->scan->directories != (outline->vnode & 1))
		return 0;
	rows->outline = *outline;
	rows->shown = outline->damaged || outline->kind;
	return 0;
}

/* No directory, or no other vnode, has this number or a higher one. */
static uint32_t find_scan_end(struct core *core, const struct view *view, bool directories)
{
	struct volrec rec;

	if (volumes_get(&core->volumes, view->group, &rec) || !rec.fresh[directories])
		return UINT32_MAX;
	return rec.fresh[directories];
}

static int fill_scan(struct core *core, const struct view *view, struct whole_scan *scan,
		     uint32_t after)
{
	struct scan_rows rows = {.scan = scan, .epoch = view->epoch};
	uint32_t below = find_scan_end(core, view, scan->directories);
	struct db *db;
	int result = readers_get(core->readers, &db);

	assert(scan->at == scan->count && !scan->ended);
	if (result)
		return result;
	scan->at = scan->count = 0;
	result = db_group_outlines(db, view->group, after + 1, below, see_scanned_row, &rows);
	readers_put(core->readers, db);
	scan->ended = result == 0;
	if (scan->ended)
		end_scanned_vnode(&rows);
	return result < 0 ? result : 0;
}

int whole_next(struct core *core, const struct view *view, struct whole_scan *scan,
	       bool directories, uint32_t after, struct outline *outline)
{
	int result = 0;

	if (!scan->begun || scan->directories != directories || after < scan->after)
		*scan = (struct whole_scan){.begun = true, .directories = directories};
	scan->after = after;
	assert(scan->at <= scan->count && scan->count <= WHOLE_BATCH);
	while (scan->at < scan->count && scan->item[scan->at].vnode <= after)
		scan->at++;
	if (scan->at == scan->count && !scan->ended)
		result = fill_scan(core, view, scan, after);
	if (result)
		return result;
	if (scan->at == scan->count)
		return -ENOENT;
	*outline = scan->item[scan->at];
	return 0;
}

/* -- taking and ending -- */

/* Owned by the one who took it. */
struct store_snapshot {
	struct core *core;
	struct volrec rec;
	struct store_volume volume;
	struct view view;
	uint32_t since; /* rows up to this epoch have not changed */
	struct whole_scan scan;
	struct found found; /* of the last vnode */
};

struct snapshot_op {
	struct txn_op txn;
	uint32_t id;
	struct volrec rec;
};

static int apply_snapshot_taking(struct txn_op *txn, struct work *work)
{
	struct snapshot_op *op = (struct snapshot_op *)txn;
	struct workvol *volume;
	int result = admin_find_rw(work, op->id, &volume);

	if (!result && volume->rec.snapshot)
		result = STORE_VBUSY;
	if (!result && volume->rec.epoch >= UINT32_MAX - 1)
		result = -EFBIG;
	if (result)
		return result;
	op->rec = volume->rec;
	volume->rec.snapshot = volume->rec.epoch++;
	volume->changed = true;
	return 0;
}

static int apply_snapshot_end(struct txn_op *txn, struct work *work)
{
	const struct snapshot_op *op = (const struct snapshot_op *)txn;
	struct db_prune prune = {.group = op->rec.group, .epoch = op->rec.epoch};
	struct workvol *volume;
	struct db *db;
	int result = work_any_volume(work, op->id, &volume);

	if (result || volume->rec.snapshot != op->rec.epoch)
		return result;
	result = work_db(work, &db);
	if (!result)
		result = db_prune_put(db, &prune);
	if (result)
		return result;
	volume->rec.snapshot = 0;
	volume->changed = true;
	return 0;
}

static int run_snapshot_op(struct core *core, struct snapshot_op *op,
			   int (*apply)(struct txn_op *txn, struct work *work))
{
	op->txn.apply = apply;
	op->txn.alone = true;
	return txn_run(core->txn, &op->txn);
}

int whole_snapshot_take(struct core *core, uint32_t id, struct volrec *rec)
{
	struct snapshot_op op = {.id = id};
	int result = run_snapshot_op(core, &op, apply_snapshot_taking);

	*rec = op.rec;
	return result;
}

int whole_snapshot_end(struct core *core, const struct volrec *rec)
{
	struct snapshot_op op = {.id = rec->id, .rec = *rec};
	int result = run_snapshot_op(core, &op, apply_snapshot_end);

	keeper_wake(core->keeper);
	return result;
}

/* The epoch of a clone of the volume's group. */
static int find_since_epoch(struct store_snapshot *snapshot, uint32_t since)
{
	struct volrec clone;
	int result = volumes_get(&snapshot->core->volumes, since, &clone);

	assert(since);
	if (!result && (clone.type == STORE_RW || clone.group != snapshot->rec.group ||
			clone.id == snapshot->rec.id || clone.epoch > snapshot->rec.epoch))
		result = -EINVAL;
	snapshot->since = result ? 0 : clone.epoch;
	return result;
}

static int begin_snapshot(struct store_snapshot *snapshot, uint32_t id, uint32_t since)
{
	struct volrec *rec = &snapshot->rec;
	int result = volumes_get(&snapshot->core->volumes, id, rec);

	if (!result)
		result = admin_volume(&snapshot->core->store, id, &snapshot->volume);
	if (!result && since)
		result = find_since_epoch(snapshot, since);
	if (!result && rec->type == STORE_RW)
		result = whole_snapshot_take(snapshot->core, id, rec);
	snapshot->view = (struct view){.volume = id,
				       .group = rec->group,
				       .epoch = rec->epoch,
				       .type = STORE_BACKUP,
				       .owner = rec->owner};
	return result;
}

int store_snapshot_take(struct store *store, uint32_t id, uint32_t since,
			struct store_snapshot **out)
{
	struct store_snapshot *snapshot = calloc(1, sizeof(*snapshot));
	int result;

	if (!snapshot)
		return -ENOMEM;
	snapshot->core = core_of(store);
	result = begin_snapshot(snapshot, id, since);
	if (result)
		free(snapshot);
	else
		*out = snapshot;
	return result;
}

int store_snapshot_end(struct store_snapshot *snapshot)
{
	struct core *core = snapshot->core;
	struct volrec now;
	int result;

	if (snapshot->rec.type == STORE_RW) {
		result = whole_snapshot_end(core, &snapshot->rec);
	} else {
		result = volumes_get(&core->volumes, snapshot->rec.id, &now);
		if (!result && now.epoch != snapshot->rec.epoch)
			result = STORE_VNOVOL;
	}
	lookup_end(&snapshot->found);
	free(snapshot);
	return result;
}

void store_snapshot_header(const struct store_snapshot *snapshot, struct store_header *header)
{
	const struct volrec *rec = &snapshot->rec;

	*header = (struct store_header){
		.volume = snapshot->volume, .owner = rec->owner, .next_unique = rec->next_unique};
	/* A change may have come between the look and the snapshot. */
	header->volume.used_kib = rec->used_kib;
	header->volume.files = rec->files;
	header->volume.updated = rec->updated;
}

/* -- vnodes -- */

static void fill_whole_vnode(const struct store_snapshot *snapshot, struct store_vnode *vnode)
{
	const struct version *version = snapshot->found.version;
	const struct vnode *v = &version->v;

	*vnode = (struct store_vnode){.vnode = snapshot->found.fid.vnode,
				      .unique = v->unique,
				      .kind = (enum store_kind)v->kind,
				      .links = v->links,
				      .mode = v->mode,
				      .group = v->group,
				      .length = v->length,
				      .version = v->version,
				      .author = v->author,
				      .owner = v->owner,
				      .parent = v->parent,
				      .client_mtime = v->client_mtime,
				      .server_mtime = v->server_mtime,
				      .changed = version->epoch > snapshot->since};
	if (version->acl)
		vnode->acl = *version->acl;
}

/* Past the cache, which one pass over a volume would only empty. */
static int read_snapshot_row(struct store_snapshot *snapshot, uint32_t number,
			     struct version **version)
{
	struct vnode_key key = {snapshot->view.group, number, snapshot->view.epoch};
	struct db *db;
	int result = readers_get(snapshot->core->readers, &db);

	if (result)
		return result;
	result = db_vnode_get(db, &key, version);
	readers_put(snapshot->core->readers, db);
	if (!result && !(*version)->v.kind) {
		version_unref(*version);
		result = -ENOENT;
	}
	if (result)
		*version = NULL;
	return result == -ENOENT ? STORE_VNOVNODE : result;
}

static int find_in_snapshot(struct store_snapshot *snapshot, uint32_t number,
			    struct store_vnode *vnode)
{
	struct found *found = &snapshot->found;
	int result;

	lookup_end(found);
	*found = (struct found){.view = snapshot->view, .fid = {snapshot->rec.id, number, 0}};
	vnode->vnode = number;
	result = read_snapshot_row(snapshot, number, &found->version);
	if (result)
		return result;
	found->fid.unique = found->version->v.unique;
	fill_whole_vnode(snapshot, vnode);
	return 0;
}

int store_snapshot_next(struct store_snapshot *snapshot, bool directories, uint32_t after,
			struct store_vnode *vnode)
{
	struct outline outline;
	int result = whole_next(snapshot->core, &snapshot->view, &snapshot->scan, directories,
				after, &outline);

	return result ? result : find_in_snapshot(snapshot, outline.vnode, vnode);
}

int store_snapshot_outline(struct store_snapshot *snapshot, bool directories, uint32_t after,
			   struct store_vnode *vnode)
{
	struct outline outline;
	int result = whole_next(snapshot->core, &snapshot->view, &snapshot->scan, directories,
				after, &outline);

	if (result)
		return result;
	*vnode = (struct store_vnode){.vnode = outline.vnode,
				      .unique = outline.unique,
				      .kind = (enum store_kind)outline.kind,
				      .server_mtime = outline.server_mtime,
				      .changed = outline.epoch > snapshot->since};
	/* Reading all of it reports the damage. */
	return outline.damaged ? find_in_snapshot(snapshot, outline.vnode, vnode) : 0;
}

int store_snapshot_find(struct store_snapshot *snapshot, uint32_t number, uint32_t unique,
			struct store_vnode *vnode)
{
	int result = find_in_snapshot(snapshot, number, vnode);

	return !result && vnode->unique != unique ? STORE_VNOVNODE : result;
}

int store_snapshot_open(struct store_snapshot *snapshot, struct store_reader **reader)
{
	assert(snapshot->found.version);
	return read_open_found(snapshot->core, &snapshot->found, reader);
}
