/* SPDX-License-Identifier: BSD-2-Clause */
/* Work of the library that is run while the system fails requests. */
#ifndef TESTS_FAULTS_SCENARIO_H
#define TESTS_FAULTS_SCENARIO_H

#include <stdio.h>

#include <rxwire/rxwire.h>

#include "shim.h"
#include "tests/asserts.h"

/*
 * One kind of work. A failure in up() and work() must be a result or code that the function
 * documents, and successful calls have the right bytes. Afterwards nothing fails any more:
 * lives_on() checks that what was set up still works, and down() releases all of it.
 */
struct scenario {
	void (*prepare)(void);	/* before anything fails; NULL = nothing to do */
	bool calm_up;		/* nothing fails in up() yet */
	bool (*up)(void);	/* false: something failed; down() releases the rest */
	void (*work)(void);
	void (*lives_on)(bool whole); /* whole: up() returned true */
	void (*down)(void);
};

/*
 * Engines, endpoints, three connections, small calls, an asynchronous one, and 1 MiB each way, with
 * the null class and with one that seals.
 */
extern const struct scenario scenario_calls;
/* Generated stubs: strings, arrays, lists, unions, a multi call and a split one. */
extern const struct scenario scenario_stubs;
/* The file server, and a client that walks the tree, reads files and receives callbacks. */
extern const struct scenario scenario_files;

/*
 * One run under a plan, with a check that no memory, descriptor or thread is left. A failed
 * assertion, or a run that hangs, prints the plan.
 */
void scenario_run(const struct scenario *s, const struct shim_plan *plan);

/*
 * Runs without failures until every kind up to `last` has occurred, at most twenty: whether a
 * thread sleeps and must be woken depends on timing.
 */
void scenario_clean(const struct scenario *s, enum shim_kind last);

/*
 * Runs under plans of a kind: occurrence `first`, then every `step`-th, until one was not reached.
 */
void scenario_sweep(const struct scenario *s, enum shim_kind kind, int error, uint64_t many,
		    unsigned first, unsigned step);
/* The same for a clock that from the occurrence on is `ns` ahead or behind. */
void scenario_sweep_clock(const struct scenario *s, enum shim_kind kind, int64_t jump,
			  unsigned first, unsigned step);

/* The step between occurrences: 1 in a long run (RXW_FAULTS_STEP=1), else the argument. */
unsigned scenario_step(unsigned usual);
/* Whether a short run includes this one of many combinations. */
bool scenario_chosen(unsigned i, unsigned share);

/* --- for the scenarios --- */

/* The current plan in words. */
extern char scenario_running[];

#define expect(condition, ...)                                                \
	do {                                                                  \
		if (!(condition)) {                                           \
			char text[400];                                       \
			snprintf(text, sizeof(text), __VA_ARGS__);            \
			ck_abort_msg("%s: %s", scenario_running, text);       \
		}                                                             \
	} while (0)

/* Asserts a result of the library: 0 or more, or a documented negative number. */
void scenario_sane(const char *what, long result);

/* An engine, and an endpoint on any loopback port, for servers that are started later. */
int scenario_engine(rxw_engine **engine);
int scenario_endpoint(rxw_engine *engine, bool server, rxw_endpoint **endpoint);
/* Either may be NULL. */
void scenario_destroy(rxw_endpoint *endpoint, rxw_engine *engine);

#endif
