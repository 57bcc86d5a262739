/* SPDX-License-Identifier: BSD-2-Clause */
/* Security checks of received packets and the work of exchanges, without any lock. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/batch.h"
#include "engine/lock.h"
#include "engine/verify.h"

struct rxw_verify_job {
	struct rxw_verify_job *next;
	struct rxw_connection *conn; /* one reference */
	struct rxw_auth_job *auth;   /* NULL: a run */
	struct rxw_rxrun run;	     /* one reference of its buffer; RXW_VERIFY_MOST packets at most */
	struct rxw_path path;
};

/* Part of a run: `count` packets from `from` on. */
static void slice(const struct rxw_rxrun *run, uint16_t from, uint16_t count,
		  struct rxw_rxrun *part)
{
	*part = *run;
	part->data += (size_t)from * run->stride;
	part->count = count;
	part->last_size = from + count == run->count ? run->last_size : run->stride;
	part->size = (uint32_t)(count - 1) * run->stride + part->last_size;
	part->head.seq += from;
	part->head.serial += from;
}

static void verify_now(struct rxw_shard *s, struct rxw_connection *c, const struct rxw_rxrun *run)
{
	struct rxw_security_packet packet[RXW_VERIFY_MOST];
	struct rxw_rxrun part;

	for (uint16_t at = 0; at < run->count; at = (uint16_t)(at + part.count)) {
		uint16_t n = (uint16_t)(run->count - at);
		struct rxw_actions a;

		slice(run, at, n < RXW_VERIFY_MOST ? n : RXW_VERIFY_MOST, &part);
		rxw_run_verify(&c->p, &part, packet);
		rxw_actions_init(&a, s, false);
		rxw_conn_lock(c);
		rxw_pconn_input_verified(&c->p, &part, packet, &a.out);
		rxw_pconn_batch_end(&c->p, true, &a.out);
		rxw_actions_collect(&a, true);
		rxw_conn_unlock(c);
		rxw_actions_run(&a);
	}
}

static void send_response(struct rxw_connection *c, struct rxw_buf *reply, uint32_t size)
{
	struct iovec iov = {.iov_base = reply->data, .iov_len = size};
	struct rxw_io_tx tx = {.path = &c->p.path,
			       .iov = &iov,
			       .iov_count = 1,
			       .length = size,
			       .fragment = size > c->ep->params.mtu};

	/* One that is refused is as good as lost: the server asks again. */
	rxw_io_send(rxw_home(c)->sock, &tx, 1, false);
	explicit_bzero(reply->data, size);
	rxw_buf_unref(reply);
}

/*
 * Lock held, from the moment on that the connection is good: what was queued before anybody knew
 * the key is taken out, to be verified in the order of its numbers.
 */
static struct rxw_verify_job *take_kept(struct rxw_connection *c)
{
	struct rxw_verify_job *first = NULL, **last = &first;
	struct rxw_rxrun run;

	while (rxw_pconn_take_kept(&c->p, &run)) {
		struct rxw_verify_job *job = malloc(sizeof(*job));

		if (!job) {
			rxw_buf_unref(run.buf); /* as if lost */
			continue;
		}
		job->next = NULL;
		job->run = run;
		*last = job;
		last = &job->next;
	}
	return first;
}

static void verify_kept(struct rxw_connection *c, struct rxw_verify_job *job)
{
	struct rxw_verify_job *next;

	for (; job; job = next) {
		next = job->next;
		job->run.path = &c->p.path;
		verify_now(rxw_home(c), c, &job->run);
		rxw_buf_unref(job->run.buf);
		free(job);
	}
}

static void do_auth(struct rxw_connection *c, struct rxw_auth_job *auth)
{
	struct rxw_verify_job *kept = NULL;
	struct rxw_buf *reply;
	struct rxw_actions a;
	uint32_t size = 0;

	rxw_auth_do(&c->p, auth);
	rxw_actions_init(&a, rxw_home(c), false);
	rxw_conn_lock(c);
	reply = rxw_pconn_auth_done(&c->p, auth, &size, &a.out);
	if (c->p.authenticated)
		kept = take_kept(c);
	rxw_actions_collect(&a, true);
	rxw_timer_of_conn(c);
	rxw_conn_unlock(c);
	rxw_actions_run(&a);
	if (reply)
		send_response(c, reply, size);
	verify_kept(c, kept);
}

static void *verify_loop(void *arg)
{
	struct rxw_verifier *v = arg;

	rxw_verifier_lock(v);
	for (;;) {
		struct rxw_verify_job *job = v->head;

		if (!job) {
			if (v->stop)
				break;
			v->idle++;
			pthread_cond_wait(&v->work, &v->lock);
			v->idle--;
			continue;
		}
		v->head = job->next;
		if (!v->head)
			v->tail = &v->head;
		if (job->auth)
			v->auths--;
		else
			v->runs--;
		rxw_verifier_unlock(v);
		if (job->auth) {
			do_auth(job->conn, job->auth);
		} else {
			job->run.path = &job->path;
			verify_now(rxw_home(job->conn), job->conn, &job->run);
			rxw_buf_unref(job->run.buf);
		}
		rxw_conn_unref(job->conn);
		free(job);
		rxw_verifier_lock(v);
	}
	rxw_verifier_unlock(v);
	return NULL;
}

int rxw_verifier_init(struct rxw_verifier *v)
{
	long processors = sysconf(_SC_NPROCESSORS_ONLN);

	v->most = processors > 3 ? (unsigned)(processors / 2) : 1;
	if (v->most > RXW_VERIFY_THREADS)
		v->most = RXW_VERIFY_THREADS;
	pthread_mutex_init(&v->lock, NULL);
	v->tail = &v->head;
	return rxw_cond_init(&v->work);
}

void rxw_verifier_stop(struct rxw_verifier *v)
{
	rxw_verifier_lock(v);
	v->stop = true;
	rxw_verifier_unlock(v);
	pthread_cond_broadcast(&v->work);
	/* None is started any more. */
	for (unsigned i = 0; i < v->threads; i++)
		pthread_join(v->thread[i], NULL);
	v->threads = 0;
}

void rxw_verifier_fini(struct rxw_verifier *v)
{
	pthread_cond_destroy(&v->work);
	pthread_mutex_destroy(&v->lock);
}

/* Its references go over. False: there is no place, or nobody to do it. */
static bool submit(struct rxw_endpoint *ep, struct rxw_verify_job *job)
{
	struct rxw_verifier *v = &ep->verifier;
	bool taken = false;

	job->next = NULL;
	rxw_verifier_lock(v);
	if (!v->stop && !v->idle && v->threads < v->most &&
	    !rxw_thread_create(&v->thread[v->threads], &ep->config, v->threads, "rxw-verify",
			       verify_loop, v))
		v->threads++;
	if (v->threads && !v->stop &&
	    (job->auth ? v->auths < RXW_VERIFY_AUTH : v->runs < RXW_VERIFY_QUEUE)) {
		*v->tail = job;
		v->tail = &job->next;
		if (job->auth)
			v->auths++;
		else
			v->runs++;
		taken = true;
	}
	rxw_verifier_unlock(v);
	if (taken)
		pthread_cond_signal(&v->work);
	return taken;
}

void rxw_verify_auth(struct rxw_connection *c, struct rxw_out *out)
{
	struct rxw_auth_job *auth = rxw_pconn_auth_take(&c->p);
	struct rxw_verify_job *job;

	if (!auth)
		return;
	job = calloc(1, sizeof(*job));
	if (job) {
		job->conn = c;
		job->auth = auth;
		rxw_conn_ref(c);
		if (submit(c->ep, job))
			return;
		/* Never the last one: the lock's holder has one. */
		rxw_conn_unref(c);
		free(job);
	}
	rxw_pconn_auth_drop(&c->p, auth, out);
}

static void defer(struct rxw_shard *s, struct rxw_connection *c, const struct rxw_rxrun *part)
{
	struct rxw_verify_job *job = malloc(sizeof(*job));

	if (job) {
		job->auth = NULL;
		job->conn = c;
		job->run = *part;
		job->path = *part->path;
		rxw_conn_ref(c);
		rxw_buf_ref(part->buf);
		if (submit(s->ep, job))
			return;
		rxw_buf_unref(part->buf);
		rxw_conn_unref(c);
		free(job);
	}
	/* As if lost: the peer sends it again. */
	rxw_count(&s->stats.drops[RXW_DROP_MEMORY], part->count);
}

void rxw_verify_run(struct rxw_shard *s, struct rxw_connection *c, const struct rxw_rxrun *run)
{
	struct rxw_rxrun part;

	if (!(c->p.security->class.flags & RXW_CLASS_SLOW)) {
		verify_now(s, c, run);
		return;
	}
	for (uint16_t at = 0; at < run->count; at = (uint16_t)(at + part.count)) {
		uint16_t n = (uint16_t)(run->count - at);

		slice(run, at, n < RXW_VERIFY_MOST ? n : RXW_VERIFY_MOST, &part);
		defer(s, c, &part);
	}
}
