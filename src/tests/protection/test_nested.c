/* SPDX-License-Identifier: BSD-2-Clause */
/* Groups in groups: members by way of several groups, circles, and the format of the file. The answers of OpenAFS's server: interop pts. */
#include <sqlite3.h>

#include "protection/private.h"
#include "protection/request.h"
#include "tests/protection/database.h"

#define well(call) ck_assert_msg((call) == 0, "%s", d.message)
#define FIRST	   (-300) /* of a chain of groups */

static struct database d;

static void nest(int32_t member, int32_t group)
{
	well(prot_add_member(d.prot, group, member, d.message));
}

static void unnest(int32_t member, int32_t group)
{
	well(prot_remove_member(d.prot, group, member, d.message));
}

static bool is_member(int32_t member, int32_t group)
{
	const struct prot_view *view = prot_view_get(d.prot);
	bool is = prot_is_member(view, member, group);

	prot_view_put(view);
	return is;
}

static const char *supers(int32_t group)
{
	static char text[512];
	const struct prot_view *view = prot_view_get(d.prot);
	const struct prot_entry *entry = prot_by_id(view, group);
	size_t at = 0;

	ck_assert_ptr_nonnull(entry);
	text[0] = 0;
	for (uint32_t i = 0; i < entry->super_count; i++)
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%d", i ? " " : "",
				       entry->supers[i]);
	prot_view_put(view);
	return text;
}

/* Alice is in the first of `count` groups, each of which is in the next one. */
static void open_chain(int count)
{
	char name[16];

	database_open(&d, NULL);
	database_user(&d, "alice", 1);
	database_user(&d, "bob", 2);
	for (int i = 0; i < count; i++) {
		snprintf(name, sizeof(name), "chain%d", i);
		database_group(&d, name, FIRST - i, 0);
		nest(i ? FIRST - i + 1 : 1, FIRST - i);
	}
}

START_TEST(members)
{
	open_chain(3);
	ck_assert_str_eq(database_members(&d, -301), "-300");
	ck_assert_str_eq(supers(-300), "-301");
	ck_assert_str_eq(database_cps(&d, 1), "-302 -301 -300 -102 -101 1");
	/* Groups come before users, in any order of changes. */
	nest(2, -302);
	nest(-300, -302);
	ck_assert_str_eq(database_members(&d, -302), "-301 -300 2");
	ck_assert_str_eq(supers(-300), "-302 -301");
	ck_assert_str_eq(database_members(&d, 1), "-300");
	database_reopen(&d);
	ck_assert_str_eq(database_cps(&d, 1), "-302 -301 -300 -102 -101 1");
	ck_assert(is_member(1, -302) && is_member(-300, -302) && !is_member(-302, -300));
	/* A removed group takes its memberships with it. */
	well(prot_remove(d.prot, -301, d.message));
	ck_assert_str_eq(supers(-300), "-302");
	ck_assert_str_eq(database_members(&d, -302), "-300 2");
	unnest(-300, -302);
	ck_assert_str_eq(database_cps(&d, 1), "-300 -102 -101 1");
	ck_assert(!is_member(1, -302));
	database_close(&d);
}
END_TEST

START_TEST(depth)
{
	open_chain(8);
	ck_assert(is_member(1, FIRST - 4) && !is_member(1, FIRST - 5));
	ck_assert(is_member(FIRST, FIRST - 5) && !is_member(FIRST, FIRST - 6));
	ck_assert_str_eq(database_cps(&d, 1), "-305 -304 -303 -302 -301 -300 -102 -101 1");
	/* A shorter way. */
	nest(FIRST, FIRST - 6);
	ck_assert(is_member(1, FIRST - 7));
	database_close(&d);
}
END_TEST

START_TEST(circles)
{
	open_chain(3);
	nest(-302, -300);
	ck_assert_str_eq(database_cps(&d, 1), "-302 -301 -300 -102 -101 1");
	ck_assert(is_member(-301, -300) && is_member(-300, -300));
	ck_assert_int_eq(prot_add_member(d.prot, -300, -300, d.message), PROT_CIRCLE);
	database_reopen(&d);
	ck_assert_str_eq(database_cps(&d, 1), "-302 -301 -300 -102 -101 1");
	database_close(&d);
}
END_TEST

START_TEST(refusals)
{
	char name[16];

	open_chain(2);
	ck_assert_int_eq(prot_add_member(d.prot, -301, -300, d.message), PROT_MEMBERSHIP);
	ck_assert_int_eq(prot_remove_member(d.prot, -300, -301, d.message), PROT_MEMBERSHIP);
	ck_assert_int_eq(prot_add_member(d.prot, -301, -999, d.message), PROT_NO_ENTRY);
	ck_assert_int_eq(prot_add_member(d.prot, 1, -300, d.message), PROT_NOT_GROUP);
	ck_assert_int_eq(prot_add_member(d.prot, PROT_ANYUSER, -300, d.message), PROT_PREDEFINED);
	/* They would be members of administrators, or seem to be. */
	ck_assert_int_eq(prot_add_member(d.prot, -300, PROT_ANYUSER, d.message), PROT_PREDEFINED);
	ck_assert_int_eq(prot_add_member(d.prot, -300, PROT_AUTHUSER, d.message), PROT_PREDEFINED);
	nest(PROT_ADMINISTRATORS, -300);
	for (int i = 1; i < PROT_SUPERS_MAX; i++) {
		snprintf(name, sizeof(name), "wide%d", i);
		nest(-300, database_group(&d, name, 0, 0));
	}
	ck_assert_int_eq(prot_add_member(d.prot, PROT_BACKUP, -300, d.message), PROT_TOO_NESTED);
	database_close(&d);
}
END_TEST

/* A machine gives what its own groups have, and never makes administrators. */
START_TEST(machines)
{
	open_chain(2);
	nest(database_user(&d, "10.1.2.3", 9), -300);
	nest(-301, PROT_ADMINISTRATORS);
	ck_assert_str_eq(database_host_cps(&d, 0x0a010203), "-300");
	database_close(&d);
}
END_TEST

/* Rights in the database are judged in the transaction. */
START_TEST(rights)
{
	const struct prot_actor alice = {.id = 1}, bob = {.id = 2};
	int32_t given;

	open_chain(6);
	database_group(&d, "owned", -400, FIRST - 4);
	well(prot_request_member(d.prot, &alice, -400, 2, true, d.message));
	ck_assert_int_eq(prot_request_member(d.prot, &bob, -400, 1, true, d.message), PROT_REFUSED);
	well(prot_chown(d.prot, -400, FIRST - 5, d.message));
	ck_assert_int_eq(prot_request_member(d.prot, &alice, -400, 2, false, d.message),
			 PROT_REFUSED);
	ck_assert_int_eq(prot_request_new(d.prot, &alice, "carol", false, 0, 0, &given, d.message),
			 PROT_REFUSED);
	nest(FIRST, PROT_ADMINISTRATORS);
	well(prot_request_new(d.prot, &alice, "carol", false, 0, 0, &given, d.message));
	database_close(&d);
}
END_TEST

static int number_in_file(const char *sql)
{
	sqlite3_stmt *row;
	sqlite3 *db;
	int number;

	ck_assert_int_eq(sqlite3_open_v2(d.file, &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
	ck_assert_int_eq(sqlite3_prepare_v2(db, sql, -1, &row, NULL), SQLITE_OK);
	number = sqlite3_step(row) == SQLITE_ROW ? sqlite3_column_int(row, 0) : -1;
	ck_assert_int_eq(sqlite3_finalize(row), SQLITE_OK);
	ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
	return number;
}

/* A file of the first format is used as it is. It gets the next one with the first group in a group. */
START_TEST(format)
{
	open_chain(1);
	database_group(&d, "outer", -400, 0);
	database_shut(&d);
	ck_assert_int_eq(number_in_file("PRAGMA user_version"), 1);
	number_in_file("DROP TABLE nested");
	database_reopen(&d);
	ck_assert_str_eq(database_cps(&d, 1), "-300 -102 -101 1");
	ck_assert_int_eq(number_in_file("PRAGMA user_version"), 1);
	/* What is not committed changes nothing. */
	well(prot_begin(d.prot, d.message));
	nest(-300, -400);
	prot_rollback(d.prot);
	ck_assert_int_eq(number_in_file("PRAGMA user_version"), 1);
	nest(-300, -400);
	ck_assert_int_eq(number_in_file("PRAGMA user_version"), 2);
	database_reopen(&d);
	ck_assert_str_eq(database_cps(&d, 1), "-400 -300 -102 -101 1");
	database_close(&d);
}
END_TEST

TEST_MAIN("groups in groups", members, depth, circles, refusals, machines, rights, format)
