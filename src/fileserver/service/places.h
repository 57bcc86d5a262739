/* SPDX-License-Identifier: BSD-2-Clause */
/* The bounds of the calls that run: places, which calls wait for, and permits; and a list of those calls. */
#ifndef FILESERVER_SERVICE_PLACES_H
#define FILESERVER_SERVICE_PLACES_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <rxwire/types.h>

#include "common/background.h"
#include "fileserver/base/base.h"

/*
 * -- places for calls that move the data of files. Each holds memory and a descriptor for as long as its client
 * likes. So there are places for some, clients share them, and when they run short a slow one loses its place.
 * Other calls may wait for one, in turn, without either. --
 */

#define FSD_STORES_MAX	 1024u /* places of calls that receive the data of a store */
#define FSD_STORERS_MAX	 96    /* threads that give it to the store, while they wait for the disk */
#define FSD_FLOWS_MAX	 1536u /* of those that send the data of a file */
#define FSD_PLACE_RATE	 8192 /* bytes a second: slower ones are slow */
#define FSD_PLACE_PERIOD 2000 /* ms of waiting for the client, after which a call may be slow */
#define FSD_WAITERS_MAX	 1536u /* calls that wait for a place */
#define FSD_WAIT_MS	 40000 /* less than servers and clients allow a call without data */

/* A thread that ends a call which has lost its place, meanwhile without the lock. */
struct fsd_place_pin {
	pthread_t thread;
	bool left; /* the call has ended in that thread: the place is gone */
};

/* An address, and a port of it. */
struct fsd_place_keys {
	struct fsd_share_key address, client;
};

/* The place of one call, in memory of its own. */
struct fsd_place {
	/* Constant while it is held. */
	struct fsd_place_keys keys;
	struct fsd_share *address, *client;
	rxw_call *rx;
	/* The lock of all covers these while the call waits for a place. */
	void (*start)(struct fsd_place *place, bool got);
	uint64_t since; /* monotonic ns */
	struct fsd_share *waiter; /* NULL: it does not wait */
	struct fsd_place *next, **link;
	/* The lock of all covers these: */
	bool withdrawn; /* the call waits no more; stays if the call enters again */
	unsigned index;
	bool open; /* the call may be ended */
	bool lost; /* another one has the place */
	struct fsd_place_pin *pin;
	/* Its own lock covers how long the server waited, and the bytes that moved, in this period and the last one. */
	pthread_mutex_t lock;
	uint64_t begun; /* the present wait; monotonic ns, 0: none */
	struct fsd_pace {
		uint64_t waited_ns, bytes;
	} now, last;
};

struct fsd_places {
	unsigned max; /* constant */
	pthread_mutex_t lock;
	/* It covers these: */
	pthread_cond_t unpinned;
	unsigned count;
	struct fsd_place **place;	     /* room for one more than `max` */
	unsigned next;			     /* is looked at next, whether it is slow */
	struct fsd_shares addresses, clients; /* of all places */
	struct fsd_shares waiters;
	struct fsd_place *first, **last; /* of the calls that wait */
};

/* False: no memory. */
bool fsd_places_init(struct fsd_places *all, unsigned max);
void fsd_places_fini(struct fsd_places *all);

enum fsd_entry {
	FSD_ENTRY_REFUSED, /* the call fails with VBUSY; `place` is void */
	FSD_ENTRY_FREE,
	FSD_ENTRY_TAKEN, /* another call was slow: it fails with VBUSY */
	FSD_ENTRY_WAITS
};
/*
 * A place for a call; to be left. A client gets one while it has fewer than are free. If it does not, it may get that of
 * the slowest of the slow ones: among those of the same address, whose client has more places; and if no place at all is
 * free, also among those of addresses that have more places. Each such call is compared with 64 places, the next one with
 * the next 64. `now`: monotonic ns.
 */
enum fsd_entry fsd_place_enter(struct fsd_places *all, struct fsd_place *place, rxw_call *rx,
			       const struct sockaddr_storage *peer, uint64_t now);
/*
 * The same, but the call waits if it would be refused, unless too many of its address wait already. Then `start` is called,
 * on any thread and perhaps before this function returns: the call has a place now; or it has waited for too long or was
 * withdrawn, and `place` is void. It must not wait, nor leave the place. `place` is zeroed before the first attempt.
 */
enum fsd_entry fsd_place_await(struct fsd_places *all, struct fsd_place *place, rxw_call *rx,
			       const struct sockaddr_storage *peer, uint64_t now,
			       void (*start)(struct fsd_place *place, bool got));
/*
 * The client of a call is gone. If the call waits, `start` is called; if it has not begun to, it never will. Any thread
 * that keeps the place from ending meanwhile. Does not wait.
 */
void fsd_place_withdraw(struct fsd_places *all, struct fsd_place *place);
/*
 * Every second: calls that wait may get the places of calls that have become slow, or are refused. *taken: how many did.
 * False: none waits any more.
 */
bool fsd_places_look(struct fsd_places *all, uint64_t now, unsigned *taken);
/*
 * Before and after each wait for the client. Without fsd_place_wait() the bytes only are counted. A wait that has begun
 * goes on if it is begun again. Any thread that knows that something came may end it.
 */
void fsd_place_wait(struct fsd_place *place, uint64_t now);
void fsd_place_got(struct fsd_place *place, uint64_t bytes, uint64_t now);
/* The call is answered now: the place stays until it is left. False: it was lost, and the call has failed. */
bool fsd_place_settle(struct fsd_places *all, struct fsd_place *place);
void fsd_place_leave(struct fsd_places *all, struct fsd_place *place);

/* -- a thread that looks after the calls which wait for places, also while the server drains or reloads -- */

struct fsd_service;

struct fsd_waiting {
	pthread_mutex_t starting;     /* held while the thread starts; covers `begun` */
	bool begun;		      /* there is a thread */
	struct background background; /* its lock covers `wanted` */
	bool wanted;		      /* some call may wait */
};

void fsd_waiting_init(struct fsd_waiting *waiting);
/* Ends the thread. No call waits. */
void fsd_waiting_fini(struct fsd_waiting *waiting);
/* fsd_place_await(), but the thread looks after the call if it waits. */
enum fsd_entry fsd_wait_for_place(struct fsd_service *service, struct fsd_places *all,
				  struct fsd_place *place, rxw_call *rx,
				  const struct sockaddr_storage *peer,
				  void (*start)(struct fsd_place *place, bool got));
/* A session has begun: the thread looks after it. */
void fsd_waiting_for_session(struct fsd_service *service);
/* One look at all of them, and at the sessions; the thread does that every second. False: none waits any more. */
bool fsd_waiting_look(struct fsd_service *service);

/* -- permits for calls that hold much memory until their clients have read the replies, for which clients may take their time -- */

#define FSD_PERMITS_MAX	   256u
#define FSD_LISTS_MAX	   16u	/* for long lists of volumes */
#define FSD_LIST_FEW	   512u /* volumes: a list of these needs no permit */
#define FSD_FRAGMENTED_MAX 256u /* for fetches that hold up to 3 MiB each */

struct fsd_permits {
	unsigned max;	      /* constant; at most FSD_PERMITS_MAX */
	pthread_mutex_t lock; /* covers `holder` and changes of `count` */
	_Atomic unsigned count;
	struct {
		const void *call;
		struct fsd_share_key address;
	} holder[FSD_PERMITS_MAX];
};

void fsd_permits_init(struct fsd_permits *permits, unsigned max);
void fsd_permits_fini(struct fsd_permits *permits);
/* For a call that has none. False: its address has as many as are free. Any thread. */
bool fsd_permit_take(struct fsd_permits *permits, const void *call,
		     const struct sockaddr_storage *peer);
/* The reply of a call has left. Most calls have no permit. Any thread. */
void fsd_permit_return(struct fsd_permits *permits, const void *call);

/* -- the calls of the file service that have not been answered -- */

/* A call, which may outlive its handler. It is zeroed before it is added. */
struct fsd_running_call {
	struct fsd_running_call *next, **link; /* lock; link NULL: not in the list */
	const char *procedure;
	int32_t opcode;
	struct sockaddr_storage peer;
	uint64_t since; /* fsd_now() */
};
struct fsd_running {
	pthread_mutex_t lock;
	struct fsd_running_call *first; /* lock */
};
void fsd_running_add(struct fsd_running *running, struct fsd_running_call *call);
/* A call that was not added may be removed. */
void fsd_running_remove(struct fsd_running *running, struct fsd_running_call *call);

#endif
