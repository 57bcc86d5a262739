/* SPDX-License-Identifier: BSD-2-Clause */
/* Run times of handlers: which services are quick. Any thread; no lock is needed. */
#ifndef RXW_ENGINE_QUICK_H
#define RXW_ENGINE_QUICK_H

#include <stdbool.h>
#include <stdint.h>

struct rxw_endpoint;
struct rxw_service;

/* A handler that runs on a thread whose next packets wait for it. */
struct rxw_run {
	uint64_t began; /* ns */
	unsigned watched;
	long preemptions;
};
void rxw_run_begin(struct rxw_run *run, struct rxw_service *service, uint64_t now);
/* True: it was slow. */
bool rxw_run_end(const struct rxw_run *run, struct rxw_service *service, uint64_t now);
/* Such threads should not run handlers of the service now. */
bool rxw_run_was_slow(const struct rxw_service *service, uint64_t now);
/* A handler took so long (ns), on any thread but an inline one. True: the service is quick. */
bool rxw_run_note(struct rxw_service *service, uint64_t took);
/* Its handlers return so soon that it does not pay to wake a worker. */
bool rxw_is_quick(const struct rxw_service *service, uint64_t now);
/* How long (ns) a listener serves calls before it receives again, and workers serve the rest. */
uint64_t rxw_run_stay(const struct rxw_endpoint *ep);

#endif
