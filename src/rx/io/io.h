/* SPDX-License-Identifier: BSD-2-Clause */
/* Datagram I/O in batches: the table that every back-end fills, and the sockets of one port. */
#ifndef RXW_IO_IO_H
#define RXW_IO_IO_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/addr.h"
#include "base/buf.h"

/*
 * One received datagram or train of datagrams. The caller provides `buf` (RXW_BUF_SIZE, one
 * reference); the I/O floor fills it. A train: every datagram is `segment` bytes long but the last,
 * which may be shorter. segment == length: a single one.
 */
struct rxw_io_rx {
	struct rxw_buf *buf;
	uint32_t length;
	uint32_t segment;
	bool truncated;        /* cut by the kernel: to be dropped and counted */
	struct rxw_path path;  /* peer = sender (len 0: of no use, drop it), local = our address
	                        * that it was sent to (len 0: not known) */
};

/*
 * One datagram or train to send. `iov` is contiguous in meaning: the kernel cuts it every `segment`
 * bytes. segment 0 or >= the total: a single datagram. The bytes must not change until the send
 * returned.
 */
struct rxw_io_tx {
	const struct rxw_path *path;
	const struct iovec *iov;
	unsigned iov_count;
	uint32_t length;       /* sum of the iov */
	uint16_t segment;
	bool fragment;         /* may be fragmented by IP (otherwise DF); costs two system calls
	                        * more: for the rare case */
	bool reply;            /* send from path->local */
	/* Result: 0 sent whole; else a positive errno. `sent_segments` tells how many datagrams
	 * of a train were handed to the kernel before the error (trains fall back to single
	 * sends inside the I/O floor; nothing is sent twice). */
	int error;
	uint16_t sent_segments;
};

/*
 * An error report of the network about a datagram sent earlier (IP_RECVERR): a hint, never proof.
 */
struct rxw_io_error {
	struct rxw_addr peer;
	int error;             /* errno: ECONNREFUSED, EHOSTUNREACH, EMSGSIZE … */
	uint32_t mtu;          /* EMSGSIZE: UDP payload that fits, else 0 */
};

/* Counters of one socket, written by their holder only (relaxed atomics), read by anyone. */
struct rxw_io_stats {
	_Atomic(uint64_t) syscalls_send, syscalls_recv, syscalls_other;
	_Atomic(uint64_t) datagrams_sent, datagrams_received, bytes_sent, bytes_received;
	_Atomic(uint64_t) trains_sent, trains_received;
	_Atomic(uint64_t) gso_fallbacks, gro_fallbacks, send_errors, send_retries;
	_Atomic(uint64_t) kernel_drops; /* SO_RXQ_OVFL */
	_Atomic(uint64_t) lock_contended; /* the socket's lock was found taken */
};

struct rxw_io_sock;

/* Options of the sockets of one port. */
struct rxw_io_options {
	struct rxw_addr bind;       /* port 0 = ephemeral */
	unsigned sockets;           /* 1..64 */
	unsigned batch;             /* 1..64 */
	int gso, gro;               /* 0 off, 1 wanted */
	bool plain;                 /* the plainest back-end: one sendmsg/recvmsg per datagram */
	int steer;                  /* 0 = by word (payload bytes 4..7 >> 2) modulo sockets; 1 = by
	                             * hash of the four-tuple; 2 = as 0 but one further: always
	                             * the wrong one (tests) */
	size_t rcvbuf, sndbuf;      /* wanted, 0 = leave to us (4 MiB) */
	const char *inject;         /* fault injection (tests), NULL = none, see below */
	void (*log)(void *arg, int level, const char *line); /* syslog level; may be NULL */
	void *log_arg;
	/* 0 at first: what was logged so far, shared by groups that report to one log; or NULL */
	_Atomic(unsigned) *warned;
};

/*
 * Fault injection: "gso:EIO@N" fails the Nth attempt of a socket to send a train, "gso:EIO@N+" that
 * and all later ones; "send:ENOBUFS@N", "send:EMSGSIZE@N" the same for single sends; several joined
 * by ",". N counts from 1; N = 0 fails the set-up: "gso:ENOPROTOOPT@0", "gro:...@0", "steer:...@0",
 * "reuseport:...@0".
 */

/* The sockets of one port: opened and closed together. */
struct rxw_io_group {
	unsigned count;
	struct rxw_io_sock *sock[64];
	struct rxw_addr bound;
	bool steered;               /* the kernel took the steering program */
	const char *backend;        /* "mmsg"; "msg": asked for, or the kernel has no batches */
};

/*
 * Open and bind. The first socket is bound without SO_REUSEPORT (so a taken port is reported),
 * then joined by the others. Each refused option degrades with one log line (see `warned`); the group may have
 * fewer sockets than asked for (g->count >= 1). A group of IPv6 leaves IPv4 alone (IPV6_V6ONLY).
 * Returns 0 or a negative errno (-EADDRINUSE ...), and then the group is empty.
 */
int rxw_io_open(struct rxw_io_group *g, const struct rxw_io_options *options);
void rxw_io_close(struct rxw_io_group *g);

/*
 * Receive up to `count` datagrams or trains, at most options.batch at once, waiting at most
 * `timeout_us` for the first. 0 = do not wait. Change the time-out seldom, since that costs a
 * system call; the kernel rounds it up to its tick (1 to 10 ms). Returns how many, 0 on time-out,
 * or a negative errno. A router's report that is pending on the socket is not an error here: see
 * rxw_io_errors_pending(). The thread that holds the socket's receive role only. rx[i].buf must
 * be set for every i < count.
 */
int rxw_io_recv(struct rxw_io_sock *s, struct rxw_io_rx *rx, unsigned count, uint32_t timeout_us);

/*
 * Wait until the socket is readable or rxw_io_wake() was called, at most `timeout_us`. Returns 1
 * readable, 0 time-out or woken. For idle shards: unlike a wait inside rxw_io_recv() it can be
 * interrupted. A wake-up before the wait ends it at once; several count as one. Pending error
 * reports make the socket readable; those that the caller does not take before it waits once more
 * are thrown away. Receive role.
 */
int rxw_io_wait(struct rxw_io_sock *s, uint64_t timeout_us);
void rxw_io_wake(struct rxw_io_sock *s); /* any thread; interrupts rxw_io_wait() only */

/*
 * Send `count` entries with as few system calls as possible. Fills error and sent_segments of
 * each. `nowait`: MSG_DONTWAIT, a refused entry gets EAGAIN and all behind it too. GSO refused
 * for a destination (EIO, EINVAL, EMSGSIZE ...): the same bytes go out singly, and GSO is not
 * used towards that host for 60 s if that worked. A train may be longer than one system call
 * takes: it is cut as needed. Any errno may belong to somebody else's datagram (ICMP), so each
 * message is tried twice before its entry fails; an entry that fails does not stop those behind
 * it. Returns the number of entries with error == 0. Any thread that holds the send role of the
 * socket; calls of one socket from two threads are safe, but order between them is open.
 */
unsigned rxw_io_send(struct rxw_io_sock *s, struct rxw_io_tx *tx, unsigned count, bool nowait);

/*
 * Read the error queue: up to `count` reports, without waiting; 0 at no cost when none is known
 * to be there. Call it after a receive or a wait when rxw_io_errors_pending() says so (set by a
 * send, receive or wait that met a report; any thread). Receive role.
 */
bool rxw_io_errors_pending(const struct rxw_io_sock *s);
unsigned rxw_io_errors(struct rxw_io_sock *s, struct rxw_io_error *errors, unsigned count);

/*
 * Largest UDP payload that the route to `peer` carries unfragmented by what the kernel knows, 0 =
 * unknown. Any thread; slow.
 */
uint32_t rxw_io_path_mtu(struct rxw_io_sock *s, const struct rxw_path *path);

const struct rxw_io_stats *rxw_io_sock_stats(const struct rxw_io_sock *s);
/* What is in effect. */
bool rxw_io_gso(const struct rxw_io_sock *s);
bool rxw_io_gro(const struct rxw_io_sock *s);
/*
 * Granted buffers as read back: bytes of kernel memory, twice what was asked for if all was
 * granted. A datagram of 1,444 bytes takes 2,304 of them.
 */
size_t rxw_io_rcvbuf(const struct rxw_io_sock *s);
size_t rxw_io_sndbuf(const struct rxw_io_sock *s);
/*
 * Longest train worth handing over at once: datagrams, at least 1. Without GSO it is cut into
 * single sends of one batch.
 */
unsigned rxw_io_max_segments(const struct rxw_io_sock *s);

#endif
