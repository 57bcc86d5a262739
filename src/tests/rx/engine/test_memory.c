/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory runs out during calls: writers wait for it, and their queued data is still sent. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/wire.h"
#include "engine/objects.h"
#include "engine/lock.h"
#include "proto/peer/slab.h"
#include "tests/rx/api/harness.h"

#define MOST 8192u
#define FEW_BUFFERS "memory=4M batch=4 listeners=1"

static struct h_bed bed;

/* ---- the test holds all memory of the client's engine ---- */

static struct {
	struct rxw_buf *buf[MOST];
	unsigned count;
} held;

static void hold(struct rxw_buf *b)
{
	ck_assert_uint_lt(held.count, MOST);
	held.buf[held.count++] = b;
}

/* All except `full` buffers. */
static void drain(unsigned full)
{
	struct rxw_pool *pool = bed.client_engine->pool;
	struct rxw_buf *b;

	while ((b = rxw_buf_get(pool)))
		hold(b);
	while ((b = rxw_buf_get_small(pool, 2048)) || (b = rxw_buf_get_small(pool, 64)))
		hold(b);
	for (unsigned i = 0; i < full; i++) {
		rxw_buf_unref(held.buf[i]);
		held.buf[i] = held.buf[--held.count];
	}
}

static void give_back(void)
{
	while (held.count)
		rxw_buf_unref(held.buf[--held.count]);
}

/* How threads that wait for memory sleep. Memory is released on the second wait. */
static pthread_t waits;
static bool awaited;
static unsigned pauses;

int nanosleep(const struct timespec *want, struct timespec *left)
{
	if (awaited && pthread_equal(waits, pthread_self()) && ++pauses == 2)
		give_back();
	return clock_nanosleep(CLOCK_MONOTONIC, 0, want, left);
}

/* ---- the test acts as the server ---- */

static int silent_server(struct sockaddr_storage *address, socklen_t *length)
{
	struct timeval patience = { .tv_sec = 20 };
	int fd = socket(bed.address.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	ck_assert_int_ge(fd, 0);
	memcpy(address, &bed.address, sizeof(*address));
	((struct sockaddr_in *)address)->sin_port = 0;
	*length = sizeof(struct sockaddr_in);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)address, *length), 0);
	ck_assert_int_eq(getsockname(fd, (struct sockaddr *)address, length), 0);
	ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)), 0);
	return fd;
}

static int silent_fd;
static rxw_connection *silent; /* to that server */

static void open_silent(const char *tunables)
{
	struct sockaddr_storage address;
	socklen_t length;

	h_open(&bed, &(struct h_options){.client = tunables});
	silent_fd = silent_server(&address, &length);
	ck_assert_int_eq(rxw_connection_create(bed.client, (struct sockaddr *)&address, length,
					       H_SERVICE, NULL, &silent),
			 0);
}

static rxw_call *begin_silent(unsigned flags)
{
	struct rxw_call_options options = {.size = sizeof(options), .flags = flags};
	rxw_call *call;

	ck_assert_int_eq(rxw_call_begin(silent, &options, &call), 0);
	return call;
}

static void close_silent(rxw_call *call)
{
	give_back();
	rxw_call_end(call, RXW_USER_ABORT, NULL);
	rxw_connection_release(silent);
	close(silent_fd);
	h_close(&bed);
}

/* Writes as much as the call takes. Returns the bytes. */
static size_t fill_up(rxw_call *call)
{
	static uint8_t data[65536];
	size_t taken = 0;
	ssize_t n;

	while ((n = rxw_call_write(call, data, sizeof(data))) > 0)
		taken += (size_t)n;
	ck_assert_int_eq(n, -RXW_EAGAIN);
	return taken;
}

static uint32_t queued_of(rxw_call *call)
{
	uint32_t queued;

	rxw_conn_lock(call->conn);
	queued = rxw_pcall_queued(&call->p);
	rxw_conn_unlock(call->conn);
	return queued;
}

/* The queue's records of runs also use memory. */
START_TEST(entries_of_a_queue)
{
	rxw_call *call;

	open_silent(FEW_BUFFERS);
	call = begin_silent(0);
	for (int i = 0; i < 2; i++) { /* the second buffer holds the remaining packets */
		ck_assert_int_eq(rxw_call_write(call, "x", 1), 1);
		ck_assert_int_eq(rxw_call_flush(call), 0);
	}
	drain(0);
	waits = pthread_self();
	awaited = true;
	for (int i = 0; i < 40; i++) {
		ck_assert_int_eq(rxw_call_write(call, "x", 1), 1);
		ck_assert_int_eq(rxw_call_flush(call), 0);
	}
	awaited = false;
	close_silent(call);
}
END_TEST

static bool may_write(void *call)
{
	return rxw_call_events(call) & RXW_EVENT_WRITE;
}

/*
 * The same for a non-blocking writer: its data is kept until there is memory, then it is notified
 * of room.
 */
START_TEST(entries_of_a_queue_without_waiting)
{
	unsigned written = 0;
	rxw_call *call;
	int r = 0;

	open_silent(FEW_BUFFERS);
	call = begin_silent(RXW_CALL_NONBLOCK);
	for (; written < 2; written++) {
		ck_assert_int_eq(rxw_call_write(call, "x", 1), 1);
		ck_assert_int_eq(rxw_call_flush(call), 0);
	}
	drain(0);
	for (; written < 40 && !r; written++) {
		ck_assert_int_eq(rxw_call_write(call, "x", 1), 1);
		r = rxw_call_flush(call);
	}
	ck_assert(r == 0 || r == -RXW_EAGAIN); /* receivers may have returned some */
	give_back();
	h_wait_for(may_write, call, "a writer is told of memory");
	ck_assert_int_eq(rxw_call_flush(call), 0);
	ck_assert_uint_eq(rxw_pcall_next_seq(&((struct rxw_call *)call)->p), written + 1);
	close_silent(call);
}
END_TEST

#define BYTES 1200000u

static void *write_all(void *arg)
{
	static uint8_t data[BYTES];
	rxw_call *call = arg;

	ck_assert_int_eq(rxw_call_write(call, data, sizeof(data)), sizeof(data));
	ck_assert_int_eq(rxw_call_send_end(call), 0);
	return NULL;
}

static void acknowledge(const struct sockaddr_storage *to, socklen_t length,
			const struct rxw_header *data, uint32_t next)
{
	uint8_t body[RXW_ACK_MAX_SIZE], packet[2048], none[1];
	struct rxw_ack ack = { .first = next, .previous = data->seq, .serial = data->serial,
			       .reason = RXW_ACK_DELAY, .acks = none, .max_mtu = 1444,
			       .if_mtu = 1444, .rwind = 255, .jumbo_max = 1 };
	struct h_raw raw = { .epoch = data->epoch, .cid = data->cid, .call = data->call,
			     .serial = data->serial, .type = RXW_ACK, .service = data->service,
			     .flags = RXW_SLOW_START_OK, .body = body };
	size_t size;

	raw.size = rxw_ack_put(body, &ack);
	size = h_raw_encode(packet, &raw);
	ck_assert_int_eq(sendto(silent_fd, packet, size, 0, (const struct sockaddr *)to, length),
			 (ssize_t)size);
}

/* Receives and acknowledges a packet, but none from `end` on; *next: the one that is missing. Whether it was the last one. */
static bool take_packet(uint32_t *next, uint32_t end)
{
	struct sockaddr_storage from;
	socklen_t length = sizeof(from);
	uint8_t packet[2048];
	struct rxw_header h;
	bool expected;

	do {
		ssize_t n = recvfrom(silent_fd, packet, sizeof(packet), 0, (struct sockaddr *)&from,
				     &length);

		ck_assert_msg(n > 0, "nothing came behind packet %u", *next - 1);
		ck_assert(rxw_header_get(packet, (size_t)n, &h));
	} while (h.type != RXW_DATA);
	expected = h.seq == *next;
	*next += expected;
	acknowledge(&from, length, &h, rxw_min32(*next, end));
	return expected && h.flags & RXW_LAST_PACKET;
}

/*
 * A writer that waits for a buffer does not send. Packets that ACKs allow must be sent by another
 * thread, since the writer's own packets may be holding the memory.
 */
START_TEST(what_waiting_writers_queued)
{
	pthread_t thread;
	rxw_call *call;
	uint32_t next = 1;
	bool last = false;

	open_silent(FEW_BUFFERS);
	call = begin_silent(0);
	drain(6); /* the receiver may take four */
	ck_assert_int_eq(pthread_create(&thread, NULL, write_all, call), 0);
	while (!last)
		last = take_packet(&next, UINT32_MAX);
	pthread_join(thread, NULL);
	close_silent(call);
}
END_TEST

/* ---- memory held by an active call ---- */

#define PACKET	   1444u
#define FULL	   255u
#define TWO_WINDOWS (2 * FULL * PACKET + 4096)

/* Bytes that the call's own side holds, without the receivers' buffers and the pool. */
static size_t held_by(struct rxw_call *call)
{
	const struct rxw_sendq *q = &call->p.tx;
	const struct rxw_buf *own[] = {q->ents.buf,	q->sent.first,	     q->sent.buf,
				       q->sent.log_buf, call->p.rx.ents.buf, call->p.rx.later.buf};
	const struct rxw_buf *before = NULL;
	size_t bytes = sizeof(*call);

	rxw_conn_lock(call->conn);
	for (uint16_t i = q->ent_head; i != RXW_NO_NODE;) {
		const struct rxw_txent *e = rxw_slab_at(&q->ents, i);

		if (e->buf != before) /* adjacent packets share one */
			bytes += e->buf->cap;
		before = e->buf;
		i = e->next;
	}
	if (call->w.buf && call->w.buf != before)
		bytes += call->w.buf->cap;
	for (unsigned i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		bytes += own[i] ? own[i]->cap : 0;
	rxw_conn_unlock(call->conn);
	return bytes;
}

/*
 * A writer whose peer acknowledges nothing. The default queue stays within two windows plus 4 KiB,
 * longer queues within their configured size.
 */
START_TEST(most_of_a_sender)
{
	static const struct {
		const char *tunables;
		size_t packets, most;
	} row[] = {
		{ "", 420, TWO_WINDOWS },
		{ "sendq-packets=768", 768, (768 / 45 + 2) * (size_t)RXW_BUF_SIZE + 8192 },
	};
	size_t bytes;
	rxw_call *call;

	open_silent(row[_i].tunables);
	call = begin_silent(RXW_CALL_NONBLOCK);
	ck_assert_uint_ge(fill_up(call), row[_i].packets * 1400);
	bytes = held_by(call);
	printf("a call with %zu packets queued holds %zu bytes\n", row[_i].packets, bytes);
	ck_assert_uint_ge(bytes, row[_i].packets * PACKET);
	ck_assert_uint_le(bytes, row[_i].most);
	close_silent(call);
}
END_TEST

#define STALLED 200u

/*
 * Many peers acknowledge nothing. Their calls leave memory to others: a quarter, less the few packets that
 * even the last of them may queue.
 */
START_TEST(stalled_senders_leave_memory)
{
	struct rxw_call_options options = {.size = sizeof(options), .flags = RXW_CALL_NONBLOCK};
	rxw_connection *connection[STALLED / 4];
	struct sockaddr_storage address;
	rxw_call *call[STALLED];
	socklen_t length;
	size_t live;
	int fd;

	h_open(&bed, &(struct h_options){.client = "memory=16M"});
	fd = silent_server(&address, &length);
	for (unsigned i = 0; i < STALLED; i++) {
		if (i % 4 == 0)
			ck_assert_int_eq(rxw_connection_create(bed.client, (struct sockaddr *)&address,
							       length, H_SERVICE, NULL,
							       &connection[i / 4]),
					 0);
		ck_assert_int_eq(rxw_call_begin(connection[i / 4], &options, &call[i]), 0);
	}
	for (unsigned i = 0; i < STALLED; i++)
		ck_assert_uint_ge(fill_up(call[i]), 8 * 1400);
	live = rxw_pool_live(bed.client_engine->pool);
	printf("%u stalled calls hold %zu bytes\n", STALLED, live);
	ck_assert_uint_le(live, 14u << 20);
	for (unsigned i = 0; i < STALLED; i++)
		rxw_call_end(call[i], RXW_USER_ABORT, NULL);
	for (unsigned i = 0; i < STALLED / 4; i++)
		rxw_connection_release(connection[i]);
	close(fd);
	h_close(&bed);
}
END_TEST

/* More than half of the client's memory is used by others. */
static void hold_half(void)
{
	struct rxw_pool *pool = bed.client_engine->pool;

	while (rxw_pool_about(pool) < bed.client_engine->config.memory / 2)
		hold(rxw_buf_get(pool));
}

/* Receives and acknowledges what was queued, but the last `left` packets. */
static void take_queued(rxw_call *call, uint32_t left)
{
	uint32_t end = rxw_pcall_next_seq(&call->p) - left, next = 1;

	while (next < end)
		take_packet(&next, end);
}

static bool few_are_left(void *arg)
{
	return queued_of(arg) <= 7;
}

/*
 * OpenAFS acknowledges every third packet that was read, and those behind the last of them after 100 ms; this
 * library, up to seven after 50 ms. A call must not wait for that.
 */
START_TEST(memory_is_short_and_peers_acknowledge_late)
{
	rxw_call *call;

	open_silent("memory=16M");
	hold_half();
	call = begin_silent(RXW_CALL_NONBLOCK);
	ck_assert_uint_gt(fill_up(call), 0);
	take_queued(call, 7);
	h_wait_for(few_are_left, call, "acknowledgements");
	ck_assert_uint_gt(fill_up(call), 0);
	close_silent(call);
}
END_TEST

static bool half_is_left(void *arg)
{
	return queued_of(arg) <= 150;
}

/* A call that had queued much looks again as its queue shrinks: memory may have come back. */
START_TEST(memory_is_short_for_a_moment)
{
	static uint8_t data[300 * 1416];
	rxw_call *call;

	open_silent("memory=64M");
	call = begin_silent(RXW_CALL_NONBLOCK);
	ck_assert_int_eq(rxw_call_write(call, data, sizeof(data)), sizeof(data));
	hold_half();
	fill_up(call); /* the rest of its latest buffer */
	give_back();
	take_queued(call, 150);
	h_wait_for(half_is_left, call, "acknowledgements");
	h_wait_for(may_write, call, "the call is told of memory");
	ck_assert_uint_gt(fill_up(call), 0);
	close_silent(call);
}
END_TEST

/* Twelve packets of a path with jumbo frames would be 108 KB: a call has one buffer at most. */
START_TEST(memory_is_short_and_packets_are_large)
{
	rxw_call *call;

	open_silent("memory=16M");
	hold_half();
	call = begin_silent(RXW_CALL_NONBLOCK);
	rxw_conn_lock(call->conn);
	call->conn->p.peer_max_mtu = call->p.tx.mtu.confirmed = 9000;
	rxw_conn_unlock(call->conn);
	ck_assert_uint_le(fill_up(call), RXW_BUF_SIZE);
	close_silent(call);
}
END_TEST

static bool all_is_sent(void *arg)
{
	rxw_call *call = arg;
	bool sent;

	rxw_conn_lock(call->conn);
	sent = rxw_pcall_ready(&call->p) == 0;
	rxw_conn_unlock(call->conn);
	return sent;
}

/*
 * A few packets are held back for a while, since more may follow. But no more do until there is room, and
 * the thread that looks at the timers may be asleep for longer than that.
 */
START_TEST(what_fills_a_short_queue_is_sent)
{
	rxw_call *call;

	open_silent("memory=16M");
	hold_half();
	call = begin_silent(RXW_CALL_NONBLOCK);
	ck_assert_uint_gt(fill_up(call), 0);
	take_queued(call, 2);
	h_wait_for(few_are_left, call, "acknowledgements");
	rxw_conn_lock(call->conn);
	call->p.tx.cc.cwnd = 255;
	call->p.tx.hold_at = RXW_NEVER - 1; /* that thread sleeps */
	call->p.tx.rtt.srtt = 20 * RXW_SEC;
	rxw_conn_unlock(call->conn);
	ck_assert_uint_gt(fill_up(call), 0);
	h_wait_for(all_is_sent, call, "the packets to be sent");
	ck_assert_uint_eq(call->p.count.timeouts, 0);
	close_silent(call);
}
END_TEST

static bool all_came(void *arg)
{
	return counter_of(bed.server, "packets.received.data") >= *(const uint32_t *)arg;
}

/* The handler reads nothing, and the peer sends more than a full window. */
START_TEST(most_of_a_receiver)
{
	uint8_t head[H_ASK_SIZE], body[PACKET - RXW_HEADER_SIZE] = { 0 };
	struct h_raw raw = h_raw_request(head, H_WAIT, 0x9000);
	int fd;

	h_open(&bed, &(struct h_options){ .server = "listeners=1", .no_client = true });
	fd = h_raw_socket(&bed);
	memcpy(body, head, sizeof(head));
	raw.flags = RXW_CLIENT_INITIATED;
	raw.body = body;
	raw.size = sizeof(body);
	for (uint32_t seq = 1; seq <= FULL + 50; seq++) {
		raw.seq = raw.serial = seq;
		h_raw_send(fd, &raw);
		if (seq % 16 == 0) /* no more than any socket takes */
			h_wait_for(all_came, &seq, "packets to come");
	}
	ck_assert_uint_ge(counter_of(bed.server, "pinned_bytes"), FULL / 2 * PACKET);
	ck_assert_uint_le(counter_of(bed.server, "pinned_bytes"), TWO_WINDOWS);
	close(fd);
	h_close(&bed);
}
END_TEST

static bool nothing_is_held(void *arg)
{
	return rxw_pool_live(arg) == 0;
}

/* Without timers receivers sleep for a minute. Other endpoints of the engine may need their buffers. */
START_TEST(buffers_of_idle_receivers)
{
	struct h_raw raw = {
		.epoch = 1, .cid = 4, .seq = 1, .type = RXW_VERSION, .flags = RXW_CLIENT_INITIATED};
	uint8_t answer[256];
	int fd;

	h_open(&bed, &(struct h_options){.server = "listeners=1", .no_client = true});
	fd = h_raw_socket(&bed);
	h_raw_send(fd, &raw);
	ck_assert_int_gt(recv(fd, answer, sizeof(answer), 0), 0);
	h_wait_for(nothing_is_held, bed.server_engine->pool, "the receiver's buffers");
	close(fd);
	h_close(&bed);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("memory");
	TCase *tc = tcase_create("short of it");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_set_timeout(tc, 120);
	tcase_add_test(tc, entries_of_a_queue);
	tcase_add_test(tc, entries_of_a_queue_without_waiting);
	tcase_add_test(tc, what_waiting_writers_queued);
	tcase_add_loop_test(tc, most_of_a_sender, 0, 2);
	tcase_add_test(tc, stalled_senders_leave_memory);
	tcase_add_test(tc, memory_is_short_and_peers_acknowledge_late);
	tcase_add_test(tc, memory_is_short_for_a_moment);
	tcase_add_test(tc, memory_is_short_and_packets_are_large);
	tcase_add_test(tc, what_fills_a_short_queue_is_sent);
	tcase_add_test(tc, most_of_a_receiver);
	tcase_add_test(tc, buffers_of_idle_receivers);
	suite_add_tcase(s, tc);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
