/* SPDX-License-Identifier: BSD-2-Clause */
/* The objects of librxwire-classic. */
#ifndef RXWIRE_CLASSIC_CORE_H
#define RXWIRE_CLASSIC_CORE_H

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

#include <rx/rx.h>

#include "../classic.h"
#include "common/held.h"

/*
 * The process has one engine. `classic_lock` covers the lists of ports, services and connections,
 * and whether calls are served. It is not held while a function waits or while the program's
 * functions run.
 */
extern pthread_mutex_t classic_lock;

/* A UDP port. `next` and the list: classic_lock; the rest does not change. */
struct classic_port {
	struct classic_port *next;
	rxw_endpoint *endpoint;
	afs_uint32 host; /* network order; 0 = all addresses */
	u_short port;	 /* network order */
};

/* Values of the application by key. `lock` covers the rest. */
struct classic_values {
	pthread_mutex_t lock;
	int room;
	void **value;
};

/* The service behind a program's struct rx_service. */
struct classic_service {
	struct rx_service handle;     /* the program has a pointer to this */
	struct classic_service *next; /* classic_lock */
	struct classic_port *port;
	rxw_service *service;
	char *name;
	u_short id;
	int count; /* of `classes` */
	struct rx_securityClass **classes;
	afs_int32 (*procedure)(struct rx_call *);
	struct classic_values values;
	/* set by the program at any time */
	_Atomic(void (*)(struct rx_call *)) before;
	_Atomic(void (*)(struct rx_call *, afs_int32)) after;
	_Atomic(void (*)(afs_int32)) post;
	_Atomic(void (*)(struct rx_connection *)) new_connection;
	_Atomic(void (*)(struct rx_connection *)) destroy_connection;
	/* classic_lock */
	int max_procs;
	bool held; /* the library holds its calls */
};

struct rx_peer {
	afs_uint32 host; /* network order */
	u_short port;	 /* network order */
};

struct rx_connection {
	struct rx_connection *next, **link; /* clients: the list of all; classic_lock */
	rxw_connection *connection;	    /* with a reference; NULL: could not be created */
	rxw_connection *used_up; /* the one before, whose call numbers are used up; classic_lock */
	struct classic_service *service;    /* servers */
	struct rx_securityClass *klass;	    /* clients: with a reference; servers: borrowed */
	struct rx_peer peer;
	int index;
	u_short service_id;
	bool server;
	bool cached;	  /* it is in the cache of connections */
	unsigned in_use;  /* users of a cached connection; lock of the cache */
	atomic_uint refs; /* of the program, calls and, for servers, the library's connection */
	atomic_int error; /* the code that calls get if there is no `connection` */
	atomic_int dead_s, idle_s, hard_s;
	struct classic_values values;
};

/* Small writes are gathered up to this size. */
#define CLASSIC_WRITES 1024

/*
 * A call. One thread uses it at a time, except for what is atomic. The objects of clients' calls
 * stay allocated and rest for a while after the call has ended, since stubs look at them again.
 */
struct rx_call {
	struct rx_call *next; /* of those that rest: lock of calls.c */
	rxw_call *call;	      /* NULL: could not begin, or has ended */
	struct rx_connection *connection;
	afs_int32 error;   /* without `call`: its code */
	bool reading;	   /* client: the reply is being read, so the request has ended */
	bool reserved;	   /* rx_WritevAlloc() without rx_Writev() so far */
	int status;	   /* status byte of the packets to send */
	const uint8_t *at; /* bytes received that were lent by the library and not read yet */
	size_t left;
	size_t filled;		 /* bytes of `writes` */
	uint64_t sent, received; /* bytes that the program has written and read, roughly: lent */
	uint64_t begun_ns;
	struct classic_usage usage;    /* of a client's call that has ended */
	atomic_int sent_s, received_s; /* when something was last sent and received: time() */
	uint8_t writes[CLASSIC_WRITES];
};

/* start.c */
/* The engine and the port of rx_Init(), NULL before it. classic_lock need not be held. */
rxw_engine *classic_engine(void);
struct classic_port *classic_main_port(void);
/*
 * The port with this address, which is opened if it is new; `host` 0 is all addresses. NULL and a
 * line in the log if it cannot be opened. classic_lock must be held.
 */
struct classic_port *classic_open(afs_uint32 host, u_short port);
/* Whether calls are served; and from now on they are. classic_lock must be held. */
bool classic_serving(void);
void classic_serve(void);
/* Engine and ports belong to the caller, which destroys them. classic_lock must be held. */
struct classic_port *classic_leave(rxw_engine **engine);

/* connections.c */
/* The connection of a call that a service has got; NULL without memory. */
struct rx_connection *classic_server_connection(rxw_call *call, struct classic_service *service);
void classic_connection_ref(struct rx_connection *connection);
void classic_connection_unref(struct rx_connection *connection);
/* The call numbers of `old` are used up: another connection of the library takes its place. */
void classic_reconnect(struct rx_connection *connection, rxw_connection *old);
/* Detach all clients' connections from the library; their calls fail. classic_lock must be held. */
void classic_connections_detach(void);

/* specific.c */
void classic_values_init(struct classic_values *values);
/* Destroy all values. They can still be set and read afterwards. */
void classic_values_clear(struct classic_values *values);
void classic_values_free(struct classic_values *values);

/* calls.c */

/* streams.c */
/* Hand the writes that were gathered to the library. False: the call has failed. */
bool classic_write_out(struct rx_call *call);

#endif
