/* SPDX-License-Identifier: BSD-2-Clause */
/* The functions of classic Rx. Included by rx.h. */
#ifndef RXWIRE_CLASSIC_PROTOTYPES_H
#define RXWIRE_CLASSIC_PROTOTYPES_H

#include <rx/rx.h>

#ifdef __cplusplus
extern "C" {
#endif

/* -- Start and end -------------------------------------------------------------------------------- */

/*
 * Open a UDP port (network order; 0 = any) for client calls and services. 0; RX_ADDRINUSE; another
 * negative number. A second call does nothing and returns 0.
 */
extern int rx_Init(u_int port);
extern int rx_InitHost(u_int host, u_int port);
/* End all: services, calls, connections. The process may call rx_Init() again. Not in a handler. */
extern void rx_Finalize(void);
/* Serve calls from now on. With 1 the function never returns. */
extern void rx_StartServer(int donateMe);
/* Start routine of a thread: services that exist already serve from now on. Never returns. */
extern void *rx_ServerProc(void *unused);

/* -- Settings of the process ---------------------------------------------------------------------- */

/* Send no jumbograms, which is the case anyway. */
extern void rx_SetNoJumbo(void);
/*
 * The size of packets of later connections, in bytes of UDP payload. 0, or EINVAL: not within 548
 * to 9000.
 */
extern int rx_SetMaxMTU(int mtu);
/* This has no effect: interfaces are read when they are asked for. */
extern void rx_GetIFInfo(void);
/* Packets, 1 to 255. One value serves both directions: the larger one. Later connections. */
extern void rx_SetMaxReceiveWindow(int packets);
extern void rx_SetMaxSendWindow(int packets);
extern int rx_GetMaxReceiveWindow(void);
extern int rx_GetMaxSendWindow(void);
/* This has no effect: retransmission times follow RFC 6298. */
extern void rx_SetMinPeerTimeout(int ms);
extern int rx_GetMinPeerTimeout(void);
extern void rx_StatsOnOff(int on);
extern void rx_DebugOnOff(int on);

/* The number of this thread in logs. Set takes the next one; Get returns 0 where none was taken. */
extern int rx_SetThreadNum(void);
extern int rx_GetThreadNum(void);

/* Print to standard error and abort(). */
extern void osi_Panic(char *format, ...) RXWIRE_CLASSIC_FORMAT(1, 2) RXWIRE_CLASSIC_NORETURN;

/* Like malloc() and free(); 0 bytes do not give NULL. */
extern char *osi_alloc(afs_int32 size);
extern int osi_free(char *pointer, afs_int32 size);
extern void *rxi_Alloc(size_t size);
extern void rxi_Free(void *pointer, size_t size);

/* -- Services ------------------------------------------------------------------------------------- */

/*
 * Offer a service on a port (network order; 0: that of rx_Init(); another one is opened). `classes`
 * is indexed by security index, with NULL where there is none; it and the classes must exist as
 * long as the service. The procedure returns 0, or the code of an ABORT. The same id on the same
 * port again returns the service that is there. NULL on failure: see the log. It serves after
 * rx_StartServer().
 */
extern struct rx_service *rx_NewService(u_short port, u_short id, char *name,
					struct rx_securityClass **classes, int count,
					afs_int32 (*procedure)(struct rx_call *));
extern struct rx_service *rx_NewServiceHost(afs_uint32 host, u_short port, u_short id, char *name,
					    struct rx_securityClass **classes, int count,
					    afs_int32 (*procedure)(struct rx_call *));
/* 0, or RX_INVALID_OPERATION: unknown variable. */
extern afs_int32 rx_SetSecurityConfiguration(struct rx_service *service,
					     rx_securityConfigVariables variable, void *value);

/* Behind the macros of rx.h. Threads: others may use what a service does not need. */
extern void rxc_service_min_procs(struct rx_service *service, int n);
/* Calls at a time; initially 1. */
extern void rxc_service_max_procs(struct rx_service *service, int n);
/* A client must answer a PING before its first call is served. */
extern void rxc_service_reach(struct rx_service *service, int on);
/* Calls whose data do not move for this time are aborted; 0 = never; initially 60. */
extern void rxc_service_idle(struct rx_service *service, int seconds);
extern void rxc_service_dead(struct rx_service *service, int seconds);
/* In the thread of the procedure: before it; after it; when its call has ended. */
extern void rxc_service_before(struct rx_service *service, void (*procedure)(struct rx_call *));
extern void rxc_service_after(struct rx_service *service,
			      void (*procedure)(struct rx_call *, afs_int32 code));
extern void rxc_service_post(struct rx_service *service, void (*procedure)(afs_int32 code));
/* When the first call of a connection begins; when the connection is forgotten. */
extern void rxc_service_new_connection(struct rx_service *service,
				       void (*procedure)(struct rx_connection *));
extern void rxc_service_destroy_connection(struct rx_service *service,
					   void (*procedure)(struct rx_connection *));
extern void rxc_busy(int threshold, int code);
extern void rxc_tranquil(int on);

/* -- Connections ---------------------------------------------------------------------------------- */

/*
 * A client's connection, with one reference. Never NULL, and sends nothing: what fails shows in the
 * calls. Calls leave from the port of rx_Init(). The connection takes a reference of the class.
 */
extern struct rx_connection *rx_NewConnection(afs_uint32 host, u_short port, u_short service,
					      struct rx_securityClass *klass, int index);
/* Drop a reference, or add one. The last one waits for nothing; calls in progress go on. */
extern void rx_DestroyConnection(struct rx_connection *connection);
extern void rx_GetConnection(struct rx_connection *connection);
/*
 * A connection that is shared with others who ask for the same. Never NULL. Released ones are kept
 * for the next.
 */
extern struct rx_connection *rx_GetCachedConnection(unsigned int host, unsigned short port,
						    unsigned short service,
						    struct rx_securityClass *klass, int index);
extern void rx_ReleaseCachedConnection(struct rx_connection *connection);

/* Times of later calls: no answer from the peer (at least 6); the whole call (0 = no limit). */
extern void rx_SetConnDeadTime(struct rx_connection *connection, int seconds);
extern void rx_SetConnHardDeadTime(struct rx_connection *connection, int seconds);
extern void rx_SetConnIdleDeadTime(struct rx_connection *connection, int seconds);
extern int rx_GetConnDeadTime(struct rx_connection *connection);
extern int rx_GetConnHardDeadTime(struct rx_connection *connection);
extern int rx_GetConnIdleDeadTime(struct rx_connection *connection);
/* NAT keepalives follow the library's own rule: without effect. */
extern void rx_SetConnSecondsUntilNatPing(struct rx_connection *connection, afs_int32 seconds);

/* The code with which the whole connection has failed, or 0. */
extern int rx_ConnError(struct rx_connection *connection);
extern struct rx_peer *rx_PeerOf(struct rx_connection *connection);
extern afs_uint32 rx_HostOf(struct rx_peer *peer);
extern u_short rx_PortOf(struct rx_peer *peer);
extern u_short rx_ServiceIdOf(struct rx_connection *connection);
/* A server's connection; NULL at the client's side. */
extern struct rx_service *rx_ServiceOf(struct rx_connection *connection);
extern int rx_SecurityClassOf(struct rx_connection *connection);
extern struct rx_securityClass *rx_SecurityObjectOf(const struct rx_connection *connection);
/* As on the wire, the channel bits of the id are 0. */
extern afs_uint32 rx_GetConnectionId(struct rx_connection *connection);
extern afs_uint32 rx_GetConnectionEpoch(struct rx_connection *connection);
extern int rx_IsServerConn(struct rx_connection *connection);
extern int rx_IsClientConn(struct rx_connection *connection);

/*
 * A key for values of the application, 0, 1, …; at any time. `destroy` (may be NULL) gets a value
 * that is replaced, and each one that is left when its connection goes.
 */
extern int rx_KeyCreate(rx_destructor_t destroy);
extern void rx_SetSpecific(struct rx_connection *connection, int key, void *value);
extern void *rx_GetSpecific(struct rx_connection *connection, int key);
extern void rx_SetServiceSpecific(struct rx_service *service, int key, void *value);
extern void *rx_GetServiceSpecific(struct rx_service *service, int key);

/* -- Calls ---------------------------------------------------------------------------------------- */

/* Waits for a free channel. Never NULL: on a connection that has failed the call has too. */
extern struct rx_call *rx_NewCall(struct rx_connection *connection);
/*
 * Client: with 0, end the request, wait for the reply, discard what was not read of it, and return
 * 0 or the code of the call, where ENOSPC and EDQUOT stand for 108 and 109. Otherwise abort the
 * call with `code`, and return the code that it had before, or `code`.
 */
extern afs_int32 rx_EndCall(struct rx_call *call, afs_int32 code);
extern struct rx_connection *rx_ConnectionOf(struct rx_call *call);
/* The code so far, as on the wire; 0. */
extern int rx_Error(struct rx_call *call);
/* The status byte of the packets of each side. */
extern int rx_GetRemoteStatus(struct rx_call *call);
extern int rx_GetLocalStatus(struct rx_call *call);
extern void rx_SetLocalStatus(struct rx_call *call, int status);
/* Belongs to the throttling of ABORTs: 0, and without effect. */
extern int rx_GetCallAbortCode(struct rx_call *call);
extern void rx_SetCallAbortCode(struct rx_call *call, int code);
/*
 * Abort a call of a server whose procedure runs; reads and writes fail from then on. The procedure
 * must not have returned. Any thread.
 */
extern void rx_InterruptCall(struct rx_call *call, afs_int32 code);
extern void rxi_CallError(struct rx_call *call, afs_int32 code);
/*
 * The next packets to read and to send, and when something was last sent and received, as time().
 * Each pointer may be NULL. While the call exists: any thread.
 */
extern void rx_GetCallStatus(struct rx_call *call, afs_int32 *readNext, afs_int32 *transmitNext,
			     int *lastSendTime, int *lastReceiveTime);

/*
 * Read `n` bytes. Waits for all of them. Fewer: the end of the stream or an error, rx_Error(). At a
 * client the first read ends the request. rx_Read32() does not convert the byte order.
 */
extern int rx_ReadProc(struct rx_call *call, char *buffer, int n);
extern int rx_ReadProc32(struct rx_call *call, afs_int32 *value);
/*
 * Lend received data: at most `n` bytes in at most `most` slices; their number in *count. Waits for
 * the first byte. They are valid until the next function on the call. Returns the bytes, 0 at the
 * end or on an error.
 */
extern int rx_ReadvProc(struct rx_call *call, struct iovec *iov, int *count, int most, int n);
/*
 * Write `n` bytes. Waits while the window is full. `n`, or 0 on an error, also in the wrong
 * direction: at a client after the first read.
 */
extern int rx_WriteProc(struct rx_call *call, char *buffer, int n);
extern int rx_WriteProc32(struct rx_call *call, afs_int32 *value);
/*
 * Room in the packets to send, at most `n` bytes in at most `most` slices. Returns the bytes, 0 on
 * an error. Fill them, then call rx_Writev() with as many bytes; or leave the call alone until it
 * ends.
 */
extern int rx_WritevAlloc(struct rx_call *call, struct iovec *iov, int *count, int most, int n);
extern int rx_WritevProc(struct rx_call *call, struct iovec *iov, int count, int n);
/* Send what was written so far. At a client this ends the request. */
extern void rx_FlushWrite(struct rx_call *call);

/* -- Security ------------------------------------------------------------------------------------- */

/* Drop a reference of a class, or add one. 0. */
extern int rxs_Release(struct rx_securityClass *klass);
extern struct rx_securityClass *rxs_Ref(struct rx_securityClass *klass);

/* -- Addresses of this host ----------------------------------------------------------------------- */

/*
 * The IPv4 addresses of the interfaces, at most `most`, without those of 127.0.0.0/16; their masks
 * and the MTUs of the interfaces. All in network order. Returns their number, or -1, see errno.
 */
extern int rx_getAllAddr(afs_uint32 *addresses, int most);
extern int rx_getAllAddrMaskMtu(afs_uint32 addresses[], afs_uint32 masks[], afs_uint32 mtus[],
				int most);

/* -- Statistics ----------------------------------------------------------------------------------- */

/*
 * The counters of all ports, to be freed by rx_FreeStatistics(), which sets the pointer to NULL.
 * Members without a counterpart are 0; doc/classic.md lists them. NULL without memory.
 */
extern struct rx_statistics *rx_GetStatistics(void);
extern void rx_FreeStatistics(struct rx_statistics **statistics);
extern void rx_PrintStats(FILE *file);
extern void rx_PrintTheseStats(FILE *file, struct rx_statistics *statistics, int size,
			       afs_int32 free_packets, char version);
extern void rx_PrintPeerStats(FILE *file, struct rx_peer *peer);

/*
 * Count a call of a generated stub. A client calls it after rx_EndCall(), a server before the reply
 * ends.
 */
extern void rx_RecordCallStatistics(struct rx_call *call, unsigned int interface_id,
				    unsigned int function, unsigned int functions, int is_server);
/*
 * The counters of the process, or of the 1024 peers with the latest calls, as 28 words for each
 * function of each interface that was called: struct rx_function_entry_v1 with the high word first.
 * *statistics is malloc()ed and has *size bytes for *count functions; it is NULL if there are none.
 * 0, or ENOMEM.
 */
extern int rx_RetrieveProcessRPCStats(afs_uint32 caller_version, afs_uint32 *version,
				      afs_uint32 *seconds, afs_uint32 *microseconds, size_t *size,
				      afs_uint32 *count, afs_uint32 **statistics);
extern int rx_RetrievePeerRPCStats(afs_uint32 caller_version, afs_uint32 *version,
				   afs_uint32 *seconds, afs_uint32 *microseconds, size_t *size,
				   afs_uint32 *count, afs_uint32 **statistics);
extern void rx_FreeRPCStats(afs_uint32 *statistics, size_t size);
extern int rx_queryProcessRPCStats(void);
extern int rx_queryPeerRPCStats(void);
extern void rx_enableProcessRPCStats(void);
extern void rx_enablePeerRPCStats(void);
extern void rx_disableProcessRPCStats(void);
extern void rx_disablePeerRPCStats(void);
/* Bits: AFS_RX_STATS_CLEAR_... */
extern void rx_clearProcessRPCStats(afs_uint32 what);
extern void rx_clearPeerRPCStats(afs_uint32 what);
/* A predicate that says which callers may read and change statistics, and its answer. */
extern void rx_SetRxStatUserOk(int (*allowed)(struct rx_call *call));
extern int rx_RxStatUserOk(struct rx_call *call);

/* -- The client side of rxdebug ------------------------------------------------------------------- */

/*
 * Ask a server over a UDP socket of the program. Waits up to 31 s for the answer, which must come
 * from this address and port. Members that an older server does not know are 0. Returns the bytes
 * of the answer; -1 without one or with one that is too short, see errno; RX_DEBUGI_BADTYPE if the
 * server does not know what is asked for. Then rx_GetServerStats() returns 8, and the first two
 * members are RX_DEBUGI_BADTYPE. A socket must not be used by two threads at a time.
 *
 * *supported: RX_SERVER_DEBUG_..., of rx_GetServerDebug(); 0 of the others. `known` is what that
 * function has found. *next counts the entries, from 0 on; with `all` 0 the server lists only
 * connections that have calls in progress. The text of a version ends with a NUL.
 */
extern afs_int32 rx_GetServerDebug(osi_socket socket, afs_uint32 host, afs_uint16 port,
				   struct rx_debugStats *statistics, afs_uint32 *supported);
extern afs_int32 rx_GetServerStats(osi_socket socket, afs_uint32 host, afs_uint16 port,
				   struct rx_statistics *statistics, afs_uint32 *supported);
extern afs_int32 rx_GetServerVersion(osi_socket socket, afs_uint32 host, afs_uint16 port,
				     size_t size, char *version);
extern afs_int32 rx_GetServerConnections(osi_socket socket, afs_uint32 host, afs_uint16 port,
					 afs_int32 *next, int all, afs_uint32 known,
					 struct rx_debugConn *connection, afs_uint32 *supported);
extern afs_int32 rx_GetServerPeers(osi_socket socket, afs_uint32 host, afs_uint16 port,
				   afs_int32 *next, afs_uint32 known, struct rx_debugPeer *peer,
				   afs_uint32 *supported);

#ifdef __cplusplus
}
#endif
#endif
