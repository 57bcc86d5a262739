/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The worst cost of a packet, by search: sequences of packets, of application calls and of time are tried against the
 * protocol core in several states, at random and by changes to the worst ones (hill climbing). Whatever the peer did
 * before, a packet may cost what it has bytes, and what it changes. test_cost counts basic blocks of the core and
 * checks that, at a window and at one that is 16 times larger; `cost` measures the CPU time of the sequences that
 * test_cost has saved.
 */
#include <arpa/inet.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/hash.h"
#include "cost.h"
#include "tests/support/host.h"

#define EPOCH	0x80000077u
#define CID	0x00001000u
#define SERVICE 147
#define PAYLOAD 100u
#define OPS	24u /* at most, in a sequence */
#define WINDOW \
	3000u /* 16 times that leave space in all tables: growth is paid for by what fills them */
#define LARGER 16u /* times that window */
#define TRIES  48u /* sequences of each state, without --seconds */
#define RUNS   5u  /* of a sequence, when time is measured */

/*
 * Basic blocks that a packet may cost: any, for 8 bytes of it and of ACKs sent, for a packet that it acknowledges,
 * queues or loses, or for 64 that the peer drops or has again, for one that leaves.
 */
#define ANY	1500u
#define WORD	30u
#define CHANGED 250u
#define LEAVES	300u
#define RELEASED 64u /* packets, at most, that a packet which ends the call releases at once */
/* The checks of sanitizers are basic blocks as well. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#	define CHECKS 2u
#else
#	define CHECKS 1u
#endif

enum op_kind {
	ACK_SMALL,  /* to `a`, `b` packets described with pattern c */
	ACK_TAIL,   /* all but `b` packets, in a few bytes */
	ACK_TABLES, /* all that tables can describe, with pattern c */
	ACK_PART,   /* table a and the following */
	DATA_NEXT,  /* `b` packets in order */
	DATA_JUMP,  /* a packet at `a`, and others at distance b */
	PING,
	ACKALL,
	BUSY,
	ABORT,
	CHALLENGE,
	RESPONSE,
	OTHER, /* type a */
	PASS,  /* time */
	SEND,  /* `b` bursts */
	READ,
	KINDS
};

struct op {
	uint8_t kind, reason, pattern, times;
	uint16_t a, b;
};

struct sequence {
	uint64_t seed; /* of its patterns */
	uint8_t state, count;
	struct op op[OPS];
};

/* The kinds of packets in the table. */
enum type {
	T_DATA,
	T_ACK,
	T_PING,
	T_ACKALL,
	T_BUSY,
	T_ABORT,
	T_CHALLENGE,
	T_RESPONSE,
	T_OTHER,
	TYPES
};
static const char *const type_names[] = {"DATA",  "ACK",       "PING",	   "ACKALL", "BUSY",
					 "ABORT", "CHALLENGE", "RESPONSE", "other"};

enum state {
	ST_NEW,	      /* a connection without a call */
	ST_RECEIVING, /* a request arrives in order */
	ST_GAPS,      /* each second packet of the window is missing */
	ST_SENDING,   /* a reply fills the window */
	ST_SPLIT,     /* each second packet of it is acknowledged, the others are lost */
	ST_AGAIN,     /* the others were sent again, one by one */
	ST_DROPPED,   /* then all were acknowledged, and dropped again */
	ST_OVER,      /* the call is over */
	ST_CLIENT,    /* a client that sends a request */
	STATES
};
static const char *const state_names[] = {"no call", "receiving", "gaps", "sending", "split",
					  "again",   "dropped",	  "over", "client"};

struct call {
	HOST_CALL;
};

static struct world {
	HOST;
	struct host_conn conn;
	struct rxw_path path;
	uint32_t serial, window;
	uint64_t left, left_bytes; /* packets that left, and bytes of ACKs */
	struct rxw_pcall *ended;   /* its queues have more to release; one reference */
} w;

struct worst {
	uint64_t value;
	uint64_t cost;
	uint32_t bytes, changes, sent, sent_bytes;
	struct sequence sequence;
};
/* For each kind of packet: the most expensive one, and the one most expensive for what it has and changes. */
static struct worst dearest[STATES][TYPES], steepest[STATES][TYPES];
static uint64_t found; /* the steepest packet of the sequence that runs */
static uint64_t random_state;
static bool measuring, failed;
/* The least time of each packet of a sequence, in several runs. */
static uint64_t least[OPS * 64];
static unsigned packet_number;

static uint32_t draw(uint32_t below)
{
	return (uint32_t)(rxw_prng(&random_state) % below);
}

/* --- what the core does --- */

static void on_control(struct host *h, const struct rxw_ctl *ctl)
{
	(void)h;
	w.left++;
	w.left_bytes += ctl->length;
}

static void send_bursts(struct rxw_pcall *p, unsigned bursts)
{
	struct rxw_burst burst;
	uint64_t not_before;

	while (bursts-- > 0 &&
	       rxw_pcall_burst(p, 45, &burst, &not_before, &w.out) == RXW_BURST_READY) {
		w.left += burst.count;
		rxw_pcall_burst_done(p, &burst, burst.count, 0, &w.out);
	}
}

static void on_events(struct host *h, struct host_call *call, uint32_t events)
{
	if (events & RXW_OUT_ATTACH)
		rxw_pcall_attach(&call->p, &h->out);
	if ((events & RXW_OUT_RELEASE) && w.ended == NULL) {
		w.ended = &call->p;
		host_hold(w.ended);
	}
	if (events & RXW_OUT_DONE)
		rxw_pcall_retire(&call->p);
}

/* The library does this in steps of a fixed size, later. */
static void release_ended(void)
{
	if (w.ended == NULL)
		return;
	rxw_pcall_release(w.ended, UINT_MAX);
	host_drop(w.ended);
	w.ended = NULL;
}

static const struct host_ops ops = {
	.call_size = sizeof(struct call), .control = on_control, .events = on_events};

static struct rxw_pcall *the_call(void)
{
	return w.conn.p.channel[0];
}

/* --- packets --- */

/* Which packets have which state: what differs afterwards was changed. */
static struct image {
	uint64_t flight[RXW_BITMAP_MOST / 64], lost[RXW_BITMAP_MOST / 64],
		once[RXW_BITMAP_MOST / 64], have[RXW_BITMAP_MOST / 64];
	uint32_t una, end, consumed, next;
} before;

static void take_image(struct image *i)
{
	const struct rxw_pcall *p = the_call();

	memset(i, 0, sizeof(*i));
	if (p == NULL)
		return;
	memcpy(i->flight, p->tx.sent.flight.words, p->tx.sent.room / 8);
	memcpy(i->lost, p->tx.sent.lost.words, p->tx.sent.room / 8);
	memcpy(i->once, p->tx.sent.once.words, p->tx.sent.room / 8);
	memcpy(i->have, p->rx.later.have.words, p->rx.later.have.room / 8);
	i->una = p->tx.una;
	i->end = p->tx.end;
	i->consumed = p->rx.consumed;
	i->next = p->rx.next;
}

static uint32_t count_bits(const uint64_t *a, uint32_t room)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < room / 64; i++)
		n += (uint32_t)__builtin_popcountll(a[i]);
	return n;
}

static uint32_t differ(const uint64_t *a, const uint64_t *b, uint32_t room)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < room / 64; i++)
		n += (uint32_t)__builtin_popcountll(a[i] ^ b[i]);
	return n;
}

/* Packets that were dropped, or are there again: a peer repeats that in a few bytes. They count by words. */
static uint32_t repeated(const struct image *i, const struct rxw_sent *sent)
{
	uint32_t n = 0;

	for (uint32_t k = 0; k < sent->room / 64; k++) {
		uint64_t bits = (i->lost[k] ^ sent->lost.words[k]) & i->once[k] &
				~(i->flight[k] | sent->flight.words[k]);

		n += (uint32_t)__builtin_popcountll(bits) - (bits != 0);
	}
	return n;
}

static uint32_t changes_since(const struct image *i)
{
	const struct rxw_pcall *p = the_call();

	/* The call is over: what was queued is released later. */
	if (p == NULL || !rxw_pcall_live(p))
		return rxw_min32(RELEASED, i->end - i->una + i->next - i->consumed +
						   count_bits(i->have, RXW_BITMAP_MOST));
	return differ(i->flight, p->tx.sent.flight.words, p->tx.sent.room) +
	       differ(i->lost, p->tx.sent.lost.words, p->tx.sent.room) -
	       (p->tx.una == i->una ? repeated(i, &p->tx.sent) : 0) +
	       differ(i->have, p->rx.later.have.words, p->rx.later.have.room) +
	       (p->tx.una - i->una) + (p->rx.next - i->next);
}

static uint64_t bound(const struct worst *x)
{
	return CHECKS * (ANY + (uint64_t)WORD * ((x->bytes + x->sent_bytes) / 8) +
			 (uint64_t)CHANGED * x->changes + (uint64_t)LEAVES * x->sent);
}

static void keep(struct worst *x, uint64_t value, const struct worst *packet)
{
	if (value <= x->value)
		return;
	*x = *packet;
	x->value = value;
}

static void note(enum type type, const struct worst *packet)
{
	const struct sequence *s = &packet->sequence;
	uint64_t may = bound(packet);
	uint64_t part = packet->cost * 1000 / may;

	found = part > found ? part : found;
	if (part > 1000 && part > steepest[s->state][type].value) {
		printf("FAILED: %s, %s, window %u: %llu for %u bytes, %u changes, %u sent; at most %llu\n",
		       state_names[s->state], type_names[type], w.window,
		       (unsigned long long)packet->cost, packet->bytes, packet->changes,
		       packet->sent, (unsigned long long)may);
		failed = true;
	}
	keep(&steepest[s->state][type], part, packet);
	keep(&dearest[s->state][type], packet->cost, packet);
}

/* Several runs of a sequence are alike: of each of its packets, the least time counts. */
static void note_time(enum type type, struct worst *packet, bool last)
{
	uint64_t *time = &least[packet_number++ % (OPS * 64)];

	if (*time == 0 || packet->cost < *time)
		*time = packet->cost;
	packet->cost = *time;
	if (last)
		keep(&dearest[packet->sequence.state][type], packet->cost, packet);
}

static bool last_run;

static void input(enum type type, const struct sequence *s, const uint8_t *bytes, uint32_t length)
{
	struct rxw_buf *buf = rxw_buf_get_small(w.pool, length);
	struct rxw_jumbo jumbo = {0};
	struct rxw_rxrun run;
	uint64_t cost, left = w.left, left_bytes = w.left_bytes;
	struct worst packet;
	uint32_t at = 0;

	if (buf == NULL)
		abort();
	memcpy(buf->data, bytes, length);
	release_ended();
	if (measuring)
		take_image(&before);
	cost = cost_now();
	while (rxw_run_next(buf, &w.path, length, length, &at, &jumbo, &run, &w.stats) == 1)
		rxw_pconn_input(&w.conn.p, &run, &w.out);
	rxw_pconn_batch_end(&w.conn.p, true, &w.out);
	host_settle((struct host *)&w);
	cost = cost_now() - cost;
	release_ended();
	rxw_buf_unref(buf);
	if (!measuring)
		return;
	packet = (struct worst){.cost = cost,
				.bytes = length,
				.changes = changes_since(&before),
				.sent = (uint32_t)(w.left - left),
				.sent_bytes = (uint32_t)(w.left_bytes - left_bytes),
				.sequence = *s};
	if (cost_is_time)
		note_time(type, &packet, last_run);
	else
		note(type, &packet);
}

static uint32_t header(uint8_t *to, unsigned type, uint32_t seq, unsigned flags)
{
	struct rxw_header h = {
		.epoch = EPOCH,
		.cid = CID,
		.call = w.conn.p.number[0] != 0 ? w.conn.p.number[0] : 1,
		.seq = seq,
		.serial = w.serial++,
		.type = (uint8_t)type,
		.flags = (uint8_t)(flags | (w.conn.p.client ? 0 : RXW_CLIENT_INITIATED)),
		.service = SERVICE};

	rxw_header_put(to, &h);
	return RXW_HEADER_SIZE;
}

static void data(const struct sequence *s, uint32_t seq, unsigned flags)
{
	uint8_t packet[RXW_HEADER_SIZE + PAYLOAD] = {0};

	header(packet, RXW_DATA, seq, flags);
	input(T_DATA, s, packet, sizeof(packet));
}

static uint8_t pattern_of(const struct op *o, uint32_t i)
{
	switch (o->pattern % 6) {
	case 0:
		return 0;
	case 1:
		return 0xff;
	case 2:
		return i % 2 ? 0xff : 0;
	case 3:
		return i % 2 ? 0 : 0xff;
	case 4:
		return (uint8_t)rxw_prng(&random_state);
	default:
		return i % 64 ? 0xff : 0;
	}
}

static void ack(const struct sequence *s, const struct op *o)
{
	static uint8_t packet[RXW_ACK_MAX_SIZE + RXW_ACK_TABLES_MOST * RXW_ACK_TABLE];
	static uint8_t table[RXW_ACK_TABLE], more[RXW_ACK_TABLES_MOST * RXW_ACK_TABLE];
	struct rxw_pcall *p = the_call();
	uint32_t sent = p != NULL ? p->tx.nxt - p->tx.una : 0, size;
	struct rxw_ack a = {.first = (p != NULL ? p->tx.una : 1) +
				     (o->a % 8 == 7 ? o->a / 8 % (sent + 1) : 0),
			    .serial = w.conn.p.serial - o->b % 64,
			    .reason = (uint8_t)(1 + o->reason % 9),
			    .acks = table,
			    .more = more,
			    .base = 1,
			    .max_mtu = 1444,
			    .if_mtu = 1444,
			    .rwind = w.window,
			    .jumbo_max = 1,
			    .extended = true};
	unsigned flags = RXW_EXTENDED_ACK;

	if (p != NULL)
		sent = p->tx.nxt - a.first;
	for (uint32_t i = 0; i < sizeof(table); i++)
		table[i] = pattern_of(o, i);
	for (uint32_t i = 0; i < sizeof(more); i++)
		more[i] = pattern_of(o, i);
	a.previous = a.first + sent - 1;
	a.count = rxw_min32(sent, 1 + o->b % 255);
	if (o->kind == ACK_TABLES || o->kind == ACK_PART)
		a.count = rxw_min32(sent, RXW_TABLE_PACKETS);
	if (o->kind == ACK_TABLES && sent > RXW_TABLE_PACKETS)
		a.tables = (uint8_t)rxw_min32((sent - 1) / RXW_TABLE_PACKETS, RXW_ACK_TABLES_MOST);
	if (o->kind == ACK_PART && sent > 6 * RXW_TABLE_PACKETS) {
		a.base = (uint8_t)(1 + o->a % (sent / RXW_TABLE_PACKETS));
		a.tables = (uint8_t)rxw_min32(1 + o->b % 4,
					      (sent - 1) / RXW_TABLE_PACKETS - a.base + 1);
		a.part = a.tables > 0 ? rxw_min32(sent - a.base * RXW_TABLE_PACKETS,
						  a.tables * RXW_TABLE_PACKETS)
				      : 0;
	}
	if (o->kind == ACK_SMALL && a.count < sent && o->pattern % 3 != 0)
		a.previous = a.first + a.count - 1;
	/* Plain ones have no tail. */
	if (o->kind == ACK_SMALL && a.previous - a.first < RXW_MAX_ACKS && o->a % 16 == 3)
		a.extended = false, flags = 0;
	for (uint32_t i = 0; a.count < RXW_MAX_ACKS && i < a.count; i++)
		table[i] &= 1;
	size = header(packet, RXW_ACK, 0,
		      flags | (o->kind == ACK_SMALL ? o->a & RXW_REQUEST_ACK : 0));
	size += (uint32_t)rxw_ack_put(packet + size, &a);
	input(T_ACK, s, packet, size);
}

static void plain(const struct sequence *s, enum type type, unsigned rx_type, uint32_t body,
		  unsigned flags)
{
	uint8_t packet[RXW_HEADER_SIZE + 1400] = {0};
	uint32_t size = header(packet, rx_type, 0, flags);

	rxw_put32(packet + size, 7);
	input(type, s, packet, size + body);
}

static void ping(const struct sequence *s)
{
	uint8_t packet[RXW_ACK_MAX_SIZE], table[1] = {0};
	const struct rxw_pcall *p = the_call();
	struct rxw_ack a = {.first = p != NULL ? p->tx.una : 1,
			    .reason = RXW_ACK_PING,
			    .acks = table,
			    .base = 1,
			    .max_mtu = 1444,
			    .if_mtu = 1444,
			    .rwind = w.window,
			    .jumbo_max = 1,
			    .extended = true};
	uint32_t size = header(packet, RXW_ACK, 0, RXW_REQUEST_ACK | RXW_EXTENDED_ACK);

	size += (uint32_t)rxw_ack_put(packet + size, &a);
	input(T_PING, s, packet, size);
}

/* --- the application and the clock --- */

static void pass(uint64_t ns)
{
	struct rxw_pcall *p = the_call();

	w.out.now += ns;
	if (rxw_pconn_deadline(&w.conn.p) <= w.out.now)
		rxw_pconn_timer(&w.conn.p, &w.out);
	if (p != NULL && rxw_pcall_deadline(p) <= w.out.now) {
		host_hold(p);
		rxw_pcall_timer(p, &w.out);
		host_settle((struct host *)&w);
		host_drop(p);
	}
	host_settle((struct host *)&w);
}

static void write_some(struct rxw_pcall *p, unsigned packets)
{
	uint32_t size = RXW_HEADER_SIZE + PAYLOAD;
	struct rxw_txrun run = {
		.stride = (uint16_t)size, .last_size = (uint16_t)size, .count = (uint16_t)packets};

	run.buf = rxw_buf_get_small(w.pool, packets * size);
	if (run.buf == NULL)
		abort();
	memset(run.buf->data, 0, packets * size);
	run.data = run.buf->data;
	if (rxw_pcall_push(p, &run, &w.out) != 0)
		rxw_buf_unref(run.buf);
}

static void read_some(struct rxw_pcall *p)
{
	struct rxw_rxpiece piece[8];
	unsigned n = rxw_pcall_take(p, piece, 8);
	uint32_t packets = 0;

	for (unsigned i = 0; i < n; i++) {
		packets += piece[i].count;
		rxw_buf_unref(piece[i].buf);
	}
	if (packets > 0)
		rxw_pcall_consumed(p, packets, &w.out);
}

/* --- states --- */

static void begin_world(bool client)
{
	struct rxw_params params = host_params();
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(7001)};

	memset(&w, 0, sizeof(w));
	in.sin_addr.s_addr = htonl(0x0a000001);
	rxw_addr_set(&w.path.peer, (struct sockaddr *)&in, sizeof(in));
	params.window = 65535;
	params.wide_memory = params.call_memory = 1 << 30;
	params.conn_memory = params.peer_memory = 1 << 30;
	params.sendq_high = 1 << 20;
	host_init((struct host *)&w, &ops, &params, 1 << 30, 1 << 20, 64);
	w.out.now = RXW_SEC;
	w.serial = 1;
	host_conn_init((struct host *)&w, &w.conn, &w.path, EPOCH, CID, SERVICE,
		       &rxw_security_null_class, client);
	rxw_peer_set_validated(w.conn.p.peer, w.out.now);
}

static void end_world(void)
{
	struct rxw_pcall *p = the_call();

	if (p != NULL) {
		host_hold(p);
		rxw_pcall_fail(p, RXW_USER_ABORT, RXW_ORIGIN_LOCAL, false, &w.out);
		rxw_pcall_finish(p, &w.out);
		host_settle((struct host *)&w);
		host_drop(p);
	}
	release_ended();
	rxw_pconn_close(&w.conn.p, &w.out);
	host_settle((struct host *)&w);
	rxw_pconn_fini(&w.conn.p, w.out.now);
	host_free((struct host *)&w);
}

/* A reply, or a request of the client, fills the window of the peer. */
static void fill_window(const struct sequence *s)
{
	struct rxw_pcall *p = the_call();

	/* The peer offers its window. */
	ack(s, &(struct op){.kind = ACK_SMALL, .pattern = 1, .reason = RXW_ACK_IDLE - 1});
	p->tx.window = w.window;
	p->tx.edge = p->tx.una + w.window;
	p->tx.cc.max = p->tx.cc.cwnd = p->tx.cc.ssthresh = 65535;
	while (p->tx.nxt - p->tx.una < w.window) {
		uint32_t n = p->tx.nxt;

		/* Bursts of different sizes, and many of one packet. */
		write_some(p, draw(3) ? 1 : 1 + draw(45));
		rxw_pcall_flush(p, &w.out);
		send_bursts(p, 1000);
		host_settle((struct host *)&w);
		w.out.now += 1000;
		if (p->tx.nxt == n)
			abort();
	}
	p->tx.flush_to = p->tx.end;
}

/* A call of the peer, whose first packet was read. */
static void begin_call(const struct sequence *s, bool last)
{
	struct rxw_pcall *p;

	data(s, 1, last ? RXW_LAST_PACKET : 0);
	read_some(the_call());
	w.conn.p.rx.wide_heard = true;
	p = the_call();
	p->rx.window = w.window;
	p->rx.edge = p->rx.next + w.window + 64;
}

static void make_gaps(const struct sequence *s)
{
	uint32_t n = w.window / 2 - 1, *order = calloc(n, sizeof(*order));

	for (uint32_t i = 0; i < n; i++)
		order[i] = 3 + 2 * i;
	for (uint32_t i = n; i > 1; i--) {
		uint32_t j = draw(i), x = order[i - 1];

		order[i - 1] = order[j];
		order[j] = x;
	}
	/* The last of the window first: the table does not grow later. */
	data(s, the_call()->rx.edge - 1, 0);
	for (uint32_t i = 0; i < n; i++)
		data(s, order[i], 0);
	free(order);
}

static void make_state(const struct sequence *s, uint32_t window)
{
	static const struct op split = {.kind = ACK_TABLES, .pattern = 2, .reason = 2};
	static const struct op all = {.kind = ACK_TABLES, .pattern = 1, .reason = 2};
	static const struct op none = {.kind = ACK_TABLES, .reason = 2};

	begin_world(s->state == ST_CLIENT);
	w.window = window;
	if (s->state == ST_NEW)
		return;
	if (s->state == ST_CLIENT) {
		struct host_call *call = host_call_new((struct host_conn *)&w.conn);

		if (rxw_pconn_begin(&w.conn.p, &call->p, w.out.now) != 0)
			abort();
	} else {
		begin_call(s, s->state >= ST_SENDING);
	}
	if (s->state == ST_GAPS)
		make_gaps(s);
	if (s->state >= ST_SENDING && s->state != ST_OVER)
		fill_window(s);
	w.out.now += 20 * RXW_MS;
	if (s->state >= ST_SPLIT && s->state <= ST_DROPPED)
		ack(s, &split);
	if (s->state == ST_AGAIN || s->state == ST_DROPPED) {
		the_call()->tx.cc.cwnd = 65535;
		the_call()->tx.recovery.recovery_end = 0;
		send_bursts(the_call(), w.window);
		w.out.now += 20 * RXW_MS;
	}
	if (s->state == ST_DROPPED) {
		ack(s, &all);
		ack(s, &none);
	}
	if (s->state == ST_OVER) {
		write_some(the_call(), 1);
		rxw_pcall_finish(the_call(), &w.out);
		host_settle((struct host *)&w);
	}
}

/* --- sequences --- */

static void run_op(const struct sequence *s, const struct op *o)
{
	static const uint64_t spans[] = {RXW_MS / 1000, RXW_MS, 20 * RXW_MS, 300 * RXW_MS};
	struct rxw_pcall *p = the_call();
	uint32_t next = p != NULL ? p->rx.next : 1;

	switch (o->kind) {
	case ACK_SMALL:
	case ACK_TAIL:
	case ACK_TABLES:
	case ACK_PART:
		ack(s, o);
		break;
	case DATA_NEXT:
		for (uint32_t i = 0; i < 1 + o->b % 4u; i++)
			data(s, next + i, o->reason & RXW_REQUEST_ACK);
		break;
	case DATA_JUMP:
		for (uint32_t i = 0; i < 1 + o->b % 4u; i++)
			data(s, next + (o->a + i * o->b) % (w.window + 2),
			     o->reason & RXW_REQUEST_ACK);
		break;
	case PING:
		ping(s);
		break;
	case ACKALL:
		plain(s, T_ACKALL, RXW_ACKALL, 0, 0);
		break;
	case BUSY:
		plain(s, T_BUSY, RXW_BUSY, 0, 0);
		break;
	case ABORT:
		plain(s, T_ABORT, RXW_ABORT, 4, 0);
		break;
	case CHALLENGE:
		plain(s, T_CHALLENGE, RXW_CHALLENGE, o->a % 1400, 0);
		break;
	case RESPONSE:
		plain(s, T_RESPONSE, RXW_RESPONSE, o->a % 1400, 0);
		break;
	case OTHER:
		plain(s, T_OTHER, 9 + o->a % 20, o->b % 1400, 0);
		break;
	case PASS:
		pass(spans[o->a % 4]);
		break;
	case SEND:
		if (p != NULL)
			send_bursts(p, 1 + o->b % 64u);
		host_settle((struct host *)&w);
		break;
	case READ:
		if (p != NULL && rxw_pcall_live(p))
			read_some(p);
		host_settle((struct host *)&w);
	}
}

/* Returns how steep its worst packet was. */
static uint64_t run(const struct sequence *s, uint32_t window)
{
	random_state = s->seed;
	found = 0;
	packet_number = 0;
	make_state(s, window);
	measuring = true;
	for (unsigned i = 0; i < s->count; i++)
		for (unsigned k = 0; k <= s->op[i].times; k++)
			run_op(s, &s->op[i]);
	measuring = false;
	end_world();
	return found;
}

static struct op random_op(uint64_t *random)
{
	/* The first kinds are those with state; ABORT ends a call. */
	uint8_t kind = (uint8_t)(rxw_prng(random) % (rxw_prng(random) % 4 ? DATA_JUMP + 1 : KINDS));

	if (kind == ABORT && rxw_prng(random) % 4)
		kind = SEND;
	return (struct op){
		.kind = kind,
		.reason = (uint8_t)rxw_prng(random),
		.pattern = (uint8_t)rxw_prng(random),
		.times = (uint8_t)(rxw_prng(random) % 3),
		.a = (uint16_t)rxw_prng(random),
		.b = (uint16_t)rxw_prng(random),
	};
}

static struct sequence random_sequence(uint64_t *random, unsigned state)
{
	struct sequence s = {.seed = rxw_prng(random) | 1,
			     .state = (uint8_t)state,
			     .count = (uint8_t)(1 + rxw_prng(random) % OPS)};

	for (unsigned i = 0; i < s.count; i++)
		s.op[i] = random_op(random);
	return s;
}

/* A sequence that differs in one place. */
static struct sequence change(const struct sequence *old, uint64_t *random)
{
	struct sequence s = *old;
	unsigned i = (unsigned)(rxw_prng(random) % s.count);

	switch (rxw_prng(random) % 4) {
	case 0:
		s.op[i] = random_op(random);
		break;
	case 1:
		s.op[i].pattern = (uint8_t)rxw_prng(random);
		s.op[i].b = (uint16_t)rxw_prng(random);
		break;
	case 2:
		s.op[i].a = (uint16_t)rxw_prng(random);
		s.op[i].reason = (uint8_t)rxw_prng(random);
		break;
	default:
		if (s.count < OPS)
			s.op[s.count++] = random_op(random);
	}
	return s;
}

static double seconds_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* In each state: a third at random, then changes to the worst. Returns the number of sequences. */
static unsigned long search(uint64_t seed, uint32_t window, double seconds)
{
	double begin = seconds_now();
	unsigned long n = 0;
	uint64_t random = seed;

	for (unsigned state = 0; state < STATES; state++) {
		struct sequence best = random_sequence(&random, state);
		uint64_t value = run(&best, window);

		for (unsigned i = 0;; i++, n++) {
			double part = seconds > 0
					      ? (seconds_now() - begin) * STATES / seconds - state
					      : (double)i / TRIES;
			struct sequence s = part < 0.33 ? random_sequence(&random, state)
							: change(&best, &random);
			uint64_t got;

			if (part >= 1)
				break;
			got = run(&s, window);
			if (got > value) {
				value = got;
				best = s;
			}
		}
	}
	return n;
}

/* The worst sequences with a larger window: the same bounds apply. */
static void enlarge(uint32_t window)
{
	static struct worst small[STATES][TYPES];

	memcpy(small, steepest, sizeof(small));
	for (unsigned state = 0; state < STATES; state++)
		for (unsigned t = 0; t < TYPES; t++)
			if (small[state][t].value > 0)
				run(&small[state][t].sequence, window);
}

/* --- results --- */

static void print_table(uint32_t window)
{
	printf("| window %u |", window);
	for (unsigned t = 0; t < TYPES; t++)
		printf(" %s |", type_names[t]);
	printf("\n");
	for (unsigned state = 0; state < STATES; state++) {
		printf("| %s |", state_names[state]);
		for (unsigned t = 0; t < TYPES; t++) {
			const struct worst *x = &dearest[state][t];

			if (x->value == 0)
				printf(" |");
			else if (cost_is_time)
				printf(" %.1f (%u, %u) |", (double)x->cost / 1e3, x->bytes,
				       x->changes + x->sent);
			else
				printf(" %llu (%u, %u) |", (unsigned long long)x->cost, x->bytes,
				       x->changes + x->sent);
		}
		printf("\n");
	}
}

static void print_steepest(void)
{
	for (unsigned t = 0; t < TYPES; t++) {
		const struct worst *x = &steepest[0][t];

		for (unsigned state = 1; state < STATES; state++)
			if (steepest[state][t].value > x->value)
				x = &steepest[state][t];
		if (x->value > 0)
			printf("%s: %.2f of the bound (%s: %llu blocks, %u bytes, %u changes, %u sent)\n",
			       type_names[t], (double)x->value / 1000,
			       state_names[x->sequence.state], (unsigned long long)x->cost,
			       x->bytes, x->changes, x->sent);
	}
}

static bool save(const char *name)
{
	FILE *f = fopen(name, "wb");

	if (f == NULL || fwrite(dearest, sizeof(dearest), 1, f) != 1 || fclose(f) != 0) {
		perror(name);
		return false;
	}
	return true;
}

static bool replay(const char *name, uint32_t window)
{
	static struct worst saved[STATES][TYPES];
	FILE *f = fopen(name, "rb");

	if (f == NULL || fread(saved, sizeof(saved), 1, f) != 1) {
		fprintf(stderr, "%s: not a file of test_cost\n", name);
		return false;
	}
	fclose(f);
	memset(dearest, 0, sizeof(dearest));
	for (unsigned state = 0; state < STATES; state++)
		for (unsigned t = 0; t < TYPES; t++) {
			if (saved[state][t].value == 0)
				continue;
			memset(least, 0, sizeof(least));
			for (unsigned i = 0; i < RUNS; i++) {
				last_run = i == RUNS - 1;
				run(&saved[state][t].sequence, window);
			}
		}
	print_table(window);
	return true;
}

static int usage(const char *name)
{
	fprintf(stderr,
		"usage: %s [--seconds N] [--seed N] [--window PACKETS] [--save FILE]\n"
		"       cost --replay FILE [--window PACKETS]\n",
		name);
	return 2;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"seconds", required_argument, NULL, 's'}, {"seed", required_argument, NULL, 'e'},
		{"window", required_argument, NULL, 'w'},  {"save", required_argument, NULL, 'o'},
		{"replay", required_argument, NULL, 'r'},  {NULL, 0, NULL, 0},
	};
	const char *file = NULL;
	uint32_t window = WINDOW;
	double seconds = 0;
	uint64_t seed = 1;
	unsigned long n;
	bool again = false;
	int o;

	while ((o = getopt_long(argc, argv, "", options, NULL)) != -1)
		switch (o) {
		case 's':
			seconds = atof(optarg);
			break;
		case 'e':
			seed = strtoull(optarg, NULL, 0);
			break;
		case 'w':
			window = rxw_min32((uint32_t)atoi(optarg), 65535);
			break;
		case 'r':
			again = true;
			/* fall through */
		case 'o':
			file = optarg;
			break;
		default:
			return usage(argv[0]);
		}
	if (again)
		return replay(file, window) ? 0 : 1;
	if (cost_is_time || window < 16)
		return usage(argv[0]);
	if (!cost_available()) {
		printf("SKIP: the compiler does not count blocks (-fsanitize-coverage=trace-pc)\n");
		return 77;
	}
	n = search(seed ? seed : 1, window, seconds);
	printf("%lu sequences, seed %llu\n", n, (unsigned long long)seed);
	if (window * LARGER <= 65535)
		enlarge(window * LARGER);
	print_steepest();
	if (seconds > 0)
		print_table(window);
	if (file != NULL && !save(file))
		return 1;
	return failed;
}
