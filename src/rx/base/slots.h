/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory for large buffers. The allocator would spread them over its arenas, among small objects: with a
 * thousand streams, half of its memory was free and could not be used. Slots are taken from mappings of their
 * own, the most recently used first, by all threads. A thread takes those first that its part has returned: they
 * are in the caches of its processors.
 */
#ifndef RXW_BASE_SLOTS_H
#define RXW_BASE_SLOTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#define RXW_SLOT_PARTS 16u

struct rxw_slot;
struct rxw_slab;

/* Any thread, but for the first and the last function. `lock` covers the lists. It is held for a few instructions. */
struct rxw_slots {
	size_t size; /* of a slot, a multiple of 64 bytes; constant */
	atomic_flag lock;
	struct rxw_slot
		*idle[RXW_SLOT_PARTS]; /* with their pages, by the part that returned them */
	struct rxw_slot *bare;	       /* idle, without */
	size_t idle_count, used; /* slots */
	size_t high;		 /* the most in use since the latest rxw_slots_settle() */
	struct rxw_slab *slabs;
};

void rxw_slots_init(struct rxw_slots *slots, size_t size);
/* A slot, aligned to 64 bytes, with any contents; NULL: no memory. `part`: below RXW_SLOT_PARTS. */
void *rxw_slot_get(struct rxw_slots *slots, unsigned part);
void rxw_slot_put(struct rxw_slots *slots, unsigned part, void *slot);
/*
 * Idle slots lose their pages, unless so many were in use since the last time; not more than a few megabytes in
 * a call. The address space remains. False: there are no more.
 */
bool rxw_slots_settle(struct rxw_slots *slots);
/* So few idle slots have pages that none will lose them. */
bool rxw_slots_settled(struct rxw_slots *slots);
/* The system gets the pages of all idle slots back. */
void rxw_slots_trim(struct rxw_slots *slots);
/* No slot is in use: unmaps all. */
void rxw_slots_fini(struct rxw_slots *slots);

#endif
