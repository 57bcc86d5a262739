/* SPDX-License-Identifier: BSD-2-Clause */
/* Reading and writing the little DER that Kerberos tickets need (X.690; RFC 4120 5). */
#include "rxkad/der.h"

#include <string.h>
#include <time.h>

bool rxw_der_is(const struct rxw_der *d, uint8_t tag)
{
	return d->left > 0 && d->p[0] == tag;
}

bool rxw_der_get(struct rxw_der *d, uint8_t tag, struct rxw_der *content)
{
	size_t head = 2, length;

	if (d->left < 2 || d->p[0] != tag)
		return false;
	length = d->p[1];
	if (length >= 0x80) {
		size_t bytes = length & 0x7f;

		/* Three bytes are 16 MiB: more than any ticket. */
		if (bytes < 1 || bytes > 3 || d->left < 2 + bytes || d->p[2] == 0)
			return false;
		length = 0;
		for (size_t i = 0; i < bytes; i++)
			length = length << 8 | d->p[2 + i];
		if (length < 0x80)
			return false;
		head += bytes;
	}
	if (length > d->left - head)
		return false;
	content->p = d->p + head;
	content->left = length;
	d->p += head + length;
	d->left -= head + length;
	return true;
}

/* The only element within [n]. */
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
	uint64_t v;

	if (!rxw_der_get_in(&rest, n, RXW_DER_INTEGER, &bytes) || bytes.left < 1 || bytes.left > 8)
		return false;
	/* The shortest form: nine equal bits at the front are one too many. */
	if (bytes.left > 1 &&
	    ((bytes.p[0] == 0 && bytes.p[1] < 0x80) || (bytes.p[0] == 0xff && bytes.p[1] >= 0x80)))
		return false;
	v = bytes.p[0] < 0x80 ? 0 : UINT64_MAX;
	for (size_t i = 0; i < bytes.left; i++)
		v = v << 8 | bytes.p[i];
	if ((int64_t)v < least || (int64_t)v > most)
		return false;
	*value = (int64_t)v;
	*d = rest;
	return true;
}

static bool digits(const uint8_t *p, unsigned count, int *value)
{
	*value = 0;
	for (unsigned i = 0; i < count; i++) {
		if (p[i] < '0' || p[i] > '9')
			return false;
		*value = *value * 10 + (p[i] - '0');
	}
	return true;
}

bool rxw_der_get_time(struct rxw_der *d, unsigned n, int64_t *value)
{
	static const int month_days[12] = {31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
	struct rxw_der rest = *d, text;
	struct tm tm = {0};
	int year;

	if (!rxw_der_get_in(&rest, n, RXW_DER_TIME, &text) || text.left != 15 ||
	    text.p[14] != 'Z' || !digits(text.p, 4, &year) || !digits(text.p + 4, 2, &tm.tm_mon) ||
	    !digits(text.p + 6, 2, &tm.tm_mday) || !digits(text.p + 8, 2, &tm.tm_hour) ||
	    !digits(text.p + 10, 2, &tm.tm_min) || !digits(text.p + 12, 2, &tm.tm_sec))
		return false;
	if (tm.tm_mon < 1 || tm.tm_mon > 12 || tm.tm_mday < 1 ||
	    tm.tm_mday > month_days[tm.tm_mon - 1] || tm.tm_hour > 23 || tm.tm_min > 59 ||
	    tm.tm_sec > 60)
		return false;
	tm.tm_year = year - 1900;
	tm.tm_mon--;
	*value = (int64_t)timegm(&tm);
	*d = rest;
	return true;
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
	uint8_t head[4] = {tag, (uint8_t)length};
	size_t size = 2;

	if (length >= 0x100) {
		head[1] = 0x82;
		head[2] = (uint8_t)(length >> 8);
		head[3] = (uint8_t)length;
		size = 4;
	} else if (length >= 0x80) {
		head[1] = 0x81;
		head[2] = (uint8_t)length;
		size = 3;
	}
	if (length > 0xffff)
		o->full = true;
	rxw_der_put_bytes(o, head, size);
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
	uint8_t bytes[5] = {0, (uint8_t)(value >> 24), (uint8_t)(value >> 16),
			    (uint8_t)(value >> 8), (uint8_t)value};
	unsigned skip = 0;

	while (skip < 4 && bytes[skip] == 0 && bytes[skip + 1] < 0x80)
		skip++;
	rxw_der_put_in(o, n, RXW_DER_INTEGER, bytes + skip, sizeof(bytes) - skip);
}

bool rxw_der_put_time(struct rxw_der_out *o, unsigned n, int64_t seconds)
{
	time_t t = (time_t)seconds;
	char text[64];
	struct tm tm;

	if (gmtime_r(&t, &tm) == NULL || tm.tm_year < -1900 || tm.tm_year > 9999 - 1900)
		return false;
	if (strftime(text, sizeof(text), "%Y%m%d%H%M%SZ", &tm) != 15)
		return false;
	rxw_der_put_in(o, n, RXW_DER_TIME, text, 15);
	return true;
}
