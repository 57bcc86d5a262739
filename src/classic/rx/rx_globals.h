/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Variables of classic Rx that programs assign. Those without effect here are named once in the log
 * if a program has changed them; doc/classic.md has the reasons.
 */
#ifndef RXWIRE_CLASSIC_GLOBALS_H
#define RXWIRE_CLASSIC_GLOBALS_H

#include <rx/rx.h>

/*
 * Seconds without an answer after which a peer is dead, for connections and services made later.
 * rx_Init() sets it to 12.
 */
extern int rx_connDeadTime;
#define rx_SetRxDeadTime(seconds) (rx_connDeadTime = (seconds))

/* Bytes of the receive buffer of each socket; before rx_Init(). Smaller values are ignored. */
extern int rx_UdpBufSize;
#define rx_GetMinUdpBufSize()	(64 * 1024)
#define rx_SetUdpBufSize(bytes) (((bytes) > rx_GetMinUdpBufSize()) ? (rx_UdpBufSize = (bytes)) : 0)

/*
 * More calls than this that wait for a thread: further ones are aborted with the code rx_BusyError.
 * Negative: they wait. See rx_SetBusyThreshold(), which takes effect at once; assignments take
 * effect for services made later.
 */
extern int rx_BusyThreshold;
extern int rx_BusyError;

/* Not 0: new calls are refused with RX_RESTARTING. Set it by rx_SetRxTranquil(). */
extern int rx_tranquil;

/* Not 0: generated stubs call rx_RecordCallStatistics(). */
extern int rx_enable_stats;

/* Not 0, for programs that ask whether Rx is running. No socket: those belong to the library. */
extern osi_socket rx_socket;

/* Without effect. */
extern int rx_extraPackets;	    /* packets to allocate in advance */
extern int rx_extraQuota;	    /* packets beyond the quota */
extern int rx_nPackets;		    /* packets allocated */
extern int rx_stackSize;	    /* bytes; threads have the system's default */
extern int rx_enable_hot_thread;    /* listeners that serve calls */
extern int rx_minPeerTimeout;	    /* ms */
extern int rxi_callAbortThreshhold; /* throttling of ABORTs */
extern int rxi_connAbortThreshhold;
extern int rxi_callAbortDelay; /* ms */
extern int rxi_connAbortDelay; /* ms */
extern FILE *rx_debugFile;     /* trace of packets; rxw_trace_start() records instead */
extern FILE *rxevent_debugFile;
extern int (*rxi_syscallp)(afs_uint32 a3, afs_uint32 a4, void *a5);
extern char rxi_tracename[80];

#endif
