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

#include "afs/client.h"
#include "tools/common/address.h"
#include "tools/common/auth.h"
#include "tools/common/renew.h"

struct copy_settings {
	const char *server;
	bool recursive, long_list, json, quiet, stats, verbose;
	struct tools_auth auth;
	uint64_t clients, seconds_ms, range;
};

/* One run of afscp. */
struct copy {
	struct copy_settings set;
	struct rxw_config config;
	rxw_engine *engine;
	struct tools_address vl;
	uint16_t fs_port;
	struct tools_renewal renewal; /* its token NULL: anonymous */
	struct afs_client *client;
	struct afs_volume volume;
	char *path;               /* behind "VOLUME:" */
	mode_t umask;
	bool progress;            /* stderr is a terminal and nobody said --quiet */

	atomic_bool interrupted;  /* by a signal */
	/* Writes to a pipe or device, perhaps blocked there: a signal ends the program at once. */
	atomic_bool nothing_to_undo;
	pthread_mutex_t lock;     /* of `running` */
	rxw_call *running;        /* the call that a signal aborts, or NULL */
	void (*on_interrupt)(void *arg); /* called as well; under the lock */
	void *on_interrupt_arg;

	uint64_t files, bytes;    /* copied */
};

/* Commands; 0 or the exit status, after one line on stderr. */
int copy_get(struct copy *copy, const char *destination);
int copy_list(struct copy *copy);
int copy_stat(struct copy *copy);
int copy_bench(struct copy *copy);

/* Remember or forget (NULL) the call that a signal is to abort. */
void copy_running(struct copy *copy, rxw_call *call);

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

/* ---- where data goes ---- */

/*
 * A destination. A regular file is written under a temporary name in the same directory and gets
 * its own name when it is complete; anything else (a pipe, /dev/null) is written as it is.
 */
struct sink {
	int dir;             /* descriptor of the directory, not owned; AT_FDCWD */
	int fd;
	bool owned;          /* close fd */
	bool temporary;      /* temp[] exists */
	bool seekable;
	char temp[256];      /* name relative to dir */
	const char *name;    /* final name relative to dir, lent */
};

/*
 * Open `name` in `dir`. 0, or -1 with errno (EISDIR: it is a directory). `inside`: the name comes
 * from the server, so that what it is now, a link or a device, is replaced and never followed.
 */
int sink_open(struct sink *sink, int dir, const char *name, bool inside);
void sink_stdout(struct sink *sink);
/* Write all of it at `offset`. Changes iov. 0 or -1 with errno. */
int sink_write(struct sink *sink, struct iovec *iov, unsigned count, uint64_t offset);
/*
 * All is there: give the file its mode and name. 0 or -1 with errno, the temporary file then being
 * gone.
 */
int sink_commit(struct sink *sink, mode_t mode);
/* Leave nothing behind; errno is kept. Does nothing after sink_commit(). */
void sink_abandon(struct sink *sink);
/* ".NAME.0123abcd": a name that nobody else takes. */
void sink_temp_name(char *temp, size_t size, const char *name);

/* ---- parts of get ---- */

/* Copy one file. `label` names it in messages. */
int get_file(struct copy *copy, const struct afs_object *object, struct sink *sink,
	     const char *label);
/* Copy what is below a directory into the directory `dir`; depth starts at 0. */
int get_tree(struct copy *copy, const AFSFid *fid, int dir, const char *label, unsigned depth);
/* Remove a directory and all below it; best effort, errno is kept. */
void remove_tree(int dir, const char *name);

/* ---- directories ---- */

struct entry {
	char *name;
	AFSFid fid;
	AFSFetchStatus status; /* after entries_status() */
};
struct entries {
	struct entry *list;
	size_t count;
};

/* Names of a directory without "." and "..", sorted. 0, or -1 after a message. */
int entries_read(struct copy *copy, const AFSFid *fid, const char *label, struct entries *entries);
/* Ask for the status of all. */
int entries_status(struct copy *copy, struct entries *entries);
void entries_free(struct entries *entries);

/* ---- progress ---- */

struct progress {
	bool on;
	uint64_t start_ns, shown_ns;
	uint64_t shown_bytes;
	double rate;       /* bytes per second, smoothed */
};
void progress_start(struct progress *p, bool on);
/* Show it, a few times a second. total 0 = unknown. */
void progress_update(struct progress *p, const char *label, uint64_t done, uint64_t total);
void progress_end(struct progress *p);
/* The line itself; for progress_update() and its test. Returns text. */
char *progress_line(char *text, size_t size, const char *label, uint64_t done, uint64_t total,
		    double rate);

#endif
