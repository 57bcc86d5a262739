/* SPDX-License-Identifier: BSD-2-Clause */
/* Result numbers of the library and the error codes that calls carry on the wire. */
#ifndef RXWIRE_ERROR_H
#define RXWIRE_ERROR_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Functions return 0 or a count on success and the negative of one of these on failure. They never
 * travel on the wire and never mix with the code of a call.
 */
enum rxw_error {
	RXW_EINVAL = 1, /* an argument is out of range or of the wrong kind */
	RXW_ENOMEM,	/* no memory, or a memory limit of the configuration is reached */
	RXW_EADDRINUSE, /* the port is taken by another program */
	RXW_ESYS,	/* a system call failed; errno says why */
	RXW_ECALL,	/* the call has ended with an error: rxw_call_error() tells which */
	RXW_EAGAIN,	/* a non-blocking call object cannot go on now */
	RXW_EEOF,	/* the stream ended before the bytes that were asked for */
	/* not allowed in this state (writing a request after reading its reply, say) */
	RXW_ESTATE,
	RXW_EDEADLK,   /* a callback or handler would have to wait where others wait for it */
	RXW_ESTOPPED,  /* the endpoint or engine is stopping */
	RXW_ETIMEDOUT, /* a limit of time passed */
	RXW_ENOTSUP,   /* not supported by this build or this kernel */
	RXW_ELIMIT,    /* a limit on objects (connections, calls, services) is reached */
	RXW_ENAME,     /* no option of that name */
	RXW_EVALUE,    /* an option's value does not parse or is out of range */
	RXW_EDECODE,   /* the bytes received are no valid encoding */
	RXW_ENOKEY     /* there is no such key, ticket or token */
};

/* Codes of a call: the ABORT code of the peer, or one of these (rx-protocol 9.4). */
#define RXW_CALL_DEAD	      (-1) /* no answer within the dead time */
#define RXW_INVALID_OPERATION (-2) /* unknown service or security class */
#define RXW_CALL_TIMEOUT      (-3) /* idle, hard or deadline timeout */
#define RXW_CALL_EOF	      (-4) /* end of stream where data was expected */
#define RXW_PROTOCOL_ERROR    (-5) /* malformed or impossible packet */
#define RXW_USER_ABORT	      (-6) /* application abort without a better code, cancellation */
#define RXW_CALL_ADDRINUSE    (-7)
#define RXW_CALL_MSGSIZE      (-8)
#define RXW_RESTARTING	      (-100) /* the server is stopping or restarting */
#define RXW_NETWORK_RESET \
	(-101) /* local only: a NAT between lost the mapping; retry on a new connection */

/* Codes of the RPC layer (rx-protocol 9.5). */
#define RXW_RPC_CC_MARSHAL   (-450)
#define RXW_RPC_CC_UNMARSHAL (-451)
#define RXW_RPC_SS_MARSHAL   (-452)
#define RXW_RPC_SS_UNMARSHAL (-453)
#define RXW_RPC_DECODE	     (-454)
#define RXW_RPC_OPCODE	     (-455)

/* Text for a result number, with either sign. Never NULL; static storage; any thread. */
const char *rxw_strerror(int result);

/*
 * Text for the code of a call: Rx, RPC, VL, volume, rxkad, RXGK and portable errno (UAE) codes, and
 * small positive numbers as errno. Never NULL; static storage; "unknown code" for the rest.
 */
const char *rxw_code_text(int32_t code);

/*
 * Portable (UAE) code for a Linux errno and back; 0 maps to 0, unknown ones stay as they are. 108 and
 * 109, which servers of AFS send for a full disk and a used quota, become ENOSPC and EDQUOT.
 */
int32_t rxw_code_from_errno(int err);
int rxw_code_to_errno(int32_t code);

#ifdef __cplusplus
}
#endif
#endif
