/* SPDX-License-Identifier: BSD-2-Clause */
/* From authenticated identities to users. */
#include "tests/protection/database.h"

static const char *const realms[] = {"KERBEROS.EXAMPLE", "Odd.Realm"};
static struct database d;

static void setup(bool dots, const char *cell)
{
	const struct prot_options options = {
		.cell = cell, .realms = realms, .realm_count = cell ? 2 : 0, .dots = dots};

	database_open(&d, &options);
	database_user(&d, "alice", 1);
	database_user(&d, "alice.admin", 2);
	database_user(&d, "john.doe", 3);
	database_user(&d, "eve@other.example", 4);
	database_user(&d, "eve.admin@other.example", 5);
	database_user(&d, "host.fs", 6);
	database_user(&d, "odd/name", 7);
	database_group(&d, "staff", -206, 0);
	database_group(&d, "alice:friends", -207, 1);
}

static int32_t parts(const char *name, const char *instance, const char *cell)
{
	const struct prot_view *view = prot_view_get(d.prot);
	int32_t id = prot_user_of_parts(d.prot, view, name, instance, cell);

	prot_view_put(view);
	return id;
}

static int32_t principal(const char *text)
{
	const struct prot_view *view = prot_view_get(d.prot);
	int32_t id = prot_user_of_principal(d.prot, view, text);

	prot_view_put(view);
	return id;
}

START_TEST(of_rxkad)
{
	setup(false, "cell.example");
	ck_assert_int_eq(parts("alice", "", ""), 1);
	ck_assert_int_eq(parts("alice", "", "cell.example"), 1);
	ck_assert_int_eq(parts("alice", "", "CELL.EXAMPLE"), 1);
	ck_assert_int_eq(parts("alice", "", "KERBEROS.EXAMPLE"), 1);
	ck_assert_int_eq(parts("alice", "", "Odd.Realm"), 1);
	ck_assert_int_eq(parts("alice", "", "odd.realm"), PROT_ANONYMOUS);
	ck_assert_int_eq(parts("alice", "admin", ""), 2);
	ck_assert_int_eq(parts("alice", "", "other.example"), PROT_ANONYMOUS);
	ck_assert_int_eq(parts("eve", "", "other.example"), 4);
	ck_assert_int_eq(parts("eve", "", "OTHER.EXAMPLE"), 4);
	ck_assert_int_eq(parts("eve", "admin", "OTHER.EXAMPLE"), 5);
	ck_assert_int_eq(parts("eve", "", ""), PROT_ANONYMOUS);
	/* Names are compared exactly. */
	ck_assert_int_eq(parts("Alice", "", ""), PROT_ANONYMOUS);
	ck_assert_int_eq(parts("nobody", "", ""), PROT_ANONYMOUS);
	ck_assert_int_eq(parts("anonymous", "", ""), PROT_ANONYMOUS);
	database_close(&d);
}
END_TEST

START_TEST(of_principals)
{
	setup(false, "cell.example");
	ck_assert_int_eq(principal("alice@CELL.EXAMPLE"), 1);
	ck_assert_int_eq(principal("alice@KERBEROS.EXAMPLE"), 1);
	ck_assert_int_eq(principal("alice/admin@CELL.EXAMPLE"), 2);
	ck_assert_int_eq(principal("eve@OTHER.EXAMPLE"), 4);
	ck_assert_int_eq(principal("eve/admin@OTHER.EXAMPLE"), 5);
	ck_assert_int_eq(principal("alice@OTHER.EXAMPLE"), PROT_ANONYMOUS);
	ck_assert_int_eq(principal("host/fs@CELL.EXAMPLE"), 6);
	/* Realms are not cells: only the exact one is local. */
	ck_assert_int_eq(principal("alice@cell.example"), PROT_ANONYMOUS);
	ck_assert_int_eq(principal("alice"), PROT_ANONYMOUS);
	ck_assert_int_eq(principal("alice@"), PROT_ANONYMOUS);
	ck_assert_int_eq(principal("@CELL.EXAMPLE"), PROT_ANONYMOUS);
	ck_assert_int_eq(principal(""), PROT_ANONYMOUS);
	database_close(&d);
}
END_TEST

/* Identities that would get the rights of another one. */
START_TEST(mistakable)
{
	char text[600];

	setup(false, "cell.example");
	/* A local name with '@' is not the foreign user; groups are not users. */
	ck_assert_int_eq(parts("eve@other.example", "", ""), PROT_ANONYMOUS);
	ck_assert_int_eq(principal("eve\\@other.example@CELL.EXAMPLE"), PROT_ANONYMOUS);
	ck_assert_int_eq(principal("eve@other.example@CELL.EXAMPLE"), PROT_ANONYMOUS);
	ck_assert_int_eq(parts("staff", "", ""), PROT_ANONYMOUS);
	ck_assert_int_eq(parts("alice:friends", "", ""), PROT_ANONYMOUS);
	ck_assert_int_eq(parts("system:administrators", "", ""), PROT_ANONYMOUS);
	/* A dot is between name and instance. */
	ck_assert_int_eq(parts("alice.admin", "", ""), PROT_ANONYMOUS);
	ck_assert_int_eq(principal("alice.admin@CELL.EXAMPLE"), PROT_ANONYMOUS);
	ck_assert_int_eq(parts("john.doe", "", ""), PROT_ANONYMOUS);
	ck_assert_int_eq(parts("john", "doe", ""), 3);
	ck_assert_int_eq(principal("host/fs.cell.example@CELL.EXAMPLE"), PROT_ANONYMOUS);
	ck_assert_int_eq(parts("odd/name", "", ""), PROT_ANONYMOUS);
	ck_assert_int_eq(principal("odd\\/name@CELL.EXAMPLE"), PROT_ANONYMOUS);
	ck_assert_int_eq(principal("alice/@CELL.EXAMPLE"), PROT_ANONYMOUS);
	ck_assert_int_eq(principal("alice/a/b@CELL.EXAMPLE"), PROT_ANONYMOUS);
	/* Names that do not fit are cut nowhere. */
	memset(text, 'a', sizeof(text));
	text[sizeof(text) - 1] = 0;
	ck_assert_int_eq(parts("alice", "", text), PROT_ANONYMOUS);
	ck_assert_int_eq(parts(text, "", ""), PROT_ANONYMOUS);
	memcpy(text + 590, "@R", 3);
	ck_assert_int_eq(principal(text), PROT_ANONYMOUS);
	database_close(&d);
}
END_TEST

START_TEST(dotted_names)
{
	setup(true, "cell.example");
	ck_assert_int_eq(parts("john.doe", "", ""), 3);
	ck_assert_int_eq(principal("john.doe@CELL.EXAMPLE"), 3);
	ck_assert_int_eq(parts("john", "doe", ""), PROT_ANONYMOUS);
	ck_assert_int_eq(principal("john/doe@CELL.EXAMPLE"), PROT_ANONYMOUS);
	ck_assert_int_eq(parts("alice", "", ""), 1);
	database_close(&d);
}
END_TEST

/* Without a cell every principal is foreign. */
START_TEST(no_cell)
{
	setup(false, NULL);
	ck_assert_int_eq(parts("alice", "", ""), 1);
	ck_assert_int_eq(parts("alice", "", "cell.example"), PROT_ANONYMOUS);
	ck_assert_int_eq(principal("alice@CELL.EXAMPLE"), PROT_ANONYMOUS);
	ck_assert_int_eq(principal("eve@OTHER.EXAMPLE"), 4);
	database_close(&d);
}
END_TEST

TEST_MAIN("protection identities", of_rxkad, of_principals, mistakable, dotted_names, no_cell)
