/* SPDX-License-Identifier: BSD-2-Clause */
/* A simulated network under a virtual clock: floors 0 and 1 as they are, the rest from a seed. */
#ifndef RXW_TESTS_SIM_H
#define RXW_TESTS_SIM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/hash.h"
#include "base/rtt.h"
#include "proto/connection.h"

struct sim;
struct sim_node;
struct sim_conn;
struct sim_call;

/* One direction of the way between the two nodes. */
struct sim_link {
	double loss, duplicate, reorder; /* probabilities */
	uint64_t delay, jitter;		 /* ns; a reordered datagram waits up to jitter more */
	uint64_t rate;			 /* bytes per second, 0 = no limit */
	uint64_t queue;			 /* bytes that may wait for the rate */
	uint32_t mtu;			 /* larger datagrams vanish unless they may be fragmented */
	/* probability that a loss begins 20 ms in which all is lost */
	double burst;
	/* state */
	uint64_t busy_until, last_arrival;
	uint64_t burst_until;
	uint64_t sent, dropped, delivered;
};

enum sim_event_kind {
	SIM_ARRIVAL,
	SIM_RECEIVE,
	SIM_TIMER,
	SIM_CONN_TIMER,
	SIM_SEND,
	SIM_TRAIN_DONE,
	SIM_READ,
	SIM_WRITE,
	SIM_VERDICT,
	SIM_BEGIN
};

struct sim_event {
	uint64_t at, order;
	enum sim_event_kind kind;
	void *subject;
	void *more;
};

struct sim_datagram {
	struct sim_node *from, *to;
	uint32_t length;
	uint8_t bytes[];
};

/* What a run is made of. */
struct sim_setup {
	struct sim_link up, down; /* client to server, and back */
	struct rxw_params client, server;
	struct rxw_security *security;
	unsigned connections, channels; /* calls at once on each: 1..4 */
	unsigned calls;			/* on each channel, one after the other */
	uint64_t request, reply;	/* bytes of each stream */
	bool vary;			/* random sizes up to those */
	unsigned batch;			/* trains per receive */
	bool gro;
	unsigned max_run, max_train;	  /* packets */
	uint64_t receive_wait, wake_wait; /* up to so long until a thread runs */
	uint64_t read_rate;		  /* bytes per second of the reader, 0 = at once */
	double send_failure; /* probability that the system refuses a part of a train */
	uint64_t send_wait;  /* up to so long until a system call is over */
	uint64_t verdict_wait;
	uint64_t limit; /* virtual time at which all must be done */
	/* 0 = never; the run ends well then, whatever is still on its way: see call_bytes */
	uint64_t stop_at;
	bool trace;
};

struct sim_node {
	struct sim *sim;
	bool client;
	struct rxw_addr addr;
	struct rxw_params params;
	struct rxw_pstats stats;
	struct rxw_budget budget;
	struct rxw_pool *pool;
	struct rxw_conntable table;
	struct rxw_peer_table *peers;
	struct sim_conn *conns;
	struct sim_datagram **queue;
	unsigned queue_head, queue_tail, queue_size;
	bool receive_set;
	struct rxw_out out;
	struct rxw_ctl ctl[64];
};

struct sim_conn {
	struct rxw_pconn p;
	struct sim_node *node;
	struct sim_conn *next;
	uint64_t timer_set, verdict_at;
	unsigned calls_left;
	bool touched;
};

struct sim_call {
	struct rxw_pcall p;
	struct sim_node *node;
	struct sim_conn *conn;
	unsigned refs, index;
	uint64_t timer_set;
	uint64_t tx_total, tx_done, rx_total, rx_done;
	uint32_t tx_seed, rx_seed;
	uint64_t request_size; /* server: what the head of the request says */
	uint8_t head[24];
	bool tx_ended, writing, read_set, send_set, write_set, finished, counted;
	uint64_t read_free_at, began, ended;
};

struct sim {
	struct sim_setup setup;
	uint64_t seed, prng, now, order;
	struct sim_event *heap;
	unsigned events, events_size;
	struct sim_node client, server;
	unsigned calls_running, calls_done, calls_failed, live_calls;
	uint64_t bytes_moved, finished_at;
	uint64_t events_handled;
	char failure[200]; /* "" = none */
	/* per call, for fairness: how long it took; what its client has read */
	double *call_seconds;
	uint64_t *call_bytes;
	unsigned call_count;
};

/* Everything from the seed; changes may follow before sim_run(). */
void sim_default(struct sim_setup *setup);
void sim_random(struct sim_setup *setup, uint64_t seed);
/*
 * Returns true if every call ended well and every byte was right; else sim->failure says what was
 * not.
 */
bool sim_run(struct sim *sim, const struct sim_setup *setup, uint64_t seed);
void sim_free(struct sim *sim);

/* --- between the files --- */
uint64_t sim_draw(struct sim *sim, uint64_t below);
bool sim_chance(struct sim *sim, double probability);
void sim_at(struct sim *sim, uint64_t at, enum sim_event_kind kind, void *subject, void *more);
void sim_fail(struct sim *sim, const char *format, ...) __attribute__((format(printf, 2, 3)));
void sim_transmit(struct sim *sim, struct sim_node *from, const uint8_t *bytes, uint32_t length,
		  bool fragment);
bool sim_next_event(struct sim *sim, struct sim_event *event);

bool sim_node_init(struct sim *sim, struct sim_node *node, bool client,
		   const struct rxw_params *params);
void sim_node_free(struct sim_node *node);
struct rxw_out *sim_out(struct sim_node *node);
/* Handle the output record until nothing is left in it. */
void sim_settle(struct sim_node *node);
struct sim_conn *sim_conn_new(struct sim_node *node, uint32_t cid, uint64_t now);
void sim_node_event(struct sim *sim, const struct sim_event *event);
void sim_send(struct sim_call *call);
void sim_call_hold(struct rxw_pcall *p);
void sim_call_drop(struct rxw_pcall *p);
struct sim_call *sim_call_new(struct sim_conn *conn);

void sim_app_begin(struct sim_conn *conn);
void sim_app_events(struct sim_call *call, uint32_t events);
void sim_app_read(struct sim_call *call);
void sim_app_write(struct sim_call *call);
void sim_pattern(uint8_t *out, uint32_t seed, uint64_t at, size_t length);

#endif
