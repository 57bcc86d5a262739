/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside the callbacks: the table of clients, and its promises. */
#ifndef FILESERVER_CALLBACKS_CLIENTS_H
#define FILESERVER_CALLBACKS_CLIENTS_H

#include <pthread.h>
#include <stdatomic.h>

#include "afs/afs-common.h"
#include "base/hash.h"
#include "common/htable.h"
#include "fileserver/base/base.h"
#include "fileserver/callbacks/callbacks.h"
#include "fileserver/callbacks/tables.h"

/* `lock` covers everything. It is a leaf: nothing is called with it held. */
struct fsd_clients {
	pthread_mutex_t lock;
	struct fsd_clients_options options;
	/*
	 * By address, by host and object, by FID, by FID. Clients choose their addresses, and which
	 * objects to hold or to change.
	 */
	struct htable hosts, promises, objects, changing;
	struct fsd_host *newest, *oldest;
	struct fsd_host *newest_holding, *oldest_holding; /* with promises, also owed ones */
	struct fsd_shares shares;			  /* of addresses */
	struct work_list list[WORK_LISTS];
	unsigned busy; /* hosts that are being called */
	struct {
		uint64_t at, seconds;
		size_t count;
	} active;		     /* the last answer of fsd_clients_active() */
	pthread_cond_t settled;	     /* a host that calls wait for has another state */
	unsigned waiting;	     /* calls that wait for clients */
	unsigned settling;	     /* calls that wait for changes of others */
	pthread_cond_t opened;	     /* one of `changing` is gone */
	uint64_t changes;	     /* that ever began */
	_Atomic size_t open_changes; /* objects in `changing` */
	struct fsd_ledger *ledger;   /* may be NULL */
	size_t owed;		     /* promises that hosts are to be told about */
	uint32_t made;		     /* promises that were ever made */
	uint64_t doubt_until;	     /* `unlisted_until` of hosts that are new */
	unsigned background;	     /* pieces of work of quiet ones that are being done */
	struct fsd_clients_stats stats;
};

/* Calls to hosts in flight, and with those that a call of the service waits for. */
#define IN_FLIGHT_MAX 64
#define URGENT_MAX    512

#define KEEP_S	      180 /* an entry is kept this much longer than was promised */

#define WAITING_MAX   64  /* calls that may wait for clients as long as they want */
#define SETTLING_MAX  32  /* the same, for changes of others */
#define WAITING_MS    250 /* how long further ones wait */

/* The caller holds the lock: clients.c, promises.c, breaks.c. */
void fsd_host_queue(struct fsd_clients *clients, struct fsd_host *host);
/* A call waits for it from now on: before the others. */
void fsd_host_hurry(struct fsd_clients *clients, struct fsd_host *host);
/*
 * Remove and return the next host of a list. An address of which `most` hosts are being called has to wait. NULL: there is
 * none.
 */
void fsd_host_forget_promises(struct fsd_clients *clients, struct fsd_host *host);
/* Forget its promises; it will be told. The host is up. */
void fsd_host_reset(struct fsd_clients *clients, struct fsd_host *host);
void fsd_promise_remove(struct fsd_clients *clients, struct promise *promise);
/* A call of the host, which may have promises: they are reclaimed after those of others. */
void fsd_host_called(struct fsd_clients *clients, struct fsd_host *host);
/* All promises of the host, which did not answer or is about to be told to forget them. */
void fsd_host_owe_all(struct fsd_clients *clients, struct fsd_host *host);
/* The call with the promises in `sent` has failed: they are owed as before. */
void fsd_host_owe_again(struct fsd_host *host);
/* It may rely on promises that were dropped. */
static inline bool fsd_host_may_cache(const struct fsd_host *host, uint64_t now)
{
	return host->state != HOST_UP && host->promised_until > now;
}
/*
 * Its place in the table of hosts, made if there is room. `known`: it may hold promises of an earlier server, and must be told
 * of changes, so that its address has no limit of its own.
 */
struct fsd_host *fsd_host_find(struct fsd_clients *clients, const struct sockaddr_storage *peer,
			       bool known);
/* It may hold promises of an earlier server: it is called, after the others. */
void fsd_host_recall(struct fsd_clients *clients, struct fsd_host *host, uint64_t now);
static inline uint64_t fsd_hash_fid(const AFSFid *fid, const uint64_t secret[2])
{
	return rxw_hash_words((uint64_t)fid->Volume << 32 | fid->Vnode, fid->Unique, secret);
}
static inline bool fsd_same_fid(const AFSFid *a, const AFSFid *b)
{
	return a->Volume == b->Volume && a->Vnode == b->Vnode && a->Unique == b->Unique;
}
/* A call to the host failed: when a call of it may wait for another try. */
void fsd_host_failed(struct fsd_host *host, enum fsd_work_kind kind, uint64_t now);
/* The host has answered for its promises up to this number: those that waited for that go on. */
void fsd_host_told(struct fsd_host *host, uint64_t until);
/* The ticket waits until the host was told of all promises that were taken. NULL: no call waits. */
void fsd_break_wait(struct fsd_clients *clients, struct fsd_host *host, struct ticket *ticket);
/*
 * Take the promises on an object, or on everything in a volume, from their holders, but not from
 * `except`. Each will be told and, if there is a ticket, gets a waiter; with `gone` neither. There is
 * also a waiter for hosts that are to be told about it already. Returns whether there is anything to
 * tell.
 */
bool fsd_promise_take_volume(struct fsd_clients *clients, const struct fsd_break *what,
			     const void *except, struct ticket *ticket);
bool fsd_promise_take(struct fsd_clients *clients, const struct fsd_break *what, const void *except,
		      struct ticket *ticket);
/* Make the tables of promises and objects, or of changes. False: no memory. */
bool fsd_promises_init(struct fsd_clients *clients, const uint64_t secret[2]);
bool fsd_changing_init(struct fsd_clients *clients, const uint64_t secret[2]);

/* -- the work that callbacks.c does -- */

struct fsd_work {
	enum fsd_work_kind kind;
	struct fsd_host *host;
	struct sockaddr_storage peer, local;
	bool identified; /* `uuid` is valid */
	struct rxw_uuid uuid;
	AFSFid fids[AFSCBMAX];
	uint32_t count;
	bool whole; /* `fids` are volumes with ids greater than `after`; there may be more */
	uint32_t after;
	uint64_t until; /* BREAK: the number of the last of these promises */
	uint64_t begun; /* when it was taken, in seconds */
};
/* The result of a piece of work; all zeros: success. */
struct fsd_answer {
	int32_t code;	      /* of the call */
	uint32_t caps;	      /* IDENTIFY: the first capability word */
	struct rxw_uuid uuid; /* IDENTIFY, WHO; all zeros: none */
};
/* Take a piece of work; false if there is none. Complete each with fsd_work_done(). */
bool fsd_work_take(struct fsd_clients *clients, struct fsd_work *work, uint64_t now);
/* The same, only work that a call waits for. */
bool fsd_work_take_urgent(struct fsd_clients *clients, struct fsd_work *work, uint64_t now);
void fsd_work_done(struct fsd_clients *clients, const struct fsd_work *work,
		   const struct fsd_answer *answer, uint64_t now);
/*
 * Called periodically: queue work for idle clients with promises. After 15 minutes without a call
 * they are probed; after two hours they are told to forget their promises.
 */
void fsd_clients_check(struct fsd_clients *clients, uint64_t now);

/* -- ledger.c: with the lock held; `ledger` may be NULL -- */

struct promise;
struct fsd_ledger;

#define FSD_NO_SLOT UINT32_MAX

/* Write a promise to the ledger. Returns its slot. */
uint32_t fsd_ledger_put(struct fsd_ledger *ledger, const struct promise *promise);
/* It expires at another time. */
void fsd_ledger_renew(struct fsd_ledger *ledger, uint32_t slot, uint64_t expires);
void fsd_ledger_free(struct fsd_ledger *ledger, uint32_t slot);
void fsd_ledger_close(struct fsd_ledger *ledger);

#endif
