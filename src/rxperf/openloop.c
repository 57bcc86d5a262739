/* SPDX-License-Identifier: BSD-2-Clause */
/* The open loop: calls start when they are due, whether or not earlier calls have finished. */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

#include "common/clock.h"
#include "common/held.h"
#include "rxperf/perf.h"
#include "rxperf/runner.h"

/* ---- when calls are due: evenly, or as a Poisson process ---- */

/* Fixed, so that two runs offer the same load. */
#define SEED 0x9e3779b97f4a7c15u

/* Uniform in (0, 1]. */
static double draw_uniform(struct perf_arrivals *a)
{
	uint64_t x = a->state;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	a->state = x;
	return (double)((x >> 11) + 1) * 0x1p-53;
}

static void set_next(struct perf_arrivals *a)
{
	if (a->kind == PERF_ARRIVALS_EVEN)
		a->at_ns = (double)a->count * 1e9 /
			   a->rate; /* computed from the count, so that errors do not add up */
	else
		a->at_ns -= log(draw_uniform(a)) * 1e9 / a->rate;
	a->next_ns = a->start_ns + (uint64_t)a->at_ns;
}

void perf_arrivals_init(struct perf_arrivals *a, enum perf_arrivals_kind kind, double rate,
			uint64_t start_ns)
{
	*a = (struct perf_arrivals){
		.kind = kind, .rate = rate, .start_ns = start_ns, .state = SEED};
	set_next(a);
}

void perf_arrivals_pass(struct perf_arrivals *a)
{
	a->count++;
	set_next(a);
}

/* ---- the pacer and the slots ---- */

#define LONGEST_SLEEP_NS 50000000u /* so that the pacer notices the end of the run */

struct perf_open *perf_open_new(struct perf_runner *r)
{
	struct perf_open *o = calloc(1, sizeof(*o));

	if (!o)
		return NULL;
	o->runner = r;
	o->tail = &o->idle;
	tools_histogram_init(&o->late);
	pthread_mutex_init(&o->lock, NULL);
	return o;
}

void perf_open_free(struct perf_open *o)
{
	if (!o)
		return;
	pthread_mutex_destroy(&o->lock);
	free(o);
}

static void add_idle_slot(struct perf_open *o, struct perf_slot *s)
{
	s->next = NULL;
	*o->tail = s;
	o->tail = &s->next;
}

/* Give the slot the first call of the backlog. */
static void hand_out_call(struct perf_open *o, struct perf_slot *s)
{
	assert(mutex_is_held(&o->lock) && o->started < o->due);
	s->started_ns = o->starting.next_ns;
	s->due = true;
	perf_arrivals_pass(&o->starting);
	o->started++;
}

bool perf_open_take(struct perf_open *o, struct perf_slot *s, bool *done)
{
	bool got = false;

	pthread_mutex_lock(&o->lock);
	*done = o->closed;
	if (!o->closed) {
		got = o->started < o->due;
		if (got)
			hand_out_call(o, s);
		else
			add_idle_slot(o, s);
	}
	pthread_mutex_unlock(&o->lock);
	return got;
}

/* Hand out the calls that are due: a list of slots that are to begin a call, linked by `next`. */
static struct perf_slot *hand_out_due_calls(struct perf_open *o, uint64_t now)
{
	struct perf_slot *first = NULL, **last = &first;

	pthread_mutex_lock(&o->lock);
	while (o->pacing.next_ns <= now && o->pacing.next_ns < o->end_ns) {
		tools_histogram_add(&o->late, now - o->pacing.next_ns);
		perf_arrivals_pass(&o->pacing);
		o->due++;
	}
	while (o->started < o->due && o->idle) {
		struct perf_slot *s = o->idle;

		o->idle = s->next;
		if (!o->idle)
			o->tail = &o->idle;
		hand_out_call(o, s);
		s->next = NULL;
		*last = s;
		last = &s->next;
	}
	if (o->due - o->started > o->backlog_max)
		o->backlog_max = o->due - o->started;
	pthread_mutex_unlock(&o->lock);
	return first;
}

static void *pace_calls(void *arg)
{
	struct perf_open *o = arg;

	/* By default the kernel may delay wake-ups by 50 us; that would distort the measurement. */
	prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
	while (!atomic_load(&o->runner->stopping)) {
		uint64_t now = monotonic_ns(), until = now + LONGEST_SLEEP_NS;
		struct timespec ts;

		for (struct perf_slot *s = hand_out_due_calls(o, now), *next; s; s = next) {
			next = s->next;
			perf_slot_drive(s);
		}
		if (o->pacing.next_ns < until)
			until = o->pacing.next_ns;
		ts.tv_sec = (time_t)(until / 1000000000);
		ts.tv_nsec = (long)(until % 1000000000);
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL);
	}
	return NULL;
}

int perf_open_start(struct perf_open *o)
{
	struct perf_runner *r = o->runner;
	const struct perf_load *load = r->load;
	uint64_t now = monotonic_ns();
	int rc;

	o->end_ns = now + load->duration_ms * 1000000;
	perf_arrivals_init(&o->pacing, load->arrivals, load->rate, now);
	o->starting = o->pacing;
	for (uint64_t i = 0; i < load->slots; i++)
		add_idle_slot(o, &r->slots[i]);
	rc = pthread_create(&o->thread, NULL, pace_calls, o);
	o->has_thread = rc == 0;
	return rc;
}

void perf_open_close(struct perf_open *o)
{
	size_t idle = 0;

	pthread_mutex_lock(&o->lock);
	o->closed = true;
	for (struct perf_slot *s = o->idle; s; s = s->next)
		idle++;
	o->idle = NULL;
	o->tail = &o->idle;
	pthread_mutex_unlock(&o->lock);
	perf_slots_done(o->runner, idle);
}

void perf_open_finish(struct perf_open *o)
{
	uint64_t now;

	if (o->has_thread)
		pthread_join(o->thread, NULL);
	now = monotonic_ns();
	/* These calls waited long; leaving them out would make the latencies too low. */
	for (uint64_t i = o->started; i < o->due; i++) {
		perf_latencies_add(&o->runner->latencies, now - o->starting.next_ns);
		perf_arrivals_pass(&o->starting);
	}
}
