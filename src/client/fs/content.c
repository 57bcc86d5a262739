/* SPDX-License-Identifier: BSD-2-Clause */
/* The calls behind the contents of files. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <syslog.h>

#include "afs/fetchstatus.h"
#include "client/fs/listeners.h"
#include "client/fs/operate.h"

static bool wait_cancelled(const void *cancel)
{
	return cl_cancel_raised(cancel);
}

struct cl_data_wait fs_wait(rxafs_client *client, const struct rxafs_request *request)
{
	struct cl_data_wait wait = {.deadline = request->deadline, .only_try = request->quick};

	(void)client;
	if (request->cancel) {
		wait.cancelled = wait_cancelled;
		wait.cancel = request->cancel;
	}
	return wait;
}

/* As whoever opened the file, with the limits of the client. */
static struct rxafs_request request_of(const struct fs_vnode *v, void *who, bool stores)
{
	return (struct rxafs_request){.user = fs_present_user(who, v->fid.cell, stores)};
}

static int fetch_file_data(void *owner, void *who, uint64_t offset, uint64_t length,
			   cl_data_take_fn *take, void *to, uint64_t *read,
			   struct cl_data_version *version)
{
	struct fs_vnode *v = owner;
	struct rxafs_request request = request_of(v, who, false);
	AFSFid fid = fs_afs_fid(&v->fid);
	struct fs_call call;
	struct cl_status known;
	AFSFetchStatus answer;
	uint64_t fetched;
	int result;

	fs_begin_call(&call, v->client, &request);
	result = cl_net_fetch_data(v->volume, &call.caller, &fid, *read, offset, length, take, to,
				   &fetched, &answer, &call.stamp, &request.failure);
	if (result) {
		if (result == -ESTALE)
			cl_object_gone(v->object);
		return result;
	}
	*read = afs_status_version(&answer);
	cl_cache_apply(v->object, fs_reply(&call, &call.stamp.callback), &answer, &known);
	*version = fs_version(&known);
	fs_learned(v, &known);
	return 0;
}

static unsigned count_paths(void *owner, uint64_t *share)
{
	return cl_net_paths(((struct fs_vnode *)owner)->volume, share);
}

static int store_file_data(void *owner, void *who, const struct cl_data_store *store,
			   cl_data_give_fn *give, void *from, struct cl_data_version *version)
{
	struct fs_vnode *v = owner;
	struct rxafs_request request = request_of(v, who, true);
	AFSFid fid = fs_afs_fid(&v->fid);
	AFSStoreStatus how = {.Mask = AFS_SETMODTIME | (store->durable ? AFS_FSYNC : 0),
			      .ClientModTime = (uint32_t)store->mtime};
	struct cl_effect effect = {.outcome = CL_NOT_DONE, .raised = 1};
	struct fs_call call;
	struct cl_status known = {0};
	AFSFetchStatus answer;
	int result;

	cl_change_begin(v->object);
	fs_begin_call(&call, v->client, &request);
	result = cl_net_store_data(v->volume, &call.caller, &fid, &how, store->offset,
				   store->length, store->file_length, store->known_length, give,
				   from, &answer, &call.stamp, &request.failure);
	if (!result) {
		effect.outcome = CL_DONE;
		effect.reply = fs_reply(&call, &call.stamp.callback);
		effect.status = &answer;
	} else if (request.failure.maybe_done) {
		effect.outcome = CL_UNKNOWN;
		effect.now = cl_net_now();
	}
	cl_change_end(v->object, &effect, &known);
	*version = fs_version(&known);
	if (!result) {
		fs_learned(v, &known);
		fs_note_change(v);
	}
	return result;
}

static void hold_vnode(void *owner)
{
	cl_object_hold(((struct fs_vnode *)owner)->object);
}

static void drop_vnode(void *owner)
{
	fs_put_vnode(owner);
}

static void hold_writer(void *who)
{
	rxafs_hold_user(who);
}

static void drop_writer(void *who)
{
	rxafs_put_user(who);
}

static void pages_changed(void *owner)
{
	struct fs_vnode *v = owner;

	atomic_fetch_add(&v->contents, 1);
	fs_tell(v, RXAFS_CHANGED_DATA, NULL);
}

static void changes_lost(void *owner, int error, uint64_t bytes)
{
	struct fs_vnode *v = owner;

	char what[48] = "a new length or time";

	if (bytes)
		snprintf(what, sizeof what, "%llu bytes written", (unsigned long long)bytes);
	/* Nobody could read them. */
	fs_log(v->client, error == -ESTALE ? LOG_INFO : LOG_ERR,
	       "%s of file %u.%u.%u of cell %s could not be stored: %s", what, v->fid.volume,
	       v->fid.vnode, v->fid.unique, cl_cell_name(cl_volume_cell(v->volume)),
	       error == -ESTALE ? "it was removed" : strerror(-error));
}

const struct cl_data_ops fs_data_ops = {
	.fetch = fetch_file_data,
	.paths = count_paths,
	.store = store_file_data,
	.hold = hold_vnode,
	.drop = drop_vnode,
	.hold_who = hold_writer,
	.drop_who = drop_writer,
	.changed = pages_changed,
	.lost = changes_lost,
};

/* Several may make it: one is kept. */
int fs_contents(struct fs_vnode *v, struct cl_data_file **data)
{
	struct cl_data_file *fresh;
	int result;

	pthread_mutex_lock(&v->lock);
	*data = v->data;
	pthread_mutex_unlock(&v->lock);
	if (*data)
		return 0;
	result = cl_data_file_create(v->client->data, &v->fid,
				     cl_cell_name(cl_volume_cell(v->volume)), v, &fresh);
	if (result)
		return result;
	if (v->client->hooks.keep_whole && cl_volume_type(v->volume) != AFS_VL_RW)
		cl_data_keep_whole(fresh);
	pthread_mutex_lock(&v->lock);
	*data = v->data;
	if (!*data)
		*data = v->data = fresh;
	pthread_mutex_unlock(&v->lock);
	if (*data != fresh)
		cl_data_file_free(fresh);
	return 0;
}
