/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside the load generator: latencies, and slots, each of which makes one call after another. */
#ifndef PERF_RUNNER_H
#define PERF_RUNNER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "program/histogram.h"
#include "rxperf/perf.h"

/*
 * Each thread has its own histogram in every set that it adds to. A set must outlive all additions.
 */
struct perf_latencies {
	uint64_t id;		  /* unique id, which threads cache */
	pthread_mutex_t lock;	  /* covers the list */
	struct perf_latency *all; /* histograms */
};

void perf_latencies_init(struct perf_latencies *set);
/* Any thread. Values of a thread without memory for its histogram are lost. */
void perf_latencies_add(struct perf_latencies *set, uint64_t nanoseconds);
/* Add all values to `into`. No thread may add meanwhile. */
void perf_latencies_merge(const struct perf_latencies *set, struct tools_histogram *into);
void perf_latencies_free(struct perf_latencies *set);

#define PERF_COOKIE_LEN 4

/*
 * A slot makes one call at a time. It is driven by one thread at a time: its own, or a thread on
 * which the library calls back. Only `call` is also used by the thread that aborts, and has a lock.
 */
struct perf_slot {
	struct perf_runner *runner;
	size_t connection;  /* index of the connection of its next call */
	size_t first, step; /* it uses first, first + step ... in turn */
	pthread_t thread;   /* blocking form */
	bool has_thread;
	bool armed; /* the callback is set: it may run at any time */
	bool request_ended;
	bool whole; /* the reply is complete, or there is an error */
	bool due;   /* open loop: started_ns belongs to a call that has not begun */
	uint64_t head_sent, sent, received; /* of the call */
	uint8_t tail[PERF_COOKIE_LEN];
	ssize_t error; /* result of the library when a step failed */
	uint64_t calls_left;
	uint64_t started_ns;	       /* start of the call; open loop: when it was due */
	_Atomic uint64_t bytes, calls; /* written by the slot, read by reports */
	atomic_bool parked;	       /* waiting for a free channel or a token */
	/*
	 * The call failed because its token expired, and is to be repeated; its code. tokens:
	 * number of renewals when it began; question: the request for a new token.
	 */
	bool cut;
	int32_t cut_code;
	uint64_t tokens, question;
	struct perf_slot *next; /* open loop: in the list of idle slots */

	/* Recursive, because an abort may call back on the same thread. Calls begin under it. */
	pthread_mutex_t lock;
	rxw_call *call; /* written by the slot under the lock */
};

/*
 * An open loop: calls become due by the clock. A pacer thread hands them to idle slots. If there is
 * none they wait in a backlog, and a slot that finishes takes the first of them.
 */
struct perf_open {
	struct perf_runner *runner;
	pthread_t thread;
	bool has_thread;
	uint64_t end_ns;	     /* no call is due after this */
	struct perf_arrivals pacing; /* pacer only: the next due call */
	struct tools_histogram late; /* pacer only: its delays, ns */

	pthread_mutex_t lock;		/* covers the members below */
	struct perf_arrivals starting;	/* when the next call to be started was due */
	uint64_t due, started;		/* calls that became due; calls handed out */
	uint64_t backlog_max;		/* longest backlog */
	struct perf_slot *idle, **tail; /* idle slots; the longest idle one first */
	bool closed;			/* slots that ask for work get none and are done */
};

struct perf_runner {
	const struct perf_load *load;
	uint8_t *head; /* the encoded request */
	size_t head_len;
	uint64_t head_data; /* bytes of data at its end */
	rxperf_sizes sizes;
	uint64_t to_server, to_client, cookie_len;
	bool blocking;
	struct perf_slot *slots;
	struct perf_open *open; /* NULL: closed loop */
	struct perf_latencies latencies;
	atomic_bool stopping; /* no new calls */
	atomic_bool aborting; /* running calls are aborted; their errors are ignored */
	_Atomic unsigned parked;

	pthread_mutex_t lock; /* covers the members below; the library is never called under it */
	pthread_cond_t wake;
	size_t active; /* slots that are not done */
	bool failed, stop_asked;
	char why[320];
};

/* Initialise slot number `index`, after the other members of the runner; and undo that. */
void perf_slot_init(struct perf_slot *s, struct perf_runner *r, uint64_t index);
void perf_slot_free(struct perf_slot *s);
/*
 * Continue until the slot must wait or is done. It may belong to another thread on return.
 */
void perf_slot_drive(struct perf_slot *s);
/* `count` slots will make no more calls. */
void perf_slots_done(struct perf_runner *r, size_t count);
/* Stop the run; the first failure is reported. */
void perf_runner_fail(struct perf_runner *r, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Create the open loop of a load, without starting it; NULL without memory. */
struct perf_open *perf_open_new(struct perf_runner *r);
/* Start, with all slots idle. 0, or an errno value: no thread. */
int perf_open_start(struct perf_open *o);
/*
 * Ask for work for a slot without a call. True: started_ns is set, begin the call. False and *done:
 * no more calls. False: the slot is idle, and the pacer owns it.
 */
bool perf_open_take(struct perf_open *o, struct perf_slot *s, bool *done);
/* Stop: idle slots are done, and others when they become idle. */
void perf_open_close(struct perf_open *o);
/* Join the pacer when all slots are done, and account for calls that never began. */
void perf_open_finish(struct perf_open *o);
void perf_open_free(struct perf_open *o);

#endif
