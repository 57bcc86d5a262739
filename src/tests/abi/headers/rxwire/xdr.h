/* SPDX-License-Identifier: BSD-2-Clause */
/* Bounded XDR coding on memory: the encoding of Rx requests and replies (rx-protocol 9.2). */
#ifndef RXWIRE_XDR_H
#define RXWIRE_XDR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * A cursor over memory that the caller owns. After the first failure every further operation fails
 * and changes nothing, so that a sequence can be checked once at its end. Not for several threads
 * at once.
 */
struct rxw_xdr {
	uint8_t *at;    /* next byte; only read when decoding */
	uint8_t *end;   /* first byte beyond */
	uint8_t *start;
	bool failed;
};

void rxw_xdr_writer(struct rxw_xdr *x, void *memory, size_t size);
void rxw_xdr_reader(struct rxw_xdr *x, const void *memory, size_t size);
size_t rxw_xdr_used(const struct rxw_xdr *x);   /* bytes coded so far */
size_t rxw_xdr_left(const struct rxw_xdr *x);   /* bytes that remain */
bool rxw_xdr_ok(const struct rxw_xdr *x);

bool rxw_xdr_put_u32(struct rxw_xdr *x, uint32_t v);
bool rxw_xdr_put_u64(struct rxw_xdr *x, uint64_t v);
/* Fixed opaque: the bytes and zero padding to 4. */
bool rxw_xdr_put_opaque(struct rxw_xdr *x, const void *data, size_t length);
/* Length word, bytes, padding. */
bool rxw_xdr_put_bytes(struct rxw_xdr *x, const void *data, size_t length);
bool rxw_xdr_put_string(struct rxw_xdr *x, const char *text);

bool rxw_xdr_get_u32(struct rxw_xdr *x, uint32_t *v);
bool rxw_xdr_get_i32(struct rxw_xdr *x, int32_t *v);
bool rxw_xdr_get_u64(struct rxw_xdr *x, uint64_t *v);
/* Fixed opaque of `length` bytes, copied. */
bool rxw_xdr_get_opaque(struct rxw_xdr *x, void *data, size_t length);
/* Counted bytes of at most `max`; lent from the memory of the reader. */
bool rxw_xdr_get_bytes(struct rxw_xdr *x, size_t max, const uint8_t **data, size_t *length);
/* String of at most `max` bytes without NUL, copied with a NUL into text[max + 1]. */
bool rxw_xdr_get_string(struct rxw_xdr *x, size_t max, char *text);
/*
 * A count that is at most `max` and whose elements of at least `element` bytes can still be there.
 */
bool rxw_xdr_get_count(struct rxw_xdr *x, size_t max, size_t element, uint32_t *count);
bool rxw_xdr_skip(struct rxw_xdr *x, size_t length);

#ifdef __cplusplus
}
#endif
#endif
