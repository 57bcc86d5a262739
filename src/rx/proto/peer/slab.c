/* SPDX-License-Identifier: BSD-2-Clause */
/* Arrays of list nodes, named by index, that grow through the buffer pool. */
#include <string.h>

#include "base/assert.h"
#include "proto/peer/slab.h"

static void set_free(struct rxw_slab *s, unsigned from, unsigned to)
{
	assert(from <= to);
	for (unsigned i = to; i-- > from;) {
		memcpy(rxw_slab_at(s, (uint16_t)i), &s->free, sizeof(s->free));
		s->free = (uint16_t)i;
	}
}

void rxw_slab_init(struct rxw_slab *s, void *own, size_t node, unsigned count)
{
	assert(node >= sizeof(s->free));
	assert(count < RXW_NO_NODE);
	s->base = own;
	s->buf = NULL;
	s->node = (uint16_t)node;
	s->cap = (uint16_t)count;
	s->used = 0;
	s->free = RXW_NO_NODE;
	set_free(s, 0, count);
}

static bool grow_slab(struct rxw_slab *s, struct rxw_pool *pool)
{
	size_t most = RXW_BUF_LARGEST / s->node;
	size_t cap = (size_t)s->cap * (s->cap < 1024 ? 4 : 2);
	struct rxw_buf *buf;
	unsigned old = s->cap;

	if (most >= RXW_NO_NODE)
		most = RXW_NO_NODE - 1;
	if (cap < 16)
		cap = 16;
	if (cap > most)
		cap = most;
	if (cap <= s->cap || pool == NULL)
		return false;
	buf = rxw_buf_get_array(pool, cap * s->node);
	if (buf == NULL)
		return false;
	memcpy(buf->data, s->base, old * s->node);
	rxw_buf_unref(s->buf);
	s->buf = buf;
	s->base = buf->data;
	s->cap = (uint16_t)cap;
	set_free(s, old, (unsigned)cap);
	return true;
}

uint16_t rxw_slab_get(struct rxw_slab *s, struct rxw_pool *pool)
{
	uint16_t index;

	if (s->free == RXW_NO_NODE && !grow_slab(s, pool))
		return RXW_NO_NODE;
	index = s->free;
	assert(index < s->cap);
	assert(s->used < s->cap);
	memcpy(&s->free, rxw_slab_at(s, index), sizeof(s->free));
	s->used++;
	return index;
}

void rxw_slab_put(struct rxw_slab *s, uint16_t index)
{
	assert(index < s->cap);
	assert(s->used > 0);
	memcpy(rxw_slab_at(s, index), &s->free, sizeof(s->free));
	s->free = index;
	s->used--;
}

bool rxw_slab_reserve(struct rxw_slab *s, struct rxw_pool *pool, unsigned count)
{
	while ((unsigned)s->cap - s->used < count)
		if (!grow_slab(s, pool))
			return false;
	return true;
}

void rxw_slab_fini(struct rxw_slab *s)
{
	rxw_buf_unref(s->buf);
	s->buf = NULL;
	s->cap = s->used = 0;
	s->free = RXW_NO_NODE;
}
