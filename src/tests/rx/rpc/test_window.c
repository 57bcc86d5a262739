/* SPDX-License-Identifier: BSD-2-Clause */
/* XDR on calls: packets of small calls, read-ahead, limits, hostile counts. */
#include <semaphore.h>
#include <stdio.h>

#include "stubs.h"

void *__real_realloc(void *memory, size_t size);
void *__wrap_realloc(void *memory, size_t size);

/* Allocations of decoders on this thread, and the bytes of the largest. */
static _Thread_local unsigned allocations;
static _Thread_local size_t largest;

void *__wrap_realloc(void *memory, size_t size)
{
	allocations++;
	if (size > largest)
		largest = size;
	return __real_realloc(memory, size);
}

/* A call to the service that replies with the bytes of the request, which are written already. */
static rxw_call *ask_raw(rxw_connection *c, const void *bytes, size_t length)
{
	rxw_call *call;

	ck_assert_int_eq(rxw_call_begin(c, NULL, &call), 0);
	ck_assert_int_eq(rxw_call_write(call, bytes, length), (ssize_t)length);
	ck_assert_int_eq(rxw_call_send_end(call), 0);
	return call;
}

START_TEST(small_call_is_one_packet_each_way)
{
	rxw_connection *c = h_connect(&bed, T_SERVICE);
	struct rxw_call_statistics st = { .size = sizeof(st) };
	struct rxw_rpc_stream s;
	char *back = NULL;
	uint32_t length = 0;
	rxw_call *call;

	ck_assert_int_eq(rxw_rpc_begin(c, NULL, &call), 0);
	rxw_rpc_writer(&s, call);
	rxw_xdr_put_u32(&s.xdr, T_OP_ECHO);
	rxw_xdr_put_bytes(&s.xdr, "hello", 5, 5);
	ck_assert(rxw_rpc_flush(&s));
	rxw_rpc_reader(&s, call, RXW_RPC_WHOLE, 0);
	ck_assert(rxw_xdr_get_bytes(&s.xdr, 5, &back, &length));
	ck_assert_uint_eq(length, 5);
	ck_assert_mem_eq(back, "hello", 5);
	free(back);
	ck_assert_int_eq(rxw_call_stats(call, &st), 0);
	ck_assert_uint_eq(st.packets_sent, 1);
	ck_assert_uint_eq(st.packets_received, 1);
	ck_assert_int_eq(rxw_rpc_end(call, 0, &T_interface, T_FN_ECHO), 0);
	rxw_connection_release(c);
}
END_TEST

#define LARGE 6000u /* bytes of a reply, more than a window */

static _Atomic(uint64_t) sent_by_stub;
static sem_t has_read;

/* Replies as a stub does, and counts the packets that have left before it returns. */
static int32_t answer_large(rxw_call *call, void *context)
{
	struct rxw_call_statistics st = {.size = sizeof(st)};
	static const uint32_t words[LARGE / 4];
	struct rxw_rpc_stream s;

	rxw_rpc_writer(&s, call);
	if (!rxw_xdr_put_words(&s.xdr, words, LARGE / 4) || !rxw_rpc_flush(&s))
		return RXW_RPC_SS_MARSHAL;
	ck_assert_int_eq(rxw_call_stats(call, &st), 0);
	sent_by_stub = st.packets_sent;
	if (*(const bool *)context) {
		ck_assert_int_eq(rxw_call_flush(call), 0);
		sem_wait(&has_read);
	}
	return 0;
}

/* The packets of a reply leave together when its handler returns, or when it flushes the call. */
START_TEST(reply_leaves_at_once)
{
	static bool flush;
	struct rxw_service_options options = {
		.size = sizeof(options), .id = 203, .handler = answer_large, .context = &flush};
	static uint8_t back[LARGE];
	rxw_connection *c;

	flush = _i;
	sem_init(&has_read, 0, 0);
	h_offer(&bed, options);
	c = h_connect(&bed, 203);
	for (int i = 0; i < 3; i++) {
		rxw_call *call = ask_raw(c, "word", 4);

		ck_assert_int_eq(rxw_call_read(call, back, sizeof(back)), LARGE);
		sem_post(&has_read);
		ck_assert_int_eq(rxw_call_end(call, 0, NULL), 0);
		ck_assert_uint_eq(sent_by_stub, 0);
	}
	rxw_connection_release(c);
}
END_TEST

/* Sizes around the window, the block and the packet, in both directions. */
START_TEST(all_sizes)
{
	static const uint32_t sizes[] = { 0,    1,    3,    4,    1023, 1024,  1025,  1404,   1405,
					  4084, 4087, 4088, 4089, 4092, 4096,  4097,  8191,   8192,
					  8193, 9999, 65535, 65536, 65537, 200001, T_DATA_MAX };
	rxw_connection *c = h_connect(&bed, T_SERVICE);
	char *data = malloc(T_DATA_MAX);

	h_pattern((uint8_t *)data, 0, T_DATA_MAX, 5);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct rxw_opaque in = { sizes[i], data }, out;

		ck_assert_int_eq(T_Echo(c, &in, &out), 0);
		ck_assert_uint_eq(out.len, sizes[i]);
		ck_assert(!out.len == !out.val);
		ck_assert(!out.len || !memcmp(out.val, data, out.len));
		free(out.val);
	}
	free(data);
	rxw_connection_release(c);
}
END_TEST

START_TEST(lists)
{
	static const uint32_t counts[] = { 0, 1, 2, 50, 250, 300, 5000, T_ITEMS_MAX };
	rxw_connection *c = h_connect(&bed, T_SERVICE);

	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		struct t_items items;
		char name[16];

		ck_assert_int_eq(T_List(c, counts[i], &items), 0);
		ck_assert_uint_eq(items.len, counts[i]);
		for (uint32_t k = 0; k < items.len; k++) {
			snprintf(name, sizeof(name), "item %u", k);
			ck_assert_uint_eq(items.val[k].number, k * 3);
			ck_assert_str_eq(items.val[k].name, name);
		}
		t_free_items(&items);
	}
	rxw_connection_release(c);
}
END_TEST

/* Raw bytes after arguments are left for the caller to read. */
START_TEST(exact_reading_leaves_the_rest)
{
	uint8_t bytes[6000];
	struct rxw_xdr x;
	rxw_connection *c = h_connect(&bed, T_RAW);
	struct rxw_rpc_stream s;
	struct t_items items;
	rxw_call *call;
	uint32_t v = 0;
	size_t raw;

	rxw_xdr_writer(&x, bytes, sizeof(bytes));
	rxw_xdr_put_u32(&x, 7);
	rxw_xdr_put_u32(&x, 2);
	rxw_xdr_put_u32(&x, 11);
	rxw_xdr_put_string(&x, "one", 100);
	rxw_xdr_put_u32(&x, 12);
	rxw_xdr_put_string(&x, "three", 100);
	raw = rxw_xdr_used(&x);
	h_pattern(bytes + raw, 0, sizeof(bytes) - raw, 9);
	call = ask_raw(c, bytes, sizeof(bytes));
	rxw_rpc_reader(&s, call, RXW_RPC_EXACT, 0);
	ck_assert(rxw_xdr_get_u32(&s.xdr, &v) && v == 7);
	ck_assert(t_get_items(&s.xdr, &items));
	ck_assert_uint_eq(items.len, 2);
	ck_assert_str_eq(items.val[1].name, "three");
	t_free_items(&items);
	ck_assert_int_eq(rxw_call_read(call, bytes, sizeof(bytes)), (ssize_t)(sizeof(bytes) - raw));
	ck_assert(h_pattern_is(bytes, 0, sizeof(bytes) - raw, 9));
	ck_assert_int_eq(rxw_call_end(call, 0, NULL), 0);
	rxw_connection_release(c);
}
END_TEST

/* Expected bytes come in one read, and none beyond the decoded ones. */
START_TEST(exact_reading_of_what_is_expected)
{
	static const size_t least[] = { 0, 1, 4, 8, 19, 20, 4096, 5000 };
	rxw_connection *c = h_connect(&bed, T_RAW);
	static uint8_t bytes[6000];

	for (size_t i = 0; i < sizeof(least) / sizeof(least[0]); i++) {
		struct rxw_rpc_stream s;
		size_t words = least[i] > 20 ? least[i] / 4 : 5;
		uint32_t v = 0;
		rxw_call *call;

		h_pattern(bytes, 0, sizeof(bytes), 9);
		call = ask_raw(c, bytes, sizeof(bytes));
		rxw_rpc_reader(&s, call, RXW_RPC_EXACT, 0);
		rxw_rpc_expect(&s, least[i]);
		for (size_t k = 0; k < words; k++) {
			ck_assert(rxw_xdr_get_u32(&s.xdr, &v));
			ck_assert_uint_eq(v, rxw_xdr_load32(bytes + 4 * k));
			if (!k && least[i] && least[i] <= 4096)
				ck_assert_uint_eq(rxw_xdr_left(&s.xdr),
						  least[i] < 4 ? 0 : least[i] - 4);
		}
		ck_assert_uint_eq(rxw_xdr_left(&s.xdr), 0);
		ck_assert_int_eq(rxw_call_read(call, bytes, sizeof(bytes)),
				 (ssize_t)(sizeof(bytes) - 4 * words));
		ck_assert(h_pattern_is(bytes, 4 * words, sizeof(bytes) - 4 * words, 9));
		ck_assert_int_eq(rxw_call_end(call, 0, NULL), 0);
	}
	rxw_connection_release(c);
}
END_TEST

/* A stream that ends before the expected length still returns its bytes. */
START_TEST(less_than_expected)
{
	rxw_connection *c = h_connect(&bed, T_RAW);
	uint8_t bytes[8] = { 0, 0, 0, 1, 0, 0, 0, 2 };
	rxw_call *call = ask_raw(c, bytes, sizeof(bytes));
	struct rxw_rpc_stream s;
	uint32_t v = 0;

	rxw_rpc_reader(&s, call, RXW_RPC_EXACT, 0);
	rxw_rpc_expect(&s, 100);
	ck_assert(rxw_xdr_get_u32(&s.xdr, &v) && v == 1);
	ck_assert(rxw_xdr_get_u32(&s.xdr, &v) && v == 2);
	ck_assert(!rxw_xdr_get_u32(&s.xdr, &v));
	ck_assert_int_eq(rxw_call_end(call, 0, NULL), 0);
	rxw_connection_release(c);
}
END_TEST

/* A failure is returned by each later step, and nothing of it is written. */
START_TEST(encoding_failures)
{
	rxw_connection *c = h_connect(&bed, T_SERVICE);
	struct rxw_opaque in = { T_DATA_MAX + 1, NULL }, out;
	struct rxw_rpc_stream s;
	rxw_call *call;

	ck_assert_int_eq(rxw_rpc_begin(c, NULL, &call), 0);
	rxw_rpc_writer(&s, call);
	ck_assert(!rxw_xdr_put_string(&s.xdr, NULL, 10));
	ck_assert(!rxw_xdr_put_u32(&s.xdr, 1));
	ck_assert(!rxw_rpc_flush(&s));
	rxw_rpc_writer(&s, call);
	ck_assert(!rxw_xdr_put_string(&s.xdr, "eleven long", 10));
	ck_assert(!rxw_rpc_flush(&s));
	ck_assert_int_eq(rxw_rpc_end(call, RXW_RPC_CC_MARSHAL, &T_interface, 0),
			 RXW_RPC_CC_MARSHAL);
	ck_assert_int_eq(T_Echo(c, &in, &out), RXW_RPC_CC_MARSHAL);
	ck_assert_ptr_null(out.val);
	rxw_connection_release(c);
}
END_TEST

/* Words in sequence, through the window and back, at the end of a packet and of a window. */
START_TEST(words_in_sequence)
{
	static uint32_t words[7000], back[7000];
	rxw_connection *c = h_connect(&bed, T_RAW);

	for (uint32_t i = 0; i < 7000; i++)
		words[i] = i * 2654435761u;
	for (size_t count = 1; count <= 7000; count = count * 3 - 1) {
		for (int exact = 0; exact < 2; exact++) {
			struct rxw_rpc_stream s;
			uint32_t v = 0;
			rxw_call *call;

			ck_assert_int_eq(rxw_rpc_begin(c, NULL, &call), 0);
			rxw_rpc_writer(&s, call);
			rxw_xdr_put_words(&s.xdr, words, count);
			rxw_xdr_put_u32(&s.xdr, 4711);
			ck_assert(rxw_rpc_flush(&s));
			rxw_rpc_reader(&s, call, exact ? RXW_RPC_EXACT : RXW_RPC_WHOLE, 0);
			ck_assert(rxw_xdr_get_words(&s.xdr, back, count));
			ck_assert(!memcmp(back, words, 4 * count));
			ck_assert(rxw_xdr_get_u32(&s.xdr, &v) && v == 4711);
			ck_assert(!rxw_xdr_get_words(&s.xdr, back, 1));
			ck_assert_int_eq(rxw_call_end(call, 0, NULL), 0);
		}
		if (count < 2)
			count = 2;
	}
	rxw_connection_release(c);
}
END_TEST

START_TEST(limits)
{
	static uint8_t words[12000];
	rxw_connection *c = h_connect(&bed, T_RAW);
	uint32_t v = 0;

	/* Below one window and above: exactly this many bytes are permitted. */
	for (size_t limit = 4; limit <= 10000; limit += 4998) {
		for (int exact = 0; exact < 2; exact++) {
			struct rxw_rpc_stream s;
			rxw_call *call = ask_raw(c, words, sizeof(words));
			size_t n = 0;

			rxw_rpc_reader(&s, call, exact ? RXW_RPC_EXACT : RXW_RPC_WHOLE, limit);
			while (rxw_xdr_get_u32(&s.xdr, &v))
				n += 4;
			ck_assert_uint_eq(n, limit / 4 * 4);
			ck_assert_int_eq(rxw_call_end(call, 0, NULL), 0);
		}
	}
	rxw_connection_release(c);
}
END_TEST

/*
 * Counts of items that do not follow: a failure, without an allocation before it. `follow` bytes
 * are after the count.
 */
static const struct hostile {
	uint32_t count, follow;
} hostile[] = {
	{ 0xffffffffu, 0 },    { 0xffffffffu, 8000 }, { 0x80000000u, 100 }, { 0x40000001u, 4000 },
	{ 0x7fffffffu, 20000 }, { T_DATA_MAX + 1, 0 }, { T_DATA_MAX, 0 },    { T_DATA_MAX, 1000 },
	{ 5000, 1300 },        { 1001, 1000 },        { 1, 0 },		    { 4096, 4092 },
	{ T_ITEMS_MAX, 16 },   { 100, 99 },
};

enum kind {
	BYTES,
	STRING,
	COPIED,
	ITEMS,
	KINDS
};

static bool decode(struct rxw_xdr *x, enum kind kind)
{
	static char text[T_DATA_MAX + 1];
	struct t_items items;
	char *data = NULL;
	uint32_t length = 0;

	switch (kind) {
	case BYTES:
		if (rxw_xdr_get_bytes(x, T_DATA_MAX, &data, &length))
			return true;
		ck_assert(!data && !length);
		return false;
	case STRING:
		if (rxw_xdr_get_string(x, T_DATA_MAX, &data))
			return true;
		ck_assert_ptr_null(data);
		return false;
	case COPIED:
		return rxw_xdr_copy_string(x, T_DATA_MAX, text);
	default:
		if (t_get_items(x, &items))
			return true;
		ck_assert(!items.len && !items.val);
		return false;
	}
}

START_TEST(hostile_counts)
{
	rxw_connection *c = h_connect(&bed, T_RAW);
	static uint8_t bytes[32000];

	memset(bytes, 'a', sizeof(bytes));
	for (size_t i = 0; i < sizeof(hostile) / sizeof(hostile[0]); i++)
		for (unsigned k = 0; k < KINDS * 2; k++) {
			struct rxw_rpc_stream s;
			rxw_call *call;
			size_t budget;

			rxw_xdr_store32(bytes, hostile[i].count);
			call = ask_raw(c, bytes, 4 + hostile[i].follow);
			rxw_rpc_reader(&s, call, k % 2 ? RXW_RPC_EXACT : RXW_RPC_WHOLE, 0);
			budget = s.xdr.budget;
			allocations = 0;
			ck_assert_msg(!decode(&s.xdr, (enum kind)(k / 2)), "count %u was accepted",
				      hostile[i].count);
			ck_assert_msg(!allocations && s.xdr.budget == budget,
				      "count %u, %u bytes, kind %u: allocation before the failure",
				      hostile[i].count, hostile[i].follow, k / 2);
			ck_assert_int_eq(rxw_call_end(call, 0, NULL), 0);
		}
	rxw_connection_release(c);
}
END_TEST

/* Once a window full has arrived, memory is at most twice the received bytes. */
START_TEST(memory_follows_the_bytes)
{
	rxw_connection *c = h_connect(&bed, T_RAW);
	static uint8_t bytes[32000];
	char *data;
	uint32_t length;

	memset(bytes, 'a', sizeof(bytes));
	rxw_xdr_store32(bytes, T_DATA_MAX);
	for (size_t come = 4100; come <= 32000; come += 900) {
		struct rxw_rpc_stream s;
		rxw_call *call = ask_raw(c, bytes, come);

		rxw_rpc_reader(&s, call, RXW_RPC_WHOLE, 0);
		largest = 0;
		ck_assert(!rxw_xdr_get_bytes(&s.xdr, T_DATA_MAX, &data, &length));
		ck_assert_uint_le(largest, 2 * come);
		ck_assert_int_eq(rxw_call_end(call, 0, NULL), 0);
	}
	rxw_connection_release(c);
}
END_TEST

/* The budget ends what the limit of bytes would permit. */
START_TEST(budget)
{
	rxw_connection *c = h_connect(&bed, T_RAW);
	uint8_t bytes[8] = { 0 };
	struct rxw_rpc_stream s;
	rxw_call *call = ask_raw(c, bytes, sizeof(bytes));
	size_t room = 0;
	void *array;

	rxw_rpc_reader(&s, call, RXW_RPC_WHOLE, 100);
	ck_assert_uint_eq(s.xdr.budget, 65536 + 1600);
	array = rxw_xdr_grow(&s.xdr, NULL, &room, 3000, 100);
	ck_assert_ptr_nonnull(array);
	ck_assert_uint_eq(room, 655);
	ck_assert_ptr_null(rxw_xdr_grow(&s.xdr, array, &room, 3000, 100));
	ck_assert_uint_eq(room, 655);
	ck_assert(!rxw_xdr_ok(&s.xdr));
	free(array);
	ck_assert_int_eq(rxw_call_end(call, 0, NULL), 0);
	rxw_connection_release(c);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("window");
	TCase *tc = tcase_create("loopback");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_set_timeout(tc, 120);
	tcase_add_checked_fixture(tc, t_set_up, t_tear_down);
	tcase_add_test(tc, small_call_is_one_packet_each_way);
	tcase_add_loop_test(tc, reply_leaves_at_once, 0, 2);
	tcase_add_test(tc, all_sizes);
	tcase_add_test(tc, lists);
	tcase_add_test(tc, exact_reading_leaves_the_rest);
	tcase_add_test(tc, exact_reading_of_what_is_expected);
	tcase_add_test(tc, less_than_expected);
	tcase_add_test(tc, encoding_failures);
	tcase_add_test(tc, words_in_sequence);
	tcase_add_test(tc, limits);
	tcase_add_test(tc, hostile_counts);
	tcase_add_test(tc, memory_follows_the_bytes);
	tcase_add_test(tc, budget);
	suite_add_tcase(s, tc);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
