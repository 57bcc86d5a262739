/* SPDX-License-Identifier: BSD-2-Clause */
/* The inside of the client table, shared by clients.c and promises.c. */
#ifndef FILESERVER_CLIENTS_PRIVATE_H
#define FILESERVER_CLIENTS_PRIVATE_H

#include <pthread.h>

#include "fileserver/callbacks/clients.h"

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
	uint64_t secret[2]; /* of the hashes: peers choose their addresses, and which objects to hold */
	struct fsd_clients_stats stats;
};

/* With the lock held. */
void fsd_host_queue(struct fsd_clients *clients, struct fsd_host *host);
void fsd_host_forget_promises(struct fsd_clients *clients, struct fsd_host *host);

#endif
