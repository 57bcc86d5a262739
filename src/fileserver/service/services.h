/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside the services: what they share. */
#ifndef FILESERVER_SERVICE_SERVICES_H
#define FILESERVER_SERVICE_SERVICES_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "afs/numbers.h"
#include "afs/rxafs.h"
#include "volume/export/export.h"
#include "fileserver/cell/cell.h"
#include "fileserver/service/locks.h"
#include "fileserver/service/places.h"
#include "fileserver/service/service.h"
#include "fileserver/service/sessions.h"

/* -- fs_stats.c: the statistics that xstat_fs_test and afsmonitor show -- */

#define FSD_XSTATS_SIZES 9

/* Fetches or stores, also by size. least_…: UINT64_MAX until the first one. */
struct fsd_transfers {
	uint64_t count, good;
	uint64_t bytes, least_bytes, most_bytes; /* from here on of successful ones */
	uint64_t ns, least_ns, most_ns;
	double square; /* of the times, in square seconds */
	uint32_t size[FSD_XSTATS_SIZES];
};

/* `calls` is constant. */
struct fsd_xstats {
	rxw_rpcstats *calls;	/* owned by the caller; NULL: no times of procedures */
	_Atomic uint32_t asked; /* requests of collection 1 or 2 */
	pthread_mutex_t lock;	/* covers the rest */
	struct fsd_transfers fetched, stored;
};

void fsd_xstats_init(struct fsd_xstats *xstats);
void fsd_xstats_end(struct fsd_xstats *xstats);

/*
 * Count one call of the file server: an rxw_rpc_observer_fn whose argument is the struct
 * fsd_xstats. Passes it on to `calls`.
 */
void fsd_xstats_report(void *xstats, const struct rxw_rpc_report *report);

/*
 * One collection of GetXStats (afs-fileserver 3.9), as a 64-bit OpenAFS server on Linux sends it: 0
 * nothing; 1 cache, packets and clients; 2 these and the times of each procedure; 3 callbacks.
 * Fills `data`, which the caller frees with xdrfree_AFS_CollData(). Returns 0, 1 if there is no
 * such collection, or RXW_RPC_SS_MARSHAL without memory.
 */
int32_t fsd_xstats(struct fsd_service *service, int32_t collection, AFS_CollData *data);

/*
 * Whether a caller of the location or volume service may change something: an administrator, or the service itself, at the level that
 * the service requires.
 */
bool fsd_is_superuser(const struct fsd_service *service, enum fsd_service_kind kind,
		      const rxw_call *call);

/* Whether a call may list all volumes: they are few, or it has a permit until fsd_permit_return(). */
bool fsd_may_list(struct fsd_service *service, rxw_call *rx);

/* -- fs_call.c: failures of the machine, not of a caller: a full disk, a disk that fails, a shortage of files or memory -- */

enum fsd_failure {
	FSD_FAILURE_SPACE,
	FSD_FAILURE_READ_ONLY, /* the file system under a store that can be written */
	FSD_FAILURE_IO,
	FSD_FAILURE_FILES,
	FSD_FAILURE_MEMORY,
	FSD_FAILURES /* their number; also: none of them */
};

/* Zeroed. Any thread. */
struct fsd_failures {
	_Atomic uint64_t count[FSD_FAILURES];
	_Atomic uint64_t told[FSD_FAILURES]; /* the last line of the log; monotonic ns, 0 = never */
	_Atomic uint64_t quiet[FSD_FAILURES]; /* failures since then */
};

/* The failure that a result of a store means. */
enum fsd_failure fsd_failure_of(int result);
/* The name of a kind in the metrics. */
const char *fsd_failure_name(enum fsd_failure kind);

/* -- fs_later.c: calls of the file service that are answered after their handlers have returned -- */

struct fsd_later;
struct fsd_later *fsd_later_create(void); /* NULL: no memory */
/* Wait until all are answered. No new ones come. */
void fsd_later_settle(struct fsd_later *later);
void fsd_later_destroy(struct fsd_later *later); /* NULL is allowed */

/* -- service.c -- */

/* The calls of the location service that its GetStats counts. */
#define FSD_VL_FIRST   501
#define FSD_VL_OPCODES 50

/* Any thread. */
struct fsd_counters {
	_Atomic uint64_t calls, failed, refused_writes;
	_Atomic uint64_t fetches, fetched_bytes, fetch_aborts;
	_Atomic uint64_t fetch_ns;     /* duration of all fetches */
	_Atomic uint64_t stores_held, fetches_held; /* for lack of places */
	_Atomic uint64_t statuses;
	_Atomic uint64_t stores, stored_bytes, store_aborts;
	_Atomic uint64_t stores_given_up, fetches_given_up; /* slow ones, for others */
	_Atomic uint64_t store_ns;			    /* duration of all stores */
	_Atomic uint64_t changes; /* calls that changed something, stores of data included */
	_Atomic uint64_t locks;	  /* that were set */
	_Atomic uint64_t vl_calls, vl_requests[FSD_VL_OPCODES];
};

/* A change waits so long for clients that hold promises: their dead time, and a little more. */
#define FSD_BREAK_MS 5000

/* Constant once the first call is received, but for the members that have locks of their own. */
struct fsd_service {
	struct store *store;
	bool exported;
	struct store_volume volume;  /* of an exported directory: what of it does not change */
	struct fsd_cell *cell;	     /* NULL: of an exported directory */
	struct fsd_rootafs *rootafs; /* NULL: no cell was named, root.afs is the volume itself */
	struct fsd_clients *clients;
	struct fsd_readers *readers;
	struct fsd_guard *guard; /* NULL: everybody may see everything */
	struct fsd_people *people; /* NULL: users are not known */
	struct fsd_database_people database_people;
	struct fsd_audit *audit; /* may be NULL */
	bool audit_reads, no_anonymous_writes;
	struct fsd_locks *locks;
	_Atomic uint64_t acl_told; /* when that was logged; monotonic ns, 0 = never */
	rxw_endpoint *fs;	   /* of the file service, for its counters; may be NULL */
	const rxw_engine *engine;  /* may be NULL: its memory is never short */
	size_t memory;		   /* of the engine */
	struct rxw_uuid uuid;
	uint32_t start_time; /* seconds since 1970 */
	uint32_t advertise[FSD_ADDRS_MAX];
	unsigned advertise_count;
	struct fsd_counters counters;
	struct fsd_volume_counts *volume_counts; /* NULL: of an exported directory */
	struct fsd_failures failures;
	struct fsd_xstats xstats;
	struct fsd_running running;
	struct fsd_later *later;
	struct fsd_places storing, sending;
	struct fsd_sessions sessions;
	struct fsd_waiting waiting;
	struct fsd_pool *storers; /* threads that give the data of clients to the store */
	struct fsd_permits lists, fragmented; /* lists of very many volumes; files of very many pieces */
};

/* A number for a signed field of the interface: the largest one stands for all above. */
static inline int32_t fsd_clip(uint64_t value)
{
	return value > INT32_MAX ? INT32_MAX : (int32_t)value;
}

static inline void fsd_count(_Atomic uint64_t *counter, uint64_t n)
{
	atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}

static inline uint64_t fsd_counted(const _Atomic uint64_t *counter)
{
	return atomic_load_explicit(counter, memory_order_relaxed);
}

#endif
