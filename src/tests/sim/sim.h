/* SPDX-License-Identifier: BSD-2-Clause */
/* A simulated network under a virtual clock: floors 0 and 1 as they are, the rest from a seed. */
#ifndef RXW_TESTS_SIM_H
#define RXW_TESTS_SIM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/hash.h"
#include "tests/support/host.h"

struct sim;
struct sim_node;
struct sim_conn;
struct sim_call;
struct sim_ref;

/* One direction of the way between the two nodes. */
struct sim_link {
	double loss, duplicate, reorder; /* probabilities */
	uint64_t delay, jitter;		 /* ns; a reordered datagram waits up to jitter more */
	uint64_t rate;			 /* bytes per second, 0 = no limit */
	uint64_t queue;			 /* bytes that may wait for the rate */
	uint32_t mtu;			 /* larger datagrams vanish unless they may be fragmented */
	/* probability that a loss begins 20 ms in which all is lost */
	double burst;
	/*
	 * Gilbert and Elliott: per datagram, chances to become bad and good again, and the loss
	 * while bad (`loss` is that of the good state).
	 */
	double to_bad, to_good, bad_loss;
	double corrupt; /* bits change on the way: the checksum of UDP finds it, nobody gets it */
	bool hole;	/* nothing passes */
	/* state */
	bool bad;
	uint64_t busy_until, last_arrival;
	uint64_t burst_until;
	/* dropped: for whatever reason; corrupted and overflowed are two of those */
	uint64_t sent, dropped, delivered, corrupted, overflowed;
};

/* What may happen to the network and the nodes while they work. */
enum sim_what {
	SIM_SET_DELAY, /* of links, ns; to less: what follows overtakes (route flap) */
	SIM_SET_RATE,  /* of links, bytes per second */
	SIM_SET_MTU,   /* of links */
	SIM_SET_LOSS,  /* of links, in millionths */
	SIM_SET_HOLE,  /* of links: 1 = nothing passes any more, 0 = it does again */
	SIM_MARK,      /* nothing changes: call_marks takes over what each call has read */
	SIM_PAUSE,     /* of nodes: for so many ns no thread of it runs; datagrams queue up */
	SIM_CLOCK_STEP /* of nodes: the clock jumps by so many ns */
};
#define SIM_UP	 1u /* the link up, or the client */
#define SIM_DOWN 2u /* the link down, or the server */
#define SIM_BOTH 3u

struct sim_change {
	uint64_t at; /* ns after the begin of the run */
	enum sim_what what;
	unsigned of; /* SIM_UP, SIM_DOWN */
	int64_t value;
};
#define SIM_CHANGES 16

enum sim_event_kind {
	SIM_ARRIVAL,
	SIM_RECEIVE,
	SIM_TIMER,
	SIM_CONN_TIMER,
	SIM_SEND,
	SIM_BURST_DONE,
	SIM_READ,
	SIM_WRITE,
	SIM_VERDICT,
	SIM_AUTH, /* work of an exchange is done */
	SIM_BEGIN,
	SIM_CHANGE,
	SIM_REF_DATA,
	SIM_REF_ACK,
	SIM_REF_TIMER
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
	/* of both ends; or of the client's, and the other of the server's */
	struct rxw_security *security, *server_security;
	unsigned connections, channels; /* calls at once on each: 1..4 */
	unsigned calls;			/* on each channel, one after the other */
	uint64_t request, reply;	/* bytes of each stream */
	bool vary;			/* random sizes up to those */
	unsigned batch;			/* bursts per receive */
	bool gro;
	unsigned max_run, max_burst;	  /* packets */
	uint64_t receive_wait, wake_wait; /* up to so long until a thread runs */
	uint64_t read_rate;		  /* bytes per second of the reader, 0 = at once */
	/* until then nobody reads on the server's channel 0, nor on the client's channel 1 */
	uint64_t stall;
	double send_failure; /* probability that the system refuses a part of a burst */
	uint64_t send_wait;  /* up to so long until a system call is over */
	uint64_t verdict_wait;
	uint64_t auth_wait; /* up to so long until a CHALLENGE or RESPONSE is made or judged */
	double auth_drop;   /* probability that there is no place for such work */
	/* calls may end with this code, of the peer, once a connection has; 0 = none may */
	int32_t may_end;
	/*
	 * A call may die of silence if the links took all DATA that its client sent, those among
	 * them that the path had room for, at least one: it is counted in calls_starved.
	 */
	bool may_starve;
	uint64_t limit; /* virtual time at which all must be done */
	/* 0 = never; the run ends well then, whatever is still on its way: see call_bytes */
	uint64_t stop_at;
	uint64_t stagger; /* connections begin so much after each other */
	/* idealised TCP flows of endless data from server to client; they need stop_at */
	unsigned references;
	uint64_t receive_bytes; /* buffer of a socket; 0 = no limit */
	struct sim_change changes[SIM_CHANGES];
	unsigned change_count;
	/* Sees each datagram that a node sends; true: it is lost. */
	bool (*tap)(struct sim *sim, const struct sim_node *from, const uint8_t *bytes,
		    uint32_t length);
	bool trace;
};

struct sim_node {
	HOST;
	struct sim *sim;
	bool client;
	struct rxw_addr addr;
	struct rxw_conntable table;
	struct sim_conn *conns;
	struct sim_datagram **queue;
	unsigned queue_head, queue_tail, queue_size;
	uint64_t queue_bytes;
	bool receive_set;
	bool settling;
	uint64_t paused_until;
	uint64_t clock_ahead; /* of the simulation's; wraps around */
};

struct sim_conn {
	HOST_CONN;
	struct sim_node *node;
	struct sim_conn *next;
	uint64_t timer_set, verdict_at;
	unsigned calls_left;
	bool touched;
};

struct sim_call {
	HOST_CALL;
	struct sim_node *node;
	struct sim_conn *conn;
	unsigned index;
	uint64_t timer_set;
	uint64_t tx_total, tx_done, rx_total, rx_done;
	uint32_t tx_seed, rx_seed;
	uint64_t request_size; /* server: what the head of the request says */
	/* client: datagrams of DATA that were not too large for the path; of all, those that passed */
	unsigned tried, passed;
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
	unsigned calls_running, calls_done, calls_failed;
	unsigned calls_ended;	/* of those done: with setup.may_end */
	unsigned calls_starved; /* of those done: see setup.may_starve */
	struct sim_ref *refs;
	uint64_t bytes_moved, finished_at;
	uint64_t events_handled;
	char failure[200]; /* "" = none */
	/* per call, for fairness: how long it took; what its client has read */
	double *call_seconds;
	uint64_t *call_bytes, *call_marks;
	unsigned call_count;
};

/* Defaults; everything from the seed. Either may be changed before sim_run(). */
void sim_default(struct sim_setup *setup);
void sim_random(struct sim_setup *setup, uint64_t seed);
/* Changes of the world while it runs, from the seed, on top of either. */
void sim_random_changes(struct sim_setup *setup, uint64_t seed);
/*
 * Returns true if every call ended well and every byte was right; else sim->failure says what was
 * not.
 */
bool sim_run(struct sim *sim, const struct sim_setup *setup, uint64_t seed);
void sim_free(struct sim *sim);
/* One more change of the world, at `ms` of the run. */
void sim_plan(struct sim_setup *setup, double ms, enum sim_what what, unsigned of, int64_t value);
/* Bytes that the reference flow number `i` brought to its application up to now. */
uint64_t sim_ref_bytes(const struct sim *sim, unsigned i);

/* --- between the files --- */
uint64_t sim_draw(struct sim *sim, uint64_t below);
bool sim_chance(struct sim *sim, double probability);
void sim_at(struct sim *sim, uint64_t at, enum sim_event_kind kind, void *subject, void *more);
void sim_fail(struct sim *sim, const char *format, ...) __attribute__((format(printf, 2, 3)));
void sim_transmit(struct sim *sim, struct sim_node *from, const uint8_t *bytes, uint32_t length,
		  bool fragment);
/*
 * A datagram enters a link: returns how many copies of it arrive, 0 to 2, and when. `fragment`: it
 * may be larger than the MTU.
 */
unsigned sim_link_pass(struct sim *sim, struct sim_link *link, uint32_t length, bool fragment,
		       uint64_t arrivals[2]);
void sim_change(struct sim *sim, const struct sim_change *change);
bool sim_next_event(struct sim *sim, struct sim_event *event);

bool sim_node_init(struct sim *sim, struct sim_node *node, bool client,
		   const struct rxw_params *params);
void sim_node_free(struct sim_node *node);
/* The clock of a node. */
uint64_t sim_clock(const struct sim_node *node);
/* Time of the simulation at which the node's clock shows this; UINT64_MAX = never. */
uint64_t sim_when(const struct sim_node *node, uint64_t clock);
void sim_node_clock_stepped(struct sim_node *node);
struct rxw_out *sim_out(struct sim_node *node);
/* Handle the output record until nothing is left in it. */
void sim_settle(struct sim_node *node);
struct sim_conn *sim_conn_new(struct sim_node *node, uint32_t cid);
void sim_node_event(struct sim *sim, const struct sim_event *event);
void sim_send(struct sim_call *call);

/*
 * Security classes with keys of their own and wall clocks that go with the simulation. Names: "null",
 * "test", "rxkad-clear", "rxkad-auth", "rxkad-crypt", "rxgk-clear" …, "rxgk-crypt-20" (enctype).
 */
struct sim_class {
	struct rxw_security *server, *client;
	int64_t base; /* rxgk: the wall clock when a run begins, 100 ns since 1970 */
};
/* `lifetime`: seconds after the begin of a run at which the ticket ends, 0 = never; `rekey_bytes`: advice. */
bool sim_class_make(struct sim_class *k, const char *name, uint32_t lifetime, uint32_t rekey_bytes);
void sim_class_free(struct sim_class *k);
void sim_class_use(struct sim_setup *setup, const struct sim_class *k);
/* Whose clock it is. */
void sim_class_clock(const struct sim *sim);
/* Bytes of data in a packet of `payload` bytes at this class and level. */
uint32_t sim_class_capacity(const struct sim_class *k, uint32_t payload);
/*
 * The class that the environment names (RXW_TEST_CLASS) for runs that do not say theirs; NULL: none.
 */
const struct sim_class *sim_class_common(void);

void sim_ref_start(struct sim *sim, unsigned count);
void sim_ref_event(struct sim *sim, const struct sim_event *event);
void sim_ref_free(struct sim *sim);

/* Which seeds a program runs. Zero: not said; class: its name, NULL. */
struct sim_args {
	const char *class;
	uint64_t seed; /* this one alone */
	uint64_t first, count;
	bool trace, verbose, changes;
};
/*
 * `taken` has the letters of the options that the program takes: s(eed) f(irst) c(ount) t(race)
 * v(erbose), k for --class, w for --changes. The environment variable says how many, else `count`.
 * False: the command line is wrong, and getopt has said so or the option is another program's.
 */
bool sim_args_parse(struct sim_args *args, int argc, char **argv, const char *taken,
		    const char *environment, uint64_t count);

void sim_app_begin(struct sim_conn *conn);
void sim_app_events(struct sim_call *call, uint32_t events);
void sim_app_read(struct sim_call *call);
void sim_app_write(struct sim_call *call);
void sim_pattern(uint8_t *out, uint32_t seed, uint64_t at, size_t length);

#endif
