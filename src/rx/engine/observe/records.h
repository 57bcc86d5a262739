/* SPDX-License-Identifier: BSD-2-Clause */
/* Records of a trace as the ring has them, and showing a copy of them to the application. */
#ifndef RXW_ENGINE_TRACE_RECORDS_H
#define RXW_ENGINE_TRACE_RECORDS_H

#include <stddef.h>
#include <stdint.h>

#include <rxwire/trace.h>

#include "base/addr.h"
#include "proto/peer/event.h"

enum rxw_record_kind {
	RXW_RECORD_PACKET,
	RXW_RECORD_EVENT
};

enum rxw_record_flag {
	RXW_RECORD_SENT = 1,
	RXW_RECORD_IPV6 = 2,
	RXW_RECORD_LOCAL = 4,	/* `local` is known */
	RXW_RECORD_REFUSED = 8, /* the kernel refused to send it */
	RXW_RECORD_ECN = 0x30	/* the ECN bits of its IP header */
};
#define RXW_RECORD_ECN_SHIFT 4
#define RXW_RECORD_ALIGN     8u

/* Header of a record. Records are aligned to RXW_RECORD_ALIGN, and their size is a multiple of it. */
struct rxw_record {
	uint32_t size; /* of the whole record */
	uint8_t kind, flags;
	uint16_t port; /* packet: of the peer, host order */
	uint64_t at;   /* monotonic ns; never decreases */
};

/*
 * Follows the header in a packet's record, followed by its bytes. An event's record has struct
 * rxw_trace_event.
 */
struct rxw_record_packet {
	uint32_t length; /* of the datagram */
	uint32_t kept;	 /* bytes of it that were recorded */
	uint8_t peer[16], local[16];
};

/* A copy of a trace: whole records, ordered by time. */
struct rxw_snapshot {
	const uint8_t *records;
	size_t size;
	struct rxw_addr bound; /* of the endpoint */
	int64_t wall;	       /* ns from the monotonic clock to the time of day */
};

/* Shows each record to `see`. 0, or the result of `see` that ended it. */
int rxw_snapshot_show(const struct rxw_snapshot *snapshot,
		      int (*see)(void *arg, const struct rxw_trace_record *record), void *arg);

#endif
