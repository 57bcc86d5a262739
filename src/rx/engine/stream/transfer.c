/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Transfers between files and calls. A transfer is run by whichever thread finds that it can go on:
 * the one that received an ACK, as far as the file is in the page cache; else one of those that may
 * wait for files, which also write to files and report the end.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <rxwire/file.h>

#include "engine/sched/files.h"
#include "engine/objects.h"

#define TURN   ((uint64_t)1 << 20) /* bytes that a thread moves in a row */
#define SLICES 64

/* Used only by the thread that runs it: it raised `visits` from 0, or got the job. */
struct transfer {
	struct rxw_file_job job; /* first */
	rxw_call *call;
	int fd; /* its own */
	bool receives;
	uint64_t at, left, begun; /* offsets in the file, and bytes */
	int result, error;	  /* error: errno of -RXW_ESYS */
	rxw_file_fn done;
	void *arg;
	_Atomic(unsigned) visits; /* since the running thread last began */
};

/* The next need of a transfer. */
enum need {
	NEEDS_EVENT,
	NEEDS_THREAD, /* one that may wait; or its turn has ended */
	NEEDS_END
};

static size_t bytes_of_turn(const struct transfer *t)
{
	return t->left < TURN ? (size_t)t->left : (size_t)TURN;
}

/*
 * Bytes, 0 at the end of the file, or -1 with errno; without `may_wait` only from the page cache.
 * Threads that may wait have no signals, so nothing interrupts them.
 */
static ssize_t read_file_slices(const struct transfer *t, const struct iovec *iov, unsigned count,
				bool may_wait)
{
#ifdef RWF_NOWAIT
	return preadv2(t->fd, iov, (int)count, (off_t)t->at, may_wait ? 0 : RWF_NOWAIT);
#else
	return may_wait ? preadv(t->fd, iov, (int)count, (off_t)t->at) : 0;
#endif
}

/* Bytes; 0: only a thread that may wait can go on; or a negative result. */
static ssize_t send_slices(struct transfer *t, bool may_wait)
{
	struct iovec iov[SLICES];
	unsigned count = SLICES;
	ssize_t n = rxw_call_reserve(t->call, bytes_of_turn(t), iov, &count);
	int r;

	if (n < 0)
		return n;
	n = read_file_slices(t, iov, count, may_wait);
	r = rxw_call_commit(t->call, n > 0 ? (size_t)n : 0); /* 0 leaves errno as it is */
	if (r)
		return r;
	if (n > 0 || !may_wait)
		return n > 0 ? n : 0;
	return n ? -RXW_ESYS : -RXW_EEOF;
}

/* 0 or -RXW_ESYS. */
static int write_file_slices(struct transfer *t, struct iovec *iov, unsigned count)
{
	uint64_t at = t->at;

	while (count) {
		ssize_t n = pwritev(t->fd, iov, (int)count, (off_t)at);

		if (n <= 0) /* 0 only if there were no bytes, and there are */
			return -RXW_ESYS;
		at += (uint64_t)n;
		for (; count && (size_t)n >= iov->iov_len; count--)
			n -= (ssize_t)iov++->iov_len;
		if (count) {
			iov->iov_base = (char *)iov->iov_base + n;
			iov->iov_len -= (size_t)n;
		}
	}
	return 0;
}

/* As send_slices(). */
__attribute__((cold)) static ssize_t receive_slices(struct transfer *t)
{
	struct iovec iov[SLICES];
	unsigned count = SLICES;
	ssize_t n = rxw_call_readv(t->call, bytes_of_turn(t), iov, &count);
	int r;

	if (n <= 0)
		return n ? n : -RXW_EEOF;
	r = write_file_slices(t, iov, count);
	return r ? r : n;
}

static enum need move_bytes(struct transfer *t, bool may_wait)
{
	uint64_t end = t->at + TURN;

	while (t->left && t->result == 0) {
		ssize_t n;

		if (t->at >= end || (t->receives && !may_wait))
			return NEEDS_THREAD;
		n = t->receives ? receive_slices(t) : send_slices(t, may_wait);
		if (n == -RXW_EAGAIN)
			return NEEDS_EVENT;
		if (n == 0)
			return NEEDS_THREAD;
		if (n < 0) {
			t->result = (int)n;
			t->error = errno;
			n = 0;
		}
		t->at += (uint64_t)n;
		t->left -= (uint64_t)n;
	}
	return NEEDS_END;
}

/* On a thread that may wait. */
static void end_transfer(struct transfer *t)
{
	struct rxw_endpoint *ep = t->call->conn->ep;

	rxw_call_set_callback(t->call, NULL, NULL); /* no visit comes any more */
	close(t->fd);				    /* or -1 */
	rxw_files_leave(&t->job, t->call->conn->p.account);
	atomic_store(&t->call->transfers, false);
	errno = t->error;
	t->done(t->call, t->result, t->at - t->begun, t->arg);
	free(t);
	atomic_fetch_sub(&ep->usage.calls_taken, 1); /* the endpoint may be gone from now on */
}

/*
 * One turn. If there were visits meanwhile, which a peer may cause without end, the next one
 * follows after those of others. A thread that runs a callback must not wait for a file: it leaves
 * that, and the end, to another one.
 */
__attribute__((cold)) static void run_transfer(struct rxw_file_job *job)
{
	struct transfer *t = (struct transfer *)job;
	unsigned seen = atomic_load(&t->visits);
	bool may_wait = !rxw_must_not_wait();
	enum need need = move_bytes(t, may_wait);

	if (need == NEEDS_EVENT && atomic_fetch_sub(&t->visits, seen) == seen)
		return; /* it is no longer this thread's */
	if (need == NEEDS_END && may_wait)
		end_transfer(t);
	else
		rxw_files_post(job);
}

__attribute__((cold)) static void visit_transfer(rxw_call *call, unsigned events, void *arg)
{
	struct transfer *t = arg;

	(void)call;
	if (t->receives && !(events & RXW_EVENT_READ))
		return;
	if (atomic_fetch_add(&t->visits, 1) == 0)
		run_transfer(&t->job);
}

/* errno of what prevents the transfer, or 0. */
static int check_transfer_file(const struct transfer *t)
{
	struct stat st;

	if (fstat(t->fd, &st))
		return errno;
	if (!S_ISREG(st.st_mode))
		return S_ISDIR(st.st_mode) ? EISDIR : ESPIPE;
	/* Linux appends then, whatever the offset. */
	return t->receives && (fcntl(t->fd, F_GETFL) & O_APPEND) ? EINVAL : 0;
}

/* The first turn. */
__attribute__((cold)) static void begin_turns(struct rxw_file_job *job)
{
	struct transfer *t = (struct transfer *)job;

	t->error = t->fd < 0 ? t->error : check_transfer_file(t);
	if (t->error)
		t->result = -RXW_ESYS;
	job->run = run_transfer;
	run_transfer(job);
}

__attribute__((cold)) static int begin_transfer(rxw_call *call, int fd, uint64_t offset,
						uint64_t length, rxw_file_fn done, void *arg,
						bool receives)
{
	struct transfer *t;
	int r;

	if (!call || !done || length > INT64_MAX || offset > INT64_MAX - length)
		return -RXW_EINVAL;
	if (rxw_endpoint_inherited(call->conn->ep) || !(call->flags & RXW_CALL_NONBLOCK) ||
	    atomic_exchange(&call->transfers, true))
		return -RXW_ESTATE;
	r = -RXW_ENOMEM;
	t = calloc(1, sizeof(*t));
	if (t)
		r = rxw_files_enter(call->conn->ep->engine, &t->job, call->conn->p.account);
	if (r) {
		free(t);
		atomic_store(&call->transfers, false);
		return r;
	}
	atomic_fetch_add(&call->conn->ep->usage.calls_taken, 1);
	t->job.run = begin_turns;
	t->call = call;
	t->receives = receives;
	t->at = t->begun = offset;
	t->left = length;
	t->done = done;
	t->arg = arg;
	atomic_init(&t->visits, 1);
	t->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	t->error = errno;
	t->result = rxw_call_set_callback(call, visit_transfer, t);
	rxw_files_post(&t->job);
	return 0;
}

int rxw_file_send(rxw_call *call, int fd, uint64_t offset, uint64_t length, rxw_file_fn done,
		  void *arg)
{
	return begin_transfer(call, fd, offset, length, done, arg, false);
}

int rxw_file_receive(rxw_call *call, int fd, uint64_t offset, uint64_t length, rxw_file_fn done,
		     void *arg)
{
	return begin_transfer(call, fd, offset, length, done, arg, true);
}
