/* SPDX-License-Identifier: BSD-2-Clause */
/* What the commands of afscp share. */
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

/* What a command returns, and the parts of it. */
enum copy_result {
	COPY_GOOD = 0,
	COPY_FAILED = -1, /* this object, after a message */
	COPY_STOP = -2    /* so would all that follow; after a message */
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
	const char *destination;      /* of get; NULL = the current directory */
	struct afs_volume volume;     /* of the source at hand */
	const char *path;
	mode_t umask;
	struct progress progress; /* on: stderr is a terminal and nobody said --quiet */

	atomic_bool interrupted;  /* by a signal */
	atomic_int signal;        /* its number, 0 = none */
	/*
	 * The main thread may wait for something that a signal does not end (a KDC, a pipe that
	 * nobody reads), and there is nothing to undo: a signal ends the program at once.
	 */
	atomic_bool at_once;
	bool broken_pipe;         /* nobody reads standard output any more */
	pthread_mutex_t lock;
	pthread_cond_t wake;      /* `interrupted` has become true; by the lock */
	void (*on_interrupt)(void *arg); /* called as well; under the lock */
	void *on_interrupt_arg;

	uint64_t files, bytes;    /* copied */
	uint64_t skipped;         /* files that were there already: --continue */
	uint64_t failed;          /* objects that could not be copied */
};

/* Commands; 0 or the exit status, after one line on stderr. */
int copy_get(struct copy *copy);
int copy_list(struct copy *copy);
int copy_stat(struct copy *copy);
int copy_bench(struct copy *copy);

/* ---- what is tried again ---- */

/* Since when nothing succeeds; all zeros at first, and again after a success. */
struct outage {
	uint64_t since_ns;
	unsigned tries, pause_ms;
};

/*
 * After a call that failed: true if it may be made again, since there is another token or a server
 * that serves the volume; then *moved (may be NULL) says whether that may be another server. Waits,
 * for --retry altogether, and says so once. *error is what it gave up for.
 */
bool copy_retry(struct copy *copy, struct outage *outage, struct afs_error *error, bool *moved);
/* Find the volume of a source, which is the one at hand then; -1 after a message. */
int copy_locate(struct copy *copy, const struct copy_source *source);
/* Walk to copy->path; -1 after a message. */
int copy_walk(struct copy *copy, bool follow, struct afs_object *object);
/* COPY_STOP if an error that copy_retry() gave up for will be met by all that follows. */
enum copy_result copy_judge(const struct copy *copy, const struct afs_error *error);

/*
 * Before a call: where the token ends soon, go on with another one, if there is one. Calls in
 * progress keep theirs.
 */
void copy_fresh(struct copy *copy);
/*
 * After a call that failed: true if its token had ended and there is another one now, so that it
 * may be tried again.
 */
bool copy_again(struct copy *copy, const struct afs_error *error);

/* ---- parts of get ---- */

struct sink; /* sink.h */

/*
 * Copy one file. `label` names it in messages. *object is of the version that was copied: another
 * server of a read-only volume may have another one.
 */
enum copy_result get_file(struct copy *copy, struct afs_object *object, struct sink *sink,
			  const char *label);
/* After a failed write to `name`, by errno; says so. */
enum copy_result write_failed(struct copy *copy, const char *label, const char *name);
/* Whether a file is there already, as an earlier run left it: of that length and time. */
bool get_is_there(const struct copy *copy, int dir, const char *name,
		  const AFSFetchStatus *status);

/* Copy all that is below a directory into the directory `dir`. */
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
/* The status of entries at..at+count, count 1..AFSCBMAX. `label` names their directory. */
enum copy_result entries_status(struct copy *copy, const struct entries *entries, size_t at,
				uint32_t count, const char *label,
				AFSFetchStatus statuses[AFSCBMAX]);
void entries_free(struct entries *entries);

#endif
