/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * afscp bench: many clients, each with its own endpoint on one engine, read a file with
 * asynchronous calls.
 */
#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "program/message.h"
#include "program/number.h"
#include "program/report.h"
#include "afs/fetch.h"
#include "afs/fetchstatus.h"
#include "afscp/commands.h"
#include "afscp/load.h"

#define DRAIN_MS  250	      /* for running calls after the end of the run */
#define PAUSE_NS  200000000u  /* before a retry; doubled each time */
#define PAUSE_MAX 2000000000u /* longest pause */
#define SLICES	  64

/* One client: one call at a time, driven by the thread that the library calls back on. */
struct reader {
	struct bench *bench;
	struct afs_fetch fetch;
	struct tools_histogram latency;
	uint64_t next;	     /* offset of the next call */
	uint64_t started_ns; /* start of the call, also if it is repeated; 0 = none */
	bool armed;	     /* the callback is set: it may run at any time */
	bool parked;	     /* waiting for a channel, a token or a pause; under the bench's lock */
	_Atomic uint64_t bytes, calls;
	/*
	 * The latest call failed because its token expired, and is to be repeated: its error, and
	 * the request for a new token. tokens: number of renewals when it began.
	 */
	bool cut;
	struct afs_error why;
	uint64_t tokens, question;
	/* First of the temporary failures, 0 = none; time of the next retry */
	uint64_t failing_ns, again_ns, pause_ns;

	/* Covers `call`, which the thread that aborts uses, too. */
	pthread_mutex_t lock;
	rxw_call *call;
};

struct bench {
	struct run *run;
	struct load load;
	uint64_t range; /* bytes of each call */
	struct reader *readers;
	size_t count;
	atomic_bool stopping, aborting;

	pthread_mutex_t lock; /* of what follows */
	pthread_cond_t wake;
	size_t active, parked;
	bool failed, stop_asked;
	char why[400];
};

__attribute__((format(printf, 2, 3))) static void fail_bench(struct bench *b, const char *format,
							     ...)
{
	va_list args;

	pthread_mutex_lock(&b->lock);
	if (!b->failed && !atomic_load(&b->aborting)) {
		b->failed = true;
		va_start(args, format);
		vsnprintf(b->why, sizeof(b->why), format, args);
		va_end(args);
	}
	pthread_cond_signal(&b->wake);
	pthread_mutex_unlock(&b->lock);
	atomic_store(&b->stopping, true);
}

/*
 * Look for a new token after a call whose token expired. 0: there is one. 1: not yet. -1: there
 * will be none.
 */
static int await_reader_token(struct reader *r)
{
	struct bench *b = r->bench;
	bool vain;

	if (tools_renewal_answered(&b->run->renewal, r->tokens, &r->question, &vain)) {
		r->question = 0;
		r->cut = false;
		return 0;
	}
	if (vain && tools_renewal_over(&b->run->renewal))
		fail_bench(b, "the token has expired and cannot be renewed: %s", r->why.text);
	else if (vain)
		fail_bench(b, "%s", r->why.text);
	return vain ? -1 : 1;
}

/* Whether to repeat a failed call, on a new connection after a pause. */
static bool may_retry(struct reader *r)
{
	struct bench *b = r->bench;
	uint64_t now = monotonic_ns();

	if (!r->why.passing || !b->run->set.retry_ms)
		return false;
	if (!r->failing_ns) {
		r->failing_ns = now;
		r->pause_ns = PAUSE_NS;
	} else {
		r->pause_ns = 2 * r->pause_ns < PAUSE_MAX ? 2 * r->pause_ns : PAUSE_MAX;
	}
	r->again_ns = now + r->pause_ns;
	return now - r->failing_ns < b->run->set.retry_ms * 1000000;
}

static size_t number_of_reader(const struct reader *r)
{
	return (size_t)(r - r->bench->readers);
}

static struct bare_client *client_of(const struct reader *r)
{
	return r->bench->load.clients[number_of_reader(r)];
}

/* 0: the next call may begin. 1: not yet. -1: never. */
static int reconnect_reader(struct reader *r)
{
	int rc;

	if (monotonic_ns() < r->again_ns)
		return 1;
	rc = load_reconnect(&r->bench->load, number_of_reader(r), r->why.code);
	r->again_ns = 0;
	if (rc < 0)
		fail_bench(r->bench, "cannot connect to the file server");
	return rc;
}

/* The call cannot begin. 1: not yet. -1: never. */
static int judge_beginning(struct reader *r, int rc)
{
	struct bench *b = r->bench;

	if (rc == -RXW_EAGAIN)
		return 1;
	afs_error_text(&r->why, "cannot begin a call: %s", tools_result_text(rc));
	/* The connection is in error: a new one may work. */
	r->why.passing = rc == -RXW_ECALL;
	if (tools_renewal_refused(&b->run->renewal, rc)) {
		/* The reason may have been reported to another call on the connection. */
		r->cut = true;
		return 1;
	}
	if (may_retry(r))
		return 1;
	fail_bench(b, "%s", r->why.text);
	return -1;
}

/* 0: the next call runs. 1: no free channel, or no token. -1: no more calls. */
static int begin_bench_call(struct reader *r)
{
	struct bench *b = r->bench;
	struct rxw_call_options co = {.size = sizeof(co), .flags = RXW_CALL_NONBLOCK};
	uint64_t size = (uint64_t)b->load.attributes.stat.st_size;
	rxw_call *call = NULL;
	int rc;

	assert(!r->call);
	if (atomic_load(&b->stopping))
		return -1;
	if (!r->started_ns)
		r->started_ns = monotonic_ns();
	if ((r->cut && (rc = await_reader_token(r))) || (r->again_ns && (rc = reconnect_reader(r))))
		return rc;
	r->tokens = atomic_load(&b->run->renewal.count);
	rc = bare_begin(client_of(r), &co, &call);
	if (rc < 0)
		return judge_beginning(r, rc);
	pthread_mutex_lock(&r->lock);
	r->call = call;
	pthread_mutex_unlock(&r->lock);
	if (r->next >= size)
		r->next = 0;
	afs_fetch_init(&r->fetch, &b->load.fid, r->next,
		       size - r->next < b->range ? size - r->next : b->range);
	r->next += b->range;
	r->armed = false;
	if (atomic_load(&b->aborting))
		rxw_call_abort(call, RXW_USER_ABORT);
	return 0;
}

static void add_relaxed(_Atomic uint64_t *counter, uint64_t n)
{
	atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + n,
			      memory_order_relaxed);
}

static void finish_read(struct reader *r, bool complete)
{
	struct bench *b = r->bench;
	enum rxw_origin origin = RXW_ORIGIN_NONE;
	rxw_call *call = r->call;
	int32_t code;

	assert(call);
	pthread_mutex_lock(&r->lock);
	r->call = NULL;
	pthread_mutex_unlock(&r->lock);
	code = rxw_call_end(call, complete ? 0 : RXW_USER_ABORT, &origin);
	if (!complete && r->fetch.why) {
		fail_bench(b, "%s", r->fetch.why);
	} else if (code != 0 || !complete) {
		afs_error_code(&r->why, "a call failed", code, origin);
		r->cut = tools_renewal_expired(code, origin);
		if (r->cut || may_retry(r))
			r->next = r->fetch.offset;
		else
			fail_bench(b, "%s", r->why.text);
	} else if (afs_status_version(&r->fetch.status) != b->load.attributes.version) {
		fail_bench(b, "the file changed during the read");
	} else if (r->fetch.length != r->fetch.wanted) {
		fail_bench(b, "the server sent %llu of %llu bytes",
			   (unsigned long long)r->fetch.length,
			   (unsigned long long)r->fetch.wanted);
	} else {
		bare_promised(client_of(r), &r->fetch.fid, &r->fetch.callback);
		tools_histogram_add(&r->latency, monotonic_ns() - r->started_ns);
		r->started_ns = r->failing_ns = 0;
		add_relaxed(&r->calls, 1);
	}
}

static void continue_reader(rxw_call *call, unsigned events, void *arg);

/* Continue until the reader must wait or is done. */
static void drive_reader(struct reader *r)
{
	struct bench *b = r->bench;

	for (;;) {
		enum afs_fetch_result result;
		int rc = r->call ? 0 : begin_bench_call(r);

		if (rc != 0) {
			pthread_mutex_lock(&b->lock);
			assert(b->active > b->parked && !r->parked);
			if (rc > 0) {
				r->parked = true;
				b->parked++;
			} else {
				b->active--;
			}
			pthread_cond_signal(&b->wake);
			pthread_mutex_unlock(&b->lock);
			return;
		}
		do {
			struct iovec iov[SLICES];
			unsigned count = SLICES;
			uint64_t before = r->fetch.received;

			result = afs_fetch_step(&r->fetch, r->call, iov, &count);
			add_relaxed(&r->bytes, r->fetch.received - before);
		} while (result == AFS_FETCH_LENT);
		if (result == AFS_FETCH_AGAIN) {
			if (!r->armed) {
				r->armed = true;
				rxw_call_set_callback(r->call, continue_reader, r);
			}
			return;
		}
		finish_read(r, result == AFS_FETCH_DONE);
	}
}

static void continue_reader(rxw_call *call, unsigned events, void *arg)
{
	(void)call;
	(void)events;
	drive_reader(arg);
}

static void abort_readers(struct bench *b)
{
	atomic_store(&b->stopping, true);
	atomic_store(&b->aborting, true);
	for (size_t i = 0; i < b->count; i++) {
		struct reader *r = &b->readers[i];

		pthread_mutex_lock(&r->lock);
		if (r->call)
			rxw_call_abort(r->call, RXW_USER_ABORT);
		pthread_mutex_unlock(&r->lock);
	}
}

/* Let parked readers try again. */
static void resume_parked_readers(struct bench *b)
{
	for (size_t i = 0; i < b->count; i++) {
		struct reader *r = &b->readers[i];
		bool again;

		pthread_mutex_lock(&b->lock);
		again = r->parked;
		r->parked = false;
		b->parked -= again;
		pthread_mutex_unlock(&b->lock);
		if (again)
			drive_reader(r);
	}
}

/* Run for the given time, then wait for the end of all calls. */
static void supervise_readers(struct bench *b)
{
	uint64_t deadline = monotonic_ns() + b->run->set.seconds_ms * 1000000, kill_ns = 0;

	pthread_mutex_lock(&b->lock);
	while (b->active > 0) {
		uint64_t now = monotonic_ns();
		bool kill = b->failed || (kill_ns && now >= kill_ns);

		if (b->stop_asked && deadline > now)
			deadline = now;
		if (now >= deadline && !kill_ns) {
			atomic_store(&b->stopping, true);
			kill_ns = now + DRAIN_MS * 1000000;
		}
		if ((kill && !atomic_load(&b->aborting)) || b->parked) {
			pthread_mutex_unlock(&b->lock);
			if (kill && !atomic_load(&b->aborting))
				abort_readers(b);
			resume_parked_readers(b);
			pthread_mutex_lock(&b->lock);
			if (b->active == 0)
				break;
			/* Do not try again without a pause. */
			monotonic_wait(&b->wake, &b->lock, now + 1000000);
			continue;
		}
		monotonic_wait(&b->wake, &b->lock,
			       atomic_load(&b->aborting) ? now + 1000000000
			       : kill_ns		 ? kill_ns
							 : deadline);
	}
	pthread_mutex_unlock(&b->lock);
}

static bool stop_bench(void *arg, int number)
{
	struct bench *b = arg;

	(void)number;
	pthread_mutex_lock(&b->lock);
	b->stop_asked = true;
	pthread_cond_signal(&b->wake);
	pthread_mutex_unlock(&b->lock);
	return false;
}

/* ---- set-up and report ---- */

static void init_readers(struct bench *b)
{
	uint64_t size = (uint64_t)b->load.attributes.stat.st_size;
	pthread_mutexattr_t recursive;

	pthread_mutexattr_init(&recursive);
	pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
	for (size_t i = 0; i < b->count; i++) {
		struct reader *r = &b->readers[i];

		r->bench = b;
		pthread_mutex_init(&r->lock, &recursive);
		tools_histogram_init(&r->latency);
		/* Start at different offsets, so that not all clients read the same bytes. */
		r->next = size / b->count * i / b->range * b->range;
	}
	pthread_mutexattr_destroy(&recursive);
}

static json_t *make_bench_report(struct bench *b, const struct tools_usage *usage)
{
	struct tools_histogram *latency = malloc(sizeof(*latency));
	json_t *o = json_object(), *clients = json_array();
	uint64_t bytes = 0, calls = 0, least = UINT64_MAX, most = 0;
	struct counters stats;

	if (!latency || !o || !clients) {
		free(latency);
		json_decref(o);
		json_decref(clients);
		return NULL;
	}
	tools_histogram_init(latency);
	for (size_t i = 0; i < b->count; i++) {
		uint64_t mine = atomic_load(&b->readers[i].bytes);

		bytes += mine;
		calls += atomic_load(&b->readers[i].calls);
		least = mine < least ? mine : least;
		most = mine > most ? mine : most;
		tools_histogram_merge(latency, &b->readers[i].latency);
		json_array_append_new(clients, json_integer((json_int_t)mine));
	}
	load_counters(&b->load, &stats);
	json_object_set_new(o, "clients", json_integer((json_int_t)b->count));
	json_object_set_new(o, "range", json_integer((json_int_t)b->range));
	json_object_set_new(o, "renewals",
			    json_integer((json_int_t)atomic_load(&b->run->renewal.count)));
	tools_report_fill(o, bytes, calls, usage, &stats, latency);
	json_object_set_new(o, "fairness_min_mean",
			    bytes ? json_real((double)least * (double)b->count / (double)bytes)
				  : json_null());
	json_object_set_new(o, "bytes_least", json_integer((json_int_t)least));
	json_object_set_new(o, "bytes_most", json_integer((json_int_t)most));
	json_object_set_new(o, "bytes_by_client", clients);
	load_describe(&b->load, &stats, o);
	free(latency);
	return o;
}

/* Run all readers; *usage is what that took. 0, or an errno value. */
static int run_readers(struct bench *b, struct tools_usage *usage)
{
	struct tools_usage from, to;
	int rc;

	rc = tools_renewal_start(&b->run->renewal);
	if (rc)
		return rc;
	tools_usage_now(&from);
	b->active = b->count;
	for (size_t i = 0; i < b->count; i++)
		drive_reader(&b->readers[i]);
	supervise_readers(b);
	tools_usage_now(&to);
	*usage = tools_usage_between(&from, &to);
	return 0;
}

static int run_and_report(struct bench *b)
{
	struct tools_usage to;
	json_t *report;
	char size[2][32];
	int rc = run_readers(b, &to);

	if (rc) {
		tools_error("cannot start a thread: %s", strerror(rc));
		return TOOLS_EXIT_FAILURE;
	}
	if (b->failed) {
		tools_error("%s: %s", b->load.label, b->why);
		return TOOLS_EXIT_FAILURE;
	}
	report = make_bench_report(b, &to);
	if (b->run->set.json)
		return tools_json_print(report) < 0 ? TOOLS_EXIT_FAILURE : 0;
	if (!report) {
		tools_error("no memory");
		return TOOLS_EXIT_FAILURE;
	}
	tools_report_print("bench", report);
	printf("  clients   %zu; bytes each %s to %s; least to mean %.3f\n", b->count,
	       tools_format_size(
		       size[0], sizeof(size[0]),
		       (uint64_t)json_integer_value(json_object_get(report, "bytes_least"))),
	       tools_format_size(
		       size[1], sizeof(size[1]),
		       (uint64_t)json_integer_value(json_object_get(report, "bytes_most"))),
	       json_number_value(json_object_get(report, "fairness_min_mean")));
	if (atomic_load(&b->run->renewal.count))
		printf("  tokens    %llu after the first\n",
		       (unsigned long long)atomic_load(&b->run->renewal.count));
	json_decref(report);
	return 0;
}

static int prepare_bench(struct bench *b)
{
	uint64_t size;

	if (load_find(&b->load, b->run) < 0)
		return -1;
	size = (uint64_t)b->load.attributes.stat.st_size;
	if (b->load.attributes.kind != RXAFS_FILE || size == 0) {
		tools_error("%s: bench needs a file that is not empty", b->load.label);
		return -1;
	}
	b->range = b->run->set.range && b->run->set.range < size ? b->run->set.range : size;
	if (b->range > AFS_FETCH_MAX)
		b->range = AFS_FETCH_MAX;
	init_readers(b);
	return load_open(&b->load, b->count);
}

static int read_with_clients(struct run *run)
{
	struct bench b = {.run = run, .count = (size_t)run->set.clients};
	int status = TOOLS_EXIT_FAILURE;

	b.readers = calloc(b.count, sizeof(*b.readers));
	if (!b.readers) {
		tools_error("memory is exhausted by %zu clients", b.count);
		return TOOLS_EXIT_FAILURE;
	}
	pthread_mutex_init(&b.lock, NULL);
	monotonic_cond_init(&b.wake);
	if (prepare_bench(&b) == 0) {
		run_set_interrupt(run, stop_bench, &b);
		status = run_and_report(&b);
		run_set_interrupt(run, NULL, NULL);
	}
	tools_renewal_stop(&run->renewal);
	load_close(&b.load);
	for (size_t i = 0; i < b.count; i++)
		if (b.readers[i].bench)
			pthread_mutex_destroy(&b.readers[i].lock);
	pthread_cond_destroy(&b.wake);
	pthread_mutex_destroy(&b.lock);
	free(b.readers);
	return status;
}

int run_bench(struct run *run)
{
	return run->set.mix ? load_mix(run) : read_with_clients(run);
}
