/* SPDX-License-Identifier: BSD-2-Clause */
/* The file service: from the operation number to its handler. */
#include <errno.h>
#include <string.h>
#include <rxwire/error.h>

#include "fileserver/callbacks.h"
#include "fileserver/fs_private.h"

struct operation {
	uint32_t opcode;
	fs_handler handler;
	unsigned head; /* bulk data follow so many bytes of arguments: read no more; 0 = none */
};

#define STORE_HEAD (AFS_FID_BYTES + 24)

/* By operation number. */
static const struct operation operations[] = {
	{AFS_FS_FETCH_DATA, fs_fetch_data, 0},
	{AFS_FS_FETCH_ACL, fs_fetch_acl, 0},
	{AFS_FS_FETCH_STATUS, fs_fetch_status, 0},
	{AFS_FS_STORE_DATA, fs_refuse_write, STORE_HEAD + 12},
	{AFS_FS_OLD_STORE_ACL, fs_refuse_write, 0},
	{AFS_FS_STORE_STATUS, fs_refuse_write, 0},
	{AFS_FS_REMOVE_FILE, fs_refuse_write, 0},
	{AFS_FS_CREATE_FILE, fs_refuse_write, 0},
	{AFS_FS_RENAME, fs_refuse_write, 0},
	{AFS_FS_SYMLINK, fs_refuse_write, 0},
	{AFS_FS_LINK, fs_refuse_write, 0},
	{AFS_FS_MAKE_DIR, fs_refuse_write, 0},
	{AFS_FS_REMOVE_DIR, fs_refuse_write, 0},
	{AFS_FS_GET_STATISTICS, fs_statistics, 0},
	{AFS_FS_GIVE_UP_CALLBACKS, fs_give_up, 0},
	{AFS_FS_GET_VOLUME_INFO, fs_refuse_volume, 0},
	{AFS_FS_GET_VOLUME_STATUS, fs_volume_status, 0},
	{AFS_FS_SET_VOLUME_STATUS, fs_refuse_write, 0},
	{AFS_FS_GET_ROOT_VOLUME, fs_root_volume, 0},
	{AFS_FS_GET_TIME, fs_get_time, 0},
	{AFS_FS_NGET_VOLUME_INFO, fs_refuse_volume, 0},
	{AFS_FS_BULK_STATUS, fs_bulk_status, 0},
	{AFS_FS_SET_LOCK, fs_set_lock, 0},
	{AFS_FS_EXTEND_LOCK, fs_keep_lock, 0},
	{AFS_FS_RELEASE_LOCK, fs_keep_lock, 0},
	{AFS_FS_XSTATS_VERSION, fs_xstats_version, 0},
	{AFS_FS_GET_XSTATS, fs_xstats, 0},
	{AFS_FS_LOOKUP, fs_refuse_invalid, 0},
	{AFS_FS_FLUSH_CPS, fs_refuse_permission, 0},
	{AFS_FS_DFS_SYMLINK, fs_refuse_invalid, 0},
	{AFS_FS_STORE_ACL, fs_refuse_write, 0},
	{AFS_FS_FS_CMD, fs_refuse_invalid, 0},
	{AFS_FS_INLINE_BULK_STATUS, fs_bulk_status, 0},
	{AFS_FS_FETCH_DATA64, fs_fetch_data, 0},
	{AFS_FS_STORE_DATA64, fs_refuse_write, STORE_HEAD + 24},
	{AFS_FS_GIVE_UP_ALL_CALLBACKS, fs_give_up_all, 0},
	{AFS_FS_GET_CAPABILITIES, fs_get_caps, 0},
	{AFS_FS_CALLBACK_RXCONN_ADDR, fs_refuse_permission, 0},
	{AFS_FS_GET_STATISTICS64, fs_statistics64, 0},
};

static const struct operation *find_operation(uint32_t opcode)
{
	for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++)
		if (operations[i].opcode == opcode)
			return &operations[i];
	return NULL;
}

int fs_reply(struct fs_call *call, const struct rxw_xdr *x)
{
	if (!rxw_xdr_ok(x))
		return RXW_RPC_SS_MARSHAL;
	return fsd_stream_write(call->stream, x->start, rxw_xdr_used(x));
}

void fs_put_sync(struct fs_call *call, struct rxw_xdr *x)
{
	struct afs_volsync sync = {fsd_volume_creation(call->service->volume)};

	afs_volsync_put(x, &sync);
}

int fs_promise(struct fs_call *call, const struct afs_fid *fid, bool bulk,
	       struct fsd_object *object, struct afs_callback *cb)
{
	struct fsd_service *service = call->service;
	uint32_t seconds;
	int rc = fsd_volume_path(service->volume, fid, object->path, &object->record);

	memset(cb, 0, sizeof(*cb));
	if (rc)
		return rc;
	seconds = fsd_promise_give(service->clients, &call->caller, fid, bulk, fsd_now());
	if (seconds) {
		if (service->watch)
			fsd_watch_add(service->watch, &object->record, object->path);
		*cb = (struct afs_callback){1, seconds, AFS_CB_SHARED};
	}
	return 0;
}

void fs_unpromise(struct fs_call *call, const struct afs_fid *fid)
{
	fsd_promise_drop(call->service->clients, &call->caller, fid);
}

int fs_status(struct fs_call *call, const struct afs_fid *fid, bool bulk, struct fsd_object *object,
	      struct afs_callback *cb)
{
	int rc = fs_promise(call, fid, bulk, object, cb);

	if (rc)
		return rc;
	rc = fsd_volume_get(call->service->volume, fid, call->caller.host, object);
	if (rc)
		fs_unpromise(call, fid);
	return rc;
}

int32_t fs_code(const struct fs_call *call, int result)
{
	if (result >= 0)
		return result;
	if (result == FSD_LOST)
		return RXW_USER_ABORT;
	if (result <= RXW_RPC_CC_MARSHAL)
		return result;

	int err = -result;

	if (call->caller.uae)
		return rxw_code_from_errno(err);
	/* These raw numbers mean something else in AFS. */
	return (err >= 101 && err <= 112) || err == 120 ? EIO : err;
}

static int run(struct fs_call *call)
{
	uint8_t word[4], request[FS_REQUEST_MAX];
	struct fsd_stream *stream = call->stream;
	const struct operation *operation;
	size_t length;
	ssize_t n = stream->ops->read(stream, word, sizeof(word));

	if (n < (ssize_t)sizeof(word))
		return n < 0 ? FSD_LOST : RXW_RPC_DECODE;
	call->opcode = (uint32_t)word[0] << 24 | (uint32_t)word[1] << 16 | (uint32_t)word[2] << 8 |
		       word[3];
	operation = find_operation(call->opcode);
	fsd_clients_enter(call->service->clients, &stream->peer, call->opcode, fsd_now(),
			  &call->caller);
	if (!operation)
		return RXW_RPC_OPCODE;
	length = operation->head ? operation->head : sizeof(request);
	n = stream->ops->read(stream, request, length);
	if (n < 0)
		return FSD_LOST;
	rxw_xdr_reader(&call->in, request, (size_t)n);
	return operation->handler(call);
}

int32_t fsd_fs_serve(struct fsd_service *service, struct fsd_stream *stream)
{
	struct fs_call call = {.service = service, .stream = stream};
	int result = run(&call);
	int32_t code = fs_code(&call, result);

	fsd_clients_leave(service->clients, &call.caller);
	atomic_fetch_add_explicit(&service->counters.calls, 1, memory_order_relaxed);
	if (code)
		atomic_fetch_add_explicit(&service->counters.failed, 1, memory_order_relaxed);
	return code;
}
