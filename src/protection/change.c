/* SPDX-License-Identifier: BSD-2-Clause */
/* Changes, each a transaction or a part of one. */
#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/held.h"
#include "protection/private.h"

#define USER_QUOTA 20	/* as AFS gives new users */
#define WIRE_END   (-1) /* AFS ends lists of entries with this number */

/* ---- transactions ---- */

/* A mistake of the caller: `code` and a line. */
static int refuse_entry_change(char *message, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
static int refuse_entry_change(char *message, int code, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	vsnprintf(message, PROT_MESSAGE_MAX, format, list);
	va_end(list);
	return code;
}

/* The next views must have what this process has changed. */
static void expire_view(struct prot *prot)
{
	pthread_mutex_lock(&prot->lock);
	prot->several =
		prot->stale && (prot->several || !pthread_equal(prot->changer, pthread_self()));
	prot->stale = true;
	prot->changer = pthread_self();
	atomic_store(&prot->next_look, 0);
	pthread_mutex_unlock(&prot->lock);
}

int prot_begin(struct prot *prot, char *message)
{
	int rc;

	if (pthread_mutex_lock(&prot->db_lock))
		return refuse_entry_change(message, PROT_ERROR,
					   "this thread has begun a transaction already");
	if (prot_run(prot, "BEGIN IMMEDIATE") == SQLITE_OK)
		return 0;
	rc = prot_database_error(prot, "be changed", message);
	pthread_mutex_unlock(&prot->db_lock);
	return rc;
}

void prot_rollback(struct prot *prot)
{
	assert(mutex_is_held(&prot->db_lock));
	prot_run(prot, "ROLLBACK");
	pthread_mutex_unlock(&prot->db_lock);
}

int prot_commit(struct prot *prot, char *message)
{
	int rc;

	assert(mutex_is_held(&prot->db_lock));
	if (prot_run(prot, "COMMIT") == SQLITE_OK) {
		prot_ids_write(prot);
		expire_view(prot);
		pthread_mutex_unlock(&prot->db_lock);
		return 0;
	}
	rc = prot_database_error(prot, "be changed", message);
	prot_rollback(prot);
	return rc;
}

/* Begin a change, inside the transaction of this thread if it has one (*inside). */
static int begin_entry_change(struct prot *prot, bool *inside, char *message)
{
	*inside = pthread_mutex_lock(&prot->db_lock) == EDEADLK;
	if (!*inside) {
		pthread_mutex_unlock(&prot->db_lock);
		return prot_begin(prot, message);
	}
	if (prot_run(prot, "SAVEPOINT change") == SQLITE_OK)
		return 0;
	return prot_database_error(prot, "be changed", message);
}

/* End a change: keep it if rc is 0, otherwise undo it. Returns rc, or why it cannot be kept. */
static int end_entry_change(struct prot *prot, bool inside, int rc, char *message)
{
	assert(mutex_is_held(&prot->db_lock));
	if (!inside && rc == 0)
		return prot_commit(prot, message);
	if (!inside) {
		prot_rollback(prot);
		return rc;
	}
	if (rc)
		prot_run(prot, "ROLLBACK TO change");
	if (prot_run(prot, "RELEASE change") == SQLITE_OK || rc)
		return rc;
	return prot_database_error(prot, "be changed", message);
}

/* ---- parts of changes ---- */

static int report_failed_change(struct prot *prot, char *message)
{
	return prot_database_error(prot, "be changed", message);
}

/* Run a statement without a result, with up to three integers as parameters. */
static int run_change(struct prot *prot, const char *sql, int count, int64_t a, int64_t b,
		      char *message)
{
	const int64_t parameters[] = {a, b};

	return prot_query(prot, sql, parameters, count, NULL, NULL)
		       ? report_failed_change(prot, message)
		       : 0;
}

/* In a transaction: the name of an entry, or its id if there is none or it cannot be read. Returns name. */
static const char *read_entry_name(struct prot *prot, int32_t id, char name[PROT_NAME_MAX + 1])
{
	sqlite3_stmt *row = NULL;

	snprintf(name, PROT_NAME_MAX + 1, "%d", (int)id);
	if (sqlite3_prepare_v2(prot->db, "SELECT name FROM entry WHERE id = ?", -1, &row, NULL) ==
		    SQLITE_OK &&
	    sqlite3_bind_int64(row, 1, id) == SQLITE_OK && sqlite3_step(row) == SQLITE_ROW &&
	    sqlite3_column_text(row, 0))
		snprintf(name, PROT_NAME_MAX + 1, "%s", (const char *)sqlite3_column_text(row, 0));
	sqlite3_finalize(row);
	return name;
}

/* Whether there is an entry with this id; its kind follows from the sign. */
static int need_entry(struct prot *prot, int32_t id, char *message)
{
	const int64_t parameter = id;
	int64_t found = 0;

	if (prot_query(prot, "SELECT id FROM entry WHERE id = ?", &parameter, 1, NULL, &found))
		return report_failed_change(prot, message);
	return found ? 0
		     : refuse_entry_change(message, PROT_NO_ENTRY, "no user or group has the id %d",
					   id);
}

static int need_free_name(struct prot *prot, const char *name, int32_t except, char *message)
{
	int64_t found = 0;

	if (prot_query(prot, "SELECT id FROM entry WHERE name = ?", NULL, 0, name, &found))
		return report_failed_change(prot, message);
	if (!found || found == except)
		return 0;
	return refuse_entry_change(message, PROT_EXISTS, "%s exists already, with the id %d", name,
				   (int)found);
}

/* Machines have rules of their own, and what looks like one must be one. */
static bool is_valid_address(const char *name, bool group, const char **why)
{
	uint32_t address;

	*why = "a name of digits and dots is the IPv4 address of a machine, for example 10.1.0.0";
	if (strspn(name, "0123456789.") < strlen(name) || !strchr(name, '.'))
		return true;
	if (!prot_name_is_machine(name, &address))
		return false;
	if (group) {
		*why = "this is a machine: add it with adduser, and to a group of another name";
		return false;
	}
	*why = "this would be every machine: give the rights to system:anyuser";
	return address != 0;
}

static int need_valid_name(const char *name, bool group, char *message)
{
	const char *why;

	if (prot_name_valid(name, group, &why) && is_valid_address(name, group, &why)) {
		if (prot_name_visible(name))
			return 0;
		why = "a name has no invisible characters";
	}
	return refuse_entry_change(message, PROT_BAD_NAME, "\"%.80s\": %s", name, why);
}

static bool is_predefined(int32_t id)
{
	return id == PROT_ANONYMOUS || id == PROT_ANYUSER || id == PROT_AUTHUSER ||
	       (id <= PROT_PTSVIEWERS && id >= PROT_BACKUP);
}

static int need_own(struct prot *prot, int32_t id, const char *what, char *message)
{
	char name[PROT_NAME_MAX + 1];

	if (!is_predefined(id))
		return 0;
	return refuse_entry_change(message, PROT_PREDEFINED, "the predefined entry %s cannot be %s",
				   read_entry_name(prot, id, name), what);
}

/* The next id that was never used. */
static int next_id(struct prot *prot, bool group, int32_t *id, char *message)
{
	int64_t last = 0;

	if (prot_query(prot, group ? "SELECT grp FROM last" : "SELECT user FROM last", NULL, 0,
		       NULL, &last))
		return report_failed_change(prot, message);
	do
		last += group ? -1 : 1;
	while (last == PROT_ANONYMOUS);
	if (last > INT32_MAX || last < -INT32_MAX)
		return refuse_entry_change(
			message, PROT_NO_IDS,
			"the highest possible id is in use: choose a free one with --id");
	*id = (int32_t)last;
	return 0;
}

/* The id that was asked for. */
static int check_id(struct prot *prot, bool group, int32_t id, char *message)
{
	const int64_t parameter = id;
	int64_t found = 0;

	if (group ? id >= 0 || id == WIRE_END || id < -INT32_MAX : id <= 0)
		return refuse_entry_change(
			message, PROT_BAD_ID,
			group ? "%d cannot be the id of a group: they are less than -1"
			      : "%d cannot be the id of a user: they are above 0",
			id);
	if (prot_query(prot, "SELECT id FROM entry WHERE id = ?", &parameter, 1, NULL, &found))
		return report_failed_change(prot, message);
	return found ? refuse_entry_change(message, PROT_ID_EXISTS, "the id %d is in use", id) : 0;
}

/* ---- changes ---- */

static int insert_entry(struct prot *prot, const char *name, int32_t id, int32_t owner,
			char *message)
{
	const int64_t parameters[] = {id, owner, PROT_ADMINISTRATORS,
				      id < 0 ? PROT_ACCESS_GROUP : PROT_ACCESS_USER,
				      id < 0 ? 0 : USER_QUOTA};

	if (prot_query(prot,
		       "INSERT INTO entry(id, owner, creator, access, quota, name) "
		       "VALUES(?, ?, ?, ?, ?, ?)",
		       parameters, 5, name, NULL))
		return report_failed_change(prot, message);
	return run_change(prot,
			  id < 0 ? "UPDATE last SET grp = min(grp, ?)"
				 : "UPDATE last SET user = max(user, ?)",
			  1, id, 0, message);
}

static int add_new_entry(struct prot *prot, const char *name, bool group, int32_t id, int32_t owner,
			 int32_t *given, char *message)
{
	bool inside;
	int rc = need_valid_name(name, group, message);

	if (rc)
		return rc;
	rc = begin_entry_change(prot, &inside, message);
	if (rc)
		return rc;
	rc = need_free_name(prot, name, 0, message);
	if (rc)
		goto out;
	rc = id ? check_id(prot, group, id, message) : next_id(prot, group, &id, message);
	if (rc)
		goto out;
	rc = need_entry(prot, owner, message) ?: insert_entry(prot, name, id, owner, message);
out:
	rc = end_entry_change(prot, inside, rc, message);
	if (!rc && given)
		*given = id;
	return rc;
}

int prot_add_user(struct prot *prot, const char *name, int32_t id, int32_t *given, char *message)
{
	return add_new_entry(prot, name, false, id, PROT_ADMINISTRATORS, given, message);
}

int prot_add_group(struct prot *prot, const char *name, int32_t id, int32_t owner, int32_t *given,
		   char *message)
{
	return add_new_entry(prot, name, true, id, owner ? owner : PROT_ADMINISTRATORS, given,
			     message);
}

static bool is_machine(const char *name)
{
	uint32_t address;

	return prot_name_is_machine(name, &address);
}

/* *is: whether the entry is a machine. It exists. */
static int ask_machine(struct prot *prot, int32_t id, bool *is, char *message)
{
	const int64_t parameter = id;
	sqlite3_stmt *row = NULL;
	int rc =
		sqlite3_prepare_v2(prot->db, "SELECT name FROM entry WHERE id = ?", -1, &row, NULL);

	*is = false;
	if (rc == SQLITE_OK)
		rc = sqlite3_bind_int64(row, 1, parameter);
	if (rc == SQLITE_OK && (rc = sqlite3_step(row)) == SQLITE_ROW) {
		const char *name = (const char *)sqlite3_column_text(row, 0);

		*is = id > 0 && name && is_machine(name);
		rc = SQLITE_DONE;
	}
	sqlite3_finalize(row);
	return rc == SQLITE_DONE ? 0 : report_failed_change(prot, message);
}

/* A user's groups and rights are not meant for everybody on a machine. */
static int need_same_kind(struct prot *prot, int32_t id, const char *name, char *message)
{
	bool machine;
	int rc = ask_machine(prot, id, &machine, message);

	if (rc || id < 0 || machine == is_machine(name))
		return rc;
	return refuse_entry_change(
		message, PROT_BAD_NAME,
		"\"%.80s\": a user cannot become a machine, nor a machine a user: add another "
		"entry",
		name);
}

int prot_rename(struct prot *prot, int32_t id, const char *name, char *message)
{
	const int64_t parameter = id;
	bool inside;
	int rc = begin_entry_change(prot, &inside, message);

	if (rc)
		return rc;
	rc = need_own(prot, id, "renamed", message)
		?: need_valid_name(name, id < 0, message)
		?: need_entry(prot, id, message)
		?: need_free_name(prot, name, id, message)
		?: need_same_kind(prot, id, name, message);
	if (rc)
		goto out;
	if (prot_query(prot, "UPDATE entry SET name = ?2 WHERE id = ?1", &parameter, 1, name, NULL))
		rc = report_failed_change(prot, message);
out:
	return end_entry_change(prot, inside, rc, message);
}

int prot_remove(struct prot *prot, int32_t id, char *message)
{
	bool inside;
	int rc = begin_entry_change(prot, &inside, message);

	if (rc)
		return rc;
	rc = need_own(prot, id, "removed", message)
		?: need_entry(prot, id, message)
		?: run_change(prot, "UPDATE entry SET owner = ?2 WHERE owner = ?1", 2, id,
			      PROT_ADMINISTRATORS, message)
		?: run_change(prot, "DELETE FROM entry WHERE id = ?", 1, id, 0, message);
	return end_entry_change(prot, inside, rc, message);
}

static int need_group(struct prot *prot, int32_t id, char *message)
{
	char name[PROT_NAME_MAX + 1];

	if (id >= 0)
		return refuse_entry_change(message, PROT_NOT_GROUP, "%s is a user, not a group",
					   read_entry_name(prot, id, name));
	return need_entry(prot, id, message);
}

int prot_chown(struct prot *prot, int32_t group, int32_t owner, char *message)
{
	bool inside;
	int rc = begin_entry_change(prot, &inside, message);

	if (rc)
		return rc;
	rc = need_own(prot, group, "given to another owner", message)
		?: need_group(prot, group, message)
		?: need_entry(prot, owner, message)
		?: run_change(prot, "UPDATE entry SET owner = ?2 WHERE id = ?1", 2, group, owner,
			      message);
	return end_entry_change(prot, inside, rc, message);
}

int prot_set_access(struct prot *prot, int32_t id, uint32_t access, char *message)
{
	bool inside;
	int rc = begin_entry_change(prot, &inside, message);

	if (rc)
		return rc;
	rc = need_entry(prot, id, message)
		     ?: run_change(prot, "UPDATE entry SET access = ?2 WHERE id = ?1", 2, id,
				   access & PROT_ACCESS_ALL, message);
	return end_entry_change(prot, inside, rc, message);
}

/* Whether these may be changed. */
static int need_listed_members(struct prot *prot, int32_t group, int32_t member, char *message)
{
	char name[PROT_NAME_MAX + 1];

	if (group == PROT_ANYUSER || group == PROT_AUTHUSER)
		return refuse_entry_change(
			message, PROT_PREDEFINED,
			"the members of %s cannot be changed: its name says who they are",
			read_entry_name(prot, group, name));
	if (member == PROT_ANONYMOUS || member == PROT_ANYUSER || member == PROT_AUTHUSER)
		return refuse_entry_change(message, PROT_PREDEFINED,
					   "%s is in no group: give the rights to %s",
					   read_entry_name(prot, member, name),
					   member == PROT_ANONYMOUS ? "system:anyuser" : name);
	if (group == member)
		return refuse_entry_change(message, PROT_CIRCLE, "%s cannot be a member of itself",
					   read_entry_name(prot, group, name));
	return 0;
}

/* Whether the group may have this member, and whether it has. */
static int check_membership(struct prot *prot, int32_t group, int32_t member, bool *is,
			    char *message)
{
	const int64_t parameters[] = {group, member};
	int64_t found = 0;
	int rc = need_group(prot, group, message)
		?: need_entry(prot, member, message)
		?: need_listed_members(prot, group, member, message);

	if (!rc && prot_query(prot,
			      member < 0 ? "SELECT grp FROM nested WHERE grp = ? AND member = ?"
					 : "SELECT grp FROM member WHERE grp = ? AND user = ?",
			      parameters, 2, NULL, &found))
		rc = report_failed_change(prot, message);
	*is = found != 0;
	return rc;
}

/* All callers on the machine, also without a token, would be administrators. */
static int refuse_machine(struct prot *prot, int32_t user, char *message)
{
	bool machine;
	int rc = ask_machine(prot, user, &machine, message);

	if (rc || !machine)
		return rc;
	return refuse_entry_change(
		message, PROT_PREDEFINED,
		"a machine cannot be an administrator: everybody there would be one");
}

static int add_nested(struct prot *prot, int32_t group, int32_t member, char *message)
{
	const int64_t parameter = member;
	char name[PROT_NAME_MAX + 1];
	int64_t count = 0;

	if (prot_query(prot, "SELECT count(*) FROM nested WHERE member = ?", &parameter, 1, NULL,
		       &count))
		return report_failed_change(prot, message);
	if (count >= PROT_SUPERS_MAX)
		return refuse_entry_change(message, PROT_TOO_NESTED,
					   "%s is in %d groups, and may not be in more",
					   read_entry_name(prot, member, name), (int)count);
	return prot_raise_format(prot, message)
		       ?: run_change(prot, "INSERT INTO nested(grp, member) VALUES(?, ?)", 2, group,
				     member, message);
}

static int insert_member(struct prot *prot, int32_t group, int32_t member, char *message)
{
	int rc = group == PROT_ADMINISTRATORS ? refuse_machine(prot, member, message) : 0;

	if (rc || member < 0)
		return rc ? rc : add_nested(prot, group, member, message);
	return run_change(prot, "INSERT INTO member(grp, user) VALUES(?, ?)", 2, group, member,
			  message);
}

static int delete_member(struct prot *prot, int32_t group, int32_t member, char *message)
{
	return run_change(prot,
			  member < 0 ? "DELETE FROM nested WHERE grp = ? AND member = ?"
				     : "DELETE FROM member WHERE grp = ? AND user = ?",
			  2, group, member, message);
}

static int change_member(struct prot *prot, int32_t group, int32_t member, bool add, char *message)
{
	bool inside, is = false;
	char names[2][PROT_NAME_MAX + 1];
	int rc = begin_entry_change(prot, &inside, message);

	if (rc)
		return rc;
	rc = check_membership(prot, group, member, &is, message);
	if (rc)
		goto out;
	if (is == add)
		rc = refuse_entry_change(message, PROT_MEMBERSHIP,
					 add ? "%s is a member of %s already"
					     : "%s is not a member of %s",
					 read_entry_name(prot, member, names[0]),
					 read_entry_name(prot, group, names[1]));
	else
		rc = add ? insert_member(prot, group, member, message)
			 : delete_member(prot, group, member, message);
out:
	return end_entry_change(prot, inside, rc, message);
}

int prot_add_member(struct prot *prot, int32_t group, int32_t member, char *message)
{
	return change_member(prot, group, member, true, message);
}

int prot_remove_member(struct prot *prot, int32_t group, int32_t member, char *message)
{
	return change_member(prot, group, member, false, message);
}
