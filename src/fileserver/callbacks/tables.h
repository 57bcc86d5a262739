/* SPDX-License-Identifier: BSD-2-Clause */
/* The tables of clients: hosts, promises, objects, and changes that wait. The lock of the clients covers all of them. */
#ifndef FILESERVER_CALLBACKS_TABLES_H
#define FILESERVER_CALLBACKS_TABLES_H

#include <pthread.h>
#include <stdatomic.h>

#include "afs/afs-common.h"
#include "fileserver/base/base.h"
#include "fileserver/callbacks/callbacks.h"

/* A change that waits for clients. The lock of the clients covers it. */
struct ticket {
	struct waiter *first;
	pthread_cond_t told; /* `first` is NULL */
};

/* A host that a ticket waits for: in the list of the ticket, and in that of the host. */
struct waiter {
	struct ticket *ticket;
	struct fsd_host *host;
	uint64_t until; /* number of the last promise for which the host must have answered */
	struct waiter *ticket_next, **ticket_link;
	struct waiter *host_next;
};

/* The next call to a client. */
enum fsd_work_kind {
	FSD_WORK_IDENTIFY, /* TellMeAboutYourself */
	FSD_WORK_WHO,	   /* WhoAreYou, for clients without TellMeAboutYourself */
	FSD_WORK_INIT,	   /* InitCallBackState: forget all promises */
	FSD_WORK_FORGET,   /* the same, as a break of the volume `fids` */
	FSD_WORK_PROBE,	   /* ProbeUuid, or Probe for clients without a UUID */
	FSD_WORK_BREAK	   /* promises on `fids` are void; count 0: no call is needed */
};

enum host_state {
	HOST_NEW,    /* not identified */
	HOST_ASKED,  /* being identified, or told to forget its promises */
	HOST_UP,     /* may hold promises */
	HOST_SILENT, /* did not answer; not called before `ask_after` */
};

/* The lists of work: for hosts that calls wait for, for active ones, for idle ones. */
enum work_lists {
	WORK_URGENT,
	WORK_ACTIVE,
	WORK_QUIET,
	WORK_LISTS
};

/* The hosts of one address in a list, in order. */
struct share_queue {
	struct host_share *of;
	struct fsd_host *first, *last;
	size_t count;
	struct share_queue *next, *previous; /* in the list, unless it is empty */
};

/* The share of one address: entries of the table, work in the lists, and calls of its hosts. */
struct host_share {
	struct fsd_share share; /* first member */
	struct share_queue queue[WORK_LISTS];
	unsigned busy;	 /* hosts that are being called */
	size_t promises; /* that its hosts hold, owed ones included */
	/* Seconds that calls waited for its hosts, since `slow_since` and up to `slow_upto`. */
	uint64_t slow, slow_since, slow_upto;
	uint64_t unlisted_until; /* its hosts get no promises before */
};

struct fsd_host {
	struct sockaddr_storage peer;
	struct host_share *share;
	struct sockaddr_storage local; /* the address of the server that it called last; family 0: unknown */
	void *chain;			/* by address */
	struct fsd_host *newer, *older; /* by last call */
	struct fsd_host *holding_newer, *holding_older; /* the same, of those with promises */
	struct fsd_host *next_work, *previous_work; /* in a queue of its share */
	enum work_lists list;			    /* with `queued` */
	enum host_state state;
	enum fsd_work_kind asking; /* in HOST_ASKED */
	bool queued, busy;	   /* in a list of work; work is being done */
	bool quiet;		   /* idle: has not called since work was queued for it */
	bool background;	   /* its work was taken from the list of idle clients */
	bool modern;		   /* made a call that implies portable error numbers */
	bool caps_known;
	uint32_t caps;
	bool identified; /* by `uuid` */
	struct rxw_uuid uuid;
	bool probe;    /* is to be probed */
	bool given_up; /* did not answer: until it is up again, no change waits for it */
	unsigned refs; /* calls in progress */
	unsigned dropping; /* of these, those that give up all promises: it gets none, which would go with the rest */
	uint64_t last_call, last_answer, ask_after;
	/*
	 * Promises, by host_next: in force; taken, in the order of the changes, which the host is to be
	 * told; of these, in the call that is being made. Owed ones stay until the host has answered.
	 */
	struct promise *promises, *owed, *sent;
	struct promise **last_owed;
	size_t promise_count;	      /* in the three lists */
	uint64_t owed_total;	      /* promises that were ever taken */
	uint32_t whole_after;	      /* FORGET: volumes up to this id are done */
	struct waiter *first_waiter, *newest_waiter; /* by `until` */
	/*
	 * The end of the latest promise that the client may rely on; 0 after it was told to
	 * forget all of them. Seconds.
	 */
	uint64_t promised_until;
	/*
	 * Until then the client may rely on promises that are not in the lists, and of which it cannot
	 * be told one by one: it gets no promise, so that it trusts nothing in its cache.
	 */
	uint64_t unlisted_until;
	_Atomic bool kept; /* its address is in the file, `record` its number there */
	int record;
	uint64_t retry_after; /* it is not told again before, although a call waits */
	unsigned awaited;     /* calls in fsd_clients_ready() */
	/* Seconds that calls waited for its answers, since `slow_since`. */
	uint64_t slow, slow_since;
};

/* One promise: in its object's list, a list of its host, and while in force in the table by both. */
struct promise {
	struct object *object;
	struct fsd_host *host;
	uint64_t expires;
	uint64_t number; /* of those taken from the host; 0: in force */
	uint32_t given;	 /* calls that were given it and have not failed */
	uint32_t slot;	 /* in the ledger */
	uint32_t serial; /* of those that were ever made */
	struct promise *object_next, **object_link;
	struct promise *host_next, **host_link;
	void *chain;
};

/* An object that promises are held on, or that hosts are to be told about. */
struct object {
	AFSFid fid;	/* vnode 0: a whole volume */
	size_t holders; /* promises in the list */
	size_t owed;	/* of these: hosts are to be told about them */
	struct promise *first;
	void *chain;
};

/* Hosts to be called: those of each address in turn. */
struct work_list {
	struct share_queue *first, *last;
	size_t count; /* hosts */
};

#endif
