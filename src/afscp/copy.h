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
/* Look up the volume of a source, and make it the current one; -1 after a message. */
int copy_locate(struct copy *copy, const struct copy_source *source);
/* Walk to copy->path. -1: it failed, after a message, or with *error and without one. */
int copy_walk(struct copy *copy, bool follow, struct afs_object *object);
int copy_walk_try(struct copy *copy, bool follow, struct afs_object *object,
		  struct afs_error *error);
/* "VOLUME:PATH" of copy->path, for messages; a long path is cut. */
#define COPY_LABEL 320
void copy_format_label(const struct copy *copy, char label[COPY_LABEL]);
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

/* ---- jobs: threads that copy files at the same time (--jobs), each with a client of its own ---- */

struct pool;

/* A job: handles one object. */
struct pool_kind {
	enum copy_result (*work)(struct copy *copy, void *arg); /* frees `arg` */
	void (*drop)(void *arg);				/* frees `arg` instead */
	/*
	 * Begins what work() will wait for, so that a thread has several jobs at a time; NULL: the
	 * job is large, and a thread takes no other one beside it.
	 */
	void (*begin)(struct copy *copy, void *arg);
};

/*
 * Of `sources` of the command line. With --jobs 1, or for a single file, there are no threads:
 * pool_add() does the job. 0, or -1 after a message.
 */
int pool_open(struct copy *copy, size_t sources, struct pool **pool);
/*
 * Have a job done in the volume that is current for `copy`, which is the thread of pool_open().
 * Waits while the queue is full. Failed jobs are counted in run->failed. COPY_STOP: a job has
 * returned that; the jobs that are not done are dropped.
 */
enum copy_result pool_add(struct pool *pool, const struct pool_kind *kind, void *arg);
/* Wait for all jobs. COPY_GOOD or COPY_STOP. */
enum copy_result pool_wait(struct pool *pool);
/* End the threads. NULL is allowed. */
void pool_close(struct pool *pool);

#endif
