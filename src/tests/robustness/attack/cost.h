/* SPDX-License-Identifier: BSD-2-Clause */
/* What cost.c measures: basic blocks (cost_blocks.c), or CPU time in ns (cost_time.c). */
#ifndef RXW_TESTS_ATTACK_COST_H
#define RXW_TESTS_ATTACK_COST_H

#include <stdbool.h>
#include <stdint.h>

extern const bool cost_is_time;
uint64_t cost_now(void);
/* False: this build cannot count. */
bool cost_available(void);

#endif
