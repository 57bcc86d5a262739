/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside afscp: the state of a run, and the parts of its commands. */
#ifndef COPY_COPY_H
#define COPY_COPY_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include <rxwire/rxwire.h>

#include "afs/client/client.h"
#include "tools/common/address.h"
#include "tools/common/auth.h"
#include "tools/common/renew.h"
#include "tools/common/report.h"
#include "tools/copy/progress.h"

struct copy_settings {
	const char *server;
	bool recursive, long_list, json, quiet, stats, verbose, resume;
	bool preserve, keep_going, force, negative, symbolic, shared;
	const char *mode, *mount, *mix, *size;
	struct tools_auth auth;
	uint64_t clients, seconds_ms, range, jobs, files;
	uint64_t timeout_ms, retry_ms;
};

/* Result of a part of a command. */
enum copy_result {
	COPY_GOOD = 0,
	COPY_FAILED = -1, /* this object failed, after a message */
	COPY_STOP = -2	  /* the rest would fail as well; after a message */
};

/* VOLUME:PATH of the command line. */
struct copy_source {
	const char *volume, *path;
};

/* One run of afscp: what its threads share. What has no comment is constant once they run. */
struct run {
	struct copy_settings set;
	struct rxw_config config;
	rxw_engine *engine;
	struct tools_address vl;
	uint16_t fs_port;
	mode_t umask;

	/* Arguments after the command: text as given, or volumes and paths, by command. */
	char **arguments;
	size_t argument_count;
	struct copy_source *sources;
	size_t source_count;
	const char *destination;  /* of get; NULL = the current directory */

	pthread_mutex_t token_lock; /* covers the renewal */
	struct tools_renewal renewal; /* its token NULL: anonymous */

	pthread_mutex_t progress_lock;
	struct progress progress; /* on: stderr is a terminal, without --quiet */
	atomic_uint_fast64_t total; /* bytes to copy, as far as they are known; 0 = unknown */

	atomic_bool interrupted; /* by a signal */
	atomic_int signal;	 /* its number, 0 = none */
	/*
	 * A signal ends the program at once: the main thread may be blocked where a signal cannot
	 * interrupt it (a KDC, a pipe), and there is nothing to undo.
	 */
	atomic_bool at_once;
	atomic_bool broken_pipe; /* the reader of standard output is gone */
	pthread_mutex_t lock;	 /* of what follows */
	pthread_cond_t wake;	 /* `interrupted` has become true */
	struct afs_client **clients; /* of all threads, for signals */
	size_t client_count;
	struct counters transport; /* of clients that are closed */
	/* Called on an interrupt. True: the clients go on. */
	bool (*on_interrupt)(void *arg, int number);
	void *on_interrupt_arg;

	atomic_uint_fast64_t files, bytes; /* copied */
	atomic_uint_fast64_t skipped;	   /* --continue: files that existed */
	atomic_uint_fast64_t failed;	   /* objects that were not copied */
	atomic_uint_fast64_t told_ns;	   /* last message about an outage; 0 = none */
};

/* One thread of a run, with its client. */
struct copy {
	struct run *run;
	const struct copy_settings *set;
	struct afs_client *client;
	uint64_t tokens;	  /* number of renewals that the client knows */
	struct afs_volume volume; /* of the source at hand */
	const char *path;
};

/* Commands; 0 or the exit status, after one line on stderr. */
int copy_get(struct copy *copy);
int copy_list(struct copy *copy);
int copy_stat(struct copy *copy);
int copy_put(struct copy *copy);
int copy_rm(struct copy *copy);
int copy_mkdir(struct copy *copy);
int copy_mv(struct copy *copy);
int copy_ln(struct copy *copy);
int copy_chmod(struct copy *copy);
int copy_acl(struct copy *copy);
int copy_lock(struct copy *copy);
int copy_bench(struct copy *copy);
/* The two kinds of bench: one file, or --mix. */
int bench_read(struct copy *copy);
int bench_mix(struct copy *copy);

/* ---- threads ---- */

/* Open the client of a thread. 0, or -1 after a message. */
int copy_open(struct run *run, struct copy *copy);
/* Close it, after it has returned its promises. */
void copy_close(struct copy *copy);
/* Return the promises of all clients, within `ms` milliseconds. The lock is held or not needed. */
void run_give_up(struct run *run, unsigned ms);

/* Counters of all clients of the run, also of those that are closed. */
void run_counters(struct run *run, struct counters *sum);

static inline bool copy_interrupted(const struct copy *copy)
{
	return atomic_load(&copy->run->interrupted);
}

/* --stats and --json of get and put: what was copied since `from`. */
void copy_report(struct copy *copy, const struct tools_usage *from, const struct counters *before);

/* Show the progress of all files. `label` names the one at hand. Any thread. */
void copy_progress(struct copy *copy, const char *label);

/* ---- retries ---- */

/* A sequence of failures; all zeros at first, and again after a success. */
struct outage {
	uint64_t since_ns;
	unsigned tries, pause_ms;
};

/*
 * After a failed call: true if it may be repeated, because there is a new token or a server that
 * serves the volume. *moved (may be NULL): that may be another server. Waits, in total for --retry,
 * and reports that once. If false, *error is the last error.
 */
bool copy_retry(struct copy *copy, struct outage *outage, struct afs_error *error, bool *moved);
/* Look up the volume of a source, and make it the current one; -1 after a message. */
int copy_locate(struct copy *copy, const struct copy_source *source);
/* Walk to copy->path; -1 after a message. */
int copy_walk(struct copy *copy, bool follow, struct afs_object *object);
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
 * After a failed call: true if its token had expired and there is a new one, so the call may be
 * repeated.
 */
bool copy_again(struct copy *copy, const struct afs_error *error);

/* ---- parts of get ---- */

struct pool; /* pool.h */
struct sink; /* sink.h */

/*
 * Copy a file. `label` names it in messages. *object becomes the version that was copied: another
 * server of a read-only volume may have another one.
 */
enum copy_result get_file(struct copy *copy, struct afs_object *object, struct sink *sink,
			  const char *label);
/* Report a failed write to `name`, by errno. */
enum copy_result write_failed(struct copy *copy, const char *label, const char *name);
/* Whether an earlier run has left the file: same length and time. */
bool get_is_there(const struct copy *copy, int dir, const char *name, const AFSFetchStatus *status);
/* Mode of the copy of an object. */
mode_t get_mode(const struct copy *copy, const AFSFetchStatus *status);

/* Copy everything below a directory into the directory `dir`; waits for all jobs. */
enum copy_result get_tree(struct copy *copy, struct pool *pool, const AFSFid *fid, int dir,
			  const char *label);

/* ---- directories ---- */

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

#endif
