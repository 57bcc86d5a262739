/* SPDX-License-Identifier: BSD-2-Clause */
/* Datagram I/O in batches: the table that every back-end fills, and the sockets of one port. */
#ifndef RXW_IO_IO_H
#define RXW_IO_IO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/addr.h"
#include "base/buf.h"

/*
 * One received datagram or train of datagrams. The caller provides `buf` (RXW_BUF_SIZE, one reference); the I/O floor fills it. A
 * train: every datagram is `segment` bytes long but the last, which may be shorter. segment == length: a single one.
 */
struct rxw_io_rx {
	struct rxw_buf *buf;
	uint32_t length;
	uint32_t segment;
	bool truncated;        /* cut by the kernel: to be dropped and counted */
	struct rxw_path path;  /* peer = sender, local = our address it was sent to */
};

/*
 * One datagram or train to send. `iov` is contiguous in meaning: the kernel cuts it every `segment` bytes. segment 0 or >= the
 * total: a single datagram. The bytes must not change until the send returned.
 */
struct rxw_io_tx {
	const struct rxw_path *path;
	const struct iovec *iov;
	unsigned iov_count;
	uint32_t length;       /* sum of the iov */
	uint16_t segment;
	bool fragment;         /* may be fragmented by IP (otherwise DF) */
	bool reply;            /* send from path->local */
	/* Result: 0 sent whole; else a positive errno. `sent_segments` tells how many datagrams of a train were handed to the
	 * kernel before the error (trains fall back to single sends inside the I/O floor; nothing is sent twice). */
	int error;
	uint16_t sent_segments;
};

/* An error report of the network about a datagram sent earlier (IP_RECVERR): a hint, never proof. */
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
};

struct rxw_io_sock;

/* Options of the sockets of one port. */
struct rxw_io_options {
	struct rxw_addr bind;       /* port 0 = ephemeral */
	unsigned sockets;           /* 1..64 */
	unsigned batch;             /* 1..64 */
	int gso, gro;               /* 0 off, 1 wanted */
	bool plain;                 /* the plainest back-end: one sendmsg/recvmsg per datagram */
	int steer;                  /* 0 = by word (payload bytes 4..7 >> 2) modulo sockets; 1 = four-tuple hash;
	                             * 2 = as 0 but one further: always the wrong one (tests) */
	size_t rcvbuf, sndbuf;      /* wanted, 0 = leave to us (4 MiB) */
	const char *inject;         /* fault injection, NULL = none: "gso:EIO@N" fails the Nth GSO send of a socket, "gso:EIO@N+" that and
	                             * all later ones; "send:ENOBUFS@N", "send:EMSGSIZE@N" for single sends; several joined by "," */
	void (*log)(void *arg, int level, const char *line); /* syslog level; may be NULL */
	void *log_arg;
};

/* The sockets of one port: opened and closed together. */
struct rxw_io_group {
	unsigned count;
	struct rxw_io_sock *sock[64];
	struct rxw_addr bound;
	bool steered;               /* the kernel took the steering program */
	const char *backend;        /* "mmsg" or "msg" */
};

/*
 * Open and bind. The first socket is bound without SO_REUSEPORT (so a taken port is reported), then joined by the others. Each refused
 * option degrades with one log line. Returns 0 or a negative errno (-EADDRINUSE …).
 */
int rxw_io_open(struct rxw_io_group *g, const struct rxw_io_options *options);
void rxw_io_close(struct rxw_io_group *g);

/*
 * Receive up to `count` datagrams or trains, waiting at most `timeout_us` for the first (0 = do not wait, changed seldom since it may cost a
 * system call). Returns how many, 0 on timeout or wake-up, or a negative errno. The thread that holds the socket's receive role only.
 * rx[i].buf must be set for every i < count.
 */
int rxw_io_recv(struct rxw_io_sock *s, struct rxw_io_rx *rx, unsigned count, uint32_t timeout_us);

/*
 * Wait until the socket is readable or rxw_io_wake() was called, at most `timeout_us`. Returns 1 readable, 0 timeout or woken. For idle shards:
 * unlike a wait inside rxw_io_recv() it can be interrupted. Receive role.
 */
int rxw_io_wait(struct rxw_io_sock *s, uint64_t timeout_us);
void rxw_io_wake(struct rxw_io_sock *s); /* any thread; interrupts rxw_io_wait() only */

/*
 * Send `count` entries with as few system calls as possible. Fills error and sent_segments of each. `nowait`: MSG_DONTWAIT, a refused
 * entry gets EAGAIN and all behind it too. GSO refused for a destination (EIO, EINVAL, EMSGSIZE …): the same bytes go out singly, and GSO is not used
 * towards that peer for 60 s if that worked. Returns the number of entries with error == 0. Any thread that holds the send role of the socket; calls of
 * one socket from two threads are safe, but order between them is open.
 */
unsigned rxw_io_send(struct rxw_io_sock *s, struct rxw_io_tx *tx, unsigned count, bool nowait);

/* Read the error queue: up to `count` reports, without waiting. Receive role. */
unsigned rxw_io_errors(struct rxw_io_sock *s, struct rxw_io_error *errors, unsigned count);

/* Largest UDP payload that the route to `peer` carries unfragmented by what the kernel knows, 0 = unknown. Any thread; slow. */
uint32_t rxw_io_path_mtu(struct rxw_io_sock *s, const struct rxw_path *path);

const struct rxw_io_stats *rxw_io_sock_stats(const struct rxw_io_sock *s);
/* What is in effect. */
bool rxw_io_gso(const struct rxw_io_sock *s);
bool rxw_io_gro(const struct rxw_io_sock *s);
size_t rxw_io_rcvbuf(const struct rxw_io_sock *s);
size_t rxw_io_sndbuf(const struct rxw_io_sock *s);
/* Longest train accepted: datagrams, at least 1. */
unsigned rxw_io_max_segments(const struct rxw_io_sock *s);

#endif
