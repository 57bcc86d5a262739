/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory for large buffers. */
#include "base/slots.h"
#include "base/poison.h"

#include <assert.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#define RARELY	   __attribute__((cold, noinline))
#define ALIGN	   64u
#define SLAB_MOST  16u /* slots that are mapped at a time */
#define IDLE_LEAST 64u /* that keep their pages: 4 MiB */
#define SETTLE_MOST 128u /* that lose them in one call: 8 MiB */

/* An idle slot. */
struct rxw_slot {
	struct rxw_slot *next;
};

/* At the beginning of a mapping; the slots follow. */
struct rxw_slab {
	struct rxw_slab *next;
	char pad[ALIGN - sizeof(void *)];
};

static void lock_slots(struct rxw_slots *slots)
{
	unsigned spins = 0;

	while (atomic_flag_test_and_set_explicit(&slots->lock, memory_order_acquire))
		if (++spins % 64 == 0)
			sched_yield(); /* the holder was probably preempted */
}

static void unlock_slots(struct rxw_slots *slots)
{
	atomic_flag_clear_explicit(&slots->lock, memory_order_release);
}

static size_t slab_bytes(const struct rxw_slots *slots)
{
	return sizeof(struct rxw_slab) + SLAB_MOST * slots->size;
}

void rxw_slots_init(struct rxw_slots *slots, size_t size)
{
	assert(size % ALIGN == 0);
	*slots = (struct rxw_slots){.size = size, .lock = ATOMIC_FLAG_INIT};
}

static struct rxw_slot *pop_slot(struct rxw_slot **list)
{
	struct rxw_slot *slot = *list;

	if (slot)
		*list = slot->next;
	return slot;
}

static void push_slot(struct rxw_slot **list, struct rxw_slot *slot)
{
	slot->next = *list;
	*list = slot;
}

static void count_used(struct rxw_slots *slots)
{
	slots->used++;
	if (slots->high < slots->used)
		slots->high = slots->used;
}

/* The first slot of a new slab; the others are bare. Several threads may map slabs at the same time. */
static RARELY struct rxw_slot *map_slab(struct rxw_slots *slots)
{
	size_t bytes = slab_bytes(slots);
	struct rxw_slab *slab =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct rxw_slot *first, *last;

	if (slab == MAP_FAILED)
		return NULL;
	madvise(slab, bytes, MADV_NOHUGEPAGE);
	first = last = (struct rxw_slot *)(void *)(slab + 1);
	for (unsigned i = 1; i < SLAB_MOST; i++)
		last = last->next = (struct rxw_slot *)(void *)((char *)last + slots->size);
	lock_slots(slots);
	slab->next = slots->slabs;
	slots->slabs = slab;
	last->next = slots->bare;
	slots->bare = first->next;
	count_used(slots);
	unlock_slots(slots);
	return first;
}

/* With the lock held: an idle slot, of another part if need be, since that has pages. */
static __attribute__((noinline)) struct rxw_slot *pop_idle(struct rxw_slots *slots, unsigned part)
{
	struct rxw_slot *slot = NULL;

	assert(part < RXW_SLOT_PARTS);
	for (unsigned i = 0; i < RXW_SLOT_PARTS && slots->idle_count && !slot; i++)
		slot = pop_slot(&slots->idle[(part + i) % RXW_SLOT_PARTS]);
	assert((slot != NULL) == (slots->idle_count > 0));
	if (slot)
		slots->idle_count--;
	return slot;
}

static struct rxw_slot *pop_any(struct rxw_slots *slots, unsigned part)
{
	struct rxw_slot *slot;

	lock_slots(slots);
	slot = pop_idle(slots, part);
	if (!slot)
		slot = pop_slot(&slots->bare);
	if (slot)
		count_used(slots);
	unlock_slots(slots);
	return slot;
}

void *rxw_slot_get(struct rxw_slots *slots, unsigned part)
{
	struct rxw_slot *slot = pop_any(slots, part);

	if (!slot)
		slot = map_slab(slots);
	if (!slot) /* another thread may have returned one meanwhile */
		slot = pop_any(slots, part);
	if (slot)
		UNPOISON(slot + 1, slots->size - sizeof(*slot));
	return slot;
}

void rxw_slot_put(struct rxw_slots *slots, unsigned part, void *memory)
{
	struct rxw_slot *slot = memory;

	POISON(slot + 1, slots->size - sizeof(*slot));
	lock_slots(slots);
	assert(part < RXW_SLOT_PARTS);
	assert(slots->used > 0);
	push_slot(&slots->idle[part], slot);
	slots->idle_count++;
	slots->used--;
	unlock_slots(slots);
}

/* The whole pages of a slot behind its link. */
static void drop_pages(const struct rxw_slots *slots, struct rxw_slot *slot)
{
	uintptr_t page = getauxval(AT_PAGESZ);
	uintptr_t from = ((uintptr_t)(slot + 1) + page - 1) & ~(page - 1);
	uintptr_t to = ((uintptr_t)slot + slots->size) & ~(page - 1);

	if (to > from)
		madvise((void *)from, to - from, MADV_DONTNEED);
}

/* One idle slot beyond `most` loses its pages, outside the lock. False: there is none. */
static RARELY bool strip_one(struct rxw_slots *slots, size_t most)
{
	struct rxw_slot *slot = NULL;

	lock_slots(slots);
	if (slots->idle_count > most)
		slot = pop_idle(slots, 0);
	unlock_slots(slots);
	if (!slot)
		return false;
	drop_pages(slots, slot);
	lock_slots(slots);
	push_slot(&slots->bare, slot);
	unlock_slots(slots);
	return true;
}

bool rxw_slots_settle(struct rxw_slots *slots)
{
	size_t most;

	lock_slots(slots);
	assert(slots->high >= slots->used);
	most = slots->high - slots->used + IDLE_LEAST;
	slots->high = slots->used;
	unlock_slots(slots);
	for (unsigned i = 0; i < SETTLE_MOST; i++)
		if (!strip_one(slots, most))
			break;
	return !rxw_slots_settled(slots);
}

bool rxw_slots_settled(struct rxw_slots *slots)
{
	bool settled;

	lock_slots(slots);
	settled = slots->idle_count <= IDLE_LEAST;
	unlock_slots(slots);
	return settled;
}

RARELY void rxw_slots_trim(struct rxw_slots *slots)
{
	while (strip_one(slots, 0))
		;
}

RARELY void rxw_slots_fini(struct rxw_slots *slots)
{
	struct rxw_slab *slab;

	while ((slab = slots->slabs)) {
		slots->slabs = slab->next;
		UNPOISON(slab, slab_bytes(slots));
		munmap(slab, slab_bytes(slots));
	}
	memset(slots->idle, 0, sizeof(slots->idle));
	slots->bare = NULL;
}
