/* SPDX-License-Identifier: BSD-2-Clause */
/* The raw yardstick of small calls: what its two files share. */
#ifndef RXW_BENCH_RAWCALL_H
#define RXW_BENCH_RAWCALL_H

#include <stdbool.h>
#include <stdint.h>

#include "bench/raw.h"

#define RAWCALL_HEADER   28u /* bytes, as many as Rx has */
#define RAWCALL_BUCKETS  2048u

/* How datagrams are sent, and how they are received. */
enum rawcall_mode {
	RAWCALL_BLOCK,
	RAWCALL_POLL,
	RAWCALL_MMSG,
	RAWCALL_BURSTS,
	RAWCALL_MODES
};

struct rawcall_options {
	enum rawcall_mode mode;
	unsigned outstanding; /* calls */
	unsigned size;        /* bytes of a datagram, header and all */
	uint64_t calls;       /* end after so many ... */
	unsigned seconds;     /* ... or when so much time has passed */
};

/* What the client saw. */
struct rawcall_result {
	uint64_t calls;  /* answered */
	uint64_t resent; /* requests that were sent again: they or their replies were lost */
	double elapsed;  /* seconds, from the first request to the last reply */
	uint64_t latency[RAWCALL_BUCKETS]; /* calls by time, see rawcall_quantile() */
};

/* Both on sockets that are connected to each other; a failure ends the program with a message. */
void rawcall_client(const struct rawcall_options *o, int fd, struct rawcall_result *result,
		    struct raw_usage *u);
/* Answers until it is told to end by rawcall_end(). */
void rawcall_server(const struct rawcall_options *o, int fd, struct raw_usage *u);
/* Tells the server to end. It may be lost. */
void rawcall_end(const struct rawcall_options *o, int fd);

/* The time in microseconds within which a share (0 to 1) of the calls were answered, to 2 %. */
double rawcall_quantile(const struct rawcall_result *result, double share);

#endif
