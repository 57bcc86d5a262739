/* SPDX-License-Identifier: BSD-2-Clause */
/* Opaque types of the library, and types that several headers share. */
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

typedef struct rxw_engine rxw_engine;	      /* configuration and packet memory */
typedef struct rxw_endpoint rxw_endpoint;     /* a UDP port with its threads */
typedef struct rxw_connection rxw_connection; /* four channels between a client and a service */
typedef struct rxw_call rxw_call;	      /* a request stream and a reply stream */
typedef struct rxw_service rxw_service;	      /* a service of an endpoint */
typedef struct rxw_security rxw_security;     /* a security class with its keys or tokens */

/*
 * The code of a call or connection, which travels between both sides: 0 is success, any other
 * 32-bit number an error. error.h names codes; rxw_code_text() has their texts. Functions of the
 * library return results instead: plain ints, negative ones on failure (enum rxw_error).
 */
typedef int32_t rxw_code;

/* The side that raised the error of a call. */
enum rxw_origin {
	RXW_ORIGIN_NONE = 0, /* no error */
	RXW_ORIGIN_LOCAL,    /* this side: timeout, limit, cancellation or abort */
	RXW_ORIGIN_PEER	     /* the peer sent an ABORT */
};

#ifdef __cplusplus
}
#endif
#endif
