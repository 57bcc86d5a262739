/* SPDX-License-Identifier: BSD-2-Clause */
/* Opaque types of the library, and types that several headers share. */
#ifndef RXWIRE_TYPES_H
#define RXWIRE_TYPES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

/*
 * Attributes of functions, without effect for compilers that do not know them.
 *
 * RXW_MUST_USE: compilers warn if the result is ignored, since data, an object or an error would be
 * lost. RXW_CONST: depends on the arguments alone. RXW_PURE: also on memory that they point to.
 * RXW_MALLOC: returns memory that nothing else points to.
 */
#if defined(__cplusplus) && __cplusplus >= 201703L
#define RXW_MUST_USE [[nodiscard]]
#elif !defined(__cplusplus) && defined(__STDC_VERSION__) && __STDC_VERSION__ >= 202311L
#define RXW_MUST_USE [[nodiscard]]
#elif defined(__GNUC__)
#define RXW_MUST_USE __attribute__((warn_unused_result))
#else
#define RXW_MUST_USE
#endif
#if defined(__GNUC__)
#define RXW_CONST  __attribute__((const))
#define RXW_PURE   __attribute__((pure))
#define RXW_MALLOC __attribute__((malloc))
#else
#define RXW_CONST
#define RXW_PURE
#define RXW_MALLOC
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rxw_engine rxw_engine;	      /* configuration and packet memory */
typedef struct rxw_endpoint rxw_endpoint;     /* a UDP port with its threads */
typedef struct rxw_connection rxw_connection; /* four channels between a client and a service */
typedef struct rxw_call rxw_call;	      /* a request stream and a reply stream */
typedef struct rxw_queue rxw_queue;	      /* events of many calls */
typedef struct rxw_connpool rxw_connpool;     /* client connections to one service */
typedef struct rxw_service rxw_service;	      /* a service of an endpoint */
typedef struct rxw_security rxw_security;     /* a security class with its keys or tokens */

/*
 * The code of a call or connection, which travels between both sides: 0 is success, any other
 * 32-bit number an error. error.h names codes; rxw_code_text() has their texts. Functions of the
 * library return results instead: plain ints, negative ones on failure (enum rxw_error).
 */
typedef int32_t rxw_code;

#define RXW_TIMEOUT_OFF 0xffffffffu /* a timeout in milliseconds: no limit */

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
