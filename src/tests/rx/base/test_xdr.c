/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of base/xdr.c: encodings, bounds checked first, persistent failures. */

#include "testing.h"

#include <rxwire/coder.h>
#include <rxwire/xdr.h>

START_TEST(known_bytes)
{
	static const uint8_t want[] = {
		0x00, 0x00, 0x00, 0x05,                                       /* u32 */
		0xff, 0xff, 0xff, 0xff,                                       /* -1 */
		0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08,               /* u64 */
		'a',  'b',  'c',  0x00,                                       /* opaque[3] */
		0x00, 0x00, 0x00, 0x05, 'h',  'e',  'l',  'l',  'o', 0, 0, 0, /* string */
		0x00, 0x00, 0x00, 0x00,                                       /* empty string */
	};
	uint8_t out[64];
	struct rxw_xdr x;

	memset(out, 0xaa, sizeof(out));
	rxw_xdr_writer(&x, out, sizeof(out));
	ck_assert(rxw_xdr_put_u32(&x, 5));
	ck_assert(rxw_xdr_put_u32(&x, (uint32_t)-1));
	ck_assert(rxw_xdr_put_u64(&x, 0x0102030405060708ull));
	ck_assert(rxw_xdr_put_opaque(&x, "abc", 3));
	ck_assert(rxw_xdr_put_string(&x, "hello", UINT32_MAX));
	ck_assert(rxw_xdr_put_bytes(&x, NULL, 0, UINT32_MAX));
	ck_assert(rxw_xdr_put_opaque(&x, NULL, 0));
	ck_assert(rxw_xdr_ok(&x));
	ck_assert_uint_eq(rxw_xdr_used(&x), sizeof(want));
	ck_assert_uint_eq(rxw_xdr_left(&x), sizeof(out) - sizeof(want));
	ck_assert_mem_eq(out, want, sizeof(want));
	ck_assert_uint_eq(out[sizeof(want)], 0xaa);
}
END_TEST

/* Every size of memory: a sequence fits or fails; no write beyond it and no partial item. */
START_TEST(full_writer)
{
	for (size_t size = 0; size <= 40; size++) {
		uint8_t *memory = malloc(size ? size : 1);
		struct rxw_xdr x;
		size_t before;
		bool ok;

		rxw_xdr_writer(&x, memory, size);
		ok = rxw_xdr_put_u32(&x, 1) && rxw_xdr_put_u64(&x, 2) &&
		     rxw_xdr_put_opaque(&x, "abcde", 5);
		before = rxw_xdr_used(&x);
		ok = ok && rxw_xdr_put_bytes(&x, "xyz", 3, UINT32_MAX);
		ck_assert_int_eq(ok, size >= 4 + 8 + 8 + 8);
		ck_assert_int_eq(rxw_xdr_ok(&x), ok);
		ck_assert_uint_le(rxw_xdr_used(&x), size);
		if (!ok)
			ck_assert_uint_eq(rxw_xdr_used(&x), before);
		free(memory);
	}
}
END_TEST

START_TEST(failure_lasts)
{
	uint8_t out[8] = { 0 };
	const uint8_t *data;
	struct rxw_xdr x;
	uint32_t v = 77;
	int32_t i = 77;
	uint64_t w = 77;
	size_t length = 77;
	char text[8] = "k";

	rxw_xdr_writer(&x, out, sizeof(out));
	ck_assert(!rxw_xdr_put_opaque(&x, "123456789", 9));
	ck_assert(!rxw_xdr_put_u32(&x, 1)); /* would fit */
	ck_assert(!rxw_xdr_put_u64(&x, 1));
	ck_assert(!rxw_xdr_put_bytes(&x, "", 0, UINT32_MAX));
	ck_assert(!rxw_xdr_put_string(&x, "", UINT32_MAX));
	ck_assert_uint_eq(rxw_xdr_used(&x), 0);
	for (size_t k = 0; k < sizeof(out); k++)
		ck_assert_uint_eq(out[k], 0);
	rxw_xdr_reader(&x, out, sizeof(out));
	ck_assert(!rxw_xdr_skip(&x, 9));
	ck_assert(!rxw_xdr_get_u32(&x, &v));
	ck_assert(!rxw_xdr_get_i32(&x, &i));
	ck_assert(!rxw_xdr_get_u64(&x, &w));
	ck_assert(!rxw_xdr_get_opaque(&x, text, 1));
	ck_assert(!rxw_xdr_lend_bytes(&x, 100, &data, &length));
	ck_assert(!rxw_xdr_copy_string(&x, 7, text));
	ck_assert(!rxw_xdr_get_count(&x, 7, 1, &v));
	ck_assert(!rxw_xdr_skip(&x, 0));
	ck_assert(!rxw_xdr_ok(&x));
	ck_assert_uint_eq(v, 77);
	ck_assert_int_eq(i, 77);
	ck_assert_uint_eq(w, 77);
	ck_assert_uint_eq(length, 77);
	ck_assert_str_eq(text, "k");
}
END_TEST

START_TEST(null_string)
{
	uint8_t out[8];
	struct rxw_xdr x;

	rxw_xdr_writer(&x, out, sizeof(out));
	ck_assert(!rxw_xdr_put_string(&x, NULL, UINT32_MAX));
	ck_assert(!rxw_xdr_ok(&x));
}
END_TEST

START_TEST(huge_lengths)
{
	static const size_t sizes[] = {
		SIZE_MAX, SIZE_MAX - 1, SIZE_MAX - 2, SIZE_MAX - 3, SIZE_MAX - 4, UINT32_MAX, 17
	};
	uint8_t memory[16] = { 0 };
	struct rxw_xdr x;

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		rxw_xdr_writer(&x, memory, sizeof(memory));
		ck_assert(!rxw_xdr_put_opaque(&x, memory, sizes[i]));
		rxw_xdr_writer(&x, memory, sizeof(memory));
		ck_assert(!rxw_xdr_put_bytes(&x, memory, sizes[i], UINT32_MAX));
		rxw_xdr_reader(&x, memory, sizeof(memory));
		ck_assert(!rxw_xdr_get_opaque(&x, memory, sizes[i]));
		rxw_xdr_reader(&x, memory, sizeof(memory));
		ck_assert(!rxw_xdr_skip(&x, sizes[i]));
	}
}
END_TEST

/* The padding of the last item is always required: 5 bytes need 8. */
START_TEST(padding_is_required)
{
	static const uint8_t in[] = { 0, 0, 0, 5, 'h', 'e', 'l', 'l', 'o', 1, 2, 3 };

	for (size_t size = 0; size <= sizeof(in); size++) {
		uint8_t *p = malloc(size ? size : 1);
		const uint8_t *data;
		struct rxw_xdr x;
		size_t length;

		memcpy(p, in, size);
		rxw_xdr_reader(&x, p, size);
		ck_assert_int_eq(rxw_xdr_lend_bytes(&x, 5, &data, &length), size == sizeof(in));
		if (size == sizeof(in)) { /* and the values of its bytes are ignored */
			ck_assert_uint_eq(length, 5);
			ck_assert_ptr_eq(data, p + 4);
			ck_assert_uint_eq(rxw_xdr_left(&x), 0);
		} else {
			ck_assert_uint_eq(rxw_xdr_used(&x), 0);
		}
		free(p);
	}
}
END_TEST

START_TEST(bounds)
{
	static const uint8_t in[] = { 0, 0, 0, 5, 'h', 'e', 'l', 'l', 'o', 0, 0, 0 };
	struct rxw_xdr x;
	char text[6];

	rxw_xdr_reader(&x, in, sizeof(in));
	ck_assert(!rxw_xdr_copy_string(&x, 4, text));
	ck_assert_uint_eq(rxw_xdr_used(&x), 0);
	rxw_xdr_reader(&x, in, sizeof(in));
	ck_assert(rxw_xdr_copy_string(&x, 5, text));
	ck_assert_str_eq(text, "hello");
}
END_TEST

START_TEST(string_with_nul)
{
	static const uint8_t in[] = { 0, 0, 0, 5, 'h', 'e', 0, 'l', 'o', 0, 0, 0 };
	struct rxw_xdr x;
	char text[16] = "unchanged";

	rxw_xdr_reader(&x, in, sizeof(in));
	ck_assert(!rxw_xdr_copy_string(&x, 15, text));
	ck_assert_str_eq(text, "unchanged");
	ck_assert_uint_eq(rxw_xdr_used(&x), 0);
}
END_TEST

START_TEST(counts)
{
	static const struct {
		uint32_t count;
		uint32_t max;
		size_t element, bytes;
		bool ok;
	} cases[] = {
		{ 0, 0, 4, 0, true },
		{ 1, 0, 4, 4, false },
		{ 4, 4, 4, 16, true },
		{ 4, 4, 4, 15, false },
		{ 5, 4, 4, 100, false },
		{ 0xffffffffu, UINT32_MAX, 4, 100, false },
		{ 0x40000000u, UINT32_MAX, 4, 100, false }, /* 4 times this is 0 in 32 bits */
		{ 2, 9, SIZE_MAX, 100, false },
		{ 0xffffffffu, UINT32_MAX, 0, 0, true },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint8_t in[104] = { 0 };
		struct rxw_xdr x;
		uint32_t count = 12345;
		bool ok;

		rxw_xdr_writer(&x, in, 4);
		rxw_xdr_put_u32(&x, cases[i].count);
		rxw_xdr_reader(&x, in, 4 + cases[i].bytes);
		ok = rxw_xdr_get_count(&x, cases[i].max, cases[i].element, &count);
		ck_assert_int_eq(ok, cases[i].ok);
		ck_assert_uint_eq(count, ok ? cases[i].count : 12345);
	}
}
END_TEST

/* Random sequences of items, written and read back. */
START_TEST(round_trip)
{
	uint64_t state = test_seed();
	static uint8_t memory[1 << 16];

	for (int run = 0; run < 300; run++) {
		uint64_t seed = rxw_prng(&state), script;
		uint8_t data[300], back[300];
		struct rxw_xdr x;
		int items = 1 + (int)test_below(&state, 60);

		for (int pass = 0; pass < 2; pass++) {
			script = seed;
			if (!pass)
				rxw_xdr_writer(&x, memory, sizeof(memory));
			else
				rxw_xdr_reader(&x, memory, rxw_xdr_used(&x));
			for (int i = 0; i < items; i++) {
				uint64_t v = rxw_prng(&script);
				size_t length = test_below(&script, sizeof(data)), got;
				const uint8_t *lent;
				uint32_t u = 0;
				uint64_t w = 0;

				test_fill(&script, data, length);
				switch (v % 4) {
				case 0:
					ck_assert(pass ? rxw_xdr_get_u32(&x, &u)
						       : rxw_xdr_put_u32(&x, (uint32_t)v));
					ck_assert(!pass || u == (uint32_t)v);
					break;
				case 1:
					ck_assert(pass ? rxw_xdr_get_u64(&x, &w)
						       : rxw_xdr_put_u64(&x, v));
					ck_assert(!pass || w == v);
					break;
				case 2:
					ck_assert(pass ? rxw_xdr_get_opaque(&x, back, length)
						       : rxw_xdr_put_opaque(&x, data, length));
					if (pass && length)
						ck_assert_mem_eq(back, data, length);
					break;
				default:
					ck_assert(pass ? rxw_xdr_lend_bytes(&x, (uint32_t)length,
									    &lent, &got)
						       : rxw_xdr_put_bytes(&x, data, length, 300));
					if (pass) {
						ck_assert_uint_eq(got, length);
						if (length)
							ck_assert_mem_eq(lent, data, length);
					}
				}
			}
			ck_assert_uint_eq(rxw_xdr_used(&x) % 4, 0);
		}
		ck_assert_uint_eq(rxw_xdr_left(&x), 0);
	}
}
END_TEST

/* -- memory allocated by decoding ------------------------------------------------------------ */

void *__real_realloc(void *memory, size_t size);
void *__wrap_realloc(void *memory, size_t size);
static unsigned allocations;

void *__wrap_realloc(void *memory, size_t size)
{
	allocations++;
	return __real_realloc(memory, size);
}

START_TEST(bounds_when_encoding)
{
	uint8_t out[64];
	struct rxw_xdr x;

	rxw_xdr_writer(&x, out, sizeof(out));
	ck_assert(rxw_xdr_put_string(&x, "hello", 5));
	ck_assert(rxw_xdr_put_bytes(&x, "hello", 5, 5));
	ck_assert_uint_eq(rxw_xdr_used(&x), 24);
	ck_assert(!rxw_xdr_put_string(&x, "hello", 4));
	ck_assert_uint_eq(rxw_xdr_used(&x), 24);
	rxw_xdr_writer(&x, out, sizeof(out));
	ck_assert(!rxw_xdr_put_bytes(&x, "hello", 5, 0));
	ck_assert_uint_eq(rxw_xdr_used(&x), 0);
}
END_TEST

START_TEST(owned_bytes_and_texts)
{
	static const uint8_t in[] = {
		0, 0, 0, 5, 'h', 'e', 'l', 'l', 'o', 1, 2, 3, 0, 0, 0, 0,
		0, 0, 0, 3, 'a', 0,   'c', 9,   0,   0, 0, 0
	};
	struct rxw_xdr x;
	char *text, *data;
	uint32_t length;

	rxw_xdr_reader(&x, in, sizeof(in));
	ck_assert_uint_eq(x.budget, 65536 + 16 * sizeof(in));
	ck_assert(rxw_xdr_get_string(&x, 5, &text));
	ck_assert_str_eq(text, "hello");
	free(text);
	ck_assert(rxw_xdr_get_string(&x, 0, &text));
	ck_assert_str_eq(text, "");
	free(text);
	ck_assert(rxw_xdr_get_bytes(&x, 3, &data, &length));
	ck_assert_uint_eq(length, 3);
	ck_assert_mem_eq(data, "a\0c", 3);
	free(data);
	ck_assert(rxw_xdr_get_bytes(&x, 3, &data, &length));
	ck_assert(!data && !length);
	ck_assert_uint_eq(rxw_xdr_left(&x), 0);
	ck_assert_uint_eq(x.budget, 65536 + 16 * sizeof(in) - 6 - 1 - 3);
	/* The same bytes as a text: it contains a NUL, and nothing is allocated. */
	rxw_xdr_reader(&x, in + 16, 8);
	ck_assert(!rxw_xdr_get_string(&x, 3, &text));
	ck_assert_ptr_null(text);
	ck_assert_uint_eq(rxw_xdr_used(&x), 0);
}
END_TEST

/* Counts are checked before memory is allocated. */
START_TEST(no_memory_for_announced_counts)
{
	static const uint32_t promises[] = {
		UINT32_MAX, 0x80000000u, 0x7fffffffu, 1001, 1000, 41, 37
	};
	uint8_t in[40];

	for (size_t i = 0; i < sizeof(promises) / sizeof(promises[0]); i++)
		for (int bounded = 0; bounded < 2; bounded++) {
			uint32_t bound = bounded ? 1000 : UINT32_MAX, length = 77, count;
			char *data = (char *)in;
			struct rxw_xdr x;

			memset(in, 'a', sizeof(in));
			rxw_xdr_store32(in, promises[i]);
			allocations = 0;
			rxw_xdr_reader(&x, in, sizeof(in));
			ck_assert(!rxw_xdr_get_bytes(&x, bound, &data, &length));
			ck_assert(!data && !length);
			rxw_xdr_reader(&x, in, sizeof(in));
			ck_assert(!rxw_xdr_get_string(&x, bound, &data));
			ck_assert_ptr_null(data);
			rxw_xdr_reader(&x, in, sizeof(in));
			ck_assert(!rxw_xdr_get_count(&x, bound, 1, &count));
			ck_assert_uint_eq(allocations, 0);
			ck_assert_uint_eq(rxw_xdr_used(&x), 0);
		}
}
END_TEST

START_TEST(growing)
{
	uint8_t in[100] = { 0 };
	struct rxw_xdr x;
	size_t room = 0;
	void *array = NULL, *one;

	rxw_xdr_reader(&x, in, sizeof(in));
	x.budget = 200000;
	array = rxw_xdr_grow(&x, array, &room, 100, 1000);
	ck_assert_uint_eq(room, 65);
	array = rxw_xdr_grow(&x, array, &room, 100, 1000);
	ck_assert_uint_eq(room, 100);
	ck_assert_uint_eq(x.budget, 100000);
	/* Larger than a step: step by step. */
	free(array);
	room = 0;
	array = rxw_xdr_grow(&x, NULL, &room, UINT32_MAX, 70000);
	ck_assert_uint_eq(room, 1);
	ck_assert_uint_eq(x.budget, 30000);
	allocations = 0;
	ck_assert_ptr_null(rxw_xdr_grow(&x, array, &room, UINT32_MAX, 70000));
	ck_assert_uint_eq(allocations, 0);
	ck_assert_uint_eq(room, 1);
	free(array);
	ck_assert(!rxw_xdr_ok(&x));
	ck_assert_ptr_null(rxw_xdr_new(&x, 1));
	/* Sizes whose product overflows. */
	rxw_xdr_reader(&x, in, sizeof(in));
	room = 2;
	ck_assert_ptr_null(rxw_xdr_grow(&x, NULL, &room, UINT32_MAX, SIZE_MAX / 2));
	rxw_xdr_reader(&x, in, sizeof(in));
	room = 5;
	ck_assert_ptr_null(rxw_xdr_grow(&x, NULL, &room, 5, 1)); /* nothing to append */
	rxw_xdr_reader(&x, in, sizeof(in));
	one = rxw_xdr_new(&x, 24);
	ck_assert_ptr_nonnull(one);
	ck_assert_mem_eq(one, in, 24);
	free(one);
	ck_assert_uint_eq(x.budget, 65536 + 1600 - 24);
	ck_assert_ptr_null(rxw_xdr_new(&x, 65536 + 1600 - 23));
	ck_assert(!rxw_xdr_ok(&x));
}
END_TEST

START_TEST(depth)
{
	struct rxw_xdr x;
	uint8_t in[4] = { 0 };

	rxw_xdr_reader(&x, in, sizeof(in));
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < RXW_XDR_DEPTH; i++)
			ck_assert(rxw_xdr_enter(&x));
		for (int i = 0; i < RXW_XDR_DEPTH; i++)
			rxw_xdr_leave(&x);
	}
	for (int i = 0; i < RXW_XDR_DEPTH; i++)
		ck_assert(rxw_xdr_enter(&x));
	ck_assert(!rxw_xdr_enter(&x));
	ck_assert(!rxw_xdr_ok(&x));
}
END_TEST

START_TEST(numbers_and_identifiers)
{
	static const uint8_t want[] = {
		0x3f, 0xc0, 0, 0, /* 1.5 */
		0xc0, 0x04, 0, 0, 0, 0, 0, 0, /* -2.5 */
		0x12, 0x34, 0x56, 0x78, 0, 0, 0x9a, 0xbc, 0, 0, 0xde, 0xf0,
		0xff, 0xff, 0xff, 0x80, 0, 0, 0, 0x7f,
		0, 0, 0, 0, 0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff,
		0, 0, 0, 3, 0, 0, 0, 4, 0xff, 0xff, 0xff, 0x81,
	};
	const struct rxw_uuid uuid = { 0x12345678, 0x9abc, 0xdef0, -128, 127,
				       { 0, 1, -1, 3, 4, -127 } };
	uint8_t out[sizeof(want)], high[RXW_UUID_BYTES];
	struct rxw_uuid back;
	struct rxw_xdr x;
	float f = 0;
	double d = 0;

	rxw_xdr_writer(&x, out, sizeof(out));
	ck_assert(rxw_xdr_put_float(&x, 1.5f) && rxw_xdr_put_double(&x, -2.5));
	ck_assert(rxw_xdr_put_uuid(&x, &uuid));
	ck_assert_uint_eq(rxw_xdr_left(&x), 0);
	ck_assert_mem_eq(out, want, sizeof(want));
	ck_assert(!rxw_xdr_put_uuid(&x, &uuid));
	rxw_xdr_reader(&x, out, sizeof(out));
	ck_assert(rxw_xdr_get_float(&x, &f) && rxw_xdr_get_double(&x, &d));
	ck_assert(f == 1.5f && d == -2.5);
	ck_assert(rxw_xdr_get_uuid(&x, &back));
	ck_assert_mem_eq(&back, &uuid, sizeof(uuid));
	/* For 8-bit and 16-bit values only the low bits count. */
	memcpy(high, out + 12, sizeof(high));
	for (size_t i = 4; i < sizeof(high); i += 4)
		high[i] = 0x55;
	rxw_xdr_reader(&x, high, sizeof(high));
	ck_assert(rxw_xdr_get_uuid(&x, &back));
	ck_assert_mem_eq(&back, &uuid, sizeof(uuid));
	rxw_xdr_reader(&x, high, sizeof(high) - 1);
	ck_assert(!rxw_xdr_get_uuid(&x, &back));
}
END_TEST

/* Words in sequence are equal to single words, for each number and each alignment. */
START_TEST(words_in_sequence)
{
	uint32_t words[67], back[67];
	uint8_t row[300], single[300];
	struct rxw_xdr x, y;

	for (uint32_t i = 0; i < 67; i++)
		words[i] = i * 0x01020305u + 0x80;
	for (size_t count = 0; count < 67; count++)
		for (size_t shift = 0; shift < 5; shift++) {
			rxw_xdr_writer(&x, row + shift, 4 * count + 3);
			rxw_xdr_writer(&y, single, sizeof(single));
			for (size_t i = 0; i < count; i++)
				rxw_xdr_put_u32(&y, words[i]);
			ck_assert(rxw_xdr_put_words(&x, words, count));
			ck_assert_uint_eq(rxw_xdr_used(&x), 4 * count);
			ck_assert(!memcmp(row + shift, single, 4 * count));
			ck_assert(!rxw_xdr_put_words(&x, words, 1));
			ck_assert_uint_eq(rxw_xdr_used(&x), 4 * count);
			rxw_xdr_reader(&x, row + shift, 4 * count);
			ck_assert(rxw_xdr_get_words(&x, back, count));
			ck_assert(!memcmp(back, words, 4 * count));
			ck_assert(!rxw_xdr_get_words(&x, back, 1));
			rxw_xdr_reader(&x, row, 4 * count);
			ck_assert(!rxw_xdr_get_words(&x, back, count + 1));
			ck_assert(!rxw_xdr_get_words(&x, back, 0));
		}
	rxw_xdr_reader(&x, row, sizeof(row));
	ck_assert(!rxw_xdr_get_words(&x, back, SIZE_MAX / 4 + 2));
	rxw_xdr_writer(&x, row, sizeof(row));
	ck_assert(!rxw_xdr_put_words(&x, words, SIZE_MAX / 4 + 2));
}
END_TEST

START_TEST(short_numbers)
{
	static const uint8_t in[] = {
		0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe, /* -2 */
		0x55, 0x55, 0x80, 0x01, 0x55, 0x55, 0x80, 0x01,
		0x55, 0x55, 0x55, 0x80, 0x55, 0x55, 0x55, 0x80,
		0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	};
	struct rxw_xdr x;
	int64_t i64 = 0;
	int16_t i16 = 0;
	uint16_t u16 = 0;
	uint8_t u8 = 0;
	bool yes = false, no = true;
	char c = 0;

	rxw_xdr_reader(&x, in, sizeof(in));
	ck_assert(rxw_xdr_get_i64(&x, &i64) && i64 == -2);
	ck_assert(rxw_xdr_get_i16(&x, &i16) && i16 == -0x7fff);
	ck_assert(rxw_xdr_get_u16(&x, &u16) && u16 == 0x8001);
	ck_assert(rxw_xdr_get_char(&x, &c) && c == (char)-128);
	ck_assert(rxw_xdr_get_u8(&x, &u8) && u8 == 0x80);
	ck_assert(rxw_xdr_get_bool(&x, &yes) && yes);
	ck_assert(rxw_xdr_get_bool(&x, &no) && !no);
	ck_assert_uint_eq(rxw_xdr_left(&x), 0);
	ck_assert(!rxw_xdr_get_u8(&x, &u8) && u8 == 0x80);
}
END_TEST

/* A failed cursor returns nothing, whatever its memory contains. */
START_TEST(failing_by_hand)
{
	uint8_t memory[64];
	struct rxw_xdr x;

	rxw_xdr_writer(&x, memory, sizeof(memory));
	ck_assert(rxw_xdr_put_u32(&x, 1));
	ck_assert(!rxw_xdr_fail(&x));
	ck_assert_ptr_null(rxw_xdr_take(&x, 4));
	ck_assert_uint_eq(rxw_xdr_used(&x), 4);
	ck_assert_uint_eq(rxw_xdr_left(&x), 0);
	/* More than a block is consumed at once if memory has it. */
	rxw_xdr_reader(&x, memory, sizeof(memory));
	ck_assert_ptr_eq(rxw_xdr_take(&x, 64), memory);
	ck_assert_ptr_null(rxw_xdr_take(&x, 1));
}
END_TEST

TEST_MAIN("xdr", known_bytes, full_writer, failure_lasts, null_string, huge_lengths,
	  padding_is_required, bounds, string_with_nul, counts, round_trip, bounds_when_encoding,
	  owned_bytes_and_texts, no_memory_for_announced_counts, growing, depth,
	  numbers_and_identifiers, words_in_sequence, short_numbers, failing_by_hand)
