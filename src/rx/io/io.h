/* SPDX-License-Identifier: BSD-2-Clause */
/* Datagram I/O in batches: the interface of the I/O layer, and the sockets of one port. */
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
 * One received message: a datagram, or several that GRO has joined (a segmented message). The
 * caller provides `buf` (RXW_BUF_SIZE, one reference); this layer fills it. In a segmented message
 * each datagram is `segment` bytes long, except that the last may be shorter. segment == length:
 * one datagram.
 */
struct rxw_io_rx {
	struct rxw_buf *buf;
	uint32_t length;
	uint32_t segment;
	uint8_t ecn;	       /* the ECN bits of its IP header; 0 before rxw_io_read_ecn() */
	bool truncated;        /* by the kernel: drop it and count it */
	uint64_t waited;       /* ns: how long it was in the socket's queue; 0: unknown */
	/* peer: the sender (len 0: unusable, drop it); local: our address (len 0: unknown) */
	struct rxw_path path;
};

/*
 * One message to send: a datagram, or several for GSO. The kernel takes the bytes of `iov` in
 * sequence and starts a new datagram every `segment` bytes. segment 0 or >= the total: one
 * datagram. The bytes must not change until the send has returned.
 */
struct rxw_io_tx {
	const struct rxw_path *path;
	const struct iovec *iov;
	unsigned iov_count;
	uint32_t length;       /* sum of the iov */
	uint16_t segment;
	bool fragment;	       /* no DF; costs two more system calls */
	bool ect;	       /* mark with ECT(0) */
	/*
	 * Result: 0 if all was sent, else a positive errno. `sent_segments`: how many datagrams the
	 * kernel took before the error. If GSO is refused, this layer falls back to single sends;
	 * nothing is sent twice.
	 */
	int error;
	uint16_t sent_segments;
};

/* An ICMP error about a datagram sent earlier (IP_RECVERR). It may be forged: only a hint. */
struct rxw_io_error {
	struct rxw_addr peer;
	int error;             /* errno: ECONNREFUSED, EHOSTUNREACH, EMSGSIZE … */
	uint32_t mtu;          /* EMSGSIZE: UDP payload that fits, else 0 */
};

/* Counters of one socket (relaxed): written by the holder of the role, read by any thread. */
struct rxw_io_stats {
	_Atomic(uint64_t) syscalls_send, syscalls_recv, syscalls_other;
	_Atomic(uint64_t) datagrams_sent, datagrams_received, bytes_sent, bytes_received;
	_Atomic(uint64_t) gso_messages, gro_messages;
	_Atomic(uint64_t) gso_fallbacks, gro_fallbacks, send_errors, send_retries;
	_Atomic(uint64_t) kernel_drops; /* SO_RXQ_OVFL */
	_Atomic(uint64_t) lock_contended; /* contended acquisitions of the socket's lock */
};

struct rxw_io_sock;
#define RXW_IO_STEER_CPU 3

struct rxw_io_faults; /* io/faults.h */

/* Options of the sockets of one port. */
struct rxw_io_options {
	struct rxw_addr bind;       /* port 0 = ephemeral */
	bool dual;                  /* the IPv6 wildcard address takes IPv4 as well */
	unsigned sockets;           /* 1..64 */
	const int *given;           /* bound sockets, `sockets` of them, to duplicate; NULL = none */
	unsigned batch;             /* 1..64 */
	int gso, gro;               /* 0 off, 1 wanted */
	bool plain;                 /* the simplest back-end: one sendmsg/recvmsg per datagram */
	/* 0 = by word (payload bytes 4..7 >> 2) modulo sockets; 1 = by hash of the four-tuple; 2 = the socket
	 * after that of 0: always the wrong one (tests); RXW_IO_STEER_CPU = socket i, if processor cpu[i] has
	 * it from a card; as 0 if no socket has that one, and from this host */
	int steer;
	const uint16_t *cpu;	    /* the processor that reads socket i; NULL = unknown */
	size_t rcvbuf, sndbuf;      /* requested; 0 = the default (4 MiB) */
	const struct rxw_io_faults *faults; /* for tests; NULL = none */
	void (*log)(void *arg, int level, const char *line); /* syslog level; may be NULL */
	void *log_arg;
	_Atomic(unsigned) *warned;  /* so far, of all groups that report to one log; or NULL */
};

/* The sockets of one port: opened and closed together. */
struct rxw_io_group {
	unsigned count;
	struct rxw_io_sock *sock[64];
	struct rxw_addr bound;
	bool dual;                  /* IPv6 sockets that take IPv4 as well */
	bool steered;               /* the kernel accepted the steering program */
	const char *backend;        /* "mmsg"; "msg" if requested or without sendmmsg */
	_Atomic(bool) reads_ecn;    /* rxw_io_read_ecn() was called */
};

/*
 * Open and bind. The first socket is bound without SO_REUSEPORT, to detect a port in use; then the
 * others join it. If the kernel refuses an option, the group works without it and logs one line
 * (see `warned`); it may have fewer sockets than requested (g->count >= 1). Without `dual` a group
 * of IPv6 does not take the IPv4 port (IPV6_V6ONLY). Addresses of IPv4 are plain ones in any case.
 * With `given`, `bind` and `dual` are not used, and all sockets must be bound to the address of the
 * first and take the same families (else -EINVAL). Returns 0 or a negative errno (-EADDRINUSE
 * ...), and then the group is empty.
 */
int rxw_io_open(struct rxw_io_group *g, const struct rxw_io_options *options);
void rxw_io_close(struct rxw_io_group *g);
/* From now on the ECN bits of messages are read, at a cost for each. May be repeated. Any thread. */
void rxw_io_read_ecn(struct rxw_io_group *g);

/*
 * Receive up to `count` messages, at most options.batch at a time, waiting at most `timeout_us` for
 * the first; 0 = do not wait. Each change of the timeout costs a system call; the kernel rounds it
 * up to its tick (1 to 10 ms). Returns the number received, 0 on timeout, or a negative errno. A
 * pending ICMP error is not an error here: see rxw_io_errors_pending(). Only for the thread that
 * holds the socket's receive role. rx[i].buf must be set for every i < count.
 */
int rxw_io_recv(struct rxw_io_sock *s, struct rxw_io_rx *rx, unsigned count, uint32_t timeout_us);

/*
 * Wait until the socket is readable or rxw_io_wake() is called, at most `timeout_us`. Returns 1 if
 * readable, 0 on timeout or wake-up. For idle shards: unlike a wait inside rxw_io_recv(), this one
 * can be interrupted. A wake-up before the wait ends it at once; several count as one. Pending ICMP
 * errors make the socket readable; those that the caller has not read before its next wait are
 * discarded. Receive role.
 */
int rxw_io_wait(struct rxw_io_sock *s, uint64_t timeout_us);
/* Any thread. Ends rxw_io_wait(), and rxw_io_set_wait() of the set that has the socket; no other wait. */
void rxw_io_wake(struct rxw_io_sock *s);

/*
 * A set of sockets that one thread waits for, instead of rxw_io_wait(); a descriptor. Both functions that
 * make something return a negative errno if they fail. Sockets leave it before they are closed.
 */
int rxw_io_set_open(void);
void rxw_io_set_close(int set);
int rxw_io_set_add(int set, struct rxw_io_sock *s, unsigned name);
void rxw_io_set_remove(int set, struct rxw_io_sock *s);
#define RXW_IO_READY 64
/* A socket that is readable or was woken; `errors`: call rxw_io_note_errors() for it. */
struct rxw_io_ready {
	unsigned name;
	bool errors;
};
/* Fills `ready`, of RXW_IO_READY entries; 0 at the timeout. That is rounded up to ms; more than INT_MAX: none. */
unsigned rxw_io_set_wait(int set, uint64_t timeout_ns, struct rxw_io_ready *ready);
void rxw_io_note_errors(struct rxw_io_sock *s); /* receive role */

/*
 * Send `count` entries with as few system calls as possible. Fills error and sent_segments of each.
 * `nowait`: MSG_DONTWAIT; if the socket is full, the entry and all later ones get EAGAIN. If GSO is
 * refused for a destination (EIO, EINVAL, EMSGSIZE ...), the same bytes are sent as single
 * datagrams; if that succeeds, GSO is not used for that host for 60 s. An entry may be longer than
 * one system call takes: it is split as needed. An errno may be a pending ICMP error about another
 * datagram; therefore each message is tried twice before its entry fails. A failed entry does not
 * stop the later ones. Returns the number of entries with error == 0. Any thread that holds the
 * send role of the socket; two threads may send on one socket, in no defined order.
 */
unsigned rxw_io_send(struct rxw_io_sock *s, struct rxw_io_tx *tx, unsigned count, bool nowait);

/*
 * Read up to `count` reports from the error queue without waiting; 0, without a system call, if
 * none is known to be pending. Call it after a receive or a wait if rxw_io_errors_pending() is
 * true: a send, receive or wait of any thread has met a report. Receive role.
 */
bool rxw_io_errors_pending(const struct rxw_io_sock *s);
unsigned rxw_io_errors(struct rxw_io_sock *s, struct rxw_io_error *errors, unsigned count);

const struct rxw_io_stats *rxw_io_sock_stats(const struct rxw_io_sock *s);
/* Whether each option is in effect. */
bool rxw_io_gso(const struct rxw_io_sock *s);
bool rxw_io_gro(const struct rxw_io_sock *s);
/*
 * Sizes of the buffers that the kernel granted, in bytes of kernel memory: twice the size requested
 * if it was granted in full. A datagram of 1,444 bytes takes 2,304 of them.
 */
size_t rxw_io_rcvbuf(const struct rxw_io_sock *s);
size_t rxw_io_sndbuf(const struct rxw_io_sock *s);
/* Largest useful number of datagrams for one entry, at least 1. Without GSO they are sent singly. */
unsigned rxw_io_max_segments(const struct rxw_io_sock *s);

#endif
