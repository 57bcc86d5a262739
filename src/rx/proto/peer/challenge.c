/* SPDX-License-Identifier: BSD-2-Clause */
/* CHALLENGE and RESPONSE: their jobs, when they are sent, what is accepted (6.1, 7.1). */
#include <string.h>

#include "proto/state.h"

#define CHALLENGE_APART	    (500 * RXW_MS)
#define CHALLENGE_SECOND    (1250 * RXW_MS)
#define CHALLENGE_VALIDATED (2 * RXW_SEC) /* to a validated address */
#define CHALLENGE_LIFE	    (30 * RXW_SEC)
#define RESPONSES	    8u /* per second */
#define WRONG_MOST	    8u /* wrong RESPONSEs before a server ends the connection */
#define ABORT_DELAY	    RXW_SEC
#define WRONG_INTERVALS	    4u /* of that delay, with a CHALLENGE at the end of each but the last */
#define TRIES		    3u

/* The peer is known now: set the level, and the space that its packets need. */
static void learn_level_and_room(struct rxw_auth *a)
{
	const struct rxw_security_class *k = &a->security->class;
	struct rxw_identity identity = {.size = sizeof(identity), .index = k->index};

	if (k->room != NULL)
		k->room(a->sec, &a->room);
	if (k->identity != NULL && k->identity(a->sec, &identity) == 0)
		a->level = identity.level;
}

int rxw_auth_init(struct rxw_pconn *c, struct rxw_security *security)
{
	struct rxw_auth *a = &c->auth;
	const struct rxw_security_class *k = &security->class;
	struct rxw_security_id id = {.epoch = c->epoch,
				     .cid = c->cid,
				     .service = c->service,
				     .index = c->security_index,
				     .client = c->client};
	int r = k->conn_create != NULL ? k->conn_create(security->data, &id, &a->sec) : 0;

	a->security = security;
	if (r != 0)
		return r;
	a->authenticated = c->client || k->challenge == NULL;
	if (a->authenticated)
		learn_level_and_room(a);
	return 0;
}

void rxw_auth_end(struct rxw_pconn *c)
{
	struct rxw_auth *a = &c->auth;

	if (a->job != NULL) {
		rxw_buf_unref(a->job->reply);
		rxw_buf_unref(a->job->buf);
	}
	a->job = NULL;
	rxw_auth_end_challenge(c);
}

void rxw_auth_fini(struct rxw_pconn *c)
{
	struct rxw_auth *a = &c->auth;

	rxw_auth_end(c);
	if (a->sec != NULL && a->security->class.conn_destroy != NULL)
		a->security->class.conn_destroy(a->sec);
	a->sec = NULL;
}

void rxw_auth_end_challenge(struct rxw_pconn *c)
{
	if (c->auth.challenge != NULL)
		rxw_buf_unref(c->auth.challenge->buf);
	c->auth.challenge = NULL;
	c->auth.challenge_since = c->auth.challenge_at = 0;
	c->auth.refused = 0;
}

void rxw_auth_want(struct rxw_pconn *c)
{
	c->auth.wanted = true;
}

bool rxw_auth_take_wanted(struct rxw_pconn *c)
{
	bool wanted = c->auth.wanted;

	c->auth.wanted = false;
	return wanted;
}

void rxw_auth_pinged(struct rxw_pconn *c)
{
	c->auth.challenges -= c->auth.challenges > 1;
}

/* --- jobs --- */

/* A job on a copy of the bytes received. NULL: not now. */
static struct rxw_auth_job *new_job(struct rxw_pconn *c, enum rxw_auth_work work,
				    const uint8_t *bytes, size_t size, struct rxw_out *out)
{
	struct rxw_auth_job *job;
	struct rxw_buf *buf;

	if (c->auth.busy) {
		rxw_drop(out->stats, RXW_DROP_STATE, bytes != NULL);
		return NULL;
	}
	buf = rxw_buf_get_small(c->ops->pool(c), sizeof(*job) + size);
	if (buf == NULL) {
		rxw_drop(out->stats, RXW_DROP_MEMORY, bytes != NULL);
		return NULL;
	}
	job = (struct rxw_auth_job *)(void *)buf->data;
	memset(job, 0, sizeof(*job));
	job->buf = buf;
	job->work = work;
	job->size = (uint32_t)size;
	if (bytes != NULL)
		memcpy(job->bytes, bytes, size);
	c->auth.busy = true;
	c->auth.job = job;
	out->auth = c;
	return job;
}

struct rxw_auth_job *rxw_pconn_auth_take(struct rxw_pconn *c)
{
	struct rxw_auth_job *job = c->auth.job;

	c->auth.job = NULL;
	return job;
}

void rxw_auth_job_done(struct rxw_pconn *c)
{
	c->auth.busy = false;
}

static void make_response(const struct rxw_pconn *c, struct rxw_auth_job *job)
{
	struct rxw_pool *pool = c->ops->pool((struct rxw_pconn *)(uintptr_t)c);
	size_t written = 0;

	if (job->reply == NULL)
		job->reply = rxw_buf_get_small(pool, RXW_HEADER_SIZE + RXW_RESPONSE_MOST);
	job->result = -RXW_ENOMEM;
	if (job->reply == NULL)
		return;
	job->result = c->auth.security->class.respond(
		c->auth.sec, job->bytes, job->size, job->calls, job->reply->data + RXW_HEADER_SIZE,
		RXW_RESPONSE_MOST, &written, &job->spare);
	job->written = (uint32_t)written;
}

void rxw_auth_do(const struct rxw_pconn *c, struct rxw_auth_job *job)
{
	const struct rxw_security_class *k = &c->auth.security->class;

	switch (job->work) {
	case RXW_AUTH_CHALLENGE:
		job->result = k->challenge(c->auth.sec, job->bytes, job->size);
		job->written = job->result < 0 ? 0 : (uint32_t)job->result;
		break;
	case RXW_AUTH_RESPOND:
		make_response(c, job);
		break;
	case RXW_AUTH_CHECK:
		job->result = k->check_response(c->auth.sec, job->bytes, job->size, job->spare,
						job->calls);
		break;
	}
}

void rxw_pconn_auth_drop(struct rxw_pconn *c, struct rxw_auth_job *job, struct rxw_out *out)
{
	rxw_drop(out->stats, RXW_DROP_LIMIT, job->work != RXW_AUTH_CHALLENGE);
	c->auth.busy = false;
	rxw_buf_unref(job->reply);
	rxw_buf_unref(job->buf);
}

/* --- packets --- */

bool rxw_auth_needs_allowance(const struct rxw_pconn *c, size_t body, uint64_t now)
{
	const struct rxw_auth *a = &c->auth;
	size_t challenge = a->challenge != NULL ? a->challenge->written : RXW_CHALLENGE_MOST;

	if (a->authenticated)
		return false;
	return rxw_peer_allowance(c->peer, now) <
	       2 * (RXW_HEADER_SIZE + rxw_peer_overhead(c->peer)) + body + challenge;
}

static void send_challenge(struct rxw_pconn *c, struct rxw_out *out)
{
	const struct rxw_auth_job *job = c->auth.challenge;
	struct rxw_ctl *ctl = rxw_ctl_add(c, out, RXW_CHALLENGE, 0, 0, 0, 0, job->written);

	if (ctl == NULL)
		return;
	memcpy(ctl->bytes + RXW_HEADER_SIZE, job->bytes, job->written);
	c->auth.challenge_sent = out->now;
}

/*
 * The exchange is timed from here, even if there is no memory or thread to make the CHALLENGE: the
 * client's packets are acknowledged soon, and it waits then.
 */
void rxw_auth_challenge(struct rxw_pconn *c, bool timer, struct rxw_out *out)
{
	struct rxw_auth *a = &c->auth;

	if (a->challenge_since == 0) {
		a->challenge_since = out->now ? out->now : 1;
		a->challenge_at = out->now + CHALLENGE_APART;
		a->challenges = 0;
	}
	if (a->challenge == NULL)
		new_job(c, RXW_AUTH_CHALLENGE, NULL, RXW_CHALLENGE_MOST, out);
	else if (timer || out->now >= a->challenge_sent + CHALLENGE_APART)
		send_challenge(c, out);
}

bool rxw_auth_challenge_made(struct rxw_pconn *c, struct rxw_auth_job *job, struct rxw_out *out)
{
	struct rxw_auth *a = &c->auth;

	if (job->written == 0 || job->written > RXW_CHALLENGE_MOST)
		return false;
	a->challenge = job; /* stays, to be sent again */
	if (a->challenges == 0)
		a->challenge_at = out->now + CHALLENGE_APART;
	send_challenge(c, out);
	return true;
}

/*
 * The CHALLENGE sent to the old address is lost, and so is a RESPONSE to it, which does not tell
 * that the client moved. To wait for the timer is too long if a NAT forgets its mappings often.
 */
void rxw_auth_moved(struct rxw_pconn *c, struct rxw_out *out)
{
	struct rxw_auth *a = &c->auth;

	if (a->challenge == NULL)
		return;
	send_challenge(c, out);
	a->challenges = 0;
	a->challenge_at =
		rxw_min64(out->now + CHALLENGE_APART, a->challenge_since + CHALLENGE_LIFE);
}

/* At most RESPONSES CHALLENGEs a second are answered. */
static bool may_respond(struct rxw_auth *a, uint64_t now)
{
	if (now >= a->responded_at + RXW_SEC)
		a->responses = 0;
	return a->responses < RESPONSES;
}

void rxw_auth_input(struct rxw_pconn *c, enum rxw_auth_work work, const struct rxw_rxrun *run,
		    const uint32_t calls[4], struct rxw_out *out)
{
	struct rxw_auth *a = &c->auth;
	struct rxw_auth_job *job;
	bool unexpected = work == RXW_AUTH_RESPOND ? a->security->class.respond == NULL
						   : a->authenticated || a->challenge == NULL;

	if (unexpected) {
		rxw_drop(out->stats, RXW_DROP_STATE, 1);
		return;
	}
	if (work == RXW_AUTH_RESPOND && !may_respond(a, out->now)) {
		rxw_drop(out->stats, RXW_DROP_RATE, 1);
		return;
	}
	job = new_job(c, work, run->data + RXW_HEADER_SIZE, run->last_size - RXW_HEADER_SIZE, out);
	if (job == NULL)
		return;
	if (work == RXW_AUTH_CHECK)
		job->spare = run->head.spare;
	memcpy(job->calls, calls, sizeof(job->calls));
}

bool rxw_auth_respond_again(struct rxw_pconn *c, struct rxw_auth_job *job, const uint32_t calls[4],
			    struct rxw_out *out)
{
	if (job->result != 0 || job->tries++ >= TRIES ||
	    memcmp(calls, job->calls, sizeof(job->calls)) == 0)
		return false;
	memcpy(job->calls, calls, sizeof(job->calls));
	c->auth.busy = true;
	c->auth.job = job;
	out->auth = c;
	return true;
}

struct rxw_buf *rxw_auth_response(struct rxw_pconn *c, struct rxw_auth_job *job, uint32_t *size,
				  struct rxw_out *out)
{
	struct rxw_buf *reply = job->reply;
	struct rxw_ctl *ctl;

	if (job->result == -RXW_ENOMEM)
		return NULL;
	if (job->result != 0 || job->written > RXW_RESPONSE_MOST) {
		/* Not a CHALLENGE of this class: forged or damaged. */
		rxw_drop(out->stats, RXW_DROP_VERIFY, 1);
		return NULL;
	}
	/* Only the header is taken from the output record: the packet has a buffer of its own. */
	ctl = rxw_ctl_add(c, out, RXW_RESPONSE, 0, 0, 0, 0, job->written);
	if (ctl == NULL)
		return NULL;
	out->ctl_count--;
	memcpy(reply->data, ctl->bytes, RXW_HEADER_SIZE);
	rxw_put16(reply->data + 24, job->spare);
	*size = RXW_HEADER_SIZE + job->written;
	job->reply = NULL;
	if (c->auth.responses++ == 0)
		c->auth.responded_at = out->now;
	return reply;
}

/* The error of a RESPONSE that was checked, 0 = good. */
static int32_t judge_response(struct rxw_auth *a, const struct rxw_auth_job *job, bool fit)
{
	const struct rxw_security_class *k = &a->security->class;

	if (job->result != 0)
		return job->result;
	if (!fit)
		return k->broken != 0 ? k->broken : RXW_CALL_DEAD;
	learn_level_and_room(a);
	if (a->level < a->level_min)
		return k->weak != 0 ? k->weak : RXW_INVALID_OPERATION;
	return 0;
}

/*
 * A RESPONSE that the class refuses may be damaged or forged. The server sends the CHALLENGE again,
 * and the client has until the delayed ABORT (7.1) to send a good one. That delay is counted in
 * intervals, not in time: if this process is stopped for a second, the client still has the
 * remaining ones. A CHALLENGE is shorter than the RESPONSE of any class, and WRONG_MOST limits the
 * checks that one connection can cause.
 */
static bool refuse_response(struct rxw_pconn *c, int32_t code, struct rxw_out *out)
{
	struct rxw_auth *a = &c->auth;

	rxw_drop(out->stats, RXW_DROP_VERIFY, 1);
	if (a->refused == 0)
		a->refused_at = out->now;
	a->refused = code;
	a->intervals = WRONG_INTERVALS;
	if (++a->wrong >= WRONG_MOST || a->challenge == NULL)
		return false;
	send_challenge(c, out);
	a->challenge_at = out->now + ABORT_DELAY / WRONG_INTERVALS;
	return true;
}

int32_t rxw_auth_checked(struct rxw_pconn *c, const struct rxw_auth_job *job, bool fit, bool *final,
			 uint64_t *abort_at, struct rxw_out *out)
{
	struct rxw_auth *a = &c->auth;
	int32_t code = judge_response(a, job, fit);

	*final = true;
	if (job->result != 0) {
		*final = !refuse_response(c, code, out);
		*abort_at = a->refused_at + ABORT_DELAY;
	} else if (code != 0) {
		*abort_at = out->now + ABORT_DELAY;
	} else {
		memcpy(a->claimed, job->calls, sizeof(a->claimed));
		rxw_auth_end_challenge(c);
		a->authenticated = true;
	}
	return code;
}

/* --- timers --- */

uint64_t rxw_auth_deadline(const struct rxw_pconn *c)
{
	return c->auth.challenge_since != 0 ? c->auth.challenge_at : RXW_NEVER;
}

/*
 * Twice to any address (12.3), and once more for each PING of the client; every 2 s to a validated
 * address, and more often after a wrong RESPONSE.
 */
static void challenge_again(struct rxw_pconn *c, struct rxw_out *out)
{
	struct rxw_auth *a = &c->auth;
	bool made = a->challenge != NULL;

	if (!made || a->challenges < 2 || rxw_peer_validated(c->peer, out->now)) {
		a->challenges += made && a->challenges < UINT16_MAX;
		rxw_auth_challenge(c, true, out);
	}
	if (!made)
		a->challenge_at = out->now + CHALLENGE_APART;
	else if (a->refused != 0)
		a->challenge_at = out->now + ABORT_DELAY / WRONG_INTERVALS;
	else if (a->challenges == 1)
		a->challenge_at = a->challenge_sent + CHALLENGE_SECOND - CHALLENGE_APART;
	else
		a->challenge_at = out->now + CHALLENGE_VALIDATED;
	a->challenge_at = rxw_min64(a->challenge_at, a->challenge_since + CHALLENGE_LIFE);
}

bool rxw_auth_timer(struct rxw_pconn *c, struct rxw_out *out)
{
	struct rxw_auth *a = &c->auth;

	if (a->challenge_since == 0 || out->now < a->challenge_at)
		return true;
	if (out->now >= a->challenge_since + CHALLENGE_LIFE) {
		rxw_auth_end_challenge(c);
		return false;
	}
	if (a->refused != 0 && --a->intervals == 0)
		return false;
	challenge_again(c, out);
	return true;
}
