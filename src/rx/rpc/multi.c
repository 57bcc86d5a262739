/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One procedure on many connections or pools at a time.
 *
 * A callback, on any thread, reports that a call has a reply; the thread that asks for the next
 * step begins the calls and reads the replies. A target, which is a connection or a pool, has a
 * limited number of channels. Members that find none free wait in their group, which holds the
 * members of one target, until another member of it ends. A target may therefore be given any
 * number of times.
 */
#include <pthread.h>

#include <rxwire/queue.h>
#include <rxwire/rpc.h>
#include <rxwire/stub.h>

#include "engine/stream/observer.h"
#include "common/cancel.h"
#include "common/clock.h"
#include "rpc/refusal.h"

#define RETRY_NS 5000000 /* calls of others on a connection end without notice */

enum state {
	WAITING, /* not begun */
	OPEN,	 /* begun; its arguments are being encoded, or its reply is awaited */
	TOLD,	 /* returned as RXW_RPC_REPLY */
	OVER
};

struct group;

struct member {
	struct rxw_rpc_multi *multi;
	struct group *group;
	void *target; /* rxw_connection, or rxw_connpool if the multi is `pooled` */
	rxw_call *call;
	enum state state;
	unsigned next;	/* next waiting member of the group; NONE = the last */
	unsigned ready; /* next in the list of readable members; lock */
	bool sent;	/* its arguments have been encoded; lock */
	bool listed;	/* is or was in that list; lock */
	bool event;	/* is readable; lock */
};

/* The members of one target, at the index of the first one. */
struct group {
	unsigned first, last; /* waiting members; NONE = empty */
	unsigned open;	      /* current calls of its members */
	unsigned next;	      /* next in the list of groups to retry */
	bool listed;
	uint64_t since; /* ns: only calls of others hold its channels; 0: not so */
};

#define NONE UINT32_MAX

/*
 * `lock` covers the fields that callbacks use, marked "lock"; all others belong to the thread that
 * asks for the next step. No function of a call is called with it held.
 */
struct rxw_rpc_multi {
	unsigned count, over;
	bool pooled;	      /* targets are pools; fixed */
	unsigned deadline_ms; /* of each call; fixed */
	unsigned fresh;	 /* first member that was never tried */
	unsigned groups; /* list of groups to retry */
	int32_t code;	 /* of the latest member that could not begin */
	pthread_mutex_t lock;
	pthread_cond_t cond; /* `head` is no longer NONE */
	unsigned head, tail; /* replies in the order of arrival; lock */
	struct group *group;
	struct member member[];
};

/* -- setting up ----------------------------------------------------------------------------- */

static int by_target(const void *a, const void *b)
{
	const struct member *const *x = (const struct member *const *)a;
	const struct member *const *y = (const struct member *const *)b;

	if ((*x)->target != (*y)->target)
		return (uintptr_t)(*x)->target < (uintptr_t)(*y)->target ? -1 : 1;
	return *x < *y ? -1 : *x > *y;
}

/* Members of one target share the group of the first of them. */
static bool make_groups(struct rxw_rpc_multi *m)
{
	struct member **sorted = (struct member **)calloc(m->count + 1, sizeof(struct member *));
	struct group *group = NULL;

	if (!sorted)
		return false;
	for (unsigned i = 0; i < m->count; i++)
		sorted[i] = &m->member[i];
	qsort(sorted, m->count, sizeof(struct member *), by_target);
	for (unsigned i = 0; i < m->count; i++) {
		if (!i || sorted[i]->target != sorted[i - 1]->target)
			group = &m->group[sorted[i] - m->member];
		sorted[i]->group = group;
	}
	free(sorted);
	return true;
}

/* `targets` is an array of pointers to `count` connections or pools. */
static struct rxw_rpc_multi *create_multi(const void *targets, unsigned count, bool pooled,
					  const struct rxw_call_options *options)
{
	struct rxw_rpc_multi *m;
	size_t bytes;

	if (count >= NONE || (count && !targets) ||
	    __builtin_mul_overflow((size_t)count, sizeof(m->member[0]), &bytes) ||
	    __builtin_add_overflow(bytes, sizeof(*m), &bytes))
		return NULL;
	m = (struct rxw_rpc_multi *)calloc(1, bytes);
	if (!m)
		return NULL;
	m->count = count;
	m->pooled = pooled;
	m->deadline_ms = options ? options->deadline_ms : 0;
	m->head = m->tail = m->groups = NONE;
	m->group = (struct group *)calloc((size_t)count + 1, sizeof(*m->group));
	for (unsigned i = 0; i < count && m->group; i++) {
		m->member[i].multi = m;
		m->member[i].target = pooled ? (void *)((rxw_connpool *const *)targets)[i]
					     : (void *)((rxw_connection *const *)targets)[i];
		m->group[i].first = m->group[i].last = NONE;
	}
	if (!m->group || !make_groups(m) || monotonic_cond_init(&m->cond)) {
		free(m->group);
		free(m);
		return NULL;
	}
	pthread_mutex_init(&m->lock, NULL);
	return m;
}

struct rxw_rpc_multi *rxw_rpc_multi_create(rxw_connection *const *connections, unsigned count,
					   const struct rxw_call_options *options)
{
	return create_multi(connections, count, false, options);
}

struct rxw_rpc_multi *rxw_rpc_multi_create_pool(rxw_connpool *const *pools, unsigned count,
						const struct rxw_call_options *options)
{
	return create_multi(pools, count, true, options);
}

void rxw_rpc_multi_destroy(struct rxw_rpc_multi *multi)
{
	if (!multi)
		return;
	for (unsigned i = 0; i < multi->count; i++)
		if (multi->member[i].call)
			rxw_call_end(multi->member[i].call, RXW_USER_ABORT, NULL);
	pthread_cond_destroy(&multi->cond);
	pthread_mutex_destroy(&multi->lock);
	free(multi->group);
	free(multi);
}

/* -- replies -------------------------------------------------------------------------------- */

/* Lock held: add a member to the list, once, when its request is complete and it is readable. */
static void list_reply(struct rxw_rpc_multi *m, unsigned index)
{
	struct member *me = &m->member[index];

	if (!me->sent || !me->event || me->listed)
		return;
	me->listed = true;
	me->ready = NONE;
	if (m->head == NONE)
		m->head = index;
	else
		m->member[m->tail].ready = index;
	m->tail = index;
	pthread_cond_signal(&m->cond);
}

static void on_member_event(rxw_call *call, unsigned events, void *arg)
{
	struct member *me = (struct member *)arg;
	struct rxw_rpc_multi *m = me->multi;

	(void)call;
	if (!(events & (RXW_EVENT_READ | RXW_EVENT_DONE)))
		return;
	pthread_mutex_lock(&m->lock);
	me->event = true;
	list_reply(m, (unsigned)(me - m->member));
	pthread_mutex_unlock(&m->lock);
}

/* -- beginning ------------------------------------------------------------------------------ */

static void wait_in_group(struct rxw_rpc_multi *m, unsigned index)
{
	struct group *g = m->member[index].group;

	m->member[index].next = NONE;
	if (g->first == NONE)
		g->first = index;
	else
		m->member[g->last].next = index;
	g->last = index;
}

static void list_group(struct rxw_rpc_multi *m, struct group *g)
{
	if (g->listed || g->first == NONE)
		return;
	g->listed = true;
	g->next = m->groups;
	m->groups = (unsigned)(g - m->group);
}

/* 0: begun; -RXW_EAGAIN: no channel is free; another result. */
static int begin_member(struct rxw_rpc_multi *m, unsigned index)
{
	struct member *me = &m->member[index];
	struct rxw_call_options options = {.size = sizeof(options),
					   .flags = RXW_CALL_TRY,
					   .callback = on_member_event,
					   .arg = me,
					   .deadline_ms = m->deadline_ms};
	int r = m->pooled ? rxw_connpool_try_begin(me->target, &options, &me->call, &m->code)
			  : rxw_call_try_begin(me->target, &options, &me->call, &m->code);

	if (!r) {
		me->state = OPEN;
		me->group->open++;
		me->group->since = 0;
	}
	return r;
}

/* Calls of others hold the channels of a group: whether its waiting members have waited too long. */
static bool is_late(const struct rxw_rpc_multi *m, struct group *g)
{
	void *target = m->member[g->first].target;
	uint64_t hard =
		m->pooled ? rxw_connpool_hard_timeout(target) : rxw_connection_hard_timeout(target);
	uint64_t most = m->deadline_ms * UINT64_C(1000000), now = monotonic_ns();

	if (!most || (hard && hard < most))
		most = hard;
	if (!g->since)
		g->since = now;
	return most && now - g->since >= most;
}

/*
 * Begin a member if possible: 1, and *index is set; 0: none can begin; negative: the result of a
 * member that cannot begin at all.
 */
static int begin_one(struct rxw_rpc_multi *m, unsigned *index)
{
	int r;

	while (m->fresh < m->count) {
		unsigned i = m->fresh++;

		/* Others of its target are waiting: queue it after them. */
		r = m->member[i].group->first == NONE ? begin_member(m, i) : -RXW_EAGAIN;
		if (r == -RXW_EAGAIN) {
			wait_in_group(m, i);
			if (!m->member[i].group->open)
				list_group(m, m->member[i].group);
			continue;
		}
		*index = i;
		return r ? r : 1;
	}
	for (unsigned *link = &m->groups; *link != NONE;) {
		struct group *g = &m->group[*link];
		unsigned i = g->first;

		r = begin_member(m, i);
		if (r == -RXW_EAGAIN && !g->open && is_late(m, g))
			r = -RXW_ETIMEDOUT;
		if (r != -RXW_EAGAIN) {
			g->first = m->member[i].next;
			*index = i;
			if (g->first == NONE) {
				*link = g->next;
				g->listed = false;
			}
			return r ? r : 1;
		}
		/* The end of its own calls is reported; that of other calls on the target is not. */
		if (g->open) {
			*link = g->next;
			g->listed = false;
		} else {
			link = &g->next;
		}
	}
	return 0;
}

/* -- steps ---------------------------------------------------------------------------------- */

/* Wait for the next reply until there is something else to do; then NONE. */
static unsigned next_reply(struct rxw_rpc_multi *m)
{
	uint64_t until = monotonic_ns() + RETRY_NS;
	unsigned index;
	int r = 0;
	NOT_CANCELLED;

	pthread_mutex_lock(&m->lock);
	while (m->head == NONE && !r)
		r = m->groups == NONE ? pthread_cond_wait(&m->cond, &m->lock)
				      : monotonic_wait(&m->cond, &m->lock, until);
	index = m->head;
	if (index != NONE)
		m->head = m->member[index].ready;
	pthread_mutex_unlock(&m->lock);
	return index;
}

/* Where nothing can be waited for: abandon the next member without a reply. */
static bool refuse_one(struct rxw_rpc_multi *m, unsigned *index)
{
	for (unsigned i = 0; i < m->count; i++) {
		struct member *me = &m->member[i];

		if (me->state == TOLD || me->state == OVER)
			continue;
		if (me->call)
			rxw_call_end(me->call, RXW_USER_ABORT, NULL);
		me->call = NULL;
		me->state = OVER;
		m->over++;
		*index = i;
		return true;
	}
	return false;
}

/* A callback forked this process: the replies arrive in the parent. */
static bool is_inherited(const struct rxw_rpc_multi *m)
{
	if (!m->count)
		return false;
	return m->pooled ? rxw_connpool_is_inherited(m->member[0].target)
			 : rxw_connection_is_inherited(m->member[0].target);
}

enum rxw_rpc_step rxw_rpc_multi_next(struct rxw_rpc_multi *multi, unsigned *index, rxw_call **call,
				     int32_t *code)
{
	struct rxw_rpc_multi *m = multi;
	int r;

	if (!m || !index || !call || !code)
		return RXW_RPC_DONE;
	*call = NULL;
	*code = 0;
	r = rxw_must_not_wait() ? -RXW_EDEADLK : is_inherited(m) ? -RXW_ESTATE : 0;
	if (r && refuse_one(m, index)) {
		*code = rxw_rpc_refusal(r, 0);
		return RXW_RPC_FAILED;
	}
	rxw_batch_end(); /* it may have to wait */
	while (m->over < m->count) {
		r = begin_one(m, index);
		if (r < 0) {
			m->member[*index].state = OVER;
			m->over++;
			*code = rxw_rpc_refusal(r, m->code);
			return RXW_RPC_FAILED;
		}
		if (r) {
			*call = m->member[*index].call;
			return RXW_RPC_START;
		}
		*index = next_reply(m);
		if (*index != NONE) {
			m->member[*index].state = TOLD;
			*call = m->member[*index].call;
			return RXW_RPC_REPLY;
		}
	}
	*index = 0;
	return RXW_RPC_DONE;
}

void rxw_rpc_multi_started(struct rxw_rpc_multi *multi, unsigned index, int32_t code)
{
	struct member *me;
	bool failed;

	if (!multi || index >= multi->count)
		return;
	me = &multi->member[index];
	failed = code || rxw_call_send_end(me->call);
	/* The code is returned in the order of the replies, after those received before. */
	if (failed)
		rxw_call_abort(me->call, code);
	pthread_mutex_lock(&multi->lock);
	me->sent = true;
	me->event |= failed;
	list_reply(multi, index);
	pthread_mutex_unlock(&multi->lock);
}

int32_t rxw_rpc_multi_ended(struct rxw_rpc_multi *multi, unsigned index, int32_t code,
			    const struct rxw_rpc_interface *interface, unsigned function)
{
	struct member *me;

	if (!multi || index >= multi->count)
		return RXW_INVALID_OPERATION;
	me = &multi->member[index];
	code = rxw_rpc_end(me->call, code, interface, function);
	me->call = NULL;
	me->state = OVER;
	multi->over++;
	me->group->open--;
	list_group(multi, me->group);
	return code;
}
