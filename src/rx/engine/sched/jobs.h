/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Work of security classes that a thread does: runs of packets to verify, callbacks that seal bulk
 * data, exchanges; and an endpoint's threads for it.
 */
#ifndef RXW_ENGINE_JOBS_H
#define RXW_ENGINE_JOBS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "proto/peer/auth.h"

struct rxw_auth_job;
struct rxw_call;
struct rxw_connection;
struct rxw_endpoint;
struct rxw_out;
struct rxw_shard;
struct rxw_verifier;

/*
 * A job is one of four kinds: an exchange (`auth`), a callback (`callback`), a quantum of a call's
 * runs (`call`) or of a channel's (`early`). Lists of such runs consist of jobs, too: one for each
 * run.
 */
struct rxw_verify_job {
	struct rxw_verify_job *next;
	struct rxw_connection *conn; /* one reference, except in conn->jobs.early */
	struct rxw_auth_job *auth;
	struct rxw_call *call; /* one reference */
	bool callback;
	struct rxw_call *of;  /* of a run: the call from whose list it was taken */
	uint8_t early;	      /* bit of the channel; of a run: taken from conn->jobs.early */
	bool here;	      /* of a run: counted in conn->jobs.here */
	int64_t charge;	      /* bytes of its buffer that the connection and its peer are charged */
	struct rxw_rxrun run; /* one reference of its buffer; RXW_VERIFY_MOST packets at most */
	struct rxw_path path;
	struct rxw_security_packet packet[]; /* of the run, with the verdicts */
};

/*
 * Private to the module, as the next two. Runs of a call that wait to be verified by its reader or by a thread. Only one of the two takes
 * some at a time, which keeps them in order. The connection's lock.
 */
struct rxw_call_jobs {
	struct rxw_verify_job *first, **tail;
	unsigned runs;
	int64_t pinned; /* memory of these runs and of those that were taken */
	bool signalled; /* a thread was signalled to take some */
	bool busy;	/* some were taken and are not delivered yet */
};

/* The connection's lock. */
struct rxw_conn_jobs {
	/* runs that receivers verify themselves, and the latest list with any: round and shard */
	unsigned here;
	uint32_t round;
	const struct rxw_shard *shard;
	/*
	 * Early runs: their calls did not exist yet when they arrived; and the runs behind them. A
	 * bit for each channel: it has some; a thread was signalled; a thread has taken some, and
	 * the others wait until those are delivered.
	 */
	struct rxw_verify_job *early, **early_tail;
	unsigned early_runs;
	uint8_t early_has, early_signalled, early_busy;
};

/* Runs that the holder of the receive role verifies once it has left the role. Receive role. */
struct rxw_shard_jobs {
	struct rxw_verify_job *first, **tail;
	uint32_t round; /* counts the lists that were taken */
};

/* 0 or -RXW_ENOMEM. */
int rxw_verifier_create(struct rxw_endpoint *ep);
/* No more jobs are accepted. The queued ones are run, then the threads end. */
void rxw_verifier_stop(struct rxw_verifier *v);
/* NULL is allowed. */
void rxw_verifier_free(struct rxw_verifier *v);
/* Acquisitions of its lock that had to wait. */
uint64_t rxw_verifier_contended(const struct rxw_endpoint *ep);
/* No lock held. To be called after jobs may have been queued: starts threads that are missing. */
void rxw_verifier_grow(struct rxw_endpoint *ep);

/*
 * Connection's lock and receive role held. Queue a run for verification; its batch has `packets`
 * packets of the connection. This thread verifies it after it left the role, or the call's reader
 * does, or a thread.
 */
void rxw_verify_queue(struct rxw_shard *s, struct rxw_connection *c, const struct rxw_rxrun *run,
		      uint32_t packets);
/* Receive role: the list that rxw_verify_queue() left to this thread. */
struct rxw_verify_job *rxw_verify_take_own(struct rxw_shard *s);
/* Connection's lock held: may this thread take runs of the call? */
bool rxw_verify_ready(const struct rxw_call *call);
/* Connection's lock held, after that: take the first runs, `most` at most. */
struct rxw_verify_job *rxw_verify_take(struct rxw_call *call, unsigned most);
/* Connection's lock held: a signalled thread takes the first runs of the call or channel, if it may. */
struct rxw_verify_job *rxw_verify_take_signalled(const struct rxw_verify_job *job, unsigned most);
/* Connection's lock held: drop a channel's runs that no thread can verify; they count as lost. */
void rxw_verify_lose_early(struct rxw_connection *c, uint8_t bit, struct rxw_out *out);
/* Connection's lock held: an exchange has work to do. */
void rxw_verify_auth(struct rxw_connection *c, struct rxw_out *out);
/* No lock held: let a thread run rxw_callback_run_quantum(). False: there is none. */
bool rxw_verify_callback(struct rxw_call *call);
/*
 * Connection's lock held: runs of the call, or of a channel if it is NULL, wait for a thread, and none was signalled;
 * signal one. False: there is none.
 */
bool rxw_verify_waits(const struct rxw_connection *c, const struct rxw_call *call, uint8_t early);
bool rxw_verify_signal(struct rxw_connection *c, struct rxw_call *call, uint8_t early);
/* Connection's lock held: the signal of such a job counts no more. */
void rxw_verify_unsignal(const struct rxw_verify_job *job);
/* Connection's lock held: a run of an exchange, which its thread has taken. */
void rxw_verify_mark_early(struct rxw_verify_job *job);
/* Connection's lock held: a run that was taken is delivered; its memory is charged no more. */
void rxw_verify_settle(struct rxw_verify_job *job);
/* Connection's lock held: those of a call (NULL: none) and of channels are. True: more runs of them wait. */
bool rxw_verify_settled(struct rxw_connection *c, struct rxw_call *call, uint8_t early);

/* A job for a run. NULL: no memory, or the connection or its peer is over its limit. */
struct rxw_verify_job *rxw_verify_run_job(struct rxw_connection *c, const struct rxw_rxrun *part);
/* `count` packets of a run from number `from` on. */
void rxw_verify_slice(const struct rxw_rxrun *run, uint16_t from, uint16_t count,
		      struct rxw_rxrun *part);
/* Free a list of runs; the early ones of a connection that is being freed. */
void rxw_verify_drop(struct rxw_verify_job *job);
void rxw_verify_forget_early(struct rxw_connection *c);
/* The call is freed. */
void rxw_verify_forget(struct rxw_call *call);

/* Bit of a run's channel. */
static inline uint8_t rxw_channel_bit(const struct rxw_rxrun *run)
{
	return (uint8_t)(1u << (run->head.cid & 3));
}

#endif
