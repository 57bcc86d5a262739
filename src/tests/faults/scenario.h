/* SPDX-License-Identifier: BSD-2-Clause */
/* What the library is made to do while the system refuses. */
#ifndef TESTS_FAULTS_SCENARIO_H
#define TESTS_FAULTS_SCENARIO_H

#include <stdio.h>

#include <rxwire/rxwire.h>

#include "shim.h"
#include "tests/asserts.h"

/*
 * One sort of work. Whatever fails in up() and work() must do so with a result or a code of those
 * that the function documents; what succeeds has the right bytes. Then nothing fails any more:
 * lives_on() finds that what was set up still works, and down() undoes all of it.
 */
struct scenario {
	void (*prepare)(void);	/* before anything fails; NULL = nothing to do */
	bool calm_up;		/* nothing fails in up() yet */
	bool (*up)(void);	/* false: something failed, and what there is waits for down() */
	void (*work)(void);
	void (*lives_on)(bool whole); /* whole: up() returned true */
	void (*down)(void);
};

/*
 * Engines, endpoints, three connections, small calls, an asynchronous one, 1 MiB each way, with the
 * null class and with one that seals.
 */
extern const struct scenario scenario_calls;
/* Generated stubs: strings, arrays, lists, unions, a multi call and a split one. */
extern const struct scenario scenario_stubs;
/* The fileserver, and a client that walks, reads and is told of changes. */
extern const struct scenario scenario_files;

/*
 * One run under a plan, after which nothing is left: no memory, no descriptor, no thread. A failed
 * assertion, or a run that does not end, names the plan.
 */
void scenario_run(const struct scenario *s, const struct shim_plan *plan);

/*
 * Runs in which nothing is refused, until every kind up to `last` was asked for: it depends on who is
 * quicker whether a thread sleeps and must be woken. Twenty of them at most.
 */
void scenario_clean(const struct scenario *s, enum shim_kind last);

/* Runs under plans of a kind: occurrence `first`, then every `step`-th, until one was not reached. */
void scenario_sweep(const struct scenario *s, enum shim_kind kind, int error, uint64_t many,
		    unsigned first, unsigned step);
/* The same for a clock, which from the occurrence on is so many ns ahead or behind. */
void scenario_sweep_clock(const struct scenario *s, enum shim_kind kind, int64_t jump,
			  unsigned first, unsigned step);

/* Each how many-th occurrence is tried: all in a long run (RXW_FAULTS_STEP=1), else as said. */
unsigned scenario_step(unsigned usual);
/* Of combinations too many for a short run: is this one of the share that it takes? */
bool scenario_chosen(unsigned i, unsigned share);

/* --- for the scenarios --- */

/* The plan that is followed, in words. */
extern char scenario_running[];

#define expect(condition, ...)                                                \
	do {                                                                  \
		if (!(condition)) {                                           \
			char text[400];                                       \
			snprintf(text, sizeof(text), __VA_ARGS__);            \
			ck_abort_msg("%s: %s", scenario_running, text);       \
		}                                                             \
	} while (0)

/* A result of a function of the library: 0 or more, or the negative of a documented number. */
void scenario_sane(const char *what, long result);

/* An engine, and an endpoint on any port of the loopback, of which paused servers are started. */
int scenario_engine(rxw_engine **engine);
int scenario_endpoint(rxw_engine *engine, bool server, rxw_endpoint **endpoint);
/* Either may be NULL. */
void scenario_destroy(rxw_endpoint *endpoint, rxw_engine *engine);

#endif
