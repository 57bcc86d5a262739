/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Simulation: a reference for comparison, an idealised TCP with CUBIC (RFC 9438) that shares no
 * code with src/rx. Its segments have the size of our packets. The receiver sets no limit and
 * acknowledges each segment at once, each ACK reports all received segments, and numbers are
 * floating point.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

#define PAYLOAD	 1416u
#define DATAGRAM 1444u
#define ACK_SIZE 52u
#define C	 0.4
#define BETA	 0.7
#define DUPTHRESH 3u

enum state {
	FLIGHT,
	ACKED,
	LOST
};

struct segment {
	uint64_t sent_at;
	uint64_t order; /* of the latest transmission */
	enum state state;
	bool arrived;
	bool again; /* sent more than once */
};

struct sim_ref {
	struct segment *segment;
	uint64_t *log; /* receiver: segments in order of arrival */
	uint64_t segments_size, log_size;
	uint64_t logged, in_order; /* receiver */
	uint64_t known;		   /* the sender's position in the log */
	uint64_t una, nxt, order, highest; /* sender; highest: latest order acknowledged */
	uint64_t flight, lost;
	uint64_t lost_from;	/* no segment below is LOST */
	uint64_t recovery_order; /* a loss of an order up to here belongs to the same event */
	uint64_t base_at, timer_at, epoch;
	double cwnd, ssthresh, w_max, w_est, prior, k, srtt, rttvar;
	unsigned backoff;
	bool probed;
};

struct on_wire {
	struct sim_ref *ref;
	uint64_t segment, order; /* ACK: that of the segment that caused it */
	uint64_t logged;
};

static void arm(struct sim *sim, struct sim_ref *r);

static void grow(void **array, uint64_t *size, uint64_t index, size_t each)
{
	uint64_t larger = *size;

	while (index >= larger)
		larger = larger ? larger * 2 : 1024;
	if (larger == *size)
		return;
	*array = realloc(*array, larger * each);
	if (*array == NULL)
		abort();
	memset((char *)*array + *size * each, 0, (larger - *size) * each);
	*size = larger;
}

/* --- window --- */

static double w_cubic(const struct sim_ref *r, double t)
{
	return C * pow(t - r->k, 3) + r->w_max;
}

static void acked_one(struct sim *sim, struct sim_ref *r)
{
	double t, target;

	if (r->cwnd < r->ssthresh) {
		r->cwnd++;
		return;
	}
	if (r->epoch == 0) {
		r->epoch = sim->now;
		if (r->w_max <= r->cwnd) {
			r->w_max = r->cwnd;
			r->k = 0;
		} else {
			r->k = cbrt((r->w_max - r->cwnd) / C);
		}
		r->w_est = r->cwnd;
	}
	t = (double)(sim->now - r->epoch) / 1e9;
	r->w_est += (r->w_est < r->prior ? 3 * (1 - BETA) / (1 + BETA) : 1) / r->cwnd;
	if (w_cubic(r, t) < r->w_est) {
		r->cwnd = fmax(r->cwnd, r->w_est);
		return;
	}
	target = fmin(w_cubic(r, t + r->srtt), 1.5 * r->cwnd);
	if (target > r->cwnd)
		r->cwnd += (target - r->cwnd) / r->cwnd;
}

static void reduce(struct sim_ref *r, bool timeout)
{
	r->prior = r->cwnd;
	if (timeout)
		r->w_max = 0;
	else
		r->w_max = r->cwnd < r->w_max ? r->cwnd * (1 + BETA) / 2 : r->cwnd;
	r->ssthresh = fmax(r->cwnd * BETA, 2);
	r->cwnd = timeout ? 1 : r->ssthresh;
	r->epoch = 0;
}

/* --- sender --- */

static void put(struct sim *sim, struct sim_ref *r, uint64_t index)
{
	struct segment *s = &r->segment[index];
	uint64_t arrivals[2];
	unsigned ecn = RXW_ECN_NOT;
	unsigned copies = sim_link_pass(sim, &sim->setup.down, DATAGRAM, false, &ecn, arrivals);

	s->sent_at = sim->now;
	s->again = s->order != 0;
	s->order = ++r->order;
	s->state = FLIGHT;
	r->flight++;
	for (unsigned i = 0; i < copies; i++) {
		struct on_wire *w = malloc(sizeof(*w));

		if (w == NULL)
			abort();
		*w = (struct on_wire){r, index, s->order, 0};
		sim_at(sim, arrivals[i], SIM_REF_DATA, r, w);
	}
}

static void send_window(struct sim *sim, struct sim_ref *r)
{
	while ((double)r->flight + 1 <= r->cwnd) {
		if (r->lost > 0) {
			while (r->segment[r->lost_from].state != LOST)
				r->lost_from++;
			r->lost--;
			put(sim, r, r->lost_from);
		} else {
			grow((void **)&r->segment, &r->segments_size, r->nxt, sizeof(*r->segment));
			put(sim, r, r->nxt++);
		}
	}
	arm(sim, r);
}

static void mark_lost(struct sim_ref *r, uint64_t index)
{
	r->segment[index].state = LOST;
	r->flight--;
	r->lost++;
	if (index < r->lost_from)
		r->lost_from = index;
}

static void find_losses(struct sim *sim, struct sim_ref *r)
{
	uint64_t event = 0;

	for (uint64_t i = r->una; i < r->nxt; i++) {
		struct segment *s = &r->segment[i];
		double age = (double)(sim->now - s->sent_at) / 1e9;

		if (!s->again && s->order >= r->highest)
			break; /* all later ones were sent later */
		if (s->state != FLIGHT || s->order >= r->highest ||
		    (s->order + DUPTHRESH > r->highest && age < 1.25 * r->srtt))
			continue;
		mark_lost(r, i);
		if (s->order > r->recovery_order)
			event = s->order;
	}
	if (event != 0) {
		reduce(r, false);
		r->recovery_order = r->order;
	}
}

static void sample(struct sim_ref *r, double rtt)
{
	if (r->srtt == 0) {
		r->srtt = rtt;
		r->rttvar = rtt / 2;
		return;
	}
	r->rttvar = 0.75 * r->rttvar + 0.25 * fabs(r->srtt - rtt);
	r->srtt = 0.875 * r->srtt + 0.125 * rtt;
}

static void ack(struct sim *sim, struct sim_ref *r, const struct on_wire *w)
{
	struct segment *cause = &r->segment[w->segment];
	bool recovering = r->recovery_order != 0 && r->highest <= r->recovery_order;

	if (w->order == cause->order)
		sample(r, (double)(sim->now - cause->sent_at) / 1e9);
	if (w->logged <= r->known)
		return;
	for (; r->known < w->logged; r->known++) {
		struct segment *s = &r->segment[r->log[r->known]];

		if (s->state == ACKED)
			continue;
		if (s->state == FLIGHT) {
			r->flight--;
			if (s->order > r->highest)
				r->highest = s->order;
		} else {
			r->lost--;
		}
		s->state = ACKED;
		if (!recovering)
			acked_one(sim, r);
	}
	while (r->una < r->nxt && r->segment[r->una].state == ACKED)
		r->una++;
	if (r->lost_from < r->una)
		r->lost_from = r->una;
	r->base_at = sim->now;
	r->backoff = 0;
	r->probed = false;
	find_losses(sim, r);
	send_window(sim, r);
}

/* A probe after two round trips, then timeouts (RFC 8985, RFC 6298). */
static uint64_t patience(const struct sim_ref *r)
{
	double rto = r->srtt == 0 ? 1 : fmax(r->srtt + 4 * r->rttvar, 0.2);

	if (!r->probed && r->srtt != 0 && r->backoff == 0)
		return (uint64_t)(fmax(2 * r->srtt, 0.01) * 1e9);
	return (uint64_t)(rto * 1e9) << (r->backoff < 6 ? r->backoff : 6);
}

static void arm(struct sim *sim, struct sim_ref *r)
{
	uint64_t at = r->base_at + patience(r);

	if (r->timer_at != 0 && r->timer_at <= at)
		return;
	r->timer_at = at > sim->now ? at : sim->now;
	sim_at(sim, r->timer_at, SIM_REF_TIMER, r, NULL);
}

static void timer(struct sim *sim, struct sim_ref *r)
{
	if (sim->now != r->timer_at)
		return;
	r->timer_at = 0;
	if (sim->now >= r->base_at + patience(r)) {
		r->base_at = sim->now;
		if (!r->probed && r->backoff == 0 && r->srtt != 0) {
			uint64_t i = r->nxt;

			r->probed = true;
			while (i > r->una && r->segment[i - 1].state != FLIGHT)
				i--;
			if (i > r->una) {
				r->flight--;
				put(sim, r, i - 1);
			}
		} else {
			for (uint64_t i = r->una; i < r->nxt; i++)
				if (r->segment[i].state == FLIGHT)
					mark_lost(r, i);
			if (r->backoff++ == 0)
				reduce(r, true);
			r->cwnd = 1;
			r->recovery_order = r->order;
			send_window(sim, r);
		}
	}
	arm(sim, r);
}

/* --- receiver --- */

static void data(struct sim *sim, struct sim_ref *r, const struct on_wire *w)
{
	struct segment *s = &r->segment[w->segment];
	uint64_t arrivals[2];
	unsigned copies, ecn = RXW_ECN_NOT;

	if (!s->arrived) {
		s->arrived = true;
		grow((void **)&r->log, &r->log_size, r->logged, sizeof(*r->log));
		r->log[r->logged++] = w->segment;
		while (r->in_order < r->nxt && r->segment[r->in_order].arrived)
			r->in_order++;
	}
	copies = sim_link_pass(sim, &sim->setup.up, ACK_SIZE, false, &ecn, arrivals);
	for (unsigned i = 0; i < copies; i++) {
		struct on_wire *a = malloc(sizeof(*a));

		if (a == NULL)
			abort();
		*a = (struct on_wire){r, w->segment, w->order, r->logged};
		sim_at(sim, arrivals[i], SIM_REF_ACK, r, a);
	}
}

/* --- interface to the simulation --- */

void sim_ref_start(struct sim *sim, unsigned count)
{
	sim->refs = calloc(count, sizeof(*sim->refs));
	if (sim->refs == NULL)
		abort();
	for (unsigned i = 0; i < count; i++) {
		struct sim_ref *r = &sim->refs[i];

		r->cwnd = 10;
		r->ssthresh = 1e9;
		r->base_at = r->timer_at = sim->now + sim_draw(sim, RXW_MS);
		sim_at(sim, r->timer_at, SIM_REF_TIMER, r, NULL);
	}
}

void sim_ref_event(struct sim *sim, const struct sim_event *e)
{
	struct sim_ref *r = e->subject;

	if (e->kind == SIM_REF_DATA) {
		data(sim, r, e->more);
	} else if (e->kind == SIM_REF_ACK) {
		ack(sim, r, e->more);
	} else if (r->order == 0) {
		r->timer_at = 0;
		send_window(sim, r);
	} else {
		timer(sim, r);
	}
	free(e->more);
}

uint64_t sim_ref_bytes(const struct sim *sim, unsigned i)
{
	return sim->refs[i].in_order * PAYLOAD;
}

void sim_ref_free(struct sim *sim)
{
	for (unsigned i = 0; sim->refs != NULL && i < sim->setup.references; i++) {
		free(sim->refs[i].segment);
		free(sim->refs[i].log);
	}
	free(sim->refs);
	sim->refs = NULL;
}
