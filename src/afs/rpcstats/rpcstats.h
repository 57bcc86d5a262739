/* SPDX-License-Identifier: BSD-2-Clause */
/* Statistics of procedure calls, and the service that others read them by (rx-protocol 10). */
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
 * Counts the calls of generated stubs: per function of each interface that has a statindex, for
 * the whole process and for each peer. All functions: any thread.
 */
struct afs_rpcstats;

struct afs_rpcstats_options {
	bool process, peers; /* what is counted from the start */
	bool open;	     /* callers on other machines may read, too */
	unsigned peers_max;  /* the peers that called last are kept; 0 = 1024 */
};

/* NULL without memory. */
struct afs_rpcstats *afs_rpcstats_create(const struct afs_rpcstats_options *options);
/* After every endpoint that reports to it or offers its service is gone. May be NULL. */
void afs_rpcstats_destroy(struct afs_rpcstats *stats);

/* Count one call: an rxw_rpc_observer_fn whose argument is the struct afs_rpcstats. */
void afs_rpcstats_report(void *stats, const struct rxw_rpc_report *report);
/*
 * Have all calls of an endpoint counted; it must go before `stats` does. 0 or a result of
 * rxw_endpoint_set_observer().
 */
int afs_rpcstats_observe(struct afs_rpcstats *stats, rxw_endpoint *endpoint);
/*
 * Offer the statistics service, 409, on an endpoint. Only callers on this machine may read, unless
 * `open` was set; nobody may change what is counted, since nobody has shown who he is: both 1
 * (EPERM). 0 or a result of rxw_service_add().
 */
int afs_rpcstats_serve(struct afs_rpcstats *stats, rxw_endpoint *endpoint);

/* Times of one kind, in nanoseconds; with none, the least is UINT64_MAX and the rest 0. */
struct afs_rpcstats_times {
	uint64_t sum, least, most;
	double square; /* sum of the squares, in square seconds */
};
/* One function. */
struct afs_rpcstats_counters {
	uint64_t calls, failed;	 /* failed: of the calls, those that ended with a code */
	uint64_t sent, received; /* bytes of the streams */
	struct afs_rpcstats_times queue, run;
};
/*
 * What the process has counted of one function, as client or as server; all zero, and the least
 * times UINT64_MAX, if it never ran.
 */
void afs_rpcstats_get(struct afs_rpcstats *stats, const struct rxw_rpc_interface *interface,
		      unsigned function, bool client, struct afs_rpcstats_counters *counters);

/*
 * The entries as they go on the wire, in *words, to be freed with free(); 28 words for each.
 * Functions are numbered as in OpenAFS's interface files. Entries beyond RXSTATS_WORDS_MAX are left
 * out. Returns the number of entries, or -1 without memory.
 */
int afs_rpcstats_entries(struct afs_rpcstats *stats, bool peers, uint32_t **words);
/* Set back what `flags` say, RXSTATS_CLEAR_…, of all functions. */
void afs_rpcstats_clear(struct afs_rpcstats *stats, bool peers, uint32_t flags);
/* Count from now on, or no longer: then what was counted is forgotten. */
void afs_rpcstats_enable(struct afs_rpcstats *stats, bool peers, bool on);
bool afs_rpcstats_enabled(struct afs_rpcstats *stats, bool peers);

/* Is a caller on this machine? `local`: the address that it asked; its length may be 0. */
bool afs_rpcstats_is_local(const struct sockaddr *peer, const struct sockaddr *local,
			   socklen_t local_len);

#ifdef __cplusplus
}
#endif
#endif
