/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of the directories of a cache. Contents are loaded whole; offsets are the slots of the image, which do not move (K-096). */
#ifndef CLIENT_CACHE_LISTING_H
#define CLIENT_CACHE_LISTING_H

#include "client/cache/cache.h"
#include "client/cache/names.h"

/*
 * Take a fetched image, after cl_cache_apply() of the status in the same reply. 0: the names are those of the directory. -ESTALE: the directory
 * has changed since; *once, unless it is NULL, gets the names for one use by the caller, who frees them (K-069). -EIO: the image
 * is damaged, *fault says how. -ENOMEM.
 */
int cl_dir_load(struct cl_object *directory, const struct cl_reply *reply,
		const AFSFetchStatus *status, const uint8_t *image, size_t length,
		struct cl_names **once, const char **fault);
/* A directory that was just made has "." and ".." (K-102): no need to fetch it. After cl_cache_apply() of its status. */
int cl_dir_load_new(struct cl_object *directory, const struct cl_object *parent);

/*
 * The FID of a name. 0. -ENOENT: the directory has no such name (K-054). -ESTALE: status or names must be fetched. -ENOTDIR.
 */
int cl_dir_find(struct cl_object *directory, const char *name, size_t length, uint64_t now,
		struct rxafs_fid *fid);
/* True if the names are those of the current version, and that version is valid. */
bool cl_dir_loaded(struct cl_object *directory, uint64_t now);

/*
 * Up to `room` entries from an offset on, 0 at first; entry.next is the offset that follows. Stores how many in *count, 0 at the end.
 * -ESTALE: the names are not there. Whether they are current is up to cl_dir_loaded(): a scan that began may go on.
 */
int cl_dir_next(struct cl_object *directory, uint64_t offset, struct cl_entry *entries,
		unsigned room, unsigned *count);

/*
 * FIDs to ask for at once (K-055): that of a name first, then up to room - 1 others of the next few hundred in the directory that have no
 * usable status. Returns how many; 0: the name is not there.
 */
unsigned cl_dir_neighbours(struct cl_object *directory, const char *name, size_t length,
			   uint64_t now, struct rxafs_fid *fids, unsigned room);

#endif
