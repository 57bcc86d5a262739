/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whole volumes, vnode by vnode: reading one as it was at a moment, making one of given vnodes, and putting one back to an earlier
 * state. Results: as in interface.h.
 */
#ifndef STORE_TRANSFER_H
#define STORE_TRANSFER_H

#include "volume/store/store.h"

struct store_vnode {
	uint32_t vnode, unique;
	enum store_kind kind;
	uint32_t links, mode, group;
	uint64_t length, version; /* version: of the data */
	int32_t author, owner;
	uint32_t parent; /* the directory; of the root: itself */
	uint32_t client_mtime, server_mtime;
	struct store_acl acl; /* of a directory */
	bool changed;	      /* after the clone that the reader was told */
};

/* What a volume has beside its vnodes. */
struct store_header {
	struct store_volume volume;
	int32_t owner;
	uint32_t next_unique;
};

/* -- reading: one thread at a time -- */

struct store_snapshot;
/*
 * The present state of a volume stays readable until store_snapshot_end(); that of a clone as long as the clone stays.
 * STORE_VBUSY: another snapshot of a read-write volume exists. `since`: a clone of it, or 0; -EINVAL: it is none.
 */
int store_snapshot_take(struct store *store, uint32_t id, uint32_t since,
			struct store_snapshot **snapshot);
/* 0; STORE_VNOVOL: the clone was removed or replaced meanwhile, so that what was read may be of several states. */
int store_snapshot_end(struct store_snapshot *snapshot);
void store_snapshot_header(const struct store_snapshot *snapshot, struct store_header *header);
/* The first directory, or file or link, with a number above `after`: 0, -ENOENT, or another result with vnode->vnode. */
int store_snapshot_next(struct store_snapshot *snapshot, bool directories, uint32_t after,
			struct store_vnode *vnode);
/* The same; of *vnode, only vnode, unique, kind, server_mtime and `changed`. Cheap. */
int store_snapshot_outline(struct store_snapshot *snapshot, bool directories, uint32_t after,
			   struct store_vnode *vnode);
/* One of them: 0 or STORE_VNOVNODE. */
int store_snapshot_find(struct store_snapshot *snapshot, uint32_t vnode, uint32_t unique,
			struct store_vnode *found);
/* The contents of the vnode that one of the two gave last, for store_ops.read(). */
int store_snapshot_open(struct store_snapshot *snapshot, struct store_reader **reader);

/* -- making: one thread at a time -- */

#define STORE_RESTORE_VNODE_MAX (1u << 25) /* numbers of vnodes are below this */

struct store_restore;
/* A new volume, which nobody sees before the end. -EEXIST: the name; STORE_VVOLEXISTS: the id; `id` 0: a free one. */
int store_restore_begin(struct store *store, const char *name, uint32_t id,
			struct store_restore **restore);
/* The contents of a volume are replaced: others get STORE_VBUSY until the end. */
int store_restore_onto(struct store *store, uint32_t id, struct store_restore **restore);
uint32_t store_restore_id(const struct store_restore *restore);
/* Bytes that a file may have to be given to store_restore_put() at once; at most 64 KiB. */
size_t store_restore_small(const struct store_restore *restore);
/*
 * Make or replace a vnode. `bytes`: the image of a directory, the text of a link, or the contents of a small file; larger
 * files are empty at first. -EEXIST: the vnode came before; -ENOENT: the directory of the file is not there; -EBADMSG: the
 * image is damaged.
 */
int store_restore_put(struct store_restore *restore, const struct store_vnode *vnode,
		      const void *bytes);
/* Then write its contents to this writer, commit it, and set the rest. */
int store_restore_write(struct store_restore *restore, const struct store_vnode *vnode,
			struct store_writer **writer);
int store_restore_stamp(struct store_restore *restore, const struct store_vnode *vnode);
/*
 * What the volume has now under a number: kind, uniquifier, data version, times, mode and owner. 0; STORE_VNOVNODE: nothing; or
 * another result.
 */
int store_restore_look(const struct store_restore *restore, uint32_t vnode,
		       struct store_vnode *now);
/* The vnode stays as it is. -EEXIST; -ENOENT: there is none with this number and uniquifier. */
int store_restore_keep(struct store_restore *restore, uint32_t vnode, uint32_t unique);
/*
 * Vnodes that did not come are removed. Directories, names and links are checked; link counts are corrected, and files without a
 * name removed: *lost of them. Then all of it appears in one step. If not 0, the restore must be given up; -EBADMSG:
 * message[STORE_MESSAGE_MAX] says why.
 */
int store_restore_finish(struct store_restore *restore, const struct store_header *header,
			 uint64_t *lost, char *message);
/*
 * Give up unless it was finished: nothing is left behind. Ends it. 0 or a result: a volume whose contents were being replaced stays
 * busy then, until store_restores_retry() or the next start puts it back.
 */
int store_restore_end(struct store_restore *restore);
/* Whether no volume is left that could not be put back. May take long. */
bool store_restores_retry(struct store *store);

/* -- going back -- */

/*
 * A read-write volume gets the contents of its clone again, in short steps during which others get STORE_VBUSY. Costs no copying of
 * files; all objects that differ get new data versions.
 */
int store_volume_revert(struct store *store, uint32_t clone);

/* -- replacing a tree, object by object -- */

/* As ops->remove(), if the name leads to `known`; else -ESTALE. */
int store_remove_known(struct store *store, const struct store_caller *caller,
		       const struct store_fid *dir, const char *name, const struct store_fid *known,
		       enum store_kind kind, struct store_status *dir_status,
		       struct store_changes *changes);

#endif
