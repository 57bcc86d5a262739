/* SPDX-License-Identifier: BSD-2-Clause */
/* Bounded XDR coding on memory (rx-protocol 9.2). */

#include <rxwire/xdr.h>

#include <string.h>

#include "base/wire.h"

void rxw_xdr_writer(struct rxw_xdr *x, void *memory, size_t size)
{
	x->start = (uint8_t *)memory;
	x->at = x->start;
	x->end = size ? x->start + size : x->start;
	x->failed = false;
}

void rxw_xdr_reader(struct rxw_xdr *x, const void *memory, size_t size)
{
	/* The cast only serves to share the structure: get functions do not write. */
	rxw_xdr_writer(x, (void *)(uintptr_t)memory, size);
}

size_t rxw_xdr_used(const struct rxw_xdr *x)
{
	return (size_t)(x->at - x->start);
}

size_t rxw_xdr_left(const struct rxw_xdr *x)
{
	return (size_t)(x->end - x->at);
}

bool rxw_xdr_ok(const struct rxw_xdr *x)
{
	return !x->failed;
}

static bool fail(struct rxw_xdr *x)
{
	x->failed = true;
	return false;
}

/* The next `size` bytes, or NULL and the cursor has failed. */
static uint8_t *take(struct rxw_xdr *x, size_t size)
{
	uint8_t *p = x->at;

	if (x->failed || size > rxw_xdr_left(x)) {
		x->failed = true;
		return NULL;
	}
	if (size)
		x->at += size;
	return p;
}

static size_t padding(size_t length)
{
	return (4 - length % 4) % 4;
}

/*
 * Room for `length` bytes and their padding is there? The sum is formed only when it cannot
 * overflow.
 */
static bool fits(struct rxw_xdr *x, size_t length)
{
	if (x->failed || length > rxw_xdr_left(x) || padding(length) > rxw_xdr_left(x) - length)
		return fail(x);
	return true;
}

bool rxw_xdr_put_u32(struct rxw_xdr *x, uint32_t v)
{
	uint8_t *p = take(x, 4);

	if (!p)
		return false;
	rxw_put32(p, v);
	return true;
}

bool rxw_xdr_put_u64(struct rxw_xdr *x, uint64_t v)
{
	uint8_t *p = take(x, 8);

	if (!p)
		return false;
	rxw_put32(p, (uint32_t)(v >> 32));
	rxw_put32(p + 4, (uint32_t)v);
	return true;
}

bool rxw_xdr_put_opaque(struct rxw_xdr *x, const void *data, size_t length)
{
	if (!fits(x, length))
		return false;
	if (length) {
		memcpy(x->at, data, length);
		memset(x->at + length, 0, padding(length));
		x->at += length + padding(length);
	}
	return true;
}

bool rxw_xdr_put_bytes(struct rxw_xdr *x, const void *data, size_t length)
{
	/* All or nothing: the count is not written when the bytes have no room. */
	if (x->failed || length > UINT32_MAX || rxw_xdr_left(x) < 4 ||
	    length > rxw_xdr_left(x) - 4 || padding(length) > rxw_xdr_left(x) - 4 - length)
		return fail(x);
	return rxw_xdr_put_u32(x, (uint32_t)length) && rxw_xdr_put_opaque(x, data, length);
}

bool rxw_xdr_put_string(struct rxw_xdr *x, const char *text)
{
	if (!text)
		return fail(x);
	return rxw_xdr_put_bytes(x, text, strlen(text));
}

bool rxw_xdr_get_u32(struct rxw_xdr *x, uint32_t *v)
{
	const uint8_t *p = take(x, 4);

	if (!p)
		return false;
	*v = rxw_get32(p);
	return true;
}

bool rxw_xdr_get_i32(struct rxw_xdr *x, int32_t *v)
{
	const uint8_t *p = take(x, 4);

	if (!p)
		return false;
	*v = (int32_t)rxw_get32(p);
	return true;
}

bool rxw_xdr_get_u64(struct rxw_xdr *x, uint64_t *v)
{
	const uint8_t *p = take(x, 8);

	if (!p)
		return false;
	*v = (uint64_t)rxw_get32(p) << 32 | rxw_get32(p + 4);
	return true;
}

bool rxw_xdr_skip(struct rxw_xdr *x, size_t length)
{
	if (!fits(x, length))
		return false;
	if (length)
		x->at += length + padding(length);
	return true;
}

bool rxw_xdr_get_opaque(struct rxw_xdr *x, void *data, size_t length)
{
	const uint8_t *p = x->at;

	if (!rxw_xdr_skip(x, length))
		return false;
	if (length)
		memcpy(data, p, length);
	return true;
}

bool rxw_xdr_get_bytes(struct rxw_xdr *x, size_t max, const uint8_t **data, size_t *length)
{
	uint8_t *before = x->at;
	uint32_t count;

	if (!rxw_xdr_get_u32(x, &count))
		return false;
	if (count > max || !fits(x, count)) {
		x->at = before;
		return fail(x);
	}
	*data = x->at;
	*length = count;
	return rxw_xdr_skip(x, count);
}

bool rxw_xdr_get_string(struct rxw_xdr *x, size_t max, char *text)
{
	uint8_t *before = x->at;
	const uint8_t *p;
	size_t length;

	if (!rxw_xdr_get_bytes(x, max, &p, &length))
		return false;
	if (length && memchr(p, 0, length)) {
		x->at = before;
		return fail(x);
	}
	if (length)
		memcpy(text, p, length);
	text[length] = 0;
	return true;
}

bool rxw_xdr_get_count(struct rxw_xdr *x, size_t max, size_t element, uint32_t *count)
{
	uint8_t *before = x->at;
	uint32_t n;

	if (!rxw_xdr_get_u32(x, &n))
		return false;
	if (n > max || (element && n > rxw_xdr_left(x) / element)) {
		x->at = before;
		return fail(x);
	}
	*count = n;
	return true;
}
