/* SPDX-License-Identifier: BSD-2-Clause */
/* --bwlimit: the rate of all threads together. */
#ifndef COPY_PACE_H
#define COPY_PACE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct run;

struct pace {
	uint64_t rate; /* bytes per second; 0: no limit */
	pthread_mutex_t lock;
	uint64_t next_ns; /* when more may be sent; covered by the lock */
};

/* "100" is KiB per second, as for rsync; "1.5M", "200k", "0" are others. False: it is no rate. */
bool pace_parse(const char *text, uint64_t *rate);
void pace_init(struct pace *pace, uint64_t rate);
void pace_destroy(struct pace *pace);
/* Bytes of one call, at most `left`: half a second's with a limit. */
uint64_t pace_part(const struct pace *pace, uint64_t left);
/* Wait until `bytes` more may be sent. False: interrupted. */
bool pace_wait(struct pace *pace, struct run *run, uint64_t bytes);

#endif
