/* SPDX-License-Identifier: BSD-2-Clause */
/* The monotonic clock. */
#include <time.h>

#include "fileserver/base/base.h"

uint64_t fsd_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

uint64_t fsd_now(void)
{
	return fsd_now_ns() / 1000000000u;
}
