/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside the module of the network: the instance, waits, identities. */
#ifndef CLIENT_NET_INSIDE_H
#define CLIENT_NET_INSIDE_H

#include <net/if.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>

#include <rxwire/rxwire.h>

#include "afs/numbers.h"
#include "afs/rxafscb.h"
#include "client/net/net.h"
#include "common/clock.h"
#include "common/held.h"

/*
 * Order of locks: a cancel's, `wait_lock`, a record's (record.h), `table_lock`, a server's, an
 * identity's. None is held while a call waits for a server, nor while a function of `ops` runs.
 */
struct cl_net {
	rxw_engine *engine;
	bool own_engine;
	rxw_endpoint *endpoint;
	struct cl_cells *cells;
	struct cl_net_ops ops;
	void *arg;
	unsigned soft_ms; /* UINT32_MAX: none */
	unsigned dead_ms, pause_ms;
	bool one_round;
	struct cl_pair pairs[CL_PAIRS]; /* paths that were named; none: all are used */
	unsigned pair_count;
	unsigned spread;		  /* random: which of equal sites is the first */
	struct RXAFSCB_service callbacks; /* its context is the instance */
	struct rxw_uuid self;
	_Atomic bool cancelled;
	_Atomic uint32_t releases; /* of volumes that were seen; counts their numbers */

	/* Waits for changes of servers and records: see cl_wait(). */
	pthread_mutex_t wait_lock;
	pthread_cond_t changed;

	pthread_mutex_t table_lock; /* covers the members below */
	struct cl_server **servers; /* by number - 1; never removed */
	size_t server_count, server_room;
	struct cl_records *records;
	struct cl_location *locations; /* a list, one for each cell that was used */
	uint32_t last_identity;

	/* Changes of this machine's addresses, interfaces and routes, and of the addresses of servers. */
	_Atomic uint32_t moves;
	struct cl_prober *prober;
	rxw_queue *probing; /* that of the prober: whatever is posted wakes it */
	struct cl_pulses *pulses;
};

/* ---- location.c ---- */

/* Questions in progress end. */
void cl_locations_abort(struct cl_net *net);

/* ---- pulse.c ---- */

int cl_pulses_start(struct cl_net *net);
void cl_pulses_stop(struct cl_net *net);

/* ---- caller.c ---- */

/*
 * Wait until ready(arg), which is called with the net's wait lock, or until a time of cl_net_now()
 * (0 = none). 0, -EINTR or -ETIMEDOUT.
 */
int cl_wait(struct cl_net *net, struct cl_cancel *cancel, uint64_t until, bool (*ready)(void *arg),
	    void *arg);
/* Something that cl_wait() may wait for has changed. */
void cl_wake_waiters(struct cl_net *net);
/* From now on a raised cancel aborts the call. -EINTR: it was raised already. */
int cl_cancel_attach(struct cl_cancel *cancel, rxw_call *call);
void cl_cancel_detach(struct cl_cancel *cancel);
/* One line for the log. */
void cl_net_note(struct cl_net *net, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- identity.c ---- */

/* A token of an identity in a cell. Counted references; NULL stands for none. */
struct cl_credential {
	_Atomic unsigned refs;
	rxw_security *security;
	uint32_t number; /* of the identity when it got its first token for the cell */
	int64_t expires;
	_Atomic bool refused; /* a server has called it expired */
};
/* The credential for a cell, with a reference; NULL: anonymous. */
struct cl_credential *cl_identity_credential(struct cl_identity *identity, uint32_t cell);
void cl_credential_unref(struct cl_credential *credential);
bool cl_credential_expired(const struct cl_credential *credential);

/* ---- interfaces.c ---- */

#define CL_INTERFACES 64 /* addresses of this machine that are watched */

/* An address of this machine at which others may reach it. */
struct cl_interface {
	struct in6_addr address; /* of IPv4: the last 4 bytes, the others are 0 */
	bool running;		 /* its interface has a link */
	bool tunnel;		 /* from point to point */
	unsigned index;
	char device[IF_NAMESIZE];
};
struct cl_interfaces {
	bool known;
	unsigned count;
	struct cl_interface list[CL_INTERFACES];
};
enum cl_moved {
	CL_MOVED_NOT,
	CL_MOVED_ADDED, /* there are further addresses */
	CL_MOVED_AWAY	/* an address is gone: who calls it does not reach this machine */
};
void cl_interfaces_read(struct cl_interfaces *now);
enum cl_moved cl_interfaces_compare(const struct cl_interfaces *before,
				    const struct cl_interfaces *now);

/* That with this address; NULL: unknown. */
const struct cl_interface *cl_interface_of(const struct cl_interfaces *interfaces,
					   const struct sockaddr_storage *address);

/* ---- routes.c ---- */

/*
 * The address, with port 0, from which packets to a server come, by this device or (NULL) that which the kernel chooses. False: there is no
 * route. A route by a device is not proved by it.
 */
bool cl_route_source(const struct sockaddr_storage *remote, socklen_t len, const char *device,
		     struct sockaddr_storage *source);
/* Whether there is a route from an address by an interface. False also if the kernel does not tell. */
bool cl_route_exists(const struct sockaddr_storage *remote, const struct sockaddr_storage *source,
		     unsigned interface);
/* A descriptor that is readable after addresses, interfaces or routes have changed; -1: the kernel does not tell. */
int cl_routes_watch(void);
/* Whether that has happened since the last time. */
bool cl_routes_moved(int fd);

/* ---- callback.c ---- */

int cl_callbacks_offer(struct cl_net *net);

/* ---- farewell.c ---- */

/*
 * Tell all servers that our promises are not needed any more, and wait for their answers so long.
 */
void cl_net_farewell(struct cl_net *net, unsigned limit_ms);

#endif
