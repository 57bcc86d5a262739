/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls, blocking and non-blocking. See rxw_call_begin(3) and rxw_call_set_callback(3). */
#ifndef RXWIRE_CALL_H
#define RXWIRE_CALL_H

#include <rxwire/error.h>
#include <rxwire/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Events of a call. An event holds as long as its condition; it is reported when that becomes
 * true.
 */
#define RXW_EVENT_READ	0x1u /* data, the end of the stream or an error can be read */
#define RXW_EVENT_WRITE 0x2u /* the send queue has room */
#define RXW_EVENT_DONE \
	0x4u /* client: the whole reply has arrived; both sides: the call has failed */

/*
 * Receives the events of a call. Runs on a thread of the library, or on one that waits in a
 * blocking function, without a lock. The callbacks of one call run one at a time, those of
 * different calls concurrently. A callback may use all non-blocking functions on any call, end
 * its own call, and begin calls with RXW_CALL_NONBLOCK. It must not block: functions that would
 * have to wait return -RXW_EDEADLK. If bulk data is expensive to seal, a write may return
 * -RXW_EAGAIN although there is room; the callback runs again after callbacks of other calls.
 */
typedef void (*rxw_call_fn)(rxw_call *call, unsigned events, void *arg);

#define RXW_CALL_NONBLOCK 0x1u /* functions return -RXW_EAGAIN instead of waiting */
#define RXW_CALL_TRY	  0x2u /* only rxw_call_begin() does so */

/* Zero the structure, set `size`, then fill in the other members. */
struct rxw_call_options {
	size_t size;
	unsigned flags;	      /* RXW_CALL_… */
	unsigned deadline_ms; /* from rxw_call_begin() on; then the code is -3; 0 = none */
	rxw_call_fn callback; /* NULL = none */
	void *arg;
	/*
	 * Report events to this queue; the callback must be NULL. If a non-blocking call cannot
	 * begin since no channel is free, the queue reports RXW_EVENT_CHANNEL with `arg` when the
	 * connection has one again.
	 */
	rxw_queue *queue;
	unsigned events; /* as by rxw_call_set_events(); 0 = all */
};

/*
 * Begin a call on a free channel (rx-protocol 2.4). Waits for a channel if all four are busy;
 * non-blocking calls get -RXW_EAGAIN, and only a queue announces a free channel. `options` may be
 * NULL. The caller owns *call until rxw_call_end(). Errors: -RXW_ENOMEM; -RXW_ESTOPPED;
 * -RXW_ESTATE (the connection was released); -RXW_ECALL (the connection has failed, or
 * rxw_connection_abort()); -RXW_ETIMEDOUT (no channel before the deadline or the hard timeout of
 * the connection); -RXW_EDEADLK (would wait in a callback or short handler); -RXW_ELIMIT (64
 * announcements are due on this connection already); -RXW_EINVAL, also for a queue of another
 * engine. Any thread.
 */
RXW_MUST_USE
int rxw_call_begin(rxw_connection *connection, const struct rxw_call_options *options,
		   rxw_call **call);

/*
 * Write to the request (client) or the reply (server); copies the data. Waits while the send
 * queue is full. Returns the bytes accepted, fewer than `length` only for non-blocking calls.
 * Errors: -RXW_EAGAIN, -RXW_ECALL, -RXW_ESTATE, -RXW_ENOMEM, -RXW_EDEADLK, -RXW_EINVAL. After an
 * error either nothing was accepted or the call has been aborted. One writing thread per call at
 * a time.
 */
RXW_MUST_USE ssize_t rxw_call_write(rxw_call *call, const void *data, size_t length);

/*
 * Reserve space in the send queue: fills iov[0..*count) with free slices of at most `length`
 * bytes in all. *count is the number of elements of iov on entry and the number used on return.
 * Waits for space. Returns the bytes reserved (> 0) or an error as rxw_call_write(). Fill the
 * slices in order, then call rxw_call_commit() exactly once with the number of bytes filled; 0
 * cancels. Until then functions that write, flush or end the stream return -RXW_ESTATE, and so do
 * the read functions of a client whose request has not ended. The end of the call cancels, too.
 */
RXW_MUST_USE
ssize_t rxw_call_reserve(rxw_call *call, size_t length, struct iovec *iov, unsigned *count);
int rxw_call_commit(rxw_call *call, size_t length);

/*
 * Read `length` bytes of a file from `offset` on into the send queue. Returns the bytes written,
 * fewer than `length` only at the end of the file and for non-blocking calls, or an error as
 * rxw_call_write(); -RXW_ESYS if the file cannot be read (errno): the call has been aborted if a part
 * of the file was accepted before.
 */
RXW_MUST_USE ssize_t rxw_call_sendfile(rxw_call *call, int fd, off_t offset, size_t length);

/*
 * Send the data written so far, including a partly filled packet. Non-blocking: -RXW_EAGAIN if
 * memory is exhausted; no data is lost, try again at the next event.
 */
int rxw_call_flush(rxw_call *call);

/*
 * Client: end the request. The first read does it otherwise. Server: not needed, the return of
 * the handler ends the reply. Errors as rxw_call_flush(); after -RXW_EAGAIN nothing more can be
 * written. The callback of the call may run before
 * this function returns, or even before it is entered. If the callback may end the call, set it
 * after this function, or hold a lock around this function that the callback takes too.
 */
int rxw_call_send_end(rxw_call *call);

/*
 * Read at most `length` bytes. Waits for `length` bytes or the end of the stream. Returns the
 * bytes read, 0 at the end of the stream, or -RXW_ECALL, -RXW_EAGAIN, -RXW_ESTATE, -RXW_EDEADLK,
 * -RXW_EINVAL. One reading thread per call at a time.
 */
RXW_MUST_USE ssize_t rxw_call_read(rxw_call *call, void *data, size_t length);

/* Like rxw_call_read(), but returns as soon as at least one byte is available. */
RXW_MUST_USE ssize_t rxw_call_read_some(rxw_call *call, void *data, size_t length);

/*
 * Lend received data without a copy: fills iov[0..*count) with slices of at most `length` bytes
 * in all; *count as in rxw_call_reserve(). The slices belong to the library and are valid until
 * the next read function or the end of the call. Returns the bytes lent, 0 at the end of the
 * stream, or an error as rxw_call_read().
 */
RXW_MUST_USE
ssize_t rxw_call_readv(rxw_call *call, size_t length, struct iovec *iov, unsigned *count);

/*
 * Server: the call outlives its handler, whose returned value is then ignored, and the thread of
 * the handler is free. For handlers and functions of generated stubs; also before other threads
 * use the call. From then on the call is non-blocking, belongs to the application, and is answered
 * by rxw_call_end() on any thread. RXW_EVENT_DONE says that it has failed: the client has aborted
 * it, is silent or has reached a timeout, or the endpoint stops. After the answer was handed to
 * another thread, the handler must not use the call. Errors: -RXW_EINVAL; -RXW_ESTATE (deferred
 * already); -RXW_ELIMIT (`deferred_max` of the service). The thread of the handler.
 */
int rxw_call_defer(rxw_call *call);

/*
 * End a client call or a deferred server call and free it (rx-protocol 2.7). Client, with `code`
 * 0: reads and discards the rest of the reply and acknowledges it; a non-blocking call before
 * RXW_EVENT_DONE is aborted with -6. Server, with `code` 0: ends the reply, which the library goes
 * on sending; does not wait; the call is aborted with -6 if memory is exhausted. Otherwise aborts
 * the call with `code`. Returns the code of the call, 0 for success; *origin (may be NULL) is the
 * side that raised the error. No other function may be running on the call. Not for handlers that
 * have not deferred it: the result is -2.
 */
rxw_code rxw_call_end(rxw_call *call, rxw_code code, enum rxw_origin *origin);

/*
 * Abort a call that has not been ended; 0 is replaced by -6. Functions that wait on the call
 * return -RXW_ECALL. The call must still be ended. Any thread.
 */
void rxw_call_abort(rxw_call *call, rxw_code code);

/*
 * The code of the call so far, 0 if it has not failed. `origin` may be NULL. In a handler: the abort
 * of the client, also at its deadline, has arrived (rx-protocol 2.7). Any thread.
 */
rxw_code rxw_call_error(const rxw_call *call, enum rxw_origin *origin);

/*
 * Select the events that a queue reports: at least one of RXW_EVENT_…, initially all. Events that
 * hold already are reported at once. An error counts as each event. -RXW_EINVAL. Any thread.
 */
int rxw_call_set_events(rxw_call *call, unsigned events);
/*
 * The events that hold now; 0 for NULL. Call it on the thread that reads the call, or on any thread
 * while none reads.
 */
unsigned rxw_call_events(rxw_call *call);
/*
 * Set or replace the callback; NULL removes it. Events that hold already are reported soon after,
 * never from within this function. Waits while the callback is running on another thread; that
 * callback may end the call. A queue of the call no longer reports it. -RXW_EINVAL; -RXW_ESTATE
 * (a server call that is not deferred); -RXW_EDEADLK (would wait in a callback). Any thread.
 */
int rxw_call_set_callback(rxw_call *call, rxw_call_fn callback, void *arg);

/*
 * The address of the peer, and (server) the local address that the client used; *address_len is 0
 * if that is unknown. -RXW_EINVAL. Any thread.
 */
int rxw_call_peer(const rxw_call *call, struct sockaddr_storage *address, socklen_t *address_len);
int rxw_call_local(const rxw_call *call, struct sockaddr_storage *address, socklen_t *address_len);
uint16_t rxw_call_service_id(const rxw_call *call);
/* Payload of a full packet of this call in bytes; writes in multiples of it are most efficient. */
size_t rxw_call_packet_size(const rxw_call *call);

#ifdef __cplusplus
}
#endif
#endif
