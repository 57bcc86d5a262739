/* SPDX-License-Identifier: BSD-2-Clause */
/* Statistics of procedure calls, and the service for reading them (rx-protocol 10). */
#ifndef AFS_RPCSTATS_H
#define AFS_RPCSTATS_H

#include <stdbool.h>
#include <stdint.h>

#include <rxwire/rpc.h>

#ifdef __cplusplus
extern "C" {
#endif

#define AFS_SERVICE_RXSTATS 409

/*
 * Counts the calls of generated stubs, per function of each interface that has a statindex, for the
 * process and for each peer. All functions: any thread.
 */
struct afs_rpcstats;

struct afs_rpcstats_options {
	bool process, peers; /* what is counted from the start */
	bool open;	     /* callers on other machines may read as well */
	unsigned peers_max;  /* the most recent peers are kept; 0 = 1024 */
};

/* NULL without memory. */
struct afs_rpcstats *afs_rpcstats_create(const struct afs_rpcstats_options *options);
/* After all endpoints that use it are destroyed. NULL is allowed. */
void afs_rpcstats_destroy(struct afs_rpcstats *stats);

/* Count one call: an rxw_rpc_observer_fn whose argument is the struct afs_rpcstats. */
void afs_rpcstats_report(void *stats, const struct rxw_rpc_report *report);
/*
 * Count all calls of an endpoint, which must be destroyed before `stats`. 0 or a result of
 * rxw_endpoint_set_observer().
 */
int afs_rpcstats_observe(struct afs_rpcstats *stats, rxw_endpoint *endpoint);
/*
 * Offer the statistics service, 409, on an endpoint. Only callers on this machine may read, unless
 * `open` is set. Changing what is counted is refused, because callers are anonymous. Refused calls
 * get code 1 (EPERM). 0 or a result of rxw_service_add().
 */
int afs_rpcstats_serve(struct afs_rpcstats *stats, rxw_endpoint *endpoint);

/* Times in nanoseconds; if there are none, least is UINT64_MAX and the rest 0. */
struct afs_rpcstats_times {
	uint64_t sum, least, most;
	double square; /* sum of the squares, in square seconds */
};
/* One function. */
struct afs_rpcstats_counters {
	uint64_t calls, failed;	 /* failed: calls that ended with a nonzero code */
	uint64_t sent, received; /* bytes of the streams */
	struct afs_rpcstats_times queue, run;
};
/*
 * The counters of a function in this process, as client or as server; zeros, with least UINT64_MAX,
 * if it never ran.
 */
void afs_rpcstats_get(struct afs_rpcstats *stats, const struct rxw_rpc_interface *interface,
		      unsigned function, bool client, struct afs_rpcstats_counters *counters);

/*
 * The encoded entries in *words, to be freed with free(); 28 words each. Functions are numbered as
 * in OpenAFS's interface files. Entries beyond RXSTATS_WORDS_MAX are left out. Returns the number
 * of entries, or -1 without memory.
 */
int afs_rpcstats_entries(struct afs_rpcstats *stats, bool peers, uint32_t **words);
/* Reset the counters in `flags` (RXSTATS_CLEAR_…) of all functions. */
void afs_rpcstats_clear(struct afs_rpcstats *stats, bool peers, uint32_t flags);
/* Start or stop counting. Stopping discards the counters. */
void afs_rpcstats_enable(struct afs_rpcstats *stats, bool peers, bool on);
bool afs_rpcstats_enabled(struct afs_rpcstats *stats, bool peers);

/* Whether a caller is on this machine. `local`: the address that it called; its length may be 0. */
bool afs_rpcstats_is_local(const struct sockaddr *peer, const struct sockaddr *local,
			   socklen_t local_len);

#ifdef __cplusplus
}
#endif
#endif
