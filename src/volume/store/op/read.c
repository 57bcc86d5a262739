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
	struct store_fid fid;
	uint64_t length;
	struct version *version;   /* a link: its text; a large file: its map */
	struct blob *blob;	   /* a small file */
	struct store_pages *pages; /* a directory */
	struct store_view *view;   /* a large file, or holes only */
};

/* -- opening -- */

static int open_version_contents(struct core *core, const struct found *found,
				 struct store_reader *reader)
{
	const struct version *version = found->version;
	const struct store_content *content;
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
		result = lookup_content(core, found, &content);
		if (!result)
			result = store_view_open(core->data, &owner, content, version->v.length,
						 &reader->view);
		if (!result)
			reader->version = version_ref(found->version);
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

static void close_reader_contents(struct store_reader *reader)
{
	if (reader->view)
		store_view_close(reader->view);
	reader->view = NULL;
	version_unref(reader->version);
	reader->version = NULL;
}

/* From now on the objects of a view stay. They may have gone before, if the version was not the current one any more. */
static int check_still_current(struct core *core, const struct store_caller *caller,
			       const struct store_fid *fid, struct store_reader *reader)
{
	struct found found;
	int result;

	if (!reader->view)
		return 0;
	result = lookup(core, caller, fid, &found);
	if (!result) {
		if (found.version->v.version != reader->version->v.version)
			result = -EAGAIN;
		lookup_end(&found);
	}
	if (result)
		close_reader_contents(reader);
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

int read_begin(struct store *store, const struct store_caller *caller, const struct store_fid *fid,
	       struct store_reader **out, struct store_status *status)
{
	struct core *core = core_of(store);
	struct store_reader *reader = calloc(1, sizeof(*reader));
	int result = -EAGAIN;

	if (!reader)
		return -ENOMEM;
	reader->core = core;
	reader->fid = *fid;
	for (unsigned i = 0; i < TRIES && result == -EAGAIN; i++) {
		result = open_reader_once(core, caller, fid, reader, status);
		if (!result)
			result = check_still_current(core, caller, fid, reader);
	}
	if (!result) {
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
	reader->fid = found->fid;
	reader->length = found->version->v.length;
	result = open_version_contents(core, found, reader);
	if (!result) {
		*out = reader;
		return 0;
	}
	read_end(reader);
	return result == -EAGAIN ? report_missing_contents(core, &found->fid) : result;
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

/* Less than wanted has come, and it is not the end: the error of what follows. */
static ssize_t find_view_error(struct store_reader *reader, uint64_t offset)
{
	uint8_t byte;
	struct iovec iov = {.iov_base = &byte, .iov_len = 1};
	ssize_t done = store_view_read(reader->view, &iov, 1, offset, false);

	if (done == -EBADMSG)
		damage_report(reader->core, &reader->fid, offset);
	else if (done == -ENOENT)
		report_missing_contents(reader->core, &reader->fid);
	/* Nothing is wrong with it any more: the disk gave other bytes before. */
	return done == -EBADMSG || done == -ENOENT || done >= 0 ? -EIO : done;
}

static ssize_t read_view_bytes(struct store_reader *reader, const struct iovec *iov, int count,
			       uint64_t offset, bool cached)
{
	ssize_t done = store_view_read(reader->view, iov, count, offset, cached);
	uint64_t want = 0;

	if (cached && (done >= 0 || done == -EAGAIN))
		return done;
	if (done == -ENOENT)
		return report_missing_contents(reader->core, &reader->fid);
	if (done < 0 && done != -EBADMSG)
		return done;
	for (int i = 0; i < count; i++)
		want += iov[i].iov_len;
	if (done >= 0 && (offset >= reader->length || want > reader->length - offset))
		want = offset < reader->length ? reader->length - offset : 0;
	if (done >= 0 && (uint64_t)done >= want)
		return done;
	return find_view_error(reader, offset + (done > 0 ? (uint64_t)done : 0));
}

ssize_t read_bytes(struct store_reader *reader, const struct iovec *iov, int count, uint64_t offset,
		   unsigned flags)
{
	ssize_t done = 0;

	if (reader->view)
		done = read_view_bytes(reader, iov, count, offset, flags & STORE_CACHED);
	else if (reader->blob)
		done = store_read_memory(reader->blob->bytes, reader->length, iov, count, offset);
	else if (reader->pages)
		done = (ssize_t)scatter_pages(iov, count, reader, offset);
	else if (reader->version)
		done = store_read_memory(reader->version->text, reader->length, iov, count, offset);
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
	close_reader_contents(reader);
	if (reader->pages)
		store_pages_unref(reader->pages);
	blob_unref(reader->blob);
	free(reader);
	return 0;
}
