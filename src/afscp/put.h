/* SPDX-License-Identifier: BSD-2-Clause */
/* Parts of afscp put. */
#ifndef COPY_PUT_H
#define COPY_PUT_H

#include <sys/stat.h>

#include "afscp/lookup.h"

/* One file to store. */
struct put_file {
	int fd;		/* owned; a regular file, or anything else that can be read once */
	struct stat st; /* of fd */
	AFSFid dir;	/* and name: where it goes */
	char *name;	/* owned */
	char *label;	/* "VOLUME:PATH", owned */
	bool exists;	/* there is an object with that name: */
	AFSFid existing;
	bool by_link;		 /* the name is a symbolic link to it */
	struct put_level *level; /* told when the file is done; may be NULL */
};

/* NULL after a message; takes fd, also then. `level` (may be NULL) waits for the file. */
struct put_file *put_file_new(int fd, const AFSFid *dir, const char *name, const char *label,
			      struct put_level *level);
/* Its job. */
extern const struct pool_kind put_file_job;

/* Mode of a new object: `mode`, less the umask without --preserve. */
mode_t put_mode(const struct copy *copy, mode_t mode);

/* A time as AFS has it, from 1970 to 2106: earlier and later ones become the nearest. */
uint32_t put_time(time_t seconds);

/* A name that the directory has no room for: it is counted, and told at the end. */
void put_level_full(struct put_level *level);
/*
 * A user of the level is done. The last one sets mode and time of the directory, if `copy` is not
 * NULL.
 */
void put_level_leave(struct copy *copy, struct put_level *level);

/* COPY_FAILED after a message if the object is a mount point, which a put does not replace. */
enum copy_result put_spare_mount(struct copy *copy, const AFSFid *link, const char *label);

#endif
