/* SPDX-License-Identifier: BSD-2-Clause */
/* One question to a server by a DEBUG or VERSION packet (rx-protocol 8). */
#ifndef RXWIRE_CLASSIC_WATCH_ASK_H
#define RXWIRE_CLASSIC_WATCH_ASK_H

#include <stdbool.h>

#include <rx/rx.h>

struct watch_server {
	osi_socket socket; /* UDP, of the program */
	afs_uint32 host;   /* network order */
	afs_uint16 port;   /* network order */
};

/*
 * Send `size` bytes, at most 8, in a packet of this type, up to five times with pauses of 1, 2, 4,
 * 8 and 16 seconds. The answer has the same type and call number, and comes from the address and
 * port that were asked; other packets are ignored. Copies at most `room` bytes of what follows its
 * header. Returns their number, or -1 with errno set: ETIMEDOUT, or the error of the socket.
 */
int classic_ask(const struct watch_server *server, unsigned char type, const void *question,
		size_t size, void *answer, size_t room);

#endif
