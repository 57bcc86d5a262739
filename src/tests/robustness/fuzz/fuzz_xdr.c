/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzz target: XDR decoding. The first byte holds the number of operations, their set (bit 5), and
 * the sizes of pieces on a call (bits 6 and 7). The operations follow, then the data to decode,
 * once in memory and once through a window: both must give the same result.
 */

#include "fuzz.h"

#include <string.h>

#include <rxwire/coder.h>
#include <rxwire/xdr.h>

const char fuzz_name[] = "xdr";
const size_t fuzz_max = 512;
const unsigned fuzz_cost = 1;

#define LIMIT 93 /* of counts and lengths */

/* Like rpc/window.c on a call, with the stream in memory. */
struct window {
	struct rxw_xdr xdr;
	const uint8_t *rest;
	size_t left, piece;
	uint8_t bytes[RXW_XDR_BLOCK];
};

static bool more(struct rxw_xdr *x, size_t size)
{
	struct window *w = (struct window *)x;
	size_t have = rxw_xdr_left(x);

	if (size > sizeof(w->bytes))
		size = sizeof(w->bytes);
	memmove(w->bytes, x->at, have);
	x->at = w->bytes;
	while (have < size) {
		size_t n = w->left < w->piece ? w->left : w->piece;

		if (n > sizeof(w->bytes) - have)
			n = sizeof(w->bytes) - have;
		if (!n)
			break;
		memcpy(w->bytes + have, w->rest, n);
		w->rest += n;
		w->left -= n;
		x->later -= n;
		have += n;
	}
	x->end = x->at + have;
	return have >= size;
}

static void open_window(struct window *w, const uint8_t *data, size_t size, size_t piece)
{
	rxw_xdr_reader(&w->xdr, data, size);
	w->xdr.at = w->xdr.end = w->xdr.start = w->bytes;
	w->xdr.more = more;
	w->xdr.later = size;
	w->rest = data;
	w->left = size;
	w->piece = piece;
}

/* Mixes the decoded value into *sum. */
static void mix(uint64_t *sum, const void *data, size_t length)
{
	const uint8_t *p = (const uint8_t *)data;

	for (size_t i = 0; i < length; i++)
		*sum = (*sum ^ p[i]) * 0x100000001b3u;
}

/* Counted bytes: borrowed if possible, otherwise owned. */
static bool counted(struct rxw_xdr *x, uint32_t limit, uint64_t *sum)
{
	const uint8_t *lent = NULL;
	size_t length = 0;
	uint32_t count;
	char *data;

	if (!x->more) {
		if (!rxw_xdr_lend_bytes(x, limit, &lent, &length))
			return false;
		FUZZ_CHECK(length <= limit && lent >= x->start && lent + length <= x->at);
		mix(sum, lent, length);
		return true;
	}
	if (!rxw_xdr_get_bytes(x, limit, &data, &count)) {
		FUZZ_CHECK(!data && !count);
		return false;
	}
	FUZZ_CHECK(count <= limit && !count == !data);
	mix(sum, data, count);
	free(data);
	return true;
}

static bool owned_text(struct rxw_xdr *x, uint32_t limit, uint64_t *sum)
{
	char *text;

	if (!rxw_xdr_get_string(x, limit, &text)) {
		FUZZ_CHECK(!text);
		return false;
	}
	FUZZ_CHECK(strlen(text) <= limit);
	mix(sum, text, strlen(text));
	free(text);
	return true;
}

/* An array of words that grows during decoding. */
static bool array(struct rxw_xdr *x, uint32_t limit, uint64_t *sum)
{
	uint32_t count, *words = NULL;
	size_t room = 0;

	if (!rxw_xdr_get_count(x, limit, 4, &count))
		return false;
	for (uint32_t i = 0; i < count; i++) {
		if (i == room) {
			uint32_t *p = (uint32_t *)rxw_xdr_grow(x, words, &room, count, 4);

			if (!p)
				break;
			words = p;
		}
		if (!rxw_xdr_get_u32(x, &words[i]))
			break;
		mix(sum, &words[i], 4);
	}
	free(words);
	return rxw_xdr_ok(x);
}

/* Values behind pointers, nested as deep as the words specify. */
static bool nested(struct rxw_xdr *x, uint64_t *sum)
{
	uint32_t there = 0;
	unsigned depth = 0;
	bool ok = true;

	while (ok) {
		ok = rxw_xdr_get_u32(x, &there);
		if (!ok || !there)
			break;
		ok = rxw_xdr_enter(x);
		depth += ok;
	}
	FUZZ_CHECK(depth <= RXW_XDR_DEPTH);
	mix(sum, &depth, sizeof(depth));
	while (depth--)
		rxw_xdr_leave(x);
	return ok;
}

static bool second_set(struct rxw_xdr *x, uint8_t op, uint64_t *sum)
{
	uint32_t limit = (uint32_t)(op >> 3) * 3, words[LIMIT / 4];
	struct rxw_uuid uuid;
	double d = 0;
	float f = 0;
	bool ok;

	switch (op & 7) {
	case 0:
		ok = rxw_xdr_get_float(x, &f);
		mix(sum, &f, ok ? sizeof(f) : 0);
		return ok;
	case 1:
		ok = rxw_xdr_get_double(x, &d);
		mix(sum, &d, ok ? sizeof(d) : 0);
		return ok;
	case 2:
		ok = rxw_xdr_get_uuid(x, &uuid);
		mix(sum, &uuid, ok ? sizeof(uuid) : 0);
		return ok;
	case 3:
	case 4:
		return owned_text(x, limit, sum);
	case 5:
		return nested(x, sum);
	case 6:
		return array(x, limit, sum);
	default:
		ok = rxw_xdr_get_words(x, words, limit / 4);
		mix(sum, words, ok ? limit / 4 * 4 : 0);
		return ok;
	}
}

static bool first_set(struct rxw_xdr *x, uint8_t op, uint64_t *sum)
{
	uint32_t limit = (uint32_t)(op >> 3) * 3;
	uint8_t copy[LIMIT + 1];
	char text[LIMIT + 1];
	uint32_t u = 0;
	int32_t i = 0;
	uint64_t w = 0;
	bool ok;

	switch (op & 7) {
	case 0:
		ok = rxw_xdr_get_u32(x, &u);
		break;
	case 1:
		ok = rxw_xdr_get_i32(x, &i);
		break;
	case 2:
		ok = rxw_xdr_get_u64(x, &w);
		break;
	case 3:
		ok = rxw_xdr_get_opaque(x, copy, limit);
		mix(sum, copy, ok ? limit : 0);
		break;
	case 4:
		return counted(x, limit, sum);
	case 5:
		ok = rxw_xdr_copy_string(x, limit, text);
		FUZZ_CHECK(!ok || strlen(text) <= limit);
		mix(sum, text, ok ? strlen(text) : 0);
		break;
	case 6:
		ok = rxw_xdr_get_count(x, limit, 4, &u);
		FUZZ_CHECK(!ok || (u <= limit && u * 4ul <= rxw_xdr_left(x)));
		break;
	default:
		return rxw_xdr_skip(x, limit);
	}
	mix(sum, &u, sizeof(u));
	mix(sum, &i, sizeof(i));
	mix(sum, &w, sizeof(w));
	return ok;
}

/* A decoded string encodes to the same bytes, except for its padding. */
static void check_string(const uint8_t *data, size_t size)
{
	uint8_t out[600];
	char text[513];
	struct rxw_xdr in, again;

	rxw_xdr_reader(&in, data, size);
	if (!rxw_xdr_copy_string(&in, sizeof(text) - 1, text))
		return;
	rxw_xdr_writer(&again, out, sizeof(out));
	FUZZ_CHECK(rxw_xdr_put_string(&again, text, (uint32_t)strlen(text)));
	FUZZ_CHECK(rxw_xdr_used(&again) == rxw_xdr_used(&in));
	FUZZ_CHECK(!memcmp(out, data, 4 + strlen(text)));
	rxw_xdr_writer(&again, out, sizeof(out));
	FUZZ_CHECK(!*text || !rxw_xdr_put_string(&again, text, (uint32_t)strlen(text) - 1));
}

/* One operation in memory. */
static bool in_memory(struct rxw_xdr *x, bool second, uint8_t op, size_t size, uint64_t *sum)
{
	size_t before = rxw_xdr_used(x), budget = x->budget;
	bool was = rxw_xdr_ok(x);
	bool ok = second ? second_set(x, op, sum) : first_set(x, op, sum);

	FUZZ_CHECK(ok == rxw_xdr_ok(x));
	FUZZ_CHECK(was || !ok);
	FUZZ_CHECK(x->budget <= budget);
	FUZZ_CHECK(rxw_xdr_left(x) == (ok ? size - rxw_xdr_used(x) : 0));
	FUZZ_CHECK(rxw_xdr_used(x) >= before);
	/* Failed single items consume nothing. */
	FUZZ_CHECK(ok || (second && (op & 7) >= 5 && (op & 7) < 7) || rxw_xdr_used(x) == before);
	return ok;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const size_t pieces[] = { 1, 3, 64, 1000 };
	static struct window w;
	uint64_t sum = 0, other = 0;
	struct rxw_xdr x;
	bool second;
	size_t ops;

	if (!size)
		return 0;
	ops = data[0] % 32;
	second = data[0] & 32;
	if (ops > size - 1)
		ops = size - 1;
	rxw_xdr_reader(&x, data + 1 + ops, size - 1 - ops);
	open_window(&w, data + 1 + ops, size - 1 - ops, pieces[data[0] >> 6]);
	for (size_t i = 0; i < ops; i++) {
		uint8_t op = data[1 + i];
		bool ok = in_memory(&x, second, op, size - 1 - ops, &sum);

		FUZZ_CHECK(ok == (second ? second_set(&w.xdr, op, &other)
					 : first_set(&w.xdr, op, &other)));
		FUZZ_CHECK(ok == rxw_xdr_ok(&w.xdr));
		if (!ok)
			sum = other = 0; /* results of a failed one may differ */
		FUZZ_CHECK(sum == other);
	}
	check_string(data + 1 + ops, size - 1 - ops);
	return 0;
}
