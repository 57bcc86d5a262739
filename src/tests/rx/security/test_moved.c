/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Clients behind a NAT that gives them another port in the middle of a call, and others that only
 * pretend to be such a client.
 */
#include "world.h"

#include <arpa/inet.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <rxwire/observe.h>

#include "tests/support/counters.h"

#define SIZE  (600u << 10)
#define AFTER 150u /* DATA packets of one direction */

/* For the relay: set before the first packet; the rest is that of its thread. */
static struct {
	_Atomic(bool) at_request, at_reply; /* another port within the request, the reply */
	_Atomic(bool) spoof;		    /* copies of packets from another address */
	unsigned seen[2];		    /* DATA to the client, to the server */
	int stranger;
	_Atomic(unsigned) pings; /* to the stranger */
} plan;

static void pretend(const uint8_t *data, size_t size)
{
	uint8_t reply[2048];
	ssize_t n;

	(void)!send(plan.stranger, data, size, 0);
	while ((n = recv(plan.stranger, reply, sizeof(reply), MSG_DONTWAIT)) > 0)
		plan.pings++;
}

static void filter(struct relay *r, bool to_server, uint8_t *data, size_t size)
{
	unsigned n = plan.seen[to_server] += type_of(data) == TYPE_DATA;

	if (n == AFTER && type_of(data) == TYPE_DATA &&
	    (to_server ? plan.at_request : plan.at_reply))
		relay_rebind(r);
	relay_pass(r, to_server, data, size);
	if (plan.spoof && to_server && n > AFTER)
		pretend(data, size);
}

/* ---- many clients ---- */

enum {
	ROAMERS = 6,
	ROUNDS = 3
};

/* A client with a NAT of its own. */
struct roamer {
	struct relay relay; /* first */
	struct world *w;
	pthread_t thread;
	unsigned seen[2];    /* DATA of this call; of the relay's thread */
	_Atomic(bool) fresh; /* a call begins */
};

/* Another port within the request, and again within the reply. */
static void move_twice(struct relay *r, bool to_server, uint8_t *data, size_t size)
{
	struct roamer *m = (struct roamer *)r;

	if (atomic_exchange(&m->fresh, false))
		m->seen[0] = m->seen[1] = 0;
	if (type_of(data) == TYPE_DATA && ++m->seen[to_server] == AFTER)
		relay_rebind(r);
	relay_pass(r, to_server, data, size);
}

static void watch(struct world *w)
{
	char *text;

	ck_assert_int_gt(rxw_metrics_calls(&w->server, 1, 100, &text), 0);
	free(text);
}

static void *roam(void *arg)
{
	struct roamer *m = arg;
	rxw_connection *connection = world_connect_by(m->w, &m->relay);

	for (int i = 0; i < ROUNDS; i++) {
		m->fresh = true;
		world_good(m->w, connection, SIZE);
		/* Meanwhile others look at the calls, and at where their clients are. */
		watch(m->w);
	}
	rxw_connection_release(connection);
	return NULL;
}

static void make_null(rxw_security **server, rxw_security **client)
{
	*server = rxw_security_ref(rxw_security_null());
	*client = rxw_security_ref(rxw_security_null());
}

static const struct kind null_kind = {.name = "null", .make = make_null};

static void open_all(struct world *w, int kind)
{
	memset(&plan, 0, sizeof(plan));
	world_open(w, kind < kind_count ? &kinds[kind] : &null_kind);
	plan.stranger = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	ck_assert_int_ge(plan.stranger, 0);
	ck_assert_int_eq(connect(plan.stranger, (struct sockaddr *)&w->address, sizeof(w->address)),
			 0);
	w->relay.filter = filter;
}

static void close_all(struct world *w)
{
	world_close(w);
	close(plan.stranger);
}

static void one_call(struct world *w)
{
	rxw_connection *connection = world_connect(w);

	world_good(w, connection, SIZE);
	ck_assert_uint_eq(w->served, 1);
	/* It is a good connection for further calls. */
	world_good(w, connection, 100);
	rxw_connection_release(connection);
}

/* A call during which the client gets another port, within the request, the reply, or both. */
static void moved_call(int kind, bool at_request, bool at_reply)
{
	struct world w;

	open_all(&w, kind);
	plan.at_request = at_request;
	plan.at_reply = at_reply;
	one_call(&w);
	ck_assert_uint_gt(counter_of(w.server, "drops.address"), at_request && at_reply);
	/* A relay that is slow may let the old port speak once more, and the proof is for nothing. */
	ck_assert_uint_eq(counter_of(w.server, "moves.done"), at_request + at_reply);
	ck_assert_uint_ge(counter_of(w.server, "move_pings"), at_request + at_reply);
	ck_assert_uint_eq(w.moves_logged, at_request + at_reply);
	close_all(&w);
}

START_TEST(in_request)
{
	moved_call(_i, true, false);
}
END_TEST

START_TEST(in_reply)
{
	moved_call(_i, false, true);
}
END_TEST

START_TEST(in_both)
{
	moved_call(_i, true, true);
}
END_TEST

/* The sender of copies does not answer: nothing moves, and it gets a few PINGs at most. */
START_TEST(forged_source)
{
	struct world w;

	open_all(&w, _i);
	plan.spoof = true;
	one_call(&w);
	ck_assert_uint_gt(plan.pings, 0);
	ck_assert_uint_gt(counter_of(w.server, "move_pings"), 0);
	ck_assert_uint_eq(counter_of(w.server, "moves.done"), 0);
	ck_assert_uint_eq(w.moves_logged, 0);
	ck_assert_uint_ge(counter_of(w.server, "drops.address"), SIZE / 1444 - AFTER);
	close_all(&w);
}
END_TEST

/*
 * Clients move at the same time, to ports whose packets reach other listeners: by their connection
 * ids, by addresses, or never that of the connection.
 */
START_TEST(several_listeners)
{
	static const int which[] = {-1, 3, 5}; /* null, and two classes with an exchange */
	struct roamer *m = calloc(ROAMERS, sizeof(*m));
	int kind = which[_i / 3];
	struct world w;

	ck_assert_ptr_nonnull(m);
	memset(&plan, 0, sizeof(plan));
	world_open_with(&w, kind < 0 || kind >= kind_count ? &null_kind : &kinds[kind],
			&(struct world_options){.listeners = 4, .steer = _i % 3});
	for (int i = 0; i < ROAMERS; i++) {
		m[i].w = &w;
		relay_open(&m[i].relay, &w.address);
		m[i].relay.filter = move_twice;
	}
	for (int i = 0; i < ROAMERS; i++)
		ck_assert_int_eq(pthread_create(&m[i].thread, NULL, roam, &m[i]), 0);
	for (int i = 0; i < ROAMERS; i++)
		pthread_join(m[i].thread, NULL);
	ck_assert_uint_eq(w.served, ROAMERS * ROUNDS);
	ck_assert_uint_eq(counter_of(w.server, "moves.done"), 2 * ROAMERS * ROUNDS);
	ck_assert_uint_ge(w.moves_logged, 5);
	for (int i = 0; i < ROAMERS; i++)
		relay_close(&m[i].relay);
	world_close(&w);
	free(m);
}
END_TEST

/* A NAT that forgets a mapping when its client has been silent for LIFE_MS. */
enum {
	DEAD_MS = 24000
};
#define LIFE_MS 5000u /* above a sixth of the dead time, and below a third */

static struct {
	uint64_t heard_at; /* ms; of the relay's thread; 0 = never */
	_Atomic(unsigned) forgotten;
} mapping;

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void forget(struct relay *r, bool to_server, uint8_t *data, size_t size)
{
	uint64_t now = now_ms();
	bool gone = mapping.heard_at && now - mapping.heard_at > LIFE_MS;

	if (gone && !to_server)
		return;
	if (gone) {
		relay_rebind(r);
		mapping.forgotten++;
	}
	if (to_server)
		mapping.heard_at = now;
	relay_pass(r, to_server, data, size);
}

static void *wait_for_reply(void *arg)
{
	struct world *w = arg;
	rxw_connection *connection = world_connect(w);

	world_good(w, connection, 1000);
	rxw_connection_release(connection);
	return NULL;
}

/*
 * A client waits for a long call. The silences between keepalives grow until the mapping is
 * forgotten, and the call continues at the next port.
 */
START_TEST(mapping_is_forgotten)
{
	pthread_t thread;
	struct world w;

	memset(&plan, 0, sizeof(plan));
	memset(&mapping, 0, sizeof(mapping));
	world_open_with(&w, &null_kind, &(struct world_options){.dead_ms = DEAD_MS});
	w.relay.filter = forget;
	w.hold = true;
	ck_assert_int_eq(pthread_create(&thread, NULL, wait_for_reply, &w), 0);
	while (!counter_of(w.server, "moves.done") || !w.moves_logged)
		poll(NULL, 0, 20);
	ck_assert_uint_gt(mapping.forgotten, 0);
	w.hold = false;
	pthread_join(thread, NULL);
	ck_assert_uint_eq(w.served, 1);
	world_close(&w);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("security: clients that move");
	TCase *tc = tcase_create("moved");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_set_timeout(tc, 250);
	tcase_add_loop_test(tc, in_request, 0, kind_count + 1);
	tcase_add_loop_test(tc, in_reply, 0, kind_count + 1);
	tcase_add_loop_test(tc, in_both, 0, kind_count + 1);
	tcase_add_loop_test(tc, forged_source, 0, kind_count + 1);
	tcase_add_loop_test(tc, several_listeners, 0, 9);
	tcase_add_test(tc, mapping_is_forgotten);
	suite_add_tcase(s, tc);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
