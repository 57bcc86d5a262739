/* SPDX-License-Identifier: BSD-2-Clause */
/* Statistics of endpoints and their shards, with what is in effect beside what was asked. */
#ifndef RXWIRE_STATS_H
#define RXWIRE_STATS_H

#include <rxwire/config.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Causes of dropped datagrams and packets. */
enum rxw_drop {
	RXW_DROP_SHORT,        /* below 28 bytes */
	RXW_DROP_TRUNCATED,    /* larger than the receive limit, or cut by the kernel */
	RXW_DROP_TYPE,         /* unknown or reserved packet type */
	RXW_DROP_NO_CONNECTION,/* no connection, and nothing that could make one */
	RXW_DROP_SECURITY_INDEX,
	RXW_DROP_SERVICE,
	RXW_DROP_ADDRESS,      /* known connection, other address */
	RXW_DROP_CALL_NUMBER,  /* old, future or none */
	RXW_DROP_SEQ_ZERO,
	RXW_DROP_WINDOW,       /* beyond the window */
	RXW_DROP_DUPLICATE,
	RXW_DROP_BAD_ACK,
	RXW_DROP_BAD_ABORT,
	RXW_DROP_JUMBO,        /* truncated jumbogram tail */
	RXW_DROP_DIRECTION,    /* BUSY to a server, and the like */
	RXW_DROP_VERIFY,       /* security check failed */
	RXW_DROP_MEMORY,       /* a memory limit */
	RXW_DROP_LIMIT,        /* a limit on unproven state */
	RXW_DROP_RATE,         /* answer suppressed by a rate limit */
	RXW_DROP_ACCESS,       /* DEBUG asked by someone not allowed */
	RXW_DROP_STATE,        /* connection in error, endpoint stopping */
	RXW_DROP_COUNT
};
/* Name of a cause, "short". Static storage. */
const char *rxw_drop_name(enum rxw_drop cause);

/* Counters since creation. Folded when read; any thread. */
struct rxw_stats {
	size_t size;               /* set by the caller */
	uint64_t datagrams_sent, datagrams_received;
	uint64_t bytes_sent, bytes_received;        /* UDP payload */
	uint64_t packets_sent[14], packets_received[14]; /* by Rx type */
	uint64_t retransmitted, duplicates;
	uint64_t syscalls_send, syscalls_recv, syscalls_other;
	/* GSO sends, GRO receives of more than one packet */
	uint64_t gso_messages, gro_messages;
	uint64_t windows_by_writer, windows_by_receiver;
	uint64_t wakeups;                           /* of readers, writers, workers */
	uint64_t calls_started, calls_ended, calls_aborted, calls_timed_out, calls_refused;
	uint64_t drops[RXW_DROP_COUNT];
	uint64_t kernel_drops;                      /* SO_RXQ_OVFL */
	/* packets that arrived on another than the home shard */
	uint64_t wrong_shard;
	uint64_t gso_fallbacks, gro_fallbacks, send_errors, send_retries;
	uint64_t stateless_aborts, version_answers, debug_answers;
	uint64_t loss_events, spurious_losses, rto_events, probes;
	/* calls served on the receiving thread, by workers */
	uint64_t handlers_inline, handlers_worker;
	uint32_t connections_client, connections_server, calls_active, peers, calls_waiting;
	uint32_t workers, workers_idle;
	uint64_t bytes_pinned;                      /* receive buffers held by queues */
};

/* What is in effect. */
struct rxw_effective {
	size_t size;               /* set by the caller */
	unsigned listeners, batch, window, mtu;
	int gso, gro;              /* 1 in use, 0 not */
	enum rxw_steer steer;
	enum rxw_switch defer;
	const char *io;            /* "mmsg", "msg" */
	size_t rcvbuf, sndbuf;     /* granted, per socket */
};

int rxw_endpoint_stats(rxw_endpoint *endpoint, struct rxw_stats *stats);
/* Of one shard, 0..listeners-1. -RXW_EINVAL beyond. */
int rxw_shard_stats(rxw_endpoint *endpoint, unsigned shard, struct rxw_stats *stats);
int rxw_endpoint_effective(rxw_endpoint *endpoint, struct rxw_effective *effective);

#ifdef __cplusplus
}
#endif
#endif
