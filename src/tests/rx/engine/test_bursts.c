/* SPDX-License-Identifier: BSD-2-Clause */
/* Bursts of small calls: requests of many connections in one burst, replies sent together. */
#include <netinet/udp.h>
#include <string.h>
#include <unistd.h>

#include "base/wire.h"
#include "tests/rx/api/harness.h"
#include "tests/rx/api/streams.h"

#ifndef UDP_SEGMENT
#	define UDP_SEGMENT 103
#endif
#ifndef SOL_UDP
#	define SOL_UDP 17
#endif

#define CALLS	    32	/* calls of a burst: 8 connections with 4 channels */
#define SEGMENT	    160 /* bytes in each packet of the call */
#define BODY	    (SEGMENT - RXW_HEADER_SIZE)
#define EPOCH	    0x80000123u
#define MOST_SERIAL 1024u

static struct h_bed bed;
static int fd;

/* A call of the current burst. */
static struct {
	struct h_ask ask;
	bool answered;
} calls[CALLS];
static uint32_t first_cid;
static bool begun[256]; /* rounds so far; the bits of the ids above the low 12 */
static bool seen[CALLS / 4][MOST_SERIAL]; /* serials of each connection */

static void open_bed(const char *server)
{
	/* A slow machine must not cause handlers to be handed over or replies to be cut off. */
	h_open(&bed, &(struct h_options){.both = "inline-us=0", .server = server});
	fd = h_raw_socket(&bed);
}

static void close_bed(void)
{
	close(fd);
	h_close(&bed);
}

/* Adjacent calls of a burst belong to different connections. */
static uint32_t cid_of(unsigned call)
{
	return first_cid + call % (CALLS / 4) * 4 + call / (CALLS / 4);
}

static void put(uint8_t *packet, struct h_raw raw)
{
	uint8_t made[2048];

	h_raw_encode(made, &raw);
	memcpy(packet, made, SEGMENT);
}

/* The request of calls[i], padded. The server does not read the padding. */
static struct h_raw request(uint8_t body[BODY], unsigned i, uint16_t service)
{
	struct h_raw raw = h_raw_request(body, calls[i].ask.op, cid_of(i));

	raw.service = service;
	raw.size = BODY;
	return raw;
}

/* Sends one burst, or single datagrams if the kernel does not support bursts. */
static void send_burst(uint8_t *bytes, size_t length)
{
	union {
		struct cmsghdr head;
		uint8_t room[CMSG_SPACE(sizeof(uint16_t))];
	} control;
	struct iovec iov = {.iov_base = bytes, .iov_len = length};
	struct msghdr m = {.msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = &control,
			   .msg_controllen = sizeof(control)};
	uint16_t segment = SEGMENT;

	memset(&control, 0, sizeof(control));
	control.head.cmsg_level = SOL_UDP;
	control.head.cmsg_type = UDP_SEGMENT;
	control.head.cmsg_len = CMSG_LEN(sizeof(segment));
	memcpy(CMSG_DATA(&control.head), &segment, sizeof(segment));
	if (sendmsg(fd, &m, 0) == (ssize_t)length)
		return;
	for (size_t at = 0; at < length; at += SEGMENT) {
		size_t n = length - at < SEGMENT ? length - at : SEGMENT;

		ck_assert_int_eq(send(fd, bytes + at, n, 0), (ssize_t)n);
	}
}

static void check_reply(const uint8_t *packet, size_t size)
{
	struct rxw_header h;
	unsigned k, i;

	ck_assert(rxw_header_get(packet, size, &h));
	ck_assert_uint_eq(h.epoch, EPOCH);
	/*
	 * No packet is acknowledged, so replies of earlier rounds are retransmitted if this thread
	 * is late.
	 */
	if (h.cid >> 12 != first_cid >> 12 && h.cid >> 20 == 0 && begun[h.cid >> 12])
		return;
	ck_assert_uint_ge(h.cid, first_cid);
	k = (h.cid - first_cid) / 4;
	ck_assert_uint_lt(k, CALLS / 4);
	i = (h.cid & 3) * (CALLS / 4) + k;
	ck_assert_uint_eq(cid_of(i), h.cid);
	ck_assert_uint_eq(h.call, 1);
	ck_assert_uint_eq(h.seq, 1);
	ck_assert_msg(h.flags & RXW_LAST_PACKET, "the end of the reply is missing");
	ck_assert_uint_eq(size, RXW_HEADER_SIZE + calls[i].ask.bytes);
	ck_assert(h_pattern_is(packet + RXW_HEADER_SIZE, 0, size - RXW_HEADER_SIZE,
			       calls[i].ask.seed));
	/*
	 * A retransmission has a new serial. A repeated serial means that a datagram was sent
	 * twice.
	 */
	ck_assert_uint_lt(h.serial, MOST_SERIAL);
	ck_assert_msg(!seen[k][h.serial], "cid %08x, serial %u came twice", h.cid, h.serial);
	seen[k][h.serial] = true;
	calls[i].answered = true;
}

static void collect(unsigned from, unsigned to)
{
	uint8_t packet[2048];
	unsigned left = 0;

	for (unsigned i = from; i < to; i++)
		left += !calls[i].answered;
	while (left) {
		ssize_t n = h_raw_receive(fd, RXW_DATA, packet);

		ck_assert_msg(n > 0, "%u of %u calls stayed without an answer", left, to - from);
		check_reply(packet, (size_t)n);
		left = 0;
		for (unsigned i = from; i < to; i++)
			left += !calls[i].answered;
	}
}

static void begin_round(uint32_t cid)
{
	memset(calls, 0, sizeof(calls));
	memset(seen, 0, sizeof(seen));
	first_cid = cid;
	begun[cid >> 12] = true;
}

/* All calls in one burst, with replies of `bytes` or of a size that depends on the call's index. */
static void round_of(uint32_t cid, uint16_t service, unsigned bytes)
{
	uint8_t burst[CALLS * SEGMENT], body[BODY];

	begin_round(cid);
	memset(body, 0, sizeof(body));
	for (unsigned i = 0; i < CALLS; i++) {
		struct h_raw raw;

		calls[i].ask = (struct h_ask){
			.op = H_SOURCE, .seed = cid + i, .bytes = bytes ? bytes : 1 + i / 3 * 7};
		raw = request(body, i, service);
		h_encode_ask(body, &calls[i].ask);
		put(burst + (size_t)i * SEGMENT, raw);
	}
	send_burst(burst, sizeof(burst));
	collect(0, CALLS);
}

static const char *const servers[] = {
	"listeners=1",
	"listeners=4 steer=cid",
	"listeners=4 steer=hash",
	"listeners=4 steer=wrong",
	"listeners=2 gso=off",
	"listeners=1 gro=off batch=8",
	"listeners=1 io=msg",
	/* If the kernel refuses a burst, each of its datagrams is sent once, singly. */
	"listeners=1 inject=gso:EIO@1",
	"listeners=1 inject=gso:EINVAL@1+",
	"listeners=1 inject=gso:EMSGSIZE@1+",
	"listeners=1 inject=gso:ENOBUFS@1,gso:EPERM@2",
	"listeners=1 inject=gso:EAGAIN@1,send:EAGAIN@1",
	"listeners=1 gso=off inject=send:ENOBUFS@3,send:EPERM@9",
};

START_TEST(many_calls_of_one_burst)
{
	struct rxw_effective e = {.size = sizeof(e)};
	struct counters s;

	open_bed(servers[_i]);
	ck_assert_int_eq(rxw_endpoint_effective(bed.server, &e), 0);
	for (unsigned n = 0; n < 4; n++) {
		round_of(0x10000 + n * 0x1000, H_INLINE, 100);
		round_of(0x20000 + n * 0x1000, H_INLINE, 0);
		round_of(0x30000 + n * 0x1000, H_SERVICE, n + 1);
	}
	s = counters_of(bed.server);
	ck_assert_uint_eq(counter_in(&s, "calls_started"), 3 * 4 * CALLS);
	/* As counted by the protocol core, with packets that it sent again after a refusal. */
	ck_assert_uint_ge(counter_in(&s, "packets.sent.data"), 3 * 4 * CALLS);
	/* Requests of one burst form one batch, and so do their replies. */
	if (_i == 0 && e.gso && e.gro)
		ck_assert_msg(counter_in(&s, "gso_messages"),
			      "equal replies of one batch left one by one");
	close_bed();
}
END_TEST

/* Packets without a connection, and malformed ones, between those of valid calls. */
START_TEST(foreign_packets_between)
{
	enum {
		GOOD = CALLS / 2
	};
	uint8_t burst[CALLS * SEGMENT + 20], body[BODY];
	struct h_raw raw;

	open_bed(servers[_i]);
	begin_round(0x40000);
	memset(body, 0, sizeof(body));
	for (unsigned i = 0; i < CALLS; i++) {
		if (i % 2) {
			raw = request(body, i, H_INLINE);
			raw.cid += 0x1000;
			switch (i / 2 % 6) {
			case 0:
				raw.type = 12;
				break;
			case 1:
				raw.type = RXW_ACK;
				break;
			case 2:
				raw.seq = 0;
				break;
			case 3:
				raw.service = 4711;
				break;
			case 4:
				raw.flags = RXW_LAST_PACKET; /* addressed to a client */
				break;
			case 5:
				raw.type = RXW_ABORT;
				break;
			}
		} else {
			/*
			 * Calls with even indexes use the first connections and all of their
			 * channels.
			 */
			calls[i].ask = (struct h_ask){.op = H_SOURCE, .seed = i, .bytes = 64};
			raw = request(body, i, i % 4 ? H_SERVICE : H_INLINE);
			h_encode_ask(body, &calls[i].ask);
		}
		put(burst + (size_t)i * SEGMENT, raw);
	}
	/* The tail is truncated. */
	memcpy(burst + CALLS * SEGMENT, burst, 20);
	send_burst(burst, sizeof(burst));
	for (unsigned i = 1; i < CALLS; i += 2)
		calls[i].answered = true;
	collect(0, CALLS);
	ck_assert_uint_eq(counter_of(bed.server, "calls_started"), GOOD);
	ck_assert_uint_eq(counter_of(bed.server, "drops.service"), 3);
	ck_assert_uint_ge(counter_of(bed.server, "drops.seq-zero"), 1);
	close_bed();
}
END_TEST

/* Some clients disappear before the replies are sent. The others are not affected. */
START_TEST(gone_before_the_reply)
{
	rxw_connection *connection;

	open_bed(servers[_i]);
	connection = h_connect(&bed, H_INLINE);
	for (unsigned n = 0; n < 8; n++) {
		uint8_t burst[CALLS * SEGMENT], body[BODY] = {0};

		begin_round(0x50000 + n * 0x1000);
		for (unsigned i = 0; i < CALLS; i++) {
			struct h_raw raw;

			calls[i].ask = (struct h_ask){.op = H_SOURCE, .bytes = 100, .seed = i};
			raw = request(body, i, n % 2 ? H_SERVICE : H_INLINE);
			h_encode_ask(body, &calls[i].ask);
			put(burst + (size_t)i * SEGMENT, raw);
		}
		send_burst(burst, sizeof(burst));
		close(fd);
		h_good_call(&bed, connection,
			    &(struct h_ask){.op = H_SOURCE, .bytes = 300, .seed = n});
		fd = h_raw_socket(&bed);
	}
	round_of(0x60000, H_INLINE, 100);
	rxw_connection_release(connection);
	close_bed();
}
END_TEST

int main(void)
{
	int rows = sizeof(servers) / sizeof(servers[0]), failed;
	Suite *s = suite_create("bursts");
	TCase *tc = tcase_create("small calls");
	SRunner *r = srunner_create(s);

	tcase_set_timeout(tc, 120);
	tcase_add_loop_test(tc, many_calls_of_one_burst, 0, rows);
	tcase_add_loop_test(tc, foreign_packets_between, 0, rows);
	tcase_add_loop_test(tc, gone_before_the_reply, 0, rows);
	suite_add_tcase(s, tc);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
