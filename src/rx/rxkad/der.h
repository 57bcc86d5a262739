/* SPDX-License-Identifier: BSD-2-Clause */
/* Reading and writing the DER of Kerberos tickets (X.690; RFC 4120 5), by libcrypto. */
#ifndef RXW_RXKAD_DER_H
#define RXW_RXKAD_DER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Larger than any ticket; longer inputs are refused. */
#define RXW_DER_MAX 0xffffffu

/* The rest of an input. Reading stays within it, and leaves it unchanged on failure. */
struct rxw_der {
	const uint8_t *p;
	size_t left;
};

#define RXW_DER_INTEGER	       0x02
#define RXW_DER_BIT_STRING     0x03
#define RXW_DER_OCTET_STRING   0x04
#define RXW_DER_TIME	       0x18 /* GeneralizedTime */
#define RXW_DER_GENERAL_STRING 0x1b
#define RXW_DER_SEQUENCE       0x30
#define RXW_DER_APPLICATION(n) (0x60 | (n))
#define RXW_DER_CONTEXT(n)     (0xa0 | (n))

/* Reads the next element, if it has this tag. Lengths must be in their shortest form. */
bool rxw_der_get(struct rxw_der *d, uint8_t tag, struct rxw_der *content);
/* Whether the next element has this tag. */
bool rxw_der_is(const struct rxw_der *d, uint8_t tag);
/* [n] INTEGER; false if it is outside least..most. *value is undefined on failure. */
bool rxw_der_get_integer(struct rxw_der *d, unsigned n, int64_t least, int64_t most,
			 int64_t *value);
/* [n] with exactly one element, of that tag. */
bool rxw_der_get_in(struct rxw_der *d, unsigned n, uint8_t tag, struct rxw_der *content);
/* [n] GeneralizedTime, "YYYYMMDDhhmmssZ": seconds since 1970. */
bool rxw_der_get_time(struct rxw_der *d, unsigned n, int64_t *value);

/* Writing goes from the end to the front: the content first, then its header. */
struct rxw_der_out {
	uint8_t *start, *p; /* written: p..end */
	uint8_t *end;
	bool full; /* it did not fit; nothing more is written */
};

void rxw_der_put_bytes(struct rxw_der_out *o, const void *bytes, size_t size);
/* The header of everything written since o->p was `end_of`. */
void rxw_der_put_header(struct rxw_der_out *o, uint8_t tag, const uint8_t *end_of);
/* [n] INTEGER, 0 or more. */
void rxw_der_put_integer(struct rxw_der_out *o, unsigned n, uint32_t value);
/* [n] with a string of that tag. */
void rxw_der_put_in(struct rxw_der_out *o, unsigned n, uint8_t tag, const void *bytes, size_t size);
/* [n] GeneralizedTime; false: the year does not have four digits, or no memory. */
bool rxw_der_put_time(struct rxw_der_out *o, unsigned n, int64_t seconds);

#endif
