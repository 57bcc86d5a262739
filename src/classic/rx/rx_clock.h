/* SPDX-License-Identifier: BSD-2-Clause */
/* Times of seconds and microseconds. */
#ifndef RXWIRE_CLASSIC_CLOCK_H
#define RXWIRE_CLASSIC_CLOCK_H

#include <sys/time.h>
#include <time.h>

#include <rx/rx_types.h>

struct clock {
	afs_int32 sec;
	afs_int32 usec;
};

#endif
