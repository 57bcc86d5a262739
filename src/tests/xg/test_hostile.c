/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Generated decoders on hostile input: lengths above the bound, beyond the packet and near 2^32,
 * deep nesting, long lists, and failing allocations. Each decodes from memory and from a call;
 * heap.h counts allocations.
 */
#include <stdlib.h>
#include <string.h>

#include "decoders.h"
#include "heap.h"
#include "stream.h"
#include "tests/asserts.h"

#include "short/all-types.h"

#define MANY 0xffffffffu

/* Decoding `words` words must fail after at most `allocations` allocations. */
struct hostile {
	const char *what;
	const char *type;
	unsigned words;
	uint32_t word[12];
	unsigned allocations;
};

static const struct hostile table[] = {
	{"text of 2^32 - 1 bytes", "at_text", 3, {MANY, 0x61616161, 0x61616161}, 0},
	{"text of 2^31 bytes", "at_text", 2, {0x80000000, 0x61616161}, 0},
	{"text above its bound", "at_text", 8, {25, 1, 1, 1, 1, 1, 1, 1}, 0},
	{"text longer than the packet", "at_text", 3, {9, 0x61616161, 0x61616161}, 0},
	{"text without padding", "at_text", 2, {5, 0x61616161}, 0},
	{"text without any bytes", "at_text", 1, {1}, 0},
	{"unbounded text of 2^32 - 1 bytes", "at_endless_text", 3, {MANY, 1, 1}, 0},
	{"unbounded text above the bound of the language", "at_endless_text", 2, {1048577, 1}, 0},
	{"unbounded text longer than the packet", "at_endless_text", 2, {1048576, 1}, 0},
	{"bytes, 2^32 - 1", "at_bytes", 3, {MANY, 0, 0}, 0},
	{"bytes, 2^32 - 4", "at_bytes", 3, {MANY - 3, 0, 0}, 0},
	{"bytes above their bound", "at_octets", 12, {8, 0, 0, 0, 0, 0, 0, 0, 0}, 0},
	{"bytes longer than the packet", "at_bytes", 3, {12, 0, 0}, 0},
	{"unbounded bytes, 2^32 - 1", "at_endless", 3, {MANY, 0, 0}, 0},
	{"unbounded bytes longer than the packet", "at_endless", 3, {1048576, 0, 0}, 0},
	{"fixed bytes longer than the packet", "at_block", 3, {0}, 0},
	{"array of 2^32 - 1", "at_shorts", 3, {MANY, 1, 1}, 0},
	{"array of 2^30, whose bytes wrap around", "at_numbers", 3, {0x40000000, 1, 1}, 0},
	{"array above its bound", "at_shorts", 7, {6, 1, 1, 1, 1, 1, 1}, 0},
	{"array longer than the packet", "at_shorts", 4, {4, 1, 1, 1}, 0},
	{"unbounded array above the bound of the language", "at_numbers", 3, {65537, 1, 1}, 0},
	{"unbounded array longer than the packet", "at_numbers", 3, {65536, 1, 1}, 0},
	{"fixed array longer than the packet", "at_ints", 2, {1, 1}, 0},
	{"structs, 2^32 - 1", "at_list", 3, {MANY, 1, 1}, 0},
	{"structs longer than the packet", "at_list", 12, {5, 1, 1, 1}, 0},
	{"texts, 2^32 - 1", "at_texts", 3, {MANY, 0, 0}, 0},
	{"texts, more than words are left", "at_texts", 4, {4, 0, 0, 0}, 0},
	{"nested arrays, the outer of 2^32 - 1", "at_matrix", 4, {MANY, 1, 0, 0}, 0},
	{"nested arrays, outer longer than the packet", "at_matrix", 3, {3, 0, 0}, 0},
	{"nested arrays, the inner of 2^32 - 1", "at_matrix", 5, {2, MANY, 0, 0, 0}, 1},
	{"nested arrays, an inner one longer than the packet", "at_matrix", 5, {2, 4, 1, 1, 0}, 1},
	{"three levels, the last of 2^32 - 1", "at_cube", 12, {2, 1, MANY, MANY}, 1},
	{"a union's bytes, 2^32 - 1", "at_choice", 3, {4, MANY, 0}, 0},
	{"a union's list, 2^32 - 1", "at_choice", 3, {5, MANY, 0}, 0},
	{"a union without the arm", "at_strict", 3, {4, 0, 0}, 0},
	{"bytes behind a pointer, 2^32 - 1", "at_maybe", 5, {0, 0, 1, MANY, 0}, 1},
	{"NUL in a text", "at_text", 2, {4, 0x61006161}, 1},
	{"AFS: 51 FIDs", "AFSCBFids", 12, {51}, 0},
	{"AFS: 2^32 - 1 FIDs", "AFSCBFids", 4, {MANY, 1, 1, 1}, 0},
	{"AFS: 50 FIDs in 11 words", "AFSCBFids", 12, {50}, 0},
	{"AFS: access list of 1025 bytes", "AFSOpaque", 12, {1025}, 0},
	{"AFS: capabilities, the overrun of OPENAFS-SA-2024-003", "Capabilities", 12, {197}, 0},
	{"AFS: statistics, 2^32 - 1", "AFS_CollData", 12, {MANY}, 0},
	{"VL: entries, 2^32 - 1", "bulkentries", 12, {MANY}, 0},
	{"VL: entries longer than the packet", "nbulkentries", 12, {2}, 0},
	{"VL: addresses above the bound", "bulkaddrs", 12, {501}, 0},
	{"VL: linked list, entry longer than the packet", "vldb_list", 12, {1}, 1},
	{"PT: names, 2^32 - 1", "namelist", 12, {MANY}, 0},
	{"PT: names longer than the packet", "namelist", 12, {500000}, 0},
	{"PT: groups longer than the packet", "prlist", 12, {500000}, 0},
	{"volumes, 2^32 - 1", "volEntries", 12, {MANY}, 0},
	{"volumes longer than the packet", "volXEntries", 12, {65536}, 0},
	{"statistics of calls, longer than the packet", "rpcStats", 12, {4194304}, 0},
};

static uint8_t *to_bytes(const uint32_t *word, size_t words)
{
	uint8_t *bytes = malloc(words * 4 + 1);

	ck_assert_ptr_nonnull(bytes);
	for (size_t i = 0; i < words; i++)
		rxw_xdr_store32(bytes + 4 * i, word[i]);
	return bytes;
}

static const struct decoder *named(const char *name)
{
	const struct decoder *d = decoder_named(name);

	ck_assert_msg(d != NULL, "no type %s", name);
	return d;
}

enum way {
	MEMORY,
	CALL,
	CALL_EXACTLY,
	WAYS
};

/* The result of a decoder. The heap is read directly after it, since libcheck allocates, too. */
struct outcome {
	bool ok;
	size_t made; /* allocations */
	size_t left; /* allocations not freed */
	size_t peak; /* bytes */
};

static struct outcome decode(const struct decoder *d, void *v, const uint8_t *bytes, size_t size,
			     enum way way)
{
	struct rxw_call call = {.in = bytes, .in_size = size, .chunk = 7};
	enum rxw_rpc_reading how = way == CALL_EXACTLY ? RXW_RPC_EXACT : RXW_RPC_WHOLE;
	struct rxw_rpc_stream s;
	struct rxw_xdr x;
	struct outcome o;
	size_t live = heap_live();

	heap_mark();
	if (way == MEMORY) {
		rxw_xdr_reader(&x, bytes, size);
		o.ok = d->get(&x, v);
	} else {
		rxw_rpc_reader(&s, &call, how, 0);
		o.ok = d->get(&s.xdr, v);
	}
	o.made = heap_made();
	o.left = heap_live() - live;
	o.peak = heap_peak();
	return o;
}

/* Number of allocations that xdrfree_T() frees. */
static size_t released(const struct decoder *d, void *v)
{
	size_t live = heap_live();

	d->release(v);
	return live - heap_live();
}

START_TEST(lengths)
{
	const struct hostile *h = &table[_i];
	const struct decoder *d = named(h->type);
	uint8_t *bytes = to_bytes(h->word, h->words);
	void *v = malloc(d->size);

	ck_assert_ptr_nonnull(v);
	for (enum way way = 0; way < WAYS; way++) {
		struct outcome o;

		memset(v, 0xa5, d->size);
		o = decode(d, v, bytes, h->words * 4, way);
		ck_assert_msg(!o.ok, "%s (%s), way %d: decoded", h->what, h->type, way);
		ck_assert_msg(o.made <= h->allocations, "%s (%s), way %d: %zu allocations", h->what,
			      h->type, way, o.made);
		ck_assert_msg(!o.left, "%s (%s), way %d: memory is left", h->what, h->type, way);
		ck_assert_uint_eq(released(d, v), 0); /* the value is zero: nothing to free */
	}
	free(v);
	free(bytes);
}
END_TEST

/* A tree whose nodes have only left children, `depth` of them. */
static uint8_t *tree(size_t depth, size_t *size)
{
	size_t words = depth + 3 + 2 * depth;
	uint32_t *word = calloc(words, sizeof(*word));
	uint8_t *bytes;

	ck_assert_ptr_nonnull(word);
	for (size_t i = 0; i < depth; i++)
		word[i] = 1;
	bytes = to_bytes(word, words);
	free(word);
	*size = words * 4;
	return bytes;
}

START_TEST(depth)
{
	const struct decoder *d = named("at_tree");
	size_t size;

	for (enum way way = 0; way < WAYS; way++) {
		static const size_t too_deep[] = {RXW_XDR_DEPTH + 1, 1000, 1000000};
		uint8_t *bytes = tree(RXW_XDR_DEPTH, &size);
		at_tree v;
		struct outcome o = decode(d, &v, bytes, size, way);

		ck_assert(o.ok);
		ck_assert_uint_eq(o.made, RXW_XDR_DEPTH);
		ck_assert_uint_eq(released(d, &v), RXW_XDR_DEPTH);
		free(bytes);
		for (size_t i = 0; i < sizeof(too_deep) / sizeof(too_deep[0]); i++) {
			bytes = tree(too_deep[i], &size);
			o = decode(d, &v, bytes, size, way);
			ck_assert(!o.ok);
			ck_assert_uint_le(o.made, RXW_XDR_DEPTH + 1);
			ck_assert_uint_eq(o.left, 0);
			free(bytes);
		}
	}
}
END_TEST

/* A list of `n` elements with the value 1. */
static uint8_t *chain(size_t n, size_t *size)
{
	uint8_t *bytes = malloc(8 * n + 4);

	ck_assert_ptr_nonnull(bytes);
	for (size_t i = 0; i < 2 * n; i++)
		rxw_xdr_store32(bytes + 4 * i, 1);
	rxw_xdr_store32(bytes + 8 * n, 0);
	*size = 8 * n + 4;
	return bytes;
}

/* A list is decoded without recursion: its length does not count as depth or use stack. */
START_TEST(long_list)
{
	const struct decoder *d = named("at_chain");
	size_t size;

	for (enum way way = 0; way < WAYS; way++) {
		uint8_t *bytes = chain(RXW_XDR_LIST, &size);
		at_chain v;
		struct outcome o = decode(d, &v, bytes, size, way);

		ck_assert(o.ok);
		ck_assert_uint_eq(o.made, RXW_XDR_LIST);
		ck_assert_uint_eq(released(d, &v), RXW_XDR_LIST);
		free(bytes);

		bytes = chain(RXW_XDR_LIST + 1, &size);
		o = decode(d, &v, bytes, size, way);
		ck_assert(!o.ok && !o.left);
		ck_assert_uint_le(o.made, RXW_XDR_LIST + 1);
		/* Many elements, then a missing one. */
		o = decode(d, &v, bytes, 8 * 50000, way);
		ck_assert(!o.ok && !o.left);
		free(bytes);
	}
}
END_TEST

/* Many small elements: allocated memory is proportional to the input. */
START_TEST(budget)
{
	static const char *const types[] = {"at_matrix",   "at_texts", "at_many_bytes", "at_cube",
					    "bulkentries", "namelist", "at_numbers"};
	const size_t size = 400000;
	uint8_t *zeros = calloc(1, size);

	ck_assert_ptr_nonnull(zeros);
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		const struct decoder *d = named(types[i]);
		void *v = calloc(1, d->size);

		for (uint32_t count = 1; count < 100000; count *= 3) {
			struct outcome o;

			rxw_xdr_store32(zeros, count);
			o = decode(d, v, zeros, size, MEMORY);
			ck_assert_uint_le(o.peak, 65536 + 16 * size);
			ck_assert_uint_eq(released(d, v), o.left);
		}
		free(v);
	}
	free(zeros);
}
END_TEST

/* An encoded value with members of each kind. */
static uint8_t *holder(size_t *size)
{
	static char text[] = "text", bytes[] = "bytes";
	int32_t numbers[3] = {1, 2, 3}, number = -7;
	at_bytes data = {5, bytes};
	char *texts[2] = {text, text};
	at_holder v = {.text = text, .any = text, .also = text};
	uint8_t *out = malloc(4096);
	struct rxw_xdr x;

	ck_assert_ptr_nonnull(out);
	v.counted.len = 5;
	v.counted.val = bytes;
	v.numbers.len = 3;
	v.numbers.val = numbers;
	v.texts.len = 2;
	v.texts.val = texts;
	v.maybe.number = &number;
	v.maybe.bytes = &data;
	v.data.len = 5;
	v.data.val = bytes;
	rxw_xdr_writer(&x, out, 4096);
	ck_assert(xdr_put_at_holder(&x, &v));
	*size = rxw_xdr_used(&x);
	return out;
}

/* Each allocation fails in turn: decoding fails and frees its memory. */
START_TEST(no_memory)
{
	const struct decoder *d = named("at_holder");
	size_t size;
	uint8_t *bytes = holder(&size);

	for (enum way way = 0; way < WAYS; way++) {
		at_holder v;
		struct outcome all = decode(d, &v, bytes, size, way), o;

		ck_assert(all.ok);
		ck_assert_uint_gt(all.made, 8);
		ck_assert_uint_eq(released(d, &v), all.left);
		for (size_t n = 1; n <= all.made; n++) {
			heap_fail(n);
			o = decode(d, &v, bytes, size, way);
			ck_assert_msg(!o.ok && o.made == n && !o.left, "way %d, allocation %zu",
				      way, n);
		}
	}
	free(bytes);
}
END_TEST

/* A truncated value is an error, and no memory is left. */
START_TEST(cut_anywhere)
{
	const struct decoder *d = named("at_holder");
	size_t size;
	uint8_t *bytes = holder(&size);

	for (enum way way = 0; way < WAYS; way++) {
		for (size_t cut = 0; cut < size; cut++) {
			at_holder v;
			struct outcome o = decode(d, &v, bytes, cut, way);

			ck_assert_msg(!o.ok && !o.left, "way %d, cut at %zu", way, cut);
		}
	}
	free(bytes);
}
END_TEST

/* Values that encoders reject, since no decoder accepts them. */
START_TEST(encoding)
{
	uint8_t out[4096];
	char long_text[40] = {0};
	int16_t halves[6] = {0};
	struct rxw_xdr x;
	at_text text = NULL;
	at_bytes bytes = {101, (char *)out};
	at_shorts shorts = {6, halves};
	at_strict strict = {.color = AT_GREEN};
	at_tree loop = {0};
	at_link ring = {0};
	at_chain into = &ring;

#define REFUSES(call)                                  \
	do {                                           \
		rxw_xdr_writer(&x, out, sizeof(out));  \
		ck_assert(!(call) && !rxw_xdr_ok(&x)); \
	} while (0)
	REFUSES(xdr_put_at_text(&x, &text));
	memset(long_text, 'x', 25);
	text = long_text;
	REFUSES(xdr_put_at_text(&x, &text));
	REFUSES(xdr_put_at_bytes(&x, &bytes));
	REFUSES(xdr_put_at_shorts(&x, &shorts));
	REFUSES(xdr_put_at_strict(&x, &strict));
	loop.left = &loop;
	REFUSES(xdr_put_at_tree(&x, &loop));
	ring.next = &ring;
	REFUSES(xdr_put_at_chain(&x, &into));
#undef REFUSES
}
END_TEST

/* Words that encoders do not produce and decoders accept (rxgen.md 3.1). */
START_TEST(loose_words)
{
	static const uint32_t word[] = {1,	    2,		3,	    4,		5,
					6,	    7,		8,	    0xffff8001, 0x12348001,
					0x00018001, 0x123456ff, 0x123456ff, 0x1ff,	7};
	uint8_t in[256] = {0}, out[256];
	struct rxw_xdr x;
	at_scalars v;

	for (size_t i = 0; i < sizeof(word) / sizeof(word[0]); i++)
		rxw_xdr_store32(in + 4 * i, word[i]);
	rxw_xdr_reader(&x, in, sizeof(in));
	ck_assert(xdr_get_at_scalars(&x, &v));
	ck_assert_int_eq(v.s, -32767);
	ck_assert_uint_eq(v.us, 0x8001);
	ck_assert_uint_eq(v.us2, 0x8001);
	ck_assert_int_eq(v.c, (char)-1); /* 255 if char is unsigned */
	ck_assert_uint_eq(v.uc, 0xff);
	ck_assert_uint_eq(v.uc2, 0xff);
	ck_assert(v.yes == true);
	rxw_xdr_writer(&x, out, sizeof(out));
	ck_assert(xdr_put_at_scalars(&x, &v));
	ck_assert_uint_eq(rxw_xdr_load32(out + 4 * 8), 0xffff8001);
	ck_assert_uint_eq(rxw_xdr_load32(out + 4 * 9), 0x8001);
	ck_assert_uint_eq(rxw_xdr_load32(out + 4 * 11), MANY);
	ck_assert_uint_eq(rxw_xdr_load32(out + 4 * 12), 0xff);
	ck_assert_uint_eq(rxw_xdr_load32(out + 4 * 14), 1);
}
END_TEST

int main(void)
{
	SRunner *runner;
	Suite *s = suite_create("hostile");
	TCase *t = tcase_create("all");
	int failed;

	tcase_add_loop_test(t, lengths, 0, sizeof(table) / sizeof(table[0]));
	tcase_add_test(t, depth);
	tcase_add_test(t, long_list);
	tcase_add_test(t, budget);
	tcase_add_test(t, no_memory);
	tcase_add_test(t, cut_anywhere);
	tcase_add_test(t, encoding);
	tcase_add_test(t, loose_words);
	suite_add_tcase(s, t);
	runner = srunner_create(s);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
