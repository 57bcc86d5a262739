/* SPDX-License-Identifier: BSD-2-Clause */
/* What the code that rxwgen writes stands on: procedures, their arguments and their statistics. */
#ifndef RXWIRE_RPC_H
#define RXWIRE_RPC_H

#include <stdlib.h>
#include <string.h>

#include <rxwire/call.h>
#include <rxwire/endpoint.h>
#include <rxwire/service.h>
#include <rxwire/xdr.h>

#ifdef __cplusplus
extern "C" {
#endif

/* -- what an interface is ------------------------------------------------------------------- */

struct rxw_rpc_function {
	int32_t opcode;
	const char *name; /* "RXAFS_FetchStatus" */
};

/* One package of an .xg file: constant, made by rxwgen. */
struct rxw_rpc_interface {
	const char *name;    /* "RXAFS_" */
	uint32_t stat_index; /* of `statindex`, 0 = none */
	unsigned count;
	const struct rxw_rpc_function *functions; /* in order of declaration: by function index */
};

/* opaque x<n> with the short field names of -b */
struct rxw_opaque {
	uint32_t len;
	char *val;
};

/* -- arguments on a call -------------------------------------------------------------------- */

#define RXW_RPC_WINDOW 4096

/*
 * One direction of a call as XDR. Small arguments are coded into the window and leave, or come, in
 * one piece. Lives on the stack of a stub; nothing to free.
 */
struct rxw_rpc_stream {
	struct rxw_xdr xdr; /* first; the functions of xdr.h work on it */
	rxw_call *call;
	size_t least; /* exact: bytes that are decoded in any case, beyond the window */
	bool exact; /* never read beyond what is decoded */
	bool ended; /* the stream has ended behind the window */
	uint8_t window[RXW_RPC_WINDOW];
};

void rxw_rpc_writer(struct rxw_rpc_stream *s, rxw_call *call);
/* Hand what is in the window to the call. False if anything failed since rxw_rpc_writer(). */
bool rxw_rpc_flush(struct rxw_rpc_stream *s);

enum rxw_rpc_reading {
	RXW_RPC_WHOLE, /* nothing but arguments follows: read ahead */
	RXW_RPC_EXACT  /* raw data may follow (split calls): read what is decoded and no more */
};
/*
 * `limit`: bytes that may be decoded at most, 0 = 256 MiB. Decoding beyond it, or beyond the end
 * of the stream, fails. Allocations: at most 64 KiB and 16 bytes for each byte of the limit.
 */
void rxw_rpc_reader(struct rxw_rpc_stream *s, rxw_call *call, enum rxw_rpc_reading how,
		    size_t limit);

/*
 * Of an exact reader: at least so many bytes will be decoded from here on, or decoding fails; so
 * they can be read in one piece.
 */
void rxw_rpc_expect(struct rxw_rpc_stream *s, size_t least);

/* -- client --------------------------------------------------------------------------------- */

/*
 * Begin a call for a plain stub. 0 or a code: that of a connection that has failed or was aborted
 * meanwhile; RXW_CALL_TIMEOUT where the deadline or the connection's hard time passed before a
 * channel was free; this side's own trouble as rxw_code_from_errno(): EDEADLK in a callback or a
 * short handler, ESHUTDOWN on an endpoint that is stopping, ENOMEM, EINVAL.
 */
int32_t rxw_rpc_begin(rxw_connection *connection, rxw_call **call);
/* The same with options, which may be NULL; not RXW_CALL_NONBLOCK (EINVAL): stubs wait. */
int32_t rxw_rpc_begin_with(rxw_connection *connection, const struct rxw_call_options *options,
			   rxw_call **call);
/*
 * End it and report it to the observer of the endpoint. `code`: of the stub so far. Returns the
 * call's own error if it has one, else `code`.
 */
int32_t rxw_rpc_end(rxw_call *call, int32_t code, const struct rxw_rpc_interface *interface,
		    unsigned function);

/* One procedure on many connections; replies in the order in which they arrive. */
struct rxw_rpc_multi;
enum rxw_rpc_step {
	RXW_RPC_DONE,  /* all have been answered */
	RXW_RPC_START, /* *call has begun: encode its arguments, then rxw_rpc_multi_started() */
	RXW_RPC_REPLY, /* *call can be read: decode it, then rxw_rpc_multi_ended() */
	RXW_RPC_FAILED /* call number *index could not begin, or its arguments failed: *code */
};
/* NULL without memory. `connections` must outlive it; a connection may stand in it repeatedly. */
struct rxw_rpc_multi *rxw_rpc_multi_create(rxw_connection *const *connections, unsigned count);
/*
 * The same with options (NULL = none), of which deadline_ms counts: from the beginning of each call.
 * The rest is ignored; what `options` points to is copied.
 */
struct rxw_rpc_multi *rxw_rpc_multi_create_with(rxw_connection *const *connections, unsigned count,
						const struct rxw_call_options *options);
enum rxw_rpc_step rxw_rpc_multi_next(struct rxw_rpc_multi *multi, unsigned *index, rxw_call **call,
				     int32_t *code);
void rxw_rpc_multi_started(struct rxw_rpc_multi *multi, unsigned index, int32_t code);
/* As rxw_rpc_end(). */
int32_t rxw_rpc_multi_ended(struct rxw_rpc_multi *multi, unsigned index, int32_t code,
			    const struct rxw_rpc_interface *interface, unsigned function);
/* Calls that have not ended are aborted with -6. */
void rxw_rpc_multi_destroy(struct rxw_rpc_multi *multi);

/* -- server --------------------------------------------------------------------------------- */

/* The first member of the struct PACKAGE_service that the application fills. */
struct rxw_rpc_service {
	void *context; /* given to every function */
	/*
	 * Asked after the opcode has been read and before anything is decoded; `function` is its
	 * index, -1 if it is unknown. A nonzero result refuses the call with that code. May be NULL.
	 */
	int32_t (*enter)(void *context, rxw_call *call, int32_t opcode, int function);
};

/* A generated stub: decodes, calls the application's function, encodes. */
typedef int32_t (*rxw_rpc_stub_fn)(rxw_call *call, const void *service);

struct rxw_rpc_entry {
	int32_t opcode;
	unsigned function; /* index in its interface */
	rxw_rpc_stub_fn stub;
};

/* Constant, made by rxwgen; entries sorted by opcode. */
struct rxw_rpc_table {
	const struct rxw_rpc_interface *interface;
	const struct rxw_rpc_entry *entries;
	unsigned count;
	bool swap_errno; /* ENOSPC becomes 108 and EDQUOT 109 on the wire (rx-protocol 9.4) */
};

/*
 * Serve one call: read the opcode (RXW_RPC_DECODE), find its stub (RXW_RPC_OPCODE), run it, report
 * it to the observer of the endpoint. Returns the code for the handler to return.
 */
int32_t rxw_rpc_serve(rxw_call *call, const struct rxw_rpc_table *table,
		      const struct rxw_rpc_service *base, const void *service);

/* -- statistics ----------------------------------------------------------------------------- */

/* One procedure call that has ended. */
struct rxw_rpc_report {
	size_t size;
	const struct rxw_rpc_interface *interface;
	unsigned function;
	bool client; /* this side made the call; else it served it */
	int32_t code;
	const struct sockaddr *peer;
	socklen_t peer_len;
	uint64_t bytes_sent, bytes_received; /* of the streams */
	uint64_t queue_ns; /* server: from the first packet to the handler; client: 0 */
	uint64_t run_ns;   /* server: in the stub; client: from begin to end */
};

/* Runs on the thread that made or served the call, with no lock held; it must not block. */
typedef void (*rxw_rpc_observer_fn)(void *arg, const struct rxw_rpc_report *report);
struct rxw_rpc_observer {
	rxw_rpc_observer_fn report;
	void *arg;
};
/*
 * Have every procedure call on the endpoint that goes through generated stubs reported. `observer`
 * is not copied and must outlive the endpoint; NULL: no more. Any thread. -RXW_EINVAL.
 */
int rxw_endpoint_set_observer(rxw_endpoint *endpoint, const struct rxw_rpc_observer *observer);

#ifdef __cplusplus
}
#endif
#endif
