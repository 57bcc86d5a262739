/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzz target: the stubs of all procedures, on simulated calls (stream.h). A request passes the
 * dispatcher, the decoders, a handler that only returns a code, and the freeing of arguments. A
 * reply passes the decoders of the client. Input: two bytes select the stub, one contains flags,
 * one is the number of the allocation that fails, and the rest is read from the call.
 */

#include <string.h>

#include "tests/robustness/fuzz/fuzz.h"

#include "decoders.h"
#include "heap.h"
#include "stream.h"

const char fuzz_name[] = "stubs";
const size_t fuzz_max = 4096;
const unsigned fuzz_cost = 1;

enum {
	HOW_FAIL = 1,	/* an allocation fails */
	HOW_REFUSE = 2, /* the handler returns an error */
	HOW_CHUNK = 4,	/* the call returns 1 + how / 8 bytes at a time */
	REFUSAL = 4711,
};

/* A package: its dispatcher, with handlers that return ANSWER. */
struct served {
	const char *name;
	int32_t (*execute)(rxw_call *call, void *service);
	void *service;
};

/* An End stub; `call` checks that results are zero after a failure, and frees them otherwise. */
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

/* Below SERVED: a package; from there on: an End stub. */
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
	/* Memory is proportional to the reply, apart from one step for a count. */
	FUZZ_CHECK(heap_peak() <= 65536 + 32 * size + call.out_room + 64);
	free(call.out);
	FUZZ_CHECK(heap_live() == live);
	return 0;
}
