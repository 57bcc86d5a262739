/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls that make no progress are aborted by a thread; any thread cancels what goes on; at the end
 * the servers are told that their promises are not needed any more.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "afs/client/private.h"

uint64_t afs_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void afs_watch_init(struct afs_client *c)
{
	pthread_condattr_t attr;

	atomic_init(&c->due, UINT64_MAX);
	pthread_mutex_init(&c->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&c->wake, &attr);
	pthread_condattr_destroy(&attr);
}

static void *watch(void *arg)
{
	struct afs_client *c = arg;
	uint64_t limit = (uint64_t)c->limit_ms * 1000000;

	pthread_mutex_lock(&c->lock);
	while (!c->closing) {
		uint64_t now = afs_now(), due = atomic_load(&c->due);
		/* A wait that begins later is due in `limit` at the earliest. */
		uint64_t until = due < now + limit ? due : now + limit;
		struct timespec at = {.tv_sec = (time_t)(until / 1000000000),
				      .tv_nsec = (long)(until % 1000000000)};

		if (now >= due && c->running) {
			c->stalled = true;
			rxw_call_abort(c->running, RXW_USER_ABORT);
			atomic_store(&c->due, UINT64_MAX);
			continue;
		}
		pthread_cond_timedwait(&c->wake, &c->lock, &at);
	}
	pthread_mutex_unlock(&c->lock);
	return NULL;
}

int afs_watch_start(struct afs_client *c)
{
	if (!c->watching && pthread_create(&c->watcher, NULL, watch, c) == 0)
		c->watching = true;
	return c->watching ? 0 : -RXW_ENOMEM;
}

void afs_watch_end(struct afs_client *c)
{
	pthread_mutex_lock(&c->lock);
	c->closing = true;
	pthread_cond_signal(&c->wake);
	pthread_mutex_unlock(&c->lock);
	if (c->watching)
		pthread_join(c->watcher, NULL);
	pthread_cond_destroy(&c->wake);
	pthread_mutex_destroy(&c->lock);
}

void afs_client_cancel(struct afs_client *c)
{
	pthread_mutex_lock(&c->lock);
	c->cancelled = true;
	if (c->running)
		rxw_call_abort(c->running, RXW_USER_ABORT);
	pthread_mutex_unlock(&c->lock);
}

/* ---- servers that may hold promises for us ---- */

static struct asked *find(struct afs_client *c, const struct sockaddr_storage *server)
{
	for (unsigned i = 0; i < c->asked_count; i++)
		if (afs_same_address(&c->asked[i].address, server))
			return &c->asked[i];
	return NULL;
}

void afs_server_asked(struct afs_client *c, const struct sockaddr_storage *server, socklen_t len)
{
	struct asked *a = find(c, server);

	/* One that never answered gives no promise; else the last one is forgotten. */
	for (unsigned i = 0; !a && i < c->asked_count && c->asked_count == ASKED_MAX; i++)
		if (c->asked[i].silent)
			a = &c->asked[i];
	if (!a)
		a = &c->asked[c->asked_count < ASKED_MAX ? c->asked_count++ : ASKED_MAX - 1];
	*a = (struct asked){.address = *server, .len = len};
}

void afs_server_silent(struct afs_client *c, const struct sockaddr_storage *server)
{
	struct asked *a;

	pthread_mutex_lock(&c->lock);
	a = find(c, server);
	if (a)
		a->silent = true;
	pthread_mutex_unlock(&c->lock);
}

/* Begin to tell one server; NULL if that cannot be. The lock is held. */
static rxw_call *tell(struct afs_client *c, const struct asked *a, unsigned ms)
{
	struct rxw_call_options co = {.size = sizeof(co), .flags = RXW_CALL_TRY, .deadline_ms = ms};
	rxw_connection *connection = NULL;
	rxw_call *call = NULL;

	if (a->silent)
		return NULL;
	if (c->fs && afs_same_address(&c->fs_address, &a->address))
		rxw_call_begin(c->fs, &co, &call);
	if (!call && rxw_connection_create(c->endpoint, (const struct sockaddr *)&a->address,
					   a->len, AFS_SERVICE_FS, c->security, &connection) == 0)
		rxw_call_begin(connection, &co, &call);
	/* The call keeps its connection. */
	rxw_connection_release(connection);
	if (call && (StartRXAFS_GiveUpAllCallBacks(call) != 0 || rxw_call_send_end(call) < 0)) {
		rxw_call_end(call, RXW_USER_ABORT, NULL);
		call = NULL;
	}
	return call;
}

void afs_client_give_up(struct afs_client *const *clients, size_t count, unsigned ms)
{
	size_t room = 0, calls = 0;
	rxw_call **call;

	for (size_t i = 0; i < count; i++)
		room += clients[i] ? clients[i]->asked_count : 0;
	call = room ? malloc(room * sizeof(*call)) : NULL;
	if (!call)
		return;
	for (size_t i = 0; i < count; i++) {
		struct afs_client *c = clients[i];

		if (!c)
			continue;
		pthread_mutex_lock(&c->lock);
		for (unsigned k = 0; k < c->asked_count && calls < room; k++) {
			call[calls] = tell(c, &c->asked[k], ms);
			calls += call[calls] != NULL;
		}
		c->asked_count = 0;
		pthread_mutex_unlock(&c->lock);
	}
	/* All have the same time: together they take no longer than one. */
	while (calls > 0) {
		int32_t code = EndRXAFS_GiveUpAllCallBacks(call[--calls]);

		rxw_call_end(call[calls], code, NULL);
	}
	free(call);
}
