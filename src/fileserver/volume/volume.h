/* SPDX-License-Identifier: BSD-2-Clause */
/* A volume over a directory tree: FIDs, status, data versions, directory images, rights. */
#ifndef FILESERVER_VOLUME_H
#define FILESERVER_VOLUME_H

#include <stdbool.h>
#include <stdint.h>

#include <rxwire/xdr.h>

#include "afs/rxafs.h"
#include "fileserver/base/base.h"
#include "fileserver/tree/tree.h"

/*
 * Results of this file and of the handlers above it: 0; a positive volume code that goes on the
 * wire as it is (102 ...); or a negative number: -errno, to be translated for the client, or a code
 * of the RPC layer (-455 ...) as it is.
 */

#define FSD_PATH_MAX 4096

/* -- the state directory: lock, server UUID, volume stores -- */

struct fsd_store;

struct fsd_state {
	char path[4096];
	int lock_fd;
	struct rxw_uuid uuid;
};

/*
 * The default place: the first of $STATE_DIRECTORY (set by the service manager), /var/lib/rxfsd for
 * root, $XDG_STATE_HOME/rxfsd, ~/.local/state/rxfsd. Returns 0 or -1 with the reason in `message`.
 */
int fsd_state_default(char *path, size_t size, char *message);

/*
 * Make the directory if it is not there, check that it lies outside `export` (a canonical path),
 * lock it against another server, and read or make the UUID. Returns 0; or FSD_STATE_INSIDE if it lies
 * inside, or -1, with one line in message[FSD_MESSAGE_MAX].
 */
#define FSD_STATE_INSIDE -2
int fsd_state_open(struct fsd_state *state, const char *path, const char *export, char *message);
void fsd_state_close(struct fsd_state *state);

/*
 * Open the store of a volume, and draw a random id for it, which is used if the store is new.
 * Returns 0 or -1 with a line in `message`.
 */
int fsd_state_store(struct fsd_state *state, const char *volume, struct fsd_store **store,
		    uint32_t *new_id, char *message);
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

/* What is known of one vnode. */
struct fsd_record {
	uint32_t vnode, unique;
	uint32_t parent, parent_unique; /* a directory with a name of it; of the root: itself */
	enum fsd_kind kind;
	uint64_t version;      /* data version */
	uint64_t inode;	       /* 0: not known */
	uint32_t birth;	       /* tells objects apart that had an inode in turn; 0: not known */
	uint64_t seen;	       /* fsd_stat_stamp() when `version` was given; 0: never seen */
	uint64_t image_length; /* directory: bytes of its image, 0 = must be listed anew */
	uint64_t image_hash;   /* directory: of its image, 0 = never listed */
	uint32_t links;	       /* directory: 2 + subdirectories */
	/* Not kept across restarts. */
	bool clean;	   /* file: no page that was written by a mapping waits for the disk */
	uint64_t refused;  /* directory: fsd_stat_stamp() when it was found too large, or 0 */
	uint64_t retry_ns; /* directory: when it may be listed again if it has changed since */
};

/*
 * Called, with no lock held, when a promise on the object does not hold any longer: its status or
 * data differs, or it is gone. `actor` is what was passed to the function that noticed (the caller,
 * who learns it from the reply), or NULL.
 */
typedef void (*fsd_change_fn)(void *arg, const AFSFid *fid, const void *actor);

struct fsd_volume_options {
	const char *name;
	const char *root;	 /* path of the export, for the record only */
	struct fsd_layer *layer; /* not taken over */
	struct fsd_store *store; /* not taken over */
	uint32_t new_id;	 /* volume id if the store is new */
	bool all_files;		 /* serve also what "other" may not read */
	fsd_change_fn on_change; /* may be NULL */
	void *arg;
};

/*
 * Open; a store that was made for another tree is emptied, and the volume gets a new creation date.
 * Returns 0 or -errno.
 */
int fsd_volume_open(const struct fsd_volume_options *options, struct fsd_volume **volume);
void fsd_volume_close(struct fsd_volume *volume);

const char *fsd_volume_name(const struct fsd_volume *volume);
uint32_t fsd_volume_id(const struct fsd_volume *volume);
uint32_t fsd_volume_creation(const struct fsd_volume *volume);
struct fsd_layer *fsd_volume_layer(const struct fsd_volume *volume);

/*
 * An object as a call sees it: all parts are of one version. About 9 KiB: one on the stack, not
 * fifty.
 */
struct fsd_object {
	AFSFid fid;
	struct fsd_record record;
	struct fsd_stat st;
	AFSFetchStatus status;
	bool may_read; /* the caller may have its data */
	char path[FSD_PATH_MAX];
};

/*
 * Look an object up and bring its record up to date with the tree. -EINVAL: volume or vnode 0; 103:
 * another volume; 102: no such object; -EACCES: no way to it that "other" may go; others from the
 * file layer.
 */
int fsd_volume_get(struct fsd_volume *volume, const AFSFid *fid, const void *actor,
		   struct fsd_object *object);

/*
 * The image of the directory `object`, which fsd_volume_get() has filled; record and status are
 * brought up to date to match it. The memory belongs to a cache: give it back with
 * fsd_image_release().
 */
struct fsd_image {
	const uint8_t *bytes;
	size_t length;
};
int fsd_volume_image(struct fsd_volume *volume, struct fsd_object *object, const void *actor,
		     struct fsd_image **image);
void fsd_image_release(struct fsd_volume *volume, struct fsd_image *image);

/*
 * Open a file for reading so that data and status are of one version: *file was found equal to
 * object->st. Waits (at most some 20 ms) while a file is so fresh that its time stamps could not
 * show another change, and once for each version until pages that were written by a mapping are on
 * the disk, because further writes to them would not show. -EACCES: "other" may not read it.
 */
int fsd_volume_open_file(struct fsd_volume *volume, const AFSFid *fid, const void *actor,
			 struct fsd_object *object, struct fsd_file **file);

/* Something may have happened to the object: look, and report changes. */
void fsd_volume_check(struct fsd_volume *volume, const AFSFid *fid);
/*
 * The FID that a name in a directory has, if it has one: 0, 102 or -errno. The tree is not looked
 * at.
 */
int fsd_volume_child(struct fsd_volume *volume, const AFSFid *directory, const char *name,
		     AFSFid *fid);
/* Forget what is known of permissions. */
void fsd_volume_forget_access(struct fsd_volume *volume);
/*
 * What the store knows of an object, and its path; the tree is not looked at. 0, 102, 103 or
 * -errno.
 */
int fsd_volume_path(struct fsd_volume *volume, const AFSFid *fid, char path[FSD_PATH_MAX],
		    struct fsd_record *record);

/* GetVolumeStatus, but for the strings. 0 or -errno. */
int fsd_volume_space(struct fsd_volume *volume, AFSFetchVolumeStatus *status);

#endif
