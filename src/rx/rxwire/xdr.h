/* SPDX-License-Identifier: BSD-2-Clause */
/* Bounded XDR: the encoding of Rx requests and replies, on memory or on a call (rx-protocol 9.2) */
#ifndef RXWIRE_XDR_H
#define RXWIRE_XDR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * A cursor over memory. After the first failure every further operation fails and changes nothing,
 * so that a sequence can be checked once at its end. Not for several threads at once. Set up by
 * rxw_xdr_writer() or rxw_xdr_reader() over memory that the caller owns, or by rxwire/rpc.h over
 * a window that moves along the stream of a call. The fields are for the functions here.
 *
 * Invariant: start <= at <= end; a cursor that has failed has at == end, so that the fast path of
 * rxw_xdr_take() needs no look at `failed`.
 */
struct rxw_xdr {
	uint8_t *at;    /* next byte; only read when decoding */
	uint8_t *end;   /* first byte beyond */
	uint8_t *start;
	/* Move the window so that `size` bytes lie at `at`; NULL on memory. */
	bool (*more)(struct rxw_xdr *x, size_t size);
	size_t later;   /* decoding on a call: bytes that may at most come behind `end` */
	size_t budget;  /* bytes that decoding may still allocate */
	uint8_t depth;  /* of values behind pointers */
	bool failed;
};

/* The most that rxw_xdr_take() gives at once on a call. */
#define RXW_XDR_BLOCK 1024
/* Values behind values behind pointers: at most so deep. */
#define RXW_XDR_DEPTH 64
/* Elements of a list whose last member points to the next one: at most so many. */
#define RXW_XDR_LIST 65536

/* Memory for encoding, `size` bytes. */
void rxw_xdr_writer(struct rxw_xdr *x, void *memory, size_t size);
/*
 * Memory to decode, `size` bytes. What decoding allocates is at most 64 KiB and 16 bytes for each
 * byte of it.
 */
void rxw_xdr_reader(struct rxw_xdr *x, const void *memory, size_t size);
size_t rxw_xdr_used(const struct rxw_xdr *x);   /* bytes coded so far (on memory) */
size_t rxw_xdr_left(const struct rxw_xdr *x);   /* bytes that remain (on memory) */
bool rxw_xdr_ok(const struct rxw_xdr *x);
/* Make it fail; returns false. */
bool rxw_xdr_fail(struct rxw_xdr *x);

/* What rxw_xdr_take() does when the window is used up. */
uint8_t *rxw_xdr_take_more(struct rxw_xdr *x, size_t size);

/* The next `size` bytes, 1..RXW_XDR_BLOCK, to fill or to read; NULL and the cursor has failed. */
static inline uint8_t *rxw_xdr_take(struct rxw_xdr *x, size_t size)
{
	uint8_t *p = x->at;

	if (size > (size_t)(x->end - p))
		return rxw_xdr_take_more(x, size);
	x->at = p + size;
	return p;
}

/* Words in network order. */
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

/* Of these a word has the low bits; what is above them does not count. */
static inline bool rxw_xdr_get_i16(struct rxw_xdr *x, int16_t *v)
{
	const uint8_t *p = rxw_xdr_take(x, 4);

	if (!p)
		return false;
	*v = (int16_t)(uint16_t)rxw_xdr_load32(p);
	return true;
}

static inline bool rxw_xdr_get_u16(struct rxw_xdr *x, uint16_t *v)
{
	const uint8_t *p = rxw_xdr_take(x, 4);

	if (!p)
		return false;
	*v = (uint16_t)rxw_xdr_load32(p);
	return true;
}

static inline bool rxw_xdr_get_char(struct rxw_xdr *x, char *v)
{
	const uint8_t *p = rxw_xdr_take(x, 4);

	if (!p)
		return false;
	*v = (char)p[3];
	return true;
}

static inline bool rxw_xdr_get_u8(struct rxw_xdr *x, uint8_t *v)
{
	const uint8_t *p = rxw_xdr_take(x, 4);

	if (!p)
		return false;
	*v = p[3];
	return true;
}

/* Any word but 0 is true. */
static inline bool rxw_xdr_get_bool(struct rxw_xdr *x, bool *v)
{
	const uint8_t *p = rxw_xdr_take(x, 4);

	if (!p)
		return false;
	*v = rxw_xdr_load32(p) != 0;
	return true;
}

/* IEEE 754, 4 and 8 bytes. */
bool rxw_xdr_put_float(struct rxw_xdr *x, float v);
bool rxw_xdr_get_float(struct rxw_xdr *x, float *v);
bool rxw_xdr_put_double(struct rxw_xdr *x, double v);
bool rxw_xdr_get_double(struct rxw_xdr *x, double *v);

/* afsUUID: 11 words, each byte a sign-extended one. */
struct rxw_uuid {
	uint32_t time_low;
	uint16_t time_mid;
	uint16_t time_hi_and_version;
	int8_t clock_seq_hi_and_reserved;
	int8_t clock_seq_low;
	int8_t node[6];
};
#define RXW_UUID_BYTES 44
bool rxw_xdr_put_uuid(struct rxw_xdr *x, const struct rxw_uuid *v);
bool rxw_xdr_get_uuid(struct rxw_xdr *x, struct rxw_uuid *v);

/*
 * `count` words one behind the other, as many as they are: arrays of int32_t or uint32_t, or of
 * structures of nothing else.
 */
bool rxw_xdr_put_words(struct rxw_xdr *x, const void *words, size_t count);
bool rxw_xdr_get_words(struct rxw_xdr *x, void *words, size_t count);

/* Fixed opaque: the bytes and zero padding to 4; of any length, on a call too. */
bool rxw_xdr_put_opaque(struct rxw_xdr *x, const void *data, size_t length);
/* Fixed opaque of `length` bytes, copied. */
bool rxw_xdr_get_opaque(struct rxw_xdr *x, void *data, size_t length);
bool rxw_xdr_skip(struct rxw_xdr *x, size_t length);

/* Length word, bytes, padding. Fails if length > bound. */
bool rxw_xdr_put_bytes(struct rxw_xdr *x, const void *data, size_t length, uint32_t bound);
/* The same of a text; fails if it is NULL or longer than bound, its NUL not counted. */
bool rxw_xdr_put_string(struct rxw_xdr *x, const char *text, uint32_t bound);

/*
 * Counted bytes of at most `bound`, into memory from malloc() that the caller frees; of no bytes:
 * NULL. On failure *data is NULL and *length 0. Memory is taken for what has come, in steps of at
 * most 64 KiB, never for what a count promises.
 */
bool rxw_xdr_get_bytes(struct rxw_xdr *x, uint32_t bound, char **data, uint32_t *length);
/* String without NUL inside, as above, with a NUL behind; never NULL after success. */
bool rxw_xdr_get_string(struct rxw_xdr *x, uint32_t bound, char **text);
/* String into text[bound + 1], without allocation. */
bool rxw_xdr_copy_string(struct rxw_xdr *x, uint32_t bound, char *text);
/* Counted bytes of at most `bound`, lent: on memory only. */
bool rxw_xdr_lend_bytes(struct rxw_xdr *x, uint32_t bound, const uint8_t **data, size_t *length);

/*
 * A count that is at most `bound` and whose elements of at least `element` bytes on the wire can
 * still be there: on a call it waits for as many of them as the window holds, and it fails if the
 * stream or the limit of the call ends before them. Nothing has been allocated until then.
 */
bool rxw_xdr_get_count(struct rxw_xdr *x, uint32_t bound, size_t element, uint32_t *count);
/*
 * An array under construction: `array` has room for *room elements of `size` bytes, all of them
 * filled; gives it room for more, at most `count`, 64 KiB more at a time (always one). NULL: no
 * memory or budget, the cursor has failed, and `array` is as it was.
 */
void *rxw_xdr_grow(struct rxw_xdr *x, void *array, size_t *room, uint32_t count, size_t size);
/* One zeroed value behind a pointer, to be freed with free(); counts against the budget. */
void *rxw_xdr_new(struct rxw_xdr *x, size_t size);

/* Around the coding of a value behind a pointer; enter fails beyond RXW_XDR_DEPTH. */
bool rxw_xdr_enter(struct rxw_xdr *x);
void rxw_xdr_leave(struct rxw_xdr *x);

#ifdef __cplusplus
}
#endif
#endif
