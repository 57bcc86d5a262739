/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * All places for unvalidated peers are taken. A new client is validated by a cookie, without a
 * place, and is served. A client that does not return its cookie is not (rx-protocol 12.3).
 */
#include <string.h>
#include <unistd.h>

#include "base/wire.h"
#include "tests/rx/api/harness.h"
#include "tests/rx/api/streams.h"

#define PLACES 16u /* of this host, twice what others have */

static struct h_bed bed;
static uint8_t head[H_ASK_SIZE], packet[2048];
static int holder;

/* Calls of unvalidated addresses whose handlers run: they keep their places. */
static void open_full_bed(void)
{
	struct h_raw raw = h_raw_request(head, H_WAIT, 0x8500);

	h_open(&bed, &(struct h_options){.server = "listeners=1 unvalidated-max=8 dead-ms=60000"});
	holder = h_raw_socket(&bed);
	for (unsigned i = 0; i < PLACES; i++, raw.cid += 4)
		h_raw_send(holder, &raw);
	h_gate_arrived(&bed, PLACES);
	ck_assert_uint_eq(counter_of(bed.server, "unvalidated_connections"), PLACES);
}

static void close_bed(void)
{
	h_gate_open(&bed);
	close(holder);
	h_close(&bed);
}

/*
 * Clients of the library answer by themselves; then neither this connection nor the next needs a
 * place.
 */
START_TEST(client_validated_by_cookie)
{
	struct counters s;

	open_full_bed();
	for (unsigned i = 0; i < 3; i++) {
		rxw_connection *c = h_connect(&bed, H_SERVICE);

		h_good_call(&bed, c, &(struct h_ask){.op = H_BOTH, .bytes = 100000});
		rxw_connection_release(c);
	}
	s = counters_of(bed.server);
	ck_assert_uint_ge(counter_in(&s, "cookies_sent"), 1);
	ck_assert_uint_ge(counter_in(&s, "cookies_returned"), 1);
	ck_assert_uint_ge(counter_in(&s, "drops.limit"), 1);
	ck_assert_uint_eq(counter_in(&s, "unvalidated_connections"), PLACES);
	close_bed();
}
END_TEST

struct cookie_state {
	int fd;
	struct h_raw call;
	uint32_t serial; /* of the latest cookie */
	uint64_t wrong;	 /* answers that must not validate */
};

/* Reads what has arrived; true if there was a cookie. */
static bool cookie_received(void *arg)
{
	struct cookie_state *k = arg;
	struct rxw_header h;
	bool found = false;
	ssize_t n;

	while ((n = recv(k->fd, packet, sizeof(packet), MSG_DONTWAIT)) > 0) {
		ck_assert(rxw_header_get(packet, (size_t)n, &h));
		if (h.type != RXW_ACK || packet[RXW_HEADER_SIZE + 16] != RXW_ACK_PING)
			continue;
		ck_assert(h.flags & RXW_REQUEST_ACK);
		ck_assert_uint_eq(h.epoch, k->call.epoch);
		ck_assert_uint_eq(h.cid, k->call.cid);
		ck_assert_uint_eq(h.call, k->call.call);
		ck_assert_int_le(n + 28, (int)(3 * (RXW_HEADER_SIZE + k->call.size + 28)));
		k->serial = h.serial;
		found = true;
	}
	return found;
}

static void answer(int fd, const struct h_raw *call, uint32_t serial)
{
	uint8_t body[RXW_ACK_MAX_SIZE];
	struct rxw_ack ack = {.first = 1, .serial = serial, .reason = RXW_ACK_PING_RESPONSE,
			      .acks = body, .max_mtu = 1444, .if_mtu = 1444, .rwind = 32,
			      .jumbo_max = 1};
	struct h_raw raw = *call;

	raw.type = RXW_ACK;
	raw.flags = RXW_CLIENT_INITIATED | RXW_SLOW_START_OK;
	raw.seq = 0;
	raw.serial = 2;
	raw.size = rxw_ack_put(body, &ack);
	raw.body = body;
	h_raw_send(fd, &raw);
}

static bool wrong_answers_dropped(void *arg)
{
	struct cookie_state *k = arg;

	return counter_of(bed.server, "drops.no-connection") >= k->wrong;
}

/* A cookie is valid for seconds only; a client that answers late gets another one. */
static bool validated(void *arg)
{
	struct cookie_state *k = arg;

	if (counter_of(bed.server, "cookies_returned"))
		return true;
	h_raw_send(k->fd, &k->call);
	cookie_received(k);
	answer(k->fd, &k->call, k->serial);
	return false;
}

START_TEST(only_cookie_holder_validated)
{
	struct cookie_state k = {.call = h_raw_request(head, H_PING, 0x9000)};
	struct h_raw other;
	int elsewhere;

	open_full_bed();
	h_encode_ask(head, &(struct h_ask){.op = H_PING});
	k.fd = h_raw_socket(&bed);
	elsewhere = h_raw_socket(&bed);
	h_raw_send(k.fd, &k.call);
	h_wait_for(cookie_received, &k, "a cookie");
	answer(elsewhere, &k.call, k.serial);
	answer(k.fd, &k.call, k.serial + 1);
	answer(k.fd, &k.call, 0);
	other = k.call;
	other.cid += 4;
	answer(k.fd, &other, k.serial);
	other = k.call;
	other.epoch ^= 1;
	answer(k.fd, &other, k.serial);
	other = k.call;
	other.call++;
	answer(k.fd, &other, k.serial);
	k.wrong = 6;
	h_wait_for(wrong_answers_dropped, &k, "wrong answers");
	ck_assert_uint_eq(counter_of(bed.server, "cookies_returned"), 0);
	ck_assert_uint_eq(counter_of(bed.server, "connections_server"), PLACES);
	h_wait_for(validated, &k, "a valid cookie");
	h_raw_send(k.fd, &k.call);
	ck_assert_int_gt(h_raw_receive(k.fd, RXW_DATA, packet), RXW_HEADER_SIZE);
	ck_assert_uint_eq(counter_of(bed.server, "connections_server"), PLACES + 1);
	ck_assert_uint_eq(counter_of(bed.server, "unvalidated_connections"), PLACES);
	close(k.fd);
	close(elsewhere);
	close_bed();
}
END_TEST

int main(void)
{
	Suite *s = suite_create("cookies");
	TCase *tc = tcase_create("cookies");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, client_validated_by_cookie);
	tcase_add_test(tc, only_cookie_holder_validated);
	suite_add_tcase(s, tc);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
