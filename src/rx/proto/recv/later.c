/* SPDX-License-Identifier: BSD-2-Clause */
/* Packets received behind a gap. A peer decides in which order they arrive. */
#include "proto/state.h"

static void lay_out_later(struct rxw_later *l, uint64_t *bits, uint16_t *entry, uint32_t room)
{
	rxw_bitmap_init(&l->have, bits, room);
	l->entry = entry;
}

void rxw_later_init(struct rxw_later *l)
{
	static const uint16_t no_entries[RXW_BITMAP_LEAST];

	l->buf = NULL;
	l->count = 0;
	rxw_bitmap_init_empty(&l->have);
	l->entry = (uint16_t *)no_entries;
}

void rxw_later_fini(struct rxw_later *l)
{
	rxw_buf_unref(l->buf);
	rxw_later_init(l);
}

bool rxw_later_reserve(struct rxw_later *l, struct rxw_pool *pool, uint32_t next, uint32_t end)
{
	struct rxw_later old = *l;
	uint32_t room = old.have.room, stop = next + old.have.room, to;
	size_t bits;

	if (l->buf != NULL && end - next <= room)
		return true;
	while (room < end - next)
		room *= 2;
	/* Growth by at least four times, so that each packet bears a part of the cost. */
	if (l->buf != NULL)
		room = rxw_min32(rxw_max32(room, 4 * old.have.room), RXW_BITMAP_MOST);
	room = rxw_min32(room, RXW_BITMAP_MOST);
	if (room < end - next || pool == NULL)
		return false;
	bits = RXW_BITMAP_MEMORY(room) * sizeof(uint64_t);
	l->buf = rxw_buf_get_array(pool, bits + room * sizeof(*l->entry));
	if (l->buf == NULL) {
		l->buf = old.buf;
		return false;
	}
	lay_out_later(l, (uint64_t *)l->buf->data, (uint16_t *)(l->buf->data + bits), room);
	for (uint32_t at = next; (at = rxw_bitmap_next(&old.have, at, stop, true)) < stop;
	     at = to) {
		to = rxw_bitmap_next(&old.have, at, stop, false);
		rxw_bitmap_set(&l->have, at, to);
		for (uint32_t seq = at; seq < to; seq++)
			l->entry[seq % room] = old.entry[seq % old.have.room];
	}
	rxw_buf_unref(old.buf);
	return true;
}

void rxw_later_put(struct rxw_later *l, uint32_t first, uint32_t count, uint16_t index)
{
	rxw_bitmap_set(&l->have, first, first + count);
	l->entry[first % l->have.room] = l->entry[(first + count - 1) % l->have.room] = index;
	l->count++;
}

void rxw_later_remove(struct rxw_later *l, uint32_t first, uint32_t count)
{
	rxw_bitmap_clear(&l->have, first, first + count);
	l->count--;
}
