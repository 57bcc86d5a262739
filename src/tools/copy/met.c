/* SPDX-License-Identifier: BSD-2-Clause */
/* The directories that were entered. */
#include <stdlib.h>

#include "tools/copy/met.h"

static uint64_t number_of(const AFSFid *fid)
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

static int grow(struct met *m)
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

int meet(struct met *m, const AFSFid *fid)
{
	uint64_t number = number_of(fid);
	size_t at;

	if (2 * m->count >= m->room && grow(m) < 0)
		return -1;
	at = slot_of(m->list, m->room, number);
	if (m->list[at])
		return 1;
	m->list[at] = number;
	m->count++;
	return 0;
}

void met_free(struct met *m)
{
	free(m->list);
	*m = (struct met){0};
}
