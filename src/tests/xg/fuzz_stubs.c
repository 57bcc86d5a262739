/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzz target: the stubs of every procedure of every interface, on calls that are only streams. A
 * request goes through dispatcher, decoding, a handler that only answers, and freeing; a reply
 * through decoding at the client. Input: two bytes choose, one says how, one counts allocations
 * until one fails, and the rest comes in on the call.
 */

#include <string.h>

#include "tests/fuzz/fuzz.h"

#include "decoders.h"
#include "heap.h"
#include "stream.h"

const char fuzz_name[] = "stubs";
const size_t fuzz_max = 4096;
const unsigned fuzz_cost = 1;

enum {
	HOW_FAIL = 1,	/* an allocation fails */
	HOW_REFUSE = 2, /* the handler answers with a code */
	HOW_CHUNK = 4,	/* the call gives 1 + how / 8 bytes at a time */
	REFUSAL = 4711,
};

/* One package: its dispatcher, with handlers that answer ANSWER. */
struct served {
	const char *name;
	int32_t (*execute)(rxw_call *call, void *service);
	void *service;
};

/* One End stub; it sees to it that results are zero after a failure, and frees them else. */
struct ended {
	const char *name;
	int32_t (*run)(rxw_call *call);
};

static int32_t answer;
#define ANSWER answer

static void check_zero(const void *p, size_t size)
{
	const uint8_t *byte = p;

	for (size_t i = 0; i < size; i++)
		FUZZ_CHECK(!byte[i]);
}
#define ZERO(value) check_zero(&(value), sizeof(value))

#pragma GCC diagnostic ignored "-Wunused-parameter"
#include "stubs.h"

enum {
	SERVED = sizeof(served) / sizeof(served[0]),
	ENDED = sizeof(ended) / sizeof(ended[0])
};

/* Below SERVED: a package; above: an End stub. */
static unsigned choose(uint16_t wanted)
{
	static uint16_t hashes[SERVED + ENDED];

	if (!hashes[0] && !hashes[1]) {
		for (unsigned i = 0; i < SERVED; i++)
			hashes[i] = name_hash(served[i].name);
		for (unsigned i = 0; i < ENDED; i++)
			hashes[SERVED + i] = name_hash(ended[i].name);
	}
	return next_hash(hashes, SERVED + ENDED, wanted);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rxw_call call = {0};
	size_t live = heap_live();
	unsigned which;
	uint8_t how;
	int32_t code;

	if (size < 4)
		return 0;
	which = choose((uint16_t)(data[0] << 8 | data[1]));
	how = data[2];
	call.in = data + 4;
	call.in_size = size - 4;
	call.chunk = how & HOW_CHUNK ? 1u + how / 8 : 0;
	answer = how & HOW_REFUSE ? REFUSAL : 0;
	heap_mark();
	heap_fail(how & HOW_FAIL ? 1 + (size_t)data[3] : 0);
	if (which < SERVED) {
		code = served[which].execute(&call, served[which].service);
		FUZZ_CHECK(code == 0 || code == REFUSAL || code == RXW_RPC_DECODE ||
			   code == RXW_RPC_OPCODE || code == RXW_RPC_SS_UNMARSHAL ||
			   code == RXW_RPC_SS_MARSHAL);
	} else {
		code = ended[which - SERVED].run(&call);
		FUZZ_CHECK(code == 0 || code == RXW_RPC_CC_UNMARSHAL);
	}
	heap_fail(0);
	/* What the reply took is in the stream; a count promises at most one step of memory. */
	FUZZ_CHECK(heap_peak() <= 65536 + 32 * size + call.out_room + 64);
	free(call.out);
	FUZZ_CHECK(heap_live() == live);
	return 0;
}
