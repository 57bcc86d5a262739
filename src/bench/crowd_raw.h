/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Plain datagrams from files: what crowd_raw_server.c and its client, crowd_raw.c, send each other,
 * in the byte order of the machine. The server keeps no state of its clients.
 */
#ifndef CROWD_RAW_H
#define CROWD_RAW_H

#include <stdint.h>

#define CROWD_RAW_DATAGRAM 1444u /* bytes; rxwire's on the loopback interface */
#define CROWD_RAW_DATA	   (CROWD_RAW_DATAGRAM - (unsigned)sizeof(struct crowd_raw_head))
#define CROWD_RAW_BURST	   45u /* datagrams that fit into one message */
#define CROWD_RAW_BURSTS   2u  /* of a block */
#define CROWD_RAW_PIECES   (CROWD_RAW_BURSTS * CROWD_RAW_BURST)
#define CROWD_RAW_BLOCK	   (CROWD_RAW_PIECES * CROWD_RAW_DATA) /* the most bytes of a request */

/* Of each datagram of data, as long as the header of Rx. The data follows. */
struct crowd_raw_head {
	uint64_t offset;
	uint32_t file, length;
	uint32_t unused[3];
} __attribute__((packed, aligned(4)));

struct crowd_raw_request {
	uint64_t offset;
	uint32_t file;
	uint32_t length; /* 0: the status of the file */
	uint32_t again;	 /* datagrams that were asked for before */
	uint32_t unused;
};

struct crowd_raw_status {
	uint64_t length;
	uint64_t again; /* datagrams that the server has sent again, to all */
	uint32_t file;
	uint32_t unused;
};

#endif
