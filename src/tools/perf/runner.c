/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The load generator: slots that make one call after the other, on callbacks or on threads of their
 * own.
 */
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tools/common/report.h"
#include "tools/perf/perf.h"

#define COOKIE_LEN 4
#define GRACE_MS   250 /* for calls that run when the time is up; then they are aborted */
#define PARKED_MS  1   /* how often slots that found no free channel try again */

/* A latency histogram of one thread; all are merged at the end. */
struct latencies {
	struct latencies *next;
	struct tools_histogram h;
};

/*
 * One call at a time. A slot is driven by one thread at a time: its own, or whichever thread the
 * library calls back on; only `call` is also used by the thread that aborts, and has a lock.
 */
struct slot {
	struct perf_runner *runner;
	rxw_connection *connection;
	pthread_t thread;       /* blocking form */
	bool has_thread;
	bool armed;             /* the callback of the call is set: return after touching it */
	bool request_ended;
	uint64_t head_sent, sent, received; /* of the call */
	uint8_t tail[COOKIE_LEN];
	ssize_t error;          /* what the library said when a step failed */
	uint64_t calls_left;
	uint64_t started_ns;
	_Atomic uint64_t bytes, calls; /* written by the slot, read by reports */
	atomic_bool parked;     /* waits for a free channel */

	pthread_mutex_t lock;   /* recursive: an abort may call back on the thread that aborts */
	rxw_call *call;         /* written by the slot under the lock */
};

struct perf_runner {
	const struct perf_load *load;
	uint8_t *head;          /* the words of a request */
	size_t head_len;
	rxperf_sizes sizes;
	uint64_t to_server, to_client, cookie_len;
	bool blocking;
	struct slot *slots;
	atomic_bool stopping;   /* no new calls */
	atomic_bool aborting;   /* running ones are aborted, and their errors expected */
	_Atomic unsigned parked;

	pthread_mutex_t lock;   /* for what follows; inside it no call of the library is made */
	pthread_cond_t wake;
	size_t active;          /* slots that are not done */
	bool failed, stop_asked;
	char why[320];
	struct latencies *latencies;
};

static _Thread_local struct latencies *my_latencies;

enum step { STEP_WAIT, STEP_DONE, STEP_FAILED };

void perf_describe_code(char *text, size_t size, int32_t code, enum rxw_origin origin)
{
	snprintf(text, size, "code %d (%s), raised by %s", code, rxw_code_text(code),
		 origin == RXW_ORIGIN_PEER ? "the server" : "this side");
}

/* The first failure holds; it stops the run. */
__attribute__((format(printf, 2, 3)))
static void fail(struct perf_runner *r, const char *format, ...)
{
	va_list args;

	pthread_mutex_lock(&r->lock);
	if (!r->failed && !atomic_load(&r->aborting)) {
		r->failed = true;
		va_start(args, format);
		vsnprintf(r->why, sizeof(r->why), format, args);
		va_end(args);
	}
	pthread_cond_signal(&r->wake);
	pthread_mutex_unlock(&r->lock);
	atomic_store(&r->stopping, true);
}

static void record(struct perf_runner *r, uint64_t nanoseconds)
{
	if (!my_latencies) {
		struct latencies *l = malloc(sizeof(*l));

		if (!l)
			return;
		tools_histogram_init(&l->h);
		pthread_mutex_lock(&r->lock);
		l->next = r->latencies;
		r->latencies = l;
		pthread_mutex_unlock(&r->lock);
		my_latencies = l;
	}
	tools_histogram_add(&my_latencies->h, nanoseconds);
}

static void moved(struct slot *s, uint64_t bytes)
{
	atomic_store_explicit(&s->bytes,
			      atomic_load_explicit(&s->bytes, memory_order_relaxed) + bytes,
			      memory_order_relaxed);
}

static enum step write_request(struct slot *s)
{
	struct perf_runner *r = s->runner;

	while (s->head_sent < r->head_len || s->sent < r->to_server) {
		bool in_head = s->head_sent < r->head_len;
		uint64_t left = r->to_server - s->sent;
		size_t want = left < r->sizes.write_size ? (size_t)left : r->sizes.write_size;
		size_t n = r->head_len - s->head_sent;
		const uint8_t *data = in_head ? r->head + s->head_sent :
						perf_pattern(s->sent, want, &n);
		ssize_t done = rxw_call_write(s->call, data, n);

		if (done == -RXW_EAGAIN)
			return STEP_WAIT;
		if (done <= 0) {
			s->error = done;
			return STEP_FAILED;
		}
		if (in_head) {
			s->head_sent += (uint64_t)done;
		} else {
			s->sent += (uint64_t)done;
			moved(s, (uint64_t)done);
		}
	}
	if (!s->request_ended) {
		int rc = rxw_call_send_end(s->call);

		if (rc == -RXW_EAGAIN)
			return STEP_WAIT;
		if (rc < 0) {
			s->error = rc;
			return STEP_FAILED;
		}
		s->request_ended = true;
	}
	return STEP_DONE;
}

/*
 * Bytes of the reply: data first, then the cookie; what follows is ignored. False: the data is not
 * what it should be.
 */
static bool take_reply(struct slot *s, const uint8_t *bytes, size_t length)
{
	struct perf_runner *r = s->runner;
	size_t data = 0;

	if (s->received < r->to_client) {
		uint64_t left = r->to_client - s->received;

		data = length < left ? length : (size_t)left;
		if (r->load->verify && !perf_pattern_matches(s->received, bytes, data))
			return false;
		moved(s, data);
	}
	for (size_t i = data; i < length; i++) {
		uint64_t at = s->received + i - r->to_client;

		if (at < COOKIE_LEN)
			s->tail[at] = bytes[i];
	}
	s->received += length;
	return true;
}

static enum step read_reply(struct slot *s)
{
	struct perf_runner *r = s->runner;

	for (;;) {
		struct iovec iov[64];
		unsigned count = 64;
		ssize_t n = rxw_call_readv(s->call, r->sizes.read_size, iov, &count);

		if (n == -RXW_EAGAIN)
			return STEP_WAIT;
		if (n < 0) {
			s->error = n;
			return STEP_FAILED;
		}
		if (n == 0)
			return STEP_DONE;
		for (unsigned i = 0; i < count; i++)
			if (!take_reply(s, iov[i].iov_base, iov[i].iov_len)) {
				fail(r, "data received differs from the pattern near byte %llu",
				     (unsigned long long)s->received);
				return STEP_FAILED;
			}
	}
}

static void check_reply(struct slot *s)
{
	struct perf_runner *r = s->runner;
	uint32_t cookie =
		(uint32_t)s->tail[0] << 24 | s->tail[1] << 16 | s->tail[2] << 8 | s->tail[3];

	if (s->received < r->to_client + r->cookie_len)
		fail(r, "the server's reply ended after %llu of %llu bytes",
		     (unsigned long long)s->received,
		     (unsigned long long)(r->to_client + r->cookie_len));
	else if (r->cookie_len && cookie != RXPERF_COOKIE)
		fail(r, "the server's reply ends with 0x%08x instead of the magic cookie 0x%08x",
		     cookie, (unsigned)RXPERF_COOKIE);
}

static void finish_call(struct slot *s, bool complete)
{
	struct perf_runner *r = s->runner;
	rxw_call *call = s->call;
	enum rxw_origin origin = RXW_ORIGIN_NONE;
	int32_t code;

	pthread_mutex_lock(&s->lock);
	s->call = NULL;
	pthread_mutex_unlock(&s->lock);
	/* A call that went wrong is cut short instead of read to its end. */
	code = rxw_call_end(call, complete ? 0 : RXW_USER_ABORT, &origin);
	if (complete && code == 0) {
		check_reply(s);
		record(r, tools_now() - s->started_ns);
		atomic_store_explicit(&s->calls,
				      atomic_load_explicit(&s->calls, memory_order_relaxed) + 1,
				      memory_order_relaxed);
	} else if (!complete && s->error && s->error != -RXW_ECALL) {
		fail(r, "a call failed: %s", rxw_strerror((int)s->error));
	} else {
		char text[160];

		perf_describe_code(text, sizeof(text), code, origin);
		fail(r, code == RXW_CALL_DEAD && origin != RXW_ORIGIN_PEER ?
				"no answer; is a server running there? (%s)" :
				"a call failed with %s",
		     text);
	}
	if (s->calls_left)
		s->calls_left--;
}

/*
 * Begin the slot's next call. STEP_DONE: it runs; STEP_WAIT: no channel is free; STEP_FAILED: no
 * more.
 */
static enum step next_call(struct slot *s)
{
	struct perf_runner *r = s->runner;
	struct rxw_call_options co = { .size = sizeof(co) };
	rxw_call *call;
	int rc;

	if (atomic_load(&r->stopping) || (!r->load->duration_ms && s->calls_left == 0))
		return STEP_FAILED;
	if (!r->blocking)
		co.flags = RXW_CALL_NONBLOCK;
	s->started_ns = tools_now();
	rc = rxw_call_begin(s->connection, &co, &call);
	if (rc == -RXW_EAGAIN)
		return STEP_WAIT;
	if (rc < 0) {
		fail(r, "cannot begin a call: %s", rxw_strerror(rc));
		return STEP_FAILED;
	}
	s->head_sent = s->sent = s->received = 0;
	s->armed = s->request_ended = false;
	s->error = 0;
	memset(s->tail, 0, sizeof(s->tail));
	pthread_mutex_lock(&s->lock);
	s->call = call;
	pthread_mutex_unlock(&s->lock);
	/* Whoever aborts looked at this slot before the call was there, or sees it. */
	if (atomic_load(&r->aborting))
		rxw_call_abort(call, RXW_USER_ABORT);
	return STEP_DONE;
}

static void slot_done(struct slot *s)
{
	struct perf_runner *r = s->runner;

	pthread_mutex_lock(&r->lock);
	if (--r->active == 0)
		pthread_cond_signal(&r->wake);
	pthread_mutex_unlock(&r->lock);
}

static void on_event(rxw_call *call, unsigned events, void *arg);

/*
 * Go on until the slot must wait or is done; the slot may belong to another thread when this
 * returns.
 */
static void drive(struct slot *s)
{
	for (;;) {
		enum step step;

		if (!s->call) {
			step = next_call(s);
			if (step == STEP_FAILED) {
				slot_done(s);
				return;
			}
			if (step == STEP_WAIT) {
				atomic_fetch_add(&s->runner->parked, 1);
				atomic_store(&s->parked, true);
				return;
			}
		}
		step = write_request(s);
		if (step == STEP_DONE)
			step = read_reply(s);
		if (step != STEP_WAIT) {
			finish_call(s, step == STEP_DONE);
			continue;
		}
		if (!s->armed) {
			s->armed = true;
			rxw_call_set_callback(s->call, on_event, s);
		}
		return;
	}
}

static void on_event(rxw_call *call, unsigned events, void *arg)
{
	(void)call;
	(void)events;
	drive(arg);
}

static void *slot_thread(void *arg)
{
	drive(arg);
	return NULL;
}

struct perf_runner *perf_runner_new(const struct perf_load *load)
{
	struct perf_runner *r = calloc(1, sizeof(*r));
	pthread_mutexattr_t recursive;
	pthread_condattr_t attr;

	if (!r)
		return NULL;
	r->load = load;
	r->head = malloc(PERF_REQUEST_MAX);
	r->slots = calloc(load->slots, sizeof(*r->slots));
	if (!r->head || !r->slots) {
		free(r->head);
		free(r->slots);
		free(r);
		return NULL;
	}
	r->head_len = perf_encode(&load->request, r->head);
	r->sizes = *perf_sizes(&load->request);
	perf_totals(&load->request, &r->to_server, &r->to_client);
	r->cookie_len = load->request.what == RXPERF_FILE ? 0 : COOKIE_LEN;
	r->blocking = load->form == PERF_FORM_BLOCKING ||
		      (load->form == PERF_FORM_AUTO && load->slots == 1);
	pthread_mutex_init(&r->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&r->wake, &attr);
	pthread_condattr_destroy(&attr);
	pthread_mutexattr_init(&recursive);
	pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
	for (uint64_t i = 0; i < load->slots; i++) {
		struct slot *s = &r->slots[i];

		s->runner = r;
		s->connection = load->connections[i / load->per_connection];
		s->calls_left = load->calls_per_slot;
		pthread_mutex_init(&s->lock, &recursive);
	}
	pthread_mutexattr_destroy(&recursive);
	return r;
}

void perf_runner_free(struct perf_runner *r)
{
	if (!r)
		return;
	while (r->latencies) {
		struct latencies *next = r->latencies->next;

		free(r->latencies);
		r->latencies = next;
	}
	for (uint64_t i = 0; i < r->load->slots; i++)
		pthread_mutex_destroy(&r->slots[i].lock);
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

static void abort_all(struct perf_runner *r)
{
	atomic_store(&r->stopping, true);
	atomic_store(&r->aborting, true);
	for (uint64_t i = 0; i < r->load->slots; i++) {
		struct slot *s = &r->slots[i];

		pthread_mutex_lock(&s->lock);
		if (s->call)
			rxw_call_abort(s->call, RXW_USER_ABORT);
		pthread_mutex_unlock(&s->lock);
	}
}

static void start_slots(struct perf_runner *r)
{
	pthread_attr_t attr;

	r->active = r->load->slots;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 256 * 1024);
	for (uint64_t i = 0; i < r->load->slots; i++) {
		struct slot *s = &r->slots[i];
		int rc;

		if (!r->blocking) {
			drive(s);
			continue;
		}
		rc = pthread_create(&s->thread, &attr, slot_thread, s);
		s->has_thread = rc == 0;
		if (rc != 0) {
			fail(r, "cannot start thread %llu: %s; ask for fewer calls in flight",
			     (unsigned long long)i + 1, strerror(rc));
			slot_done(s);
		}
	}
	pthread_attr_destroy(&attr);
}

static void unpark(struct perf_runner *r)
{
	for (uint64_t i = 0; i < r->load->slots; i++) {
		struct slot *s = &r->slots[i];

		if (atomic_exchange(&s->parked, false)) {
			atomic_fetch_sub(&r->parked, 1);
			drive(s);
		}
	}
}

/* Totals so far. */
static void sum(const struct perf_runner *r, uint64_t *bytes, uint64_t *calls)
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
	uint64_t bytes, calls;               /* at last_ns */
};

static void report_interval(const struct perf_runner *r, struct interval *v, uint64_t now,
			    struct perf_result *result)
{
	double from = (double)(v->last_ns - v->start_ns) / 1e9,
	       to = (double)(now - v->start_ns) / 1e9;
	uint64_t bytes, calls;
	double mbps, rate;

	sum(r, &bytes, &calls);
	mbps = (double)(bytes - v->bytes) / 1e6 / (to - from);
	rate = (double)(calls - v->calls) / (to - from);
	if (result->intervals)
		json_array_append_new(result->intervals,
				      json_pack("{s:f, s:f, s:I, s:f, s:I, s:f}", "from_s", from,
						"to_s", to, "bytes",
						(json_int_t)(bytes - v->bytes), "MBps", mbps,
						"calls", (json_int_t)(calls - v->calls),
						"calls_per_s", rate));
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

/* Wait for the end of all slots; keep time meanwhile. */
static void supervise(struct perf_runner *r, struct perf_result *result)
{
	struct interval v = { .start_ns = tools_now() };
	uint64_t deadline = r->load->duration_ms ? v.start_ns + r->load->duration_ms * 1000000 : 0;
	uint64_t kill_ns = 0;

	v.last_ns = v.start_ns;
	if (r->load->interval_ms)
		v.next_ns = v.start_ns + r->load->interval_ms * 1000000;
	pthread_mutex_lock(&r->lock);
	while (r->active > 0) {
		uint64_t now = tools_now(), until = now + 1000000000;
		struct timespec ts;
		bool parked = atomic_load(&r->parked) > 0;
		bool abort_now = r->failed && !atomic_load(&r->aborting);

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
		if (abort_now || parked || (v.next_ns && now >= v.next_ns)) {
			pthread_mutex_unlock(&r->lock);
			if (abort_now)
				abort_all(r);
			if (parked)
				unpark(r);
			if (v.next_ns && now >= v.next_ns)
				report_interval(r, &v, now, result);
			pthread_mutex_lock(&r->lock);
		}
		if (deadline && !kill_ns && deadline < until)
			until = deadline;
		if (kill_ns && !atomic_load(&r->aborting) && kill_ns < until)
			until = kill_ns;
		if (v.next_ns && v.next_ns < until)
			until = v.next_ns;
		if (atomic_load(&r->parked) > 0)
			until = now + PARKED_MS * 1000000;
		if (r->active == 0 || (r->failed && !atomic_load(&r->aborting)) ||
		    (r->stop_asked && !result->interrupted))
			continue;
		ts.tv_sec = (time_t)(until / 1000000000);
		ts.tv_nsec = (long)(until % 1000000000);
		pthread_cond_timedwait(&r->wake, &r->lock, &ts);
	}
	pthread_mutex_unlock(&r->lock);
	if (v.next_ns && v.last_ns + 1000000 < tools_now())
		report_interval(r, &v, tools_now(), result);
}

void perf_runner_run(struct perf_runner *r, struct perf_result *result)
{
	start_slots(r);
	supervise(r, result);
	for (uint64_t i = 0; i < r->load->slots; i++)
		if (r->slots[i].has_thread)
			pthread_join(r->slots[i].thread, NULL);
	sum(r, &result->bytes, &result->calls);
	for (struct latencies *l = r->latencies; l; l = l->next)
		tools_histogram_merge(result->latency, &l->h);
	result->failed = r->failed;
	memcpy(result->why, r->why, sizeof(result->why));
}
