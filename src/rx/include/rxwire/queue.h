/* SPDX-License-Identifier: BSD-2-Clause */
/* Completion queues: the events of many calls through one descriptor. See rxw_queue(3). */
#ifndef RXWIRE_QUEUE_H
#define RXWIRE_QUEUE_H

#include <rxwire/call.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Events of queues, besides those of calls (RXW_EVENT_READ and so on). */
#define RXW_EVENT_CALL	  0x8u	/* a client has called a service that has a queue */
#define RXW_EVENT_CHANNEL 0x10u /* rxw_call_begin() had failed with -RXW_EAGAIN: try again */
#define RXW_EVENT_POST	  0x20u /* rxw_queue_post() */

/* One entry that was taken out. The unused members are zero. */
struct rxw_queue_event {
	rxw_call *call;	 /* NULL for CHANNEL and POST */
	void *arg;	 /* of the call, of the service (CALL), of the failed begin, or posted */
	unsigned events; /* RXW_EVENT_… that hold */
	unsigned reserved;
	rxw_connection *connection; /* CHANNEL: that of the failed begin; NULL for a pool */
	rxw_connpool *pool;		    /* CHANNEL: the pool whose begin failed */
	void *unused[3];
};

/* Zero the structure, set `size`. */
struct rxw_queue_options {
	size_t size;
};

/*
 * Create a queue. Calls of all endpoints of the engine may use it. `options` may be NULL. Errors:
 * -RXW_ENOMEM, -RXW_EINVAL. Any thread.
 */
int rxw_queue_create(rxw_engine *engine, const struct rxw_queue_options *options,
		     rxw_queue **queue);
/*
 * Free a queue and what was posted to it. NULL is permitted. -RXW_ESTATE: calls, services or
 * threads use it; destroy the endpoints of its services first. Any thread.
 */
int rxw_queue_destroy(rxw_queue *queue);

/*
 * A descriptor that is readable while entries are queued. Created on first use, closed with the
 * queue; do not read, write or close it. -RXW_EINVAL, -RXW_ESYS. Any thread.
 */
int rxw_queue_fd(rxw_queue *queue);

/*
 * Take out up to `max` entries, the oldest first. Returns their number; 0 if none came within
 * timeout_ms milliseconds (0: do not wait; -1: no limit). Several threads may wait; each entry
 * goes to one of them. A call has at most one entry, which stands for all its events; it is in
 * `events` at most once. If you end a call while a later element of `events` names it, skip that
 * element. What is reported holds at this moment. From then on the call is queued again as soon as one of its
 * events occurs: data or the end of the stream arrives, the send queue has room again, the call
 * is done. As with edge-triggered epoll, read and write until -RXW_EAGAIN. With several threads,
 * a second one may therefore be given the call while the first still handles it. Errors:
 * -RXW_EINVAL; -RXW_EDEADLK (would wait in a callback or short handler). Any thread.
 *
 * A thread of the application that waits receives packets itself, which saves the wake-up for each
 * event, if all calls that use the queue are those of one client endpoint with one socket, as
 * clients have by default. Then callbacks of other calls of the endpoint may run in this function:
 * hold no lock that they take. While the thread handles what it took, packets and timers of the
 * endpoint wait for a millisecond, at most three, until the library's thread receives. A thread that
 * is repeatedly away for longer than a millisecond leaves receiving to that one. In all other cases,
 * and for programs that watch rxw_queue_fd() and do not wait here, the library's threads receive.
 */
int rxw_queue_next(rxw_queue *queue, struct rxw_queue_event *events, unsigned max, int timeout_ms);

/*
 * Wait as rxw_queue_next(), take out the entries that are queued then, at most `max`, one by one, and
 * call fn() for each. The packets that fn() causes are sent together after the last one, which costs
 * much less than one by one. fn() must not block: functions that would have to wait return
 * -RXW_EDEADLK, as in a callback. It may use all non-blocking functions, begin calls, and end any
 * call: fn() is not called for a call that was ended. Returns the number of entries, 0
 * if none came in time. Errors as rxw_queue_next(). Any thread.
 */
typedef void (*rxw_queue_fn)(const struct rxw_queue_event *event);
int rxw_queue_run(rxw_queue *queue, rxw_queue_fn fn, unsigned max, int timeout_ms);

/*
 * Collect the data packets that this thread sends; send them together. For event loops that use
 * rxw_queue_next(), and for threads that begin or answer many calls: it costs much less than one
 * packet at a time. Packets wait for the end of the batch, so keep it short. A function that has to
 * wait, rxw_queue_run(), and functions that stop or destroy an endpoint or remove a service, end it
 * as well; rxw_batch_end() does nothing then. Another thread must not destroy an endpoint that was
 * used in the batch. Both have no effect in handlers, in callbacks and in functions that
 * rxw_queue_run() calls. Any thread.
 */
void rxw_batch_begin(void);
void rxw_batch_end(void);

/*
 * Queue an entry RXW_EVENT_POST with `arg`, for example to wake a thread that waits. -RXW_EINVAL,
 * -RXW_ENOMEM. Any thread, also in callbacks.
 */
int rxw_queue_post(rxw_queue *queue, void *arg);

/*
 * Report the events of a call to a queue instead of its callback, or to none (NULL). Events that
 * hold already and are selected by rxw_call_set_events() are queued at once. For client calls and
 * deferred server calls. Waits while the callback is running on another thread. -RXW_EINVAL, also for a
 * queue of another engine;
 * -RXW_ESTATE (a server call that is not deferred); -RXW_EDEADLK (would wait in a callback). Any
 * thread.
 */
int rxw_call_set_queue(rxw_call *call, rxw_queue *queue, void *arg);

#ifdef __cplusplus
}
#endif
#endif
