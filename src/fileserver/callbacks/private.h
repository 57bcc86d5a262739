/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside the callbacks: the table of clients, its promises, and the work that callbacks.c does. */
#ifndef FILESERVER_CALLBACKS_PRIVATE_H
#define FILESERVER_CALLBACKS_PRIVATE_H

#include <pthread.h>

#include "afs/afs-common.h"
#include "fileserver/callbacks/callbacks.h"

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

#define OWED_MAX 512 /* FIDs owed to one client; beyond it the whole volume is broken */

enum host_state {
	HOST_NEW,    /* not asked yet */
	HOST_ASKED,  /* being identified or told to forget */
	HOST_UP,     /* may hold promises */
	HOST_SILENT, /* not asked again before `ask_after` */
};

struct fsd_host {
	struct sockaddr_storage peer;
	struct fsd_host *chain;		/* same bucket */
	struct fsd_host *newer, *older; /* by last call */
	struct fsd_host *next_work;	/* waiting to be told something */
	enum host_state state;
	enum fsd_work_kind asking; /* in HOST_ASKED */
	bool queued, busy;	   /* in a list of work; work is being done */
	bool quiet;		   /* has not called since it was to be told something */
	bool background;	   /* its work was taken from the list of the quiet ones */
	bool modern;		   /* made a call that only clients who know portable errors make */
	bool caps_known;
	uint32_t caps;
	bool identified; /* by `uuid` */
	struct rxw_uuid uuid;
	bool probe;    /* is to be asked whether it is there */
	unsigned refs; /* calls in progress */
	uint64_t last_call, last_answer, ask_after;
	struct promise *promises; /* by host_next */
	size_t promise_count;
	AFSFid *owed;
	uint32_t owed_count, owed_capacity;
	bool owed_all; /* (volume,0,0) instead */
};

/* One promise: in its object's list, its host's list, and the hash of both. */
struct promise {
	struct object *object;
	struct fsd_host *host;
	uint64_t expires;
	struct promise *object_next, **object_link;
	struct promise *host_next, **host_link;
	struct promise *chain;
};

/* An object that promises are held on. */
struct object {
	uint32_t vnode, unique;
	size_t holders;
	struct promise *first;
	struct object *chain;
};

/* Hosts that are to be told something, in order. */
struct work_list {
	struct fsd_host *first, **last;
};

/* `lock` covers everything. It is a leaf: nothing is called with it held. */
struct fsd_clients {
	pthread_mutex_t lock;
	struct fsd_clients_options options;
	struct fsd_host **hosts;
	struct fsd_host *newest, *oldest;
	struct work_list work, quiet_work;
	unsigned background; /* pieces of work of quiet ones that are being done */
	struct promise **promises;
	struct object **objects;
	size_t buckets; /* of promises and objects; a power of two */
	size_t host_buckets;
	uint64_t secret
		[2]; /* of the hashes: peers choose their addresses, and which objects to hold */
	struct fsd_clients_stats stats;
};

/* With the lock held: queue.c, promises.c. */
void fsd_host_queue(struct fsd_clients *clients, struct fsd_host *host);
/* The first host of a list of work, taken off it; NULL: it is empty. */
struct fsd_host *fsd_host_dequeue(struct work_list *list);
void fsd_host_forget_promises(struct fsd_clients *clients, struct fsd_host *host);

#endif
