/* SPDX-License-Identifier: BSD-2-Clause */
/* Statistics of endpoints and shards, and settings in effect. See rxw_stats(3). */
#ifndef RXWIRE_STATS_H
#define RXWIRE_STATS_H

#include <rxwire/config.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Causes of dropped datagrams and packets. */
enum rxw_drop {
	RXW_DROP_SHORT,		 /* fewer than 28 bytes */
	RXW_DROP_TRUNCATED,	 /* larger than the receive limit, or truncated by the kernel */
	RXW_DROP_TYPE,		 /* unknown or reserved packet type */
	RXW_DROP_NO_CONNECTION,	 /* no connection, and the packet cannot create one */
	RXW_DROP_SECURITY_INDEX, /* not the security class of the connection */
	RXW_DROP_SERVICE,	 /* not the service of the connection */
	RXW_DROP_ADDRESS,	 /* known connection, other address */
	RXW_DROP_CALL_NUMBER,	 /* old, 0 or too far ahead */
	RXW_DROP_SEQ_ZERO,	 /* DATA with sequence number 0 */
	RXW_DROP_WINDOW,	 /* beyond the receive window */
	RXW_DROP_DUPLICATE,	 /* DATA received before */
	RXW_DROP_BAD_ACK,	 /* malformed, or for data that was never sent */
	RXW_DROP_BAD_ABORT,	 /* malformed */
	RXW_DROP_JUMBO,		 /* the end of a jumbogram is missing */
	RXW_DROP_DIRECTION,	 /* only the other side may send this, such as BUSY to a server */
	RXW_DROP_VERIFY,	 /* the security class could not verify the packet */
	RXW_DROP_MEMORY,	 /* a memory limit */
	RXW_DROP_LIMIT,		 /* the limit on connections of unvalidated addresses */
	RXW_DROP_RATE,		 /* a rate limit suppressed the answer */
	RXW_DROP_ACCESS,	 /* the sender of a DEBUG request is not permitted */
	RXW_DROP_STATE,		 /* the connection has failed, or the endpoint is stopping */
	RXW_DROP_COUNT
};
/* Name of a cause, "short"; "unknown" for other values. Static. Any thread. */
const char *rxw_drop_name(enum rxw_drop cause);

/* Locks whose contended acquisitions are counted. */
enum rxw_lock {
	RXW_LOCK_TABLE,	       /* of a shard: table of connections */
	RXW_LOCK_CONNECTION,   /* of a connection and its calls */
	RXW_LOCK_WORKERS,      /* of an endpoint: calls waiting for a worker */
	RXW_LOCK_SEND_QUEUE,   /* of a shard: calls ready to send */
	RXW_LOCK_RECEIVE_ROLE, /* of a shard: the right to receive */
	RXW_LOCK_PEERS,	       /* of an endpoint: peers */
	RXW_LOCK_UNVALIDATED,  /* of an endpoint: unvalidated peers, rate limits */
	RXW_LOCK_VERIFIER,     /* of an endpoint: verification on separate threads */
	RXW_LOCK_BUFFERS,      /* of the engine: free buffers */
	RXW_LOCK_SOCKET,       /* of a socket: batches that the kernel refused */
	RXW_LOCK_COUNT
};
/* Name of a lock, "send-queue"; "unknown" for other values. Static. Any thread. */
const char *rxw_lock_name(enum rxw_lock lock);

/*
 * Counters since creation. They are read one after another, not as a consistent snapshot. Members
 * that this library does not know are set to 0.
 */
struct rxw_stats {
	size_t size; /* set by the caller */
	uint64_t datagrams_sent, datagrams_received;
	uint64_t bytes_sent, bytes_received;		 /* UDP payload */
	uint64_t packets_sent[14], packets_received[14]; /* by Rx type */
	uint64_t retransmitted, duplicates;		 /* DATA packets */
	uint64_t syscalls_send, syscalls_recv, syscalls_other;
	/* batches of datagrams passed to or from the kernel as one message (GSO, GRO) */
	uint64_t gso_messages, gro_messages;
	/* windows opened by an ACK, by the thread that sent the data */
	uint64_t windows_by_writer, windows_by_receiver;
	uint64_t wakeups; /* of readers, writers, workers */
	uint64_t calls_started, calls_ended, calls_aborted, calls_timed_out, calls_refused;
	uint64_t drops[RXW_DROP_COUNT];
	uint64_t kernel_drops; /* socket buffer full (SO_RXQ_OVFL) */
	/* packets that arrived at another socket than that of their connection */
	uint64_t wrong_shard;
	uint64_t gso_fallbacks, gro_fallbacks, send_errors, send_retries;
	uint64_t stateless_aborts, version_answers, debug_answers;
	uint64_t loss_events, spurious_losses, rto_events, probes;
	/* handlers that ran on the receiving thread, and on workers */
	uint64_t handlers_inline, handlers_worker;
	/* current values */
	uint32_t connections_client, connections_server, calls_active, peers, calls_waiting;
	uint32_t workers, workers_idle;
	uint64_t bytes_pinned; /* receive buffers held by queues */
	/*
	 * Contended acquisitions of locks. RXW_LOCK_BUFFERS is that of the engine and the same in
	 * all its endpoints. Locks of the endpoint and of the engine are not included in shards.
	 */
	uint64_t lock_contended[RXW_LOCK_COUNT];
	uint64_t unvalidated_connections; /* created for unvalidated addresses */
	/* calls aborted because they made too little progress while others waited for a worker */
	uint64_t calls_given_up;
	uint32_t workers_parked; /* current: blocked on clients, not counted in workers_max */
	/* idle connections of validated addresses removed because of connections_max */
	uint64_t connections_evicted;
	/*
	 * Unvalidated clients that were asked to validate their address because no room was left;
	 * those that did.
	 */
	uint64_t cookies_sent, cookies_returned;
};

/* Settings in effect. */
struct rxw_effective {
	size_t size; /* set by the caller */
	unsigned listeners, batch, window, mtu;
	int gso, gro; /* 1 in use, 0 not */
	/* 1: the kernel selects the socket of a packet by its connection id; 0: by addresses */
	int steered;
	const char *io;	       /* "mmsg", "msg"; static */
	size_t rcvbuf, sndbuf; /* bytes granted for each socket */
};

/* 0 or -RXW_EINVAL: an argument is NULL, or `size` is not set. Any thread. */
int rxw_endpoint_stats(rxw_endpoint *endpoint, struct rxw_stats *stats);
/* The same for one shard, 0..listeners-1; -RXW_EINVAL for others. */
int rxw_shard_stats(rxw_endpoint *endpoint, unsigned shard, struct rxw_stats *stats);
int rxw_endpoint_effective(rxw_endpoint *endpoint, struct rxw_effective *effective);

#ifdef __cplusplus
}
#endif
#endif
