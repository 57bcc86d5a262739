/* SPDX-License-Identifier: BSD-2-Clause */
/* A view: look-ups, and reading the whole database into one. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/failure.h"
#include "protection/private.h"

uint64_t prot_generation(const struct prot_view *view)
{
	return view->generation;
}

const struct prot_entry *prot_by_name(const struct prot_view *view, const char *name)
{
	size_t low = 0, high = view->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct prot_entry *entry = &view->entries[view->by_name[middle]];
		int order = strcmp(name, entry->name);

		if (order == 0)
			return entry;
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return NULL;
}

size_t prot_from(const struct prot_view *view, int32_t id)
{
	size_t low = 0, high = view->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if ((uint32_t)view->entries[middle].id < (uint32_t)id)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

const struct prot_entry *prot_by_id(const struct prot_view *view, int32_t id)
{
	size_t index = prot_from(view, id);

	if (index < view->count && view->entries[index].id == id)
		return &view->entries[index];
	return NULL;
}

size_t prot_count(const struct prot_view *view)
{
	return view->count;
}

const struct prot_entry *prot_at(const struct prot_view *view, size_t index)
{
	return &view->entries[index];
}

void prot_max_ids(const struct prot_view *view, int32_t *user, int32_t *group)
{
	*user = view->max_user;
	*group = view->max_group;
}

size_t prot_owned(const struct prot_view *view, int32_t id, int32_t *list, size_t room)
{
	size_t count = 0;

	/* All negative ids come last. */
	for (size_t i = prot_from(view, INT32_MIN); i < view->count; i++) {
		if (view->entries[i].owner != id)
			continue;
		if (count < room)
			list[count] = view->entries[i].id;
		count++;
	}
	return count;
}

/* -- reading the database -- */

/* The memberships, first those of groups: in each part, groups ascending, then members. */
struct pairs {
	int32_t (*pair)[2]; /* group, member */
	size_t count, room;
};

/* The order of two indices, for qsort_r(). */
static int compare_names(const void *a, const void *b, void *entries)
{
	const struct prot_entry *list = entries;

	return strcmp(list[*(const uint32_t *)a].name, list[*(const uint32_t *)b].name);
}

static int fail_without_memory(char *message)
{
	return fail_with(PROT_ERROR, message, PROT_MESSAGE_MAX,
			 "no memory for the protection database");
}

/* Gets room for one more item of `size` bytes in *list. */
static bool grow_list(void **list, size_t count, size_t *room, size_t size)
{
	size_t more = *room ? *room * 2 : 64;
	void *grown;

	if (count < *room)
		return true;
	grown = reallocarray(*list, more, size);
	if (!grown)
		return false;
	*list = grown;
	*room = more;
	return true;
}

static bool fits_id(int64_t id)
{
	return id != 0 && id >= -INT32_MAX && id <= INT32_MAX;
}

/* One row of the table of entries. False: it cannot be right. */
static bool read_entry_row(sqlite3_stmt *row, struct prot_entry *entry)
{
	int64_t id = sqlite3_column_int64(row, 0), owner = sqlite3_column_int64(row, 2),
		creator = sqlite3_column_int64(row, 3), access = sqlite3_column_int64(row, 4),
		quota = sqlite3_column_int64(row, 5);
	const char *name = (const char *)sqlite3_column_text(row, 1), *why;
	int length = sqlite3_column_bytes(row, 1);

	if (!name || (size_t)length != strlen(name) || !prot_name_valid(name, id < 0, &why) ||
	    !fits_id(id) || !fits_id(owner) || !fits_id(creator) || access < 0 ||
	    access > PROT_ACCESS_ALL || quota < INT32_MIN || quota > INT32_MAX)
		return false;
	*entry = (struct prot_entry){
		.id = (int32_t)id,
		.owner = (int32_t)owner,
		.creator = (int32_t)creator,
		.access = (uint32_t)access,
		.quota = (int32_t)quota,
	};
	memcpy(entry->name, name, (size_t)length + 1);
	return true;
}

static int read_entries(struct prot *prot, struct prot_view *view, char *message)
{
	static const char sql[] = "SELECT id, name, owner, creator, access, quota FROM entry "
				  "ORDER BY id < 0, id";
	sqlite3_stmt *row = NULL;
	size_t room = 0;
	int rc = sqlite3_prepare_v2(prot->db, sql, -1, &row, NULL), result = 0;

	while (rc == SQLITE_OK && !result && (rc = sqlite3_step(row)) == SQLITE_ROW) {
		if (!grow_list((void **)&view->entries, view->count, &room, sizeof(*view->entries)))
			result = fail_without_memory(message);
		else if (!read_entry_row(row, &view->entries[view->count]))
			result = prot_damaged(prot, "an entry is wrong", message);
		else
			view->count++;
		rc = SQLITE_OK;
	}
	if (!result && rc != SQLITE_DONE)
		result = prot_database_error(prot, "be read", message);
	sqlite3_finalize(row);
	return result;
}

/* `sign`: of the ids of members. */
static int read_pairs(struct prot *prot, const char *sql, int sign, struct pairs *pairs,
		      char *message)
{
	sqlite3_stmt *row = NULL;
	int rc = sqlite3_prepare_v2(prot->db, sql, -1, &row, NULL), result = 0;

	while (rc == SQLITE_OK && !result && (rc = sqlite3_step(row)) == SQLITE_ROW) {
		int64_t group = sqlite3_column_int64(row, 0), member = sqlite3_column_int64(row, 1);

		if (!grow_list((void **)&pairs->pair, pairs->count, &pairs->room,
			       sizeof(*pairs->pair))) {
			result = fail_without_memory(message);
		} else if (!fits_id(group) || !fits_id(member) || group > 0 ||
			   (member < 0) != (sign < 0) || member == group) {
			result = prot_damaged(prot, "a membership is wrong", message);
		} else {
			pairs->pair[pairs->count][0] = (int32_t)group;
			pairs->pair[pairs->count][1] = (int32_t)member;
			pairs->count++;
		}
		rc = SQLITE_OK;
	}
	if (!result && rc != SQLITE_DONE)
		result = prot_database_error(prot, "be read", message);
	sqlite3_finalize(row);
	return result;
}

static int read_last(struct prot *prot, struct prot_view *view, char *message)
{
	int64_t user = -1, group = 1;

	if (prot_query(prot, "SELECT user FROM last", NULL, 0, NULL, &user) ||
	    prot_query(prot, "SELECT grp FROM last", NULL, 0, NULL, &group))
		return prot_database_error(prot, "be read", message);
	if (user < 0 || user > INT32_MAX || group > 0 || group < -INT32_MAX)
		return prot_damaged(prot, "the last ids are wrong", message);
	view->max_user = (int32_t)user;
	view->max_group = (int32_t)group;
	return 0;
}

/* Where the next id of a pair goes: `side` 0, among the members of the group; 1, among the groups of the member. */
static uint32_t *next_place(struct prot_entry *entry, int side, const int32_t **list)
{
	bool super = side == 1 && entry->id < 0;

	*list = super ? entry->supers : entry->members;
	return super ? &entry->super_count : &entry->count;
}

static struct prot_entry *find_side(const struct prot_view *view, const int32_t pair[2], int side)
{
	return (struct prot_entry *)prot_by_id(view, pair[side]);
}

/*
 * The lists of all entries, in one block. Appending keeps them ascending: groups are in front of users, and have smaller ids.
 */
static int link_members(struct prot *prot, struct prot_view *view, const struct pairs *pairs,
			char *message)
{
	const int32_t *list;
	size_t at = 0;

	view->members = calloc(pairs->count ? pairs->count * 2 : 1, sizeof(*view->members));
	if (!view->members)
		return fail_without_memory(message);
	for (size_t i = 0; i < pairs->count * 2; i++) {
		struct prot_entry *entry = find_side(view, pairs->pair[i / 2], i % 2);

		if (!entry)
			return prot_damaged(prot, "a member does not exist", message);
		++*next_place(entry, i % 2, &list);
	}
	for (size_t i = 0; i < view->count; i++) {
		struct prot_entry *entry = &view->entries[i];

		entry->members = view->members + at;
		at += entry->count;
		entry->supers = view->members + at;
		at += entry->super_count;
		entry->count = entry->super_count = 0;
	}
	assert(at == pairs->count * 2);
	for (size_t i = 0; i < pairs->count * 2; i++) {
		uint32_t *place =
			next_place(find_side(view, pairs->pair[i / 2], i % 2), i % 2, &list);

		view->members[list - view->members + (*place)++] = pairs->pair[i / 2][!(i % 2)];
	}
	return 0;
}

static int index_names(struct prot_view *view, char *message)
{
	view->by_name = calloc(view->count ? view->count : 1, sizeof(*view->by_name));
	if (!view->by_name)
		return fail_without_memory(message);
	for (size_t i = 0; i < view->count; i++)
		view->by_name[i] = (uint32_t)i;
	qsort_r(view->by_name, view->count, sizeof(*view->by_name), compare_names, view->entries);
	return 0;
}

static int check_predefined(struct prot *prot, const struct prot_view *view, char *message)
{
	static const int32_t ids[] = {PROT_ANONYMOUS,  PROT_ANYUSER,	    PROT_AUTHUSER,
				      PROT_PTSVIEWERS, PROT_ADMINISTRATORS, PROT_BACKUP};

	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++)
		if (!prot_by_id(view, ids[i]))
			return prot_damaged(prot, "a predefined entry is missing", message);
	return 0;
}

/* Reads all tables in one transaction. 0, or a code and a line. */
static int read_tables(struct prot *prot, struct prot_view *view, struct pairs *pairs,
		       char *message)
{
	int rc;

	if (prot_run(prot, "BEGIN"))
		return prot_database_error(prot, "be read", message);
	rc = read_entries(prot, view, message)
		     ?: read_pairs(prot, "SELECT grp, member FROM nested ORDER BY grp, member", -1,
				   pairs, message);
	view->nested = pairs->count > 0;
	rc = rc
		?: read_pairs(prot, "SELECT grp, user FROM member ORDER BY grp, user", 1, pairs,
			      message)
		?: read_last(prot, view, message);
	prot_run(prot, "ROLLBACK");
	return rc;
}

int prot_load(struct prot *prot, struct prot_view **out, char *message)
{
	struct prot_view *view = calloc(1, sizeof(*view));
	struct pairs pairs = {0};
	int rc;

	*out = NULL;
	if (!view)
		return fail_without_memory(message);
	view->references = 1;
	rc = read_tables(prot, view, &pairs, message)
		?: link_members(prot, view, &pairs, message)
		?: index_names(view, message);
	if (rc)
		goto out;
	rc = prot_index_machines(view) ? 0 : fail_without_memory(message);
	if (rc)
		goto out;
	rc = check_predefined(prot, view, message);
out:
	free(pairs.pair);
	if (rc)
		prot_view_free(view);
	else
		*out = view;
	return rc;
}

void prot_view_free(struct prot_view *view)
{
	free(view->entries);
	free(view->by_name);
	free(view->machines);
	free(view->members);
	free(view);
}
