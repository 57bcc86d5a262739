/* SPDX-License-Identifier: BSD-2-Clause */
/* A volume over a directory tree: FIDs, status, data versions, directory images, rights. */
#ifndef FILESERVER_VOLUME_H
#define FILESERVER_VOLUME_H

#include <stdbool.h>
#include <stdint.h>

#include "afs/rxafs.h"
#include "fileserver/base/base.h"
#include "fileserver/export/tree.h"

/*
 * Results of this module and of the handlers that use it: 0; a positive volume code, which is sent
 * as it is (102 ...); or a negative number: -errno, to be translated for the client, or a code of
 * the RPC layer (-455 ...), which is sent as it is.
 */

struct fsd_store;

/*
 * Open the store of a volume, or make a new one. -EILSEQ: another format; -EBADMSG: the header is
 * damaged; other errors of the file as -errno. Damage further on is logged, and what follows it is
 * dropped.
 */
int fsd_store_open(const char *path, struct fsd_store **store);
/* NULL is allowed. */
void fsd_store_close(struct fsd_store *store);

/* -- the volume -- */

struct fsd_volume;

/* The record of one vnode in the store. */
struct fsd_record {
	uint32_t vnode, unique;
	uint32_t parent, parent_unique; /* a directory that has a name of it; the root: itself */
	enum fsd_kind kind;
	uint64_t version;      /* data version */
	uint64_t inode;	       /* 0: not known */
	uint32_t birth;	       /* fsd_stat_birth(); 0: not known */
	uint64_t seen;	       /* fsd_stat_stamp() when `version` was given; 0: never seen */
	uint64_t image_length; /* directory: bytes of its image; 0 = to be listed again */
	uint64_t image_hash;   /* directory: hash of its image; 0 = never listed */
	uint32_t links;	       /* directory: 2 + subdirectories */
	/* Not kept across restarts. */
	bool clean; /* file: all pages that were written through mappings are on the disk */
	uint64_t
		refused; /* directory: fsd_stat_stamp() when it was too large for clients; else 0 */
	uint64_t retry_ns; /* directory: when it may be listed again if it has changed since then */
};

/*
 * Called without a lock when promises on the object must be broken: its status or data changed, or
 * it is gone. `actor` is the argument of the function that noticed the change, or NULL. That client
 * learns of the change from the reply.
 */
typedef void (*fsd_change_fn)(void *arg, const AFSFid *fid, const void *actor);

struct fsd_volume_options {
	const char *name;
	const char *root;	 /* path of the export, which identifies the tree */
	struct fsd_layer *layer; /* owned by the caller */
	struct fsd_store *store; /* owned by the caller */
	uint32_t new_id;	 /* volume id if the store is new */
	bool all_files;		 /* also serve what "other" may not read */
	fsd_change_fn on_change; /* may be NULL */
	void *arg;
};

/*
 * Open. If the store was made for another tree it is emptied, and the volume gets a new creation
 * date. Returns 0 or -errno.
 */
int fsd_volume_open(const struct fsd_volume_options *options, struct fsd_volume **volume);
void fsd_volume_close(struct fsd_volume *volume);

const char *fsd_volume_name(const struct fsd_volume *volume);
uint32_t fsd_volume_id(const struct fsd_volume *volume);
uint32_t fsd_volume_creation(const struct fsd_volume *volume);
struct fsd_layer *fsd_volume_layer(const struct fsd_volume *volume);

/*
 * An object as a call sees it: all members belong to one version. About 9 KiB, so keep few of them
 * on a stack.
 */
struct fsd_object {
	AFSFid fid;
	struct fsd_record record;
	struct fsd_stat st;
	AFSFetchStatus status;
	bool may_read; /* the caller may read its data */
	char path[FSD_PATH_MAX];
};

/*
 * Look up an object and update its record from the tree. -EINVAL: volume or vnode 0; 103: another
 * volume; 102: no such object; -EACCES: "other" may not search a directory above it; others from
 * the tree.
 */
int fsd_volume_get(struct fsd_volume *volume, const AFSFid *fid, const void *actor,
		   struct fsd_object *object);

/*
 * The image of the directory `object`, which fsd_volume_get() has filled. Record and status are
 * updated to match it. The memory belongs to a cache: return it with fsd_image_release().
 */
struct fsd_image {
	const uint8_t *bytes;
	size_t length;
};
int fsd_volume_image(struct fsd_volume *volume, struct fsd_object *object, const void *actor,
		     struct fsd_image **image);
void fsd_image_release(struct fsd_volume *volume, struct fsd_image *image);

/*
 * Open a file for reading, with data and status of one version: *file equals object->st. Waits (for
 * at most about 20 ms) if the file is so new that its time stamps could not show another change;
 * and, once for each version, until pages that were written through mappings are on the disk,
 * because further writes to them would change no time stamp. -EACCES: "other" may not read it.
 */
int fsd_volume_open_file(struct fsd_volume *volume, const AFSFid *fid, const void *actor,
			 struct fsd_object *object, struct fsd_file **file);

/* The object may have changed: check it, and report changes. */
void fsd_volume_check(struct fsd_volume *volume, const AFSFid *fid);
/*
 * The FID of a name in a directory, if it has one: 0, 102 or -errno. Does not access the tree.
 */
int fsd_volume_child(struct fsd_volume *volume, const AFSFid *directory, const char *name,
		     AFSFid *fid);
/* Drop all cached permissions. */
void fsd_volume_forget_access(struct fsd_volume *volume);
/*
 * The record and the path of an object. Does not access the tree. 0, 102, 103 or -errno.
 */
int fsd_volume_path(struct fsd_volume *volume, const AFSFid *fid, char path[FSD_PATH_MAX],
		    struct fsd_record *record);

#endif
