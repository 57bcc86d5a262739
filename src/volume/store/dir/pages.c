/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Versions of directories that share pages. A version is an array of blocks, a block an array of
 * pages; both are counted references. An edit copies the blocks and pages that another version refers to.
 */
#include "volume/store/dir/pages.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "afs/dir.h"
#include "afs/dirformat.h"
#include "common/clock.h"
#include "common/siphash.h"

#define SLOT	    AFS_DIR_SLOT
#define HEADER	    32 /* bytes of slot 0 */
#define HEADER_ZERO 13 /* from here on it has zeros */
#define LONGEST	    AFS_DIR_NAME_MAX
#define RUN_MAX	    9 /* slots of the longest name */
#define INDEX_PAGES 8 /* directories with as many have an index */

#define BLOCK	    32 /* pages */
#define BLOCKS	    ((STORE_PAGES_MAX + BLOCK - 1) / BLOCK)

/*
 * -- an index: the chains of a large directory in compact arrays. A walk along a chain of 500 entries, each in
 * another page, takes longer than all else that a change of the directory needs --
 */

/* A chain in reverse order: the entry at its head is the last one. */
struct pages_chain {
	unsigned refs; /* atomic */
	uint32_t count, room;
	struct pages_link {
		uint16_t tag; /* equal for equal names */
		uint16_t slot;
	} link[];
};

/* Constant while more than one version of a directory refers to it. */
struct pages_index {
	atomic_uint refs;
	struct pages_chain *chain[BUCKETS];
};

static void unref_chain(struct pages_chain *chain)
{
	if (chain && __atomic_fetch_sub(&chain->refs, 1, __ATOMIC_ACQ_REL) == 1)
		free(chain);
}

/* Without entries, and with one reference. NULL: no memory. */
static struct pages_index *new_index(void)
{
	struct pages_index *index = calloc(1, sizeof(*index));

	if (index)
		atomic_init(&index->refs, 1);
	return index;
}

static struct pages_index *ref_index(struct pages_index *index)
{
	atomic_fetch_add_explicit(&index->refs, 1, memory_order_relaxed);
	return index;
}

static void unref_index(struct pages_index *index)
{
	if (!index || atomic_fetch_sub_explicit(&index->refs, 1, memory_order_acq_rel) != 1)
		return;
	for (unsigned i = 0; i < BUCKETS; i++)
		unref_chain(index->chain[i]);
	free(index);
}

/* An index with a single reference. */
static bool get_own_index(struct pages_index **index)
{
	struct pages_index *old = *index;

	if (atomic_load_explicit(&old->refs, memory_order_acquire) == 1)
		return true;

	struct pages_index *copy = new_index();

	if (!copy)
		return false;
	for (unsigned i = 0; i < BUCKETS; i++) {
		copy->chain[i] = old->chain[i];
		if (copy->chain[i])
			__atomic_fetch_add(&copy->chain[i]->refs, 1, __ATOMIC_RELAXED);
	}
	*index = copy;
	unref_index(old);
	return true;
}

/*
 * Make ready for one change of a chain: what others refer to is copied, and the reference *index
 * replaced. False: no memory; nothing has changed.
 */
static bool prepare_chain(struct pages_index **index, unsigned chain)
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

static void push_chain_link(struct pages_index *index, unsigned chain, uint16_t tag, uint16_t slot)
{
	struct pages_chain *to = index->chain[chain];

	assert(to && to->count < to->room);
	to->link[to->count++] = (struct pages_link){tag, slot};
}

static void cut_chain_link(struct pages_index *index, unsigned chain, uint32_t position)
{
	struct pages_chain *from = index->chain[chain];

	assert(position < from->count);
	from->count--;
	memmove(&from->link[position], &from->link[position + 1],
		(from->count - position) * sizeof(from->link[0]));
}

/* The chain was filled from its head on. */
static void reverse_chain(struct pages_index *index, unsigned chain)
{
	struct pages_chain *of = index->chain[chain];

	assert(of->count > 0);
	for (uint32_t i = 0, j = of->count - 1; i < j; i++, j--) {
		struct pages_link link = of->link[i];

		of->link[i] = of->link[j];
		of->link[j] = link;
	}
}

/* -- pages -- */

/* Constant while more than one block refers to it. */
struct page {
	atomic_uint refs;
	uint8_t data[STORE_PAGE];
};

/* Constant while more than one version refers to it. */
struct block {
	atomic_uint refs;
	uint8_t run[BLOCK]; /* longest run of free slots of each page, at most RUN_MAX */
	struct page *page[BLOCK];
};

/* Constant but for `refs`, unless its only user edits it. */
struct store_pages {
	atomic_uint refs;
	unsigned count;
	uint32_t entries;
	uint64_t changed[(STORE_PAGES_MAX + 63) / 64];
	struct pages_index *index; /* NULL: the directory is small, or there was no memory */
	struct block *block[BLOCKS];
};

static unsigned count_reserved_slots(unsigned page)
{
	return page == 0 ? FIRST_SLOT : 1;
}

/* The slots in use, slot 0 lowest. */
static uint64_t read_used_map(const uint8_t *page)
{
	uint64_t map = 0;

	for (int i = 7; i >= 0; i--)
		map = map << 8 | page[USED_MAP + i];
	return map;
}

static void write_used_map(uint8_t *page, uint64_t map)
{
	for (int i = 0; i < 8; i++)
		page[USED_MAP + i] = (uint8_t)(map >> 8 * i);
}

static uint64_t make_slot_mask(unsigned first, unsigned count)
{
	assert(count < SLOTS && first + count <= SLOTS);
	return ((1ull << count) - 1) << first;
}

/* The slots at which a run of `want` free ones begins. */
static uint64_t find_run_starts(uint64_t used, unsigned want)
{
	uint64_t starts = ~used;

	for (unsigned i = 1; i < want; i++)
		starts &= ~used >> i;
	return starts;
}

static uint8_t measure_longest_run(const uint8_t *page)
{
	uint64_t used = read_used_map(page), starts = ~used;
	unsigned run = 0;

	for (; starts && run < RUN_MAX; run++)
		starts &= ~used >> (run + 1);
	return (uint8_t)run;
}

/* -- references -- */

static void unref_page(struct page *page)
{
	if (page && atomic_fetch_sub_explicit(&page->refs, 1, memory_order_acq_rel) == 1)
		free(page);
}

static void unref_block(struct block *block)
{
	if (!block || atomic_fetch_sub_explicit(&block->refs, 1, memory_order_acq_rel) != 1)
		return;
	for (unsigned i = 0; i < BLOCK; i++)
		unref_page(block->page[i]);
	free(block);
}

struct store_pages *store_pages_ref(struct store_pages *pages)
{
	atomic_fetch_add_explicit(&pages->refs, 1, memory_order_relaxed);
	return pages;
}

void store_pages_unref(struct store_pages *pages)
{
	if (!pages || atomic_fetch_sub_explicit(&pages->refs, 1, memory_order_acq_rel) != 1)
		return;
	for (unsigned b = 0; b < BLOCKS; b++)
		unref_block(pages->block[b]);
	unref_index(pages->index);
	free(pages);
}

struct store_pages *store_pages_fork(const struct store_pages *pages)
{
	struct store_pages *fork = calloc(1, sizeof(*fork));

	if (!fork)
		return NULL;
	atomic_init(&fork->refs, 1);
	fork->count = pages->count;
	fork->entries = pages->entries;
	if (pages->index)
		fork->index = ref_index(pages->index);
	for (unsigned b = 0; b < BLOCKS && pages->block[b]; b++) {
		fork->block[b] = pages->block[b];
		atomic_fetch_add_explicit(&fork->block[b]->refs, 1, memory_order_relaxed);
	}
	return fork;
}

static bool has_other_users(atomic_uint *refs)
{
	return atomic_load_explicit(refs, memory_order_acquire) > 1;
}

/* The block of a page, made or copied if need be. NULL: no memory. */
static struct block *get_own_block(struct store_pages *pages, unsigned page)
{
	struct block **at = &pages->block[page / BLOCK], *old = *at;

	if (old && !has_other_users(&old->refs))
		return old;

	struct block *block = calloc(1, sizeof(*block));

	if (!block)
		return NULL;
	atomic_init(&block->refs, 1);
	for (unsigned i = 0; old && i < BLOCK; i++) {
		block->run[i] = old->run[i];
		block->page[i] = old->page[i];
		if (block->page[i])
			atomic_fetch_add_explicit(&block->page[i]->refs, 1, memory_order_relaxed);
	}
	*at = block;
	unref_block(old);
	return block;
}

/* The bytes of a page, to be changed. NULL: no memory. */
static uint8_t *get_own_page(struct store_pages *pages, unsigned page)
{
	struct block *block = get_own_block(pages, page);

	assert(page < pages->count);
	if (!block)
		return NULL;

	struct page **at = &block->page[page % BLOCK], *old = *at;

	if (has_other_users(&old->refs)) {
		struct page *copy = malloc(sizeof(*copy));

		if (!copy)
			return NULL;
		atomic_init(&copy->refs, 1);
		memcpy(copy->data, old->data, sizeof(copy->data));
		*at = copy;
		unref_page(old);
	}
	pages->changed[page / 64] |= 1ull << page % 64;
	return (*at)->data;
}

/* A page of zeros behind the last one, which the caller counts. NULL: no memory. */
static uint8_t *add_zero_page(struct store_pages *pages, unsigned page)
{
	struct block *block = get_own_block(pages, page);
	struct page *made = block ? calloc(1, sizeof(*made)) : NULL;

	assert(page < STORE_PAGES_MAX);
	if (!made)
		return NULL;
	atomic_init(&made->refs, 1);
	block->page[page % BLOCK] = made;
	return made->data;
}

const uint8_t *store_pages_page(const struct store_pages *pages, unsigned page)
{
	return page < pages->count ? pages->block[page / BLOCK]->page[page % BLOCK]->data : NULL;
}

void store_pages_mark(struct store_pages *pages)
{
	for (unsigned page = 0; page < pages->count; page++)
		pages->changed[page / 64] |= 1ull << page % 64;
}

bool store_pages_changed(const struct store_pages *pages, unsigned page)
{
	return page < pages->count && pages->changed[page / 64] >> page % 64 & 1;
}

unsigned store_pages_count(const struct store_pages *pages)
{
	return pages->count;
}

uint32_t store_pages_entries(const struct store_pages *pages)
{
	return pages->entries;
}

size_t store_pages_memory(const struct store_pages *pages)
{
	size_t blocks = (pages->count + BLOCK - 1) / BLOCK;

	size_t index = pages->index ? pages->entries * sizeof(struct pages_link) : 0;

	return sizeof(*pages) + blocks * sizeof(struct block) + pages->count * sizeof(struct page) +
	       index;
}

static const uint8_t *get_slot_bytes(const struct store_pages *pages, unsigned number)
{
	assert(number / SLOTS < pages->count);
	return store_pages_page(pages, number / SLOTS) + number % SLOTS * SLOT;
}

/* -- looking up -- */

static uint64_t secret[2]; /* constant after the first use */

static void make_hash_secret(void)
{
	/* The time is a weaker secret than random bytes, but it also tells names apart. */
	if (getrandom(secret, sizeof(secret), 0) != sizeof(secret))
		secret[0] = monotonic_ns();
}

/*
 * Tells names apart, and has nothing to do with the chains. Users choose names: with a key that they do not know,
 * they cannot choose many with one value.
 */
static uint64_t hash_entry_name(const char *name)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, make_hash_secret);
	return siphash(name, strlen(name), secret);
}

static uint16_t compute_name_tag(const char *name)
{
	return (uint16_t)hash_entry_name(name);
}

static const char *get_slot_name(const struct store_pages *pages, unsigned number)
{
	return (const char *)get_slot_bytes(pages, number) + NAME;
}

static unsigned choose_hash_chain(const char *name)
{
	return afs_dir_hash(name, strlen(name));
}

static size_t get_chain_offset(unsigned chain)
{
	return HASH_TABLE + 2 * chain;
}

/* Where the entry of a name is. */
struct place {
	unsigned chain;
	unsigned number;   /* its slot; 0: there is none */
	unsigned before;   /* slot of the entry before it in the chain; 0: it is the first one */
	uint32_t position; /* in the index, if there is one */
};

static void find_indexed_place(const struct store_pages *pages, const char *name,
			       struct place *place)
{
	const struct pages_chain *chain = pages->index->chain[place->chain];
	uint16_t tag = compute_name_tag(name);

	for (uint32_t i = chain ? chain->count : 0; i--;) {
		if (chain->link[i].tag != tag ||
		    strcmp(get_slot_name(pages, chain->link[i].slot), name) != 0)
			continue;
		place->number = chain->link[i].slot;
		place->before = i + 1 < chain->count ? chain->link[i + 1].slot : 0;
		place->position = i;
		return;
	}
}

static struct place find_entry_place(const struct store_pages *pages, const char *name)
{
	struct place place = {.chain = choose_hash_chain(name)};
	unsigned before = 0, number;

	if (pages->index) {
		find_indexed_place(pages, name, &place);
		return place;
	}
	/* The chains of a version are sound: they end. */
	number = get16(store_pages_page(pages, 0) + get_chain_offset(place.chain));
	while (number && strcmp(get_slot_name(pages, number), name) != 0) {
		before = number;
		number = get16(get_slot_bytes(pages, number) + NEXT);
	}
	place.number = number;
	place.before = before;
	return place;
}

int store_pages_find(const struct store_pages *pages, const char *name, uint32_t *vnode,
		     uint32_t *unique)
{
	unsigned number = find_entry_place(pages, name).number;

	if (!number)
		return -ENOENT;

	const uint8_t *entry = get_slot_bytes(pages, number);

	*vnode = get32(entry + VNODE);
	*unique = get32(entry + UNIQUE);
	return 0;
}

int store_pages_next(const struct store_pages *pages, uint32_t *cursor, const char **name,
		     uint32_t *vnode, uint32_t *unique)
{
	uint32_t number = *cursor < FIRST_SLOT ? FIRST_SLOT : *cursor, end = pages->count * SLOTS;

	while (number < end) {
		unsigned slot = number % SLOTS;
		uint64_t left =
			read_used_map(store_pages_page(pages, number / SLOTS)) >> slot << slot;

		left &= ~1ull;
		if (!left) {
			number += SLOTS - slot;
			continue;
		}
		number = number - slot + (unsigned)__builtin_ctzll(left);

		const uint8_t *entry = get_slot_bytes(pages, number);

		*name = (const char *)entry + NAME;
		*vnode = get32(entry + VNODE);
		*unique = get32(entry + UNIQUE);
		*cursor = number + slots_for(strlen(*name));
		return 1;
	}
	*cursor = end;
	return 0;
}

/* -- changing -- */

/* The first page with a run of `want` free slots; that may be the one behind the last. */
static unsigned find_page_with_room(const struct store_pages *pages, unsigned want)
{
	for (unsigned p = 0; p < pages->count; p++)
		if (pages->block[p / BLOCK]->run[p % BLOCK] >= want)
			return p;
	return pages->count;
}

/* Mark slots as used or free. `head`: page 0. */
static void mark_page_slots(struct store_pages *pages, uint8_t *head, uint8_t *page,
			    unsigned number, unsigned count, bool used)
{
	unsigned p = number / SLOTS;
	uint64_t map = read_used_map(page), mask = make_slot_mask(number % SLOTS, count);

	assert((map & mask) == (used ? 0 : mask));
	write_used_map(page, used ? map | mask : map & ~mask);
	if (p < ALLOC_PAGES)
		head[ALLOC_MAP + p] = (uint8_t)(SLOTS - __builtin_popcountll(read_used_map(page)));
	pages->block[p / BLOCK]->run[p % BLOCK] = measure_longest_run(page);
}

/* Count a page that add_zero_page() made, and write its header. */
static void begin_new_page(struct store_pages *pages, uint8_t *head, uint8_t *page)
{
	unsigned p = pages->count++, reserved = count_reserved_slots(p);

	put16(page + 2, TAG);
	page[4] = (uint8_t)(SLOTS - reserved);
	if (p == 0)
		memset(head + ALLOC_MAP, SLOTS, ALLOC_PAGES);
	mark_page_slots(pages, head, page, p * SLOTS, reserved, true);
	put16(head, pages->count);
	pages->changed[p / 64] |= 1ull << p % 64;
}

/* Mirror a chain, from its end to its head. */
static bool index_hash_chain(struct pages_index **index, const struct store_pages *pages,
			     unsigned chain)
{
	unsigned number = get16(store_pages_page(pages, 0) + get_chain_offset(chain));
	uint32_t count = 0;

	for (; number; number = get16(get_slot_bytes(pages, number) + NEXT)) {
		if (!prepare_chain(index, chain))
			return false;
		push_chain_link(*index, chain, compute_name_tag(get_slot_name(pages, number)),
				(uint16_t)number);
		count++;
	}
	if (count)
		reverse_chain(*index, chain);
	return true;
}

/* Short chains need no index. Without memory the walks are long, but everything works. */
static void index_large_directory(struct store_pages *pages)
{
	if (pages->index || pages->count < INDEX_PAGES)
		return;

	struct pages_index *index = new_index();

	for (unsigned c = 0; index && c < BUCKETS; c++)
		if (!index_hash_chain(&index, pages, c)) {
			unref_index(index);
			return;
		}
	pages->index = index;
}

static void write_slot_entry(uint8_t *entry, unsigned next, const char *name, uint32_t vnode,
			     uint32_t unique)
{
	assert(strlen(name) <= LONGEST);
	entry[0] = 1;
	put16(entry + NEXT, next);
	put32(entry + VNODE, vnode);
	put32(entry + UNIQUE, unique);
	memcpy(entry + NAME, name, strlen(name));
}

int store_pages_add(struct store_pages *pages, const char *name, uint32_t vnode, uint32_t unique)
{
	size_t length = strlen(name);
	unsigned want = slots_for(length), p = find_page_with_room(pages, want);
	struct place place = find_entry_place(pages, name);

	if (length == 0 || length > LONGEST || strchr(name, '/'))
		return -EINVAL;
	if (place.number)
		return -EEXIST;
	if (p == STORE_PAGES_MAX)
		return -EFBIG;
	if (pages->index && !prepare_chain(&pages->index, place.chain))
		return -ENOMEM;

	uint8_t *head = get_own_page(pages, 0), *page = NULL;

	if (head)
		page = p == pages->count ? add_zero_page(pages, p) : get_own_page(pages, p);
	if (!page)
		return -ENOMEM;
	if (p == pages->count)
		begin_new_page(pages, head, page);

	unsigned slot = (unsigned)__builtin_ctzll(find_run_starts(read_used_map(page), want));
	unsigned number = p * SLOTS + slot;
	uint8_t *first = head + get_chain_offset(place.chain);

	mark_page_slots(pages, head, page, number, want, true);
	write_slot_entry(page + slot * SLOT, get16(first), name, vnode, unique);
	put16(first, number);
	pages->entries++;
	if (pages->index)
		push_chain_link(pages->index, place.chain, compute_name_tag(name),
				(uint16_t)number);
	index_large_directory(pages);
	return 0;
}

int store_pages_remove(struct store_pages *pages, const char *name)
{
	struct place place = find_entry_place(pages, name);
	unsigned number = place.number, before = place.before;

	if (!number || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return -ENOENT;
	if (pages->index && !prepare_chain(&pages->index, place.chain))
		return -ENOMEM;

	/* Page 0 has the beginning of the chain, and the number of free slots of the first pages. */
	unsigned p = number / SLOTS, count = slots_for(strlen(name));
	bool first = !before || p < ALLOC_PAGES;
	uint8_t *head = first ? get_own_page(pages, 0) : NULL, *page = get_own_page(pages, p);
	uint8_t *link = before ? get_own_page(pages, before / SLOTS) : head;

	if (!page || !link || (first && !head))
		return -ENOMEM;
	link += before ? before % SLOTS * SLOT + NEXT : get_chain_offset(place.chain);

	uint8_t *entry = page + number % SLOTS * SLOT;

	put16(link, get16(entry + NEXT));
	memset(entry, 0, count * SLOT);
	mark_page_slots(pages, head, page, number, count, false);
	pages->entries--;
	if (pages->index)
		cut_chain_link(pages->index, place.chain, place.position);
	return 0;
}

bool store_pages_fits_after(const struct store_pages *pages, const char *gone, const char *name)
{
	unsigned number = find_entry_place(pages, gone).number;
	uint64_t freed = make_slot_mask(number % SLOTS, slots_for(strlen(gone)));

	if (!number)
		return false;
	return find_run_starts(read_used_map(store_pages_page(pages, number / SLOTS)) & ~freed,
			       slots_for(strlen(name))) != 0;
}

int store_pages_set(struct store_pages *pages, const char *name, uint32_t vnode, uint32_t unique)
{
	unsigned number = find_entry_place(pages, name).number;

	if (!number)
		return -ENOENT;

	uint8_t *page = get_own_page(pages, number / SLOTS);

	if (!page)
		return -ENOMEM;
	put32(page + number % SLOTS * SLOT + VNODE, vnode);
	put32(page + number % SLOTS * SLOT + UNIQUE, unique);
	return 0;
}

struct store_pages *store_pages_new(uint32_t vnode, uint32_t unique, uint32_t parent,
				    uint32_t parent_unique)
{
	struct store_pages *pages = calloc(1, sizeof(*pages));
	uint8_t *page;

	if (!pages)
		return NULL;
	atomic_init(&pages->refs, 1);
	page = add_zero_page(pages, 0);
	if (page) {
		begin_new_page(pages, page, page);
		if (store_pages_add(pages, ".", vnode, unique) == 0 &&
		    store_pages_add(pages, "..", parent, parent_unique) == 0)
			return pages;
	}
	store_pages_unref(pages);
	return NULL;
}

/* -- loading -- */

/* The state of a check. */
struct check {
	const struct store_pages *pages;
	uint64_t *start; /* for each page: slots at which an entry begins */
	uint64_t *name;	 /* hash of a name << 16 | slot number */
	uint32_t names;
};

static bool is_all_zero(const uint8_t *at, size_t length)
{
	return length == 0 || (at[0] == 0 && memcmp(at, at + 1, length - 1) == 0);
}

static bool is_page_header_sound(const struct store_pages *pages, unsigned p)
{
	const uint8_t *page = store_pages_page(pages, p), *head = store_pages_page(pages, 0);
	uint64_t used = read_used_map(page), reserved = make_slot_mask(0, count_reserved_slots(p));
	unsigned vacant = SLOTS - (unsigned)__builtin_popcountll(used);

	return get16(page) == (p == 0 ? pages->count : 0) && get16(page + 2) == TAG &&
	       page[4] == SLOTS - count_reserved_slots(p) && (used & reserved) == reserved &&
	       is_all_zero(page + HEADER_ZERO, HEADER - HEADER_ZERO) &&
	       (p >= ALLOC_PAGES || head[ALLOC_MAP + p] == vacant);
}

/* The slots of the entry in a slot, or 0 if it is damaged. */
static unsigned measure_sound_entry(const uint8_t *page, unsigned slot)
{
	const uint8_t *entry = page + slot * SLOT;
	size_t room = STORE_PAGE - slot * SLOT - NAME;
	const char *name = (const char *)entry + NAME;
	size_t length = strnlen(name, room);
	unsigned count = slots_for(length);

	if (entry[0] != 1 || entry[1] != 0 || length == 0 || length == room || length > LONGEST ||
	    memchr(name, '/', length))
		return 0;
	if (slot + count > SLOTS || (~read_used_map(page) & make_slot_mask(slot, count)))
		return 0;
	return is_all_zero(entry + NAME + length, count * SLOT - NAME - length) ? count : 0;
}

static bool are_page_slots_sound(struct check *check, unsigned p)
{
	const uint8_t *page = store_pages_page(check->pages, p);
	uint64_t used = read_used_map(page);
	unsigned count = 1;

	for (unsigned s = count_reserved_slots(p); s < SLOTS; s += count) {
		count = 1;
		if (!(used >> s & 1)) {
			if (!is_all_zero(page + s * SLOT, SLOT))
				return false;
			continue;
		}
		count = measure_sound_entry(page, s);
		if (!count)
			return false;
		check->start[p] |= 1ull << s;
		check->name[check->names++] = hash_entry_name((const char *)page + s * SLOT + NAME)
						      << 16 |
					      (p * SLOTS + s);
	}
	return true;
}

/* Every entry is in exactly one chain, that of its hash. */
static bool are_hash_chains_sound(struct check *check)
{
	const uint8_t *head = store_pages_page(check->pages, 0);
	uint32_t seen = 0;

	for (unsigned b = 0; b < BUCKETS; b++) {
		unsigned number = get16(head + HASH_TABLE + 2 * b);

		while (number) {
			uint64_t bit = 1ull << number % SLOTS;

			if (number / SLOTS >= check->pages->count ||
			    !(check->start[number / SLOTS] & bit))
				return false;
			check->start[number / SLOTS] &= ~bit; /* a second visit fails */

			const uint8_t *entry = get_slot_bytes(check->pages, number);
			const char *name = (const char *)entry + NAME;

			if (afs_dir_hash(name, strlen(name)) != b)
				return false;
			seen++;
			number = get16(entry + NEXT);
		}
	}
	return seen == check->names;
}

static int compare_name_hashes(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* No name is there twice. Equal hashes are those of equal names, but for a few by chance. */
static bool are_names_unique(struct check *check)
{
	qsort(check->name, check->names, sizeof(check->name[0]), compare_name_hashes);
	for (uint32_t i = 0; i < check->names; i++)
		for (uint32_t j = i + 1;
		     j < check->names && check->name[j] >> 16 == check->name[i] >> 16; j++)
			if (strcmp(get_slot_name(check->pages, check->name[i] & 0xffff),
				   get_slot_name(check->pages, check->name[j] & 0xffff)) == 0)
				return false;
	return true;
}

static bool are_pages_sound(struct check *check)
{
	const struct store_pages *pages = check->pages;
	const uint8_t *head = store_pages_page(pages, 0);

	for (unsigned p = 0; p < pages->count; p++)
		if (!is_page_header_sound(pages, p) || !are_page_slots_sound(check, p))
			return false;
	for (unsigned p = pages->count; p < ALLOC_PAGES; p++)
		if (head[ALLOC_MAP + p] != SLOTS)
			return false;
	return (check->start[0] >> FIRST_SLOT & 3) == 3 &&
	       strcmp(get_slot_name(pages, FIRST_SLOT), ".") == 0 &&
	       strcmp(get_slot_name(pages, FIRST_SLOT + 1), "..") == 0 &&
	       are_hash_chains_sound(check) && are_names_unique(check);
}

static struct store_pages *copy_loaded_pages(uint8_t (*page)[STORE_PAGE], unsigned count)
{
	struct store_pages *pages = calloc(1, sizeof(*pages));

	if (!pages)
		return NULL;
	atomic_init(&pages->refs, 1);
	for (unsigned p = 0; p < count; p++) {
		uint8_t *copy = add_zero_page(pages, p);

		if (!copy) {
			store_pages_unref(pages);
			return NULL;
		}
		memcpy(copy, page[p], STORE_PAGE);
		pages->block[p / BLOCK]->run[p % BLOCK] = measure_longest_run(copy);
	}
	pages->count = count;
	return pages;
}

int store_pages_load(uint8_t (*page)[STORE_PAGE], unsigned count, struct store_pages **pages)
{
	if (count == 0 || count > STORE_PAGES_MAX)
		return -EBADMSG;

	struct store_pages *copy = copy_loaded_pages(page, count);
	uint64_t *memory = copy ? calloc(count, (1 + SLOTS) * sizeof(*memory)) : NULL;
	struct check check = {.pages = copy, .start = memory};
	int rc = -ENOMEM;

	if (memory) {
		check.name = memory + count;
		rc = are_pages_sound(&check) ? 0 : -EBADMSG;
	}
	free(memory);
	if (rc) {
		store_pages_unref(copy);
		return rc;
	}
	copy->entries = check.names;
	index_large_directory(copy);
	*pages = copy;
	return 0;
}

/* Slot 13 of page 0 is the first entry; a page without its tag has none. */
bool store_page_next(const uint8_t page[STORE_PAGE], unsigned number, unsigned *slot,
		     const char **name, uint32_t *vnode, uint32_t *unique)
{
	uint64_t used = read_used_map(page);
	unsigned at = *slot ? *slot : count_reserved_slots(number);

	if (get16(page + 2) != TAG)
		return false;
	for (unsigned count; at < SLOTS; at += count) {
		const uint8_t *entry = page + at * SLOT;

		count = used >> at & 1 ? measure_sound_entry(page, at) : 0;
		if (!count) {
			count = 1;
			continue;
		}
		*slot = at + count;
		*name = (const char *)entry + NAME;
		*vnode = get32(entry + VNODE);
		*unique = get32(entry + UNIQUE);
		return true;
	}
	return false;
}
