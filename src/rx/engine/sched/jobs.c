/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Work of security classes that a thread does: runs to verify, callbacks that seal bulk data,
 * exchanges.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "engine/objects.h"
#include "engine/sched/inner.h"
#include "proto/peer/event.h"

#define HERE_MAX \
	4u /* verifying that many packets of a connection costs less than handing them over */
#define PIN_FACTOR 4u  /* a run may pin a buffer of up to that many times its size */
#define RUNS_MAX   64u /* runs of a call, or early ones of a connection, that may wait */

void rxw_verify_slice(const struct rxw_rxrun *run, uint16_t from, uint16_t count,
		      struct rxw_rxrun *part)
{
	assert(count && from + count <= run->count);
	*part = *run;
	part->data += (size_t)from * run->stride;
	part->count = count;
	part->last_size = from + count == run->count ? run->last_size : run->stride;
	part->size = (uint32_t)(count - 1) * run->stride + part->last_size;
	part->head.seq += from;
	part->head.serial += from;
}

/* A run that would pin a much larger buffer is copied, as in the receive queue. */
static bool hold_bytes(struct rxw_verify_job *job, const struct rxw_rxrun *part)
{
	struct rxw_buf *small;

	if (part->buf->cap <= PIN_FACTOR * part->size) {
		rxw_buf_ref(part->buf);
		return true;
	}
	small = rxw_buf_get_small(rxw_pool_for(rxw_home(job->conn)), part->size);
	if (!small)
		return false;
	memcpy(small->data, part->data, part->size);
	job->run.buf = small;
	job->run.data = small->data;
	return true;
}

/* Packets that wait for verification are charged like verified ones. */
static bool charge_run(struct rxw_verify_job *job)
{
	struct rxw_pconn *p = &job->conn->p;
	int64_t bytes = job->run.buf->cap;

	if (!rxw_budget_take(&p->rx.memory, bytes))
		return false;
	if (!rxw_budget_take(&p->account->memory, bytes)) {
		rxw_budget_give(&p->rx.memory, bytes);
		return false;
	}
	job->charge = bytes;
	return true;
}

static void uncharge_run(struct rxw_verify_job *job)
{
	if (!job->charge)
		return;
	rxw_budget_give(&job->conn->p.rx.memory, job->charge);
	rxw_budget_give(&job->conn->p.account->memory, job->charge);
	job->charge = 0;
}

struct rxw_verify_job *rxw_verify_run_job(struct rxw_connection *c, const struct rxw_rxrun *part)
{
	struct rxw_verify_job *job = malloc(sizeof(*job) + part->count * sizeof(job->packet[0]));

	if (!job)
		return NULL;
	*job = (struct rxw_verify_job){.conn = c, .run = *part, .path = *part->path};
	if (!hold_bytes(job, part))
		goto fail;
	if (!charge_run(job)) {
		rxw_buf_unref(job->run.buf);
		goto fail;
	}
	rxw_conn_ref(c);
	return job;
fail:
	free(job);
	return NULL;
}

static void free_run(struct rxw_verify_job *job)
{
	uncharge_run(job);
	rxw_buf_unref(job->run.buf);
	rxw_conn_unref(job->conn);
	free(job);
}

void rxw_verify_drop(struct rxw_verify_job *job)
{
	struct rxw_verify_job *next;

	for (; job; job = next) {
		next = job->next;
		free_run(job);
	}
}

static bool early_ready(const struct rxw_connection *c, uint8_t bit)
{
	return (c->jobs.early_has & bit) && !(c->jobs.early_busy & bit) && !c->jobs.here;
}

/* Removes the channel's first runs from the list, and recomputes which channels have some. */
static struct rxw_verify_job *take_early(struct rxw_connection *c, uint8_t bit, unsigned most)
{
	struct rxw_verify_job *first = NULL, **last = &first, **link = &c->jobs.early;
	unsigned n = 0;

	c->jobs.early_has = 0;
	while (*link) {
		struct rxw_verify_job *job = *link;

		if (rxw_channel_bit(&job->run) != bit || n == most) {
			c->jobs.early_has |= rxw_channel_bit(&job->run);
			link = &job->next;
			continue;
		}
		*link = job->next;
		job->next = NULL;
		job->early = bit;
		rxw_conn_ref(c); /* entries of the list hold no reference */
		*last = job;
		last = &job->next;
		n++;
	}
	c->jobs.early_tail = link;
	assert(c->jobs.early_runs >= n);
	c->jobs.early_runs -= n;
	if (n)
		c->jobs.early_busy |= bit;
	return first;
}

/* Connection's lock held. False: the queue is full, and the run counts as lost. */
static bool append_early(struct rxw_connection *c, struct rxw_verify_job *job)
{
	if (c->jobs.early_runs >= RUNS_MAX)
		return false;
	if (!c->jobs.early)
		c->jobs.early_tail = &c->jobs.early;
	*c->jobs.early_tail = job;
	c->jobs.early_tail = &job->next;
	c->jobs.early_runs++;
	c->jobs.early_has |= rxw_channel_bit(&job->run);
	/* Never the last one. A reference from its own list would keep the connection for ever. */
	rxw_conn_unref(c);
	return true;
}

void rxw_verify_lose_early(struct rxw_connection *c, uint8_t bit, struct rxw_out *out)
{
	struct rxw_verify_job *jobs = take_early(c, bit, UINT_MAX);

	c->jobs.early_busy &= (uint8_t)~bit;
	for (struct rxw_verify_job *job = jobs; job; job = job->next)
		rxw_drop(out->stats, RXW_DROP_MEMORY, job->run.count);
	rxw_verify_drop(jobs);
}

void rxw_verify_forget_early(struct rxw_connection *c)
{
	struct rxw_verify_job *job;

	while ((job = c->jobs.early) != NULL) {
		c->jobs.early = job->next;
		uncharge_run(job);
		rxw_buf_unref(job->run.buf);
		free(job);
	}
}

bool rxw_verify_ready(const struct rxw_call *call)
{
	return call->jobs.first && !call->jobs.busy && !call->conn->jobs.here;
}

struct rxw_verify_job *rxw_verify_take(struct rxw_call *call, unsigned most)
{
	struct rxw_verify_job *first = call->jobs.first, **link = &call->jobs.first;
	unsigned n = 0;

	assert(!call->jobs.busy);
	for (; *link && n < most; n++) {
		(*link)->of = call;
		link = &(*link)->next;
	}
	call->jobs.first = *link;
	*link = NULL;
	if (!call->jobs.first)
		call->jobs.tail = &call->jobs.first;
	call->jobs.runs -= n;
	call->jobs.busy = n > 0;
	return n ? first : NULL;
}

static void lock_verifier(struct rxw_verifier *v)
{
	rxw_mutex_lock(&v->lock, &v->contended);
}

struct rxw_verify_job *rxw_verify_take_signalled(const struct rxw_verify_job *job, unsigned most)
{
	rxw_verify_unsignal(job);
	if (job->call)
		return rxw_verify_ready(job->call) ? rxw_verify_take(job->call, most) : NULL;
	return early_ready(job->conn, job->early) ? take_early(job->conn, job->early, most) : NULL;
}

/* Verifier's lock held: dequeue a job, or NULL. */
static struct rxw_verify_job *next_job(struct rxw_verifier *v)
{
	struct rxw_verify_job *job = v->head;

	if (!job)
		return NULL;
	assert(job->auth ? v->auths : v->quanta);
	v->head = job->next;
	if (!v->head)
		v->tail = &v->head;
	if (job->auth)
		v->auths--;
	else
		v->quanta--;
	return job;
}

static void *verify_loop(void *arg)
{
	struct rxw_verifier *v = arg;

	lock_verifier(v);
	v->coming--;
	for (;;) {
		struct rxw_verify_job *job = next_job(v);

		if (!job) {
			if (v->stop)
				break;
			v->idle++;
			pthread_cond_wait(&v->work, &v->lock);
			v->idle--;
			continue;
		}
		pthread_mutex_unlock(&v->lock);
		job->conn->ep->upcalls->verify(job);
		lock_verifier(v);
	}
	pthread_mutex_unlock(&v->lock);
	return NULL;
}

int rxw_verifier_create(struct rxw_endpoint *ep)
{
	unsigned threads = rxw_half_of_cpus(ep->engine);
	struct rxw_verifier *v = calloc(1, sizeof(*v));

	if (!v)
		return -RXW_ENOMEM;
	if (rxw_cond_init(&v->work)) {
		free(v);
		return -RXW_ENOMEM;
	}
	v->most = threads < RXW_VERIFY_THREADS ? threads : RXW_VERIFY_THREADS;
	rxw_mutex_init(&v->lock);
	v->tail = &v->head;
	ep->verifier = v;
	return 0;
}

/*
 * Verifier's lock held; released meanwhile. There is no thread and none can be started: cancel all
 * jobs.
 */
static void cancel_all(struct rxw_verifier *v)
{
	struct rxw_verify_job *job;

	while (!v->threads && !v->starting && (job = next_job(v)) != NULL) {
		pthread_mutex_unlock(&v->lock);
		job->conn->ep->upcalls->cancel(job);
		lock_verifier(v);
	}
}

/*
 * Verifier's lock held. Idle threads may have been signalled for a job already without having taken
 * it.
 */
static bool needs_verifying_thread(const struct rxw_verifier *v)
{
	return !v->stop && v->quanta + v->auths > v->idle + v->coming && v->threads < v->most;
}

void rxw_verifier_grow(struct rxw_endpoint *ep)
{
	struct rxw_verifier *v = ep->verifier;
	bool failed = false;

	if (!atomic_load_explicit(&v->short_of, memory_order_relaxed))
		return;
	lock_verifier(v);
	while (!v->starting && !failed && needs_verifying_thread(v)) {
		unsigned slot = v->threads;

		v->starting = true;
		v->coming++;
		pthread_mutex_unlock(&v->lock);
		failed = rxw_thread_create(&v->thread[slot], ep, slot, "rxw-verify", verify_loop,
					   v) != 0;
		lock_verifier(v);
		v->starting = false;
		v->threads += !failed;
		v->coming -= failed;
		if (v->stop)
			pthread_cond_broadcast(&v->work);
	}
	/* If another thread is starting one now, it checks again under this lock. */
	if (!v->starting)
		atomic_store_explicit(&v->short_of, false, memory_order_relaxed);
	cancel_all(v);
	pthread_mutex_unlock(&v->lock);
}

void rxw_verifier_stop(struct rxw_verifier *v)
{
	lock_verifier(v);
	v->stop = true;
	while (v->starting)
		pthread_cond_wait(&v->work, &v->lock);
	pthread_mutex_unlock(&v->lock);
	pthread_cond_broadcast(&v->work);
	/* No thread is started from here on. */
	for (unsigned i = 0; i < v->threads; i++)
		pthread_join(v->thread[i], NULL);
	v->threads = 0;
	lock_verifier(v);
	cancel_all(v);
	pthread_mutex_unlock(&v->lock);
}

void rxw_verifier_free(struct rxw_verifier *v)
{
	if (!v)
		return;
	assert(!v->head && !v->threads);
	pthread_cond_destroy(&v->work);
	pthread_mutex_destroy(&v->lock);
	free(v);
}

uint64_t rxw_verifier_contended(const struct rxw_endpoint *ep)
{
	return atomic_load_explicit(&ep->verifier->contended, memory_order_relaxed);
}

/*
 * Queues a job like this one, with references of its own. False: the queue is full, or there is no memory. Locks
 * may be held; after they are released rxw_verifier_grow() must follow.
 */
static bool submit_job(const struct rxw_verify_job *like)
{
	struct rxw_verifier *v = like->conn->ep->verifier;
	struct rxw_verify_job *job = malloc(sizeof(*job));
	bool taken = false;

	if (!job)
		return false;
	*job = *like;
	rxw_conn_ref(job->conn);
	if (job->call)
		rxw_call_ref(job->call);
	lock_verifier(v);
	if (!v->stop && (job->auth ? v->auths < RXW_VERIFY_AUTH : v->quanta < RXW_VERIFY_QUEUE)) {
		*v->tail = job;
		v->tail = &job->next;
		if (job->auth)
			v->auths++;
		else
			v->quanta++;
		taken = true;
		if (needs_verifying_thread(v))
			atomic_store_explicit(&v->short_of, true, memory_order_relaxed);
	}
	pthread_mutex_unlock(&v->lock);
	if (taken) {
		pthread_cond_signal(&v->work);
		return true;
	}
	/* Never the last references: the caller has its own. */
	if (job->call)
		rxw_call_unref(job->call);
	rxw_conn_unref(job->conn);
	free(job);
	return false;
}

bool rxw_verify_waits(const struct rxw_connection *c, const struct rxw_call *call, uint8_t early)
{
	if (call)
		return !call->jobs.signalled && rxw_verify_ready(call);
	return !(c->jobs.early_signalled & early) && early_ready(c, early);
}

bool rxw_verify_signal(struct rxw_connection *c, struct rxw_call *call, uint8_t early)
{
	if (!submit_job(&(struct rxw_verify_job){.conn = c, .call = call, .early = early}))
		return false;
	if (call)
		call->jobs.signalled = true;
	else
		c->jobs.early_signalled |= early;
	return true;
}

void rxw_verify_unsignal(const struct rxw_verify_job *job)
{
	if (job->call)
		job->call->jobs.signalled = false;
	else
		job->conn->jobs.early_signalled &= (uint8_t)~job->early;
}

void rxw_verify_mark_early(struct rxw_verify_job *job)
{
	job->early = rxw_channel_bit(&job->run);
	job->conn->jobs.early_busy |= job->early;
}

void rxw_verify_settle(struct rxw_verify_job *job)
{
	struct rxw_connection *c = job->conn;

	assert(rxw_is_locked(&c->lock) && c->jobs.here >= job->here);
	if (job->of)
		job->of->jobs.pinned -= job->charge;
	c->jobs.here -= job->here;
	uncharge_run(job);
}

bool rxw_verify_settled(struct rxw_connection *c, struct rxw_call *call, uint8_t early)
{
	c->jobs.early_busy &= (uint8_t)~early;
	if (call)
		call->jobs.busy = false;
	return (call && call->jobs.first) || (c->jobs.early_has & early);
}

void rxw_verify_auth(struct rxw_connection *c, struct rxw_out *out)
{
	struct rxw_auth_job *auth = rxw_pconn_auth_take(&c->p);

	if (!auth || submit_job(&(struct rxw_verify_job){.conn = c, .auth = auth}))
		return;
	rxw_pconn_auth_drop(&c->p, auth, out);
	rxw_timer_of_conn(c);
}

/* Connection's lock held: the call of a run; NULL: it does not exist yet. */
static struct rxw_call *find_call_of_run(const struct rxw_connection *c,
					 const struct rxw_rxrun *run)
{
	struct rxw_pcall *p = c->p.channel[run->head.cid & 3];

	return p && p->number == run->head.call ? rxw_call_of(p) : NULL;
}

/*
 * Connection's lock held. A run that the listener does not verify itself: the thread that waits to
 * read the call does, or else a verifying thread; after earlier runs of the same channel. False:
 * the run counts as lost.
 */
static bool queue_unverified_run(struct rxw_connection *c, struct rxw_verify_job *job)
{
	struct rxw_call *call = find_call_of_run(c, &job->run);

	if (!call || ((c->jobs.early_has | c->jobs.early_busy) & rxw_channel_bit(&job->run)))
		return append_early(c, job);
	if (call->jobs.runs >= RUNS_MAX ||
	    rxw_pcall_pinned(&call->p) + call->jobs.pinned + job->charge >
		    (int64_t)c->p.params->call_memory)
		return false;
	if (!call->jobs.first)
		call->jobs.tail = &call->jobs.first;
	*call->jobs.tail = job;
	call->jobs.tail = &job->next;
	call->jobs.runs++;
	call->jobs.pinned += job->charge;
	return true; /* rxw_verify_wake() signals a thread at the end of the batch */
}

bool rxw_verify_callback(struct rxw_call *call)
{
	bool signalled = submit_job(
		&(struct rxw_verify_job){.conn = call->conn, .call = call, .callback = true});

	rxw_verifier_grow(call->conn->ep);
	return signalled;
}

/*
 * Connection's lock held: may the receiving thread verify the run itself, before all others of its
 * call?
 */
static bool is_next(const struct rxw_shard *s, const struct rxw_connection *c,
		    const struct rxw_rxrun *run)
{
	const struct rxw_call *call = find_call_of_run(c, run);

	if (call && (call->jobs.first || call->jobs.busy))
		return false;
	if ((c->jobs.early_has | c->jobs.early_busy) & rxw_channel_bit(run))
		return false;
	return !c->jobs.here || (c->jobs.shard == s && c->jobs.round == s->jobs.round);
}

void rxw_verify_queue(struct rxw_shard *s, struct rxw_connection *c, const struct rxw_rxrun *run,
		      uint32_t packets)
{
	bool slow = (c->p.auth.security->class.flags & RXW_CLASS_SLOW) && !c->p.auth.room.quick;
	bool here = packets <= HERE_MAX || !slow || !rxw_on_library_thread(NULL);
	struct rxw_shard_jobs *b = &s->jobs;
	struct rxw_rxrun part;

	here = here && is_next(s, c, run);
	for (uint16_t at = 0; at < run->count; at = (uint16_t)(at + part.count)) {
		uint16_t n = (uint16_t)(run->count - at);
		struct rxw_verify_job *job;

		rxw_verify_slice(run, at, n < RXW_VERIFY_MOST ? n : RXW_VERIFY_MOST, &part);
		job = rxw_verify_run_job(c, &part);
		if (job && here) {
			if (!b->first)
				b->tail = &b->first;
			*b->tail = job;
			b->tail = &job->next;
			job->here = true;
			c->jobs.here++;
			c->jobs.shard = s;
			c->jobs.round = b->round;
		} else if (!job || !queue_unverified_run(c, job)) {
			/* Counts as lost: the peer retransmits it. */
			rxw_drop(&s->stats, RXW_DROP_MEMORY, part.count);
			if (job)
				free_run(job);
		}
	}
}

struct rxw_verify_job *rxw_verify_take_own(struct rxw_shard *s)
{
	struct rxw_verify_job *jobs = s->jobs.first;

	s->jobs.first = NULL;
	s->jobs.round++;
	return jobs;
}

void rxw_verify_forget(struct rxw_call *call)
{
	assert(!atomic_load(&call->refs) && !call->sched.link &&
	       !atomic_load(&call->sched.reserved));
	rxw_verify_drop(call->jobs.first);
}
