/* SPDX-License-Identifier: BSD-2-Clause */
/* The state of a run of afscp. */
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

#include "program/address.h"
#include "program/auth.h"
#include "program/options.h"
#include "program/report.h"
#include "afscp/filter.h"
#include "afscp/pace.h"

struct copy_settings {
	struct tools_list servers, named_paths;
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
	uint64_t timeout_ms, retry_ms, wait_ms;
};

/*
 * One run of afscp: what its threads share. Members without a comment are constant once they run.
 */
struct run {
	struct copy_settings set;
	struct rxw_config config;
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
	json_t *paths;		   /* pathuse.h, or NULL */
	json_t *path_samples;	   /* likewise; covered by `list_lock`, too: */
	uint64_t sample_ns, next_sample;
	uint64_t began_ns; /* monotonic; constant */

	pthread_mutex_t linked_lock; /* of writing to files that have several names */

	pthread_mutex_t progress_lock;
	struct progress progress; /* on: stderr is a terminal, without --quiet */
	/* Bytes and files to copy, with those that will be skipped; 0 = unknown. */
	atomic_uint_fast64_t total, total_files;
	atomic_uint_fast64_t left_out; /* bytes that are not copied, of files that existed */

	atomic_bool tells_log;	 /* errors that the library logs are told */
	atomic_bool located;	 /* the servers of a volume have answered */
	atomic_bool gave_up;	 /* a server was silent for the time of --retry, and nobody has answered since */
	atomic_bool interrupted; /* by a signal */
	atomic_int signal;	 /* its number, 0 = none */
	/*
	 * A signal ends the program at once: the main thread may be blocked where a signal cannot
	 * interrupt it (a KDC, a pipe), and there is nothing to undo.
	 */
	atomic_bool at_once;
	atomic_bool broken_pipe;     /* the reader of standard output is gone */
	pthread_mutex_t lock;	     /* of what follows */
	pthread_cond_t wake;	     /* `interrupted` or `over` has become true */
	bool over;		     /* the command, not yet the session */
	bool hurried;		     /* by this thread, after an interrupt: */
	pthread_t hurry;
	/* Called on an interrupt. True: operations go on. */
	bool (*on_interrupt)(void *arg, int number);
	void *on_interrupt_arg;

	atomic_uint_fast64_t files, bytes; /* copied */
	atomic_uint_fast64_t skipped;	   /* --continue: files that existed */
	atomic_uint_fast64_t failed;	   /* objects that were not copied */
	atomic_bool told;		   /* that it was interrupted */
	atomic_uint_fast64_t told_ns;	   /* last message about an outage; 0 = none */
};

/* Result of a part of a command. */
enum copy_result {
	COPY_GOOD = 0,
	COPY_FAILED = -1, /* this object failed, after a message */
	COPY_STOP = -2	  /* the rest would fail as well; after a message */
};

/* A sequence of failures; all zeros at first, and again after a success. */
struct outage {
	uint64_t since_ns;
	unsigned tries, pause_ms;
};

/* Whether -s, or $AFSCP_SERVER, has the right form. 0, or -1 after a message. */
int run_check_servers(const struct run *run);
/* Whether there is time for another try, at most `ms` after the first failure, whose text is told once. Waits. */
bool run_wait_round(struct run *run, struct outage *outage, const char *text, uint64_t ms);

/*
 * Call fn() on an interrupt, under the lock of the run: true if operations go on. NULL: an interrupt
 * cancels them.
 */
void run_set_interrupt(struct run *run, bool (*fn)(void *arg, int number), void *arg);

/* Counters of the calls of the run. */
void run_counters(const struct run *run, struct counters *sum);

static inline bool run_interrupted(const struct run *run)
{
	return atomic_load(&run->interrupted);
}
/* Milliseconds at most for returning promises to the file servers. */
static inline unsigned run_farewell_ms(const struct run *run)
{
	return run_interrupted(run) ? 500 : 2000;
}

/* --stats and --json of get and put: what was copied since `from`. */
void copy_report(struct run *run, const struct tools_usage *from, const struct counters *before);
/* Its parts: what is the same for sync; and lines of that, which is freed. */
json_t *copy_make_report(struct run *run, const struct tools_usage *from,
			 const struct counters *before);
void copy_print_report(json_t *report);

/* Whether names may be printed: not among the bytes of a file that goes to standard output, nor in JSON. */
bool copy_tells_names(const struct run *run);
/* A file is complete: for --json and --verbose. Any thread. */
void copy_done(struct run *run, const char *label, uint64_t bytes);
/* A file existed, with --continue. Any thread. */
void copy_skip(struct run *run, const char *label, uint64_t bytes);

/* Show the progress of all files. `label` names the one at hand. Any thread. */
void copy_progress(struct run *run, const char *label);
/*
 * Report the end of a tree, whose result is `rc`, if a part of it failed. `files` and `failed` are
 * the numbers of the run before the tree. COPY_FAILED if a part failed, otherwise `rc`.
 */
enum copy_result copy_report_tree(struct run *run, const char *label, uint64_t files,
				  uint64_t failed, enum copy_result rc);

/* "LABEL/NAME" of a name in a directory. free(). NULL after a message. */
char *copy_join_label(const char *label, const char *name);

/*
 * An octal number of at most 07777, or changes of `old` as chmod(1) takes them: "u+x,go-w", "a=r",
 * "+X". Without a letter before it, a change leaves out the bits of the umask. 0 and *mode, or -1.
 */
int mode_parse(const char *text, mode_t old, bool directory, mode_t umask, mode_t *mode);

#endif
