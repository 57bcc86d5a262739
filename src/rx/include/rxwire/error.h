/* SPDX-License-Identifier: BSD-2-Clause */
/* Results of functions, and codes of calls. */
#ifndef RXWIRE_ERROR_H
#define RXWIRE_ERROR_H

#include <stdint.h>

#include <rxwire/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Functions return 0 or a count on success, and the negative of one of these numbers on failure.
 * Results are never sent to a peer. Do not mix them with the codes of calls.
 */
enum rxw_error {
	RXW_EINVAL = 1, /* an argument is invalid or out of range */
	RXW_ENOMEM,	/* memory is exhausted, or a configured memory limit is reached */
	RXW_EADDRINUSE, /* another program uses the port */
	RXW_ESYS,	/* a system call failed; errno is set */
	RXW_ECALL,	/* the call has failed; rxw_call_error() returns its code */
	RXW_EAGAIN,	/* a non-blocking call cannot proceed now */
	RXW_EEOF,	/* the stream ended too early */
	/* not permitted in this state, for example writing a request after reading the reply */
	RXW_ESTATE,
	RXW_EDEADLK,   /* a callback or handler would have to wait for its own thread */
	RXW_ESTOPPED,  /* the endpoint or engine is stopping */
	RXW_ETIMEDOUT, /* a time limit has passed */
	RXW_ENOTSUP,   /* not supported by this build or this kernel */
	RXW_ELIMIT,    /* a limit on objects (connections, calls, services) is reached */
	RXW_ENAME,     /* no tunable has this name */
	RXW_EVALUE,    /* the value of a tunable is malformed or out of range */
	RXW_EDECODE,   /* the data received is not a valid encoding */
	RXW_ENOKEY     /* no such key, ticket or token exists */
};

/*
 * Codes of calls (rxw_code): the code of the peer's ABORT, which may be any number, or one of these
 * (rx-protocol 9.4). rxw_call_end() tells which side raised it.
 */
#define RXW_CALL_DEAD	      (-1)   /* no answer within the dead time */
#define RXW_INVALID_OPERATION (-2)   /* unknown service or security class */
#define RXW_CALL_TIMEOUT      (-3)   /* idle timeout, hard timeout or deadline */
#define RXW_CALL_EOF	      (-4)   /* the stream ended where data was expected */
#define RXW_PROTOCOL_ERROR    (-5)   /* malformed or impossible packet */
#define RXW_USER_ABORT	      (-6)   /* cancellation, or an abort without a more specific code */
#define RXW_CALL_ADDRINUSE    (-7)   /* the port is in use */
#define RXW_CALL_MSGSIZE      (-8)   /* a packet is too large for the path */
#define RXW_RESTARTING	      (-100) /* the server is stopping or restarting */
#define RXW_NETWORK_RESET     (-101) /* local: a NAT lost its mapping; retry on a new connection */

/* Codes of the RPC layer (rx-protocol 9.5). */
#define RXW_RPC_CC_MARSHAL   (-450) /* the client could not encode the arguments */
#define RXW_RPC_CC_UNMARSHAL (-451) /* the client could not decode the results */
#define RXW_RPC_SS_MARSHAL   (-452) /* the server could not encode the results */
#define RXW_RPC_SS_UNMARSHAL (-453) /* the server could not decode the arguments */
#define RXW_RPC_DECODE	     (-454) /* the server could not read the opcode */
#define RXW_RPC_OPCODE	     (-455) /* the opcode is unknown */

/* Text for a result of a function, given with either sign. Static, never NULL. Any thread. */
RXW_CONST const char *rxw_strerror(int result);

/*
 * Text for the code of a call, if the side that raised it is unknown: Rx, RPC, volume, volume
 * location, protection, ubik, rxkad and rxgk codes, portable errno (UAE) codes, and small positive
 * numbers as errno. Static, never NULL; "unknown code" for other codes. Any thread.
 */
RXW_CONST const char *rxw_code_text(rxw_code code);

/*
 * The same if the side is known, for example from rxw_call_end() or rxw_rpc_origin(). Codes such as
 * -1 mean another thing if the peer sent them: its handler may have returned any number.
 */
RXW_CONST const char *rxw_code_text_from(rxw_code code, enum rxw_origin origin);

/*
 * Convert a Linux errno value to its portable (UAE) code, and back (rx-protocol 9.4). 0 is
 * converted to 0; unknown values are returned unchanged. rxw_code_to_errno() also converts 108
 * and 109, which AFS servers send for a full disk and an exceeded quota, to ENOSPC and EDQUOT.
 * Any thread.
 */
RXW_CONST rxw_code rxw_code_from_errno(int err);
RXW_CONST int rxw_code_to_errno(rxw_code code);

#ifdef __cplusplus
}
#endif
#endif
