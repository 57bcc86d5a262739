/* SPDX-License-Identifier: BSD-2-Clause */
/* Simulation: virtual clock, events in order of time, the two directions of the network. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"
#include "tests/support/test_class.h"

#define BURST (20 * RXW_MS)
#define BAD   (4 * RXW_SEC)
#define USUAL 1500u /* bytes of a datagram */

uint64_t sim_draw(struct sim *sim, uint64_t below)
{
	return below == 0 ? 0 : rxw_prng(&sim->prng) % below;
}

bool sim_chance(struct sim *sim, double probability)
{
	if (probability <= 0)
		return false;
	return (double)(rxw_prng(&sim->prng) >> 11) / 9007199254740992.0 < probability;
}

void sim_fail(struct sim *sim, const char *format, ...)
{
	va_list args;

	if (sim->failure[0] != '\0')
		return;
	va_start(args, format);
	vsnprintf(sim->failure, sizeof(sim->failure), format, args);
	va_end(args);
}

static bool before(const struct sim_event *a, const struct sim_event *b)
{
	return a->at != b->at ? a->at < b->at : a->order < b->order;
}

static void lane_push(struct sim_lane *l, const struct sim_event *event)
{
	if (l->last - l->first == l->size) {
		unsigned size = l->size ? 2 * l->size : 256;
		struct sim_event *larger = malloc(size * sizeof(*larger));

		if (larger == NULL)
			abort();
		for (unsigned i = l->first; i != l->last; i++)
			larger[i & (size - 1)] = l->at[i & (l->size - 1)];
		free(l->at);
		l->at = larger;
		l->size = size;
	}
	l->at[l->last++ & (l->size - 1)] = *event;
}

static const struct sim_event *lane_first(const struct sim_lane *l)
{
	return l->first != l->last ? &l->at[l->first & (l->size - 1)] : NULL;
}

/* The event after next is fetched from memory: it was written a round trip ago. */
static void lane_pop(struct sim_lane *l)
{
	const uint8_t *bytes = l->at[(l->first + 2) & (l->size - 1)].more;

	l->first++;
	if (l->last - l->first >= 2)
		for (unsigned i = 0; i < 3; i++)
			__builtin_prefetch(bytes + 64 * i);
}

/* The lane of an arrival that comes after all that are in it, or NULL. */
static struct sim_lane *lane_of(struct sim *sim, const struct sim_event *event)
{
	struct sim_lane *l = sim->lane;

	if (event->kind == SIM_ARRIVAL)
		l += event->subject == &sim->client;
	else if (event->kind == SIM_REF_DATA)
		l += 2;
	else if (event->kind == SIM_REF_ACK)
		l += 3;
	else
		return NULL;
	if (l->first != l->last && l->at[(l->last - 1) & (l->size - 1)].at > event->at)
		return NULL;
	return l;
}

static void heap_push(struct sim *sim, const struct sim_event *event)
{
	unsigned i = sim->events++;

	if (sim->events > sim->events_size) {
		sim->events_size = sim->events_size ? sim->events_size * 2 : 1024;
		sim->heap = realloc(sim->heap, sim->events_size * sizeof(*sim->heap));
		if (sim->heap == NULL)
			abort();
	}
	for (; i > 0 && before(event, &sim->heap[(i - 1) / 2]); i = (i - 1) / 2)
		sim->heap[i] = sim->heap[(i - 1) / 2];
	sim->heap[i] = *event;
}

void sim_at(struct sim *sim, uint64_t at, enum sim_event_kind kind, void *subject, void *more)
{
	struct sim_event event = {at < sim->now ? sim->now : at, ++sim->order, kind, subject, more};
	struct sim_lane *lane = lane_of(sim, &event);

	if (lane != NULL)
		lane_push(lane, &event);
	else
		heap_push(sim, &event);
}

static void heap_pop(struct sim *sim)
{
	const struct sim_event *last = &sim->heap[--sim->events];
	unsigned child, i = 0;

	while ((child = 2 * i + 1) < sim->events) {
		if (child + 1 < sim->events && before(&sim->heap[child + 1], &sim->heap[child]))
			child++;
		if (!before(&sim->heap[child], last))
			break;
		sim->heap[i] = sim->heap[child];
		i = child;
	}
	sim->heap[i] = *last;
}

bool sim_next_event(struct sim *sim, struct sim_event *event)
{
	const struct sim_event *first = sim->events != 0 ? &sim->heap[0] : NULL;
	struct sim_lane *lane = NULL;

	for (unsigned i = 0; i < SIM_LANES; i++) {
		const struct sim_event *other = lane_first(&sim->lane[i]);

		if (other != NULL && (first == NULL || before(other, first))) {
			first = other;
			lane = &sim->lane[i];
		}
	}
	if (first == NULL)
		return false;
	*event = *first;
	if (lane != NULL)
		lane_pop(lane);
	else
		heap_pop(sim);
	sim->now = event->at;
	sim->events_handled++;
	return true;
}

/*
 * Datagrams of usual sizes are used again, the latest first. A sanitizer would not see that one is used too late.
 */
#ifndef __SANITIZE_ADDRESS__
static struct sim_datagram *unused;
#endif

static struct sim_datagram *datagram_get(uint32_t length)
{
	struct sim_datagram *d;

#ifndef __SANITIZE_ADDRESS__
	if (length <= USUAL) {
		d = unused;
		if (d != NULL) {
			unused = d->next;
			return d;
		}
		length = USUAL;
	}
#endif
	d = malloc(sizeof(*d) + length);
	if (d == NULL)
		abort();
	return d;
}

void sim_datagram_free(struct sim_datagram *d)
{
#ifndef __SANITIZE_ADDRESS__
	if (d->length <= USUAL) {
		d->next = unused;
		unused = d;
		return;
	}
#endif
	free(d);
}

static struct sim_datagram *datagram_new(struct sim *sim, struct sim_node *from,
					 const uint8_t *bytes, uint32_t length, unsigned ecn)
{
	struct sim_datagram *d = datagram_get(length);

	d->from = from;
	d->to = from->client ? &sim->server : &sim->client;
	d->length = length;
	d->port = 0;
	d->ecn = (uint8_t)ecn;
	memcpy(d->bytes, bytes, length);
	return d;
}

static void deliver(struct sim *sim, struct sim_node *from, const uint8_t *bytes, uint32_t length,
		    unsigned ecn, uint64_t at)
{
	struct sim_datagram *d = datagram_new(sim, from, bytes, length, ecn);

	if (sim->setup.apart && length >= RXW_HEADER_SIZE) {
		uint32_t i = (rxw_get32(bytes + 4) - SIM_CID) / 4 % SIM_APART;

		d->port = from->client ? (uint16_t)i : 0;
		at += sim->setup.further[i];
	}
	sim_at(sim, at, SIM_ARRIVAL, d->to, d);
}

static void trace(const struct sim *sim, const struct sim_node *from, const uint8_t *bytes,
		  uint32_t length)
{
	struct rxw_header h;
	struct rxw_ack a;

	rxw_header_get(bytes, length, &h);
	printf("%12.6f %s %s cid %08x call %u seq %u serial %u flags %02x len %u",
	       (double)sim->now / 1e9, from->client ? "->" : "<-", rxw_packet_type_name(h.type),
	       h.cid, h.call, h.seq, h.serial, h.flags, length);
	if (h.type == RXW_ACK && rxw_ack_get(bytes + 28, length - 28, 0, &a))
		printf(" %s first %u n %u prev %u serial %u rwind %u",
		       rxw_ack_reason_name(a.reason), a.first, a.count, a.previous, a.serial,
		       a.rwind);
	printf("\n");
}

/* Whether it is lost in transit, apart from queue and MTU. */
static bool lost(struct sim *sim, struct sim_link *link)
{
	uint64_t now = sim->now;

	if (link->hole)
		return true;
	link->bad &= now < link->bad_until;
	if (link->to_bad > 0 && sim_chance(sim, link->bad ? link->to_good : link->to_bad)) {
		link->bad = !link->bad;
		link->bad_until = now + BAD;
	}
	if (link->bad && sim_chance(sim, link->bad_loss))
		return true;
	if (now < link->burst_until || sim_chance(sim, link->loss)) {
		if (now >= link->burst_until && sim_chance(sim, link->burst))
			link->burst_until = now + BURST;
		return true;
	}
	if (sim_chance(sim, link->corrupt)) {
		link->corrupted++;
		return true;
	}
	return false;
}

/* The queue marks a datagram, or drops it (false). `start`: when it leaves the queue. */
static bool through_queue(struct sim_link *link, uint64_t start, uint64_t waited, unsigned *ecn)
{
	uint64_t left = waited * (link->rate / 1000) / 1000000;
	bool hit = link->step != 0 && waited > link->step && *ecn != RXW_ECN_NOT;

	if (link->codel != 0)
		hit |= codel_hits(&link->codel_state, link->codel, 20 * link->codel, start, waited,
				  left);
	if (!hit)
		return true;
	if (*ecn == RXW_ECN_NOT)
		return false;
	*ecn = RXW_ECN_CE;
	link->marked++;
	return true;
}

/* False: it is lost because it is ECN-capable. */
static bool spoil_ecn(const struct sim_link *link, unsigned *ecn)
{
	switch (link->ecn) {
	case SIM_ECN_PASSES:
		break;
	case SIM_ECN_BLEACHED:
		*ecn = RXW_ECN_NOT;
		break;
	case SIM_ECN_CE:
		*ecn = *ecn != RXW_ECN_NOT ? RXW_ECN_CE : RXW_ECN_NOT;
		break;
	case SIM_ECN_CE_ALL:
		*ecn = RXW_ECN_CE;
		break;
	case SIM_ECN_ECT1:
		*ecn = *ecn == RXW_ECN_ECT0 ? RXW_ECN_ECT1 : *ecn;
		break;
	case SIM_ECN_LOST:
		return *ecn == RXW_ECN_NOT;
	}
	return true;
}

static bool too_large(const struct sim_link *link, uint32_t length, bool fragment)
{
	return length > link->mtu && (!fragment || link->hidden);
}

unsigned sim_link_pass(struct sim *sim, struct sim_link *link, uint32_t length, bool fragment,
		       unsigned *ecn, uint64_t arrivals[2])
{
	uint64_t at = sim->now;

	link->sent++;
	if (too_large(link, length, fragment) || lost(sim, link) || !spoil_ecn(link, ecn)) {
		link->dropped++;
		return 0;
	}
	if (link->rate != 0) {
		uint64_t start = link->busy_until > at ? link->busy_until : at;

		if ((start - at) * (link->rate / 1000) / 1000000 > link->queue) {
			link->dropped++;
			link->overflowed++;
			return 0;
		}
		if (!through_queue(link, start, start - at, ecn)) {
			link->dropped++;
			return 0;
		}
		link->busy_until = start + (uint64_t)(length + 28) * 1000000000ull / link->rate;
		at = link->busy_until;
	}
	at += link->delay;
	if (link->bunch != 0)
		at = (at / link->bunch + 1) * link->bunch;
	if (sim_chance(sim, link->reorder))
		at += 1 + sim_draw(sim, link->jitter);
	else if (at < link->last_arrival)
		at = link->last_arrival;
	else
		link->last_arrival = at;
	link->delivered++;
	arrivals[0] = at;
	if (!sim_chance(sim, link->duplicate))
		return 1;
	arrivals[1] = at + sim_draw(sim, link->jitter + 1);
	return 2;
}

/* A datagram enters a direction of the emulator. Returns whether MTU and ECN bits let it. */
static bool enter_way(struct sim *sim, struct sim_link *link, struct sim_node *from,
		      const uint8_t *bytes, uint32_t length, bool fragment, unsigned ecn)
{
	if (too_large(link, length, fragment) || link->hole || !spoil_ecn(link, &ecn)) {
		link->sent++;
		link->dropped++;
		return false;
	}
	sim_way_enter(sim, link, datagram_new(sim, from, bytes, length, ecn));
	return true;
}

/* Records the outcome of a client's datagram for the call whose DATA it carries. */
static void note_fate(struct sim *sim, const uint8_t *bytes, uint32_t length, bool fits,
		      bool passed)
{
	uint32_t cid = length >= RXW_HEADER_SIZE ? rxw_get32(bytes + 4) : 0;
	struct sim_conn *c = sim->client.conns;

	if (length < RXW_HEADER_SIZE || bytes[20] != RXW_DATA)
		return;
	while (c != NULL && c->p.cid != (cid & ~3u))
		c = c->next;
	if (c != NULL && c->p.channel[cid & 3] != NULL &&
	    c->p.channel[cid & 3]->number == rxw_get32(bytes + 8)) {
		struct sim_call *call = (struct sim_call *)c->p.channel[cid & 3];

		call->tried += fits;
		call->passed += passed;
	}
}

void sim_transmit(struct sim *sim, struct sim_node *from, const uint8_t *bytes, uint32_t length,
		  bool fragment, unsigned ecn)
{
	struct sim_link *link = from->client ? &sim->setup.up : &sim->setup.down;
	uint64_t arrivals[2];
	unsigned copies;

	if (sim->setup.trace && length >= 28)
		trace(sim, from, bytes, length);
	if (sim->setup.tap != NULL && sim->setup.tap(sim, from, bytes, length)) {
		link->sent++;
		link->dropped++;
		return;
	}
	if (sim->setup.marked != NULL && ecn != RXW_ECN_NOT)
		sim->setup.marked(sim, from);
	if (link->way != NULL)
		copies = enter_way(sim, link, from, bytes, length, fragment, ecn) ? 1 : 0;
	else
		copies = sim_link_pass(sim, link, length, fragment, &ecn, arrivals);
	if (from->client)
		note_fate(sim, bytes, length, !too_large(link, length, fragment), copies > 0);
	for (unsigned i = 0; link->way == NULL && i < copies; i++)
		deliver(sim, from, bytes, length, ecn, arrivals[i]);
}

void sim_plan(struct sim_setup *setup, double ms, enum sim_what what, unsigned of, int64_t value)
{
	if (setup->change_count == SIM_CHANGES)
		abort();
	setup->changes[setup->change_count++] =
		(struct sim_change){(uint64_t)(ms * 1e6), what, of, value, NULL};
}

static void change_link(struct sim *sim, struct sim_link *link, const struct sim_change *c)
{
	switch (c->what) {
	case SIM_SET_DELAY:
		link->delay = (uint64_t)c->value;
		link->last_arrival = 0;
		break;
	case SIM_SET_RATE:
		link->rate = (uint64_t)c->value;
		break;
	case SIM_SET_MTU:
		link->mtu = (uint32_t)c->value;
		break;
	case SIM_SET_LOSS:
		link->loss = (double)c->value / 1e6;
		break;
	case SIM_SET_ECN:
		link->ecn = (enum sim_ecn)c->value;
		break;
	case SIM_SET_OPTIONS:
		sim_way_change(sim, link, c->options);
		break;
	default:
		link->hole = c->value != 0;
	}
}

static void abort_calls(struct sim_node *node, int32_t code)
{
	for (struct sim_conn *c = node->conns; c != NULL; c = c->next)
		for (unsigned i = 0; i < 4; i++)
			if (c->p.channel[i] != NULL)
				rxw_pcall_fail(c->p.channel[i], code, RXW_ORIGIN_LOCAL, true,
					       sim_out(node));
	sim_settle(node);
}

static void change_node(struct sim *sim, struct sim_node *node, const struct sim_change *c)
{
	if (c->what == SIM_PAUSE) {
		node->paused_until = sim->now + (uint64_t)c->value;
	} else if (c->what == SIM_STALL) {
		node->stalled_until = sim->now + (uint64_t)c->value;
	} else if (c->what == SIM_SILENCE) {
		node->silent_until = sim->now + (uint64_t)c->value;
	} else {
		node->clock_ahead += (uint64_t)c->value;
		sim_node_clock_stepped(node);
	}
}

void sim_change(struct sim *sim, const struct sim_change *c)
{
	bool node = c->what == SIM_PAUSE || c->what == SIM_STALL || c->what == SIM_SILENCE ||
		    c->what == SIM_CLOCK_STEP;

	if (c->what == SIM_MARK) {
		memcpy(sim->call_marks, sim->call_bytes,
		       sim->call_count * sizeof(*sim->call_marks));
		return;
	}
	if (c->what == SIM_ABORT) {
		abort_calls(&sim->client, (int32_t)c->value);
		return;
	}
	for (unsigned i = 0; i < 2; i++) {
		if ((c->of & (i ? SIM_DOWN : SIM_UP)) == 0)
			continue;
		if (node)
			change_node(sim, i ? &sim->server : &sim->client, c);
		else
			change_link(sim, i ? &sim->setup.down : &sim->setup.up, c);
	}
	if (sim->setup.trace)
		printf("%12.6f the world changes: %d of %u to %lld\n", (double)sim->now / 1e9,
		       (int)c->what, c->of, (long long)c->value);
}

void sim_default(struct sim_setup *s)
{
	memset(s, 0, sizeof(*s));
	s->up = s->down = (struct sim_link){.delay = 50 * 1000, .jitter = RXW_MS, .mtu = 65507};
	s->client = s->server = host_params();
	s->security = &rxw_security_null_class;
	if (sim_class_common() != NULL)
		sim_class_use(s, sim_class_common());
	s->connections = s->channels = s->calls = 1;
	s->request = 100;
	s->reply = 1 << 20;
	s->batch = 32;
	s->gro = true;
	s->max_run = 45;
	s->max_burst = 45;
	s->receive_wait = 20 * 1000;
	s->wake_wait = 20 * 1000;
	s->limit = 1000 * RXW_SEC;
}

static double pick(uint64_t *state, const double *of, unsigned n)
{
	return of[rxw_prng(state) % n];
}

static void random_link(struct sim_link *l, uint64_t *r)
{
	static const double losses[] = {0, 0, 0.001, 0.01, 0.03, 0.05, 0.1};
	static const double doubles[] = {0, 0, 0.001, 0.02};
	static const double orders[] = {0, 0, 0.01, 0.1, 0.5};
	static const double delays[] = {1e3, 1e4, 5e4, 2e5, 1e6, 1e7, 5e7, 1.5e8};
	static const double rates[] = {0, 0, 1e6, 1e7, 1e8, 1e9};

	l->loss = pick(r, losses, 7);
	l->duplicate = pick(r, doubles, 4);
	l->reorder = pick(r, orders, 5);
	l->delay = (uint64_t)pick(r, delays, 8);
	l->jitter = l->delay / (1 + rxw_prng(r) % 4) + 1000;
	l->rate = (uint64_t)pick(r, rates, 6);
	l->queue = 20000 + rxw_prng(r) % 400000;
	l->burst = rxw_prng(r) % 3 == 0 ? 0.2 : 0;
}

/* Paths that drop large packets or carry larger ones than usual; little memory. */
static void random_limits(struct sim_setup *s, uint64_t *r)
{
	uint64_t kind = rxw_prng(r) % 10;

	if (kind == 0) {
		s->up.mtu = s->down.mtu = 1250 + (uint32_t)(rxw_prng(r) % 190);
	} else if (kind == 1) {
		s->client.mtu_ceiling = s->server.mtu_ceiling =
			1500 + (uint32_t)(rxw_prng(r) % 7500);
		s->up.mtu = s->down.mtu = 1444 + (uint32_t)(rxw_prng(r) % 7500);
	} else if (kind == 2) {
		s->client.call_memory = s->server.call_memory = 70000 + rxw_prng(r) % 300000;
	} else if (kind == 3) {
		s->client.conn_memory = s->server.conn_memory = 200000 + rxw_prng(r) % 300000;
	} else if (kind == 4) {
		s->client.unread_packets = s->server.unread_packets = (uint16_t)(rxw_prng(r) % 20);
	}
}

void sim_random(struct sim_setup *s, uint64_t seed)
{
	static const double windows[] = {255, 255, 255, 128, 64, 32, 32, 16, 8, 5, 2, 1};
	static const double sizes[] = {1, 100, 1416, 5000, 1e5, 4e5, 1e6};
	uint64_t r = seed * 0x9e3779b97f4a7c15ull + 1;

	sim_default(s);
	s->client.cc = s->server.cc = seed % 2 ? &rxw_cc_reno : &rxw_cc_rate;
	random_link(&s->up, &r);
	random_link(&s->down, &r);
	s->client.window = (uint16_t)pick(&r, windows, 12);
	s->server.window = (uint16_t)pick(&r, windows, 12);
	s->client.initial_window = s->client.window < 16 ? s->client.window : 16;
	s->server.initial_window = s->server.window < 16 ? s->server.window : 16;
	if (rxw_prng(&r) % 3 == 0 && s->server_security == NULL)
		s->security = &rxw_security_test_class;
	s->connections = 1 + (unsigned)(rxw_prng(&r) % 4);
	s->channels = 1 + (unsigned)(rxw_prng(&r) % 4);
	s->calls = 1 + (unsigned)(rxw_prng(&r) % 3);
	s->request = (uint64_t)pick(&r, sizes, 7);
	s->reply = (uint64_t)pick(&r, sizes, 7);
	s->vary = rxw_prng(&r) % 2;
	s->batch = 1 + (unsigned)(rxw_prng(&r) % 64);
	s->gro = rxw_prng(&r) % 4 != 0;
	s->max_run = 1 + (unsigned)(rxw_prng(&r) % 45);
	s->max_burst = 1 + (unsigned)(rxw_prng(&r) % 45);
	s->receive_wait = rxw_prng(&r) % 3 == 0 ? RXW_MS : 20000;
	s->wake_wait = rxw_prng(&r) % 3 == 0 ? 2 * RXW_MS : 20000;
	s->read_rate = rxw_prng(&r) % 4 == 0 ? 200000 + rxw_prng(&r) % 20000000 : 0;
	s->send_failure = rxw_prng(&r) % 4 == 0 ? 0.05 : 0;
	s->send_wait = rxw_prng(&r) % 2 == 0 ? 100000 : 0;
	s->verdict_wait = rxw_prng(&r) % 2 == 0 ? RXW_MS : 0;
	s->auth_wait = seed % 4 == 0 ? 20 * RXW_MS : RXW_MS / 2;
	s->auth_drop = seed % 5 == 0 ? 0.2 : 0;
	random_limits(s, &r);
	/* One packet in ten is lost, four times in a row. No call may time out because of that. */
	s->client.dead = s->server.dead = 60 * RXW_SEC;
	/* The total work stays small enough for hundreds of seeds. */
	uint64_t calls = (uint64_t)s->connections * s->channels * s->calls;

	while (calls * (s->request + s->reply) > 3000000) {
		s->request = s->request / 2 + 1;
		s->reply = s->reply / 2 + 1;
	}
	if (s->up.rate != 0 && s->up.rate < 10000000)
		s->request = s->request / 4 + 1;
	if (s->down.rate != 0 && s->down.rate < 10000000)
		s->reply = s->reply / 4 + 1;
}

/* Outages, flaps, pauses and similar events, all too short to end a call. */
static void random_change(struct sim_setup *s, uint64_t *r, uint64_t i)
{
	static const unsigned within[] = {20, 200, 2000};
	double ms = (double)(rxw_prng(r) % within[i % 3]) + 0.001 * (double)(rxw_prng(r) % 1000);
	unsigned of = 1 + (unsigned)(rxw_prng(r) % 3);
	int64_t lasts = 1 + (int64_t)(rxw_prng(r) % (i % 4 == 0 ? 4000 : 300)); /* ms */

	switch (rxw_prng(r) % 7) {
	case 0:
		sim_plan(s, ms, SIM_SET_HOLE, of, 1);
		sim_plan(s, ms + (double)lasts, SIM_SET_HOLE, of, 0);
		break;
	case 1: /* round trip */
		sim_plan(s, ms, SIM_SET_DELAY, of, lasts * 1000000 / 4);
		sim_plan(s, ms + (double)lasts, SIM_SET_DELAY, of, (int64_t)s->up.delay);
		break;
	case 2: /* a permanent black hole for larger packets */
		sim_plan(s, ms, SIM_SET_MTU, of, 1252 + (int64_t)(rxw_prng(r) % 240));
		break;
	case 3:
		sim_plan(s, ms, SIM_PAUSE, of, lasts * 1000000);
		break;
	case 4:
		/* Some small steps, as seen by threads that read the clock rarely. */
		sim_plan(s, ms, SIM_CLOCK_STEP, of,
			 (lasts & 1 ? -1 : 1) * lasts * (lasts & 6 ? 1000000 : 10000));
		break;
	case 5:
		sim_plan(s, ms, SIM_SET_RATE, of, 200000 + (int64_t)(rxw_prng(r) % 20000000));
		break;
	default:
		sim_plan(s, ms, SIM_SET_LOSS, of, 500000);
		sim_plan(s, ms + (double)lasts, SIM_SET_LOSS, of, 10000);
	}
}

void sim_random_changes(struct sim_setup *s, uint64_t seed)
{
	uint64_t r = seed * 0xd6e8feb86659fd93ull + 1, n = 1 + rxw_prng(&r) % 4;

	for (uint64_t i = 0; i < n; i++)
		random_change(s, &r, i);
	for (unsigned i = 0; i < 2; i++) {
		struct sim_link *l = i ? &s->down : &s->up;

		if (rxw_prng(&r) % 3 == 0)
			l->corrupt = 0.01;
		if (rxw_prng(&r) % 3 == 0) {
			l->to_bad = 0.002;
			l->to_good = 0.1;
			l->bad_loss = 0.5;
		}
	}
	if (rxw_prng(&r) % 3 == 0)
		s->receive_bytes = 200000;
}
