/* SPDX-License-Identifier: BSD-2-Clause */
/* Every tunable of the library: one name each in this structure, on command lines and in files. */
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
	RXW_STEER_CID = 0,
	RXW_STEER_HASH = 1,
	RXW_STEER_WRONG = 2 /* tests: never home */
};
enum rxw_io_kind {
	RXW_IO_AUTO = 0,
	RXW_IO_MMSG = 1,
	RXW_IO_MSG = 2
};
enum rxw_debug_access {
	RXW_DEBUG_LOCAL = 0,
	RXW_DEBUG_OFF = 1,
	RXW_DEBUG_ANY = 2,
	RXW_DEBUG_NET = 3
};

/* Where log lines go. Called from any thread, no lock held, must not call back into the library. */
enum rxw_log_level {
	RXW_LOG_ERROR = 3,
	RXW_LOG_WARNING = 4,
	RXW_LOG_INFO = 6,
	RXW_LOG_DEBUG = 7
};
typedef void (*rxw_log_fn)(void *arg, enum rxw_log_level level, const char *line);

/*
 * Configuration of an engine; endpoints take over a copy and may change it by their own. Filled by
 * rxw_config_init(), then changed field by field or by rxw_config_set(). `size` is the size that
 * the caller was compiled with; fields beyond it take their defaults, so the structure can grow.
 * Times are in milliseconds, 0 = off where the comment says so. Sizes are in bytes.
 */
struct rxw_config {
	size_t size;

	/* I/O: scope is one endpoint */
	unsigned listeners; /* sockets and threads on the port, 0 = auto, 1..64 */
	/* datagrams (or bursts) per receive or send call, 1..64; default 32 */
	unsigned batch;
	enum rxw_switch gso; /* send bursts with UDP_SEGMENT */
	enum rxw_switch gro; /* receive bursts with UDP_GRO */
	/* who sends a window that an ACK opened: on = the waiting writer */
	enum rxw_switch defer;
	enum rxw_steer steer; /* how the kernel picks the socket of a port */
	enum rxw_io_kind io;  /* back-end */
	unsigned window;      /* packets, both directions, 1..255; default 255 */
	unsigned mtu;	      /* UDP payload of one packet, 548..9000; default 1444 */
	size_t rcvbuf;	      /* socket receive buffer; 0 = auto */
	size_t sndbuf;	      /* socket send buffer; 0 = auto */
	char affinity[256];   /* CPU list such as "0-3,8" for library threads; "" = none */
	/* microseconds a caller that receives for itself polls before it sleeps; 0..1000 */
	unsigned spin_us;
	enum rxw_switch path_mtu; /* probe for larger packets; auto = off */
	enum rxw_switch jumbo;	  /* advertise jumbograms to peers; auto = off */

	/* timeouts: scope is one call; rx-protocol 6 */
	unsigned dead_ms;	 /* nothing heard of the peer; >= 1000; default 12000 */
	unsigned idle_ms;	 /* client: application data not moving; 0 = off (default) */
	unsigned server_idle_ms; /* server calls: the same; default 60000 */
	unsigned hard_ms;	 /* total time; 0 = off (default) */

	/* memory; 0 = default */
	size_t call_memory;	  /* received bytes pinned by one call; default 2 MiB */
	size_t connection_memory; /* by one connection; default 8 MiB */
	size_t peer_memory;	  /* by one peer address; default 32 MiB */
	size_t memory;		  /* all buffers of the engine; default 192 MiB */
	unsigned sendq_packets;	  /* high water of a call's send queue, in packets; default 768 */

	/* strangers: rx-protocol 12.3 */
	unsigned abort_rate; /* stateless aborts per second to strangers; default 50 */
	/* VERSION and DEBUG answers per second to strangers; default 50 */
	unsigned version_rate;
	enum rxw_debug_access debug_access; /* who is answered; default this host only */
	char debug_clients[64];		    /* with RXW_DEBUG_NET: a CIDR network */
	unsigned unproven_per_host;	    /* connections of one unproven address; default 64 */
	unsigned unproven_total;	    /* in all; default 8192 */

	/* workers of a server endpoint; a service can override */
	unsigned workers_min; /* default 2 */
	unsigned workers_max; /* default 64 */
	/* calls that may wait for a worker; beyond it BUSY; default 1024 */
	unsigned queue;
	unsigned reserved_short; /* workers kept for services that say their calls are short */

	/* logging: scope is the engine */
	rxw_log_fn log;
	void *log_arg;

	/* tests only: fault injection for the I/O floor, e.g. "gso:EIO@100"; NULL or "" = none */
	char inject[64];
};

/* Fill *config with the defaults. `size` is sizeof(struct rxw_config). */
void rxw_config_init(struct rxw_config *config, size_t size);

/* One tunable as programs show it in --help and read it from files. */
struct rxw_option {
	const char *name;     /* "gso"; on command lines "--gso" */
	const char *argument; /* "on|off|auto" */
	const char *unit;     /* "packets", "bytes", "ms", "" */
	const char *scope;    /* "engine", "endpoint", "call" */
	const char *help;     /* one line */
};

/* The table of all tunables; *count is set. Static storage. */
const struct rxw_option *rxw_config_options(size_t *count);

/*
 * Set one tunable from text. Names are those of the table ("_" and "-" are the same); sizes take K,
 * M and G (powers of two). Returns 0, -RXW_ENAME or -RXW_EVALUE; on failure `message` (may be NULL)
 * gets one line that names option, value and what is allowed.
 */
int rxw_config_set(struct rxw_config *config, const char *name, const char *value, char *message,
		   size_t message_size);

/*
 * The value of one tunable as text. Returns its length or -RXW_ENAME, -RXW_EINVAL (does not fit).
 */
int rxw_config_get(const struct rxw_config *config, const char *name, char *text, size_t text_size);

#ifdef __cplusplus
}
#endif
#endif
