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
enum rxw_io_kind {
	RXW_IO_AUTO = 0,
	RXW_IO_MMSG = 1, /* several messages per system call */
	RXW_IO_MSG = 2	 /* one message per system call */
};
enum rxw_congestion {
	RXW_CONGESTION_AUTO = 0, /* reno, or rate for wide windows */
	RXW_CONGESTION_RENO = 1, /* RFC 5681 */
	RXW_CONGESTION_RATE = 2	 /* by a model of the path, like BBR */
};
enum rxw_debug_access {
	RXW_DEBUG_LOCAL = 0, /* this host */
	RXW_DEBUG_OFF = 1,   /* no host */
	RXW_DEBUG_ANY = 2,   /* all hosts */
	RXW_DEBUG_NET = 3    /* the network in debug_clients */
};

#define RXW_LISTENERS_SHARED 0xffffffffu

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
 * tunable. Ordinary tunables come first in each group; the defaults of the others suit nearly
 * every installation.
 */
struct rxw_config {
	size_t size;

	/* sockets and threads, per endpoint; affinity per engine */
	/*
	 * Sockets and threads of the port, 1..64; 0 = auto; RXW_LISTENERS_SHARED = one socket, and no thread
	 * of its own: at most one thread for each CPU receives for all such endpoints of the engine.
	 */
	unsigned listeners;
	unsigned mtu;	    /* UDP payload of a packet, 548..9000; default 1444 */
	size_t rcvbuf;	    /* socket receive buffer; 0 = auto */
	size_t sndbuf;	    /* socket send buffer; 0 = auto */
	enum rxw_switch gso; /* send bursts of datagrams as one message (UDP_SEGMENT) */
	enum rxw_switch gro; /* receive bursts of datagrams as one message (UDP_GRO) */
	enum rxw_io_kind io; /* back-end */
	/* microseconds that a listener polls its sockets before it sleeps; 0..1000, default 0 */
	unsigned poll_us;
	/* processors of the library's threads, "0-3,8"; "auto": one for each listener; "" = all */
	char affinity[256];

	/* calls, per endpoint */
	/*
	 * Packets, both directions, 1..65535, default 32768. Above 255 it offers wide windows
	 * (rx-wide-windows); other peers ignore the offer. The packets in wide windows come from a third
	 * of `memory`, of which one peer gets three quarters at most.
	 */
	unsigned window;
	enum rxw_congestion congestion; /* congestion control algorithm */
	/* probe the path for larger packets; auto = not on this host, nor if mtu is not 1444 */
	enum rxw_switch path_mtu;
	enum rxw_switch jumbo;		/* advertise jumbograms to peers; auto = off */

	/* timeouts, per call (rx-protocol 6.1) */
	unsigned dead_ms;	 /* nothing received from the peer; at least 1000, default 12000 */
	unsigned idle_ms;	 /* client calls: no data moves; 0 = off (default) */
	unsigned hard_ms;	 /* client calls: total time; 0 = off (default) */
	unsigned server_idle_ms; /* server calls: no data moves; 0 = off, default 60000 */

	/* memory; 0 = default */
	size_t memory;	    /* all packet buffers of the engine; default 192 MiB */
	/* received data queued by one peer; default 64 MiB, of which wide windows get 3/4 at most */
	size_t peer_memory;

	/* servers, per endpoint */
	unsigned workers_max; /* default 64; a service can have its own limit */
	unsigned queue;	      /* calls that wait for a worker; further calls get BUSY; default 1024 */
	/*
	 * Connections of validated addresses. Beyond the limit, idle connections are removed. If
	 * none has been idle for a second, new connections are rejected. 16..16777216, 0 = no
	 * limit, default 262144.
	 */
	unsigned connections_max;
	enum rxw_debug_access debug_access; /* hosts that get DEBUG answers; default this host */
	char debug_clients[64];		    /* with RXW_DEBUG_NET: a network in CIDR notation */

	/* logging, per engine; NULL = none */
	rxw_log_fn log;
	void *log_arg;
	enum rxw_log_level log_level; /* lines of less importance are omitted; default debug */

	/* calls, per endpoint: mark packets with ECN to peers that report marks; auto = on */
	enum rxw_switch ecn;
};

/* Fill *config with the defaults. `size` is sizeof(struct rxw_config). Any thread. */
void rxw_config_init(struct rxw_config *config, size_t size);

/* A tunable, for help texts and parsers. */
struct rxw_option {
	const char *name;     /* "gso"; on command lines "--gso" */
	const char *argument; /* "on|off|auto" */
	const char *unit;     /* "packets", "bytes", "ms", "" */
	const char *scope;    /* "engine", "endpoint", "call" */
	int ordinary;	      /* 1: an administrator may want to set it; 0: for experts */
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
RXW_MUST_USE
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
