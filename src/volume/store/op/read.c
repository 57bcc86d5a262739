/* SPDX-License-Identifier: BSD-2-Clause */
/* Reading one version of a file, directory or link. */
#include "volume/store/op/op.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "volume/store/maint/maint.h"
#include "volume/store/op/whole.h"
#include "volume/store/txn/lookup.h"

#define TRIES 1000

/* Constant but for `core`'s counters. */
struct store_reader {
	struct core *core;
	uint64_t length;
	struct version *version;   /* a link: its text; a large file: its extents */
	struct blob *blob;	   /* a small file */
	struct store_pages *pages; /* a directory */
	struct store_view *view;   /* a large file, or holes only */
	bool pinned;
	struct store_pin pin; /* if the view opens objects later */
};

static int open_version_contents(struct core *core, const struct found *found,
				 struct store_reader *reader)
{
	const struct version *version = found->version;
	struct store_owner owner = {found->view.group, found->fid.vnode, found->fid.unique};
	int result;

	switch (version->v.kind) {
	case STORE_DIR:
		return lookup_pages(core, found, &reader->pages);
	case STORE_SYMLINK:
		reader->version = version_ref(found->version);
		return 0;
	default:
		if (version->v.small)
			return lookup_blob(core, found, &reader->blob);
		if (!version->v.length)
			return 0;
		if (version->content.count > STORE_VIEW_OPEN && !reader->pinned) {
			/* The version that is current from now on keeps its objects. */
			reader->pinned = true;
			store_data_pin(core->data, &owner, &reader->pin);
			return -EAGAIN;
		}
		result = store_view_open(core->data, &owner, &version->content, version->v.length,
					 &reader->view);
		if (!result)
			reader->version = version_ref(found->version);
		if (!result && found->view.type == STORE_RW)
			merge_note(core->merger, &found->fid, &version->content, version->v.length,
				   false);
		return result == -ENOENT ? -EAGAIN : result;
	}
}

static int open_reader_once(struct core *core, const struct store_caller *caller,
			    const struct store_fid *fid, struct store_reader *reader,
			    struct store_status *status)
{
	struct found found;
	struct subject subject;
	int result = lookup(core, caller, fid, &found);

	if (result)
		return result;
	subject = lookup_subject(&found, caller);
	result = rights_read(&subject);
	if (!result)
		result = open_version_contents(core, &found, reader);
	if (!result) {
		reader->length = found.version->v.length;
		rights_fill_status(&subject, fid, status);
	}
	lookup_end(&found);
	return result;
}

/* A version whose contents are gone was replaced meanwhile; if not, they are lost. */
static int report_missing_contents(struct core *core, const struct store_fid *fid)
{
	report_damage(&core->report,
		      "%s: the contents of vnode %u of volume %u are missing: restore the file",
		      core->name, fid->vnode, fid->volume);
	return -EIO;
}

/* A file that has become small meanwhile needs no objects. */
static void limit_reader_pin(struct core *core, struct store_reader *reader)
{
	static const struct store_content nothing;

	assert(reader->pinned);
	store_data_pin_limit(core->data, reader->view ? &reader->version->content : &nothing,
			     &reader->pin);
}

int read_begin(struct store *store, const struct store_caller *caller, const struct store_fid *fid,
	       struct store_reader **out, struct store_status *status)
{
	struct core *core = core_of(store);
	struct store_reader *reader = calloc(1, sizeof(*reader));
	int result = -EAGAIN;

	if (!reader)
		return -ENOMEM;
	reader->core = core;
	for (unsigned i = 0; i < TRIES && result == -EAGAIN; i++)
		result = open_reader_once(core, caller, fid, reader, status);
	if (!result) {
		if (reader->pinned)
			limit_reader_pin(core, reader);
		*out = reader;
		return 0;
	}
	read_end(reader);
	return result == -EAGAIN ? report_missing_contents(core, fid) : result;
}

int read_open_found(struct core *core, const struct found *found, struct store_reader **out)
{
	struct store_reader *reader = calloc(1, sizeof(*reader));
	int result;

	if (!reader)
		return -ENOMEM;
	reader->core = core;
	reader->length = found->version->v.length;
	result = open_version_contents(core, found, reader);
	if (result == -EAGAIN && reader->pinned)
		result = open_version_contents(core, found, reader);
	if (!result) {
		if (reader->pinned)
			limit_reader_pin(core, reader);
		*out = reader;
		return 0;
	}
	read_end(reader);
	return result == -EAGAIN ? report_missing_contents(core, &found->fid) : result;
}

/* Copy to the buffers from `offset` of `length` bytes on. */
static size_t scatter_bytes(const struct iovec *iov, int count, const uint8_t *bytes,
			    uint64_t length, uint64_t offset)
{
	size_t done = 0;

	for (int i = 0; i < count && offset < length; i++) {
		size_t part = iov[i].iov_len;

		if (part > length - offset)
			part = (size_t)(length - offset);
		memcpy(iov[i].iov_base, bytes + offset, part);
		offset += part;
		done += part;
	}
	return done;
}

/* Copy to the buffers from the pages of a directory. */
static size_t scatter_pages(const struct iovec *iov, int count, const struct store_reader *reader,
			    uint64_t offset)
{
	size_t done = 0;

	for (int i = 0; i < count; i++)
		for (size_t filled = 0; filled < iov[i].iov_len && offset < reader->length;) {
			const uint8_t *page =
				store_pages_page(reader->pages, (unsigned)(offset / STORE_PAGE));
			size_t at = offset % STORE_PAGE, part = STORE_PAGE - at;

			assert(page);
			if (part > iov[i].iov_len - filled)
				part = iov[i].iov_len - filled;
			memcpy((uint8_t *)iov[i].iov_base + filled, page + at, part);
			filled += part;
			offset += part;
			done += part;
		}
	return done;
}

ssize_t read_bytes(struct store_reader *reader, const struct iovec *iov, int count, uint64_t offset,
		   unsigned flags)
{
	ssize_t done = 0;

	if (reader->view)
		done = store_view_read(reader->view, iov, count, offset, flags & STORE_CACHED);
	else if (reader->blob)
		done = (ssize_t)scatter_bytes(iov, count, reader->blob->bytes, reader->length,
					      offset);
	else if (reader->pages)
		done = (ssize_t)scatter_pages(iov, count, reader, offset);
	else if (reader->version)
		done = (ssize_t)scatter_bytes(iov, count, (const uint8_t *)reader->version->text,
					      reader->length, offset);
	if (done > 0)
		reader->core->bytes_read += (uint64_t)done;
	return done;
}

void read_ahead(struct store_reader *reader, uint64_t offset, uint64_t length)
{
	if (reader->view)
		store_view_ahead(reader->view, offset, length);
}

int read_end(struct store_reader *reader)
{
	if (!reader)
		return 0;
	if (reader->view)
		store_view_close(reader->view);
	if (reader->pinned)
		store_data_unpin(reader->core->data, &reader->pin);
	if (reader->pages)
		store_pages_unref(reader->pages);
	blob_unref(reader->blob);
	version_unref(reader->version);
	free(reader);
	return 0;
}
