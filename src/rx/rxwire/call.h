/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls: the blocking interface, and the asynchronous form that it is built on. */
#ifndef RXWIRE_CALL_H
#define RXWIRE_CALL_H

#include <rxwire/error.h>
#include <rxwire/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Events of a call, level-triggered while they hold, reported when they become true. */
#define RXW_EVENT_READ  0x1u /* bytes, the end of the stream or an error can be read at once */
#define RXW_EVENT_WRITE 0x2u /* there is room to write */
#define RXW_EVENT_DONE \
	0x4u /* the whole reply is there, or an error: rxw_call_end() returns at once */

/*
 * Told of events. Runs on a thread of the library, or on one that waits in a blocking function,
 * with no lock held, one at a time per call, those of different calls at the same time; it may use
 * every non-blocking function on any call, rxw_call_end() of its own included, and begin new calls
 * with RXW_CALL_NONBLOCK. It must not block: what would have to wait returns -RXW_EDEADLK. Bulk that is costly to seal is written in turns: it may
 * be given -RXW_EAGAIN although there is room, and is called again when others had their turn.
 */
typedef void (*rxw_call_fn)(rxw_call *call, unsigned events, void *arg);

#define RXW_CALL_NONBLOCK 0x1u /* every function returns -RXW_EAGAIN instead of waiting */
#define RXW_CALL_TRY	  0x2u /* rxw_call_begin() does so; the other functions wait */

/* Zero, set `size`, then fill. */
struct rxw_call_options {
	size_t size;
	unsigned flags;	      /* RXW_CALL_… */
	unsigned deadline_ms; /* the call, or its beginning, ends with -3 after so long; 0 = none */
	rxw_call_fn callback; /* NULL = none */
	void *arg;
};

/*
 * Begin a call on a free channel; waits for one if all four are busy (non-blocking: -RXW_EAGAIN,
 * and the connection wakes nobody: begin fewer or use more connections). `options` may be NULL. The
 * caller owns the call until rxw_call_end(). Errors: -RXW_ENOMEM, -RXW_ESTOPPED, -RXW_ECALL
 * (connection in error, or rxw_connection_abort()), -RXW_ETIMEDOUT (no channel by the deadline or the
 * connection's hard time), -RXW_EDEADLK (would wait in a callback or short handler), -RXW_EINVAL.
 */
int rxw_call_begin(rxw_connection *connection, const struct rxw_call_options *options,
		   rxw_call **call);

/*
 * Write `length` bytes to the stream (request on the client side, reply on the server side); copies
 * once. Waits for room; returns the bytes taken (all, unless non-blocking) or -RXW_EAGAIN,
 * -RXW_ECALL, -RXW_ESTATE, -RXW_ENOMEM. An error takes nothing, or aborts the call. One thread at a
 * time per direction and call.
 */
ssize_t rxw_call_write(rxw_call *call, const void *data, size_t length);

/*
 * Room in the send queue, in place: fills iov[0..*count) with free slots for at most `length`
 * bytes, waiting until there is some. *count is the room in iov on entry, what was used on return.
 * Returns the bytes offered (> 0).
 * Follow with exactly one rxw_call_commit() of the bytes filled, in order from the first (0 takes
 * the offer back).
 */
ssize_t rxw_call_reserve(rxw_call *call, size_t length, struct iovec *iov, unsigned *count);
int rxw_call_commit(rxw_call *call, size_t length);

/*
 * Read a file range straight into the send queue. Returns bytes sent (fewer than `length` only at
 * the end of the file), or a negative result; -RXW_ESYS leaves errno of the read.
 */
ssize_t rxw_call_sendfile(rxw_call *call, int fd, off_t offset, size_t length);

/*
 * Send what is written, without waiting for more to fill a packet. Non-blocking: -RXW_EAGAIN if
 * there is no memory; nothing is lost, try again at the next event.
 */
int rxw_call_flush(rxw_call *call);

/*
 * Client: end the request (the last packet goes out). Done by the first read if not called. Server:
 * not needed, the handler's return does it. -RXW_EAGAIN as of rxw_call_flush(). The call's callback
 * may run before this returns, or even before it is entered. A thread that leaves the end of the
 * call to it sets it behind this function, or holds a lock of its own across it that the callback
 * takes, too.
 */
int rxw_call_send_end(rxw_call *call);

/*
 * Read at most `length` bytes. Waits until `length` bytes or the end of the stream came; 0 = end of
 * stream. Returns bytes read, -RXW_ECALL, -RXW_EAGAIN (non-blocking and nothing there),
 * -RXW_ESTATE.
 */
ssize_t rxw_call_read(rxw_call *call, void *data, size_t length);

/* As rxw_call_read() but returns as soon as there is something. */
ssize_t rxw_call_read_some(rxw_call *call, void *data, size_t length);

/*
 * Lend received bytes without a copy: fills iov[0..*count) with at most `length` bytes. The slices
 * stay valid until the next read function or rxw_call_end() on the call. Returns bytes lent, 0 at
 * the end of the stream, or an error as above.
 */
ssize_t rxw_call_readv(rxw_call *call, size_t length, struct iovec *iov, unsigned *count);

/* How a call went; all counts are of this call. */
struct rxw_call_stats {
	size_t size;			     /* set by the caller: sizeof(struct rxw_call_stats) */
	uint64_t bytes_sent, bytes_received; /* of the streams */
	uint64_t packets_sent, packets_received; /* DATA, first transmissions / accepted */
	uint64_t retransmitted, duplicates;
	uint64_t acks_sent, acks_received;
	uint64_t windows_by_writer, windows_by_receiver; /* who sent what an ACK had opened */
	uint64_t rtt_ns;				 /* smoothed, 0 = no sample */
	uint32_t cwnd, peer_window;			 /* packets */
	uint64_t started_ns, ended_ns;			 /* monotonic */
	uint8_t security, level; /* index of the class; enum rxw_level */
};
int rxw_call_stats(rxw_call *call, struct rxw_call_stats *stats);

/*
 * End a client call: reads and discards what is left of the reply, acknowledges it, frees the call.
 * `code` != 0 aborts the call with it instead. Returns the code of the call: 0 or the error;
 * *origin (may be NULL) says who raised it. Non-blocking: before RXW_EVENT_DONE the call is aborted
 * with -6 if code is 0. The call object is gone when this returns. Not for server calls: handlers
 * return their code.
 */
int32_t rxw_call_end(rxw_call *call, int32_t code, enum rxw_origin *origin);

/*
 * Abort from any thread while the call is held (cancellation); code 0 counts as -6. Waiting
 * functions return -RXW_ECALL.
 */
void rxw_call_abort(rxw_call *call, int32_t code);

/* The error of the call, 0 if none. */
int32_t rxw_call_error(const rxw_call *call, enum rxw_origin *origin);

/*
 * A descriptor that polls readable while an event of rxw_call_events() holds; made on first use,
 * closed with the call.
 */
int rxw_call_fd(rxw_call *call);
/*
 * Have the descriptor tell of these events alone (of RXW_EVENT_…, at least one; all at first): one
 * that has nothing to write, or does not want to read yet, would else be woken without end. What
 * holds already is told at once. An error is an event of each kind. Any thread. -RXW_EINVAL, -RXW_ESYS.
 */
int rxw_call_set_events(rxw_call *call, unsigned events);
/*
 * The events that hold now. The thread that reads the call may ask, or any other while none reads:
 * what the reader has at hand is looked at, and that is its own. 0 for NULL.
 */
unsigned rxw_call_events(rxw_call *call);
/*
 * Set or change the callback; events that hold already are reported soon, never from within this
 * function. Waits for one that runs on another thread, which may end the call meanwhile.
 */
int rxw_call_set_callback(rxw_call *call, rxw_call_fn callback, void *arg);

/* The peer's address, and the local address that it asked (server) or 0 length. */
int rxw_call_peer(const rxw_call *call, struct sockaddr_storage *address, socklen_t *address_len);
int rxw_call_local(const rxw_call *call, struct sockaddr_storage *address, socklen_t *address_len);
uint16_t rxw_call_service_id(const rxw_call *call);
/* Status byte of the packets sent, and of the latest packet of the peer (rx-protocol 1.10). */
void rxw_call_set_status(rxw_call *call, uint8_t status);
uint8_t rxw_call_peer_status(const rxw_call *call);
/* Space for one pointer of the application. */
void rxw_call_set_data(rxw_call *call, void *data);
void *rxw_call_data(const rxw_call *call);
/* Payload bytes of a full packet of this call: a good unit for writes. */
size_t rxw_call_packet_size(const rxw_call *call);

#ifdef __cplusplus
}
#endif
#endif
