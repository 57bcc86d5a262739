/* SPDX-License-Identifier: BSD-2-Clause */
/* Slots of the load generator: one call after another, with callbacks or on their own threads. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "common/clock.h"
#include "rxperf/runner.h"

#define SURPLUS_MAX 4096    /* bytes after a reply that are ignored */
#define FOLLOW_NS 1000000 /* interval at which a blocking slot checks for a new token */

enum step {
	STEP_WAIT,
	STEP_DONE,
	STEP_FAILED,
	STEP_REST
};

/* Describe the code of a call in one line. */
static void perf_describe_code(char *text, size_t size, int32_t code, enum rxw_origin origin)
{
	snprintf(text, size, "code %d (%s), raised by %s", code, rxw_code_text_from(code, origin),
		 origin == RXW_ORIGIN_PEER ? "the server" : "this side");
}

static void count_slot_bytes(struct perf_slot *s, uint64_t bytes)
{
	atomic_store_explicit(&s->bytes,
			      atomic_load_explicit(&s->bytes, memory_order_relaxed) + bytes,
			      memory_order_relaxed);
}

static enum step write_request(struct perf_slot *s)
{
	struct perf_runner *r = s->runner;

	while (s->head_sent < r->head_len || s->sent < r->to_server) {
		bool in_head = s->head_sent < r->head_len;
		uint64_t left = r->to_server - s->sent;
		size_t want = left < r->sizes.write_size ? (size_t)left : r->sizes.write_size;
		size_t n = r->head_len - s->head_sent;
		const uint8_t *data =
			in_head ? r->head + s->head_sent : perf_pattern(s->sent, want, &n);
		ssize_t done = rxw_call_write(s->call, data, n);

		if (done == -RXW_EAGAIN)
			return STEP_WAIT;
		if (done <= 0) {
			s->error = done;
			return STEP_FAILED;
		}
		if (in_head) {
			s->head_sent += (uint64_t)done;
			if (s->head_sent == r->head_len && r->head_data) {
				s->sent = r->head_data;
				count_slot_bytes(s, r->head_data);
			}
		} else {
			s->sent += (uint64_t)done;
			count_slot_bytes(s, (uint64_t)done);
			/* The callback continues: this thread has other calls to begin. */
			if (!r->blocking && !s->armed && s->sent < r->to_server)
				return STEP_WAIT;
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
 * Process bytes of the reply: data, then the cookie; the rest is ignored. False: the data are
 * wrong.
 */
static bool take_reply(struct perf_slot *s, const uint8_t *bytes, size_t length)
{
	struct perf_runner *r = s->runner;
	size_t data = 0;

	if (s->received < r->to_client) {
		uint64_t left = r->to_client - s->received;

		data = length < left ? length : (size_t)left;
		if (r->load->verify && !perf_pattern_matches(s->received, bytes, data))
			return false;
		count_slot_bytes(s, data);
	}
	for (size_t i = data; i < length; i++) {
		uint64_t at = s->received + i - r->to_client;

		if (at < PERF_COOKIE_LEN)
			s->tail[at] = bytes[i];
	}
	s->received += length;
	return true;
}

static enum step read_reply(struct perf_slot *s)
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
				perf_runner_fail(r,
						 "data received differs from the pattern near "
						 "byte %llu",
						 (unsigned long long)s->received);
				return STEP_FAILED;
			}
		if (s->received > r->to_client + SURPLUS_MAX) {
			perf_runner_fail(r,
					 "the server's reply is longer than the %llu bytes that "
					 "were asked for",
					 (unsigned long long)r->to_client);
			return STEP_FAILED;
		}
		/* Everything is received; rxw_call_end() reads the end of the stream. */
		if (s->whole && s->received >= r->to_client + r->cookie_len)
			return STEP_DONE;
	}
}

static void check_reply(struct perf_slot *s)
{
	struct perf_runner *r = s->runner;
	uint32_t cookie =
		(uint32_t)s->tail[0] << 24 | s->tail[1] << 16 | s->tail[2] << 8 | s->tail[3];

	if (s->received < r->to_client + r->cookie_len)
		perf_runner_fail(r, "the server's reply ended after %llu of %llu bytes",
				 (unsigned long long)s->received,
				 (unsigned long long)(r->to_client + r->cookie_len));
	else if (r->cookie_len && cookie != RXPERF_COOKIE)
		perf_runner_fail(r,
				 "the reply ends with 0x%08x instead of the magic number 0x%08x",
				 cookie, (unsigned)RXPERF_COOKIE);
}

/* Report a call that failed. */
static void report_failed_call(struct perf_slot *s, int32_t code, enum rxw_origin origin)
{
	char text[160];

	perf_describe_code(text, sizeof(text), code, origin);
	perf_runner_fail(s->runner,
			 code == RXW_CALL_DEAD && origin != RXW_ORIGIN_PEER ?
				 "no answer (%s); check that a server is running there" :
				 "a call failed with %s",
			 text);
}

static void finish_call(struct perf_slot *s, bool complete)
{
	struct perf_runner *r = s->runner;
	rxw_call *call = s->call;
	enum rxw_origin origin = RXW_ORIGIN_NONE;
	uint64_t now;
	int32_t code;

	pthread_mutex_lock(&s->lock);
	s->call = NULL;
	pthread_mutex_unlock(&s->lock);
	/* A failed call is aborted instead of being read to its end. */
	code = rxw_call_end(call, complete ? 0 : RXW_USER_ABORT, &origin);
	now = monotonic_ns();
	if (complete && code == 0) {
		check_reply(s);
		perf_latencies_add(&r->latencies, now - s->started_ns);
		atomic_store_explicit(&s->calls,
				      atomic_load_explicit(&s->calls, memory_order_relaxed) + 1,
				      memory_order_relaxed);
	} else if (r->open && atomic_load(&r->aborting)) {
		perf_latencies_add(&r->latencies, now - s->started_ns);
	} else if (tools_renewal_expired(code, origin)) {
		/*
		 * Repeat the call with a new token; its latency counts from its first start.
		 */
		s->cut = s->due = true;
		s->cut_code = code;
		return;
	} else if (!complete && s->error && s->error != -RXW_ECALL) {
		perf_runner_fail(r, "a call failed: %s", rxw_strerror((int)s->error));
	} else {
		report_failed_call(s, code, origin);
	}
	if (s->calls_left)
		s->calls_left--;
	s->connection += s->step;
	if (s->connection >= r->load->connection_count)
		s->connection = s->first;
	/* The next call of a closed loop starts where this one ended. */
	s->started_ns = now;
}

/* STEP_DONE: the slot has a call to begin, and started_ns is set. */
static enum step find_work(struct perf_slot *s)
{
	struct perf_runner *r = s->runner;
	bool done;

	if (r->open) {
		if (!s->due && !perf_open_take(r->open, s, &done))
			return done ? STEP_FAILED : STEP_REST;
		if (!atomic_load(&r->stopping))
			return STEP_DONE;
		perf_latencies_add(&r->latencies, monotonic_ns() - s->started_ns);
		return STEP_FAILED;
	}
	if (atomic_load(&r->stopping) || (!r->load->duration_ms && s->calls_left == 0))
		return STEP_FAILED;
	if (!s->started_ns)
		s->started_ns = monotonic_ns();
	return STEP_DONE;
}

/*
 * After a call whose token expired. STEP_DONE: there is a new token; STEP_WAIT: not yet;
 * STEP_FAILED: there will be none.
 */
static enum step await_slot_token(struct perf_slot *s)
{
	const struct timespec pause = {.tv_nsec = FOLLOW_NS};
	struct perf_runner *r = s->runner;
	bool vain;

	while (!tools_renewal_answered(r->load->renewal, s->tokens, &s->question, &vain)) {
		if (vain && s->cut_code)
			report_failed_call(s, s->cut_code, RXW_ORIGIN_PEER);
		else if (vain)
			perf_runner_fail(r, "cannot begin a call: %s",
					 tools_renewal_over(r->load->renewal) ?
						 "the token has expired and cannot be renewed" :
						 rxw_strerror(-RXW_ECALL));
		if (vain || atomic_load(&r->stopping))
			return STEP_FAILED;
		if (!r->blocking)
			return STEP_WAIT;
		nanosleep(&pause, NULL);
	}
	s->cut = false;
	s->question = 0;
	return STEP_DONE;
}

/*
 * Begin the next call. STEP_DONE: it runs; STEP_WAIT: no free channel or no token; STEP_REST: none
 * is due, and the slot may belong to another thread; STEP_FAILED: no more calls.
 */
static enum step begin_call(struct perf_slot *s)
{
	struct perf_runner *r = s->runner;
	struct rxw_call_options co = {.size = sizeof(co)};
	enum step step = find_work(s);
	rxw_call *call;
	int rc;

	if (step == STEP_DONE && s->cut)
		step = await_slot_token(s);
	if (step != STEP_DONE)
		return step;
	if (!r->blocking)
		co.flags = RXW_CALL_NONBLOCK;
	s->tokens = atomic_load(&r->load->renewal->count);
	pthread_mutex_lock(&s->lock);
	rc = rxw_call_begin(atomic_load(&r->load->connections[s->connection]), &co, &call);
	if (rc == 0)
		s->call = call;
	pthread_mutex_unlock(&s->lock);
	if (rc == -RXW_EAGAIN)
		return STEP_WAIT;
	if (tools_renewal_refused(r->load->renewal, rc)) {
		/* The reason may have been reported to another call on the connection. */
		s->cut = true;
		s->cut_code = 0;
		return STEP_WAIT;
	}
	if (rc < 0) {
		perf_runner_fail(r, "cannot begin a call: %s", rxw_strerror(rc));
		return STEP_FAILED;
	}
	s->head_sent = s->sent = s->received = 0;
	s->armed = s->request_ended = s->whole = s->due = false;
	s->error = 0;
	memset(s->tail, 0, sizeof(s->tail));
	/* The thread that aborts may have missed this call. */
	if (atomic_load(&r->aborting))
		rxw_call_abort(call, RXW_USER_ABORT);
	return STEP_DONE;
}

/* A blocking slot does not return before it has a call; it has waited in await_slot_token(). */
static enum step next_call(struct perf_slot *s)
{
	enum step step;

	do
		step = begin_call(s);
	while (step == STEP_WAIT && s->runner->blocking);
	return step;
}

static void continue_slot(rxw_call *call, unsigned events, void *arg);

void perf_slot_drive(struct perf_slot *s)
{
	for (;;) {
		enum step step;

		if (!s->call) {
			step = next_call(s);
			if (step == STEP_REST)
				return;
			if (step == STEP_FAILED) {
				perf_slots_done(s->runner, 1);
				return;
			}
			if (step == STEP_WAIT) {
				atomic_fetch_add(&s->runner->parked, 1);
				atomic_store(&s->parked, true);
				return;
			}
		}
		step = write_request(s);
		/* A reply can only arrive after the callback is set. */
		if (step == STEP_DONE && (s->armed || s->runner->blocking))
			step = read_reply(s);
		else if (step == STEP_DONE)
			step = STEP_WAIT;
		if (step != STEP_WAIT) {
			finish_call(s, step == STEP_DONE);
			continue;
		}
		if (!s->armed) {
			s->armed = true;
			rxw_call_set_callback(s->call, continue_slot, s);
		}
		return;
	}
}

static void continue_slot(rxw_call *call, unsigned events, void *arg)
{
	struct perf_slot *s = arg;

	(void)call;
	s->whole = events & RXW_EVENT_DONE;
	perf_slot_drive(s);
}

void perf_slot_init(struct perf_slot *s, struct perf_runner *r, uint64_t index)
{
	const struct perf_load *load = r->load;
	pthread_mutexattr_t recursive;

	s->runner = r;
	if (load->rate > 0) {
		s->first = index % load->connection_count;
		s->step = load->connection_count;
	} else {
		/* Slots that share a connection use the same sequence of connections. */
		s->first = index / load->per_connection;
		s->step = (load->slots + load->per_connection - 1) / load->per_connection;
	}
	s->connection = s->first;
	s->calls_left = load->each_once
				? (load->connection_count - s->first + s->step - 1) / s->step
				: load->calls_per_slot;
	pthread_mutexattr_init(&recursive);
	pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
	pthread_mutex_init(&s->lock, &recursive);
	pthread_mutexattr_destroy(&recursive);
}

void perf_slot_free(struct perf_slot *s)
{
	pthread_mutex_destroy(&s->lock);
}
