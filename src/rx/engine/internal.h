/* SPDX-License-Identifier: BSD-2-Clause */
/* Objects of floors 3 and 4: engine, endpoint, shard, connection, call, and which lock covers
 * what. */
#ifndef RXW_ENGINE_INTERNAL_H
#define RXW_ENGINE_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <rxwire/rxwire.h>

#include "base/hash.h"
#include "engine/jobs/jobs.h"
#include "io/io.h"
#include "proto/connection.h"

/*
 * Lock order: endpoint->lock, shard->lock, connection->lock, workers->lock, leaf locks
 * (shard->txq_lock, endpoint->peer_lock, endpoint->stranger_lock, shard->role_lock). Never two of a
 * kind. None is held across a system call that may wait, a wake-up of a handler or callback,
 * sealing or verifying. lock.h takes them, and counts who had to wait.
 */

#define RXW_MAX_SHARDS	 64
#define RXW_MAX_SERVICES 16
#define RXW_CTL_ROOM	 256 /* control packets of one receive batch */
#define RXW_EFFECTS_ROOM 512
#define RXW_DEFERRED_MAX 128
#define RXW_WHEEL_SLOTS	 512 /* of 1 ms */

struct rxw_engine {
	struct rxw_config config; /* fixed */
	struct rxw_budget memory;
	struct rxw_pool *pool; /* receive buffers, send chunks, small buffers */
	pthread_mutex_t lock;  /* endpoints */
	unsigned endpoints;
	uint64_t key[2]; /* keyed hashes */
	/*
	 * Names of client connections (rx-protocol 1.6, 1.7): the epoch of those to come, how many
	 * have it, and the order in which they get their ids. By lock.
	 */
	uint32_t epoch, named;
	uint64_t order[2];
	/*
	 * Callers that receive for themselves and wait for what comes soon; with more of them than
	 * that (fixed), none looks instead of sleeping.
	 */
	_Atomic(unsigned) waiting;
	unsigned lookers_max;
	/* What the kernel refuses is logged once for all endpoints: rxw_io_options.warned. */
	_Atomic(unsigned) io_warned;
};

/* More ids than these no epoch is used for (rx-protocol 1.6). */
#define RXW_NAMES_MAX (1u << 28)

/*
 * An epoch, and an id that nobody can guess and that no connection of this epoch had before: servers
 * remember those that are gone. 0 or -RXW_ESYS. No lock held.
 */
int rxw_engine_name(struct rxw_engine *e, uint32_t *epoch, uint32_t *cid);

struct rxw_shard;
struct rxw_verify_job;

/* Entry points of higher modules that lower ones call: the last table of an endpoint's making. */
struct rxw_upcalls {
	/* conn/lifecycle.c: the last reference is gone */
	void (*free_call)(struct rxw_call *call);
	void (*free_connection)(struct rxw_connection *c);
	/* serve/serve.c: runs the handler; what it returned, or why it did not run */
	int32_t (*serve)(struct rxw_call *call, bool on_receiver);
	void (*refuse)(struct rxw_call *call); /* ends it with RXW_RESTARTING */
	/* verify/deliver.c: does a job and frees it; no thread can do it */
	void (*verify)(struct rxw_verify_job *job);
	void (*undone)(struct rxw_verify_job *job);
};
extern const struct rxw_upcalls rxw_upcalls;

/* A service: fixed once added, but for the counters. */
struct rxw_service {
	uint16_t id;
	char name[32];
	rxw_handler_fn handler;
	void *context;
	unsigned flags;
	unsigned workers_max, idle_ms;
	rxw_security **security;
	size_t security_count;
	uint8_t level_min; /* enum rxw_level */
	unsigned workers;  /* busy now; workers->lock */
	/*
	 * Short handlers that take long: until then (ns) workers run them; and how many more are
	 * watched closely. Relaxed.
	 */
	_Atomic(uint64_t) slow_until;
	_Atomic(unsigned) watched;
};

/* For what the thread of a handler waits. */
enum rxw_blocked_on {
	RXW_BLOCKED_NOT,
	RXW_BLOCKED_ON_PEER,
	RXW_BLOCKED_ON_MEMORY
};

/* One thread of them, on its stack; by the workers' lock, but for the atomics (relaxed). */
struct rxw_worker {
	struct rxw_worker *next, **prev;
	struct rxw_call *call; /* that it serves; NULL = none; the thread has the reference */
	uint64_t order;	       /* of its call among all that were served */
	bool waited;	       /* when it was last looked at */
	bool parked;	       /* it waits for its client: another may take its place */
	bool ending;	       /* its call was ended */
	uint64_t since;	       /* ns; it had moved `stock` packets by then; 0 = not looked at yet */
	uint32_t stock;
	_Atomic(uint32_t) moved; /* packets of its call, when it last began to wait */
	_Atomic(unsigned) waits; /* enum rxw_blocked_on; waiting.c says in what order */
};

/* Threads that run handlers. All fields by `lock`. */
struct rxw_workers {
	pthread_mutex_t lock;
	pthread_cond_t work; /* a call waits, or stop */
	pthread_cond_t gone; /* a thread ended */
	/*
	 * The latest that ended: the next one joins it, and the last of all is joined by who stops
	 * them, so that none is still on its way out of the library's code after that.
	 */
	pthread_t latest;
	bool joinable;
	/* calls that wait, linked by work_next; one reference each */
	struct rxw_call *head, **tail;
	unsigned waiting, waited; /* now; ever */
	_Atomic(unsigned) places; /* calls made that no worker took yet, queued or not */
	unsigned threads, idle, min, max, reserved;
	_Atomic(unsigned) made; /* threads, ever */
	unsigned kept;		/* for peers that have none */
	/*
	 * Idle ones that sleep; of those, how many were told that there is a call and have not got
	 * the lock yet: they count as busy where another one might be told; at most told_max, others
	 * are owed it. told + owed <= asleep, but where others than these woke.
	 */
	unsigned asleep, told, told_max, owed;
	/* those that there are; parked: are not counted; at most so many of them */
	struct rxw_worker *list;
	unsigned parked, waiters;
	_Atomic(uint64_t) look_at; /* ns; who waits for its client; UINT64_MAX = no matter */
	_Atomic(bool) some_wait;   /* and may not have been seen; or the latest look found some */
	unsigned fresh;		   /* peers with calls that wait and none at work */
	uint64_t since;	  /* ns; calls wait without a break, or it was looked at; 0 = none waits */
	uint64_t taken;	  /* calls, since then */
	bool standing;	  /* they have waited for long: fewer may */
	uint64_t briefly; /* calls that are taken in LEAST_WAIT (worker.c), while standing */
	bool stop;
	uint64_t executed;
};

struct rxw_endpoint {
	struct rxw_engine *engine;
	const struct rxw_upcalls *upcalls; /* fixed */
	struct rxw_config config;	   /* fixed */
	struct rxw_params params;	   /* fixed */
	struct rxw_io_group io;		   /* fixed until destroy */
	bool server;
	bool paused; /* the shards have no listeners yet; lock */
	char version_text[65];
	unsigned shard_count;
	struct rxw_shard *shard; /* array; fixed */
	pthread_mutex_t lock;	 /* services while added, stopping */
	_Atomic(unsigned) service_count;
	struct rxw_service service[RXW_MAX_SERVICES];
	struct rxw_workers workers;
	struct rxw_verifier verifier;
	unsigned senders;	      /* most threads that send bulk of many calls; fixed */
	_Atomic(unsigned) tx_senders; /* so many do */
	_Atomic(bool) stopping;	      /* no new calls */
	_Atomic(bool) quit;	      /* threads end */
	/*
	 * threads of the application set callbacks, and may find that they are due already, as threads
	 * that verify do: they are left to listeners, which sleep where they can be interrupted
	 */
	_Atomic(bool) callbacks_left;
	_Atomic(uint32_t) live; /* calls at work: begun or served, and not ended */
	uint32_t room_packets;	/* packets that the sockets' receive buffers hold; fixed */
	/* objects that the application or the network side keeps alive */
	_Atomic(uint32_t) connections, calls;
	_Atomic(uint32_t) settled; /* connections whose peer is proven, of config.connections_max */
	pthread_mutex_t peer_lock;
	struct rxw_peer_table *peers;
	pthread_mutex_t stranger_lock;
	struct rxw_strangers *strangers;
	struct rxw_questions *questions; /* NULL until there is one to ask; stranger_lock */
	struct rxw_rate abort_rate, answer_rate, local_rate; /* the last for askers of this host */
	uint64_t looked_until; /* what DEBUG cost is paid for by then (inspect.c); stranger_lock */
	struct rxw_listing listed_peers; /* peer_lock */
	struct rxw_cidr debug_net;
	bool debug_net_valid;
	_Atomic(const struct rxw_rpc_observer *) observer; /* NULL = none */
	_Atomic(struct rxw_trace *) trace; /* NULL until one was begun; stored under lock */
	_Atomic(uint64_t) contended[RXW_LOCK_COUNT]; /* of the endpoint's locks; relaxed */
};

/* Timer wheel of a shard: touched by the holder of the receive role only. */
struct rxw_wheel {
	struct rxw_connection *slot[RXW_WHEEL_SLOTS];
	uint64_t tick; /* ms that was handled last */
	unsigned count;
};

/*
 * A shard: a socket, its connections, its timers. `lock` covers the table. rx, wheel and out belong
 * to the holder of the receive role.
 */
struct rxw_shard {
	struct rxw_endpoint *ep;
	unsigned index;
	struct rxw_io_sock *sock;
	pthread_t listener;
	bool listener_started;

	pthread_mutex_t lock; /* table */
	struct rxw_conntable table;
	_Atomic(uint32_t) calls_live; /* of the table's connections; rxw_pcall_uncount() releases */

	/* receive role */
	pthread_mutex_t role_lock;
	pthread_cond_t role_free; /* the listener waits here while a caller has the role */
	bool role_held;		  /* role_lock */
	bool listener_parked;	  /* role_lock */
	/* role_lock: several callers wait, the listener is to take over */
	bool listener_wanted;
	/*
	 * Nobody has the role, and the listener comes for it by time only. Stored by role_lock, true
	 * before asleep is read; who falls asleep counts himself in asleep before he reads this: one
	 * of the two sees the other, so that nobody sleeps for packets that no one receives.
	 */
	_Atomic(bool) untended;
	/* given back since the listener began its batch: it stays; stored true by role_lock */
	_Atomic(bool) given_back;
	_Atomic(unsigned) asleep; /* calls whose threads sleep for packets and were told of none */
	uint64_t role_left_at;	  /* role_lock, ns */
	uint64_t grace; /* role_lock, ns: how long a role that a caller left stays untended */
	_Atomic(unsigned) sync_waiters; /* callers that wait in blocking functions */
	_Atomic(bool) in_wait;		/* the holder sleeps in rxw_io_wait() until wait_until */
	_Atomic(uint64_t) wait_until;
	struct rxw_io_rx *rx;	    /* config.batch entries */
	struct rxw_ctl *ctl;	    /* RXW_CTL_ROOM */
	unsigned ctl_held;	    /* the first of them wait for the next record */
	struct rxw_effect *actions; /* RXW_EFFECTS_ROOM */
	bool woke_caller;	    /* this batch woke a caller that may receive for itself */
	/* outside the budget: receives what is no DATA when memory is used up */
	struct rxw_buf *reserve;
	struct rxw_pool *reserve_pool;
	struct rxw_budget reserve_budget;
	unsigned quiet; /* receive calls in a row that brought nothing */
	/* what waits until the socket is dry; one reference each */
	struct rxw_connection *owing[RXW_DEFERRED_MAX];
	unsigned owing_count;
	uint64_t owing_since;	 /* ns: time of the batch that put off the first of them */
	struct rxw_batch *batch; /* scratch of listener.c */
	struct rxw_wheel wheel;
	uint64_t reaped_at; /* ns */
	unsigned rx_depth;  /* buffers offered to the next receive call, 4..batch */
	uint64_t spin_hits, spin_tries, spin_skip;
	uint32_t last_bytes; /* of the latest batch */
	unsigned singles;    /* batches of one message in a row */
	bool refusing;	     /* most of what came last were calls that were refused */
	bool refusing_more;  /* the same, and there is more */

	/* timers posted by others: a stack, taken whole by the holder */
	_Atomic(struct rxw_connection *) inbox;

	/* send role */
	_Atomic(bool) tx_busy;
	pthread_mutex_t txq_lock;
	struct rxw_call *txq_head, **txq_tail; /* txq_lock; one reference each */
	_Atomic(bool) txq_any;
	uint32_t tx_bytes;     /* of the latest batches, decaying; send role */
	_Atomic(bool) tx_bulk; /* much of many calls leaves here; stored by the holder; relaxed */
	_Atomic(bool) tx_left; /* the holder of the receive role is to send next */

	/* counters, relaxed */
	struct rxw_pstats stats; /* of any thread */
	struct rxw_pstats own;	 /* of what the holder of the receive role does in it */
	_Atomic(uint64_t) windows_by_writer, windows_by_receiver, wakeups, wrong_shard;
	_Atomic(uint64_t) handlers_short, handlers_worker;
	_Atomic(uint64_t) contended[RXW_LOCK_COUNT]; /* its locks, its connections' */
};

/*
 * A connection. `lock` covers p and its calls' protocol state. References: application, table
 * (server), calls, batches.
 */
struct rxw_connection {
	struct rxw_pconn p; /* first */
	struct rxw_endpoint *ep;
	pthread_mutex_t lock;
	_Atomic(uint32_t) refs;
	/* shard where its packets arrive, whose socket sends for it */
	_Atomic(unsigned) home;
	unsigned table;		     /* shard whose table and timer wheel have it; fixed */
	struct rxw_service *service; /* server; fixed */
	pthread_cond_t channel_free; /* client callers wait for a channel */
	unsigned channel_waiters;    /* lock */
	unsigned aborts;	     /* rxw_connection_abort(): so often, ... */
	int32_t abort_code;	     /* ... the last time with that; lock */
	bool owing;		     /* in the list of some shard; lock */
	bool released;		     /* client: the application gave it back; lock */
	unsigned held;		     /* client: calls that the application has not ended; lock */
	bool in_table;		     /* lock of the table's shard */
	bool stranger;		     /* counted in ep->strangers; lock */
	bool settled;		     /* counted in ep->settled; lock */
	struct rxw_connection *unproven_next; /* lock of the shard that made it */

	/* timer: of the connection and its calls */
	/* ns; no later than what any of them wants; stored under the lock */
	_Atomic(uint64_t) deadline;
	/* ns; where the wheel has it, UINT64_MAX = nowhere; stored by the role holder */
	_Atomic(uint64_t) armed;
	_Atomic(bool) posted; /* in the inbox */
	_Atomic(struct rxw_connection *) inbox_next;
	struct rxw_connection *wheel_next, **wheel_prev; /* role holder */
	/* calls whose callbacks are left to the next look at the timers; one reference each; lock */
	struct rxw_call *due;
	/* runs that receivers took to verify them themselves, and the latest of their batches; lock */
	unsigned verify_here;
	const struct rxw_batch *verify_batch;
	uint32_t verify_round;
	/*
	 * Runs to be verified whose calls were not there when they came, and what follows these; they
	 * hold no reference. By channel, a bit each: some wait; a thread was told; it has taken some,
	 * and the channel's others wait until these are delivered; lock
	 */
	struct rxw_verify_job *early, **early_tail;
	unsigned early_runs;
	uint8_t early_has, early_told, early_busy;
};

/* What the writing application does now; covered by the connection's lock. */
enum rxw_writer {
	RXW_WRITER_ELSEWHERE, /* not in a function of the call: whoever handles the ACK sends */
	RXW_WRITER_INSIDE,    /* in write() and about to look again under the lock */
	RXW_WRITER_WAITING,   /* sleeps for room */
	RXW_WRITER_GONE	      /* the stream is complete */
};

#define RXW_READ_PIECES 16

struct rxw_call {
	struct rxw_pcall p;	     /* first; connection's lock */
	struct rxw_connection *conn; /* one reference; fixed */
	_Atomic(uint32_t) refs;	     /* channel, application or handler, queues, batches */
	pthread_cond_t cond;	     /* with conn->lock */
	unsigned flags;		     /* RXW_CALL_…; fixed */
	unsigned sleepers;	     /* threads in cond; lock */
	struct rxw_shard *asleep;    /* counted in its asleep, NULL = in none; lock */
	bool comes_back;	     /* who sleeps may receive for himself; lock */
	struct rxw_shard *receiving; /* its waiting caller has the receive role of it; lock */
	enum rxw_writer writer;	     /* lock */
	bool send_wanted;	     /* a window is left to the writer that waits; lock */
	bool ended;		     /* the application is through with it; lock */
	bool attached;		     /* server: has a handler, or is queued for one; lock */
	bool short_handler;	     /* runs on the receiving thread: must not wait */
	bool live;		     /* counted in endpoint->live; lock */
	_Atomic(bool) placed;	     /* counted in workers.places */
	bool quiet;		     /* something to read, told when the socket is dry; lock */
	/*
	 * Runs to be verified, by the reader or by a thread that was told, one of them at a time:
	 * what overtakes looks like loss to the sender; lock
	 */
	struct rxw_verify_job *verify, **verify_tail;
	unsigned verify_runs;
	int64_t verify_pinned; /* bytes of these runs, and of those that were taken, in memory */
	bool verify_told;
	bool verify_busy;	    /* some were taken and are not delivered yet */
	bool reader_waits;	    /* in read(), asleep or receiving; lock */
	uint64_t started, finished; /* ns */

	/* asynchronous form; lock */
	rxw_call_fn callback;
	void *arg;
	bool callback_queued;  /* somebody will run it */
	bool callback_busy;    /* it runs, on callback_thread */
	bool callback_pending; /* events since it was last asked */
	bool callback_due;     /* in the connection's list of them */
	struct rxw_call *due_next;
	pthread_t callback_thread; /* valid while busy */
	uint32_t turn_end;	   /* 0, or the packet up to which that thread writes in its turn */
	int fd;			   /* eventfd, -1 = none */
	unsigned fd_events;	   /* it is readable while one of these holds */
	bool fd_set;
	bool starved;  /* there was no memory: told of room at the next look at the timers */
	bool end_owed; /* for want of memory the request has not ended: the next read ends it */

	/* reading thread only */
	struct {
		struct rxw_rxpiece piece[RXW_READ_PIECES];
		unsigned count, at; /* pieces, the one being read */
		unsigned keep;	    /* first that is not given back: [keep, at) is lent */
		uint16_t packet;    /* packets of it that are used up */
		uint16_t offset;    /* bytes of the present packet that are used up */
		uint32_t consumed;  /* packets used up and not yet reported */
		bool ended;	    /* the pieces at hand are the last */
		bool lent;
		uint64_t bytes; /* read, or lent */
	} r;

	/* writing thread only */
	struct {
		struct rxw_buf *buf;
		uint8_t *base;	       /* first datagram of the run that grows */
		uint16_t stride, room; /* bytes of a slot; slots from base on */
		uint16_t full;	       /* complete packets from base on */
		uint16_t fill;	       /* data bytes in the packet behind them */
		uint16_t capacity;     /* data bytes of a full packet */
		uint8_t head;	       /* bytes before the data, of the security class */
		uint32_t seq;	       /* of the next packet */
		bool finished;	       /* LAST_PACKET was pushed */
		_Atomic(bool) ending;  /* somebody pushes it, or has: any thread, once */
		size_t reserved;
		uint64_t bytes; /* written */
		/* sealed, but not queued for want of memory: it goes first; buf NULL = none */
		struct rxw_txrun kept;
	} w;

	/* queues */
	/* workers->lock: what points to it in their queue, NULL = it is in none; no worker takes it */
	struct rxw_call *work_next, **work_link;
	bool withdrawn;
	struct rxw_call *tx_next; /* txq_lock */
	_Atomic(bool) tx_queued;  /* in the queue of some shard */
	/* actions for which their record had no room; todo: connection's lock, next: its owner */
	struct rxw_call *spill_next;
	unsigned spill_todo;
	/* a thread is between rxw_pcall_train() and done; connection's lock */
	bool tx_claimed;
	bool tx_again; /* queued while claimed; connection's lock */
	/* queued by its waiting writer: whoever sends sends it; connection's lock */
	bool tx_own;

	uint64_t pace_at; /* lock; transmission goes on then, 0 = not paced */
	/*
	 * server: when its writer, who may receive for itself, last went on, 0 = listener; not
	 * before; lock, ns
	 */
	uint64_t received_at, stay_out;

	void *data;
	_Atomic(uint64_t) windows_by_writer, windows_by_receiver;
};

static inline struct rxw_connection *rxw_conn_of(struct rxw_pconn *p)
{
	return (struct rxw_connection *)p;
}

static inline struct rxw_call *rxw_call_of(struct rxw_pcall *p)
{
	return (struct rxw_call *)p;
}

static inline struct rxw_shard *rxw_home(const struct rxw_connection *c)
{
	return &c->ep->shard[atomic_load_explicit(&c->home, memory_order_relaxed)];
}

/* --- clock.c --- */
uint64_t rxw_now(void); /* monotonic ns */
/*
 * What this thread did a few microseconds ago is still now: one look at the clock for each handler,
 * callback or transmission instead of one for each step. rxw_clock_cache_set() sets what rxw_clock_cached()
 * says (0: the clock again) and returns what it said before, to be put back.
 */
uint64_t rxw_clock_cache_set(uint64_t now);
uint64_t rxw_clock_cached(void);
long rxw_preemptions(void); /* how often the scheduler took this thread's processor; 0: unknown */
/* Sleep for so many microseconds, not 50 more as a thread does by default. */
void rxw_sleep_us(unsigned us);
/*
 * A lock that many threads take for a moment each: who finds it taken looks again for a while
 * before it sleeps, where the C library can do that.
 */
void rxw_mutex_init(pthread_mutex_t *m);
int rxw_cond_init(pthread_cond_t *c); /* on the monotonic clock */
/* Wait until `at` (ns, UINT64_MAX = for ever). */
void rxw_cond_wait_until(pthread_cond_t *c, pthread_mutex_t *m, uint64_t at);
/* A library thread: all signals blocked, name, affinity of the engine. */
int rxw_thread_create(pthread_t *t, const struct rxw_config *config, unsigned ordinal,
		      const char *name, void *(*run)(void *), void *arg);
void rxw_log(const struct rxw_engine *e, enum rxw_log_level level, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Is this thread running library code for this endpoint (listener, worker, callback)? */
bool rxw_on_library_thread(const struct rxw_endpoint *ep);
void rxw_set_library_thread(const struct rxw_endpoint *ep);

/* --- objects.c: references --- */
void rxw_conn_ref(struct rxw_connection *c);
void rxw_conn_unref(struct rxw_connection *c);
void rxw_call_ref(struct rxw_call *call);
void rxw_call_unref(struct rxw_call *call);
/* The last reference is gone (struct rxw_upcalls). */
void rxw_conn_free(struct rxw_connection *c);
void rxw_call_free(struct rxw_call *call);
/* Take it out of its table and break the circle with its channels' calls. No lock held. */
void rxw_conn_remove(struct rxw_connection *c);
/* After a call ended: remove a released client connection that has none left. No lock held. */
void rxw_conn_release_idle(struct rxw_connection *c);
/*
 * Lock held: the call is at work, with its share of the sockets' receive buffers as the most it may
 * advertise; and is no longer.
 */
void rxw_call_live(struct rxw_call *call);
void rxw_call_unlive(struct rxw_call *call);
struct rxw_call *rxw_call_create(struct rxw_connection *c, unsigned flags);
/* No lock held: the call fails here, and the peer is told. */
void rxw_call_fail(struct rxw_call *call, int32_t code);
struct rxw_connection *rxw_conn_create(struct rxw_endpoint *ep, const struct rxw_path *path,
				       uint32_t epoch, uint32_t cid, uint16_t service,
				       struct rxw_security *security, bool client, unsigned home,
				       int *error);

/* --- shard.c, listener.c, timer.c --- */
int rxw_shard_init(struct rxw_shard *s, struct rxw_endpoint *ep, unsigned index);
int rxw_shard_start(struct rxw_shard *s);
void rxw_shard_stop(struct rxw_shard *s); /* joins the listener */
void rxw_shard_fini(struct rxw_shard *s);
/* One receive batch and what follows from it; waits a while if there is nothing. Receive role. */
void rxw_receive_batch(struct rxw_shard *s);
/*
 * Role and connection's lock held: what waits for a dry socket is looked at then, or a millisecond
 * after `now`, the time of the batch.
 */
void rxw_defer_until_drained(struct rxw_shard *s, struct rxw_connection *c, uint64_t now);
/* The shard whose receive role this thread holds, NULL for none. */
struct rxw_shard *rxw_receiving(void);
void rxw_set_receiving(struct rxw_shard *s);
/*
 * Take the receive role for a waiting caller, on a server for the waiting writer of the only call;
 * false if somebody else holds it or should.
 */
bool rxw_role_try(struct rxw_shard *s);
/* To the listener if somebody else sleeps for packets, or several wait; else it is untended. */
void rxw_role_leave(struct rxw_shard *s);
/* Should the listener receive, for several wait? */
bool rxw_role_wanted(const struct rxw_shard *s);
/* Nobody comes back to a role that was left: the listener takes it at once. */
void rxw_role_reclaim(struct rxw_shard *s);
/*
 * For a while, to verify what came: somebody who waits may take it. The second says whether it came
 * back to this listener; if not, rxw_role_await() when there is nothing else to do.
 */
void rxw_role_lend(struct rxw_shard *s);
bool rxw_role_retake(struct rxw_shard *s);
/* A caller begins or ends waiting on a call of this shard. */
void rxw_role_waiter_begin(struct rxw_shard *s);
void rxw_role_waiter_end(struct rxw_shard *s);
/*
 * Connection's lock held: a thread is about to sleep for packets of this call; the call's threads
 * were told of some, or sleep no more. Between the two the role is not left untended; who falls
 * asleep sees to that.
 */
void rxw_sleeper_add(struct rxw_call *call, struct rxw_shard *s);
void rxw_sleeper_remove(struct rxw_call *call);

/* --- actions.c: what follows from floor 1, once a connection's lock is released --- */
enum rxw_do {
	RXW_DO_WAKE = 1,		/* threads that sleep in the call's condition */
	RXW_DO_SEND = 2,		/* queue it for transmission */
	RXW_DO_ATTACH = 4,		/* a server call gets its handler */
	RXW_DO_CALLBACK = 8,		/* run rxw_callback_run() */
	RXW_DO_WAKE_CHANNEL = 16,	/* a channel became free: wake those who wait for one */
	RXW_DO_SIGNAL_FD = 32,		/* make the call's descriptor readable */
	RXW_DO_INTERRUPT = 64,		/* its caller receives itself: interrupt its wait */
	RXW_DO_WAKE_RECEIVER = 128,	/* with WAKE: who is woken may take the receive role */
	RXW_DO_HAND_OVER_CALLBACK = 256 /* the same as CALLBACK, but rxw_callback_hand_over() */
};
struct rxw_effect {
	struct rxw_call *call;
	struct rxw_shard *kick; /* with KICK: where its caller waits, which need not be its home */
	unsigned todo;
};
#define RXW_EFFECTS_FEW 8

/* Belongs to one thread. Each action holds a reference of its call. */
struct rxw_effects {
	struct rxw_out out;
	struct rxw_shard *shard; /* whose socket and counters are used */
	struct rxw_effect *item;
	unsigned count, room;
	struct rxw_call *spill; /* those for which there was no room, one reference each */
	bool receiver;		/* on the thread that holds the shard's receive role */
	struct rxw_effect few[RXW_EFFECTS_FEW];
	struct rxw_ctl ctl[6];
};
/*
 * For the receiver: the shard's large arrays, with what is held in them; for others the small
 * ones inside.
 */
void rxw_effects_init(struct rxw_effects *a, struct rxw_shard *s, bool receiver);
/*
 * The receiver's control packets are held: they leave with those of its next record, or when
 * rxw_dispatch_held() is called.
 */
void rxw_effects_hold(struct rxw_effects *a);
void rxw_dispatch_held(struct rxw_shard *s);
/* Room for what one more connection can cause? Otherwise rxw_dispatch() first. */
bool rxw_effects_full(const struct rxw_effects *a);
/*
 * With the connection's lock held, as the last thing before it is released. `dry`: the socket has
 * nothing more.
 */
void rxw_effects_collect(struct rxw_effects *a, bool dry);
/* With the lock held: a call whose reader was left asleep while more was coming. */
void rxw_effects_readable(struct rxw_effects *a, struct rxw_call *call);
/* Lock held; the caller's reference of the call goes over. */
void rxw_effects_add(struct rxw_effects *a, struct rxw_call *call, unsigned todo);
/* Without any lock. The record is empty and usable again afterwards. */
void rxw_dispatch(struct rxw_effects *a);

/* --- timer.c --- */
/* With the connection's lock: note the call's deadline; post it if the wheel has it later. */
void rxw_timer_update(struct rxw_call *call);
void rxw_timer_of_conn(struct rxw_connection *c); /* the same for the connection's own */
/* With the connection's lock: its callback is run at the next look at the timers. */
void rxw_timer_post_callback(struct rxw_call *call);
/* Lock held: notes what the connection and its calls want, exactly. */
void rxw_timer_recompute(struct rxw_connection *c);
/* Receive role. Has a tick come for which the wheel has entries? */
bool rxw_timer_due(struct rxw_shard *s, uint64_t now);
/* Receive role: fires what is due by the time of the record. */
typedef void (*rxw_fire_fn)(struct rxw_connection *c, struct rxw_effects *a);
void rxw_timer_expire(struct rxw_shard *s, struct rxw_effects *a, rxw_fire_fn fire);
void rxw_timer_run(struct rxw_shard *s, uint64_t now); /* rx/expire.c; receive role */
/*
 * When the wheel is to be looked at next: the first entry of the next `ticks` ms, or their end;
 * UINT64_MAX if it is empty.
 */
uint64_t rxw_timer_next(struct rxw_shard *s, uint64_t now, unsigned ticks);
void rxw_timer_forget_all(struct rxw_shard *s); /* shutdown */

/* --- transmit.c --- */
/*
 * Queue a call for transmission at its home; lock held or not. Returns the shard whose rxw_tx_run()
 * has to follow, NULL if the call was queued already.
 */
struct rxw_shard *rxw_tx_queue(struct rxw_call *call);
/*
 * One batch of the queue, in one system call if possible. Send role. What it causes is in the record.
 * Returns another shard whose rxw_tx_run() has to follow, or NULL.
 */
struct rxw_shard *rxw_tx_batch(struct rxw_shard *s, struct rxw_effects *a);
/*
 * Send what is queued for the shard's socket, if nobody else does. No lock held. A thread that
 * batches (actions.c) does it at its end.
 */
void rxw_tx_run(struct rxw_shard *s);
/* Put off rxw_tx_run() of this thread on `s` (NULL: no more). */
void rxw_tx_hold(struct rxw_shard *s);
/*
 * This thread is in write() of the call; NULL: in none. Returns what it said before. If it comes to
 * send for many others it leaves them to the next before its own stream runs dry.
 */
struct rxw_call *rxw_tx_writing(struct rxw_call *call);
void rxw_ctl_send(struct rxw_shard *s, struct rxw_ctl *ctl, unsigned count);

/* --- worker.c --- */
int rxw_workers_start(struct rxw_endpoint *ep);
/*
 * No more handlers run. Waits until `end` (ns, UINT64_MAX = for ever) for those that do; how many
 * are left. May be said again.
 */
unsigned rxw_workers_stop(struct rxw_endpoint *ep, uint64_t end);
/* A place for a new call among those that wait for a worker; false: there is none. */
bool rxw_workers_reserve(struct rxw_connection *c);
/* More than half of the workers work or will soon, those of calls that may wait included. */
bool rxw_workers_scarce(struct rxw_endpoint *ep);
/* ns; how long a call waits for a worker, about, where calls wait all the time; 0: they do not. */
uint64_t rxw_workers_wait(struct rxw_endpoint *ep);
void rxw_workers_release(struct rxw_connection *c);
void rxw_workers_release_call(
	struct rxw_call *call); /* taken, or over without; may be said again */
/*
 * Connection's lock held: the call is over. If no worker has taken it yet, none does, and neither it
 * nor its place stay until one would have.
 */
void rxw_workers_withdraw(struct rxw_call *call);
/*
 * A server call may have a handler: queue it for a worker. Takes its own reference. False: the
 * endpoint stops, and the caller has to refuse it.
 */
bool rxw_workers_add(struct rxw_call *call);
/* Lock held: calls wait, and more workers may be had than before. */
unsigned rxw_workers_more(struct rxw_endpoint *ep);
/* No lock held: the threads that it said are to be made. */
void rxw_workers_make(struct rxw_endpoint *ep, unsigned threads);

/* --- waiting.c: workers that wait for their clients --- */
/* Lock held: this thread is a worker, takes a call, is through with it, is none any more. */
void rxw_worker_begin(struct rxw_workers *w, struct rxw_worker *worker);
void rxw_worker_begin_call(struct rxw_workers *w, struct rxw_worker *worker, struct rxw_call *call);
void rxw_worker_end_call(struct rxw_workers *w, struct rxw_worker *worker);
void rxw_worker_end(struct rxw_worker *worker);
/*
 * Connection's lock held: this thread is about to wait in a function of the call. True: it serves
 * the call, and says so when it goes on.
 */
bool rxw_worker_blocked(const struct rxw_call *call, enum rxw_blocked_on what);
void rxw_worker_unblocked(void);
/* Connection's lock held: packets that the call has moved, either way. */
uint32_t rxw_worker_moved(const struct rxw_call *call);
/* A call that keeps a worker from others and moved nothing; one reference. */
struct rxw_slow_call {
	struct rxw_call *call;
	uint64_t since;
	uint32_t stock;
	unsigned share; /* workers of its peer */
	bool ended;
	uint32_t moved; /* as it turned out */
};
/*
 * When workers.look_at has come, no lock held: parks workers that wait, and finds calls to be ended,
 * at most so many. Returns how many.
 */
unsigned rxw_workers_slow(struct rxw_endpoint *ep, uint64_t now, struct rxw_slow_call *v,
			  unsigned most);
bool rxw_workers_too_slow(const struct rxw_slow_call *v, uint64_t now);
/* Those that turned out not to be slow may be looked at again. */
void rxw_workers_spare(struct rxw_endpoint *ep, const struct rxw_slow_call *v, unsigned n);
/*
 * admit/slow_calls.c: when workers.look_at has come, no lock held: those that wait are parked, within bounds, and where
 * these are reached calls that move nothing are ended.
 */
void rxw_end_slow_calls(struct rxw_endpoint *ep, uint64_t now);

/* --- verify.c --- */
/* What the batches of this thread left to it: while it has the role. */
struct rxw_verify_job *rxw_verify_taken(struct rxw_shard *s);
/* Lock held: is there something of the call that this thread may verify? */
bool rxw_verify_waits(const struct rxw_call *call);
/* Lock held, if it waits: the first runs, at most so many. Nobody takes others before they are delivered. */
struct rxw_verify_job *rxw_verify_take(struct rxw_call *call, unsigned most);
/*
 * Verify them, without lock and role; then hand them to their connections, and free them.
 * `receiver`: with the role of `s`; without it `dry` must be set.
 */
void rxw_verify_do(struct rxw_verify_job *jobs);
void rxw_verify_deliver(struct rxw_shard *s, struct rxw_verify_job *jobs, bool receiver, bool dry);
void rxw_verify_drop(struct rxw_verify_job *jobs);
/* Nobody knows of the connection any more: what waits for calls that never came is freed. */
void rxw_verify_forget(struct rxw_connection *c);
/* Lock held: work of an exchange became due. */
void rxw_verify_auth(struct rxw_connection *c, struct rxw_out *out);
/* A thread of the endpoint is to run rxw_callback_run_quantum(). No lock held. False: there is none. */
bool rxw_verify_callback(struct rxw_call *call);
/* No lock held, after jobs may have been queued: a thread for those that nobody is there for. */
void rxw_verifier_grow(struct rxw_endpoint *ep);

/* --- callbacks.c --- */
unsigned rxw_events_now(const struct rxw_call *call); /* lock held */
/* Lock held: returns true if the caller must run rxw_callback_run() after it released the lock. */
bool rxw_callback_note(struct rxw_call *call);
/*
 * May this thread run callbacks here? Otherwise rxw_timer_post_callback() leaves it to one that may.
 */
bool rxw_may_call_back(void);
/* This thread begins to run a callback; and has run it. */
void rxw_callback_enter(void);
void rxw_callback_leave(void);
/*
 * In a callback, or with the receive role, as handlers of short services are: a thread that others
 * wait for. What would have to wait on it is refused.
 */
bool rxw_must_not_wait(void);
bool rxw_fd_note(struct rxw_call *call); /* lock held: the descriptor must be signalled */
void rxw_callback_run(struct rxw_call *call);
/*
 * Lock held: a callback that was noted is for the threads that verify, because the call has sealed
 * bulk, and the callback may write more or begin the next one.
 */
bool rxw_callback_seals_bulk(const struct rxw_call *call);
/* No lock held: leave it to them, or to the next look at the timers if there are none. */
void rxw_callback_hand_over(struct rxw_call *call);
/*
 * On one of them: run it once, for some packets; if it is to run again, others have their turn first.
 */
void rxw_callback_run_quantum(struct rxw_call *call);
/* Lock held: this thread has such a turn, and has written its packets. */
bool rxw_callback_quantum_used(const struct rxw_call *call);

/* --- inspect.c: VERSION and DEBUG --- */
/*
 * A packet of these types; may write one answer to *ctl (returns true). Receive role; no lock held.
 */
bool rxw_inspect(struct rxw_shard *s, const struct rxw_rxrun *run, uint64_t now,
		 struct rxw_ctl *ctl);

/* --- face/wait.c --- */
/*
 * With the connection's lock held (released while it sleeps): wait until `ready`. On a client
 * endpoint a lone waiter takes the receive role itself. The caller must have run its actions.
 */
void rxw_wait(struct rxw_call *call, bool (*ready)(const struct rxw_call *call));

/* --- face/stream.c, used by worker.c --- */
/* Server: the handler returned. Ends the stream or aborts. */
void rxw_stream_finish(struct rxw_call *call, int32_t code);
/*
 * Push what is written, the end of the stream included if `last`, and make it leave. 0 or a
 * negative result.
 */
int rxw_stream_flush(struct rxw_call *call, bool last);
/* Client: the request ends before the first read. */
int rxw_stream_half_close(struct rxw_call *call);
/* Read and drop what is left; 0 at the end, or a negative result. */
int rxw_stream_discard(struct rxw_call *call);

#endif
