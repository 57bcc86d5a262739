/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The contents of large files. A content is a map of blocks of STORE_BLOCK bytes. A block is a hole, or lies in one object, a
 * plain file, at the same offset as in the content. Bytes that a version of a file refers to are never written again: a write
 * copies the rest of a block that it covers in part to another object; bytes at the end go behind the last byte of the
 * object. Each block has a checksum, which is verified when the block is read from the disk.
 */
#ifndef STORE_DATA_MAP_H
#define STORE_DATA_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifndef STORE_BLOCK /* tests have smaller ones */
#	define STORE_BLOCK (64u << 10)
#	define STORE_SLOT  (8u << 20) /* bytes of a content whose blocks are kept together */
#endif
#define STORE_SLOT_BLOCKS (STORE_SLOT / STORE_BLOCK)

struct store_block {
	uint64_t object; /* 0: a hole */
	uint32_t filled; /* bytes of the content; zeros follow */
	uint32_t summed; /* bytes of the object that the checksum covers: at least `filled` */
	uint32_t crc;
};

/* Counted. Constant once others can see it. */
struct store_slot {
	_Atomic unsigned refs;
	uint32_t epoch; /* of its row; 0: it has none yet, and belongs to one content */
	bool damaged;	/* its blocks are not known */
	uint32_t count; /* blocks; those behind are holes */
	struct store_block block[];
};
struct store_slot *store_slot_new(uint32_t count);	    /* holes; NULL: no memory */
/* The blocks of a slot, which may be NULL, and holes up to `count`. NULL: no memory. */
struct store_slot *store_slot_copy(const struct store_slot *from, uint32_t count);
struct store_slot *store_slot_ref(struct store_slot *slot); /* NULL is allowed, and for unref */
void store_slot_unref(struct store_slot *slot);
bool store_slot_has(const struct store_slot *slot, uint64_t object); /* NULL: false */
/* Whether a block is the first one of the slot that refers to its object; a hole is not. */
bool store_slot_is_first(const struct store_slot *slot, uint32_t block);
/* The object of a block; 0: a hole. */
uint64_t store_slot_object(const struct store_slot *slot, uint32_t block);

/* Bytes of a slot as a record, at most; and the record. Returns its length. */
#define STORE_SLOT_MAX (4 + STORE_SLOT_BLOCKS * 22)
size_t store_slot_encode(const struct store_slot *slot, uint8_t *record);
/* 0, -EBADMSG, -ENOMEM. */
int store_slot_decode(const uint8_t *record, size_t length, struct store_slot **slot);

/*
 * Owned by its user: store_content_free(). An empty one is all zeros. Slots above the first are in a tree, whose nodes and
 * slots copies share: a copy, and a change of a slot, cost the same however many slots there are.
 */
struct store_tree;
struct store_content {
	struct store_slot *first;
	struct store_tree *rest;
	uint32_t count; /* slots: the last one is not a hole */
};
#define STORE_SLOTS_MAX (1u << 25) /* of a content */
void store_content_free(struct store_content *content);
void store_content_copy(const struct store_content *from, struct store_content *to);
/* NULL: a slot of holes. */
struct store_slot *store_content_slot(const struct store_content *content, uint64_t at);
/* Takes the reference of the caller. 0 or -ENOMEM. */
int store_content_set(struct store_content *content, uint32_t at, struct store_slot *slot);
/* The next slot from *at on that is not NULL; that is not the same in both, the first one left out. False: there is none. */
bool store_content_next(const struct store_content *content, uint32_t *at);
bool store_content_differ(const struct store_content *a, const struct store_content *b,
			  uint32_t *at);
/* Slots above the first one that are not NULL; and bytes of memory. */
uint32_t store_content_rows(const struct store_content *content);
/* The slot from which on so many of these follow, with itself; 0: there are fewer. */
uint32_t store_content_from_end(const struct store_content *content, uint32_t rows);
size_t store_content_memory(const struct store_content *content);
/* Nodes of trees that were made so far, for tests. */
uint64_t store_content_nodes(void);
/* NULL: a hole. */
const struct store_block *store_content_block(const struct store_content *content, uint64_t index);
bool store_content_damaged(const struct store_content *content, uint64_t index);
/* Whether a content refers to an object; and whether it does in some of `count` blocks from `first` on. */
bool store_content_has(const struct store_content *content, uint64_t object);
bool store_content_shows(const struct store_content *content, uint64_t object, uint64_t first,
			 uint32_t count);
/* The same at once, with a lock held: true if the content has very many slots. `count` 0: anywhere. */
bool store_content_may_show(const struct store_content *content, uint64_t object, uint64_t first,
			    uint32_t count);
/* The block behind one, past slots of holes; at the end a number that no content has. */
uint64_t store_content_next_block(const struct store_content *content, uint64_t index);

/* Blocks that a run has written. */
struct store_patch {
	uint64_t first;
	struct store_block *block;
	uint32_t count;
};
/*
 * Cut the content to `kept` bytes, and put the patch in. 0, -ENOMEM, or -EIO: a part of the slot that is to stay is not
 * known.
 */
int store_content_apply(struct store_content *content, uint64_t kept,
			const struct store_patch *patch);

#endif
