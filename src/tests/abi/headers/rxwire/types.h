/* SPDX-License-Identifier: BSD-2-Clause */
/* Opaque objects of the library and the small values that several headers share. */
#ifndef RXWIRE_TYPES_H
#define RXWIRE_TYPES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rxw_engine rxw_engine;         /* threads, timers, buffers */
typedef struct rxw_endpoint rxw_endpoint;     /* a UDP port, client or server or both */
typedef struct rxw_connection rxw_connection; /* client end: four channels to one service */
typedef struct rxw_call rxw_call;             /* one request stream and one reply stream */
typedef struct rxw_service rxw_service;       /* what a server offers under one service id */
typedef struct rxw_security rxw_security;     /* a security class with its keys */

/* Who raised the error of a call. */
enum rxw_origin {
	RXW_ORIGIN_NONE = 0, /* no error */
	RXW_ORIGIN_LOCAL,    /* timeouts, limits, cancellation, this side's abort */
	RXW_ORIGIN_PEER      /* an ABORT of the peer */
};

#ifdef __cplusplus
}
#endif
#endif
