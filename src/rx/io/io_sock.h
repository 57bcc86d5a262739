/* SPDX-License-Identifier: BSD-2-Clause */
/* Private to the I/O layer: a socket, the interface of a back-end, shared functions. */
#ifndef RXW_IO_IO_SOCK_H
#define RXW_IO_IO_SOCK_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>

#include "io/faults.h"
#include "io/io.h"

#define RXW_IO_BATCH        64u    /* maximum messages per system call */
#define RXW_IO_SEGMENTS     64u    /* maximum datagrams per message (UDP_MAX_SEGMENTS) */
#define RXW_IO_CONTROL      192u   /* bytes of control messages; the largest set takes 192 */
#define RXW_IO_IOVECS       512u   /* iovecs for entries that are split into several messages */
#define RXW_IO_REFUSED      32u    /* destinations without GSO that are remembered */
#define RXW_IO_REFUSED_MS   60000u /* how long each is remembered */
#define RXW_IO_BUFFER       (4u << 20)
#define RXW_IO_MAX_PAYLOAD4 65507u /* of one UDP datagram or segmented message */
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

/* A batch of messages to receive; on the receiver's stack, which a cache has, however many sockets there are. */
struct rxw_io_in {
	rxw_io_hdr hdr[RXW_IO_BATCH];
	struct iovec iov[RXW_IO_BATCH];
	struct sockaddr_in6 name[RXW_IO_BATCH];
	union rxw_io_control control[RXW_IO_BATCH];
};

/* One message of a batch to send, taken from one entry of the caller: one datagram or several. */
struct rxw_io_piece {
	unsigned entry;
	uint32_t length;
	uint16_t segments;
	bool segmented;
	bool fragment;
};

/* Messages ready for the kernel; on the sender's stack. */
struct rxw_io_out {
	unsigned n;
	unsigned iov_used;
	rxw_io_hdr hdr[RXW_IO_BATCH];
	struct rxw_io_piece piece[RXW_IO_BATCH];
	union rxw_io_control control[RXW_IO_BATCH];
	struct iovec iov[RXW_IO_IOVECS];
};

/*
 * A back-end sends and receives messages. Both functions return the number of messages (at least 1)
 * or a negative errno; neither interprets errors.
 */
struct rxw_io_backend {
	const char *name;
	bool gso; /* can use GSO and GRO */
	int (*recv)(struct rxw_io_sock *s, struct rxw_io_in *in, unsigned n, int flags);
	int (*send)(struct rxw_io_sock *s, struct rxw_io_out *out, unsigned n, int flags);
};

extern const struct rxw_io_backend rxw_io_backend_msg;
#if RXW_ENABLE_MMSG
extern const struct rxw_io_backend rxw_io_backend_mmsg;
#endif

/* A destination for which GSO failed but the same datagrams could be sent singly. */
struct rxw_io_refusal {
	struct rxw_addr host;
	uint64_t until_ms;
};

/*
 * A socket. timeout_us, drops_seen and errors_offered belong to the holder of the receive
 * role. fd, wake_fd, local, backend, family, dual, gso, gro and the buffer sizes are constant once
 * it is open. lock covers `refused`, and the socket's fragmentation mode while it is switched for
 * one send.
 */
struct rxw_io_sock {
	int fd, wake_fd;
	int family;
	bool dual; /* IPv6, and takes IPv4 as well */
	struct rxw_addr local; /* address it is bound to (port 0); len 0: any address */
	unsigned batch;
	const struct rxw_io_backend *backend;
	_Atomic(unsigned) *warned; /* bits: enum rxw_io_warning; of one or several groups */
	bool gso, gro;
	size_t rcvbuf, sndbuf;
	void (*log)(void *arg, int level, const char *line);
	void *log_arg;

	int64_t timeout_us;        /* SO_RCVTIMEO as set now; -1 = never set */
	uint32_t drops_seen;	   /* last SO_RXQ_OVFL */
	bool errors_offered;       /* a wait ended because of reports that are still unread */

	_Atomic(bool) errors_pending;
	_Atomic(unsigned) warned_here; /* target of the group's `warned` if the caller gave none */

	_Atomic(unsigned) switched; /* changes of the fragmentation mode; odd: switched */
	pthread_mutex_t lock;
	_Atomic(unsigned) refused_count;
	struct rxw_io_refusal refused[RXW_IO_REFUSED];

	struct rxw_io_faults faults;
	_Atomic(uint64_t) fault_seen[RXW_IO_FAULT_KINDS];

	struct rxw_io_stats stats;
};

enum rxw_io_warning {
	RXW_IO_WARN_GSO = 1, RXW_IO_WARN_GRO = 2, RXW_IO_NOTE_BUFFERS = 4,
	RXW_IO_WARN_STEER = 16, RXW_IO_WARN_REUSEPORT = 32, RXW_IO_WARN_GSO_PEER = 64,
	RXW_IO_WARN_OPTION = 128,
	RXW_IO_WARN_MMSG = 256
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
 * Log one line, once per kind for all that share `warned`: as information if `once` is an
 * RXW_IO_NOTE, otherwise as a warning.
 */
void rxw_io_warn(struct rxw_io_sock *s, enum rxw_io_warning once, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/*
 * io_sock.c: open one socket. `join` != NULL joins that bound address; `given` >= 0 is a bound
 * socket to duplicate. 0 or a negative errno.
 */
int rxw_io_sock_open(struct rxw_io_sock *s, const struct rxw_io_options *o,
		     const struct rxw_addr *join, int given);
/* The address of a bound UDP socket. 0 or a negative errno; -EINVAL: it is not usable. */
int rxw_io_sock_address(int fd, struct rxw_addr *bound);
/* A socket bound to the IPv6 wildcard address that takes IPv4 as well. */
bool rxw_io_sock_dual(int fd, const struct rxw_addr *bound);
void rxw_io_sock_close(struct rxw_io_sock *s);
/* Ask the kernel for the ECN bits of each message. */
void rxw_io_sock_read_ecn(struct rxw_io_sock *s);
/* Let more sockets bind the port of a bound socket. 0 or a negative errno. */
int rxw_io_sock_share(struct rxw_io_sock *s);
/* Install the program by which the kernel selects a socket. 0 or a negative errno. */
int rxw_io_sock_steer(struct rxw_io_sock *s, unsigned sockets, const struct rxw_io_options *o);
/* Set DF (false, the default), or allow fragmentation (true). */
int rxw_io_sock_fragment(struct rxw_io_sock *s, bool allow);

/*
 * io_control.c: build the control messages of a message to send. Returns their length, at most
 * RXW_IO_CONTROL.
 */
size_t rxw_io_control_build(union rxw_io_control *c, const struct rxw_io_sock *s,
			    const struct rxw_io_tx *tx, uint16_t segment);
/* Fill rx from a message received at `now` (CLOCK_REALTIME), and count the drops that it reports. */
void rxw_io_control_parse(struct rxw_io_sock *s, const struct msghdr *m, uint32_t length,
			  const struct timespec *now, struct rxw_io_rx *rx);

/* io_send.c: whether GSO is disabled for a destination; disable it. */
bool rxw_io_refused(struct rxw_io_sock *s, const struct rxw_addr *peer);
void rxw_io_refuse(struct rxw_io_sock *s, const struct rxw_addr *peer, int error);

/* Discard all pending reports. */
void rxw_io_errors_drop(struct rxw_io_sock *s);

#endif
