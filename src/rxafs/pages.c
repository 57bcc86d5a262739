/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which contents the kernel's pages are of. A page is filled by the answer to a read, or by a write. An answer that a change has overtaken
 * is not given: the read is done again. Pages stay only while a server has promised to tell of changes. So after a change only pages of before have to be invalidated, and this never waits for
 * a read that waits for a server, which may wait for this client (K-163).
 */
#include "rxafs/known.h"

#include <assert.h>
#include <stdlib.h>

#include "common/held.h"

/* The kernel reads whole pages. */
#define PAGE_BITS UINT64_C(4095)

struct pages_look pages_begin_read(struct mount *mount, rxafs_object *object, uint64_t contents)
{
	struct known *known = kernel_known(mount, object);

	return (struct pages_look){.contents = contents,
				   .changes = known ? atomic_load(&known->changes) : 0};
}

static void list_known(struct known *known)
{
	struct page_list *list = known->mount->pages;

	if (atomic_load(&known->listed))
		return;
	pthread_mutex_lock(&list->lock);
	if (!atomic_exchange(&known->listed, true)) {
		known->next = list->first;
		if (known->next)
			known->next->at = &known->next;
		known->at = &list->first;
		list->first = known;
	}
	pthread_mutex_unlock(&list->lock);
}

/* With the lock. */
static void note_filled(struct known *known, uint64_t contents)
{
	assert(mutex_is_held(&known->lock));
	list_known(known);
	if (contents < known->oldest)
		known->oldest = contents;
	if (contents < known->fresh)
		known->fresh = contents;
}

/* With the lock. */
static void unlist_read(struct kernel_read *read)
{
	if (!read->known)
		return;
	*read->at = read->next;
	if (read->next)
		read->next->at = read->at;
	read->known = NULL;
}

bool pages_end_read(struct mount *mount, rxafs_object *object, const struct pages_look *look,
		    struct kernel_read *read, bool last)
{
	struct known *known = kernel_known(mount, object);
	bool same;

	if (!known)
		return true;
	same = rxafs_is_promised(object);
	pthread_mutex_lock(&known->lock);
	/* If the promise has ended since, that was told. */
	same = same && atomic_load(&known->changes) == look->changes;
	if (same || last) {
		note_filled(known, look->contents);
		if (read)
			unlist_read(read);
	}
	pthread_mutex_unlock(&known->lock);
	if (last && !same)
		flusher_changed(mount, object, RXAFS_CHANGED_DATA);
	return same || last;
}

void pages_await_read(struct mount *mount, rxafs_object *object, uint64_t offset, uint64_t size,
		      struct kernel_read *read)
{
	struct known *known = kernel_known(mount, object);

	if (!known)
		return;
	read->of = known;
	read->offset = offset;
	read->size = size;
	pthread_mutex_lock(&known->lock);
	read->known = known;
	read->next = known->reads;
	if (read->next)
		read->next->at = &read->next;
	read->at = &known->reads;
	known->reads = read;
	pthread_mutex_unlock(&known->lock);
}

void pages_give_up_read(struct kernel_read *read)
{
	if (!read->of)
		return;
	pthread_mutex_lock(&read->of->lock);
	unlist_read(read);
	pthread_mutex_unlock(&read->of->lock);
}

void pages_note_write(struct mount *mount, rxafs_object *object, uint64_t contents)
{
	struct known *known = kernel_known(mount, object);

	if (!known)
		return;
	pthread_mutex_lock(&known->lock);
	note_filled(known, contents);
	pthread_mutex_unlock(&known->lock);
	/* The server may have given none. */
	if (!rxafs_is_promised(object))
		flusher_changed(mount, object, RXAFS_CHANGED_DATA);
}

bool pages_are_of(struct mount *mount, rxafs_object *object, uint64_t contents)
{
	struct known *known = kernel_known(mount, object);
	bool same;

	if (!known)
		return false;
	pthread_mutex_lock(&known->lock);
	same = known->oldest >= contents;
	pthread_mutex_unlock(&known->lock);
	return same;
}

/* -- invalidation ------------------------------------------------------------------------- */

static int compare_parts(const void *a, const void *b)
{
	const struct part *p = a, *q = b;

	return (p->begin > q->begin) - (p->begin < q->begin);
}

/* Pages that are read now, in order. */
static unsigned parts_in_reading(struct known *known, struct part *parts)
{
	unsigned count = 0;

	assert(mutex_is_held(&known->lock));
	/* One place is left for the part behind the last one. */
	for (struct kernel_read *r = known->reads; r && count + 1 < PARTS_MOST; r = r->next)
		parts[count++] = (struct part){r->offset & ~PAGE_BITS,
					       (r->offset + r->size + PAGE_BITS) & ~PAGE_BITS};
	qsort(parts, count, sizeof *parts, compare_parts);
	return count;
}

/* What lies between these parts, before and behind them. */
static unsigned invert_parts(struct part *parts, unsigned count)
{
	unsigned left = 0;
	uint64_t at = 0;

	for (unsigned i = 0; i < count; i++) {
		struct part p = parts[i];

		if (p.begin > at)
			parts[left++] = (struct part){at, p.begin};
		if (p.end > at)
			at = p.end;
	}
	parts[left++] = (struct part){at, UINT64_MAX};
	return left;
}

unsigned pages_begin_invalidation(struct known *known, struct part *parts, unsigned *number)
{
	unsigned count;

	pthread_mutex_lock(&known->lock);
	*number = ++known->invalidations;
	known->fresh = UINT64_MAX;
	count = parts_in_reading(known, parts);
	pthread_mutex_unlock(&known->lock);
	return invert_parts(parts, count);
}

void pages_end_invalidation(struct known *known, unsigned number)
{
	pthread_mutex_lock(&known->lock);
	/* What was filled between two beginnings may still be there after the end of the first. */
	if (number == known->invalidations)
		known->oldest = known->fresh;
	pthread_mutex_unlock(&known->lock);
}

/* -- promises that end ------------------------------------------------------------------- */

#define SWEEP_MOST 64u

/* References to objects with pages and without a promise, which leave the list: new pages bring them back. */
static unsigned take_unpromised(struct page_list *list, rxafs_object **objects)
{
	struct known *next;
	unsigned count = 0;

	pthread_mutex_lock(&list->lock);
	for (struct known *k = list->first; k && count < SWEEP_MOST; k = next) {
		next = k->next;
		if (rxafs_is_promised(k->object) || !rxafs_hold_if_used(k->object))
			continue;
		known_unlist(k);
		objects[count++] = k->object;
	}
	pthread_mutex_unlock(&list->lock);
	return count;
}

void pages_sweep(struct mount *mount)
{
	rxafs_object *objects[SWEEP_MOST];
	unsigned count;

	do {
		count = take_unpromised(mount->pages, objects);
		for (unsigned i = 0; i < count; i++) {
			flusher_changed(mount, objects[i], RXAFS_CHANGED_DATA);
			rxafs_release(objects[i]);
		}
	} while (count == SWEEP_MOST);
}

int pages_start(struct mount *mount)
{
	mount->pages = calloc(1, sizeof *mount->pages);
	if (!mount->pages)
		return -ENOMEM;
	pthread_mutex_init(&mount->pages->lock, NULL);
	return 0;
}

void pages_free(struct mount *mount)
{
	if (!mount->pages)
		return;
	assert(!mount->pages->first);
	pthread_mutex_destroy(&mount->pages->lock);
	free(mount->pages);
	mount->pages = NULL;
}
