/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Attacks of rx-protocol 12.3 on a live server beside which 16 honest clients work. Each is bounded
 * in packets and stays on loopback. What must hold whatever the machine's speed is asserted: honest
 * calls have the right bytes, memory keeps its bounds, the cause is counted, what goes to silent
 * addresses is three times what they sent at most. Goodput is a matter of speed: with
 * RXW_ATTACK_GOODPUT=1 it is printed with that beside the same attacker at a sink (wanted: 80 %).
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/wire.h"
#include "engine/internal.h"
#include "tests/rx/face/harness.h"
#include "tests/rx/face/streams.h"

#define HONEST	 16
#define SOCKETS	 64
#define MEMORY	 (64u << 20)
#define STRANGERS 512u
#define HEADERS	 28 /* of IP and UDP */

struct attacker {
	int fd[SOCKETS];
	uint64_t in[SOCKETS], out[SOCKETS]; /* bytes sent, and received back */
	const struct attack *attack;
	uint64_t random;
	uint64_t most;		  /* packets */
	_Atomic(uint64_t) sent;
	_Atomic(bool) stop;
	pthread_t thread;
};

struct attack {
	const char *name;
	void (*send)(struct attacker *a, uint64_t i);
	enum rxw_drop cause;
	bool silent; /* never answers, so that its addresses stay unproven */
};

static struct h_bed bed;
static uint32_t known_cid; /* of a connection of an honest client */

/* --- the attacker --- */

static uint32_t draw(struct attacker *a)
{
	return (uint32_t)(rxw_prng(&a->random) >> 16);
}

/* From its socket `i`; what the kernel has no room for is lost. */
static void emit(struct attacker *a, uint64_t i, const struct h_raw *raw)
{
	uint8_t packet[2048];
	size_t size = h_raw_encode(packet, raw);
	unsigned s = (unsigned)(i % SOCKETS);

	if (send(a->fd[s], packet, size, MSG_DONTWAIT) == (ssize_t)size)
		a->in[s] += size + HEADERS;
}

/* A whole small request, as of a client that is new. */
static struct h_raw request(struct attacker *a, uint8_t head[H_ASK_SIZE], enum h_op op)
{
	struct h_raw raw = h_raw_request(head, op, draw(a) & ~3u);

	raw.epoch = draw(a) | 0x80000000u;
	return raw;
}

static struct h_raw ack(const struct h_raw *call, uint32_t first, uint32_t serial, uint32_t window,
			uint8_t body[RXW_ACK_MAX_SIZE])
{
	struct rxw_ack k = {.first = first, .serial = serial, .reason = RXW_ACK_IDLE,
			    .acks = body, .max_mtu = 1444, .if_mtu = 1444, .rwind = window,
			    .jumbo_max = 1};
	struct h_raw raw = *call;

	raw.type = RXW_ACK;
	raw.flags = RXW_CLIENT_INITIATED | RXW_SLOW_START_OK;
	raw.seq = 0;
	raw.serial = call->serial + 1;
	raw.size = rxw_ack_put(body, &k);
	raw.body = body;
	return raw;
}

/* Ids that nobody has, and the ids of an honest client from an address that is not its own. */
static void guess(struct attacker *a, uint64_t i)
{
	static const uint8_t types[] = {RXW_ACK, RXW_ABORT, RXW_BUSY, RXW_ACKALL, RXW_RESPONSE};
	struct h_raw raw = {.epoch = draw(a) | 0x80000000u, .cid = draw(a), .call = 1 + i % 7,
			    .seq = 1, .serial = 1, .type = types[i % 5], .service = H_SERVICE,
			    .flags = RXW_CLIENT_INITIATED, .body = "\0\0\0\7", .size = 4};

	if (i % 2) {
		raw.epoch = bed.client_engine->epoch;
		raw.cid = known_cid;
	}
	emit(a, i, &raw);
}

/* The same few requests again and again: each is served once. */
static void replay(struct attacker *a, uint64_t i)
{
	uint8_t head[H_ASK_SIZE];
	struct h_raw raw = h_raw_request(head, H_PING, 0x70000 + 4 * (uint32_t)(i % SOCKETS));

	emit(a, i, &raw);
	raw.call = 0;
	emit(a, i, &raw);
}

static void flood(struct attacker *a, uint64_t i)
{
	uint8_t head[H_ASK_SIZE];
	struct h_raw raw = request(a, head, H_PING);

	emit(a, i, &raw);
}

/* The last packet never comes, or the first. */
static void half_open(struct attacker *a, uint64_t i)
{
	uint8_t head[H_ASK_SIZE];
	struct h_raw raw = request(a, head, H_SINK);

	raw.flags = RXW_CLIENT_INITIATED;
	raw.seq = i % 3 ? 1 : 2 + i % 300;
	emit(a, i, &raw);
}

/* One call of each address, a byte in a packet, none of them the first: nothing can be used. */
static void fragments(struct attacker *a, uint64_t i)
{
	uint8_t head[H_ASK_SIZE];
	struct h_raw raw = h_raw_request(head, H_SINK, 0x80000 + 4 * (uint32_t)(i % SOCKETS));

	raw.flags = RXW_CLIENT_INITIATED;
	raw.seq = 2 + (uint32_t)(i / SOCKETS) * 8 % 600;
	raw.serial = 1 + (uint32_t)i;
	raw.size = 1;
	emit(a, i, &raw);
}

/* A large reply, acknowledged before it is sent, with windows that shrink. */
static void optimist(struct attacker *a, uint64_t i)
{
	uint8_t head[H_ASK_SIZE], body[RXW_ACK_MAX_SIZE];
	struct h_raw raw = h_raw_request(head, H_SOURCE, 0x90000 + 4 * (uint32_t)(i % SOCKETS)), k;

	raw.call = 1 + (uint32_t)(i / SOCKETS / 100);
	h_encode_ask(head, &(struct h_ask){.op = H_SOURCE, .bytes = 200000});
	if (i / SOCKETS % 100 == 0) {
		emit(a, i, &raw);
		return;
	}
	raw.serial = 1 + (uint32_t)i;
	k = ack(&raw, 2 + draw(a) % 1000, draw(a) % 100, 255 - (uint32_t)(i / SOCKETS) % 256, body);
	emit(a, i, &k);
}

/* BUSY and ABORT, of calls and of connections, to one that is there and to others. */
static void storm(struct attacker *a, uint64_t i)
{
	uint8_t head[H_ASK_SIZE];
	struct h_raw raw = h_raw_request(head, H_PING, 0xa0000 + 4 * (uint32_t)(i % SOCKETS));

	if (i >= SOCKETS) {
		raw.type = i / SOCKETS % 2 ? RXW_BUSY : RXW_ABORT;
		raw.call = i / SOCKETS % 3;
		raw.body = "\xff\xff\xff\xff";
		raw.size = i % 5;
	}
	emit(a, i, &raw);
}

/* A large reply, read a packet in a while. */
static void slow_reader(struct attacker *a, uint64_t i)
{
	uint8_t head[H_ASK_SIZE], body[RXW_ACK_MAX_SIZE], packet[2048];
	struct h_raw raw = h_raw_request(head, H_SOURCE, 0xb0000 + 4 * (uint32_t)(i % SOCKETS)), k;
	ssize_t n;

	h_encode_ask(head, &(struct h_ask){.op = H_SOURCE, .bytes = 10u << 20});
	if (i < SOCKETS) {
		emit(a, i, &raw);
		return;
	}
	/* What was asked for a proof gives it, so that it is sent more than a stranger. */
	n = recv(a->fd[i % SOCKETS], packet, sizeof(packet), MSG_DONTWAIT);
	if (n < RXW_HEADER_SIZE)
		return;
	raw.serial = 1 + (uint32_t)i;
	k = ack(&raw, packet[20] == RXW_DATA ? 1 + rxw_get32(packet + 12) : 1,
		rxw_get32(packet + 16), 1, body);
	if (packet[20] == RXW_ACK)
		body[16] = RXW_ACK_PING_RESPONSE;
	emit(a, i, &k);
}

static const struct attack attacks[] = {
	{"guessed ids", guess, RXW_DROP_NO_CONNECTION, true},
	{"ids of another", guess, RXW_DROP_ADDRESS, true},
	{"replay", replay, RXW_DROP_CALL_NUMBER, true},
	{"flood of connections", flood, RXW_DROP_COUNT, true},
	{"half-open calls", half_open, RXW_DROP_WINDOW, true},
	{"fragments", fragments, RXW_DROP_WINDOW, true},
	{"acknowledgements of what was never sent", optimist, RXW_DROP_BAD_ACK, false},
	{"BUSY and ABORT", storm, RXW_DROP_DIRECTION, true},
	{"slow readers", slow_reader, RXW_DROP_COUNT, false},
};
#define ATTACKS ((int)(sizeof(attacks) / sizeof(attacks[0])))

static void collect(struct attacker *a)
{
	uint8_t packet[2048];
	ssize_t n;

	for (unsigned s = 0; s < SOCKETS; s++)
		while ((n = recv(a->fd[s], packet, sizeof(packet), MSG_DONTWAIT)) >= 0)
			a->out[s] += (uint64_t)n + HEADERS;
}

static void *attacking(void *arg)
{
	struct attacker *a = arg;

	for (uint64_t i = 0; i < a->most && !atomic_load(&a->stop); i++) {
		a->attack->send(a, i);
		atomic_store(&a->sent, i + 1);
		if (i % 64 == 63) {
			if (a->attack->silent)
				collect(a);
			sched_yield();
		}
	}
	return NULL;
}

static void attack_start(struct attacker *a, const struct attack *attack,
			 const struct sockaddr_storage *victim, uint64_t most)
{
	struct sockaddr_in in = {.sin_family = AF_INET};

	memset(a, 0, sizeof(*a));
	a->attack = attack;
	a->random = 0x9e3779b97f4a7c15ull;
	a->most = most;
	for (unsigned s = 0; s < SOCKETS; s++) {
		a->fd[s] = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
		ck_assert_int_ge(a->fd[s], 0);
		in.sin_addr.s_addr = htonl(0x7f010000u + 1 + s);
		ck_assert_int_eq(bind(a->fd[s], (struct sockaddr *)&in, sizeof(in)), 0);
		ck_assert_int_eq(connect(a->fd[s], (const struct sockaddr *)victim,
					 sizeof(struct sockaddr_in)), 0);
	}
	ck_assert_int_eq(pthread_create(&a->thread, NULL, attacking, a), 0);
}

static void attack_end(struct attacker *a)
{
	pthread_join(a->thread, NULL);
	collect(a);
	for (unsigned s = 0; s < SOCKETS; s++) {
		close(a->fd[s]);
		if (a->attack->silent)
			ck_assert_msg(a->out[s] <= 3 * a->in[s], "%s: %llu bytes for %llu",
				      a->attack->name, (unsigned long long)a->out[s],
				      (unsigned long long)a->in[s]);
	}
}

/* --- honest clients --- */

struct honest {
	pthread_t thread;
	rxw_connection *connection;
	unsigned calls;
	int32_t bad;
};

static void *working(void *arg)
{
	struct honest *h = arg;

	for (unsigned i = 0; i < h->calls && !h->bad; i++)
		h->bad = h_call(&bed, h->connection,
				&(struct h_ask){.op = i % 4 ? H_SINK : H_BOTH,
						.bytes = i % 4 ? 100 : 20000,
						.seed = i});
	return NULL;
}

/* Calls a second, of all together. */
static double honest_work(struct honest h[HONEST], unsigned calls)
{
	struct timespec t, u;

	clock_gettime(CLOCK_MONOTONIC, &t);
	for (unsigned i = 0; i < HONEST; i++) {
		h[i].calls = calls;
		ck_assert_int_eq(pthread_create(&h[i].thread, NULL, working, &h[i]), 0);
	}
	for (unsigned i = 0; i < HONEST; i++) {
		pthread_join(h[i].thread, NULL);
		ck_assert_msg(!h[i].bad, "honest client %u: code %d", i, h[i].bad);
	}
	clock_gettime(CLOCK_MONOTONIC, &u);
	return HONEST * calls /
	       ((double)(u.tv_sec - t.tv_sec) + (double)(u.tv_nsec - t.tv_nsec) / 1e9);
}

static bool has_begun(void *arg)
{
	struct attacker *a = arg;

	return atomic_load(&a->sent) >= 2 * SOCKETS;
}

static bool cause_counted(void *arg)
{
	const struct attack *attack = arg;
	struct rxw_stats s = h_stats(bed.server);

	return attack->cause == RXW_DROP_COUNT || s.drops[attack->cause] > 0;
}

static unsigned number(const char *name, unsigned usual)
{
	const char *text = getenv(name);

	return text ? (unsigned)atoi(text) : usual;
}

START_TEST(beside_honest_clients)
{
	const struct attack *attack = &attacks[_i];
	unsigned calls = number("RXW_ATTACK_CALLS", h_small() ? 10 : 40);
	uint64_t most = number("RXW_ATTACK_PACKETS", h_small() ? 5000 : 40000);
	bool goodput = number("RXW_ATTACK_GOODPUT", 0);
	struct honest h[HONEST] = {{.calls = 0}};
	struct attacker a;
	struct rxw_stats s;
	double beside, alone = 0;
	size_t peak;

	h_open(&bed, &(struct h_options){.server = "memory=64M unproven-total=512"});
	for (unsigned i = 0; i < HONEST; i++)
		h[i].connection = h_connect(&bed, H_SERVICE);
	known_cid = h[0].connection->p.cid;
	honest_work(h, 2);
	if (goodput) {
		struct sockaddr_in in = {.sin_family = AF_INET,
					 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
		struct sockaddr_storage sink;
		socklen_t length = sizeof(sink);
		int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

		ck_assert_int_eq(bind(fd, (struct sockaddr *)&in, sizeof(in)), 0);
		ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&sink, &length), 0);
		attack_start(&a, attack, &sink, UINT64_MAX);
		alone = honest_work(h, calls);
		atomic_store(&a.stop, true);
		attack_end(&a);
		close(fd);
	}
	attack_start(&a, attack, &bed.address, goodput ? UINT64_MAX : most);
	h_wait_for(has_begun, &a, "the attack");
	beside = honest_work(h, calls);
	if (goodput)
		atomic_store(&a.stop, true);
	attack_end(&a);
	h_wait_for(cause_counted, (void *)(uintptr_t)attack, attack->name);
	rxw_engine_memory(bed.server_engine, &peak);
	ck_assert_uint_le(peak, MEMORY);
	s = h_stats(bed.server);
	/* Twice the cap, since the attacker is on this host; and those that are honest or proven. */
	ck_assert_uint_le(s.connections_server, 2 * STRANGERS + HONEST + SOCKETS);
	ck_assert_uint_le(s.peers, 4096);
	if (attack->send == replay)
		ck_assert_uint_le(s.calls_started, HONEST * (2 + 2 * calls) + SOCKETS);
	if (goodput)
		printf("%s: %.0f calls/s beside it, %.0f beside a sink: %.2f\n", attack->name,
		       beside, alone, beside / alone);
	for (unsigned i = 0; i < HONEST; i++)
		rxw_connection_release(h[i].connection);
	h_close(&bed);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("attack");
	TCase *tc = tcase_create("attack");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_set_timeout(tc, 200);
	tcase_add_loop_test(tc, beside_honest_clients, 0, ATTACKS);
	suite_add_tcase(s, tc);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
