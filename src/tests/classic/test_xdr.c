/* SPDX-License-Identifier: BSD-2-Clause */
/* XDR of classic Rx on memory: encodings, rules of decoding, malformed input, freeing. */
#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <rx/xdr.h>

#include "tests/main.h"

static char memory[4096];
static XDR x;

/* The largest allocation that the library has requested by realloc(); see local.mk. */
static size_t largest;
void *__real_realloc(void *old, size_t size);
void *__wrap_realloc(void *old, size_t size);

void *__wrap_realloc(void *old, size_t size)
{
	if (size > largest)
		largest = size;
	return __real_realloc(old, size);
}

static void encoder(void)
{
	memset(memory, 0x55, sizeof(memory));
	xdrmem_create(&x, memory, sizeof(memory), XDR_ENCODE);
}

/* What was encoded is these bytes, and becomes the input. */
static void encoded(const void *bytes, u_int size)
{
	ck_assert_uint_eq(xdr_getpos(&x), size);
	ck_assert_mem_eq(memory, bytes, size);
	xdrmem_create(&x, memory, size, XDR_DECODE);
}

static void input(const void *bytes, u_int size)
{
	memcpy(memory, bytes, size);
	xdrmem_create(&x, memory, size, XDR_DECODE);
}

#define INPUT(bytes) input(bytes, sizeof(bytes) - 1)

/* -- Numbers -------------------------------------------------------------------------------------- */

/* A number becomes these bytes and comes back, from memory that was something else. */
#define CHECK_NUMBER(coder, type, number, bytes)        \
	do {                                            \
		type v = (number), back;                \
                                                        \
		memset(&back, 0xa5, sizeof(back));      \
		encoder();                              \
		ck_assert(coder(&x, &v));               \
		encoded(bytes, sizeof(bytes) - 1);      \
		ck_assert(coder(&x, &back));            \
		ck_assert_mem_eq(&v, &back, sizeof(v)); \
		ck_assert(!coder(&x, &back));           \
		x.x_op = XDR_FREE;                      \
		ck_assert(coder(&x, &back));            \
	} while (0)

/* The structure of one number, which older headers of OpenAFS lack. */
static bool_t code_time64(XDR *xdrs, afs_int64 *ticks)
{
	return xdr_afs_time64(xdrs, (struct afs_time64 *)(void *)ticks);
}

START_TEST(numbers)
{
	CHECK_NUMBER(xdr_int, int, -2, "\xff\xff\xff\xfe");
	CHECK_NUMBER(xdr_u_int, u_int, 0x80000001, "\x80\0\0\1");
	CHECK_NUMBER(xdr_long, long, -3, "\xff\xff\xff\xfd");
	CHECK_NUMBER(xdr_u_long, u_long, 0xfffffffd, "\xff\xff\xff\xfd");
	CHECK_NUMBER(xdr_short, short, -4, "\xff\xff\xff\xfc");
	CHECK_NUMBER(xdr_u_short, u_short, 0xfffc, "\0\0\xff\xfc");
	CHECK_NUMBER(xdr_char, char, (char)0xfb, "\xff\xff\xff\xfb");
	CHECK_NUMBER(xdr_u_char, u_char, 0xfb, "\0\0\0\xfb");
	CHECK_NUMBER(xdr_bool, bool_t, TRUE, "\0\0\0\1");
	CHECK_NUMBER(xdr_enum, enum_t, 7, "\0\0\0\7");
	CHECK_NUMBER(xdr_afs_int32, afs_int32, INT32_MIN, "\x80\0\0\0");
	CHECK_NUMBER(xdr_afs_uint32, afs_uint32, UINT32_MAX, "\xff\xff\xff\xff");
	CHECK_NUMBER(xdr_afs_int64, afs_int64, -2, "\xff\xff\xff\xff\xff\xff\xff\xfe");
	CHECK_NUMBER(xdr_int64, afs_int64, 0x102030405060708, "\1\2\3\4\5\6\7\10");
	CHECK_NUMBER(xdr_afs_uint64, afs_uint64, 0xf102030405060708, "\xf1\2\3\4\5\6\7\10");
	CHECK_NUMBER(xdr_uint64, afs_uint64, 1ull << 32, "\0\0\0\1\0\0\0\0");
	CHECK_NUMBER(code_time64, afs_int64, -1, "\xff\xff\xff\xff\xff\xff\xff\xff");
	CHECK_NUMBER(xdr_float, float, -1.5f, "\xbf\xc0\0\0");
	CHECK_NUMBER(xdr_double, double, 1.5, "\x3f\xf8\0\0\0\0\0\0");
	ck_assert(xdr_void());
}
END_TEST

/* Numbers of few bits take the low ones; each word but 0 is TRUE; longs lose their high half. */
START_TEST(numbers_that_do_not_fit)
{
	bool_t truth = FALSE;
	long wide = 0x7fff00000001;
	u_short low;
	char c;

	INPUT("\x12\x34\x56\x78\x12\x34\x56\x78\x80\0\0\0");
	ck_assert(xdr_u_short(&x, &low) && low == 0x5678);
	ck_assert(xdr_char(&x, &c) && c == 0x78);
	ck_assert(xdr_bool(&x, &truth));
	ck_assert_int_eq(truth, TRUE);
	encoder();
	truth = 4;
	ck_assert(xdr_bool(&x, &truth) && xdr_long(&x, &wide));
	encoded("\0\0\0\1\0\0\0\1", 8);
}
END_TEST

START_TEST(uuid)
{
	const afsUUID v = {0x01020304, 0xfffe, 0x8001, (char)0xff, 2, {(char)0x80, 1, 2, 3, 4, 5}};
	afsUUID back;

	encoder();
	ck_assert(xdr_afsUUID(&x, (afsUUID *)&v));
	encoded("\1\2\3\4\0\0\xff\xfe\0\0\x80\1\xff\xff\xff\xff\0\0\0\2"
		"\xff\xff\xff\x80\0\0\0\1\0\0\0\2\0\0\0\3\0\0\0\4\0\0\0\5",
		44);
	ck_assert(xdr_afsUUID(&x, &back));
	ck_assert_mem_eq(&v, &back, sizeof(v));
}
END_TEST

/* -- Streams -------------------------------------------------------------------------------------- */

START_TEST(positions_in_memory)
{
	afs_int32 v = 1, *words;

	encoder();
	xdrmem_create(&x, memory, 12, XDR_ENCODE);
	ck_assert(xdr_afs_int32(&x, &v) && xdr_afs_int32(&x, &v));
	ck_assert_uint_eq(xdr_getpos(&x), 8);
	ck_assert(xdr_setpos(&x, 4));
	words = xdr_inline(&x, 8);
	ck_assert_ptr_eq(words, memory + 4);
	IXDR_PUT_INT32(words, -5);
	IXDR_PUT_U_INT32(words, 6);
	ck_assert_ptr_null(xdr_inline(&x, 1));
	ck_assert(!xdr_afs_int32(&x, &v));
	ck_assert(!xdr_setpos(&x, 13));
	ck_assert(xdr_setpos(&x, 12) && xdr_setpos(&x, 0));
	ck_assert_mem_eq(memory, "\0\0\0\1\xff\xff\xff\xfb\0\0\0\6\x55", 13);
	words = xdr_inline(&x, 12);
	ck_assert_int_eq(IXDR_GET_INT32(words), 1);
	ck_assert_int_eq(IXDR_GET_INT32(words), -5);
	ck_assert_uint_eq(IXDR_GET_U_INT32(words), 6);
	/* words that are not aligned cannot be lent */
	ck_assert(xdr_setpos(&x, 1));
	ck_assert_ptr_null(xdr_inline(&x, 4));
	xdr_destroy(&x);
}
END_TEST

START_TEST(counted_lengths)
{
	char *text = "hello";
	afs_int32 v = 1;

	xdrlen_create(&x);
	ck_assert_int_eq(x.x_op, XDR_ENCODE);
	ck_assert_uint_eq(xdr_getpos(&x), 0);
	ck_assert(xdr_afs_int32(&x, &v) && xdr_string(&x, &text, 5));
	ck_assert_uint_eq(xdr_getpos(&x), 16);
	ck_assert(!xdr_putbytes(&x, memory, INT_MAX - 15));
	ck_assert(xdr_putbytes(&x, memory, INT_MAX - 16));
	ck_assert(!xdr_getint32(&x, &v));
	ck_assert(!xdr_setpos(&x, 0));
	ck_assert_ptr_null(xdr_inline(&x, 4));
}
END_TEST

/* -- Bytes and strings ---------------------------------------------------------------------------- */

START_TEST(opaque_bytes)
{
	char bytes[7] = "abcdef";

	encoder();
	ck_assert(xdr_opaque(&x, bytes, 5) && xdr_opaque(&x, NULL, 0) && xdr_opaque(&x, bytes, 4));
	encoded("abcde\0\0\0abcd", 12);
	memset(bytes, 0, sizeof(bytes));
	ck_assert(xdr_opaque(&x, bytes, 5));
	ck_assert_mem_eq(bytes, "abcde\0", 7);
	ck_assert(!xdr_opaque(&x, bytes, 5));
	/* the padding must be present; its contents do not matter */
	INPUT("abcde123abcde12");
	ck_assert(xdr_opaque(&x, bytes, 5));
	ck_assert(!xdr_opaque(&x, bytes, 5));
}
END_TEST

START_TEST(bytes_that_are_allocated)
{
	char *bytes = NULL;
	u_int count = 77;

	INPUT("\0\0\0\3abc\0\0\0\0\0\0\0\0\3abc");
	ck_assert(xdr_bytes(&x, &bytes, &count, 3));
	ck_assert_uint_eq(count, 3);
	ck_assert_mem_eq(bytes, "abc", 3);
	x.x_op = XDR_FREE;
	ck_assert(xdr_bytes(&x, &bytes, &count, 3));
	ck_assert_ptr_null(bytes);
	ck_assert(xdr_bytes(&x, &bytes, &count, 3));
	/* none is not NULL */
	x.x_op = XDR_DECODE;
	ck_assert(xdr_bytes(&x, &bytes, &count, 3));
	ck_assert_uint_eq(count, 0);
	ck_assert_ptr_nonnull(bytes);
	xdr_free((xdrproc_t)xdr_wrapstring, &bytes);
	ck_assert_ptr_null(bytes);
	/* the padding is missing */
	count = 9;
	ck_assert(!xdr_bytes(&x, &bytes, &count, 3));
	ck_assert_ptr_null(bytes);
}
END_TEST

START_TEST(bytes_in_memory_of_the_program)
{
	char room[8] = "", *bytes = room;
	u_int count = 4;

	INPUT("\0\0\0\4abcd\0\0\0\5abcde\0\0\0\0\0\0\4abcd");
	ck_assert(xdr_bytes(&x, &bytes, &count, 8));
	ck_assert_mem_eq(room, "abcd", 5);
	/* more than there is room for: nothing changes */
	ck_assert(!xdr_bytes(&x, &bytes, &count, 8));
	ck_assert_ptr_eq(bytes, room);
	ck_assert_uint_eq(count, 4);
	ck_assert_mem_eq(room, "abcd", 5);
	/* more than the type allows, although there is room */
	ck_assert(xdr_setpos(&x, 20));
	count = 8;
	ck_assert(!xdr_bytes(&x, &bytes, &count, 3));
	ck_assert_uint_eq(count, 8);
}
END_TEST

START_TEST(bytes_to_encode)
{
	char *bytes = "abc", *none = NULL;
	u_int count = 3, zero = 0;

	encoder();
	ck_assert(xdr_bytes(&x, &bytes, &count, 3) && xdr_bytes(&x, &none, &zero, 3));
	ck_assert(!xdr_bytes(&x, &bytes, &count, 2));
	ck_assert(!xdr_bytes(&x, &none, &count, 3));
	encoded("\0\0\0\3abc\0\0\0\0\0", 12);
}
END_TEST

/* A string that arrives with these bytes is an error, and nothing is left of it. */
static void refuse_string(const char *bytes, u_int size, u_int most)
{
	char *text = NULL;

	input(bytes, size);
	ck_assert(!xdr_string(&x, &text, most));
	ck_assert_ptr_null(text);
}

START_TEST(strings)
{
	char *text = "hello", *none = NULL, *back = NULL;

	encoder();
	ck_assert(xdr_string(&x, &text, 5));
	ck_assert(!xdr_string(&x, &text, 4));
	ck_assert(!xdr_string(&x, &none, 5));
	encoded("\0\0\0\5hello\0\0\0", 12);
	ck_assert(xdr_string(&x, &back, 5));
	ck_assert_str_eq(back, "hello");
	/* not into memory of unknown size */
	ck_assert(xdr_setpos(&x, 0));
	ck_assert(!xdr_string(&x, &back, 5));
	ck_assert_str_eq(back, "hello");
	xdrfree_string(&back);
	ck_assert_ptr_null(back);
	INPUT("\0\0\0\0");
	ck_assert(xdr_string(&x, &back, 0));
	ck_assert_str_eq(back, "");
	xdr_free((xdrproc_t)xdr_wrapstring, &back);
	refuse_string("\0\0\0\5hello\0\0\0", 12, 4);
	refuse_string("\0\0\0\5he\0lo\0\0\0", 12, 5);
	refuse_string("\0\0\0\5hello\0\0", 11, 5);
	refuse_string("\0\0\0\5hel", 7, 5);
	refuse_string("\xff\xff\xff\xffhello", 9, UINT_MAX);
	refuse_string("\0\0\0", 3, 5);
}
END_TEST

/* Around the steps in which memory is allocated, and no byte of an announced length ahead. */
START_TEST(long_strings)
{
	const u_int lengths[] = {65534, 65535, 65536, 65537, 131071, 131072, 300001};
	char *bytes = malloc(400000), *text = NULL;

	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		u_int length = lengths[i];

		xdrmem_create(&x, bytes, 400000, XDR_ENCODE);
		ck_assert(xdr_u_int(&x, &length));
		memset(bytes + 4, 'a', length);
		xdrmem_create(&x, bytes, 400000, XDR_DECODE);
		ck_assert(xdr_string(&x, &text, UINT_MAX));
		ck_assert_uint_eq(strlen(text), length);
		xdrfree_string(&text);
		xdrmem_create(&x, bytes, length + 3, XDR_DECODE);
		ck_assert(!xdr_string(&x, &text, UINT_MAX));
	}
	free(bytes);
	largest = 0;
	refuse_string("\x7f\xff\xff\xfehello", 9, UINT_MAX);
	ck_assert_uint_gt(largest, 0);
	ck_assert_uint_le(largest, 65536);
}
END_TEST

/* -- Arrays --------------------------------------------------------------------------------------- */

static bool_t decode_ints(caddr_t *array, u_int *count, u_int most)
{
	return xdr_array(&x, array, count, most, sizeof(int), (xdrproc_t)xdr_int);
}

START_TEST(arrays)
{
	int *array = (int[]){1, -1}, *none = NULL, *back = NULL;
	u_int count = 2, zero = 0, got = 99;

	encoder();
	ck_assert(decode_ints((caddr_t *)&array, &count, 2) &&
		  decode_ints((caddr_t *)&none, &zero, 2));
	ck_assert(!decode_ints((caddr_t *)&array, &count, 1));
	ck_assert(!decode_ints((caddr_t *)&none, &count, 2));
	ck_assert(!xdr_array(&x, (caddr_t *)&array, &count, 2, 0, (xdrproc_t)xdr_int));
	encoded("\0\0\0\2\0\0\0\1\xff\xff\xff\xff\0\0\0\0", 16);
	ck_assert(decode_ints((caddr_t *)&back, &got, 2));
	ck_assert_uint_eq(got, 2);
	ck_assert_mem_eq(back, array, 8);
	x.x_op = XDR_FREE;
	ck_assert(decode_ints((caddr_t *)&back, &got, 2));
	ck_assert_ptr_null(back);
	/* nothing for 0 elements */
	x.x_op = XDR_DECODE;
	ck_assert(decode_ints((caddr_t *)&back, &got, 2));
	ck_assert_uint_eq(got, 0);
	ck_assert_ptr_null(back);
}
END_TEST

START_TEST(arrays_in_memory_of_the_program)
{
	int room[3] = {7, 8, 9}, *array = room;
	u_int count = 3;

	INPUT("\0\0\0\2\0\0\0\1\0\0\0\2\0\0\0\3\0\0\0\1\0\0\0\2\0\0\0\3");
	ck_assert(decode_ints((caddr_t *)&array, &count, 3));
	ck_assert_uint_eq(count, 2);
	ck_assert(room[0] == 1 && room[1] == 2 && room[2] == 9);
	/* 3 do not fit into 2; nothing changes */
	ck_assert(!decode_ints((caddr_t *)&array, &count, 3));
	ck_assert_uint_eq(count, 2);
	ck_assert_int_eq(room[0], 1);
}
END_TEST

START_TEST(vectors)
{
	short three[3] = {1, 2, 3}, back[4] = {0, 0, 0, 44};

	encoder();
	ck_assert(xdr_vector(&x, (char *)three, 3, sizeof(short), (xdrproc_t)xdr_short));
	encoded("\0\0\0\1\0\0\0\2\0\0\0\3", 12);
	ck_assert(xdr_vector(&x, (char *)back, 3, sizeof(short), (xdrproc_t)xdr_short));
	ck_assert_mem_eq(three, back, sizeof(three));
	ck_assert_int_eq(back[3], 44);
	ck_assert(!xdr_vector(&x, (char *)back, 1, sizeof(short), (xdrproc_t)xdr_short));
}
END_TEST

/* 40 bytes of memory for each word of input. */
struct wide {
	int v;
	char rest[36];
};

static bool_t xdr_wide(XDR *xdrs, struct wide *wide)
{
	return xdr_int(xdrs, &wide->v);
}

/* An array grows with its data, and elements that did not arrive are zeros. */
START_TEST(announced_elements)
{
	enum {
		ELEMENTS = 5000
	};
	u_int count = 0, announced = 50000000;
	char *bytes = calloc(ELEMENTS + 1, 4);
	struct wide *array = NULL;

	largest = 0;
	xdrmem_create(&x, bytes, (ELEMENTS + 1) * 4, XDR_ENCODE);
	ck_assert(xdr_u_int(&x, &announced));
	memset(bytes + 4, 1, ELEMENTS * 4);
	xdrmem_create(&x, bytes, (ELEMENTS + 1) * 4, XDR_DECODE);
	ck_assert(!xdr_array(&x, (caddr_t *)&array, &count, UINT_MAX, sizeof(*array),
			     (xdrproc_t)xdr_wide));
	ck_assert_uint_ge(count, ELEMENTS);
	ck_assert_uint_le(count, 2 * ELEMENTS + 65536 / sizeof(*array));
	ck_assert_uint_le(largest, count * sizeof(*array));
	ck_assert_int_eq(array[ELEMENTS - 1].v, 0x01010101);
	for (u_int i = ELEMENTS; i < count; i++)
		ck_assert_int_eq(array[i].v, 0);
	x.x_op = XDR_FREE;
	ck_assert(xdr_array(&x, (caddr_t *)&array, &count, UINT_MAX, sizeof(*array),
			    (xdrproc_t)xdr_wide));
	ck_assert_ptr_null(array);
	free(bytes);
	/* more than 2 GiB of elements */
	INPUT("\x7f\xff\xff\xff\0\0\0\0");
	ck_assert(!xdr_array(&x, (caddr_t *)&array, &count, UINT_MAX, sizeof(*array),
			     (xdrproc_t)xdr_wide));
	ck_assert_ptr_null(array);
	ck_assert_uint_eq(count, 0);
}
END_TEST

/* -- Pointers and unions -------------------------------------------------------------------------- */

struct list {
	struct list *next;
	int v;
};

static bool_t xdr_list(XDR *xdrs, struct list *list)
{
	return xdr_int(xdrs, &list->v) &&
	       xdr_pointer(xdrs, (char **)&list->next, sizeof(*list), (xdrproc_t)xdr_list);
}

START_TEST(pointers)
{
	struct list second = {NULL, 2}, first = {&second, 1}, back = {NULL, 0}, *reference = NULL;

	encoder();
	ck_assert(xdr_list(&x, &first));
	encoded("\0\0\0\1\0\0\0\1\0\0\0\2\0\0\0\0", 16);
	ck_assert(xdr_list(&x, &back));
	ck_assert_int_eq(back.next->v, 2);
	ck_assert_ptr_null(back.next->next);
	xdr_free((xdrproc_t)xdr_list, &back);
	ck_assert_ptr_null(back.next);
	xdr_free((xdrproc_t)xdr_list, &back);
	/* a reference has no word of its own */
	INPUT("\0\0\0\5\0\0\0\0");
	ck_assert(xdr_reference(&x, (caddr_t *)&reference, sizeof(back), (xdrproc_t)xdr_list));
	ck_assert_int_eq(reference->v, 5);
	x.x_op = XDR_FREE;
	ck_assert(xdr_reference(&x, (caddr_t *)&reference, sizeof(back), (xdrproc_t)xdr_list));
	ck_assert_ptr_null(reference);
	x.x_op = XDR_ENCODE;
	ck_assert(!xdr_reference(&x, (caddr_t *)&reference, sizeof(back), (xdrproc_t)xdr_list));
}
END_TEST

/* The longest list that is accepted, and one element more. */
static void *decode_chains(void *unused)
{
	u_int words = 2 * (XDR_DEPTH + 2);
	afs_uint32 *chain = calloc(words, 4);
	struct list list = {NULL, 0};

	for (u_int i = 1; i < words; i += 2)
		chain[i] = htonl(i < 2 * XDR_DEPTH);
	xdrmem_create(&x, (caddr_t)chain, words * 4, XDR_DECODE);
	ck_assert(xdr_list(&x, &list));
	ck_assert_uint_eq(xdr_getpos(&x), (XDR_DEPTH + 1) * 8);
	xdr_free((xdrproc_t)xdr_list, &list);
	chain[2 * XDR_DEPTH + 1] = htonl(1);
	ck_assert(xdr_setpos(&x, 0));
	ck_assert(!xdr_list(&x, &list));
	xdr_free((xdrproc_t)xdr_list, &list);
	ck_assert_ptr_null(list.next);
	/* a failure does not count for the next one */
	chain[2 * XDR_DEPTH + 1] = 0;
	ck_assert(xdr_setpos(&x, 0));
	ck_assert(xdr_list(&x, &list));
	xdr_free((xdrproc_t)xdr_list, &list);
	free(chain);
	return unused;
}

/* In a thread with the stack that the frames of a sanitizer need. */
START_TEST(deep_chains)
{
	pthread_attr_t attributes;
	pthread_t thread;

	pthread_attr_init(&attributes);
	ck_assert_int_eq(pthread_attr_setstacksize(&attributes, 64 << 20), 0);
	ck_assert_int_eq(pthread_create(&thread, &attributes, decode_chains, NULL), 0);
	pthread_join(thread, NULL);
	pthread_attr_destroy(&attributes);
}
END_TEST

struct choice {
	enum_t which;
	union {
		int number;
		char *text;
	} arm;
};

static bool_t xdr_choice(XDR *xdrs, struct choice *choice, xdrproc_t otherwise)
{
	struct xdr_discrim arms[] = {
		{1, (xdrproc_t)xdr_int}, {2, (xdrproc_t)xdr_wrapstring}, {9, NULL_xdrproc_t}};

	return xdr_union(xdrs, &choice->which, (caddr_t)&choice->arm, arms, otherwise);
}

START_TEST(unions)
{
	struct choice number = {1, {.number = 5}}, text = {2, {.text = "a"}}, back;

	encoder();
	ck_assert(xdr_choice(&x, &number, NULL) && xdr_choice(&x, &text, NULL));
	encoded("\0\0\0\1\0\0\0\5\0\0\0\2\0\0\0\1a\0\0\0", 20);
	memset(&back, 0, sizeof(back));
	ck_assert(xdr_choice(&x, &back, NULL));
	ck_assert_int_eq(back.arm.number, 5);
	memset(&back, 0, sizeof(back));
	ck_assert(xdr_choice(&x, &back, NULL));
	ck_assert_str_eq(back.arm.text, "a");
	x.x_op = XDR_FREE;
	ck_assert(xdr_choice(&x, &back, NULL));
	ck_assert_ptr_null(back.arm.text);
	INPUT("\0\0\0\7\0\0\0\7\0\0\0\1\0\0\0\11");
	ck_assert(!xdr_choice(&x, &back, NULL));
	ck_assert(xdr_choice(&x, &back, (xdrproc_t)(void (*)(void))xdr_void));
	ck_assert_int_eq(back.which, 7);
	ck_assert(xdr_setpos(&x, 12));
	/* the end of the list is no arm */
	ck_assert(!xdr_choice(&x, &back, NULL));
}
END_TEST

START_TEST(memory_for_programs)
{
	void *nothing = xdr_alloc(0);

	ck_assert_ptr_nonnull(nothing);
	free(nothing);
	ck_assert_ptr_null(xdr_alloc(-1));
}
END_TEST

/* -- Malformed input ------------------------------------------------------------------------------ */

struct part {
	char *text;
	struct {
		u_int count;
		char *bytes;
	} data;
};

struct whole {
	struct {
		u_int count;
		struct part *parts;
	} list;
	struct whole *inner;
	struct choice choice;
	afsUUID uuid;
};

static bool_t xdr_part(XDR *xdrs, struct part *part)
{
	return xdr_string(xdrs, &part->text, 20) &&
	       xdr_bytes(xdrs, &part->data.bytes, &part->data.count, 1000);
}

static bool_t xdr_whole(XDR *xdrs, struct whole *whole)
{
	return xdr_array(xdrs, (caddr_t *)&whole->list.parts, &whole->list.count, 100,
			 sizeof(struct part), (xdrproc_t)xdr_part) &&
	       xdr_pointer(xdrs, (char **)&whole->inner, sizeof(*whole), (xdrproc_t)xdr_whole) &&
	       xdr_choice(xdrs, &whole->choice, NULL) && xdr_afsUUID(xdrs, &whole->uuid);
}

static u_int encode_whole(void)
{
	struct part parts[2] = {{"one", {3, "abc"}}, {"two", {0, NULL}}};
	struct whole inner = {{1, parts}, NULL, {1, {.number = 3}}, {0}};
	struct whole outer = {{2, parts}, &inner, {2, {.text = "end"}}, {0}};

	encoder();
	ck_assert(xdr_whole(&x, &outer));
	return xdr_getpos(&x);
}

static void check_freed(struct whole *whole)
{
	xdr_free((xdrproc_t)xdr_whole, whole);
	ck_assert_ptr_null(whole->list.parts);
	ck_assert_ptr_null(whole->inner);
}

/* A value that ends early anywhere: what was decoded is freed. Sanitizers find what is left. */
START_TEST(truncated)
{
	u_int size = encode_whole();

	for (u_int cut = 0; cut < size; cut++) {
		struct whole back;

		memset(&back, 0, sizeof(back));
		xdrmem_create(&x, memory, cut, XDR_DECODE);
		ck_assert(!xdr_whole(&x, &back));
		check_freed(&back);
	}
}
END_TEST

/* Bytes that were changed: a decoder ends, and what it made can be freed. */
START_TEST(damaged)
{
	u_int size = encode_whole(), accepted = 0;
	afs_uint32 random = 1;
	char copy[sizeof(memory)];

	memcpy(copy, memory, size);
	for (unsigned i = 0; i < 20000; i++) {
		struct whole back;

		memset(&back, 0, sizeof(back));
		memcpy(memory, copy, size);
		for (unsigned n = 0; n <= i % 4; n++) {
			random = random * 1103515245 + 12345;
			memory[(random >> 16) % size] = (char)(random >> 8) & 0x83;
		}
		xdrmem_create(&x, memory, size, XDR_DECODE);
		accepted += (u_int)xdr_whole(&x, &back);
		check_freed(&back);
	}
	ck_assert_uint_gt(accepted, 0);
	ck_assert_uint_lt(accepted, 20000);
}
END_TEST

TEST_MAIN("classic/xdr", numbers, numbers_that_do_not_fit, uuid, positions_in_memory,
	  counted_lengths, opaque_bytes, bytes_that_are_allocated, bytes_in_memory_of_the_program,
	  bytes_to_encode, strings, long_strings, arrays, arrays_in_memory_of_the_program, vectors,
	  announced_elements, pointers, deep_chains, unions, memory_for_programs, truncated,
	  damaged)
