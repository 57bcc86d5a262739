/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The chains of a large directory in compact arrays. A walk along a chain of 500 entries, each in
 * another page, takes longer than all else that a change of the directory needs.
 */
#ifndef STORE_PAGES_INDEX_H
#define STORE_PAGES_INDEX_H

#include <stdbool.h>
#include <stdint.h>

#define PAGES_CHAINS 128

struct pages_index;

/* A chain in reverse order: the entry at its head is the last one. */
struct pages_chain {
	unsigned refs; /* atomic */
	uint32_t count, room;
	struct pages_link {
		uint16_t tag; /* equal for equal names */
		uint16_t slot;
	} link[];
};

/* An index without entries and with one reference. NULL: no memory. */
struct pages_index *pages_index_new(void);
struct pages_index *pages_index_ref(struct pages_index *index);
void pages_index_unref(struct pages_index *index); /* NULL is allowed */
/* May be NULL: it is empty. */
const struct pages_chain *pages_index_chain(const struct pages_index *index, unsigned chain);

/*
 * Make ready for one change of a chain: what others refer to is copied, and the reference *index
 * replaced. False: no memory; nothing has changed.
 */
bool pages_index_prepare(struct pages_index **index, unsigned chain);
/* One change each; they cannot fail. */
void pages_index_push(struct pages_index *index, unsigned chain, uint16_t tag, uint16_t slot);
void pages_index_cut(struct pages_index *index, unsigned chain, uint32_t position);
/* Reverse a chain that was filled from its head on. */
void pages_index_reverse(struct pages_index *index, unsigned chain);

#endif
