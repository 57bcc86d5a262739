/* SPDX-License-Identifier: BSD-2-Clause */
/* The file service: data of files, directories and symbolic links. */
#include <errno.h>
#include <string.h>
#include <rxwire/error.h>

#include "fileserver/fs_private.h"
#include "fileserver/log.h"

#define LENGTH_MAX 0x7fffffffull /* clients keep the length of one reply in 31 bits */

/* What is fetched, and its reply around the data. */
struct fetch {
	struct fs_call *call;
	struct afs_fid fid;
	uint64_t offset, wanted;
	struct fsd_object object;
	struct afs_callback cb;
};

static bool decode(struct fetch *fetch)
{
	struct rxw_xdr *x = &fetch->call->in;
	uint32_t offset = 0, length;

	afs_fid_get(x, &fetch->fid);
	if (fetch->call->opcode == AFS_FS_FETCH_DATA64) {
		rxw_xdr_get_u64(x, &fetch->offset);
		return rxw_xdr_get_u64(x, &fetch->wanted);
	}
	rxw_xdr_get_u32(x, &offset);
	if (!rxw_xdr_get_u32(x, &length))
		return false;
	/* Signed on the wire: a negative one becomes a negative one. */
	fetch->offset = (uint64_t)(int64_t)(int32_t)offset;
	fetch->wanted = (uint64_t)(int64_t)(int32_t)length;
	return true;
}

/* Bytes to send of an object of `size` bytes. */
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
	struct rxw_xdr x;

	rxw_xdr_writer(&x, head, sizeof(head));
	if (fetch->call->opcode == AFS_FS_FETCH_DATA64)
		rxw_xdr_put_u64(&x, length);
	else
		rxw_xdr_put_u32(&x, (uint32_t)length);
	return fs_reply(fetch->call, &x);
}

static int send_trailer(struct fetch *fetch)
{
	uint8_t tail[AFS_STATUS_BYTES + AFS_CALLBACK_BYTES + AFS_VOLSYNC_BYTES];
	struct rxw_xdr x;

	rxw_xdr_writer(&x, tail, sizeof(tail));
	afs_status_put(&x, &fetch->object.status);
	afs_callback_put(&x, &fetch->cb);
	fs_put_sync(fetch->call, &x);
	return fs_reply(fetch->call, &x);
}

/* From memory: an image, or the text of a link. */
static int send_bytes(struct fetch *fetch, const uint8_t *bytes, size_t size)
{
	uint64_t length = clip(fetch, size);
	int rc = send_length(fetch, length);

	if (!rc && length)
		rc = fsd_stream_write(fetch->call->stream, bytes + fetch->offset, (size_t)length);
	return rc ? rc : send_trailer(fetch);
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
		return -EIO; /* another link took its place just now */
	return send_bytes(fetch, (const uint8_t *)text, (size_t)n);
}

/* Sequential readers ask in pieces: let the kernel have the next ones ready. */
static void look_ahead(struct fetch *fetch, struct fsd_file *file, uint64_t length)
{
	const uint64_t ahead = 4ull << 20;
	uint64_t end = fetch->offset + length;

	/*
	 * Once for each stretch of 2 MiB, and not for the first piece: that may be all they want.
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
	int rc = fsd_volume_open_file(service->volume, &fetch->fid, fetch->call->caller.host,
				      &fetch->object, &file);

	if (rc)
		return rc;
	length = clip(fetch, fetch->object.st.size);
	rc = send_length(fetch, length);
	if (!rc)
		rc = fsd_send_file(service->readers, file, &fetch->object.st, fetch->offset, length,
				   fetch->call->stream);
	if (rc && rc != FSD_LOST) {
		atomic_fetch_add_explicit(&service->counters.fetch_aborts, 1, memory_order_relaxed);
		fsd_log(RXW_LOG_INFO, "fetch of /%s given up: %s", fetch->object.path,
			rc == -EIO ? "it changed while it was read, or could not be read"
			: rc < 0   ? strerror(-rc)
				   : rxw_code_text(rc));
	}
	if (!rc) {
		atomic_fetch_add_explicit(&service->counters.fetched_bytes, length,
					  memory_order_relaxed);
		rc = send_trailer(fetch);
	}
	if (!rc)
		look_ahead(fetch, file, length);
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
	rc = fsd_volume_get(volume, &fetch->fid, call->caller.host, &fetch->object);
	if (rc)
		return rc;
	return fetch->object.record.kind == FSD_DIR ? fetch_directory(fetch) : fetch_link(fetch);
}

int fs_fetch_data(struct fs_call *call)
{
	struct fetch fetch = {.call = call};
	int rc;

	if (!decode(&fetch))
		return FS_UNDECODABLE;
	/* The promise comes first, so that a change while the data are under way breaks it. */
	rc = fs_promise(call, &fetch.fid, false, &fetch.object, &fetch.cb);
	if (rc)
		return rc;
	if (fetch.offset > INT64_MAX || fetch.wanted > INT64_MAX ||
	    fetch.offset + fetch.wanted > INT64_MAX)
		rc = -EFBIG;
	else
		rc = fetch_any(&fetch);
	atomic_fetch_add_explicit(&call->service->counters.fetches, 1, memory_order_relaxed);
	if (rc)
		fs_unpromise(call, &fetch.fid);
	return rc;
}
