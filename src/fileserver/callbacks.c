/* SPDX-License-Identifier: BSD-2-Clause */
/* One thread makes the calls to clients, many at a time, none of them awaited. */
#include "fileserver/callbacks.h"

#include <netinet/in.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <rxwire/call.h>
#include <rxwire/endpoint.h>

#include "afs/opcodes.h"
#include "fileserver/log.h"

#define IN_FLIGHT_MAX 64
#define DEAD_MS	      4000
#define DEADLINE_MS   8000
#define REQUEST_MAX   (12 + AFS_BULK_MAX * AFS_FID_BYTES)
#define REPLY_MAX     (AFS_INTERFACES_BYTES + 4 + 4 * AFS_CAPS_MAX)

/*
 * A call to a client. Only the thread touches it, but for the link and `done`, which the lock
 * covers.
 */
struct task {
	struct task *next; /* in `finished` */
	struct task *flying_next, **flying_link;
	struct fsd_callbacks *callbacks;
	struct fsd_work work;
	rxw_connection *connection;
	rxw_call *call;
	bool done; /* reported already */
};

struct fsd_callbacks {
	rxw_endpoint *endpoint;
	struct fsd_clients *clients;
	struct afs_uuid uuid;
	pthread_t thread;
	pthread_mutex_t lock; /* covers finished, kicked, stop */
	pthread_cond_t wake;
	struct task *finished;
	bool kicked, stop;
	unsigned flying_count; /* of the thread */
	struct task *flying;
};

uint64_t fsd_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec;
}

/* On a thread of the library: only pass it on. */
static void task_event(rxw_call *call, unsigned events, void *arg)
{
	struct task *task = arg;
	struct fsd_callbacks *callbacks = task->callbacks;

	(void)call;
	if (!(events & RXW_EVENT_DONE))
		return;
	pthread_mutex_lock(&callbacks->lock);
	if (!task->done) {
		task->done = true;
		task->next = callbacks->finished;
		callbacks->finished = task;
		pthread_cond_signal(&callbacks->wake);
	}
	pthread_mutex_unlock(&callbacks->lock);
}

static size_t encode(const struct fsd_callbacks *callbacks, const struct fsd_work *work,
		     uint8_t request[REQUEST_MAX])
{
	struct rxw_xdr x;

	rxw_xdr_writer(&x, request, REQUEST_MAX);
	switch (work->kind) {
	case FSD_WORK_IDENTIFY:
		rxw_xdr_put_u32(&x, AFS_CB_TELL_ME_ABOUT_YOURSELF);
		break;
	case FSD_WORK_INIT:
		rxw_xdr_put_u32(&x, AFS_CB_INIT_STATE3);
		afs_uuid_put(&x, &callbacks->uuid);
		break;
	case FSD_WORK_BREAK:
		rxw_xdr_put_u32(&x, AFS_CB_CALLBACK);
		afs_fids_put(&x, work->fids, work->count);
		rxw_xdr_put_u32(&x, 0); /* no array of promises: they are all broken */
		break;
	}
	return rxw_xdr_ok(&x) ? rxw_xdr_used(&x) : 0;
}

static socklen_t address_length(const struct sockaddr_storage *sa)
{
	return sa->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
}

/* Begin the call; false if it could not even be begun. */
static bool launch(struct fsd_callbacks *callbacks, struct task *task)
{
	struct rxw_call_options options = {
		.size = sizeof(options),
		.flags = RXW_CALL_NONBLOCK,
		.deadline_ms = DEADLINE_MS,
		.callback = task_event,
		.arg = task,
	};
	uint8_t request[REQUEST_MAX];
	size_t length = encode(callbacks, &task->work, request);
	const struct sockaddr *peer = (const struct sockaddr *)&task->work.peer;

	if (rxw_connection_create(callbacks->endpoint, peer, address_length(&task->work.peer),
				  AFS_SERVICE_CB, NULL, &task->connection))
		return false;
	rxw_connection_set_timeouts(task->connection, DEAD_MS, 0, 0);
	if (rxw_call_begin(task->connection, &options, &task->call)) {
		rxw_connection_release(task->connection);
		return false;
	}
	/* A failure from here on comes back as the call's error. */
	if (rxw_call_write(task->call, request, length) != (ssize_t)length ||
	    rxw_call_send_end(task->call) < 0)
		rxw_call_abort(task->call, RXW_USER_ABORT);
	return true;
}

static bool read_caps(struct task *task, uint32_t *caps)
{
	uint8_t reply[REPLY_MAX];
	struct afs_interfaces interfaces;
	struct rxw_xdr x;
	size_t got = 0;
	ssize_t n;

	while (got < sizeof(reply) &&
	       (n = rxw_call_read(task->call, reply + got, sizeof(reply) - got)) > 0)
		got += (size_t)n;
	rxw_xdr_reader(&x, reply, got);
	/* What it says of its addresses is not used: it could name somebody else's. */
	return afs_interfaces_get(&x, &interfaces) && afs_caps_get(&x, caps);
}

static void finish(struct fsd_callbacks *callbacks, struct task *task)
{
	uint32_t caps = 0;
	bool ok = true;

	if (task->work.kind == FSD_WORK_IDENTIFY)
		ok = read_caps(task, &caps);
	if (rxw_call_end(task->call, 0, NULL) != 0)
		ok = false;
	rxw_connection_release(task->connection);
	*task->flying_link = task->flying_next;
	if (task->flying_next)
		task->flying_next->flying_link = task->flying_link;
	callbacks->flying_count--;
	fsd_work_done(callbacks->clients, &task->work, ok, caps, fsd_now());
	free(task);
}

/* Begin what there is to do. */
static void take_work(struct fsd_callbacks *callbacks)
{
	while (callbacks->flying_count < IN_FLIGHT_MAX) {
		struct task *task = calloc(1, sizeof(*task));

		if (!task)
			return;
		task->callbacks = callbacks;
		if (!fsd_work_take(callbacks->clients, &task->work)) {
			free(task);
			return;
		}
		if (task->work.kind == FSD_WORK_BREAK && task->work.count == 0) {
			fsd_work_done(callbacks->clients, &task->work, true, 0, fsd_now());
			free(task);
			continue;
		}
		task->flying_next = callbacks->flying;
		task->flying_link = &callbacks->flying;
		if (launch(callbacks, task)) {
			if (callbacks->flying)
				callbacks->flying->flying_link = &task->flying_next;
			callbacks->flying = task;
			callbacks->flying_count++;
		} else {
			fsd_work_done(callbacks->clients, &task->work, false, 0, fsd_now());
			free(task);
		}
	}
}

static void *callbacks_main(void *arg)
{
	struct fsd_callbacks *callbacks = arg;
	bool stopping = false;

	pthread_mutex_lock(&callbacks->lock);
	while (!stopping || callbacks->flying_count) {
		struct task *task = callbacks->finished;

		if (task) {
			callbacks->finished = task->next;
			pthread_mutex_unlock(&callbacks->lock);
			finish(callbacks, task);
			pthread_mutex_lock(&callbacks->lock);
			callbacks->kicked = true; /* there is room for another */
		} else if (callbacks->stop && !stopping) {
			stopping = true;
			pthread_mutex_unlock(&callbacks->lock);
			for (task = callbacks->flying; task; task = task->flying_next)
				rxw_call_abort(task->call, RXW_USER_ABORT);
			pthread_mutex_lock(&callbacks->lock);
		} else if (callbacks->kicked && !stopping) {
			callbacks->kicked = false;
			pthread_mutex_unlock(&callbacks->lock);
			take_work(callbacks);
			pthread_mutex_lock(&callbacks->lock);
		} else {
			pthread_cond_wait(&callbacks->wake, &callbacks->lock);
		}
	}
	pthread_mutex_unlock(&callbacks->lock);
	return NULL;
}

struct fsd_callbacks *fsd_callbacks_start(rxw_endpoint *endpoint, struct fsd_clients *clients,
					  const struct afs_uuid *uuid)
{
	struct fsd_callbacks *callbacks = calloc(1, sizeof(*callbacks));

	if (!callbacks)
		return NULL;
	callbacks->endpoint = endpoint;
	callbacks->clients = clients;
	callbacks->uuid = *uuid;
	pthread_mutex_init(&callbacks->lock, NULL);
	pthread_cond_init(&callbacks->wake, NULL);
	if (pthread_create(&callbacks->thread, NULL, callbacks_main, callbacks)) {
		free(callbacks);
		return NULL;
	}
	return callbacks;
}

void fsd_callbacks_wake(struct fsd_callbacks *callbacks)
{
	pthread_mutex_lock(&callbacks->lock);
	callbacks->kicked = true;
	pthread_cond_signal(&callbacks->wake);
	pthread_mutex_unlock(&callbacks->lock);
}

void fsd_callbacks_stop(struct fsd_callbacks *callbacks)
{
	if (!callbacks)
		return;
	pthread_mutex_lock(&callbacks->lock);
	callbacks->stop = true;
	pthread_cond_signal(&callbacks->wake);
	pthread_mutex_unlock(&callbacks->lock);
	pthread_join(callbacks->thread, NULL);
	pthread_cond_destroy(&callbacks->wake);
	pthread_mutex_destroy(&callbacks->lock);
	free(callbacks);
}
