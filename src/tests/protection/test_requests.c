/* SPDX-License-Identifier: BSD-2-Clause */
/* Changes that callers ask for: who may do what, and what a user may make. */
#include "protection/request.h"
#include "tests/protection/database.h"

static struct database d;
static const struct prot_actor root = {.id = PROT_ADMINISTRATORS, .administrator = true},
			       alice = {.id = 1}, bob = {.id = 2}, system_user = {.id = 4},
			       nobody = {.id = PROT_ANONYMOUS};
static int32_t id;

#define well(call) ck_assert_msg((call) == 0, "%s", d.message)

/* It fails with this code, and the database is as it was. */
#define refused(call, code)                                                \
	do {                                                               \
		const struct prot_view *before_ = prot_view_get(d.prot);   \
                                                                           \
		d.message[0] = 0;                                          \
		ck_assert_int_eq(call, code);                              \
		ck_assert(d.message[0] != 0);                              \
		ck_assert_uint_eq(prot_generation(before_), generation()); \
		prot_view_put(before_);                                    \
	} while (0)

static uint64_t generation(void)
{
	const struct prot_view *view = prot_view_get(d.prot);
	uint64_t number = prot_generation(view);

	prot_view_put(view);
	return number;
}

static struct prot_entry entry(int32_t of)
{
	const struct prot_view *view = prot_view_get(d.prot);
	const struct prot_entry *found = prot_by_id(view, of);
	struct prot_entry copy;

	ck_assert_msg(found != NULL, "%d", (int)of);
	copy = *found;
	prot_view_put(view);
	return copy;
}

static void setup(void)
{
	database_open(&d, NULL);
	database_user(&d, "alice", 1);
	database_user(&d, "bob", 2);
	database_user(&d, "carol", 3);
	database_group(&d, "staff", -300, PROT_ADMINISTRATORS);
}

static int make_group(const struct prot_actor *actor, const char *name, int32_t owner)
{
	return prot_request_new(d.prot, actor, name, true, 0, owner, &id, d.message);
}

START_TEST(makers)
{
	setup();
	refused(prot_request_new(d.prot, &alice, "mallory", false, 0, 0, &id, d.message),
		PROT_REFUSED);
	refused(prot_request_new(d.prot, &alice, "alice:x", true, -999, 1, &id, d.message),
		PROT_REFUSED);
	refused(make_group(&nobody, "x:y", 0), PROT_REFUSED);
	refused(make_group(&alice, "mine", 0), PROT_BAD_NAME);
	refused(make_group(&alice, "bob:mine", 0), PROT_BAD_NAME);
	refused(make_group(&alice, "alic:mine", 0), PROT_BAD_NAME);
	refused(make_group(&alice, "system:mine", PROT_ADMINISTRATORS), PROT_REFUSED);
	/* A user of that name is no way to such a group. */
	database_user(&d, "system", 4);
	refused(make_group(&system_user, "system:mine", 0), PROT_REFUSED);
	refused(make_group(&alice, "alice:mine", 99), PROT_NO_ENTRY);
	well(make_group(&alice, "alice:mine", 0));
	ck_assert_int_eq(entry(id).owner, 1);
	ck_assert_int_eq(entry(id).creator, 1);
	well(make_group(&root, "plain", 0));
	ck_assert_int_eq(entry(id).owner, PROT_ADMINISTRATORS);
	well(prot_request_new(d.prot, &root, "dave", false, 70, 0, &id, d.message));
	/* A member of the administrators' group is one. */
	well(prot_add_member(d.prot, PROT_ADMINISTRATORS, 2, d.message));
	well(prot_request_new(d.prot, &bob, "eve", false, 0, 0, &id, d.message));
	ck_assert_int_eq(id, 71);
	ck_assert_int_eq(entry(id).creator, 2);
	database_close(&d);
}
END_TEST

/* Also a group that was given away counts, until it is removed. */
START_TEST(quota)
{
	static const int32_t two = 2;
	int32_t first;

	setup();
	refused(prot_request_fields(d.prot, &alice, 1, NULL, &two, d.message), PROT_REFUSED);
	well(prot_request_fields(d.prot, &root, 1, NULL, &two, d.message));
	well(make_group(&alice, "alice:a", 0));
	first = id;
	/* What fails costs nothing. */
	refused(make_group(&alice, "alice:a", 0), PROT_EXISTS);
	well(make_group(&alice, "alice:b", 0));
	refused(make_group(&alice, "alice:c", 0), PROT_NO_MORE);
	well(prot_request_chown(d.prot, &alice, first, 2, d.message));
	ck_assert_str_eq(entry(first).name, "bob:a");
	refused(make_group(&alice, "alice:c", 0), PROT_NO_MORE);
	refused(prot_request_remove(d.prot, &alice, first, d.message), PROT_REFUSED);
	well(prot_request_remove(d.prot, &bob, first, d.message));
	well(make_group(&alice, "alice:c", 0));
	refused(make_group(&alice, "alice:d", 0), PROT_NO_MORE);
	database_close(&d);
}
END_TEST

START_TEST(owners)
{
	static const uint32_t all = PROT_ACCESS_ALL;
	int32_t group;

	setup();
	well(make_group(&alice, "alice:a", 0));
	group = id;
	refused(prot_request_member(d.prot, &bob, group, 2, true, d.message), PROT_REFUSED);
	refused(prot_request_rename(d.prot, &bob, group, "bob:a", d.message), PROT_REFUSED);
	refused(prot_request_chown(d.prot, &bob, group, 2, d.message), PROT_REFUSED);
	refused(prot_request_fields(d.prot, &bob, group, &all, NULL, d.message), PROT_REFUSED);
	refused(prot_request_fields(d.prot, &bob, 1, &all, NULL, d.message), PROT_REFUSED);
	refused(prot_request_rename(d.prot, &alice, 1, "alicia", d.message), PROT_REFUSED);
	refused(prot_request_remove(d.prot, &alice, 1, d.message), PROT_REFUSED);
	refused(prot_request_chown(d.prot, &alice, group, PROT_ADMINISTRATORS, d.message),
		PROT_REFUSED);
	refused(prot_request_chown(d.prot, &root, 1, 2, d.message), PROT_REFUSED);
	refused(prot_request_member(d.prot, &alice, PROT_ADMINISTRATORS, 1, true, d.message),
		PROT_REFUSED);
	well(prot_request_fields(d.prot, &alice, 1, &all, NULL, d.message));
	well(prot_request_member(d.prot, &alice, group, 2, true, d.message));
	refused(prot_request_member(d.prot, &alice, group, 2, true, d.message), PROT_MEMBERSHIP);
	refused(prot_request_rename(d.prot, &alice, group, "bob:a", d.message), PROT_BAD_NAME);
	well(prot_request_rename(d.prot, &alice, group, "alice:b", d.message));
	/* Members of an owner are owners. */
	refused(prot_request_member(d.prot, &bob, -300, 3, true, d.message), PROT_REFUSED);
	well(prot_chown(d.prot, group, -300, d.message));
	refused(prot_request_remove(d.prot, &alice, group, d.message), PROT_REFUSED);
	well(prot_add_member(d.prot, -300, 1, d.message));
	well(prot_request_remove(d.prot, &alice, group, d.message));
	database_close(&d);
}
END_TEST

START_TEST(flags)
{
	static const uint32_t none = 0, members = PROT_ADD_MEM | PROT_REMOVE_MEM,
			      any = PROT_ADD_ANY;

	setup();
	well(prot_add_member(d.prot, -300, 2, d.message));
	well(prot_request_fields(d.prot, &root, -300, &none, NULL, d.message));
	refused(prot_request_member(d.prot, &bob, -300, 3, true, d.message), PROT_REFUSED);
	well(prot_request_fields(d.prot, &root, -300, &members, NULL, d.message));
	well(prot_request_member(d.prot, &bob, -300, 3, true, d.message));
	well(prot_request_member(d.prot, &bob, -300, 3, false, d.message));
	refused(prot_request_member(d.prot, &alice, -300, 3, true, d.message), PROT_REFUSED);
	well(prot_request_fields(d.prot, &root, -300, &any, NULL, d.message));
	refused(prot_request_member(d.prot, &nobody, -300, 3, true, d.message), PROT_REFUSED);
	well(prot_request_member(d.prot, &alice, -300, 3, true, d.message));
	refused(prot_request_member(d.prot, &alice, -300, 3, false, d.message), PROT_REFUSED);
	database_close(&d);
}
END_TEST

START_TEST(last_ids)
{
	int32_t user, group;

	setup();
	refused(prot_request_last(d.prot, &alice, 1000, false, d.message), PROT_REFUSED);
	refused(prot_request_last(d.prot, &root, 2, false, d.message), PROT_BAD_ID);
	refused(prot_request_last(d.prot, &root, -299, true, d.message), PROT_BAD_ID);
	refused(prot_request_last(d.prot, &root, INT32_MIN, true, d.message), PROT_BAD_ID);
	well(prot_request_last(d.prot, &root, 1000, false, d.message));
	well(prot_request_last(d.prot, &root, -1000, true, d.message));
	well(prot_last_ids(d.prot, &user, &group, d.message));
	ck_assert_int_eq(user, 1000);
	ck_assert_int_eq(group, -1000);
	database_close(&d);
}
END_TEST

TEST_MAIN("requests", makers, quota, owners, flags, last_ids)
