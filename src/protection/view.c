/* SPDX-License-Identifier: BSD-2-Clause */
/* Look-ups in a view. */
#include <stdlib.h>
#include <string.h>

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

static int compare_member_ids(const void *a, const void *b)
{
	int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;

	return x < y ? -1 : x > y;
}

bool prot_is_member(const struct prot_view *view, int32_t user, int32_t group)
{
	const struct prot_entry *entry = prot_by_id(view, user);

	return entry && entry->count &&
	       bsearch(&group, entry->members, entry->count, sizeof(group), compare_member_ids);
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

size_t prot_cps(const struct prot_view *view, int32_t id, int32_t *list, size_t room)
{
	const struct prot_entry *entry = prot_by_id(view, id);
	size_t count;

	if (!entry)
		return 0;
	/* The members of a group are not groups: a group has only itself. */
	count = id > 0 && id != PROT_ANONYMOUS ? entry->count : 0;
	if (count && room)
		memcpy(list, entry->members, (count < room ? count : room) * sizeof(*list));
	if (id != PROT_ANYUSER)
		count = insert_id(list, count, room, PROT_ANYUSER);
	if (id != PROT_ANONYMOUS && id != PROT_AUTHUSER)
		count = insert_id(list, count, room, PROT_AUTHUSER);
	return insert_id(list, count, room, id);
}
