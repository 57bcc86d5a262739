/* SPDX-License-Identifier: BSD-2-Clause */
/* Callers that share a socket: a caller that leaves hands the receive role to a sleeping one. */
#include <arpa/inet.h>
#include <unistd.h>

#include "engine/objects.h"
#include "engine/lock.h"
#include "tests/main.h"
#include "tests/rx/api/harness.h"

#define H_CALLS_OUT 103
#define AN_HOUR	    (3600 * RXW_SEC)
#define MOST	    8u

static struct h_bed bed;

/* The listeners no longer poll by time, so a reply that depends on them never arrives. */
static void endless_grace(rxw_endpoint *ep)
{
	for (unsigned i = 0; i < ep->shard_count; i++) {
		rxw_role_lock(&ep->shard[i]);
		ep->shard[i].role.grace = AN_HOUR;
		rxw_role_unlock(&ep->shard[i]);
	}
}

/* A handler's call to its own server, from an endpoint of the client's. */
static struct h_ask asked_for;
static unsigned times;

static int32_t calls_out(rxw_call *call, void *context)
{
	rxw_connection *connection = h_connect(&bed, H_SERVICE);

	(void)call;
	(void)context;
	for (unsigned i = 0; i < times; i++)
		h_good_call(&bed, connection, &asked_for);
	rxw_connection_release(connection);
	return 0;
}

/* One call to a handler that makes `n` calls itself, from another endpoint. */
static void *outer_call(void *arg)
{
	rxw_endpoint *other = h_client(&bed, NULL);
	rxw_connection *connection;
	rxw_call *call;

	(void)arg;
	ck_assert_int_eq(rxw_connection_create(other, (struct sockaddr *)&bed.address,
					       bed.address_len, H_CALLS_OUT, bed.security,
					       &connection),
			 0);
	ck_assert_int_eq(rxw_call_begin(connection, NULL, &call), 0);
	ck_assert_int_eq(rxw_call_end(call, 0, NULL), 0);
	rxw_connection_release(connection);
	ck_assert_int_eq(rxw_endpoint_destroy(other), 0);
	return NULL;
}

static void open_bed(void)
{
	h_open(&bed, NULL);
	h_offer(&bed, (struct rxw_service_options){.size = sizeof(struct rxw_service_options),
						   .id = H_CALLS_OUT,
						   .name = "calls-out",
						   .handler = calls_out});
	endless_grace(bed.client);
}

/* A library thread never receives for itself, so it must not inherit the receive role. */
START_TEST(handlers_have_a_listener)
{
	open_bed();
	asked_for = (struct h_ask){.op = H_PING};
	times = 4;
	outer_call(NULL);
	h_close(&bed);
}
END_TEST

static bool one_sleeps(void *arg)
{
	rxw_endpoint *ep = arg;

	return atomic_load(&ep->shard[0].role.sleepers) == 1;
}

/* Another caller receives for itself and leaves. The sleeping caller's reply is still received. */
START_TEST(who_goes_thinks_of_sleepers)
{
	rxw_connection *connection;
	pthread_t thread;

	open_bed();
	asked_for = (struct h_ask){.op = H_WAIT};
	times = 1;
	connection = h_connect(&bed, H_SERVICE);
	pthread_create(&thread, NULL, outer_call, NULL);
	h_gate_arrived(&bed, 1);
	h_wait_for(one_sleeps, bed.client, "the handler's call sleeps");
	for (unsigned i = 0; i < 4; i++)
		h_good_call(&bed, connection, &(struct h_ask){.op = H_PING});
	h_gate_open(&bed);
	pthread_join(thread, NULL);
	rxw_connection_release(connection);
	ck_assert_uint_eq(atomic_load(&bed.client->shard[0].role.sleepers), 0);
	ck_assert_uint_eq(atomic_load(&bed.client->shard[0].role.waiters), 0);
	h_close(&bed);
}
END_TEST

static bool listener_dozes(void *arg)
{
	struct rxw_shard *s = arg;
	bool dozes;

	rxw_role_lock(s);
	dozes = s->role.dozes;
	rxw_role_unlock(s);
	return dozes;
}

static bool caller_receives(void *arg)
{
	struct rxw_shard *s = arg;

	return atomic_load(&s->role.state) == RXW_ROLE_CALLER;
}

static bool listener_receives(void *arg)
{
	struct rxw_shard *s = arg;

	return atomic_load(&s->role.state) == RXW_ROLE_LISTENER;
}

static void *calls_that_wait(void *arg)
{
	/* A reply that wakes this thread leaves the role to it. */
	while (!rxw_role_is_free(&bed.client->shard[0].role))
		h_good_call(&bed, arg, &(struct h_ask){.op = H_PING});
	h_good_call(&bed, arg, &(struct h_ask){.op = H_WAIT});
	return NULL;
}

/*
 * While a caller waits for packets the listener does not wake to look for it, since a thousand
 * clients would keep their machine busy with that. It is told when the caller leaves.
 */
START_TEST(listener_dozes_beside_a_caller)
{
	rxw_connection *connection;
	struct rxw_shard *s;
	pthread_t thread;

	open_bed();
	s = &bed.client->shard[0];
	connection = h_connect(&bed, H_SERVICE);
	pthread_create(&thread, NULL, calls_that_wait, connection);
	h_gate_arrived(&bed, 1);
	h_wait_for(caller_receives, s, "the caller has the role");
	rxw_role_lock(s);
	s->role.grace = RXW_MS;
	rxw_role_unlock(s);
	pthread_cond_signal(&s->role.free);
	h_wait_for(listener_dozes, s, "the listener waits to be signalled");
	h_gate_open(&bed);
	pthread_join(thread, NULL);
	h_wait_for(listener_receives, s, "the listener receives again");
	rxw_connection_release(connection);
	h_close(&bed);
}
END_TEST

static unsigned each;

static void *many_calls(void *arg)
{
	rxw_connection *connection = h_connect(&bed, H_SERVICE);

	(void)arg;
	for (unsigned i = 0; i < each; i++)
		h_good_call(&bed, connection, &(struct h_ask){.op = H_PING});
	rxw_connection_release(connection);
	return NULL;
}

/* Callers come and go at any time. No reply waits for the listener's timeout. */
static void callers(unsigned n)
{
	pthread_t thread[MOST];

	open_bed();
	each = h_small() ? 200 : 1000;
	for (unsigned i = 0; i < n; i++)
		pthread_create(&thread[i], NULL, many_calls, NULL);
	for (unsigned i = 0; i < n; i++)
		pthread_join(thread[i], NULL);
	ck_assert_uint_eq(atomic_load(&bed.client->shard[0].role.sleepers), 0);
	ck_assert_uint_eq(atomic_load(&bed.client->shard[0].role.waiters), 0);
	h_close(&bed);
}

START_TEST(one_caller)
{
	callers(1);
}
END_TEST

START_TEST(two_callers)
{
	callers(2);
}
END_TEST

START_TEST(several_callers)
{
	callers(3);
	callers(MOST);
}
END_TEST

/*
 * A server's listener leaves the socket to the writer of its only call. After the last write the
 * listener receives again.
 */
START_TEST(writers_give_back)
{
	rxw_connection *connection;

	open_bed();
	endless_grace(bed.server);
	connection = h_connect(&bed, H_SERVICE);
	for (uint64_t bytes = 1u << 19; bytes < 1u << 21; bytes += 1u << 17) {
		h_good_call(&bed, connection,
			    &(struct h_ask){.op = H_SOURCE, .bytes = bytes});
		h_good_call(&bed, connection, &(struct h_ask){.op = H_ONCE, .bytes = bytes});
		h_good_call(&bed, connection, &(struct h_ask){.op = H_PING});
	}
	rxw_connection_release(connection);
	h_close(&bed);
}
END_TEST

/*
 * A caller receives on the home socket of its connection. Its call's timers run on the listener
 * whose table holds the connection, which differs if packets arrive on another socket than
 * expected. The caller is still woken when its call times out.
 */
START_TEST(who_receives_elsewhere_is_told)
{
	struct sockaddr_in silent = {.sin_family = AF_INET,
				     .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof(silent);
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	rxw_connection *c;
	rxw_endpoint *client;

	ck_assert_int_eq(bind(fd, (struct sockaddr *)&silent, length), 0);
	ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&silent, &length), 0);
	open_bed();
	client = h_client(&bed, "listeners=2 dead-ms=1000");
	ck_assert_uint_eq(client->shard_count, 2);
	for (unsigned table = 0; table < 2;) {
		ck_assert_int_eq(rxw_connection_create(client, (struct sockaddr *)&silent, length,
						       H_SERVICE, bed.security, &c),
				 0);
		if (c->table == table) {
			atomic_store(&c->home, 1 - table);
			ck_assert_int_eq(h_call(&bed, c, &(struct h_ask){.op = H_PING}),
					 RXW_CALL_DEAD);
			table++;
		}
		rxw_connection_release(c);
	}
	ck_assert_int_eq(rxw_endpoint_destroy(client), 0);
	close(fd);
	h_close(&bed);
}
END_TEST

/* A reader that works between its reads leaves receiving to the listener, which then does so at once. */
START_TEST(who_works_does_not_receive)
{
	enum {
		BYTES = 8 << 20,
		PIECE = 64 << 10
	};
	static uint8_t piece[PIECE];
	rxw_connection *connection;
	rxw_call *call;
	size_t left = BYTES;
	ssize_t n = 0;

	open_bed(); /* with a grace period that does not end */
	connection = h_connect(&bed, H_SERVICE);
	call = h_begin(connection, &(struct h_ask){.op = H_SOURCE, .bytes = BYTES});
	for (; left; left -= (size_t)n) {
		rxw_conn_lock(call->conn);
		call->sleep.received_at = call->sleep.received_at ? 1 : 0; /* long ago */
		rxw_conn_unlock(call->conn);
		n = rxw_call_read(call, piece, PIECE);
		ck_assert_int_eq(n, PIECE);
	}
	ck_assert_uint_gt(call->sleep.stay_out, 0);
	ck_assert_int_eq(rxw_call_end(call, 0, NULL), 0);
	rxw_connection_release(connection);
	h_close(&bed);
}
END_TEST

TEST_MAIN_WITHIN(240, "callers", handlers_have_a_listener, who_goes_thinks_of_sleepers,
		 listener_dozes_beside_a_caller, one_caller, two_callers, several_callers,
		 writers_give_back, who_receives_elsewhere_is_told, who_works_does_not_receive)
