/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Old peers see no difference but the offer of wide windows (rx-wide-windows, rules 1 and 7). Each
 * exchange runs twice: our end has a window of 255 packets, and then a wide one. The other end
 * knows only plain ACKs, and sends at most 32 packets as OpenAFS does, or 128 as Linux does. Every
 * datagram of both ends must be the same, at the same time, apart from two fields of our ACKs: the
 * flag, and the second octet after the table.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

#define WIDE	  8192u
#define PLAIN_ACK (RXW_HEADER_SIZE + 18u + 3u + 16u) /* bytes without its table */

struct record {
	uint64_t at;
	bool ours;
	uint32_t length;
	uint8_t *bytes;
};

struct trace {
	struct record *record;
	size_t count, room;
};

struct exchange {
	const char *name;
	uint64_t request, reply;
	unsigned calls, channels;
	unsigned lost;	/* each direction loses every so manieth datagram; 0 = none */
	uint64_t stall; /* ns without a reader: the connection is idle, but for PINGs */
};

static const struct exchange exchanges[] = {
	{"fetch", 100, 3 << 20, 2, 1, 0, 0},	    {"store", 3 << 20, 100, 2, 1, 0, 0},
	{"small calls", 60, 400, 40, 3, 0, 0},	    {"fetch, losses", 100, 1 << 20, 2, 1, 23, 0},
	{"store, losses", 1 << 20, 100, 2, 1, 23, 0}, {"both, many losses", 300000, 300000, 3, 2, 7, 0},
	{"idle store", 1 << 20, 1 << 16, 1, 2, 0, 40 * RXW_SEC},
	{"idle, losses", 1 << 19, 1 << 19, 1, 2, 11, 40 * RXW_SEC},
};

static struct sim sim;
static struct trace *tracing;
static bool our_client;
static unsigned lost_each, sent_by[2];

static bool record(struct sim *s, const struct sim_node *from, const uint8_t *bytes, uint32_t length)
{
	struct trace *t = tracing;
	struct record *r;

	if (t->count == t->room) {
		t->room = t->room ? t->room * 2 : 4096;
		t->record = realloc(t->record, t->room * sizeof(*t->record));
		if (t->record == NULL)
			abort();
	}
	r = &t->record[t->count++];
	*r = (struct record){.at = s->now, .ours = from->client == our_client, .length = length};
	r->bytes = malloc(length);
	if (r->bytes == NULL)
		abort();
	memcpy(r->bytes, bytes, length);
	return lost_each != 0 && ++sent_by[from->client] % lost_each == 0;
}

/* Packets marked for ECN are for those that count them. */
static void on_marked(struct sim *s, const struct sim_node *from)
{
	(void)from;
	sim_fail(s, "a packet is marked");
}

static void drop_trace(struct trace *t)
{
	for (size_t i = 0; i < t->count; i++)
		free(t->record[i].bytes);
	free(t->record);
	*t = (struct trace){0};
}

static bool run(const struct exchange *e, unsigned ours, unsigned theirs, uint64_t seed,
		struct trace *t)
{
	struct sim_setup setup;
	struct rxw_params *mine, *other;
	bool good;

	sim_default(&setup);
	mine = our_client ? &setup.client : &setup.server;
	other = our_client ? &setup.server : &setup.client;
	mine->window = (uint16_t)ours;
	mine->wide_memory = ours > RXW_MAX_ACKS ? ours * 4096u : 0;
	mine->cc_wide = ours > RXW_MAX_ACKS ? &rxw_cc_rate : NULL;
	mine->ecn = ours > RXW_MAX_ACKS;
	other->window = (uint16_t)theirs;
	setup.marked = on_marked;
	setup.request = e->request;
	setup.reply = e->reply;
	setup.calls = e->calls;
	setup.channels = e->channels;
	setup.stall = e->stall;
	setup.up.delay = setup.down.delay = 2 * RXW_MS; /* long enough for wide windows */
	setup.up.rate = setup.down.rate = 20000000;
	setup.up.queue = setup.down.queue = 1 << 20;
	setup.tap = record;
	tracing = t;
	lost_each = e->lost;
	memset(sent_by, 0, sizeof(sent_by));
	good = sim_run(&sim, &setup, seed);
	if (!good)
		printf("%s: %s\n", e->name, sim.failure);
	sim_free(&sim);
	return good;
}

/* Of our ACK: the offset of the octets after the table; 0: another packet. */
static uint32_t octets_of(const struct record *r)
{
	uint32_t n;

	if (!r->ours || r->length < PLAIN_ACK || r->bytes[20] != RXW_ACK)
		return 0;
	n = r->bytes[RXW_HEADER_SIZE + 17];
	return r->length < PLAIN_ACK + n ? 0 : RXW_HEADER_SIZE + 18 + n;
}

/* What differs; NULL = nothing but the offer. Overwrites the fields of the offer. */
static const char *difference(struct record *narrow, struct record *wide, unsigned *offers)
{
	uint32_t at = octets_of(narrow);

	if (narrow->ours != wide->ours || narrow->length != wide->length)
		return "another packet";
	if (narrow->at != wide->at)
		return "another time";
	if (narrow->ours && narrow->bytes[20] == RXW_ACK) {
		if (at == 0 || octets_of(wide) != at)
			return "the form of an ACK";
		if (narrow->bytes[21] & RXW_EXTENDED_ACK || narrow->bytes[at] != 0 ||
		    narrow->bytes[at + 1] != 0 || narrow->bytes[at + 2] != 0)
			return "an offer in spite of the window of 255";
		if (!(wide->bytes[21] & RXW_EXTENDED_ACK) || wide->bytes[at] != 0 ||
		    wide->bytes[at + 1] != 4 || wide->bytes[at + 2] != 0)
			return "an ACK with another offer";
		++*offers;
		wide->bytes[21] &= (uint8_t)~RXW_EXTENDED_ACK;
		wide->bytes[at + 1] = 0;
	}
	return memcmp(narrow->bytes, wide->bytes, narrow->length) ? "bytes" : NULL;
}

/* Adds the number of our ACKs to *offered. */
static bool compare(const struct exchange *e, unsigned theirs, struct trace t[2], size_t *offered)
{
	const char *what = t[0].count != t[1].count ? "the number of packets" : NULL;
	unsigned offers = 0;
	size_t i;

	for (i = 0; what == NULL && i < t[0].count; i++)
		what = difference(&t[0].record[i], &t[1].record[i], &offers);
	printf("%s: %s, our %s, their window %u: %zu and %zu packets, %u offers",
	       what ? "FAILED" : "ok", e->name, our_client ? "client" : "server", theirs,
	       t[0].count, t[1].count, offers);
	if (what != NULL)
		printf("; packet %zu: %s", i, what);
	printf("\n");
	*offered += offers;
	return what == NULL;
}

int main(void)
{
	static const unsigned windows[] = {32, 128};
	unsigned failed = 0;
	size_t offered = 0;

	for (unsigned i = 0; i < sizeof(exchanges) / sizeof(exchanges[0]); i++)
		for (unsigned k = 0; k < 4; k++) {
			const struct exchange *e = &exchanges[i];
			struct trace t[2] = {{0}};

			our_client = k & 1;
			failed += !(run(e, RXW_MAX_ACKS, windows[k / 2], 7 + i, &t[0]) &&
				    run(e, WIDE, windows[k / 2], 7 + i, &t[1]) &&
				    compare(e, windows[k / 2], t, &offered));
			drop_trace(&t[0]);
			drop_trace(&t[1]);
		}
	return failed == 0 && offered > 0 ? 0 : 1;
}
