/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The cost of a packet is the number of basic blocks that run: the compiler calls a function in each of them. Bytes
 * that are copied or set count as one block for 64.
 */
#include <stddef.h>

#include "base/rtt.h"
#include "cost.h"

void __sanitizer_cov_trace_pc(void);
void *__real_memcpy(void *to, const void *from, size_t size);
void *__real_memmove(void *to, const void *from, size_t size);
void *__real_memset(void *to, int byte, size_t size);
void *__wrap_memcpy(void *to, const void *from, size_t size);
void *__wrap_memmove(void *to, const void *from, size_t size);
void *__wrap_memset(void *to, int byte, size_t size);

const bool cost_is_time = false;
static uint64_t blocks;

void __sanitizer_cov_trace_pc(void)
{
	blocks++;
}

void *__wrap_memcpy(void *to, const void *from, size_t size)
{
	blocks += size / 64;
	return __real_memcpy(to, from, size);
}

void *__wrap_memmove(void *to, const void *from, size_t size)
{
	blocks += size / 64;
	return __real_memmove(to, from, size);
}

void *__wrap_memset(void *to, int byte, size_t size)
{
	blocks += size / 64;
	return __real_memset(to, byte, size);
}

uint64_t cost_now(void)
{
	return blocks;
}

/* A function of the core is called, which has blocks. */
bool cost_available(void)
{
	struct rxw_rtt rtt;
	uint64_t begin = blocks;

	rxw_rtt_init(&rtt);
	return blocks != begin;
}
