/* SPDX-License-Identifier: BSD-2-Clause */
/* Addresses of peers: IPv4 or IPv6, and a port. */
#ifndef AFS_ADDRESS_H
#define AFS_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

/* "KIND 10.0.0.1:7000". Returns text. */
const char *afs_server_text(const struct sockaddr_storage *address, const char *kind, char *text,
			    size_t size);
/* Compares address, scope and port. */
bool afs_same_address(const struct sockaddr_storage *a, const struct sockaddr_storage *b);

#endif
