/* SPDX-License-Identifier: BSD-2-Clause */
/* Invalid packets at a live endpoint are counted by cause, and service continues. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/wire.h"
#include "tests/rx/api/harness.h"

static struct h_bed bed;
static int fd;
static uint8_t head[H_ASK_SIZE];

static void set_up(void)
{
	h_open(&bed, NULL);
	fd = h_raw_socket(&bed);
}

static void tear_down(void)
{
	close(fd);
	h_close(&bed);
}

static struct h_raw request(void)
{
	return h_raw_request(head, H_PING, 0x2000);
}

struct expected {
	const char *cause;
	uint64_t count;
};

static bool enough_dropped(void *arg)
{
	const struct expected *e = arg;

	return counter_of(bed.server, e->cause) >= e->count;
}

/* The packet is dropped for this cause, a counter, once, and service continues. */
static void dropped(const struct h_raw *raw, const char *cause)
{
	struct expected e = { .cause = cause, .count = counter_of(bed.server, cause) + 1 };
	rxw_connection *connection = h_connect(&bed, H_SERVICE);

	h_raw_send(fd, raw);
	h_wait_for(enough_dropped, &e, cause);
	ck_assert_uint_eq(counter_of(bed.server, cause), e.count);
	h_good_call(&bed, connection, &(struct h_ask){ .op = H_PING });
	rxw_connection_release(connection);
}

/* A hand-made connection whose call 1 was served. */
static struct h_raw served(void)
{
	struct h_raw raw = request();
	uint8_t packet[2048];

	h_raw_send(fd, &raw);
	ck_assert_int_eq(h_raw_receive(fd, RXW_DATA, packet), RXW_HEADER_SIZE + 4);
	ck_assert(!memcmp(packet + RXW_HEADER_SIZE, "pong", 4));
	return raw;
}

START_TEST(made_by_hand)
{
	served();
	ck_assert_uint_eq(counter_of(bed.server, "calls_started"), 1);
}
END_TEST

START_TEST(too_short)
{
	struct expected e = { .cause = "drops.short", .count = 3 };

	ck_assert_int_eq(send(fd, "", 0, 0), 0);
	ck_assert_int_eq(send(fd, "x", 1, 0), 1);
	ck_assert_int_eq(send(fd, "012345678901234567890123456", 27, 0), 27);
	h_wait_for(enough_dropped, &e, "short datagrams");
}
END_TEST

START_TEST(types)
{
	static const uint8_t unknown[] = { 0, 12, 14, 15, 64, 255 };
	struct h_raw raw = served();

	raw.size = 0;
	for (size_t i = 0; i < sizeof(unknown); i++) {
		raw.type = unknown[i];
		dropped(&raw, "drops.type");
	}
}
END_TEST

START_TEST(without_a_connection)
{
	struct h_raw raw = request();

	for (unsigned type = 0; type < 256; type++) {
		if (type == RXW_DATA || type == RXW_DEBUG || type == RXW_VERSION)
			continue;
		raw.type = (uint8_t)type;
		dropped(&raw, "drops.no-connection");
	}
	raw = request();
	raw.flags = 0; /* to a client that does not exist */
	dropped(&raw, "drops.no-connection");
	raw = request();
	raw.service = 9999;
	dropped(&raw, "drops.service");
	raw = request();
	raw.security = 77;
	dropped(&raw, "drops.security-index");
	raw = request();
	raw.seq = 0;
	dropped(&raw, "drops.seq-zero");
	raw = request();
	raw.call = 0;
	dropped(&raw, "drops.call-number");
	raw = request();
	raw.seq = 256;
	dropped(&raw, "drops.window");
	/* those of dropped() itself */
	ck_assert_uint_eq(counter_of(bed.server, "calls_started"), 259);
}
END_TEST

START_TEST(on_a_connection)
{
	struct h_raw raw = served(), bad = raw;

	bad.security = 251;
	dropped(&bad, "drops.security-index");
	bad = raw;
	bad.service = H_INLINE;
	dropped(&bad, "drops.service");
	bad = raw;
	bad.type = RXW_BUSY;
	bad.size = 0;
	dropped(&bad, "drops.direction");
	bad.type = RXW_CHALLENGE;
	bad.call = 0;
	dropped(&bad, "drops.direction");
	bad = raw;
	bad.call = 0;
	dropped(&bad, "drops.call-number");
	bad = raw;
	bad.type = RXW_ACK;
	bad.size = 17;
	dropped(&bad, "drops.bad-ack");
	bad.type = RXW_ABORT;
	bad.size = 3;
	dropped(&bad, "drops.bad-abort");
	bad = raw;
	bad.type = RXW_ACK;
	bad.call = 2;
	dropped(&bad, "drops.call-number");
	bad = raw;
	bad.call = 2;
	bad.seq = 4000;
	dropped(&bad, "drops.window");
}
END_TEST

/* The same connection from another port: its call must not run twice. */
START_TEST(another_address)
{
	struct h_raw raw = served();
	int other = h_raw_socket(&bed), first = fd;

	fd = other;
	dropped(&raw, "drops.address");
	fd = first;
	close(other);
	ck_assert_uint_eq(counter_of(bed.server, "calls_started"), 2);
}
END_TEST

/* A jumbogram with a truncated tail: the complete members are accepted, the tail is dropped. */
START_TEST(cut_jumbogram)
{
	static uint8_t body[RXW_JUMBO_PAYLOAD + 2];
	struct h_raw raw = request();

	memcpy(body, head, sizeof(head));
	raw.body = body;
	raw.size = sizeof(body);
	raw.flags = RXW_CLIENT_INITIATED | RXW_JUMBO_PACKET;
	dropped(&raw, "drops.jumbo");
}
END_TEST

/* A number lower than the call's, as in a delayed packet. */
START_TEST(old_call)
{
	struct h_raw raw = request(), old;
	uint8_t packet[2048];

	raw.call = 7;
	h_raw_send(fd, &raw);
	ck_assert_int_gt(h_raw_receive(fd, RXW_DATA, packet), RXW_HEADER_SIZE);
	old = raw;
	old.call = 6;
	dropped(&old, "drops.call-number");
}
END_TEST

/* The reply is retransmitted. The handler does not run again. */
START_TEST(duplicate_request)
{
	struct h_raw raw = served();
	uint8_t packet[2048];
	struct rxw_ack ack;
	ssize_t n;

	h_raw_send(fd, &raw);
	do {
		n = h_raw_receive(fd, RXW_ACK, packet);
		ck_assert_int_gt(n, RXW_HEADER_SIZE);
		ck_assert(rxw_ack_get(packet + RXW_HEADER_SIZE, (size_t)n - RXW_HEADER_SIZE, 0, &ack));
	} while (ack.reason != RXW_ACK_DUPLICATE);
	ck_assert_uint_eq(ack.first, 2);
	ck_assert_uint_eq(counter_of(bed.server, "calls_started"), 1);
}
END_TEST

/* Answers to an ABORT with code 0 or for an unknown service. An ABORT never draws an ABORT. */
START_TEST(answers_without_a_connection)
{
	struct h_raw raw = request();
	uint8_t packet[2048];
	int32_t code;
	ssize_t n;

	raw.service = 9999;
	raw.security = 3;
	raw.call = 9;
	raw.serial = 77;
	raw.flags |= RXW_REQUEST_ACK;
	h_raw_send(fd, &raw);
	n = h_raw_receive(fd, RXW_ABORT, packet);
	ck_assert_int_eq(n, RXW_HEADER_SIZE + 4);
	ck_assert(rxw_abort_get(packet + RXW_HEADER_SIZE, 4, &code));
	ck_assert_int_eq(code, RXW_INVALID_OPERATION);
	ck_assert_uint_eq(rxw_get32(packet), raw.epoch);
	ck_assert_uint_eq(rxw_get32(packet + 4), raw.cid);
	ck_assert_uint_eq(rxw_get32(packet + 8), raw.call);
	ck_assert_uint_eq(rxw_get32(packet + 12), 0);
	ck_assert_uint_eq(rxw_get32(packet + 16), 0);
	ck_assert_uint_eq(packet[21], 0);
	ck_assert_uint_eq(packet[22], 0);
	ck_assert_uint_eq(packet[23], 3);
	ck_assert_uint_eq(rxw_get16(packet + 24), 0);
	ck_assert_uint_eq(rxw_get16(packet + 26), 9999);
	ck_assert_uint_eq(counter_of(bed.server, "stateless_aborts"), 1);
	ck_assert_uint_eq(counter_of(bed.server, "connections_server"), 0);
	raw.type = RXW_ABORT;
	dropped(&raw, "drops.no-connection");
	ck_assert_int_lt(recv(fd, packet, sizeof(packet), MSG_DONTWAIT), 0);
}
END_TEST

/* ---- noise ---- */

static uint64_t noise;

static uint32_t pick(uint32_t below)
{
	return (uint32_t)(rxw_prng(&noise) >> 33) % below;
}

/* A nearly valid packet, with wrong bytes, a wrong length, or both. */
static size_t near_packet(uint8_t packet[2048])
{
	static uint8_t body[1500];
	struct h_raw raw = h_raw_request(head, pick(2) ? H_PING : H_ECHO, 0x3000 + 4 * pick(40));
	size_t size;

	memcpy(body, head, sizeof(head));
	raw.body = body;
	raw.size = pick(3) ? pick(100) : pick(sizeof(body));
	raw.type = pick(4) ? (uint8_t)(1 + pick(9)) : (uint8_t)pick(256);
	raw.flags = pick(4) ? (uint8_t)(1 | pick(64)) : (uint8_t)pick(256);
	raw.call = pick(8) ? 1 + pick(4) : pick(0x7fffffff);
	raw.seq = pick(8) ? 1 + pick(20) : pick(0x7fffffff);
	raw.serial = 1 + pick(1000);
	raw.cid |= pick(4);
	if (!pick(10))
		raw.service = (uint16_t)pick(200);
	if (!pick(10))
		raw.security = (uint8_t)(pick(2) ? 251 : pick(256));
	size = h_raw_encode(packet, &raw);
	for (uint32_t n = pick(4); n; n--)
		packet[pick((uint32_t)size)] = (uint8_t)pick(256);
	return pick(5) ? size : pick((uint32_t)size + 1);
}

/* Packets that the server dropped, for all causes. */
static uint64_t refused(void)
{
	struct counters s = counters_of(bed.server);

	return counter_in(&s, "drops.type") && counter_in(&s, "drops.short") ?
		       counters_sum(&s, "drops.") : 0;
}

/* Some packets may overflow the server's socket, so the test sends until enough have arrived. */
static void *make_noise(void *arg)
{
	unsigned most = h_small() ? 5000 : 30000;
	uint8_t packet[2048];

	(void)arg;
	for (unsigned n = 0; n < most || refused() <= 1000; n++) {
		size_t size = near_packet(packet);

		/* A send on loopback may fail when a buffer is full. Other packets follow. */
		if (send(fd, packet, size, MSG_DONTWAIT) < 0)
			usleep(100);
		while (recv(fd, packet, sizeof(packet), MSG_DONTWAIT) > 0)
			;
	}
	return NULL;
}

START_TEST(noise_beside_good_calls)
{
	rxw_connection *connection = h_connect(&bed, H_SERVICE);
	pthread_t thread;

	noise = 0x1234567 + (uint64_t)_i;
	pthread_create(&thread, NULL, make_noise, NULL);
	for (int i = 0; i < 50; i++)
		h_good_call(&bed, connection, &(struct h_ask){ .op = H_BOTH, .bytes = 100000 });
	pthread_join(thread, NULL);
	h_good_call(&bed, connection, &(struct h_ask){ .op = H_BOTH, .bytes = 100000 });
	ck_assert_uint_gt(refused(), 1000);
	rxw_connection_release(connection);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("receive");
	TCase *tc = tcase_create("hostile");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, set_up, tear_down);
	tcase_add_test(tc, made_by_hand);
	tcase_add_test(tc, too_short);
	tcase_add_test(tc, types);
	tcase_add_test(tc, without_a_connection);
	tcase_add_test(tc, on_a_connection);
	tcase_add_test(tc, another_address);
	tcase_add_test(tc, cut_jumbogram);
	tcase_add_test(tc, old_call);
	tcase_add_test(tc, duplicate_request);
	tcase_add_test(tc, answers_without_a_connection);
	tcase_add_loop_test(tc, noise_beside_good_calls, 0, 3);
	suite_add_tcase(s, tc);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
