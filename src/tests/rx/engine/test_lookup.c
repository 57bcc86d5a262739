/* SPDX-License-Identifier: BSD-2-Clause */
/* Connection lookup: no match, removed connections, id collisions, spoofing attempts. */
#include <stdio.h>
#include <unistd.h>

#include "arrival.h"
#include "engine/receive/lifecycle.h"
#include "engine/lock.h"
#include "engine/receive/batch.h"
#include "proto/peer/event.h"
#include "tests/main.h"
#include "tests/rx/api/streams.h"

static struct h_bed bed;
static uint8_t head[H_ASK_SIZE], packet[2048];

/* --- packets that match no connection --- */

static bool told(void *arg)
{
	const int *fd = arg;
	struct h_raw raw = h_raw_request(head, H_PING, 0x8400);

	raw.type = RXW_ACK;
	for (int i = 0; i < 200; i++)
		h_raw_send(*fd, &raw);
	return h_warnings(&bed) > 0;
}

/* Many packets without a match are logged. */
START_TEST(guessing_is_told)
{
	unsigned before;
	int fd;

	h_open(&bed, &(struct h_options){.server = "listeners=1"});
	fd = h_raw_socket(&bed);
	before = h_warnings(&bed); /* probably the warning about buffer sizes */
	while (h_warnings(&bed) == before)
		h_wait_for(told, &fd, "a warning");
	ck_assert_uint_eq(h_warnings(&bed), before + 1);
	close(fd);
	h_close(&bed);
}
END_TEST

/* Drops more packets for this cause one second later. Returns the whole log. */
static unsigned a_second_later(uint64_t *now, enum rxw_drop cause, unsigned packets)
{
	struct rxw_shard *s = &bed.server->shard[0];

	rxw_drop(&s->stats, cause, packets);
	*now += RXW_SEC + RXW_MS;
	rxw_shard_reap(s, *now);
	return h_warnings(&bed);
}

/* Packets that well-behaved peers also send are not reported as guessing, nor is a single burst. */
START_TEST(late_packets_are_no_guesses)
{
	static const enum rxw_drop honest[] = {RXW_DROP_CALL_NUMBER, RXW_DROP_SERVICE,
					       RXW_DROP_BAD_ACK, RXW_DROP_SECURITY_INDEX};
	unsigned before;
	uint64_t now;

	h_open(&bed, &(struct h_options){.server = "listeners=1"});
	atomic_store(&bed.server->life.quit, true);
	rxw_shard_stop(&bed.server->shard[0]);
	now = rxw_now() + RXW_SEC;
	before = a_second_later(&now, RXW_DROP_RATE, 0);
	for (unsigned i = 0; i < 10; i++)
		for (unsigned k = 0; k < 4; k++)
			ck_assert_uint_eq(a_second_later(&now, honest[k], 10000), before);
	/* Clients of a restarted server, until they notice. */
	ck_assert_uint_eq(a_second_later(&now, RXW_DROP_NO_CONNECTION, 10000), before);
	ck_assert_uint_eq(a_second_later(&now, RXW_DROP_NO_CONNECTION, 10000), before);
	ck_assert_uint_eq(a_second_later(&now, RXW_DROP_NO_CONNECTION, 50), before);
	ck_assert_uint_eq(a_second_later(&now, RXW_DROP_NO_CONNECTION, 200), before);
	ck_assert_uint_eq(a_second_later(&now, RXW_DROP_ADDRESS, 200), before);
	ck_assert_uint_eq(a_second_later(&now, RXW_DROP_NO_CONNECTION, 200), before + 1);
	ck_assert_uint_eq(a_second_later(&now, RXW_DROP_NO_CONNECTION, 200), before + 1);
	h_close(&bed);
}
END_TEST

/* --- lookup --- */

/* Found, but removed from the table before the packet is handled. No call is created. */
START_TEST(a_packet_for_one_that_is_gone)
{
	struct h_raw raw = h_raw_request(head, H_PING, 0x4480);
	struct rxw_path path = {.ifindex = 0};
	struct rxw_rxrun run = {.data = packet, .count = 1, .path = &path};
	struct rxw_connection *c;
	struct rxw_effects a;

	h_open(&bed, &(struct h_options){.server = "listeners=1"});
	c = arrival_from(&bed, "192.0.2.1", ARRIVAL_LOCAL, raw.cid);
	ck_assert_ptr_nonnull(c);
	rxw_conn_remove(c);
	run.size = run.stride = run.last_size = (uint16_t)h_raw_encode(packet, &raw);
	ck_assert(rxw_header_get(packet, run.size, &run.head));
	rxw_effects_init(&a, &bed.server->shard[0], false);
	rxw_conn_lock(c);
	ck_assert_int_eq(rxw_pconn_input(&c->p, &run, &a.out), RXW_INPUT_DONE);
	ck_assert_ptr_null(c->p.channel[0]);
	ck_assert_uint_eq(a.out.ctl_count, 0);
	rxw_effects_collect(&a, false);
	rxw_conn_unlock(c);
	rxw_dispatch(&a);
	ck_assert_uint_eq(counter_of(bed.server, "drops.state"), 1);
	rxw_conn_unref(c);
	ck_assert_uint_eq(counter_of(bed.server, "connections_server"), 0);
	h_close(&bed);
}
END_TEST

/* The code of the next ABORT. */
static int32_t aborted(int fd)
{
	uint8_t in[2048];
	struct rxw_header h;
	int32_t code = 0;
	ssize_t n = h_raw_receive(fd, RXW_ABORT, in);

	ck_assert_int_eq(n, RXW_HEADER_SIZE + 4);
	ck_assert(rxw_header_get(in, (size_t)n, &h));
	ck_assert(rxw_abort_get(in + RXW_HEADER_SIZE, (size_t)n - RXW_HEADER_SIZE, &code));
	ck_assert_uint_eq(h.call, 1);
	return code;
}

/*
 * A call fails while the NAT has forgotten the mapping of its client, so the ABORT is lost. Packets
 * from the next mapping get the ABORT if the call itself would have answered them, and only then.
 */
START_TEST(a_call_that_failed_before_its_client_moved)
{
	uint8_t ack[64];
	struct h_raw raw = h_raw_request(head, H_ABORT, 0x8800), ping = raw;
	struct rxw_ack body = {.first = 1, .reason = RXW_ACK_PING, .base = 1, .rwind = 16};
	int old, new;

	h_encode_ask(head, &(struct h_ask){.op = H_ABORT, .code = H_MISMATCH});
	h_open(&bed, &(struct h_options){.server = "listeners=1"});
	old = h_raw_socket(&bed);
	new = h_raw_socket(&bed);
	h_raw_send(old, &raw);
	ck_assert_int_eq(aborted(old), H_MISMATCH);
	ping.type = RXW_ACK;
	ping.flags = RXW_CLIENT_INITIATED | RXW_REQUEST_ACK;
	ping.body = ack;
	ping.size = rxw_ack_put(ack, &body);
	h_raw_send(new, &ping);
	ck_assert_int_eq(aborted(new), H_MISMATCH);
	h_raw_send(new, &raw);
	ck_assert_int_eq(aborted(new), H_MISMATCH);
	ck_assert_uint_eq(counter_of(bed.server, "stateless_aborts"), 2);
	/* These ask for nothing, or are of another call or class. The last one is answered. */
	body.reason = RXW_ACK_DELAY;
	ping.flags = RXW_CLIENT_INITIATED;
	ping.size = rxw_ack_put(ack, &body);
	h_raw_send(new, &ping);
	ping.type = RXW_ABORT;
	h_raw_send(new, &ping);
	raw.security = 2;
	h_raw_send(new, &raw);
	raw.security = 0;
	raw.call = 0;
	h_raw_send(new, &raw);
	raw.call = 1;
	h_raw_send(new, &raw);
	ck_assert_int_eq(aborted(new), H_MISMATCH);
	ck_assert_uint_eq(counter_of(bed.server, "stateless_aborts"), 3);
	close(old);
	close(new);
	h_close(&bed);
}
END_TEST

/*
 * A client moves within its next request, and the packets from its new port arrive first. They make
 * no connection, in which the request would be served once more; its first packet does.
 */
START_TEST(a_request_that_overtakes_its_first_packet)
{
	struct h_raw raw = h_raw_request(head, H_PING, 0x8c00);
	uint8_t in[2048];
	int old, new;

	h_open(&bed, &(struct h_options){.server = "listeners=1"});
	old = h_raw_socket(&bed);
	new = h_raw_socket(&bed);
	h_raw_send(old, &raw);
	ck_assert_int_ge(h_raw_receive(old, RXW_DATA, in), RXW_HEADER_SIZE);
	raw.call = 2;
	raw.seq = 2;
	h_raw_send(new, &raw);
	raw.seq = 1;
	h_raw_send(new, &raw);
	ck_assert_int_ge(h_raw_receive(new, RXW_DATA, in), RXW_HEADER_SIZE);
	ck_assert_uint_eq(counter_of(bed.server, "drops.address"), 1);
	ck_assert_uint_eq(counter_of(bed.server, "connections_server"), 2);
	close(old);
	close(new);
	h_close(&bed);
}
END_TEST

/* An attacker who knows ids cannot make chains long: the connections per id are limited. */
START_TEST(one_id_from_many_addresses)
{
	unsigned made = 0;

	h_open(&bed, &(struct h_options){.server = "listeners=1"});
	for (unsigned i = 1; i < 100; i++) {
		struct rxw_connection *c;
		char host[20];

		snprintf(host, sizeof(host), "192.0.2.%u", i);
		c = arrival_from(&bed, host, ARRIVAL_LOCAL, 0x4440);
		if (c) {
			made++;
			rxw_conn_unref(c);
		}
	}
	ck_assert_uint_eq(made, 32);
	ck_assert_uint_eq(counter_of(bed.server, "connections_server"), 32);
	ck_assert_uint_eq(counter_of(bed.server, "drops.limit"), 99 - 32);
	h_close(&bed);
}
END_TEST

TEST_MAIN_WITHIN(60, "look-up of connections", guessing_is_told, late_packets_are_no_guesses,
		 a_packet_for_one_that_is_gone, a_call_that_failed_before_its_client_moved,
		 a_request_that_overtakes_its_first_packet, one_id_from_many_addresses)
