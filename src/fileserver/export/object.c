/* SPDX-License-Identifier: BSD-2-Clause */
/* A volume over a directory tree: lookup of FIDs, status, opening of files. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "afs/fetchstatus.h"
#include "afs/numbers.h"
#include "common/clock.h"
#include "fileserver/base/base.h"
#include "fileserver/export/object_private.h"

#define OPEN_TRIES  4
#define IMAGE_TRIES 5
#define GET_TRIES   100

static int check_fid(const struct fsd_volume *volume, const AFSFid *fid)
{
	if (fid->Volume == 0 || fid->Vnode == 0)
		return -EINVAL;
	return fid->Volume == volume->id ? 0 : AFS_VNOVOL;
}

int fsd_volume_path(struct fsd_volume *volume, const AFSFid *fid, char path[FSD_PATH_MAX],
		    struct fsd_record *record)
{
	int rc = check_fid(volume, fid);

	if (rc)
		return rc;
	return fsd_volume_error(fsd_store_find(volume->store, fid->Vnode, fid->Unique, 0, record,
					       path, FSD_PATH_MAX));
}

/*
 * The name does not refer to the object any more. If it was the object's last name, its FID must
 * never be used again.
 */
static void forget_name(struct fsd_volume *volume, const struct fsd_object *object,
			const void *actor)
{
	const struct fsd_record *r = &object->record;
	const char *slash = strrchr(object->path, '/');
	struct fsd_gone gone = {0};

	fsd_store_unname(volume->store, r->parent, r->parent_unique,
			 slash ? slash + 1 : object->path, r->vnode, fsd_gone_add, &gone);
	if (gone.count)
		fsd_volume_changed(volume, r->parent, r->parent_unique, actor);
	fsd_gone_report(volume, &gone);
}

/*
 * If the object differs from the state that its data version stands for, give it the next version.
 * The record was read before the object's status and must not have changed since, so that versions
 * follow the order of changes in the tree.
 */
static int refresh_version(struct fsd_volume *volume, struct fsd_object *object, const void *actor)
{
	struct fsd_record *r = &object->record, new = *r;
	int rc;

	new.seen = fsd_stat_stamp(&object->st);
	if (r->seen == new.seen)
		return 0;
	new.inode = object->st.inode;
	new.birth = fsd_stat_birth(&object->st);
	new.clean = false;
	if (r->kind == FSD_DIR)
		new.image_length = 0;
	else if (r->seen)
		new.version = fsd_volume_next_version(r->version);
	rc = fsd_store_update(volume->store, r, &new);
	if (rc)
		return rc;
	if (r->seen)
		fsd_volume_changed(volume, object->fid.Vnode, object->fid.Unique, actor);
	*r = new;
	return 0;
}

static uint32_t to_seconds(int64_t ns)
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
	/* Clients take a symbolic link without x bits for a mount point. */
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
	s->ClientModTime = to_seconds(st->mtime_ns);
	s->ServerModTime = to_seconds(st->ctime_ns);
}

static bool too_large(const struct fsd_object *dir)
{
	const struct fsd_record *r = &dir->record;

	return r->refused &&
	       (r->refused == fsd_stat_stamp(&dir->st) || monotonic_ns() < r->retry_ns);
}

/*
 * A directory. The length of its image is part of its status, so it must have been listed since its
 * last change.
 */
static int get_directory_status(struct fsd_volume *volume, struct fsd_object *object,
				const void *actor)
{
	struct fsd_record *r = &object->record;
	int rc = 0;

	object->may_read = fsd_access_rights(volume, &object->st) & AFS_RIGHT_LOOKUP;
	if (!object->may_read) {
		rc = refresh_version(volume, object, actor);
		r->links = 2;
		r->image_length = 2048;
	} else if (too_large(object)) {
		rc = -EFBIG;
	} else if (r->image_length == 0 || r->seen != fsd_stat_stamp(&object->st)) {
		rc = fsd_image_scan(volume, object, actor, NULL);
	}
	return rc;
}

/* Read the status at the path, and check that it belongs to the object. */
static int look_at_object(struct fsd_volume *volume, struct fsd_object *object, const void *actor)
{
	int rc = fsd_access_path(volume, object);

	if (rc)
		return rc;
	rc = volume->layer->ops->stat_path(volume->layer, object->path, &object->st);
	if (rc)
		return rc;
	if (!fsd_volume_is_of(&object->record, &object->st))
		return -ENOENT;
	if (object->record.kind == FSD_DIR)
		return get_directory_status(volume, object, actor);
	object->may_read = fsd_access_rights(volume, &object->st) & AFS_RIGHT_READ;
	return refresh_version(volume, object, actor);
}

/*
 * The object is not at its path. A directory above it may have been renamed; that is found by
 * listing what has changed, from the root down.
 */
static void look_above(struct fsd_volume *volume, const struct fsd_record *record,
		       const void *actor)
{
	AFSFid fid = {volume->id, record->parent, record->parent_unique};
	struct fsd_object *above = malloc(sizeof(*above));

	if (above)
		fsd_volume_get(volume, &fid, actor, above);
	free(above);
}

int fsd_volume_get(struct fsd_volume *volume, const AFSFid *fid, const void *actor,
		   struct fsd_object *object)
{
	bool looked_above = false;
	unsigned nth = 0;
	int rc = check_fid(volume, fid);

	if (rc)
		return rc;
	object->fid = *fid;
	/*
	 * By its first name, then by others if the object is not there or cannot be reached that
	 * way.
	 */
	for (int tries = 0; tries < GET_TRIES; tries++) {
		rc = fsd_store_find(volume->store, fid->Vnode, fid->Unique, nth, &object->record,
				    object->path, FSD_PATH_MAX);
		if (rc) {
			rc = nth ? -EACCES : rc;
			break;
		}
		rc = look_at_object(volume, object, actor);
		if (rc == -EACCES) {
			nth++;
		} else if (fsd_volume_error(rc) == AFS_VNOVNODE && fid->Vnode != AFS_ROOT_VNODE) {
			if (looked_above)
				forget_name(volume, object, actor);
			else
				look_above(volume, &object->record, actor);
			looked_above = !looked_above;
		} else if (rc != -EAGAIN) {
			break;
		}
	}
	if (!rc)
		fill_status(volume, object);
	return fsd_volume_error(rc);
}

int fsd_volume_image(struct fsd_volume *volume, struct fsd_object *object, const void *actor,
		     struct fsd_image **image)
{
	int rc;

	for (int tries = 0; tries < IMAGE_TRIES; tries++) {
		*image = fsd_image_find(volume, &object->record);
		if (*image)
			return 0;
		rc = fsd_image_scan(volume, object, actor, image);
		afs_status_set_length(&object->status, object->record.image_length);
		afs_status_set_version(&object->status, object->record.version);
		object->status.LinkCount = object->record.links;
		if (rc != -EAGAIN)
			return fsd_volume_error(rc);
		rc = fsd_volume_get(volume, &object->fid, actor, object);
		if (rc)
			return rc;
		if (!object->may_read)
			return -EACCES;
	}
	return AFS_VBUSY; /* it changes too fast to be listed */
}

/*
 * Make sure that every later change of the open file changes its time stamps. Pages that were
 * written through a mapping show no further change until they are on the disk, so they are written
 * there first. -EAGAIN: the file changed meanwhile.
 */
static int make_clean(struct fsd_volume *volume, struct fsd_object *object, struct fsd_file *file)
{
	const struct fsd_layer_ops *ops = volume->layer->ops;
	struct fsd_record new = object->record;
	struct fsd_stat st;
	int rc;

	if (object->record.clean || !ops->write_back)
		return 0;
	ops->write_back(file);
	rc = ops->stat_file(file, &st);
	if (rc)
		return rc;
	if (!fsd_stat_same(&st, &object->st))
		return -EAGAIN;
	new.clean = true;
	return fsd_store_update(volume->store, &object->record, &new);
}

/* Open the file, if it is still the version that was found. */
static int open_version(struct fsd_volume *volume, struct fsd_object *object,
			struct fsd_file **file)
{
	const struct fsd_layer_ops *ops = volume->layer->ops;
	struct fsd_stat st;
	int rc = ops->open(volume->layer, object->path, file);

	if (rc)
		return rc == -ENOENT || rc == -EINVAL ? -EAGAIN
						      : rc; /* it was replaced meanwhile */
	rc = ops->stat_file(*file, &st);
	if (rc)
		goto fail;
	rc = -EAGAIN;
	if (fsd_stat_stamp(&st) != object->record.seen || !fsd_stat_same(&st, &object->st))
		goto fail;
	rc = make_clean(volume, object, *file);
	if (rc)
		goto fail;
	return 0;
fail:
	ops->close(*file);
	return rc;
}

int fsd_volume_open_file(struct fsd_volume *volume, const AFSFid *fid, const void *actor,
			 struct fsd_object *object, struct fsd_file **file)
{
	int rc = -EAGAIN;

	for (int tries = 0; tries < OPEN_TRIES && rc == -EAGAIN; tries++) {
		struct fsd_stat st;
		int64_t age;

		rc = fsd_volume_get(volume, fid, actor, object);
		if (rc)
			return rc;
		if (object->record.kind != FSD_FILE)
			return -EISDIR;
		if (!object->may_read)
			return -EACCES;
		age = wall_ns() - object->st.ctime_ns;
		if (age >= 0 && age < FSD_TICK_NS && tries < OPEN_TRIES - 1 &&
		    fsd_volume_settle(volume, object->path, &st))
			rc = -EAGAIN;
		else
			rc = open_version(volume, object, file);
	}
	return fsd_volume_error(rc); /* -EAGAIN: it changes too fast */
}

int fsd_volume_child(struct fsd_volume *volume, const AFSFid *directory, const char *name,
		     AFSFid *fid)
{
	fid->Volume = directory->Volume;
	return fsd_volume_error(fsd_store_child(volume->store, directory->Vnode, directory->Unique,
						name, &fid->Vnode, &fid->Unique));
}

void fsd_volume_check(struct fsd_volume *volume, const AFSFid *fid)
{
	struct fsd_object *object = malloc(sizeof(*object));

	/* Permission was revoked: the holders of promises must ask again, and are then refused. */
	if (object && fsd_volume_get(volume, fid, NULL, object) == -EACCES)
		fsd_volume_changed(volume, fid->Vnode, fid->Unique, NULL);
	free(object);
}

/* A new store, or another tree under the same name: all FIDs are new. */
static int start_anew(struct fsd_volume *volume, const struct fsd_volume_options *options,
		      const struct fsd_stat *st, struct fsd_meta *meta)
{
	uint32_t now = (uint32_t)time(NULL);
	struct fsd_record root = {0};

	/* The root keeps its FID, so its version must not go back. */
	fsd_store_find(volume->store, AFS_ROOT_VNODE, AFS_ROOT_UNIQUE, 0, &root, NULL, 0);
	root = (struct fsd_record){.vnode = AFS_ROOT_VNODE,
				   .unique = AFS_ROOT_UNIQUE,
				   .kind = FSD_DIR,
				   .inode = st->inode,
				   .birth = fsd_stat_birth(st),
				   .version = fsd_volume_next_version(root.version)};
	if (meta->volume == 0)
		meta->volume = options->new_id;
	meta->creation = now > meta->creation ? now : meta->creation + 1;
	meta->root_inode = st->inode;
	memset(meta->root, 0, sizeof(meta->root));
	strncpy(meta->root, options->root, sizeof(meta->root) - 1);
	return fsd_store_start(volume->store, meta, &root);
}

static int open_meta(struct fsd_volume *volume, const struct fsd_volume_options *options)
{
	struct fsd_meta *meta = calloc(1, sizeof(*meta));
	struct fsd_stat root;
	int rc;

	if (!meta)
		return -ENOMEM;
	rc = volume->layer->ops->stat_path(volume->layer, "", &root);
	if (rc)
		goto out;
	rc = fsd_store_meta(volume->store, meta);
	/* The tree is identified by path and inode; the number of the device may change at each boot. */
	if (rc == -ENOENT ||
	    (!rc && (meta->root_inode != root.inode || strcmp(meta->root, options->root))))
		rc = start_anew(volume, options, &root, meta);
	volume->id = meta->volume;
	volume->creation = meta->creation;
out:
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
	pthread_mutex_init(&volume->scans_lock, NULL);
	pthread_cond_init(&volume->scans_ended, NULL);
	rc = fsd_image_cache_start(&volume->images);
	if (rc)
		goto fail;
	rc = open_meta(volume, options);
	if (rc)
		goto fail;
	*out = volume;
	return 0;
fail:
	fsd_volume_close(volume);
	return rc;
}

void fsd_volume_close(struct fsd_volume *volume)
{
	if (!volume)
		return;
	assert(!volume->scans);
	fsd_image_cache_stop(&volume->images);
	pthread_mutex_destroy(&volume->access_lock);
	pthread_mutex_destroy(&volume->scans_lock);
	pthread_cond_destroy(&volume->scans_ended);
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
