/* SPDX-License-Identifier: BSD-2-Clause */
/* Threads that send for others: for a while, and what they leave is sent by the listener. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/wire.h"
#include "engine/objects.h"
#include "tests/kernel.h"
#include "tests/rx/api/harness.h"

static struct h_bed bed;

/* ---- many calls of a client; the test is the server ---- */

static struct {
	int fd;
	struct sockaddr_storage address;
	socklen_t length;
} silent;

static void silent_server(void)
{
	struct timeval patience = { .tv_sec = 20 };

	silent.fd = socket(bed.address.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	ck_assert_int_ge(silent.fd, 0);
	silent.address = bed.address;
	((struct sockaddr_in *)&silent.address)->sin_port = 0;
	silent.length = sizeof(struct sockaddr_in);
	ck_assert_int_eq(bind(silent.fd, (struct sockaddr *)&silent.address, silent.length), 0);
	ck_assert_int_eq(getsockname(silent.fd, (struct sockaddr *)&silent.address, &silent.length), 0);
	ck_assert_int_eq(setsockopt(silent.fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)),
			 0);
}

static void put(rxw_call *call)
{
	ck_assert_int_eq(rxw_call_write(call, "x", 1), 1);
	ck_assert_int_eq(rxw_call_flush(call), 0);
}

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

		ck_assert_int_eq(rxw_connection_create(bed.client, (struct sockaddr *)&silent.address,
						       silent.length, H_SERVICE, NULL, c), 0);
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
	close(silent.fd);
	h_close(&bed);
}
END_TEST

#define BULK	 10
#define BRIEF	 70
#define PREFERRED 64 /* of a batch */

static unsigned sent_by(const rxw_call *const *calls, unsigned n)
{
	uint8_t packet[2048];
	struct rxw_header h;
	ssize_t length = recv(silent.fd, packet, sizeof(packet), 0);

	ck_assert_int_gt(length, 0);
	ck_assert(rxw_header_get(packet, (size_t)length, &h));
	for (unsigned i = 0; i < n; i++)
		if (calls[i]->conn->p.cid == h.cid)
			return i;
	return n;
}

/* Calls that have sent little overtake others, of which some are in each batch. */
START_TEST(short_calls_first)
{
	rxw_connection *connection[BULK + BRIEF];
	rxw_call *call[BULK + BRIEF];

	h_open(&bed, &(struct h_options){ .client = "listeners=1" });
	silent_server();
	atomic_store(&bed.client->shard[0].tx.busy, true); /* no thread sends */
	for (unsigned i = 0; i < BULK + BRIEF; i++) {
		ck_assert_int_eq(rxw_connection_create(bed.client, (struct sockaddr *)&silent.address,
						       silent.length, H_SERVICE, NULL,
						       &connection[i]), 0);
		ck_assert_int_eq(rxw_call_begin(connection[i], NULL, &call[i]), 0);
		atomic_store(&call[i]->tx.bulk, i < BULK);
		put(call[i]);
	}
	atomic_store(&bed.client->shard[0].tx.busy, false);
	rxw_tx_run(&bed.client->shard[0]);
	for (unsigned i = 0; i < BULK + BRIEF; i++) {
		unsigned by = sent_by((const rxw_call *const *)call, BULK + BRIEF);

		ck_assert_uint_eq(by, i < PREFERRED	   ? BULK + i
				      : i < PREFERRED + BULK ? i - PREFERRED
							     : i);
	}
	for (unsigned i = 0; i < BULK + BRIEF; i++) {
		rxw_call_end(call[i], RXW_USER_ABORT, NULL);
		rxw_connection_release(connection[i]);
	}
	close(silent.fd);
	h_close(&bed);
}
END_TEST

#define FULL 40 /* calls with a full burst: more bytes than a batch takes */

/*
 * A batch of one bulk call and of more long bursts than it takes. False: the listener woke up and has sent, too, as it may
 * while this thread sends bulk, so that nothing is known of the batch.
 */
static bool sends_half_of_bulk(void)
{
	static uint8_t data[45 * 1416];
	rxw_connection *connection[1 + FULL];
	rxw_call *call[1 + FULL];
	struct rxw_shard *s;
	struct rxw_effects a;
	uint32_t last, bulk;
	bool alone;

	h_open(&bed, &(struct h_options){ .client = "listeners=1" });
	silent_server();
	s = &bed.client->shard[0];
	atomic_store(&s->tx.busy, true); /* no other thread sends */
	for (unsigned i = 0; i <= FULL; i++) {
		ck_assert_int_eq(rxw_connection_create(bed.client, (struct sockaddr *)&silent.address,
						       silent.length, H_SERVICE, NULL,
						       &connection[i]), 0);
		ck_assert_int_eq(rxw_call_begin(connection[i], NULL, &call[i]), 0);
		call[i]->p.tx.cc.cwnd = call[i]->p.tx.window = 255;
		call[i]->p.tx.edge = 256;
		atomic_store(&call[i]->tx.bulk, i == 0);
		ck_assert_int_eq(rxw_call_write(call[i], data, i ? sizeof(data) : 1),
				 i ? (ssize_t)sizeof(data) : 1);
		ck_assert_int_eq(rxw_call_flush(call[i]), 0);
	}
	rxw_effects_init(&a, s, false);
	ck_assert_ptr_null(rxw_tx_batch(s, &a, false));
	rxw_dispatch(&a);
	last = call[FULL]->p.tx.nxt;
	bulk = call[0]->p.tx.nxt;
	alone = counter_of(bed.client, "windows.receiver") == 0;
	if (alone) {
		ck_assert_uint_eq(last, 1); /* the batch was full before */
		ck_assert_uint_eq(bulk, 2);
	}
	atomic_store(&s->tx.busy, false);
	rxw_tx_run(s);
	for (unsigned i = 0; i <= FULL; i++) {
		rxw_call_end(call[i], RXW_USER_ABORT, NULL);
		rxw_connection_release(connection[i]);
	}
	close(silent.fd);
	h_close(&bed);
	return alone;
}

/* Long bursts of calls that have sent little leave bulk its half, too. */
START_TEST(bulk_gets_its_half)
{
	while (!sends_half_of_bulk())
		;
}
END_TEST

/* While a thread sends bulk, another one sends its short call itself, and leaves bulk to the first one. */
START_TEST(short_calls_beside_bulk)
{
	rxw_connection *connection[2];
	rxw_call *call[2];
	struct rxw_shard *s;

	h_open(&bed, &(struct h_options){.client = "listeners=1"});
	silent_server();
	s = &bed.client->shard[0];
	atomic_store(&s->tx.sends_bulk, true);
	atomic_store(&s->tx.busy, true);
	for (unsigned i = 0; i < 2; i++) {
		ck_assert_int_eq(
			rxw_connection_create(bed.client, (struct sockaddr *)&silent.address,
					      silent.length, H_SERVICE, NULL, &connection[i]),
			0);
		ck_assert_int_eq(rxw_call_begin(connection[i], NULL, &call[i]), 0);
		atomic_store(&call[i]->tx.bulk, i == 0);
		put(call[i]);
	}
	ck_assert_uint_eq(sent_by((const rxw_call *const *)call, 2), 1);
	ck_assert_uint_eq(call[0]->p.tx.nxt, 1);
	atomic_store(&s->tx.sends_bulk, false);
	atomic_store(&s->tx.busy, false);
	rxw_tx_run(s);
	ck_assert_uint_eq(sent_by((const rxw_call *const *)call, 2), 0);
	for (unsigned i = 0; i < 2; i++) {
		rxw_call_end(call[i], RXW_USER_ABORT, NULL);
		rxw_connection_release(connection[i]);
	}
	close(silent.fd);
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
	"listeners=2 workers-max=64", "listeners=4 workers-max=64 steer=hash", "listeners=1 workers-max=64",
};

/* All data arrives, whichever thread sends it. */
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
	h_close(&bed);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("senders");
	TCase *tc = tcase_create("passing threads"), *streams = tcase_create("many streams");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, not_for_ever);
	tcase_add_test(tc, short_calls_first);
	tcase_add_test(tc, bulk_gets_its_half);
	tcase_add_test(tc, short_calls_beside_bulk);
	suite_add_tcase(s, tc);
	tcase_set_timeout(streams, 180);
	tcase_add_loop_test(streams, many_streams, 0, sizeof(servers) / sizeof(servers[0]));
	suite_add_tcase(s, streams);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
