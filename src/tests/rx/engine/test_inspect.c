/* SPDX-License-Identifier: BSD-2-Clause */
/* VERSION and DEBUG: answers to inspection tools, and packets that get no answer. */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/debugfmt.h"
#include "engine/objects.h"
#include "tests/rx/api/harness.h"

static struct h_bed bed;
static int fd;

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

/* Header fields as existing tools set them: epoch 999, cid 0, a counter, flags 5. */
static struct h_raw question(uint8_t type, const void *body, size_t size)
{
	static uint32_t counter;

	return (struct h_raw){ .epoch = 999, .call = ++counter, .type = type,
			       .flags = RXW_CLIENT_INITIATED | RXW_LAST_PACKET, .body = body,
			       .size = size };
}

/* Sends a request and checks the header of the answer. Returns the size of its body (out + 28). */
static size_t ask(uint32_t type, uint32_t index, uint8_t out[2048])
{
	uint8_t body[8], sent[2048];
	struct h_raw raw;
	ssize_t n;

	rxw_put32(body, type);
	rxw_put32(body + 4, index);
	raw = question(RXW_DEBUG, body, sizeof(body));
	h_raw_encode(sent, &raw);
	h_raw_send(fd, &raw);
	n = h_raw_receive(fd, RXW_DEBUG, out);
	ck_assert_int_ge(n, RXW_HEADER_SIZE);
	ck_assert_uint_eq(out[21], RXW_LAST_PACKET);
	sent[21] = out[21];
	ck_assert(!memcmp(sent, out, RXW_HEADER_SIZE));
	return (size_t)n - RXW_HEADER_SIZE;
}

START_TEST(version)
{
	struct h_raw raw = question(RXW_VERSION, "", 1);
	uint8_t out[2048];
	char text[66] = "rxwire test";

	h_raw_send(fd, &raw);
	ck_assert_int_eq(h_raw_receive(fd, RXW_VERSION, out), RXW_HEADER_SIZE + 65);
	ck_assert(!memcmp(out + RXW_HEADER_SIZE, text, 65));
	ck_assert_uint_eq(out[21], RXW_LAST_PACKET);
	raw.flags = 0; /* an answer, or a NAT keepalive: not answered */
	h_raw_send(fd, &raw);
	raw = question(RXW_DEBUG, "", 0);
	raw.flags = 0;
	h_raw_send(fd, &raw);
	ck_assert_uint_eq(ask(99, 0, out), 8); /* the next answer belongs to this request */
	ck_assert_uint_eq(counter_of(bed.server, "version_answers"), 1);
	ck_assert_uint_eq(counter_of(bed.server, "debug_answers"), 1);
}
END_TEST

START_TEST(bad_type)
{
	uint8_t out[2048];
	struct h_raw raw = question(RXW_DEBUG, "\0\0\0", 3);

	ck_assert_uint_eq(ask(99, 0, out), 8);
	ck_assert_uint_eq(rxw_get32(out + 28), (uint32_t)-8);
	ck_assert_uint_eq(rxw_get32(out + 32), (uint32_t)-8);
	h_raw_send(fd, &raw); /* too short for a request */
	ck_assert_int_eq(h_raw_receive(fd, RXW_DEBUG, out), RXW_HEADER_SIZE + 8);
}
END_TEST

START_TEST(basic_statistics)
{
	rxw_connection *connection = h_connect(&bed, H_SERVICE);
	struct rxw_debug_stats v;
	uint8_t out[2048];
	size_t n;

	for (int i = 0; i < 5; i++)
		h_good_call(&bed, connection, &(struct h_ask){ .op = H_PING });
	rxw_connection_release(connection);
	n = ask(RXW_DEBUG_STATS, 0, out);
	ck_assert_uint_eq(n, 56);
	ck_assert_uint_eq(out[28 + 14], 'S');
	ck_assert(rxw_debug_stats_get(out + 28, n, &v));
	ck_assert_uint_eq(v.calls_executed, 5);
	ck_assert_uint_eq(v.waiting, 0);
	ck_assert_uint_gt(v.packets, 0);
	ck_assert_uint_le(v.free_packets, v.packets);
	ck_assert_uint_ge(v.used_fds, 1);
}
END_TEST

/* Reads all connections of a kind by index. Returns their number. */
static unsigned list(uint32_t type, struct rxw_debug_conn v[16])
{
	uint8_t out[2048];

	for (unsigned i = 0; i < 16; i++) {
		size_t n = ask(type, i, out);

		ck_assert_uint_eq(n, 176);
		ck_assert(rxw_debug_conn_get(out + 28, n, &v[i]));
		if (v[i].cid == 0xffffffff)
			return i;
	}
	ck_abort_msg("the list has no end");
}

static bool four_ended(void *arg)
{
	(void)arg;
	return counter_of(bed.server, "calls_ended") >= 4;
}

/* rx-protocol 8.2: secStats. The tests run on this host, which may see when a ticket expires. */
static void check_security(const struct rxw_debug_conn *v)
{
	static const uint8_t types[] = { [0] = 1, [2] = 3, [4] = 4 };
	struct rxw_identity identity = { .size = sizeof(identity) };
	rxw_connection *c = h_connect(&bed, H_SERVICE);

	ck_assert_int_eq(rxw_connection_identity(c, &identity), 0);
	ck_assert_uint_eq(v->sec_type, identity.index < 5 ? types[identity.index] : 0);
	ck_assert_uint_eq(v->sec_level, identity.level);
	ck_assert_uint_eq(v->sec_flags, identity.index == 2 ? 10 : identity.index == 4 ? 2 : 0);
	ck_assert_uint_eq(v->sec_expires, identity.index && identity.expires < UINT32_MAX ?
						  (uint32_t)identity.expires : 0);
	rxw_connection_release(c);
}

/* A connection with authentication: no statistics before it completes, then its level. */
START_TEST(level_of_a_connection)
{
	struct rxw_debug_conn v[16];
	rxw_connection *c;

	tear_down();
	h_open(&bed, &(struct h_options){ .security = _i ? "rxgk-crypt" : "rxkad-auth" });
	fd = h_raw_socket(&bed);
	c = h_connect(&bed, H_SERVICE);
	h_good_call(&bed, c, &(struct h_ask){ .op = H_PING });
	ck_assert_uint_eq(list(RXW_DEBUG_ALLCONN, v), 1);
	ck_assert_uint_eq(v[0].sec_type, _i ? 4 : 3);
	ck_assert_uint_eq(v[0].sec_level, _i ? 2 : 1);
	ck_assert_uint_eq(v[0].sec_flags, _i ? 2 : 10);
	rxw_connection_release(c);
}
END_TEST

START_TEST(connections)
{
	rxw_connection *idle[4], *busy = h_connect(&bed, H_SERVICE);
	const struct sockaddr_in *in;
	struct sockaddr_storage client;
	socklen_t length = sizeof(client);
	struct rxw_debug_conn v[16];
	rxw_call *call;

	for (int i = 0; i < 4; i++) {
		idle[i] = h_connect(&bed, H_SERVICE);
		h_good_call(&bed, idle[i], &(struct h_ask){ .op = H_PING });
	}
	call = h_begin(busy, &(struct h_ask){ .op = H_WAIT });
	ck_assert_int_eq(rxw_call_flush(call), 0);
	h_gate_arrived(&bed, 1);
	ck_assert_int_eq(rxw_endpoint_address(bed.client, &client, &length), 0);
	in = (const struct sockaddr_in *)&client;
	ck_assert_uint_eq(list(RXW_DEBUG_ALLCONN, v), 5);
	for (int i = 0; i < 5; i++) {
		ck_assert_uint_eq(v[i].type, 1);
		ck_assert_uint_eq(v[i].security, h_index(&bed));
		check_security(&v[i]);
		ck_assert_uint_eq(v[i].port, ntohs(in->sin_port));
		ck_assert(!memcmp(v[i].host, &in->sin_addr, 4));
		ck_assert_uint_ne(v[i].cid, 0);
		ck_assert_uint_ne(v[i].epoch & 0x80000000, 0);
		ck_assert_uint_ge(v[i].serial, 1);
		for (int k = 0; k < i; k++)
			ck_assert_uint_ne(v[k].cid, v[i].cid);
	}
	/* Their calls are complete, and no other record of them exists. */
	h_wait_for(four_ended, NULL, "the calls to be acknowledged");
	ck_assert_uint_eq(list(RXW_DEBUG_ALLCONN, v), 5);
	for (int i = 0, over = 0; i < 5; i++) {
		if (v[i].call_state[0] == RXW_CS_DALLY) {
			ck_assert_uint_eq(v[i].call_mode[0], 4);
			over++;
		}
		ck_assert(i < 4 || over == 4);
	}
	ck_assert_uint_eq(list(RXW_DEBUG_CONN, v), 1);
	ck_assert_uint_eq(v[0].call_state[0], RXW_CS_ACTIVE);
	ck_assert_uint_eq(v[0].call_mode[0], 2);
	ck_assert_uint_eq(v[0].call[0], 1);
	h_gate_open(&bed);
	ck_assert_int_eq(rxw_call_end(call, 0, NULL), 0);
	for (int i = 0; i < 4; i++)
		rxw_connection_release(idle[i]);
	rxw_connection_release(busy);
}
END_TEST

START_TEST(negative_index)
{
	rxw_connection *connection = h_connect(&bed, H_SERVICE);
	struct rxw_debug_conn v;
	uint8_t out[2048];

	h_good_call(&bed, connection, &(struct h_ask){ .op = H_PING });
	ck_assert_uint_eq(ask(RXW_DEBUG_ALLCONN, 0x80000000, out), 176);
	ck_assert(rxw_debug_conn_get(out + 28, 176, &v));
	ck_assert_uint_eq(v.cid, 0xffffffff);
	ck_assert_uint_eq(ask(RXW_DEBUG_ALLCONN, 0x7fffffff, out), 176);
	ck_assert(rxw_debug_conn_get(out + 28, 176, &v));
	ck_assert_uint_eq(v.cid, 0xffffffff);
	ck_assert_uint_eq(ask(RXW_DEBUG_PEER, 0xffffffff, out), 132);
	ck_assert_uint_eq(rxw_get32(out + 28), 0xffffffff);
	rxw_connection_release(connection);
}
END_TEST

START_TEST(peers)
{
	rxw_connection *connection = h_connect(&bed, H_SERVICE);
	struct rxw_debug_peer v;
	uint8_t out[2048];

	h_good_call(&bed, connection, &(struct h_ask){ .op = H_BOTH, .bytes = 100000 });
	ck_assert_uint_eq(ask(RXW_DEBUG_PEER, 0, out), 132);
	ck_assert(rxw_debug_peer_get(out + 28, 132, &v));
	ck_assert_uint_eq(v.host[0], 127);
	ck_assert_uint_ne(v.port, 0);
	ck_assert_uint_ge(v.refs, 1);
	ck_assert_uint_ge(v.mtu, 548);
	ck_assert_uint_ge(v.bytes_received, 100000);
	ck_assert_uint_ge(v.bytes_sent, 100000);
	ck_assert_uint_ge(v.sent, 70);
	ck_assert_uint_eq(ask(RXW_DEBUG_PEER, 1, out), 132);
	ck_assert_uint_eq(rxw_get32(out + 28), 0xffffffff);
	rxw_connection_release(connection);
}
END_TEST

START_TEST(rx_statistics)
{
	rxw_connection *connection = h_connect(&bed, H_SERVICE);
	struct rxw_debug_rxstats v;
	struct counters s;
	uint8_t out[2048];

	h_good_call(&bed, connection, &(struct h_ask){ .op = H_BOTH, .bytes = 100000 });
	s = counters_of(bed.server);
	ck_assert_uint_eq(ask(RXW_DEBUG_RXSTATS, 0, out), 284);
	ck_assert(rxw_debug_rxstats_get(out + 28, 284, &v));
	ck_assert_uint_eq(v.word[11], counter_in(&s, "packets.received.data"));
	ck_assert_uint_eq(v.word[24], v.word[11]);
	ck_assert_uint_ge(v.word[18], 1); /* this request */
	ck_assert_uint_ge(v.word[28], counter_in(&s, "packets.sent.data"));
	ck_assert_uint_eq(v.word[45], v.word[28]);
	ck_assert_uint_eq(v.word[56], 1);
	ck_assert_uint_eq(v.word[57], 0);
	ck_assert_uint_eq(v.word[58], 1);
	rxw_connection_release(connection);
}
END_TEST

/* ---- access control: requests from other hosts, passed to rxw_inspect() directly ---- */

static struct rxw_ctl ctl;

static bool from_elsewhere(uint8_t type, const char *asker, const char *asked)
{
	uint8_t packet[RXW_HEADER_SIZE + 8] = { 0 };
	struct sockaddr_in sa = { .sin_family = AF_INET, .sin_port = htons(7003) };
	struct rxw_rxrun run = { .data = packet, .stride = sizeof(packet), .count = 1,
				 .last_size = sizeof(packet), .size = sizeof(packet) };
	struct rxw_path path = { .ifindex = 0 };

	inet_pton(AF_INET, asker, &sa.sin_addr);
	ck_assert(rxw_addr_set(&path.peer, (struct sockaddr *)&sa, sizeof(sa)));
	inet_pton(AF_INET, asked, &sa.sin_addr);
	sa.sin_port = 0;
	ck_assert(rxw_addr_set(&path.local, (struct sockaddr *)&sa, sizeof(sa)));
	run.head = (struct rxw_header){ .epoch = 999, .type = type, .flags = RXW_CLIENT_INITIATED };
	run.path = &path;
	rxw_header_put(packet, &run.head);
	rxw_put32(packet + RXW_HEADER_SIZE, RXW_DEBUG_ALLCONN);
	memset(&ctl, 0xee, sizeof(ctl));
	return rxw_inspect(&bed.server->shard[0], &run, rxw_now(), &ctl);
}

static void with(const char *tunables)
{
	h_open(&bed, &(struct h_options){ .server = tunables });
}

START_TEST(who_may_ask)
{
	uint64_t refused;

	with("debug-clients=local answer-rate=1000");
	ck_assert(!from_elsewhere(RXW_DEBUG, "192.0.2.1", "192.0.2.9"));
	ck_assert(from_elsewhere(RXW_VERSION, "192.0.2.1", "192.0.2.9"));
	ck_assert(from_elsewhere(RXW_DEBUG, "192.0.2.9", "192.0.2.9"));
	ck_assert(from_elsewhere(RXW_DEBUG, "127.0.0.3", "192.0.2.9"));
	ck_assert_uint_eq(counter_of(bed.server, "drops.access"), 1);
	h_close(&bed);
	with("debug-clients=off answer-rate=1000");
	ck_assert(!from_elsewhere(RXW_DEBUG, "127.0.0.1", "127.0.0.1"));
	ck_assert(from_elsewhere(RXW_VERSION, "192.0.2.1", "192.0.2.9"));
	h_close(&bed);
	with("debug-clients=192.0.2.0/28 answer-rate=1000");
	ck_assert(from_elsewhere(RXW_DEBUG, "192.0.2.15", "198.51.100.1"));
	ck_assert(!from_elsewhere(RXW_DEBUG, "192.0.2.16", "198.51.100.1"));
	ck_assert(from_elsewhere(RXW_DEBUG, "127.0.0.1", "127.0.0.1"));
	refused = counter_of(bed.server, "drops.access");
	ck_assert_uint_eq(refused, 1);
	h_close(&bed);
	with("debug-clients=any answer-rate=1000");
	ck_assert(!from_elsewhere(RXW_DEBUG, "203.0.113.7", "198.51.100.1"));
	ck_assert(from_elsewhere(RXW_DEBUG, "203.0.113.7", "198.51.100.1")); /* asked again */
	ck_assert_uint_eq(ctl.length, RXW_HEADER_SIZE + 176);
	ck_assert(!ctl.client);
	ck_assert_uint_eq(ctl.padding, 0);
	h_close(&bed);
}
END_TEST

#define MANY 12000u

/* A request from this host for active connection `index`, sent to the client. */
static bool ask_client(uint32_t index, uint64_t now, struct rxw_debug_conn *v)
{
	uint8_t packet[RXW_HEADER_SIZE + 8] = { 0 };
	struct sockaddr_in sa = { .sin_family = AF_INET, .sin_port = htons(7003) };
	struct rxw_rxrun run = { .data = packet, .stride = sizeof(packet), .count = 1,
				 .last_size = sizeof(packet), .size = sizeof(packet) };
	struct rxw_path path = { .ifindex = 0 };

	sa.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	ck_assert(rxw_addr_set(&path.peer, (struct sockaddr *)&sa, sizeof(sa)));
	ck_assert(rxw_addr_set(&path.local, (struct sockaddr *)&sa, sizeof(sa)));
	run.head = (struct rxw_header){ .epoch = 999, .type = RXW_DEBUG,
					.flags = RXW_CLIENT_INITIATED };
	run.path = &path;
	rxw_header_put(packet, &run.head);
	rxw_put32(packet + RXW_HEADER_SIZE, RXW_DEBUG_CONN);
	rxw_put32(packet + RXW_HEADER_SIZE + 4, index);
	if (!rxw_inspect(&bed.client->shard[0], &run, now, &ctl))
		return false;
	ck_assert(rxw_debug_conn_get(ctl.bytes + RXW_HEADER_SIZE, 176, v));
	return true;
}

/*
 * The cost of a request does not grow with the table: a scan is spread over repeated requests, and
 * all requests together have a budget per second, those of this host included.
 */
START_TEST(work_is_bounded)
{
	static rxw_connection *idle[MANY];
	rxw_connection *busy;
	struct rxw_debug_conn v;
	unsigned asked = 0, answered = 0;
	uint64_t now;
	rxw_call *call;

	h_open(&bed, &(struct h_options){ .client = "listeners=1" });
	for (unsigned i = 0; i < MANY; i++)
		idle[i] = h_connect(&bed, H_SERVICE);
	/* No connection is active, so each answer needs a full scan. */
	now = rxw_now();
	for (unsigned i = 0; i < 1000; i++)
		answered += ask_client(0, now, &v);
	ck_assert_uint_le(answered, 5);
	busy = h_connect(&bed, H_SERVICE);
	call = h_begin(busy, &(struct h_ask){ .op = H_WAIT });
	ck_assert_int_eq(rxw_call_flush(call), 0);
	h_gate_arrived(&bed, 1);
	/* A client that asks slowly gets its answers. */
	for (uint32_t i = 0; i < 2; asked++) {
		ck_assert_uint_lt(asked, 10);
		if (!ask_client(i, now += RXW_SEC, &v))
			continue;
		ck_assert_uint_eq(v.cid == UINT32_MAX, i == 1);
		i++;
	}
	h_gate_open(&bed);
	ck_assert_int_eq(rxw_call_end(call, 0, NULL), 0);
	rxw_connection_release(busy);
	for (unsigned i = 0; i < MANY; i++)
		rxw_connection_release(idle[i]);
	h_close(&bed);
}
END_TEST

/* One second's worth at once, then nothing. Requests from this host are exempt. */
START_TEST(rates)
{
	unsigned answered[2] = { 0, 0 };
	uint64_t began;

	with("debug-clients=192.0.2.0/24 answer-rate=50");
	began = h_now_ms();
	for (int i = 0; i < 400; i++)
		answered[i & 1] += from_elsewhere(i & 1 ? RXW_VERSION : RXW_DEBUG, "192.0.2.1",
						  "192.0.2.9");
	ck_assert_uint_ge(answered[0] + answered[1], 50);
	ck_assert_uint_le(answered[0] + answered[1], 51 + (h_now_ms() - began) / 20);
	ck_assert_uint_ge(counter_of(bed.server, "drops.rate"), 1);
	for (int i = 0; i < 400; i++)
		ck_assert(from_elsewhere(RXW_DEBUG, "127.0.0.1", "127.0.0.1"));
	h_close(&bed);
	with("debug-clients=any answer-rate=0");
	ck_assert(!from_elsewhere(RXW_VERSION, "192.0.2.1", "192.0.2.9"));
	h_close(&bed);
}
END_TEST

/* An unvalidated address gets at most three times what it sent, packet headers included. */
START_TEST(three_times_at_most)
{
	uint64_t in = 0, out = 0;

	with("debug-clients=any answer-rate=1000");
	for (int i = 0; i < 200; i++) {
		in += 28 + RXW_HEADER_SIZE + 8;
		if (from_elsewhere(RXW_DEBUG, "192.0.2.1", "192.0.2.9"))
			out += 28u + ctl.length;
		ck_assert_msg(out <= 3 * in, "%llu bytes for %llu", (unsigned long long)out,
			      (unsigned long long)in);
	}
	/* Requests within the limit are answered. An answer is 232 bytes. */
	ck_assert_uint_ge(out + 232, 3 * in);
	ck_assert_uint_ge(counter_of(bed.server, "drops.rate"), 1);
	h_close(&bed);
}
END_TEST

/* Connection ids would allow forged calls, so only this host may see them. */
START_TEST(ids_stay_here)
{
	rxw_connection *connection;
	struct rxw_debug_conn v;

	with("debug-clients=192.0.2.0/29 listeners=1");
	connection = h_connect(&bed, H_SERVICE);
	h_good_call(&bed, connection, &(struct h_ask){ .op = H_PING });
	ck_assert(from_elsewhere(RXW_DEBUG, "192.0.2.1", "192.0.2.9"));
	ck_assert(rxw_debug_conn_get(ctl.bytes + RXW_HEADER_SIZE, 176, &v));
	ck_assert_uint_eq(v.cid, 0);
	ck_assert_uint_eq(v.epoch, 0);
	ck_assert_uint_eq(v.type, 1);
	ck_assert(from_elsewhere(RXW_DEBUG, "192.0.2.9", "192.0.2.9"));
	ck_assert(rxw_debug_conn_get(ctl.bytes + RXW_HEADER_SIZE, 176, &v));
	ck_assert_uint_ne(v.cid, 0);
	ck_assert_uint_ne(v.epoch, 0);
	rxw_connection_release(connection);
	h_close(&bed);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("inspect");
	TCase *live = tcase_create("live"), *access_case = tcase_create("access");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_set_timeout(live, 60);
	tcase_add_checked_fixture(live, set_up, tear_down);
	tcase_add_test(live, version);
	tcase_add_test(live, bad_type);
	tcase_add_test(live, basic_statistics);
	tcase_add_test(live, connections);
	tcase_add_loop_test(live, level_of_a_connection, 0, 2);
	tcase_add_test(live, negative_index);
	tcase_add_test(live, peers);
	tcase_add_test(live, rx_statistics);
	suite_add_tcase(s, live);
	tcase_add_test(access_case, who_may_ask);
	tcase_add_test(access_case, work_is_bounded);
	tcase_add_test(access_case, rates);
	tcase_add_test(access_case, three_times_at_most);
	tcase_add_test(access_case, ids_stay_here);
	suite_add_tcase(s, access_case);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
