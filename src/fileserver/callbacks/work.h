/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside the callbacks: the work that callbacks.c does, and the slots of the ledger. */
#ifndef FILESERVER_CALLBACKS_WORK_H
#define FILESERVER_CALLBACKS_WORK_H

#include "afs/afs-common.h"
#include "fileserver/callbacks/callbacks.h"

/* The next call to a client. */
enum fsd_work_kind {
	FSD_WORK_IDENTIFY, /* TellMeAboutYourself */
	FSD_WORK_WHO,	   /* WhoAreYou, for clients without TellMeAboutYourself */
	FSD_WORK_INIT,	   /* InitCallBackState: forget all promises */
	FSD_WORK_FORGET,   /* the same, as a break of the volume `fids` */
	FSD_WORK_PROBE,	   /* ProbeUuid, or Probe for clients without a UUID */
	FSD_WORK_BREAK	   /* promises on `fids` are void; count 0: no call is needed */
};
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
