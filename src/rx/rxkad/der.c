/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The DER of Kerberos tickets (X.690; RFC 4120 5), by libcrypto's ASN.1. BER that is not DER is
 * refused even where libcrypto accepts it. libcrypto's error queue, which is shared with the
 * application's code on each thread, is left unchanged.
 */
#include "rxkad/der.h"

#include <openssl/asn1.h>
#include <openssl/err.h>
#include <string.h>
#include <time.h>

#define DIGITS 15 /* bytes of "YYYYMMDDhhmmssZ" */

static int tag_number(uint8_t tag)
{
	return tag & V_ASN1_PRIMITIVE_TAG;
}

bool rxw_der_is(const struct rxw_der *d, uint8_t tag)
{
	return d->left > 0 && d->p[0] == tag;
}

bool rxw_der_get(struct rxw_der *d, uint8_t tag, struct rxw_der *content)
{
	const uint8_t *p = d->p;
	int number, class, flags;
	size_t head;
	long length;

	if (!rxw_der_is(d, tag) || d->left > RXW_DER_MAX)
		return false;
	ERR_set_mark();
	flags = ASN1_get_object(&p, &length, &number, &class, (long)d->left);
	ERR_pop_to_mark();
	if (flags & 0x80 || flags & 1) /* an error, or an indefinite length */
		return false;
	head = (size_t)(p - d->p);
	if (ASN1_object_size(0, (int)length, number) != (int)head + (int)length)
		return false; /* the length is not in its shortest form */
	content->p = p;
	content->left = (size_t)length;
	d->p = p + length;
	d->left -= head + (size_t)length;
	return true;
}

bool rxw_der_get_in(struct rxw_der *d, unsigned n, uint8_t tag, struct rxw_der *content)
{
	struct rxw_der rest = *d, outer;

	if (!rxw_der_get(&rest, (uint8_t)RXW_DER_CONTEXT(n), &outer) ||
	    !rxw_der_get(&outer, tag, content) || outer.left != 0)
		return false;
	*d = rest;
	return true;
}

bool rxw_der_get_integer(struct rxw_der *d, unsigned n, int64_t least, int64_t most, int64_t *value)
{
	struct rxw_der rest = *d, bytes;
	ASN1_INTEGER *number;
	const uint8_t *p;
	bool good;

	if (!rxw_der_get_in(&rest, n, RXW_DER_INTEGER, &bytes) || bytes.left > 8)
		return false;
	p = bytes.p - 2; /* its header */
	ERR_set_mark();
	number = d2i_ASN1_INTEGER(NULL, &p, (long)bytes.left + 2);
	good = number && ASN1_INTEGER_get_int64(value, number) && *value >= least && *value <= most;
	ASN1_INTEGER_free(number);
	ERR_pop_to_mark();
	if (good)
		*d = rest;
	return good;
}

bool rxw_der_get_time(struct rxw_der *d, unsigned n, int64_t *value)
{
	struct rxw_der rest = *d, text;
	ASN1_GENERALIZEDTIME *date;
	struct tm tm = {0};
	const uint8_t *p;
	bool good;

	if (!rxw_der_get_in(&rest, n, RXW_DER_TIME, &text) || text.left != DIGITS ||
	    text.p[DIGITS - 1] != 'Z')
		return false;
	p = text.p - 2; /* its header */
	ERR_set_mark();
	date = d2i_ASN1_GENERALIZEDTIME(NULL, &p, DIGITS + 2);
	good = date && ASN1_TIME_to_tm(date, &tm);
	ASN1_GENERALIZEDTIME_free(date);
	ERR_pop_to_mark();
	if (good) {
		*value = (int64_t)timegm(&tm);
		*d = rest;
	}
	return good;
}

void rxw_der_put_bytes(struct rxw_der_out *o, const void *bytes, size_t size)
{
	if (o->full || (size_t)(o->p - o->start) < size) {
		o->full = true;
		return;
	}
	o->p -= size;
	if (size > 0)
		memcpy(o->p, bytes, size);
}

void rxw_der_put_header(struct rxw_der_out *o, uint8_t tag, const uint8_t *end_of)
{
	size_t length = (size_t)(end_of - o->p);
	uint8_t head[8], *p = head;

	if (length > RXW_DER_MAX) {
		o->full = true;
		return;
	}
	ASN1_put_object(&p, tag & V_ASN1_CONSTRUCTED, (int)length, tag_number(tag),
			tag & V_ASN1_PRIVATE);
	rxw_der_put_bytes(o, head, (size_t)(p - head));
}

void rxw_der_put_in(struct rxw_der_out *o, unsigned n, uint8_t tag, const void *bytes, size_t size)
{
	const uint8_t *end_of = o->p;

	rxw_der_put_bytes(o, bytes, size);
	rxw_der_put_header(o, tag, end_of);
	rxw_der_put_header(o, (uint8_t)RXW_DER_CONTEXT(n), end_of);
}

void rxw_der_put_integer(struct rxw_der_out *o, unsigned n, uint32_t value)
{
	ASN1_INTEGER *number = ASN1_INTEGER_new();
	const uint8_t *end_of = o->p;
	uint8_t bytes[8], *p = bytes;
	int size = -1;

	if (number && ASN1_INTEGER_set_uint64(number, value))
		size = i2d_ASN1_INTEGER(number, &p);
	ASN1_INTEGER_free(number);
	if (size < 0) {
		o->full = true;
		return;
	}
	rxw_der_put_bytes(o, bytes, (size_t)size);
	rxw_der_put_header(o, (uint8_t)RXW_DER_CONTEXT(n), end_of);
}

bool rxw_der_put_time(struct rxw_der_out *o, unsigned n, int64_t seconds)
{
	ASN1_GENERALIZEDTIME *date = ASN1_GENERALIZEDTIME_set(NULL, (time_t)seconds);
	bool good = date && ASN1_STRING_length(date) == DIGITS;

	if (good)
		rxw_der_put_in(o, n, RXW_DER_TIME, ASN1_STRING_get0_data(date), DIGITS);
	ASN1_GENERALIZEDTIME_free(date);
	return good;
}
