/* SPDX-License-Identifier: BSD-2-Clause */
/* Records of a trace, and the section of a pcapng file that is made of them. */
#ifndef RXW_ENGINE_TRACEFILE_H
#define RXW_ENGINE_TRACEFILE_H

#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"
#include "proto/event/event.h"

enum rxw_record_kind {
	RXW_RECORD_PACKET,
	RXW_RECORD_EVENT
};

enum rxw_record_flag {
	RXW_RECORD_SENT = 1,
	RXW_RECORD_IPV6 = 2,
	RXW_RECORD_LOCAL = 4,  /* `local` is known */
	RXW_RECORD_REFUSED = 8 /* was to be sent, and the kernel did not take it */
};

/* What a record begins with; records lie at multiples of 8 bytes and are as long as one. */
struct rxw_record {
	uint32_t size; /* with all that follows */
	uint8_t kind, flags;
	uint16_t port; /* packet: of the peer, host order */
	uint64_t at;   /* monotonic ns; never less than in the record before */
};

/* Follows in that of a packet, and then its bytes; in that of an event, struct rxw_trace_event. */
struct rxw_record_packet {
	uint32_t length; /* of the datagram */
	uint32_t kept;	 /* bytes of it that follow */
	uint8_t peer[16], local[16];
};

/* A trace as it is written: whole records in the order of time. */
struct rxw_snapshot {
	const uint8_t *records;
	size_t size;
	unsigned snap;
	struct rxw_addr bound;	       /* of the endpoint */
	uint64_t packets, overwritten; /* that were seen; of these are here no more */
	int64_t wall;		       /* ns from the monotonic clock to the time of day */
};

/* 0, -RXW_ENOMEM, or -RXW_ESYS (errno). */
int rxw_tracefile_write(int fd, const struct rxw_snapshot *snapshot);
/* The comment that an event becomes. */
void rxw_tracefile_text(const struct rxw_trace_event *seen, char *text, size_t size);

#endif
