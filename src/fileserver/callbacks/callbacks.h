/* SPDX-License-Identifier: BSD-2-Clause */
/* Callback promises: the clients that hold them, the calls to clients, and watching the tree. */
#ifndef FILESERVER_CALLBACKS_H
#define FILESERVER_CALLBACKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <rxwire/types.h>

#include "fileserver/volume/volume.h"

/* -- clients and the promises that they hold -- */

/*
 * A client is an address and port. One that is new is served at once, without promises; meanwhile
 * it is asked who it is. Only one that has answered, and has been told to forget older promises,
 * gets new ones. One that does not answer is left alone for some minutes. Times are seconds of a
 * clock that never goes back (`now`). Any thread.
 */
struct fsd_clients;

struct fsd_clients_options {
	uint32_t volume;
	size_t hosts_max; /* entries of clients; beyond it strangers get no promises */
	size_t promises_max;
	void (*wake)(void *arg); /* there is work; called without a lock held */
	/* a client may hold promises from now on; called without a lock held; may be NULL */
	void (*up)(void *arg, const struct sockaddr_storage *peer);
	void *arg;
};

struct fsd_clients *fsd_clients_create(const struct fsd_clients_options *options);
void fsd_clients_destroy(struct fsd_clients *clients);

/*
 * A client that may hold promises of before a restart: it is asked who it is and told to forget them,
 * behind those that call. Nothing happens if the table is full.
 */
void fsd_clients_recall(struct fsd_clients *clients, const struct sockaddr_storage *peer,
			uint64_t now);

/* Who makes a call. Valid from fsd_clients_enter() to fsd_clients_leave(). */
struct fsd_host;
struct fsd_caller {
	struct fsd_host *host; /* NULL: the table is full */
	bool uae;	       /* wants portable error numbers */
};
void fsd_clients_enter(struct fsd_clients *clients, const struct sockaddr_storage *peer,
		       uint32_t opcode, uint64_t now, struct fsd_caller *caller);
void fsd_clients_leave(struct fsd_clients *clients, struct fsd_caller *caller);

/*
 * Promise to tell the caller of a change; returns for how many seconds, 0 = no promise. `bulk`: one
 * of many, for a shorter time. Give first and look at the object then, so that no change between is
 * lost.
 */
uint32_t fsd_promise_give(struct fsd_clients *clients, const struct fsd_caller *caller,
			  const AFSFid *fid, bool bulk, uint64_t now);
/* The caller gives promises up. */
void fsd_promise_drop(struct fsd_clients *clients, const struct fsd_caller *caller,
		      const AFSFid *fid);
void fsd_promise_drop_all(struct fsd_clients *clients, const struct fsd_caller *caller);
/* The object changed: all holders but `except` (a host, or NULL) are to be told. */
void fsd_promise_break(struct fsd_clients *clients, const AFSFid *fid, const void *except);
/* Does anybody hold one? */
bool fsd_promise_held(struct fsd_clients *clients, const AFSFid *fid);
/*
 * Some of the objects that promises are held on, in turn: fills fids[0..max) and returns how many;
 * the cursor starts at 0. Expired promises met on the way are removed.
 */
size_t fsd_promise_sweep(struct fsd_clients *clients, size_t *cursor, AFSFid *fids, size_t max,
			 uint64_t now);

struct fsd_clients_stats {
	size_t hosts, hosts_up; /* now; of them, those that may hold promises */
	size_t promises;	/* now */
	size_t objects;		/* that there are promises on, now */
	uint64_t given, broken, refused;
	uint64_t dropped;     /* given up one by one */
	uint64_t dropped_all; /* calls that gave all up */
	uint64_t expired;
	uint64_t reclaimed; /* clients that lost what they held to make room */
	uint64_t failed;    /* calls to clients that were up */
};
void fsd_clients_stats(struct fsd_clients *clients, struct fsd_clients_stats *stats);
/* How many have called within so many seconds. */
size_t fsd_clients_active(struct fsd_clients *clients, uint64_t now, uint64_t seconds);

/* -- calls from the server to its clients -- */

struct fsd_callbacks;

/*
 * Start the thread that makes the calls, from `endpoint`: clients know the server by the address
 * and port that they call. `uuid` is copied. Returns NULL without memory or thread.
 */
struct fsd_callbacks *fsd_callbacks_start(rxw_endpoint *endpoint, struct fsd_clients *clients,
					  const struct rxw_uuid *uuid);
/* There is work; any thread. */
void fsd_callbacks_wake(struct fsd_callbacks *callbacks);
/* Give up calls in progress and stop. Before the endpoint is destroyed. */
void fsd_callbacks_stop(struct fsd_callbacks *callbacks);

/* -- watching the tree: inotify where it works, and a slow sweep -- */

struct fsd_watch;

/*
 * Start the thread. At most `max` directories are watched; of others, and of file systems that do
 * not tell, changes are seen by the sweep (256 objects a second) or when they are asked for.
 * Without inotify the sweep alone does it. Returns NULL without memory or thread.
 */
struct fsd_watch *fsd_watch_start(struct fsd_volume *volume, struct fsd_clients *clients,
				  unsigned max);
void fsd_watch_stop(struct fsd_watch *watch);

/*
 * A promise is about to be given on the object of this record: watch its directory (or itself, if
 * it is one). `path` is the object's. Cheap if that is done already. Any thread.
 */
void fsd_watch_add(struct fsd_watch *watch, const struct fsd_record *record, const char *path);

/* Directories watched now. */
size_t fsd_watch_count(struct fsd_watch *watch);

/* -- addresses of clients that may hold promises, kept in a file for the next start -- */

struct fsd_remember;

/*
 * Open or make the file, and call `each` for every address in it, at most `max` and none twice. NULL
 * after a line in message[FSD_MESSAGE_MAX].
 */
struct fsd_remember *fsd_remember_open(const char *path, size_t max,
				       void (*each)(void *arg, const struct sockaddr_storage *peer),
				       void *arg, char *message);
void fsd_remember_close(struct fsd_remember *remember);

/*
 * When this start was, in seconds: later than any start before, however short the time between. NULL:
 * now.
 */
uint32_t fsd_remember_date(const struct fsd_remember *remember);

/*
 * Add a client that may hold promises from now on. Any thread; remember may be NULL. The file is not
 * flushed to the disk: it serves restarts of the program. After a crash of the machine clients detect
 * the restart by their own probes. An address that cannot be stored is left out.
 */
void fsd_remember_add(struct fsd_remember *remember, const struct sockaddr_storage *peer);

#endif
