/* SPDX-License-Identifier: BSD-2-Clause */
/* Completion queues: calls with events, connections with a free channel, entries of the user. */
#ifndef RXW_ENGINE_QUEUE_H
#define RXW_ENGINE_QUEUE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "engine/core/alive.h"
#include "engine/core/events.h"

struct rxw_connection;
struct rxw_endpoint;
struct rxw_engine;
struct rxw_service;
struct rxw_shard;

/* No lock held unless stated. */

/* Append an entry that is not queued. True: call rxw_queue_signal() without other locks. */
bool rxw_queue_append(struct rxw_queue *q, struct rxw_queue_entry *entry);
/*
 * Connection's lock held: the same for a call that uses a queue, and may be queued already. Entries
 * of it that were taken out and not reported yet are void.
 */
bool rxw_queue_put(struct rxw_call *call);
/* Returns the shard whose role the woken thread is going to take, or NULL. */
struct rxw_shard *rxw_queue_signal(struct rxw_queue *q);
/* Connection's lock held: the call uses the queue, or none any more. */
void rxw_queue_join(struct rxw_call *call, struct rxw_queue *q, void *arg);
void rxw_queue_leave(struct rxw_call *call);
/* Does the queue belong to the engine? To that of a process that has forked this one? */
bool rxw_queue_of_engine(const struct rxw_queue *q, const struct rxw_engine *e);
bool rxw_queue_inherited(const struct rxw_queue *q);
/* A service uses the queue, or does not any more. */
void rxw_queue_use(struct rxw_queue *q);
void rxw_queue_unuse(struct rxw_queue *q);
/* The thread that receives for the queue is to look for entries. */
const _Atomic(bool) *rxw_queue_interrupted(const struct rxw_queue *q);
/* Take entries out, each call at most once. Returns how many; does not wait. */
unsigned rxw_queue_take(struct rxw_queue *q, struct rxw_queue_event *events, unsigned max);
/*
 * Claim up to `max` of the entries that are queued now, to take them one by one. Returns how many.
 * rxw_queue_take_claimed() takes one, and is called until it returns false: none is left.
 */
unsigned rxw_queue_claim(struct rxw_queue *q, unsigned max);
bool rxw_queue_take_claimed(struct rxw_queue *q, struct rxw_queue_event *event, unsigned *claim);
/*
 * This thread begins to wait: the shard whose receive role it may take, which exists until
 * rxw_queue_exit(); NULL: none. `role`: the thread had the role in the end. *late: threads came back too
 * late several times in a row, and leave that role to the listener.
 */
struct rxw_shard *rxw_queue_enter(struct rxw_queue *q, bool *late);
void rxw_queue_exit(struct rxw_queue *q, struct rxw_shard *s, bool role);
/*
 * Sleep until there is an entry, but not beyond `end` (ns). May return early. `s`: from
 * rxw_queue_enter(); if its role is free the thread does not sleep.
 */
void rxw_queue_sleep(struct rxw_queue *q, struct rxw_shard *s, uint64_t end);
/*
 * This thread has the role of `s` and is about to receive. False: it must not, since there are
 * entries or the endpoint ends.
 */
bool rxw_queue_receives(struct rxw_queue *q, struct rxw_shard *s);
/* It does not receive any more. It looks for entries once again. */
void rxw_queue_received(struct rxw_queue *q);
/* The endpoint ends (`quit` is set). No waiting thread uses its role afterwards. */
void rxw_queue_forget(struct rxw_endpoint *ep);
/*
 * The endpoint's connections were released and its calls have ended: no queue, and no thread that takes
 * entries, names one afterwards.
 */
void rxw_queue_drop_channels(struct rxw_endpoint *ep);
/*
 * The endpoint stops, or the service is removed: end those of its calls that are still queued. NULL: the queue
 * ends; free the entries that belong to no call.
 */
void rxw_queue_refuse(struct rxw_queue *q, const struct rxw_service *service);

/* --- channels --- */

#define RXW_CHANNEL_WAITS 64 /* of one connection or pool */

/* A failed begin. */
struct rxw_channel_wait {
	struct rxw_queue_entry entry; /* first */
	struct rxw_channel_wait *next;
	struct rxw_queue *queue;	 /* a user of it */
	struct rxw_connection *conn;	 /* one reference; NULL: of a pool */
	struct rxw_channel_group *group; /* one reference */
	void *arg;
};

struct rxw_channel_waits {
	struct rxw_channel_wait *first;
	unsigned count;
};

/*
 * The first member of a struct rxw_connpool: callers wait for a channel of any connection. `lock`
 * covers all fields but the references.
 */
struct rxw_channel_group {
	_Atomic(uint32_t)
		refs; /* of the pool and the waits; the last one frees the pool's memory */
	bool released;
	pthread_mutex_t lock; /* may be taken under a connection's lock */
	pthread_cond_t cond;
	uint64_t freed; /* grows with each free channel that was announced */
	struct rxw_channel_waits waits;
};

/* Of a client connection of which a caller wanted a channel, or that is in a pool. Its lock. */
struct rxw_conn_channels {
	struct rxw_channel_waits waits;
	struct rxw_channel_group *group; /* NULL: none */
};

/*
 * The lock of the list held. Remember a failed begin, unless the queue and argument are there
 * already. 0, -RXW_ENOMEM or -RXW_ELIMIT.
 */
int rxw_channel_wait(struct rxw_channel_waits *list, struct rxw_queue *q, void *arg,
		     struct rxw_connection *conn, struct rxw_channel_group *group);
/* A channel is free, and c->channel_wanted was set: tell those who want one. */
void rxw_channel_announce(struct rxw_connection *c);
/* 0 or -RXW_ENOMEM. The release frees the memory that begins with the group. */
int rxw_channel_group_init(struct rxw_channel_group *g);
void rxw_channel_group_release(struct rxw_channel_group *g);
/* Free all waits of a list that no other thread can reach. No lock is held. */
void rxw_channel_forget(struct rxw_channel_waits *list);
void rxw_channel_wait_free(struct rxw_channel_wait *w);

#endif
