/* SPDX-License-Identifier: BSD-2-Clause */
/* Security checks of received packets, without any lock; slow classes on a thread of their own. */
#include <stdlib.h>

#include "engine/batch.h"
#include "engine/lock.h"
#include "engine/verify.h"

struct rxw_verify_job {
	struct rxw_verify_job *next;
	struct rxw_connection *conn; /* one reference */
	struct rxw_rxrun run;	     /* one reference of its buffer */
	struct rxw_path path;
};

/*
 * Hand a part of a verified run to the connection: packets from..to of it, all with the same room
 * around their data.
 */
static void deliver(struct rxw_shard *s, struct rxw_connection *c, const struct rxw_rxrun *whole,
		    uint16_t from, uint16_t to)
{
	struct rxw_rxrun run = *whole;
	struct rxw_actions a;

	run.data += (size_t)from * run.stride;
	run.count = (uint16_t)(to - from);
	run.last_size = to == whole->count ? whole->last_size : whole->stride;
	run.size = (uint32_t)(run.count - 1) * run.stride + run.last_size;
	run.head.seq += from;
	run.head.serial += from;
	run.verified = true;
	if (!run.jumbo) {
		run.or_flags = 0;
		for (uint16_t i = 0; i < run.count; i++)
			run.or_flags |= run.last_flags = run.data[(size_t)i * run.stride + 21];
		run.head.flags = run.data[21];
	}
	rxw_actions_init(&a, s, false);
	rxw_conn_lock(c);
	rxw_pconn_input(&c->p, &run, &a.out);
	rxw_pconn_batch_end(&c->p, true, &a.out);
	rxw_actions_collect(&a, true);
	rxw_conn_unlock(c);
	rxw_actions_run(&a);
}

static void verify_now(struct rxw_shard *s, struct rxw_connection *c, struct rxw_rxrun *run)
{
	const struct rxw_security_ops *ops = c->p.security->ops;
	uint16_t good = 0, from = 0;

	run->sec_head = ops->head;
	run->sec_tail = ops->tail;
	for (uint16_t i = 0; i < run->count; i++) {
		uint8_t *packet = run->data + (size_t)i * run->stride;
		uint16_t size = i + 1 == run->count ? run->last_size : run->stride,
			 spare = run->head.spare;
		struct rxw_seal_info info = {.epoch = run->head.epoch,
					     .cid = run->head.cid,
					     .call = run->head.call,
					     .seq = run->head.seq + i,
					     .security = run->head.security,
					     .client = !c->p.client};
		size_t offset = 0, length = 0;
		int r;

		if (!run->jumbo)
			spare = rxw_get16(packet + 24);
		r = ops->verify(c->p.security, c->p.sec, &info, packet + RXW_HEADER_SIZE,
				(size_t)(size - RXW_HEADER_SIZE), spare, &offset, &length);
		if (!r && offset == ops->head &&
		    offset + length + ops->tail == (size_t)size - RXW_HEADER_SIZE) {
			good++;
			continue;
		}
		rxw_count(&s->stats.drops[RXW_DROP_VERIFY], 1);
		if (good)
			deliver(s, c, run, from, i);
		from = (uint16_t)(i + 1);
		good = 0;
	}
	if (good)
		deliver(s, c, run, from, run->count);
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
			pthread_cond_wait(&v->work, &v->lock);
			continue;
		}
		v->head = job->next;
		if (!v->head)
			v->tail = &v->head;
		v->count--;
		rxw_verifier_unlock(v);
		job->run.path = &job->path;
		verify_now(rxw_home(job->conn), job->conn, &job->run);
		rxw_buf_unref(job->run.buf);
		rxw_conn_unref(job->conn);
		free(job);
		rxw_verifier_lock(v);
	}
	rxw_verifier_unlock(v);
	return NULL;
}

int rxw_verifier_init(struct rxw_verifier *v)
{
	pthread_mutex_init(&v->lock, NULL);
	v->tail = &v->head;
	return rxw_cond_init(&v->work);
}

void rxw_verifier_stop(struct rxw_verifier *v)
{
	rxw_verifier_lock(v);
	v->stop = true;
	rxw_verifier_unlock(v);
	pthread_cond_signal(&v->work);
	if (v->started)
		pthread_join(v->thread, NULL);
	v->started = false;
}

void rxw_verifier_fini(struct rxw_verifier *v)
{
	pthread_cond_destroy(&v->work);
	pthread_mutex_destroy(&v->lock);
}

void rxw_verify_run(struct rxw_shard *s, struct rxw_connection *c, const struct rxw_rxrun *run)
{
	struct rxw_verifier *v = &s->ep->verifier;
	struct rxw_verify_job *job;
	bool taken = false;

	if (!c->p.security->ops->deferred) {
		struct rxw_rxrun copy = *run;

		verify_now(s, c, &copy);
		return;
	}
	job = malloc(sizeof(*job));
	if (!job) {
		rxw_count(&s->stats.drops[RXW_DROP_MEMORY], run->count);
		return;
	}
	job->next = NULL;
	job->conn = c;
	job->run = *run;
	job->path = *run->path;
	rxw_conn_ref(c);
	rxw_buf_ref(run->buf);
	rxw_verifier_lock(v);
	if (!v->started && !v->stop)
		v->started = !rxw_thread_create(&v->thread, &s->ep->config, 0, "rxw-verify",
						verify_loop, v);
	if (v->started && !v->stop && v->count < RXW_VERIFY_QUEUE) {
		*v->tail = job;
		v->tail = &job->next;
		v->count++;
		taken = true;
	}
	rxw_verifier_unlock(v);
	if (taken) {
		pthread_cond_signal(&v->work);
		return;
	}
	/* As if lost: the peer sends it again. */
	rxw_count(&s->stats.drops[RXW_DROP_MEMORY], run->count);
	rxw_buf_unref(job->run.buf);
	rxw_conn_unref(c);
	free(job);
}
