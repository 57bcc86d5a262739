/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside the load generator: slots, each of which makes one call after the other. */
#ifndef PERF_RUNNER_H
#define PERF_RUNNER_H

#include <pthread.h>
#include <stdatomic.h>

#include "tools/perf/arrivals.h"
#include "tools/perf/latency.h"
#include "tools/perf/perf.h"

#define PERF_COOKIE_LEN 4

/*
 * One call at a time. A slot is driven by one thread at a time: its own, or whichever thread the
 * library calls back on; only `call` is also used by the thread that aborts, and has a lock.
 */
struct perf_slot {
	struct perf_runner *runner;
	size_t connection;      /* index of the one that its next call uses */
	size_t first, step;     /* it uses first, first + step and so on in turn */
	pthread_t thread;       /* blocking form */
	bool has_thread;
	bool armed;             /* the callback of the call is set: return after touching it */
	bool request_ended;
	bool whole;             /* the whole reply is there, or an error */
	bool due;               /* open loop: started_ns is that of a call not yet begun */
	uint64_t head_sent, sent, received; /* of the call */
	uint8_t tail[PERF_COOKIE_LEN];
	ssize_t error;          /* what the library said when a step failed */
	uint64_t calls_left;
	uint64_t started_ns;    /* of the call; open loop: when it was to start */
	_Atomic uint64_t bytes, calls; /* written by the slot, read by reports */
	atomic_bool parked;     /* waits for a free channel, or for a token */
	/*
	 * The call ended for its token's end and is to be made again; its code. tokens: how many
	 * there had been when it began; question: that for another one.
	 */
	bool cut;
	int32_t cut_code;
	uint64_t tokens, question;
	struct perf_slot *next; /* open loop: in the list of those without work */

	/* Recursive: an abort may call back on the thread that aborts. Calls are begun under it. */
	pthread_mutex_t lock;
	rxw_call *call;         /* written by the slot under the lock */
};

/*
 * An open loop: calls become due by the clock. A pacer thread hands them to slots without work;
 * those that find none wait, and a slot that finishes takes the first of them.
 */
struct perf_open {
	struct perf_runner *runner;
	pthread_t thread;
	bool has_thread;
	uint64_t end_ns;                /* nothing is due from here on */
	struct perf_arrivals pacing;    /* pacer alone: what is due next */
	struct tools_histogram late;    /* pacer alone: how late it noticed, ns */

	pthread_mutex_t lock;           /* for what follows */
	struct perf_arrivals starting;  /* when the next call to be started was due */
	uint64_t due, started;          /* moments that have come; calls handed out */
	uint64_t backlog_max;           /* most that waited */
	struct perf_slot *idle, **tail; /* slots without work; the longest idle one is used first */
	bool closed;                    /* slots that ask for work are done */
};

struct perf_runner {
	const struct perf_load *load;
	uint8_t *head;                  /* the words of a request */
	size_t head_len;
	uint64_t head_data;             /* bytes of data in it, behind the words */
	rxperf_sizes sizes;
	uint64_t to_server, to_client, cookie_len;
	bool blocking;
	struct perf_slot *slots;
	struct perf_open *open;         /* NULL: closed loop */
	struct perf_latencies latencies;
	atomic_bool stopping;           /* no new calls */
	atomic_bool aborting;           /* running ones are aborted, and their errors expected */
	_Atomic unsigned parked;

	pthread_mutex_t lock;           /* for what follows; no call of the library inside it */
	pthread_cond_t wake;
	size_t active;                  /* slots that are not done */
	bool failed, stop_asked;
	char why[320];
};

/* Set up slot number `index` of a runner that is otherwise complete; and undo that. */
void perf_slot_init(struct perf_slot *s, struct perf_runner *r, uint64_t index);
void perf_slot_free(struct perf_slot *s);
/*
 * Go on until the slot must wait or is done; the slot may belong to another thread when this
 * returns.
 */
void perf_slot_drive(struct perf_slot *s);
/* `count` slots will make no more calls. */
void perf_slots_done(struct perf_runner *r, size_t count);
/* Stop the run; the first failure is the one that is told. */
void perf_runner_fail(struct perf_runner *r, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* The open loop of a load, nothing running yet; NULL without memory. */
struct perf_open *perf_open_new(struct perf_runner *r);
/* Begin now, with all slots idle. 0, or an errno value: no thread. */
int perf_open_start(struct perf_open *o);
/*
 * What a slot without a call does next: true: started_ns is set and the call is to begin; false
 * and *done: no more; false: it rests until the pacer drives it, and is not the caller's any more.
 */
bool perf_open_take(struct perf_open *o, struct perf_slot *s, bool *done);
/* End: what is idle is done, and so is what becomes idle. */
void perf_open_close(struct perf_open *o);
/* All slots are done: join the pacer, count what was due and never began. */
void perf_open_finish(struct perf_open *o);
void perf_open_free(struct perf_open *o);

#endif
