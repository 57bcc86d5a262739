/* SPDX-License-Identifier: BSD-2-Clause */
/* Effects of CHALLENGE and RESPONSE on a connection's calls: call numbers, errors, calls released. */
#include <string.h>

#include "proto/conn/conn.h"
#include "proto/state.h"

#define NUMBER_MOST 0x7fffffffu

static bool channel_is_live(const struct rxw_pconn *c, unsigned channel)
{
	return c->channel[channel] != NULL && rxw_pcall_live(c->channel[channel]);
}

/* 7.3.3: the number of a live call, the one after a call that is over, 0 if there was none. */
static void channel_numbers(const struct rxw_pconn *c, uint32_t calls[4])
{
	for (unsigned i = 0; i < 4; i++)
		calls[i] = c->number[i] + (c->number[i] != 0 && !channel_is_live(c, i));
}

void rxw_pconn_input_challenge(struct rxw_pconn *c, const struct rxw_rxrun *run,
			       struct rxw_out *out)
{
	uint32_t calls[4];

	if (!channel_is_live(c, 0) && !channel_is_live(c, 1) && !channel_is_live(c, 2) &&
	    !channel_is_live(c, 3)) {
		rxw_drop(out->stats, RXW_DROP_STATE, 1);
		return;
	}
	channel_numbers(c, calls);
	rxw_auth_input(c, RXW_AUTH_RESPOND, run, calls, out);
}

/* The peer has shown that it is alive. */
static void note_channels_heard(struct rxw_pconn *c, uint64_t now)
{
	c->last_heard = now;
	for (unsigned i = 0; i < 4; i++)
		if (c->channel[i] != NULL)
			c->channel[i]->time.last_heard = now;
}

static struct rxw_buf *take_response(struct rxw_pconn *c, struct rxw_auth_job *job, uint32_t *size,
				     struct rxw_out *out)
{
	struct rxw_buf *reply = rxw_auth_response(c, job, size, out);

	if (reply != NULL)
		note_channels_heard(c, out->now);
	return reply;
}

/*
 * Are the call numbers of a RESPONSE possible? A number above ours is: the client has begun another call, whose
 * DATA is lost or late, perhaps after an ABORT of the one that we know. A lower one is, too: our higher number came
 * from unverified DATA, either of a call that began while the client answered, or forged.
 */
static bool numbers_fit(const uint32_t calls[4])
{
	return calls[0] <= NUMBER_MOST && calls[1] <= NUMBER_MOST && calls[2] <= NUMBER_MOST &&
	       calls[3] <= NUMBER_MOST;
}

/* The client is at call `number` of a channel. */
static void advance_channel(struct rxw_pconn *c, unsigned channel, uint32_t number,
			    struct rxw_out *out)
{
	if (number <= c->number[channel])
		return;
	if (channel_is_live(c, channel))
		rxw_pcall_fail(c->channel[channel], RXW_CALL_DEAD, RXW_ORIGIN_LOCAL, false, out);
	/* The memory of a finished call belongs to the channel's number. */
	if (c->channel[channel] != NULL)
		rxw_pcall_detach(c->channel[channel], out);
	rxw_finished_clear(c, channel);
	c->number[channel] = number;
}

static void finish_check(struct rxw_pconn *c, const struct rxw_auth_job *job, struct rxw_out *out)
{
	uint64_t abort_at = 0;
	bool final;
	int32_t code = rxw_auth_checked(c, job, numbers_fit(job->calls), &final, &abort_at, out);

	if (code != 0) {
		if (final) {
			rxw_pconn_fail(c, code, RXW_ORIGIN_LOCAL, false, out);
			c->abort_at = abort_at;
		}
		return;
	}
	c->last_heard = out->now;
	for (unsigned i = 0; i < 4; i++) {
		advance_channel(c, i, job->calls[i], out);
		if (channel_is_live(c, i))
			c->channel[i]->time.last_heard = out->now;
	}
	rxw_pconn_validated(c, out);
}

struct rxw_buf *rxw_pconn_auth_done(struct rxw_pconn *c, struct rxw_auth_job *job, uint32_t *size,
				    struct rxw_out *out)
{
	struct rxw_buf *reply = NULL;
	uint32_t calls[4];

	rxw_auth_job_done(c);
	channel_numbers(c, calls);
	if (c->error != 0 || c->evicted) {
		/* too late */
	} else if (job->work == RXW_AUTH_RESPOND) {
		if (rxw_auth_respond_again(c, job, calls, out))
			return NULL;
		reply = take_response(c, job, size, out);
	} else if (job->work == RXW_AUTH_CHECK) {
		finish_check(c, job, out);
	} else if (rxw_auth_challenge_made(c, job, out)) {
		return NULL;
	}
	rxw_buf_unref(job->reply);
	explicit_bzero(job->bytes, job->size);
	rxw_buf_unref(job->buf);
	return reply;
}

void rxw_pconn_validated(struct rxw_pconn *c, struct rxw_out *out)
{
	rxw_peer_set_validated(c->peer, out->now);
	for (unsigned i = 0; i < 4; i++)
		if (channel_is_live(c, i))
			rxw_pcall_validated(c->channel[i], out);
	rxw_pconn_challenge_wanted(c, out);
}

uint64_t rxw_pconn_deadline(const struct rxw_pconn *c)
{
	uint64_t at = rxw_auth_deadline(c);

	if (c->nat_every != 0)
		at = rxw_min64(at, c->nat_at);
	return c->abort_at != 0 ? rxw_min64(at, c->abort_at) : at;
}

void rxw_pconn_keep_mapping(struct rxw_pconn *c, uint64_t every, uint64_t now)
{
	c->nat_every = every;
	c->nat_at = now + every;
}

static void keep_mapping(struct rxw_pconn *c, struct rxw_out *out)
{
	c->nat_at = out->now + c->nat_every;
	if (c->error == 0)
		rxw_pconn_write_version(c, out);
	else
		c->nat_every = 0;
}

void rxw_pconn_timer(struct rxw_pconn *c, struct rxw_out *out)
{
	if (c->abort_at != 0 && out->now >= c->abort_at) {
		c->abort_at = 0;
		rxw_pconn_write_abort(c, out);
	}
	if (c->nat_every != 0 && out->now >= c->nat_at)
		keep_mapping(c, out);
	if (rxw_auth_timer(c, out))
		return;
	if (c->auth.refused != 0) {
		rxw_pconn_fail(c, c->auth.refused, RXW_ORIGIN_LOCAL, true, out);
		return;
	}
	for (unsigned i = 0; i < 4; i++)
		if (c->channel[i] != NULL && c->channel[i]->state == RXW_CS_PRECALL)
			rxw_pcall_fail(c->channel[i], RXW_CALL_DEAD, RXW_ORIGIN_LOCAL, true, out);
}
