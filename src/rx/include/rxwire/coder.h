/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * XDR for generated coders: short numbers, arrays, pointers; for code by hand xdr.h suffices. The
 * functions have a version of their own, RXWIRE_STUB_0. See rxw_xdr(3).
 */
#ifndef RXWIRE_CODER_H
#define RXWIRE_CODER_H

#include <rxwire/xdr.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Maximum nesting of values behind pointers. */
#define RXW_XDR_DEPTH 64
/* Maximum number of elements of a list that is linked through its last member. */
#define RXW_XDR_LIST 65536

/* Shorter numbers use the low bits of a word; the other bits are ignored. */
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

/* IEEE 754, 4 and 8 bytes. */
bool rxw_xdr_put_float(struct rxw_xdr *x, float v);
bool rxw_xdr_get_float(struct rxw_xdr *x, float *v);
bool rxw_xdr_put_double(struct rxw_xdr *x, double v);
bool rxw_xdr_get_double(struct rxw_xdr *x, double *v);

/* afsUUID: 11 words; bytes are sign-extended to a word each. */
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
 * `count` consecutive words in memory: arrays of int32_t or uint32_t, or of structures that
 * contain nothing else.
 */
bool rxw_xdr_put_words(struct rxw_xdr *x, const void *words, size_t count);
bool rxw_xdr_get_words(struct rxw_xdr *x, void *words, size_t count);

/*
 * The number of elements of an array, at most `bound`; each takes at least `element` bytes. Fails
 * if the remaining input, or the limit of the call, cannot contain so many. On a call it waits
 * for as many of them as the window holds. Nothing is allocated.
 */
bool rxw_xdr_get_count(struct rxw_xdr *x, uint32_t bound, size_t element, uint32_t *count);
/*
 * Enlarge an array that has room for *room elements of `size` bytes, all filled, towards `count`
 * elements. A step is at most 64 KiB, or one element if that is larger. Returns the new array,
 * which the caller frees with free(), and updates *room. NULL: memory or budget is exhausted, the
 * cursor has failed, and `array` is unchanged.
 */
RXW_MUST_USE
void *rxw_xdr_grow(struct rxw_xdr *x, void *array, size_t *room, uint32_t count, size_t size);
/* Allocate one zeroed value, charged to the budget; the caller frees it with free(). */
RXW_MUST_USE RXW_MALLOC void *rxw_xdr_new(struct rxw_xdr *x, size_t size);

/* Call these before and after a value behind a pointer; enter fails beyond RXW_XDR_DEPTH. */
bool rxw_xdr_enter(struct rxw_xdr *x);
void rxw_xdr_leave(struct rxw_xdr *x);

#ifdef __cplusplus
}
#endif
#endif
