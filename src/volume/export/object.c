/* SPDX-License-Identifier: BSD-2-Clause */
/* Objects of the exported directory: lookup of FIDs, versions, status, rights, opening of files. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "common/clock.h"
#include "volume/export/object.h"

#define OPEN_TRIES  4
#define IMAGE_TRIES 5
#define GET_TRIES   100
#define CACHE_NS    1000000000ull /* how long a result is used again */

/* -- results and changes -- */

static int export_result(int rc)
{
	switch (rc) {
	case -ENOENT:
	case -ENOTDIR:
	case -ELOOP:
	case -EXDEV:
		return STORE_VNOVNODE;
	case -EAGAIN:
		return STORE_VBUSY; /* the client waits and tries again */
	case -EPERM:
		return -EACCES;
	default:
		return rc;
	}
}

void export_report_change(struct export *export, uint32_t vnode, uint32_t unique, const void *actor)
{
	struct store_fid fid = {export->id, vnode, unique};

	if (export->hooks.changed)
		export->hooks.changed(export->hooks.arg, &fid, actor);
}

/*
 * Versions follow the clock, in microseconds. Even if the state is lost or replaced by an old copy,
 * a FID and version that a client has seen never stand for other data.
 */
uint64_t export_next_version(uint64_t version)
{
	int64_t now = wall_ns() / 1000;

	return now > 0 && (uint64_t)now > version ? (uint64_t)now : version + 1;
}

int export_settle(struct export *export, const char *path, struct export_stat *st)
{
	for (int tries = 0;; tries++) {
		int rc = export->layer->ops->stat_path(export->layer, path, st);
		int64_t age = wall_ns() - st->ctime_ns;

		if (rc || age < 0 || age >= EXPORT_TICK_NS || tries == 3)
			return rc;
		struct timespec ts = {.tv_nsec = (long)(EXPORT_TICK_NS - age)};

		nanosleep(&ts, NULL);
	}
}

bool export_is_of(const struct export_record *record, const struct export_stat *st)
{
	uint32_t birth = export_stat_birth(st);

	if (st->kind != record->kind)
		return false;
	if (record->inode == 0 || record->vnode == STORE_ROOT_VNODE)
		return true;
	/* A link cannot change: if it differs, it is another link. */
	if (st->kind == STORE_SYMLINK && record->seen)
		return export_stat_stamp(st) == record->seen;
	return st->inode == record->inode && (!birth || !record->birth || birth == record->birth);
}

void export_add_gone(void *arg, uint32_t vnode, uint32_t unique)
{
	struct export_gone *gone = arg;

	if (gone->count == gone->room) {
		size_t room = gone->room ? gone->room * 2 : 64;
		uint32_t *more = reallocarray(gone->fids, room, 2 * sizeof(*more));

		if (!more)
			return; /* the promises will expire */
		gone->fids = more;
		gone->room = room;
	}
	gone->fids[2 * gone->count] = vnode;
	gone->fids[2 * gone->count++ + 1] = unique;
}

void export_report_gone(struct export *export, struct export_gone *gone)
{
	for (size_t i = 0; i < gone->count; i++)
		export_report_change(export, gone->fids[2 * i], gone->fids[2 * i + 1], NULL);
	free(gone->fids);
}

/* -- access by permission bits: those for "other", from the root of the export down -- */

/* Every directory on the way to `path` must let "other" pass. 1, 0 or -errno. */
static int walk_allowed(struct export *export, const char *path)
{
	char prefix[EXPORT_PATH_MAX];
	size_t length = 0;

	for (;;) {
		struct export_stat st;
		int rc;

		memcpy(prefix, path, length);
		prefix[length] = 0;
		rc = export->layer->ops->stat_path(export->layer, prefix, &st);
		if (rc)
			return rc;
		if (st.kind != STORE_DIR)
			return -ENOTDIR;
		if (!(st.mode & S_IXOTH))
			return 0;

		const char *from = path + length + (length > 0);
		const char *slash = strchr(from, '/');

		if (!slash)
			return 1;
		length = (size_t)(slash - path);
	}
}

static int check_access_path(struct export *export, const struct export_object *object)
{
	const struct export_record *r = &object->record;
	uint64_t now = (uint64_t)read_clock_ns(CLOCK_MONOTONIC_COARSE);
	struct access_slot *slot;
	int allowed = -1;

	if (export->all_files || r->vnode == STORE_ROOT_VNODE)
		return 0;
	slot = &export->access[r->parent % ACCESS_SLOTS];
	pthread_mutex_lock(&export->access_lock);
	if (slot->vnode == r->parent && slot->unique == r->parent_unique && now < slot->until_ns)
		allowed = slot->allowed;
	pthread_mutex_unlock(&export->access_lock);
	if (allowed < 0) {
		allowed = walk_allowed(export, object->path);
		if (allowed < 0)
			return allowed;
		pthread_mutex_lock(&export->access_lock);
		*slot = (struct access_slot){.vnode = r->parent,
					     .unique = r->parent_unique,
					     .allowed = allowed,
					     .until_ns = now + CACHE_NS};
		pthread_mutex_unlock(&export->access_lock);
	}
	return allowed ? 0 : -EACCES;
}

void export_forget_access(struct export *export)
{
	pthread_mutex_lock(&export->access_lock);
	memset(export->access, 0, sizeof(export->access));
	pthread_mutex_unlock(&export->access_lock);
}

/* Rights on the object itself; the directories above it have been checked. */
static uint32_t derive_rights(const struct export *export, const struct export_stat *st)
{
	uint32_t rights = 0;

	/*
	 * Read permission includes read locks: clients check these rights before they ask for one.
	 */
	if (export->all_files || st->kind == STORE_SYMLINK)
		return STORE_READ | STORE_LOOKUP | STORE_LOCK;
	/* The status of a file that may not be read is available, as it is in the export itself. */
	if (st->kind == STORE_FILE)
		return st->mode & S_IROTH ? STORE_READ | STORE_LOOKUP | STORE_LOCK : STORE_LOOKUP;
	/*
	 * In AFS the rights of a directory apply to its names (l) and to the files in it (r, k).
	 */
	if (st->mode & S_IROTH)
		rights |= STORE_LOOKUP;
	if (st->mode & S_IXOTH)
		rights |= STORE_READ | STORE_LOCK;
	return rights;
}

/* -- objects -- */

static int check_fid(const struct export *export, const struct store_fid *fid)
{
	if (fid->volume == 0 || fid->vnode == 0)
		return -EINVAL;
	return fid->volume == export->id ? 0 : STORE_VNOVOL;
}

int export_find_path(struct export *export, const struct store_fid *fid, char path[EXPORT_PATH_MAX],
		     struct export_record *record)
{
	int rc = check_fid(export, fid);

	if (rc)
		return rc;
	return export_result(
		fids_find(export->fids, fid->vnode, fid->unique, 0, record, path, EXPORT_PATH_MAX));
}

/*
 * The name does not refer to the object any more. If it was the object's last name, its FID must
 * never be used again.
 */
static void forget_name(struct export *export, const struct export_object *object,
			const void *actor)
{
	const struct export_record *r = &object->record;
	const char *slash = strrchr(object->path, '/');
	struct export_gone gone = {0};

	fids_unname(export->fids, r->parent, r->parent_unique, slash ? slash + 1 : object->path,
		    r->vnode, export_add_gone, &gone);
	if (gone.count)
		export_report_change(export, r->parent, r->parent_unique, actor);
	export_report_gone(export, &gone);
}

/*
 * If the object differs from the state that its data version stands for, give it the next version.
 * The record was read before the object's status and must not have changed since, so that versions
 * follow the order of changes in the tree.
 */
static int refresh_version(struct export *export, struct export_object *object, const void *actor)
{
	struct export_record *r = &object->record, new = *r;
	int rc;

	new.seen = export_stat_stamp(&object->st);
	if (r->seen == new.seen)
		return 0;
	new.inode = object->st.inode;
	new.birth = export_stat_birth(&object->st);
	new.clean = false;
	if (r->kind == STORE_DIR)
		new.image_length = 0;
	else if (r->seen)
		new.version = export_next_version(r->version);
	rc = fids_update(export->fids, r, &new);
	if (rc)
		return rc;
	if (r->seen)
		export_report_change(export, object->fid.vnode, object->fid.unique, actor);
	*r = new;
	return 0;
}

static uint32_t to_seconds(int64_t ns)
{
	return ns < 0 ? 0 : (uint32_t)(ns / 1000000000);
}

static void fill_status(const struct export *export, struct export_object *object)
{
	const struct export_record *r = &object->record;
	const struct export_stat *st = &object->st;
	bool directory = r->kind == STORE_DIR;
	uint32_t rights = derive_rights(export, st);

	object->status = (struct store_status){
		.fid = object->fid,
		.kind = r->kind,
		.links = directory ? r->links : st->links,
		.length = directory ? r->image_length : st->size,
		.version = r->version,
		.author = (int32_t)st->uid,
		.owner = (int32_t)st->uid,
		.group = st->gid,
		/* Clients take a symbolic link without x bits for a mount point. */
		.mode = r->kind == STORE_SYMLINK ? 0777 : st->mode,
		.parent = directory ? r->vnode : r->parent,
		.parent_unique = directory ? r->unique : r->parent_unique,
		.client_mtime = to_seconds(st->mtime_ns),
		.server_mtime = to_seconds(st->ctime_ns),
		.rights = rights,
		.anonymous = rights,
	};
}

static bool too_large(const struct export_object *dir)
{
	const struct export_record *r = &dir->record;

	return r->refused &&
	       (r->refused == export_stat_stamp(&dir->st) || monotonic_ns() < r->retry_ns);
}

/*
 * A directory. The length of its image is part of its status, so it must have been listed since its
 * last change.
 */
static int get_directory_status(struct export *export, struct export_object *object,
				const void *actor)
{
	struct export_record *r = &object->record;
	int rc = 0;

	object->may_read = derive_rights(export, &object->st) & STORE_LOOKUP;
	if (!object->may_read) {
		rc = refresh_version(export, object, actor);
		r->links = 2;
		r->image_length = 2048;
	} else if (too_large(object)) {
		rc = -EFBIG;
	} else if (r->image_length == 0 || r->seen != export_stat_stamp(&object->st)) {
		rc = export_scan_image(export, object, actor, NULL);
	}
	return rc;
}

/* Read the status at the path, and check that it belongs to the object. */
static int look_at_object(struct export *export, struct export_object *object, const void *actor)
{
	int rc = check_access_path(export, object);

	if (rc)
		return rc;
	rc = export->layer->ops->stat_path(export->layer, object->path, &object->st);
	if (rc)
		return rc;
	if (!export_is_of(&object->record, &object->st))
		return -ENOENT;
	if (object->record.kind == STORE_DIR)
		return get_directory_status(export, object, actor);
	object->may_read = derive_rights(export, &object->st) & STORE_READ;
	return refresh_version(export, object, actor);
}

/*
 * The object is not at its path. A directory above it may have been renamed; that is found by
 * listing what has changed, from the root down.
 */
static void look_above(struct export *export, const struct export_record *record, const void *actor)
{
	struct store_fid fid = {export->id, record->parent, record->parent_unique};
	struct export_object *above = malloc(sizeof(*above));

	if (above)
		export_get_object(export, &fid, actor, above);
	free(above);
}

int export_get_object(struct export *export, const struct store_fid *fid, const void *actor,
		      struct export_object *object)
{
	bool looked_above = false;
	unsigned nth = 0;
	int rc = check_fid(export, fid);

	if (rc)
		return rc;
	object->fid = *fid;
	/*
	 * By its first name, then by others if the object is not there or cannot be reached that
	 * way.
	 */
	for (int tries = 0; tries < GET_TRIES; tries++) {
		rc = fids_find(export->fids, fid->vnode, fid->unique, nth, &object->record,
			       object->path, EXPORT_PATH_MAX);
		if (rc) {
			rc = nth ? -EACCES : rc;
			break;
		}
		rc = look_at_object(export, object, actor);
		if (rc == -EACCES) {
			nth++;
		} else if (export_result(rc) == STORE_VNOVNODE && fid->vnode != STORE_ROOT_VNODE) {
			if (looked_above)
				forget_name(export, object, actor);
			else
				look_above(export, &object->record, actor);
			looked_above = !looked_above;
		} else if (rc != -EAGAIN) {
			break;
		}
	}
	if (!rc)
		fill_status(export, object);
	return export_result(rc);
}

int export_get_image(struct export *export, struct export_object *object, const void *actor,
		     struct export_image **image)
{
	int rc;

	for (int tries = 0; tries < IMAGE_TRIES; tries++) {
		*image = export_find_image(export, &object->record);
		if (*image)
			return 0;
		rc = export_scan_image(export, object, actor, image);
		object->status.length = object->record.image_length;
		object->status.version = object->record.version;
		object->status.links = object->record.links;
		if (rc != -EAGAIN)
			return export_result(rc);
		rc = export_get_object(export, &object->fid, actor, object);
		if (rc)
			return rc;
		if (!object->may_read)
			return -EACCES;
	}
	return STORE_VBUSY; /* it changes too fast to be listed */
}

/*
 * Make sure that every later change of the open file changes its time stamps. Pages that were
 * written through a mapping show no further change until they are on the disk, so they are written
 * there first. -EAGAIN: the file changed meanwhile.
 */
static int make_clean(struct export *export, struct export_object *object, struct export_file *file)
{
	const struct export_layer_ops *ops = export->layer->ops;
	struct export_record new = object->record;
	struct export_stat st;
	int rc;

	if (object->record.clean || !ops->write_back)
		return 0;
	ops->write_back(file);
	rc = ops->stat_file(file, &st);
	if (rc)
		return rc;
	if (!export_stat_same(&st, &object->st))
		return -EAGAIN;
	new.clean = true;
	return fids_update(export->fids, &object->record, &new);
}

/* Open the file, if it is still the version that was found. */
static int open_version(struct export *export, struct export_object *object,
			struct export_file **file)
{
	const struct export_layer_ops *ops = export->layer->ops;
	struct export_stat st;
	int rc = ops->open(export->layer, object->path, file);

	if (rc)
		return rc == -ENOENT || rc == -EINVAL ? -EAGAIN
						      : rc; /* it was replaced meanwhile */
	rc = ops->stat_file(*file, &st);
	if (rc)
		goto fail;
	rc = -EAGAIN;
	if (export_stat_stamp(&st) != object->record.seen || !export_stat_same(&st, &object->st))
		goto fail;
	rc = make_clean(export, object, *file);
	if (rc)
		goto fail;
	return 0;
fail:
	ops->close(*file);
	return rc;
}

int export_open_file(struct export *export, const struct store_fid *fid, const void *actor,
		     struct export_object *object, struct export_file **file)
{
	int rc = -EAGAIN;

	for (int tries = 0; tries < OPEN_TRIES && rc == -EAGAIN; tries++) {
		struct export_stat st;
		int64_t age;

		rc = export_get_object(export, fid, actor, object);
		if (rc)
			return rc;
		if (object->record.kind != STORE_FILE)
			return -EISDIR;
		if (!object->may_read)
			return -EACCES;
		age = wall_ns() - object->st.ctime_ns;
		if (age >= 0 && age < EXPORT_TICK_NS && tries < OPEN_TRIES - 1 &&
		    export_settle(export, object->path, &st))
			rc = -EAGAIN;
		else
			rc = open_version(export, object, file);
	}
	return export_result(rc); /* -EAGAIN: it changes too fast */
}

int export_find_child(struct export *export, const struct store_fid *directory, const char *name,
		      struct store_fid *fid)
{
	fid->volume = directory->volume;
	return export_result(fids_find_child(export->fids, directory->vnode, directory->unique,
					     name, &fid->vnode, &fid->unique));
}

void export_check_object(struct export *export, const struct store_fid *fid)
{
	struct export_object *object = malloc(sizeof(*object));

	/* Permission was revoked: the holders of promises must ask again, and are then refused. */
	if (object && export_get_object(export, fid, NULL, object) == -EACCES)
		export_report_change(export, fid->vnode, fid->unique, NULL);
	free(object);
}
