/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The calls that receive the data of a store. Each occupies a thread, and memory of the store, for as long as its client
 * likes. So there are places for some, clients share them, and when they run short a slow one loses its place.
 */
#ifndef FILESERVER_SERVICE_STORING_H
#define FILESERVER_SERVICE_STORING_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <rxwire/types.h>

#include "fileserver/base/base.h"

#define FSD_STORES_MAX	  96
#define FSD_STORES_RATE	  8192 /* bytes a second: slower ones are slow */
#define FSD_STORES_PERIOD 2000 /* ms of waiting for data, after which a store may be slow */

/* One such call, on the stack of its handler. */
struct fsd_place {
	/* Constant. */
	struct fsd_share_key address;
	uint16_t port;
	rxw_call *rx;
	/* The lock of all covers these: */
	bool receiving; /* the call may be ended */
	bool lost;	/* another one has the place */
	bool pinned;	/* a thread uses `rx` without the lock */
	/* Its own lock covers how long the server waited, and the bytes that came, in this period and the last one. */
	pthread_mutex_t lock;
	uint64_t begun; /* the present wait; monotonic ns, 0: none */
	struct fsd_pace {
		uint64_t waited_ns, bytes;
	} now, last;
};

struct fsd_storing {
	unsigned max; /* at most FSD_STORES_MAX; constant */
	pthread_mutex_t lock;
	/* It covers these: */
	pthread_cond_t unpinned;
	unsigned count;
	struct fsd_place *place[FSD_STORES_MAX];
};

void fsd_storing_init(struct fsd_storing *all);
void fsd_storing_end(struct fsd_storing *all);

enum fsd_entry {
	FSD_ENTRY_REFUSED, /* the call fails with VBUSY; `place` is void */
	FSD_ENTRY_FREE,
	FSD_ENTRY_TAKEN /* another call was slow: it fails with VBUSY */
};
/*
 * A place for a call; to be left. A client gets one while it has fewer than are free. If it does not, it may get that of
 * the slowest of the slow ones: among those of the same address, whose client has more places; and if no place at all is
 * free, also among those of addresses that have more places. `now`: monotonic ns.
 */
enum fsd_entry fsd_storing_enter(struct fsd_storing *all, struct fsd_place *place, rxw_call *rx,
				 const struct sockaddr_storage *peer, uint64_t now);
/* Before and after each wait for data. */
void fsd_storing_wait(struct fsd_place *place, uint64_t now);
void fsd_storing_got(struct fsd_place *place, uint64_t bytes, uint64_t now);
/* No more data is wanted: the place stays until it is left. False: it was lost, and the call has failed. */
bool fsd_storing_received(struct fsd_storing *all, struct fsd_place *place);
void fsd_storing_leave(struct fsd_storing *all, struct fsd_place *place);

#endif
