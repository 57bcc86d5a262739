/* SPDX-License-Identifier: BSD-2-Clause */
/* Bounded XDR coding in memory, or in a window that the RPC layer moves (rx-protocol 9.2). */

#include <rxwire/coder.h>
#include <rxwire/xdr.h>

#include <stdlib.h>
#include <string.h>

/* Memory that decoding takes at most in one step. */
#define STEP ((size_t)64 << 10)
/* Limit of allocations while decoding: a constant, plus a number of bytes for each decoded byte. */
#define BUDGET_BASE ((size_t)64 << 10)
#define BUDGET_RATE 16

void rxw_xdr_writer(struct rxw_xdr *x, void *memory, size_t size)
{
	if (!x)
		return;
	x->start = (uint8_t *)memory;
	x->at = x->start;
	x->end = size && memory ? x->start + size : x->start;
	x->more = NULL;
	x->later = 0;
	x->budget = 0;
	x->depth = 0;
	x->failed = false;
}

void rxw_xdr_reader(struct rxw_xdr *x, const void *memory, size_t size)
{
	if (!x)
		return;
	/* The cast only allows sharing the structure: get functions do not write. */
	rxw_xdr_writer(x, (void *)(uintptr_t)memory, size);
	if (__builtin_mul_overflow(size, (size_t)BUDGET_RATE, &x->budget) ||
	    __builtin_add_overflow(x->budget, BUDGET_BASE, &x->budget))
		x->budget = SIZE_MAX;
}

size_t rxw_xdr_used(const struct rxw_xdr *x)
{
	return x ? (size_t)(x->at - x->start) : 0;
}

size_t rxw_xdr_left(const struct rxw_xdr *x)
{
	return x ? (size_t)(x->end - x->at) : 0;
}

bool rxw_xdr_ok(const struct rxw_xdr *x)
{
	return x && !x->failed;
}

bool rxw_xdr_fail(struct rxw_xdr *x)
{
	if (!x)
		return false;
	x->failed = true;
	x->end = x->at;
	return false;
}

/*
 * Fail and restore the position before the item; on a call its first bytes may have left the
 * window.
 */
static bool fail_at(struct rxw_xdr *x, uint8_t *before)
{
	if (!x->more)
		x->at = before;
	return rxw_xdr_fail(x);
}

uint8_t *rxw_xdr_take_more(struct rxw_xdr *x, size_t size)
{
	uint8_t *p;

	if (!x || x->failed || !x->more || size > RXW_XDR_BLOCK || !x->more(x, size)) {
		rxw_xdr_fail(x);
		return NULL;
	}
	p = x->at;
	x->at += size;
	return p;
}

static size_t padding_of(size_t length)
{
	return (4 - length % 4) % 4;
}

/*
 * Whether `length` more bytes and their padding fit: in memory, into the room left. The sums cannot
 * overflow where they are computed.
 */
static bool item_fits(const struct rxw_xdr *x, size_t length)
{
	size_t left = rxw_xdr_left(x);

	if (x->failed)
		return false;
	if (length <= left && padding_of(length) <= left - length)
		return true;
	if (!x->more)
		return false;
	left = x->later > SIZE_MAX - left ? SIZE_MAX : left + x->later;
	return length <= left && padding_of(length) <= left - length;
}

/* The complete item is in the window. */
static bool at_hand(const struct rxw_xdr *x, size_t length)
{
	size_t left = rxw_xdr_left(x);

	return length <= left && padding_of(length) <= left - length;
}

/* Bytes of an item that can be moved now, of `left`: at least one, 0 when that failed. */
static size_t bytes_at_hand(struct rxw_xdr *x, size_t left)
{
	size_t n = rxw_xdr_left(x);

	if (!n) {
		n = left < RXW_XDR_BLOCK ? left : RXW_XDR_BLOCK;
		if (x->failed || !x->more || !x->more(x, n)) {
			rxw_xdr_fail(x);
			return 0;
		}
		n = rxw_xdr_left(x);
	}
	return left < n ? left : n;
}

/* Whole words that can be moved now; see bytes_at_hand(). */
static size_t words_at_hand(struct rxw_xdr *x, size_t left)
{
	size_t n = rxw_xdr_left(x) / 4;

	if (!n) {
		n = left < RXW_XDR_BLOCK / 4 ? left : RXW_XDR_BLOCK / 4;
		if (x->failed || !x->more || !x->more(x, 4 * n)) {
			rxw_xdr_fail(x);
			return 0;
		}
		n = rxw_xdr_left(x) / 4;
	}
	return left < n ? left : n;
}

/* -- bytes ---------------------------------------------------------------------------------- */

bool rxw_xdr_put_opaque(struct rxw_xdr *x, const void *data, size_t length)
{
	const uint8_t *from = (const uint8_t *)data;
	size_t pad = padding_of(length);
	uint8_t *p;

	if (!x || (!data && length) || !item_fits(x, length))
		return rxw_xdr_fail(x);
	while (length) {
		size_t n = bytes_at_hand(x, length);

		if (!n)
			return false;
		memcpy(x->at, from, n);
		x->at += n;
		from += n;
		length -= n;
	}
	if (!pad)
		return true;
	p = rxw_xdr_take(x, pad);
	if (!p)
		return false;
	memset(p, 0, pad);
	return true;
}

bool rxw_xdr_put_bytes(struct rxw_xdr *x, const void *data, size_t length, uint32_t bound)
{
	/* All or nothing: the count is not written if the bytes do not fit. */
	if (!x || (!data && length) || length > bound || length > SIZE_MAX - 7 ||
	    !item_fits(x, 4 + length))
		return rxw_xdr_fail(x);
	return rxw_xdr_put_u32(x, (uint32_t)length) && rxw_xdr_put_opaque(x, data, length);
}

bool rxw_xdr_put_string(struct rxw_xdr *x, const char *text, uint32_t bound)
{
	if (!text)
		return rxw_xdr_fail(x);
	return rxw_xdr_put_bytes(x, text, strlen(text), bound);
}

/* Skip `length` bytes and their padding; copy the bytes if the caller wants them. */
static bool pull_bytes(struct rxw_xdr *x, uint8_t *to, size_t length)
{
	size_t pad = padding_of(length);

	if (!item_fits(x, length))
		return rxw_xdr_fail(x);
	while (length) {
		size_t n = bytes_at_hand(x, length);

		if (!n)
			return false;
		if (to) {
			memcpy(to, x->at, n);
			to += n;
		}
		x->at += n;
		length -= n;
	}
	return !pad || rxw_xdr_take(x, pad) != NULL;
}

bool rxw_xdr_skip(struct rxw_xdr *x, size_t length)
{
	return x && pull_bytes(x, NULL, length);
}

bool rxw_xdr_get_opaque(struct rxw_xdr *x, void *data, size_t length)
{
	if (!x || (!data && length))
		return rxw_xdr_fail(x);
	return pull_bytes(x, (uint8_t *)data, length);
}

bool rxw_xdr_lend_bytes(struct rxw_xdr *x, uint32_t bound, const uint8_t **data, size_t *length)
{
	uint8_t *before = x ? x->at : NULL;
	uint32_t count;

	if (!x || !data || !length || x->more)
		return rxw_xdr_fail(x);
	if (!rxw_xdr_get_count(x, bound, 1, &count))
		return false;
	if (!at_hand(x, count))
		return fail_at(x, before);
	*data = x->at;
	*length = count;
	return rxw_xdr_skip(x, count);
}

bool rxw_xdr_copy_string(struct rxw_xdr *x, uint32_t bound, char *text)
{
	uint8_t *before = x ? x->at : NULL;
	uint32_t length;

	if (!x || !text)
		return rxw_xdr_fail(x);
	if (!rxw_xdr_get_count(x, bound, 1, &length))
		return false;
	if (at_hand(x, length)) {
		if (length && memchr(x->at, 0, length))
			return fail_at(x, before);
		rxw_xdr_get_opaque(x, text, length);
		text[length] = 0;
		return true;
	}
	if (x->more && rxw_xdr_get_opaque(x, text, length) && !memchr(text, 0, length)) {
		text[length] = 0;
		return true;
	}
	if (x->more)
		text[0] = 0;
	return fail_at(x, before);
}

/* -- words in a row -------------------------------------------------------------------------- */

/* Four words at a time: every compiler can shift the elements of such a vector. */
typedef uint16_t halves __attribute__((vector_size(16)));
typedef uint32_t quad __attribute__((vector_size(16)));

/* Convert words between host and network byte order. */
static void swap_words(uint8_t *to, const uint8_t *from, size_t count)
{
	uint32_t w;

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	for (; count >= 4; count -= 4, to += 16, from += 16) {
		halves h;
		quad q;

		memcpy(&h, from, sizeof(h));
		h = h << 8 | h >> 8;
		memcpy(&q, &h, sizeof(q));
		q = q << 16 | q >> 16;
		memcpy(to, &q, sizeof(q));
	}
#endif
	for (; count; count--, to += 4, from += 4) {
		memcpy(&w, from, sizeof(w));
		rxw_xdr_store32((uint8_t *)&w, w);
		memcpy(to, &w, sizeof(w));
	}
}

bool rxw_xdr_put_words(struct rxw_xdr *x, const void *words, size_t count)
{
	const uint8_t *from = (const uint8_t *)words;

	if (!x || (!words && count) || count > SIZE_MAX / 4 || !item_fits(x, 4 * count))
		return rxw_xdr_fail(x);
	while (count) {
		size_t n = words_at_hand(x, count);

		if (!n)
			return false;
		swap_words(x->at, from, n);
		x->at += 4 * n;
		from += 4 * n;
		count -= n;
	}
	return true;
}

bool rxw_xdr_get_words(struct rxw_xdr *x, void *words, size_t count)
{
	uint8_t *to = (uint8_t *)words;

	if (!x || (!words && count) || count > SIZE_MAX / 4 || !item_fits(x, 4 * count))
		return rxw_xdr_fail(x);
	while (count) {
		size_t n = words_at_hand(x, count);

		if (!n)
			return false;
		swap_words(to, x->at, n);
		x->at += 4 * n;
		to += 4 * n;
		count -= n;
	}
	return true;
}

/* -- memory for what is decoded ------------------------------------------------------------- */

/* As realloc() from `old` to `size` bytes, within the budget. NULL: the cursor has failed. */
static void *resize_memory(struct rxw_xdr *x, void *memory, size_t old, size_t size)
{
	void *p = NULL;

	if (!x->failed && size - old <= x->budget)
		p = realloc(memory, size);
	if (!p) {
		rxw_xdr_fail(x);
		return NULL;
	}
	x->budget -= size - old;
	return p;
}

/*
 * Decode `length` bytes, not all of them in the window, and leave room for `extra` bytes after
 * them. The memory is at most twice the bytes received.
 */
static char *collect_bytes(struct rxw_xdr *x, size_t length, size_t extra)
{
	size_t have = 0, room = 0, pad = padding_of(length);
	char *data = NULL;

	while (have < length) {
		size_t n = bytes_at_hand(x, length - have);

		if (!n)
			goto fail;
		if (have + n > room) {
			size_t step = n > have ? n : have;
			size_t more;
			char *p;

			if (step > STEP)
				step = STEP;
			more = step > length - room ? length : room + step;
			p = (char *)resize_memory(x, data, data ? room + extra : 0, more + extra);
			if (!p)
				goto fail;
			data = p;
			room = more;
			if (n > room - have)
				n = room - have;
		}
		memcpy(data + have, x->at, n);
		x->at += n;
		have += n;
	}
	if (!pad || rxw_xdr_take(x, pad))
		return data;
fail:
	free(data);
	return NULL;
}

/* Decode a non-empty counted item and append `extra` zero bytes. */
static char *get_counted(struct rxw_xdr *x, size_t length, size_t extra)
{
	char *data;

	if (at_hand(x, length)) {
		data = (char *)resize_memory(x, NULL, 0, length + extra);
		if (data)
			rxw_xdr_get_opaque(x, data, length);
	} else if (x->more && item_fits(x, length)) {
		data = collect_bytes(x, length, extra);
	} else {
		data = NULL;
	}
	if (data)
		memset(data + length, 0, extra);
	return data;
}

bool rxw_xdr_get_bytes(struct rxw_xdr *x, uint32_t bound, char **data, uint32_t *length)
{
	uint8_t *before = x ? x->at : NULL;
	uint32_t count;

	if (!x || !data || !length)
		return rxw_xdr_fail(x);
	*data = NULL;
	*length = 0;
	if (!rxw_xdr_get_count(x, bound, 1, &count))
		return false;
	if (!count)
		return true;
	*data = get_counted(x, count, 0);
	if (!*data)
		return fail_at(x, before);
	*length = count;
	return true;
}

bool rxw_xdr_get_string(struct rxw_xdr *x, uint32_t bound, char **text)
{
	uint8_t *before = x ? x->at : NULL;
	uint32_t length;

	if (!x || !text)
		return rxw_xdr_fail(x);
	*text = NULL;
	if (!rxw_xdr_get_count(x, bound, 1, &length))
		return false;
	if (length == UINT32_MAX || (at_hand(x, length) && memchr(x->at, 0, length)))
		return fail_at(x, before);
	*text = length ? get_counted(x, length, 1) : (char *)rxw_xdr_new(x, 1);
	if (*text && strlen(*text) == length)
		return true;
	free(*text);
	*text = NULL;
	return fail_at(x, before);
}

bool rxw_xdr_get_count(struct rxw_xdr *x, uint32_t bound, size_t element, uint32_t *count)
{
	uint8_t *before = x ? x->at : NULL;
	size_t bytes;
	uint32_t n;

	if (!x || !count)
		return rxw_xdr_fail(x);
	if (!rxw_xdr_get_u32(x, &n))
		return false;
	if (n > bound || __builtin_mul_overflow((size_t)n, element, &bytes))
		return fail_at(x, before);
	if (bytes > rxw_xdr_left(x)) {
		if (!x->more || bytes - rxw_xdr_left(x) > x->later || !x->more(x, bytes))
			return fail_at(x, before);
	}
	*count = n;
	return true;
}

void *rxw_xdr_grow(struct rxw_xdr *x, void *array, size_t *room, uint32_t count, size_t size)
{
	size_t step = size && size < STEP ? STEP / size : 1;
	size_t old = room ? *room : 0, all, bytes;
	void *p;

	if (!x || !room || !size || (!array && old) || old >= count) {
		rxw_xdr_fail(x);
		return NULL;
	}
	all = count - old > step ? old + step : count;
	if (__builtin_mul_overflow(all, size, &bytes)) {
		rxw_xdr_fail(x);
		return NULL;
	}
	p = resize_memory(x, array, old * size, bytes);
	if (p)
		*room = all;
	return p;
}

void *rxw_xdr_new(struct rxw_xdr *x, size_t size)
{
	void *p = x ? resize_memory(x, NULL, 0, size) : NULL;

	if (p)
		memset(p, 0, size);
	return p;
}

bool rxw_xdr_enter(struct rxw_xdr *x)
{
	if (!x || x->failed || x->depth >= RXW_XDR_DEPTH)
		return rxw_xdr_fail(x);
	x->depth++;
	return true;
}

void rxw_xdr_leave(struct rxw_xdr *x)
{
	if (x)
		x->depth--;
}

/* -- numbers and identifiers of several words ----------------------------------------------- */

bool rxw_xdr_put_float(struct rxw_xdr *x, float v)
{
	uint32_t bits;

	memcpy(&bits, &v, sizeof(bits));
	return x && rxw_xdr_put_u32(x, bits);
}

bool rxw_xdr_get_float(struct rxw_xdr *x, float *v)
{
	uint32_t bits;

	if (!x || !v)
		return rxw_xdr_fail(x);
	if (!rxw_xdr_get_u32(x, &bits))
		return false;
	memcpy(v, &bits, sizeof(bits));
	return true;
}

bool rxw_xdr_put_double(struct rxw_xdr *x, double v)
{
	uint64_t bits;

	memcpy(&bits, &v, sizeof(bits));
	return x && rxw_xdr_put_u64(x, bits);
}

bool rxw_xdr_get_double(struct rxw_xdr *x, double *v)
{
	uint64_t bits;

	if (!x || !v)
		return rxw_xdr_fail(x);
	if (!rxw_xdr_get_u64(x, &bits))
		return false;
	memcpy(v, &bits, sizeof(bits));
	return true;
}

bool rxw_xdr_put_uuid(struct rxw_xdr *x, const struct rxw_uuid *v)
{
	uint8_t *p = x && v ? rxw_xdr_take(x, RXW_UUID_BYTES) : NULL;

	if (!p)
		return rxw_xdr_fail(x);
	rxw_xdr_store32(p, v->time_low);
	rxw_xdr_store32(p + 4, v->time_mid);
	rxw_xdr_store32(p + 8, v->time_hi_and_version);
	rxw_xdr_store32(p + 12, (uint32_t)v->clock_seq_hi_and_reserved);
	rxw_xdr_store32(p + 16, (uint32_t)v->clock_seq_low);
	for (size_t i = 0; i < sizeof(v->node); i++)
		rxw_xdr_store32(p + 20 + 4 * i, (uint32_t)v->node[i]);
	return true;
}

bool rxw_xdr_get_uuid(struct rxw_xdr *x, struct rxw_uuid *v)
{
	const uint8_t *p = x && v ? rxw_xdr_take(x, RXW_UUID_BYTES) : NULL;

	if (!p)
		return rxw_xdr_fail(x);
	v->time_low = rxw_xdr_load32(p);
	v->time_mid = (uint16_t)rxw_xdr_load32(p + 4);
	v->time_hi_and_version = (uint16_t)rxw_xdr_load32(p + 8);
	v->clock_seq_hi_and_reserved = (int8_t)rxw_xdr_load32(p + 12);
	v->clock_seq_low = (int8_t)rxw_xdr_load32(p + 16);
	for (size_t i = 0; i < sizeof(v->node); i++)
		v->node[i] = (int8_t)rxw_xdr_load32(p + 20 + 4 * i);
	return true;
}
