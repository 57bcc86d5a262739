/* SPDX-License-Identifier: BSD-2-Clause */
/* One thread makes asynchronous calls to clients, many at a time. */
#include "fileserver/callbacks/clients.h"

#include <assert.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <rxwire/afs.h>
#include <rxwire/call.h>
#include <rxwire/rpc.h>

#include "afs/numbers.h"
#include "afs/rxafscb.h"
#include "common/background.h"
#include "fileserver/base/base.h"

#define DEAD_MS	      4000
#define DEADLINE_MS   8000
#define CHECK_S	      60 /* between checks for idle clients */

/*
 * A call to a client. Only the thread uses it, except for `next` and `done`, which the lock covers.
 */
struct task {
	struct task *next; /* in `finished` */
	struct task *flying_next, **flying_link;
	struct fsd_callbacks *callbacks;
	struct fsd_work work;
	rxw_connection *connection;
	rxw_call *call;
	bool done; /* already in `finished` */
};

struct fsd_callbacks {
	rxw_endpoint *endpoint;
	struct fsd_clients *clients;
	struct rxw_uuid uuid;
	struct background background; /* its lock covers: */
	struct task *finished;
	bool kicked;
	unsigned flying_count; /* of the thread */
	struct task *flying;
	size_t swept; /* of the thread: cursor of fsd_promise_sweep() */
};

/* Runs on a thread of the library, and only hands the task to ours. */
static void task_event(rxw_call *call, unsigned events, void *arg)
{
	struct task *task = arg;
	struct fsd_callbacks *callbacks = task->callbacks;

	(void)call;
	if (!(events & RXW_EVENT_DONE))
		return;
	pthread_mutex_lock(&callbacks->background.lock);
	if (!task->done) {
		task->done = true;
		task->next = callbacks->finished;
		callbacks->finished = task;
		wake_background(&callbacks->background);
	}
	pthread_mutex_unlock(&callbacks->background.lock);
}

/* Send opcode and arguments. They fit the send queue of a call, so this does not block. */
static int32_t send_client_request(const struct fsd_callbacks *callbacks, struct fsd_work *work,
				   rxw_call *call)
{
	AFSCBFids fids = {work->count, work->fids};
	AFSCBs none = {0}; /* an empty array of promises: all are broken */

	switch (work->kind) {
	case FSD_WORK_IDENTIFY:
		return StartRXAFSCB_TellMeAboutYourself(call);
	case FSD_WORK_WHO:
		return StartRXAFSCB_WhoAreYou(call);
	case FSD_WORK_INIT:
		if (work->identified)
			return StartRXAFSCB_InitCallBackState3(call, &callbacks->uuid);
		return StartRXAFSCB_InitCallBackState(call);
	case FSD_WORK_PROBE:
		if (work->identified)
			return StartRXAFSCB_ProbeUuid(call, &work->uuid);
		return StartRXAFSCB_Probe(call);
	case FSD_WORK_FORGET:
	case FSD_WORK_BREAK:
		break;
	}
	return StartRXAFSCB_CallBack(call, &fids, &none);
}

/*
 * Read the results of a completed call; this does not block. The addresses that a client lists are
 * not used, because it could list those of another host.
 */
static int32_t read_results(const struct task *task, struct fsd_answer *answer)
{
	interfaceAddr self;
	Capabilities caps;
	int32_t code = 0;

	self.numberOfInterfaces = 0;
	if (task->work.kind == FSD_WORK_IDENTIFY) {
		code = EndRXAFSCB_TellMeAboutYourself(task->call, &self, &caps);
		answer->uuid = self.uuid;
		answer->caps = caps.len ? caps.val[0] : 0;
		xdrfree_Capabilities(&caps);
	} else if (task->work.kind == FSD_WORK_WHO) {
		code = EndRXAFSCB_WhoAreYou(task->call, &self);
		answer->uuid = self.uuid;
	}
	if (self.numberOfInterfaces < 0 || self.numberOfInterfaces > AFS_MAX_INTERFACE_ADDR)
		code = RXW_RPC_CC_UNMARSHAL;
	return code;
}

static socklen_t address_length(const struct sockaddr_storage *sa)
{
	return sa->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
}

/* Begin the call; false if that failed. */
static bool begin_client_call(struct fsd_callbacks *callbacks, struct task *task)
{
	struct rxw_call_options options = {
		.size = sizeof(options),
		.flags = RXW_CALL_NONBLOCK,
		.deadline_ms = DEADLINE_MS,
		.callback = task_event,
		.arg = task,
	};
	const struct sockaddr *peer = (const struct sockaddr *)&task->work.peer;
	const struct sockaddr *local = (const struct sockaddr *)&task->work.local;

	if (rxw_connection_create(callbacks->endpoint, peer, address_length(&task->work.peer),
				  AFS_SERVICE_CB, NULL, &task->connection))
		return false;
	/* Clients ignore callbacks from an address that they do not call. */
	if (local->sa_family)
		rxw_connection_set_local(task->connection, local,
					 address_length(&task->work.local));
	rxw_connection_set_timeouts(task->connection, DEAD_MS, 0, 0);
	if (rxw_call_begin(task->connection, &options, &task->call)) {
		rxw_connection_release(task->connection);
		return false;
	}
	/* A failure from here on is reported as the error of the call. */
	if (send_client_request(callbacks, &task->work, task->call) ||
	    rxw_call_send_end(task->call) < 0)
		rxw_call_abort(task->call, RXW_USER_ABORT);
	return true;
}

static unsigned function_of(const struct fsd_work *work)
{
	switch (work->kind) {
	case FSD_WORK_IDENTIFY:
		return RXAFSCB_FN_TellMeAboutYourself;
	case FSD_WORK_WHO:
		return RXAFSCB_FN_WhoAreYou;
	case FSD_WORK_INIT:
		return work->identified ? RXAFSCB_FN_InitCallBackState3
					: RXAFSCB_FN_InitCallBackState;
	case FSD_WORK_PROBE:
		return work->identified ? RXAFSCB_FN_ProbeUuid : RXAFSCB_FN_Probe;
	case FSD_WORK_FORGET:
	case FSD_WORK_BREAK:
		break;
	}
	return RXAFSCB_FN_CallBack;
}

static void finish_client_call(struct fsd_callbacks *callbacks, struct task *task)
{
	struct fsd_answer answer = {0};

	assert(task->done);
	answer.code = read_results(task, &answer);
	answer.code =
		rxw_rpc_end(task->call, answer.code, &RXAFSCB_interface, function_of(&task->work));
	rxw_connection_release(task->connection);
	*task->flying_link = task->flying_next;
	if (task->flying_next)
		task->flying_next->flying_link = task->flying_link;
	assert(callbacks->flying_count > 0);
	callbacks->flying_count--;
	fsd_work_done(callbacks->clients, &task->work, &answer, fsd_now());
	free(task);
}

/* The next piece of work for which there is room. */
static bool next_work(struct fsd_callbacks *callbacks, struct fsd_work *work)
{
	if (callbacks->flying_count < IN_FLIGHT_MAX)
		return fsd_work_take(callbacks->clients, work, fsd_now());
	return fsd_work_take_urgent(callbacks->clients, work, fsd_now());
}

/* Begin as many calls as there is work and room for. */
static void take_work(struct fsd_callbacks *callbacks)
{
	const struct fsd_answer well = {0}, lost = {.code = RXW_CALL_DEAD};

	while (callbacks->flying_count < URGENT_MAX) {
		struct task *task = calloc(1, sizeof(*task));

		if (!task)
			return;
		task->callbacks = callbacks;
		if (!next_work(callbacks, &task->work)) {
			free(task);
			return;
		}
		if ((task->work.kind == FSD_WORK_BREAK || task->work.kind == FSD_WORK_FORGET) &&
		    task->work.count == 0) {
			fsd_work_done(callbacks->clients, &task->work, &well, fsd_now());
			free(task);
			continue;
		}
		task->flying_next = callbacks->flying;
		task->flying_link = &callbacks->flying;
		if (begin_client_call(callbacks, task)) {
			if (callbacks->flying)
				callbacks->flying->flying_link = &task->flying_next;
			callbacks->flying = task;
			callbacks->flying_count++;
		} else {
			fsd_work_done(callbacks->clients, &task->work, &lost, fsd_now());
			free(task);
		}
	}
}

/* Remove promises that have expired, at most this many objects at a time. */
static void sweep_expired_promises(struct fsd_callbacks *callbacks)
{
	AFSFid fids[256];

	for (int i = 0; i < 64; i++)
		if (!fsd_promise_sweep(callbacks->clients, &callbacks->swept, fids, 256, fsd_now()))
			break;
}

static void *callbacks_main(void *arg)
{
	struct fsd_callbacks *callbacks = arg;
	uint64_t check = fsd_now() + CHECK_S;
	bool stopping = false;

	pthread_mutex_lock(&callbacks->background.lock);
	while (!stopping || callbacks->flying_count) {
		struct task *task = callbacks->finished;

		if (task) {
			callbacks->finished = task->next;
			pthread_mutex_unlock(&callbacks->background.lock);
			finish_client_call(callbacks, task);
			pthread_mutex_lock(&callbacks->background.lock);
			callbacks->kicked = true; /* another call may begin */
		} else if (callbacks->background.stop && !stopping) {
			stopping = true;
			pthread_mutex_unlock(&callbacks->background.lock);
			for (task = callbacks->flying; task; task = task->flying_next)
				rxw_call_abort(task->call, RXW_USER_ABORT);
			pthread_mutex_lock(&callbacks->background.lock);
		} else if (callbacks->kicked && !stopping) {
			callbacks->kicked = false;
			pthread_mutex_unlock(&callbacks->background.lock);
			take_work(callbacks);
			pthread_mutex_lock(&callbacks->background.lock);
		} else if (fsd_now() >= check) {
			check = fsd_now() + CHECK_S;
			pthread_mutex_unlock(&callbacks->background.lock);
			fsd_clients_check(callbacks->clients, fsd_now());
			sweep_expired_promises(callbacks);
			pthread_mutex_lock(&callbacks->background.lock);
		} else {
			sleep_in_background(&callbacks->background, check * NS_PER_S);
		}
	}
	pthread_mutex_unlock(&callbacks->background.lock);
	assert(!callbacks->flying && !callbacks->finished);
	return NULL;
}

struct fsd_callbacks *fsd_callbacks_start(rxw_endpoint *endpoint, struct fsd_clients *clients,
					  const struct rxw_uuid *uuid)
{
	struct fsd_callbacks *callbacks = calloc(1, sizeof(*callbacks));

	if (!callbacks)
		return NULL;
	callbacks->endpoint = endpoint;
	callbacks->clients = clients;
	callbacks->uuid = *uuid;
	if (start_background(&callbacks->background, callbacks_main, callbacks) == 0)
		return callbacks;
	free(callbacks);
	return NULL;
}

void fsd_callbacks_wake(struct fsd_callbacks *callbacks)
{
	pthread_mutex_lock(&callbacks->background.lock);
	callbacks->kicked = true;
	wake_background(&callbacks->background);
	pthread_mutex_unlock(&callbacks->background.lock);
}

void fsd_callbacks_stop(struct fsd_callbacks *callbacks)
{
	if (!callbacks)
		return;
	stop_background(&callbacks->background);
	free(callbacks);
}
