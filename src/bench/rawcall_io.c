/* SPDX-License-Identifier: BSD-2-Clause */
/* The two ends of raw small calls: numbered requests, each answered by a datagram of equal size. */
#include <errno.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "bench/rawcall.h"

#ifndef SOL_UDP
#define SOL_UDP 17
#endif

#define BURST_ROOM   65536u /* bytes: the maximum size of a received burst */
#define BURST_BATCH  16u    /* bursts per system call */
#define END_NUMBER   UINT64_MAX
#define RESEND_NS    100000000 /* loopback answers within microseconds */
#define GIVE_UP_NS   2000000000 /* the receive timeout of raw_socket() */
#define SPINS        1024u  /* empty polls between two readings of the clock */

#define SUB_BITS 5 /* 32 buckets per doubling: 2 % to either side */

/* The head of a datagram. A reply repeats that of its request. */
struct header {
	uint64_t number;
	uint32_t slot;
	uint32_t unused;
	int64_t sent_ns;
};

_Static_assert(sizeof(struct header) <= RAWCALL_HEADER, "fits where Rx has its header");

/* A call in flight. */
struct slot {
	uint64_t number; /* END_NUMBER: none */
	int64_t sent_ns;
};

/* One end, with its arrays for batches. Datagrams to be sent are stored consecutively. */
struct end {
	const struct rawcall_options *o;
	int fd;
	struct raw_usage *u;
	unsigned batch;   /* messages per receiving system call */
	size_t stride;    /* bytes between two of them */
	uint8_t *in;
	uint8_t *out;
	unsigned n_out, max_out;
	struct mmsghdr in_hdr[RAW_BATCH], out_hdr[RAW_BATCH];
	struct iovec in_iov[RAW_BATCH], out_iov[RAW_BATCH];
	union raw_control control[RAW_BATCH];
};

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static uint8_t *memory(size_t bytes)
{
	uint8_t *p = aligned_alloc(4096, (bytes + 4095) & ~(size_t)4095);

	if (!p)
		raw_fail("memory", strerror(errno));
	memset(p, 0x5a, bytes);
	return p;
}

static void end_init(struct end *e, const struct rawcall_options *o, int fd, struct raw_usage *u)
{
	bool bursts = o->mode == RAWCALL_BURSTS;

	memset(e, 0, sizeof(*e));
	e->o = o;
	e->fd = fd;
	e->u = u;
	e->batch = bursts ? BURST_BATCH : o->mode == RAWCALL_MMSG ? RAW_BATCH : 1;
	e->stride = bursts ? BURST_ROOM : (o->size + 63) & ~(size_t)63;
	e->max_out = o->outstanding;
	e->in = memory(e->batch * e->stride);
	e->out = memory((size_t)e->max_out * o->size);
	for (unsigned i = 0; i < e->batch; i++) {
		e->in_iov[i].iov_base = e->in + i * e->stride;
		e->in_iov[i].iov_len = e->stride;
		e->in_hdr[i].msg_hdr.msg_iov = &e->in_iov[i];
		e->in_hdr[i].msg_hdr.msg_iovlen = 1;
	}
}

static void end_free(struct end *e)
{
	free(e->in);
	free(e->out);
}

/* -- Sending ---------------------------------------------------------------------------------- */

static void send_messages(struct end *e, unsigned n)
{
	unsigned sent = 0;

	e->u->messages += n;
	while (sent < n) {
		int r = sendmmsg(e->fd, e->out_hdr + sent, n - sent, 0);

		e->u->syscalls++;
		if (r < 0)
			raw_fail("send", strerror(errno));
		sent += (unsigned)r;
	}
}

static void send_singly(struct end *e)
{
	for (unsigned i = 0; i < e->n_out; i++) {
		e->u->syscalls++;
		e->u->messages++;
		if (send(e->fd, e->out + (size_t)i * e->o->size, e->o->size, 0) < 0)
			raw_fail("send", strerror(errno));
	}
}

/* Sends the batch. */
static void flush(struct end *e)
{
	unsigned size = e->o->size;
	unsigned burst = 1, messages = 0;

	if (e->o->mode == RAWCALL_BURSTS)
		burst = RAW_MAX_BURST / size < RAW_SEGMENTS ? RAW_MAX_BURST / size : RAW_SEGMENTS;
	if (e->o->mode <= RAWCALL_POLL) {
		send_singly(e);
		e->n_out = 0;
		return;
	}
	for (unsigned at = 0; at < e->n_out;) {
		struct msghdr *m = &e->out_hdr[messages].msg_hdr;
		unsigned k = e->n_out - at < burst ? e->n_out - at : burst;

		memset(m, 0, sizeof(*m));
		e->out_iov[messages].iov_base = e->out + (size_t)at * size;
		e->out_iov[messages].iov_len = (size_t)k * size;
		m->msg_iov = &e->out_iov[messages];
		m->msg_iovlen = 1;
		if (k > 1)
			raw_put_segment(m, &e->control[messages], (uint16_t)e->o->size);
		at += k;
		if (++messages == RAW_BATCH || at == e->n_out) {
			send_messages(e, messages);
			messages = 0;
		}
	}
	e->n_out = 0;
}

/* Room for one more datagram, with its previous contents. */
static uint8_t *append(struct end *e)
{
	if (e->n_out == e->max_out)
		flush(e);
	return e->out + (size_t)e->n_out++ * e->o->size;
}

/* -- Receiving -------------------------------------------------------------------------------- */

static int receive_once(struct end *e)
{
	e->u->syscalls++;
	if (e->o->mode <= RAWCALL_POLL) {
		ssize_t len = recv(e->fd, e->in, e->stride,
				   e->o->mode == RAWCALL_POLL ? MSG_DONTWAIT : 0);

		e->in_hdr[0].msg_len = len < 0 ? 0 : (unsigned)len;
		return len < 0 ? -1 : 1;
	}
	return recvmmsg(e->fd, e->in_hdr, e->batch, MSG_WAITFORONE, NULL);
}

/* Received messages. Waits for the first. 0: none within ns. */
static unsigned receive(struct end *e, int64_t ns)
{
	int64_t since = 0;
	int r;

	for (unsigned spins = 1;; spins++) {
		r = receive_once(e);
		if (r > 0)
			return (unsigned)r;
		if (errno == EINTR)
			continue;
		if (errno != EAGAIN)
			raw_fail("receive", strerror(errno));
		if (e->o->mode != RAWCALL_POLL)
			return 0; /* the socket's own timeout has expired */
		if (spins % SPINS)
			continue;
		if (!since)
			since = now_ns();
		else if (now_ns() - since > ns)
			return 0;
	}
}

/* Number of datagrams in a message. */
static unsigned datagrams(const struct end *e, unsigned message)
{
	unsigned len = e->in_hdr[message].msg_len;

	if (len % e->o->size)
		raw_fail("receive", "a datagram of another size");
	return len / e->o->size;
}

static const uint8_t *datagram(const struct end *e, unsigned message, unsigned i)
{
	return e->in + message * e->stride + (size_t)i * e->o->size;
}

/* -- Client ----------------------------------------------------------------------------------- */

static unsigned bucket_of(uint64_t ns)
{
	unsigned shift;

	if (ns < 2u << SUB_BITS)
		return (unsigned)ns;
	shift = 63 - SUB_BITS - (unsigned)__builtin_clzll(ns);
	return (shift << SUB_BITS) + (unsigned)(ns >> shift);
}

/* The middle of a bucket, in nanoseconds. */
static double bucket_ns(unsigned bucket)
{
	unsigned shift = bucket >> SUB_BITS;
	unsigned sub = bucket & ((1u << SUB_BITS) - 1);

	if (bucket < 2u << SUB_BITS)
		return bucket;
	return ((double)(sub + (1u << SUB_BITS)) + 0.5) * (double)(1ull << (shift - 1));
}

double rawcall_quantile(const struct rawcall_result *result, double share)
{
	double wanted = share * (double)result->calls;
	uint64_t seen = 0;

	for (unsigned i = 0; i < RAWCALL_BUCKETS; i++) {
		seen += result->latency[i];
		if (seen && (double)seen >= wanted)
			return bucket_ns(i) / 1000;
	}
	return 0;
}

static void request(struct end *e, struct slot *slots, uint32_t slot, uint64_t number, int64_t now)
{
	struct header h = { .number = number, .slot = slot, .sent_ns = now };

	slots[slot].number = number;
	slots[slot].sent_ns = now;
	memcpy(append(e), &h, sizeof(h));
}

/* Requests without a reply for too long are retransmitted. Their time keeps counting. */
static void resend(struct end *e, struct slot *slots, int64_t now, struct rawcall_result *result)
{
	for (uint32_t i = 0; i < e->o->outstanding; i++) {
		struct header h = { .number = slots[i].number, .slot = i,
				    .sent_ns = slots[i].sent_ns };

		if (h.number == END_NUMBER || now - h.sent_ns < RESEND_NS)
			continue;
		memcpy(append(e), &h, sizeof(h));
		result->resent++;
	}
}

/* Handles a reply. Returns its slot, or -1 if its call was answered before. */
static int64_t take_reply(struct slot *slots, unsigned n, const uint8_t *data, int64_t now,
			  struct rawcall_result *result)
{
	struct header h;

	memcpy(&h, data, sizeof(h));
	if (h.slot >= n)
		raw_fail("receive", "a reply to no call");
	if (slots[h.slot].number != h.number)
		return -1;
	slots[h.slot].number = END_NUMBER;
	result->calls++;
	result->latency[bucket_of((uint64_t)(now - h.sent_ns))]++;
	return h.slot;
}

void rawcall_client(const struct rawcall_options *o, int fd, struct rawcall_result *result,
		    struct raw_usage *u)
{
	struct slot *slots = calloc(o->outstanding, sizeof(*slots));
	int64_t start = now_ns(), now = start, heard = start, looked = start;
	int64_t end = start + (int64_t)o->seconds * 1000000000;
	uint64_t next = 0;
	struct end e;

	if (!slots)
		raw_fail("memory", strerror(errno));
	end_init(&e, o, fd, u);
	for (uint32_t i = 0; i < o->outstanding; i++) {
		slots[i].number = END_NUMBER;
		if (next < o->calls)
			request(&e, slots, i, next++, now);
	}
	flush(&e);
	while (result->calls < next) {
		unsigned n = receive(&e, RESEND_NS);

		/* Requests sent now get the time of this receive: one reading of the clock. */
		now = now_ns();
		if (n)
			heard = now;
		else if (now - heard > GIVE_UP_NS)
			raw_fail("client", "no reply for two seconds: the server is gone, or the "
				 "kernel drops all datagrams");
		if (now - end > GIVE_UP_NS)
			raw_fail("client", "time is over, but calls still wait for their replies: "
				 "fewer --outstanding or a larger net.core.rmem_max lose less");
		for (unsigned i = 0; i < n; i++) {
			for (unsigned k = 0, count = datagrams(&e, i); k < count; k++) {
				int64_t slot = take_reply(slots, o->outstanding,
							  datagram(&e, i, k), now, result);

				if (slot >= 0 && next < o->calls && now < end)
					request(&e, slots, (uint32_t)slot, next++, now);
			}
		}
		if (now - looked > RESEND_NS) {
			resend(&e, slots, now, result);
			looked = now;
		}
		flush(&e);
	}
	result->elapsed = (double)(now - start) * 1e-9;
	end_free(&e);
	free(slots);
}

void rawcall_end(const struct rawcall_options *o, int fd)
{
	struct header h = { .number = END_NUMBER };
	uint8_t *data = memory(o->size);

	memcpy(data, &h, sizeof(h));
	/* Refused: the previous request ended the server. */
	if (send(fd, data, o->size, 0) < 0 && errno != ECONNREFUSED)
		raw_fail("send", strerror(errno));
	free(data);
}

/* -- Server ----------------------------------------------------------------------------------- */

void rawcall_server(const struct rawcall_options *o, int fd, struct raw_usage *u)
{
	bool ended = false;
	struct end e;

	end_init(&e, o, fd, u);
	while (!ended) {
		unsigned n = receive(&e, GIVE_UP_NS);

		if (n == 0)
			raw_fail("server", "no request for two seconds: the client is gone, or the "
				 "kernel drops all datagrams");
		for (unsigned i = 0; i < n; i++) {
			for (unsigned k = 0, count = datagrams(&e, i); k < count; k++) {
				const uint8_t *data = datagram(&e, i, k);
				uint64_t number;

				memcpy(&number, data, sizeof(number));
				if (number == END_NUMBER)
					ended = true;
				else
					memcpy(append(&e), data, o->size);
			}
		}
		flush(&e);
	}
	end_free(&e);
}
