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
};
/* The result of a piece of work; all zeros: success. */
struct fsd_answer {
	int32_t code;	      /* of the call */
	uint32_t caps;	      /* IDENTIFY: the first capability word */
	struct rxw_uuid uuid; /* IDENTIFY, WHO; all zeros: none */
};
/* Take a piece of work; false if there is none. Complete each with fsd_work_done(). */
bool fsd_work_take(struct fsd_clients *clients, struct fsd_work *work);
void fsd_work_done(struct fsd_clients *clients, const struct fsd_work *work,
		   const struct fsd_answer *answer, uint64_t now);
/*
 * Called periodically: queue work for idle clients with promises. After 15 minutes without a call
 * they are probed; after two hours they are told to forget their promises.
 */
void fsd_clients_check(struct fsd_clients *clients, uint64_t now);

#define OWED_MAX 512 /* FIDs queued for one client; beyond it the whole volume is broken */

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
	AFSFid *owed;
	uint32_t owed_count, owed_capacity;
	bool owed_all; /* (volume,0,0) instead */
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
	uint32_t vnode, unique;
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
	struct work_list work, quiet_work;
	unsigned background; /* pieces of work of quiet ones that are being done */
	struct fsd_clients_stats stats;
};

/* With the lock held: queue.c, promises.c. */
void fsd_host_queue(struct fsd_clients *clients, struct fsd_host *host);
/* Remove and return the first host of a list; NULL: the list is empty. */
struct fsd_host *fsd_host_dequeue(struct work_list *list);
void fsd_host_forget_promises(struct fsd_clients *clients, struct fsd_host *host);
/* Make the tables of promises and objects. False: no memory. */
bool fsd_promises_init(struct fsd_clients *clients, const uint64_t secret[2]);

#endif
