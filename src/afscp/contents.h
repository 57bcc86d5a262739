/* SPDX-License-Identifier: BSD-2-Clause */
/* Contents of files of a sync. */
#ifndef COPY_CONTENTS_H
#define COPY_CONTENTS_H

#include "afscp/folder.h"
#include "afscp/pace.h"

/* One file that is copied or compared. */
struct transfer {
	struct folder *from, *to;
	const struct item *source, *old; /* old: what has the name at the destination, or NULL */
	const char *name;		 /* at the destination */
	const char *label, *to_label;	 /* of the source; of the destination */
	struct pace *pace;
	uint64_t copied; /* bytes, of those that are part of the result */
	bool vanished;	 /* the source is gone */
};
/*
 * Copy it. It appears under its name when it is complete, with mode and time of the source; but a new file of up to
 * 1 MiB in AFS is made under its name, with the time 0 until it is complete. COPY_GOOD also if it has vanished.
 */
enum copy_result transfer_file(struct transfer *transfer);
/*
 * Copy small files of one directory, from AFS or new ones to AFS, with their calls in flight together. done[i]: it was
 * copied; others need transfer_file().
 */
#define TRANSFER_SMALL 65536 /* bytes of one */
#define TRANSFER_MANY  32
void transfer_together(struct transfer *transfers, unsigned count, bool *done);
/*
 * Compare the first `length` bytes of an object in AFS with those of the open file `fd`: up to 64 KiB at their
 * beginning, and at their end. Neither the time of modification nor a name tells that an earlier run has begun a file:
 * all files of an archive have the same time. False also if they cannot be read; then without a message.
 */
bool is_beginning_of(struct run *run, rxafs_object *object, uint64_t length, int fd,
		     const char *label);
/* Whether two files of equal length have the same contents. */
enum copy_result transfer_compare(struct transfer *transfer, bool *same);

#endif
