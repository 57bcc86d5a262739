/* SPDX-License-Identifier: BSD-2-Clause */
/* Objects of a volume: places, directories, beginnings of files. */
#ifndef COPY_LOOKUP_H
#define COPY_LOOKUP_H

#include <stddef.h>
#include <stdint.h>

#include "afs/rxafs.h"
#include "afscp/change.h"

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
/*
 * Look up `name` in a directory and get its status. Other results than COPY_GOOD after a message.
 */
enum copy_result target_look(struct copy *copy, const AFSFid *dir, const char *name,
			     struct target *target);
/* Last part of a path without slashes at its end; its length in *length, 0 for a root. */
const char *target_base(const char *path, size_t *length);
/* Whether that part is a name: it is neither empty nor "." nor "..". */
bool target_has_name(const char *base, size_t length);

struct entry {
	char *name;
	AFSFid fid;
};
struct entries {
	struct entry *list;
	size_t count;
};

/* Names of a directory without "." and "..", sorted. Other results than 0 after a message. */
enum copy_result entries_read(struct copy *copy, const AFSFid *fid, const char *label,
			      struct entries *entries);
/* Status of `count` (1..AFSCBMAX) entries from `at` on. `label` names their directory. */
enum copy_result entries_status(struct copy *copy, const struct entries *entries, size_t at,
				uint32_t count, const char *label,
				AFSFetchStatus statuses[AFSCBMAX]);
void entries_free(struct entries *entries);

/* The number of entries from `at` on whose status one call gets. */
static inline uint32_t entries_batch(const struct entries *entries, size_t at)
{
	return entries->count - at < AFSCBMAX ? (uint32_t)(entries->count - at) : AFSCBMAX;
}

/*
 * The directories of a volume that a walk has entered, so that it enters none twice. All zeros at first; one thread.
 */
struct entered_dirs {
	uint64_t *list; /* by vnode and uniquifier: open addressing, 0 = free */
	size_t room, count;
};

/* 0: the directory is new. 1: it was entered before. -1: no memory. */
int entered_dirs_add(struct entered_dirs *dirs, const AFSFid *fid);
void entered_dirs_free(struct entered_dirs *dirs);

/*
 * Compare the first `length` bytes of the object with those of the open file `fd`: up to 64 KiB at
 * their beginning, and at their end. False also if they cannot be read; then without a message.
 */
bool beginning_matches(struct copy *copy, const struct afs_object *object, uint64_t length, int fd,
		       const char *label);

#endif
