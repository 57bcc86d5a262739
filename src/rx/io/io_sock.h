/* SPDX-License-Identifier: BSD-2-Clause */
/* Private to floor 2: one socket, the table of a back-end, what the files here share. */
#ifndef RXW_IO_IO_SOCK_H
#define RXW_IO_IO_SOCK_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>

#include "io/io.h"
#include "io/io_inject.h"

#define RXW_IO_BATCH        64u    /* most messages of one system call */
#define RXW_IO_SEGMENTS     64u    /* most datagrams of one train (the kernel's UDP_MAX_SEGMENTS) */
#define RXW_IO_CONTROL      128u   /* bytes of control messages; the largest set takes 104 */
#define RXW_IO_IOVECS       512u   /* iovecs for entries that are cut into several messages */
#define RXW_IO_REFUSED      32u    /* destinations remembered that refuse trains */
#define RXW_IO_REFUSED_MS   60000u /* for so long */
#define RXW_IO_BUFFER       (4u << 20)
#define RXW_IO_MAX_PAYLOAD4 65507u /* of one UDP datagram or train */
#define RXW_IO_MAX_PAYLOAD6 65487u

#if RXW_ENABLE_MMSG
typedef struct mmsghdr rxw_io_hdr;
#else
typedef struct {
	struct msghdr msg_hdr;
	unsigned msg_len;
} rxw_io_hdr;
#endif

/* Control messages need the alignment of struct cmsghdr. */
union rxw_io_control {
	struct cmsghdr align;
	uint8_t bytes[RXW_IO_CONTROL];
};

/*
 * What a batch of received messages is written to; only the holder of the receive role touches
 * it.
 */
struct rxw_io_in {
	rxw_io_hdr hdr[RXW_IO_BATCH];
	struct iovec iov[RXW_IO_BATCH];
	struct sockaddr_in6 name[RXW_IO_BATCH];
	union rxw_io_control control[RXW_IO_BATCH];
};

/*
 * One message of a batch to send: a single datagram, or a train, cut out of one entry of the
 * caller.
 */
struct rxw_io_piece {
	unsigned entry;
	uint32_t length;
	uint16_t segments;
	bool train;
	bool fragment;
};

/* Messages ready for the kernel. Lives on the sender's stack. */
struct rxw_io_out {
	unsigned n;
	unsigned iov_used;
	rxw_io_hdr hdr[RXW_IO_BATCH];
	struct rxw_io_piece piece[RXW_IO_BATCH];
	union rxw_io_control control[RXW_IO_BATCH];
	struct iovec iov[RXW_IO_IOVECS];
};

/*
 * A back-end: how messages reach the kernel and come from it. Both return the number of messages
 * moved (at least 1) or a negative errno; neither interprets errors.
 */
struct rxw_io_backend {
	const char *name;
	bool trains; /* can use GSO and GRO */
	int (*recv)(struct rxw_io_sock *s, struct rxw_io_in *in, unsigned n, int flags);
	int (*send)(struct rxw_io_sock *s, struct rxw_io_out *out, unsigned n, int flags);
};

extern const struct rxw_io_backend rxw_io_backend_msg;
#if RXW_ENABLE_MMSG
extern const struct rxw_io_backend rxw_io_backend_mmsg;
#endif

/* A destination that refused a train while the same datagrams went out singly. */
struct rxw_io_refusal {
	struct rxw_addr host;
	uint64_t until_ms;
};

/*
 * A socket. `in`, timeout_us, drops_seen and errors_offered
 * belong to the holder of the receive role. fd, wake_fd, local,
 * backend, family, gso, gro and the buffer sizes do not change after it was opened. `refused` is
 * covered by lock, as is the socket's fragmentation mode while it is switched for one send.
 */
struct rxw_io_sock {
	int fd, wake_fd;
	int family;
	struct rxw_addr local; /* bound to it, port 0: all that comes was sent there; len 0: to any */
	unsigned batch;
	const struct rxw_io_backend *backend;
	_Atomic(unsigned) *warned; /* bits: enum rxw_io_warning; the group's, or of several groups */
	bool gso, gro;
	size_t rcvbuf, sndbuf;
	void (*log)(void *arg, int level, const char *line);
	void *log_arg;

	int64_t timeout_us;        /* SO_RCVTIMEO as set now; -1 = never set */
	uint32_t drops_seen;       /* last SO_RXQ_OVFL */
	struct rxw_io_in *in;
	bool errors_offered;       /* a wait ended for reports that are still there */

	_Atomic(bool) errors_pending;
	_Atomic(unsigned) warned_here; /* where `warned` of the group points if nobody lent one */

	_Atomic(unsigned) switched; /* changes of the fragmentation mode; odd: not as usual */
	pthread_mutex_t lock;
	_Atomic(unsigned) refused_count;
	struct rxw_io_refusal refused[RXW_IO_REFUSED];

	unsigned fault_count;
	struct rxw_io_fault fault[RXW_IO_FAULTS];
	_Atomic(uint64_t) fault_seen[RXW_IO_FAULT_KINDS];

	struct rxw_io_stats stats;
};

enum rxw_io_warning {
	RXW_IO_WARN_GSO = 1, RXW_IO_WARN_GRO = 2, RXW_IO_NOTE_BUFFERS = 4,
	RXW_IO_WARN_STEER = 16, RXW_IO_WARN_REUSEPORT = 32, RXW_IO_WARN_GSO_PEER = 64,
	RXW_IO_WARN_OPTION = 128, RXW_IO_WARN_INJECT = 256,
	RXW_IO_WARN_MMSG = 512
};

static inline void rxw_io_count(_Atomic(uint64_t) *counter, uint64_t n)
{
	atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}

static inline void rxw_io_lock(struct rxw_io_sock *s)
{
	if (pthread_mutex_trylock(&s->lock) == 0)
		return;
	rxw_io_count(&s->stats.lock_contended, 1);
	pthread_mutex_lock(&s->lock);
}

static inline void rxw_io_unlock(struct rxw_io_sock *s)
{
	pthread_mutex_unlock(&s->lock);
}

/*
 * One line to the log, once for each warning of those that share `warned`: a warning, or
 * information if `once` is an RXW_IO_NOTE.
 */
void rxw_io_warn(struct rxw_io_sock *s, enum rxw_io_warning once, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* io_sock.c: open one socket; `port` != NULL joins that bound address. 0 or a negative errno. */
int rxw_io_sock_open(struct rxw_io_sock *s, const struct rxw_io_options *o,
		     const struct rxw_addr *join);
void rxw_io_sock_close(struct rxw_io_sock *s);
/* Let others bind the port of a bound socket. 0 or a negative errno. */
int rxw_io_sock_share(struct rxw_io_sock *s);
/* io_steer.c: the kernel picks the socket by a program. 0 or a negative errno. */
int rxw_io_sock_steer(struct rxw_io_sock *s, unsigned sockets, bool wrong);
/* DF as always (false), or fragmentation allowed for what is sent now (true). */
int rxw_io_sock_fragment(struct rxw_io_sock *s, bool allow);

/*
 * io_control.c: control messages of a datagram to send. Returns their length, at most
 * RXW_IO_CONTROL.
 */
size_t rxw_io_control_build(union rxw_io_control *c, const struct rxw_io_sock *s,
			    const struct rxw_io_tx *tx, uint16_t segment);
/* Fill rx from a received message, and account drops that its control messages tell. */
void rxw_io_control_parse(struct rxw_io_sock *s, const struct msghdr *m, uint32_t length,
			  struct rxw_io_rx *rx);

/* io_refused.c: does this destination refuse trains at present; it does from now on. */
bool rxw_io_refused(struct rxw_io_sock *s, const struct rxw_addr *peer);
void rxw_io_refuse(struct rxw_io_sock *s, const struct rxw_addr *peer, int error);

static inline void rxw_io_inject_count(struct rxw_io_sock *s, enum rxw_io_fault_kind kind)
{
	if (s->fault_count)
		rxw_io_count(&s->fault_seen[kind], 1);
}

/* io_errq.c: forget all reports that wait. */
void rxw_io_errors_drop(struct rxw_io_sock *s);

#endif
