/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a client knows: objects by FID, their statuses, and the promises under which these may be used. No I/O, no clock: times are
 * arguments, nanoseconds of CLOCK_BOOTTIME. Every function may be called by any thread, none waits for more than a lock that is held
 * for microseconds. Own changes are in changes.h, directories in listing.h.
 *
 * The order of calls around a call to a server:
 *
 *     note = cl_cache_note(cache);                   before the request is sent
 *     ... the call ...
 *     cl_cache_apply(object, &reply, &status, ...);  for each status in the reply
 *
 * Results of type int are 0 or a negative errno value. -ESTALE: the server must be asked.
 */
#ifndef CLIENT_CACHE_CACHE_H
#define CLIENT_CACHE_CACHE_H

#include <rxafs/types.h>

#include "afs/rxafs.h"

struct cl_cache;
/* An object, with counted references. While a reference exists its address is the identity of the FID. */
struct cl_object;

/* Trust ends this long before the server's promise does (K-041). */
#define CL_PROMISE_MARGIN_NS 10000000000ull

struct cl_cache_limits {
	size_t objects;	   /* 0: 100,000. Referenced objects count, but only others are evicted */
	size_t name_bytes; /* of directory contents; 0: 64 MiB */
	/* Called without a lock when an object with a user pointer is evicted. May be NULL. */
	void (*drop)(void *user);
	uint64_t key[2]; /* of hash tables, so that the numbers of a run can repeat; 0: random */
};

/* NULL: no memory. */
struct cl_cache *cl_cache_create(const struct cl_cache_limits *limits);
/* No references may be left. */
void cl_cache_destroy(struct cl_cache *cache);

/* -- volumes ------------------------------------------------------------------------------- */

/*
 * Tell whether a volume is a read-only or a backup one, whose promises are for the whole volume (K-042). Before this is told, each
 * object needs its own promise.
 */
int cl_cache_set_readonly(struct cl_cache *cache, uint32_t cell, uint32_t volume, bool readonly);

/* -- objects ------------------------------------------------------------------------------- */

/* The object of a FID, made if it is not there. NULL: no memory. */
struct cl_object *cl_cache_get(struct cl_cache *cache, const struct rxafs_fid *fid);
/* NULL if it is not there. */
struct cl_object *cl_cache_find(struct cl_cache *cache, const struct rxafs_fid *fid);
struct cl_object *cl_object_hold(struct cl_object *object);
/* NULL is permitted. */
void cl_object_put(struct cl_object *object);

struct rxafs_fid cl_object_fid(const struct cl_object *object);
/* The caller's pointer, which starts as NULL. It can be set once: the result is the pointer that is set then. */
void *cl_object_user(const struct cl_object *object);
void *cl_object_set_user(struct cl_object *object, void *user);

/*
 * Marks by which callers agree which of them asks the server (K-041). True: the caller has the mark, and must release it. Waiting for a
 * mark is up to the caller.
 */
enum cl_claim {
	CL_CLAIM_STATUS = 1,
	CL_CLAIM_NAMES = 2,
	CL_CLAIM_PREFETCH = 4,
	CL_CLAIM_OTHER = 8
};
bool cl_object_claim(struct cl_object *object, unsigned claims);
void cl_object_unclaim(struct cl_object *object, unsigned claims);

/*
 * References to the objects of a volume (NULL: of all), in batches: *cursor starts at 0. Returns their number, 0 at the end. Objects that
 * are made meanwhile may be missed.
 */
size_t cl_cache_walk(struct cl_cache *cache, uint64_t *cursor, const struct rxafs_fid *volume,
		     struct cl_object **objects, size_t room);

/* -- statuses ------------------------------------------------------------------------------ */

struct cl_status {
	uint64_t size;	  /* directory: of the server's image */
	uint64_t version; /* data version */
	/*
	 * Contents of the versions clean_from to version are the same, but for what this client stored itself (K-061). Blocks
	 * of other versions or incarnations must not be shown. If the version falls, numbers come again: delete higher ones.
	 */
	uint64_t clean_from;
	uint64_t order;	      /* rises with each reply that is taken */
	uint64_t valid_until; /* end of the promise; 0: none. Less if it is broken */
	/* Equal versions are equal contents while this is the same: it changes when a volume is restored (K-052). */
	uint32_t incarnation;
	uint32_t links, owner, group, author;
	uint32_t modified; /* ClientModTime, seconds */
	uint32_t changed;  /* ServerModTime */
	uint32_t parent_vnode, parent_unique;
	uint32_t anonymous; /* rights of AnonymousAccess */
	int32_t locks;	    /* -1: write lock; n: readers */
	uint16_t mode;	    /* 12 bits */
	uint8_t kind;	    /* enum rxafs_kind; 0: nothing is known */
};

/*
 * 0: usable without asking (K-040). -ESTALE: *status is what was known last; the server must be asked. -ENOENT: the server said
 * that the object is gone.
 */
int cl_object_status(struct cl_object *object, uint64_t now, struct cl_status *status);

/*
 * Rights of an identity in a directory (K-110). Identity 0 is anonymous. 0 or -ESTALE: that identity must ask for the status of the
 * directory.
 */
int cl_object_rights(struct cl_object *directory, uint32_t identity, uint64_t now,
		     uint32_t *rights);

/* Data beside a status in a reply. */
struct cl_reply {
	uint64_t note;	   /* cl_cache_note() before the first try of the call */
	uint64_t sent;	   /* when the request was sent that was answered */
	uint32_t server;   /* number of the server */
	uint32_t identity; /* of the caller; 0 = anonymous */
	/*
	 * 0 = unknown. Of a read-write volume: the first word of AFSVolSync. Of others: a number that is greater for a later release
	 */
	uint32_t sync;
	uint32_t
		lifetime; /* ExpirationTime of the promise in the same reply, in seconds; 0 = none */
};

/* Before a call. One note serves all objects in the reply, known or not. */
uint64_t cl_cache_note(const struct cl_cache *cache);

/* The meaning of a reply for contents that are held. The order of two verdicts is undefined: status.version and clean_from decide. */
enum cl_verdict {
	CL_KEEP,
	CL_DROP_CLEAN, /* other contents: drop what is not dirty (K-060, K-061, K-077) */
	CL_DROP_ALL,   /* the object is gone, or is another kind of object */
	CL_OTHER_SITE, /* ignored: it is of an older release than was seen (K-052). Ask again */
	CL_ASK_AGAIN, /* ignored: the volume was restored, or a change of one's own ended meanwhile. *known may be old */
};

/*
 * Take a status from a reply that is not the reply to an own change. Old and overtaken replies change nothing, a promise that was broken
 * meanwhile does not count (K-047 to K-049). *known, which may be NULL, is what is known afterwards: the answer for the operation that
 * asked, also where valid_until is 0. A status with an errorCode is ignored.
 */
enum cl_verdict cl_cache_apply(struct cl_object *object, const struct cl_reply *reply,
			       const AFSFetchStatus *status, struct cl_status *known);

/* The server said 102 (no such vnode). */
void cl_object_gone(struct cl_object *object);
/* Ask again at the next use. */
void cl_object_doubt(struct cl_object *object);

/* -- breaks -------------------------------------------------------------------------------- */

/*
 * A break of a FID: a reference to its object, or NULL if it is unknown. Of a whole volume (vnode 0, or read-only): NULL and *whole; the
 * objects are those of cl_cache_walk(). Answer the server after it.
 */
struct cl_object *cl_cache_break(struct cl_cache *cache, const struct rxafs_fid *fid, bool *whole);
/* InitCallBackState: the promises of a server are gone (K-046). */
void cl_cache_reset(struct cl_cache *cache, uint32_t server);
/* All promises are gone: after a suspend, or a gap without contact (K-139, K-141). */
void cl_cache_doubt(struct cl_cache *cache);

/*
 * Promises of evicted objects, to be given back by GiveUpCallBacks (K-051): those of one server, whose number is stored. Returns how many,
 * 0 if there are none. Until cl_cache_gave_up() no promise for these FIDs counts, since the server might take it back at once. `done`:
 * the server has answered. Promises that the caller does not take are forgotten.
 */
size_t cl_cache_give_up(struct cl_cache *cache, uint32_t *server, struct rxafs_fid *fids,
			size_t room);
void cl_cache_gave_up(struct cl_cache *cache, const struct rxafs_fid *fids, size_t count, bool done,
		      uint64_t now);

struct cl_cache_counts {
	uint64_t hits, misses; /* statuses and names that were usable, or not */
	uint64_t breaks;       /* received, for objects and volumes */
	uint64_t broken_early; /* promises that were broken before they arrived (K-047) */
	uint64_t overtaken;    /* statuses that were older than the known one (K-048, K-049) */
	uint64_t
		reordered; /* own changes of one object whose replies came in another order (K-050) */
	uint64_t conflicts; /* changes of others beside own ones (K-077) */
	uint64_t replaced;  /* volumes that were restored or released */
	uint64_t evicted;
	uint64_t objects;    /* present */
	uint64_t name_bytes; /* present */
};
void cl_cache_count(struct cl_cache *cache, struct cl_cache_counts *counts);

#endif
