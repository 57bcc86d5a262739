/* SPDX-License-Identifier: BSD-2-Clause */
/* A volume over a directory tree: from FIDs to objects of one version. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "afs/fetchstatus.h"
#include "afs/numbers.h"
#include "fileserver/log.h"
#include "fileserver/volume_private.h"

#define OPEN_TRIES     4
#define TREE_DEPTH_MAX 2048
/* Kernels stamp files with a clock that ticks as seldom as every 10 ms. */
#define TICK_NS 20000000ll

int fsd_volume_error(int rc)
{
	switch (rc) {
	case -ENOENT:
	case -ENOTDIR:
	case -ELOOP:
	case -EXDEV:
		return AFS_VNOVNODE;
	case -EMFILE:
	case -ENFILE:
	case -ENOMEM:
	case -EAGAIN:
		return AFS_VBUSY; /* the client waits and asks again */
	case -EPERM:
		return -EACCES;
	default:
		return rc;
	}
}

void fsd_volume_changed(struct fsd_volume *volume, uint32_t vnode, uint32_t unique,
			const void *actor)
{
	AFSFid fid = {volume->id, vnode, unique};

	if (volume->on_change)
		volume->on_change(volume->arg, &fid, actor);
}

static int64_t real_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return ts.tv_sec * 1000000000ll + ts.tv_nsec;
}

int fsd_volume_settle(struct fsd_volume *volume, const char *path, struct fsd_stat *st)
{
	for (int tries = 0;; tries++) {
		int rc = volume->layer->ops->stat_path(volume->layer, path, st);
		int64_t age = real_ns() - st->ctime_ns;

		if (rc || age < 0 || age >= TICK_NS || tries == 3)
			return rc;
		struct timespec ts = {.tv_nsec = (long)(TICK_NS - age)};

		nanosleep(&ts, NULL);
	}
}

/* The path of a record, from its end to its start. */
static int build_path(struct fsd_txn *txn, const struct fsd_record *record, char path[FSD_PATH_MAX])
{
	char buffer[FSD_PATH_MAX], *at = buffer + sizeof(buffer) - 1;
	struct fsd_record up = *record;

	*at = 0;
	for (int depth = 0; up.vnode != AFS_ROOT_VNODE; depth++) {
		size_t n = strlen(up.name);
		int rc;

		if (depth == TREE_DEPTH_MAX || n == 0)
			return -EIO;
		if ((size_t)(at - buffer) < n + 1)
			return -ENAMETOOLONG;
		if (*at)
			*--at = '/';
		at -= n;
		memcpy(at, up.name, n);

		uint32_t unique = up.parent_unique;

		rc = fsd_store_get(txn, up.parent, &up);
		if (rc)
			return rc;
		if (up.unique != unique || up.kind != FSD_DIR)
			return -ENOENT;
	}
	memmove(path, at, strlen(at) + 1);
	return 0;
}

static int check_fid(const struct fsd_volume *volume, const AFSFid *fid)
{
	if (fid->Volume == 0 || fid->Vnode == 0)
		return -EINVAL;
	return fid->Volume == volume->id ? 0 : AFS_VNOVOL;
}

int fsd_volume_path(struct fsd_volume *volume, const AFSFid *fid, char path[FSD_PATH_MAX],
		    struct fsd_record *record)
{
	struct fsd_txn *txn;
	int rc = check_fid(volume, fid);

	if (rc)
		return rc;
	rc = fsd_store_begin(volume->store, false, &txn);
	if (rc)
		return fsd_volume_error(rc);
	rc = fsd_store_get(txn, fid->Vnode, record);
	if (!rc && record->unique != fid->Unique)
		rc = -ENOENT;
	if (!rc)
		rc = build_path(txn, record, path);
	fsd_store_abort(txn);
	return fsd_volume_error(rc);
}

/* The object is not in the tree any more: its FID must never come back to life. */
static void forget(struct fsd_volume *volume, const struct fsd_object *object, const void *actor)
{
	struct fsd_record record;
	struct fsd_txn *txn;

	if (object->fid.Vnode == AFS_ROOT_VNODE || fsd_store_begin(volume->store, true, &txn))
		return;
	if (fsd_store_get(txn, object->fid.Vnode, &record) || record.unique != object->fid.Unique ||
	    fsd_store_remove(txn, &record)) {
		fsd_store_abort(txn);
		return;
	}
	if (fsd_store_commit(txn) == 0)
		fsd_volume_changed(volume, object->fid.Vnode, object->fid.Unique, actor);
}

/*
 * The object does not look as it did when it got its data version: give it the next one. Looked at
 * again inside the transaction, so that versions follow the order in which the tree changed.
 */
static int refresh(struct fsd_volume *volume, struct fsd_object *object, const void *actor)
{
	struct fsd_record *r = &object->record;
	bool changed = false;
	struct fsd_txn *txn;
	int rc = fsd_store_begin(volume->store, true, &txn);

	if (rc)
		return rc;
	rc = fsd_store_get(txn, object->fid.Vnode, r);
	if (!rc && r->unique != object->fid.Unique)
		rc = -ENOENT;
	if (!rc)
		rc = volume->layer->ops->stat_path(volume->layer, object->path, &object->st);
	if (!rc && object->st.kind != r->kind)
		rc = -ENOENT;
	if (rc || fsd_stat_same(&r->seen, &object->st)) {
		fsd_store_abort(txn);
		return rc;
	}
	changed = r->seen.inode != 0;
	if (r->kind == FSD_DIR)
		r->image_length = 0;
	else if (changed)
		r->version++;
	r->seen = object->st;
	rc = fsd_store_put(txn, r);
	if (rc) {
		fsd_store_abort(txn);
		return rc;
	}
	rc = fsd_store_commit(txn);
	if (!rc && changed)
		fsd_volume_changed(volume, object->fid.Vnode, object->fid.Unique, actor);
	return rc;
}

static uint32_t seconds(int64_t ns)
{
	return ns < 0 ? 0 : (uint32_t)(ns / 1000000000);
}

static void fill_status(const struct fsd_volume *volume, struct fsd_object *object)
{
	const struct fsd_record *r = &object->record;
	const struct fsd_stat *st = &object->st;
	AFSFetchStatus *s = &object->status;

	memset(s, 0, sizeof(*s));
	s->InterfaceVersion = 1;
	s->FileType = r->kind == FSD_DIR       ? AFS_TYPE_DIR
		      : r->kind == FSD_SYMLINK ? AFS_TYPE_SYMLINK
					       : AFS_TYPE_FILE;
	s->LinkCount = st->links;
	afs_status_set_length(s, st->size);
	afs_status_set_version(s, r->version);
	s->Author = st->uid;
	s->Owner = st->uid;
	s->Group = st->gid;
	s->CallerAccess = s->AnonymousAccess = fsd_access_rights(volume, st);
	/* A symbolic link without x bits would be taken for a mount point. */
	s->UnixModeBits = r->kind == FSD_SYMLINK ? 0777 : st->mode;
	s->ParentVnode = r->parent;
	s->ParentUnique = r->parent_unique;
	if (r->kind == FSD_DIR) {
		s->LinkCount = r->links;
		afs_status_set_length(s, r->image_length);
		s->ParentVnode = r->vnode;
		s->ParentUnique = r->unique;
	}
	s->ResidencyMask = 1;
	s->ClientModTime = seconds(st->mtime_ns);
	s->ServerModTime = seconds(st->ctime_ns);
}

/*
 * A directory: the length of its image is part of its status, so it must have been listed since its
 * last change.
 */
static int get_directory(struct fsd_volume *volume, struct fsd_object *object, const void *actor)
{
	struct fsd_record *r = &object->record;
	struct fsd_image *image = NULL;
	int rc = 0;

	object->may_read = fsd_access_rights(volume, &object->st) & AFS_RIGHT_LOOKUP;
	if (!object->may_read) {
		rc = fsd_stat_same(&r->seen, &object->st) ? 0 : refresh(volume, object, actor);
		r->links = 2;
		r->image_length = 2048;
	} else if (r->image_length == 0 || !fsd_stat_same(&r->seen, &object->st)) {
		rc = fsd_image_scan(volume, object, actor, &image);
		fsd_image_release(volume, image);
	}
	return rc;
}

int fsd_volume_get(struct fsd_volume *volume, const AFSFid *fid, const void *actor,
		   struct fsd_object *object)
{
	int rc = fsd_volume_path(volume, fid, object->path, &object->record);

	if (rc)
		return rc;
	object->fid = *fid;
	rc = fsd_access_path(volume, object);
	if (rc == -EACCES)
		return rc;
	if (!rc)
		rc = volume->layer->ops->stat_path(volume->layer, object->path, &object->st);
	if (!rc && object->st.kind != object->record.kind)
		rc = -ENOENT;
	if (!rc && object->record.kind == FSD_DIR) {
		rc = get_directory(volume, object, actor);
	} else if (!rc) {
		object->may_read = fsd_access_rights(volume, &object->st) != 0;
		if (!object->may_read)
			return -EACCES;
		if (!fsd_stat_same(&object->record.seen, &object->st))
			rc = refresh(volume, object, actor);
	}
	if (fsd_volume_error(rc) == AFS_VNOVNODE)
		forget(volume, object, actor);
	if (!rc)
		fill_status(volume, object);
	return fsd_volume_error(rc);
}

int fsd_volume_open_file(struct fsd_volume *volume, const AFSFid *fid, const void *actor,
			 struct fsd_object *object, struct fsd_file **file)
{
	const struct fsd_layer_ops *ops = volume->layer->ops;
	int rc;

	for (int tries = 0; tries < OPEN_TRIES; tries++) {
		struct fsd_stat st;
		int64_t age;

		rc = fsd_volume_get(volume, fid, actor, object);
		if (rc)
			return rc;
		if (object->record.kind != FSD_FILE)
			return -EISDIR;
		age = real_ns() - object->st.ctime_ns;
		if (age >= 0 && age < TICK_NS && tries < OPEN_TRIES - 1) {
			rc = fsd_volume_settle(volume, object->path, &st);
			if (rc)
				continue;
		}
		rc = ops->open(volume->layer, object->path, file);
		if (rc == -ENOENT || rc == -EINVAL)
			continue; /* replaced meanwhile */
		if (rc)
			return fsd_volume_error(rc);
		rc = ops->stat_file(*file, &st);
		if (!rc && fsd_stat_same(&st, &object->record.seen) &&
		    fsd_stat_same(&st, &object->st))
			return 0;
		ops->close(*file);
	}
	return AFS_VBUSY; /* it changes faster than we can look */
}

int fsd_volume_child(struct fsd_volume *volume, const AFSFid *directory, const char *name,
		     AFSFid *fid)
{
	struct fsd_record record;
	struct fsd_txn *txn;
	int rc = fsd_store_begin(volume->store, false, &txn);

	if (rc)
		return fsd_volume_error(rc);
	*fid = *directory;
	rc = fsd_store_child(txn, directory->Vnode, name, &fid->Vnode);
	if (!rc)
		rc = fsd_store_get(txn, fid->Vnode, &record);
	if (!rc && record.parent_unique != directory->Unique)
		rc = -ENOENT;
	if (!rc)
		fid->Unique = record.unique;
	fsd_store_abort(txn);
	return fsd_volume_error(rc);
}

void fsd_volume_check(struct fsd_volume *volume, const AFSFid *fid)
{
	struct fsd_object *object = malloc(sizeof(*object));

	/* Permission taken away: its holders must ask again, and then be refused. */
	if (object && fsd_volume_get(volume, fid, NULL, object) == -EACCES)
		fsd_volume_changed(volume, fid->Vnode, fid->Unique, NULL);
	free(object);
}

static int32_t clip(uint64_t kib)
{
	return kib > INT32_MAX ? INT32_MAX : (int32_t)kib;
}

int fsd_volume_space(struct fsd_volume *volume, AFSFetchVolumeStatus *status)
{
	struct fsd_space space;
	int rc = volume->layer->ops->space(volume->layer, &space);

	if (rc)
		return rc;
	memset(status, 0, sizeof(*status));
	status->Vid = (int32_t)volume->id;
	status->ParentId = (int32_t)volume->id;
	status->Online = status->InService = status->Blessed = 1;
	status->BlocksInUse = clip(space.used_kib);
	status->PartBlocksAvail = clip(space.available_kib);
	status->PartMaxBlocks = clip(space.total_kib);
	return 0;
}

/* First use of the store, or another tree under the same name: every FID is new. */
static int start_anew(struct fsd_txn *txn, const struct fsd_volume_options *options,
		      const struct fsd_stat *root, struct fsd_meta *meta)
{
	struct fsd_record record = {.vnode = AFS_ROOT_VNODE,
				    .unique = AFS_ROOT_UNIQUE,
				    .parent = AFS_ROOT_VNODE,
				    .parent_unique = AFS_ROOT_UNIQUE,
				    .kind = FSD_DIR,
				    .version = 1};
	uint32_t now = (uint32_t)time(NULL);
	struct fsd_record old;
	int rc;

	/* The root keeps its FID, so its version must go on. */
	if (fsd_store_get(txn, AFS_ROOT_VNODE, &old) == 0)
		record.version = old.version + 1;
	rc = fsd_store_clear(txn);
	if (rc)
		return rc;
	if (meta->volume == 0) {
		meta->volume = options->new_id;
		meta->next_file = 2;
		meta->next_dir = 3;
		meta->next_unique = 2;
	}
	meta->creation = now > meta->creation ? now : meta->creation + 1;
	meta->root_device = root->device;
	meta->root_inode = root->inode;
	memset(meta->root, 0, sizeof(meta->root));
	strncpy(meta->root, options->root, sizeof(meta->root) - 1);
	rc = fsd_store_put_meta(txn, meta);
	return rc ? rc : fsd_store_put(txn, &record);
}

static int open_meta(struct fsd_volume *volume, const struct fsd_volume_options *options)
{
	struct fsd_meta *meta = calloc(1, sizeof(*meta));
	struct fsd_stat root;
	struct fsd_txn *txn = NULL;
	int rc = meta ? volume->layer->ops->stat_path(volume->layer, "", &root) : -ENOMEM;

	if (!rc)
		rc = fsd_store_begin(volume->store, true, &txn);
	if (!rc) {
		rc = fsd_store_get_meta(txn, meta);
		/* A device's number may change at each boot: path and inode tell. */
		if (rc == -ENOENT ||
		    (!rc && (meta->root_inode != root.inode || strcmp(meta->root, options->root))))
			rc = start_anew(txn, options, &root, meta);
		if (rc)
			fsd_store_abort(txn);
		else
			rc = fsd_store_commit(txn);
		volume->id = meta->volume;
		volume->creation = meta->creation;
	}
	free(meta);
	return rc;
}

int fsd_volume_open(const struct fsd_volume_options *options, struct fsd_volume **out)
{
	struct fsd_volume *volume;
	int rc;

	if (strlen(options->name) >= sizeof(volume->name) || strlen(options->root) >= 4096)
		return -ENAMETOOLONG;
	volume = calloc(1, sizeof(*volume));
	if (!volume)
		return -ENOMEM;
	volume->layer = options->layer;
	volume->store = options->store;
	volume->all_files = options->all_files;
	volume->on_change = options->on_change;
	volume->arg = options->arg;
	strcpy(volume->name, options->name);
	pthread_mutex_init(&volume->access_lock, NULL);
	fsd_image_cache_start(&volume->images);
	rc = open_meta(volume, options);
	if (rc) {
		fsd_volume_close(volume);
		return rc;
	}
	*out = volume;
	return 0;
}

void fsd_volume_close(struct fsd_volume *volume)
{
	if (!volume)
		return;
	fsd_image_cache_stop(&volume->images);
	pthread_mutex_destroy(&volume->access_lock);
	free(volume);
}

const char *fsd_volume_name(const struct fsd_volume *volume)
{
	return volume->name;
}

uint32_t fsd_volume_id(const struct fsd_volume *volume)
{
	return volume->id;
}

uint32_t fsd_volume_creation(const struct fsd_volume *volume)
{
	return volume->creation;
}

struct fsd_layer *fsd_volume_layer(const struct fsd_volume *volume)
{
	return volume->layer;
}
