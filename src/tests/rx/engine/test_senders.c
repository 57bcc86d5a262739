/* SPDX-License-Identifier: BSD-2-Clause */
/* Few threads send the bulk data of many calls: sender slots, and data left to other threads. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/wire.h"
#include "engine/dispatch/dispatch.h"
#include "engine/objects.h"
#include "tests/kernel.h"
#include "tests/rx/api/harness.h"

static struct h_bed bed;

/* ---- two calls of a client with two sockets; the test is the server ---- */

#define FLOOD 100000u /* active calls: their windows exceed what any peer can absorb */

static struct {
	int fd;
	struct sockaddr_storage address;
	socklen_t length;
	rxw_connection *connection[16];
	unsigned connections;
	rxw_call *call[2]; /* of shards 0 and 1 */
} two;

static void silent_server(void)
{
	struct timeval patience = { .tv_sec = 20 };

	two.fd = socket(bed.address.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	ck_assert_int_ge(two.fd, 0);
	two.address = bed.address;
	((struct sockaddr_in *)&two.address)->sin_port = 0;
	two.length = sizeof(struct sockaddr_in);
	ck_assert_int_eq(bind(two.fd, (struct sockaddr *)&two.address, two.length), 0);
	ck_assert_int_eq(getsockname(two.fd, (struct sockaddr *)&two.address, &two.length), 0);
	ck_assert_int_eq(setsockopt(two.fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)),
			 0);
}

/* As if the shards had recently sent much data of many calls. */
static void flood(void)
{
	atomic_store(&bed.client->live, FLOOD);
	for (unsigned i = 0; i < 2; i++) {
		bed.client->shard[i].tx.bytes = 1u << 30;
		atomic_store(&bed.client->shard[i].tx.bulk, true);
	}
}

static void open_two(void)
{
	h_open(&bed, &(struct h_options){ .client = "listeners=2 senders=1" });
	ck_assert_uint_eq(bed.client->shard_count, 2);
	ck_assert_uint_eq(bed.client->senders, 1);
	silent_server();
	two.connections = 0;
	memset(two.call, 0, sizeof(two.call));
	while (!two.call[0] || !two.call[1]) {
		rxw_connection *c;
		unsigned home;

		ck_assert_uint_lt(two.connections, 16);
		ck_assert_int_eq(rxw_connection_create(bed.client, (struct sockaddr *)&two.address,
						       two.length, H_SERVICE, NULL, &c), 0);
		two.connection[two.connections++] = c;
		home = rxw_home(c)->index;
		if (!two.call[home])
			ck_assert_int_eq(rxw_call_begin(c, NULL, &two.call[home]), 0);
	}
	flood();
}

static bool nobody_sends(void *endpoint)
{
	return !atomic_load(&((struct rxw_endpoint *)endpoint)->tx_senders);
}

static void close_two(void)
{
	h_wait_for(nobody_sends, bed.client, "places to be given back");
	atomic_store(&bed.client->live, 0);
	for (unsigned i = 0; i < 2; i++)
		rxw_call_end(two.call[i], RXW_USER_ABORT, NULL);
	while (two.connections)
		rxw_connection_release(two.connection[--two.connections]);
	close(two.fd);
	h_close(&bed);
}

static void put(rxw_call *call)
{
	ck_assert_int_eq(rxw_call_write(call, "x", 1), 1);
	ck_assert_int_eq(rxw_call_flush(call), 0);
}

/* The first packets of these calls, in any order. */
static void collect(bool first, bool second)
{
	bool wanted[2] = { first, second };

	while (wanted[0] || wanted[1]) {
		uint8_t packet[2048];
		struct rxw_header h;
		ssize_t n = recv(two.fd, packet, sizeof(packet), 0);

		ck_assert_msg(n > 0, "the packet of shard %u did not come", wanted[0] ? 0 : 1);
		ck_assert(rxw_header_get(packet, (size_t)n, &h));
		for (unsigned i = 0; i < 2; i++)
			if (h.type == RXW_DATA && h.cid == two.call[i]->conn->p.cid)
				wanted[i] = false;
	}
}

/*
 * A thread that finds no slot leaves its call in the queue. The thread that frees a slot sends it.
 */
START_TEST(no_place)
{
	if (kernel_lacks(KERNEL_SHARE))
		return;
	open_two();
	atomic_store(&bed.client->tx_senders, 1);
	put(two.call[0]);
	ck_assert(atomic_load(&bed.client->shard[0].tx.any));
	ck_assert_uint_eq(counter_of(bed.client, "packets.sent.data"), 0);
	atomic_store(&bed.client->tx_senders, 0);
	put(two.call[1]);
	collect(true, true);
	close_two();
}
END_TEST

static bool second_left(void *arg)
{
	(void)arg;
	return counter_of(bed.client, "packets.sent.data") >= 2;
}

/* Little data of few calls needs no slot. */
START_TEST(few_calls)
{
	if (kernel_lacks(KERNEL_SHARE))
		return;
	open_two();
	atomic_store(&bed.client->live, 2);
	put(two.call[0]); /* notices that the load has dropped */
	collect(true, false);
	atomic_store(&bed.client->tx_senders, 1);
	put(two.call[0]);
	h_wait_for(second_left, NULL, "a packet to leave without a place");
	atomic_store(&bed.client->tx_senders, 0);
	close_two();
}
END_TEST

/* A writer whose own stream is drained leaves the rest, and that shard's listener sends it. */
START_TEST(left_behind)
{
	struct rxw_shard *other;

	if (kernel_lacks(KERNEL_SHARE))
		return;
	open_two();
	other = &bed.client->shard[1];
	rxw_tx_hold(other); /* this thread queues, and does not send */
	put(two.call[1]);
	rxw_tx_hold(NULL);
	ck_assert_ptr_null(rxw_tx_writing(two.call[0]));
	put(two.call[0]);
	ck_assert_ptr_eq(rxw_tx_writing(NULL), two.call[0]);
	collect(true, true);
	close_two();
}
END_TEST

#define CONNECTIONS 700
#define AT_MOST	    1024 /* calls: eight batches */

static struct {
	rxw_connection *connection[CONNECTIONS];
	rxw_call *call[CONNECTIONS * 4];
	unsigned calls; /* all of shard 0 */
} many;

static bool all_left(void *arg)
{
	(void)arg;
	return counter_of(bed.client, "packets.sent.data") >= many.calls;
}

static void queue_many(void)
{
	rxw_tx_hold(&bed.client->shard[0]);
	many.calls = 0;
	for (unsigned i = 0; i < CONNECTIONS; i++) {
		rxw_connection **c = &many.connection[i];

		ck_assert_int_eq(rxw_connection_create(bed.client, (struct sockaddr *)&two.address,
						       two.length, H_SERVICE, NULL, c), 0);
		for (unsigned k = 0; k < 4 && !rxw_home(*c)->index; k++) {
			ck_assert_int_eq(rxw_call_begin(*c, NULL, &many.call[many.calls]), 0);
			put(many.call[many.calls++]);
		}
	}
	rxw_tx_hold(NULL);
}

/* A passing thread sends for others, but not without limit. */
START_TEST(not_for_ever)
{
	if (kernel_lacks(KERNEL_SHARE))
		return;
	h_open(&bed, &(struct h_options){ .client = "listeners=2" });
	silent_server();
	queue_many();
	ck_assert_uint_gt(many.calls, AT_MOST + 100);
	rxw_tx_run(&bed.client->shard[0]);
	ck_assert_uint_le(counter_of(bed.client, "windows.writer"), AT_MOST);
	h_wait_for(all_left, NULL, "the listener to send the rest");
	ck_assert_uint_gt(counter_of(bed.client, "windows.receiver"), 0);
	for (unsigned i = 0; i < many.calls; i++)
		rxw_call_end(many.call[i], RXW_USER_ABORT, NULL);
	for (unsigned i = 0; i < CONNECTIONS; i++)
		rxw_connection_release(many.connection[i]);
	close(two.fd);
	h_close(&bed);
}
END_TEST

/* ---- many streams of a server ---- */

#define STREAMS 64

struct stream {
	pthread_t thread;
	rxw_connection *connection;
	struct h_ask ask;
	int32_t code;
};

static void *run(void *arg)
{
	struct stream *s = arg;

	s->code = h_call(&bed, s->connection, &s->ask);
	return NULL;
}

static const char *const servers[] = {
	"listeners=2 senders=1 workers-max=64", "listeners=4 senders=1 workers-max=64 steer=hash",
	"listeners=4 senders=2 workers-max=64", "listeners=1 senders=1 workers-max=64",
};

/* All data arrives, whichever thread sends it, and every slot was released. */
START_TEST(many_streams)
{
	static struct stream s[STREAMS];
	pthread_attr_t small;

	h_open(&bed, &(struct h_options){ .server = servers[_i] });
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 512 << 10);
	for (unsigned i = 0; i < STREAMS; i++) {
		s[i].ask = (struct h_ask){ .op = H_SOURCE, .how = i % 3, .seed = i,
					   .bytes = h_small() ? 200000 : 1500000 };
		s[i].connection = h_connect(&bed, H_SERVICE);
	}
	for (unsigned i = 0; i < STREAMS; i++)
		ck_assert_int_eq(pthread_create(&s[i].thread, &small, run, &s[i]), 0);
	for (unsigned i = 0; i < STREAMS; i++) {
		pthread_join(s[i].thread, NULL);
		ck_assert_msg(!s[i].code, "stream %u: code %d", i, s[i].code);
		rxw_connection_release(s[i].connection);
	}
	pthread_attr_destroy(&small);
	h_wait_for(nobody_sends, bed.server, "places to be given back");
	h_close(&bed);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("senders");
	TCase *tc = tcase_create("places"), *streams = tcase_create("many streams");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, no_place);
	tcase_add_test(tc, few_calls);
	tcase_add_test(tc, left_behind);
	tcase_add_test(tc, not_for_ever);
	suite_add_tcase(s, tc);
	tcase_set_timeout(streams, 180);
	tcase_add_loop_test(streams, many_streams, 0, sizeof(servers) / sizeof(servers[0]));
	suite_add_tcase(s, streams);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
