/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A simulated network with a virtual clock. The layers base and proto are the real ones, the rest
 * is simulated from a seed.
 */
#ifndef RXW_TESTS_SIM_H
#define RXW_TESTS_SIM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/path_probe.h"
#include "base/hash.h"
#include "tests/link/codel.h"
#include "tests/link/way.h"
#include "tests/support/host.h"

struct sim;
struct sim_node;
struct sim_conn;
struct sim_call;
struct sim_ref;

/* Damage to the ECN bits. */
enum sim_ecn {
	SIM_ECN_PASSES,
	SIM_ECN_BLEACHED, /* none is left */
	SIM_ECN_CE,	  /* all that are ECN-capable are marked */
	SIM_ECN_CE_ALL,	  /* all are marked */
	SIM_ECN_ECT1,	  /* ECT(0) becomes ECT(1) */
	SIM_ECN_LOST	  /* all that are ECN-capable are lost */
};

/* One direction of the path between the two nodes. */
struct sim_link {
	double loss, duplicate, reorder; /* probabilities */
	uint64_t delay, jitter;		 /* ns; a reordered datagram gets up to jitter more */
	uint64_t rate;			 /* bytes per second, 0 = no limit */
	uint64_t queue;			 /* bytes that may queue for the rate */
	uint32_t mtu;			 /* larger datagrams are dropped unless fragmented, */
	bool hidden; /* and then, too: the sender's system does not know the MTU */
	/* probability that a loss starts 20 ms of total loss */
	double burst;
	/*
	 * Gilbert-Elliott model: probabilities per datagram of entering and leaving the bad state,
	 * and the loss in it (`loss` applies in the good state). A datagram each 20 s, of a call that backs
	 * off, would be in it for minutes: it ends after 4 s at the latest.
	 */
	double to_bad, to_good, bad_loss;
	double corrupt; /* probability of bit errors: the UDP checksum drops the datagram */
	bool hole;	/* all datagrams are lost */
	uint64_t
		bunch; /* ns: datagrams arrive at multiples of this only, all at once; 0 = singly */
	/*
	 * CoDel (RFC 8289) with this target, ns, and twenty times that as interval: marks those that
	 * are ECN-capable and drops others. 0 = drop tail. `step`: all that wait for longer.
	 */
	uint64_t codel, step;
	struct codel codel_state;
	enum sim_ecn ecn;
	uint64_t marked; /* state */
	/* state */
	bool bad;
	uint64_t busy_until, last_arrival;
	uint64_t burst_until, bad_until;
	/* dropped: for any reason; includes corrupted and overflowed */
	uint64_t sent, dropped, delivered, corrupted, overflowed;
	/*
	 * A direction of the link emulator, in place of everything above but mtu, hole and ecn.
	 * NULL: none. `way` and `way_at` are state.
	 */
	const struct link_options *options;
	struct link_way *way;
	uint64_t way_at; /* when it is looked at next */
};

/* Changes of the network and the nodes during a run. */
enum sim_what {
	SIM_SET_DELAY,	 /* of links, ns; a decrease lets later datagrams overtake (route flap) */
	SIM_SET_RATE,	 /* of links, bytes per second */
	SIM_SET_MTU,	 /* of links */
	SIM_SET_LOSS,	 /* of links, in millionths */
	SIM_SET_ECN,	 /* of links: enum sim_ecn */
	SIM_SET_HOLE,	 /* of links: 1 = all datagrams are lost, 0 = back to normal */
	SIM_SET_OPTIONS, /* of links that have a way of the emulator */
	SIM_MARK,	 /* no change: call_marks records the bytes read by each call */
	SIM_ABORT,	 /* of clients: their calls are aborted with this code */
	SIM_PAUSE,	 /* of nodes: no thread runs for this many ns, and datagrams queue up */
	SIM_STALL,	 /* of nodes: no stream is read for this many ns */
	SIM_SILENCE,	 /* of nodes: nothing is written for this many ns */
	SIM_CLOCK_STEP	 /* of nodes: the clock jumps by this many ns */
};
#define SIM_UP	 1u /* the uplink, or the client */
#define SIM_DOWN 2u /* the downlink, or the server */
#define SIM_BOTH 3u

struct sim_change {
	uint64_t at; /* ns since the start of the run */
	enum sim_what what;
	unsigned of; /* SIM_UP, SIM_DOWN */
	int64_t value;
	const struct link_options *options; /* SIM_SET_OPTIONS */
};
#define SIM_CHANGES 16
#define SIM_APART   8
#define SIM_CID	    0x1000u /* of the first connection; the next ones follow */

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
	SIM_AUTH, /* an exchange job completes */
	SIM_BEGIN,
	SIM_CHANGE,
	SIM_WAY,
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

/* Arrivals of a direction in order of time: a ring. Each of both ends, and of references, has one. */
#define SIM_LANES 4
struct sim_lane {
	struct sim_event *at;
	unsigned first, last, size; /* first, last: wrap around; size: a power of two */
};

struct sim_datagram {
	struct sim_datagram *next; /* of unused ones */
	struct sim_node *from, *to;
	uint32_t length;
	uint16_t port; /* added to that of the sender */
	uint8_t ecn;
	uint8_t bytes[];
};

/* Parameters of a run. */
struct sim_setup {
	struct sim_link up, down; /* client to server, and back */
	struct rxw_params client, server;
	/* of both ends; or of the client, and the server's own */
	struct rxw_security *security, *server_security;
	unsigned connections, channels; /* concurrent calls on each connection: 1..4 */
	unsigned calls;			/* on each channel, one after the other */
	uint64_t request, reply;	/* bytes of each stream */
	bool vary;			/* random sizes up to those */
	unsigned batch;			/* bursts per receive */
	bool gro;
	unsigned max_run, max_burst;	  /* packets */
	uint64_t receive_wait, wake_wait; /* maximum delay until a thread runs */
	uint64_t read_rate;		  /* read rate in bytes per second, 0 = unlimited */
	uint64_t write_rate;		  /* the same for the server's writer, until slow_until */
	uint64_t slow_until;		  /* ns since the start of the run */
	uint64_t think;			  /* ns between a call and the next one on its channel */
	/* until then the server's channel 0 and the client's channel 1 are not read */
	uint64_t stall;
	double send_failure; /* probability that the system refuses part of a burst */
	uint64_t send_wait;  /* maximum duration of a system call */
	uint64_t verdict_wait;
	uint64_t auth_wait; /* maximum time to make or check a CHALLENGE or RESPONSE */
	double auth_drop;   /* probability that no thread is free for such work */
	/* once one connection has failed so, calls may fail with this code of the peer; 0 = none */
	int32_t may_end;
	/*
	 * A call may time out if the links accepted all DATA of its client that fits the path, at
	 * least one packet. It is counted in calls_starved.
	 */
	bool may_starve;
	uint64_t limit; /* virtual time by which all must be complete */
	/* 0 = never; then the run succeeds with calls still active, see call_bytes */
	uint64_t stop_at;
	uint64_t stagger; /* interval between the starts of connections */
	/* Each connection has a client's address of its own, and so much more delay each way. */
	bool apart;
	uint64_t further[SIM_APART];
	/* idealised TCP flows of unlimited data from server to client; they need stop_at */
	unsigned references;
	uint64_t receive_bytes; /* socket buffer; 0 = no limit */
	size_t memory;		/* of buffers of each node; 0 = 256 MiB */
	int64_t client_wide, server_wide; /* of wide windows; 0 = no limit */
	struct sim_change changes[SIM_CHANGES];
	unsigned change_count;
	/* Called for each datagram that a node sends. Returns true to drop it. */
	bool (*tap)(struct sim *sim, const struct sim_node *from, const uint8_t *bytes,
		    uint32_t length);
	/* Called for each that is sent marked; may be NULL. */
	void (*marked)(struct sim *sim, const struct sim_node *from);
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
	uint64_t paused_until, stalled_until, silent_until;
	uint64_t failed_at;    /* the latest call that ended with an error */
	unsigned calls_failed; /* of the application's calls, as many */
	uint64_t clock_ahead;  /* of the simulation; wraps around */
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
	uint64_t request_size; /* server: from the head of the request */
	/* client: datagrams of DATA that fit the path; those of any kind that arrived */
	unsigned tried, passed;
	uint8_t head[24];
	bool tx_ended, writing, read_set, send_set, write_set, finished, counted;
	uint64_t read_free_at, began, ended;
};

struct sim {
	struct sim_setup setup;
	uint64_t seed, prng, now, order;
	struct sim_event *heap; /* and those that no lane has */
	unsigned events, events_size;
	struct sim_lane lane[SIM_LANES];
	struct sim_node client, server;
	unsigned calls_running, calls_done, calls_failed;
	unsigned calls_ended;	/* of calls_done: with setup.may_end */
	unsigned calls_starved; /* of calls_done: see setup.may_starve */
	struct sim_ref *refs;
	uint64_t bytes_moved, finished_at;
	uint64_t events_handled;
	char failure[200]; /* "" = none */
	/* per call, for fairness: its duration; bytes read by its client */
	double *call_seconds;
	uint64_t *call_bytes, *call_marks;
	unsigned call_count;
};

/* Sets defaults, and all parameters from the seed. Both may be changed before sim_run(). */
void sim_default(struct sim_setup *setup);
void sim_random(struct sim_setup *setup, uint64_t seed);
/* Adds changes during the run, from the seed, to either. */
void sim_random_changes(struct sim_setup *setup, uint64_t seed);
/*
 * Returns true if every call succeeded with correct bytes. Otherwise sim->failure holds the reason.
 */
bool sim_run(struct sim *sim, const struct sim_setup *setup, uint64_t seed);
void sim_free(struct sim *sim);
/* One more change, at `ms` of the run. */
void sim_plan(struct sim_setup *setup, double ms, enum sim_what what, unsigned of, int64_t value);
/* Bytes that reference flow `i` has delivered to its application. */
uint64_t sim_ref_bytes(const struct sim *sim, unsigned i);

/* --- shared by the files of the simulator --- */
uint64_t sim_draw(struct sim *sim, uint64_t below);
bool sim_chance(struct sim *sim, double probability);
void sim_at(struct sim *sim, uint64_t at, enum sim_event_kind kind, void *subject, void *more);
void sim_fail(struct sim *sim, const char *format, ...) __attribute__((format(printf, 2, 3)));
void sim_transmit(struct sim *sim, struct sim_node *from, const uint8_t *bytes, uint32_t length,
		  bool fragment, unsigned ecn);
/*
 * A datagram enters a link. Returns the number of copies that arrive, 0 to 2, and their times.
 * `fragment`: it may exceed the MTU. *ecn: its ECN bits, which the link may change.
 */
unsigned sim_link_pass(struct sim *sim, struct sim_link *link, uint32_t length, bool fragment,
		       unsigned *ecn, uint64_t arrivals[2]);
void sim_change(struct sim *sim, const struct sim_change *change);

/* Links with options of the emulator: a datagram enters, an event is due, the options change. */
void sim_way_start(struct sim *sim);
void sim_way_free(struct sim *sim);
void sim_way_enter(struct sim *sim, struct sim_link *link, struct sim_datagram *datagram);
void sim_way_event(struct sim *sim, struct sim_link *link);
void sim_way_change(struct sim *sim, struct sim_link *link, const struct link_options *options);

bool sim_next_event(struct sim *sim, struct sim_event *event);
void sim_datagram_free(struct sim_datagram *d);

bool sim_node_init(struct sim *sim, struct sim_node *node, bool client,
		   const struct rxw_params *params);
void sim_node_free(struct sim_node *node);
/* The clock of a node. */
uint64_t sim_clock(const struct sim_node *node);
/* Simulation time at which the node's clock shows this value. UINT64_MAX = never. */
uint64_t sim_when(const struct sim_node *node, uint64_t clock);
void sim_node_clock_stepped(struct sim_node *node);
struct rxw_out *sim_out(struct sim_node *node);
/* Handles the output record until it is empty. */
void sim_settle(struct sim_node *node);
/* `peer`: its address, NULL = that of the other node. */
struct sim_conn *sim_conn_new(struct sim_node *node, uint32_t cid, const struct rxw_addr *peer);
void sim_node_event(struct sim *sim, const struct sim_event *event);
void sim_send(struct sim_call *call);

/*
 * Security classes with keys of their own and wall clocks that follow the simulation. Names:
 * "null", "test", "rxkad-clear", "rxkad-auth", "rxkad-crypt", "rxgk-clear" …, "rxgk-crypt-20"
 * (enctype).
 */
struct sim_class {
	struct rxw_security *server, *client;
	int64_t base; /* rxgk: the wall clock at the start of a run, 100 ns since 1970 */
};
/* `lifetime`: expiry of the ticket in seconds after the start, 0 = never; `rekey_bytes`: advice. */
bool sim_class_make(struct sim_class *k, const char *name, uint32_t lifetime, uint32_t rekey_bytes);
void sim_class_free(struct sim_class *k);
void sim_class_use(struct sim_setup *setup, const struct sim_class *k);
/* The simulation whose clock is used. */
void sim_class_clock(const struct sim *sim);
/* Bytes of data in a packet of `payload` bytes for this class and level. */
uint32_t sim_class_capacity(const struct sim_class *k, uint32_t payload);
/* The class in the environment (RXW_TEST_CLASS) for runs that name none, or NULL. */
const struct sim_class *sim_class_common(void);

void sim_ref_start(struct sim *sim, unsigned count);
void sim_ref_event(struct sim *sim, const struct sim_event *event);
void sim_ref_free(struct sim *sim);

/* The seeds that a program runs. Zero: not given; class, only: a name or NULL. */
struct sim_args {
	const char *class, *only;
	uint64_t seed; /* this seed only */
	uint64_t first, count;
	bool trace, verbose, changes;
};
/*
 * `taken` holds the letters of the program's options: s(eed) f(irst) c(ount) t(race) v(erbose), k
 * for --class, w for --changes, o(nly). The environment variable gives the count, otherwise `count`
 * applies. False: the command line is invalid and getopt has reported it, or the program has no
 * such option.
 */
bool sim_args_parse(struct sim_args *args, int argc, char **argv, const char *taken,
		    const char *environment, uint64_t count);

/* A path of a rate, a round trip and a queue (in bandwidth-delay products) towards the client. */
void sim_path(struct sim_setup *s, unsigned mbit, double rtt_ms, double queue);
/* Both ends have windows of up to `window` packets, with a controller. */
void sim_wide(struct sim_setup *s, uint16_t window, const struct rxw_cc_ops *cc);
/*
 * Print a figure with its bounds. 1, or 0 if it is beyond them or the run failed: with "&" all are asked, not
 * only those up to the first failure.
 */
unsigned sim_expect(const struct sim *sim, const char *what, uint64_t seed, double got,
		    double least, double most);

void sim_app_begin(struct sim_conn *conn);
void sim_app_events(struct sim_call *call, uint32_t events);
void sim_app_read(struct sim_call *call);
void sim_app_write(struct sim_call *call);

#endif
