/* SPDX-License-Identifier: BSD-2-Clause */
/* Replayed packets; CHALLENGEs and RESPONSEs out of order, changed, lost and forged. */
#include "world.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/wire.h"
#include "tests/support/counters.h"

#define SIZE  40u
#define KEPT  64u
#define CALLS 50u

/* Datagrams recorded by the relay; one thread at a time writes those that the tests read. */
static struct {
	uint8_t data[KEPT][2048];
	size_t size[KEPT];
	unsigned count;
} kept;
static pthread_mutex_t kept_lock = PTHREAD_MUTEX_INITIALIZER;

static struct {
	_Atomic(unsigned) challenges, responses; /* number that went through the relay */
	_Atomic(int) spoil;			 /* RESPONSEs to change */
	_Atomic(int) spoil_challenges;		 /* CHALLENGEs to change */
	_Atomic(int) lose;			 /* RESPONSEs to drop */
	_Atomic(bool) forging;
	_Atomic(unsigned) forged;
} plan;

static void keep(const uint8_t *data, size_t size)
{
	pthread_mutex_lock(&kept_lock);
	if (kept.count < KEPT && size <= sizeof(kept.data[0])) {
		memcpy(kept.data[kept.count], data, size);
		kept.size[kept.count++] = size;
	}
	pthread_mutex_unlock(&kept_lock);
}

static void again(struct relay *r, bool to_server)
{
	pthread_mutex_lock(&kept_lock);
	for (unsigned i = 0; i < kept.count; i++)
		relay_pass(r, to_server, kept.data[i], kept.size[i]);
	pthread_mutex_unlock(&kept_lock);
}

static void count(const uint8_t *data)
{
	plan.challenges += type_of(data) == TYPE_CHALLENGE;
	plan.responses += type_of(data) == TYPE_RESPONSE;
}

/* --- replays --- */

static void keep_requests(struct relay *r, bool to_server, uint8_t *data, size_t size)
{
	count(data);
	if (to_server && type_of(data) == TYPE_DATA)
		keep(data, size);
	relay_pass(r, to_server, data, size);
}

/* Replays every request after each call: none is served a second time. */
START_TEST(requests_replayed)
{
	struct world w;
	rxw_connection *connection;

	world_open(&w, &kinds[_i]);
	w.relay.filter = keep_requests;
	connection = world_connect(&w);
	for (unsigned i = 0; i < CALLS; i++) {
		world_good(&w, connection, SIZE);
		again(&w.relay, true);
	}
	world_good(&w, connection, SIZE);
	ck_assert_uint_eq(w.served, CALLS + 1);
	rxw_connection_release(connection);
	world_close(&w);
}
END_TEST

/*
 * A restarted server asks the client for its call numbers, and learns that the old connection has
 * ended: a claim that does not match the waiting call ends the connection (7.3.3).
 */
START_TEST(requests_replayed_after_restart)
{
	struct world w;
	rxw_connection *connection, *other;
	unsigned asked;

	if (!kinds[_i].exchange)
		return;
	world_open(&w, &kinds[_i]);
	w.relay.filter = keep_requests;
	connection = world_connect(&w);
	world_good(&w, connection, SIZE);
	asked = plan.challenges;
	w.served = 0;
	w.relay.filter = NULL;
	world_restart(&w);
	w.relay.filter = keep_requests;
	kept.count = kept.count > 1 ? 1 : kept.count;
	again(&w.relay, true);
	for (unsigned i = 0; i < 20000 && plan.challenges == asked; i++)
		usleep(1000);
	ck_assert_uint_gt(plan.challenges, asked);
	other = world_connect(&w);
	world_good(&w, other, SIZE);
	rxw_connection_release(other);
	rxw_connection_release(connection);
	world_close(&w);
	ck_assert_uint_eq(w.served, 1);
}
END_TEST

static void send_three_times(struct relay *r, bool to_server, uint8_t *data, size_t size)
{
	unsigned copies = type_of(data) == TYPE_CHALLENGE || type_of(data) == TYPE_RESPONSE ? 3 : 1;

	count(data);
	while (copies--)
		relay_pass(r, to_server, data, size);
}

START_TEST(exchange_replayed)
{
	struct world w;

	world_open(&w, &kinds[_i]);
	w.relay.filter = send_three_times;
	for (unsigned i = 0; i < CALLS / 5; i++) {
		rxw_connection *connection = world_connect(&w);

		for (unsigned j = 0; j < 3; j++)
			world_good(&w, connection, j * 5000 + SIZE);
		rxw_connection_release(connection);
	}
	ck_assert(!w.kind->exchange || (plan.challenges && plan.responses));
	ck_assert_uint_eq(w.served, CALLS / 5 * 3);
	world_close(&w);
}
END_TEST

/* --- delays --- */

/*
 * The first packet of a request causes the CHALLENGE; the others are held until the RESPONSE has
 * overtaken them.
 */
static void response_first(struct relay *r, bool to_server, uint8_t *data, size_t size)
{
	count(data);
	if (to_server && type_of(data) == TYPE_DATA && rxw_get32(data + AT_SEQ) > 1 &&
	    !plan.responses) {
		keep(data, size);
		return;
	}
	relay_pass(r, to_server, data, size);
	if (type_of(data) == TYPE_RESPONSE) {
		again(r, true);
		kept.count = 0;
	}
}

START_TEST(response_overtakes)
{
	struct world w;
	rxw_connection *connection;

	if (!kinds[_i].exchange)
		return;
	world_open(&w, &kinds[_i]);
	w.relay.filter = response_first;
	connection = world_connect(&w);
	world_good(&w, connection, 20000);
	ck_assert_uint_gt(plan.responses, 0);
	rxw_connection_release(connection);
	world_close(&w);
}
END_TEST

/* Old CHALLENGEs and RESPONSEs, to connections that were authenticated long ago, and to others. */
static void keep_exchange(struct relay *r, bool to_server, uint8_t *data, size_t size)
{
	count(data);
	if (type_of(data) == TYPE_CHALLENGE || type_of(data) == TYPE_RESPONSE)
		keep(data, size);
	relay_pass(r, to_server, data, size);
}

START_TEST(exchange_delayed)
{
	struct world w;
	rxw_connection *connection[3];

	world_open(&w, &kinds[_i]);
	w.relay.filter = keep_exchange;
	for (unsigned i = 0; i < 3; i++) {
		connection[i] = world_connect(&w);
		world_good(&w, connection[i], SIZE);
		/* Each goes to both sides, one of which it was not made for. */
		again(&w.relay, true);
		again(&w.relay, false);
		for (unsigned j = 0; j <= i; j++)
			world_good(&w, connection[j], SIZE);
	}
	for (unsigned i = 0; i < 3; i++)
		rxw_connection_release(connection[i]);
	ck_assert_uint_eq(w.served, 9);
	world_close(&w);
}
END_TEST

static void spoil(struct relay *r, bool to_server, uint8_t *data, size_t size)
{
	count(data);
	if (type_of(data) == TYPE_RESPONSE && plan.lose > 0) {
		plan.lose--;
		return;
	}
	if (type_of(data) == TYPE_RESPONSE && plan.spoil > 0) {
		plan.spoil--;
		/* In the part that proves the client's key; the part before it may be spare. */
		data[size > HEADER + 40 ? HEADER + 16 : size - 1] ^= 4;
	}
	if (type_of(data) == TYPE_CHALLENGE && plan.spoil_challenges > 0) {
		plan.spoil_challenges--;
		data[HEADER + 6] ^= 4; /* of a nonce */
	}
	relay_pass(r, to_server, data, size);
}

/* A lost RESPONSE is requested again. */
START_TEST(response_lost)
{
	struct world w;
	rxw_connection *connection;

	if (!kinds[_i].exchange)
		return;
	world_open(&w, &kinds[_i]);
	w.relay.filter = spoil;
	plan.lose = 1;
	connection = world_connect(&w);
	world_good(&w, connection, SIZE);
	ck_assert_int_eq(plan.lose, 0);
	ck_assert_uint_gt(plan.responses, 1);
	rxw_connection_release(connection);
	world_close(&w);
}
END_TEST

/* So is a damaged one, and one to a damaged CHALLENGE. */
START_TEST(damaged_once)
{
	struct world w;
	rxw_connection *connection;

	if (!kinds[_i].exchange)
		return;
	world_open(&w, &kinds[_i]);
	w.relay.filter = spoil;
	for (unsigned round = 0; round < 4; round++) {
		if (round & 1)
			plan.spoil_challenges = 1;
		else
			plan.spoil = 1 + round;
		connection = world_connect(&w);
		world_good(&w, connection, round * 20000 + SIZE);
		rxw_connection_release(connection);
		ck_assert_int_eq(plan.spoil, 0);
		ck_assert_int_eq(plan.spoil_challenges, 0);
	}
	ck_assert_uint_eq(w.served, 4);
	ck_assert_uint_ge(counter_of(w.server, "drops.verify"), 4);
	world_close(&w);
}
END_TEST

/*
 * A RESPONSE that is changed each time ends its connection with a code, and its call is not served.
 * Other connections are unaffected.
 */
START_TEST(response_changed)
{
	struct world w;
	rxw_connection *connection, *other;
	int32_t code;
	bool same;

	if (!kinds[_i].exchange)
		return;
	world_open(&w, &kinds[_i]);
	w.relay.filter = spoil;
	plan.spoil = 1000;
	connection = world_connect(&w);
	code = world_call(connection, SIZE, &same);
	ck_assert_msg(code && !same, "%s: a call with a changed RESPONSE ends with %d",
		      w.kind->name, code);
	ck_assert_uint_eq(w.served, 0);
	plan.spoil = 0;
	other = world_connect(&w);
	world_good(&w, other, SIZE);
	ck_assert_uint_eq(w.served, 1);
	rxw_connection_release(other);
	rxw_connection_release(connection);
	world_close(&w);
}
END_TEST

/* --- forgeries --- */

/* With each packet of an honest client: three invalid RESPONSEs. */
static void forge(struct relay *r, bool to_server, uint8_t *data, size_t size)
{
	uint8_t fake[HEADER + 200];

	count(data);
	if (type_of(data) == TYPE_RESPONSE)
		keep(data, size);
	relay_pass(r, to_server, data, size);
	if (!to_server || type_of(data) != TYPE_DATA || !plan.forging)
		return;
	/* To this authenticated connection: noise and, last, another connection's answer. */
	memcpy(fake, data, HEADER);
	memset(fake + AT_CALL, 0, 8);
	fake[AT_TYPE] = TYPE_RESPONSE;
	fake[AT_FLAGS] = 1;
	ck_assert_int_eq(rxw_random(fake + HEADER, sizeof(fake) - HEADER), 0);
	relay_pass(r, true, fake, sizeof(fake));
	/* To a connection that does not exist. */
	fake[2] ^= 0x55;
	fake[6] ^= 0x77;
	relay_pass(r, true, fake, sizeof(fake));
	if (kept.size[0] <= sizeof(fake)) {
		memcpy(fake, data, AT_CALL);
		memcpy(fake + HEADER, kept.data[0] + HEADER, kept.size[0] - HEADER);
		relay_pass(r, true, fake, kept.size[0]);
	} else {
		relay_pass(r, true, fake, 60);
	}
	plan.forged += 3;
}

START_TEST(forgeries)
{
	struct world w;
	rxw_connection *connection[2];

	if (!kinds[_i].exchange)
		return;
	world_open(&w, &kinds[_i]);
	w.relay.filter = forge;
	for (unsigned i = 0; i < 2; i++) {
		connection[i] = world_connect(&w);
		world_good(&w, connection[i], SIZE);
	}
	/*
	 * Not before: eight wrong answers in a second end a connection that is not authenticated
	 * yet.
	 */
	plan.forging = true;
	for (unsigned i = 0; i < 2 * CALLS; i++)
		world_good(&w, connection[i & 1], SIZE);
	ck_assert_uint_ge(plan.forged, 6 * CALLS);
	ck_assert_uint_eq(w.served, 2 * CALLS + 2);
	/* None of them created a connection. */
	ck_assert_uint_le(counter_of(w.server, "connections_server"), 2);
	for (unsigned i = 0; i < 2; i++)
		rxw_connection_release(connection[i]);
	world_close(&w);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("security: the exchange");
	TCase *tc = tcase_create("exchange");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_set_timeout(tc, 250);
	tcase_add_loop_test(tc, requests_replayed, 0, kind_count);
	tcase_add_loop_test(tc, requests_replayed_after_restart, 0, kind_count);
	tcase_add_loop_test(tc, exchange_replayed, 0, kind_count);
	tcase_add_loop_test(tc, response_overtakes, 0, kind_count);
	tcase_add_loop_test(tc, exchange_delayed, 0, kind_count);
	tcase_add_loop_test(tc, response_lost, 0, kind_count);
	tcase_add_loop_test(tc, damaged_once, 0, kind_count);
	tcase_add_loop_test(tc, response_changed, 0, kind_count);
	tcase_add_loop_test(tc, forgeries, 0, kind_count);
	suite_add_tcase(s, tc);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
