/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of callbacks.c: calls to clients of every version, over loopback. */
#include "tests/fileserver/fixture.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include "afs/numbers.h"
#include "afs/rxafscb.h"
#include "afs/uuid.h"
#include "fileserver/callbacks/clients.h"
#include "tests/main.h"

#define VOLUME 0x20000001u
#define QUIET  1000 /* seconds of silence after which a client is probed */

/* A client that counts the calls to it; the counters are protected by the lock. */
struct client {
	rxw_endpoint *endpoint;
	struct RXAFSCB_service service;
	struct sockaddr_storage address;
	int knows;   /* identity calls that it implements: 2 both, 1 only the older one, 0 none */
	bool claims; /* claims to have 33 addresses */
	int32_t probe_code;
	unsigned new_identity_calls, old_identity_calls, inits, old_inits, uuid_probes, probes,
		fids;
	struct rxw_uuid heard;
	struct sockaddr_storage local; /* the address of the server that it calls; family 0: any */
	in_addr_t from;		       /* that of the latest call to it */
};

static rxw_engine *engine;
static rxw_endpoint *server;
static struct fsd_clients *clients;
static struct fsd_callbacks *callbacks;
static struct rxw_uuid server_uuid, client_uuid;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

static void wake(void *arg)
{
	(void)arg;
	fsd_callbacks_wake(callbacks);
	pthread_mutex_lock(&lock);
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}

static int32_t count(unsigned *counter, unsigned n, int32_t code)
{
	pthread_mutex_lock(&lock);
	*counter += n;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
	return code;
}

static void note_caller(struct client *client, const rxw_call *call)
{
	struct sockaddr_storage peer = {0};
	socklen_t length = sizeof(peer);

	ck_assert_int_eq(rxw_call_peer(call, &peer, &length), 0);
	pthread_mutex_lock(&lock);
	client->from = ((const struct sockaddr_in *)&peer)->sin_addr.s_addr;
	pthread_mutex_unlock(&lock);
}

static int32_t tell(void *context, rxw_call *call, interfaceAddr *addr, Capabilities *caps)
{
	struct client *client = context;

	note_caller(client, call);
	if (client->knows < 2)
		return RXW_RPC_OPCODE;
	addr->uuid = client_uuid;
	addr->numberOfInterfaces = client->claims ? 33 : 1;
	caps->val = calloc(2, sizeof(*caps->val));
	caps->val[0] = CLIENT_CAPABILITY_ERRORTRANS;
	caps->len = 2;
	return count(&client->new_identity_calls, 1, 0);
}

static int32_t who(void *context, rxw_call *call, interfaceAddr *addr)
{
	struct client *client = context;

	(void)call;
	if (client->knows < 1)
		return RXW_RPC_OPCODE;
	addr->uuid = client_uuid;
	return count(&client->old_identity_calls, 1, 0);
}

static int32_t init3(void *context, rxw_call *call, const struct rxw_uuid *uuid)
{
	struct client *client = context;

	(void)call;
	client->heard = *uuid;
	return count(&client->inits, 1, 0);
}

static int32_t init(void *context, rxw_call *call)
{
	(void)call;
	return count(&((struct client *)context)->old_inits, 1, 0);
}

static int32_t probe_uuid(void *context, rxw_call *call, const struct rxw_uuid *uuid)
{
	struct client *client = context;

	(void)call;
	client->heard = *uuid;
	return count(&client->uuid_probes, 1, client->probe_code);
}

static int32_t probe(void *context, rxw_call *call)
{
	(void)call;
	return count(&((struct client *)context)->probes, 1, 0);
}

static int32_t broken(void *context, rxw_call *call, const AFSCBFids *fids, const AFSCBs *cbs)
{
	note_caller(context, call);
	ck_assert_uint_eq(cbs->len, 0);
	for (uint32_t i = 0; i < fids->len; i++)
		ck_assert_uint_eq(fids->val[i].Volume, VOLUME);
	/* The whole volume: part of the initial exchange. */
	if (fids->len == 1 && fids->val[0].Vnode == 0)
		return 0;
	return count(&((struct client *)context)->fids, fids->len, 0);
}

static const struct RXAFSCB_handlers handlers = {
	.CallBack = broken,
	.InitCallBackState = init,
	.Probe = probe,
	.InitCallBackState3 = init3,
	.ProbeUuid = probe_uuid,
	.WhoAreYou = who,
	.TellMeAboutYourself = tell,
};

static rxw_endpoint *open_endpoint(in_addr_t at, struct sockaddr_storage *address)
{
	struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(at)};
	struct rxw_endpoint_options options = {
		.size = sizeof(options), .address = (void *)&sa, .address_len = sizeof(sa)};
	socklen_t length = sizeof(*address);
	rxw_endpoint *endpoint;

	ck_assert_int_eq(rxw_endpoint_create(engine, &options, &endpoint), 0);
	memset(address, 0, sizeof(*address));
	ck_assert_int_eq(rxw_endpoint_address(endpoint, address, &length), 0);
	return endpoint;
}

static void setup_at(in_addr_t at)
{
	struct fsd_clients_options options = {
		.volume = VOLUME, .hosts_max = 100, .promises_max = 10000, .wake = wake};
	struct sockaddr_storage address;
	struct rxw_config config;

	rxw_config_init(&config, sizeof(config));
	config.listeners = 1;
	ck_assert_int_eq(rxw_engine_create(&config, &engine), 0);
	server = open_endpoint(at, &address);
	memset(&server_uuid, 0x42, sizeof(server_uuid));
	memset(&client_uuid, 0x77, sizeof(client_uuid));
	clients = fsd_clients_create(&options);
	ck_assert_ptr_nonnull(clients);
	callbacks = fsd_callbacks_start(server, clients, &server_uuid);
	ck_assert_ptr_nonnull(callbacks);
}

static void setup(void)
{
	setup_at(INADDR_LOOPBACK);
}

static void teardown(void)
{
	fsd_callbacks_stop(callbacks);
	ck_assert_int_eq(rxw_endpoint_destroy(server), 0);
	ck_assert_int_eq(rxw_engine_destroy(engine), 0);
	fsd_clients_destroy(clients);
}

static void client_open(struct client *client, int knows)
{
	struct rxw_service_options service = {.size = sizeof(service),
					      .id = AFS_SERVICE_CB,
					      .name = "cb",
					      .handler = RXAFSCB_ExecuteRequest,
					      .context = &client->service};
	rxw_service *added;

	memset(client, 0, sizeof(*client));
	client->knows = knows;
	client->service = (struct RXAFSCB_service){.base.context = client, .handlers = &handlers};
	client->endpoint = open_endpoint(INADDR_LOOPBACK, &client->address);
	ck_assert_int_eq(rxw_service_add(client->endpoint, &service, &added), 0);
}

static void client_close(struct client *client)
{
	ck_assert_int_eq(rxw_endpoint_destroy(client->endpoint), 0);
}

/* Waits until the counter has this value; it must not exceed it. */
static void reaches(const unsigned *counter, unsigned value)
{
	struct timespec until;
	int rc = 0;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 60; /* only turns a hang into a failure */
	pthread_mutex_lock(&lock);
	while (*counter < value && rc == 0)
		rc = pthread_cond_timedwait(&changed, &lock, &until);
	ck_assert_uint_eq(*counter, value);
	pthread_mutex_unlock(&lock);
}

/*
 * The client makes a call and is promised callbacks for vnodes from `vnode` on; returns how many.
 */
static unsigned give(struct client *client, uint32_t vnode, unsigned n)
{
	struct fsd_caller caller;
	unsigned given = 0;

	fsd_clients_enter(clients, &client->address,
			  client->local.ss_family ? &client->local : NULL, 132, fsd_now(), &caller);
	for (unsigned i = 0; i < n; i++) {
		AFSFid fid = {VOLUME, vnode + 2 * i, 1};

		given += fsd_promise_give(clients, &caller, &fid, false, fsd_now()) > 0;
	}
	fsd_clients_leave(clients, &caller);
	return given;
}

/*
 * The client has all these promises. The server gives none until it has processed the client's answer,
 * which may happen between two of them.
 */
static void promise(struct client *client, uint32_t vnode, unsigned n)
{
	while (give(client, vnode, n) < n) {
		struct timespec pause = {.tv_nsec = 1000000};

		nanosleep(&pause, NULL);
	}
}

/* Waits until so many clients may have promises. */
static void wait_for_hosts(size_t up)
{
	struct fsd_clients_stats stats;
	struct timespec pause = {.tv_nsec = 1000000};

	for (fsd_clients_stats(clients, &stats); stats.hosts_up != up;
	     fsd_clients_stats(clients, &stats))
		nanosleep(&pause, NULL);
}

START_TEST(every_client_version)
{
	for (int knows = 2; knows >= 0; knows--) {
		struct client client;

		setup();
		client_open(&client, knows);
		promise(&client, 2, 1);
		ck_assert_uint_eq(client.new_identity_calls, knows == 2);
		ck_assert_uint_eq(client.old_identity_calls, knows == 1);
		ck_assert_uint_eq(client.inits, knows > 0);
		ck_assert_uint_eq(client.old_inits, knows == 0);
		if (knows)
			ck_assert(afs_uuid_same(&client.heard, &server_uuid));
		/* idle clients are probed, by identity if they can tell it */
		fsd_clients_check(clients, fsd_now() + QUIET);
		reaches(knows ? &client.uuid_probes : &client.probes, 1);
		if (knows)
			ck_assert(afs_uuid_same(&client.heard, &client_uuid));
		wait_for_hosts(1);
		client_close(&client);
		teardown();
	}
}
END_TEST

/* Another machine has taken over the address: the server asks for its identity and resets it. */
START_TEST(address_taken_over)
{
	struct client client;
	AFSFid fid = {VOLUME, 2, 1};

	setup();
	client_open(&client, 2);
	promise(&client, 2, 1);
	client.probe_code = 1;
	fsd_clients_check(clients, fsd_now() + QUIET);
	reaches(&client.inits, 2);
	ck_assert_uint_eq(client.uuid_probes, 1);
	ck_assert_uint_eq(client.new_identity_calls, 2);
	ck_assert(!fsd_promise_held(clients, &fid));
	promise(&client, 2, 1);
	client_close(&client);
	teardown();
}
END_TEST

/* An invalid answer counts as none. */
START_TEST(invalid_identity)
{
	struct client client;
	struct fsd_clients_stats stats;

	setup();
	client_open(&client, 2);
	client.claims = true;
	ck_assert_uint_eq(give(&client, 2, 1), 0);
	reaches(&client.new_identity_calls, 1);
	/* afterwards the answer has been processed */
	fsd_callbacks_stop(callbacks);
	callbacks = fsd_callbacks_start(server, clients, &server_uuid);
	fsd_clients_stats(clients, &stats);
	ck_assert_uint_eq(stats.hosts_up, 0);
	ck_assert_uint_eq(client.inits, 0);
	ck_assert_uint_eq(give(&client, 2, 1), 0);
	client_close(&client);
	teardown();
}
END_TEST

/* A server with several addresses: clients ignore callbacks from one that they have not called. */
START_TEST(from_the_address_that_was_called)
{
	struct client client[2];
	const AFSFid fid = {VOLUME, 2, 1};

	setup_at(INADDR_ANY);
	for (unsigned i = 0; i < 2; i++) {
		struct sockaddr_in *local = (struct sockaddr_in *)&client[i].local;

		client_open(&client[i], 2);
		local->sin_family = AF_INET;
		local->sin_addr.s_addr = htonl(INADDR_LOOPBACK + 5 + i);
		promise(&client[i], 2, 1);
		ck_assert_uint_eq(client[i].from, local->sin_addr.s_addr);
		client[i].from = 0;
	}
	fsd_promise_break(clients, &fid, NULL);
	for (unsigned i = 0; i < 2; i++) {
		reaches(&client[i].fids, 1);
		ck_assert_uint_eq(client[i].from, htonl(INADDR_LOOPBACK + 5 + i));
	}
	for (unsigned i = 0; i < 2; i++)
		client_close(&client[i]);
	teardown();
}
END_TEST

#define MANY 40

/* A change that is reported to many clients, and many changes at once to one of them. */
START_TEST(breaks_to_many)
{
	struct client *many = calloc(MANY, sizeof(*many));

	setup();
	for (int i = 0; i < MANY; i++) {
		client_open(&many[i], 2);
		give(&many[i], 2, 1);
	}
	for (int i = 0; i < MANY; i++)
		promise(&many[i], 2, i ? 1 : 120);
	for (uint32_t i = 0; i < 120; i++) {
		AFSFid fid = {VOLUME, 2 + 2 * i, 1};

		fsd_promise_break(clients, &fid, NULL);
	}
	for (int i = 0; i < MANY; i++)
		reaches(&many[i].fids, i ? 1 : 120);
	for (int i = 0; i < MANY; i++)
		client_close(&many[i]);
	teardown();
	free(many);
}
END_TEST

/* No client answers: stopping does not wait for them. */
START_TEST(stop_during_calls)
{
	struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof(sa);
	struct client silent = {0};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	char byte;

	setup();
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
	ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&silent.address, &length), 0);
	ck_assert_uint_eq(give(&silent, 2, 1), 0);
	ck_assert_int_eq(recv(fd, &byte, 1, 0), 1); /* the server has called it */
	teardown();
	close(fd);
}
END_TEST

TEST_MAIN_WITHIN(120, "callbacks", every_client_version, address_taken_over, invalid_identity,
		 from_the_address_that_was_called, breaks_to_many, stop_during_calls)
