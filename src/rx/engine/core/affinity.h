/* SPDX-License-Identifier: BSD-2-Clause */
/* Placement of shards on processors (`affinity` = auto). */
#ifndef RXW_ENGINE_AFFINITY_H
#define RXW_ENGINE_AFFINITY_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * A processor for each of `count` shards, of those in `allowed`: each one once before any is used twice,
 * spread over the NUMA nodes, the lowest number first. `sys`: "/sys", or a copy.
 */
void rxw_place(const char *sys, const cpu_set_t *allowed, unsigned count, uint16_t *cpu);
/* A network card has `count` receive queues or more. */
bool rxw_place_has_queues(const char *sys, unsigned count);

#endif
