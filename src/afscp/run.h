/* SPDX-License-Identifier: BSD-2-Clause */
/* The state of a run of afscp, and of each of its threads. */
#ifndef COPY_RUN_H
#define COPY_RUN_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include <jansson.h>
#include <rxafs/client.h>
#include <rxwire/rxwire.h>

#include "afs/client/client.h"
#include "program/address.h"
#include "program/auth.h"
#include "program/options.h"
#include "program/report.h"
#include "afscp/filter.h"
#include "afscp/pace.h"

struct copy_settings {
	struct tools_list servers;
	bool recursive, long_list, json, quiet, stats, verbose, resume;
	bool preserve, keep_going, force, negative, symbolic, shared;
	bool remove, checksum, update, dry_run, cross_mounts; /* sync */
	struct filters filters;
	uint64_t bwlimit;
	bool all_levels, one_volume, human, summarize, print0;
	const char *mode, *mount, *mix, *size;
	const char *name, *type, *mtime;
	uint64_t maxdepth;
	struct tools_auth auth;
	uint64_t clients, seconds_ms, range, jobs, paths, files;
	uint64_t timeout_ms, retry_ms;
};

/*
 * One run of afscp: what its threads share. Members without a comment are constant once they run.
 */
struct run {
	struct copy_settings set;
	struct rxw_config config;
	rxw_engine *engine;
	struct tools_address vl;
	struct sockaddr_storage vl_others[TOOLS_ADDRESSES]; /* of the same host and family */
	unsigned vl_other_count;
	uint16_t fs_port;
	mode_t umask;

	/* Arguments after the command: text as given, or places, by command. */
	char **arguments;
	size_t argument_count;
	struct place *places;
	size_t place_count;
	const char *destination; /* of get; NULL = the current directory */
	char **made;		 /* paths of sources that are matches of patterns */
	size_t made_count;

	/* Of commands on librxafs; NULL otherwise. */
	rxafs_client *afs;
	rxafs_user *user;	/* NULL: anonymous */
	char cell[256];		/* the home cell; "": none */
	rxafs_cancel **cancels; /* of all threads, for signals; covered by `lock` */
	size_t cancel_count;

	pthread_mutex_t token_lock;   /* covers the renewal */
	struct tools_renewal renewal; /* its token NULL: anonymous */

	/* --json of get and put; NULL otherwise */
	pthread_mutex_t list_lock; /* covers `list` and `paths` */
	json_t *list;		   /* files: copied or skipped */
	json_t *errors;		   /* texts; covered by the lock of messages */
	json_t *paths;		   /* to servers with several addresses, or NULL */

	pthread_mutex_t linked_lock; /* of writing to files that have several names */

	pthread_mutex_t progress_lock;
	struct progress progress; /* on: stderr is a terminal, without --quiet */
	/* Bytes and files to copy, with those that will be skipped; 0 = unknown. */
	atomic_uint_fast64_t total, total_files;
	atomic_uint_fast64_t left_out; /* bytes that are not copied, of files that existed */

	bool one_cell;		 /* the command knows one cell, whose servers -s names */
	atomic_bool tells_log;	 /* errors that the library logs are told */
	atomic_bool located;	 /* the servers of a volume have answered */
	atomic_bool interrupted; /* by a signal */
	atomic_int signal;	 /* its number, 0 = none */
	/*
	 * A signal ends the program at once: the main thread may be blocked where a signal cannot
	 * interrupt it (a KDC, a pipe), and there is nothing to undo.
	 */
	atomic_bool at_once;
	atomic_bool broken_pipe;     /* the reader of standard output is gone */
	pthread_mutex_t lock;	     /* of what follows */
	pthread_cond_t wake;	     /* `interrupted` has become true */
	struct afs_client **clients; /* of all threads, for signals */
	size_t client_count;
	struct counters transport; /* of clients that are closed */
	/* Called on an interrupt. True: the clients go on. */
	bool (*on_interrupt)(void *arg, int number);
	void *on_interrupt_arg;

	atomic_uint_fast64_t files, bytes; /* copied */
	atomic_uint_fast64_t skipped;	   /* --continue: files that existed */
	atomic_uint_fast64_t failed;	   /* objects that were not copied */
	atomic_bool told;		   /* that it was interrupted */
	atomic_uint_fast64_t told_ns;	   /* last message about an outage; 0 = none */
};

/* A sequence of failures; all zeros at first, and again after a success. */
struct outage {
	uint64_t since_ns;
	unsigned tries, pause_ms;
};

/* One thread of a run, with its client. */
struct copy {
	struct run *run;
	const struct copy_settings *set;
	struct afs_client *client;
	uint64_t tokens;	  /* number of renewals that the client knows */
	struct afs_volume volume; /* of the source at hand */
	const char *path;
	bool silent; /* failed calls are neither reported nor repeated */
};

/* Whether -s, or $AFSCP_SERVER, has the right form. 0, or -1 after a message. */
int run_check_servers(const struct run *run);
/*
 * Find the servers that the options name for the home cell. 0: run->vl and the ports are set; 1: none are
 * named, and the cell has to tell; or -1 after a message.
 */
int run_find_servers(struct run *run);
/*
 * Get the token. If none was requested explicitly, continue without one, after a message. `use` is called
 * with its successors. 0, or -1 after a message.
 */
int run_get_token(struct run *run, tools_renewal_use *use);
/* Whether there is time for another try, at most `ms` after the first failure, whose text is told once. Waits. */
bool run_wait_round(struct run *run, struct outage *outage, const char *text, uint64_t ms);

/* Options for a client of the run, without its token. */
struct afs_client_options run_client_options(const struct run *run);
/* Open the client of a thread. 0, or -1 after a message. */
int copy_open(struct run *run, struct copy *copy);
/* Close it, after it has returned its promises. */
void copy_close(struct copy *copy);
#define GIVE_UP_MS 2000 /* limit for returning promises to the file servers */

/* Return the promises of all clients, within `ms` milliseconds. The lock is held or not needed. */
void run_give_up(struct run *run, unsigned ms);

/*
 * Call fn() on an interrupt, under the lock of the run: true if the clients go on. NULL: an
 * interrupt cancels the clients.
 */
void run_set_interrupt(struct run *run, bool (*fn)(void *arg, int number), void *arg);

/* Counters of all clients of the run, also of closed ones. */
void run_counters(struct run *run, struct counters *sum);

/* Print an error; of an interrupt only the first one, as it ends the calls of all threads. */
void copy_complain(struct copy *copy, const struct afs_error *error);

/* The way for an anonymous user to authenticate, for messages about missing rights; or "". */
const char *copy_authentication(const struct copy *copy);

static inline bool run_interrupted(const struct run *run)
{
	return atomic_load(&run->interrupted);
}
static inline bool copy_interrupted(const struct copy *copy)
{
	return run_interrupted(copy->run);
}

/* --stats and --json of get and put: what was copied since `from`. */
void copy_report(struct run *run, const struct tools_usage *from, const struct counters *before);

/* A file is complete: for --json and --verbose. Any thread. */
void copy_done(struct run *run, const char *label, uint64_t bytes);
/* A file existed, with --continue. Any thread. */
void copy_skip(struct run *run, const char *label, uint64_t bytes);

/* Show the progress of all files. `label` names the one at hand. Any thread. */
void copy_progress(struct run *run, const char *label);

#endif
