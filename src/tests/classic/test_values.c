/* SPDX-License-Identifier: BSD-2-Clause */
/* Lists, atomic counters, opaque values and identities of classic Rx. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <rx/rx.h>
#include <rx/rx_atomic.h>
#include <rx/rx_identity.h>
#include <rx/rx_opaque.h>
#include <rx/rx_queue.h>

#include "tests/main.h"

/* -- Lists ---------------------------------------------------------------------------------------- */

struct letter {
	struct rx_queue links;
	char c;
};

static struct letter letters[6]; /* 'a' to 'f' */
static struct rx_queue one, two;

/* Lists with the first and the last three letters. */
static void set_up(void)
{
	queue_Init(&one);
	queue_Init(&two);
	for (int i = 0; i < 6; i++) {
		letters[i].c = (char)('a' + i);
		if (i < 3)
			queue_Append(&one, &letters[i]);
		else
			queue_Append(&two, &letters[i]);
	}
}

/* The list has these letters, in both directions. */
static void check(struct rx_queue *list, const char *want)
{
	struct letter *at, *next;
	char got[16] = "", back[16] = "";
	size_t n, length;

	for (n = 0, queue_Scan(list, at, next, letter), n++)
		got[n] = at->c;
	ck_assert_str_eq(got, want);
	queue_Count(list, at, next, letter, length);
	ck_assert_uint_eq(length, strlen(want));
	for (queue_ScanBackwards(list, at, next, letter))
		back[--n] = at->c;
	ck_assert_uint_eq(n, 0);
	ck_assert_str_eq(back, want);
}

START_TEST(lists)
{
	struct letter *at, *next;

	set_up();
	check(&one, "abc");
	ck_assert(queue_IsFirst(&one, &letters[0]) && queue_IsLast(&one, &letters[2]));
	ck_assert(!queue_IsFirst(&one, &letters[1]) && !queue_IsLast(&one, &letters[1]));
	ck_assert_ptr_eq(queue_First(&one, letter), &letters[0]);
	ck_assert_ptr_eq(queue_Last(&one, letter), &letters[2]);
	ck_assert_ptr_eq(queue_Next(&letters[0], letter), &letters[1]);
	ck_assert_ptr_eq(queue_Prev(&letters[1], letter), &letters[0]);
	ck_assert(queue_IsEnd(&one, queue_Next(&letters[2], letter)));
	ck_assert(queue_IsNotEnd(&one, &letters[2]));
	/* the loop's body removes what it visits */
	for (queue_Scan(&one, at, next, letter))
		if (at->c == 'b')
			queue_Remove(at);
	check(&one, "ac");
	ck_assert(queue_IsNotOnQueue(&letters[1]) && queue_IsOnQueue(&letters[0]));
	queue_Prepend(&one, &letters[1]);
	check(&one, "bac");
	queue_Remove(&letters[0]);
	queue_InsertAfter(&letters[2], &letters[0]);
	check(&one, "bca");
	queue_Remove(&letters[1]);
	queue_InsertBefore(&letters[0], &letters[1]);
	check(&one, "cba");
	queue_MoveAppend(&two, &letters[1]);
	queue_MovePrepend(&two, &letters[0]);
	check(&one, "c");
	check(&two, "adefb");
	queue_NodeInit(&letters[5]);
	ck_assert(queue_IsNotOnQueue(&letters[5]));
}
END_TEST

START_TEST(lists_from_an_element)
{
	struct letter *at, *next;
	char got[8] = "";
	size_t n = 0;

	set_up();
	for (queue_ScanFrom(&one, &letters[1], at, next, letter))
		got[n++] = at->c;
	for (queue_ScanBackwardsFrom(&one, &letters[1], at, next, letter))
		got[n++] = at->c;
	ck_assert_str_eq(got, "bcba");
}
END_TEST

START_TEST(joined_lists)
{
	set_up();
	queue_SpliceAppend(&one, &two);
	check(&one, "abcdef");
	ck_assert(queue_IsEmpty(&two) && queue_IsNotEmpty(&one));
	queue_SplicePrepend(&one, &two);
	check(&one, "abcdef");
	set_up();
	queue_SplicePrepend(&one, &two);
	check(&one, "defabc");
	set_up();
	queue_Replace(&one, &two);
	check(&one, "def");
	check(&two, "");
	queue_Replace(&one, &two);
	check(&one, "");
}
END_TEST

START_TEST(split_lists)
{
	set_up();
	queue_SplitAfterAppend(&one, &two, &letters[0]);
	check(&one, "a");
	check(&two, "defbc");
	queue_SplitAfterAppend(&one, &two, &letters[0]);
	check(&one, "a");
	set_up();
	queue_SplitAfterPrepend(&one, &two, &letters[0]);
	check(&two, "bcdef");
	set_up();
	queue_SplitBeforeAppend(&one, &two, &letters[2]);
	check(&one, "c");
	check(&two, "defab");
	queue_SplitBeforeAppend(&one, &two, &letters[2]);
	check(&one, "c");
	set_up();
	queue_SplitBeforePrepend(&one, &two, &letters[2]);
	check(&two, "abdef");
}
END_TEST

START_TEST(moved_chains)
{
	set_up();
	queue_MoveChainBefore(&letters[0], &letters[1], &letters[2]);
	check(&one, "bca");
	queue_MoveChainBefore(&letters[0], &letters[1], &letters[2]);
	check(&one, "bca");
	queue_MoveChainAfter(&letters[0], &letters[1], &letters[1]);
	check(&one, "cab");
	queue_MoveChainAfter(&letters[3], &letters[2], &letters[0]);
	check(&one, "b");
	check(&two, "dcaef");
	queue_MoveChainAfter(&letters[3], &letters[2], &letters[0]);
	check(&two, "dcaef");
}
END_TEST

/* -- Counters ------------------------------------------------------------------------------------- */

static rx_atomic_t counter;

static void *count(void *unused)
{
	for (int i = 0; i < 10000; i++) {
		rx_atomic_inc(&counter);
		rx_atomic_add(&counter, 5);
		rx_atomic_sub(&counter, 2);
		rx_atomic_dec(&counter);
	}
	return unused;
}

START_TEST(counters)
{
	pthread_t threads[4];

	rx_atomic_set(&counter, 7);
	for (int i = 0; i < 4; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, count, NULL), 0);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	ck_assert_int_eq(rx_atomic_read(&counter), 7 + 4 * 3 * 10000);
	rx_atomic_set(&counter, 1);
	ck_assert_int_eq(rx_atomic_inc_and_read(&counter), 2);
	ck_assert_int_eq(rx_atomic_add_and_read(&counter, 5), 7);
	ck_assert_int_eq(rx_atomic_dec_and_read(&counter), 6);
}
END_TEST

/* -- Opaque values -------------------------------------------------------------------------------- */

START_TEST(opaque_values)
{
	struct rx_opaque a = RX_EMPTY_OPAQUE, b = {3, "x"}, *heap;

	ck_assert_int_eq(rx_opaque_copy(&b, &a), 0);
	ck_assert(b.len == 0 && b.val == NULL);
	ck_assert_int_eq(rx_opaque_alloc(&a, 4), 0);
	ck_assert_uint_eq(a.len, 4);
	ck_assert_mem_eq(a.val, "\0\0\0", 4);
	memcpy(a.val, "abc", 4);
	ck_assert_int_eq(rx_opaque_copy(&b, &a), 0);
	ck_assert_ptr_ne(a.val, b.val);
	ck_assert_int_eq(rx_opaque_cmp(&a, &b), 0);
	b.len = 3;
	ck_assert_int_eq(rx_opaque_cmp(&a, &b), 1);
	ck_assert_int_eq(rx_opaque_cmp(&b, &a), -1);
	((char *)b.val)[0] = (char)0xff;
	ck_assert_int_eq(rx_opaque_cmp(&a, &b), -1);
	rx_opaque_freeContents(&a);
	rx_opaque_zeroFreeContents(&b);
	ck_assert(a.val == NULL && a.len == 0 && b.val == NULL && b.len == 0);
	ck_assert_int_eq(rx_opaque_cmp(&a, &b), 0);
	heap = rx_opaque_new("abc", 3);
	ck_assert_mem_eq(heap->val, "abc", 3);
	rx_opaque_free(&heap);
	ck_assert_ptr_null(heap);
	rx_opaque_free(&heap);
	heap = rx_opaque_new("abc", 3);
	rx_opaque_zeroFree(&heap);
	ck_assert_ptr_null(heap);
	rx_opaque_zeroFree(&heap);
}
END_TEST

START_TEST(opaque_values_as_text)
{
	struct rx_opaque_stringbuf text;
	struct rx_opaque v = {4, "\xde\xad\xbe\xef"}, none = RX_EMPTY_OPAQUE, big;

	ck_assert_str_eq(rx_opaque_stringify(&v, &text), "4:deadbeef");
	ck_assert_str_eq(rx_opaque_stringify(&none, &text), "0:(null)");
	ck_assert_int_eq(rx_opaque_alloc(&big, 1000), 0);
	ck_assert_uint_eq(strlen(rx_opaque_stringify(&big, &text)), 99);
	rx_opaque_freeContents(&big);
}
END_TEST

/* -- Identities ----------------------------------------------------------------------------------- */

START_TEST(identities)
{
	struct rx_identity *carol = rx_identity_new(RX_ID_KRB4, "carol", "carol@C", 7);
	struct rx_identity *copy = rx_identity_copy(carol), plain, super;

	ck_assert_str_eq(copy->displayName, "carol");
	ck_assert_ptr_ne(copy->displayName, carol->displayName);
	ck_assert_ptr_ne(copy->exportedName.val, carol->exportedName.val);
	ck_assert(rx_identity_match(carol, copy));
	rx_identity_populate(&plain, RX_ID_KRB4, NULL, "carol@C", 7);
	ck_assert_ptr_null(plain.displayName);
	ck_assert(rx_identity_match(carol, &plain));
	plain.kind = RX_ID_GSS;
	ck_assert(!rx_identity_match(carol, &plain));
	rx_identity_freeContents(&plain);
	rx_identity_populate(&plain, RX_ID_KRB4, "carol", "carol@D", 7);
	ck_assert(!rx_identity_match(carol, &plain));
	rx_identity_freeContents(&plain);
	ck_assert(plain.displayName == NULL && plain.exportedName.val == NULL);
	rx_identity_copyContents(&plain, carol);
	ck_assert(rx_identity_match(carol, &plain));
	rx_identity_freeContents(&plain);
	rx_identity_populate(&super, RX_ID_SUPERUSER, "root", NULL, 0);
	ck_assert_uint_eq(super.exportedName.len, 0);
	ck_assert(rx_identity_match(&super, &super));
	rx_identity_freeContents(&super);
	rx_identity_free(&carol);
	ck_assert_ptr_null(carol);
	rx_identity_free(&carol);
	rx_identity_free(&copy);
}
END_TEST

TEST_MAIN("classic/values", lists, lists_from_an_element, joined_lists, split_lists, moved_chains,
	  counters, opaque_values, opaque_values_as_text, identities)
