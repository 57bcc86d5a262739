/* SPDX-License-Identifier: BSD-2-Clause */
/* Clients of one file server, for loads. */
#include "afs/bare.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "afs/numbers.h"
#include "afs/rxafscb.h"
#include "afs/uuid.h"
#include "common/clock.h"
#include "common/grow.h"
#include "common/held.h"

#define PROMISES_MAX \
	16384u /* objects that are remembered; the server finds out about others when it breaks promises */

struct bare_client {
	rxw_endpoint *endpoint;
	struct RXAFSCB_service callbacks; /* its context is the client */
	struct rxw_uuid self;		  /* constant, as `endpoint` */

	pthread_mutex_t lock; /* of what follows */
	rxw_connection *connection;
	rxw_security *security; /* NULL: the null class */
	struct sockaddr_storage server;
	socklen_t server_len;
	AFSFid *promised;
	size_t promised_count, promised_room;
};

/* ---- the callback service ---- */

static int32_t tell_own_uuid(void *context, rxw_call *call, interfaceAddr *addr)
{
	const struct bare_client *client = context;

	(void)call;
	*addr = (interfaceAddr){.uuid = client->self};
	return 0;
}

static int32_t tell_own_abilities(void *context, rxw_call *call, interfaceAddr *addr,
				  Capabilities *caps)
{
	caps->val = malloc(sizeof(*caps->val));
	if (!caps->val)
		return rxw_code_from_errno(ENOMEM);
	caps->val[0] = CLIENT_CAPABILITY_ERRORTRANS;
	caps->len = 1;
	return tell_own_uuid(context, call, addr);
}

static int32_t compare_own_uuid(void *context, rxw_call *call, const struct rxw_uuid *uuid)
{
	const struct bare_client *client = context;

	(void)call;
	return afs_uuid_same(uuid, &client->self) ? 0 : 1;
}

static int32_t ignore_call(void *context, rxw_call *call)
{
	(void)context;
	(void)call;
	return 0;
}

static int32_t ignore_restart(void *context, rxw_call *call, const struct rxw_uuid *server)
{
	(void)server;
	return ignore_call(context, call);
}

static int32_t ignore_breaks(void *context, rxw_call *call, const AFSCBFids *fids,
			     const AFSCBs *callbacks)
{
	(void)fids;
	(void)callbacks;
	return ignore_call(context, call);
}

static int offer_callbacks(struct bare_client *client)
{
	static const struct RXAFSCB_handlers handlers = {
		.CallBack = ignore_breaks,
		.InitCallBackState = ignore_call,
		.InitCallBackState2 = tell_own_uuid,
		.InitCallBackState3 = ignore_restart,
		.Probe = ignore_call,
		.ProbeUuid = compare_own_uuid,
		.TellMeAboutYourself = tell_own_abilities,
		.WhoAreYou = tell_own_uuid,
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

/* ---- opening and connections ---- */

/* A random (version 4) UUID, because a client keeps no state between runs. */
static void make_own_uuid(struct rxw_uuid *self)
{
	uint8_t bytes[16];

	if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes))
		memset(bytes, 0x5a, sizeof(bytes));
	bytes[6] = (bytes[6] & 0x0f) | 0x40;
	bytes[8] = (bytes[8] & 0x3f) | 0x80;
	afs_uuid_from_octets(self, bytes);
}

static int open_own_socket(rxw_engine *engine, const struct bare_options *o,
			   rxw_endpoint **endpoint)
{
	struct sockaddr_storage any = {.ss_family = o->server->ss_family};
	const struct sockaddr_storage *local = o->local ? o->local : &any;
	struct rxw_endpoint_options eo = {
		.size = sizeof(eo),
		.address = (const struct sockaddr *)local,
		.address_len = local->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6)
							    : sizeof(struct sockaddr_in),
		.config = o->config,
	};

	return rxw_endpoint_create(engine, &eo, endpoint);
}

/* Replace the connection by one as the members say. */
static int replace_connection(struct bare_client *client)
{
	rxw_connection *connection;
	int rc;

	assert(mutex_is_held(&client->lock));
	rc = rxw_connection_create(client->endpoint, (const struct sockaddr *)&client->server,
				   client->server_len, AFS_SERVICE_FS, client->security,
				   &connection);
	if (rc < 0)
		return rc;
	rxw_connection_release(client->connection);
	client->connection = connection;
	return 0;
}

int bare_connect(struct bare_client *client, const struct sockaddr_storage *server, socklen_t len)
{
	int rc;

	assert(len <= sizeof(client->server));
	pthread_mutex_lock(&client->lock);
	memcpy(&client->server, server, len);
	client->server_len = len;
	rc = replace_connection(client);
	pthread_mutex_unlock(&client->lock);
	return rc;
}

int bare_renew(struct bare_client *client, rxw_security *security)
{
	rxw_security *old;
	int rc;

	pthread_mutex_lock(&client->lock);
	old = client->security;
	client->security = security ? rxw_security_ref(security) : NULL;
	rc = replace_connection(client);
	if (rc < 0) {
		rxw_security_unref(client->security);
		client->security = old;
	} else {
		rxw_security_unref(old);
	}
	pthread_mutex_unlock(&client->lock);
	return rc;
}

int bare_open(rxw_engine *engine, const struct bare_options *options, struct bare_client **client)
{
	struct bare_client *c = calloc(1, sizeof(*c));
	int rc;

	if (!c)
		return -RXW_ENOMEM;
	pthread_mutex_init(&c->lock, NULL);
	make_own_uuid(&c->self);
	c->security = options->security ? rxw_security_ref(options->security) : NULL;
	rc = open_own_socket(engine, options, &c->endpoint);
	if (rc == 0)
		rc = offer_callbacks(c);
	if (rc == 0)
		rc = bare_connect(c, options->server, options->server_len);
	if (rc < 0) {
		bare_close(c);
		return rc;
	}
	*client = c;
	return 0;
}

void bare_close(struct bare_client *client)
{
	if (!client)
		return;
	rxw_connection_release(client->connection);
	if (client->endpoint)
		rxw_endpoint_destroy(client->endpoint);
	rxw_security_unref(client->security);
	pthread_mutex_destroy(&client->lock);
	free(client->promised);
	free(client);
}

/* ---- calls ---- */

int bare_begin(struct bare_client *client, const struct rxw_call_options *options, rxw_call **call)
{
	rxw_connection *connection;
	int rc;

	/* It may wait for a free channel. */
	pthread_mutex_lock(&client->lock);
	connection = client->connection;
	rxw_connection_ref(connection);
	pthread_mutex_unlock(&client->lock);
	rc = rxw_call_begin(connection, options, call);
	rxw_connection_release(connection);
	return rc;
}

rxw_endpoint *bare_endpoint(const struct bare_client *client)
{
	return client->endpoint;
}

/* ---- promises ---- */

void bare_promised(struct bare_client *client, const AFSFid *fid, const AFSCallBack *callback)
{
	size_t n;

	if (!callback->ExpirationTime || callback->CallBackType == CB_DROPPED)
		return;
	pthread_mutex_lock(&client->lock);
	n = client->promised_count;
	if (n < PROMISES_MAX && (!n || memcmp(&client->promised[n - 1], fid, sizeof(*fid)) != 0) &&
	    grow_array(&client->promised, &client->promised_room, n, sizeof(AFSFid)))
		client->promised[client->promised_count++] = *fid;
	pthread_mutex_unlock(&client->lock);
}

/* GiveUpAllCallBacks; NULL if it cannot be sent. */
static rxw_call *begin_give_up_all(struct bare_client *client, unsigned ms)
{
	struct rxw_call_options co = {.size = sizeof(co), .flags = RXW_CALL_TRY, .deadline_ms = ms};
	rxw_call *call;

	if (bare_begin(client, &co, &call) < 0)
		return NULL;
	if (StartRXAFS_GiveUpAllCallBacks(call) == 0 && rxw_call_send_end(call) == 0)
		return call;
	rxw_call_end(call, RXW_USER_ABORT, NULL);
	return NULL;
}

/* A server that does not know the other call is told of each object, until a time of the clock. */
static void give_up_each(struct bare_client *client, uint64_t until)
{
	AFSCallBack dropped[AFSCBMAX];
	size_t n;

	for (unsigned i = 0; i < AFSCBMAX; i++)
		dropped[i] = (AFSCallBack){.CallBackVersion = 1, .CallBackType = CB_DROPPED};
	for (size_t at = 0; at < client->promised_count; at += n) {
		struct rxw_call_options co = {.size = sizeof(co), .flags = RXW_CALL_TRY};
		uint64_t now = monotonic_ns();
		rxw_call *call;
		int32_t code;

		n = client->promised_count - at;
		n = n < AFSCBMAX ? n : AFSCBMAX;
		co.deadline_ms = (unsigned)((until - now) / 1000000 + 1);
		if (now >= until || bare_begin(client, &co, &call) < 0)
			return;
		code = StartRXAFS_GiveUpCallBacks(
			       call, &(AFSCBFids){.len = (uint32_t)n, .val = client->promised + at},
			       &(AFSCBs){.len = (uint32_t)n, .val = dropped})
			       ?: EndRXAFS_GiveUpCallBacks(call);
		if (rxw_call_end(call, code, NULL) != 0)
			return;
	}
}

void bare_give_up(struct bare_client *const *clients, size_t count, unsigned ms)
{
	uint64_t until = monotonic_ns() + (uint64_t)ms * 1000000;
	rxw_call **calls = calloc(count ? count : 1, sizeof(*calls));

	if (!calls)
		return;
	/* All have the same time: together they take no longer than one. */
	for (size_t i = 0; i < count; i++)
		if (clients[i])
			calls[i] = begin_give_up_all(clients[i], ms);
	for (size_t i = 0; i < count; i++) {
		if (calls[i] && rxw_call_end(calls[i], EndRXAFS_GiveUpAllCallBacks(calls[i]),
					     NULL) == RXW_RPC_OPCODE)
			give_up_each(clients[i], until);
	}
	free(calls);
}
