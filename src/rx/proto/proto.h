/* SPDX-License-Identifier: BSD-2-Clause */
/* What floor 1 and its callers exchange: parameters, runs, trains, the output record. */
#ifndef RXW_PROTO_PROTO_H
#define RXW_PROTO_PROTO_H

#include <stdbool.h>
#include <stdint.h>

#include <rxwire/error.h>
#include <rxwire/stats.h>

#include "base/addr.h"
#include "base/buf.h"
#include "base/cc.h"
#include "base/latency.h"
#include "base/wire.h"

struct rxw_pconn;
struct rxw_pcall;
struct rxw_tracer;

/*
 * Parameters of an endpoint: fixed once its first connection exists. Times in ns, sizes in bytes,
 * windows in packets.
 */
struct rxw_params {
	uint16_t window; /* both directions, 1..255 */
	/* advertised until the first packet is consumed: min(16, window) */
	uint16_t initial_window;
	uint32_t mtu;	      /* datagram size of our plain packets */
	uint32_t mtu_ceiling; /* path MTU search goes up to here; == mtu: no search */
	bool jumbo;	      /* advertise jumbograms */
	uint64_t dead, client_idle, server_idle, hard; /* 0 = off, but dead */
	uint64_t ack_delay;			       /* of one packet: 50 ms */
	uint64_t call_memory, conn_memory, peer_memory;
	uint32_t sendq_high, sendq_low; /* packets queued by the writer: stop above, go on below */
	uint16_t wake_packets;		/* wake a reader per so many packets (64) */
	/* acknowledge on receipt up to so many unread packets (256): floor for window growth */
	uint16_t unread_packets;
	/* most packets in order that one ACK answers; 0 = all that a batch brought */
	uint16_t ack_packets;
	const struct rxw_cc_ops *cc;
	bool unpaced; /* a window leaves at once */
	uint64_t secret[2]; /* random: for serials that others cannot guess */
};

/*
 * Counters that floor 1 keeps, handed in with the out record: relaxed atomics, since anybody may read
 * them; never one per packet but one add per run. Several threads may share a set. Where one at a time
 * counts in it, whoever that is knows of what the one before did (`alone`), an addition needs no locked
 * operation: a call that is refused, with five additions, costs 2 % less for it.
 */
struct rxw_pstats {
	bool alone; /* fixed */
	_Atomic(uint64_t) packets_sent[14], packets_received[14];
	_Atomic(uint64_t) retransmitted, duplicates;
	_Atomic(uint64_t) drops[RXW_DROP_COUNT];
	_Atomic(uint64_t) calls_started, calls_ended, calls_aborted, calls_timed_out, calls_refused;
	_Atomic(uint64_t) loss_events, spurious_losses, rto_events, probes;
	_Atomic(uint64_t) stateless_aborts, version_answers, debug_answers;
	_Atomic(uint64_t) strangers, strangers_evicted, calls_given_up, connections_evicted;
	_Atomic(uint64_t) strangers_asked, strangers_proved;
	struct rxw_latencies latency[2]; /* calls served, made: how long they took */
	_Atomic(struct rxw_tracer *) tracer; /* proto/seen.h; NULL: nobody traces the endpoint */
};
static inline void rxw_count(_Atomic(uint64_t) *c, uint64_t n)
{
	atomic_fetch_add_explicit(c, n, memory_order_relaxed);
}

/* `c` is one of `s`. */
static inline void rxw_tally(const struct rxw_pstats *s, _Atomic(uint64_t) *c, uint64_t n)
{
	if (s->alone)
		atomic_store_explicit(c, atomic_load_explicit(c, memory_order_relaxed) + n,
				      memory_order_relaxed);
	else
		rxw_count(c, n);
}

/*
 * A run received: consecutive packets of one call in one buffer. Packet i is at data + i * stride,
 * each `stride` bytes long but the last, which has `last_size` (header included). seq and serial go
 * up by one from packet to packet; epoch, cid, call, type, user status, security index, service are
 * equal; flags are read from each packet's own header. Members of jumbograms are runs of one with
 * `jumbo` set: their header is in `head` only, `data` points 28 bytes before the payload (into
 * foreign bytes that must not be read).
 */
struct rxw_rxrun {
	/* borrowed by the caller of input; a reference is taken when it is queued */
	struct rxw_buf *buf;
	uint8_t *data;
	uint16_t stride, last_size;
	uint16_t count;
	uint32_t size;		/* bytes of the whole datagrams */
	struct rxw_header head; /* of the first packet */
	uint8_t or_flags;	/* all packets' flags or-ed, and the last packet's own */
	uint8_t last_flags;
	bool jumbo;
	bool verified; /* passed the class's verify() (null class: not needed) */
	bool kept;     /* was queued before the connection was authenticated, and is no longer */
	/* verified: bytes in front of the data in each packet; data in each but the last, in that */
	uint8_t sec_head;
	uint16_t length, last_length;
	const struct rxw_path *path;
};

/* Bytes of data of a packet of a run, of its last one. */
static inline uint16_t rxw_run_data(const struct rxw_rxrun *run, bool last)
{
	if (run->verified)
		return last ? run->last_length : run->length;
	return (uint16_t)((last ? run->last_size : run->stride) - RXW_HEADER_SIZE);
}

/* A piece of a receive queue handed to the reader: owns one reference of buf. */
struct rxw_rxpiece {
	struct rxw_buf *buf;
	uint8_t *data; /* payload of the first packet */
	uint32_t first_seq;
	uint16_t stride; /* from payload to payload */
	uint16_t length; /* payload of every packet but the last */
	uint16_t last_length;
	uint16_t count;
};

/*
 * A run to send: built by the writer in its own buffer, sealed, then pushed. Datagram i is at data
 * + i * stride; every one has `stride` bytes but the last, which has last_size. The first 28 bytes
 * of each are the header: the writer leaves them unset but for the spare word (offset 24), which
 * the class may have set.
 */
struct rxw_txrun {
	struct rxw_buf *buf; /* owns one reference */
	uint8_t *data;
	uint16_t stride, last_size;
	uint16_t count;
	bool last; /* its last packet ends the stream */
};

/*
 * Datagrams ready to be sent: contiguous, cut every `segment` bytes. The bytes stay untouched until
 * rxw_pcall_train_done().
 */
struct rxw_train {
	/* holds a reference from rxw_pcall_train() to rxw_pcall_train_done() */
	struct rxw_pcall *call;
	struct rxw_buf *buf; /* the same for the bytes */
	uint8_t *data;
	uint32_t length;
	uint16_t segment;
	uint16_t count;
	uint32_t first_seq;
	bool retransmission;
	bool fragment;	/* larger than the path carries now: may be fragmented */
	uint32_t token; /* of floor 1 */
};

/* A control packet, complete. */
struct rxw_ctl {
	struct rxw_path path;
	uint16_t length;
	uint16_t padding; /* zero bytes to send behind (MTU probes) */
	bool client;	  /* sent by a client end: the local address need not be fixed */
	uint8_t bytes[RXW_ACK_MAX_SIZE];
};

/* What is to be done for a call after its connection's lock was released. */
enum rxw_out_event {
	/* bytes, end or error can be read, and enough of them to wake a reader */
	RXW_OUT_READ = 1,
	/* the send queue fell below its low water, or an error: wake a writer */
	RXW_OUT_WRITE = 2,
	RXW_OUT_SEND = 4,   /* rxw_pcall_train() would yield something */
	RXW_OUT_ATTACH = 8, /* a server call may get its handler now */
	/* nothing more will happen to the call: finished, acknowledged, or in error */
	RXW_OUT_DONE = 16,
	RXW_OUT_TIMER = 32, /* its deadline moved to an earlier time */
	/* (with SEND) the peer's ACK opened the window, as opposed to new data or loss */
	RXW_OUT_WINDOW = 64,
	RXW_OUT_QUIET = 128 /* readable, below the wake threshold: wake when the socket is dry */
};

/*
 * The output record. The caller provides it, with room for control packets, and handles it when the
 * lock is released. `touched` is linked by the calls themselves; each call in it holds a reference
 * (ops->hold) that the caller drops. When the ctl array is full, acknowledgements stay owed (and
 * are tried again by the next batch end or timer).
 */
struct rxw_out {
	uint64_t now; /* ns, monotonic; set by the caller */
	struct rxw_pstats *stats;
	struct rxw_ctl *ctl;
	unsigned ctl_count, ctl_room;
	struct rxw_pcall *touched;
	struct rxw_pconn *auth; /* work of an exchange became due on it (proto/security.h) */
};

/*
 * What floor 1 asks of the floors above. All are called with the connection's lock held and must
 * not block.
 */
struct rxw_proto_ops {
	/*
	 * A new server call: storage whose first member is struct rxw_pcall, zeroed, with one
	 * reference that belongs to the channel. NULL: refuse (BUSY).
	 */
	struct rxw_pcall *(*call_new)(struct rxw_pconn *conn);
	void (*hold)(struct rxw_pcall *call);
	void (*drop)(struct rxw_pcall *call);
	/* Small buffers for queues and copies. */
	struct rxw_pool *(*pool)(struct rxw_pconn *conn);
	/*
	 * Memory runs short: calls that have no handler yet may queue two packets only. NULL:
	 * never.
	 */
	bool (*memory_short)(struct rxw_pconn *conn);
};

#endif
