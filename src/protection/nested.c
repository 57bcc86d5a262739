/* SPDX-License-Identifier: BSD-2-Clause */
/* Memberships, also by way of groups that are in groups. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "protection/private.h"

/* The groups that were found. Groups are numbered from 0; each is found once, so circles end. */
struct reach {
	const struct prot_view *view;
	size_t first; /* index of group 0 among all entries */
	size_t groups;
	uint32_t *found; /* `count` groups, in the order of steps */
	uint8_t *marks;	 /* of each group */
	size_t count;
};

/* The groups in which an entry is. */
static const int32_t *list_own_groups(const struct prot_entry *entry, uint32_t *count)
{
	*count = entry->id < 0 ? entry->super_count : entry->count;
	return entry->id < 0 ? entry->supers : entry->members;
}

static void mark_groups(struct reach *reach, const struct prot_entry *entry)
{
	uint32_t count;
	const int32_t *ids = list_own_groups(entry, &count);

	for (uint32_t i = 0; i < count; i++) {
		size_t group = prot_from(reach->view, ids[i]) - reach->first;

		assert(group < reach->groups);
		if (reach->marks[group])
			continue;
		reach->marks[group] = 1;
		reach->found[reach->count++] = (uint32_t)group;
	}
}

/* All groups that are `depth` steps away at most. False: no memory. free_reach() follows in any case. */
static bool find_reach(struct reach *reach, const struct prot_view *view,
		       const struct prot_entry *entry, unsigned depth)
{
	size_t at = 0;

	*reach = (struct reach){.view = view, .first = prot_from(view, INT32_MIN)};
	reach->groups = view->count - reach->first;
	reach->found = calloc(reach->groups, sizeof(*reach->found));
	reach->marks = calloc(reach->groups, sizeof(*reach->marks));
	if (!reach->found || !reach->marks)
		return false;
	mark_groups(reach, entry);
	for (unsigned step = 1; step < depth; step++)
		for (size_t end = reach->count; at < end; at++)
			mark_groups(reach, &view->entries[reach->first + reach->found[at]]);
	return true;
}

static void free_reach(struct reach *reach)
{
	free(reach->found);
	free(reach->marks);
}

/* Whether one of the groups in which an entry is, is itself in a group. */
static bool is_nested(const struct prot_view *view, const struct prot_entry *entry)
{
	uint32_t count;
	const int32_t *ids = list_own_groups(entry, &count);

	for (uint32_t i = 0; view->nested && i < count; i++)
		if (prot_by_id(view, ids[i])->super_count)
			return true;
	return false;
}

static int compare_member_ids(const void *a, const void *b)
{
	int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;

	return x < y ? -1 : x > y;
}

bool prot_is_member(const struct prot_view *view, int32_t member, int32_t group)
{
	const struct prot_entry *entry = prot_by_id(view, member), *of = prot_by_id(view, group);
	struct reach reach;
	uint32_t count = 0;
	const int32_t *ids = entry ? list_own_groups(entry, &count) : NULL;
	bool is;

	if (!of || group > 0 || !count)
		return false;
	if (bsearch(&group, ids, count, sizeof(group), compare_member_ids))
		return true;
	if (!is_nested(view, entry))
		return false;
	is = find_reach(&reach, view, entry, PROT_DEPTH) &&
	     reach.marks[(size_t)(of - view->entries) - reach.first];
	free_reach(&reach);
	return is;
}

/* Put an id at its place in a list that ascends and has `count` of `room`; returns count + 1. */
static size_t insert_id(int32_t *list, size_t count, size_t room, int32_t id)
{
	size_t filled = count < room ? count : room, at = filled;

	while (at > 0 && list[at - 1] > id)
		at--;
	if (at < room) {
		size_t behind = (filled < room ? filled : room - 1) - at;

		memmove(list + at + 1, list + at, behind * sizeof(*list));
		list[at] = id;
	}
	return count + 1;
}

/* All groups of a user into a list of `room`. False: no memory. */
static bool list_all_groups(const struct prot_view *view, const struct prot_entry *user,
			    int32_t *list, size_t room, size_t *count)
{
	struct reach reach;
	bool found;

	*count = user->count;
	if (!is_nested(view, user)) {
		if (user->count && room)
			memcpy(list, user->members,
			       (user->count < room ? user->count : room) * sizeof(*list));
		return true;
	}
	/* A step further than prot_is_member(), as with OpenAFS. */
	found = find_reach(&reach, view, user, PROT_DEPTH + 1);
	*count = reach.count;
	for (size_t group = 0, at = 0; found && at < room && group < reach.groups; group++)
		if (reach.marks[group])
			list[at++] = view->entries[reach.first + group].id;
	free_reach(&reach);
	return found;
}

size_t prot_cps(const struct prot_view *view, int32_t id, int32_t *list, size_t room)
{
	const struct prot_entry *entry = prot_by_id(view, id);
	size_t count = 0;

	if (!entry)
		return 0;
	/* Nobody calls as a group, which has only itself. */
	if (id > 0 && id != PROT_ANONYMOUS && !list_all_groups(view, entry, list, room, &count))
		return 0;
	if (id != PROT_ANYUSER)
		count = insert_id(list, count, room, PROT_ANYUSER);
	if (id != PROT_ANONYMOUS && id != PROT_AUTHUSER)
		count = insert_id(list, count, room, PROT_AUTHUSER);
	return insert_id(list, count, room, id);
}
