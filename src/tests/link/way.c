/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One direction of an emulated link. Packets wait in `queue` until the line is free, and travel in
 * `line`, which is ordered by arrival. Those that must not delay others travel in `loose`, a heap.
 *
 * The queue is advanced whenever something is asked of the link, with the times at which the line
 * becomes free. So results do not depend on how often or how late that happens.
 */
#include <stdlib.h>

#include "codel.h"
#include "random.h"
#include "way.h"

#define WALK_STEP   10000000u /* ns between the steps of LINK_WALK */
#define LINE_LIMIT  4000000u  /* packets on the way; more are dropped */
#define SECOND	    1000000000u
#define WITHOUT_END UINT64_MAX

/* Packets in order, in a ring. */
struct ring {
	struct link_packet *at;
	uint32_t first, count, size;
};

struct travelling {
	struct link_packet packet;
	uint64_t number; /* order of equal times */
};

struct link_way {
	struct link_options o;
	struct link_owner owner;
	struct link_counters n;
	struct ring queue, line;
	struct travelling *loose;
	uint32_t loose_count, loose_size;
	uint64_t loose_number;
	uint64_t queued_bytes;
	uint64_t free_at, remainder; /* when the line is free; the rest of that division */
	uint64_t last_due;	     /* of packets that keep the order */
	uint64_t random;
	struct codel codel;
	bool bad; /* Gilbert-Elliott */
	uint64_t bad_until;
	double walk; /* share of the jitter */
	uint64_t walked_at;
};

/* --- containers --- */

static struct link_packet *ring_at(const struct ring *r, uint32_t i)
{
	return &r->at[(r->first + i) % r->size];
}

static bool ring_push(struct ring *r, const struct link_packet *p)
{
	if (r->count == r->size) {
		uint32_t size = r->size ? 2 * r->size : 256;
		struct link_packet *larger = malloc(size * sizeof(*larger));

		if (larger == NULL)
			return false;
		for (uint32_t i = 0; i < r->count; i++)
			larger[i] = *ring_at(r, i);
		free(r->at);
		*r = (struct ring){larger, 0, r->count, size};
	}
	r->count++;
	*ring_at(r, r->count - 1) = *p;
	return true;
}

static struct link_packet ring_pop(struct ring *r)
{
	struct link_packet p = r->at[r->first];

	r->first = (r->first + 1) % r->size;
	r->count--;
	return p;
}

static bool sooner(const struct travelling *a, const struct travelling *b)
{
	return a->packet.at != b->packet.at ? a->packet.at < b->packet.at : a->number < b->number;
}

static void swap(struct travelling *a, struct travelling *b)
{
	struct travelling t = *a;

	*a = *b;
	*b = t;
}

static bool heap_push(struct link_way *w, const struct link_packet *p)
{
	uint32_t i = w->loose_count;

	if (w->loose_count == w->loose_size) {
		uint32_t size = w->loose_size ? 2 * w->loose_size : 256;
		struct travelling *larger = realloc(w->loose, size * sizeof(*larger));

		if (larger == NULL)
			return false;
		w->loose = larger;
		w->loose_size = size;
	}
	w->loose[w->loose_count++] = (struct travelling){*p, w->loose_number++};
	for (; i != 0 && sooner(&w->loose[i], &w->loose[(i - 1) / 2]); i = (i - 1) / 2)
		swap(&w->loose[i], &w->loose[(i - 1) / 2]);
	return true;
}

static struct link_packet heap_pop(struct link_way *w)
{
	struct link_packet first = w->loose[0].packet;

	w->loose[0] = w->loose[--w->loose_count];
	for (uint32_t i = 0;;) {
		uint32_t least = i;

		for (uint32_t c = 2 * i + 1; c <= 2 * i + 2 && c < w->loose_count; c++)
			if (sooner(&w->loose[c], &w->loose[least]))
				least = c;
		if (least == i)
			return first;
		swap(&w->loose[i], &w->loose[least]);
		i = least;
	}
}

/* --- the line --- */

static void drop(struct link_way *w, const struct link_packet *p, uint64_t *counter)
{
	++*counter;
	w->owner.drop(w->owner.arg, p);
}

/* Moves between the states of the Gilbert-Elliott model. Returns the loss in the new one. */
static double loss_now(struct link_way *w, uint64_t now)
{
	const struct link_options *o = &w->o;
	bool runs = o->burst > 1 && o->loss < 1;
	double enter = runs ? o->loss / (1 - o->loss) / o->burst : o->bad_enter;
	double leave = runs ? 1 / o->burst : o->bad_leave;

	if (!w->bad && link_chance(&w->random, enter)) {
		w->bad = true;
		w->bad_until = o->burst_limit != 0 ? now + o->burst_limit : WITHOUT_END;
	} else if (w->bad && (link_chance(&w->random, leave) || now >= w->bad_until)) {
		w->bad = false;
	}
	if (runs)
		return w->bad ? 1 : 0;
	return w->bad ? o->bad_loss : o->loss;
}

static bool is_lost(struct link_way *w, uint64_t now)
{
	double loss = loss_now(w, now);

	return w->o.hole || link_chance(&w->random, loss);
}

static uint64_t jitter_now(struct link_way *w, uint64_t now)
{
	if (w->o.jitter == 0)
		return 0;
	if (w->o.jitter_shape == LINK_UNIFORM)
		return (uint64_t)(link_share(&w->random) * (double)w->o.jitter);
	if (now > w->walked_at + 1000u * WALK_STEP)
		w->walked_at = now - 1000u * WALK_STEP;
	for (; w->walked_at + WALK_STEP <= now; w->walked_at += WALK_STEP) {
		w->walk += (link_share(&w->random) - 0.5) / 4;
		if (w->walk < 0)
			w->walk = -w->walk;
		if (w->walk > 1)
			w->walk = 2 - w->walk;
	}
	return (uint64_t)(w->walk * (double)w->o.jitter);
}

static void travel(struct link_way *w, const struct link_packet *p)
{
	const struct ring *l = &w->line;
	bool kept = false;

	if (w->line.count + w->loose_count < LINE_LIMIT) {
		if (l->count == 0 || p->at >= ring_at(l, l->count - 1)->at)
			kept = ring_push(&w->line, p);
		else
			kept = heap_push(w, p);
	}
	if (!kept)
		drop(w, p, &w->n.overflowed);
}

/* The last bit of a packet has been sent at `at`. */
static void sent(struct link_way *w, struct link_packet *p, uint64_t at)
{
	const struct link_options *o = &w->o;
	bool twice;

	if (is_lost(w, at)) {
		drop(w, p, &w->n.lost);
		return;
	}
	if (link_chance(&w->random, o->corrupt)) {
		p->spoil = link_draw(&w->random) | 1;
		w->n.corrupted++;
	}
	p->at = at + o->delay + jitter_now(w, at);
	twice = link_chance(&w->random, o->duplicate);
	if (link_chance(&w->random, o->reorder)) {
		p->at += 1 + (uint64_t)(link_share(&w->random) * (double)o->reorder_by);
		w->n.reordered++;
	} else if (p->at < w->last_due) {
		p->at = w->last_due;
	} else {
		w->last_due = p->at;
	}
	if (twice) {
		w->owner.copy(w->owner.arg, p);
		w->n.duplicated++;
		travel(w, p);
	}
	travel(w, p);
}

/* --- the queue --- */

static uint64_t start_of(const struct link_way *w, const struct link_packet *head)
{
	return head->at > w->free_at ? head->at : w->free_at;
}

static uint64_t sending_time(const struct link_way *w, uint32_t length, uint64_t *remainder)
{
	uint64_t bits;

	if (w->o.rate == 0)
		return 0;
	bits = (uint64_t)length * 8 * SECOND + *remainder;
	*remainder = bits % w->o.rate;
	return bits / w->o.rate;
}

/* Whether the discipline lets a packet pass, which may mark it. */
static bool passes(struct link_way *w, struct link_packet *p, uint64_t now)
{
	uint64_t sojourn = now - p->at;
	bool hit = false;

	if (w->o.rate == 0)
		return true;
	if (w->o.discipline == LINK_CODEL)
		hit = codel_hits(&w->codel, w->o.target, w->o.interval, now, sojourn,
				 w->queued_bytes);
	else if (w->o.discipline == LINK_STEP)
		hit = p->ect && sojourn > w->o.step;
	if (!hit)
		return true;
	if (!p->ect || !(w->o.ecn || w->o.discipline == LINK_STEP))
		return false;
	p->ce = true;
	w->n.marked++;
	return true;
}

/* Sends what the line had room for until `now`. */
static void advance(struct link_way *w, uint64_t now)
{
	while (w->queue.count != 0 && start_of(w, ring_at(&w->queue, 0)) <= now) {
		struct link_packet p = ring_pop(&w->queue);
		uint64_t start = start_of(w, &p);

		w->queued_bytes -= p.length;
		if (!passes(w, &p, start)) {
			drop(w, &p, &w->n.dropped);
			continue;
		}
		if (start > w->free_at)
			w->remainder = 0;
		w->free_at = start + sending_time(w, p.length, &w->remainder);
		sent(w, &p, w->free_at);
	}
}

static bool has_room(const struct link_way *w, uint32_t length)
{
	const struct link_options *o = &w->o;

	if (w->queue.count == 0)
		return true;
	return (o->queue_packets == 0 || w->queue.count < o->queue_packets) &&
	       (o->queue_bytes == 0 || w->queued_bytes + length <= o->queue_bytes);
}

/* --- interface --- */

struct link_way *link_way_new(const struct link_options *options, uint64_t seed,
			      const struct link_owner *owner)
{
	struct link_way *w = calloc(1, sizeof(*w));

	if (w == NULL)
		return NULL;
	w->o = *options;
	w->owner = *owner;
	w->random = seed;
	w->walk = link_share(&w->random);
	return w;
}

void link_way_free(struct link_way *w)
{
	if (w == NULL)
		return;
	while (w->queue.count != 0 || w->line.count != 0) {
		struct ring *r = w->queue.count != 0 ? &w->queue : &w->line;
		struct link_packet p = ring_pop(r);

		w->owner.drop(w->owner.arg, &p);
	}
	for (uint32_t i = 0; i < w->loose_count; i++)
		w->owner.drop(w->owner.arg, &w->loose[i].packet);
	free(w->queue.at);
	free(w->line.at);
	free(w->loose);
	free(w);
}

void link_way_change(struct link_way *w, const struct link_options *options, uint64_t now)
{
	advance(w, now);
	/* On a shorter way, later packets overtake. */
	if (options->delay != w->o.delay)
		w->last_due = 0;
	w->o = *options;
}

void link_way_enter(struct link_way *w, const struct link_packet *packet, uint64_t now)
{
	struct link_packet p = *packet;

	advance(w, now);
	p.at = now;
	p.ce = false;
	p.spoil = 0;
	w->n.entered++;
	w->n.entered_bytes += p.length;
	if (!has_room(w, p.length) || !ring_push(&w->queue, &p)) {
		drop(w, &p, &w->n.overflowed);
		return;
	}
	w->queued_bytes += p.length;
	if (w->queued_bytes > w->n.queue_most)
		w->n.queue_most = w->queued_bytes;
	advance(w, now);
}

uint64_t link_way_next(const struct link_way *w)
{
	uint64_t next = WITHOUT_END, remainder = 0;

	if (w->line.count != 0)
		next = ring_at(&w->line, 0)->at;
	if (w->loose_count != 0 && w->loose[0].packet.at < next)
		next = w->loose[0].packet.at;
	if (w->queue.count != 0) {
		const struct link_packet *head = ring_at(&w->queue, 0);
		uint64_t at =
			start_of(w, head) + sending_time(w, head->length, &remainder) + w->o.delay;

		if (at < next)
			next = at;
	}
	return next;
}

bool link_way_leave(struct link_way *w, struct link_packet *packet, uint64_t now)
{
	bool loose;

	advance(w, now);
	loose = w->loose_count != 0 &&
		(w->line.count == 0 || w->loose[0].packet.at < ring_at(&w->line, 0)->at);
	if (loose ? w->loose[0].packet.at > now
		  : w->line.count == 0 || ring_at(&w->line, 0)->at > now)
		return false;
	*packet = loose ? heap_pop(w) : ring_pop(&w->line);
	w->n.left++;
	w->n.left_bytes += packet->length;
	return true;
}

const struct link_counters *link_way_counters(const struct link_way *w)
{
	return &w->n;
}
