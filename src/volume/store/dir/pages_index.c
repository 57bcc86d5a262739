/* SPDX-License-Identifier: BSD-2-Clause */
/* Versions of chains that share what did not change. */
#include "volume/store/dir/pages_index.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Constant while more than one version of a directory refers to it. */
struct pages_index {
	atomic_uint refs;
	struct pages_chain *chain[PAGES_CHAINS];
};

static void unref_chain(struct pages_chain *chain)
{
	if (chain && __atomic_fetch_sub(&chain->refs, 1, __ATOMIC_ACQ_REL) == 1)
		free(chain);
}

struct pages_index *pages_index_new(void)
{
	struct pages_index *index = calloc(1, sizeof(*index));

	if (index)
		atomic_init(&index->refs, 1);
	return index;
}

struct pages_index *pages_index_ref(struct pages_index *index)
{
	atomic_fetch_add_explicit(&index->refs, 1, memory_order_relaxed);
	return index;
}

void pages_index_unref(struct pages_index *index)
{
	if (!index || atomic_fetch_sub_explicit(&index->refs, 1, memory_order_acq_rel) != 1)
		return;
	for (unsigned i = 0; i < PAGES_CHAINS; i++)
		unref_chain(index->chain[i]);
	free(index);
}

const struct pages_chain *pages_index_chain(const struct pages_index *index, unsigned chain)
{
	assert(chain < PAGES_CHAINS);
	return index->chain[chain];
}

/* An index with a single reference. */
static bool get_own_index(struct pages_index **index)
{
	struct pages_index *old = *index;

	if (atomic_load_explicit(&old->refs, memory_order_acquire) == 1)
		return true;

	struct pages_index *copy = pages_index_new();

	if (!copy)
		return false;
	for (unsigned i = 0; i < PAGES_CHAINS; i++) {
		copy->chain[i] = old->chain[i];
		if (copy->chain[i])
			__atomic_fetch_add(&copy->chain[i]->refs, 1, __ATOMIC_RELAXED);
	}
	*index = copy;
	pages_index_unref(old);
	return true;
}

bool pages_index_prepare(struct pages_index **index, unsigned chain)
{
	if (!get_own_index(index))
		return false;

	struct pages_chain **at = &(*index)->chain[chain], *old = *at, *copy;
	uint32_t count = old ? old->count : 0, room = count + count / 4 + 4;

	if (old && __atomic_load_n(&old->refs, __ATOMIC_ACQUIRE) == 1 && count < old->room)
		return true;
	copy = malloc(sizeof(*copy) + room * sizeof(copy->link[0]));
	if (!copy)
		return false;
	copy->refs = 1;
	copy->count = count;
	copy->room = room;
	if (count)
		memcpy(copy->link, old->link, count * sizeof(copy->link[0]));
	*at = copy;
	unref_chain(old);
	return true;
}

void pages_index_push(struct pages_index *index, unsigned chain, uint16_t tag, uint16_t slot)
{
	struct pages_chain *to = index->chain[chain];

	assert(to && to->count < to->room);
	to->link[to->count++] = (struct pages_link){tag, slot};
}

void pages_index_cut(struct pages_index *index, unsigned chain, uint32_t position)
{
	struct pages_chain *from = index->chain[chain];

	assert(position < from->count);
	from->count--;
	memmove(&from->link[position], &from->link[position + 1],
		(from->count - position) * sizeof(from->link[0]));
}

void pages_index_reverse(struct pages_index *index, unsigned chain)
{
	struct pages_chain *of = index->chain[chain];

	assert(of->count > 0);
	for (uint32_t i = 0, j = of->count - 1; i < j; i++, j--) {
		struct pages_link link = of->link[i];

		of->link[i] = of->link[j];
		of->link[j] = link;
	}
}
