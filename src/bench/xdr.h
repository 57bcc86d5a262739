/* SPDX-License-Identifier: BSD-2-Clause */
/* Two codings of one reply: what the benchmark of XDR asks of each. */
#ifndef RXW_BENCH_XDR_H
#define RXW_BENCH_XDR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A BulkStatus reply: so many statuses of 21 words, callbacks of 3, and 6 words behind. */
#define XDR_ENTRIES 50
#define XDR_STATUS  21
#define XDR_CALLBACK 3
#define XDR_SYNC    6
#define XDR_BYTES   (4 * (1 + XDR_ENTRIES * XDR_STATUS + 1 + XDR_ENTRIES * XDR_CALLBACK + XDR_SYNC))

/* Word number `i` of the reply, its two counts not among them. */
static inline uint32_t xdr_word(unsigned i)
{
	return (i + 1) * 2654435761u;
}

struct xdr_side {
	void (*prepare)(void);                    /* fill the structures with xdr_word() */
	size_t (*encode)(void *memory, size_t size); /* bytes, 0 on failure */
	bool (*decode)(const void *memory, size_t size); /* into memory of its own, which it frees */
	uint32_t (*sum)(void);                    /* of all words that the last decode found */
};

extern const struct xdr_side xdr_compiled;
/* NULL functions where libtirpc is not there. */
extern const struct xdr_side xdr_tirpc;

#endif
