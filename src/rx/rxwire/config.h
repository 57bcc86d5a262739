/* SPDX-License-Identifier: BSD-2-Clause */
/* Tunables of the library. Each has one name, in this structure, on command lines and in files. */
#ifndef RXWIRE_CONFIG_H
#define RXWIRE_CONFIG_H

#include <rxwire/types.h>

#ifdef __cplusplus
extern "C" {
#endif

enum rxw_switch {
	RXW_AUTO = 0,
	RXW_ON = 1,
	RXW_OFF = 2
};
enum rxw_steer {
	RXW_STEER_CID = 0,  /* by connection id */
	RXW_STEER_HASH = 1, /* by a hash of the addresses */
	RXW_STEER_WRONG = 2 /* tests: never the socket of the connection */
};
enum rxw_io_kind {
	RXW_IO_AUTO = 0,
	RXW_IO_MMSG = 1, /* several messages per system call */
	RXW_IO_MSG = 2	 /* one message per system call */
};
enum rxw_congestion {
	RXW_CONGESTION_AUTO = 0, /* reno */
	RXW_CONGESTION_RENO = 1, /* RFC 5681 */
	RXW_CONGESTION_CUBIC = 2 /* RFC 9438 */
};
enum rxw_debug_access {
	RXW_DEBUG_LOCAL = 0, /* this host */
	RXW_DEBUG_OFF = 1,   /* no host */
	RXW_DEBUG_ANY = 2,   /* all hosts */
	RXW_DEBUG_NET = 3    /* the network in debug_clients */
};

/* Levels of log lines, with the numbers of syslog(3). */
enum rxw_log_level {
	RXW_LOG_ERROR = 3,
	RXW_LOG_WARNING = 4,
	RXW_LOG_INFO = 6,
	RXW_LOG_DEBUG = 7
};
/*
 * Receives log lines, without a newline. Called on any thread, by several at a time, without a
 * lock. Must not call the library.
 */
typedef void (*rxw_log_fn)(void *arg, enum rxw_log_level level, const char *line);

/*
 * Configuration of an engine or of an endpoint. Initialise it with rxw_config_init(), then change
 * members or use rxw_config_set(). Engines and endpoints copy it. `size` is the size of the
 * structure that the caller was compiled with; members beyond it have their defaults. Times are
 * in milliseconds, sizes in bytes, unless stated otherwise. rxwire.conf(5) describes each
 * tunable.
 */
struct rxw_config {
	size_t size;

	/* I/O, per endpoint */
	unsigned listeners; /* sockets and threads of the port, 1..64; 0 = auto */
	/* messages per receive or send system call, 1..64; default 32 */
	unsigned batch;
	enum rxw_switch gso; /* send batches of datagrams as one message (UDP_SEGMENT) */
	enum rxw_switch gro; /* receive batches of datagrams as one message (UDP_GRO) */
	/* on: the waiting writer sends the window that an ACK opened; off: the receiving thread */
	enum rxw_switch defer;
	enum rxw_steer steer; /* how the kernel selects the socket of a packet */
	enum rxw_io_kind io;  /* back-end */
	unsigned window;      /* packets, both directions, 1..255; default 255 */
	unsigned mtu;	      /* UDP payload of a packet, 548..9000; default 1444 */
	size_t rcvbuf;	      /* socket receive buffer; 0 = auto */
	size_t sndbuf;	      /* socket send buffer; 0 = auto */
	char affinity[256];   /* processors of the library's threads, "0-3,8"; "" = all */
	/*
	 * microseconds that a caller which receives its packets itself polls before it sleeps;
	 * 0..1000, 0 = never, default 100
	 */
	unsigned spin_us;
	enum rxw_switch path_mtu; /* probe the path for larger packets; auto = off */
	enum rxw_switch jumbo;	  /* advertise jumbograms to peers; auto = off */

	/* timeouts, per call (rx-protocol 6.1) */
	unsigned dead_ms;	 /* nothing received from the peer; at least 1000, default 12000 */
	unsigned idle_ms;	 /* client calls: no data moves; 0 = off (default) */
	unsigned server_idle_ms; /* server calls: no data moves; 0 = off, default 60000 */
	unsigned hard_ms;	 /* client calls: total time; 0 = off (default) */

	/* memory; 0 = default */
	size_t call_memory;	  /* received data queued by one call; default 2 MiB */
	size_t connection_memory; /* by one connection; default 8 MiB */
	size_t peer_memory;	  /* by one peer; default 32 MiB */
	size_t memory;		  /* all packet buffers of the engine; default 192 MiB */
	unsigned sendq_packets;	  /* packets in a send queue before its writer waits; default 420 */

	/* unvalidated peers, per endpoint (rx-protocol 12.3) */
	unsigned abort_rate; /* ABORT packets per second to unvalidated peers; default 50 */
	/* VERSION and DEBUG answers per second to other hosts; default 50 */
	unsigned version_rate;
	enum rxw_debug_access debug_access; /* hosts that get DEBUG answers; default this host */
	char debug_clients[64];		    /* with RXW_DEBUG_NET: a network in CIDR notation */
	unsigned unproven_per_host;	    /* connections of one unvalidated address; default 64 */
	unsigned unproven_total;	    /* of all unvalidated addresses; default 8192 */

	/* workers, per endpoint; a service can have its own limit */
	unsigned workers_min; /* default 2 */
	unsigned workers_max; /* default 64 */
	/* calls that wait for a worker; further calls get BUSY; default 1024 */
	unsigned queue;
	unsigned reserved_short; /* workers reserved for services with short calls; default 0 */

	/* logging, per engine; NULL = none */
	rxw_log_fn log;
	void *log_arg;

	/* tests: inject I/O errors, for example "gso:EIO@100"; "" = none */
	char inject[64];

	/* I/O, per endpoint: microseconds that a listener polls before it sleeps; 0..1000 */
	unsigned poll_us;

	/* per endpoint: packets that one ACK covers, 1..255; 0 = auto, a whole batch */
	unsigned ack_packets;

	/*
	 * Per endpoint: run time of a handler of a short service in microseconds. A service that
	 * exceeds it twice, without having been preempted, is served by workers for 100 ms.
	 * 1..10000000, 0 = no limit, default 500.
	 */
	unsigned short_limit_us;

	/*
	 * I/O, per endpoint: coalescing delay in microseconds of a caller that receives bulk data
	 * itself; 0..1000, 0 = none, default 30.
	 */
	unsigned nap_us;

	/*
	 * Per endpoint: the handler of a server's only call receives the acknowledgements itself
	 * while it waits for window space; auto = on.
	 */
	enum rxw_switch writer_receives;

	/*
	 * Per endpoint: threads that send bulk data of many calls at the same time, 1..64; 0 =
	 * auto, half the number of processors.
	 */
	unsigned senders;

	/* calls, per endpoint */
	enum rxw_congestion congestion; /* congestion control algorithm */
	enum rxw_switch pacing; /* pace windows over round trips of 1 ms or more; auto = on */

	/*
	 * Workers, per endpoint: reserved for clients (address and port) that have no call in
	 * progress; at most an eighth of workers_max. Also limits the share of the queue that one
	 * client may use. Default 2; 0 disables both limits.
	 */
	unsigned reserved_peers;

	/*
	 * I/O, per endpoint: coalescing delay in microseconds after a batch in which most calls
	 * were refused, if at least four more such calls are expected during the delay. It
	 * increases up to fourfold if calls wait long. Timers are delayed as well. 0..1000, less
	 * than 20 = none, default 1000.
	 */
	unsigned refusal_nap_us;

	/*
	 * Workers, per endpoint: milliseconds during which calls have been waiting throughout,
	 * and the workers have served four calls each on average. The queue is then limited to
	 * two calls per worker instead of `queue`. 1..60000, 0 = never, default 100.
	 */
	unsigned queue_burst_ms;

	/*
	 * Workers, per endpoint: workers that are blocked on their clients, for window space or
	 * for data, and do not count against workers_max. If all of them are blocked and calls
	 * are waiting, calls that move fewer than 8 packets per second are aborted. 0..4096, 0 =
	 * each worker counts and no call is aborted, default 256.
	 */
	unsigned waiters_max;

	/*
	 * Per endpoint: connections of validated addresses. Beyond the limit, idle connections
	 * are removed. If none has been idle for a second, new connections are rejected.
	 * 16..16777216, 0 = no limit, default 262144.
	 */
	unsigned connections_max;
};

/* Fill *config with the defaults. `size` is sizeof(struct rxw_config). Any thread. */
void rxw_config_init(struct rxw_config *config, size_t size);

/* A tunable, for help texts and parsers. */
struct rxw_option {
	const char *name;     /* "gso"; on command lines "--gso" */
	const char *argument; /* "on|off|auto" */
	const char *unit;     /* "packets", "bytes", "ms", "" */
	const char *scope;    /* "engine", "endpoint", "call" */
	const char *help;     /* one line */
};

/* The table of all tunables, and its length in *count. Static. Any thread. */
const struct rxw_option *rxw_config_options(size_t *count);

/*
 * Set a tunable from text. In names, "_" and "-" are equivalent; sizes may end in K, M or G
 * (powers of two). Returns 0, -RXW_ENAME, -RXW_EVALUE or -RXW_EINVAL. On failure `message` (may
 * be NULL), of message_size bytes, receives one line with the name, the value and the permitted
 * values. Any thread.
 */
int rxw_config_set(struct rxw_config *config, const char *name, const char *value, char *message,
		   size_t message_size);

/*
 * Write the value of a tunable to `text`, of text_size bytes. Returns the length, -RXW_ENAME, or
 * -RXW_EINVAL if it does not fit. Any thread.
 */
int rxw_config_get(const struct rxw_config *config, const char *name, char *text, size_t text_size);

#ifdef __cplusplus
}
#endif
#endif
