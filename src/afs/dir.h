/* SPDX-License-Identifier: BSD-2-Clause */
/* Directory images: pages of 2048 bytes with a hash table, as clients fetch them. */
#ifndef AFS_DIR_H
#define AFS_DIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define AFS_DIR_PAGE	  2048
#define AFS_DIR_SLOT	  32
#define AFS_DIR_PAGES_MAX 1023
#define AFS_DIR_NAME_MAX  255 /* bytes of names that we add; images of others may have 256 */

/*
 * An image under construction. One thread. `image` holds `pages` * AFS_DIR_PAGE bytes and belongs
 * to the builder until afs_dir_take(). No page before hint[n] has a run of n free slots: entries
 * are never removed.
 */
struct afs_dir {
	uint8_t *image;
	uint32_t pages;
	uint32_t capacity; /* pages allocated */
	uint32_t entries;  /* "." and ".." included */
	uint16_t hint[16];
};

/* Start an image with "." and "..". Returns 0 or -RXW_ENOMEM. */
int afs_dir_begin(struct afs_dir *dir, uint32_t vnode, uint32_t unique, uint32_t parent_vnode,
		  uint32_t parent_unique);
/*
 * Add an entry; the caller ensures that names are unique. `name` has `length` bytes, 1..255,
 * without NUL and '/'. Errors: -RXW_EINVAL (name), -RXW_ELIMIT (the image would be too large),
 * -RXW_ENOMEM.
 */
int afs_dir_add(struct afs_dir *dir, const char *name, size_t length, uint32_t vnode,
		uint32_t unique);
/* Finish: returns the image, to be freed with free(), and its length. */
uint8_t *afs_dir_take(struct afs_dir *dir, size_t *length);
void afs_dir_destroy(struct afs_dir *dir);

/* Bucket of a name, 0..127. */
unsigned afs_dir_hash(const char *name, size_t length);

/* An entry of an image; the name lies in the image and is NUL-terminated there. */
struct afs_dir_entry {
	const char *name;
	size_t length;
	uint32_t vnode;
	uint32_t unique;
};

/*
 * Reading of images that may be malformed: every access is within `length`. afs_dir_check: 0 if the
 * image has complete pages with their tags and a plausible page count, else -RXW_EDECODE.
 * afs_dir_next: the next entry in the order of slots; *cursor starts at 0. Returns 1 and *entry, 0
 * at the end, or -RXW_EDECODE. Names with '/' are also an error, because they must not become
 * paths. afs_dir_lookup: by the hash chain. Returns 1 and the FID, 0 (no such name), or
 * -RXW_EDECODE.
 */
int afs_dir_check(const uint8_t *image, size_t length);
int afs_dir_next(const uint8_t *image, size_t length, uint32_t *cursor,
		 struct afs_dir_entry *entry);
int afs_dir_lookup(const uint8_t *image, size_t length, const char *name, uint32_t *vnode,
		   uint32_t *unique);

#endif
