/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Statistics, and the packets of rxdebug. Their structures are wire formats, with all numbers in
 * network byte order. Results of functions are in host order, except for addresses and ports.
 * Included by rx.h.
 */
#ifndef RXWIRE_CLASSIC_DEBUG_H
#define RXWIRE_CLASSIC_DEBUG_H

#include <rx/rx_clock.h>
#include <rx/rx_types.h>

/* -- States of connections and calls -------------------------------------------------------------- */

/* Channels of a connection in these structures. */
#define RX_DEBUG_CHANNELS 4

/* callState */
#define RX_STATE_NOTINIT 0 /* no call so far */
#define RX_STATE_PRECALL 1 /* at a server: has arrived, waits for a thread */
#define RX_STATE_ACTIVE	 2 /* in progress */
#define RX_STATE_DALLY	 3 /* has ended, its last acknowledgement may be repeated */
#define RX_STATE_HOLD	 4 /* at a server: the reply is not yet acknowledged */
#define RX_STATE_RESET	 5 /* is being ended */

/* callMode */
#define RX_MODE_SENDING	  1
#define RX_MODE_RECEIVING 2
#define RX_MODE_ERROR	  3 /* the call has failed */
#define RX_MODE_EOF	  4 /* all was sent or read */

/* callFlags */
#define RX_CALL_READER_WAIT	  1  /* a thread waits for data */
#define RX_CALL_WAIT_WINDOW_ALLOC 2  /* a thread waits for the window to fill packets */
#define RX_CALL_WAIT_WINDOW_SEND  4  /* a thread waits for the window to send packets */
#define RX_CALL_WAIT_PACKETS	  8  /* a thread waits for memory */
#define RX_CALL_WAIT_PROC	  16 /* waits for a thread */
#define RX_CALL_RECEIVE_DONE	  32 /* all data were received */
#define RX_CALL_CLEARED		  64 /* received data were dropped before a thread was free */

/* callOther */
#define RX_OTHER_IN  1 /* received data are waiting to be read */
#define RX_OTHER_OUT 2 /* data are waiting to be sent or acknowledged */

/* flags of a connection */
#define RX_CONN_MAKECALL_WAITING   1  /* a thread waits for a channel */
#define RX_CONN_DESTROY_ME	   2  /* ends with its last call */
#define RX_CONN_USING_PACKET_CKSUM 4  /* packets have checksums */
#define RX_CONN_KNOW_WINDOW	   8  /* both sides announce their windows */
#define RX_CONN_RESET		   16 /* is being removed */
#define RX_CONN_BUSY		   32 /* in use, is not removed */
#define RX_CONN_ATTACHWAIT	   64 /* the peer must answer a PING first */

/* Types of security objects in rx_securityObjectStats, which are not those of the wire. */
enum {
	RX_SECTYPE_UNK = 0, /* unknown */
	RX_SECTYPE_NULL = 1,
	RX_SECTYPE_VAB = 2,
	RX_SECTYPE_KAD = 3,
	RX_SECTYPE_GK = 4
};

/* -- Statistics of packets ------------------------------------------------------------------------ */

/* The names of the types of packets, from type 1 on, to initialize an array of strings. */
#define RX_N_PACKET_TYPES 13
#define RX_PACKET_TYPES                                                                     \
	{                                                                                   \
		"data", "ack", "busy", "abort", "ackall", "challenge", "response", "debug", \
			"params", "unused", "unused", "unused", "version"                   \
	}

/* Element n of an array by type is of packets of type n + 1. */
struct rx_statistics {
	int packetRequests;	     /* times that a packet was allocated */
	int receivePktAllocFailures; /* times that there was no memory for one */
	int sendPktAllocFailures;
	int specialPktAllocFailures;
	int socketGreedy;      /* sockets have larger buffers than usual */
	int bogusPacketOnRead; /* malformed packets */
	int bogusHost;	       /* the address of the latest one, network order */
	int noPacketOnRead;    /* reads without a packet */
	int noPacketBuffersOnRead;
	int selects; /* waits for a packet */
	int sendSelects;
	int packetsRead[RX_N_PACKET_TYPES];
	int dataPacketsRead;
	int ackPacketsRead;
	int dupPacketsRead;
	int spuriousPacketsRead; /* of no call that is in progress */
	int packetsSent[RX_N_PACKET_TYPES];
	int ackPacketsSent;
	int pingPacketsSent;
	int abortPacketsSent;
	int busyPacketsSent;
	int dataPacketsSent;
	int dataPacketsReSent;
	int dataPacketsPushed; /* of these, because later packets were acknowledged */
	int ignoreAckedPacket;
	struct clock totalRtt; /* sum of the samples of round-trip times */
	struct clock minRtt;
	struct clock maxRtt;
	int nRttSamples;
	int nServerConns;
	int nClientConns;
	int nPeerStructs;
	int nCallStructs;
	int nFreeCallStructs;
	int netSendFailures;
	afs_int32 fatalErrors;
	int ignorePacketDally; /* packets of calls that have ended */
	int receiveCbufPktAllocFailures;
	int sendCbufPktAllocFailures;
	int nBusies; /* calls refused because of too many waiting ones */
	int spares[4];
};

/* -- Packets of rxdebug --------------------------------------------------------------------------- */

/* A request: what is asked for, and the number of a connection or peer in its list. */
struct rx_debugIn {
	afs_int32 type;
	afs_int32 index;
};
#define RX_DEBUGI_GETSTATS   1 /* struct rx_debugStats */
#define RX_DEBUGI_GETCONN    2 /* struct rx_debugConn, only of those with calls in progress */
#define RX_DEBUGI_GETALLCONN 3
#define RX_DEBUGI_RXSTATS    4 /* struct rx_statistics */
#define RX_DEBUGI_GETPEER    5 /* struct rx_debugPeer */
/* Both words of the answer to a request of unknown type. */
#define RX_DEBUGI_BADTYPE (-8)

/* Versions of the formats, in rx_debugStats, and the first one that has a feature. */
#define RX_DEBUGI_VERSION_MINIMUM	   ('L')
#define RX_DEBUGI_VERSION		   ('S')
#define RX_DEBUGI_VERSION_W_SECSTATS	   ('L')
#define RX_DEBUGI_VERSION_W_GETALLCONN	   ('M')
#define RX_DEBUGI_VERSION_W_RXSTATS	   ('M')
#define RX_DEBUGI_VERSION_W_UNALIGNED_CONN ('L') /* the last one with struct rx_debugConn_vL */
#define RX_DEBUGI_VERSION_W_WAITERS	   ('N')
#define RX_DEBUGI_VERSION_W_IDLETHREADS	   ('O')
#define RX_DEBUGI_VERSION_W_NEWPACKETTYPES ('P')
#define RX_DEBUGI_VERSION_W_GETPEER	   ('Q')
#define RX_DEBUGI_VERSION_W_WAITED	   ('R')
#define RX_DEBUGI_VERSION_W_PACKETS	   ('S')

/* The features of a server, by the version of its answers. */
#define RX_SERVER_DEBUG_SEC_STATS    0x1
#define RX_SERVER_DEBUG_ALL_CONN     0x2
#define RX_SERVER_DEBUG_RX_STATS     0x4
#define RX_SERVER_DEBUG_WAITER_CNT   0x8
#define RX_SERVER_DEBUG_IDLE_THREADS 0x10
#define RX_SERVER_DEBUG_OLD_CONN     0x20 /* struct rx_debugConn_vL */
#define RX_SERVER_DEBUG_NEW_PACKETS  0x40
#define RX_SERVER_DEBUG_ALL_PEER     0x80
#define RX_SERVER_DEBUG_WAITED_CNT   0x100
#define RX_SERVER_DEBUG_PACKETS_CNT  0x200

struct rx_debugStats {
	afs_int32 nFreePackets;
	afs_int32 packetReclaims;
	afs_int32 callsExecuted; /* at the server */
	char waitingForPackets;	 /* not 0: memory is used up */
	char usedFDs;		 /* sockets */
	char version;		 /* RX_DEBUGI_VERSION... */
	char spare1;
	afs_int32 nWaiting; /* calls that wait for a thread */
	afs_int32 idleThreads;
	afs_int32 nWaited; /* calls that have waited for a thread so far */
	afs_int32 nPackets;
	afs_int32 spare2[6];
};

struct rx_securityObjectStats {
	char type;  /* RX_SECTYPE_... */
	char level; /* of protection: 0, 1, 2 */
	char sparec[10];
	afs_int32 flags;    /* bits: 1 no state yet, 2 authenticated, 4 expired, 8 checksums */
	afs_uint32 expires; /* Unix time, or 0 */
	afs_uint32 packetsReceived;
	afs_uint32 packetsSent;
	afs_uint32 bytesReceived;
	afs_uint32 bytesSent;
	short spares[4];
	afs_int32 sparel[8];
};

/* A connection, of servers of version L and older. */
struct rx_debugConn_vL {
	afs_uint32 host;
	afs_int32 cid;
	afs_int32 serial;
	afs_int32 callNumber[RX_DEBUG_CHANNELS];
	afs_int32 error;
	short port;
	char flags;
	char type;
	char securityIndex;
	char callState[RX_DEBUG_CHANNELS];
	char callMode[RX_DEBUG_CHANNELS];
	char callFlags[RX_DEBUG_CHANNELS];
	char callOther[RX_DEBUG_CHANNELS];
	struct rx_securityObjectStats secStats;
	afs_int32 sparel[10];
};

/* A connection. The id 0xffffffff marks the end of the list. */
struct rx_debugConn {
	afs_uint32 host; /* of the peer, network order */
	afs_int32 cid;
	afs_int32 serial;			 /* of the latest packet sent */
	afs_int32 callNumber[RX_DEBUG_CHANNELS]; /* of the latest calls */
	afs_int32 error;
	short port;	    /* of the peer, network order */
	char flags;	    /* RX_CONN_... */
	char type;	    /* RX_CLIENT_CONNECTION, RX_SERVER_CONNECTION */
	char securityIndex; /* RX_SECIDX_... */
	char sparec[3];
	char callState[RX_DEBUG_CHANNELS]; /* RX_STATE_... */
	char callMode[RX_DEBUG_CHANNELS];  /* RX_MODE_... */
	char callFlags[RX_DEBUG_CHANNELS]; /* RX_CALL_... */
	char callOther[RX_DEBUG_CHANNELS]; /* RX_OTHER_... */
	struct rx_securityObjectStats secStats;
	afs_int32 epoch;
	afs_int32 natMTU;
	afs_int32 sparel[9];
};

/* A peer. The address 0xffffffff marks the end of the list. */
struct rx_debugPeer {
	afs_uint32 host; /* network order */
	u_short port;	 /* network order */
	u_short ifMTU;
	afs_uint32 idleWhen; /* Unix time */
	short refCount;
	u_char burstSize;
	u_char burst;
	struct clock burstWait;
	afs_int32 rtt;	   /* in 1/8 ms */
	afs_int32 rtt_dev; /* in 1/4 ms */
	struct clock timeout;
	afs_int32 nSent; /* packets */
	afs_int32 reSends;
	afs_int32 inPacketSkew;
	afs_int32 outPacketSkew;
	afs_int32 rateFlag;
	u_short natMTU;
	u_short maxMTU;
	u_short maxDgramPackets;
	u_short ifDgramPackets;
	u_short MTU;
	u_short cwind; /* packets */
	u_short nDgramPackets;
	u_short congestSeq;
	afs_hyper_t bytesSent;
	afs_hyper_t bytesReceived;
	afs_int32 sparel[10];
};

/* -- Statistics of procedure calls ---------------------------------------------------------------- */

/* The counters that rx_clearProcessRPCStats() and rx_clearPeerRPCStats() set back. */
#define AFS_RX_STATS_CLEAR_ALL		     0xffffffff
#define AFS_RX_STATS_CLEAR_INVOCATIONS	     0x1
#define AFS_RX_STATS_CLEAR_BYTES_SENT	     0x2
#define AFS_RX_STATS_CLEAR_BYTES_RCVD	     0x4
#define AFS_RX_STATS_CLEAR_QUEUE_TIME_SUM    0x8
#define AFS_RX_STATS_CLEAR_QUEUE_TIME_SQUARE 0x10
#define AFS_RX_STATS_CLEAR_QUEUE_TIME_MIN    0x20
#define AFS_RX_STATS_CLEAR_QUEUE_TIME_MAX    0x40
#define AFS_RX_STATS_CLEAR_EXEC_TIME_SUM     0x80
#define AFS_RX_STATS_CLEAR_EXEC_TIME_SQUARE  0x100
#define AFS_RX_STATS_CLEAR_EXEC_TIME_MIN     0x200
#define AFS_RX_STATS_CLEAR_EXEC_TIME_MAX     0x400

/* A function of an interface. Times of the queue are a server's. */
typedef struct rx_function_entry_v1 {
	afs_uint32 remote_peer; /* network order; 0xffffffff: the whole process */
	afs_uint32 remote_port;
	afs_uint32 remote_is_server;
	afs_uint32 interfaceId;
	afs_uint32 func_total; /* functions of the interface */
	afs_uint32 func_index;
	afs_uint64 invocations;
	afs_uint64 bytes_sent;
	afs_uint64 bytes_rcvd;
	struct clock queue_time_sum;
	struct clock queue_time_sum_sqr;
	struct clock queue_time_min;
	struct clock queue_time_max;
	struct clock execution_time_sum;
	struct clock execution_time_sum_sqr;
	struct clock execution_time_min;
	struct clock execution_time_max;
} rx_function_entry_v1_t, *rx_function_entry_v1_p;

#endif
