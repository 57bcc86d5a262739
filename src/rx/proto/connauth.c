/* SPDX-License-Identifier: BSD-2-Clause */
/* CHALLENGE and RESPONSE: when they are sent, what an answer sets free (6.1, 7.1). */
#include <string.h>

#include "proto/internal.h"

#define CHALLENGE_APART	 (500 * RXW_MS)
#define CHALLENGE_SECOND (1250 * RXW_MS)
#define CHALLENGE_PROVEN (2 * RXW_SEC) /* to an address that is one */
#define CHALLENGE_LIFE	 (30 * RXW_SEC)
#define RESPONSES	 8u /* per second */
#define WRONG_MOST	 8u /* RESPONSEs that a server refuses before it ends the connection */
#define ABORT_DELAY	 RXW_SEC
#define TRIES		 3u
#define NUMBER_MOST	 0x7fffffffu

/* The peer is known now: at which level, and what room its packets need. */
static void known(struct rxw_pconn *c)
{
	const struct rxw_security_class *k = &c->security->class;
	struct rxw_identity identity = {.size = sizeof(identity), .index = k->index};

	if (k->room != NULL)
		k->room(c->sec, &c->room);
	if (k->identity != NULL && k->identity(c->sec, &identity) == 0)
		c->level = identity.level;
}

int rxw_pconn_auth_init(struct rxw_pconn *c)
{
	const struct rxw_security_class *k = &c->security->class;
	struct rxw_security_id id = {.epoch = c->epoch,
				     .cid = c->cid,
				     .service = c->service,
				     .index = c->security_index,
				     .client = c->client};
	int r = k->conn_create != NULL ? k->conn_create(c->security->data, &id, &c->sec) : 0;

	if (r != 0)
		return r;
	c->authenticated = c->client || k->challenge == NULL;
	if (c->authenticated)
		known(c);
	return 0;
}

void rxw_pconn_auth_fini(struct rxw_pconn *c)
{
	if (c->auth_job != NULL) {
		rxw_buf_unref(c->auth_job->reply);
		rxw_buf_unref(c->auth_job->buf);
	}
	c->auth_job = NULL;
	rxw_pconn_challenge_over(c);
	if (c->sec != NULL && c->security->class.conn_destroy != NULL)
		c->security->class.conn_destroy(c->sec);
	c->sec = NULL;
}

void rxw_pconn_challenge_over(struct rxw_pconn *c)
{
	if (c->challenge != NULL)
		rxw_buf_unref(c->challenge->buf);
	c->challenge = NULL;
	c->challenge_since = c->challenge_at = 0;
}

/* Work for somebody without the lock, on a copy of what came; false: not now. */
static bool want(struct rxw_pconn *c, enum rxw_auth_work work, const uint8_t *bytes, size_t size,
		 struct rxw_out *out)
{
	struct rxw_auth_job *job;
	struct rxw_buf *buf;

	if (c->auth_busy) {
		rxw_drop(out->stats, RXW_DROP_STATE, bytes != NULL);
		return false;
	}
	buf = rxw_buf_get_small(c->ops->pool(c), sizeof(*job) + size);
	if (buf == NULL) {
		rxw_drop(out->stats, RXW_DROP_MEMORY, bytes != NULL);
		return false;
	}
	job = (struct rxw_auth_job *)(void *)buf->data;
	memset(job, 0, sizeof(*job));
	job->buf = buf;
	job->work = work;
	job->size = (uint32_t)size;
	if (bytes != NULL)
		memcpy(job->bytes, bytes, size);
	c->auth_busy = true;
	c->auth_job = job;
	out->auth = c;
	return true;
}

struct rxw_auth_job *rxw_pconn_auth_take(struct rxw_pconn *c)
{
	struct rxw_auth_job *job = c->auth_job;

	c->auth_job = NULL;
	return job;
}

void rxw_auth_do(const struct rxw_pconn *c, struct rxw_auth_job *job)
{
	const struct rxw_security_class *k = &c->security->class;
	size_t written = 0;

	switch (job->work) {
	case RXW_AUTH_CHALLENGE:
		job->result = k->challenge(c->sec, job->bytes, job->size);
		job->written = job->result < 0 ? 0 : (uint32_t)job->result;
		break;
	case RXW_AUTH_RESPOND:
		if (job->reply == NULL)
			job->reply =
				rxw_buf_get_small(c->ops->pool((struct rxw_pconn *)(uintptr_t)c),
						  RXW_HEADER_SIZE + RXW_RESPONSE_MOST);
		job->result = -RXW_ENOMEM;
		if (job->reply == NULL)
			break;
		job->result = k->respond(c->sec, job->bytes, job->size, job->calls,
					 job->reply->data + RXW_HEADER_SIZE, RXW_RESPONSE_MOST,
					 &written, &job->spare);
		job->written = (uint32_t)written;
		break;
	case RXW_AUTH_CHECK:
		job->result = k->check_response(c->sec, job->bytes, job->size, job->spare,
						job->calls);
		break;
	}
}

bool rxw_pconn_challenge_first(const struct rxw_pconn *c, size_t body, uint64_t now)
{
	size_t challenge = c->challenge != NULL ? c->challenge->written : RXW_CHALLENGE_MOST;

	if (c->authenticated)
		return false;
	return rxw_peer_allowance(c->peer, now) < 2 * (RXW_HEADER_SIZE + rxw_peer_overhead(c->peer)) +
							  body + challenge;
}

static void send_challenge(struct rxw_pconn *c, struct rxw_out *out)
{
	const struct rxw_auth_job *job = c->challenge;
	struct rxw_ctl *ctl = rxw_ctl_add(c, out, RXW_CHALLENGE, 0, 0, 0, 0, job->written);

	if (ctl == NULL)
		return;
	memcpy(ctl->bytes + RXW_HEADER_SIZE, job->bytes, job->written);
	c->challenge_sent = out->now;
}

/*
 * The clock runs from here on, whether there is memory and a thread to make one or not: the client's
 * packets are acknowledged soon, and it waits then.
 */
void rxw_pconn_challenge(struct rxw_pconn *c, bool timer, struct rxw_out *out)
{
	if (c->challenge_since == 0) {
		c->challenge_since = out->now ? out->now : 1;
		c->challenge_at = out->now + CHALLENGE_APART;
		c->challenges = 0;
	}
	if (c->challenge == NULL)
		want(c, RXW_AUTH_CHALLENGE, NULL, RXW_CHALLENGE_MOST, out);
	else if (timer || out->now >= c->challenge_sent + CHALLENGE_APART)
		send_challenge(c, out);
}

/* 7.3.3: of a call at work its number, of one that is over the next, 0 where none was. */
static void numbers(const struct rxw_pconn *c, uint32_t calls[4])
{
	for (unsigned i = 0; i < 4; i++) {
		const struct rxw_pcall *p = c->channel[i];
		bool live = p != NULL && rxw_pcall_live(p);

		calls[i] = c->number[i] + (c->number[i] != 0 && !live);
	}
}

/* Calls began or ended while the answer was made: it is made anew, a few times at most. */
static bool answer_again(struct rxw_pconn *c, struct rxw_auth_job *job, struct rxw_out *out)
{
	uint32_t calls[4];

	numbers(c, calls);
	if (job->result != 0 || job->tries++ >= TRIES || memcmp(calls, job->calls, sizeof(calls)) == 0)
		return false;
	memcpy(job->calls, calls, sizeof(calls));
	c->auth_busy = true;
	c->auth_job = job;
	out->auth = c;
	return true;
}

void rxw_pconn_input_challenge(struct rxw_pconn *c, const struct rxw_rxrun *run,
			       struct rxw_out *out)
{
	bool active = false;

	for (unsigned i = 0; i < 4; i++)
		active |= c->channel[i] != NULL && rxw_pcall_live(c->channel[i]);
	if (!active || c->security->class.respond == NULL) {
		rxw_drop(out->stats, RXW_DROP_STATE, 1);
		return;
	}
	if (out->now >= c->responded_at + RXW_SEC)
		c->responses = 0;
	if (c->responses >= RESPONSES) {
		rxw_drop(out->stats, RXW_DROP_RATE, 1);
		return;
	}
	if (!want(c, RXW_AUTH_RESPOND, run->data + RXW_HEADER_SIZE,
		  run->last_size - RXW_HEADER_SIZE, out))
		return;
	numbers(c, c->auth_job->calls);
}

/* The bytes of a RESPONSE are in the buffer of its own that is given away, NULL if there is none. */
static struct rxw_buf *responded(struct rxw_pconn *c, struct rxw_auth_job *job, uint32_t *size,
				 struct rxw_out *out)
{
	struct rxw_buf *reply = job->reply;
	struct rxw_ctl *ctl;

	if (job->result == -RXW_ENOMEM)
		return NULL;
	if (job->result != 0 || job->written > RXW_RESPONSE_MOST) {
		/* Not one of this class: forged or damaged. */
		rxw_drop(out->stats, RXW_DROP_VERIFY, 1);
		return NULL;
	}
	ctl = rxw_ctl_add(c, out, RXW_RESPONSE, 0, 0, 0, 0, job->written);
	if (ctl == NULL)
		return NULL;
	out->ctl_count--;
	memcpy(reply->data, ctl->bytes, RXW_HEADER_SIZE);
	rxw_put16(reply->data + 24, job->spare);
	*size = RXW_HEADER_SIZE + job->written;
	job->reply = NULL;
	if (c->responses++ == 0)
		c->responded_at = out->now;
	c->last_heard = out->now;
	for (unsigned i = 0; i < 4; i++)
		if (c->channel[i] != NULL)
			c->channel[i]->timer.last_heard = out->now;
	return reply;
}

void rxw_pconn_proved(struct rxw_pconn *c, struct rxw_out *out)
{
	rxw_peer_prove(c->peer, out->now);
	for (unsigned i = 0; i < 4; i++) {
		struct rxw_pcall *p = c->channel[i];

		if (p == NULL || !rxw_pcall_live(p))
			continue;
		p->timer.unsolicited = 0;
		if (p->tx.proof_asked != 0) {
			p->tx.proof_asked = 0;
			rxw_pcall_offer(p, 0, out);
		}
		rxw_pcall_try_attach(p, out);
		rxw_pcall_arm(p, out);
	}
}

void rxw_pconn_input_response(struct rxw_pconn *c, const struct rxw_rxrun *run, struct rxw_out *out)
{
	if (c->authenticated || c->challenge == NULL) {
		rxw_drop(out->stats, RXW_DROP_STATE, 1);
		return;
	}
	if (!want(c, RXW_AUTH_CHECK, run->data + RXW_HEADER_SIZE, run->last_size - RXW_HEADER_SIZE,
		  out))
		return;
	c->auth_job->spare = run->head.spare;
	memcpy(c->auth_job->calls, c->number, sizeof(c->number));
}

/*
 * Above what was seen only where nothing is at work. Below it is no lie: what was seen is unverified
 * DATA, of a call that began while the client answered, or forged.
 */
static bool numbers_fit(const struct rxw_pconn *c, const uint32_t calls[4])
{
	for (unsigned i = 0; i < 4; i++) {
		const struct rxw_pcall *p = c->channel[i];
		bool live = p != NULL && rxw_pcall_live(p);

		if (calls[i] > NUMBER_MOST || (calls[i] > c->number[i] && live))
			return false;
	}
	return true;
}

static int32_t verdict(struct rxw_pconn *c, const struct rxw_auth_job *job)
{
	const struct rxw_security_class *k = &c->security->class;

	if (job->result != 0)
		return job->result;
	if (!numbers_fit(c, job->calls))
		return k->broken != 0 ? k->broken : RXW_CALL_DEAD;
	known(c);
	if (c->level < c->level_min)
		return k->weak != 0 ? k->weak : RXW_INVALID_OPERATION;
	return 0;
}

/*
 * A RESPONSE that the class refuses may be damaged, or somebody else's: the client is asked again,
 * and has the second that passes before the ABORT (7.1) to give a good one. A CHALLENGE is shorter
 * than a RESPONSE of any class, and WRONG_MOST bounds the checks that one connection can cost.
 */
static void refused(struct rxw_pconn *c, int32_t code, struct rxw_out *out)
{
	rxw_drop(out->stats, RXW_DROP_VERIFY, 1);
	if (c->refused == 0)
		c->refused_at = out->now + ABORT_DELAY;
	c->refused = code;
	if (++c->wrong_responses < WRONG_MOST && c->challenge != NULL) {
		send_challenge(c, out);
		c->challenge_at = out->now + CHALLENGE_APART;
		return;
	}
	rxw_pconn_fail(c, code, RXW_ORIGIN_LOCAL, false, out);
	c->abort_at = c->refused_at;
}

static void checked(struct rxw_pconn *c, const struct rxw_auth_job *job, struct rxw_out *out)
{
	int32_t code = verdict(c, job);

	if (job->result != 0) {
		refused(c, code, out);
		return;
	}
	if (code != 0) {
		rxw_pconn_fail(c, code, RXW_ORIGIN_LOCAL, false, out);
		c->abort_at = out->now + ABORT_DELAY;
		return;
	}
	c->refused = 0;
	memcpy(c->claimed, job->calls, sizeof(c->claimed));
	rxw_pconn_challenge_over(c);
	c->authenticated = true;
	c->last_heard = out->now;
	for (unsigned i = 0; i < 4; i++) {
		struct rxw_pcall *p = c->channel[i];

		if (job->calls[i] > c->number[i]) {
			rxw_ended_forget(c, i);
			c->number[i] = job->calls[i];
		}
		if (p == NULL || !rxw_pcall_live(p))
			continue;
		p->timer.last_heard = out->now;
		rxw_pcall_arm(p, out);
	}
	rxw_pconn_proved(c, out);
}

void rxw_pconn_auth_drop(struct rxw_pconn *c, struct rxw_auth_job *job, struct rxw_out *out)
{
	rxw_drop(out->stats, RXW_DROP_LIMIT, job->work != RXW_AUTH_CHALLENGE);
	c->auth_busy = false;
	rxw_buf_unref(job->reply);
	rxw_buf_unref(job->buf);
}

struct rxw_buf *rxw_pconn_auth_done(struct rxw_pconn *c, struct rxw_auth_job *job, uint32_t *size,
				    struct rxw_out *out)
{
	struct rxw_buf *reply = NULL;

	c->auth_busy = false;
	if (c->error != 0 || c->forgotten) {
		/* too late */
	} else if (job->work == RXW_AUTH_RESPOND && answer_again(c, job, out)) {
		return NULL;
	} else if (job->work == RXW_AUTH_RESPOND) {
		reply = responded(c, job, size, out);
	} else if (job->work == RXW_AUTH_CHECK) {
		checked(c, job, out);
	} else if (job->written > 0 && job->written <= RXW_CHALLENGE_MOST) {
		c->challenge = job;
		if (c->challenges == 0)
			c->challenge_at = out->now + CHALLENGE_APART;
		send_challenge(c, out);
		return NULL; /* it stays for resends */
	}
	rxw_buf_unref(job->reply);
	explicit_bzero(job->bytes, job->size);
	rxw_buf_unref(job->buf);
	return reply;
}

uint64_t rxw_pconn_deadline(const struct rxw_pconn *c)
{
	uint64_t at = RXW_NEVER;

	if (c->challenge_since != 0)
		at = c->challenge_at;
	if (c->abort_at != 0)
		at = rxw_min64(at, c->abort_at);
	if (c->refused != 0 && c->error == 0)
		at = rxw_min64(at, c->refused_at);
	return at;
}

/*
 * Twice to whoever it is (12.3), and once more for each PING of the client's; every 2 s where the
 * address is known to be its own.
 */
static void challenge_again(struct rxw_pconn *c, struct rxw_out *out)
{
	bool made = c->challenge != NULL;

	if (!made || c->challenges < 2 || rxw_peer_proven(c->peer, out->now)) {
		c->challenges += made;
		rxw_pconn_challenge(c, true, out);
	}
	if (!made)
		c->challenge_at = out->now + CHALLENGE_APART;
	else if (c->challenges == 1)
		c->challenge_at = c->challenge_sent + CHALLENGE_SECOND - CHALLENGE_APART;
	else
		c->challenge_at = out->now + CHALLENGE_PROVEN;
	c->challenge_at = rxw_min64(c->challenge_at, c->challenge_since + CHALLENGE_LIFE);
}

void rxw_pconn_timer(struct rxw_pconn *c, struct rxw_out *out)
{
	if (c->abort_at != 0 && out->now >= c->abort_at) {
		c->abort_at = 0;
		rxw_pconn_write_abort(c, out);
	}
	if (c->refused != 0 && c->error == 0 && out->now >= c->refused_at)
		rxw_pconn_fail(c, c->refused, RXW_ORIGIN_LOCAL, true, out);
	if (c->challenge_since == 0 || out->now < c->challenge_at)
		return;
	if (out->now >= c->challenge_since + CHALLENGE_LIFE) {
		rxw_pconn_challenge_over(c);
		for (unsigned i = 0; i < 4; i++)
			if (c->channel[i] != NULL && c->channel[i]->state == RXW_CS_PRECALL)
				rxw_pcall_fail(c->channel[i], RXW_CALL_DEAD, RXW_ORIGIN_LOCAL, true,
					       out);
		return;
	}
	challenge_again(c, out);
}
