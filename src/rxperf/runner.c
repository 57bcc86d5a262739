/* SPDX-License-Identifier: BSD-2-Clause */
/* The load generator: starting the slots, supervising them, adding up their results. */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "program/report.h"
#include "rxperf/runner.h"

#define LOOK_MS	  1000 /* interval at which progress is looked for */
#define GRACE_MS  250  /* for running calls after the end of the run; then they are aborted */
#define PARKED_MS 1    /* interval at which parked slots try again */
#define JOINED	  1024 /* up to this many bytes of data are written together with the request */

static void *run_slot_thread(void *arg)
{
	perf_slot_drive(arg);
	return NULL;
}

/* Small data are written together with the request: one write instead of two. */
static void join_data(struct perf_runner *r)
{
	size_t n;
	const uint8_t *data = perf_pattern(0, (size_t)r->to_server, &n);

	if (n != r->to_server || n > JOINED || n > r->sizes.write_size)
		return;
	memcpy(r->head + r->head_len, data, n);
	r->head_len += n;
	r->head_data = n;
}

struct perf_runner *perf_runner_new(const struct perf_load *load)
{
	struct perf_runner *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->load = load;
	r->head = malloc(PERF_REQUEST_MAX + JOINED);
	r->slots = calloc(load->slots, sizeof(*r->slots));
	r->open = load->rate > 0 ? perf_open_new(r) : NULL;
	if (!r->head || !r->slots || (load->rate > 0 && !r->open)) {
		perf_open_free(r->open);
		free(r->head);
		free(r->slots);
		free(r);
		return NULL;
	}
	r->head_len = perf_encode(&load->request, r->head);
	r->sizes = *perf_sizes(&load->request);
	perf_totals(&load->request, &r->to_server, &r->to_client);
	r->cookie_len = load->request.what == RXPERF_FILE ? 0 : PERF_COOKIE_LEN;
	if (load->request.what != RXPERF_FILE)
		join_data(r);
	r->blocking = load->form == PERF_FORM_BLOCKING ||
		      (load->form == PERF_FORM_AUTO && load->slots == 1 && !r->open);
	perf_latencies_init(&r->latencies);
	pthread_mutex_init(&r->lock, NULL);
	monotonic_cond_init(&r->wake);
	for (uint64_t i = 0; i < load->slots; i++)
		perf_slot_init(&r->slots[i], r, i);
	return r;
}

void perf_runner_free(struct perf_runner *r)
{
	if (!r)
		return;
	perf_latencies_free(&r->latencies);
	for (uint64_t i = 0; i < r->load->slots; i++)
		perf_slot_free(&r->slots[i]);
	perf_open_free(r->open);
	pthread_cond_destroy(&r->wake);
	pthread_mutex_destroy(&r->lock);
	free(r->slots);
	free(r->head);
	free(r);
}

void perf_runner_stop(struct perf_runner *r)
{
	pthread_mutex_lock(&r->lock);
	r->stop_asked = true;
	pthread_cond_signal(&r->wake);
	pthread_mutex_unlock(&r->lock);
}

void perf_runner_passed(struct perf_runner *r)
{
	for (uint64_t i = 0; r && i < r->load->slots; i++) {
		pthread_mutex_lock(&r->slots[i].lock);
		pthread_mutex_unlock(&r->slots[i].lock);
	}
}

static void abort_slots(struct perf_runner *r)
{
	atomic_store(&r->stopping, true);
	atomic_store(&r->aborting, true);
	for (uint64_t i = 0; i < r->load->slots; i++) {
		struct perf_slot *s = &r->slots[i];

		pthread_mutex_lock(&s->lock);
		if (s->call)
			rxw_call_abort(s->call, RXW_USER_ABORT);
		pthread_mutex_unlock(&s->lock);
	}
}

static void start_slots(struct perf_runner *r)
{
	pthread_attr_t attr;
	int failed;

	r->active = r->load->slots;
	if (r->open) {
		failed = perf_open_start(r->open);
		if (failed)
			perf_runner_fail(r, "cannot start a thread: %s", strerror(failed));
		return;
	}
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 256 * 1024);
	for (uint64_t i = 0; i < r->load->slots; i++) {
		struct perf_slot *s = &r->slots[i];
		int rc;

		if (!r->blocking) {
			perf_slot_drive(s);
			continue;
		}
		rc = pthread_create(&s->thread, &attr, run_slot_thread, s);
		s->has_thread = rc == 0;
		if (rc != 0) {
			perf_runner_fail(r,
					 "cannot start thread %llu: %s; use fewer calls in "
					 "flight",
					 (unsigned long long)i + 1, strerror(rc));
			perf_slots_done(r, 1);
		}
	}
	pthread_attr_destroy(&attr);
}

static void resume_parked_slots(struct perf_runner *r)
{
	for (uint64_t i = 0; i < r->load->slots; i++) {
		struct perf_slot *s = &r->slots[i];

		if (atomic_exchange(&s->parked, false)) {
			atomic_fetch_sub(&r->parked, 1);
			perf_slot_drive(s);
		}
	}
}

/* Totals so far. */
static void sum_slots(const struct perf_runner *r, uint64_t *bytes, uint64_t *calls)
{
	*bytes = *calls = 0;
	for (uint64_t i = 0; i < r->load->slots; i++) {
		*bytes += atomic_load_explicit(&r->slots[i].bytes, memory_order_relaxed);
		*calls += atomic_load_explicit(&r->slots[i].calls, memory_order_relaxed);
	}
}

/* A report on the way. */
struct interval {
	uint64_t start_ns, last_ns, next_ns; /* next_ns 0 = none wanted */
	uint64_t bytes, calls;		     /* at last_ns */
};

static void report_interval(const struct perf_runner *r, struct interval *v, uint64_t now,
			    struct perf_result *result)
{
	double from = (double)(v->last_ns - v->start_ns) / 1e9,
	       to = (double)(now - v->start_ns) / 1e9;
	uint64_t bytes, calls;
	double mbps, rate;

	sum_slots(r, &bytes, &calls);
	mbps = (double)(bytes - v->bytes) / 1e6 / (to - from);
	rate = (double)(calls - v->calls) / (to - from);
	if (result->intervals)
		json_array_append_new(
			result->intervals,
			json_pack("{s:f, s:f, s:I, s:f, s:I, s:f}", "from_s", from, "to_s", to,
				  "bytes", (json_int_t)(bytes - v->bytes), "MBps", mbps, "calls",
				  (json_int_t)(calls - v->calls), "calls_per_s", rate));
	if (!r->load->json) {
		printf("%8.2f -%8.2f s  %10.1f MB/s  %12.1f calls/s\n", from, to, mbps, rate);
		fflush(stdout);
	}
	v->bytes = bytes;
	v->calls = calls;
	v->last_ns = now;
	while (v->next_ns <= now)
		v->next_ns += r->load->interval_ms * 1000000;
}

/* Progress of the calls in flight. */
struct call_progress {
	uint64_t at_ns; /* of the latest, or a time without calls */
	uint64_t bytes, calls;
};

static bool has_call(struct perf_runner *r)
{
	bool found = false;

	for (uint64_t i = 0; i < r->load->slots && !found; i++) {
		pthread_mutex_lock(&r->slots[i].lock);
		found = r->slots[i].call;
		pthread_mutex_unlock(&r->slots[i].lock);
	}
	return found;
}

/* Fail if all calls in flight are stuck, although the server may answer PINGs. */
static void watch_progress(struct perf_runner *r, struct call_progress *p, uint64_t now)
{
	uint64_t bytes, calls;

	sum_slots(r, &bytes, &calls);
	if (bytes != p->bytes || calls != p->calls || !has_call(r)) {
		*p = (struct call_progress){now, bytes, calls};
		return;
	}
	if (now - p->at_ns >= r->load->timeout_ms * 1000000)
		perf_runner_fail(r,
				 "no progress for %llu s: the server is alive and does not go on",
				 (unsigned long long)(r->load->timeout_ms + 999) / 1000);
}

/* The time of the next look at the slots, the earliest of several; a time of 0 does not count. */
static uint64_t find_next_look(struct perf_runner *r, uint64_t now, uint64_t deadline,
			       uint64_t kill_ns, uint64_t report_ns)
{
	uint64_t until = now + LOOK_MS * 1000000;

	if (atomic_load(&r->parked) > 0)
		return now + PARKED_MS * 1000000;
	if (deadline && deadline < until)
		until = deadline;
	if (kill_ns && !atomic_load(&r->aborting) && kill_ns < until)
		until = kill_ns;
	if (report_ns && report_ns < until)
		until = report_ns;
	return until;
}

/* Wait until all slots are done; handle time limits, failures and reports. */
static void supervise_slots(struct perf_runner *r, struct perf_result *result)
{
	struct interval v = {.start_ns = monotonic_ns()};
	uint64_t deadline = r->load->duration_ms ? v.start_ns + r->load->duration_ms * 1000000 : 0;
	struct call_progress progress = {.at_ns = v.start_ns};
	uint64_t kill_ns = 0, look_ns = v.start_ns + LOOK_MS * 1000000;
	bool closed = false;

	v.last_ns = v.start_ns;
	if (r->load->interval_ms)
		v.next_ns = v.start_ns + r->load->interval_ms * 1000000;
	pthread_mutex_lock(&r->lock);
	while (r->active > 0) {
		uint64_t now = monotonic_ns();
		bool parked = atomic_load(&r->parked) > 0;
		bool abort_now = r->failed && !atomic_load(&r->aborting), close_now;

		if (now >= look_ns && !r->failed) {
			pthread_mutex_unlock(&r->lock);
			watch_progress(r, &progress, now);
			pthread_mutex_lock(&r->lock);
			look_ns = now + LOOK_MS * 1000000;
			continue;
		}
		if (r->stop_asked && !result->interrupted) {
			result->interrupted = true;
			deadline = now;
		}
		if (deadline && now >= deadline && !kill_ns) {
			atomic_store(&r->stopping, true);
			kill_ns = now + GRACE_MS * 1000000;
		}
		if (kill_ns && now >= kill_ns && !atomic_load(&r->aborting))
			abort_now = true;
		close_now = r->open && !closed && (abort_now || kill_ns);
		if (abort_now || close_now || parked || (v.next_ns && now >= v.next_ns)) {
			pthread_mutex_unlock(&r->lock);
			if (abort_now)
				abort_slots(r);
			if (close_now)
				perf_open_close(r->open);
			closed |= close_now;
			if (parked)
				resume_parked_slots(r);
			if (v.next_ns && now >= v.next_ns)
				report_interval(r, &v, now, result);
			pthread_mutex_lock(&r->lock);
		}
		if (r->active == 0 || (r->failed && !atomic_load(&r->aborting)) ||
		    (r->stop_asked && !result->interrupted))
			continue;
		monotonic_wait(&r->wake, &r->lock,
			       find_next_look(r, now, kill_ns ? 0 : deadline, kill_ns, v.next_ns));
	}
	pthread_mutex_unlock(&r->lock);
	if (v.next_ns && v.last_ns + 1000000 < monotonic_ns())
		report_interval(r, &v, monotonic_ns(), result);
}

static void sum_open(struct perf_runner *r, struct perf_result *result)
{
	struct perf_open *o = r->open;

	perf_open_finish(o);
	result->due = o->due;
	result->backlog_max = o->backlog_max;
	result->late_p50_ns = tools_histogram_quantile(&o->late, 0.5);
	result->late_p99_ns = tools_histogram_quantile(&o->late, 0.99);
}

static void sum_streams(const struct perf_runner *r, struct perf_result *result)
{
	uint64_t least = UINT64_MAX, most = 0;

	for (uint64_t i = 0; i < r->load->slots; i++) {
		uint64_t n = atomic_load_explicit(&r->slots[i].bytes, memory_order_relaxed);

		least = n < least ? n : least;
		most = n > most ? n : most;
		if (result->streams)
			json_array_append_new(result->streams, json_integer((json_int_t)n));
	}
	result->stream_least = least;
	result->stream_most = most;
	result->stream_mean = (double)result->bytes / (double)r->load->slots;
}

void perf_runner_run(struct perf_runner *r, struct perf_result *result)
{
	start_slots(r);
	supervise_slots(r, result);
	for (uint64_t i = 0; i < r->load->slots; i++)
		if (r->slots[i].has_thread)
			pthread_join(r->slots[i].thread, NULL);
	sum_slots(r, &result->bytes, &result->calls);
	if (r->open)
		sum_open(r, result);
	sum_streams(r, result);
	perf_latencies_merge(&r->latencies, result->latency);
	result->failed = r->failed;
	memcpy(result->why, r->why, sizeof(result->why));
}
