/* SPDX-License-Identifier: BSD-2-Clause */
/* Counters of endpoints, statistics of calls, and settings in effect. See rxw_stats(3). */
#ifndef RXWIRE_STATS_H
#define RXWIRE_STATS_H

#include <sys/socket.h>

#include <rxwire/config.h>
#include <rxwire/types.h>

#ifdef __cplusplus
extern "C" {
#endif

enum rxw_counter_kind {
	RXW_COUNTER_TOTAL = 0, /* counts since the creation of the endpoint; never decreases */
	RXW_COUNTER_CURRENT    /* the value of this moment */
};

/*
 * Description of a counter. Memory of the library: constant, and valid while the library is loaded.
 * New members may follow.
 */
struct rxw_counter {
	const char *name; /* "calls_started", "drops.verify", "packets.sent.data" */
	const char *help; /* a sentence */
	enum rxw_counter_kind kind;
	/* labels whose values follow the first dot of the name, one after each dot; NULL: none */
	const char *label[2]; /* "direction", "type" */
};

/*
 * The counters of this library, in a fixed order: index 0, 1, ... until NULL. A later library has
 * more of them, also between those of this one. Names never change. Any thread.
 */
const struct rxw_counter *rxw_counter_at(size_t index);

/*
 * The values of all counters of an endpoint: `values[i]` is that of rxw_counter_at(i). They are
 * read one after another, not as a consistent snapshot. `room` is the number of elements of
 * `values`; those beyond the last counter become 0, and with too few the rest is left out. Returns
 * the number of counters, also for `values` NULL and `room` 0; or -RXW_EINVAL: `endpoint` is NULL,
 * or `values` is NULL and `room` is not 0. Any thread.
 */
int rxw_endpoint_counters(rxw_endpoint *endpoint, uint64_t *values, size_t room);
/*
 * One counter by name. 0 or -RXW_EINVAL: an argument is NULL, or no counter has this name. This
 * costs as much as reading all of them. Any thread.
 */
int rxw_endpoint_counter(rxw_endpoint *endpoint, const char *name, uint64_t *value);

/* Numbers of successful calls by their duration, since the creation of the endpoint. */
#define RXW_DURATIONS 24
struct rxw_durations {
	size_t size; /* set by the caller */
	/*
	 * Calls served, from their first packet to the end of the handler, and calls made, from their
	 * beginning until the application ended them: the first number has those below 16,384 ns, each
	 * further one those up to twice that, the last one all longer ones.
	 */
	uint64_t served[RXW_DURATIONS], made[RXW_DURATIONS];
	uint64_t served_ns, made_ns; /* sums of their durations */
};
/* 0 or -RXW_EINVAL: an argument is NULL, or `size` is not set. Any thread. */
int rxw_endpoint_durations(rxw_endpoint *endpoint, struct rxw_durations *durations);

/* A call in progress. Memory of the library. New members may follow. */
struct rxw_call_view {
	const struct sockaddr *peer; /* struct sockaddr_in or sockaddr_in6 */
	int client;		     /* 1: made by this side; 0: served by it */
	int sending;		     /* 1: its stream goes out from this side */
	uint16_t service;
	uint32_t epoch, cid /* with the channel */, number;
	uint64_t age_ns;
	uint32_t queued;	 /* packets to send that are not acknowledged */
	uint32_t receive_window; /* packets; advertised by this side */
	const struct rxw_call_statistics *statistics;
};

/*
 * Show the calls in progress of an endpoint to `see`, which may call functions of the library. A call
 * may be missing, or be shown twice, if connections are made or removed meanwhile. Takes the locks of
 * connection tables in steps, and of each connection: call it about once a second at most. 0;
 * -RXW_EINVAL: an argument other than `arg` is NULL; -RXW_ENOMEM. Any thread.
 */
int rxw_endpoint_calls(rxw_endpoint *endpoint,
		       void (*see)(void *arg, const struct rxw_call_view *call), void *arg);

/* Settings in effect. */
struct rxw_effective {
	size_t size; /* set by the caller */
	unsigned listeners, batch, window, mtu;
	int gso, gro; /* 1 in use, 0 not */
	/* 1: the kernel selects the socket of a packet by its connection id; 0: by addresses */
	int steered;
	const char *io;	       /* "mmsg", "msg"; static */
	size_t rcvbuf, sndbuf; /* bytes granted for each socket */
};

/* 0 or -RXW_EINVAL: an argument is NULL, or `size` is not set. Any thread. */
int rxw_endpoint_effective(rxw_endpoint *endpoint, struct rxw_effective *effective);

/* Statistics of one call. */
struct rxw_call_statistics {
	size_t size;			     /* set by the caller: sizeof(struct rxw_call_statistics) */
	uint64_t bytes_sent, bytes_received; /* of the streams */
	uint64_t packets_sent, packets_received; /* DATA: first transmissions; accepted */
	uint64_t retransmitted, duplicates;
	uint64_t acks_sent, acks_received;
	/* windows opened by an ACK, by the thread that sent the data */
	uint64_t windows_by_writer, windows_by_receiver;
	uint64_t rtt_ns;	       /* smoothed; 0 = no sample */
	uint32_t cwnd, peer_window;    /* packets */
	uint64_t started_ns, ended_ns; /* monotonic clock */
	uint8_t security, level;       /* security index; enum rxw_level */
	/* of the sender; packets, unless stated */
	uint64_t pacing_rate;	     /* bytes of payload per second; 0 = not paced */
	uint64_t rtt_min_ns;	     /* 0 = no sample */
	uint64_t lost, loss_events;  /* declared lost; events that congestion control saw */
	uint64_t spurious, timeouts; /* losses that were none; retransmission timeouts */
	uint32_t in_flight, ssthresh;
	/* Static: "reno", "rate"; "slow-start", "recovery" and so on, see rxw_stats(3). */
	const char *controller, *phase;
	/* ECN: packets sent marked; those that congestion marked; reactions; received with CE */
	uint64_t marks_sent, marks_seen, mark_events, marks_received;
	const char *ecn; /* static: "off", "testing", "capable" and so on, see rxw_stats(3) */
	uint32_t wide;	 /* 1: the peer has offered windows of more than 255 packets */
};
/* -RXW_EINVAL: an argument is NULL, or `size` is not set. Any thread. */
int rxw_call_stats(rxw_call *call, struct rxw_call_statistics *stats);

#ifdef __cplusplus
}
#endif
#endif
