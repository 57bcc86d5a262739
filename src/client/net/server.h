/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside the module of the network: file servers, calls to them, probes. */
#ifndef CLIENT_NET_SERVER_H
#define CLIENT_NET_SERVER_H

#include "client/net/inside.h"
#include "client/net/pathload.h"
#include "client/paths/spread.h"

#define CL_ADDRESSES 16 /* of a server; further ones are ignored */

/* Calls that a server may lack. */
enum cl_missing {
	CL_MISSING_FETCH64 = 1,
	CL_MISSING_STORE64 = 2,
	CL_MISSING_INLINE_BULK = 4,
	CL_MISSING_GIVE_UP_ALL = 8,
	CL_MISSING_BULK = 16,
	CL_MISSING_STORE_ACL = 32,
	CL_MISSING_CAPABILITIES = 64,
	CL_MISSING_SESSIONS = 256, /* of stores over several paths */
	CL_MISSING_NO_CUT = 128 /* refuses a file length that cannot cut */
};

struct cl_address {
	struct sockaddr_storage sa;
	socklen_t len;
	uint32_t rtt_us;    /* of a probe; 0 = unknown */
	uint64_t failed_at; /* no answer; 0 = none since the last one */
};

/* How packets are sent. */
struct cl_way {
	struct sockaddr_storage sa;
	socklen_t len;
	/* An address of this machine, port 0, and its interface; local_len 0: the kernel chooses them. */
	struct sockaddr_storage local;
	socklen_t local_len;
	unsigned interface;
};

/* The connections of one credential over one way. */
struct cl_lane {
	struct cl_lane *next;
	struct cl_credential *credential; /* NULL = anonymous */
	struct cl_way way;
	rxw_connpool *pool;
	unsigned refs; /* that of the server's list, and of calls that begin */
	uint64_t used_at;
};

struct cl_server {
	/* constant */
	struct cl_net *net;
	uint32_t number;
	struct cl_cell *cell;
	struct rxw_uuid uuid; /* all zero: known by its address */
	bool by_uuid;

	pthread_mutex_t lock; /* covers the members below */
	struct cl_address addresses[CL_ADDRESSES];
	unsigned address_count, current;
	int32_t generation; /* of the addresses in the location service */
	struct cl_lane *lanes;
	struct cl_path *paths[CL_PATHS]; /* netpath.h */
	unsigned path_count;
	uint64_t paths_at;    /* cl_paths_changed() when they were listed */
	uint64_t looked_at;   /* when the prober last looked for silent paths */
	bool lost_path;	      /* one has died: the server is to hear of a living one */
	struct cl_sent *sent; /* calls in progress */
	/* without token, to the address in use: keeps the mapping of a NAT (K-139); NULL = none yet */
	rxw_connection *keeper;
	unsigned keeper_address;
	unsigned probes_failed; /* in a row */
	unsigned probes;	/* in progress */
	uint64_t next_probe;

	_Atomic bool down;
	_Atomic uint64_t down_since, up_since; /* the last change; 0 = none */
	_Atomic bool probed;	  /* since it is known, or since its addresses changed */
	_Atomic uint32_t missing; /* enum cl_missing */
	_Atomic uint32_t resets;
	_Atomic uint32_t calls; /* in progress */
	_Atomic uint64_t
		silent_since; /* of calls in progress: the last answer, or when the first of them began */
	_Atomic uint64_t answered, unanswered;
	_Atomic uint64_t used_at, heard_at; /* the last call; the last answer */
	_Atomic bool promised;		    /* it may hold promises for us */
	/*
	 * Objects of these promises, covered by `lock`: for servers without GiveUpAllCallBacks, by clients that live as long as
	 * a command.
	 */
	AFSFid *given;
	size_t given_count, given_room;
};

/*
 * The server of a cell with this UUID, or with this address; it is added if it is not known. NULL:
 * no memory.
 */
struct cl_server *cl_server_by_uuid(struct cl_net *net, struct cl_cell *cell,
				    const struct rxw_uuid *uuid);
struct cl_server *cl_server_by_address(struct cl_net *net, struct cl_cell *cell,
				       const struct sockaddr *sa, socklen_t len);
/* By number; NULL: there is none. */
struct cl_server *cl_server_at(struct cl_net *net, uint32_t number);
/*
 * The next server after number `after` from which a packet may have come; NULL: no further one. One
 * server is several here if cells share it, or if one cell has several names.
 */
struct cl_server *cl_server_from(struct cl_net *net, const struct sockaddr_storage *sa,
				 uint32_t after);
bool cl_server_has_address(struct cl_server *server, const struct sockaddr_storage *sa);
/* Its addresses, in the order of the location service; unknown ones go. */
void cl_server_set_addresses(struct cl_server *server, const struct cl_address *addresses,
			     unsigned count, int32_t generation);
/* Whether the addresses of that generation are known; whether any is. */
bool cl_server_current(struct cl_server *server, int32_t generation);
bool cl_server_reachable(struct cl_server *server);
enum cl_server_state cl_server_state(const struct cl_server *server);
/* "10.0.0.1:7000" of the address in use. */
const char *cl_server_text(struct cl_server *server, char *text, size_t size);

/* A call to a server. */
struct cl_sent {
	struct cl_sent
		*next; /* of the server's list; it stays at its place until cl_server_end() */
	struct cl_server *server;
	rxw_call *call;
	struct sockaddr_storage sa; /* the address */
	uint64_t at;		    /* cl_net_now() before it began */
	uint32_t resets;
	bool resent; /* after a failure: packets of the request were sent twice */
	bool reads;  /* it changes nothing */
	_Atomic bool lost, spare; /* ended since only its path is silent; gets the dead time only, since another server has the same */
	struct cl_long_read read;
	/* The caller has waited since then for something that moves the call on; 0: it does not wait. */
	_Atomic uint64_t waits_since;
};
/* The connections of a credential over a way, with a reference. NULL: no memory. */
struct cl_lane *cl_server_take_lane(struct cl_server *server, struct cl_credential *credential,
				    const struct cl_way *way);
void cl_server_put_lane(struct cl_server *server, struct cl_lane *lane);
/* That of a connection to it, with a reference: for calls that are nobody's. NULL: anonymous. */
struct cl_credential *cl_server_credential(struct cl_server *server);
/*
 * Begin a call at the address in use, or over the path of a `long_read`, or that is `named` to it; it may be NULL. 0 or a negative result
 * of the library. `deadline_ms` 0 = none. `reads`: it changes nothing.
 */
int cl_server_begin(struct cl_server *server, struct cl_credential *credential,
		    unsigned deadline_ms, unsigned flags, bool reads,
		    const struct cl_long_read *long_read, struct cl_sent *sent);
/*
 * Bytes of a call have moved: its caller does something with them now, or waits for the next ones.
 */
void cl_server_moved(struct cl_sent *sent, bool waits);
/* After all results were read: whether the answer ends there. A server may send without end. */
bool cl_answer_ended(rxw_call *call);
/* The end of the call as rxw_rpc_end(); notes whether the server has answered. */
rxw_code cl_server_end(struct cl_sent *sent, rxw_code code, unsigned function,
		       enum rxw_origin *origin);
/* No answer came from this address: the server is down. */
void cl_server_silent(struct cl_server *server, const struct sockaddr_storage *sa);
/* It has answered, at this address (NULL: at the one in use). */
void cl_server_alive(struct cl_server *server, const struct sockaddr_storage *sa);
/* It has made promises on these objects. Those with ExpirationTime 0 are none. */
void cl_server_promised(struct cl_server *server, const AFSFid *fids, const AFSCallBack *callbacks,
			uint32_t count);
/* Calls go to this address from now on, since that in use does not answer. */
void cl_server_prefer(struct cl_server *server, const struct sockaddr_storage *sa);
/* All its promises are void. */
void cl_server_reset(struct cl_server *server);
/* Connections of a credential are not used for further calls; NULL: of all. */
void cl_server_drop_lanes(struct cl_server *server, const struct cl_credential *credential);
/* Calls in progress end. */
void cl_server_abort(struct cl_server *server);
/*
 * Those end whose callers have waited for too long: a server may answer PINGs but never end a call. Whether there are calls in
 * progress.
 */
bool cl_server_end_overdue(struct cl_server *server);
/*
 * While it may hold promises, small packets keep the mapping of a NAT to it. The prober's thread.
 */
void cl_server_keep(struct cl_server *server);
/* Connections that were not used for long are closed. */
void cl_server_idle(struct cl_server *server);
/* Its connections are released. Callbacks may still use it, until the endpoint is gone. */
void cl_server_disconnect(struct cl_server *server);
void cl_server_free(struct cl_server *server);

/* ---- probe.c ---- */

int cl_probes_start(struct cl_net *net);
void cl_probes_stop(struct cl_net *net);
/* A server is down, or its addresses were not compared yet: look for it at once. Never waits. */
void cl_probes_hurry(struct cl_server *server);

#endif
