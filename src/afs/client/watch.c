/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls that make no progress are aborted by a thread; any thread cancels what goes on; at the end
 * the servers are told that their promises are not needed any more.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "afs/client/private.h"
#include "afs/uuid.h"
#include "common/clock.h"

static int32_t who_are_you(void *context, rxw_call *call, interfaceAddr *addr)
{
	const struct afs_client *client = context;

	(void)call;
	*addr = client->self;
	return 0;
}

static int32_t tell_me_about_yourself(void *context, rxw_call *call, interfaceAddr *addr,
				      Capabilities *caps)
{
	caps->val = malloc(sizeof(*caps->val));
	if (!caps->val)
		return rxw_code_from_errno(ENOMEM);
	caps->val[0] = CLIENT_CAPABILITY_ERRORTRANS;
	caps->len = 1;
	return who_are_you(context, call, addr);
}

static int32_t probe_uuid(void *context, rxw_call *call, const struct rxw_uuid *uuid)
{
	const struct afs_client *client = context;

	(void)call;
	return afs_uuid_same(uuid, &client->self.uuid) ? 0 : 1;
}

static int32_t nothing_to_do(void *context, rxw_call *call)
{
	(void)context;
	(void)call;
	return 0;
}

static int32_t nothing_to_forget(void *context, rxw_call *call, const struct rxw_uuid *server)
{
	(void)server;
	return nothing_to_do(context, call);
}

static int32_t nothing_to_break(void *context, rxw_call *call, const AFSCBFids *fids,
				const AFSCBs *cbs)
{
	(void)fids;
	(void)cbs;
	return nothing_to_do(context, call);
}

int afs_client_callbacks(struct afs_client *client)
{
	static const struct RXAFSCB_handlers handlers = {
		.CallBack = nothing_to_break,
		.InitCallBackState = nothing_to_do,
		.InitCallBackState2 = who_are_you,
		.InitCallBackState3 = nothing_to_forget,
		.Probe = nothing_to_do,
		.ProbeUuid = probe_uuid,
		.TellMeAboutYourself = tell_me_about_yourself,
		.WhoAreYou = who_are_you,
	};
	struct rxw_service_options so = {.size = sizeof(so),
					 .id = AFS_SERVICE_CB,
					 .name = "callback",
					 .handler = RXAFSCB_ExecuteRequest,
					 .context = &client->callbacks};
	rxw_service *service;

	client->callbacks.base.context = client;
	client->callbacks.handlers = &handlers;
	return rxw_service_add(client->endpoint, &so, &service);
}

#define STOPPED_NS (2 * (uint64_t)NS_PER_S) /* a wait that ends later was no wait */

void afs_watch_init(struct afs_client *c)
{
	atomic_init(&c->due, UINT64_MAX);
	pthread_mutex_init(&c->lock, NULL);
	monotonic_cond_init(&c->wake);
}

static void *abort_stalled_calls(void *arg)
{
	struct afs_client *c = arg;
	uint64_t limit = (uint64_t)c->limit_ms * 1000000;

	pthread_mutex_lock(&c->lock);
	while (!c->closing) {
		uint64_t now = monotonic_ns(), due = atomic_load(&c->due);
		/* A wait that begins later has a later deadline than this. */
		uint64_t until = due < now + limit ? due : now + limit;

		if (now >= due && c->running) {
			c->stalled = true;
			rxw_call_abort(c->running, RXW_USER_ABORT);
			atomic_store(&c->due, UINT64_MAX);
			continue;
		}
		monotonic_wait(&c->wake, &c->lock, until);
		now = monotonic_ns();
		/* This process was stopped: the server is not to blame for the time. */
		if (now > until + STOPPED_NS && due != UINT64_MAX)
			atomic_compare_exchange_strong(&c->due, &due, due + (now - until));
	}
	pthread_mutex_unlock(&c->lock);
	return NULL;
}

int afs_watch_start(struct afs_client *c)
{
	if (!c->watching && pthread_create(&c->watcher, NULL, abort_stalled_calls, c) == 0)
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
	for (unsigned i = 0; i < ASKED_MAX; i++)
		free(c->asked[i].promised);
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

static struct asked *find_asked_server(struct afs_client *c, const struct sockaddr_storage *server)
{
	for (unsigned i = 0; i < c->asked_count; i++)
		if (afs_same_address(&c->asked[i].address, server))
			return &c->asked[i];
	return NULL;
}

void afs_server_asked(struct afs_client *c, const struct sockaddr_storage *server, socklen_t len)
{
	struct asked *a = find_asked_server(c, server);

	if (a) {
		a->silent = false;
		return;
	}
	/* A server that never answered gives no promise; if there is none, the last one is forgotten. */
	for (unsigned i = 0; !a && i < c->asked_count && c->asked_count == ASKED_MAX; i++)
		if (c->asked[i].silent)
			a = &c->asked[i];
	if (!a)
		a = &c->asked[c->asked_count < ASKED_MAX ? c->asked_count++ : ASKED_MAX - 1];
	free(a->promised);
	*a = (struct asked){.address = *server, .len = len};
}

/* If memory is exhausted, and beyond PROMISES_MAX, the server finds out when it breaks the promise. */
static void note_promise(struct asked *a, const AFSFid *fid)
{
	unsigned n = a->promised_count;

	if (n && !memcmp(&a->promised[n - 1], fid, sizeof(*fid)))
		return;
	if (n == a->promised_room) {
		unsigned room = n ? 2 * n : 64;
		AFSFid *more = n < PROMISES_MAX ? realloc(a->promised, room * sizeof(*more)) : NULL;

		if (!more)
			return;
		a->promised = more;
		a->promised_room = room;
	}
	a->promised[a->promised_count++] = *fid;
}

void afs_server_promised(struct afs_client *c, const AFSFid *fid, const AFSCallBack *callback)
{
	struct asked *a;

	if (!callback->ExpirationTime || callback->CallBackType == CB_DROPPED)
		return;
	pthread_mutex_lock(&c->lock);
	a = find_asked_server(c, &c->fs_address);
	if (a)
		note_promise(a, fid);
	pthread_mutex_unlock(&c->lock);
}

void afs_client_fetched(struct afs_client *c, const struct afs_fetch *fetch)
{
	afs_server_promised(c, &fetch->fid, &fetch->callback);
}

void afs_server_silent(struct afs_client *c, const struct sockaddr_storage *server)
{
	struct asked *a;

	pthread_mutex_lock(&c->lock);
	a = find_asked_server(c, server);
	if (a)
		a->silent = true;
	pthread_mutex_unlock(&c->lock);
}

/* One server that is told. */
struct farewell {
	struct afs_client *client;
	struct asked server;
	rxw_call *call; /* GiveUpAllCallBacks, or NULL */
};

/* Begin a call to it; NULL if that cannot be. The lock is held. */
static rxw_call *begin_farewell_call(const struct farewell *f, unsigned ms)
{
	struct rxw_call_options co = {.size = sizeof(co), .flags = RXW_CALL_TRY, .deadline_ms = ms};
	const struct asked *a = &f->server;
	struct afs_client *c = f->client;
	rxw_connection *connection = NULL;
	rxw_call *call = NULL;

	if (a->silent)
		return NULL;
	if (c->fs && afs_same_address(&c->fs_address, &a->address) &&
	    rxw_call_begin(c->fs, &co, &call))
		call = NULL;
	if (!call &&
	    rxw_connection_create(c->endpoint, (const struct sockaddr *)&a->address, a->len,
				  AFS_SERVICE_FS, c->security, &connection) == 0 &&
	    rxw_call_begin(connection, &co, &call))
		call = NULL;
	/* The call keeps its connection. */
	rxw_connection_release(connection);
	return call;
}

/* The lock is held. */
static void give_up_all(struct farewell *f, unsigned ms)
{
	f->call = begin_farewell_call(f, ms);
	if (f->call &&
	    (StartRXAFS_GiveUpAllCallBacks(f->call) != 0 || rxw_call_send_end(f->call) < 0)) {
		rxw_call_end(f->call, RXW_USER_ABORT, NULL);
		f->call = NULL;
	}
}

/* A server that does not know the other call is told of each object, until a time of the clock. */
static void give_up_each(struct farewell *f, uint64_t until)
{
	AFSCallBack dropped[AFSCBMAX];
	unsigned count = f->server.promised_count, n;

	for (unsigned i = 0; i < AFSCBMAX; i++)
		dropped[i] = (AFSCallBack){.CallBackVersion = 1, .CallBackType = CB_DROPPED};
	for (unsigned at = 0; at < count; at += n) {
		uint64_t now = monotonic_ns();
		rxw_call *call = NULL;
		int32_t code;

		n = count - at < AFSCBMAX ? count - at : AFSCBMAX;
		pthread_mutex_lock(&f->client->lock);
		if (now < until)
			call = begin_farewell_call(f, (unsigned)((until - now) / 1000000 + 1));
		pthread_mutex_unlock(&f->client->lock);
		if (!call)
			return;
		code = StartRXAFS_GiveUpCallBacks(
			call, &(AFSCBFids){.len = n, .val = f->server.promised + at},
			&(AFSCBs){.len = n, .val = dropped});
		if (code == 0)
			code = EndRXAFS_GiveUpCallBacks(call);
		if (rxw_call_end(call, code, NULL) != 0)
			return;
	}
}

void afs_client_give_up(struct afs_client *const *clients, size_t count, unsigned ms)
{
	uint64_t until = monotonic_ns() + (uint64_t)ms * 1000000;
	size_t room = 0, told = 0;
	struct farewell *f;

	for (size_t i = 0; i < count; i++)
		room += clients[i] ? clients[i]->asked_count : 0;
	f = room ? calloc(room, sizeof(*f)) : NULL;
	if (!f)
		return;
	for (size_t i = 0; i < count; i++) {
		struct afs_client *c = clients[i];

		if (!c)
			continue;
		pthread_mutex_lock(&c->lock);
		/* The client forgets this server. */
		for (; c->asked_count > 0 && told < room; told++) {
			f[told] = (struct farewell){.client = c,
						    .server = c->asked[--c->asked_count]};
			c->asked[c->asked_count].promised = NULL;
			give_up_all(&f[told], ms);
		}
		pthread_mutex_unlock(&c->lock);
	}
	/* All have the same time: together they take no longer than one. */
	for (size_t i = 0; i < told; i++)
		if (f[i].call) {
			int32_t code = EndRXAFS_GiveUpAllCallBacks(f[i].call);

			if (rxw_call_end(f[i].call, code, NULL) == RXW_RPC_OPCODE)
				give_up_each(&f[i], until);
		}
	for (size_t i = 0; i < told; i++)
		free(f[i].server.promised);
	free(f);
}
