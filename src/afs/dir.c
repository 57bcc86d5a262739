/* SPDX-License-Identifier: BSD-2-Clause */
/* Builder and reader of directory images. */
#include "afs/dir.h"

#include <stdlib.h>
#include <string.h>
#include <rxwire/error.h>

#include "afs/dirformat.h"

#define IMAGE_NAME_MAX 256

unsigned afs_dir_hash(const char *name, size_t length)
{
	uint32_t h = 0;

	for (size_t i = 0; i < length; i++)
		h = h * 173 + (uint8_t)name[i];
	unsigned t = h & (BUCKETS - 1);

	return t == 0 || h < 0x80000000u ? t : BUCKETS - t;
}

static bool slot_used(const uint8_t *page, unsigned slot)
{
	return page[USED_MAP + (slot >> 3)] >> (slot & 7) & 1;
}

static void mark_slots(uint8_t *page, unsigned first, unsigned count)
{
	for (unsigned s = first; s < first + count; s++)
		page[USED_MAP + (s >> 3)] |= (uint8_t)(1u << (s & 7));
}

static int append_page(struct afs_dir *dir)
{
	if (dir->pages == AFS_DIR_PAGES_MAX)
		return -RXW_ELIMIT;
	if (dir->pages == dir->capacity) {
		uint32_t capacity = dir->capacity ? dir->capacity * 2 : 1;
		uint8_t *image = realloc(dir->image, (size_t)capacity * AFS_DIR_PAGE);

		if (!image)
			return -RXW_ENOMEM;
		dir->image = image;
		dir->capacity = capacity;
	}
	uint32_t p = dir->pages++;
	uint8_t *page = dir->image + (size_t)p * AFS_DIR_PAGE;

	memset(page, 0, AFS_DIR_PAGE);
	put16(page + 2, TAG);
	page[4] = p == 0 ? SLOTS - FIRST_SLOT : SLOTS - 1;
	mark_slots(page, 0, p == 0 ? FIRST_SLOT : 1);
	if (p == 0) {
		memset(page + ALLOC_MAP, SLOTS, ALLOC_PAGES);
		page[ALLOC_MAP] = SLOTS - FIRST_SLOT;
	} else if (p < ALLOC_PAGES) {
		dir->image[ALLOC_MAP + p] = SLOTS - 1;
	}
	put16(dir->image, dir->pages);
	return 0;
}

/* The lowest run of `want` free slots of a page, or 0. */
static unsigned find_run(const uint8_t *page, unsigned want)
{
	unsigned run = 0;

	for (unsigned s = 1; s < SLOTS; s++) {
		run = slot_used(page, s) ? 0 : run + 1;
		if (run == want)
			return s - want + 1;
	}
	return 0;
}

static int find_free_slots(struct afs_dir *dir, unsigned want, uint32_t *page_out,
			   unsigned *slot_out)
{
	for (uint32_t p = dir->hint[want];; p++) {
		if (p == dir->pages) {
			int rc = append_page(dir);

			if (rc)
				return rc;
		}
		if (p < ALLOC_PAGES && dir->image[ALLOC_MAP + p] < want)
			continue;
		unsigned slot = find_run(dir->image + (size_t)p * AFS_DIR_PAGE, want);

		if (slot) {
			dir->hint[want] = (uint16_t)p;
			*page_out = p;
			*slot_out = slot;
			return 0;
		}
	}
}

int afs_dir_add(struct afs_dir *dir, const char *name, size_t length, uint32_t vnode,
		uint32_t unique)
{
	uint32_t p;
	unsigned slot;

	if (length == 0 || length > AFS_DIR_NAME_MAX || memchr(name, 0, length) ||
	    memchr(name, '/', length))
		return -RXW_EINVAL;

	unsigned want = slots_for(length);
	int rc = find_free_slots(dir, want, &p, &slot);

	if (rc)
		return rc;

	uint8_t *page = dir->image + (size_t)p * AFS_DIR_PAGE;
	uint8_t *entry = page + slot * AFS_DIR_SLOT;
	uint8_t *bucket = dir->image + HASH_TABLE + 2 * afs_dir_hash(name, length);

	mark_slots(page, slot, want);
	if (p < ALLOC_PAGES)
		dir->image[ALLOC_MAP + p] -= (uint8_t)want;
	entry[0] = 1;
	put16(entry + 2, get16(bucket));
	put32(entry + 4, vnode);
	put32(entry + 8, unique);
	memcpy(entry + NAME, name, length);
	put16(bucket, p * SLOTS + slot);
	dir->entries++;
	return 0;
}

int afs_dir_begin(struct afs_dir *dir, uint32_t vnode, uint32_t unique, uint32_t parent_vnode,
		  uint32_t parent_unique)
{
	memset(dir, 0, sizeof(*dir));
	int rc = append_page(dir);

	if (rc)
		return rc;
	rc = afs_dir_add(dir, ".", 1, vnode, unique);
	return rc ? rc : afs_dir_add(dir, "..", 2, parent_vnode, parent_unique);
}

uint8_t *afs_dir_take(struct afs_dir *dir, size_t *length)
{
	uint8_t *image = dir->image;

	*length = (size_t)dir->pages * AFS_DIR_PAGE;
	memset(dir, 0, sizeof(*dir));
	return image;
}

void afs_dir_destroy(struct afs_dir *dir)
{
	free(dir->image);
	memset(dir, 0, sizeof(*dir));
}

int afs_dir_check(const uint8_t *image, size_t length)
{
	if (length < AFS_DIR_PAGE || length % AFS_DIR_PAGE || length / AFS_DIR_PAGE > 1024)
		return -RXW_EDECODE;
	for (size_t at = 0; at < length; at += AFS_DIR_PAGE)
		if (get16(image + at + 2) != TAG)
			return -RXW_EDECODE;
	if (get16(image) == 0 || get16(image) > length / AFS_DIR_PAGE)
		return -RXW_EDECODE;
	return 0;
}

/*
 * Read the entry in a slot: 1, or -RXW_EDECODE if it does not fit in its page or has an impossible
 * name.
 */
static int read_slot_entry(const uint8_t *image, size_t length, uint32_t number,
			   struct afs_dir_entry *entry)
{
	size_t page = number / SLOTS, slot = number % SLOTS;
	size_t first = page == 0 ? FIRST_SLOT : 1;

	if (slot < first || (page + 1) * AFS_DIR_PAGE > length)
		return -RXW_EDECODE;

	const uint8_t *at = image + page * AFS_DIR_PAGE + slot * AFS_DIR_SLOT;
	size_t room = AFS_DIR_PAGE - slot * AFS_DIR_SLOT - NAME;
	const char *name = (const char *)at + NAME;
	size_t n = strnlen(name, room);

	if (at[0] != 1 || n == 0 || n == room || n > IMAGE_NAME_MAX || memchr(name, '/', n))
		return -RXW_EDECODE;
	entry->name = name;
	entry->length = n;
	entry->vnode = get32(at + 4);
	entry->unique = get32(at + 8);
	return 1;
}

int afs_dir_next(const uint8_t *image, size_t length, uint32_t *cursor, struct afs_dir_entry *entry)
{
	uint32_t number = *cursor < FIRST_SLOT ? FIRST_SLOT : *cursor;
	uint32_t end = (uint32_t)(length / AFS_DIR_PAGE) * SLOTS;

	for (; number < end; number++) {
		const uint8_t *page = image + (size_t)(number / SLOTS) * AFS_DIR_PAGE;

		if (number % SLOTS == 0 || !slot_used(page, number % SLOTS))
			continue;
		if (read_slot_entry(image, length, number, entry) < 0)
			return -RXW_EDECODE;
		*cursor = number + slots_for(entry->length);
		return 1;
	}
	*cursor = end;
	return 0;
}

int afs_dir_lookup(const uint8_t *image, size_t length, const char *name, uint32_t *vnode,
		   uint32_t *unique)
{
	size_t n = strlen(name);
	size_t steps = length / AFS_DIR_SLOT; /* more than this is a cycle */

	if (length < AFS_DIR_PAGE)
		return -RXW_EDECODE;
	uint32_t number = get16(image + HASH_TABLE + 2 * afs_dir_hash(name, n));

	for (; number && steps; steps--) {
		struct afs_dir_entry entry;

		if (read_slot_entry(image, length, number, &entry) < 0)
			return -RXW_EDECODE;
		if (entry.length == n && memcmp(entry.name, name, n) == 0) {
			*vnode = entry.vnode;
			*unique = entry.unique;
			return 1;
		}
		number = get16(image + (size_t)number / SLOTS * AFS_DIR_PAGE +
			       number % SLOTS * AFS_DIR_SLOT + 2);
	}
	return steps ? 0 : -RXW_EDECODE;
}
