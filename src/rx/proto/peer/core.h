/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared by the modules of the protocol core and their callers: parameters, runs, bursts,
 * callbacks.
 */
#ifndef RXW_PROTO_CORE_H
#define RXW_PROTO_CORE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/addr.h"
#include "base/assert.h"
#include "base/buf.h"
#include "base/cc.h"
#include "base/wire.h"

struct rxw_pconn;
struct rxw_pcall;
struct rxw_pstats;

#define RXW_NEVER UINT64_MAX

static inline uint64_t rxw_min64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}
static inline uint64_t rxw_max64(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static inline uint32_t rxw_min32(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static inline uint32_t rxw_max32(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

/*
 * Parameters of an endpoint, fixed once its first connection exists. Times in ns, sizes in bytes,
 * windows in packets.
 */
struct rxw_params {
	uint16_t window; /* in both directions; above 255: wide windows are offered */
	uint16_t
		initial_window; /* advertised until the first packet is consumed: min(16, window) */
	uint32_t mtu;		/* datagram size of our plain packets */
	uint32_t mtu_ceiling;	/* the path MTU search ends here; == mtu: no search */
	/* No search towards this host; more is offered only to peers that offer wide windows. */
	bool mtu_auto;
	bool jumbo;		/* advertise jumbograms */
	bool ecn; /* report marks to peers with wide windows, and mark if they do (base/path_probe.h) */
	uint64_t dead, client_idle, server_idle, hard; /* 0 = no limit, except for `dead` */
	uint64_t ack_delay;			       /* of one packet: 50 ms */
	uint64_t call_memory, conn_memory, peer_memory;
	uint64_t wide_memory; /* as call_memory, if the peer offers wide windows and it is more */
	uint32_t sendq_high, sendq_low; /* packets queued: the writer stops above, resumes below */
	uint16_t wake_packets;		/* wake a reader per this many packets (64) */
	uint16_t unread_packets; /* so many unread packets are acknowledged on receipt (256) */
	/* Until the peer offers wide windows (rx-wide-windows), and then; NULL: the same. */
	const struct rxw_cc_ops *cc, *cc_wide;
	uint64_t secret[2]; /* random, for serials that others cannot guess */
};

/*
 * A received run: consecutive packets of one call in one buffer. Packet i is at data + i * stride;
 * each has `stride` bytes, except for the last, which has `last_size` (header included). seq and
 * serial increase by one from packet to packet; epoch, cid, call, type, user status, security index
 * and service are equal; flags are read from each packet's own header. A member of a jumbogram is a
 * run of one with `jumbo` set: its header is in `head` only, and `data` points 28 bytes before the
 * payload, at bytes that must not be read.
 */
struct rxw_rxrun {
	struct rxw_buf *buf; /* borrowed; whatever queues it takes a reference */
	uint8_t *data;
	uint16_t stride, last_size;
	uint16_t count;
	uint32_t size;		/* bytes of the whole datagrams */
	struct rxw_header head; /* of the first packet */
	struct rxw_ack ack;	/* of an ACK, decoded; see rxw_run_ack() */
	uint8_t or_flags;	/* flags of all packets, ORed */
	uint8_t last_flags;	/* flags of the last packet */
	bool jumbo;
	bool verified; /* passed the class's verify() (null class: not needed) */
	bool kept; /* was queued before the connection was authenticated, and is taken out again */
	uint8_t ecn;		      /* enum rxw_ecn_bits, of all packets */
	uint64_t waited;	      /* ns that they were in our socket's queue; 0: unknown */
	uint8_t sec_head;	      /* verified: bytes before the data in each packet */
	uint16_t length, last_length; /* verified: data of each packet but the last, of the last */
	const struct rxw_path *path;
};

/* The contents of an ACK, which point into the packet. NULL: it is malformed. */
static inline const struct rxw_ack *rxw_run_ack(const struct rxw_rxrun *run)
{
	assert(run->head.type == RXW_ACK);
	return run->ack.first != 0 ? &run->ack : NULL;
}

/* Bytes of data in a packet of a run; `last`: in its last packet. */
static inline uint16_t rxw_run_data(const struct rxw_rxrun *run, bool last)
{
	if (run->verified)
		return last ? run->last_length : run->length;
	return (uint16_t)((last ? run->last_size : run->stride) - RXW_HEADER_SIZE);
}

/* A piece of a receive queue handed to the reader, which owns one reference of buf. */
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
 * A run to send. The writer builds it in a buffer of its own, seals it and pushes it. Datagram i is
 * at data + i * stride; each has `stride` bytes, except for the last, which has last_size. The
 * first 28 bytes of each are the header: the writer leaves them unset, apart from the spare word
 * (offset 24), which the class may have set.
 */
struct rxw_txrun {
	struct rxw_buf *buf; /* owns one reference */
	uint8_t *data;
	uint16_t stride, last_size;
	uint16_t count;
	bool last; /* its last packet ends the stream */
	uint32_t seq; /* the number for which its first packet was sealed; 0: the next one */
};

/*
 * Datagrams ready to be sent: contiguous, `segment` bytes each. From rxw_pcall_burst() to
 * rxw_pcall_burst_done() the burst holds a reference of the buffer, and the caller one of the call;
 * the bytes must not change.
 */
struct rxw_burst {
	struct rxw_pcall *call;
	struct rxw_buf *buf;
	uint8_t *data;
	uint32_t length;
	uint16_t segment;
	uint16_t count;
	uint32_t first_seq;
	bool retransmission;
	bool fragment;	/* larger than the path MTU: the system may fragment it */
	bool ect;	/* to be marked with ECT(0) */
	uint32_t token; /* identifies the burst to the send module */
};

/*
 * Callbacks of the embedding engine, called with the connection's lock held. They must not block.
 */
struct rxw_proto_ops {
	/*
	 * A new server call: zeroed storage whose first member is struct rxw_pcall, with one
	 * reference that belongs to the channel. NULL: refuse the call, with an ABORT if *code was
	 * set, otherwise with a BUSY.
	 */
	struct rxw_pcall *(*call_new)(struct rxw_pconn *conn, int32_t *code);
	void (*hold)(struct rxw_pcall *call);
	void (*drop)(struct rxw_pcall *call);
	/* Small buffers for queues and copies. */
	struct rxw_pool *(*pool)(struct rxw_pconn *conn);
	/* Memory is short: calls without a handler may queue only two packets. NULL: never. */
	bool (*memory_short)(struct rxw_pconn *conn);
	/* Another process takes over: packets of new calls are dropped unanswered. NULL: never. */
	bool (*leaving)(struct rxw_pconn *conn);
};

/*
 * Cut the bytes of one received burst (datagrams of `segment` bytes, the last may be shorter) into
 * runs, from *at on. Returns 1 with *run filled and *at moved past it, or 0 at the end. Datagrams
 * below 28 bytes and truncated jumbograms are counted in `stats` and skipped. buf and path are
 * copied into the run.
 */
int rxw_run_next(struct rxw_buf *buf, const struct rxw_path *path, uint32_t length,
		 uint32_t segment, uint32_t *at, struct rxw_jumbo *jumbo, struct rxw_rxrun *run,
		 struct rxw_pstats *stats);

#endif
