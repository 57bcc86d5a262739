/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside the callbacks: the table of clients, its promises, and the work that callbacks.c does. */
#ifndef FILESERVER_CALLBACKS_PRIVATE_H
#define FILESERVER_CALLBACKS_PRIVATE_H

#include <pthread.h>

#include "afs/afs-common.h"
#include "common/htable.h"
#include "fileserver/callbacks/callbacks.h"

/* The next call to a client. */
enum fsd_work_kind {
	FSD_WORK_IDENTIFY, /* TellMeAboutYourself */
	FSD_WORK_WHO,	   /* WhoAreYou, for clients without TellMeAboutYourself */
	FSD_WORK_INIT,	   /* InitCallBackState: forget all promises */
	FSD_WORK_FORGET,   /* the same, as a break of the volume `fids` */
	FSD_WORK_PROBE,	   /* ProbeUuid, or Probe for clients without a UUID */
	FSD_WORK_BREAK	   /* `fids` have changed; count 0: no call is needed */
};
struct fsd_work {
	enum fsd_work_kind kind;
	struct fsd_host *host;
	struct sockaddr_storage peer;
	bool identified; /* `uuid` is valid */
	struct rxw_uuid uuid;
	AFSFid fids[AFSCBMAX];
	uint32_t count;
	bool whole; /* `fids` are volumes with ids greater than `after`; there may be more */
	uint32_t after;
	uint64_t until; /* the breaks that the host was owed before this one are done with it */
};
/* The result of a piece of work; all zeros: success. */
struct fsd_answer {
	int32_t code;	      /* of the call */
	uint32_t caps;	      /* IDENTIFY: the first capability word */
	struct rxw_uuid uuid; /* IDENTIFY, WHO; all zeros: none */
};
/* Take a piece of work; false if there is none. Complete each with fsd_work_done(). */
bool fsd_work_take(struct fsd_clients *clients, struct fsd_work *work);
/* The same, only work that a call waits for. */
bool fsd_work_take_urgent(struct fsd_clients *clients, struct fsd_work *work);
void fsd_work_done(struct fsd_clients *clients, const struct fsd_work *work,
		   const struct fsd_answer *answer, uint64_t now);
/*
 * Called periodically: queue work for idle clients with promises. After 15 minutes without a call
 * they are probed; after two hours they are told to forget their promises.
 */
void fsd_clients_check(struct fsd_clients *clients, uint64_t now);

#define OWED_MAX 512 /* FIDs queued for one client; beyond it the whole volume is broken */

/*
 * A change that waits for clients, on the stack of fsd_promise_break_all(). The lock of the clients
 * covers it.
 */
struct ticket {
	struct waiter *first;
	pthread_cond_t told; /* `first` is NULL */
};

/* A host that a ticket waits for: in the list of the ticket, and in that of the host. */
struct waiter {
	struct ticket *ticket;
	struct fsd_host *host;
	uint64_t until; /* breaks that the host must have answered */
	struct waiter *ticket_next, **ticket_link;
	struct waiter *host_next;
};

enum host_state {
	HOST_NEW,    /* not identified */
	HOST_ASKED,  /* being identified, or told to forget its promises */
	HOST_UP,     /* may hold promises */
	HOST_SILENT, /* did not answer; not called before `ask_after` */
};

struct fsd_host {
	struct sockaddr_storage peer;
	void *chain;			/* by address */
	struct fsd_host *newer, *older; /* by last call */
	struct fsd_host *next_work;	/* in a list of work */
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
	unsigned refs; /* calls in progress */
	uint64_t last_call, last_answer, ask_after;
	struct promise *promises; /* by host_next */
	size_t promise_count;
	AFSFid *owed; /* in the order of the changes */
	uint32_t owed_count, owed_capacity;
	bool owed_all;			       /* (volume,0,0) of every volume instead */
	uint32_t whole_after;		       /* volumes up to this id are done */
	uint64_t owed_total;		       /* breaks that were ever queued for it */
	uint64_t taken_total;		       /* of these, begun or dropped */
	struct waiter *waiters, **last_waiter; /* by `until` */
	/*
	 * The end of the latest promise that the client may rely on; 0 after it was told to
	 * forget all of them. Seconds.
	 */
	uint64_t promised_until;
	uint64_t retry_after; /* it is not told again before, although a call waits */
	unsigned awaited;     /* calls in fsd_clients_ready() */
	uint64_t marked;      /* clients->marks when it was last marked */
};

/* One promise: in its object's list, its host's list, and the table by both. */
struct promise {
	struct object *object;
	struct fsd_host *host;
	uint64_t expires;
	struct promise *object_next, **object_link;
	struct promise *host_next, **host_link;
	void *chain;
};

/* An object that promises are held on. */
struct object {
	uint32_t volume, vnode, unique; /* vnode 0: the volume as a whole */
	size_t holders;
	struct promise *first;
	void *chain;
};

/* Hosts to be called, in order. */
struct work_list {
	struct fsd_host *first, **last;
};

/* `lock` covers everything. It is a leaf: nothing is called with it held. */
struct fsd_clients {
	pthread_mutex_t lock;
	struct fsd_clients_options options;
	/*
	 * By address, by host and object, by FID. Clients choose their addresses, and which objects
	 * to hold.
	 */
	struct htable hosts, promises, objects;
	struct fsd_host *newest, *oldest;
	struct work_list work, quiet_work, urgent_work;
	pthread_cond_t settled; /* a host that calls wait for has another state */
	unsigned waiting;	/* calls that wait for clients */
	uint64_t marks;		/* walks over hosts so far */
	unsigned background;	/* pieces of work of quiet ones that are being done */
	struct fsd_clients_stats stats;
};

#define WAITING_MAX 64	/* calls that may wait for clients as long as they want */
#define WAITING_MS  250 /* how long further ones wait */

/* With the lock held: queue.c, promises.c, breaks.c. */
void fsd_host_queue(struct fsd_clients *clients, struct fsd_host *host);
/* A call waits for it from now on: before the others. */
void fsd_host_hurry(struct fsd_clients *clients, struct fsd_host *host);
/* Remove and return the first host of a list; NULL: the list is empty. */
struct fsd_host *fsd_host_dequeue(struct work_list *list);
void fsd_host_forget_promises(struct fsd_clients *clients, struct fsd_host *host);
/* Forget its promises; it will be told. The host is up. */
void fsd_host_reset(struct fsd_clients *clients, struct fsd_host *host);
void fsd_promise_remove(struct fsd_clients *clients, struct promise *promise);
/* It may rely on promises that were dropped. */
static inline bool fsd_host_may_cache(const struct fsd_host *host, uint64_t now)
{
	return host->state != HOST_UP && host->promised_until > now;
}
/* A call to the host failed: when a call of it may wait for another try. */
void fsd_host_failed(struct fsd_host *host, enum fsd_work_kind kind, uint64_t now);
/* The host has answered breaks up to `until`: those that waited for them go on. */
void fsd_host_told(struct fsd_host *host, uint64_t until);
/* A promise was taken from the host: it will be told. `fid` has vnode 0: the whole volume. */
void fsd_break_queue(struct fsd_clients *clients, struct fsd_host *host, const AFSFid *fid);
/* The ticket waits for the break that is queued for the host next. NULL: no call waits. */
void fsd_break_wait(struct fsd_clients *clients, struct fsd_host *host, struct ticket *ticket);
/*
 * Take the promises on an object, or on everything in a volume, from their holders, but not from
 * `except`. Each gets a break and, if there is a ticket, a waiter; with `gone` neither. Returns
 * whether there was a holder.
 */
bool fsd_promise_take_volume(struct fsd_clients *clients, const struct fsd_break *what,
			     const void *except, struct ticket *ticket);
bool fsd_promise_take(struct fsd_clients *clients, const struct fsd_break *what, const void *except,
		      struct ticket *ticket);
/* Make the tables of promises and objects. False: no memory. */
bool fsd_promises_init(struct fsd_clients *clients, const uint64_t secret[2]);

#endif
