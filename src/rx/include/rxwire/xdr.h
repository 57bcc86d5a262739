/* SPDX-License-Identifier: BSD-2-Clause */
/* XDR with bounds, on memory or on a call (rx-protocol 9.2). See rxw_xdr(3). */
#ifndef RXWIRE_XDR_H
#define RXWIRE_XDR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rxwire/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * A cursor, prepared by rxw_xdr_writer() or rxw_xdr_reader() for memory that the caller owns, or
 * by rxwire/stub.h for a window on the stream of a call. After a failure all further operations
 * fail and change nothing, so a sequence can be checked once at its end. One thread at a time.
 * The members are private.
 *
 * Invariant: start <= at <= end. A failed cursor has at == end, so the fast path of
 * rxw_xdr_take() does not need to check `failed`.
 */
struct rxw_xdr {
	uint8_t *at;  /* next byte; only read when decoding */
	uint8_t *end; /* first byte beyond */
	uint8_t *start;
	/* moves the window so that `size` bytes are available at `at`; NULL on memory */
	bool (*more)(struct rxw_xdr *x, size_t size);
	size_t later;  /* decoding on a call: maximum number of bytes after `end` */
	size_t budget; /* bytes that decoding may still allocate */
	uint8_t depth; /* nesting of values behind pointers */
	bool failed;
};

/* Maximum size for rxw_xdr_take() on a call. */
#define RXW_XDR_BLOCK 1024
/* Prepare a cursor for encoding into `size` bytes of memory. */
void rxw_xdr_writer(struct rxw_xdr *x, void *memory, size_t size);
/*
 * Prepare a cursor for decoding `size` bytes of memory. Decoding allocates at most 64 KiB plus 16
 * bytes for each of them.
 */
void rxw_xdr_reader(struct rxw_xdr *x, const void *memory, size_t size);
RXW_PURE size_t rxw_xdr_used(const struct rxw_xdr *x); /* bytes processed (on memory) */
RXW_PURE size_t rxw_xdr_left(const struct rxw_xdr *x); /* bytes that remain (on memory) */
RXW_MUST_USE RXW_PURE bool rxw_xdr_ok(const struct rxw_xdr *x);
/* Make the cursor fail; returns false. */
bool rxw_xdr_fail(struct rxw_xdr *x);

/* Slow path of rxw_xdr_take(), when the window is exhausted. */
RXW_MUST_USE uint8_t *rxw_xdr_take_more(struct rxw_xdr *x, size_t size);

/* The next `size` bytes, 1..RXW_XDR_BLOCK, to fill or read; NULL if the cursor has failed. */
static inline uint8_t *rxw_xdr_take(struct rxw_xdr *x, size_t size)
{
	uint8_t *p = x->at;

	if (size > (size_t)(x->end - p))
		return rxw_xdr_take_more(x, size);
	x->at = p + size;
	return p;
}

/* Words in network byte order. */
static inline void rxw_xdr_store32(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)(v >> 24);
	p[1] = (uint8_t)(v >> 16);
	p[2] = (uint8_t)(v >> 8);
	p[3] = (uint8_t)v;
}

static inline void rxw_xdr_store64(uint8_t *p, uint64_t v)
{
	rxw_xdr_store32(p, (uint32_t)(v >> 32));
	rxw_xdr_store32(p + 4, (uint32_t)v);
}

static inline uint32_t rxw_xdr_load32(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | (uint32_t)p[3];
}

static inline uint64_t rxw_xdr_load64(const uint8_t *p)
{
	return (uint64_t)rxw_xdr_load32(p) << 32 | rxw_xdr_load32(p + 4);
}

static inline bool rxw_xdr_put_u32(struct rxw_xdr *x, uint32_t v)
{
	uint8_t *p = rxw_xdr_take(x, 4);

	if (!p)
		return false;
	rxw_xdr_store32(p, v);
	return true;
}

static inline bool rxw_xdr_put_u64(struct rxw_xdr *x, uint64_t v)
{
	uint8_t *p = rxw_xdr_take(x, 8);

	if (!p)
		return false;
	rxw_xdr_store64(p, v);
	return true;
}

static inline bool rxw_xdr_get_u32(struct rxw_xdr *x, uint32_t *v)
{
	const uint8_t *p = rxw_xdr_take(x, 4);

	if (!p)
		return false;
	*v = rxw_xdr_load32(p);
	return true;
}

static inline bool rxw_xdr_get_i32(struct rxw_xdr *x, int32_t *v)
{
	const uint8_t *p = rxw_xdr_take(x, 4);

	if (!p)
		return false;
	*v = (int32_t)rxw_xdr_load32(p);
	return true;
}

static inline bool rxw_xdr_get_u64(struct rxw_xdr *x, uint64_t *v)
{
	const uint8_t *p = rxw_xdr_take(x, 8);

	if (!p)
		return false;
	*v = rxw_xdr_load64(p);
	return true;
}

static inline bool rxw_xdr_get_i64(struct rxw_xdr *x, int64_t *v)
{
	const uint8_t *p = rxw_xdr_take(x, 8);

	if (!p)
		return false;
	*v = (int64_t)rxw_xdr_load64(p);
	return true;
}

/* Every word except 0 is true. */
static inline bool rxw_xdr_get_bool(struct rxw_xdr *x, bool *v)
{
	const uint8_t *p = rxw_xdr_take(x, 4);

	if (!p)
		return false;
	*v = rxw_xdr_load32(p) != 0;
	return true;
}

/*
 * Opaque data of fixed length, padded with zeros to a multiple of 4 bytes; any length, also on a
 * call.
 */
bool rxw_xdr_put_opaque(struct rxw_xdr *x, const void *data, size_t length);
/* The same, copied to `data`. */
bool rxw_xdr_get_opaque(struct rxw_xdr *x, void *data, size_t length);
/* Skip opaque data and its padding. */
bool rxw_xdr_skip(struct rxw_xdr *x, size_t length);

/* Counted bytes: length, bytes, padding. Fails if length > bound. */
bool rxw_xdr_put_bytes(struct rxw_xdr *x, const void *data, size_t length, uint32_t bound);
/* The same for a string; fails if it is NULL or longer than bound, without its NUL. */
bool rxw_xdr_put_string(struct rxw_xdr *x, const char *text, uint32_t bound);

/*
 * Counted bytes, at most `bound`, in allocated memory that the caller frees with free(); NULL for
 * length 0. On failure *data is NULL and *length 0. Memory is allocated as data arrives, in steps
 * of at most 64 KiB, never in advance for the announced length.
 */
bool rxw_xdr_get_bytes(struct rxw_xdr *x, uint32_t bound, char **data, uint32_t *length);
/*
 * The same for a string, with a terminating NUL; a NUL inside is an error. Never NULL on success.
 */
bool rxw_xdr_get_string(struct rxw_xdr *x, uint32_t bound, char **text);
/* A string, copied to text[bound + 1], without allocation. */
bool rxw_xdr_copy_string(struct rxw_xdr *x, uint32_t bound, char *text);
/* Counted bytes, at most `bound`, as a pointer into the memory being decoded; fails on a call. */
bool rxw_xdr_lend_bytes(struct rxw_xdr *x, uint32_t bound, const uint8_t **data, size_t *length);

#ifdef __cplusplus
}
#endif
#endif
