/* SPDX-License-Identifier: BSD-2-Clause */
/* The receive role: callers that receive for themselves, and a socket that is never empty. */
#include <sys/socket.h>
#include <unistd.h>

#include "base/wire.h"
#include "engine/objects.h"
#include "engine/lock.h"
#include "tests/main.h"
#include "tests/rx/api/harness.h"

#define CALLS 400u

static struct h_bed bed;

static unsigned most_seen;

/* Receive calls that a caller makes for each reply that it waits for. */
static uint64_t looks_of_calls(unsigned lookers)
{
	rxw_connection *connection;
	uint64_t before;

	h_open(&bed, &(struct h_options){.client = "spin-us=1000"});
	bed.client_engine->pollers_max = lookers;
	connection = h_connect(&bed, H_SERVICE);
	before = counter_of(bed.client, "syscalls.receive");
	for (unsigned i = 0; i < CALLS; i++) {
		unsigned waiting;

		h_good_call(&bed, connection, &(struct h_ask){.op = H_PING});
		waiting = atomic_load(&bed.client_engine->pollers);
		most_seen = waiting > most_seen ? waiting : most_seen;
	}
	before = counter_of(bed.client, "syscalls.receive") - before;
	rxw_connection_release(connection);
	return before;
}

/* More callers wait than may poll. This one sleeps and is woken by a packet. */
START_TEST(a_crowd_sleeps)
{
	uint64_t looks = looks_of_calls(0);

	ck_assert_uint_le(looks, 8 * CALLS);
	ck_assert_uint_eq(most_seen, 0); /* no caller waits after its call is answered */
	h_close(&bed);
}
END_TEST

/*
 * A caller that may poll does so at least once per call, and counts as a poller only while it
 * waits.
 */
START_TEST(one_looks)
{
	uint64_t looks = looks_of_calls(1);

	ck_assert_uint_ge(looks, CALLS);
	ck_assert_uint_eq(most_seen, 0);
	ck_assert_uint_ge(bed.client_engine->pollers_max, 1);
	h_close(&bed);
}
END_TEST

#define STEP	(100 * RXW_MS / 1000) /* between two batches of a flood */
#define WAITED	RXW_MS		      /* longest delay of a reader */
#define BATCHES 40u

static struct reader {
	_Atomic(rxw_call *) call;
	_Atomic(uint64_t) bytes;
} reader;

static int32_t read_all(rxw_call *call, void *context)
{
	struct reader *r = context;
	uint8_t data[H_ASK_SIZE];
	ssize_t n;

	atomic_store(&r->call, call);
	while ((n = rxw_call_read(call, data, sizeof(data))) > 0)
		atomic_fetch_add(&r->bytes, (uint64_t)n);
	return 0;
}

static bool reader_sleeps(void *arg)
{
	rxw_call *call = arg;
	bool sleeps;

	rxw_conn_lock(call->conn);
	sleeps = call->sleep.threads > 0;
	rxw_conn_unlock(call->conn);
	return sleeps;
}

/* At least `bytes` bytes were read. */
static bool has_read(void *arg)
{
	return atomic_load(&reader.bytes) >= *(const uint64_t *)arg;
}

/* This thread acts as the listener of an endpoint that was not started. */
static void take_role(struct rxw_shard *s)
{
	rxw_set_library_thread(s->ep);
	rxw_set_receiving(s);
}

static void give_role(void)
{
	rxw_set_receiving(NULL);
	rxw_set_library_thread(NULL);
}

static rxw_endpoint *paused_server(rxw_engine **engine, int *fd)
{
	struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct rxw_endpoint_options options = {.size = sizeof(options),
					       .address = (struct sockaddr *)&any,
					       .address_len = sizeof(any),
					       .server = 1,
					       .paused = 1};
	struct rxw_service_options service = {.size = sizeof(service),
					      .id = H_SERVICE,
					      .name = "reader",
					      .handler = read_all,
					      .context = &reader};
	struct rxw_constants constants = rxw_constants;
	struct rxw_config config;
	rxw_endpoint *ep;

	/* One datagram fills a batch, so the socket may always hold another one. */
	rxw_config_init(&config, sizeof(config));
	config.listeners = 1;
	constants.batch = 1;
	ck_assert_int_eq(rxw_engine_create(&config, engine), 0);
	ck_assert_int_eq(rxw_endpoint_create_with(*engine, &options, &constants, &ep), 0);
	ck_assert_int_eq(rxw_service_add(ep, &service, NULL), 0);
	bed.address_len = sizeof(bed.address);
	ck_assert_int_eq(rxw_endpoint_address(ep, &bed.address, &bed.address_len), 0);
	*fd = h_raw_socket(&bed);
	return ep;
}

static void poll_once(struct rxw_shard *s, uint64_t now)
{
	rxw_clock_cache_set(now);
	rxw_receive_batch(s);
	rxw_clock_cache_set(0);
}

/* A server without a listener, whose role this thread has, and a handler that waits for more. */
struct bench {
	rxw_engine *engine;
	rxw_endpoint *ep;
	struct rxw_shard *s;
	rxw_call *call;
	uint8_t head[H_ASK_SIZE];
	struct h_raw data; /* the latest packet of its request */
	int fd;
};

static void begin(struct bench *b)
{
	atomic_store(&reader.bytes, 0);
	b->data = h_raw_request(b->head, H_SINK, 0x2000);
	b->ep = paused_server(&b->engine, &b->fd);
	b->s = &b->ep->shard[0];
	take_role(b->s);
	b->data.flags = RXW_CLIENT_INITIATED;
	h_raw_send(b->fd, &b->data);
	poll_once(b->s, rxw_now());
	h_wait_for(has_read, &(uint64_t){H_ASK_SIZE}, "a handler");
	b->call = atomic_load(&reader.call);
	h_wait_for(reader_sleeps, b->call, "a reader that sleeps");
}

static void send_next(struct bench *b, unsigned flags)
{
	b->data.seq++;
	b->data.serial++;
	b->data.flags |= (uint8_t)flags;
	h_raw_send(b->fd, &b->data);
}

static void close_bench(struct bench *b)
{
	close(b->fd);
	ck_assert_int_eq(rxw_endpoint_destroy(b->ep), 0);
	ck_assert_int_eq(rxw_engine_destroy(b->engine), 0);
}

/* The end of the request was sent. */
static void finish(struct bench *b)
{
	give_role();
	ck_assert_int_eq(rxw_endpoint_start(b->ep), 0);
	h_wait_for(has_read, &(uint64_t){b->data.seq * (uint64_t)H_ASK_SIZE},
		   "the end of the request");
	close_bench(b);
}

static void end(struct bench *b)
{
	send_next(b, RXW_LAST_PACKET);
	finish(b);
}

/*
 * A packet for a sleeping reader, then one of a flood in each batch. The reader is woken after one
 * millisecond of batch time, although the socket always held another datagram.
 */
START_TEST(a_flood_does_not_hold_readers_back)
{
	uint64_t began, now, woken = 0;
	struct h_raw junk;
	struct bench b;

	begin(&b);
	junk = b.data;
	send_next(&b, 0);
	junk.type = RXW_ACK;
	junk.cid = 0x4000;
	for (unsigned i = 0; i < BATCHES; i++)
		h_raw_send(b.fd, &junk);
	began = now = rxw_now();
	for (unsigned i = 0; i < BATCHES && !woken; i++, now += STEP) {
		poll_once(b.s, now);
		ck_assert_uint_eq(b.s->rx.quiet, 0);
		rxw_conn_lock(b.call->conn);
		woken = b.call->effects.quiet ? 0 : now;
		rxw_conn_unlock(b.call->conn);
	}
	ck_assert_msg(woken, "%u batches woke no reader", BATCHES);
	ck_assert_uint_eq(woken - began, WAITED);
	h_wait_for(has_read, &(uint64_t){2 * H_ASK_SIZE}, "a reader that reads on");
	end(&b);
}
END_TEST

static void *pace(void *arg)
{
	rxw_call *call = arg;

	rxw_conn_lock(call->conn);
	call->timer.pace_at = rxw_now() + RXW_SEC;
	rxw_timer_update(call);
	rxw_conn_unlock(call->conn);
	return NULL;
}

/*
 * After another thread has paced a call, waits can be interrupted for a while. If only the holder
 * of the role paces calls, it sleeps in the receive call.
 */
START_TEST(a_pace_can_interrupt)
{
	uint64_t began = rxw_now();
	pthread_t other;
	struct bench b;

	begin(&b);
	pace(b.call);
	poll_once(b.s, rxw_now());
	ck_assert_uint_eq(b.s->rx.listen_until, 0);
	ck_assert_int_eq(pthread_create(&other, NULL, pace, b.call), 0);
	pthread_join(other, NULL);
	/* A receiver that was kept from its timers for long looks at them, and does not wait. */
	do {
		b.s->rx.quiet = 0;
		poll_once(b.s, rxw_now());
	} while (atomic_load(&b.s->role.others_pace));
	ck_assert_uint_gt(b.s->rx.listen_until, began);
	end(&b);
}
END_TEST

/*
 * A handler that replies over a long path paces its packets. The wait after its request can be
 * interrupted already, since nothing ends a sleep in the receive call.
 */
static void reply_over(bool far)
{
	uint64_t began = rxw_now();
	_Atomic(uint64_t) *least;
	struct bench b;

	begin(&b);
	least = &b.call->conn->p.peer->least_rtt;
	atomic_store(least, RXW_LONG_RTT);
	send_next(&b, 0);
	poll_once(b.s, rxw_now());
	ck_assert_uint_eq(b.s->rx.listen_until, 0);
	/* The end of the request. A path that is not long is polled as ever. */
	atomic_store(least, far ? RXW_LONG_RTT : RXW_LONG_RTT - 1);
	send_next(&b, RXW_LAST_PACKET);
	poll_once(b.s, rxw_now());
	ck_assert_int_eq(b.s->rx.listen_until > began, far);
	finish(&b);
}

START_TEST(long_paths_can_interrupt)
{
	reply_over(true);
	reply_over(false);
}
END_TEST

/*
 * A receiver whose packets come seldom does not wake soon, only to look at its timers. Where it sleeps for
 * that, nothing notes until when; and a timer that is close may end any wait.
 */
START_TEST(seldom_packets_are_waited_for)
{
	uint64_t began;
	struct bench b;

	begin(&b);
	do {
		b.s->rx.quiet = 0;
		b.s->rx.gap = RXW_SEC;
		began = rxw_now();
		poll_once(b.s, began);
	} while (atomic_load(&b.s->role.wait_until) < began + 10 * RXW_MS);
	end(&b);
}
END_TEST

static unsigned runs_of(rxw_call *call)
{
	unsigned runs;

	rxw_conn_lock(call->conn);
	runs = call->p.rx.ents.used;
	rxw_conn_unlock(call->conn);
	return runs;
}

#define QUEUED 250u /* behind a gap */
#define STEP_MOST 200u

/* A peer that ends its call does not make the listener release at once all that it has sent. */
START_TEST(queues_are_released_in_steps)
{
	struct bench b;
	rxw_call *call;
	unsigned left;

	begin(&b);
	call = b.call;
	rxw_call_ref(call);
	b.data.seq++;
	for (unsigned i = 0; i < QUEUED; i++) {
		send_next(&b, 0);
		poll_once(b.s, rxw_now());
	}
	ck_assert_uint_eq(runs_of(call), QUEUED);
	b.data.type = RXW_ABORT;
	send_next(&b, 0);
	poll_once(b.s, rxw_now());
	left = runs_of(call);
	ck_assert_uint_ge(left, QUEUED - STEP_MOST);
	/* The next batch need not have a packet: the receiver does not wait. */
	for (unsigned i = 0; left > 0; i++) {
		ck_assert_uint_lt(i, QUEUED);
		poll_once(b.s, rxw_now());
		ck_assert_uint_lt(runs_of(call), left);
		ck_assert_uint_ge(runs_of(call) + STEP_MOST, left);
		left = runs_of(call);
	}
	ck_assert_ptr_null(b.s->effects.release);
	ck_assert_int_eq(call->p.rx.pinned, 0);
	rxw_call_unref(call);
	give_role();
	close_bench(&b);
}
END_TEST

TEST_MAIN("listener", queues_are_released_in_steps, a_crowd_sleeps, one_looks, a_flood_does_not_hold_readers_back,
	  a_pace_can_interrupt, long_paths_can_interrupt, seldom_packets_are_waited_for)
