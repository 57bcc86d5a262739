/* SPDX-License-Identifier: BSD-2-Clause */
/* The file service: data of files, directories and symbolic links. */
#include <errno.h>
#include <string.h>
#include <rxwire/error.h>
#include <rxwire/xdr.h>

#include "common/clock.h"
#include "fileserver/base/base.h"
#include "fileserver/service/fs.h"

#define LENGTH_MAX 0x7fffffffull /* clients store the length of a reply in 31 bits */

/* A fetch in progress. */
struct fetch {
	struct fs_call *call;
	const AFSFid *fid;
	bool wide; /* FetchData64: the length is sent as a 64-bit number */
	uint64_t offset, wanted;
	struct fsd_stream stream;
	struct fsd_object object;
};

/* The number of bytes to send of an object of `size` bytes. */
static uint64_t clip(const struct fetch *fetch, uint64_t size)
{
	uint64_t length = fetch->offset < size ? size - fetch->offset : 0;

	if (length > fetch->wanted)
		length = fetch->wanted;
	return length < LENGTH_MAX ? length : LENGTH_MAX;
}

static int send_length(struct fetch *fetch, uint64_t length)
{
	uint8_t head[8];

	rxw_xdr_store64(head, length);
	return fetch->wide ? fsd_stream_write(&fetch->stream, head, 8)
			   : fsd_stream_write(&fetch->stream, head + 4, 4);
}

/* Send from memory: an image, or the text of a link. */
static int send_bytes(struct fetch *fetch, const uint8_t *bytes, size_t size)
{
	uint64_t length = clip(fetch, size);
	int rc = send_length(fetch, length);

	if (!rc && length)
		rc = fsd_stream_write(&fetch->stream, bytes + fetch->offset, (size_t)length);
	return rc;
}

static int fetch_directory(struct fetch *fetch)
{
	struct fsd_volume *volume = fetch->call->service->volume;
	struct fsd_image *image = NULL;
	int rc;

	if (!fetch->object.may_read)
		return -EACCES;
	rc = fsd_volume_image(volume, &fetch->object, fetch->call->caller.host, &image);
	if (!rc)
		rc = send_bytes(fetch, image->bytes, image->length);
	fsd_image_release(volume, image);
	return rc;
}

static int fetch_link(struct fetch *fetch)
{
	struct fsd_layer *layer = fsd_volume_layer(fetch->call->service->volume);
	struct fsd_stat st;
	char text[FSD_PATH_MAX];
	ssize_t n = layer->ops->readlink(layer, fetch->object.path, text, sizeof(text));
	int rc;

	if (n < 0)
		return n == -ENOENT || n == -EINVAL ? AFS_VNOVNODE : (int)n;
	rc = layer->ops->stat_path(layer, fetch->object.path, &st);
	if (rc || !fsd_stat_same(&st, &fetch->object.st) || (uint64_t)n != st.size)
		return -EIO; /* it was replaced meanwhile */
	return send_bytes(fetch, (const uint8_t *)text, (size_t)n);
}

/* Sequential readers request a file in parts: let the kernel read the next ones ahead. */
static void look_ahead(struct fetch *fetch, struct fsd_file *file, uint64_t length)
{
	const uint64_t ahead = 4ull << 20;
	uint64_t end = fetch->offset + length;

	/*
	 * Once per 2 MiB, and not after the first part, which may be the only one.
	 */
	if (length < 65536 || length > ahead || fetch->offset == 0 ||
	    end >= fetch->object.st.size || (fetch->offset >> 21) == (end >> 21) ||
	    !file->layer->ops->advise)
		return;
	file->layer->ops->advise(file, end, ahead);
}

static int fetch_file(struct fetch *fetch)
{
	struct fsd_service *service = fetch->call->service;
	struct fsd_file *file = NULL;
	uint64_t length;
	int rc = fsd_volume_open_file(service->volume, fetch->fid, fetch->call->caller.host,
				      &fetch->object, &file);

	if (rc)
		return rc;
	length = clip(fetch, fetch->object.st.size);
	rc = fs_may(fetch->call, fetch->object.path); /* it may have been moved since the promise */
	if (!rc)
		rc = send_length(fetch, length);
	if (!rc)
		rc = fsd_send_file(service->readers, file, &fetch->object.st, fetch->offset, length,
				   &fetch->stream);
	if (rc && rc != FSD_LOST) {
		fsd_count(&service->counters.fetch_aborts, 1);
		fsd_log(RXW_LOG_INFO, "fetch of /%s aborted: %s", fetch->object.path,
			rc == -EIO ? "the file changed while it was read, or could not be read"
			: rc < 0   ? strerror(-rc)
				   : rxw_code_text(rc));
	}
	if (!rc) {
		fsd_count(&service->counters.fetched_bytes, length);
		look_ahead(fetch, file, length);
	}
	file->layer->ops->close(file);
	return rc;
}

static int fetch_any(struct fetch *fetch)
{
	struct fs_call *call = fetch->call;
	struct fsd_volume *volume = call->service->volume;
	int rc;

	if (fetch->object.record.kind == FSD_FILE)
		return fetch_file(fetch);
	rc = fsd_volume_get(volume, fetch->fid, call->caller.host, &fetch->object);
	if (!rc)
		rc = fs_may(call, fetch->object.path);
	if (rc)
		return rc;
	return fetch->object.record.kind == FSD_DIR ? fetch_directory(fetch) : fetch_link(fetch);
}

static bool fits(const struct fetch *fetch)
{
	return fetch->offset <= INT64_MAX && fetch->wanted <= INT64_MAX &&
	       fetch->offset + fetch->wanted <= INT64_MAX;
}

/* Fetch from root.afs; rc: result of the lookup. */
static int fetch_rootafs(struct fetch *fetch, const uint8_t *bytes, size_t size, int rc)
{
	if (!rc && !fits(fetch))
		rc = -EFBIG;
	return rc ? rc : send_bytes(fetch, bytes, size);
}

/*
 * Length and data are sent from here, as they are read. If nothing failed, the stub sends the
 * results after them; else the call is aborted, and the client discards the data.
 */
static int fetch_data(struct fetch *fetch, AFSFetchStatus *st, AFSCallBack *cb, AFSVolSync *sync)
{
	struct fs_call *call = fetch->call;
	struct fsd_counters *counters = &call->service->counters;
	uint64_t begin = monotonic_ns();
	const uint8_t *bytes = NULL;
	size_t size = 0;
	int rc;

	memset(cb, 0, sizeof(*cb));
	if (fs_rootafs(call, fetch->fid, &fetch->object, &bytes, &size, cb, &rc)) {
		rc = fetch_rootafs(fetch, bytes, size, rc);
	} else {
		/*
		 * Give the promise first, so that a change during the transfer breaks it.
		 */
		rc = fs_promise(call, fetch->fid, false, &fetch->object, cb);
		if (rc)
			return rc;
		call->promised = *fetch->fid;
		rc = fits(fetch) ? fetch_any(fetch) : -EFBIG;
		if (!rc)
			fs_rights(call, &fetch->object, NULL);
	}
	fsd_count(&counters->fetches, 1);
	fsd_count(&counters->fetch_ns, monotonic_ns() - begin);
	*st = fetch->object.status;
	fs_sync(call, sync);
	return rc;
}

int32_t fs_fetch_data(void *context, rxw_call *rx, const AFSFid *fid, int32_t pos, int32_t length,
		      AFSFetchStatus *st, AFSCallBack *cb, AFSVolSync *sync)
{
	/* Signed in the protocol; the sign is kept. */
	struct fetch fetch = {.call = context,
			      .fid = fid,
			      .offset = (uint64_t)(int64_t)pos,
			      .wanted = (uint64_t)(int64_t)length};

	fsd_stream_from_call(&fetch.stream, rx);
	return fetch_data(&fetch, st, cb, sync);
}

int32_t fs_fetch_data64(void *context, rxw_call *rx, const AFSFid *fid, int64_t pos, int64_t length,
			AFSFetchStatus *st, AFSCallBack *cb, AFSVolSync *sync)
{
	struct fetch fetch = {.call = context,
			      .fid = fid,
			      .wide = true,
			      .offset = (uint64_t)pos,
			      .wanted = (uint64_t)length};

	fsd_stream_from_call(&fetch.stream, rx);
	return fetch_data(&fetch, st, cb, sync);
}
