/* SPDX-License-Identifier: BSD-2-Clause */
/* CHALLENGE and RESPONSE with a minimal class (rx-protocol 6.1, 7.1). */
#include <stdlib.h>
#include <string.h>

#include "tests/rx/proto/bench.h"

#define FAKE_INDEX 77
#define SEAL	   4u

/*
 * A class with an exchange: the challenge is a number and the response is that number plus one.
 * Sealed data end in "good".
 */
struct asking {
	struct rxw_security_id id;
	uint32_t nonce;
};

static int fake_create(void *data, const struct rxw_security_id *id, void **conn)
{
	struct asking *c;

	(void)data;
	c = calloc(1, sizeof(*c));
	ck_assert_ptr_nonnull(c);
	c->id = *id;
	c->nonce = 0x11223344;
	*conn = c;
	return 0;
}

static void fake_room(const void *conn, struct rxw_security_room *room)
{
	(void)conn;
	room->tail = 4;
}

static int fake_seal(void *conn, struct rxw_security_packet *packets, size_t count)
{
	(void)conn;
	for (size_t i = 0; i < count; i++)
		memcpy(packets[i].data + packets[i].length, "good", 4);
	return 0;
}

static void fake_verify(void *conn, struct rxw_security_packet *packets, size_t count)
{
	(void)conn;
	for (size_t i = 0; i < count; i++) {
		struct rxw_security_packet *p = &packets[i];

		if (p->length >= 4 && !memcmp(p->data + p->length - 4, "good", 4)) {
			p->result = 0;
			p->length -= 4;
		}
	}
}

static bool claims;
static uint32_t claimed[4];

static int fake_challenge(void *conn, uint8_t *out, size_t room)
{
	struct asking *c = conn;

	ck_assert_uint_ge(room, 48);
	rxw_put32(out, c->nonce);
	return 4;
}

static int fake_respond(void *conn, const uint8_t *challenge, size_t size, const uint32_t calls[4],
			uint8_t *out, size_t room, size_t *written, uint16_t *spare)
{
	struct asking *c = conn;

	(void)calls;
	(void)spare;
	ck_assert_uint_ge(room, 12000);
	if (size != 4)
		return -1;
	rxw_put32(out, rxw_get32(challenge) + 1);
	rxw_put32(out + 4, c->id.cid);
	*written = 8;
	return 0;
}

static int32_t fake_check(void *conn, const uint8_t *response, size_t size, uint16_t spare,
			  uint32_t calls[4])
{
	struct asking *c = conn;

	(void)spare;
	if (size != 8 || rxw_get32(response) != c->nonce + 1 ||
	    rxw_get32(response + 4) != c->id.cid)
		return -4242;
	calls[3] = 7;
	if (claims)
		memcpy(calls, claimed, sizeof(claimed));
	return 0;
}

static struct rxw_security fake = {
	.class =
		{
			.size = sizeof(struct rxw_security_class),
			.name = "asks",
			.index = FAKE_INDEX,
			.broken = -4243,
			.conn_create = fake_create,
			.conn_destroy = free,
			.room = fake_room,
			.seal = fake_seal,
			.verify = fake_verify,
			.challenge = fake_challenge,
			.respond = fake_respond,
			.check_response = fake_check,
		},
};

static struct bench b;
static struct bench_conn *c;

static void setup(bool client)
{
	bench_init(&b, client);
	b.security = &fake;
	c = bench_conn(&b, BENCH_EPOCH, BENCH_CID, 7001);
}

static struct bench_call *call(void)
{
	return (struct bench_call *)bench_channel(c, 0);
}

static void sealed(uint32_t number, uint32_t seq, unsigned flags, const char *seal)
{
	uint8_t packet[200];
	uint32_t size = bench_data(&b, packet, number, seq, flags, 10);

	memcpy(packet + size, seal, SEAL);
	bench_input(&b, c, packet, size + SEAL, size + SEAL);
}

static void respond(uint32_t nonce, uint32_t cid)
{
	uint8_t packet[64];

	bench_header(&b, packet, RXW_RESPONSE, 0, 0);
	rxw_put32(packet + 28, nonce);
	rxw_put32(packet + 32, cid);
	bench_input(&b, c, packet, 36, 36);
}

START_TEST(exchange)
{
	struct bench_packet *k;

	setup(false);
	sealed(1, 1, 0, "good");
	k = bench_expect(&b, RXW_CHALLENGE);
	ck_assert_uint_eq(k->length, 32);
	ck_assert_uint_eq(k->h.call, 0);
	ck_assert_uint_eq(k->h.seq, 0);
	ck_assert_uint_eq(k->h.cid & 3, 0);
	ck_assert_uint_eq(rxw_get32(k->bytes + 28), 0x11223344);
	/* Queued, not delivered, and soft-acknowledged only. */
	sealed(1, 2, RXW_LAST_PACKET, "good");
	ck_assert_int_eq(call()->p.state, RXW_CS_PRECALL);
	ck_assert_uint_eq(rxw_pcall_readable(&call()->p, NULL), 0);
	bench_pass(&b, 100 * RXW_MS);
	k = bench_expect(&b, RXW_ACK);
	ck_assert_uint_eq(k->ack.first, 1);
	ck_assert_uint_eq(k->ack.count, 2);
	bench_nothing(&b);
	respond(0x11223345, BENCH_CID);
	ck_assert_int_eq(call()->p.state, RXW_CS_ACTIVE);
	ck_assert(rxw_peer_validated(c->p.peer, b.out.now));
	ck_assert_uint_eq(c->p.number[3], 7);
	bool ended;

	ck_assert_uint_eq(rxw_pcall_readable(&call()->p, &ended), 2);
	ck_assert(ended);
	struct rxw_rxpiece piece[2];

	ck_assert_uint_eq(rxw_pcall_take(&call()->p, piece, 2), 2);
	ck_assert_uint_eq(piece[0].last_length, 10);
	for (unsigned i = 0; i < 10; i++)
		ck_assert_uint_eq(piece[0].data[i], 1 + i);
	rxw_buf_unref(piece[0].buf);
	rxw_buf_unref(piece[1].buf);
	/* A second RESPONSE finds no outstanding challenge. */
	respond(0x11223345, BENCH_CID);
	ck_assert_uint_eq(b.stats.drops[RXW_DROP_STATE], 1);
	bench_free(&b);
}
END_TEST

/*
 * Packets that fail verification once the key is known count as missing, so that the genuine ones
 * are sent again.
 */
START_TEST(forged_while_waiting)
{
	setup(false);
	sealed(1, 1, 0, "good");
	sealed(1, 2, 0, "evil");
	sealed(1, 3, RXW_LAST_PACKET, "good");
	b.next = b.count;
	respond(0x11223345, BENCH_CID);
	ck_assert_uint_eq(b.stats.drops[RXW_DROP_VERIFY], 1);
	bench_pass(&b, RXW_MS);
	struct bench_packet *k = bench_expect(&b, RXW_ACK);

	/* In the order of verification. In the end it is the missing one. */
	while (b.next < b.count)
		k = bench_expect(&b, RXW_ACK);
	ck_assert_uint_eq(k->ack.first, 1);
	ck_assert_uint_eq(k->ack.count, 3);
	ck_assert_mem_eq(k->ack.acks, "\1\0\1", 3);
	ck_assert_uint_eq(rxw_pcall_readable(&call()->p, NULL), 1);
	sealed(1, 2, 0, "good");
	ck_assert_uint_eq(rxw_pcall_readable(&call()->p, NULL), 3);
	bench_free(&b);
}
END_TEST

START_TEST(forged_afterwards)
{
	setup(false);
	sealed(1, 1, 0, "good");
	respond(0x11223345, BENCH_CID);
	b.next = b.count;
	sealed(1, 2, 0, "evil");
	ck_assert_uint_eq(call()->p.rx.next, 2);
	bench_nothing(&b);
	/* It neither ends the current call nor begins one. */
	sealed(2, 1, 0, "evil");
	ck_assert_uint_eq(call()->p.number, 1);
	ck_assert_int_eq(call()->p.error, 0);
	ck_assert_int_eq(c->p.error, 0);
	sealed(1, 2, 0, "good");
	ck_assert_uint_eq(call()->p.rx.next, 3);
	bench_free(&b);
}
END_TEST

/*
 * A duplicate is not verified. It must not move the end of the data, nor end the call for a
 * conflict.
 */
START_TEST(forged_repetition)
{
	setup(false);
	sealed(1, 1, 0, "good");
	sealed(1, 1, RXW_LAST_PACKET, "evil"); /* while it waits for the exchange */
	ck_assert_uint_eq(call()->p.rx.last, 0);
	respond(0x11223345, BENCH_CID);
	sealed(1, 2, 0, "good");
	sealed(1, 1, RXW_LAST_PACKET, "evil");
	sealed(1, 2, RXW_LAST_PACKET, "evil");
	ck_assert_uint_eq(call()->p.rx.last, 0);
	sealed(1, 3, RXW_LAST_PACKET, "good");
	ck_assert_uint_eq(call()->p.rx.last, 3);
	ck_assert_int_eq(call()->p.error, 0);
	ck_assert_uint_eq(rxw_pcall_readable(&call()->p, NULL), 3);
	bench_free(&b);
}
END_TEST

/* The next packet other than an ACK. */
static struct bench_packet *no_ack(unsigned type)
{
	struct bench_packet *k;

	do
		k = bench_next(&b);
	while (k != NULL && k->h.type == RXW_ACK);
	ck_assert_ptr_nonnull(k);
	ck_assert_uint_eq(k->h.type, type);
	return k;
}

START_TEST(bad_response)
{
	setup(false);
	sealed(1, 1, 0, "good");
	b.next = b.count;
	respond(99, BENCH_CID);
	no_ack(RXW_CHALLENGE);
	ck_assert_int_eq(c->p.error, 0);
	bench_pass(&b, 900 * RXW_MS);
	no_ack(RXW_CHALLENGE);
	no_ack(RXW_CHALLENGE);
	ck_assert_int_eq(call()->p.error, 0);
	bench_pass(&b, 200 * RXW_MS);
	ck_assert_int_eq(c->p.error, -4242);
	ck_assert_int_eq(call()->p.error, -4242);
	struct bench_packet *k = no_ack(RXW_ABORT);

	ck_assert_int_eq(k->code, -4242);
	ck_assert_uint_eq(k->h.call, 0);
	bench_free(&b);
}
END_TEST

/*
 * Before the key is known, a damaged call number replaces the waiting call. If none of its packets
 * verifies, the client's own number is accepted again.
 */
START_TEST(damaged_call_number)
{
	setup(false);
	sealed(1, 1, RXW_LAST_PACKET, "good");
	sealed(0x4001, 1, RXW_LAST_PACKET, "evil");
	ck_assert_uint_eq(call()->p.number, 0x4001);
	claims = true;
	memcpy(claimed, (uint32_t[4]){1, 0, 0, 0}, sizeof(claimed));
	respond(0x11223345, BENCH_CID);
	claims = false;
	ck_assert_uint_eq(b.stats.drops[RXW_DROP_VERIFY], 1);
	ck_assert_ptr_null(call());
	sealed(1, 1, RXW_LAST_PACKET, "good");
	ck_assert_uint_eq(call()->p.number, 1);
	ck_assert_int_eq(call()->p.state, RXW_CS_ACTIVE);
	ck_assert_uint_eq(rxw_pcall_readable(&call()->p, NULL), 1);
	bench_free(&b);
}
END_TEST

static void last_is(uint8_t level, uint32_t seq, bool read)
{
	setup(false);
	sealed(1, 1, 0, "good");
	respond(0x11223345, BENCH_CID);
	c->p.auth.level = level;
	sealed(1, 2, 0, "good");
	sealed(1, seq, RXW_LAST_PACKET, "good");
	if (read)
		bench_read(call());
	b.next = b.count;
}

/*
 * No class protects flags, but all protect numbers. A verified later packet proves that LAST_PACKET
 * was wrong, and the call continues to its true end.
 */
START_TEST(damaged_last)
{
	bool ended;

	/*
	 * Set on a packet that is not the last: later packets count, unless that end was already
	 * read.
	 */
	last_is(RXW_LEVEL_AUTH, 3, false);
	sealed(1, 4, 0, "good");
	ck_assert_int_eq(call()->p.error, 0);
	ck_assert_uint_eq(call()->p.rx.last, 0);
	sealed(1, 5, RXW_LAST_PACKET, "good");
	ck_assert_uint_eq(rxw_pcall_readable(&call()->p, &ended), 5);
	ck_assert(ended);
	bench_free(&b);
	/* Set below a packet already received: it is retransmitted without the flag. */
	last_is(RXW_LEVEL_CRYPT, 5, false);
	ck_assert_uint_eq(call()->p.rx.last, 5);
	sealed(1, 3, RXW_LAST_PACKET, "good");
	ck_assert_uint_eq(b.stats.drops[RXW_DROP_WINDOW], 1);
	ck_assert_int_eq(call()->p.error, 0);
	sealed(1, 3, 0, "good");
	sealed(1, 4, 0, "good");
	ck_assert_uint_eq(rxw_pcall_readable(&call()->p, &ended), 5);
	ck_assert(ended);
	bench_free(&b);
	/* Twice wrong. */
	last_is(RXW_LEVEL_AUTH, 3, false);
	sealed(1, 7, 0, "good");
	sealed(1, 5, RXW_LAST_PACKET, "good");
	ck_assert_int_eq(call()->p.error, 0);
	ck_assert_uint_eq(call()->p.rx.last, 0);
	bench_free(&b);
	/* The reader was told of the end: a truncated stream must not end successfully. */
	last_is(RXW_LEVEL_AUTH, 3, true);
	sealed(1, 4, 0, "good");
	ck_assert_int_eq(call()->p.error, RXW_PROTOCOL_ERROR);
	bench_free(&b);
	/* At level clear, numbers can be forged, too. */
	last_is(RXW_LEVEL_CLEAR, 3, false);
	sealed(1, 4, 0, "good");
	ck_assert_int_eq(call()->p.error, RXW_PROTOCOL_ERROR);
	bench_free(&b);
}
END_TEST

/* A damaged ACK, which names a packet that was never sent. */
START_TEST(damaged_ack)
{
	uint8_t packet[RXW_ACK_MAX_SIZE];
	uint32_t size;
	uint64_t heard;

	setup(true);
	struct bench_call *mine = bench_begin(&b, c);

	bench_write(mine, 3, 10, true);
	b.next = b.count;
	heard = mine->p.time.last_heard;
	bench_pass(&b, RXW_MS);
	size = bench_ack(&b, packet, 1, 0x10004, 0, RXW_ACK_DELAY, 0, "", 16);
	bench_input(&b, c, packet, size, size);
	ck_assert_int_eq(mine->p.error, 0);
	ck_assert_uint_eq(mine->p.tx.una, 1);
	ck_assert_uint_eq(b.stats.drops[RXW_DROP_BAD_ACK], 1);
	ck_assert_uint_eq(mine->p.time.last_heard, heard); /* nor is it a sign of life */
	bench_nothing(&b);
	size = bench_ack(&b, packet, 1, 4, 0, RXW_ACK_DELAY, 0, "", 16);
	bench_input(&b, c, packet, size, size);
	ck_assert_uint_eq(mine->p.tx.una, 4);
	bench_free(&b);
}
END_TEST

/*
 * The client's call numbers: one lower than seen is ignored. A higher one ends the call that waits on its channel:
 * the client gave it up, and the ABORT was lost.
 */
START_TEST(numbers)
{
	static const struct {
		uint32_t claimed[4];
		int32_t error;
	} rows[] = {
		{{5, 0, 0, 0}, 0},     {{4, 9, 0, 0x7fffffff}, 0},     {{0, 0, 0, 0}, 0},
		{{6, 0, 0, 0}, 0},     {{5, 0x80000000, 0, 0}, -4243},
	};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		setup(false);
		sealed(5, 1, 0, "good");
		claims = true;
		memcpy(claimed, rows[i].claimed, sizeof(claimed));
		respond(0x11223345, BENCH_CID);
		claims = false;
		ck_assert_int_eq(c->p.error, rows[i].error);
		if (claimed[0] <= 5)
			ck_assert_int_eq(call()->p.error, rows[i].error);
		if (rows[i].error == 0) {
			ck_assert_uint_eq(c->p.number[0], rxw_max32(5, claimed[0]));
			for (unsigned k = 1; k < 4; k++)
				ck_assert_uint_eq(c->p.number[k], claimed[k]);
		}
		if (claimed[0] == 6) {
			sealed(6, 1, RXW_LAST_PACKET, "good");
			ck_assert_uint_eq(call()->p.number, 6);
			ck_assert_int_eq(call()->p.state, RXW_CS_ACTIVE);
		}
		bench_free(&b);
	}
}
END_TEST

/*
 * A packet with a damaged call number begins a call that never gets its first packet. The CHALLENGE
 * does not wait for that, and the RESPONSE restores the number.
 */
START_TEST(damaged_number)
{
	setup(false);
	sealed(0x885d0001, 5, 0, "evil");
	bench_expect(&b, RXW_CHALLENGE);
	sealed(1, 1, 0, "good");
	ck_assert_uint_eq(call()->p.number, 0x885d0001);
	claims = true;
	memcpy(claimed, (uint32_t[4]){1, 0, 0, 0}, sizeof(claimed));
	respond(0x11223345, BENCH_CID);
	claims = false;
	ck_assert_uint_eq(c->p.number[0], 1);
	sealed(1, 1, RXW_LAST_PACKET, "good");
	ck_assert_uint_eq(call()->p.number, 1);
	ck_assert_int_eq(call()->p.state, RXW_CS_ACTIVE);
	bench_free(&b);
}
END_TEST

/* A service's minimum level, above that of this class. */
START_TEST(too_weak)
{
	setup(false);
	c->p.auth.level_min = RXW_LEVEL_AUTH;
	sealed(1, 1, 0, "good");
	respond(0x11223345, BENCH_CID);
	ck_assert_int_eq(c->p.error, RXW_INVALID_OPERATION);
	ck_assert(!c->p.auth.authenticated);
	bench_free(&b);
}
END_TEST

/* Wrong keys: at least four packets that fail and none that verifies, within a minute. */
START_TEST(nothing_verifies)
{
	setup(false);
	sealed(1, 1, 0, "good");
	respond(0x11223345, BENCH_CID);
	for (unsigned i = 2; i < 5; i++)
		sealed(1, i, 0, "evil");
	for (unsigned i = 0; i < 61; i++) {
		uint8_t packet[RXW_ACK_MAX_SIZE];
		uint32_t size =
			bench_ack(&b, packet, 1, 1, 0, RXW_ACK_PING, RXW_REQUEST_ACK, "", 16);

		bench_pass(&b, RXW_SEC);
		bench_input(&b, c, packet, size, size);
		b.count = b.next = 0;
		if (i == 30)
			ck_assert_int_eq(call()->p.error, 0);
		if (i == 31)
			sealed(1, 5, 0, "evil"); /* the fourth */
	}
	ck_assert_int_eq(call()->p.error, -4243);
	ck_assert_int_eq(c->p.error, 0);
	bench_free(&b);
}
END_TEST

START_TEST(challenges_by_timer)
{
	unsigned n = 0;

	setup(false);
	sealed(1, 1, 0, "good");
	bench_pass(&b, 1500 * RXW_MS);
	for (unsigned i = 0; i < b.count; i++)
		if (b.sent[i].h.type == RXW_CHALLENGE) {
			static const unsigned at[] = {0, 500, 1250};

			ck_assert_uint_lt(n, 3);
			ck_assert_uint_eq((b.sent[i].at - 1000 * RXW_SEC) / RXW_MS, at[n++]);
			/* the same */
			ck_assert_uint_eq(rxw_get32(b.sent[i].bytes + 28), 0x11223344);
		}
	ck_assert_uint_eq(n, 3);
	bench_pass(&b, 60 * RXW_SEC);
	for (unsigned i = n = 0; i < b.count; i++)
		n += b.sent[i].h.type == RXW_CHALLENGE;
	ck_assert_uint_eq(n, 3);
	ck_assert_int_eq(call()->p.error, RXW_CALL_DEAD);
	bench_free(&b);
}
END_TEST

/* Number of CHALLENGEs sent from the i-th packet on. */
static unsigned challenges_from(unsigned i)
{
	unsigned n = 0;

	for (; i < b.count; i++)
		n += b.sent[i].h.type == RXW_CHALLENGE;
	return n;
}

/*
 * A client whose request was acknowledged sends only PINGs: each draws one more CHALLENGE, and once
 * its address is validated one is sent every 2 s.
 */
START_TEST(challenges_of_who_waits)
{
	uint8_t packet[RXW_ACK_MAX_SIZE];
	uint32_t size;

	setup(false);
	sealed(1, 1, 0, "good");
	bench_pass(&b, 5 * RXW_SEC);
	ck_assert_uint_eq(challenges_from(0), 3);
	for (unsigned i = 0; i < 2; i++) {
		b.count = b.next = 0;
		size = bench_ack(&b, packet, 1, 1, 0, RXW_ACK_PING, RXW_REQUEST_ACK, "", 16);
		bench_input(&b, c, packet, size, size);
		ck_assert_uint_eq(challenges_from(0), 0); /* one answer per packet: 12.3 */
		bench_pass(&b, 5 * RXW_SEC);
		ck_assert_uint_eq(challenges_from(0), 1);
	}
	rxw_peer_set_validated(c->p.peer, b.out.now);
	b.count = b.next = 0;
	bench_pass(&b, 6 * RXW_SEC);
	ck_assert_uint_ge(challenges_from(0), 2);
	ck_assert_uint_le(challenges_from(0), 3);
	respond(0x11223345, BENCH_CID);
	ck_assert_int_eq(call()->p.state, RXW_CS_ACTIVE);
	bench_free(&b);
}
END_TEST

/* The client sends from another port, and proves it. */
static void moves(unsigned port)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	struct rxw_buf *buf = rxw_buf_get(b.pool);
	struct rxw_jumbo jumbo = {0};
	struct rxw_path path = {0};
	struct rxw_peer *peer;
	struct rxw_rxrun run;
	uint32_t size, at = 0;

	in.sin_addr.s_addr = htonl(0x0a000002);
	rxw_addr_set(&path.peer, (struct sockaddr *)&in, sizeof(in));
	ck_assert_ptr_nonnull(buf);
	size = bench_ack(&b, buf->data, 1, 1, 0, RXW_ACK_PING, RXW_REQUEST_ACK, "", 16);
	ck_assert_int_eq(rxw_run_next(buf, &path, size, size, &at, &jumbo, &run, &b.stats), 1);
	rxw_pconn_ask(&c->p, &run, &b.out);
	peer = rxw_peer_get(b.peers, &path.peer, b.out.now);
	ck_assert_ptr_nonnull(peer);
	rxw_conntable_remove(&b.table, &c->p);
	ck_assert(rxw_pconn_move(&c->p, peer, &path, &b.out));
	ck_assert_int_eq(rxw_conntable_insert(&b.table, &c->p), 0);
	rxw_peer_unref(peer, b.out.now);
	rxw_buf_unref(buf);
	bench_settle(&b);
}

/* A NAT forgot the mapping to which the CHALLENGE was sent: the next mapping gets it at once. */
START_TEST(moves_before_its_response)
{
	setup(false);
	sealed(1, 1, 0, "good");
	bench_pass(&b, 1400 * RXW_MS); /* the latest is sent at 1250 ms */
	b.count = b.next = 0;
	moves(7002);
	ck_assert_uint_eq(challenges_from(0), 1);
	while (bench_expect(&b, b.sent[b.next].h.type)->h.type != RXW_CHALLENGE)
		;
	ck_assert_uint_eq(b.sent[b.next - 1].port, 7002);
	/* If that is lost as well, it is repeated as for a new client. */
	b.count = b.next = 0;
	bench_pass(&b, 500 * RXW_MS);
	ck_assert_uint_eq(challenges_from(0), 1);
	respond(0x11223345, BENCH_CID);
	ck_assert_int_eq(call()->p.state, RXW_CS_ACTIVE);
	/* A client that is authenticated gets none. */
	b.count = b.next = 0;
	moves(7003);
	bench_pass(&b, 5 * RXW_SEC);
	ck_assert_uint_eq(challenges_from(0), 0);
	bench_free(&b);
}
END_TEST

/*
 * A client and a stranger that copies its packets are sent PINGs at the same time. The serial of one
 * of them does not tell that of the other: the copy of an answer would prove the stranger's address.
 */
START_TEST(two_addresses_are_asked)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(7004)};
	struct rxw_ctl own = {0}, other = {0};

	setup(false);
	sealed(1, 1, 0, "good");
	own.path.peer = c->p.peer->addr;
	in.sin_addr.s_addr = htonl(0x0a000003);
	rxw_addr_set(&other.path.peer, (struct sockaddr *)&in, sizeof(in));
	ck_assert_uint_ne(rxw_ack_put_probe(&call()->p, &own, b.out.now),
			  rxw_ack_put_probe(&call()->p, &other, b.out.now));
	bench_free(&b);
}
END_TEST

/*
 * The call is refused when its client is authenticated, after its packets were acknowledged.
 * Clients then ignore BUSY and do not retransmit, unless an ACK says that nothing was kept.
 */
START_TEST(refused_after_all)
{
	struct bench_packet *k;

	setup(false);
	b.auto_attach = false;
	sealed(1, 1, 0, "good");
	sealed(1, 2, RXW_LAST_PACKET, "good");
	respond(0x11223345, BENCH_CID);
	b.next = b.count;
	ck_assert(rxw_pcall_refuse(&call()->p, &b.out));
	bench_settle(&b);
	k = bench_expect(&b, RXW_ACK);
	ck_assert_uint_eq(k->ack.first, 1);
	ck_assert_uint_eq(k->ack.count, 2);
	ck_assert_mem_eq(k->ack.acks, "\0\0", 2);
	k = bench_expect(&b, RXW_BUSY);
	ck_assert_uint_eq(k->h.call, 1);
	/* It is retransmitted and served. */
	b.auto_attach = true;
	sealed(1, 1, 0, "good");
	sealed(1, 2, RXW_LAST_PACKET, "good");
	ck_assert_int_eq(call()->p.state, RXW_CS_ACTIVE);
	ck_assert_uint_eq(rxw_pcall_readable(&call()->p, NULL), 2);
	bench_free(&b);
}
END_TEST

/*
 * There was no thread to make a CHALLENGE. The client, already acknowledged, must not wait forever.
 */
START_TEST(nobody_to_make_one)
{
	setup(false);
	b.drop_auth = 3;
	sealed(1, 1, RXW_LAST_PACKET, "good");
	bench_pass(&b, RXW_SEC);
	ck_assert_uint_eq(challenges_from(0), 0);
	bench_pass(&b, RXW_SEC);
	ck_assert_uint_eq(b.drop_auth, 0);
	ck_assert_uint_gt(challenges_from(0), 0);
	respond(0x11223345, BENCH_CID);
	ck_assert_int_eq(call()->p.state, RXW_CS_ACTIVE);
	bench_free(&b);
}
END_TEST

START_TEST(client_answers)
{
	uint8_t packet[64];
	struct bench_packet *k;

	setup(true);
	bench_header(&b, packet, RXW_CHALLENGE, 0, 0);
	rxw_put32(packet + 28, 41);
	bench_input(&b, c, packet, 32, 32);
	bench_nothing(&b); /* without a call */
	ck_assert_uint_eq(b.stats.drops[RXW_DROP_STATE], 1);
	bench_begin(&b, c);
	bench_input(&b, c, packet, 31, 31);
	bench_nothing(&b); /* no such challenge */
	ck_assert_uint_eq(b.stats.drops[RXW_DROP_VERIFY], 1);
	ck_assert_int_eq(c->p.error, 0);
	bench_input(&b, c, packet, 32, 32);
	k = bench_expect(&b, RXW_RESPONSE);
	ck_assert_uint_eq(k->length, 36);
	ck_assert_uint_eq(k->h.call, 0);
	ck_assert_uint_eq(rxw_get32(k->bytes + 28), 42);
	ck_assert_uint_eq(rxw_get32(k->bytes + 32), BENCH_CID);
	/* Eight per second. */
	for (unsigned i = 0; i < 20; i++)
		bench_input(&b, c, packet, 32, 32);
	ck_assert_uint_eq(b.count, 8);
	b.out.now += RXW_SEC;
	bench_input(&b, c, packet, 32, 32);
	ck_assert_uint_eq(b.count, 9);
	bench_free(&b);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("connauth");
	TCase *tcase = tcase_create("connauth");

	suite_add_tcase(suite, tcase);
	tcase_set_timeout(tcase, 0);
	tcase_add_test(tcase, exchange);
	tcase_add_test(tcase, forged_while_waiting);
	tcase_add_test(tcase, forged_afterwards);
	tcase_add_test(tcase, forged_repetition);
	tcase_add_test(tcase, bad_response);
	tcase_add_test(tcase, damaged_call_number);
	tcase_add_test(tcase, damaged_last);
	tcase_add_test(tcase, damaged_ack);
	tcase_add_test(tcase, numbers);
	tcase_add_test(tcase, damaged_number);
	tcase_add_test(tcase, too_weak);
	tcase_add_test(tcase, nothing_verifies);
	tcase_add_test(tcase, challenges_by_timer);
	tcase_add_test(tcase, challenges_of_who_waits);
	tcase_add_test(tcase, moves_before_its_response);
	tcase_add_test(tcase, two_addresses_are_asked);
	tcase_add_test(tcase, nobody_to_make_one);
	tcase_add_test(tcase, refused_after_all);
	tcase_add_test(tcase, client_answers);
	return bench_main(suite);
}
