/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzz target: the decoders of all types. Input: two bytes select the type, one contains flags, one
 * is the number of the allocation that fails, and the rest is decoded, from memory and from a call.
 * A decoded value is encoded, to memory and to a call, and decoded again.
 */

#include <string.h>

#include "tests/robustness/fuzz/fuzz.h"

#include "decoders.h"
#include "heap.h"
#include "stream.h"

const char fuzz_name[] = "types";
const size_t fuzz_max = 4096;
const unsigned fuzz_cost = 1;

enum {
	HOW_FAIL = 1,  /* an allocation fails */
	HOW_EXACT = 2, /* read exactly the bytes that are decoded */
	HOW_CHUNK = 4, /* the call returns 1 + how / 8 bytes at a time */
};

static const struct decoder *choose(uint16_t wanted)
{
	static uint16_t *hashes;

	if (!hashes) {
		hashes = malloc(decoder_count * sizeof(*hashes));
		if (!hashes)
			exit(99);
		for (unsigned i = 0; i < decoder_count; i++)
			hashes[i] = name_hash(decoders[i].name);
	}
	return &decoders[next_hash(hashes, decoder_count, wanted)];
}

/* malloc rounds sizes up: an empty string has 4 bytes on the wire and takes 24 in memory. */
static void check_heap(size_t size)
{
	FUZZ_CHECK(heap_peak() <= 65536 + 32 * size);
}

/* Encode `v` to memory and to a call: equal bytes, and `want` of them unless that is 0. */
static uint8_t *encode(const struct decoder *type, const void *v, size_t want)
{
	uint8_t *bytes = malloc(want ? want : 1);
	struct rxw_rpc_stream s;
	struct rxw_call call = {0};
	struct rxw_xdr x;

	if (!bytes)
		exit(99);
	rxw_xdr_writer(&x, bytes, want);
	FUZZ_CHECK(type->put(&x, v));
	FUZZ_CHECK(rxw_xdr_used(&x) == want);
	rxw_rpc_writer(&s, &call);
	FUZZ_CHECK(type->put(&s.xdr, v));
	FUZZ_CHECK(rxw_rpc_flush(&s));
	FUZZ_CHECK(call.out_size == want);
	FUZZ_CHECK(!want || !memcmp(call.out, bytes, want));
	free(call.out);
	if (want) {
		rxw_xdr_writer(&x, bytes, want - 1);
		FUZZ_CHECK(!type->put(&x, v));
		rxw_xdr_writer(&x, bytes, want);
		FUZZ_CHECK(type->put(&x, v));
	}
	return bytes;
}

/* A value decoded from `used` bytes is encoded to as many bytes, which decode to an equal value. */
static void check_value(const struct decoder *type, const void *v, size_t used)
{
	uint8_t *bytes = encode(type, v, used), *again;
	void *copy = calloc(1, type->size);
	struct rxw_xdr x;

	if (!copy)
		exit(99);
	rxw_xdr_reader(&x, bytes, used);
	FUZZ_CHECK(type->get(&x, copy));
	FUZZ_CHECK(rxw_xdr_used(&x) == used);
	again = encode(type, copy, used);
	FUZZ_CHECK(!memcmp(bytes, again, used));
	type->release(copy);
	free(copy);
	free(again);
	free(bytes);
}

/* Decode from memory. Returns the bytes used, or SIZE_MAX. */
static size_t from_memory(const struct decoder *type, void *v, const uint8_t *data, size_t size)
{
	size_t live = heap_live();
	struct rxw_xdr x;
	bool ok;

	heap_mark();
	rxw_xdr_reader(&x, data, size);
	ok = type->get(&x, v);
	heap_fail(0);
	check_heap(size);
	FUZZ_CHECK(ok == rxw_xdr_ok(&x));
	if (!ok) {
		FUZZ_CHECK(heap_live() == live);
		return SIZE_MAX;
	}
	FUZZ_CHECK(rxw_xdr_used(&x) <= size);
	return rxw_xdr_used(&x);
}

/* Decode from a call. */
static bool from_call(const struct decoder *type, void *v, const uint8_t *data, size_t size,
		      uint8_t how, size_t used)
{
	struct rxw_call call = {.in = data, .in_size = size};
	enum rxw_rpc_reading reading = how & HOW_EXACT ? RXW_RPC_EXACT : RXW_RPC_WHOLE;
	size_t live = heap_live();
	struct rxw_rpc_stream s;
	bool ok;

	if (how & HOW_CHUNK)
		call.chunk = 1 + how / 8;
	heap_mark();
	rxw_rpc_reader(&s, &call, reading, size ? size : 1);
	ok = type->get(&s.xdr, v);
	heap_fail(0);
	check_heap(size);
	FUZZ_CHECK(ok == rxw_xdr_ok(&s.xdr));
	if (!ok)
		FUZZ_CHECK(heap_live() == live);
	else if (reading == RXW_RPC_EXACT && used != SIZE_MAX)
		FUZZ_CHECK(call.in_at == used);
	return ok;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct decoder *type;
	size_t live, used, fail;
	uint8_t how;
	void *v;
	bool ok;

	if (size < 4)
		return 0;
	type = choose((uint16_t)(data[0] << 8 | data[1]));
	live = heap_live();
	how = data[2];
	fail = how & HOW_FAIL ? 1 + (size_t)data[3] : 0;
	data += 4;
	size -= 4;
	v = calloc(1, type->size);
	if (!v)
		exit(99);

	heap_fail(fail);
	used = from_memory(type, v, data, size);
	if (used != SIZE_MAX)
		check_value(type, v, used);
	type->release(v);
	memset(v, 0xa5, type->size);
	heap_fail(fail);
	ok = from_call(type, v, data, size, how, used);
	if (!fail)
		FUZZ_CHECK(ok == (used != SIZE_MAX));
	if (ok && used != SIZE_MAX)
		check_value(type, v, used);
	type->release(v); /* valid after a failure, too, since the value is zero */
	free(v);
	FUZZ_CHECK(heap_live() == live);
	return 0;
}
