/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of common/address.c: hosts with ports, both families. */

#include "tests/tools/testing.h"

#include <netinet/in.h>

#include "program/address.h"

START_TEST(split)
{
	static const struct {
		const char *text, *host;
		uint16_t a, b;
	} good[] = {
		{ "localhost", "localhost", 1, 2 },
		{ "host.example:7003", "host.example", 7003, 2 },
		{ "10.0.0.1:1000:65535", "10.0.0.1", 1000, 65535 },
		{ "h::9", "h", 1, 9 },
		{ "::1", "::1", 1, 2 },
		{ "fe80::1%eth0", "fe80::1%eth0", 1, 2 },
		{ "[::1]", "::1", 1, 2 },
		{ "[::1]:5:6", "::1", 5, 6 },
		{ "[fe80::1%lo]:5", "fe80::1%lo", 5, 2 },
	};
	static const char *const bad[] = { "", ":1", "h:", "h:65536", "h:1:2:3", "[::1", "[]:1",
					   "[::1]x", "h:-1", "h:x", "h:1:", "h:123456789", "h:0" };
	char host[64];

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		uint16_t ports[2] = { 1, 2 };

		ck_assert_msg(tools_split_host(good[i].text, host, sizeof(host), ports, 2) == 0,
			      "%s", good[i].text);
		ck_assert_str_eq(host, good[i].host);
		ck_assert_uint_eq(ports[0], good[i].a);
		ck_assert_uint_eq(ports[1], good[i].b);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		uint16_t ports[2] = { 1, 2 };

		ck_assert_msg(tools_split_host(bad[i], host, sizeof(host), ports, 2) == -1, "%s",
			      bad[i]);
	}
	/* A host that does not fit. */
	ck_assert_int_eq(tools_split_host("abcdefgh", host, 8, NULL, 0), -1);
	ck_assert_int_eq(tools_split_host("abcdefg", host, 8, NULL, 0), 0);
}
END_TEST

START_TEST(resolve)
{
	struct tools_address a, any;
	char message[128], text[TOOLS_ADDRESS_TEXT];

	ck_assert_int_eq(tools_resolve("127.0.0.1", 7009, 0, &a, message, sizeof(message)), 0);
	ck_assert_str_eq(tools_address_text(&a.sa, text, sizeof(text)), "127.0.0.1:7009");
	tools_address_set_port(&a.sa, 9);
	ck_assert_uint_eq(tools_address_port(&a.sa), 9);
	tools_address_any(&a.sa, &any);
	ck_assert_str_eq(tools_address_text(&any.sa, text, sizeof(text)), "0.0.0.0:0");
	ck_assert_uint_eq(any.len, sizeof(struct sockaddr_in));

	ck_assert_int_eq(tools_resolve("::1", 1, 0, &a, message, sizeof(message)), 0);
	ck_assert_str_eq(tools_address_text(&a.sa, text, sizeof(text)), "[::1]:1");
	tools_address_any(&a.sa, &any);
	ck_assert_str_eq(tools_address_text(&any.sa, text, sizeof(text)), "[::]:0");
	ck_assert_uint_eq(any.len, sizeof(struct sockaddr_in6));

	ck_assert_int_eq(tools_resolve("*", 5, 1, &a, message, sizeof(message)), 0);
	ck_assert_str_eq(tools_address_text(&a.sa, text, sizeof(text)), "0.0.0.0:5");
}
END_TEST

START_TEST(resolve_all)
{
	struct tools_address list[TOOLS_ADDRESSES], one[TOOLS_ADDRESSES];
	char message[128], text[TOOLS_ADDRESS_TEXT];

	ck_assert_uint_eq(tools_resolve_all("127.0.0.1", 9, list, message, sizeof(message)), 1);
	ck_assert_str_eq(tools_address_text(&list[0].sa, text, sizeof(text)), "127.0.0.1:9");
	ck_assert_uint_eq(tools_resolve_all("::1", 9, list, message, sizeof(message)), 1);
	list[2] = list[0];
	ck_assert_uint_eq(tools_resolve_all("10.0.0.1", 9, one, message, sizeof(message)), 1);
	list[1] = one[0];
	ck_assert_uint_eq(tools_resolve_all("10.0.0.2", 9, one, message, sizeof(message)), 1);
	list[3] = one[0];
	tools_addresses_prefer_ipv4(list, 4);
	ck_assert_str_eq(tools_address_text(&list[0].sa, text, sizeof(text)), "10.0.0.1:9");
	ck_assert_str_eq(tools_address_text(&list[1].sa, text, sizeof(text)), "10.0.0.2:9");
	ck_assert_uint_eq(list[2].sa.ss_family, AF_INET6);
	ck_assert_str_eq(tools_address_text(&list[3].sa, text, sizeof(text)), "[::1]:9");
	ck_assert_uint_eq(tools_resolve_all("no-such-host.invalid", 9, list, message,
					    sizeof(message)), 0);
	ck_assert_ptr_nonnull(strstr(message, "no-such-host.invalid"));
}
END_TEST

/* A name reserved as invalid: the message contains it. */
START_TEST(unknown_host)
{
	struct tools_address a;
	char message[128] = "";

	ck_assert_int_eq(tools_resolve("no-such-host.invalid", 1, 0, &a, message, sizeof(message)),
			 -1);
	ck_assert_ptr_nonnull(strstr(message, "no-such-host.invalid"));
}
END_TEST

TEST_MAIN("address", split, resolve, resolve_all, unknown_host)
