/* SPDX-License-Identifier: BSD-2-Clause */
/* Parts of afscp get. */
#ifndef COPY_GET_H
#define COPY_GET_H

#include <rxafs/stream.h>

#include "afscp/copyjobs.h"
#include "afscp/session.h"

struct sink; /* local.h */

/* A file in AFS that is copied. */
struct get_file {
	rxafs_object *object; /* held by the caller */
	const char *label;    /* names it in messages */
	/* As it was found, then those of the version that was copied: another server may have another one. */
	struct rxafs_attributes attributes;
};

/* Its bytes. `sink` is open. */
enum copy_result get_contents(struct run *run, struct get_file *file, struct sink *sink);
/* Check what was written of a small file, of which `fetched` bytes have come with these attributes; it is counted. */
enum copy_result get_check_small(struct run *run, const struct get_file *file, uint64_t fetched,
				 const struct rxafs_attributes *answer);
/* Open the destination of the file. 0, or -1 with errno; see sink_open(). */
int get_open(struct run *run, struct get_file *file, struct sink *sink, int dir, const char *name,
	     bool inside);
/* Complete the destination, or remove it if `rc`, the result for its bytes, is a failure. The result. */
enum copy_result get_close(struct run *run, const struct get_file *file, struct sink *sink,
			   enum copy_result rc);
/* Report a failed write to `name` in the directory `dir` (AT_FDCWD), by errno. */
enum copy_result write_failed(struct run *run, const char *label, int dir, const char *name);
/* Whether an earlier run has left the file: same length and time. */
bool get_is_there(const struct run *run, int dir, const char *name,
		  const struct rxafs_attributes *attributes);
/* Mode of the copy of a directory, which its owner can use unless --preserve is given. */
mode_t get_directory_mode(const struct run *run, const struct rxafs_attributes *attributes);

/* The names of a directory, sorted. Other results after a message, unless the attempt is silent. */
enum copy_result get_names(struct attempt *attempt, rxafs_object *directory,
			   struct rxafs_names *names);

/* Copy everything below a directory into the directory `dir`; waits for all jobs. */
enum copy_result get_tree(struct run *run, struct copyjobs *jobs, rxafs_object *root, int dir,
			  const char *label);

#endif
