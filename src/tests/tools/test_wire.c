/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of perf/wire.c: requests of all commands, refusals, lists, the pattern. */

#include "testing.h"

#include "tools/perf/wire.h"

/* Words as bytes. */
static size_t put(uint8_t *out, const uint32_t *words, size_t count)
{
	for (size_t i = 0; i < count; i++)
		for (int b = 0; b < 4; b++)
			out[4 * i + (size_t)b] = (uint8_t)(words[i] >> (24 - 8 * b));
	return 4 * count;
}

/* The recorded SEND of 300000 bytes: 3, 0, 524288, 524288, 300000. */
START_TEST(known_send)
{
	static const uint32_t words[] = { 3, 0, 524288, 524288, 300000 };
	struct perf_request r = { .command = PERF_SEND, .read_size = 524288, .write_size = 524288,
				  .request = 300000 };
	uint8_t want[20], got[20];

	put(want, words, 5);
	ck_assert_uint_eq(perf_encoded_size(&r), sizeof(want));
	ck_assert_uint_eq(perf_encode(&r, got, sizeof(got)), sizeof(want));
	ck_assert_mem_eq(got, want, sizeof(want));
}
END_TEST

static void round_trip(const struct perf_request *r)
{
	uint8_t raw[256];
	size_t more, size = perf_encoded_size(r);
	struct perf_request d;
	uint64_t a[2], b[2];

	ck_assert_uint_eq(perf_encode(r, raw, sizeof(raw)), size);
	ck_assert_int_eq(perf_decode_common(&d, raw, &more), 0);
	ck_assert_int_eq(perf_decode_sizes(&d, raw + PERF_COMMON_LEN), 0);
	ck_assert_int_eq(d.command, r->command);
	ck_assert_uint_eq(d.read_size, r->read_size);
	ck_assert_uint_eq(d.write_size, r->write_size);
	ck_assert_uint_eq(PERF_COMMON_LEN + more + 4 * (size_t)d.word_count, size);
	if (r->command == PERF_FILE) {
		ck_assert_uint_eq(d.word_count, r->word_count);
		return;
	}
	perf_totals(r, &a[0], &a[1]);
	perf_totals(&d, &b[0], &b[1]);
	ck_assert_uint_eq(a[0], b[0]);
	ck_assert_uint_eq(a[1], b[1]);
}

START_TEST(round_trips)
{
	uint32_t words[] = { 1, 2, 0, 3 };

	round_trip(&(struct perf_request){.command = PERF_SEND,
					  .read_size = 1,
					  .write_size = 524288,
					  .request = PERF_MAX_BYTES});
	round_trip(&(struct perf_request){ .command = PERF_RECV, .read_size = 2, .write_size = 3,
					   .reply = 0 });
	round_trip(&(struct perf_request){ .command = PERF_RPC, .read_size = 2, .write_size = 3,
					   .request = 5, .reply = 7 });
	round_trip(&(struct perf_request){ .command = PERF_FILE, .read_size = 2, .write_size = 3,
					   .word_count = 4, .words = words });
}
END_TEST

START_TEST(refusals)
{
	static const uint32_t bad[][4] = {
		{ 2, 0, 1, 1 }, { 4, 0, 1, 1 }, { 3, 2, 1, 1 }, { 3, 5, 1, 1 },
		{ 3, 0xffffffff, 1, 1 }, { 3, 0, 0, 1 }, { 3, 0, 1, 0 }, { 3, 0, 524289, 1 },
		{ 3, 0, 1, 524289 }, { 0, 0, 0, 0 },
	};
	uint8_t raw[16];
	struct perf_request r;
	size_t more;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		put(raw, bad[i], 4);
		ck_assert_msg(perf_decode_common(&r, raw, &more) == -1, "case %zu", i);
	}
	for (uint32_t command = 0; command < 5; command++) {
		uint32_t words[4] = { 3, command, 1, 1 }, sizes[2] = { 0x80000000u, 0 };

		if (command == 2)
			continue;
		put(raw, words, 4);
		ck_assert_int_eq(perf_decode_common(&r, raw, &more), 0);
		put(raw, sizes, 2);
		ck_assert_int_eq(perf_decode_sizes(&r, raw), -1);
	}
	{
		uint32_t words[4] = { 3, PERF_FILE, 1, 1 }, count = PERF_MAX_WORDS + 1;

		put(raw, words, 4);
		ck_assert_int_eq(perf_decode_common(&r, raw, &more), 0);
		put(raw, &count, 1);
		ck_assert_int_eq(perf_decode_sizes(&r, raw), -1);
		count--;
		put(raw, &count, 1);
		ck_assert_int_eq(perf_decode_sizes(&r, raw), 0);
		ck_assert_uint_eq(r.word_count, PERF_MAX_WORDS);
	}
}
END_TEST

START_TEST(lists)
{
	struct perf_request r = { .command = PERF_FILE };
	char message[160];
	uint64_t to_server, to_client;
	char *many;

	ck_assert_int_eq(perf_parse_list("64K,4,0,1M,8", &r, message, sizeof(message)), 0);
	ck_assert_uint_eq(r.word_count, 5);
	ck_assert_uint_eq(r.words[0], 16384);
	perf_totals(&r, &to_server, &to_client);
	ck_assert_uint_eq(to_server, 65540);
	ck_assert_uint_eq(to_client, (1 << 20) + 8);
	free(r.words);
	/* Turning twice moves nothing; turning back after data was received cannot work. */
	ck_assert_int_eq(perf_parse_list("0,0,4", &r, message, sizeof(message)), 0);
	free(r.words);
	ck_assert_int_eq(perf_parse_list("4,0,4,0,4", &r, message, sizeof(message)), -1);
	ck_assert_int_eq(perf_parse_list("", &r, message, sizeof(message)), -1);
	ck_assert_int_eq(perf_parse_list("3", &r, message, sizeof(message)), -1);
	ck_assert_int_eq(perf_parse_list("4,", &r, message, sizeof(message)), -1);
	ck_assert_int_eq(perf_parse_list("4,,8", &r, message, sizeof(message)), -1);
	ck_assert_int_eq(perf_parse_list("4 8", &r, message, sizeof(message)), -1);
	ck_assert_int_eq(perf_parse_list("16T", &r, message, sizeof(message)), -1);
	ck_assert_ptr_null(r.words);
	many = malloc(2 * PERF_MAX_WORDS + 8);
	for (size_t i = 0; i <= PERF_MAX_WORDS; i++)
		memcpy(many + 2 * i, "4,", 2);
	strcpy(many + 2 * PERF_MAX_WORDS, "4");
	ck_assert_int_eq(perf_parse_list(many, &r, message, sizeof(message)), -1);
	many[2 * PERF_MAX_WORDS - 1] = 0;
	ck_assert_int_eq(perf_parse_list(many, &r, message, sizeof(message)), 0);
	ck_assert_uint_eq(r.word_count, PERF_MAX_WORDS);
	free(r.words);
	free(many);
}
END_TEST

START_TEST(pattern)
{
	uint8_t buffer[3000];
	uint64_t at = 0;

	perf_pattern_init();
	/* Pieces of any size agree with each other. */
	for (uint64_t offset = 65000; offset < 66100; offset += 7) {
		for (size_t done = 0; done < sizeof(buffer);) {
			size_t n, want = 1 + (done * 31 + offset) % 997;
			const uint8_t *p = perf_pattern(offset + done, want, &n);

			ck_assert_uint_gt(n, 0);
			ck_assert_uint_le(n, want);
			n = n < sizeof(buffer) - done ? n : sizeof(buffer) - done;
			memcpy(buffer + done, p, n);
			done += n;
		}
		ck_assert(perf_pattern_matches(offset, buffer, sizeof(buffer)));
		buffer[offset % sizeof(buffer)] ^= 1;
		ck_assert(!perf_pattern_matches(offset, buffer, sizeof(buffer)));
	}
	/* A packet in the wrong place shows, whatever its size. */
	for (size_t size = 1000; size < 9000; size += 4) {
		size_t n;
		const uint8_t *p = perf_pattern(at, size, &n);

		ck_assert_uint_eq(n, size);
		ck_assert(!perf_pattern_matches(at + size, p, size));
		at += size;
	}
}
END_TEST

TEST_MAIN("wire", known_send, round_trips, refusals, lists, pattern)
