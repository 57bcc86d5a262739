/* SPDX-License-Identifier: BSD-2-Clause */
/* What the library is made to do while the system refuses: two endpoints and all sorts of calls. */
#ifndef TESTS_FAULTS_SCENARIO_H
#define TESTS_FAULTS_SCENARIO_H

#include "shim.h"

/*
 * One run under a plan: engines, endpoints, three connections, small calls, an asynchronous one, 1
 * MiB each way. Whatever fails must do so with a result or a code of those that the function
 * documents; what succeeds has the right bytes. Then nothing fails any more: the same endpoints
 * serve calls, all is destroyed in order, and nothing is left. A failed assertion, or a run that
 * does not end, names the plan.
 */
void scenario_run(const struct shim_plan *plan);

/* Runs under plans of a kind: occurrence `first`, then every `step`-th, until one was not reached. */
void scenario_sweep(enum shim_kind kind, int error, uint64_t many, unsigned first, unsigned step);

/* Each how many-th occurrence is tried: all in a long run (RXW_FAULTS_STEP=1), else as said. */
unsigned scenario_step(unsigned usual);

#endif
