/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The services of the daemon: files (service 1), volume locations (52), volumes (4) and protection
 * (73).
 */
#ifndef FILESERVER_SERVICE_H
#define FILESERVER_SERVICE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <rxwire/rpc.h>
#include <rxwire/rpcstats.h>
#include <rxwire/types.h>

#include "fileserver/audit/audit.h"
#include "fileserver/callbacks/callbacks.h"
#include "fileserver/guard/guard.h"
#include "fileserver/guard/people.h"
#include "fileserver/io/io.h"
#include "protection/protection.h"
#include "volume/interface.h"

#define FSD_ADDRS_MAX 15 /* IPv4 addresses of the server that clients are told */

/* The three services share this. */
struct fsd_service;

/* Everything must outlive the service, but for what is copied: uuid, cell and the addresses. */
struct fsd_service_options {
	struct store *store;
	/*
	 * The store is an exported directory: objects of its read-only volume change in place, and
	 * the volume is also found under the names root.cell and root.afs.
	 */
	bool exported;
	struct fsd_clients *clients;
	struct fsd_readers *readers;
	struct fsd_guard *guard; /* NULL: everybody may see everything */
	/*
	 * Users and groups. NULL: callers with a token have no id of their own, and ACLs name only
	 * the predefined ones.
	 */
	struct prot *prot;
	struct fsd_people *people; /* in its place, if it is not NULL */
	struct fsd_audit *audit; /* may be NULL */
	bool audit_reads;	 /* add the calls that only read an object */
	rxw_rpcstats *calls;	 /* NULL: GetXStats has no times of procedures */
	struct rxw_uuid uuid;	 /* of the server */
	const char *cell; /* NULL: no root.afs; an exported directory is served under that name */
	/* ACLs that let anonymous callers write are refused. */
	bool no_anonymous_writes;
	const uint32_t *advertise; /* IPv4 addresses as numbers, besides the one that was asked */
	unsigned advertise_count;  /* at most FSD_ADDRS_MAX */
};

/* Returns NULL after one line in message[FSD_MESSAGE_MAX]. */
struct fsd_service *fsd_service_create(const struct fsd_service_options *options, char *message);
/* NULL is allowed. No call may be running. */
void fsd_service_destroy(struct fsd_service *service);

/*
 * After rxw_endpoint_stop(), before the endpoint is destroyed: wait for the answers to calls whose handlers have
 * returned.
 */
void fsd_service_settle(struct fsd_service *service);

/* Calls of the file service that may be deferred at the same time, for rxw_service_add(). */
#define FSD_DEFERRED_MAX 6144

/* Report the counters of this endpoint in GetStatistics and GetXStats. Before it receives calls. */
void fsd_service_set_endpoint(struct fsd_service *service, rxw_endpoint *fs);

/* That of the volume service, from which dumps go to other servers. Before it receives calls. */
void fsd_service_set_vol_endpoint(struct fsd_service *service, rxw_endpoint *vol);

/*
 * The engine of that endpoint, which is for `memory` bytes of packets: when they become short, fetches keep no thread
 * that would wait for their clients. Before the endpoint receives calls.
 */
void fsd_service_set_engine(struct fsd_service *service, const rxw_engine *engine, size_t memory);

/*
 * Handlers for rxw_service_add(), whose context is the struct fsd_service: serve one call of the
 * file service, or of the volume service.
 */
int32_t fsd_fs_serve(rxw_call *call, void *service);
int32_t fsd_vol_serve(rxw_call *call, void *service);

/*
 * An rxw_rpc_observer_fn whose argument is the struct fsd_service: count one call of the server,
 * and pass it on to options.calls.
 */
void fsd_service_observe(void *service, const struct rxw_rpc_report *report);

/*
 * A volume was replaced as a whole, taken off-line or removed: break all promises in it, and wait for
 * the clients a few seconds. Locks in one that was removed end. Not on a thread of the library. Any other thread.
 */
void fsd_service_volume_changed(struct fsd_service *service, uint32_t volume);

/* Log one line for each call of the file service whose handler has not returned. Any thread. */
void fsd_service_log_running(struct fsd_service *service);

/* -- metrics -- */

/* A figure for Prometheus. Its name, to which "rxfsd_" is added, ends in _total if it is a counter. */
struct fsd_metric {
	const char *name, *help; /* help NULL: another one of the name before it */
	const char *label, *of;	 /* label NULL: there is none */
	uint64_t value;
	bool seconds; /* the value is nanoseconds, shown as seconds */
};
/* In the text format: what precedes the values of a name, of which there may be none; and figures. */
void fsd_metrics_head(FILE *f, const char *name, const char *help);
void fsd_metrics_put(FILE *f, const struct fsd_metric *metrics, size_t count);

/* The numbers of attempts to read the keys of the service. */
struct fsd_key_loads {
	_Atomic uint64_t good, bad;
	_Atomic int64_t time; /* of the last success, seconds since 1970; 0: there are no keys */
};

/*
 * The counters of the server in the text format of Prometheus, to be freed. NULL: no memory. Any
 * thread.
 */
char *fsd_service_metrics(const struct fsd_service *service, const struct fsd_key_loads *keys,
			  uint64_t promises_limit);

/* Calls to a volume since the service was created. */
struct fsd_volume_calls {
	uint64_t fetches, fetched_bytes, changes, stored_bytes;
};
/* Add those of one volume; id 0 has none. Any thread. */
void fsd_service_add_volume_calls(const struct fsd_service *service, uint32_t id,
				  struct fsd_volume_calls *calls);

/* The counters of the server as log lines. */
void fsd_service_log(const struct fsd_service *service);

#endif
