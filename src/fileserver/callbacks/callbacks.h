/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls from the server to its clients: who are you, forget, and the breaking of promises. */
#ifndef FILESERVER_CALLBACKS_H
#define FILESERVER_CALLBACKS_H

#include <rxwire/types.h>

#include "fileserver/callbacks/clients.h"

struct fsd_callbacks;

/*
 * Start the thread that makes the calls, from `endpoint`: clients know the server by the address
 * and port that they call. `uuid` is copied. Returns NULL without memory or thread.
 */
struct fsd_callbacks *fsd_callbacks_start(rxw_endpoint *endpoint, struct fsd_clients *clients,
					  const struct rxw_uuid *uuid);
/* There is work; any thread. */
void fsd_callbacks_wake(struct fsd_callbacks *callbacks);
/* Give up calls in progress and stop. Before the endpoint is destroyed. */
void fsd_callbacks_stop(struct fsd_callbacks *callbacks);

/* Seconds, and nanoseconds, of a clock that never goes back. */
uint64_t fsd_now(void);
uint64_t fsd_now_ns(void);

#endif
