/* SPDX-License-Identifier: BSD-2-Clause */
/* Changes of a volume with retries, and the places that they concern. */
#ifndef COPY_CHANGE_H
#define COPY_CHANGE_H

#include "afs/client/change.h"
#include "afscp/copy.h"
#include "afscp/change_error.h"

/* One change. The members that it needs depend on `op`; the rest is zero. */
struct change {
	enum change_op op;
	const char *label; /* names the object in messages */
	AFSFid dir;	   /* and name: of the object, or the old ones */
	const char *name;
	AFSFid new_dir; /* rename */
	const char *new_name;
	AFSFid fid;	  /* link: the existing file; rename: the object; status, ACL, lock */
	const char *text; /* symlink, ACL */
	AFSStoreStatus how;
	enum afs_lock lock;

	struct afs_object made; /* result of create, mkdir, symlink; status */
	bool unknown;		/* an earlier try may have made the change */
};

/*
 * Make the change. Repeats the call for the time of --retry if that may help, and finds out whether
 * an earlier try has succeeded. COPY_GOOD, or another result with *error, without a message.
 */
enum copy_result change_try(struct copy *copy, struct change *change, struct afs_error *error);
/* Make the change as change_try() does, and report a failure. */
enum copy_result change_make(struct copy *copy, struct change *change);
/*
 * Make a symbolic link in place of a file or link that exists, and report a failure. The link is
 * made under another name first, so that the old object remains if that fails.
 */
enum copy_result change_replace(struct copy *copy, struct change *change);
/* Print an error of a change with its remedy. */
void change_complain(struct copy *copy, enum change_op op, const struct afs_error *error);

/* Whether the object of a call does not exist any more. */
bool change_is_gone(const struct afs_error *error);

/* As copy_retry(), for calls that write: no other server has the volume. */
bool change_retry(struct copy *copy, struct outage *outage, struct afs_error *error, bool *moved);

/*
 * The place that a path names: the directory and the name of its last part, and the object there.
 */
struct target {
	AFSFid dir;
	char name[AFSNAMEMAX + 1]; /* empty: the root of the volume, or a path that ends in "." */
	bool exists;
	bool by_link;		  /* a link has the name, and leads to `object` */
	struct afs_object object; /* if it exists */
	char label[COPY_LABEL];
};

/*
 * Find the place of copy->path. A symbolic link at its end is not followed. COPY_GOOD also if
 * only the last part does not exist; other results after a message.
 */
enum copy_result target_find(struct copy *copy, struct target *target);
/* Find the place for rm -f: COPY_GOOD also if a directory above does not exist. */
enum copy_result target_find_forced(struct copy *copy, struct target *target);
/*
 * Look up `name` in a directory and get its status. Other results than COPY_GOOD after a message.
 */
enum copy_result target_look(struct copy *copy, const AFSFid *dir, const char *name,
			     struct target *target);
/* Last part of a path without slashes at its end; its length in *length, 0 for a root. */
const char *target_base(const char *path, size_t *length);
/* Whether that part is a name: it is neither empty nor "." nor "..". */
bool target_has_name(const char *base, size_t length);

/* Status to set: the time, and the mode unless `mode` is (mode_t)-1. */
AFSStoreStatus change_status(uint32_t mtime, mode_t mode);

#endif
