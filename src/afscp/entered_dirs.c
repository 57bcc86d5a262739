/* SPDX-License-Identifier: BSD-2-Clause */
/* The directories that a walk has entered. */
#include <stdlib.h>

#include "afscp/entered_dirs.h"

static uint64_t number_of_fid(const AFSFid *fid)
{
	return (uint64_t)fid->Vnode << 32 | fid->Unique;
}

/*
 * The slot of the number, or a free one. A server that chooses bad numbers only slows its own copy.
 */
static size_t slot_of(const uint64_t *list, size_t room, uint64_t number)
{
	size_t at = (size_t)(number * 0x9e3779b97f4a7c15u >> 20) & (room - 1);

	while (list[at] && list[at] != number)
		at = (at + 1) & (room - 1);
	return at;
}

static int grow_entered(struct entered_dirs *m)
{
	size_t room = m->room ? 2 * m->room : 256;
	uint64_t *list = calloc(room, sizeof(*list));

	if (!list)
		return -1;
	for (size_t i = 0; i < m->room; i++)
		if (m->list[i])
			list[slot_of(list, room, m->list[i])] = m->list[i];
	free(m->list);
	m->list = list;
	m->room = room;
	return 0;
}

int entered_dirs_add(struct entered_dirs *m, const AFSFid *fid)
{
	uint64_t number = number_of_fid(fid);
	size_t at;

	if (2 * m->count >= m->room && grow_entered(m) < 0)
		return -1;
	at = slot_of(m->list, m->room, number);
	if (m->list[at])
		return 1;
	m->list[at] = number;
	m->count++;
	return 0;
}

void entered_dirs_free(struct entered_dirs *m)
{
	free(m->list);
	*m = (struct entered_dirs){0};
}
