/* SPDX-License-Identifier: BSD-2-Clause */
/* Objects of floors 3 and 4: engine, endpoint, shard, connection, call, and which lock covers what. */
#ifndef RXW_ENGINE_INTERNAL_H
#define RXW_ENGINE_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <rxwire/rxwire.h>

#include "base/hash.h"
#include "io/io.h"
#include "proto/connection.h"

/*
 * Lock order: endpoint->lock, shard->lock, connection->lock, workers->lock, leaf locks (shard->txq_lock, endpoint->peer_lock,
 * endpoint->stranger_lock, shard->role_lock). Never two of a kind. None is held across a system call that may wait, a wake-up of a handler or
 * callback, sealing or verifying.
 */

#define RXW_MAX_SHARDS 64
#define RXW_MAX_SERVICES 16
#define RXW_CTL_ROOM 160       /* control packets of one receive batch */
#define RXW_WHEEL_SLOTS 512    /* of 1 ms */

struct rxw_engine {
	struct rxw_config config;      /* fixed */
	struct rxw_budget memory;
	struct rxw_pool *pool;         /* receive buffers, send chunks, small buffers */
	pthread_mutex_t lock;          /* endpoints */
	unsigned endpoints;
	uint64_t key[2];               /* keyed hashes */
	uint32_t epoch;                /* of all client connections; fixed */
};

struct rxw_shard;

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
	unsigned workers;              /* busy now; workers->lock */
};

/* Threads that run handlers. All fields by `lock`. */
struct rxw_workers {
	pthread_mutex_t lock;
	pthread_cond_t work;           /* a call waits, or stop */
	pthread_cond_t gone;           /* a thread ended */
	struct rxw_call *head, **tail; /* calls that wait, linked by work_next; one reference each */
	unsigned waiting, waited;      /* now; ever */
	unsigned threads, idle, min, max, reserved;
	bool stop;
	uint64_t executed;
};

struct rxw_endpoint {
	struct rxw_engine *engine;
	struct rxw_config config;      /* fixed */
	struct rxw_params params;      /* fixed */
	struct rxw_io_group io;        /* fixed until destroy */
	bool server;
	char version_text[65];
	unsigned shard_count;
	struct rxw_shard *shard;       /* array; fixed */
	pthread_mutex_t lock;          /* services while added, stopping */
	_Atomic(unsigned) service_count;
	struct rxw_service service[RXW_MAX_SERVICES];
	struct rxw_workers workers;
	_Atomic(bool) stopping;        /* no new calls */
	_Atomic(bool) quit;            /* threads end */
	_Atomic(uint32_t) connections, calls; /* objects that the application or the network side keeps alive */
	pthread_mutex_t peer_lock;
	struct rxw_peer_table *peers;
	pthread_mutex_t stranger_lock;
	struct rxw_strangers *strangers;
	struct rxw_rate abort_rate, answer_rate;
	struct rxw_cidr debug_net;
	bool debug_net_valid;
};

/* Timer wheel of a shard: touched by the holder of the receive role only. */
struct rxw_wheel {
	struct rxw_call *slot[RXW_WHEEL_SLOTS];
	uint64_t tick;                 /* ms that was handled last */
	unsigned count;
};

/*
 * A shard: a socket, its connections, its timers. `lock` covers the table. rx, wheel and out belong to the holder of the receive role.
 */
struct rxw_shard {
	struct rxw_endpoint *ep;
	unsigned index;
	struct rxw_io_sock *sock;
	pthread_t listener;
	bool listener_started;

	pthread_mutex_t lock;          /* table */
	struct rxw_conntable table;
	unsigned reap_at;              /* slot where the next reaping pass goes on; lock */

	/* receive role */
	pthread_mutex_t role_lock;
	pthread_cond_t role_free;      /* the listener waits here while a caller has the role */
	bool role_held;                /* role_lock */
	bool listener_parked;          /* role_lock */
	_Atomic(unsigned) sync_waiters;/* callers that wait in blocking functions */
	_Atomic(bool) in_wait;         /* the holder sleeps in rxw_io_wait() until wait_until */
	_Atomic(uint64_t) wait_until;
	struct rxw_io_rx *rx;          /* config.batch entries */
	struct rxw_ctl *ctl;           /* RXW_CTL_ROOM */
	struct rxw_batch *batch;       /* scratch of listener.c */
	struct rxw_wheel wheel;
	uint64_t reaped_at;            /* ns */
	unsigned rx_depth;             /* buffers offered to the next receive call, 4..batch */
	uint64_t spin_hits, spin_tries, spin_skip;

	/* timers posted by others: a stack, taken whole by the holder */
	_Atomic(struct rxw_call *) inbox;
	_Atomic(unsigned) active;      /* calls with a timer */

	/* send role */
	_Atomic(bool) tx_busy;
	pthread_mutex_t txq_lock;
	struct rxw_call *txq_head, **txq_tail; /* txq_lock; one reference each */
	_Atomic(bool) txq_any;

	/* counters, relaxed */
	struct rxw_pstats stats;
	_Atomic(uint64_t) windows_by_writer, windows_by_receiver, wakeups, wrong_shard;
	_Atomic(uint64_t) handlers_short, handlers_worker;
};

/* A connection. `lock` covers p and its calls' protocol state. References: application, table (server), calls, batches. */
struct rxw_connection {
	struct rxw_pconn p;            /* first */
	struct rxw_endpoint *ep;
	pthread_mutex_t lock;
	_Atomic(uint32_t) refs;
	_Atomic(unsigned) home;        /* shard where its packets arrive: timers, sending */
	unsigned table;                /* shard whose table has it; fixed */
	struct rxw_service *service;   /* server; fixed */
	pthread_cond_t channel_free;   /* client callers wait for a channel */
	unsigned channel_waiters;      /* lock */
	bool released;                 /* client: the application gave it back; lock */
	bool in_table;                 /* lock of the table's shard */
	bool stranger;                 /* counted in ep->strangers; lock */
	uint64_t created;
};

/* What the writing application does now; covered by the connection's lock. */
enum rxw_writer {
	RXW_WRITER_ELSEWHERE, /* not in a function of the call: whoever handles the ACK sends */
	RXW_WRITER_INSIDE,    /* in write() and about to look again under the lock */
	RXW_WRITER_WAITING,   /* sleeps for room */
	RXW_WRITER_GONE       /* the stream is complete */
};

#define RXW_READ_PIECES 16

struct rxw_call {
	struct rxw_pcall p;            /* first; connection's lock */
	struct rxw_connection *conn;   /* one reference; fixed */
	_Atomic(uint32_t) refs;        /* channel, application or handler, queues, batches */
	pthread_cond_t cond;           /* with conn->lock */
	unsigned flags;                /* RXW_CALL_…; fixed */
	unsigned sleepers;             /* threads in cond; lock */
	enum rxw_writer writer;        /* lock */
	bool ended;                    /* the application is through with it; lock */
	bool attached;                 /* server: has a handler, or is queued for one; lock */
	bool short_handler;            /* runs on the receiving thread: must not wait */
	bool done_reported;
	uint64_t started, finished;    /* ns */

	/* asynchronous form; lock */
	rxw_call_fn callback;
	void *arg;
	bool callback_busy;
	unsigned callback_pending, callback_seen;
	int fd;                        /* eventfd, -1 = none */
	bool fd_set;

	/* reading thread only */
	struct {
		struct rxw_rxpiece piece[RXW_READ_PIECES];
		unsigned count, at;    /* pieces, the one being read */
		uint16_t packet;       /* packets of it that are used up */
		uint16_t offset;       /* bytes of the present packet that are used up */
		uint32_t consumed;     /* packets used up and not yet reported */
		bool ended;            /* the pieces at hand are the last */
		bool lent;
	} r;

	/* writing thread only */
	struct {
		struct rxw_buf *buf;
		uint8_t *base;         /* first datagram of the run that grows */
		uint16_t stride, room; /* bytes of a slot; slots from base on */
		uint16_t full;         /* complete packets from base on */
		uint16_t fill;         /* data bytes in the packet behind them */
		uint16_t capacity;     /* data bytes of a full packet */
		uint8_t head, tail;    /* of the security class */
		uint32_t seq;          /* of the next packet */
		bool finished;         /* LAST_PACKET was pushed */
		size_t reserved;
	} w;

	/* queues */
	struct rxw_call *work_next;    /* workers->lock */
	struct rxw_call *tx_next;      /* txq_lock */
	bool tx_queued;                /* txq_lock */
	bool tx_by_receiver;           /* txq_lock: who asked last */
	struct rxw_call *batch_next;   /* callers' scratch lists */

	/* timer */
	_Atomic(uint64_t) deadline;    /* ns; what floor 1 wants; stored under the lock */
	_Atomic(uint64_t) armed;       /* ns; where the wheel has it, UINT64_MAX = nowhere; stored by the role holder */
	_Atomic(bool) posted;          /* in the inbox */
	_Atomic(struct rxw_call *) inbox_next;
	struct rxw_call *wheel_next, **wheel_prev; /* role holder */
	unsigned wheel_shard;
	uint64_t pace_at;              /* lock; transmission goes on then, 0 = not paced */

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
uint64_t rxw_now(void);                 /* monotonic ns */
int rxw_cond_init(pthread_cond_t *c);   /* on the monotonic clock */
/* Wait until `at` (ns, UINT64_MAX = for ever). */
void rxw_cond_wait_until(pthread_cond_t *c, pthread_mutex_t *m, uint64_t at);
/* A library thread: all signals blocked, name, affinity of the engine. */
int rxw_thread_create(pthread_t *t, const struct rxw_config *config, unsigned ordinal, const char *name,
		      void *(*run)(void *), void *arg);
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
extern const struct rxw_proto_ops rxw_engine_ops;
struct rxw_connection *rxw_conn_create(struct rxw_endpoint *ep, const struct rxw_path *path, uint32_t epoch,
				       uint32_t cid, uint16_t service, struct rxw_security *security,
				       bool client, unsigned home, int *error);

/* --- shard.c, listener.c, timer.c --- */
int rxw_shard_init(struct rxw_shard *s, struct rxw_endpoint *ep, unsigned index);
int rxw_shard_start(struct rxw_shard *s);
void rxw_shard_stop(struct rxw_shard *s); /* joins the listener */
void rxw_shard_fini(struct rxw_shard *s);
/* One receive batch and what follows from it. Receive role. */
void rxw_shard_poll(struct rxw_shard *s, uint64_t until);
/* Take the receive role for a waiting caller; false if somebody else holds it or should. */
bool rxw_role_try(struct rxw_shard *s);
void rxw_role_leave(struct rxw_shard *s);
/* A caller begins or ends waiting on a call of this shard. */
void rxw_sync_begin(struct rxw_shard *s);
void rxw_sync_end(struct rxw_shard *s);

/* --- After floor 1 was called under a connection's lock --- */
struct rxw_actions {
	struct rxw_out out;
	struct rxw_ctl *ctl;
	struct rxw_ctl few[4];         /* for callers that are no receivers */
	struct rxw_call *list;         /* calls with something to do, by batch_next; one reference each */
	bool receiver;                 /* on the thread that holds the receive role */
	struct rxw_shard *shard;       /* whose counters are used */
};
/* ctl NULL: the four inside. */
void rxw_actions_init(struct rxw_actions *a, struct rxw_shard *s, struct rxw_ctl *ctl, unsigned room, bool receiver);
/* With the lock held: move out.touched over to the list, wake sleepers' conditions noted, timers re-armed. */
void rxw_actions_collect(struct rxw_actions *a, struct rxw_connection *c, bool dry);
/* Without the lock: send control packets, transmit, wake, call back, attach. */
void rxw_actions_run(struct rxw_actions *a);

/* --- timer.c --- */
/* With the connection's lock: note the call's deadline; post it if the wheel has it later. */
void rxw_timer_update(struct rxw_call *call);
void rxw_timer_run(struct rxw_shard *s, uint64_t now);   /* receive role */
uint64_t rxw_timer_next(struct rxw_shard *s, uint64_t now);
void rxw_timer_forget_all(struct rxw_shard *s);          /* shutdown */

/* --- transmit.c --- */
void rxw_tx_queue(struct rxw_call *call, bool by_receiver);
/* Send what is queued for the shard's socket, if nobody else does. `limit` batches. */
void rxw_tx_run(struct rxw_shard *s, unsigned limit);
void rxw_ctl_send(struct rxw_shard *s, struct rxw_ctl *ctl, unsigned count);

/* --- worker.c --- */
int rxw_workers_start(struct rxw_endpoint *ep);
void rxw_workers_stop(struct rxw_endpoint *ep);
bool rxw_workers_full(struct rxw_endpoint *ep);
/* A server call may have a handler: queue it for a worker. Takes its own reference. */
void rxw_workers_add(struct rxw_call *call);
void rxw_serve(struct rxw_call *call, bool on_receiver);

/* --- callbacks.c --- */
unsigned rxw_events_now(const struct rxw_call *call);   /* lock held */
/* Lock held: returns true if the caller must run rxw_callback_run() after it released the lock. */
bool rxw_callback_note(struct rxw_call *call);
void rxw_callback_run(struct rxw_call *call);

/* --- inspect.c: VERSION and DEBUG --- */
/* A packet of these types; may write one answer to *ctl (returns true). Receive role; no lock held. */
bool rxw_inspect(struct rxw_shard *s, const struct rxw_rxrun *run, uint64_t now, struct rxw_ctl *ctl);

/* --- face/stream.c, used by worker.c --- */
/* Server: the handler returned. Ends the stream or aborts. */
void rxw_stream_finish(struct rxw_call *call, int32_t code);
void rxw_stream_fini(struct rxw_call *call); /* drop pieces and slots */

#endif
