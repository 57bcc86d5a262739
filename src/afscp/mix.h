/* SPDX-License-Identifier: BSD-2-Clause */
/* The load of afscp bench --mix: operations, their shares, and lengths of files. */
#ifndef COPY_MIX_H
#define COPY_MIX_H

#include <stdint.h>

enum mix_op {
	MIX_READ,   /* a whole file */
	MIX_WRITE,  /* a whole file, which exists */
	MIX_STAT,   /* FetchStatus of a file */
	MIX_CREATE, /* a new file with its data */
	MIX_REMOVE, /* a file */
	MIX_OPS
};

#define MIX_SIZE_MAX (256u << 20) /* longest file; one call stores it */

struct mix_spec {
	uint32_t share[MIX_OPS]; /* 0..1,000,000; not all are 0 */
	uint64_t least, most;	 /* bytes of a file, evenly distributed */
};

/* Parse "read=70,write=20,stat=5". Operations that are not named get the share 0. 0, or -1. */
int mix_parse_shares(const char *text, struct mix_spec *spec);
/* "4K" or "4K-1M", at most MIX_SIZE_MAX. 0, or -1. */
int mix_parse_size(const char *text, struct mix_spec *spec);

/* The operation and the length for a number that is evenly distributed over 64 bits. */
enum mix_op mix_choose(const struct mix_spec *spec, uint64_t random);
uint64_t mix_size(const struct mix_spec *spec, uint64_t random);

/* The next number of a generator (splitmix64); *state is any number at first. */
uint64_t mix_random(uint64_t *state);

#endif
