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
	uint32_t epoch; /* of its row */
	bool damaged;	/* its blocks are not known */
	uint32_t count; /* blocks; those behind are holes */
	struct store_block block[];
};
struct store_slot *store_slot_new(uint32_t count);	    /* holes; NULL: no memory */
struct store_slot *store_slot_ref(struct store_slot *slot); /* NULL is allowed, and for unref */
void store_slot_unref(struct store_slot *slot);
bool store_slot_has(const struct store_slot *slot, uint64_t object); /* NULL: false */
/* The object of a block; 0: a hole. */
uint64_t store_slot_object(const struct store_slot *slot, uint32_t block);

/* Bytes of a slot as a record, at most; and the record. Returns its length. */
#define STORE_SLOT_MAX (4 + STORE_SLOT_BLOCKS * 22)
size_t store_slot_encode(const struct store_slot *slot, uint8_t *record);
/* 0, -EBADMSG, -ENOMEM. */
int store_slot_decode(const uint8_t *record, size_t length, struct store_slot **slot);

/* Owned by its user: store_content_free(). An empty one is all zeros. */
struct store_content {
	struct store_slot **slot; /* NULL: a slot of holes. The last one is not NULL */
	uint32_t count;
};
void store_content_free(struct store_content *content);
int store_content_copy(const struct store_content *from, struct store_content *to);
/* NULL: a hole. */
const struct store_block *store_content_block(const struct store_content *content, uint64_t index);
bool store_content_damaged(const struct store_content *content, uint64_t index);
/* Whether a content refers to an object; and whether it does in some of `count` blocks from `first` on. */
bool store_content_has(const struct store_content *content, uint64_t object);
bool store_content_shows(const struct store_content *content, uint64_t object, uint64_t first,
			 uint32_t count);

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
