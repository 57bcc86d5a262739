/* SPDX-License-Identifier: BSD-2-Clause */
/* Contents of directories: checks of images, an index by name, edits. */
#include "client/cache/names.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "afs/dir.h"
#include "afs/dirformat.h"
#include "base/hash.h"

#define PAGES_MAX 1024 /* slots have numbers of 16 bits */
#define INDEX_MIN 32
#define RUN_MAX	  16 /* more than the slots of the longest name */

/* Slots of one page, a bit each. */
struct names_page {
	uint64_t used;	 /* the page's header included */
	uint64_t starts; /* first slots of entries */
};

/* A place of the index: 0, or the slot of an entry and a part of the hash of its name. */
#define PLACE(slot, hash) ((slot) << 16 | (uint32_t)((hash) >> 48))
#define PLACE_SLOT(place) ((place) >> 16)
#define PLACE_HINT(place) ((place)&0xffffu)

struct cl_names {
	uint8_t *image; /* its header, hash chains and maps are not kept up to date */
	struct names_page *pages;
	uint32_t page_count;
	uint32_t count; /* of entries */
	uint32_t *index;
	uint32_t index_size;	/* a power of two, more than twice the entries */
	uint16_t hint[RUN_MAX]; /* no page before hint[n] has a run of n free slots */
	uint64_t key[2];
};

static uint8_t *names_entry(const struct cl_names *names, uint32_t slot)
{
	assert(slot / SLOTS < names->page_count);
	return names->image + (size_t)slot * AFS_DIR_SLOT;
}

static const char *name_at(const struct cl_names *names, uint32_t slot)
{
	return (const char *)names_entry(names, slot) + NAME;
}

static uint64_t index_hash(const struct cl_names *names, const char *name, size_t length)
{
	return rxw_siphash(name, length, names->key);
}

/* Bits of `count` slots from `slot` on, within one page. */
static uint64_t slot_bits(uint32_t slot, unsigned count)
{
	assert(count > 0 && slot % SLOTS + count <= SLOTS);
	return (count == SLOTS ? ~0ull : (1ull << count) - 1) << slot % SLOTS;
}

/* -- index --------------------------------------------------------------------------------- */

static void index_put(struct cl_names *names, uint32_t slot, uint64_t hash)
{
	uint32_t mask = names->index_size - 1;
	uint32_t at = (uint32_t)hash & mask;

	while (names->index[at])
		at = (at + 1) & mask;
	names->index[at] = PLACE(slot, hash);
}

/* The place of a name, or that of the free place which ends the search. */
static uint32_t *index_seek(const struct cl_names *names, const char *name, size_t length,
			    uint64_t hash)
{
	uint32_t mask = names->index_size - 1;
	uint32_t at = (uint32_t)hash & mask;

	for (; names->index[at]; at = (at + 1) & mask) {
		const char *other;

		if (PLACE_HINT(names->index[at]) != (uint32_t)(hash >> 48))
			continue;
		other = name_at(names, PLACE_SLOT(names->index[at]));
		if (strlen(other) == length && memcmp(other, name, length) == 0)
			break;
	}
	return &names->index[at];
}

/* Take an entry out of the index. Those that follow it move up, so that no search ends early. */
static void index_take(struct cl_names *names, uint32_t *place)
{
	uint32_t mask = names->index_size - 1;
	uint32_t hole = (uint32_t)(place - names->index), at = hole;

	for (;;) {
		const char *name;
		uint32_t home;

		at = (at + 1) & mask;
		if (!names->index[at])
			break;
		name = name_at(names, PLACE_SLOT(names->index[at]));
		home = (uint32_t)index_hash(names, name, strlen(name)) & mask;
		if (((at - home) & mask) < ((at - hole) & mask))
			continue;
		names->index[hole] = names->index[at];
		hole = at;
	}
	names->index[hole] = 0;
}

/* An index with room for `count` entries, filled with those that are there. */
static bool index_build(struct cl_names *names, uint32_t count)
{
	uint32_t size = INDEX_MIN;
	uint32_t *index;

	while (size < 2 * count)
		size *= 2;
	index = calloc(size, sizeof(*index));
	if (!index)
		return false;
	free(names->index);
	names->index = index;
	names->index_size = size;
	for (uint32_t p = 0; p < names->page_count; p++)
		for (uint64_t bits = names->pages[p].starts; bits; bits &= bits - 1) {
			uint32_t slot = p * SLOTS + (uint32_t)__builtin_ctzll(bits);
			const char *name = name_at(names, slot);

			index_put(names, slot, index_hash(names, name, strlen(name)));
		}
	return true;
}

/* -- checks of images ---------------------------------------------------------------------- */

static bool set_fault(const char **fault, const char *how)
{
	*fault = how;
	return false;
}

/* The length of the name in a slot, or 0 if no entry of AFS can be there. */
static size_t check_entry(const struct cl_names *names, uint32_t slot, const char **fault)
{
	size_t room = (size_t)(SLOTS - slot % SLOTS) * AFS_DIR_SLOT - NAME;
	const uint8_t *entry = names_entry(names, slot);
	const char *name = (const char *)entry + NAME;
	size_t length = strnlen(name, room);
	uint64_t bits;

	if (entry[0] != 1)
		return set_fault(fault, "a used slot without an entry");
	if (length == room)
		return set_fault(fault, "a name that does not end in its page");
	if (length == 0 || length > CL_NAME_MAX || memchr(name, '/', length))
		return set_fault(fault, "an impossible name");
	if (get32(entry + VNODE) == 0)
		return set_fault(fault, "an entry without a vnode");
	bits = slot_bits(slot, slots_for(length));
	if ((names->pages[slot / SLOTS].used & bits) != bits)
		return set_fault(fault, "an entry in free slots");
	return length;
}

/* Find the entries of a page by its map of used slots. */
static bool check_names_page(struct cl_names *names, uint32_t page, const char **fault)
{
	struct names_page *state = &names->pages[page];
	const uint8_t *header = names->image + (size_t)page * AFS_DIR_PAGE;
	uint64_t rest;

	if (get16(header + 2) != TAG)
		return set_fault(fault, "a page without its tag");
	for (unsigned i = 0; i < SLOTS / 8; i++)
		state->used |= (uint64_t)header[USED_MAP + i] << 8 * i;
	rest = slot_bits(0, page == 0 ? FIRST_SLOT : 1);
	if ((state->used & rest) != rest)
		return set_fault(fault, "a header in free slots");
	for (rest = state->used & ~rest; rest;) {
		uint32_t slot = page * SLOTS + (uint32_t)__builtin_ctzll(rest);
		size_t length = check_entry(names, slot, fault);

		if (!length)
			return false;
		state->starts |= slot_bits(slot, 1);
		rest &= ~slot_bits(slot, slots_for(length));
		names->count++;
	}
	return true;
}

static bool is_entry(const struct cl_names *names, uint32_t slot)
{
	return slot / SLOTS < names->page_count &&
	       (names->pages[slot / SLOTS].starts >> slot % SLOTS & 1) != 0;
}

/* Each entry must be in one chain, that of its hash, since a server finds names by them. */
static bool check_chains(const struct cl_names *names, const char **fault)
{
	uint32_t seen = 0;

	for (unsigned bucket = 0; bucket < BUCKETS; bucket++) {
		uint32_t slot = get16(names->image + HASH_TABLE + (size_t)2 * bucket);

		for (; slot; slot = get16(names_entry(names, slot) + NEXT)) {
			const char *name;

			if (!is_entry(names, slot))
				return set_fault(fault, "a chain that leads to no entry");
			name = name_at(names, slot);
			if (afs_dir_hash(name, strlen(name)) != bucket)
				return set_fault(fault, "an entry in a wrong chain");
			if (++seen > names->count)
				return set_fault(fault, "chains that meet");
		}
	}
	if (seen != names->count)
		return set_fault(fault, "an entry in no chain");
	return true;
}

/* Index the names of an image. None may be there twice. */
static bool check_names(struct cl_names *names, const char **fault)
{
	uint32_t vnode, unique;

	for (uint32_t p = 0; p < names->page_count; p++)
		for (uint64_t bits = names->pages[p].starts; bits; bits &= bits - 1) {
			uint32_t slot = p * SLOTS + (uint32_t)__builtin_ctzll(bits);
			const char *name = name_at(names, slot);
			size_t length = strlen(name);
			uint64_t hash = index_hash(names, name, length);
			uint32_t *place = index_seek(names, name, length, hash);

			if (*place)
				return set_fault(fault, "a name twice");
			*place = PLACE(slot, hash);
		}
	if (!cl_names_find(names, ".", 1, &vnode, &unique) ||
	    !cl_names_find(names, "..", 2, &vnode, &unique))
		return set_fault(fault, "no \".\" or \"..\"");
	return true;
}

static struct cl_names *names_alloc(size_t pages, const uint64_t key[2])
{
	struct cl_names *names = calloc(1, sizeof(*names));

	if (!names)
		return NULL;
	names->key[0] = key[0];
	names->key[1] = key[1];
	names->page_count = (uint32_t)pages;
	names->image = malloc(pages * AFS_DIR_PAGE);
	names->pages = calloc(pages, sizeof(*names->pages));
	if (names->image && names->pages)
		return names;
	cl_names_free(names);
	return NULL;
}

/* The number of entries is known after the pages were checked, and then the index can be made. */
static bool check_image(struct cl_names *names, const char **fault)
{
	uint32_t size = INDEX_MIN;

	for (uint32_t p = 0; p < names->page_count; p++)
		if (!check_names_page(names, p, fault))
			return false;
	while (size < 2 * names->count)
		size *= 2;
	names->index = calloc(size, sizeof(*names->index));
	names->index_size = size;
	if (!names->index)
		return false;
	return check_chains(names, fault) && check_names(names, fault);
}

struct cl_names *cl_names_parse(const uint8_t *image, size_t length, const uint64_t key[2],
				const char **fault)
{
	size_t pages = length / AFS_DIR_PAGE;
	struct cl_names *names;

	*fault = "an impossible length";
	if (pages == 0 || pages > PAGES_MAX || length % AFS_DIR_PAGE)
		return NULL;
	*fault = "a wrong number of pages";
	if (get16(image) != pages)
		return NULL;
	*fault = NULL;
	names = names_alloc(pages, key);
	if (!names)
		return NULL;
	memcpy(names->image, image, length);
	if (check_image(names, fault))
		return names;
	cl_names_free(names);
	return NULL;
}

struct cl_names *cl_names_new(uint32_t vnode, uint32_t unique, uint32_t parent_vnode,
			      uint32_t parent_unique, const uint64_t key[2])
{
	struct cl_names *names = names_alloc(1, key);

	if (!names)
		return NULL;
	memset(names->image, 0, AFS_DIR_PAGE);
	names->pages[0].used = slot_bits(0, FIRST_SLOT);
	if (index_build(names, 2) && cl_names_add(names, ".", 1, vnode, unique) &&
	    cl_names_add(names, "..", 2, parent_vnode, parent_unique))
		return names;
	cl_names_free(names);
	return NULL;
}

void cl_names_free(struct cl_names *names)
{
	if (!names)
		return;
	free(names->image);
	free(names->pages);
	free(names->index);
	free(names);
}

/* -- questions ----------------------------------------------------------------------------- */

uint64_t cl_names_place(const struct cl_names *names, const char *name, size_t length)
{
	if (length == 0 || length > CL_NAME_MAX)
		return 0;
	return PLACE_SLOT(*index_seek(names, name, length, index_hash(names, name, length)));
}

bool cl_names_find(const struct cl_names *names, const char *name, size_t length, uint32_t *vnode,
		   uint32_t *unique)
{
	uint32_t slot = (uint32_t)cl_names_place(names, name, length);

	if (!slot)
		return false;
	*vnode = get32(names_entry(names, slot) + VNODE);
	*unique = get32(names_entry(names, slot) + UNIQUE);
	return true;
}

bool cl_names_next(const struct cl_names *names, uint64_t offset, struct cl_entry *entry)
{
	for (uint64_t p = offset / SLOTS; p < names->page_count; p++) {
		uint64_t bits = names->pages[p].starts;
		uint32_t slot;

		if (p == offset / SLOTS)
			bits &= ~0ull << offset % SLOTS;
		if (!bits)
			continue;
		slot = (uint32_t)p * SLOTS + (uint32_t)__builtin_ctzll(bits);
		entry->vnode = get32(names_entry(names, slot) + VNODE);
		entry->unique = get32(names_entry(names, slot) + UNIQUE);
		entry->next = (uint64_t)slot + 1;
		entry->length = (uint16_t)strlen(name_at(names, slot));
		assert(entry->length <= CL_NAME_MAX);
		memcpy(entry->name, name_at(names, slot), (size_t)entry->length + 1);
		return true;
	}
	return false;
}

uint32_t cl_names_count(const struct cl_names *names)
{
	return names->count;
}

size_t cl_names_size(const struct cl_names *names)
{
	return sizeof(*names) + names->page_count * (AFS_DIR_PAGE + sizeof(*names->pages)) +
	       names->index_size * sizeof(*names->index);
}

/* -- edits --------------------------------------------------------------------------------- */

bool cl_names_remove(struct cl_names *names, const char *name, size_t length)
{
	uint64_t hash = index_hash(names, name, length);
	uint32_t *place, slot;
	unsigned slots;

	if (length == 0 || length > CL_NAME_MAX)
		return false;
	place = index_seek(names, name, length, hash);
	if (!*place)
		return false;
	slot = PLACE_SLOT(*place);
	slots = slots_for(length);
	index_take(names, place);
	names->pages[slot / SLOTS].used &= ~slot_bits(slot, slots);
	names->pages[slot / SLOTS].starts &= ~slot_bits(slot, 1);
	memset(names_entry(names, slot), 0, (size_t)slots * AFS_DIR_SLOT);
	for (unsigned n = 0; n < RUN_MAX; n++)
		if (names->hint[n] > slot / SLOTS)
			names->hint[n] = (uint16_t)(slot / SLOTS);
	assert(names->count > 0);
	names->count--;
	return true;
}

static bool append_names_page(struct cl_names *names)
{
	size_t pages = names->page_count;
	struct names_page *states;
	uint8_t *image;

	if (pages == AFS_DIR_PAGES_MAX)
		return false;
	image = realloc(names->image, (pages + 1) * AFS_DIR_PAGE);
	if (!image)
		return false;
	names->image = image;
	states = realloc(names->pages, (pages + 1) * sizeof(*states));
	if (!states)
		return false;
	names->pages = states;
	memset(image + pages * AFS_DIR_PAGE, 0, AFS_DIR_PAGE);
	states[pages] = (struct names_page){.used = slot_bits(0, 1)};
	names->page_count++;
	return true;
}

/* The lowest run of free slots, as a server chooses it, so that offsets stay the same (K-096). 0: no room. */
static uint32_t find_free_run(struct cl_names *names, unsigned slots)
{
	for (uint32_t p = names->hint[slots];; p++) {
		uint64_t runs;

		if (p == names->page_count && !append_names_page(names))
			return 0;
		runs = ~names->pages[p].used;
		for (unsigned n = 1; n < slots; n++)
			runs &= runs >> 1; /* slots with n free ones behind them */
		if (!runs)
			continue;
		names->hint[slots] = (uint16_t)p;
		return p * SLOTS + (uint32_t)__builtin_ctzll(runs);
	}
}

bool cl_names_add(struct cl_names *names, const char *name, size_t length, uint32_t vnode,
		  uint32_t unique)
{
	uint64_t hash;
	uint32_t *place, slot;

	if (length == 0 || length > CL_NAME_MAX || memchr(name, 0, length) ||
	    memchr(name, '/', length))
		return false;
	hash = index_hash(names, name, length);
	place = index_seek(names, name, length, hash);
	slot = PLACE_SLOT(*place);
	if (!slot) {
		if (2 * (names->count + 1) > names->index_size &&
		    !index_build(names, names->count + 1))
			return false;
		slot = find_free_run(names, slots_for(length));
		if (!slot)
			return false;
		index_put(names, slot, hash);
		names->pages[slot / SLOTS].used |= slot_bits(slot, slots_for(length));
		names->pages[slot / SLOTS].starts |= slot_bits(slot, 1);
		memcpy(names_entry(names, slot) + NAME, name, length);
		names_entry(names, slot)[NAME + length] = 0;
		names->count++;
	}
	put32(names_entry(names, slot) + VNODE, vnode);
	put32(names_entry(names, slot) + UNIQUE, unique);
	return true;
}
