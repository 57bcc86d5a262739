/* SPDX-License-Identifier: BSD-2-Clause */
/* The contents of rows: versions of vnodes, volumes. */
#ifndef STORE_RECORD_H
#define STORE_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "volume/interface.h"
#include "volume/store/data/data.h"
#include "volume/store/dir/pages.h"

/* -- one version of a vnode: its record, and its contents -- */

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
#define VNODE_LOST  2u /* only in a rescue: the record of this vnode is lost */

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
	/* The record of a large file has its first slot; others have rows, under the number `map`. */
	uint64_t map;
	uint32_t slots, rows; /* the slots of the content; of these, those with rows */
};

/*
 * Never changes once others can see it, except that `pages`, `blob` and `whole` are filled when they are
 * first needed: version_attach_...(). Counted.
 */
struct version {
	_Atomic unsigned refs;
	uint32_t epoch; /* of its row */
	struct vnode v;
	struct store_acl *acl;	      /* directories */
	char *text;		      /* symbolic links */
	/*
	 * Files that are not small. `partial`: only the first slot; `whole` has all of them once they were loaded:
	 * version_content().
	 */
	struct store_content content;
	bool partial;
	struct store_content *_Atomic whole;
	struct store_pages *_Atomic pages;
	struct blob *_Atomic blob;
	_Atomic bool was_read; /* a small file, since the version is in memory */
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
/* A copy of the content is attached. NULL: no memory. */
const struct store_content *version_attach_content(struct version *version,
						   const struct store_content *content);
/* All slots; NULL: they were not loaded. */
const struct store_content *version_content(const struct version *version);

struct vnode_key {
	uint32_t group, vnode, epoch;
};

/* Bytes of the longest record. */
#define RECORD_MAX (128 + STORE_SLOT_MAX + STORE_TEXT_MAX)

/* Returns the length; `record` has RECORD_MAX bytes. */
size_t version_encode(const struct version *version, const struct vnode_key *key, uint8_t *record);
/* Put the format and the checksum into a record that was made otherwise; the length. And whether the checksum is right. */
size_t version_seal(const struct vnode_key *key, uint8_t *record, size_t length);
bool version_is_sealed(const struct vnode_key *key, const uint8_t *record, size_t length);
/* 0; -EBADMSG: damaged; -ENOMEM. version->epoch is that of the key. Of the content, the first slot is there; `partial` tells whether there are others. */
int version_decode(const uint8_t *record, size_t length, const struct vnode_key *key,
		   struct version **version);

/* What passes over many vnodes need of a record; much cheaper. */
struct outline {
	uint32_t vnode, epoch, unique, links, parent, parent_unique, server_mtime;
	uint8_t kind; /* 0: a tombstone */
	bool damaged; /* only the first two members are known */
};
void version_outline(const uint8_t *record, size_t length, const struct vnode_key *key,
		     struct outline *outline);
/* -- volumes -- */

/*
 * A volume and its clones are a group, whose number is the id of the read-write volume. Vnodes have
 * a row for each epoch in which they changed. A clone shows the rows with the greatest epoch up to
 * its own; the read-write volume shows the newest rows and has the epoch of the next change.
 */
#define VOLUME_OFFLINE 1u /* by an administrator */
#define VOLUME_BUSY    2u /* its contents are being replaced */
#define VOLUME_HIDDEN  4u /* it is being restored: no list shows it */

/* What the volume service of a cell has made of a volume. */
#define VOLUME_CELL	 1u /* it made it: only the database of locations says where the volume is */
#define VOLUME_TEMPORARY 2u /* it is not ready, and goes when the store is opened: also off-line */
#define VOLUME_NAMELESS	 4u /* another volume has the name: it is found by its id only */
#define VOLUME_GHOST	 8u /* a read-write volume that was removed before its clones: also hidden */

/* Clones of one volume: the read-only one, the backup, and those that only the volume service makes. */
#define VOLREC_CLONES 12

struct volrec {
	uint32_t id, group;
	uint8_t type;	 /* enum store_type */
	uint8_t offline; /* VOLUME_... */
	uint32_t epoch;
	/* Read-write volumes: the ids that are kept for clones, and their epochs; 0: there is none. */
	uint32_t clone_id[VOLREC_CLONES],
		clone_epoch[VOLREC_CLONES]; /* [0]: read-only, [1]: backup */
	/* Read-write volumes: rows up to this epoch stay, while it is dumped or its contents are replaced; 0: none do. */
	uint32_t snapshot;
	uint64_t quota_kib, used_kib, files;
	int32_t minimum;
	uint32_t created, copied, updated, cloned;
	int32_t owner;
	uint32_t next_unique, incarnation;
	/* Files, directories: where the search for a free vnode goes on; the first never used. */
	uint32_t cursor[2], fresh[2];
	uint8_t cell; /* VOLUME_CELL, ... */
	uint8_t as; /* a type by which clients know it, and 1; 0: `type`. A copy of another server's volume */
	/* As the volume service has set them; 0: what the members above say. */
	uint32_t parent, restored, creation, shown_clone, shown_backup;
	char name[STORE_VOLNAME_MAX + 16];
	char message[128];
	/* In memory: codes for readers and writers while a transaction of the volume service has it; 0: none. */
	uint8_t hold_read, hold_write;
};

#define VOLREC_MAX 512

size_t volrec_encode(const struct volrec *volume, uint8_t *record);
/* 0 or -EBADMSG. */
int volrec_decode(const uint8_t *bytes, size_t length, uint32_t id, struct volrec *volume);

/* The epoch of the newest clone or snapshot: rows up to it are shared, others belong to the read-write volume. */
static inline uint32_t volrec_shared(const struct volrec *record)
{
	uint32_t shared = record->snapshot;

	for (int i = 0; i < VOLREC_CLONES; i++)
		if (record->clone_epoch[i] > shared)
			shared = record->clone_epoch[i];
	return shared;
}

/* Whether it is being made by a restore. */
static inline bool volrec_is_unfinished(const struct volrec *record)
{
	return record->offline & VOLUME_HIDDEN && !(record->cell & VOLUME_GHOST);
}

static inline bool volrec_has_clones(const struct volrec *rw)
{
	for (int i = 0; i < VOLREC_CLONES; i++)
		if (rw->clone_epoch[i])
			return true;
	return false;
}

/* KiB; 0: none. Contents that replace others come with a quota of their own, which is set after them. */
static inline uint64_t volrec_quota(const struct volrec *record)
{
	return record->offline & VOLUME_BUSY ? 0 : record->quota_kib;
}

/* The type by which clients know it. */
static inline uint8_t volrec_shown_type(const struct volrec *record)
{
	return record->as ? (uint8_t)(record->as - 1) : record->type;
}

#endif
