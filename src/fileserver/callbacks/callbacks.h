/* SPDX-License-Identifier: BSD-2-Clause */
/* Callback promises: the clients that hold them, and the calls to clients. */
#ifndef FILESERVER_CALLBACKS_H
#define FILESERVER_CALLBACKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <rxwire/types.h>

#include "afs/rxafs.h"
#include "fileserver/base/base.h"

/* -- clients and the promises that they hold -- */

/*
 * A client is an address and port. A new client is served at once, but without promises; meanwhile
 * the server asks it to identify itself. It gets promises after it has answered and has been told
 * to forget older ones. A client that does not answer is not asked again for some minutes. `now` is
 * fsd_now(). Any thread.
 */
struct fsd_clients;

struct fsd_clients_options {
	uint32_t volume; /* the only one, unless there is `volumes` */
	/*
	 * Several volumes: fill ids[0..max) with those greater than `after`, ascending, and return
	 * their number. Called without a lock. NULL: there is one.
	 */
	size_t (*volumes)(void *arg, uint32_t after, uint32_t *ids, size_t max);
	/* A client that may rely on dropped promises is told so first: see fsd_clients_ready(). */
	bool strict;
	size_t hosts_max; /* clients in the table; further ones get no promises */
	size_t promises_max;
	void (*wake)(void *arg); /* there is work for the callbacks; called without a lock */
	/*
	 * A client is about to get its first promise: keep its address, and the one that it calls, for the
	 * next start. Returns a number, or -1: it gets none. Called without a lock. NULL: none are kept.
	 */
	int (*keep)(void *arg, const struct sockaddr_storage *peer,
		    const struct sockaddr_storage *local);
	/* It holds none any more. Called with a lock: must not call back. */
	void (*drop)(void *arg, int record);
	void *arg;
};

struct fsd_clients *fsd_clients_create(const struct fsd_clients_options *options);
void fsd_clients_destroy(struct fsd_clients *clients);

/* The client of a call. Valid from fsd_clients_enter() to fsd_clients_leave(). */
struct fsd_host;
struct fsd_caller {
	struct fsd_host *host; /* NULL: the table is full */
	bool uae;	       /* expects portable error numbers */
	bool untold;	       /* may rely on promises that were dropped, with `strict` */
};
/* `local`: the address that it has called, and that callbacks come from. NULL: unknown. */
void fsd_clients_enter(struct fsd_clients *clients, const struct sockaddr_storage *peer,
		       const struct sockaddr_storage *local, uint32_t opcode, uint64_t now,
		       struct fsd_caller *caller);
void fsd_clients_leave(struct fsd_clients *clients, struct fsd_caller *caller);

/*
 * With options.strict: whether the caller may be served. A client that failed to answer a break, or
 * whose promises were taken from it, must have been told to forget them; if it was not, tell it, and
 * wait for its answer for at most `wait_ms`. False: it did not answer, or too many calls wait.
 */
bool fsd_clients_ready(struct fsd_clients *clients, const struct fsd_caller *caller, uint64_t now,
		       unsigned wait_ms);

/* A promise that a call was given. Vnode 0: on a whole volume. Volume 0: none is asked for. */
struct fsd_given {
	AFSFid fid;
	uint32_t seconds; /* its duration; 0: none was given */
	uint32_t serial;  /* a later promise on the object has another one */
};
/* With one lock, or one alone, whose duration is returned. `bulk`: shorter. Read the object later. */
void fsd_promise_give_all(struct fsd_clients *clients, const struct fsd_caller *caller,
			  struct fsd_given *given, size_t count, bool bulk, uint64_t now);
uint32_t fsd_promise_give(struct fsd_clients *clients, const struct fsd_caller *caller,
			  const AFSFid *fid, bool bulk, uint64_t now);
/* May that wait for the disk? It would be the first promise of the caller. */
bool fsd_promise_waits(struct fsd_clients *clients, const struct fsd_caller *caller);
/* The call has failed: this promise is void, unless other calls were given it, too. */
void fsd_promise_undo(struct fsd_clients *clients, const struct fsd_caller *caller,
		      const struct fsd_given *given);
/* The caller returns its promise, or all of them. */
void fsd_promise_drop(struct fsd_clients *clients, const struct fsd_caller *caller,
		      const AFSFid *fid);
void fsd_promise_drop_all(struct fsd_clients *clients, const struct fsd_caller *caller);
/* The object changed: break the promises of all holders but `except` (a host, or NULL). */
void fsd_promise_break(struct fsd_clients *clients, const AFSFid *fid, const void *except);

/* The changes of one operation, for fsd_promise_break() and fsd_promise_break_all(). */
struct fsd_break {
	AFSFid fid;   /* vnode 0: everything in the volume */
	bool for_all; /* also the client that made the change */
	bool gone;    /* promises are dropped without a message */
};
/*
 * Break the promises on all these objects, of all holders but `except`, and wait until each has
 * answered, for at most `wait_ms`, or much less if many calls wait. Those that have not answered then
 * lose all promises, and are told to forget them before they are served again.
 * Returns the number of clients that were given up.
 */
unsigned fsd_promise_break_all(struct fsd_clients *clients, const struct fsd_break *breaks,
			       size_t count, const void *except, unsigned wait_ms);
/* The same in two steps. The first one does not wait; NULL: no client has to answer. */
struct fsd_breaking;
struct fsd_breaking *fsd_promise_break_begin(struct fsd_clients *clients,
					     const struct fsd_break *breaks, size_t count,
					     const void *except);
/* The other one; `wait_ms` counts from the first one on. */
unsigned fsd_promise_break_end(struct fsd_clients *clients, struct fsd_breaking *breaking,
			       unsigned wait_ms);
/*
 * A change, from before others can see it until the clients that held promises have answered. A part
 * of its call; zeroed before. Calls that may have seen it wait for its end before they reply, so
 * that no client learns of a change while another one still trusts its cache.
 */
#define FSD_CHANGED_MAX 6 /* objects */
struct fsd_change {
	unsigned count; /* 0: not begun */
	struct fsd_changing {
		AFSFid fid;
		uint64_t number; /* of the change */
		bool awaited;	 /* calls wait for its end */
		void *chain;
	} object[FSD_CHANGED_MAX];
};
/* Any thread. Breaks of whole volumes (vnode 0) are ignored. */
void fsd_change_begin(struct fsd_clients *clients, struct fsd_change *change,
		      const struct fsd_break *breaks, size_t count);
/* A change that has not begun may end. */
void fsd_change_end(struct fsd_clients *clients, struct fsd_change *change);
/*
 * Wait until the changes of these objects that have begun have ended, for at most `wait_ms`, or much
 * less if many calls wait. *until: 0 at first, then when the waits of this call end. False: the
 * changes have not ended.
 */
bool fsd_change_settled(struct fsd_clients *clients, const AFSFid *fids, size_t count,
			unsigned wait_ms, uint64_t *until);
/* Whether one of these objects is changing. Does not wait. */
bool fsd_change_open(struct fsd_clients *clients, const AFSFid *fids, size_t count);
/* Whether a client holds a promise on the object. */
bool fsd_promise_held(struct fsd_clients *clients, const AFSFid *fid);
/* Iterate over the objects, *cursor from 0 on. Expired promises are removed on the way. */
size_t fsd_promise_sweep(struct fsd_clients *clients, size_t *cursor, AFSFid *fids, size_t max,
			 uint64_t now);

struct fsd_clients_stats {
	size_t hosts, hosts_up; /* now; of them, those that may hold promises */
	size_t promises;	/* now */
	size_t objects;		/* with promises, now */
	uint64_t given, broken, refused;
	uint64_t dropped;     /* returned by clients, one by one */
	uint64_t dropped_all; /* calls that returned all promises */
	uint64_t expired;
	uint64_t reclaimed; /* clients whose promises were taken to make room */
	uint64_t failed;    /* calls to clients that were up */
	uint64_t waits;	    /* changes that waited for clients */
	uint64_t given_up;  /* clients that did not answer in time for a change */
	uint64_t held;	    /* calls that waited until the client was told to forget its promises */
	uint64_t turned_away; /* of these, calls that were not served */
	size_t settling;      /* calls that wait for changes of others, now */
};
void fsd_clients_stats(struct fsd_clients *clients, struct fsd_clients_stats *stats);
/* The number of clients that called within the last `seconds`. */
size_t fsd_clients_active(struct fsd_clients *clients, uint64_t now, uint64_t seconds);

/* -- calls from the server to its clients -- */

struct fsd_callbacks;

/*
 * Start the thread that makes the calls, from `endpoint`, because clients identify the server by
 * address and port. `uuid` is copied. Returns NULL without memory or thread.
 */
struct fsd_callbacks *fsd_callbacks_start(rxw_endpoint *endpoint, struct fsd_clients *clients,
					  const struct rxw_uuid *uuid);
/* Wake the thread: there is work. Any thread. */
void fsd_callbacks_wake(struct fsd_callbacks *callbacks);
/* Abort calls in progress and stop. Before the endpoint is destroyed. NULL is allowed. */
void fsd_callbacks_stop(struct fsd_callbacks *callbacks);

#endif
