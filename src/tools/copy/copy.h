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
#include "tools/copy/progress.h"

struct copy_settings {
	const char *server;
	bool recursive, long_list, json, quiet, stats, verbose, resume;
	struct tools_auth auth;
	uint64_t clients, seconds_ms, range;
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

/* One run of afscp. */
struct copy {
	struct copy_settings set;
	struct rxw_config config;
	rxw_engine *engine;
	struct tools_address vl;
	uint16_t fs_port;
	struct tools_renewal renewal; /* its token NULL: anonymous */
	struct afs_client *client;    /* set under the lock */
	struct copy_source *sources;  /* at least one; more only of get */
	size_t source_count;
	const char *destination;  /* of get; NULL = the current directory */
	struct afs_volume volume; /* of the source at hand */
	const char *path;
	mode_t umask;
	struct progress progress; /* on: stderr is a terminal, without --quiet */

	atomic_bool interrupted; /* by a signal */
	atomic_int signal;	 /* its number, 0 = none */
	/*
	 * A signal ends the program at once: the main thread may be blocked where a signal cannot
	 * interrupt it (a KDC, a pipe), and there is nothing to undo.
	 */
	atomic_bool at_once;
	bool broken_pipe; /* the reader of standard output is gone */
	pthread_mutex_t lock;
	pthread_cond_t wake;		 /* `interrupted` has become true; under the lock */
	void (*on_interrupt)(void *arg); /* called on an interrupt; under the lock */
	void *on_interrupt_arg;

	uint64_t files, bytes; /* copied */
	uint64_t skipped;      /* --continue: files that existed */
	uint64_t failed;       /* objects that were not copied */
};

/* Commands; 0 or the exit status, after one line on stderr. */
int copy_get(struct copy *copy);
int copy_list(struct copy *copy);
int copy_stat(struct copy *copy);
int copy_bench(struct copy *copy);

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
/* COPY_STOP if the error that copy_retry() returned concerns everything that follows. */
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

/* Copy everything below a directory into the directory `dir`. */
enum copy_result get_tree(struct copy *copy, const AFSFid *fid, int dir, const char *label);

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
