/* SPDX-License-Identifier: BSD-2-Clause */
/* One job of a verifier: shared by the queue (jobs/) and by those that do the work (verify/). */
#ifndef RXW_ENGINE_JOB_H
#define RXW_ENGINE_JOB_H

#include "engine/internal.h"

struct rxw_verify_job {
	struct rxw_verify_job *next;
	struct rxw_connection *conn; /* one reference */
	struct rxw_auth_job *auth;   /* work of an exchange */
	struct rxw_call *call;	     /* runs that wait in its list; one reference */
	bool callback;		     /* not those, but the call's callback waits */
	struct rxw_call *of;	     /* taken of its list; the taker holds a reference */
	/* bit of a channel: a turn at its runs in conn->early; of a run: taken of that list */
	uint8_t early;
	bool here;	/* counted in conn->verify_here */
	int64_t charge; /* bytes of its buffer, to the connection and its peer */
	/* else a run: one reference of its buffer; RXW_VERIFY_MOST packets at most */
	struct rxw_rxrun run;
	struct rxw_path path;
	struct rxw_security_packet packet[]; /* of the run; verdicts */
};

/* Bit of a run's channel in the masks of its connection. */
static inline uint8_t rxw_channel_bit(const struct rxw_rxrun *run)
{
	return (uint8_t)(1u << (run->head.cid & 3));
}

/* Part of a run: `count` packets from `from` on. */
void rxw_verify_slice(const struct rxw_rxrun *run, uint16_t from, uint16_t count,
		      struct rxw_rxrun *part);
/* NULL: there is no memory for it, or none that its connection or its peer may have. */
struct rxw_verify_job *rxw_verify_run_job(struct rxw_connection *c, const struct rxw_rxrun *part);
void rxw_verify_uncharge(struct rxw_verify_job *job);
/*
 * A thread is to look at the runs of the call, NULL: at early ones. False: none can. Lock held, or a
 * reference.
 */
bool rxw_verify_tell(struct rxw_connection *c, struct rxw_call *call, uint8_t early, bool callback);
/* Lock held: may this thread verify early runs of the channel? */
bool rxw_verify_early_waits(const struct rxw_connection *c, uint8_t bit);
/* Lock held: the first of a channel, at most so many. */
struct rxw_verify_job *rxw_verify_take_early(struct rxw_connection *c, uint8_t bit, unsigned most);
/* Lock held: those of a channel that nobody can look at are as if lost. */
void rxw_verify_lose_early(struct rxw_connection *c, uint8_t bit, struct rxw_out *out);
/* No lock held: do the work of an exchange, and verify what waited for its key. */
void rxw_verify_exchange(struct rxw_connection *c, struct rxw_auth_job *auth);
/* For the threads of a verifier (struct rxw_upcalls): do a job and free it; or undo one that no thread can do. */
void rxw_verify_job_do(struct rxw_verify_job *job);
void rxw_verify_job_undone(struct rxw_verify_job *job);

#endif
