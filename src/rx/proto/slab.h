/* SPDX-License-Identifier: BSD-2-Clause */
/* Nodes of queues: arrays named by index that grow through the buffer pool. */
#ifndef RXW_PROTO_SLAB_H
#define RXW_PROTO_SLAB_H

#include <stddef.h>

#include "proto/parts.h"

/*
 * `own`: the first `count` nodes of `node` bytes; every node's first two bytes are used while it is
 * free.
 */
void rxw_slab_init(struct rxw_slab *s, void *own, size_t node, unsigned count);
/* Index of a node with undefined content, RXW_NO_NODE when memory is out. */
uint16_t rxw_slab_get(struct rxw_slab *s, struct rxw_pool *pool);
void rxw_slab_put(struct rxw_slab *s, uint16_t index);
/* Is there room for `count` more nodes (grows)? */
bool rxw_slab_reserve(struct rxw_slab *s, struct rxw_pool *pool, unsigned count);
void rxw_slab_fini(struct rxw_slab *s);

static inline void *rxw_slab_at(const struct rxw_slab *s, uint16_t index)
{
	return s->base + (size_t)index * s->node;
}

#endif
