/* SPDX-License-Identifier: BSD-2-Clause */
/* The directories of AFS that afscp put fills, and what gets into its way there. */
#ifndef COPY_PUTLEVEL_H
#define COPY_PUTLEVEL_H

#include <stdatomic.h>
#include <sys/stat.h>

#include <rxafs/stream.h>

#include "afscp/place.h"

/* Names of a directory in AFS that a folder has, too. */
struct counterparts {
	struct rxafs_names names; /* sorted */
	struct rxafs_attributes *attributes;
	int *results; /* 0 or a negative errno: what became of each question for them */
};

/* A directory that is being filled. With --preserve the last of its users sets mode and time. */
struct put_level {
	atomic_uint users;    /* the thread that reads the folder, and jobs for its files */
	rxafs_object *object; /* a reference */
	bool is_new;	      /* it was made for this copy: nothing is in it */
	atomic_uint full;     /* names that it has no room for */
	struct counterparts there;
	struct stat st; /* of the folder */
	char *label;
};

/* Mode of a new object: `mode`, less the umask without --preserve. */
mode_t put_mode(const struct run *run, mode_t mode);

/* For an open folder. NULL after a message. */
struct put_level *new_put_level(int fd, const char *label);
/* A name that the directory has no room for: it is counted, and told at the end. */
void put_level_full(struct put_level *level);
/*
 * A user of the level is done. The last one sets mode and time of the directory, unless `dropped`: the job was not
 * done.
 */
void put_level_leave(struct run *run, struct put_level *level, bool dropped);

/* Say that a mount point has the name, which a put does not replace. */
enum copy_result report_mount_in_way(struct run *run, rxafs_object *directory, const char *name,
				     const char *label);

#endif
