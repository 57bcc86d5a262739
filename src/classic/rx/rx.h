/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The interface of classic Rx on librxwire, for programs with POSIX threads. Such a program is
 * compiled and linked without a change: pkg-config rxwire-classic. doc/classic.md says what
 * differs.
 *
 * IPv4 addresses and ports are in network byte order everywhere, service ids are not. Times are
 * seconds. Any thread may call any function; a call belongs to one thread at a time, except where a
 * function says otherwise.
 */
#ifndef RXWIRE_CLASSIC_RX_H
#define RXWIRE_CLASSIC_RX_H

#include <rx/rx_types.h>

#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <rx/rx_pthread.h>
#include <rx/rx_user.h>

#if defined(RXWIRE_CLASSIC_WITH_OPENAFS) && __has_include(<opr/queue.h>)
#	include <opr/queue.h>
#endif

#include <rx/rx_clock.h>
#include <rx/rx_event.h>
#include <rx/rx_misc.h>
#include <rx/rx_multi.h>
#include <rx/rx_null.h>

struct rx_call;
struct rx_connection;
struct rx_packet;
struct rx_peer;
struct rx_securityClass;
struct rx_service;

/* -- Codes ---------------------------------------------------------------------------------------- */

#define RX_CALL_DEAD	     (-1)   /* no answer within the dead time */
#define RX_INVALID_OPERATION (-2)   /* unknown service, or a call used in the wrong way */
#define RX_CALL_TIMEOUT	     (-3)   /* idle or hard time */
#define RX_EOF		     (-4)   /* the stream ended where data was expected */
#define RX_PROTOCOL_ERROR    (-5)   /* malformed or impossible packet */
#define RX_USER_ABORT	     (-6)   /* given up by the program */
#define RX_ADDRINUSE	     (-7)   /* the port is in use; of rx_Init() */
#define RX_MSGSIZE	     (-8)   /* a packet is too large for the path */
#define RX_RESTARTING	     (-100) /* the server is starting or stopping */

/* -- Limits and constants ------------------------------------------------------------------------- */

#define RX_MAXCALLS	      4 /* calls at a time on a connection */
#define RX_CIDSHIFT	      2
#define RX_CHANNELMASK	      (RX_MAXCALLS - 1)
#define RX_CIDMASK	      (~RX_CHANNELMASK)
#define RX_MAX_SERVICES	      20
#define RX_MAXACKS	      255
#define ADDRSPERSITE	      16
#define RX_IDLE_DEAD_TIME     60
#define RX_DEFAULT_DEAD_TIME  12
#define RX_MINDEADTIME	      6
#define RX_DEFAULT_STACK_SIZE 16000
#define RX_PROCESS_PRIORITY   0
#define RX_WAIT		      1
#define RX_DONTWAIT	      0
/*
 * The most slices that rx_Readv() and rx_WritevAlloc() hand out. A slice is at most a packet, so
 * this is about 370 KB for one preadv() or pwritev().
 */
#define RX_MAXIOVECS 256
#define RX_MAXWVECS  (RX_MAXIOVECS - 1)

/* Classes of packets, of statistics. */
#define RX_PACKET_CLASS_RECEIVE	  0
#define RX_PACKET_CLASS_SEND	  1
#define RX_PACKET_CLASS_SPECIAL	  2
#define RX_PACKET_CLASS_RECV_CBUF 3
#define RX_PACKET_CLASS_SEND_CBUF 4
#define RX_N_PACKET_CLASSES	  5

/* Ends of a connection. */
#define RX_CLIENT_CONNECTION 0
#define RX_SERVER_CONNECTION 1

/* Indices of security classes on the wire. */
typedef enum {
	RX_SECIDX_NULL = 0, /* none */
	RX_SECIDX_VAB = 1,  /* unused */
	RX_SECIDX_KAD = 2,  /* rxkad */
	RX_SECIDX_KAE = 3,  /* rxkad, always encrypted */
	RX_SECIDX_GK = 4,   /* rxgk */
	RX_SECIDX_K5 = 5    /* unused */
} rx_securityIndex;

/* The settings of rx_SetSecurityConfiguration(). */
typedef enum {
	RXS_CONFIG_FLAGS /* bits, in the pointer itself */
} rx_securityConfigVariables;
#define RXS_CONFIG_FLAGS_DISABLE_DOTCHECK 0x01 /* rxkad accepts names with dots */

#define RXS_Close(object)		  rxs_Release(object)

#define RX_STATS_SERVICE_ID		  409
#define RX_STATS_RETRIEVAL_VERSION	  1
#define RX_STATS_RETRIEVAL_FIRST_EDITION  1

#include <rx/rx_debug.h>

/* 1: the address, in host byte order, is one of 127.0.0.0/16. */
static inline int rx_IsLoopbackAddr(afs_uint32 address)
{
	return (address & 0xffff0000) == 0x7f000000;
}

typedef void (*rx_destructor_t)(void *);

/* A service. The rest is private. */
struct rx_service {
	osi_socket socket; /* OSI_NULLSOCKET: sockets belong to the library */
	struct classic_service *internal;
};

#include <rx/rx_prototypes.h>

/* -- Settings of a service ------------------------------------------------------------------------ */

/* After rx_NewService(), also while it serves; rx_prototypes.h describes them. */
#define rx_SetMinProcs(service, n)		rxc_service_min_procs(service, n)
#define rx_SetMaxProcs(service, n)		rxc_service_max_procs(service, n)
#define rx_SetCheckReach(service, on)		rxc_service_reach(service, on)
#define rx_SetIdleDeadTime(service, seconds)	rxc_service_idle(service, seconds)
#define rx_SetServiceDeadTime(service, seconds) rxc_service_dead(service, seconds)
#define rx_SetBeforeProc(service, proc)		rxc_service_before(service, proc)
#define rx_SetAfterProc(service, proc)		rxc_service_after(service, proc)
#define rx_SetPostProc(service, proc)		rxc_service_post(service, proc)
#define rx_SetNewConnProc(service, proc)	rxc_service_new_connection(service, proc)
#define rx_SetDestroyConnProc(service, proc)	rxc_service_destroy_connection(service, proc)
/* The largest one wins; without effect here. */
#define rx_SetStackSize(service, bytes) \
	((void)(service), rx_stackSize = ((bytes) > rx_stackSize ? (bytes) : rx_stackSize))

/* -- Settings of the process ---------------------------------------------------------------------- */

/*
 * More calls than `n` that wait for a thread of a service: further ones are aborted with `code`.
 * Negative `n`: they wait.
 */
#define rx_SetBusyThreshold(n, code) rxc_busy(n, code)
/* Refuse new calls with RX_RESTARTING, or accept them again. Calls that run go on. */
#define rx_SetRxTranquil()   rxc_tranquil(1)
#define rx_ClearRxTranquil() rxc_tranquil(0)
/* ABORTs are limited otherwise: without effect. */
#define rx_SetCallAbortThreshold(n) (rxi_callAbortThreshhold = (n))
#define rx_SetConnAbortThreshold(n) (rxi_connAbortThreshhold = (n))
#define rx_SetCallAbortDelay(ms)    (rxi_callAbortDelay = (ms))
#define rx_SetConnAbortDelay(ms)    (rxi_connAbortDelay = (ms))
#define rx_EnableHotThread()	    (rx_enable_hot_thread = 1)
#define rx_DisableHotThread()	    (rx_enable_hot_thread = 0)

/* -- Streams -------------------------------------------------------------------------------------- */

#define rx_Read(call, buffer, n)	    rx_ReadProc(call, buffer, n)
#define rx_Read32(call, value)		    rx_ReadProc32(call, value)
#define rx_Readv(call, iov, count, most, n) rx_ReadvProc(call, iov, count, most, n)
#define rx_Write(call, buffer, n)	    rx_WriteProc(call, buffer, n)
#define rx_Write32(call, value)		    rx_WriteProc32(call, value)
#define rx_Writev(call, iov, count, n)	    rx_WritevProc(call, iov, count, n)
#define rx_PutConnection(connection)	    rx_DestroyConnection(connection)

/* Many programs take these from rx.h. */
#include <rx/rx_globals.h>

#endif
