/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Client and server of interop.xg, without the parts that differ between librxwire with stubs of
 * rxwgen and OpenAFS's library with stubs of its rxgen: stubs_ours.c and stubs_afs.c define those
 * and include this file.
 *
 * They must define first: iop_connection, iop_call, the functions below, afs_int32 and similar
 * types, and INOUT_TEXT, the result of a call with an INOUT text. Values are generated from a seed,
 * so that each side knows the values that the other must have sent.
 */
#ifndef INTEROP_STUBS_H
#define INTEROP_STUBS_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static iop_connection *connect_to(int port);
static iop_call *call_begin(iop_connection *c);
static int32_t call_end(iop_call *call, int32_t code);
static bool call_write(iop_call *call, const void *data, size_t length);
static bool call_read(iop_call *call, void *data, size_t length);
static void free_points(iop_points *v);
static void free_blob(iop_blob *v);
static void free_all(iop_all *v);
/* Calls `answered` for each of the `count` connections when its reply arrives. */
static void ask_each(iop_connection **c, unsigned count, afs_int32 question, const char *text);
static void answered(unsigned index, int32_t code, afs_int32 answer, const char *who,
		     const iop_points *points);

/* The name that Ask returns; "server NAME" on the command line has one. */
static const char *own_name = "nobody";
static int32_t refusal; /* code that Ask returns, 0 = none */

static void __attribute__((format(printf, 1, 2), noreturn)) die(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(1);
}

#define WANT(condition)                                                   \
	do {                                                              \
		if (!(condition))                                         \
			die("line %d: failed: %s", __LINE__, #condition); \
	} while (0)

static void want_code(const char *what, int32_t code, int32_t want)
{
	if (code != want)
		die("%s: code %d, not %d", what, code, want);
}

/* -- values from a seed --------------------------------------------------------------------- */

static uint32_t next_word(uint32_t *state)
{
	uint32_t x = *state * 2654435761u + 12345u;

	*state = x;
	return x ^ x >> 15;
}

static void *room(size_t size)
{
	void *p = calloc(1, size ? size : 1);

	if (!p)
		die("out of memory");
	return p;
}

static void make_bytes(char *p, size_t n, uint32_t *s)
{
	for (size_t i = 0; i < n; i++)
		p[i] = (char)next_word(s);
}

static char *make_text(uint32_t bound, uint32_t *s)
{
	uint32_t n = next_word(s) % (bound + 1);
	char *text = room(n + 1);

	for (uint32_t i = 0; i < n; i++)
		text[i] = (char)(1 + next_word(s) % 255);
	return text;
}

static void make_point(iop_point *v, uint32_t *s)
{
	v->x = (afs_int32)next_word(s);
	v->y = next_word(s);
}

static void make_points(iop_points *v, uint32_t *s)
{
	v->iop_points_len = next_word(s) % (IOP_LISTMAX + 1);
	v->iop_points_val = v->iop_points_len ? room(v->iop_points_len * sizeof(iop_point)) : NULL;
	for (uint32_t i = 0; i < v->iop_points_len; i++)
		make_point(&v->iop_points_val[i], s);
}

static void make_blob(iop_blob *v, uint32_t *s)
{
	v->iop_blob_len = next_word(s) % 1001;
	v->iop_blob_val = v->iop_blob_len ? room(v->iop_blob_len) : NULL;
	make_bytes(v->iop_blob_val, v->iop_blob_len, s);
}

static void make_choice(iop_choice *v, uint32_t *s)
{
	v->what = (afs_int32)(next_word(s) % 5);
	if (v->what == 1)
		v->iop_choice_u.number = (afs_int32)next_word(s);
	else if (v->what == 2)
		make_point(&v->iop_choice_u.point, s);
	else if (v->what == 3)
		make_blob(&v->iop_choice_u.blob, s);
}

static void make_chain(iop_node **at, uint32_t *s)
{
	for (uint32_t n = next_word(s) % 20; n; n--) {
		*at = room(sizeof(**at));
		(*at)->value = (afs_int32)next_word(s);
		at = &(*at)->next;
	}
}

static void make_all(iop_all *v, uint32_t seed)
{
	static const int32_t colors[] = {IOP_RED, IOP_GREEN, IOP_BLUE};
	uint32_t *s = &seed;

	memset(v, 0, sizeof(*v));
	v->i32 = (afs_int32)next_word(s);
	v->u32 = next_word(s);
	v->i64 = (afs_int64)((uint64_t)next_word(s) << 32 | next_word(s));
	v->u64 = (uint64_t)next_word(s) << 32 | next_word(s);
	v->i16 = (int16_t)next_word(s);
	v->u16 = (uint16_t)next_word(s);
	v->i8 = (char)next_word(s);
	v->u8 = (uint8_t)next_word(s);
	v->color = colors[next_word(s) % 3];
	v->text = make_text(IOP_NAMEMAX, s);
	make_bytes(v->fixed, sizeof(v->fixed), s);
	make_bytes(v->block, sizeof(v->block), s);
	make_blob(&v->blob, s);
	make_bytes(v->label, sizeof(v->label), s);
	v->numbers.numbers_len = next_word(s) % (IOP_LISTMAX + 1);
	v->numbers.numbers_val = room(v->numbers.numbers_len * sizeof(afs_int32));
	for (uint32_t i = 0; i < v->numbers.numbers_len; i++)
		v->numbers.numbers_val[i] = (afs_int32)next_word(s);
	for (size_t i = 0; i < 3; i++)
		v->triple[i] = (afs_int32)next_word(s);
	make_points(&v->points, s);
	for (size_t i = 0; i < 2; i++)
		make_point(&v->pair[i], s);
	if (next_word(s) & 1) {
		v->maybe = room(sizeof(*v->maybe));
		make_point(v->maybe, s);
	}
	for (size_t i = 0; i < 4; i++)
		make_choice(&v->choices[i], s);
	make_chain(&v->chain, s);
	v->uuid.time_low = next_word(s);
	v->uuid.time_mid = (uint16_t)next_word(s);
	v->uuid.time_hi_and_version = (uint16_t)next_word(s);
	v->uuid.clock_seq_hi_and_reserved = (char)next_word(s);
	v->uuid.clock_seq_low = (char)next_word(s);
	for (size_t i = 0; i < 6; i++)
		v->uuid.node[i] = (char)next_word(s);
}

/* -- comparison with the seed's values ------------------------------------------------------ */

static bool same_point(const iop_point *a, const iop_point *b)
{
	return a->x == b->x && a->y == b->y;
}

static bool same_points(const iop_points *a, const iop_points *b)
{
	if (a->iop_points_len != b->iop_points_len)
		return false;
	for (uint32_t i = 0; i < a->iop_points_len; i++)
		if (!same_point(&a->iop_points_val[i], &b->iop_points_val[i]))
			return false;
	return true;
}

static bool same_blob(const iop_blob *a, const iop_blob *b)
{
	return a->iop_blob_len == b->iop_blob_len &&
	       (!a->iop_blob_len || !memcmp(a->iop_blob_val, b->iop_blob_val, a->iop_blob_len));
}

static bool same_choice(const iop_choice *a, const iop_choice *b)
{
	if (a->what != b->what)
		return false;
	if (a->what == 1)
		return a->iop_choice_u.number == b->iop_choice_u.number;
	if (a->what == 2)
		return same_point(&a->iop_choice_u.point, &b->iop_choice_u.point);
	return a->what != 3 || same_blob(&a->iop_choice_u.blob, &b->iop_choice_u.blob);
}

static bool same_chain(const iop_node *a, const iop_node *b)
{
	for (; a && b; a = a->next, b = b->next)
		if (a->value != b->value)
			return false;
	return !a && !b;
}

static bool same_uuid(const iop_all *a, const iop_all *b)
{
	return a->uuid.time_low == b->uuid.time_low && a->uuid.time_mid == b->uuid.time_mid &&
	       a->uuid.time_hi_and_version == b->uuid.time_hi_and_version &&
	       a->uuid.clock_seq_hi_and_reserved == b->uuid.clock_seq_hi_and_reserved &&
	       a->uuid.clock_seq_low == b->uuid.clock_seq_low &&
	       !memcmp(a->uuid.node, b->uuid.node, 6);
}

/* The number of the first member that differs from the seed's value, 0 if there is none. */
static int32_t wrong_member(const iop_all *a, uint32_t seed)
{
	iop_all b;
	int32_t wrong = 0, member = 0;

	make_all(&b, seed);
#define MEMBER(same)                    \
	do {                            \
		member++;               \
		if (!wrong && !(same))  \
			wrong = member; \
	} while (0)
	MEMBER(a->i32 == b.i32);
	MEMBER(a->u32 == b.u32);
	MEMBER(a->i64 == b.i64);
	MEMBER(a->u64 == b.u64);
	MEMBER(a->i16 == b.i16);
	MEMBER(a->u16 == b.u16);
	MEMBER(a->i8 == b.i8);
	MEMBER(a->u8 == b.u8);
	MEMBER(a->color == b.color);
	MEMBER(!strcmp(a->text, b.text));
	MEMBER(!memcmp(a->fixed, b.fixed, sizeof(b.fixed)));
	MEMBER(!memcmp(a->block, b.block, sizeof(b.block)));
	MEMBER(same_blob(&a->blob, &b.blob));
	MEMBER(!memcmp(a->label, b.label, sizeof(b.label)));
	MEMBER(a->numbers.numbers_len == b.numbers.numbers_len);
	MEMBER(wrong || !b.numbers.numbers_len ||
	       !memcmp(a->numbers.numbers_val, b.numbers.numbers_val,
		       b.numbers.numbers_len * sizeof(afs_int32)));
	MEMBER(!memcmp(a->triple, b.triple, sizeof(b.triple)));
	MEMBER(same_points(&a->points, &b.points));
	MEMBER(same_point(&a->pair[0], &b.pair[0]) && same_point(&a->pair[1], &b.pair[1]));
	MEMBER(!a->maybe == !b.maybe && (!b.maybe || same_point(a->maybe, b.maybe)));
	for (size_t i = 0; i < 4; i++)
		MEMBER(same_choice(&a->choices[i], &b.choices[i]));
	MEMBER(same_chain(a->chain, b.chain));
	MEMBER(same_uuid(a, &b));
#undef MEMBER
	free_all(&b);
	return wrong;
}

/* -- raw data of split calls ---------------------------------------------------------------- */

static unsigned char data_at(uint64_t position)
{
	return (unsigned char)((position * 0x9e3779b97f4a7c15u) >> 56);
}

/* Moves `length` bytes in odd pieces; *bad counts wrong bytes that were read. */
static bool move_data(iop_call *call, bool out, uint64_t position, uint64_t length,
		      unsigned char mask, uint64_t *bad)
{
	static __thread unsigned char piece[7919];

	while (length) {
		size_t n = length < sizeof(piece) ? (size_t)length : sizeof(piece);

		for (size_t i = 0; out && i < n; i++)
			piece[i] = data_at(position + i) ^ mask;
		if (out ? !call_write(call, piece, n) : !call_read(call, piece, n))
			return false;
		for (size_t i = 0; !out && i < n; i++)
			*bad += piece[i] != (data_at(position + i) ^ mask);
		position += n;
		length -= n;
	}
	return true;
}

/* -- the server: the procedures ------------------------------------------------------------- */

static int32_t serve_texts(const char *name, char **changed, char **longer)
{
	size_t n = strlen(*changed);

	for (size_t i = 0; i < n / 2; i++) {
		char c = (*changed)[i];

		(*changed)[i] = (*changed)[n - 1 - i];
		(*changed)[n - 1 - i] = c;
	}
	*longer = room(1001);
	for (size_t i = 0; i < 10; i++)
		strncat(*longer, name, 1000 - strlen(*longer));
	return 0;
}

static int32_t serve_blobs(const iop_blob *blob, const iop_block *block, iop_points *points,
			   iop_blob *reversed)
{
	uint32_t n = blob->iop_blob_len;

	for (uint32_t i = 0; i < points->iop_points_len / 2; i++) {
		iop_point *a = &points->iop_points_val[i];
		iop_point *b = &points->iop_points_val[points->iop_points_len - 1 - i], c = *a;

		*a = *b;
		*b = c;
	}
	reversed->iop_blob_len = n;
	reversed->iop_blob_val = room(n);
	for (uint32_t i = 0; i < n; i++)
		reversed->iop_blob_val[i] = blob->iop_blob_val[n - 1 - i] ^ (*block)[i % 13];
	return 0;
}

static int32_t serve_all(uint32_t seed, const iop_all *all, iop_all *answer)
{
	int32_t wrong = wrong_member(all, seed);

	if (wrong)
		return 1000 + wrong;
	make_all(answer, seed + 1);
	return 0;
}

static int32_t serve_fail(int32_t code, afs_int32 *seven, char **well)
{
	*seven = 7;
	*well = strdup("well");
	return code;
}

static int32_t serve_store(iop_call *call, const char *name, uint64_t length, afs_uint64 *stored,
			   afs_uint64 *bad)
{
	uint64_t wrong = 0;

	if (strcmp(name, "a name"))
		return 1001;
	if (!move_data(call, false, 0, length, 0, &wrong))
		return 1002;
	*stored = length;
	*bad = wrong;
	return 0;
}

static int32_t serve_fetch(iop_call *call, uint64_t position, uint64_t length, afs_uint64 *sent,
			   char **name)
{
	if (!move_data(call, true, position, length, 0, NULL))
		return 1003;
	*sent = length;
	*name = strdup(own_name);
	return 0;
}

/* Rx requires the whole request to be read before the reply begins. */
static int32_t serve_exchange(iop_call *call, uint64_t length, iop_points *points)
{
	unsigned char *all = room(length);
	uint32_t seed = (uint32_t)length;
	int32_t code = 0;

	if (!call_read(call, all, length))
		code = 1004;
	for (uint64_t i = 0; i < length; i++)
		all[i] ^= 0xff;
	if (!code && !call_write(call, all, length))
		code = 1005;
	free(all);
	make_points(points, &seed);
	return code;
}

static int32_t serve_ask(int32_t question, const char *text, afs_int32 *answer, char **who,
			 iop_points *points)
{
	uint32_t seed = (uint32_t)question;

	if (strcmp(text, "the question"))
		return 1006;
	if (refusal)
		return refusal;
	*answer = ~question;
	*who = strdup(own_name);
	make_points(points, &seed);
	return 0;
}

/* -- the client's tests, given the ports of servers ----------------------------------------- */

#define MAX_PORTS 8
static int ports[MAX_PORTS];
static unsigned port_count;

static void scalars(iop_connection *c, uint32_t seed)
{
	static const int32_t colors[] = {IOP_RED, IOP_GREEN, IOP_BLUE};
	afs_int32 a = (afs_int32)next_word(&seed), ra = 0;
	afs_uint32 b = next_word(&seed), rb = 0;
	afs_int64 d = (afs_int64)((uint64_t)next_word(&seed) << 32 | b), rc = 0;
	afs_uint64 e = (uint64_t)next_word(&seed) << 32 | (uint32_t)a, rd = 0;
	int16_t s = (int16_t)next_word(&seed), re = 0;
	char f = (char)next_word(&seed), rf = 0;
	iop_color g = colors[next_word(&seed) % 3], rg = 0;

	want_code("Scalars", IOP_Scalars(c, a, b, d, e, s, f, g, &ra, &rb, &rc, &rd, &re, &rf, &rg),
		  0);
	WANT(ra == a && rb == b && rc == d && rd == e && re == s && rf == f && rg == g);
}

static void texts(iop_connection *c, const char *name, const char *given, const char *reversed)
{
	char *changed = strdup(given), *longer = NULL;
	int32_t code = IOP_Texts(c, name, &changed, &longer);

	/*
	 * OpenAFS's decoder refuses a text for which memory is already allocated, so INOUT texts
	 * fail.
	 */
	want_code("Texts", code, INOUT_TEXT);
	if (!code) {
		WANT(!strcmp(changed, reversed));
		WANT(strlen(longer) == 10 * strlen(name));
		WANT(!strncmp(longer, name, strlen(name)));
	}
	free(changed);
	free(longer);
}

static void blobs(iop_connection *c, uint32_t seed)
{
	iop_blob blob = {0}, reversed = {0};
	iop_points points = {0}, before = {0};
	iop_block block;
	uint32_t copy;

	make_blob(&blob, &seed);
	make_bytes(block, sizeof(block), &seed);
	copy = seed;
	make_points(&points, &seed);
	make_points(&before, &copy);
	want_code("Blobs", IOP_Blobs(c, &blob, &block, &points, &reversed), 0);
	WANT(points.iop_points_len == before.iop_points_len);
	for (uint32_t i = 0, n = before.iop_points_len; i < n; i++)
		WANT(same_point(&points.iop_points_val[i], &before.iop_points_val[n - 1 - i]));
	WANT(reversed.iop_blob_len == blob.iop_blob_len);
	for (uint32_t i = 0, n = blob.iop_blob_len; i < n; i++)
		WANT(reversed.iop_blob_val[i] ==
		     (char)(blob.iop_blob_val[n - 1 - i] ^ block[i % 13]));
	free_blob(&blob);
	free_blob(&reversed);
	free_points(&points);
	free_points(&before);
}

static void test_plain(void)
{
	iop_connection *c = connect_to(ports[0]);
	iop_triple t = {1, -2, INT32_MAX};
	afs_int32 a = -40;
	char full[IOP_NAMEMAX + 1] = {0};

	want_code("Nothing", IOP_Nothing(c), 0);
	want_code("Sum", IOP_Sum(c, &a, 42, &t), 0);
	WANT(a == 2 && t[0] == 43 && t[1] == 40 && t[2] == INT32_MIN + 41);
	memset(full, 'x', IOP_NAMEMAX);
	texts(c, "a name", "here", "ereh");
	texts(c, full, full, full);
	texts(c, "n", "", "");
	for (uint32_t seed = 1; seed <= 200; seed++) {
		iop_all all, answer = {0};
		char what[40];

		scalars(c, seed);
		blobs(c, seed);
		make_all(&all, seed);
		snprintf(what, sizeof(what), "All of seed %u", seed);
		want_code(what, IOP_All(c, seed, &all, &answer), 0);
		if (wrong_member(&answer, seed + 1))
			die("%s: member %d of the reply is wrong", what,
			    wrong_member(&answer, seed + 1));
		free_all(&all);
		free_all(&answer);
	}
}

static void test_aborts(void)
{
	/* No more, because OpenAFS's library delays its aborts to a client that gets many. */
	static const int32_t codes[] = {1, -1, -6, -453, INT32_MAX, INT32_MIN, 19270408};
	iop_connection *c = connect_to(ports[0]);
	afs_int32 seven = 0;
	char *well = NULL;

	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
		seven = 0;
		well = NULL;
		want_code("Fail", IOP_Fail(c, codes[i], &seven, &well), codes[i]);
		WANT(!seven && !well);
	}
	want_code("Fail with 0", IOP_Fail(c, 0, &seven, &well), 0);
	WANT(seven == 7 && !strcmp(well, "well"));
	free(well);
}

/* Sends bytes without a stub; returns the call's code. */
static int32_t raw(iop_connection *c, const void *data, size_t length)
{
	iop_call *call = call_begin(c);
	char more;
	int32_t code = 0;

	if (!call_write(call, data, length) || !call_read(call, &more, 1))
		code = -9999; /* the call's own error takes precedence */
	return call_end(call, code);
}

static void test_wrong(void)
{
	static const unsigned char half[] = {0, 0};
	static const unsigned char huge[] = {0,	   0,	 0,   3,   0xff, 0xff,
					     0xff, 0xff, 'x', 'x', 'x',	 'x'};
	/* The complete request, and its end */
	static const unsigned char above[] = {0, 0, 0, 5, 0, 0, 0, 1};
	iop_connection *c = connect_to(ports[0]);
	iop_block block = {0, 0, 0x7f};
	afs_int32 more = 5;
	char *shorter = NULL, *long_name = room(901);

	want_code("unknown opcode", IOQ_Unknown(c), -455);
	want_code("truncated opcode", raw(c, half, sizeof(half)), -454);
	want_code("a length of 2^32 - 1", raw(c, huge, sizeof(huge)), -453);
	want_code("truncated request", raw(c, above, sizeof(above)), -453);
	want_code("length above the bound", IOQ_Blobs(c, &block), -453);
	memset(long_name, 'n', 900);
	want_code("short reply", IOQ_Nothing(c, &more), -451);
	want_code("name in the reply too long", IOQ_Texts(c, "name", "xyz", &shorter),
		  -451);
	/* Encoding refuses before anything is sent. */
	want_code("argument too long", IOP_Fail(c, 0, &more, &shorter), 0);
	free(shorter);
	shorter = NULL;
	want_code("name above the bound", IOQ_Texts(c, long_name, "x", &shorter), -450);
	WANT(!shorter);
	free(long_name);
	want_code("Nothing, afterwards", IOP_Nothing(c), 0);
}

static const uint64_t sizes[] = {0, 1, 3, 4, 1411, 1412, 1413, 7919, 65536, 1000003, 5000000};
#define SIZES (sizeof(sizes) / sizeof(sizes[0]))

static void test_store(void)
{
	iop_connection *c = connect_to(ports[0]);

	for (size_t i = 0; i < SIZES; i++) {
		iop_call *call = call_begin(c);
		afs_uint64 stored = 0, bad = 99;
		int32_t code = StartIOP_Store(call, "a name", sizes[i]);

		if (!code && !move_data(call, true, 0, sizes[i], 0, NULL))
			code = -9999;
		if (!code)
			code = EndIOP_Store(call, &stored, &bad);
		want_code("Store", call_end(call, code), 0);
		WANT(stored == sizes[i] && bad == 0);
	}
}

static void test_fetch(void)
{
	iop_connection *c = connect_to(ports[0]);

	for (size_t i = 0; i < SIZES; i++) {
		iop_call *call = call_begin(c);
		afs_uint64 sent = 0;
		uint64_t bad = 0, position = sizes[i] * 1000000007u;
		char *name = NULL;
		int32_t code = StartIOP_Fetch(call, position, sizes[i]);

		if (!code && !move_data(call, false, position, sizes[i], 0, &bad))
			code = -9999;
		if (!code)
			code = EndIOP_Fetch(call, &sent, &name);
		want_code("Fetch", call_end(call, code), 0);
		WANT(sent == sizes[i] && bad == 0 && !strncmp(name, "server", 6));
		free(name);
	}
}

static void test_exchange(void)
{
	iop_connection *c = connect_to(ports[0]);

	for (size_t i = 0; i < SIZES; i++) {
		iop_call *call = call_begin(c);
		iop_points points = {0}, want = {0};
		uint64_t bad = 0;
		uint32_t seed = (uint32_t)sizes[i];
		int32_t code = StartIOP_Exchange(call, sizes[i]);

		make_points(&want, &seed);
		if (!code && !move_data(call, true, 17, sizes[i], 0, NULL))
			code = -9999;
		if (!code && !move_data(call, false, 17, sizes[i], 0xff, &bad))
			code = -9998;
		if (!code)
			code = EndIOP_Exchange(call, &points);
		want_code("Exchange", call_end(call, code), 0);
		WANT(bad == 0 && same_points(&points, &want));
		free_points(&points);
		free_points(&want);
	}
}

/* A split call that the server refuses in the middle of the data. */
static void test_refused_data(void)
{
	iop_connection *c = connect_to(ports[0]);
	iop_call *call = call_begin(c);
	afs_uint64 stored = 0, bad = 0;
	int32_t code = StartIOP_Store(call, "another name", 50000000);

	if (!code && !move_data(call, true, 0, 50000000, 0, NULL))
		code = -9999;
	if (!code)
		code = EndIOP_Store(call, &stored, &bad);
	want_code("Store under another name", call_end(call, code), 1001);
	want_code("Nothing, afterwards", IOP_Nothing(c), 0);
}

/* The ports are those of server0, server1 …; the last but one refuses, the last has no server. */
static bool seen[MAX_PORTS];

static void answered(unsigned index, int32_t code, afs_int32 answer, const char *who,
		     const iop_points *points)
{
	iop_points want = {0};
	uint32_t seed = 77;
	char name[20];

	WANT(index < port_count && !seen[index]);
	seen[index] = true;
	if (index == port_count - 1) {
		WANT(code != 0);
	} else if (index == port_count - 2) {
		want_code("the refusing one", code, 4711);
	} else {
		want_code("Ask", code, 0);
		snprintf(name, sizeof(name), "server%u", index);
		WANT(answer == ~77 && !strcmp(who, name));
		make_points(&want, &seed);
		WANT(same_points(points, &want));
		free_points(&want);
	}
}

static void test_multi(void)
{
	iop_connection *c[MAX_PORTS];
	afs_int32 answer = 0;
	iop_points points = {0};
	char *who = NULL;

	WANT(port_count > 3);
	for (unsigned i = 0; i < port_count; i++)
		c[i] = connect_to(ports[i]);
	ask_each(c, port_count, 77, "the question");
	for (unsigned i = 0; i < port_count; i++)
		WANT(seen[i]);
	/* The plain stub of the same procedure. */
	want_code("Ask of one", IOP_Ask(c[0], 77, "the question", &answer, &who, &points), 0);
	memset(seen, 0, sizeof(seen));
	answered(0, 0, answer, who, &points);
	free(who);
	free_points(&points);
}

static const struct {
	const char *name;
	void (*run)(void);
} tests[] = {
	{"plain", test_plain},
	{"aborts", test_aborts},
	{"wrong", test_wrong},
	{"store", test_store},
	{"fetch", test_fetch},
	{"exchange", test_exchange},
	{"refused-data", test_refused_data},
	{"multi", test_multi},
};

static void serve(int port) __attribute__((noreturn));

/* PROGRAM server PORT NAME [REFUSAL]; PROGRAM client TEST PORT... */
static int run_main(int argc, char **argv)
{
	if (argc >= 4 && !strcmp(argv[1], "server")) {
		own_name = argv[3];
		refusal = argc > 4 ? atoi(argv[4]) : 0;
		serve(atoi(argv[2]));
	}
	if (argc < 4 || strcmp(argv[1], "client") || argc - 3 > MAX_PORTS) {
		fprintf(stderr, "usage: %s server PORT NAME [REFUSAL] | client TEST PORT...\n",
			argv[0]);
		return 2;
	}
	for (int i = 3; i < argc; i++)
		ports[port_count++] = atoi(argv[i]);
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
		if (!strcmp(argv[2], tests[i].name)) {
			tests[i].run();
			return 0;
		}
	}
	fprintf(stderr, "%s: no such test\n", argv[2]);
	return 2;
}

#endif
