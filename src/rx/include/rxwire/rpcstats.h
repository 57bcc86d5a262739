/* SPDX-License-Identifier: BSD-2-Clause */
/* Statistics of procedure calls, RXSTATS (rx-protocol 10). See rxw_rpcstats(3). */
#ifndef RXWIRE_RPCSTATS_H
#define RXWIRE_RPCSTATS_H

#include <stdbool.h>

#include <rxwire/rpc.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The service for reading statistics, and the form of what it returns. */
#define RXW_RPCSTATS_SERVICE 409
#define RXW_RPCSTATS_VERSION 1
#define RXW_RPCSTATS_WORDS   28 /* words of an entry: one function */

/*
 * Counts calls by function of each interface that has a statindex, for the process and for each
 * peer. Any thread may call any of these functions.
 */
typedef struct rxw_rpcstats rxw_rpcstats;

/* Kinds of statistics, each counted apart: all calls of the process, and those of each peer. */
enum rxw_rpcstats_kind {
	RXW_RPCSTATS_PROCESS = 0,
	RXW_RPCSTATS_PEERS = 1
};

/* Zero the structure, set `size`, then fill in the other members. */
struct rxw_rpcstats_options {
	size_t size;
	bool process, peers; /* what is counted from the start */
	bool open;	     /* the service also answers clients on other machines */
	unsigned peers_max;  /* the peers of the latest calls are kept; 0 = 1024 */
};

/* `options` may be NULL: nothing is counted yet. The caller owns *stats. -RXW_EINVAL, -RXW_ENOMEM. */
RXW_MUST_USE
int rxw_rpcstats_create(const struct rxw_rpcstats_options *options, rxw_rpcstats **stats);
/* After the endpoints that it observes or is served on were destroyed. NULL is ignored. */
void rxw_rpcstats_destroy(rxw_rpcstats *stats);

/* -- counting ------------------------------------------------------------------------------- */

/*
 * Count the calls of generated stubs on an endpoint: sets its observer. Results of
 * rxw_endpoint_set_observer().
 */
int rxw_rpcstats_observe(rxw_rpcstats *stats, rxw_endpoint *endpoint);
/*
 * The same by an observer of the application: a rxw_rpc_observer_fn whose `arg` is `stats`, which
 * it calls with the reports to be counted.
 */
void rxw_rpcstats_report(void *stats, const struct rxw_rpc_report *report);

/* A call of other stubs. Zero the structure, set `size`, then fill in the other members. */
struct rxw_rpcstats_call {
	size_t size;
	uint32_t interface; /* number of the interface, statindex; not 0 */
	uint32_t function;  /* number of the function, below `functions` */
	uint32_t functions; /* of the interface, at most 4096 */
	bool client;	    /* this side made the call; otherwise it served it */
	rxw_code code;
	const struct sockaddr *peer; /* IPv4 or IPv6; NULL = counted for the process only */
	socklen_t peer_len;
	uint64_t bytes_sent, bytes_received; /* of the streams */
	uint64_t queue_ns, run_ns;	     /* as in struct rxw_rpc_report */
};
/*
 * Count one call. -RXW_EINVAL; -RXW_ELIMIT: 64 interfaces are counted already, of either side;
 * -RXW_ENOMEM.
 */
int rxw_rpcstats_record(rxw_rpcstats *stats, const struct rxw_rpcstats_call *call);

/* Start or stop counting. Stopping discards the counters. -RXW_EINVAL. */
int rxw_rpcstats_enable(rxw_rpcstats *stats, enum rxw_rpcstats_kind kind, bool on);
/* False for NULL. */
bool rxw_rpcstats_enabled(const rxw_rpcstats *stats, enum rxw_rpcstats_kind kind);

/* Counters of all functions that rxw_rpcstats_clear() resets. */
#define RXW_RPCSTATS_CLEAR_CALLS	  0x1u
#define RXW_RPCSTATS_CLEAR_BYTES_SENT	  0x2u
#define RXW_RPCSTATS_CLEAR_BYTES_RECEIVED 0x4u
#define RXW_RPCSTATS_CLEAR_QUEUE_SUM	  0x8u
#define RXW_RPCSTATS_CLEAR_QUEUE_SQUARE	  0x10u
#define RXW_RPCSTATS_CLEAR_QUEUE_MIN	  0x20u
#define RXW_RPCSTATS_CLEAR_QUEUE_MAX	  0x40u
#define RXW_RPCSTATS_CLEAR_RUN_SUM	  0x80u
#define RXW_RPCSTATS_CLEAR_RUN_SQUARE	  0x100u
#define RXW_RPCSTATS_CLEAR_RUN_MIN	  0x200u
#define RXW_RPCSTATS_CLEAR_RUN_MAX	  0x400u
#define RXW_RPCSTATS_CLEAR_ALL		  0xffffffffu
/* -RXW_EINVAL. */
int rxw_rpcstats_clear(rxw_rpcstats *stats, enum rxw_rpcstats_kind kind, uint32_t flags);

/* -- reading -------------------------------------------------------------------------------- */

/* Times in nanoseconds; if there are none, least is UINT64_MAX and the others are 0. */
struct rxw_rpcstats_times {
	uint64_t sum, least, most;
	double square; /* sum of the squares, in square seconds */
};
/* Of one function. */
struct rxw_rpcstats_counters {
	size_t size;		 /* set by the caller */
	uint64_t calls, failed;	 /* failed: calls that ended with a nonzero code */
	uint64_t sent, received; /* bytes of the streams */
	struct rxw_rpcstats_times queue, run;
};
/*
 * The counters of a function in this process, as client or as server; as if it never ran, while
 * the process is not counted. -RXW_EINVAL, also if the interface has no such function.
 */
int rxw_rpcstats_get(rxw_rpcstats *stats, const struct rxw_rpc_interface *interface,
		     unsigned function, bool client, struct rxw_rpcstats_counters *counters);

/*
 * All entries in the form of rx-protocol 10.2, in the byte order of the host, RXW_RPCSTATS_WORDS
 * words each: one for each function of every interface of which any function was called. Functions
 * have the numbers of OpenAFS's interface files. Entries beyond 16 MiB are left out. Returns their
 * number; 0, and *words is NULL, if there are none or they are not counted. The caller frees
 * *words with free(). -RXW_EINVAL, -RXW_ENOMEM.
 */
RXW_MUST_USE
int rxw_rpcstats_entries(rxw_rpcstats *stats, enum rxw_rpcstats_kind kind, uint32_t **words);

/*
 * Offer the service RXW_RPCSTATS_SERVICE on an endpoint. Only clients on this machine may read,
 * unless `open` is set. Clients are anonymous, so none may change what is counted. Refused calls
 * get code 1 (EPERM). Results of rxw_service_add().
 */
int rxw_rpcstats_serve(rxw_rpcstats *stats, rxw_endpoint *endpoint);

#ifdef __cplusplus
}
#endif
#endif
