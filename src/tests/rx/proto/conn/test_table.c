/* SPDX-License-Identifier: BSD-2-Clause */
/* The connection table: role, address and port by 2.3 of the protocol. */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "tests/rx/proto/bench.h"

static void address(struct rxw_addr *a, const char *host, unsigned port)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};

	inet_pton(AF_INET, host, &in.sin_addr);
	rxw_addr_set(a, (struct sockaddr *)&in, sizeof(in));
}

static void make(struct rxw_pconn *c, bool client, uint32_t epoch, uint32_t cid, const char *host,
		 unsigned port)
{
	memset(c, 0, sizeof(*c));
	c->client = client;
	c->epoch = epoch;
	c->cid = cid;
	address(&c->path.peer, host, port);
}

START_TEST(finds)
{
	static const uint64_t key[2] = {3, 4};
	struct rxw_conntable t;
	struct rxw_pconn server, client, *other;
	struct rxw_addr from;

	ck_assert_int_eq(rxw_conntable_init(&t, key), 0);
	make(&server, false, 0x80000000, 0x100, "10.0.0.1", 7001);
	make(&client, true, 0x80000000, 0x100, "10.0.0.1", 7001);
	ck_assert_int_eq(rxw_conntable_insert(&t, &server), 0);
	ck_assert_int_eq(rxw_conntable_insert(&t, &client), 0);
	address(&from, "10.0.0.1", 7001);
	/* Both ends of a connection to itself are stored separately. Channel bits do not count. */
	ck_assert_ptr_eq(rxw_conntable_find(&t, false, 0x80000000, 0x103, &from, NULL), &server);
	ck_assert_ptr_eq(rxw_conntable_find(&t, true, 0x80000000, 0x101, &from, NULL), &client);
	ck_assert_ptr_null(rxw_conntable_find(&t, true, 0x80000001, 0x100, &from, NULL));
	ck_assert_ptr_null(rxw_conntable_find(&t, true, 0x80000000, 0x104, &from, NULL));
	/*
	 * Another address of the same port: a multihomed server's answer, but no server connection.
	 */
	address(&from, "10.0.0.9", 7001);
	ck_assert_ptr_eq(rxw_conntable_find(&t, true, 0x80000000, 0x100, &from, &other), &client);
	ck_assert_ptr_null(rxw_conntable_find(&t, false, 0x80000000, 0x100, &from, &other));
	ck_assert_ptr_eq(other, &server);
	/* Another port: neither. */
	address(&from, "10.0.0.1", 7002);
	ck_assert_ptr_null(rxw_conntable_find(&t, true, 0x80000000, 0x100, &from, &other));
	ck_assert_ptr_eq(other, &client);
	ck_assert(rxw_conntable_has_cid(&t, 0x102));
	rxw_conntable_remove(&t, &server);
	ck_assert(rxw_conntable_has_cid(&t, 0x100));
	rxw_conntable_remove(&t, &client);
	ck_assert(!rxw_conntable_has_cid(&t, 0x100));
	ck_assert_uint_eq(t.count, 0);
	rxw_conntable_fini(&t);
}
END_TEST

START_TEST(grows)
{
	static const uint64_t key[2] = {3, 4};
	enum {
		MANY = 5000
	};
	struct rxw_pconn *c = calloc(MANY, sizeof(*c));
	struct rxw_conntable t;
	struct rxw_addr from;

	address(&from, "10.0.0.1", 1);
	ck_assert_int_eq(rxw_conntable_init(&t, key), 0);
	for (unsigned i = 0; i < MANY; i++) {
		make(&c[i], false, 7, i * 4, "10.0.0.1", 1);
		ck_assert_int_eq(rxw_conntable_insert(&t, &c[i]), 0);
	}
	for (unsigned i = 0; i < MANY; i++)
		ck_assert_ptr_eq(rxw_conntable_find(&t, false, 7, i * 4, &from, NULL), &c[i]);
	for (unsigned i = 0; i < MANY; i += 2)
		rxw_conntable_remove(&t, &c[i]);
	for (unsigned i = 0; i < MANY; i++)
		ck_assert_ptr_eq(rxw_conntable_find(&t, false, 7, i * 4, &from, NULL),
				 i % 2 ? &c[i] : NULL);
	rxw_conntable_fini(&t);
	free(c);
}
END_TEST

/* Removed entries leave no tombstones, which would make chains longer in floods. */
static void check_marks(struct rxw_pconn *const *slot, const uint16_t *mark, unsigned size)
{
	unsigned wrong = 0;

	for (unsigned i = 0; i < size; i++) {
		unsigned length = 0;

		for (const struct rxw_pconn *c = slot[i]; c; c = c->links.hash_next)
			length++;
		wrong += (unsigned)__builtin_popcount(mark[i]) > length || !mark[i] != !length;
	}
	ck_assert_uint_eq(wrong, 0);
}

/*
 * Each connection is in one chain, those of an address are in its list, and the counts are right.
 */
static void check_whole(const struct rxw_conntable *t)
{
	unsigned n = 0, of_peers = 0;

	check_marks(t->slot, t->mark, t->size);
	check_marks(t->old_slot, t->old_mark, t->old_size);
	for (unsigned i = 0; i < rxw_conntable_chains(t); i++)
		for (struct rxw_pconn *c = rxw_conntable_chain(t, i); c; c = c->links.hash_next) {
			struct rxw_pconn *first = rxw_conntable_of_peer(t, &c->path.peer);

			n++;
			ck_assert_ptr_nonnull(first);
			ck_assert_ptr_null(first->links.peer_prev);
			for (struct rxw_pconn *p = first; first == c && p; p = p->links.peer_next) {
				ck_assert(rxw_addr_equal(&p->path.peer, &c->path.peer));
				ck_assert(!p->links.peer_next ||
					  p->links.peer_next->links.peer_prev == p);
				of_peers++;
			}
			ck_assert_ptr_eq(
				rxw_conntable_find(t, false, 7, c->cid, &c->path.peer, NULL), c);
		}
	ck_assert_uint_eq(n, t->count);
	ck_assert_uint_eq(of_peers, t->count);
}

/* Connections come and go while the table moves into one of twice the size. */
START_TEST(whole_at_any_time)
{
	static const uint64_t key[2] = {3, 4};
	enum {
		MANY = 1100
	};
	struct rxw_pconn *c = calloc(MANY, sizeof(*c));
	bool in[MANY] = {false};
	struct rxw_conntable t;
	struct rxw_addr nobody;
	unsigned moving = 0, r = 1;

	address(&nobody, "10.0.0.2", 1);
	ck_assert_int_eq(rxw_conntable_init(&t, key), 0);
	for (unsigned step = 0; step < 6 * MANY; step++) {
		unsigned i = (r = r * 1103515245 + 12345) / 65536 % MANY;

		/* Three of four stay, so that it grows. */
		if (in[i] && step % 4) {
			continue;
		} else if (in[i]) {
			rxw_conntable_remove(&t, &c[i]);
		} else {
			make(&c[i], false, 7, i * 4, "10.0.0.1", 1 + i % 37);
			ck_assert_int_eq(rxw_conntable_insert(&t, &c[i]), 0);
		}
		in[i] = !in[i];
		moving += t.old_size != 0;
		ck_assert_uint_le(t.moved, t.old_size ? t.old_size : t.size);
		if (step % 7 == 0)
			check_whole(&t);
	}
	ck_assert_uint_gt(moving, 100);
	ck_assert_uint_ge(t.size, 512);
	ck_assert_ptr_null(rxw_conntable_of_peer(&t, &nobody));
	for (unsigned i = 0; i < MANY; i++)
		if (in[i])
			rxw_conntable_remove(&t, &c[i]);
	check_whole(&t);
	rxw_conntable_fini(&t);
	free(c);
}
END_TEST

/* An attacker cannot make a chain long by using one cid from many ports. */
START_TEST(one_cid_many_addresses)
{
	static const uint64_t key[2] = {3, 4};
	struct rxw_pconn c[100];
	struct rxw_conntable t;
	unsigned refused = 0;

	ck_assert_int_eq(rxw_conntable_init(&t, key), 0);
	for (unsigned i = 0; i < 100; i++) {
		make(&c[i], false, 7, 4, "10.0.0.1", 1000 + i);
		refused += rxw_conntable_insert(&t, &c[i]) == -RXW_ELIMIT;
	}
	ck_assert_uint_ge(refused, 50);
	ck_assert_uint_eq(t.count, 100 - refused);
	rxw_conntable_fini(&t);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("conntable");
	TCase *tcase = tcase_create("conntable");

	suite_add_tcase(suite, tcase);
	tcase_set_timeout(tcase, 0);
	tcase_add_test(tcase, finds);
	tcase_add_test(tcase, grows);
	tcase_add_test(tcase, whole_at_any_time);
	tcase_add_test(tcase, one_cid_many_addresses);
	return bench_main(suite);
}
