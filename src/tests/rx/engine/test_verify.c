/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Runs of a call are verified and delivered in order by any thread. Later packets do not overtake
 * waiting bulk, because the sender would take that for loss.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/wire.h"
#include "engine/objects.h"
#include "engine/sched/inner.h"
#include "tests/rx/api/harness.h"

#define SERVICE 120
#define INDEX	77
#define CID	0x3000u
#define CALL	1u /* the call whose order is checked, on the first channel */
#define MEMBERS 5u /* packets of a jumbogram: too many for the receiving thread to verify itself */
#define SMALL	100u
#define OTHER	0xff /* first byte of unchecked calls */
#define LAST	12u  /* sequence numbers: 1, a jumbogram, one, a jumbogram */

static struct h_bed bed;
static int fd;

/* State of the class. The run that begins with packet `held_seq` waits until it is released. */
static struct {
	pthread_mutex_t lock;
	pthread_cond_t moved;
	bool held, arrived;
	uint32_t held_seq;
	unsigned inside, most; /* threads in verify(), now and at peak */
	unsigned count;
	uint32_t seq[64]; /* in the order passed to verify() */
} class = {.lock = PTHREAD_MUTEX_INITIALIZER, .moved = PTHREAD_COND_INITIALIZER};

static int seal(void *conn, struct rxw_security_packet *packets, size_t count)
{
	(void)conn;
	(void)packets;
	(void)count;
	return 0;
}

static void verify(void *conn, struct rxw_security_packet *packets, size_t count)
{
	(void)conn;
	pthread_mutex_lock(&class.lock);
	if (packets[0].call == CALL && ++class.inside > class.most)
		class.most = class.inside;
	for (size_t i = 0; i < count; i++) {
		packets[i].result = 0;
		if (packets[i].call == CALL &&
		    class.count < sizeof(class.seq) / sizeof(class.seq[0]))
			class.seq[class.count++] = packets[i].seq;
	}
	if (packets[0].call == CALL && packets[0].seq == class.held_seq) {
		class.arrived = true;
		pthread_cond_broadcast(&class.moved);
		while (class.held)
			pthread_cond_wait(&class.moved, &class.lock);
	}
	class.inside -= packets[0].call == CALL;
	pthread_mutex_unlock(&class.lock);
}

/* Contents of the packets by number, and the handler's progress. */
static size_t sent[2 * LAST];
static struct {
	uint8_t bytes[2 * LAST * RXW_JUMBO_PAYLOAD];
	size_t count;
} got;

/* Signals that it has started, and reads at once (context) or when the gate opens. */
static int32_t handler(rxw_call *call, void *context)
{
	const bool *reads = context;
	struct h_gate *gate = &bed.gate;
	uint8_t bytes[sizeof(got.bytes)];
	size_t count = 0;
	ssize_t n;

	pthread_mutex_lock(&gate->lock);
	gate->arrived++;
	pthread_cond_broadcast(&gate->cond);
	while (!*reads && !gate->open)
		pthread_cond_wait(&gate->cond, &gate->lock);
	pthread_mutex_unlock(&gate->lock);
	while ((n = rxw_call_read(call, bytes + count, sizeof(bytes) - count)) > 0)
		count += (size_t)n;
	pthread_mutex_lock(&class.lock);
	if (count && bytes[0] != OTHER) {
		memcpy(got.bytes, bytes, count);
		got.count = count;
	}
	pthread_mutex_unlock(&class.lock);
	return n < 0 ? 4002 : 0;
}

static void offer(bool *reads)
{
	const struct rxw_security_class table = {.size = sizeof(table),
						 .name = "held",
						 .index = INDEX,
						 .flags = RXW_CLASS_SLOW,
						 .seal = seal,
						 .verify = verify};
	rxw_security *security;
	struct rxw_service_options o = {.size = sizeof(o),
					.id = SERVICE,
					.handler = handler,
					.context = reads,
					.security = &security,
					.security_count = 1};

	ck_assert_int_eq(rxw_security_create(&table, NULL, &security), 0);
	ck_assert_int_eq(rxw_service_add(bed.server, &o, NULL), 0);
	rxw_security_unref(security);
}

/* --- a hand-made client --- */

static uint32_t serial;

static struct h_raw packet(uint8_t type, uint8_t flags)
{
	return (struct h_raw){.epoch = 0x80000777,
			      .cid = CID,
			      .call = CALL,
			      .serial = ++serial,
			      .type = type,
			      .flags = (uint8_t)(RXW_CLIENT_INITIATED | flags),
			      .security = INDEX,
			      .service = SERVICE};
}

/* Every byte of a packet is its number. */
static void send_small(uint32_t seq, bool last)
{
	struct h_raw raw = packet(RXW_DATA, last ? RXW_LAST_PACKET : 0);
	uint8_t body[SMALL];

	memset(body, (int)seq, sizeof(body));
	raw.seq = seq;
	raw.body = body;
	raw.size = sizeof(body);
	sent[seq] = sizeof(body);
	h_raw_send(fd, &raw);
}

static void send_jumbo(uint32_t seq, bool last)
{
	static uint8_t bytes[RXW_HEADER_SIZE + MEMBERS * (RXW_JUMBO_PAYLOAD + RXW_JUMBO_HEADER)];
	struct h_raw raw = packet(RXW_DATA, RXW_JUMBO_PACKET);
	uint8_t *at = bytes + RXW_HEADER_SIZE, head[2048];

	raw.seq = seq;
	memcpy(bytes, head, h_raw_encode(head, &raw));
	for (uint32_t i = 0; i < MEMBERS; i++) {
		memset(at, (int)(seq + i), RXW_JUMBO_PAYLOAD);
		sent[seq + i] = RXW_JUMBO_PAYLOAD;
		at += RXW_JUMBO_PAYLOAD;
		if (i + 1 == MEMBERS)
			break;
		memset(at, 0, RXW_JUMBO_HEADER);
		at[0] = RXW_CLIENT_INITIATED;
		if (i + 2 < MEMBERS)
			at[0] |= RXW_JUMBO_PACKET;
		else if (last)
			at[0] |= RXW_LAST_PACKET;
		at += RXW_JUMBO_HEADER;
	}
	serial += MEMBERS - 1;
	ck_assert_int_eq(send(fd, bytes, (size_t)(at - bytes), 0), at - bytes);
}

/* No ACK reports a hole: packets were accepted in order. */
static void no_holes(const uint8_t *ack_packet, ssize_t size)
{
	struct rxw_ack ack;
	bool hole = false;

	ck_assert(rxw_ack_get(ack_packet + RXW_HEADER_SIZE, (size_t)size - RXW_HEADER_SIZE, 0, &ack));
	ck_assert_uint_ne(ack.reason, RXW_ACK_OUT_OF_SEQUENCE);
	for (unsigned i = 0; i < ack.count; i++) {
		ck_assert(!hole || !ack.acks[i]);
		hole = hole || !ack.acks[i];
	}
}

/* On return, the receiving thread has handled all earlier packets. */
static void received(void)
{
	for (unsigned i = 0; i < 2; i++) {
		struct h_raw raw = packet(RXW_ACK, RXW_REQUEST_ACK);
		struct rxw_ack ack = {.first = 1,
				      .reason = RXW_ACK_PING,
				      .trailer_words = 4,
				      .max_mtu = 1444,
				      .if_mtu = 1444,
				      .rwind = 32,
				      .jumbo_max = 1};
		uint8_t body[64], answer[2048];
		ssize_t n;

		raw.body = body;
		raw.size = rxw_ack_put(body, &ack);
		h_raw_send(fd, &raw);
		do {
			n = h_raw_receive(fd, RXW_ACK, answer);
			ck_assert_int_ge(n, RXW_HEADER_SIZE + 18);
			no_holes(answer, n);
			ck_assert(rxw_ack_get(answer + RXW_HEADER_SIZE, (size_t)n - RXW_HEADER_SIZE, 0,
					      &ack));
		} while (ack.reason != RXW_ACK_PING_RESPONSE || ack.serial != raw.serial);
	}
}

/* Whether this is the checked call. */
static bool is_ours(const uint8_t *bytes)
{
	return rxw_get32(bytes + 4) == CID && rxw_get32(bytes + 8) == CALL;
}

/* Waits for all packets up to the reply. The handler has then read everything. */
static void until_reply(void)
{
	uint8_t answer[2048];

	for (;;) {
		ssize_t n = recv(fd, answer, sizeof(answer), 0);

		ck_assert_int_ge(n, RXW_HEADER_SIZE);
		ck_assert_uint_ne(answer[20], RXW_ABORT);
		if (!is_ours(answer))
			continue;
		if (answer[20] == RXW_DATA)
			return;
		if (answer[20] == RXW_ACK)
			no_holes(answer, n);
	}
}

static unsigned given(void)
{
	unsigned count;

	pthread_mutex_lock(&class.lock);
	count = class.count;
	pthread_mutex_unlock(&class.lock);
	return count;
}

static void hold(bool held, uint32_t seq)
{
	pthread_mutex_lock(&class.lock);
	class.held = held;
	class.held_seq = seq;
	pthread_cond_broadcast(&class.moved);
	pthread_mutex_unlock(&class.lock);
}

static void in_order(uint32_t last)
{
	size_t at = 0;

	ck_assert_uint_eq(given(), last);
	pthread_mutex_lock(&class.lock);
	for (uint32_t seq = 1; seq <= last; seq++) {
		ck_assert_uint_eq(class.seq[seq - 1], seq);
		for (size_t i = 0; i < sent[seq]; i++)
			ck_assert_uint_eq(got.bytes[at + i], seq);
		at += sent[seq];
	}
	ck_assert_uint_eq(got.count, at);
	ck_assert_uint_eq(class.most, 1);
	pthread_mutex_unlock(&class.lock);
}

static void until_held(void)
{
	pthread_mutex_lock(&class.lock);
	while (!class.arrived)
		pthread_cond_wait(&class.moved, &class.lock);
	pthread_mutex_unlock(&class.lock);
}

/* During verification of the first bulk, by a thread (0) or the reader (1), more packets arrive. */
START_TEST(packets_after_waiting_bulk)
{
	bool reads = _i == 1;

	h_open(&bed, &(struct h_options){.no_client = true});
	fd = h_raw_socket(&bed);
	offer(&reads);
	hold(true, 2);
	send_small(1, false);
	h_gate_arrived(&bed, 1);
	send_jumbo(2, false);
	until_held();

	/* Small enough for the receiving thread to verify and pass on. */
	send_small(2 + MEMBERS, false);
	received();
	ck_assert_uint_eq(given(), 2);
	send_jumbo(3 + MEMBERS, true);
	received();
	ck_assert_uint_eq(given(), 2);

	hold(false, 0);
	h_gate_open(&bed);
	until_reply();
	in_order(LAST);
	close(fd);
	h_close(&bed);
}
END_TEST

/* An unchecked call of one packet. */
static void send_other(uint32_t cid)
{
	struct h_raw raw = packet(RXW_DATA, RXW_LAST_PACKET);
	uint8_t body[SMALL] = {OTHER};

	raw.cid = cid;
	raw.call = CALL + 1;
	raw.seq = 1;
	raw.body = body;
	raw.size = sizeof(body);
	h_raw_send(fd, &raw);
}

/*
 * The call does not exist until its first bulk is verified. Later packets still wait behind it,
 * both a few that the receiving thread would verify (0) and more bulk (1). Another channel does not
 * wait. With one listener, the arrival of another connection's call means that earlier packets have
 * been handled.
 */
START_TEST(packets_after_first_bulk)
{
	bool reads = false;
	uint32_t seq = 1 + MEMBERS;

	h_open(&bed, &(struct h_options){.server = "listeners=1", .no_client = true});
	fd = h_raw_socket(&bed);
	offer(&reads);
	hold(true, 1);
	send_jumbo(1, false);
	until_held();
	for (int i = 0; i < 2; i++) {
		if (i == _i)
			send_small(seq, i == 1);
		else
			send_jumbo(seq, i == 1);
		seq += i == _i ? 1 : MEMBERS;
		send_other(CID + 4u * (unsigned)(i + 1));
		h_gate_arrived(&bed, (unsigned)i + 1);
		ck_assert_uint_eq(given(), 1);
	}
	send_other(CID + 1);
	h_gate_arrived(&bed, 3);
	ck_assert_uint_eq(given(), 1);

	hold(false, 0);
	h_gate_open(&bed);
	until_reply();
	in_order(2 * MEMBERS + 1);
	close(fd);
	h_close(&bed);
}
END_TEST

/*
 * Runs that wait for verification are charged like others: packets beyond the peer's limit are
 * dropped, counted, and accepted when they are retransmitted.
 */
START_TEST(waiting_packets_charged)
{
	bool reads = true;
	uint64_t dropped;
	struct pollfd p;

	h_open(&bed, &(struct h_options){.server = "peer-memory=16K", .no_client = true});
	fd = h_raw_socket(&bed);
	offer(&reads);
	hold(true, 2);
	send_small(1, false);
	h_gate_arrived(&bed, 1);
	send_jumbo(2, false);
	until_held();
	send_jumbo(2 + MEMBERS, false);
	/* Exceeds 16 KiB now, if every byte is counted once. */
	send_jumbo(2 + 2 * MEMBERS, true);
	received();
	dropped = counter_of(bed.server, "drops.memory");
	ck_assert_uint_gt(dropped, 0);
	ck_assert_uint_lt(dropped, 2 * MEMBERS); /* a packet does not pin a whole buffer */

	hold(false, 0);
	p = (struct pollfd){.fd = fd, .events = POLLIN};
	for (bool done = false; !done;) {
		uint8_t answer[2048];

		for (uint32_t i = 0; i < 3; i++)
			send_jumbo(2 + i * MEMBERS, i == 2);
		while (!done && poll(&p, 1, 100) > 0) {
			ssize_t n = recv(fd, answer, sizeof(answer), 0);

			ck_assert_int_ge(n, RXW_HEADER_SIZE);
			ck_assert_uint_ne(answer[20], RXW_ABORT);
			done = is_ours(answer) && answer[20] == RXW_DATA;
		}
	}
	pthread_mutex_lock(&class.lock);
	ck_assert_uint_eq(got.count, SMALL + 3 * MEMBERS * RXW_JUMBO_PAYLOAD);
	for (size_t i = SMALL; i < got.count; i++)
		ck_assert_uint_eq(got.bytes[i], 2 + (i - SMALL) / RXW_JUMBO_PAYLOAD);
	pthread_mutex_unlock(&class.lock);
	close(fd);
	h_close(&bed);
}
END_TEST

/* --- verification threads --- */

static struct {
	_Atomic(unsigned) made, held;
	_Atomic(bool) fail;
} threads;

/* A mutex held by this thread cannot be acquired by waiting. Other threads release it soon. */
static bool is_held(pthread_mutex_t *m)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 2;
	if (pthread_mutex_timedlock(m, &until))
		return true;
	pthread_mutex_unlock(m);
	return false;
}

static bool any_held(struct rxw_endpoint *ep)
{
	struct rxw_shard *s = &ep->shard[0];
	bool held = is_held(&ep->verifier->lock) || is_held(&s->lock);

	for (unsigned i = 0; !held && i < rxw_conntable_chains(&s->table); i++)
		for (struct rxw_pconn *c = rxw_conntable_chain(&s->table, i); c;
		     c = c->links.hash_next)
			held |= is_held(&rxw_conn_of(c)->lock);
	return held;
}

int __real_rxw_thread_create(pthread_t *t, const struct rxw_endpoint *ep, unsigned ordinal,
			     const char *name, void *(*run)(void *), void *arg);
int __wrap_rxw_thread_create(pthread_t *t, const struct rxw_endpoint *ep, unsigned ordinal,
			     const char *name, void *(*run)(void *), void *arg);

int __wrap_rxw_thread_create(pthread_t *t, const struct rxw_endpoint *ep, unsigned ordinal,
			     const char *name, void *(*run)(void *), void *arg)
{
	if (bed.server && arg == bed.server->verifier) {
		threads.made++;
		threads.held += any_held(bed.server);
		if (threads.fail)
			return -RXW_ESYS;
	}
	return __real_rxw_thread_create(t, ep, ordinal, name, run, arg);
}

/* Creating a thread is slow and may fail, so no lock may be held meanwhile. */
START_TEST(threads_created_without_locks)
{
	bool reads = false;

	h_open(&bed, &(struct h_options){.server = "listeners=1", .no_client = true});
	fd = h_raw_socket(&bed);
	offer(&reads);
	threads.fail = _i == 1;
	send_small(1, false);
	h_gate_arrived(&bed, 1);
	send_jumbo(2, true);
	received();
	if (_i == 1) {
		/* It waits for its reader, which verifies the remaining packets. */
		ck_assert_uint_eq(given(), 1);
		h_gate_open(&bed);
		until_reply();
	} else {
		while (given() < 1 + MEMBERS)
			usleep(1000);
		h_gate_open(&bed);
		until_reply();
	}
	in_order(1 + MEMBERS);
	ck_assert_uint_ge(threads.made, 1);
	ck_assert_uint_eq(threads.held, 0);
	close(fd);
	h_close(&bed);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("order");
	TCase *tcase = tcase_create("order");
	SRunner *runner;
	int failed;

	suite_add_tcase(suite, tcase);
	tcase_set_timeout(tcase, 60);
	tcase_add_loop_test(tcase, packets_after_waiting_bulk, 0, 2);
	tcase_add_loop_test(tcase, packets_after_first_bulk, 0, 2);
	tcase_add_test(tcase, waiting_packets_charged);
	tcase_add_loop_test(tcase, threads_created_without_locks, 0, 2);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
