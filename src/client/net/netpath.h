/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The paths to a file server: pairs of an address of this machine and one of the server (several-paths 6). They live as long as the
 * server's object, so that a later transfer knows what an earlier one has measured.
 */
#ifndef CLIENT_NET_NETPATH_H
#define CLIENT_NET_NETPATH_H

#include <net/if.h>

#include "client/net/pathload.h"
#include "client/net/server.h"
#include "client/paths/spread.h"

struct cl_path {
	/* constant */
	struct cl_server *server;
	struct cl_way way;		/* how packets are sent */
	struct sockaddr_storage source; /* from where they come, port 0; AF_UNSPEC: unknown */
	unsigned interface;		/* of the source; 0: unknown */
	char device[IF_NAMESIZE];

	/* covered by the server's lock */
	unsigned refs; /* that of the server's list, and of users */
	bool gone;     /* the kernel has no such path any more: use it no longer */
	bool probed;   /* it has answered, or died */
	enum cl_path_state state;
	uint64_t rtt_ns;      /* 0 = unknown */
	double rate;	      /* bytes in a second, while it had work; 0 = unknown */
	uint64_t measured_at; /* when rtt_ns and rate were noted */
	uint64_t bytes,
		repeated; /* of all transfers; repeated: bytes that were not wanted any more */
	unsigned deaths;
	struct cl_path_load load; /* pathload.h */
};

/* What one path has done, for one who asks. */
struct cl_path_report {
	struct sockaddr_storage remote, local; /* local: AF_UNSPEC = unknown */
	char device[IF_NAMESIZE];
	enum cl_path_state state;
	uint64_t bytes, repeated, rtt_ns; /* repeated: bytes that were not wanted any more */
	double rate;			  /* bytes in a second */
	unsigned deaths;
};

/* One who watches a transfer: what each path has done so far. On its thread, which waits. */
typedef void cl_see_paths_fn(void *arg, const struct cl_path_report *reports, unsigned count);

/*
 * The paths that there are now, that in use for ordinary calls first; each with a reference. Their number. Asks the kernel for routes
 * if something has changed; no lock may be held.
 */
unsigned cl_paths_take(struct cl_server *server, struct cl_path *list[CL_PATHS]);
void cl_path_put(struct cl_path *path);
/*
 * The path of a call without a choice, with a reference, where the user has named the paths that may be used; NULL where not. False: none of
 * those leads to the server now.
 */
bool cl_path_take_named(struct cl_server *server, struct cl_path **path);
/*
 * Whether cl_paths_take() may tell of others than when this was last asked with `seen` (0 at first): an address of this machine or of the
 * server came or went, or a route. Cheap.
 */
bool cl_paths_changed(struct cl_server *server, uint64_t *seen);
/*
 * The connections of a credential (NULL: anonymous) over a path, to be given back by cl_server_put_lane(). NULL: no memory. Without a
 * local address in `way` they are those of ordinary calls.
 */
struct cl_lane *cl_path_take_lane(struct cl_path *path, struct cl_credential *credential);

/*
 * Whether promises that come over the path count. A server that takes each address of a client for a client of its own breaks them at the
 * address from which they were asked for: nobody hears of that once the address is gone. That of ordinary calls is watched (K-141).
 */
static inline bool cl_path_hears(const struct cl_path *path)
{
	return !path->way.local_len;
}
/* Whether the kernel does not have it any more. */
bool cl_path_is_gone(struct cl_path *path);
/* Of its last answer, or of that of its address; 0 = unknown. */
uint64_t cl_path_rtt(struct cl_path *path);
/* It has answered, after this time. */
void cl_path_lives(struct cl_path *path, uint64_t rtt_ns);
/* It is silent, or refused. Promises are broken over a living path from now on (P-014). */
void cl_path_dies(struct cl_path *path);
/* A transfer has ended, or notes what it has seen since it last did: bytes count in addition. `rate` 0: as before. */
void cl_path_note(struct cl_path *path, double rate, uint64_t bytes, uint64_t repeated);
/* Bytes in a second that a transfer has lately seen; 0 = unknown. */
double cl_path_rate(struct cl_path *path);
/* Addresses and device. */
void cl_path_describe(const struct cl_path *path, struct cl_path_report *report);
/* The paths to a server, by its number, that of ordinary calls first: their count. Untried: nobody has asked yet whether it answers. */
unsigned cl_net_server_paths(struct cl_net *net, uint32_t server,
			     struct cl_path_report reports[CL_PATHS], bool untried[CL_PATHS]);
/* For cl_server_free(). */
void cl_paths_free(struct cl_server *server);

#endif
