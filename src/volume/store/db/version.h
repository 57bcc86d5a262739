/* SPDX-License-Identifier: BSD-2-Clause */
/* One version of a vnode: its record, and its contents. */
#ifndef STORE_VERSION_H
#define STORE_VERSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "volume/store/data/data.h"
#include "volume/store/db/parts.h"
#include "volume/store/dir/pages.h"
#include "volume/interface.h"

/* Bytes of a small file. Never change; counted. */
struct blob {
	_Atomic unsigned refs;
	uint32_t length;
	uint8_t bytes[];
};
/* NULL: no memory. The caller fills the bytes before others see them. */
struct blob *blob_new(size_t length);
struct blob *blob_ref(struct blob *blob); /* NULL is allowed, and for unref */
void blob_unref(struct blob *blob);

#define VNODE_OLDER 1u /* older rows of this vnode may exist */

struct vnode {
	uint8_t kind; /* enum store_kind; 0: there is none (a tombstone) */
	uint8_t flags;
	uint16_t mode;
	uint32_t links, unique;
	uint64_t length, version;
	int32_t author, owner;
	uint32_t group;
	uint32_t parent, parent_unique; /* of a directory: the directory above; the root: itself */
	uint32_t client_mtime, server_mtime;
	uint32_t incarnation; /* of the store, when `version` was given */
	uint64_t small;	      /* the row with the contents of a small file; 0: none */
};

/*
 * Never changes once others can see it, except that `pages` and `blob` are filled when they are
 * first needed: version_attach_...(). Counted.
 */
struct version {
	_Atomic unsigned refs;
	uint32_t epoch; /* of its row */
	struct vnode v;
	struct store_acl *acl;	      /* directories */
	char *text;		      /* symbolic links */
	struct store_content content; /* files that are not small */
	struct parts parts;	      /* how the list of the content is divided in rows */
	struct store_pages *_Atomic pages;
	struct blob *_Atomic blob;
};

/* refs = 1, all else zero. NULL: no memory. */
struct version *version_new(void);
/* A copy to be changed. NULL: no memory. */
struct version *version_copy(const struct version *from);
struct version *version_ref(struct version *version);
void version_unref(struct version *version); /* NULL is allowed */
/* Bytes of memory with all that belongs to it. */
size_t version_memory(const struct version *version);
/* Takes the reference of the caller. The first one stays attached, and is returned. */
struct store_pages *version_attach_pages(struct version *version, struct store_pages *pages);
struct blob *version_attach_blob(struct version *version, struct blob *blob);

/* -- records -- */

struct vnode_key {
	uint32_t group, vnode, epoch;
};

/* Bytes of the longest record: a content of PARTS_INLINE extents. */
#define RECORD_MAX (128 + 24 * (PARTS_INLINE + 1))

/* Returns the length; `record` has RECORD_MAX bytes. */
size_t version_encode(const struct version *version, const struct vnode_key *key, uint8_t *record);
/*
 * 0; -EBADMSG: damaged; -ENOMEM. version->epoch is that of the key. A version with parts is
 * complete after version_add_parts(), with the rows of all of them in the order of their slots.
 */
int version_decode(const uint8_t *record, size_t length, const struct vnode_key *key,
		   struct version **version);
int version_add_parts(struct version *version, uint8_t (*row)[STORE_PAGE]); /* the same results */

#endif
