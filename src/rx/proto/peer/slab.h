/* SPDX-License-Identifier: BSD-2-Clause */
/* Arrays of list nodes, named by index, that grow through the buffer pool. */
#ifndef RXW_PROTO_SLAB_H
#define RXW_PROTO_SLAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

#define RXW_NO_NODE 0xffffu

/*
 * A growable array of nodes of one size, with a free list. The first nodes are inside the owner of
 * the slab, more come from the pool. Nodes move when the array grows: keep indexes, not pointers.
 */
struct rxw_slab {
	uint8_t *base;
	struct rxw_buf *buf; /* NULL: base is the owner's own array */
	uint16_t node, cap, free, used;
};

/* `own`: the first `count` nodes of `node` bytes. A free node's first two bytes are overwritten. */
void rxw_slab_init(struct rxw_slab *s, void *own, size_t node, unsigned count);
/* The index of a node with undefined content; RXW_NO_NODE: out of memory. */
uint16_t rxw_slab_get(struct rxw_slab *s, struct rxw_pool *pool);
void rxw_slab_put(struct rxw_slab *s, uint16_t index);
/* Make sure that `count` nodes are free, growing if necessary. False: out of memory. */
bool rxw_slab_reserve(struct rxw_slab *s, struct rxw_pool *pool, unsigned count);
void rxw_slab_fini(struct rxw_slab *s);

static inline void *rxw_slab_at(const struct rxw_slab *s, uint16_t index)
{
	return s->base + (size_t)index * s->node;
}

#endif
