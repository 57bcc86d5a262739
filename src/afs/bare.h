/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Clients of one file server, for loads: a socket with the callback service, and a connection. Calls are made with
 * the stubs of rxafs.h. Nothing is cached, and nothing is repeated.
 */
#ifndef AFS_BARE_H
#define AFS_BARE_H

#include <stddef.h>
#include <sys/socket.h>

#include <rxwire/call.h>
#include <rxwire/endpoint.h>
#include <rxwire/engine.h>
#include <rxwire/security.h>

#include "afs/rxafs.h"

struct bare_client;

struct bare_options {
	const struct sockaddr_storage *server; /* with its port */
	socklen_t server_len;
	const struct sockaddr_storage *local; /* own address, of the same family; NULL = any */
	const struct rxw_config *config;      /* of the endpoint; NULL = the engine's */
	rxw_security *security;		      /* NULL = anonymous */
};

/* Functions that return int: 0 or a negative result of the library. Any thread, but for the closing. */
int bare_open(rxw_engine *engine, const struct bare_options *options, struct bare_client **client);
/* Does not return promises: see bare_give_up(). NULL is allowed. */
void bare_close(struct bare_client *client);

/* A new connection for calls that begin from now on: to a server, after the present one has failed. */
int bare_connect(struct bare_client *client, const struct sockaddr_storage *server, socklen_t len);
/* The same to the present server, with another token. */
int bare_renew(struct bare_client *client, rxw_security *security);

/* A call to the file server. */
int bare_begin(struct bare_client *client, const struct rxw_call_options *options, rxw_call **call);
rxw_endpoint *bare_endpoint(const struct bare_client *client);

/* A reply came with this: it may be a promise, which is then remembered for bare_give_up(). */
void bare_promised(struct bare_client *client, const AFSFid *fid, const AFSCallBack *callback);
/*
 * Return the promises of all clients (NULL ones are skipped), or else the server would wait for them before the next
 * change. A server without GiveUpAllCallBacks is told of each object, of up to 16,384 for a client. At most about `ms`
 * milliseconds for all together.
 */
void bare_give_up(struct bare_client *const *clients, size_t count, unsigned ms);

#endif
