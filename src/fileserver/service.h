/* SPDX-License-Identifier: BSD-2-Clause */
/* The two services of the daemon: files (service 1) and volume locations (service 52). */
#ifndef FILESERVER_SERVICE_H
#define FILESERVER_SERVICE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "afs/vlentry.h"
#include "fileserver/clients.h"
#include "fileserver/readers.h"
#include "fileserver/stream.h"
#include "fileserver/volume.h"
#include "fileserver/watch.h"

#define FSD_ADDRS_MAX 15

/* Counted by calls, read by anybody. */
struct fsd_counters {
	_Atomic uint64_t calls, failed, refused_writes;
	_Atomic uint64_t fetches, fetched_bytes, fetch_aborts;
	_Atomic uint64_t statuses;
	_Atomic uint64_t vl_calls;
};

/*
 * What both services work on. Set up before the first call and then constant, but for what guards
 * itself.
 */
struct fsd_service {
	struct fsd_volume *volume;
	struct fsd_clients *clients;
	struct fsd_readers *readers;
	struct fsd_watch *watch; /* may be NULL */
	struct afs_uuid uuid;
	uint32_t start_time;		   /* seconds */
	uint32_t advertise[FSD_ADDRS_MAX]; /* IPv4 as numbers, besides the one that was asked */
	unsigned advertise_count;
	struct fsd_counters counters;
};

/*
 * Serve one call of the file service: reads the request, writes the reply. Returns 0 or the code to
 * abort with.
 */
int32_t fsd_fs_serve(struct fsd_service *service, struct fsd_stream *stream);
/* The same for the location service. Touches memory only. */
int32_t fsd_vl_serve(struct fsd_service *service, struct fsd_stream *stream);

#endif
