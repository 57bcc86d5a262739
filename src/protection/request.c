/* SPDX-License-Identifier: BSD-2-Clause */
/* Changes that callers ask for: their rights. The changes themselves are those of change.c. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "common/failure.h"
#include "common/held.h"
#include "common/sql.h"
#include "protection/private.h"
#include "protection/request.h"

/* An entry as the transaction sees it. */
struct row {
	int32_t id, owner, creator, quota;
	uint32_t access;
	char name[PROT_NAME_MAX + 1];
};

/* A request in its transaction. */
struct request {
	struct prot *prot;
	int32_t id; /* of the caller */
	bool administrator;
	bool begun; /* the transaction */
	char *message;
};

static int refuse_without_right(const struct request *request, const char *what)
{
	return fail_with(PROT_REFUSED, request->message, PROT_MESSAGE_MAX,
			 "user %d has no right to %s", (int)request->id, what);
}

static int fail_request(const struct request *request)
{
	return prot_database_error(request->prot, "be changed", request->message);
}

static bool take_entry_row(void *arg, sqlite3_stmt *from)
{
	struct row *row = arg;
	const char *name = (const char *)sqlite3_column_text(from, 5);

	*row = (struct row){.id = sqlite3_column_int(from, 0),
			    .owner = sqlite3_column_int(from, 1),
			    .creator = sqlite3_column_int(from, 2),
			    .access = (uint32_t)sqlite3_column_int(from, 3),
			    .quota = sqlite3_column_int(from, 4)};
	snprintf(row->name, sizeof(row->name), "%s", name ? name : "");
	return false;
}

/* PROT_NO_ENTRY: there is no such entry. */
static int read_row(const struct request *request, int32_t id, struct row *row)
{
	const int64_t parameter = id;

	row->id = 0;
	if (sql_query(request->prot->db,
		      "SELECT id, owner, creator, access, quota, name FROM entry WHERE id = ?",
		      &parameter, 1, NULL, take_entry_row, row))
		return fail_request(request);
	return row->id ? 0
		       : fail_with(PROT_NO_ENTRY, request->message, PROT_MESSAGE_MAX,
				   "no user or group has the id %d", (int)id);
}

/* As prot_is_member(), in the transaction. Each group is looked at once in a step. */
static int ask_membership(const struct request *request, int32_t group, bool *member)
{
	static const char sql[] =
		"WITH RECURSIVE up(grp, step) AS (SELECT grp, 1 FROM member WHERE user = ?2"
		" UNION SELECT nested.grp, step + 1 FROM up JOIN nested ON nested.member = up.grp"
		" WHERE step < ?3) SELECT grp FROM up WHERE grp = ?1 LIMIT 1";
	const int64_t parameters[] = {group, request->id, PROT_DEPTH};
	int64_t found = 0;

	if (prot_query(request->prot, sql, parameters, 3, NULL, &found))
		return fail_request(request);
	*member = found != 0;
	return 0;
}

/* Followed by end_asked_change() in any case. */
static int begin_asked_change(struct request *request, struct prot *prot,
			      const struct prot_actor *actor, char *message)
{
	bool member = false;
	int rc;

	*request = (struct request){.prot = prot,
				    .id = actor->id,
				    .administrator = actor->administrator,
				    .message = message};
	if (!actor->administrator && actor->id == PROT_ANONYMOUS)
		return refuse_without_right(request, "change anything");
	rc = prot_begin(prot, message);
	if (rc)
		return rc;
	rc = ask_membership(request, PROT_ADMINISTRATORS, &member);
	if (rc)
		prot_rollback(prot);
	request->begun = !rc;
	request->administrator |= member;
	return rc;
}

/* The same for a change of an entry, which is read. */
static int begin_row_change(struct request *request, struct prot *prot,
			    const struct prot_actor *actor, int32_t id, struct row *row,
			    char *message)
{
	int rc = begin_asked_change(request, prot, actor, message);

	return rc ? rc : read_row(request, id, row);
}

/* `rc`: that of the change, or of its begin. */
static int end_asked_change(const struct request *request, int rc)
{
	if (!request->begun)
		return rc;
	assert(mutex_is_held(&request->prot->db_lock));
	if (!rc)
		return prot_commit(request->prot, request->message);
	prot_rollback(request->prot);
	return rc;
}

static int run_update(const struct request *request, const char *sql, int64_t a, int64_t b)
{
	const int64_t parameters[] = {a, b};

	return prot_query(request->prot, sql, parameters, 2, NULL, NULL) ? fail_request(request)
									 : 0;
}

/* Whether the caller has the rights of an owner; a user has not those of one of itself. */
static int ask_ownership(const struct request *request, const struct row *row, bool *owner)
{
	*owner = request->administrator || row->owner == request->id;
	return *owner || row->owner > 0 ? 0 : ask_membership(request, row->owner, owner);
}

static int need_ownership(const struct request *request, const struct row *row, const char *what)
{
	bool owner = false;
	int rc = ask_ownership(request, row, &owner);

	return rc || owner ? rc : refuse_without_right(request, what);
}

static int need_administrator(const struct request *request, const char *what)
{
	return request->administrator ? 0 : refuse_without_right(request, what);
}

/* -- names -- */

/* The part before the ':', or all of it. */
static size_t owner_part(const char *name)
{
	return strcspn(name, ":");
}

/* Names and owners that look like those of the system are for administrators. */
static int need_common_owner(const struct request *request, const struct row *owner)
{
	return owner_part(owner->name) != strlen("system") ||
			       memcmp(owner->name, "system", strlen("system"))
		       ? 0
		       : need_administrator(request, "give a group to the system");
}

/* A group "alice:friends" belongs to alice. Only administrators give names without an owner. */
static int need_owners_name(const struct request *request, const char *name,
			    const struct row *owner)
{
	size_t n = owner_part(name);

	if (!name[n] && request->administrator)
		return 0;
	if (name[n] && n == owner_part(owner->name) && memcmp(name, owner->name, n) == 0)
		return 0;
	return fail_with(PROT_BAD_NAME, request->message, PROT_MESSAGE_MAX,
			 "\"%.80s\": the group's name must begin with \"%.*s:\"", name,
			 (int)owner_part(owner->name), owner->name);
}

/* -- requests -- */

/* The caller pays for the group. */
static int pay_for_group(const struct request *request)
{
	struct row row;
	int rc;

	if (request->administrator)
		return 0;
	rc = read_row(request, request->id, &row);
	if (rc)
		return rc;
	if (row.quota < 1)
		return fail_with(PROT_NO_MORE, request->message, PROT_MESSAGE_MAX,
				 "user %.80s may not make more groups", row.name);
	return run_update(request, "UPDATE entry SET quota = ?2 WHERE id = ?1", row.id,
			  row.quota - 1);
}

static int add_requested_group(const struct request *request, const char *name, int32_t id,
			       int32_t owner, int32_t *given)
{
	struct row row;
	int rc = read_row(request, owner, &row);

	if (!rc)
		rc = need_common_owner(request, &row);
	if (!rc)
		rc = need_owners_name(request, name, &row);
	if (!rc)
		rc = pay_for_group(request);
	return rc ? rc : prot_add_group(request->prot, name, id, owner, given, request->message);
}

int prot_request_new(struct prot *prot, const struct prot_actor *actor, const char *name,
		     bool group, int32_t id, int32_t owner, int32_t *given, char *message)
{
	struct request request;
	int32_t self = actor->id == PROT_ANONYMOUS ? PROT_ADMINISTRATORS : actor->id;
	int rc = begin_asked_change(&request, prot, actor, message);

	if (!rc && (!group || id))
		rc = need_administrator(&request, "make users, or to choose ids");
	if (!rc)
		rc = group ? add_requested_group(&request, name, id, owner ? owner : self, given)
			   : prot_add_user(prot, name, id, given, message);
	if (!rc)
		rc = run_update(&request, "UPDATE entry SET creator = ?2 WHERE id = ?1", *given,
				self);
	return end_asked_change(&request, rc);
}

/* Members and others may do what the access flags of the group say. */
static int need_member_right(const struct request *request, const struct row *group, bool add)
{
	uint32_t by_members = add ? PROT_ADD_MEM : PROT_REMOVE_MEM;
	bool may = false;
	int rc = ask_ownership(request, group, &may);

	if (!rc && !may && add && group->access & PROT_ADD_ANY)
		may = true;
	if (!rc && !may && group->access & by_members)
		rc = ask_membership(request, group->id, &may);
	return rc || may ? rc : refuse_without_right(request, "change the members of this group");
}

int prot_request_member(struct prot *prot, const struct prot_actor *actor, int32_t group,
			int32_t member, bool add, char *message)
{
	struct request request;
	struct row row;
	int rc = begin_row_change(&request, prot, actor, group, &row, message);

	if (!rc)
		rc = need_member_right(&request, &row, add);
	if (!rc)
		rc = add ? prot_add_member(prot, group, member, message)
			 : prot_remove_member(prot, group, member, message);
	return end_asked_change(&request, rc);
}

int prot_request_remove(struct prot *prot, const struct prot_actor *actor, int32_t id,
			char *message)
{
	struct request request;
	struct row row;
	int rc = begin_row_change(&request, prot, actor, id, &row, message);

	if (!rc)
		rc = id > 0 ? need_administrator(&request, "remove users")
			    : need_ownership(&request, &row, "remove this group");
	if (!rc)
		rc = prot_remove(prot, id, message);
	if (!rc && id < 0)
		rc = run_update(&request,
				"UPDATE entry SET quota = quota + 1 WHERE id = ?1 AND id > 0 "
				"AND quota < ?2",
				row.creator, INT32_MAX);
	return end_asked_change(&request, rc);
}

int prot_request_rename(struct prot *prot, const struct prot_actor *actor, int32_t id,
			const char *name, char *message)
{
	struct request request;
	struct row row, owner;
	int rc = begin_row_change(&request, prot, actor, id, &row, message);

	if (!rc)
		rc = id > 0 ? need_administrator(&request, "rename users")
			    : need_ownership(&request, &row, "rename this group");
	if (!rc && id < 0) {
		rc = read_row(&request, row.owner, &owner);
		/* rxpt makes other names. */
		if (!rc)
			rc = need_owners_name(&request, name, &owner);
	}
	if (!rc)
		rc = prot_rename(prot, id, name, message);
	return end_asked_change(&request, rc);
}

/* "alice:friends" of bob is "bob:friends". */
static int rename_for_owner(const struct request *request, const struct row *group,
			    const struct row *owner)
{
	const char *rest = group->name + owner_part(group->name);
	char name[2 * PROT_NAME_MAX + 2];

	if (!*rest)
		return 0;
	snprintf(name, sizeof(name), "%.*s%s", (int)owner_part(owner->name), owner->name, rest);
	return strcmp(name, group->name)
		       ? prot_rename(request->prot, group->id, name, request->message)
		       : 0;
}

int prot_request_chown(struct prot *prot, const struct prot_actor *actor, int32_t group,
		       int32_t owner, char *message)
{
	struct request request;
	struct row row, new_owner;
	int rc = begin_row_change(&request, prot, actor, group, &row, message);

	if (!rc && group > 0)
		rc = refuse_without_right(&request, "give users an owner");
	if (!rc)
		rc = need_ownership(&request, &row, "give this group to another owner");
	if (!rc)
		rc = read_row(&request, owner, &new_owner);
	if (!rc)
		rc = need_common_owner(&request, &new_owner);
	if (!rc)
		rc = prot_chown(prot, group, owner, message);
	if (!rc)
		rc = rename_for_owner(&request, &row, &new_owner);
	return end_asked_change(&request, rc);
}

int prot_request_fields(struct prot *prot, const struct prot_actor *actor, int32_t id,
			const uint32_t *access, const int32_t *quota, char *message)
{
	struct request request;
	struct row row;
	int rc = begin_row_change(&request, prot, actor, id, &row, message);

	if (!rc && quota)
		rc = need_administrator(&request, "set quotas");
	if (!rc && id != request.id)
		rc = need_ownership(&request, &row, "set the access flags of this entry");
	if (!rc && access)
		rc = prot_set_access(prot, id, *access, message);
	if (!rc && quota)
		rc = run_update(&request, "UPDATE entry SET quota = ?2 WHERE id = ?1", id, *quota);
	return end_asked_change(&request, rc);
}

int prot_request_last(struct prot *prot, const struct prot_actor *actor, int32_t id, bool group,
		      char *message)
{
	const int64_t parameter = id;
	struct request request;
	int64_t last = 0;
	int rc = begin_asked_change(&request, prot, actor, message);

	if (!rc)
		rc = need_administrator(&request, "set the last ids");
	if (!rc && prot_query(prot, group ? "SELECT grp FROM last" : "SELECT user FROM last", NULL,
			      0, NULL, &last))
		rc = fail_request(&request);
	if (!rc && (group ? id > last || id == INT32_MIN : id < last))
		rc = fail_with(PROT_BAD_ID, message, PROT_MESSAGE_MAX,
			       "ids up to %d were given out: ACLs may name them", (int)last);
	if (!rc && prot_query(prot, group ? "UPDATE last SET grp = ?" : "UPDATE last SET user = ?",
			      &parameter, 1, NULL, NULL))
		rc = fail_request(&request);
	return end_asked_change(&request, rc);
}
