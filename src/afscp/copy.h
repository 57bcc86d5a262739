/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside afscp: its commands and their parts. */
#ifndef COPY_COPY_H
#define COPY_COPY_H

#include "afscp/run.h"

/* Result of a part of a command. */
enum copy_result {
	COPY_GOOD = 0,
	COPY_FAILED = -1, /* this object failed, after a message */
	COPY_STOP = -2	  /* the rest would fail as well; after a message */
};

/* Commands; 0 or the exit status, after one line on stderr. */
int copy_bench(struct copy *copy);
/* bench --mix. */
int bench_mix(struct copy *copy);

/*
 * An octal number of at most 07777, or changes of `old` as chmod(1) takes them: "u+x,go-w", "a=r",
 * "+X". Without a letter before it, a change leaves out the bits of the umask. 0 and *mode, or -1.
 */
int mode_parse(const char *text, mode_t old, bool directory, mode_t umask, mode_t *mode);

/* ---- retries ---- */

/*
 * After a failed call: true if it may be repeated, because there is a new token or a server that
 * serves the volume. *moved (may be NULL): that may be another server. Waits, in total for --retry,
 * and reports that once. If false, *error is the last error.
 */
bool copy_retry(struct copy *copy, struct outage *outage, struct afs_error *error, bool *moved);
/* copy_retry(), with a message if the call may not be repeated. */
bool copy_retry_or_complain(struct copy *copy, struct outage *outage, struct afs_error *error);
/* Look up a volume, and make it the current one; -1 after a message. */
int copy_locate(struct copy *copy, const char *volume, const char *path);
/* Walk to copy->path. -1: it failed, after a message. */
int copy_walk(struct copy *copy, bool follow, struct afs_object *object);
#define COPY_LABEL 320 /* bytes of "VOLUME:PATH" in messages; a long path is cut */
/* "LABEL/NAME" of a name in a directory. free(). NULL after a message. */
char *copy_join_label(const char *label, const char *name);
/*
 * COPY_STOP if the error that copy_retry() returned concerns everything that follows, COPY_FAILED
 * with --keep-going.
 */
enum copy_result copy_judge(const struct copy *copy, const struct afs_error *error);

/*
 * Before a call: renew a token that expires soon, if possible. Calls in progress keep theirs.
 */
void copy_fresh(struct copy *copy);

/*
 * Report the end of a tree, whose result is `rc`, if a part of it failed. `files` and `failed` are
 * the numbers of the run before the tree. COPY_FAILED if a part failed, otherwise `rc`.
 */
enum copy_result copy_report_tree(struct run *run, const char *label, uint64_t files,
				  uint64_t failed, enum copy_result rc);

#endif
