/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of the client side share. */
#ifndef AFS_CLIENT_INTERNAL_H
#define AFS_CLIENT_INTERNAL_H

#include "afs/client.h"
#include "afs/rxafscb.h"

/* One thread at a time; the callback service reads `self` only, which is constant. */
struct afs_client {
	rxw_endpoint *endpoint;
	rxw_connection *vl, *fs;          /* fs: NULL until a volume is chosen */
	rxw_security *security;           /* of all connections; NULL: the null class */
	struct sockaddr_storage vl_address;
	struct sockaddr_storage fs_address; /* valid with fs */
	socklen_t vl_len, fs_len;
	uint16_t fs_port;
	struct RXAFSCB_service callbacks; /* its context is the client */
	interfaceAddr self;		  /* what the callback service says of us */
};

/*
 * Around the two stubs of a procedure: the plain one could not say who raised an error, nor take a
 * deadline. `what` names the object in errors; deadline_ms 0 = the defaults of the transport.
 * afs_begin: 0 and *call, or -1 and *error. afs_end: takes what the stubs returned; 0, or -1 and
 * *error.
 */
int afs_begin(rxw_connection *connection, const char *what, unsigned deadline_ms, rxw_call **call,
	      struct afs_error *error);
int afs_end(rxw_call *call, const char *what, int32_t code, struct afs_error *error);

/* FetchStatus within deadline_ms; any status will do. 0, or -1 and *error. */
int afs_fetch_status(struct afs_client *client, const AFSFid *fid, const char *what,
		     unsigned deadline_ms, AFSFetchStatus *status, struct afs_error *error);

/* Offer the callback service on the client's endpoint. 0 or a negative result of the library. */
int afs_client_callbacks(struct afs_client *client);

#endif
