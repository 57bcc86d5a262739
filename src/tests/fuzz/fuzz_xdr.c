/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzz target: XDR decoding. The first byte says how many operations follow it; the rest is what
 * they decode.
 */

#include "fuzz.h"

#include <string.h>

#include <rxwire/xdr.h>

const char fuzz_name[] = "xdr";
const size_t fuzz_max = 512;
const unsigned fuzz_cost = 1;

static bool operation(struct rxw_xdr *x, uint8_t op)
{
	uint32_t limit = (uint32_t)(op >> 3) * 3;
	size_t length = 0;
	const uint8_t *lent = NULL;
	uint8_t copy[94];
	char text[94];
	uint32_t u = 0;
	int32_t i = 0;
	uint64_t w = 0;
	bool ok;

	switch (op & 7) {
	case 0:
		return rxw_xdr_get_u32(x, &u);
	case 1:
		return rxw_xdr_get_i32(x, &i);
	case 2:
		return rxw_xdr_get_u64(x, &w);
	case 3:
		return rxw_xdr_get_opaque(x, copy, limit);
	case 4:
		ok = rxw_xdr_lend_bytes(x, limit, &lent, &length);
		FUZZ_CHECK(!ok || (length <= limit && lent >= x->start && lent + length <= x->at));
		return ok;
	case 5:
		ok = rxw_xdr_copy_string(x, limit, text);
		FUZZ_CHECK(!ok || strlen(text) <= limit);
		return ok;
	case 6:
		ok = rxw_xdr_get_count(x, limit, 4, &u);
		FUZZ_CHECK(!ok || (u <= limit && u * 4ul <= rxw_xdr_left(x)));
		return ok;
	default:
		return rxw_xdr_skip(x, limit);
	}
}

/* A string, where one decodes, encodes to the same bytes but for its padding. */
static void check_string(const uint8_t *data, size_t size)
{
	uint8_t out[600];
	char text[513];
	struct rxw_xdr in, again;

	rxw_xdr_reader(&in, data, size);
	if (!rxw_xdr_copy_string(&in, sizeof(text) - 1, text))
		return;
	rxw_xdr_writer(&again, out, sizeof(out));
	FUZZ_CHECK(rxw_xdr_put_string(&again, text, UINT32_MAX));
	FUZZ_CHECK(rxw_xdr_used(&again) == rxw_xdr_used(&in));
	FUZZ_CHECK(!memcmp(out, data, 4 + strlen(text)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rxw_xdr x;
	size_t ops;

	if (!size)
		return 0;
	ops = data[0] % 32;
	if (ops > size - 1)
		ops = size - 1;
	rxw_xdr_reader(&x, data + 1 + ops, size - 1 - ops);
	for (size_t i = 0; i < ops; i++) {
		size_t before = rxw_xdr_used(&x);
		bool was = rxw_xdr_ok(&x), ok = operation(&x, data[1 + i]);

		FUZZ_CHECK(ok == rxw_xdr_ok(&x));
		FUZZ_CHECK(was || !ok);
		FUZZ_CHECK(rxw_xdr_used(&x) + rxw_xdr_left(&x) <= size - 1 - ops);
		FUZZ_CHECK(rxw_xdr_left(&x) == (ok ? size - 1 - ops - rxw_xdr_used(&x) : 0));
		FUZZ_CHECK(ok ? rxw_xdr_used(&x) >= before : rxw_xdr_used(&x) == before);
	}
	check_string(data + 1 + ops, size - 1 - ops);
	return 0;
}
