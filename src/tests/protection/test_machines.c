/* SPDX-License-Identifier: BSD-2-Clause */
/* Users whose name is an address, and the groups that callers get from them. */
#include "common/clock.h"
#include "tests/protection/database.h"

#define A(a, b, c, d) ((uint32_t)(a) << 24 | (b) << 16 | (c) << 8 | (d))

static struct database d;

START_TEST(addresses)
{
	static const char *const others[] = {"",	 "1.2.3",   "1.2.3.4.5",  "256.0.0.1",
					     "01.2.3.4", "1.2.3.",  ".1.2.3",	  "1..2.3",
					     "1.2.3.4 ", "1.2.3.x", "1.2.3.1000", "alice",
					     "1.2.3.04", "-1.2.3.4"};
	uint32_t address;

	ck_assert(prot_name_is_machine("10.1.2.3", &address));
	ck_assert_uint_eq(address, A(10, 1, 2, 3));
	ck_assert(prot_name_is_machine("0.0.0.0", &address));
	ck_assert_uint_eq(address, 0);
	ck_assert(prot_name_is_machine("255.255.255.255", &address));
	ck_assert_uint_eq(address, UINT32_MAX);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		ck_assert_msg(!prot_name_is_machine(others[i], &address), "%s", others[i]);
}
END_TEST

#define well(call) ck_assert_msg((call) == 0, "%s", d.message)

/* As OpenAFS's ptserver answers the same questions (interop protection). */
START_TEST(groups)
{
	int32_t one, net, wide, far, near, both;

	database_open(&d, NULL);
	one = database_user(&d, "10.91.7.1", 0);
	net = database_user(&d, "10.91.7.0", 0);
	wide = database_user(&d, "10.91.0.0", 0);
	far = database_user(&d, "10.0.0.0", 0);
	near = database_group(&d, "near", -300, 0);
	both = database_group(&d, "both", -301, 0);
	database_group(&d, "far", -299, 0);
	ck_assert(!prot_has_machines(d.prot));
	ck_assert_str_eq(database_host_cps(&d, A(10, 91, 7, 1)), "");
	well(prot_add_member(d.prot, near, one, d.message));
	ck_assert(prot_has_machines(d.prot));
	ck_assert_str_eq(database_host_cps(&d, A(10, 91, 7, 1)), "-300");
	ck_assert_str_eq(database_host_cps(&d, A(10, 91, 7, 2)), "");
	well(prot_add_member(d.prot, both, one, d.message));
	well(prot_add_member(d.prot, both, net, d.message));
	well(prot_add_member(d.prot, -299, wide, d.message));
	well(prot_add_member(d.prot, -299, far, d.message));
	well(prot_add_member(d.prot, near, far, d.message));
	/* Each group once, in order. */
	ck_assert_str_eq(database_host_cps(&d, A(10, 91, 7, 1)), "-301 -300 -299");
	ck_assert_str_eq(database_host_cps(&d, A(10, 91, 7, 2)), "-301 -300 -299");
	ck_assert_str_eq(database_host_cps(&d, A(10, 91, 8, 1)), "-300 -299");
	ck_assert_str_eq(database_host_cps(&d, A(10, 92, 7, 1)), "-300 -299");
	ck_assert_str_eq(database_host_cps(&d, A(10, 0, 0, 0)), "-300 -299");
	ck_assert_str_eq(database_host_cps(&d, A(11, 91, 7, 1)), "");
	ck_assert_str_eq(database_host_cps(&d, A(1, 7, 91, 10)), "");
	ck_assert_str_eq(database_host_cps(&d, 0), "");
	well(prot_remove_member(d.prot, near, far, d.message));
	ck_assert_str_eq(database_host_cps(&d, A(10, 91, 8, 1)), "-299");
	well(prot_remove(d.prot, -299, d.message));
	ck_assert_str_eq(database_host_cps(&d, A(10, 91, 8, 1)), "");
	well(prot_remove(d.prot, one, d.message));
	ck_assert_str_eq(database_host_cps(&d, A(10, 91, 7, 1)), "-301");
	database_reopen(&d);
	ck_assert(prot_has_machines(d.prot));
	ck_assert_str_eq(database_host_cps(&d, A(10, 91, 7, 1)), "-301");
	well(prot_remove_member(d.prot, both, net, d.message));
	ck_assert(!prot_has_machines(d.prot));
	database_close(&d);
}
END_TEST

/* The list is cut, and its length is told. */
START_TEST(room)
{
	const struct prot_view *view;
	int32_t one, net, list[3] = {7, 7, 7};

	database_open(&d, NULL);
	one = database_user(&d, "10.1.1.1", 0);
	net = database_user(&d, "10.0.0.0", 0);
	for (int32_t i = 0; i < 4; i++) {
		database_group(&d, (const char *[]){"a", "b", "c", "d"}[i], -300 - i, 0);
		well(prot_add_member(d.prot, -300 - i, i % 2 ? one : net, d.message));
	}
	view = prot_view_get(d.prot);
	ck_assert_uint_eq(prot_host_cps(view, A(10, 1, 1, 1), NULL, 0), 4);
	ck_assert_uint_eq(prot_host_cps(view, A(10, 1, 1, 1), list, 2), 4);
	ck_assert_int_eq(list[0], -303);
	ck_assert_int_eq(list[1], -302);
	ck_assert_int_eq(list[2], 7);
	prot_view_put(view);
	database_close(&d);
}
END_TEST

#define refused(call, code)                                \
	do {                                               \
		d.message[0] = 0;                          \
		ck_assert_int_eq(call, code);              \
		ck_assert_msg(d.message[0], "no message"); \
	} while (0)

START_TEST(rules)
{
	int32_t alice, one, other;

	database_open(&d, NULL);
	alice = database_user(&d, "alice", 0);
	one = database_user(&d, "10.1.1.1", 0);
	well(prot_rename(d.prot, one, "10.1.1.2", d.message));
	refused(prot_add_user(d.prot, "10.1.1", 0, NULL, d.message), PROT_BAD_NAME);
	refused(prot_add_user(d.prot, "10.1.1.01", 0, NULL, d.message), PROT_BAD_NAME);
	refused(prot_add_user(d.prot, "10.1.1.300", 0, NULL, d.message), PROT_BAD_NAME);
	refused(prot_add_user(d.prot, "0.0.0.0", 0, NULL, d.message), PROT_BAD_NAME);
	ck_assert_ptr_nonnull(strstr(d.message, "system:anyuser"));
	refused(prot_add_user(d.prot, "10.1.1.2", 0, &other, d.message), PROT_EXISTS);
	/* A user's groups are not for all who use a machine, and a machine is no administrator. */
	refused(prot_rename(d.prot, alice, "10.1.1.3", d.message), PROT_BAD_NAME);
	refused(prot_rename(d.prot, one, "bob", d.message), PROT_BAD_NAME);
	refused(prot_add_member(d.prot, PROT_ADMINISTRATORS, one, d.message), PROT_PREDEFINED);
	well(prot_add_member(d.prot, PROT_ADMINISTRATORS, alice, d.message));
	database_close(&d);
}
END_TEST

/* No identity is a machine, whatever a principal is called. */
START_TEST(identities)
{
	const struct prot_options options = {.cell = "cell.example", .dots = true};
	const struct prot_view *view;

	database_open(&d, &options);
	database_user(&d, "10.0.0.1", 0);
	database_user(&d, "john.doe", 3);
	view = prot_view_get(d.prot);
	ck_assert_int_eq(prot_user_of_parts(d.prot, view, "10.0.0.1", "", ""), PROT_ANONYMOUS);
	ck_assert_int_eq(prot_user_of_principal(d.prot, view, "10.0.0.1@CELL.EXAMPLE"),
			 PROT_ANONYMOUS);
	ck_assert_int_eq(prot_user_of_parts(d.prot, view, "john.doe", "", ""), 3);
	prot_view_put(view);
	database_close(&d);
}
END_TEST

/* A change by another process is seen by prot_has_machines() alone, without a view being asked for. */
START_TEST(change_elsewhere)
{
	struct prot_options options = {0};
	struct prot *other;
	uint64_t begin = monotonic_ns();

	database_open(&d, NULL);
	options.path = d.file;
	well(prot_open(&options, &other, d.message));
	ck_assert(!prot_has_machines(d.prot));
	well(prot_add_user(other, "10.0.0.1", 1, NULL, d.message));
	well(prot_add_group(other, "lab", -300, 0, NULL, d.message));
	well(prot_add_member(other, -300, 1, d.message));
	ck_assert(prot_has_machines(other));
	while (!prot_has_machines(d.prot))
		ck_assert_uint_lt(monotonic_ns() - begin, 20ull * NS_PER_S);
	ck_assert_str_eq(database_host_cps(&d, A(10, 0, 0, 1)), "-300");
	prot_close(other);
	database_close(&d);
}
END_TEST

TEST_MAIN("protection machines", addresses, groups, room, rules, identities, change_elsewhere)
