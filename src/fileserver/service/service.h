/* SPDX-License-Identifier: BSD-2-Clause */
/* The two services of the daemon: files (service 1) and volume locations (service 52). */
#ifndef FILESERVER_SERVICE_H
#define FILESERVER_SERVICE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <rxwire/types.h>

#include "fileserver/callbacks/clients.h"
#include "fileserver/guard/guard.h"
#include "fileserver/io/readers.h"
#include "fileserver/service/rootafs.h"
#include "fileserver/tree/usage.h"
#include "fileserver/volume/volume.h"
#include "fileserver/callbacks/watch.h"
#include "fileserver/service/xstats.h"

#define FSD_ADDRS_MAX 15

/* The number of the read-write volume that a read-only one would have been made of. */
#define FSD_RW_ID(id) ((id) - 1)

/* Counted by calls, read by anybody. */
struct fsd_counters {
	_Atomic uint64_t calls, failed, refused_writes;
	_Atomic uint64_t fetches, fetched_bytes, fetch_aborts;
	_Atomic uint64_t fetch_ns; /* that the fetches took, all together */
	_Atomic uint64_t statuses;
	_Atomic uint64_t vl_calls;
};

/*
 * What both services work on. Set up before the first call and then constant, but for what guards
 * itself.
 */
struct fsd_service {
	struct fsd_volume *volume;
	struct fsd_rootafs *rootafs; /* NULL: no cell was named, and root.afs is the volume itself */
	struct fsd_clients *clients;
	struct fsd_readers *readers;
	struct fsd_watch *watch; /* may be NULL */
	struct fsd_usage *usage; /* may be NULL: nothing is known of it */
	struct fsd_guard *guard; /* NULL: everybody may see everything */
	rxw_endpoint *fs; /* that the file service is offered on, for its counters; may be NULL */
	struct rxw_uuid uuid;
	uint32_t start_time;		   /* seconds */
	/*
	 * Date of what clients are told is the present release of the volume, 0: that of the volume.
	 * It changes at each start, because nobody could tell them of changes since the last; Linux
	 * then asks for the status of all that it has, and keeps the data that did not change.
	 */
	uint32_t released;
	uint32_t advertise[FSD_ADDRS_MAX]; /* IPv4 as numbers, besides the one that was asked */
	unsigned advertise_count;
	struct fsd_counters counters;
	struct fsd_xstats xstats;
};

/*
 * Handlers for rxw_service_add(): serve one call of the file service, or of the location service,
 * which touches memory only. `service` is the struct fsd_service.
 */
int32_t fsd_fs_serve(rxw_call *call, void *service);
int32_t fsd_vl_serve(rxw_call *call, void *service);

static inline void fsd_count(_Atomic uint64_t *counter, uint64_t n)
{
	atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}

static inline uint64_t fsd_counted(const _Atomic uint64_t *counter)
{
	return atomic_load_explicit(counter, memory_order_relaxed);
}

#endif
