/* SPDX-License-Identifier: BSD-2-Clause */
/* Parts of afscp put. */
#ifndef COPY_PUT_H
#define COPY_PUT_H

#include <sys/stat.h>

#include "afscp/copyjobs.h"
#include "afscp/place.h"

/* One file to store. */
struct put_file {
	int fd;			 /* owned; a regular file, or anything else that can be read once */
	struct stat st;		 /* of fd */
	rxafs_object *directory; /* and name: where it goes; a reference */
	char *name;		 /* owned */
	char *label;		 /* "VOLUME:PATH", owned */
	rxafs_object *existing;	 /* what has the name, a reference; NULL: nothing */
	struct rxafs_attributes attributes; /* of that */
	bool by_link;			    /* the name is a symbolic link to it */
	struct put_level *level; /* told when the file is done; may be NULL */
};

/* NULL after a message; takes fd, also then. `level` (may be NULL) waits for the file. */
struct put_file *put_file_new(int fd, rxafs_object *directory, const char *name, const char *label,
			      struct put_level *level);
void put_file_drop(void *file);
/* Its job; and the same at once. */
extern const struct job_kind put_file_job;
enum copy_result put_file(struct run *run, struct put_file *file);
/* Whether the source is as it was at the start. */
bool put_file_is_unchanged(const struct put_file *file);

/* New small files of one directory, whose calls are in flight together. */
#define PUT_TOGETHER 16
struct put_group {
	unsigned count;
	struct put_file *files[PUT_TOGETHER];
};
/* Whether the file can be one of them. */
bool put_file_is_small(const struct put_file *file);
extern const struct job_kind put_group_job;

#endif
