/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The work of a security class's exchange: CHALLENGE, RESPONSE, and packets that waited for the
 * key.
 */
#include <string.h>

#include "engine/send/dispatch.h"
#include "engine/sched/jobs.h"
#include "engine/lock.h"
#include "engine/objects.h"
#include "engine/observe/trace.h"
#include "engine/receive/verify.h"

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
			(*last)->early = rxw_channel_bit(&part);
			c->jobs.early_busy |= (*last)->early;
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
	allowed = rxw_rate_take(&ep->log_rate, rxw_now());
	rxw_unvalidated_unlock(ep);
	if (allowed)
		rxw_log(ep->engine, RXW_LOG_INFO,
			"the client at %s was refused by service %u (%s): %s",
			rxw_addr_text(&rxw_pconn_path(&c->p)->peer, text, sizeof(text)),
			c->p.service, c->p.auth.security->class.name, rxw_code_text(code));
}

void rxw_verify_exchange(struct rxw_connection *c, struct rxw_auth_job *auth)
{
	struct rxw_verify_job *unverified = NULL;
	struct rxw_buf *reply;
	struct rxw_effects a;
	uint32_t size = 0;
	int32_t refused = 0;
	unsigned wrong;

	rxw_auth_do(&c->p, auth);
	rxw_effects_init(&a, rxw_home(c), false);
	rxw_conn_lock(c);
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
