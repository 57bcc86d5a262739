/* SPDX-License-Identifier: BSD-2-Clause */
/* Entries, memberships and their rules. */
#include "tests/protection/database.h"

static struct database d;

/* The change fails with this code and a line, and leaves the database as it was. */
#define refused(call, code)                                                            \
	do {                                                                           \
		const struct prot_view *before_ = prot_view_get(d.prot);               \
		size_t count_ = prot_count(before_);                                   \
                                                                                       \
		prot_view_put(before_);                                                \
		d.message[0] = 0;                                                      \
		ck_assert_int_eq(call, code);                                          \
		ck_assert_msg(d.message[0] && !strchr(d.message, '\n'), "no message"); \
		before_ = prot_view_get(d.prot);                                       \
		ck_assert_uint_eq(prot_count(before_), count_);                        \
		prot_view_put(before_);                                                \
	} while (0)

#define well(call) ck_assert_msg((call) == 0, "%s", d.message)

static const struct prot_entry *entry(const struct prot_view *view, const char *name)
{
	const struct prot_entry *found = prot_by_name(view, name);

	ck_assert_msg(found != NULL, "%s", name);
	ck_assert_ptr_eq(prot_by_id(view, found->id), found);
	return found;
}

START_TEST(predefined)
{
	static const struct {
		const char *name;
		int32_t id;
	} list[] = {{"anonymous", 32766},     {"system:administrators", -204},
		    {"system:anyuser", -101}, {"system:authuser", -102},
		    {"system:backup", -205},  {"system:ptsviewers", -203}};
	const struct prot_view *view;
	int32_t user, group;

	database_open(&d, NULL);
	view = prot_view_get(d.prot);
	ck_assert_uint_eq(prot_count(view), 6);
	for (size_t i = 0; i < 6; i++) {
		ck_assert_int_eq(entry(view, list[i].name)->id, list[i].id);
		ck_assert_int_eq(entry(view, list[i].name)->owner, -204);
		ck_assert_uint_eq(entry(view, list[i].name)->access, list[i].id < 0 ? 0x90 : 0x80);
	}
	prot_max_ids(view, &user, &group);
	ck_assert_int_eq(user, 0);
	ck_assert_int_eq(group, -205);
	ck_assert_ptr_null(prot_by_name(view, "System:anyuser"));
	ck_assert_ptr_null(prot_by_name(view, ""));
	ck_assert_ptr_null(prot_by_id(view, 0));
	ck_assert_ptr_null(prot_by_id(view, INT32_MIN));
	prot_view_put(view);
	for (size_t i = 0; i < 6; i++) {
		refused(prot_remove(d.prot, list[i].id, d.message), PROT_PREDEFINED);
		refused(prot_rename(d.prot, list[i].id, "other", d.message), PROT_PREDEFINED);
		refused(prot_chown(d.prot, list[i].id, -205, d.message), PROT_PREDEFINED);
	}
	database_close(&d);
}
END_TEST

START_TEST(ids)
{
	const struct prot_view *view;
	int32_t user, group;

	database_open(&d, NULL);
	ck_assert_int_eq(database_user(&d, "alice", 0), 1);
	ck_assert_int_eq(database_user(&d, "bob", 1000), 1000);
	ck_assert_int_eq(database_user(&d, "carol", 0), 1001);
	ck_assert_int_eq(database_user(&d, "dave", 500), 500);
	ck_assert_int_eq(database_user(&d, "erin", 0), 1002);
	ck_assert_int_eq(database_group(&d, "staff", 0, 0), -206);
	ck_assert_int_eq(database_group(&d, "team", -300, 1), -300);
	ck_assert_int_eq(database_group(&d, "crew", 0, 0), -301);
	/* The id of anonymous is left out. */
	ck_assert_int_eq(database_user(&d, "frank", 32765), 32765);
	ck_assert_int_eq(database_user(&d, "grace", 0), 32767);
	/* An id is not used again, because ACLs may still have it. */
	well(prot_remove(d.prot, 32767, d.message));
	ck_assert_int_eq(database_user(&d, "heidi", 0), 32768);
	view = prot_view_get(d.prot);
	prot_max_ids(view, &user, &group);
	ck_assert_int_eq(user, 32768);
	ck_assert_int_eq(group, -301);
	prot_view_put(view);
	refused(prot_add_user(d.prot, "x", 1, NULL, d.message), PROT_ID_EXISTS);
	refused(prot_add_user(d.prot, "x", 32766, NULL, d.message), PROT_ID_EXISTS);
	refused(prot_add_user(d.prot, "x", -5, NULL, d.message), PROT_BAD_ID);
	refused(prot_add_group(d.prot, "x", 5, 0, NULL, d.message), PROT_BAD_ID);
	refused(prot_add_group(d.prot, "x", -1, 0, NULL, d.message), PROT_BAD_ID);
	refused(prot_add_group(d.prot, "x", INT32_MIN, 0, NULL, d.message), PROT_BAD_ID);
	refused(prot_add_group(d.prot, "x", -206, 0, NULL, d.message), PROT_ID_EXISTS);
	refused(prot_add_group(d.prot, "x", 0, 77, NULL, d.message), PROT_NO_ENTRY);
	database_user(&d, "last", INT32_MAX);
	refused(prot_add_user(d.prot, "x", 0, NULL, d.message), PROT_NO_IDS);
	database_group(&d, "least", -INT32_MAX, 0);
	refused(prot_add_group(d.prot, "x", 0, 0, NULL, d.message), PROT_NO_IDS);
	database_close(&d);
}
END_TEST

START_TEST(names)
{
	/* U+205F, U+FDD0, U+FDEF, U+13430, U+1343F, U+16FE4 and U+1D159. */
	static const char *const blank[] = {
		"a\xe2\x81\x9f",     "a\xef\xb7\x90",	  "a\xef\xb7\xaf",    "a\xf0\x93\x90\xb0",
		"a\xf0\x93\x90\xbf", "a\xf0\x96\xbf\xa4", "a\xf0\x9d\x85\x99"};
	const struct prot_view *view;

	database_open(&d, NULL);
	database_user(&d, "alice", 1);
	database_user(&d, "Alice", 2);
	database_group(&d, "staff", -206, 0);
	refused(prot_add_user(d.prot, "alice", 0, NULL, d.message), PROT_EXISTS);
	refused(prot_add_group(d.prot, "alice", 0, 0, NULL, d.message), PROT_EXISTS);
	refused(prot_add_user(d.prot, "anonymous", 0, NULL, d.message), PROT_EXISTS);
	refused(prot_add_user(d.prot, "a b", 0, NULL, d.message), PROT_BAD_NAME);
	refused(prot_add_user(d.prot, "x' OR '1'='1:", 0, NULL, d.message), PROT_BAD_NAME);
	/* A soft hyphen, a joiner, a tag, a private character. */
	refused(prot_add_user(d.prot,
			      "ali\xc2\xad"
			      "ce",
			      0, NULL, d.message),
		PROT_BAD_NAME);
	refused(prot_add_group(d.prot, "staf\xcd\x8f", 0, 0, NULL, d.message), PROT_BAD_NAME);
	refused(prot_rename(d.prot, 1, "alice\xf3\xa0\x81\xa1", d.message), PROT_BAD_NAME);
	refused(prot_rename(d.prot, 1, "alice\xee\x80\x80", d.message), PROT_BAD_NAME);
	for (size_t i = 0; i < sizeof(blank) / sizeof(blank[0]); i++)
		refused(prot_add_user(d.prot, blank[i], 0, NULL, d.message), PROT_BAD_NAME);
	refused(prot_rename(d.prot, 1, "staff", d.message), PROT_EXISTS);
	refused(prot_rename(d.prot, 1, "a:b", d.message), PROT_BAD_NAME);
	refused(prot_rename(d.prot, 3, "bob", d.message), PROT_NO_ENTRY);
	well(prot_rename(d.prot, 1, "bob", d.message));
	well(prot_rename(d.prot, 1, "bob", d.message));
	well(prot_rename(d.prot, -206, "bob:staff", d.message));
	view = prot_view_get(d.prot);
	ck_assert_ptr_null(prot_by_name(view, "alice"));
	ck_assert_int_eq(entry(view, "bob")->id, 1);
	ck_assert_int_eq(entry(view, "Alice")->id, 2);
	ck_assert_int_eq(entry(view, "bob:staff")->id, -206);
	prot_view_put(view);
	database_close(&d);
}
END_TEST

START_TEST(memberships)
{
	const struct prot_view *view;
	int32_t list[2];

	database_open(&d, NULL);
	database_user(&d, "alice", 1);
	database_user(&d, "bob", 2);
	database_group(&d, "staff", -206, 0);
	database_group(&d, "team", -150, 2);
	well(prot_add_member(d.prot, -206, 2, d.message));
	well(prot_add_member(d.prot, -206, 1, d.message));
	well(prot_add_member(d.prot, -150, 1, d.message));
	well(prot_add_member(d.prot, -204, 1, d.message));
	ck_assert_str_eq(database_members(&d, -206), "1 2");
	ck_assert_str_eq(database_members(&d, 1), "-206 -204 -150");
	ck_assert_str_eq(database_members(&d, 2), "-206");
	ck_assert_str_eq(database_cps(&d, 1), "-206 -204 -150 -102 -101 1");
	ck_assert_str_eq(database_cps(&d, 2), "-206 -102 -101 2");
	ck_assert_str_eq(database_cps(&d, 32766), "-101 32766");
	ck_assert_str_eq(database_cps(&d, -206), "-206 -102 -101");
	ck_assert_str_eq(database_cps(&d, -101), "-102 -101");
	ck_assert_str_eq(database_cps(&d, 3), "");
	view = prot_view_get(d.prot);
	/* A short list is the beginning, and the count is that of all. */
	ck_assert_uint_eq(prot_cps(view, 1, list, 2), 6);
	ck_assert_int_eq(list[0], -206);
	ck_assert_int_eq(list[1], -204);
	ck_assert_uint_eq(prot_cps(view, 1, NULL, 0), 6);
	ck_assert(prot_is_member(view, 1, -150) && !prot_is_member(view, 2, -150));
	ck_assert(!prot_is_member(view, 3, -150) && !prot_is_member(view, -150, 1));
	prot_view_put(view);
	refused(prot_add_member(d.prot, -206, 1, d.message), PROT_MEMBERSHIP);
	refused(prot_remove_member(d.prot, -150, 2, d.message), PROT_MEMBERSHIP);
	refused(prot_add_member(d.prot, -206, -206, d.message), PROT_CIRCLE);
	refused(prot_add_member(d.prot, 1, 2, d.message), PROT_NOT_GROUP);
	refused(prot_add_member(d.prot, -206, 9, d.message), PROT_NO_ENTRY);
	refused(prot_add_member(d.prot, -999, 1, d.message), PROT_NO_ENTRY);
	refused(prot_add_member(d.prot, -101, 1, d.message), PROT_PREDEFINED);
	refused(prot_add_member(d.prot, -102, 1, d.message), PROT_PREDEFINED);
	refused(prot_add_member(d.prot, -206, 32766, d.message), PROT_PREDEFINED);
	well(prot_remove_member(d.prot, -206, 1, d.message));
	ck_assert_str_eq(database_members(&d, -206), "2");
	ck_assert_str_eq(database_cps(&d, 1), "-204 -150 -102 -101 1");
	/* A removed entry is in no list. */
	well(prot_remove(d.prot, -150, d.message));
	well(prot_remove(d.prot, 2, d.message));
	ck_assert_str_eq(database_members(&d, -206), "");
	ck_assert_str_eq(database_members(&d, 1), "-204");
	refused(prot_remove(d.prot, 2, d.message), PROT_NO_ENTRY);
	database_close(&d);
}
END_TEST

START_TEST(owners)
{
	database_open(&d, NULL);
	database_user(&d, "alice", 1);
	database_group(&d, "staff", -206, 0);
	database_group(&d, "alice:a", -208, 1);
	database_group(&d, "alice:b", -207, 1);
	database_group(&d, "owned-by-group", -209, -206);
	ck_assert_str_eq(database_owned(&d, 1), "-208 -207");
	ck_assert_str_eq(database_owned(&d, -206), "-209");
	ck_assert_str_eq(database_owned(&d, -204), "-206 -205 -204 -203 -102 -101");
	ck_assert_str_eq(database_owned(&d, 7), "");
	well(prot_chown(d.prot, -208, -208, d.message));
	ck_assert_str_eq(database_owned(&d, -208), "-208");
	refused(prot_chown(d.prot, 1, -206, d.message), PROT_NOT_GROUP);
	refused(prot_chown(d.prot, -208, 55, d.message), PROT_NO_ENTRY);
	refused(prot_chown(d.prot, -555, 1, d.message), PROT_NO_ENTRY);
	/* The groups of a removed user belong to the administrators. */
	well(prot_remove(d.prot, 1, d.message));
	ck_assert_str_eq(database_owned(&d, -204), "-207 -206 -205 -204 -203 -102 -101");
	database_close(&d);
}
END_TEST

START_TEST(order)
{
	static const int32_t want[] = {1,    2,	   32766, 40000, -300, -206,
				       -205, -204, -203,  -102,	 -101};
	const struct prot_view *view;

	database_open(&d, NULL);
	database_user(&d, "z", 1);
	database_user(&d, "y", 40000);
	database_user(&d, "x", 2);
	database_group(&d, "b", -206, 0);
	database_group(&d, "a", -300, 0);
	view = prot_view_get(d.prot);
	ck_assert_uint_eq(prot_count(view), 11);
	for (size_t i = 0; i < 11; i++) {
		ck_assert_int_eq(prot_at(view, i)->id, want[i]);
		ck_assert_uint_eq(prot_from(view, want[i]), i);
	}
	ck_assert_uint_eq(prot_from(view, 0), 0);
	ck_assert_uint_eq(prot_from(view, 3), 2);
	ck_assert_uint_eq(prot_from(view, 40001), 4);
	ck_assert_uint_eq(prot_from(view, INT32_MIN), 4);
	ck_assert_uint_eq(prot_from(view, -1), 11);
	prot_view_put(view);
	well(prot_set_access(d.prot, 1, 0x1ff, d.message));
	refused(prot_set_access(d.prot, 3, 0, d.message), PROT_NO_ENTRY);
	view = prot_view_get(d.prot);
	ck_assert_uint_eq(prot_at(view, 0)->access, 0xff);
	prot_view_put(view);
	database_close(&d);
}
END_TEST

START_TEST(transactions)
{
	const struct prot_view *view, *before;
	int32_t id;

	database_open(&d, NULL);
	database_user(&d, "alice", 1);
	before = prot_view_get(d.prot);
	well(prot_begin(d.prot, d.message));
	ck_assert_int_eq(prot_begin(d.prot, d.message), PROT_ERROR);
	well(prot_add_group(d.prot, "staff", 0, 0, &id, d.message));
	well(prot_add_member(d.prot, id, 1, d.message));
	/* A change that fails is undone alone. */
	ck_assert_int_eq(prot_add_user(d.prot, "alice", 0, NULL, d.message), PROT_EXISTS);
	view = prot_view_get(d.prot);
	ck_assert_ptr_null(prot_by_name(view, "staff"));
	prot_view_put(view);
	well(prot_commit(d.prot, d.message));
	ck_assert_str_eq(database_members(&d, 1), "-206");
	/* An old view stays as it was. */
	ck_assert_ptr_null(prot_by_name(before, "staff"));
	view = prot_view_get(d.prot);
	ck_assert_uint_gt(prot_generation(view), prot_generation(before));
	prot_view_put(view);
	prot_view_put(before);
	well(prot_begin(d.prot, d.message));
	well(prot_remove(d.prot, -206, d.message));
	prot_rollback(d.prot);
	ck_assert_str_eq(database_members(&d, 1), "-206");
	database_reopen(&d);
	ck_assert_str_eq(database_members(&d, 1), "-206");
	ck_assert_int_eq(database_group(&d, "next", 0, 0), -207);
	database_close(&d);
}
END_TEST

TEST_MAIN("protection entries", predefined, ids, names, memberships, owners, order, transactions)
