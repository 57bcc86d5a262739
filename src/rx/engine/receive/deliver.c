/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Verifying received packets without any lock, and delivering them to their calls; the work of a security class's
 * exchange: CHALLENGE, RESPONSE, and packets that waited for the key.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/sched/jobs.h"
#include "engine/lock.h"
#include "engine/objects.h"
#include "engine/observe/trace.h"

#define QUANTUM 4u /* runs that a thread verifies before other jobs run */

void rxw_verify_wake(struct rxw_connection *c, struct rxw_effects *a)
{
	for (unsigned i = 0; i < 4; i++) {
		struct rxw_call *call = rxw_call_of(c->p.channel[i]);
		uint8_t bit = (uint8_t)(1u << i);

		if (rxw_verify_waits(c, NULL, bit) && !rxw_verify_signal(c, NULL, bit))
			rxw_verify_lose_early(c, bit, &a->out);
		if (!call || !rxw_verify_waits(c, call, 0))
			continue;
		/* Keep room for four more effects. */
		if (call->sleep.reading && call->sleep.threads && rxw_effects_room(a) > 4)
			rxw_effects_readable(a, call);
		else
			rxw_verify_signal(c, call, 0);
	}
}

void rxw_verify_run(struct rxw_verify_job *job)
{
	assert(!rxw_receiving());
	for (; job; job = job->next) {
		job->run.path = &job->path;
		rxw_run_verify(&job->conn->p, &job->run, job->packet);
	}
}

/*
 * Delivers consecutive runs of one connection under one lock, so that they cause one ACK. If more
 * runs of it wait for verification, the ACK is left to them.
 */
static struct rxw_verify_job *deliver_group(struct rxw_verify_job *job, struct rxw_effects *a,
					    bool drained)
{
	struct rxw_connection *c = job->conn;
	struct rxw_call *taken = job->of;
	uint8_t early = 0;
	bool more;

	rxw_conn_lock(c);
	for (; job && job->conn == c && job->of == taken; job = job->next) {
		/* From here on the receive queue charges for the data. */
		rxw_verify_settle(job);
		rxw_pconn_input_verified(&c->p, &job->run, job->packet, &a->out);
		early |= job->early;
	}
	more = rxw_verify_settled(c, taken, early);
	rxw_pconn_batch_end(&c->p, drained && !more, &a->out);
	rxw_verify_wake(c, a);
	if (c->admit.unvalidated)
		rxw_unvalidated_recheck(c, a->out.now);
	rxw_effects_collect(a, drained);
	if (!drained)
		rxw_defer_until_drained(a->shard, c, a->out.now);
	rxw_conn_unlock(c);
	return job;
}

void rxw_verify_deliver(struct rxw_shard *s, struct rxw_verify_job *jobs, bool receiver,
			bool drained)
{
	struct rxw_verify_job *job = jobs;
	struct rxw_effects a;

	if (!jobs)
		return;
	assert(receiver || drained);
	rxw_effects_init(&a, s, receiver);
	if (receiver)
		rxw_clock_cache_set(a.out.now);
	while (job) {
		if (rxw_effects_full(&a))
			rxw_dispatch(&a);
		if (!receiver)
			a.shard = rxw_home(job->conn);
		job = deliver_group(job, &a, drained);
		if (!receiver)
			rxw_dispatch(&a);
	}
	if (receiver)
		rxw_clock_cache_set(0);
	rxw_dispatch(&a);
	rxw_verify_drop(jobs);
}

void rxw_verify_and_deliver(struct rxw_connection *c, struct rxw_verify_job *jobs)
{
	rxw_verify_run(jobs);
	rxw_verify_deliver(rxw_home(c), jobs, false, true);
}

static void send_response(struct rxw_connection *c, struct rxw_buf *reply, uint32_t size)
{
	struct iovec iov = {.iov_base = reply->data, .iov_len = size};
	struct rxw_io_tx tx = {.path = rxw_pconn_path(&c->p),
			       .iov = &iov,
			       .iov_count = 1,
			       .length = size,
			       .fragment = size > c->p.params->mtu};

	/* If the kernel refuses it, it counts as lost: the server repeats the CHALLENGE. */
	rxw_shard_send(rxw_home(c), &tx, 1, false);
	explicit_bzero(reply->data, size);
	rxw_buf_unref(reply);
}

/*
 * Connection's lock held, once the connection is authenticated. Packets that were queued before the
 * key was known are removed and verified in the order of their numbers, before later ones.
 */
static struct rxw_verify_job *take_unverified(struct rxw_connection *c)
{
	struct rxw_verify_job *first = NULL, **last = &first;
	struct rxw_rxrun run, part;

	assert(rxw_is_locked(&c->lock));
	while (rxw_pconn_take_unverified(&c->p, &run)) {
		run.path = rxw_pconn_path(&c->p);
		for (uint16_t at = 0; at < run.count; at = (uint16_t)(at + part.count)) {
			uint16_t n = (uint16_t)(run.count - at);

			rxw_verify_slice(&run, at, n < RXW_VERIFY_MOST ? n : RXW_VERIFY_MOST,
					 &part);
			*last = rxw_verify_run_job(c, &part); /* NULL: the packets count as lost */
			if (!*last)
				continue;
			rxw_verify_mark_early(*last);
			last = &(*last)->next;
		}
		rxw_buf_unref(run.buf);
	}
	return first;
}

/*
 * Once for each connection, and not often: strangers can send what is refused. The code is all that the client's user
 * sees, and only the server knows whose ticket it was.
 */
static __attribute__((cold, noinline)) void log_refusal(struct rxw_connection *c, int32_t code)
{
	struct rxw_endpoint *ep = c->ep;
	char text[64];
	bool allowed;

	rxw_unvalidated_lock(ep);
	allowed = rxw_rate_take(&ep->admit.log_rate, rxw_now());
	rxw_unvalidated_unlock(ep);
	if (allowed)
		rxw_log(ep->engine, RXW_LOG_INFO,
			"the client at %s was refused by service %u (%s): %s",
			rxw_addr_text(&rxw_pconn_path(&c->p)->peer, text, sizeof(text)),
			c->p.service, c->p.auth.security->class.name, rxw_code_text(code));
}

/* Does the work of an exchange, and verifies the packets that waited for its key. */
static void do_exchange(struct rxw_connection *c, struct rxw_auth_job *auth)
{
	struct rxw_verify_job *unverified = NULL;
	struct rxw_buf *reply;
	struct rxw_effects a;
	uint32_t size = 0;
	int32_t refused = 0;
	unsigned wrong;

	rxw_auth_do(&c->p, auth);
	rxw_change_begin(&a, c);
	wrong = c->p.auth.wrong;
	reply = rxw_pconn_auth_done(&c->p, auth, &size, &a.out);
	if (c->p.auth.authenticated)
		unverified = take_unverified(c);
	if (c->p.auth.wrong == 1 && !wrong)
		refused = c->p.auth.refused;
	rxw_effects_collect(&a, true);
	rxw_timer_of_conn(c);
	rxw_conn_unlock(c);
	rxw_dispatch(&a);
	if (refused)
		log_refusal(c, refused);
	if (reply)
		send_response(c, reply, size);
	rxw_verify_and_deliver(c, unverified);
}

/* Verifies a quantum of a call's runs, unless its reader took them; or of a channel's early runs. */
static void verify_quantum(const struct rxw_verify_job *job)
{
	struct rxw_verify_job *jobs;

	rxw_conn_lock(job->conn);
	jobs = rxw_verify_take_signalled(job, QUANTUM);
	rxw_conn_unlock(job->conn);
	rxw_verify_and_deliver(job->conn, jobs);
}

void rxw_verify_job_run(struct rxw_verify_job *job)
{
	if (job->auth)
		do_exchange(job->conn, job->auth);
	else if (job->callback)
		rxw_callback_run_quantum(job->call);
	else
		verify_quantum(job);
	if (job->call)
		rxw_call_unref(job->call);
	rxw_conn_unref(job->conn);
	free(job);
}

/*
 * No thread can run the job: packets count as lost, callbacks are left to the timers. No lock held.
 */
void rxw_verify_job_cancel(struct rxw_verify_job *job)
{
	struct rxw_connection *c = job->conn;
	struct rxw_effects a;

	rxw_change_begin(&a, c);
	if (job->auth) {
		rxw_pconn_auth_drop(&c->p, job->auth, &a.out);
		rxw_timer_of_conn(c);
	} else if (job->callback) {
		rxw_timer_post_callback(job->call);
	} else {
		/* A call's reader verifies its runs, or the next packet signals again. */
		rxw_verify_unsignal(job);
		if (!job->call)
			rxw_verify_lose_early(c, job->early, &a.out);
	}
	rxw_effects_collect(&a, true);
	rxw_conn_unlock(c);
	rxw_dispatch(&a);
	if (job->call)
		rxw_call_unref(job->call);
	rxw_conn_unref(c);
	free(job);
}
