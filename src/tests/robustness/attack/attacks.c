/* SPDX-License-Identifier: BSD-2-Clause */
/* The attacks of rx-protocol 12.3, one packet at a time. */
#include <string.h>

#include "attacker.h"

#define THOUSANDS 10000u
#define RESPONSE  180u /* bytes */

/* A complete small request, on the address's one connection or on a new one. */
static void request(struct shot *s, enum h_op op, uint64_t bytes, uint32_t cid)
{
	s->raw = h_raw_request(s->head, op, cid);
	h_encode_ask(s->head, &(struct h_ask){.op = op, .bytes = bytes});
}

void attack_goodbye(struct shot *s, unsigned from)
{
	memset(&s->raw, 0, sizeof(s->raw));
	request(s, H_PING, 0, 0x70000 + 4 * from);
	s->from = from;
	s->raw.type = RXW_ABORT;
	s->raw.call = s->raw.seq = 0;
	s->raw.flags = RXW_CLIENT_INITIATED;
	s->raw.body = "\0\0\0\1";
	s->raw.size = 4;
}

static void own(struct attacker *a, uint64_t i, struct shot *s, enum h_op op, uint64_t bytes)
{
	s->from = (unsigned)(i % a->addresses);
	request(s, op, bytes, 0x70000 + 4 * s->from);
}

static void fresh(struct attacker *a, uint64_t i, struct shot *s, enum h_op op)
{
	s->from = (unsigned)(i % a->addresses);
	request(s, op, 0, attacker_draw(a) & ~3u);
	s->raw.epoch = attacker_draw(a) | 0x80000000u;
}

/* Turns the packet into an acknowledgement of all packets below `first`. */
static void acknowledge(struct shot *s, uint64_t i, uint32_t first, uint32_t serial,
			unsigned reason, uint32_t window)
{
	struct rxw_ack k = {.first = first, .serial = serial, .reason = (uint8_t)reason,
			    .acks = s->ack, .max_mtu = 1444, .if_mtu = 1444, .rwind = window,
			    .jumbo_max = 1};

	s->raw.type = RXW_ACK;
	s->raw.flags = RXW_CLIENT_INITIATED | RXW_SLOW_START_OK;
	s->raw.seq = 0;
	s->raw.serial = 2 + (uint32_t)i;
	s->raw.size = rxw_ack_put(s->ack, &k);
	s->raw.body = s->ack;
}

/* --- packets of each attack --- */

static const uint8_t types[] = {RXW_ACK, RXW_ABORT, RXW_BUSY, RXW_ACKALL, RXW_RESPONSE};

/* Off path, with the address of an honest client: the epoch, the cid, or both are guessed. */
static void guess(struct attacker *a, uint64_t i, struct shot *s)
{
	s->raw = (struct h_raw){.epoch = attacker_draw(a) | 0x80000000u, .cid = attacker_draw(a),
				.call = 1 + i % 7, .seq = 1, .serial = 1, .type = types[i % 5],
				.service = H_SERVICE, .flags = RXW_CLIENT_INITIATED,
				.body = "\0\0\0\7", .size = 4};
	if (i % 3 == 1)
		s->raw.epoch = a->known_epoch;
	else if (i % 3 == 2)
		s->raw.cid = a->known_cid;
	if (s->raw.epoch == a->known_epoch && (s->raw.cid & ~3u) == a->known_cid)
		s->raw.cid ^= 0x80000000u;
}

static uint64_t guessed(const struct counters *s)
{
	return counter_in(s, "drops.no-connection");
}

/* The ids of an honest client are known, but not its address. */
static void stolen(struct attacker *a, uint64_t i, struct shot *s)
{
	guess(a, 5, s);
	s->from = (unsigned)(i % a->addresses);
	s->raw.epoch = a->known_epoch;
	s->raw.cid = a->known_cid;
	s->raw.call = 1;
	s->raw.type = i % 3 ? types[i % 5] : RXW_DATA;
}

static uint64_t elsewhere(const struct counters *s)
{
	return counter_in(s, "drops.address");
}

/* Replays of a few requests. */
static void replay(struct attacker *a, uint64_t i, struct shot *s)
{
	own(a, i, s, H_PING, 0);
}

/* Replays of an honest client's first call, from its own address. */
static void replay_other(struct attacker *a, uint64_t i, struct shot *s)
{
	own(a, i, s, H_PING, 0);
	s->from = 0;
	s->raw.epoch = a->known_epoch;
	s->raw.cid = a->known_cid;
}

static uint64_t repeated(const struct counters *s)
{
	return counter_in(s, "duplicates") + counter_in(s, "drops.call-number");
}

/* Requests with larger answers, from forged addresses. */
static void reflect(struct attacker *a, uint64_t i, struct shot *s)
{
	static const uint8_t stats[8] = {0, 0, 0, 1};

	own(a, i, s, H_PING, 0);
	s->raw.cid = 0;
	s->raw.call = s->raw.seq = 0;
	s->raw.service = 0;
	s->raw.flags = RXW_CLIENT_INITIATED;
	s->raw.type = i % 2 ? RXW_VERSION : RXW_DEBUG;
	s->raw.body = stats;
	s->raw.size = i % 2 ? 0 : sizeof(stats);
}

static uint64_t answered_or_not(const struct counters *s)
{
	return counter_in(s, "version_answers") + counter_in(s, "debug_answers") +
	       counter_in(s, "drops.rate") + counter_in(s, "drops.access");
}

/* Requests for a large reply, from forged addresses. */
static void reflect_data(struct attacker *a, uint64_t i, struct shot *s)
{
	own(a, i, s, H_SOURCE, 1000000);
}

static uint64_t refused_or_repeated(const struct counters *s)
{
	return counter_in(s, "duplicates") + counter_in(s, "calls_refused") +
	       counter_in(s, "drops.rate");
}

/* Acknowledgements of a reply that was never sent; that ends the call, so the next one begins. */
static void never_sent(struct attacker *a, uint64_t i, struct shot *s)
{
	uint64_t turn = i / a->addresses;

	own(a, i, s, H_SOURCE, 1000000);
	s->raw.call = 1 + (uint32_t)(turn / 2);
	if (turn % 2)
		acknowledge(s, i, 300 + attacker_draw(a) % 100000, attacker_draw(a) % 100,
			    RXW_ACK_IDLE, 255);
}

static uint64_t bad_acks(const struct counters *s)
{
	return 2 * counter_in(s, "drops.bad-ack"); /* and its request */
}

/*
 * A reply of 200 kB, and a new one after 100 acknowledgements; the attacker reads and validates its
 * address.
 */
static bool reading(struct attacker *a, uint64_t i, struct shot *s)
{
	uint64_t turn = i / a->addresses;

	own(a, i, s, H_SOURCE, 200000);
	s->raw.call = 1 + (uint32_t)(turn / 100);
	return turn % 100 && a->seen[s->from].call == s->raw.call;
}

/* Acknowledges packets that may be in flight, to be sent data faster than it reads. */
static void optimist(struct attacker *a, uint64_t i, struct shot *s)
{
	struct seen *k = &a->seen[i % a->addresses];

	if (reading(a, i, s))
		acknowledge(s, i, k->seq + 1 + attacker_draw(a) % 64, k->serial,
			    k->type == RXW_ACK ? RXW_ACK_PING_RESPONSE : RXW_ACK_IDLE, 255);
}

static void shrink(struct attacker *a, uint64_t i, struct shot *s)
{
	struct seen *k = &a->seen[i % a->addresses];

	if (reading(a, i, s))
		acknowledge(s, i, k->type == RXW_DATA ? k->seq + 1 : 1, k->serial,
			    k->type == RXW_ACK ? RXW_ACK_PING_RESPONSE : RXW_ACK_IDLE,
			    255 - (uint32_t)(i / a->addresses) * 51 % 256);
}

/* One byte in each packet, none of them the first: they are queued, and no handler can use them. */
static void fragments(struct attacker *a, uint64_t i, struct shot *s)
{
	own(a, i, s, H_SINK, 0);
	s->raw.flags = RXW_CLIENT_INITIATED;
	s->raw.seq = 2 + (uint32_t)(i / a->addresses) * 8 % 600;
	s->raw.serial = 1 + (uint32_t)i;
	s->raw.size = 1;
}

static uint64_t not_kept(const struct counters *s)
{
	return counter_in(s, "duplicates") + counter_in(s, "drops.window") +
	       counter_in(s, "drops.memory") + counter_in(s, "drops.duplicate");
}

/* Each packet opens a new client's connection. */
static void flood(struct attacker *a, uint64_t i, struct shot *s)
{
	fresh(a, i, s, H_PING);
}

static uint64_t unvalidated_met(const struct counters *s)
{
	return counter_in(s, "unvalidated_connections") + counter_in(s, "drops.limit");
}

/* The same for a service that does not exist. */
static void no_service(struct attacker *a, uint64_t i, struct shot *s)
{
	fresh(a, i, s, H_PING);
	s->raw.service = 7777;
}

static uint64_t services(const struct counters *s)
{
	return counter_in(s, "drops.service");
}

/* Each packet begins a call that never goes on: its last packet is missing, or its first. */
static void half_open(struct attacker *a, uint64_t i, struct shot *s)
{
	fresh(a, i, s, H_SINK);
	s->raw.flags = RXW_CLIENT_INITIATED;
	s->raw.seq = i % 3 ? 1 : 2 + i % 300;
}

static uint64_t unvalidated_or_window_met(const struct counters *s)
{
	return unvalidated_met(s) + counter_in(s, "drops.window");
}

/* BUSY, and ABORT of calls, on existing connections and on others. */
static void storm(struct attacker *a, uint64_t i, struct shot *s)
{
	uint64_t turn = i / a->addresses;

	own(a, i, s, H_PING, 0);
	if (!turn)
		return;
	s->raw.type = turn % 2 ? RXW_BUSY : RXW_ABORT;
	s->raw.call = 2 + turn % 3;
	s->raw.seq = 0;
	s->raw.body = "\xff\xff\xff\xff";
	s->raw.size = i % 5;
	if (turn % 7 == 0)
		s->raw.cid ^= 0x40000000u;
}

static uint64_t wrong_way(const struct counters *s)
{
	return counter_in(s, "drops.direction") + counter_in(s, "drops.call-number") +
	       counter_in(s, "drops.no-connection");
}

/* A large reply, acknowledged one packet at a time; the reader validates its address. */
static void slow_reader(struct attacker *a, uint64_t i, struct shot *s)
{
	struct seen *k = &a->seen[i % a->addresses];

	own(a, i, s, H_SOURCE, 10u << 20);
	if (i >= a->addresses)
		acknowledge(s, i, k->type == RXW_DATA ? k->seq + 1 : 1, k->serial,
			    k->type == RXW_ACK ? RXW_ACK_PING_RESPONSE : RXW_ACK_IDLE, 1);
}

/*
 * Begins the next call of the channel while the last one runs, again and again; reads the replies,
 * too.
 */
static void next_call(struct attacker *a, uint64_t i, struct shot *s)
{
	struct seen *k = &a->seen[i % a->addresses];
	uint64_t turn = i / a->addresses;

	own(a, i, s, H_SOURCE, 1000000);
	s->raw.call = 1 + (uint32_t)(turn / 2);
	if (turn % 2 && k->type == RXW_ACK)
		acknowledge(s, i, 1, k->serial, RXW_ACK_PING_RESPONSE, 255);
}

/* ACKs of a large reply that are too short, or announce more entries than they have. */
static void cut_acks(struct attacker *a, uint64_t i, struct shot *s)
{
	struct seen *k = &a->seen[i % a->addresses];

	own(a, i, s, H_SOURCE, 1000000);
	if (i < a->addresses)
		return;
	acknowledge(s, i, 1, k->serial, i % 2 ? RXW_ACK_IDLE : RXW_ACK_PING, 255);
	s->raw.size = i / a->addresses % 18;
}

static uint64_t cut(const struct counters *s)
{
	return counter_in(s, "drops.bad-ack");
}

/* A RESPONSE of the right size with random content. */
static void response(struct attacker *a, struct shot *s)
{
	for (unsigned k = 0; k < RESPONSE; k += 4)
		rxw_put32(s->ack + k, attacker_draw(a));
	rxw_put32(s->ack, 2); /* rxkad's version */
	s->raw.type = RXW_RESPONSE;
	s->raw.flags = RXW_CLIENT_INITIATED;
	s->raw.call = s->raw.seq = 0;
	s->raw.security = a->known_security;
	s->raw.body = s->ack;
	s->raw.size = RESPONSE;
}

/* Off path: for a guessed connection, or for one of an honest client. */
static void forge(struct attacker *a, uint64_t i, struct shot *s)
{
	if (i % 2)
		stolen(a, i, s);
	else
		guess(a, i, s);
	s->from = (unsigned)(i % a->addresses);
	response(a, s);
}

static uint64_t fits_nothing(const struct counters *s)
{
	return counter_in(s, "drops.address") + counter_in(s, "drops.no-connection");
}

/* On the path of an honest client that was authenticated long ago. */
static void forge_on_path(struct attacker *a, uint64_t i, struct shot *s)
{
	guess(a, i, s);
	s->raw.epoch = a->known_epoch;
	s->raw.cid = a->known_cid | (i & 3);
	response(a, s);
}

static uint64_t not_asked_for(const struct counters *s)
{
	return counter_in(s, "drops.state");
}

const struct attack attacks[] = {
	{.name = "guess",
	 .title = "off-path injection, epoch or cid guessed",
	 .make = guess,
	 .met = guessed,
	 .spoofs = true},
	{.name = "stolen",
	 .title = "ids of an honest client, another address",
	 .make = stolen,
	 .met = elsewhere,
	 .silent = true},
	{.name = "replay",
	 .title = "replay of served requests",
	 .make = replay,
	 .met = repeated,
	 .harmless = ADDRESSES,
	 .silent = true},
	{.name = "replay-other",
	 .title = "replay of an honest client's request",
	 .make = replay_other,
	 .met = repeated,
	 .spoofs = true},
	{.name = "reflect",
	 .title = "VERSION and DEBUG from 10,000 forged addresses",
	 .make = reflect,
	 .met = answered_or_not,
	 .addresses = THOUSANDS,
	 .silent = true},
	{.name = "reflect-data",
	 .title = "large replies to forged addresses",
	 .make = reflect_data,
	 .met = refused_or_repeated,
	 .harmless = ADDRESSES,
	 .silent = true},
	{.name = "never-sent",
	 .title = "acknowledgements of packets never sent",
	 .make = never_sent,
	 .met = bad_acks,
	 .harmless = 2 * ADDRESSES,
	 .rate = 5000,
	 .silent = true},
	{.name = "optimist",
	 .title = "optimistic acknowledgements",
	 .make = optimist,
	 .rate = 5000},
	{.name = "shrink", .title = "windows that shrink", .make = shrink, .rate = 5000},
	{.name = "fragments",
	 .title = "fragments of one byte",
	 .make = fragments,
	 .met = not_kept,
	 .harmless = 255 * ADDRESSES,
	 .silent = true},
	{.name = "flood",
	 .title = "1 M connections in 10 s from 10,000 addresses",
	 .make = flood,
	 .met = unvalidated_met,
	 .addresses = THOUSANDS,
	 .silent = true},
	{.name = "no-service",
	 .title = "connections to a service that does not exist",
	 .make = no_service,
	 .met = services,
	 .addresses = THOUSANDS,
	 .silent = true},
	{.name = "storm",
	 .title = "BUSY and ABORT storm",
	 .make = storm,
	 .met = wrong_way,
	 .harmless = ADDRESSES,
	 .silent = true},
	{.name = "slow-reader", .title = "64 slow readers", .make = slow_reader, .rate = 2000},
	{.name = "slow-readers",
	 .title = "600 slow readers",
	 .make = slow_reader,
	 .addresses = 600,
	 .rate = 5000},
	{.name = "next-call",
	 .title = "the next call while the last one runs",
	 .make = next_call,
	 .rate = 20000},
	{.name = "cut-acks",
	 .title = "truncated ACKs",
	 .make = cut_acks,
	 .met = cut,
	 .harmless = ADDRESSES,
	 .silent = true},
	{.name = "half-open",
	 .title = "half-open calls from 10,000 addresses",
	 .make = half_open,
	 .met = unvalidated_or_window_met,
	 .addresses = THOUSANDS,
	 .silent = true},
	{.name = "forge-rxkad",
	 .title = "RESPONSEs forged off path, clients by rxkad crypt",
	 .make = forge,
	 .met = fits_nothing,
	 .silent = true,
	 .security = "rxkad-crypt"},
	{.name = "forge-rxgk",
	 .title = "RESPONSEs forged off path, clients by rxgk crypt",
	 .make = forge,
	 .met = fits_nothing,
	 .silent = true,
	 .security = "rxgk-crypt"},
	{.name = "path-rxkad",
	 .title = "RESPONSEs forged on the path of a client by rxkad crypt",
	 .make = forge_on_path,
	 .met = not_asked_for,
	 .spoofs = true,
	 .security = "rxkad-crypt"},
	{.name = "path-rxgk",
	 .title = "RESPONSEs forged on the path of a client by rxgk crypt",
	 .make = forge_on_path,
	 .met = not_asked_for,
	 .spoofs = true,
	 .security = "rxgk-crypt"},
};
const unsigned attack_count = sizeof(attacks) / sizeof(attacks[0]);

const struct attack *attack_find(const char *name)
{
	for (unsigned i = 0; i < attack_count; i++)
		if (!strcmp(attacks[i].name, name))
			return &attacks[i];
	return NULL;
}
