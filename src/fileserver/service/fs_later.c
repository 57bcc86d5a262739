/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Changes that are answered after their commit. The handler has returned by then: the thread that
 * commits replies to all calls of a transaction. A call that has to wait, for clients that hold promises
 * or for changes of others, goes to another thread.
 */
#include <assert.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <rxwire/call.h>
#include <rxwire/queue.h>

#include "common/cpus.h"
#include "fileserver/base/base.h"
#include "fileserver/service/fs.h"

#define FINISHERS_MAX 96 /* threads for those that have to wait */
#define ASKED_MAX     32 /* threads for handlers that go on */

struct fsd_later {
	/*
	 * Threads that may wait, for calls that have not told all clients of their changes, and those that may wait
	 * for changes of others. The former are urgent, because the latter wait for them. So all are of one caller.
	 */
	struct fsd_pool *pool;
	/* Others, for handlers that go on after a question: they may wait for those. */
	struct fsd_pool *asked;
	pthread_mutex_t lock;	     /* covers the rest */
	pthread_cond_t gone;	     /* `calls` is 0 */
	struct fsd_pool_caller *all, *all_asked; /* constant once they are set, by the first call */
	unsigned calls; /* that others answer, and threads that are about to send answers */
	bool settled;	/* no further calls */
};

static struct fs_call *fs_of_later(struct store_later *later)
{
	return (struct fs_call *)(void *)((char *)later - offsetof(struct fs_call, later));
}

/* -- threads that may wait -- */

static void finish_job(struct fsd_job *job);

static void hand_over_call(struct fs_call *call)
{
	struct fsd_later *later = call->service->later;

	assert(call->deferred);
	call->job =
		(struct fsd_job){.caller = later->all, .run = finish_job, .urgent = !call->told};
	fsd_pool_post(later->pool, &call->job);
}

/* An announced change was made, even if the flush after it failed. */
static bool was_changed(const struct fs_call *call)
{
	return !call->later.result || call->announced.count;
}

/* Commit again, on a thread that may wait, after STORE_AGAIN. */
static void commit_again(struct fs_call *call)
{
	call->self.later = NULL;
	call->later.result = call->again(call);
	if (was_changed(call))
		fs_tell(call);
}

/* A thread waits for changes of others only when each of these has ended, or has a thread. */
static void finish_job(struct fsd_job *job)
{
	struct fs_call *call =
		(struct fs_call *)(void *)((char *)job - offsetof(struct fs_call, job));

	if (call->told) {
		call->reply(call, fs_settle(call, call->later.result));
		return;
	}
	if (call->later.result == STORE_AGAIN)
		commit_again(call);
	fs_await_told(call);
	call->told = true;
	if (fs_all_settled(call))
		call->reply(call, call->later.result);
	else
		hand_over_call(call);
}

struct fsd_later *fsd_later_create(void)
{
	struct fsd_later *later = calloc(1, sizeof(*later));

	if (!later)
		return NULL;
	later->pool = fsd_pool_create(FINISHERS_MAX, FINISHERS_MAX, sizeof(struct fsd_pool_caller));
	later->asked = fsd_pool_create(ASKED_MAX, cpus_allowed(), sizeof(struct fsd_pool_caller));
	if (!later->pool || !later->asked) {
		fsd_pool_destroy(later->asked);
		fsd_pool_destroy(later->pool);
		free(later);
		return NULL;
	}
	pthread_mutex_init(&later->lock, NULL);
	pthread_cond_init(&later->gone, NULL);
	return later;
}

void fsd_later_settle(struct fsd_later *later)
{
	pthread_mutex_lock(&later->lock);
	later->settled = true;
	while (later->calls)
		pthread_cond_wait(&later->gone, &later->lock);
	pthread_mutex_unlock(&later->lock);
}

void fsd_later_destroy(struct fsd_later *later)
{
	if (!later)
		return;
	assert(!later->calls);
	if (later->all)
		fsd_pool_leave(later->pool, later->all);
	if (later->all_asked)
		fsd_pool_leave(later->asked, later->all_asked);
	/* Its threads end here, and give up their rings of the audit log. */
	fsd_pool_destroy(later->asked);
	fsd_pool_destroy(later->pool);
	pthread_cond_destroy(&later->gone);
	pthread_mutex_destroy(&later->lock);
	free(later);
}

/* -- calls -- */

/* False: there is no thread, or the server stops. */
static bool hold_service(struct fsd_later *later)
{
	static const struct fsd_share_key all;
	bool possible;

	pthread_mutex_lock(&later->lock);
	if (!later->all)
		later->all = fsd_pool_enter(later->pool, &all);
	if (!later->all_asked)
		later->all_asked = fsd_pool_enter(later->asked, &all);
	possible = !later->settled && later->all && later->all_asked;
	later->calls += possible;
	pthread_mutex_unlock(&later->lock);
	return possible;
}

static void release_service(struct fsd_later *later)
{
	pthread_mutex_lock(&later->lock);
	assert(later->calls > 0);
	if (!--later->calls)
		pthread_cond_broadcast(&later->gone);
	pthread_mutex_unlock(&later->lock);
}

bool fs_defer(struct fs_call *call)
{
	struct fsd_later *later = call->service->later;

	if (!call->deferred) {
		if (!hold_service(later))
			return false;
		if (rxw_call_defer(call->rx)) {
			release_service(later);
			return false;
		}
		call->deferred = true;
	}
	/* The handler may have returned since, with the place of `left`. */
	if (call->left)
		*call->left = true;
	call->left = NULL;
	return true;
}

void fs_answer_later(struct fs_call *call, int result,
		     void (*reply)(struct fs_call *call, int result))
{
	call->reply = reply;
	call->later.result = result;
	call->told = true;
	hand_over_call(call);
}

void fs_run_later(struct fs_call *call, void (*run)(struct fsd_job *job))
{
	struct fsd_later *later = call->service->later;

	assert(call->deferred);
	call->job = (struct fsd_job){.caller = later->all, .run = run};
	fsd_pool_post(later->pool, &call->job);
}

void fs_run_asked(struct fs_call *call, void (*run)(struct fsd_job *job))
{
	struct fsd_later *later = call->service->later;

	assert(call->deferred);
	call->job = (struct fsd_job){.caller = later->all_asked, .run = run};
	fsd_pool_post(later->asked, &call->job);
}

/* This runs before the operation is queued: from then on others may use the call. */
static bool leave_handler(struct store_later *of)
{
	return fs_defer(fs_of_later(of));
}

/* Calls that have to wait for clients go to other threads. Returns the rest. */
static struct store_later *tell_all(struct store_later *list)
{
	struct store_later *rest = NULL, **last = &rest, *next;

	for (; list; list = next) {
		struct fs_call *call = fs_of_later(list);

		next = list->next;
		if (list->result == STORE_AGAIN || (was_changed(call) && !fs_tell(call))) {
			hand_over_call(call);
		} else {
			*last = list;
			last = &list->next;
		}
	}
	*last = NULL;
	return rest;
}

static void answer_call(struct fs_call *call)
{
	call->told = true;
	if (fs_all_settled(call) && !fsd_promise_waits(call->service->clients, &call->caller)) {
		call->hasty = true;
		call->reply(call, call->later.result);
	} else {
		hand_over_call(call);
	}
}

/*
 * The replies leave together. First all clients are told, so that the calls of a transaction do not wait
 * for each other if no client has to answer.
 */
static void answer_all(struct store_later *list)
{
	struct fsd_later *later = fs_of_later(list)->service->later;
	struct store_later *next;

	/* The endpoint must exist until the replies have left. */
	pthread_mutex_lock(&later->lock);
	later->calls++;
	pthread_mutex_unlock(&later->lock);
	rxw_batch_begin();
	for (list = tell_all(list); list; list = next) {
		next = list->next;
		answer_call(fs_of_later(list));
	}
	rxw_batch_end();
	release_service(later);
}

const struct store_caller *fs_self_later(struct fs_call *call,
					 void (*reply)(struct fs_call *call, int result),
					 int (*again)(struct fs_call *call))
{
	call->reply = reply;
	call->again = again;
	call->later = (struct store_later){.leave = leave_handler, .done = answer_all};
	call->self.later = &call->later;
	return &call->self;
}

void fs_end_change(struct fs_call *call, int result)
{
	assert(call->deferred && result != STORE_LATER);
	call->later.result = result;
	call->later.next = NULL;
	answer_all(&call->later);
}

void fs_set_callback(struct fs_call *call, rxw_call_fn report, void *arg)
{
	int rc = rxw_call_set_callback(call->rx, report, arg);

	assert(call->deferred && rc == 0); /* this thread may wait for a callback that runs */
	(void)rc;
}

void fs_end(struct fs_call *call, int32_t code)
{
	struct fsd_later *later = call->service->later;

	assert(call->deferred && !call->breaking);
	if (code)
		fsd_promise_undo(call->service->clients, &call->caller, &call->promised);
	fs_leave(call);
	fs_count(call, code);
	free(call);
	release_service(later);
}
