/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of the client side share. */
#ifndef AFS_CLIENT_INTERNAL_H
#define AFS_CLIENT_INTERNAL_H

#include "afs/client.h"

/* One thread at a time; the callback service reads `self` only, which is constant. */
struct afs_client {
	rxw_endpoint *endpoint;
	rxw_connection *vl, *fs;          /* fs: NULL until a volume is chosen */
	struct sockaddr_storage vl_address;
	socklen_t vl_len;
	uint16_t fs_port;
	struct afs_interfaces self;       /* what the callback service says of us */
};

/*
 * One call: `request` there, at most *reply_len bytes back. 0 and *reply_len, or -1 and *error.
 * deadline_ms 0 = the defaults of the transport.
 */
int afs_rpc(rxw_connection *connection, const char *what, const struct rxw_xdr *request,
	    unsigned deadline_ms, void *reply, size_t *reply_len, struct afs_error *error);

/* Offer the callback service on the client's endpoint. 0 or a negative result of the library. */
int afs_client_callbacks(struct afs_client *client);

#endif
