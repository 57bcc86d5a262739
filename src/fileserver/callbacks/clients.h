/* SPDX-License-Identifier: BSD-2-Clause */
/* The clients that call, the promises they hold, and what has to be told to them. */
#ifndef FILESERVER_CLIENTS_H
#define FILESERVER_CLIENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "afs/afs-common.h"

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
void fsd_clients_recall(struct fsd_clients *clients, const struct sockaddr_storage *peer, uint64_t now);

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

/* What is to be said to one client next. */
enum fsd_work_kind {
	FSD_WORK_IDENTIFY, /* tell me about yourself */
	FSD_WORK_WHO,	   /* one that does not know that: who are you */
	FSD_WORK_INIT,	   /* forget what you hold */
	FSD_WORK_FORGET,   /* the same as a break of the volume, `fids` */
	FSD_WORK_PROBE,	   /* are you still the one with this UUID, or just: still there */
	FSD_WORK_BREAK	   /* `fids` have changed; with count 0 there is nothing to say */
};
struct fsd_work {
	enum fsd_work_kind kind;
	struct fsd_host *host;
	struct sockaddr_storage peer;
	bool identified; /* it said who it is: `uuid` */
	struct rxw_uuid uuid;
	AFSFid fids[AFSCBMAX];
	uint32_t count;
};
/* How a piece of work went; zero means well. */
struct fsd_answer {
	int32_t code;	      /* of the call */
	uint32_t caps;	      /* IDENTIFY: the first capability word */
	struct rxw_uuid uuid; /* IDENTIFY, WHO; all zero: it has none */
};
/* Take a piece of work; false if there is none. Each must be given back with fsd_work_done(). */
bool fsd_work_take(struct fsd_clients *clients, struct fsd_work *work);
void fsd_work_done(struct fsd_clients *clients, const struct fsd_work *work,
		   const struct fsd_answer *answer, uint64_t now);
/*
 * Now and then: find work with those who hold promises and have been quiet. After 15 minutes they
 * are asked whether they are there; after two hours they are told to forget what they hold.
 */
void fsd_clients_check(struct fsd_clients *clients, uint64_t now);

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

#endif
