/* SPDX-License-Identifier: BSD-2-Clause */
/* xdrcopy_T(): values of all types, decoded from random words, and failing allocations. */
#include <stdlib.h>
#include <string.h>

#include "decoders.h"
#include "heap.h"
#include "tests/asserts.h"
#include "types.h"

#define ROOM  8192
#define WORDS 512
#define TRIES 4000

#define TYPE(T)                                          \
	static bool copy_##T(void *to, const void *from) \
	{                                                \
		return xdrcopy_##T(to, from);            \
	}
XG_COPIES(TYPE)
#undef TYPE

#define TYPE(T) {#T, copy_##T},
static const struct copier {
	const char *name;
	bool (*copy)(void *to, const void *from);
} copiers[] = {XG_COPIES(TYPE)};
#undef TYPE
#define COPIERS ((int)(sizeof(copiers) / sizeof(copiers[0])))

static uint32_t state;

static uint32_t draw(uint32_t bound)
{
	state = state * 1664525 + 1013904223;
	return (state >> 8) % bound;
}

/* Words that are often a count, a discriminant or text; in some values nearly all are 0. */
static void fill(uint8_t *bytes)
{
	uint32_t zeros = draw(30);

	for (unsigned i = 0; i < WORDS; i++) {
		uint32_t kind = draw(8 + zeros);

		rxw_xdr_store32(bytes + 4 * i, kind < 5	  ? draw(3)
					       : kind < 7 ? 0x61626364
					       : kind < 8 ? draw(16)
							  : 0);
	}
}

static size_t encode(const struct decoder *d, const void *v, uint8_t *to)
{
	struct rxw_xdr x;

	memset(to, 0, ROOM);
	rxw_xdr_writer(&x, to, ROOM);
	return d->put(&x, v) ? rxw_xdr_used(&x) : ROOM;
}

/* Each allocation fails in turn: nothing is left, and the copy is zero. Counts the faults. */
static unsigned copy_without_memory(const struct copier *c, const struct decoder *d,
				    const void *from, void *to)
{
	size_t live = heap_live(), made;
	unsigned faults = 0;

	heap_mark();
	if (!c->copy(to, from))
		return 1;
	made = heap_made();
	d->release(to);
	for (size_t n = 1; n <= made; n++) {
		heap_fail(n);
		faults += c->copy(to, from) || heap_live() != live;
		d->release(to);
		faults += heap_live() != live;
	}
	heap_fail(0);
	return faults;
}

/* A copy outlives its original. Counts the faults. No assertion here: it would allocate. */
static unsigned copy_and_compare(const struct copier *c, const struct decoder *d, void *from,
				 void *to)
{
	static uint8_t before[ROOM], after[ROOM];
	size_t size = encode(d, from, before);
	unsigned faults = copy_without_memory(c, d, from, to);

	memset(to, 0xa5, d->size);
	faults += !c->copy(to, from);
	d->release(from);
	faults += size == ROOM || encode(d, to, after) != size || memcmp(before, after, size);
	d->release(to);
	return faults;
}

START_TEST(copies)
{
	static uint8_t bytes[4 * WORDS];
	const struct copier *c = &copiers[_i];
	const struct decoder *d = decoder_named(c->name);
	void *from = malloc(d->size), *to = malloc(d->size);
	unsigned decoded = 0, faults = 0;
	size_t live = heap_live();

	state = (uint32_t)_i;
	for (unsigned try = 0; try < TRIES && decoded < 200; try++) {
		struct rxw_xdr x;

		fill(bytes);
		rxw_xdr_reader(&x, bytes, sizeof(bytes));
		if (!d->get(&x, from))
			continue;
		decoded++;
		faults += copy_and_compare(c, d, from, to);
	}
	live = heap_live() - live;
	free(from);
	free(to);
	ck_assert_msg(decoded > 0, "no value of %s", c->name);
	ck_assert_msg(!faults && !live, "%s: %u faults in %u values, %zu allocations are left",
		      c->name, faults, decoded, live);
}
END_TEST

int main(void)
{
	TCase *tc = tcase_create("copy");
	Suite *s = suite_create("copy");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_add_loop_test(tc, copies, 0, COPIERS);
	suite_add_tcase(s, tc);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
