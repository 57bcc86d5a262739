/* SPDX-License-Identifier: BSD-2-Clause */
/* The exported directory as a store: its volume, status and rights. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "afs/fetchstatus.h"
#include "afs/numbers.h"
#include "fileserver/export/tree_store.h"

#define READONLY ".readonly"

static const struct fsd_viewer all_seeing = {.who = {.administrator = true}};

const struct fsd_viewer *fsd_export_viewer(const struct store_caller *caller)
{
	return caller && caller->who ? caller->who : &all_seeing;
}

/* -- the volume -- */

static void fill_volume(const struct export *export, struct store_volume *volume)
{
	const struct fsd_export_options *o = &export->options;
	struct fsd_layer *layer = fsd_volume_layer(o->volume);
	struct fsd_stat root;

	memset(volume, 0, sizeof(*volume));
	volume->id = volume->ro = fsd_volume_id(o->volume);
	volume->rw = FSD_RW_ID(volume->id);
	volume->type = STORE_RO;
	volume->online = true;
	snprintf(volume->name, sizeof(volume->name), "%.*s" READONLY,
		 (int)(sizeof(volume->name) - sizeof(READONLY)), fsd_volume_name(o->volume));
	volume->created = volume->copied = fsd_volume_creation(o->volume);
	volume->updated = volume->cloned = volume->created;
	if (layer->ops->stat_path(layer, "", &root) == 0)
		volume->updated = (uint32_t)(root.mtime_ns / 1000000000);
	volume->sync = o->released ? o->released : volume->created;
}

static int export_volume(struct store *store, uint32_t id, struct store_volume *volume)
{
	const struct export *export = (struct export *)store;
	struct fsd_used used;

	if (id != fsd_volume_id(export->options.volume))
		return STORE_VNOVOL;
	fill_volume(export, volume);
	fsd_usage_get(export->options.usage, 0, &used);
	volume->used_kib = used.kib;
	volume->files = used.objects;
	return 0;
}

/* The name may have the suffix. */
static int export_volume_by_name(struct store *store, const char *name, struct store_volume *volume)
{
	const struct export *export = (struct export *)store;
	const char *own = fsd_volume_name(export->options.volume);
	size_t length = strlen(own);

	if (strncmp(name, own, length) != 0 ||
	    (name[length] && strcmp(name + length, READONLY) != 0))
		return STORE_VNOVOL;
	fill_volume(export, volume);
	return 0;
}

static int export_volume_next(struct store *store, uint32_t id, struct store_volume *volume)
{
	const struct export *export = (struct export *)store;

	if (id >= fsd_volume_id(export->options.volume))
		return STORE_VNOVOL;
	fill_volume(export, volume);
	return 0;
}

static int export_space(struct store *store, struct store_space *space)
{
	struct fsd_layer *layer = fsd_volume_layer(((struct export *)store)->options.volume);
	struct fsd_space its;
	int rc = layer->ops->space(layer, &its);

	if (!rc)
		*space = (struct store_space){its.total_kib, its.available_kib};
	return rc;
}

/* -- rights -- */

static int check_viewer(const struct export *export, const struct fsd_viewer *viewer,
			const char *path)
{
	return fsd_guard_may(export->options.guard, &viewer->who, path) ? 0 : -EACCES;
}

/* Returns the part of the rights that the caller has under --allow. */
static uint32_t rights_of(const struct export *export, const struct fsd_who *who,
			  const struct fsd_object *object, uint32_t rights)
{
	enum fsd_sight sight = fsd_guard_may(export->options.guard, who, object->path);

	if (sight == FSD_SIGHT_NONE)
		return 0;
	/* These two rights of a directory apply to the files in it. */
	if (sight == FSD_SIGHT_WAY && object->record.kind == FSD_DIR)
		return rights & ~(uint32_t)(AFS_RIGHT_READ | AFS_RIGHT_LOCK);
	return rights;
}

/* Clients use the rights of anonymous callers for processes without a token. */
static uint32_t anonymous_rights(const struct export *export, const struct fsd_object *object)
{
	const struct fsd_who anonymous = {
		.refused = fsd_guard_protects(export->options.guard, FSD_FS)};

	return rights_of(export, &anonymous, object, object->status.AnonymousAccess);
}

void fsd_export_fill(const struct export *export, const struct fsd_viewer *viewer,
		     const struct fsd_object *object, struct store_status *status)
{
	const AFSFetchStatus *s = &object->status;

	*status = (struct store_status){
		.fid = {object->fid.Volume, object->fid.Vnode, object->fid.Unique},
		.kind = (enum store_kind)s->FileType,
		.links = s->LinkCount,
		.length = afs_status_length(s),
		.version = afs_status_version(s),
		.author = (int32_t)s->Author,
		.owner = (int32_t)s->Owner,
		.group = s->Group,
		.mode = s->UnixModeBits,
		.parent = s->ParentVnode,
		.parent_unique = s->ParentUnique,
		.client_mtime = s->ClientModTime,
		.server_mtime = s->ServerModTime,
		.rights = rights_of(export, &viewer->who, object, s->CallerAccess),
		.anonymous = anonymous_rights(export, object),
	};
}

/* -- objects -- */

int fsd_export_find(const struct export *export, const struct fsd_viewer *viewer,
		    const struct store_fid *fid, struct fsd_object *object)
{
	const AFSFid its = {fid->volume, fid->vnode, fid->unique};
	int rc = fsd_volume_path(export->options.volume, &its, object->path, &object->record);

	if (rc)
		return rc;
	rc = check_viewer(export, viewer, object->path);
	if (rc)
		return rc;
	if (viewer->promised && export->options.watch)
		fsd_watch_add(export->options.watch, &object->record, object->path);
	return 0;
}

int fsd_export_get(const struct export *export, const struct fsd_viewer *viewer,
		   const struct store_fid *fid, struct fsd_object *object)
{
	const AFSFid its = {fid->volume, fid->vnode, fid->unique};
	int rc = fsd_volume_get(export->options.volume, &its, viewer->actor, object);

	return rc ? rc
		  : check_viewer(export, viewer, object->path); /* it may have moved meanwhile */
}

static int export_status(struct store *store, const struct store_caller *caller,
			 const struct store_fid *fid, struct store_status *status)
{
	const struct export *export = (struct export *)store;
	const struct fsd_viewer *viewer = fsd_export_viewer(caller);
	struct fsd_object object;
	int rc = fsd_export_find(export, viewer, fid, &object);

	if (rc)
		return rc;
	rc = fsd_export_get(export, viewer, fid, &object);
	if (rc)
		return rc;
	fsd_export_fill(export, viewer, &object, status);
	return 0;
}

/*
 * The tree has no ACLs: the rights of all callers and those of all callers with a token. Users named
 * by --allow are left out.
 */
static int export_acl(struct store *store, const struct store_caller *caller,
		      const struct store_fid *fid, struct store_acl *acl,
		      struct store_status *status)
{
	static const struct fsd_who somebody = {.authenticated = true};
	const struct export *export = (struct export *)store;
	const struct fsd_viewer *viewer = fsd_export_viewer(caller);
	struct fsd_object object;
	uint32_t authenticated;
	int rc = fsd_export_get(export, viewer, fid, &object);

	if (rc)
		return rc;
	fsd_export_fill(export, viewer, &object, status);
	authenticated = rights_of(export, &somebody, &object, object.status.CallerAccess);
	*acl = (struct store_acl){0};
	if (status->anonymous != authenticated)
		acl->entry[acl->positive++] = (struct store_ace){STORE_AUTHUSER, authenticated};
	acl->entry[acl->positive++] = (struct store_ace){STORE_ANYUSER, status->anonymous};
	return 0;
}

static void export_close(struct store *store)
{
	free(store);
}

static const struct store_ops export_ops = {
	.close = export_close,
	.volume = export_volume,
	.volume_by_name = export_volume_by_name,
	.volume_next = export_volume_next,
	.space = export_space,
	.status = export_status,
	.acl = export_acl,
	.read_begin = fsd_export_read_begin,
	.read = fsd_export_read,
	.read_ahead = fsd_export_read_ahead,
	.read_end = fsd_export_read_end,
};

struct store *fsd_export_open(const struct fsd_export_options *options)
{
	struct export *export = calloc(1, sizeof(*export));

	if (!export)
		return NULL;
	export->base.ops = &export_ops;
	export->options = *options;
	return &export->base;
}
