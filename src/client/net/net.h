/* SPDX-License-Identifier: BSD-2-Clause */
/* The network of a client instance: endpoint, callback service, servers, identities. */
#ifndef CLIENT_NET_NET_H
#define CLIENT_NET_NET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include <rxwire/config.h>
#include <rxwire/engine.h>
#include <rxwire/security.h>

#include "afs/rxafs.h"
#include "client/cell/cells.h"
#include "client/net/caller.h"

/*
 * An endpoint with the callback service, the servers that were used, volumes, identities and their
 * connections. All functions: any thread, with no lock of the caller that an operation of `struct
 * cl_net_ops` takes.
 */
struct cl_net;

/*
 * What servers say by themselves. The functions run on threads of the callback service; the server
 * waits for their return, and a writer elsewhere with it. They must not call servers. They may wait
 * for the kernel's caches, up to 100 ms (K-163).
 */
struct cl_net_ops {
	/*
	 * Promises of a server are broken. Vnode 0: all of the volume. The record of such a volume
	 * is refreshed at its next use.
	 */
	void (*broken)(void *arg, uint32_t server, const struct rxafs_fid *fids, uint32_t count);
	/*
	 * All promises of a server are void (InitCallBackState, or it has restarted, or this
	 * machine slept). `resets` counts such events of the server, and is in each struct
	 * cl_stamp.
	 */
	void (*reset)(void *arg, uint32_t server, uint32_t resets);
	/*
	 * The token of an identity for a cell has expired. True: a newer one was set. May be NULL.
	 * On the thread of the operation.
	 */
	bool (*renew)(void *arg, struct cl_identity *identity, uint32_t cell);
	/* Now and then, some seconds apart, on a thread that must not be kept. May be NULL. */
	void (*idle)(void *arg);
	/* One line for the log. May be NULL. */
	void (*note)(void *arg, const char *text);
};

/* A path that may be used. What is not set, by the family AF_UNSPEC or the interface 0, may be any. */
struct cl_pair {
	struct sockaddr_storage local, remote; /* without ports */
	unsigned interface;		       /* that of `local`, if that is set */
};
#define CL_PAIRS 8
/*
 * "LOCAL[%DEVICE][,REMOTE]": each part may be empty. 0; -EINVAL: it has another form; -EADDRNOTAVAIL: this machine has no such address or
 * interface. With a line of text.
 */
int cl_pair_parse(const char *text, struct cl_pair *pair, char *message, size_t size);

struct cl_net_options {
	rxw_engine *engine;		 /* NULL = one of its own, made with `config` */
	const struct rxw_config *config; /* NULL = defaults */
	const struct sockaddr *local;	 /* to bind; NULL = any address and port */
	socklen_t local_len;
	struct cl_cells *cells;	      /* outlives the instance */
	const struct cl_net_ops *ops; /* members may be NULL */
	void *arg;
	unsigned
		soft_ms; /* limit of waits for a server that is away; 0 = 60,000; UINT32_MAX = none */
	unsigned dead_ms; /* a server that is silent so long is dead; 0 = 12,000 */
	bool one_round;	  /* no waits for servers that are away or busy */
	/* The only paths to file servers that are used, at most CL_PAIRS; 0: all that there are. */
	const struct cl_pair *pairs;
	unsigned pair_count;
	/*
	 * The first wait for a volume that is busy; all other waits are multiples of it. 0 = 1,000;
	 * tests set less
	 */
	unsigned pause_ms;
};

/* 0, or a negative errno value and a line of text. */
int cl_net_create(const struct cl_net_options *options, struct cl_net **net, char *message,
		  size_t size);
/*
 * Gives promises back to servers that answer, within `limit_ms` in all, and frees everything. No
 * operation may be in progress; all volumes and identities must be released.
 */
void cl_net_close(struct cl_net *net, unsigned limit_ms);
/* Operations in progress and later ones fail with -EINTR. */
void cl_net_cancel_all(struct cl_net *net);

/* That of all calls; lives as long as the instance. */
rxw_endpoint *cl_net_endpoint(struct cl_net *net);

/* -- identities --------------------------------------------------------------------------- */

/* A new identity of its owner, with one reference, without tokens. NULL: no memory. */
struct cl_identity *cl_identity_create(struct cl_net *net, void *owner);
/* A new one with the present token for a cell, and the same owner: for what is begun now and ends after the token's time. */
struct cl_identity *cl_identity_keep(struct cl_identity *identity, uint32_t cell);
void *cl_identity_owner(const struct cl_identity *identity);
struct cl_identity *cl_identity_ref(struct cl_identity *identity);
void cl_identity_unref(struct cl_identity *identity);
/*
 * Number for keys of caches: from 1 on, never used again; 0 for NULL, and for one without a valid
 * token for that cell, which reads as anonymous.
 */
uint32_t cl_identity_number(struct cl_identity *identity, uint32_t cell);
/*
 * Use this token from now on in a cell (a reference is taken; NULL: none). `expires`: seconds since
 * 1970, INT64_MAX = never. Calls in progress end with the former one. The identity has another
 * number afterwards, unless the token is for the `same` principal as the one before.
 */
int cl_identity_set_token(struct cl_identity *identity, const struct cl_cell *cell,
			  rxw_security *security, int64_t expires, bool same);
/* Whether there was a token for that cell, which is over. */
bool cl_identity_expired(struct cl_identity *identity, uint32_t cell);
/* Seconds since 1970 until which the token of a cell is valid; 0: there is none. */
int64_t cl_identity_expires(struct cl_identity *identity, const struct cl_cell *cell);

/* -- servers ------------------------------------------------------------------------------ */

enum cl_server_state {
	CL_SERVER_UP,
	CL_SERVER_DOUBT, /* a call has waited for more than a second, or the last one got no answer */
	CL_SERVER_DOWN	 /* marked down: calls try others first, and probes look for it */
};
struct cl_server_info {
	uint32_t number, cell;
	struct sockaddr_storage address; /* in use */
	socklen_t address_len;
	enum cl_server_state state;
	uint32_t rtt_us;     /* 0 = unknown */
	uint32_t calls;	     /* in progress */
	uint64_t answered;   /* calls that ended with an answer */
	uint64_t unanswered; /* calls that did not */
	uint32_t resets;
};
/* The state of a server by its number. Takes no lock that a call holds while it waits. */
enum cl_server_state cl_net_server_state(struct cl_net *net, uint32_t server);
/* Server `number`, from 1 on. False: there is none. */
bool cl_net_server_info(struct cl_net *net, uint32_t number, struct cl_server_info *info);
/*
 * How long a server (0: each location server of the cell) has not answered small questions that take no thread of it, in nanoseconds.
 * The next question goes out, at most each 50 ms; call it again to see the answer. Never waits. CL_NOBODY_THERE: there is nobody to ask.
 */
#define CL_NOBODY_THERE UINT64_MAX
uint64_t cl_net_silence(struct cl_net *net, uint32_t cell, uint32_t server);
/* Ask all servers (of one cell; 0 = of all) whether they live, and wait for the answers. */
void cl_net_probe_servers(struct cl_net *net, uint32_t cell, const struct cl_caller *caller);

/* Nanoseconds of the clock of struct cl_stamp, CLOCK_BOOTTIME: it counts suspended time. */
uint64_t cl_net_now(void);

#endif
