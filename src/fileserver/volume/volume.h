/* SPDX-License-Identifier: BSD-2-Clause */
/* A volume over a directory tree: FIDs, status, data versions, directory images, rights. */
#ifndef FILESERVER_VOLUME_H
#define FILESERVER_VOLUME_H

#include <stdbool.h>
#include <stdint.h>

#include "afs/rxafs.h"
#include "fileserver/tree/tree.h"
#include "fileserver/volume/store.h"

/*
 * Results of this file and of the handlers above it: 0; a positive volume code that goes on the
 * wire as it is (102 ...); or a negative number: -errno, to be translated for the client, or a code
 * of the RPC layer (-455 ...) as it is.
 */

#define FSD_PATH_MAX 4096

struct fsd_volume;

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
