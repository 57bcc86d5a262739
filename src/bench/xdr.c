/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How long a BulkStatus reply of 50 entries takes to encode and to decode, memory for the result
 * included: by coders that rxwgen wrote and on libtirpc's XDR, in turns. One line of JSON.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "count.h"
#include "xdr.h"

#define ROUNDS 101
#define EACH   400 /* replies of a round, some milliseconds */

struct figures {
	double seconds[ROUNDS]; /* of one reply */
	uint64_t instructions;  /* of all rounds */
};

static int counter;

/* Both codings must give the same bytes and find the same words in them. */
static int check(const struct xdr_side *a, const struct xdr_side *b)
{
	static uint8_t one[XDR_BYTES + 8], other[XDR_BYTES + 8];
	uint32_t want = 0;

	for (unsigned i = 0; i < XDR_ENTRIES * (XDR_STATUS + XDR_CALLBACK) + XDR_SYNC; i++)
		want += xdr_word(i);
	a->prepare();
	if (a->encode(one, sizeof(one)) != XDR_BYTES || a->sum() != want)
		return -1;
	if (!b->encode)
		return 0;
	b->prepare();
	if (b->encode(other, sizeof(other)) != XDR_BYTES || b->sum() != want)
		return -1;
	return memcmp(one, other, XDR_BYTES) ? -1 : 0;
}

static int run(const struct xdr_side *side, struct figures *f, unsigned round)
{
	static uint8_t memory[XDR_BYTES + 8];
	uint64_t instructions = count_read(counter);
	double start = count_now();

	for (unsigned i = 0; i < EACH; i++) {
		size_t n = side->encode(memory, sizeof(memory));

		if (n != XDR_BYTES || !side->decode(memory, n))
			return -1;
	}
	f->seconds[round] = (count_now() - start) / EACH;
	f->instructions += count_read(counter) - instructions;
	return 0;
}

static void say(const char *name, struct figures *f)
{
	double each = count_median(f->seconds, ROUNDS);

	printf("\"%s\": {\"us\": %.3f", name, each * 1e6);
	if (f->instructions)
		printf(", \"instructions\": %.0f", (double)f->instructions / (ROUNDS * EACH));
	printf("}");
}

int main(void)
{
	static struct figures ours, theirs;
	int r = 0;

	counter = count_open(0);
	if (check(&xdr_compiled, &xdr_tirpc)) {
		fprintf(stderr, "xdr: the two codings of the reply differ\n");
		return 1;
	}
	for (unsigned round = 0; round < ROUNDS && !r; round++) {
		r = run(&xdr_compiled, &ours, round);
		if (!r && xdr_tirpc.encode)
			r = run(&xdr_tirpc, &theirs, round);
	}
	if (r) {
		fprintf(stderr, "xdr: a reply could not be encoded and decoded\n");
		return 1;
	}
	printf("{");
	say("compiled", &ours);
	if (xdr_tirpc.encode) {
		printf(", ");
		say("libtirpc", &theirs);
	}
	printf("}\n");
	return 0;
}
