/* SPDX-License-Identifier: BSD-2-Clause */
/* The exported directory as a store: reading files, images of directories, and links. */
#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "fileserver/export/tree_store.h"

#define CHECK_EVERY 22 /* the file is compared after each 2^22 bytes */

/* Constant, but for `read`. */
struct store_reader {
	struct fsd_volume *volume;
	struct fsd_file *file;	 /* of a file */
	struct fsd_stat st;	 /* that it must keep */
	struct fsd_image *image; /* of a directory */
	const uint8_t *bytes;	 /* of a directory or a link; NULL: a file */
	size_t length;
	_Atomic uint64_t read; /* bytes of the file */
	bool link;	       /* there is room for its text */
	uint8_t text[];
};

static int open_directory_image(const struct export *export, const struct fsd_viewer *viewer,
				struct fsd_object *object, struct store_reader *reader)
{
	int rc;

	if (!object->may_read)
		return -EACCES;
	rc = fsd_volume_image(export->options.volume, object, viewer->actor, &reader->image);
	if (!rc) {
		reader->bytes = reader->image->bytes;
		reader->length = reader->image->length;
	}
	return rc;
}

static int open_link(const struct fsd_object *object, struct store_reader *reader)
{
	struct fsd_layer *layer = fsd_volume_layer(reader->volume);
	struct fsd_stat st;
	ssize_t n = layer->ops->readlink(layer, object->path, (char *)reader->text, FSD_PATH_MAX);
	int rc;

	if (n < 0)
		return n == -ENOENT || n == -EINVAL ? STORE_VNOVNODE : (int)n;
	rc = layer->ops->stat_path(layer, object->path, &st);
	if (rc || !fsd_stat_same(&st, &object->st) || (uint64_t)n != st.size)
		return -EIO; /* it was replaced meanwhile */
	reader->bytes = reader->text;
	reader->length = (size_t)n;
	return 0;
}

static int open_file(const struct export *export, const struct fsd_viewer *viewer,
		     const struct store_fid *fid, struct fsd_object *object,
		     struct store_reader *reader)
{
	const AFSFid its = {fid->volume, fid->vnode, fid->unique};
	struct fsd_file *file;
	int rc = fsd_volume_open_file(reader->volume, &its, viewer->actor, object, &file);

	/* After a failure `file` may name one that is closed. */
	if (rc)
		return rc;
	reader->file = file;
	reader->st = object->st;
	/* It may have been moved since it was found. */
	return fsd_guard_may(export->options.guard, &viewer->who, object->path) ? 0 : -EACCES;
}

static int open_any(const struct export *export, const struct fsd_viewer *viewer,
		    const struct store_fid *fid, struct fsd_object *object,
		    struct store_reader *reader)
{
	int rc;

	if (object->record.kind == FSD_FILE)
		return open_file(export, viewer, fid, object, reader);
	rc = fsd_export_get(export, viewer, fid, object);
	if (rc)
		return rc;
	if (object->record.kind == FSD_DIR)
		return open_directory_image(export, viewer, object, reader);
	return reader->link ? open_link(object, reader) : STORE_VNOVNODE;
}

int fsd_export_read_begin(struct store *store, const struct store_caller *caller,
			  const struct store_fid *fid, struct store_reader **out,
			  struct store_status *status)
{
	const struct export *export = (struct export *)store;
	const struct fsd_viewer *viewer = fsd_export_viewer(caller);
	struct store_reader *reader;
	struct fsd_object object;
	int rc = fsd_export_find(export, viewer, fid, &object);
	bool link;

	if (rc)
		return rc;
	link = object.record.kind == FSD_SYMLINK;
	reader = calloc(1, sizeof(*reader) + (link ? FSD_PATH_MAX : 0));
	if (!reader)
		return STORE_VBUSY;
	reader->link = link;
	reader->volume = export->options.volume;
	rc = open_any(export, viewer, fid, &object, reader);
	if (rc) {
		fsd_export_read_end(reader);
		return rc;
	}
	fsd_export_fill(export, viewer, &object, status);
	*out = reader;
	return 0;
}

static ssize_t copy_reader_bytes(const struct store_reader *reader, const struct iovec *iov,
				 int count, uint64_t offset)
{
	size_t total = 0;

	for (int i = 0; i < count && offset < reader->length; i++) {
		size_t n = reader->length - (size_t)offset;

		if (n > iov[i].iov_len)
			n = iov[i].iov_len;
		memcpy(iov[i].iov_base, reader->bytes + offset, n);
		offset += n;
		total += n;
	}
	return (ssize_t)total;
}

/* Whether the file is still the same version: 0, -EIO or -errno. */
static int check_same_version(const struct store_reader *reader)
{
	struct fsd_stat st;
	int rc;

	assert(reader->file);
	rc = reader->file->layer->ops->stat_file(reader->file, &st);

	if (rc)
		return rc;
	return fsd_stat_same(&st, &reader->st) && st.links > 0 ? 0 : -EIO;
}

ssize_t fsd_export_read(struct store_reader *reader, const struct iovec *iov, int count,
			uint64_t offset, unsigned flags)
{
	uint64_t before;
	ssize_t n;
	int rc;

	if (reader->bytes)
		return copy_reader_bytes(reader, iov, count, offset);
	assert(reader->file);
	n = reader->file->layer->ops->preadv(reader->file, iov, count, offset,
					     flags & STORE_CACHED ? FSD_READ_CACHED : 0);
	if (n <= 0)
		return n;
	before = atomic_fetch_add(&reader->read, (uint64_t)n);
	if (before >> CHECK_EVERY == (before + (uint64_t)n) >> CHECK_EVERY)
		return n;
	rc = check_same_version(reader);
	return rc ? rc : n;
}

void fsd_export_read_ahead(struct store_reader *reader, uint64_t offset, uint64_t length)
{
	if (reader->file && reader->file->layer->ops->advise)
		reader->file->layer->ops->advise(reader->file, offset, length);
}

int fsd_export_read_end(struct store_reader *reader)
{
	int rc = 0;

	if (!reader)
		return 0;
	if (reader->file) {
		if (atomic_load(&reader->read))
			rc = check_same_version(reader);
		reader->file->layer->ops->close(reader->file);
	}
	fsd_image_release(reader->volume, reader->image);
	free(reader);
	return rc;
}
