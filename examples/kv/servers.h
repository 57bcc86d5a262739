/* SPDX-License-Identifier: BSD-2-Clause */
/* Common to the client programs: connections to the servers named by -s, and texts of codes. */
#ifndef SERVERS_H
#define SERVERS_H

#include <rxwire/rxwire.h>

#include "kv.h"

#define SERVERS_MAX 16

struct servers {
	const char *program; /* for messages */
	rxw_engine *engine;
	rxw_endpoint *endpoint;
	unsigned count;
	const char *name[SERVERS_MAX]; /* "host" or "host:port" */
	rxw_connection *connection[SERVERS_MAX];
};

/* Connects to all named servers, or to 127.0.0.1. Prints errors and exits on failure. */
void servers_open(struct servers *servers);
/* Everything of the endpoint and the engine must be released before. */
void servers_close(struct servers *servers);

/* Up to `most` connections to the first server; and a queue. They too exit on failure. */
rxw_connpool *servers_pool(struct servers *servers, unsigned most);
rxw_queue *servers_queue(struct servers *servers);

/* Prints the result of a call: "kv-client: get: HOST: KEY: there is no such value". Returns 1. */
int servers_complain(const struct servers *servers, const char *what, unsigned index,
		     const char *key, int32_t code);

#endif
