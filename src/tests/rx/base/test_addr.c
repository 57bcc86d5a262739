/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of base/addr.c: normal form, comparison, text, networks. */

#include "testing.h"

#include <arpa/inet.h>

#include "base/addr.h"

static struct rxw_addr v4(const char *host, uint16_t port)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(port) };
	struct rxw_addr a;

	memset(in.sin_zero, 0x5a, sizeof(in.sin_zero));
	ck_assert_int_eq(inet_pton(AF_INET, host, &in.sin_addr), 1);
	ck_assert(rxw_addr_set(&a, (struct sockaddr *)&in, sizeof(in)));
	return a;
}

static struct rxw_addr v6(const char *host, uint16_t port, uint32_t scope)
{
	struct sockaddr_in6 in6 = {
		.sin6_family = AF_INET6,
		.sin6_port = htons(port),
		.sin6_flowinfo = 77,
		.sin6_scope_id = scope,
	};
	struct rxw_addr a;

	ck_assert_int_eq(inet_pton(AF_INET6, host, &in6.sin6_addr), 1);
	ck_assert(rxw_addr_set(&a, (struct sockaddr *)&in6, sizeof(in6)));
	return a;
}

/* A mapped address is the IPv4 address: the same host for comparisons, hashes and texts. */
START_TEST(mapped)
{
	static const uint64_t key[2] = {1, 2};
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons(7001),
				   .sin6_flowinfo = 5, .sin6_scope_id = 6};
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(7001)};
	struct rxw_addr a, b;
	char text[64];

	ck_assert_int_eq(inet_pton(AF_INET6, "::ffff:10.1.2.3", &in6.sin6_addr), 1);
	ck_assert_int_eq(inet_pton(AF_INET, "10.1.2.3", &in.sin_addr), 1);
	ck_assert(rxw_addr_set(&a, (struct sockaddr *)&in6, sizeof(in6)));
	ck_assert(rxw_addr_set(&b, (struct sockaddr *)&in, sizeof(in)));
	ck_assert_int_eq(memcmp(&a, &b, sizeof(a)), 0);
	ck_assert(rxw_addr_equal(&a, &b) && rxw_addr_same_host(&a, &b));
	ck_assert(rxw_addr_hash(&a, key, true) == rxw_addr_hash(&b, key, true));
	ck_assert_str_eq(rxw_addr_text(&a, text, sizeof(text)), "10.1.2.3:7001");
}
END_TEST

START_TEST(refused)
{
	struct sockaddr_in in = { .sin_family = AF_INET };
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6 };
	struct sockaddr_storage other = { .ss_family = AF_UNIX };
	struct rxw_addr a;

	ck_assert(!rxw_addr_set(&a, (struct sockaddr *)&in, sizeof(in) - 1));
	ck_assert_uint_eq(a.len, 0);
	ck_assert(!rxw_addr_set(&a, (struct sockaddr *)&in6, sizeof(in6) - 1));
	ck_assert(!rxw_addr_set(&a, (struct sockaddr *)&other, sizeof(other)));
	ck_assert(!rxw_addr_set(&a, (struct sockaddr *)&in, 0));
	ck_assert(!rxw_addr_set(&a, (struct sockaddr *)&in, 1));
	ck_assert(!rxw_addr_set(&a, NULL, 0));
	ck_assert(rxw_addr_set(&a, (struct sockaddr *)&in6, sizeof(struct sockaddr_storage)));
}
END_TEST

/* Equal addresses are equal in every byte, whatever the padding was. */
START_TEST(normal_form)
{
	struct rxw_addr a = v4("10.1.2.3", 7000), b, c = v6("2001:db8::1", 7000, 0);
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(7000) };
	struct rxw_addr d = v6("2001:db8::1", 7000, 0);

	inet_pton(AF_INET, "10.1.2.3", &in.sin_addr);
	ck_assert(rxw_addr_set(&b, (struct sockaddr *)&in, sizeof(struct sockaddr_storage) / 2));
	ck_assert_mem_eq(&a, &b, sizeof(a));
	ck_assert_mem_eq(&c, &d, sizeof(c));
	ck_assert_uint_eq(c.u.in6.sin6_flowinfo, 0);
	ck_assert_uint_eq(a.len, sizeof(struct sockaddr_in));
	ck_assert_uint_eq(rxw_addr_port(&a), 7000);
	ck_assert_uint_eq(rxw_addr_port(&c), 7000);
}
END_TEST

START_TEST(comparison)
{
	struct rxw_addr none = { .len = 0 };
	struct rxw_addr list[] = {
		none,
		v4("10.1.2.3", 7000),
		v4("10.1.2.3", 7001),
		v4("10.1.2.4", 7000),
		v6("2001:db8::1", 7000, 0),
		v6("2001:db8::2", 7000, 0),
		v6("fe80::1", 7000, 1),
		v6("fe80::1", 7000, 2),
	};
	size_t n = sizeof(list) / sizeof(list[0]);
	const uint64_t key[2] = { 1, 2 };

	for (size_t i = 0; i < n; i++) {
		for (size_t k = 0; k < n; k++) {
			ck_assert_int_eq(rxw_addr_equal(&list[i], &list[k]), i == k);
			if (i != k)
				ck_assert_uint_ne(rxw_addr_hash(&list[i], key, true),
						  rxw_addr_hash(&list[k], key, true));
		}
	}
	ck_assert(rxw_addr_same_host(&list[1], &list[2]));
	ck_assert(!rxw_addr_same_host(&list[1], &list[3]));
	ck_assert(!rxw_addr_same_host(&list[6], &list[7]));
	ck_assert(!rxw_addr_same_host(&list[0], &list[1]));
	ck_assert_uint_eq(rxw_addr_hash(&list[1], key, false), rxw_addr_hash(&list[2], key, false));
}
END_TEST

/*
 * The kernel ignores the scope of a global address, so addresses that differ only there are equal.
 */
START_TEST(scope_of_global_is_dropped)
{
	struct rxw_addr a = v6("2001:db8::1", 1, 5), b = v6("2001:db8::1", 1, 0);

	ck_assert(rxw_addr_equal(&a, &b));
}
END_TEST

START_TEST(hash_needs_key)
{
	const uint64_t one[2] = { 1, 2 }, other[2] = { 1, 3 };
	struct rxw_addr a = v4("10.1.2.3", 7000);

	ck_assert_uint_ne(rxw_addr_hash(&a, one, true), rxw_addr_hash(&a, other, true));
	ck_assert_uint_ne(rxw_addr_hash(&a, one, true), rxw_addr_hash(&a, one, false));
}
END_TEST

START_TEST(loopback)
{
	struct rxw_addr a = v4("127.0.0.1", 1), b = v4("127.255.255.254", 1),
			c = v4("128.0.0.1", 1);
	struct rxw_addr d = v6("::1", 1, 0), e = v6("::2", 1, 0), f = v6("::ffff:127.0.0.1", 1, 0);
	struct rxw_addr none = { .len = 0 };

	ck_assert(rxw_addr_is_loopback(&a));
	ck_assert(rxw_addr_is_loopback(&b));
	ck_assert(!rxw_addr_is_loopback(&c));
	ck_assert(rxw_addr_is_loopback(&d));
	ck_assert(!rxw_addr_is_loopback(&e));
	ck_assert(rxw_addr_is_loopback(&f));
	ck_assert(!rxw_addr_is_loopback(&none));
}
END_TEST

START_TEST(text)
{
	struct rxw_addr a = v4("1.2.3.4", 7000), b = v6("::1", 65535, 0), c = v6("fe80::1", 1, 3);
	struct rxw_addr none = { .len = 0 };
	char out[64], tiny[5];

	ck_assert_str_eq(rxw_addr_text(&a, out, sizeof(out)), "1.2.3.4:7000");
	ck_assert_str_eq(rxw_addr_text(&b, out, sizeof(out)), "[::1]:65535");
	ck_assert_str_eq(rxw_addr_text(&c, out, sizeof(out)), "[fe80::1%3]:1");
	ck_assert_str_eq(rxw_addr_text(&none, out, sizeof(out)), "none");
	ck_assert_str_eq(rxw_addr_text(&a, tiny, sizeof(tiny)), "1.2.");
	tiny[0] = 'k';
	rxw_addr_text(&a, tiny, 0);
	ck_assert_int_eq(tiny[0], 'k');
}
END_TEST

START_TEST(networks)
{
	static const struct {
		const char *net, *in, *out;
	} cases[] = {
		{ "10.0.0.0/8", "10.255.0.1", "11.0.0.1" },
		{ "10.1.2.3/8", "10.255.0.1", "9.255.255.255" }, /* host bits do not matter */
		{ "192.168.4.0/22", "192.168.7.255", "192.168.8.0" },
		{ "10.1.2.3/32", "10.1.2.3", "10.1.2.2" },
		{ "10.1.2.3", "10.1.2.3", "10.1.2.4" },
		{ "10.1.2.2/31", "10.1.2.3", "10.1.2.4" },
		{ "0.0.0.0/0", "200.1.1.1", NULL },
	};
	struct rxw_cidr c;
	struct rxw_addr a;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		ck_assert(rxw_cidr_parse(&c, cases[i].net));
		a = v4(cases[i].in, 1);
		ck_assert_msg(rxw_cidr_has(&c, &a), "%s has %s", cases[i].net, cases[i].in);
		if (cases[i].out) {
			a = v4(cases[i].out, 1);
			ck_assert_msg(!rxw_cidr_has(&c, &a), "%s has %s", cases[i].net,
				      cases[i].out);
		}
	}
	ck_assert(rxw_cidr_parse(&c, "10.0.0.0/8"));
	a = v6("::ffff:10.0.0.1", 1, 0);
	ck_assert(rxw_cidr_has(&c, &a));
	a = v6("2001:db8::1", 1, 0);
	ck_assert(!rxw_cidr_has(&c, &a));
	ck_assert(rxw_cidr_parse(&c, "2001:db8::/33"));
	ck_assert(rxw_cidr_has(&c, &a));
	a = v6("2001:db8:8000::1", 1, 0);
	ck_assert(!rxw_cidr_has(&c, &a));
	a = v4("10.0.0.1", 1);
	ck_assert(!rxw_cidr_has(&c, &a));
	ck_assert(rxw_cidr_parse(&c, "::/0"));
	a.len = 0;
	ck_assert(!rxw_cidr_has(&c, &a));
}
END_TEST

START_TEST(network_syntax)
{
	static const char *const bad[] = {
		"",
		"/",
		"/8",
		"10.0.0.0/",
		"10.0.0.0/33",
		"10.0.0.0/-1",
		"10.0.0.0/8x",
		"10.0.0.0/0008",
		"10.0.0/8",
		"::/129",
		"::/9999",
		"g::/1",
		"any",
		"10.0.0.0/ 8",
		"10.0.0.0 /8",
		"1111:2222:3333:4444:5555:6666:7777:8888:9999:aaaa:bbbb:cccc/8",
	};
	struct rxw_cidr c;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ck_assert_msg(!rxw_cidr_parse(&c, bad[i]), "\"%s\" parses", bad[i]);
}
END_TEST

TEST_MAIN("addr", mapped, refused, normal_form, comparison, scope_of_global_is_dropped, hash_needs_key,
	  loopback, text, networks, network_syntax)
