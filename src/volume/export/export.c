/* SPDX-License-Identifier: BSD-2-Clause */
/* The exported directory as a store: its volume, rights, and reading. */
#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "volume/export/object.h"

#define READONLY    ".readonly"
#define CHECK_EVERY 22 /* the file is compared after each 2^22 bytes */

static struct export *export_of(struct store *store)
{
	return (struct export *)store;
}

/* The caller; never NULL. */
static const struct export_viewer *viewer_of(const struct store_caller *caller)
{
	static const struct export_viewer all_seeing = {.sees_all = true};

	return caller && caller->who ? caller->who : &all_seeing;
}

/* -- the volume -- */

static void fill_volume(const struct export *export, struct store_volume *volume)
{
	struct export_stat root;

	memset(volume, 0, sizeof(*volume));
	volume->id = volume->ro = export->id;
	volume->rw = EXPORT_RW_ID(volume->id);
	volume->type = STORE_RO;
	volume->online = true;
	snprintf(volume->name, sizeof(volume->name), "%.*s" READONLY,
		 (int)(sizeof(volume->name) - sizeof(READONLY)), export->name);
	volume->created = volume->copied = export->creation;
	volume->updated = volume->cloned = volume->created;
	if (export->layer->ops->stat_path(export->layer, "", &root) == 0)
		volume->updated = (uint32_t)(root.mtime_ns / 1000000000);
	volume->sync = export->released ? export->released : volume->created;
}

static int export_volume(struct store *store, uint32_t id, struct store_volume *volume)
{
	const struct export *export = export_of(store);
	struct export_used used;

	if (id != export->id)
		return STORE_VNOVOL;
	fill_volume(export, volume);
	export_usage_get(export->usage, 0, &used);
	volume->used_kib = used.kib;
	volume->files = used.objects;
	return 0;
}

/* The name may have the suffix. */
static int export_volume_by_name(struct store *store, const char *name, struct store_volume *volume)
{
	const struct export *export = export_of(store);
	size_t length = strlen(export->name);

	if (strncmp(name, export->name, length) != 0 ||
	    (name[length] && strcmp(name + length, READONLY) != 0))
		return STORE_VNOVOL;
	fill_volume(export, volume);
	return 0;
}

static int export_volume_next(struct store *store, uint32_t id, struct store_volume *volume)
{
	const struct export *export = export_of(store);

	if (id >= export->id)
		return STORE_VNOVOL;
	fill_volume(export, volume);
	return 0;
}

static int export_space(struct store *store, struct store_space *space)
{
	struct export_layer *layer = export_of(store)->layer;

	return layer->ops->space(layer, space);
}

/* -- rights -- */

static enum export_sight find_sight(const struct export *export, const void *who, const char *path)
{
	const struct export_hooks *hooks = &export->hooks;

	return hooks->may_see ? hooks->may_see(hooks->arg, who, path) : EXPORT_SIGHT_ALL;
}

static int check_viewer(const struct export *export, const struct export_viewer *viewer,
			const char *path)
{
	return viewer->sees_all || find_sight(export, viewer->who, path) != EXPORT_SIGHT_NONE
		       ? 0
		       : -EACCES;
}

/* Returns the rights of a caller, which has those of "other" on what it may see. */
static uint32_t rights_of(const struct export *export, const void *who,
			  const struct export_object *object)
{
	enum export_sight sight = find_sight(export, who, object->path);

	if (sight == EXPORT_SIGHT_NONE)
		return 0;
	/* These two rights of a directory apply to the files in it. */
	if (sight == EXPORT_SIGHT_WAY && object->record.kind == STORE_DIR)
		return object->status.rights & ~(uint32_t)(STORE_READ | STORE_LOCK);
	return object->status.rights;
}

static void fill_viewed_status(const struct export *export, const struct export_viewer *viewer,
			       const struct export_object *object, struct store_status *status)
{
	*status = object->status;
	if (!viewer->sees_all)
		status->rights = rights_of(export, viewer->who, object);
	/* Clients use the rights of anonymous callers for processes without a token. */
	status->anonymous = rights_of(export, export->hooks.anonymous, object);
}

/* -- objects -- */

/*
 * Path and record of an object that the viewer may see, without access to the tree. It is watched
 * from now on if there is a promise on it. 0 or a result.
 */
static int find_viewed_path(struct export *export, const struct export_viewer *viewer,
			    const struct store_fid *fid, struct export_object *object)
{
	int rc = export_find_path(export, fid, object->path, &object->record);

	if (rc)
		return rc;
	rc = check_viewer(export, viewer, object->path);
	if (rc)
		return rc;
	if (viewer->promised && export->watch)
		export_watch_add(export->watch, &object->record, object->path);
	return 0;
}

/* All of the object, if the viewer may see it. 0 or a result. */
static int get_viewed_object(struct export *export, const struct export_viewer *viewer,
			     const struct store_fid *fid, struct export_object *object)
{
	int rc = export_get_object(export, fid, viewer->actor, object);

	return rc ? rc
		  : check_viewer(export, viewer, object->path); /* it may have moved meanwhile */
}

static int export_status(struct store *store, const struct store_caller *caller,
			 const struct store_fid *fid, struct store_status *status)
{
	struct export *export = export_of(store);
	const struct export_viewer *viewer = viewer_of(caller);
	struct export_object object;
	int rc = find_viewed_path(export, viewer, fid, &object);

	if (rc)
		return rc;
	rc = get_viewed_object(export, viewer, fid, &object);
	if (rc)
		return rc;
	fill_viewed_status(export, viewer, &object, status);
	return 0;
}

/*
 * The tree has no ACLs: the rights of all callers and those of all callers with an identity. Users that
 * may_see() tells apart are left out.
 */
static int export_acl(struct store *store, const struct store_caller *caller,
		      const struct store_fid *fid, struct store_acl *acl,
		      struct store_status *status)
{
	struct export *export = export_of(store);
	const struct export_viewer *viewer = viewer_of(caller);
	struct export_object object;
	uint32_t authenticated;
	int rc = get_viewed_object(export, viewer, fid, &object);

	if (rc)
		return rc;
	fill_viewed_status(export, viewer, &object, status);
	authenticated = rights_of(export, export->hooks.authenticated, &object);
	*acl = (struct store_acl){0};
	if (status->anonymous != authenticated)
		acl->entry[acl->positive++] = (struct store_ace){STORE_AUTHUSER, authenticated};
	acl->entry[acl->positive++] = (struct store_ace){STORE_ANYUSER, status->anonymous};
	return 0;
}

/* -- reading files, images of directories, and links -- */

/* Constant, but for `read`. */
struct store_reader {
	struct export *export;
	struct export_file *file;   /* of a file */
	struct export_stat st;	    /* that it must keep */
	struct export_image *image; /* of a directory */
	const uint8_t *bytes;	    /* of a directory or a link; NULL: a file */
	size_t length;
	_Atomic uint64_t read; /* bytes of the file */
	bool link;	       /* there is room for its text */
	uint8_t text[];
};

static int open_directory_image(struct export *export, const struct export_viewer *viewer,
				struct export_object *object, struct store_reader *reader)
{
	int rc;

	if (!object->may_read)
		return -EACCES;
	rc = export_get_image(export, object, viewer->actor, &reader->image);
	if (!rc) {
		reader->bytes = reader->image->bytes;
		reader->length = reader->image->length;
	}
	return rc;
}

static int open_link(const struct export_object *object, struct store_reader *reader)
{
	struct export_layer *layer = reader->export->layer;
	struct export_stat st;
	ssize_t n =
		layer->ops->readlink(layer, object->path, (char *)reader->text, EXPORT_PATH_MAX);
	int rc;

	if (n < 0)
		return n == -ENOENT || n == -EINVAL ? STORE_VNOVNODE : (int)n;
	rc = layer->ops->stat_path(layer, object->path, &st);
	if (rc || !export_stat_same(&st, &object->st) || (uint64_t)n != st.size)
		return -EIO; /* it was replaced meanwhile */
	reader->bytes = reader->text;
	reader->length = (size_t)n;
	return 0;
}

static int open_file(struct export *export, const struct export_viewer *viewer,
		     const struct store_fid *fid, struct export_object *object,
		     struct store_reader *reader)
{
	struct export_file *file;
	int rc = export_open_file(export, fid, viewer->actor, object, &file);

	/* After a failure `file` may name one that is closed. */
	if (rc)
		return rc;
	reader->file = file;
	reader->st = object->st;
	/* It may have been moved since it was found. */
	return check_viewer(export, viewer, object->path);
}

static int open_any(struct export *export, const struct export_viewer *viewer,
		    const struct store_fid *fid, struct export_object *object,
		    struct store_reader *reader)
{
	int rc;

	if (object->record.kind == STORE_FILE)
		return open_file(export, viewer, fid, object, reader);
	rc = get_viewed_object(export, viewer, fid, object);
	if (rc)
		return rc;
	if (object->record.kind == STORE_DIR)
		return open_directory_image(export, viewer, object, reader);
	return reader->link ? open_link(object, reader) : STORE_VNOVNODE;
}

/* Whether the file is still the same version: 0, -EIO or -errno. */
static int check_read_version(const struct store_reader *reader)
{
	struct export_stat st;
	int rc;

	assert(reader->file);
	rc = reader->file->layer->ops->stat_file(reader->file, &st);

	if (rc)
		return rc;
	return export_stat_same(&st, &reader->st) && st.links > 0 ? 0 : -EIO;
}

static int export_read_end(struct store_reader *reader)
{
	int rc = 0;

	if (!reader)
		return 0;
	if (reader->file) {
		if (atomic_load(&reader->read))
			rc = check_read_version(reader);
		reader->file->layer->ops->close(reader->file);
	}
	export_release_image(reader->export, reader->image);
	free(reader);
	return rc;
}

static int export_read_begin(struct store *store, const struct store_caller *caller,
			     const struct store_fid *fid, struct store_reader **out,
			     struct store_status *status)
{
	struct export *export = export_of(store);
	const struct export_viewer *viewer = viewer_of(caller);
	struct store_reader *reader;
	struct export_object object;
	int rc = find_viewed_path(export, viewer, fid, &object);
	bool link;

	if (rc)
		return rc;
	link = object.record.kind == STORE_SYMLINK;
	reader = calloc(1, sizeof(*reader) + (link ? EXPORT_PATH_MAX : 0));
	if (!reader)
		return STORE_VBUSY;
	reader->link = link;
	reader->export = export;
	rc = open_any(export, viewer, fid, &object, reader);
	if (rc) {
		export_read_end(reader);
		return rc;
	}
	fill_viewed_status(export, viewer, &object, status);
	*out = reader;
	return 0;
}

static ssize_t export_read(struct store_reader *reader, const struct iovec *iov, int count,
			   uint64_t offset, unsigned flags)
{
	uint64_t before;
	ssize_t n;
	int rc;

	if (reader->bytes)
		return store_read_memory(reader->bytes, reader->length, iov, count, offset);
	assert(reader->file);
	n = reader->file->layer->ops->preadv(reader->file, iov, count, offset,
					     flags & STORE_CACHED);
	if (n <= 0)
		return n;
	before = atomic_fetch_add(&reader->read, (uint64_t)n);
	if (before >> CHECK_EVERY == (before + (uint64_t)n) >> CHECK_EVERY)
		return n;
	rc = check_read_version(reader);
	return rc ? rc : n;
}

static void export_read_ahead(struct store_reader *reader, uint64_t offset, uint64_t length)
{
	if (reader->file && reader->file->layer->ops->advise)
		reader->file->layer->ops->advise(reader->file, offset, length);
}

/* -- opening -- */

/* Everything but the files of the volume. */
static void free_export(struct export *export)
{
	assert(!export->scans);
	export_stop_images(&export->images);
	pthread_mutex_destroy(&export->access_lock);
	pthread_mutex_destroy(&export->scans_lock);
	pthread_cond_destroy(&export->scans_ended);
	free(export);
}

static void export_close(struct store *store)
{
	struct export *export = export_of(store);

	export_watch_stop(export->watch);
	export_usage_stop(export->usage);
	fids_close(export->fids);
	free_export(export);
}

static const struct store_ops export_ops = {
	.close = export_close,
	.volume = export_volume,
	.volume_by_name = export_volume_by_name,
	.volume_next = export_volume_next,
	.space = export_space,
	.status = export_status,
	.acl = export_acl,
	.read_begin = export_read_begin,
	.read = export_read,
	.read_ahead = export_read_ahead,
	.read_end = export_read_end,
};

/* A new file of FIDs, or another tree under the same name: all FIDs are new. */
static int start_anew(struct export *export, const struct export_options *options,
		      const struct export_stat *st, struct fids_meta *meta)
{
	uint32_t now = (uint32_t)time(NULL);
	struct export_record root = {0};

	/* The root keeps its FID, so its version must not go back. */
	fids_find(export->fids, STORE_ROOT_VNODE, STORE_ROOT_UNIQUE, 0, &root, NULL, 0);
	root = (struct export_record){.vnode = STORE_ROOT_VNODE,
				      .unique = STORE_ROOT_UNIQUE,
				      .kind = STORE_DIR,
				      .inode = st->inode,
				      .birth = export_stat_birth(st),
				      .version = export_next_version(root.version)};
	if (meta->volume == 0)
		meta->volume = options->new_id;
	meta->creation = now > meta->creation ? now : meta->creation + 1;
	meta->root_inode = st->inode;
	memset(meta->root, 0, sizeof(meta->root));
	strncpy(meta->root, options->root, sizeof(meta->root) - 1);
	return fids_start_anew(export->fids, meta, &root);
}

static int open_meta(struct export *export, const struct export_options *options)
{
	struct fids_meta *meta = calloc(1, sizeof(*meta));
	struct export_stat root;
	int rc;

	if (!meta)
		return -ENOMEM;
	rc = export->layer->ops->stat_path(export->layer, "", &root);
	if (rc)
		goto out;
	rc = fids_get_meta(export->fids, meta);
	/* The tree is identified by path and inode; the number of the device may change at each boot. */
	if (rc == -ENOENT ||
	    (!rc && (meta->root_inode != root.inode || strcmp(meta->root, options->root))))
		rc = start_anew(export, options, &root, meta);
	export->id = meta->volume;
	export->creation = meta->creation;
out:
	free(meta);
	return rc;
}

static struct export *make_export(const struct export_options *options)
{
	struct export *export = calloc(1, sizeof(*export));

	if (!export)
		return NULL;
	export->base.ops = &export_ops;
	export->layer = options->layer;
	export->fids = options->fids;
	export->all_files = options->all_files;
	export->log = options->log;
	export->hooks = options->hooks;
	strcpy(export->name, options->name);
	pthread_mutex_init(&export->access_lock, NULL);
	pthread_mutex_init(&export->scans_lock, NULL);
	pthread_cond_init(&export->scans_ended, NULL);
	return export;
}

int export_open(const struct export_options *options, struct store **store)
{
	struct export *export;
	int rc;

	if (strlen(options->name) > STORE_VOLNAME_MAX || strlen(options->root) >= 4096)
		return -ENAMETOOLONG;
	export = make_export(options);
	if (!export)
		return -ENOMEM;
	rc = export_start_images(&export->images);
	if (rc)
		goto fail;
	rc = open_meta(export, options);
	if (rc)
		goto fail;
	*store = &export->base;
	return 0;
fail:
	free_export(export);
	return rc;
}

bool export_start(struct store *store, unsigned watches, uint32_t released)
{
	struct export *export = export_of(store);

	assert(!export->watch && !export->usage);
	export->released = released;
	export->watch = export_watch_start(export, watches);
	export->usage = export_usage_start(export->layer);
	return export->watch && export->usage;
}

size_t export_count_watches(struct store *store)
{
	struct export *export = export_of(store);

	return export->watch ? export_watch_count(export->watch) : 0;
}

void export_count_used(struct store *store, unsigned wait_ms, struct export_used *used)
{
	export_usage_get(export_of(store)->usage, wait_ms, used);
}
