/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside the client side of AFS. */
#ifndef AFS_CLIENT_INTERNAL_H
#define AFS_CLIENT_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include <rxwire/connpool.h>

#include "afs/client/address.h"
#include "afs/client/client.h"
#include "afs/rxafscb.h"

#define ASKED_MAX    64u    /* file servers that are remembered for the end */
#define PROMISES_MAX 16384u /* objects that each of them made promises on */

/*
 * For one thread at a time, except for afs_client_cancel() and afs_client_give_up(). The callback
 * service only reads `self`, which is constant.
 */
struct afs_client {
	rxw_endpoint *endpoint;
	rxw_connection *vl, *fs; /* fs: NULL until a volume is chosen */
	rxw_connpool *ahead; /* to the server of fs, for fetches that are begun ahead; or NULL */
	rxw_security *security;	 /* of all connections; NULL: the null class */
	struct sockaddr_storage vl_address; /* of the location server in use */
	struct sockaddr_storage vl_others[AFS_VL_OTHERS]; /* in the order of trying */
	unsigned vl_other_count;
	struct sockaddr_storage fs_address; /* valid with fs */
	socklen_t vl_len, fs_len;
	uint16_t fs_port;
	unsigned limit_ms;		  /* afs_client_options */
	struct candidates *sites;	  /* of the last volume that was looked up, or NULL */
	struct RXAFSCB_service callbacks; /* its context is the client */
	interfaceAddr self;		  /* the identity that the callback service reports */

	/* Deadline for progress of the current blocking read; UINT64_MAX: none */
	_Atomic uint64_t due;
	pthread_mutex_t lock; /* covers the members below, and changes of fs, vl and security */
	pthread_cond_t wake;
	pthread_t watcher;
	bool watching, closing;
	rxw_call *running;    /* the current blocking call, or NULL */
	unsigned patience_ms; /* time limit of `running` */
	bool cancelled;	      /* permanently */
	bool stalled;	      /* why `running` was aborted */
	struct asked {
		struct sockaddr_storage address;
		socklen_t len;
		bool silent;	  /* it does not answer: not to be waited for at the end */
		AFSFid *promised; /* objects that it made promises on */
		unsigned promised_count, promised_room;
	} asked[ASKED_MAX];
	unsigned asked_count;
};

/*
 * Before and after the two stubs of a procedure. (The single stub has neither a deadline nor the
 * origin of an error.) `what` names the object in errors; deadline_ms 0 = none, for reads under
 * afs_watch_start(). afs_begin: 0 and *call, or -1 and *error. afs_end: takes the result of the
 * stubs, and reads the end of the reply; 0, or -1 and *error.
 */
int afs_begin(struct afs_client *client, rxw_connection *connection, const char *what,
	      unsigned deadline_ms, rxw_call **call, struct afs_error *error);
/* Make a call that was begun ahead the running one. */
void afs_adopt_call(struct afs_client *client, rxw_call *call, unsigned deadline_ms);
int afs_end(struct afs_client *client, rxw_call *call, const char *what, int32_t code,
	    struct afs_error *error);
/* End a call; `why`: this side rejects its reply, or NULL. 0, or -1 and *error. */
int afs_conclude(struct afs_client *client, rxw_call *call, const char *what, int32_t code,
		 const char *why, struct afs_error *error);
/* *error from a negative result of the library; returns -1. */
int afs_failed(struct afs_error *error, const char *what, int rc);

/* FetchStatus within deadline_ms, without checking the status. 0, or -1 and *error. */
int afs_fetch_status(struct afs_client *client, const AFSFid *fid, const char *what,
		     unsigned deadline_ms, AFSFetchStatus *status, struct afs_error *error);

/* Offer the callback service on the client's endpoint. 0 or a negative result of the library. */
int afs_client_callbacks(struct afs_client *client);

/* watch.c */
void afs_watch_init(struct afs_client *client);
void afs_watch_end(struct afs_client *client);
/* Start the thread that aborts `running` when it makes no progress. 0 or -RXW_ENOMEM. */
int afs_watch_start(struct afs_client *client);
/* A server that may give us promises from now on; the lock is held. */
void afs_server_asked(struct afs_client *client, const struct sockaddr_storage *server,
		      socklen_t len);
/* The file server in use sent this with the status of an object: it may be a promise. */
void afs_server_promised(struct afs_client *client, const AFSFid *fid, const AFSCallBack *callback);
/* A server that does not answer any more. */
void afs_server_silent(struct afs_client *client, const struct sockaddr_storage *server);

#endif
