/* SPDX-License-Identifier: BSD-2-Clause */
/* Statuses and rights: from the cache while a promise holds, else by one call however many ask. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/fs/operate.h"
#include "common/clock.h"
#include "common/held.h"

/* Between two looks for a cancellation, which is not told. */
#define LOOK_NS (100 * NS_PER_MS)
/* Questions for one answer, if each is overtaken by changes of the object. */
#define ASKS_MOST 3u

void fs_begin_call(struct fs_call *call, rxafs_client *client, struct rxafs_request *request)
{
	*call = (struct fs_call){.client = client, .request = request};
	call->caller = fs_caller(client, request);
	call->reply.note = cl_cache_note(client->cache);
}

const struct cl_reply *fs_reply(struct fs_call *call, const AFSCallBack *callback)
{
	call->reply.sent = call->stamp.sent;
	call->reply.server = call->stamp.server;
	call->reply.identity = call->stamp.identity;
	call->reply.sync = call->stamp.release ? call->stamp.release : call->stamp.sync.spare1;
	call->reply.lifetime = callback ? callback->ExpirationTime : 0;
	return &call->reply;
}

void fs_end_quiet_change(struct fs_vnode *v, struct rxafs_request *request, struct fs_call *call,
			 int result, const AFSFetchStatus *answer, bool acl)
{
	struct cl_effect effect = {.outcome = CL_NOT_DONE, .acl = acl};
	struct cl_status known;

	if (!result) {
		effect.outcome = CL_DONE;
		effect.reply = fs_reply(call, NULL);
		effect.status = answer;
	} else if (request->failure.maybe_done) {
		effect.outcome = CL_UNKNOWN;
		effect.now = cl_net_now();
	}
	cl_change_end(v->object, &effect, &known);
}

int fs_would_wait(struct fs_vnode *vnode, struct rxafs_request *request)
{
	request->awaited = (struct rxafs_awaited){true, vnode->fid.cell, fs_server_of(vnode)};
	return RXAFS_WOULD_WAIT;
}

int fs_await_others(rxafs_client *client, struct rxafs_request *request, uint64_t end)
{
	assert(mutex_is_held(&client->lock));
	monotonic_wait(&client->asked, &client->lock, monotonic_ns() + LOOK_NS);
	if (request->cancel && cl_cancel_raised(request->cancel))
		return -EINTR;
	if (cl_net_now() > end)
		return fs_fail(request, -ETIMEDOUT, "another operation on it waits for its server");
	return 0;
}

int fs_claim(struct fs_vnode *vnode, struct rxafs_request *request, unsigned claim)
{
	rxafs_client *client = vnode->client;
	/* Names of a large directory may come slowly. */
	uint64_t end = claim == CL_CLAIM_STATUS ? cl_net_now() + client->limit_ns : UINT64_MAX;
	int result = 0;

	if (request->deadline && request->deadline < end)
		end = request->deadline;
	pthread_mutex_lock(&client->lock);
	while (!result && !cl_object_claim(vnode->object, claim))
		result = fs_await_others(client, request, end);
	pthread_mutex_unlock(&client->lock);
	return result;
}

void fs_unclaim(struct fs_vnode *vnode, unsigned claim)
{
	rxafs_client *client = vnode->client;

	cl_object_unclaim(vnode->object, claim);
	pthread_mutex_lock(&client->lock);
	pthread_cond_broadcast(&client->asked);
	pthread_mutex_unlock(&client->lock);
}

struct cl_data_version fs_version(const struct cl_status *status)
{
	return (struct cl_data_version){.version = status->version,
					.clean_from = status->clean_from,
					.length = status->size,
					.incarnation = status->incarnation,
					.order = status->order};
}

/*
 * Contents of versions from clean_from on are those that are held, but for what this client has stored
 * itself. Otherwise the pages of the kernel go as well.
 */
void fs_learned(struct fs_vnode *v, const struct cl_status *status)
{
	struct cl_data_version version = fs_version(status);
	bool same, other = false;

	if (status->kind != RXAFS_FILE)
		return;
	pthread_mutex_lock(&v->lock);
	same = v->told && v->version == status->version && v->incarnation == status->incarnation;
	if (v->data && !same) {
		other = v->told &&
			(v->incarnation != status->incarnation || v->version < status->clean_from ||
			 v->version > status->version);
		cl_data_update(v->data, &version);
		v->told = true;
		v->incarnation = status->incarnation;
		v->version = status->version;
	}
	pthread_mutex_unlock(&v->lock);
	if (!other)
		return;
	atomic_fetch_add(&v->contents, 1);
	/* Attributes were kept until the end of the promise at most, or until the break. */
	if (!atomic_load(&v->forgotten))
		fs_tell(v, RXAFS_CHANGED_DATA, NULL);
}

/* One question. *again: what is known is not the answer, and may be old. *rights: those that the caller was told. */
static int ask_status_once(struct fs_vnode *v, struct rxafs_request *request,
			   struct cl_status *status, uint32_t *rights, bool *again)
{
	AFSFid fid = fs_afs_fid(&v->fid);
	enum cl_verdict verdict;
	AFSFetchStatus answer;
	struct fs_call call;
	int result;

	fs_begin_call(&call, v->client, request);
	result = cl_net_fetch_status(v->volume, &call.caller, &fid, &answer, &call.stamp,
				     &request->failure);
	if (result) {
		if (result == -ESTALE)
			cl_object_gone(v->object);
		return result;
	}
	verdict = cl_cache_apply(v->object, fs_reply(&call, &call.stamp.callback), &answer, status);
	*rights = answer.CallerAccess;
	*again = verdict == CL_ASK_AGAIN || verdict == CL_OTHER_SITE;
	return 0;
}

static int ask_status(struct fs_vnode *v, struct rxafs_request *request, struct cl_status *status,
		      uint32_t *rights)
{
	bool again = true;
	int result = 0;

	for (unsigned asked = 0; !result && again && asked < ASKS_MOST; asked++)
		result = ask_status_once(v, request, status, rights, &again);
	if (!result)
		fs_learned(v, status);
	return result;
}

int fs_status(struct fs_vnode *v, struct rxafs_request *request, struct cl_status *status)
{
	int result = cl_object_status(v->object, cl_net_now(), status);
	uint32_t told;

	if (result == -ENOENT)
		return -ESTALE;
	if (result != -ESTALE)
		return result;
	if (request->quick)
		return fs_would_wait(v, request);
	result = fs_claim(v, request, CL_CLAIM_STATUS);
	if (result)
		return result;
	/* Another operation may have asked meanwhile. */
	result = cl_object_status(v->object, cl_net_now(), status);
	if (result == -ESTALE)
		result = ask_status(v, request, status, &told);
	else if (result == -ENOENT)
		result = -ESTALE;
	fs_unclaim(v, CL_CLAIM_STATUS);
	return result;
}

static void apply_one(struct fs_call *call, const struct rxafs_fid *fid,
		      const AFSFetchStatus *answer, const AFSCallBack *callback)
{
	struct cl_object *object = cl_cache_get(call->client->cache, fid);
	struct cl_status known;
	struct fs_vnode *v;

	if (!object)
		return;
	if (!answer->errorCode) {
		cl_cache_apply(object, fs_reply(call, callback), answer, &known);
		v = cl_object_user(object);
		if (v)
			fs_learned(v, &known);
	}
	cl_object_put(object);
}

int fs_ask_statuses(struct fs_vnode *directory, struct rxafs_request *request,
		    const struct rxafs_fid *fids, unsigned count)
{
	AFSFetchStatus answers[AFSCBMAX];
	AFSCallBack callbacks[AFSCBMAX];
	AFSFid asked[AFSCBMAX];
	struct fs_call call;
	int result;

	assert(count && count <= AFSCBMAX);
	for (unsigned i = 0; i < count; i++)
		asked[i] = fs_afs_fid(&fids[i]);
	fs_begin_call(&call, directory->client, request);
	result = cl_net_fetch_statuses(directory->volume, &call.caller, asked, count, answers,
				       callbacks, &call.stamp, &request->failure);
	for (unsigned i = 0; !result && i < count; i++)
		apply_one(&call, &fids[i], &answers[i], &callbacks[i]);
	return result;
}

/* -- many statuses -------------------------------------------------------------------------- */

/* Questions that the asker and helpers take one by one. Helpers that come late find none: nobody waits for those. */
struct questions {
	pthread_mutex_t lock;
	pthread_cond_t answered;
	unsigned references;
	struct fs_vnode *directory;
	const struct rxafs_request *request; /* as long as some are open or being asked */
	const struct rxafs_fid *fids;
	unsigned count, next; /* FIDs, and the first one of the next question */
	unsigned asking;      /* by threads */
};

static void put_questions(struct questions *q)
{
	bool last;

	pthread_mutex_lock(&q->lock);
	last = --q->references == 0;
	pthread_mutex_unlock(&q->lock);
	if (!last)
		return;
	pthread_mutex_destroy(&q->lock);
	pthread_cond_destroy(&q->answered);
	free(q);
}

/* Until none is open. `cancel` is of one operation, the asker's. */
static void ask_questions(struct questions *q, rxafs_cancel *cancel)
{
	struct rxafs_request request;

	pthread_mutex_lock(&q->lock);
	q->asking++;
	while (q->next < q->count) {
		unsigned at = q->next;
		unsigned count = q->count - at < AFSCBMAX ? q->count - at : AFSCBMAX;

		q->next += count;
		pthread_mutex_unlock(&q->lock);
		request = *q->request;
		request.cancel = cancel;
		/* After a failure the rest would fail as well. */
		if (fs_ask_statuses(q->directory, &request, q->fids + at, count))
			count = q->count;
		pthread_mutex_lock(&q->lock);
		if (count == q->count)
			q->next = q->count;
	}
	if (--q->asking == 0)
		pthread_cond_signal(&q->answered);
	pthread_mutex_unlock(&q->lock);
}

static void help_to_ask(void *arg)
{
	ask_questions(arg, NULL);
	put_questions(arg);
}

static void call_helpers(struct questions *q)
{
	struct fs_vnode *v = q->directory;

	for (unsigned done = AFSCBMAX; done < q->count; done += AFSCBMAX) {
		pthread_mutex_lock(&q->lock);
		q->references++;
		pthread_mutex_unlock(&q->lock);
		if (fs_execute(v->client->executor, v->fid.cell, fs_server_of(v), help_to_ask, q)) {
			put_questions(q);
			return;
		}
	}
}

void fs_ask_many(struct fs_vnode *directory, struct rxafs_request *request,
		 const struct rxafs_fid *fids, unsigned count)
{
	struct questions *q = calloc(1, sizeof(*q));

	if (!q)
		return;
	pthread_mutex_init(&q->lock, NULL);
	pthread_cond_init(&q->answered, NULL);
	q->references = 1;
	q->directory = directory;
	q->request = request;
	q->fids = fids;
	q->count = count;
	call_helpers(q);
	ask_questions(q, request->cancel);
	pthread_mutex_lock(&q->lock);
	while (q->asking)
		pthread_cond_wait(&q->answered, &q->lock);
	pthread_mutex_unlock(&q->lock);
	put_questions(q);
}

int fs_rights(struct fs_vnode *directory, struct rxafs_request *request, uint32_t *rights)
{
	uint32_t identity = fs_identity(request, directory->fid.cell);
	struct cl_status status;
	int result = cl_object_rights(directory->object, identity, cl_net_now(), rights);

	if (result != -ESTALE)
		return result;
	if (request->quick)
		return fs_would_wait(directory, request);
	result = fs_claim(directory, request, CL_CLAIM_STATUS);
	if (result)
		return result;
	result = cl_object_rights(directory->object, identity, cl_net_now(), rights);
	if (result == -ESTALE) {
		/* With or without a promise, what is told is the answer. */
		cl_object_status(directory->object, cl_net_now(), &status);
		result = ask_status(directory, request, &status, rights);
	}
	fs_unclaim(directory, CL_CLAIM_STATUS);
	return result;
}

/* Who had a token, and has none now, might have had the right (K-131). */
int fs_refuse(const struct fs_vnode *v, struct rxafs_request *request)
{
	if (request->user && cl_identity_expired(request->user->identity, v->fid.cell))
		return fs_fail(request, -EKEYEXPIRED, "the token has expired");
	return fs_fail(request, -EACCES, "the access list does not permit it");
}

int fs_need_rights(struct fs_vnode *directory, struct rxafs_request *request, uint32_t needed)
{
	uint32_t rights;
	int result = fs_rights(directory, request, &rights);

	return result || (rights & needed) == needed ? result : fs_refuse(directory, request);
}

int fs_governing_rights(struct fs_vnode *v, const struct cl_status *status,
			struct rxafs_request *request, uint32_t *rights)
{
	struct rxafs_fid fid = v->fid;
	struct fs_vnode *directory;
	int result;

	if (status->kind == RXAFS_DIRECTORY)
		return fs_rights(v, request, rights);
	fid.vnode = status->parent_vnode;
	fid.unique = status->parent_unique;
	directory = fs_get_vnode(v->client, v->volume, &fid);
	if (!directory)
		return -ENOMEM;
	result = fs_rights(directory, request, rights);
	fs_put_vnode(directory);
	return result;
}
