/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sending: entries are split into messages, which are sent in batches. No failure loses or repeats
 * one.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>

#include "base/assert.h"
#include "base/measure.h"
#include "common/cancel.h"
#include "common/clock.h"
#include "common/held.h"
#include "io/io_sock.h"

/* --- destinations for which GSO was refused: a bounded list, each kept for a minute --- */

static uint64_t now_ms(void)
{
	return monotonic_ns() / NS_PER_MS;
}

static void drop_expired(struct rxw_io_sock *s, uint64_t now)
{
	unsigned n = atomic_load_explicit(&s->refused_count, memory_order_relaxed);

	assert(mutex_is_held(&s->lock) && n <= RXW_IO_REFUSED);
	for (unsigned i = 0; i < n;) {
		if (s->refused[i].until_ms > now)
			i++;
		else
			s->refused[i] = s->refused[--n];
	}
	atomic_store_explicit(&s->refused_count, n, memory_order_relaxed);
}

bool rxw_io_refused(struct rxw_io_sock *s, const struct rxw_addr *peer)
{
	bool found = false;

	/* The common case costs one load. */
	if (!atomic_load_explicit(&s->refused_count, memory_order_relaxed))
		return false;
	rxw_io_lock(s);
	drop_expired(s, now_ms());
	for (unsigned i = 0; i < atomic_load_explicit(&s->refused_count, memory_order_relaxed); i++)
		if (rxw_addr_same_host(&s->refused[i].host, peer)) {
			found = true;
			break;
		}
	rxw_io_unlock(s);
	return found;
}

void rxw_io_refuse(struct rxw_io_sock *s, const struct rxw_addr *peer, int error)
{
	uint64_t now = now_ms();
	char text[64];
	unsigned n, slot = 0;

	rxw_io_count(&s->stats.gso_fallbacks, 1);
	rxw_io_lock(s);
	drop_expired(s, now);
	n = atomic_load_explicit(&s->refused_count, memory_order_relaxed);
	if (n < RXW_IO_REFUSED) {
		slot = n;
		atomic_store_explicit(&s->refused_count, n + 1, memory_order_relaxed);
	} else {
		/* Full: replace the entry that expires first. */
		for (unsigned i = 1; i < n; i++)
			if (s->refused[i].until_ms < s->refused[slot].until_ms)
				slot = i;
	}
	s->refused[slot].host = *peer;
	s->refused[slot].until_ms = now + RXW_IO_REFUSED_MS;
	rxw_io_unlock(s);
	rxw_io_warn(s, RXW_IO_WARN_GSO_PEER,
		    "GSO to %s was refused (%s) but single datagrams were sent: "
		    "no GSO there for %u s",
		    rxw_addr_text(peer, text, sizeof(text)), strerror(error),
		    RXW_IO_REFUSED_MS / 1000);
}

/* Progress of a call of rxw_io_send(): everything before entry and offset has been sent. */
struct cursor {
	struct rxw_io_tx *tx;
	unsigned count;
	unsigned entry;
	uint32_t offset;
	bool tried;    /* this message has failed once */
	int refusal;   /* errno with which GSO was refused for this entry: send the rest singly */
};

/* A position in the iovecs of an entry. */
struct place {
	unsigned iov;
	size_t offset;
};

static struct place find_iov_place(const struct rxw_io_tx *t, size_t offset)
{
	struct place p = { 0, offset };

	while (p.iov < t->iov_count && p.offset >= t->iov[p.iov].iov_len)
		p.offset -= t->iov[p.iov++].iov_len;
	return p;
}

/* Add bytes [p, p + length) of the entry to the iovecs of the batch. False: no room. */
static bool slice_entry(struct rxw_io_out *out, struct msghdr *m, const struct rxw_io_tx *t,
			struct place *p, size_t length)
{
	unsigned first = out->iov_used;

	while (length && p->iov < t->iov_count) {
		size_t n = t->iov[p->iov].iov_len - p->offset;

		if (n > length)
			n = length;
		if (n) {
			if (out->iov_used == RXW_IO_IOVECS)
				return false;
			out->iov[out->iov_used].iov_base = (uint8_t *)t->iov[p->iov].iov_base +
							   p->offset;
			out->iov[out->iov_used++].iov_len = n;
		}
		length -= n;
		p->offset += n;
		if (p->offset == t->iov[p->iov].iov_len) {
			p->iov++;
			p->offset = 0;
		}
	}
	m->msg_iov = &out->iov[first];
	m->msg_iovlen = out->iov_used - first;
	return length == 0;
}

/* The message that starts at `offset`: the rest of the entry, several segments, or one datagram. */
static struct rxw_io_piece cut_piece(const struct rxw_io_sock *s, const struct rxw_io_tx *t,
				     uint32_t offset, bool gso)
{
	uint32_t most = s->family == AF_INET ? RXW_IO_MAX_PAYLOAD4 : RXW_IO_MAX_PAYLOAD6;
	uint32_t segment = t->segment && t->segment < t->length ? t->segment : t->length;
	uint32_t n = 1;
	struct rxw_io_piece p = { .segments = 1, .fragment = t->fragment };

	if (gso && segment < t->length) {
		n = most / segment;
		if (n > RXW_IO_SEGMENTS)
			n = RXW_IO_SEGMENTS;
		if (n < 1)
			n = 1;
	}
	p.length = t->length - offset;
	if (p.length > n * segment)
		p.length = n * segment;
	if (segment)
		p.segments = (uint16_t)((p.length + segment - 1) / segment);
	if (p.segments == 0)
		p.segments = 1;
	p.segmented = p.segments > 1;
	return p;
}

/* Add the next message to the batch. False: no room for it. */
static bool put_piece(struct rxw_io_sock *s, struct rxw_io_out *out, const struct rxw_io_tx *t,
		      const struct rxw_io_piece *p, uint32_t offset, struct place *place)
{
	struct msghdr *m = &out->hdr[out->n].msg_hdr;
	union rxw_io_control *c = &out->control[out->n];

	assert(out->n < RXW_IO_BATCH && p->length <= t->length - offset);
	memset(m, 0, sizeof(*m));
	m->msg_name = (void *)&t->path->peer.u;
	m->msg_namelen = t->path->peer.len;
	if (offset == 0 && p->length == t->length) {
		m->msg_iov = (struct iovec *)t->iov;
		m->msg_iovlen = t->iov_count;
	} else if (!slice_entry(out, m, t, place, p->length)) {
		return false;
	}
	m->msg_controllen = rxw_io_control_build(c, s, t, p->segmented ? t->segment : 0);
	m->msg_control = m->msg_controllen ? c->bytes : NULL;
	out->piece[out->n++] = *p;
	return true;
}

/*
 * Fill a batch from the cursor on. A message that may be fragmented is sent alone, since the socket
 * is switched for it. The batch is empty only if an entry has more iovecs than a batch can hold.
 */
static void build_batch(struct rxw_io_sock *s, struct rxw_io_out *out, const struct cursor *c)
{
	uint32_t offset = c->offset;

	out->n = out->iov_used = 0;
	for (unsigned e = c->entry; e < c->count && out->n < RXW_IO_BATCH; e++, offset = 0) {
		const struct rxw_io_tx *t = &c->tx[e];
		bool gso = s->gso && !t->fragment && !(e == c->entry && c->refusal) &&
			      t->segment && t->segment < t->length &&
			      !rxw_io_refused(s, &t->path->peer);
		struct place place = find_iov_place(t, offset);

		do {
			struct rxw_io_piece p = cut_piece(s, t, offset, gso);

			p.entry = e;
			if (p.fragment && out->n)
				return;
			if (!put_piece(s, out, t, &p, offset, &place))
				return;
			if (p.fragment)
				return;
			offset += p.length;
		} while (offset < t->length && out->n < RXW_IO_BATCH);
	}
}

static enum rxw_io_fault_kind fault_kind_of(const struct rxw_io_piece *p)
{
	return p->segmented ? RXW_IO_FAULT_GSO : RXW_IO_FAULT_SEND;
}

/* The errno to inject into the operation of this kind that follows `ahead` others, or 0. */
static int find_send_fault(const struct rxw_io_sock *s, enum rxw_io_fault_kind kind, uint64_t ahead)
{
	uint64_t number =
		atomic_load_explicit(&s->fault_seen[kind], memory_order_relaxed) + ahead + 1;

	for (unsigned i = 0; i < s->faults.count; i++) {
		const struct rxw_io_fault *f = &s->faults.fault[i];

		if (f->kind == kind && f->at && (number == f->at || (f->onward && number > f->at)))
			return f->error;
	}
	return 0;
}

/* Send the messages before the one that fails by injection, or all. */
static int submit_injected(struct rxw_io_sock *s, struct rxw_io_out *out, int flags)
{
	uint64_t ahead[RXW_IO_FAULT_KINDS] = { 0 };
	unsigned n;
	int r, error = 0;

	for (n = 0; n < out->n; n++) {
		enum rxw_io_fault_kind k = fault_kind_of(&out->piece[n]);

		error = find_send_fault(s, k, ahead[k]++);
		if (error)
			break;
	}
	if (n == 0 && error) {
		rxw_io_count(&s->fault_seen[fault_kind_of(&out->piece[0])], 1);
		return -error;
	}
	r = s->backend->send(s, out, n, flags);
	for (int i = 0; i < (r < 0 ? 1 : r); i++)
		rxw_io_count(&s->fault_seen[fault_kind_of(&out->piece[i])], 1);
	return r;
}

/*
 * IPv4 has no control message that allows fragmentation of one datagram, and IPv6's leaves the size
 * of the fragments to the device. Therefore the socket is switched for one call. A datagram that
 * another thread sends meanwhile is sent without DF; at worst, a path MTU probe is fragmented.
 */
static int submit_fragment(struct rxw_io_sock *s, struct rxw_io_out *out, int flags)
{
	int r;

	rxw_io_lock(s);
	atomic_fetch_add(&s->switched, 1);
	(void)rxw_io_sock_fragment(s, true);
	r = s->faults.count ? submit_injected(s, out, flags) : s->backend->send(s, out, 1, flags);
	(void)rxw_io_sock_fragment(s, false);
	atomic_fetch_add(&s->switched, 1);
	rxw_io_unlock(s);
	return r;
}

static int submit_batch(struct rxw_io_sock *s, struct rxw_io_out *out, int flags)
{
	if (out->piece[0].fragment)
		return submit_fragment(s, out, flags);
	if (s->faults.count)
		return submit_injected(s, out, flags);
	return s->backend->send(s, out, out->n, flags);
}

/*
 * True if another thread switched the socket during the send, which may have caused the error.
 * Waits until it is switched back.
 */
static bool was_switched(struct rxw_io_sock *s, unsigned before, bool fragment)
{
	if (fragment || (before % 2 == 0 && atomic_load(&s->switched) == before))
		return false;
	rxw_io_lock(s);
	rxw_io_unlock(s);
	return true;
}

/* The entry at the cursor is finished, with or without an error. */
static void finish_tx_entry(struct cursor *c)
{
	assert(c->entry < c->count);
	c->entry++;
	c->offset = 0;
	c->tried = false;
	c->refusal = 0;
}

/* The kernel took the first n messages of the batch. */
static void advance_send_cursor(struct rxw_io_sock *s, struct cursor *c,
				const struct rxw_io_out *out, unsigned n)
{
	uint64_t datagrams = 0, bytes = 0, segmented = 0;

	c->tried = false;
	for (unsigned i = 0; i < n; i++) {
		const struct rxw_io_piece *p = &out->piece[i];
		struct rxw_io_tx *t = &c->tx[p->entry];

		assert(p->entry == c->entry);
		RXW_PROBE(datagram_out, &t->path->peer.u.sa, p->length,
			  p->segmented ? t->segment : p->length);
		datagrams += p->segments;
		bytes += p->length;
		segmented += p->segmented;
		t->sent_segments = (uint16_t)(t->sent_segments + p->segments);
		c->offset += p->length;
		if (c->offset < t->length)
			continue;
		/* The same bytes were sent singly: GSO was refused, not the path. */
		if (c->refusal)
			rxw_io_refuse(s, &t->path->peer, c->refusal);
		finish_tx_entry(c);
	}
	rxw_io_count(&s->stats.datagrams_sent, datagrams);
	rxw_io_count(&s->stats.bytes_sent, bytes);
	if (segmented)
		rxw_io_count(&s->stats.gso_messages, segmented);
}

/* Errors with which a kernel or device refuses GSO. */
static bool refuses_gso(int error)
{
	return error == EIO || error == EINVAL || error == EMSGSIZE || error == EOPNOTSUPP ||
	       error == ENOPROTOOPT;
}

/*
 * The message at the cursor failed. Nearly every errno may be a pending ICMP error about another
 * datagram, which the kernel reports to the next call. Therefore each message gets one retry,
 * except after errors that only GSO causes.
 */
static void handle_failure(struct rxw_io_sock *s, struct cursor *c, const struct rxw_io_piece *p,
			   int error)
{
	assert(error > 0 && p->entry == c->entry);
	if (!(p->segmented && (error == EIO || error == EINVAL))) {
		atomic_store_explicit(&s->errors_pending, true, memory_order_relaxed);
		if (!c->tried) {
			c->tried = true;
			rxw_io_count(&s->stats.send_retries, 1);
			return;
		}
	}
	if (p->segmented && refuses_gso(error)) {
		c->refusal = error;
		c->tried = false;
		return;
	}
	rxw_io_count(&s->stats.send_errors, 1);
	c->tx[c->entry].error = error;
	finish_tx_entry(c);
}

static void wait_for_room(struct rxw_io_sock *s)
{
	struct pollfd p = { .fd = s->fd, .events = POLLOUT };

	rxw_io_count(&s->stats.syscalls_other, 1);
	(void)poll(&p, 1, 100);
}

unsigned rxw_io_send(struct rxw_io_sock *s, struct rxw_io_tx *tx, unsigned count, bool nowait)
{
	struct cursor c = { .tx = tx, .count = count };
	int flags = MSG_NOSIGNAL | (nowait ? MSG_DONTWAIT : 0);
	struct rxw_io_out out;
	unsigned good = 0;
	NOT_CANCELLED;

	for (unsigned i = 0; i < count; i++)
		tx[i].error = tx[i].sent_segments = 0;
	while (c.entry < count) {
		unsigned switched;
		int r;

		build_batch(s, &out, &c);
		if (!out.n) {
			rxw_io_count(&s->stats.send_errors, 1);
			tx[c.entry].error = EINVAL;
			finish_tx_entry(&c);
			continue;
		}
		switched = atomic_load(&s->switched);
		r = submit_batch(s, &out, flags);
		if (r > 0) {
			advance_send_cursor(s, &c, &out, (unsigned)r);
			/* The errno of the next message is unknown; it may be a pending report. */
			if ((unsigned)r < out.n)
				atomic_store_explicit(&s->errors_pending, true,
						      memory_order_relaxed);
		} else if (r == -EAGAIN || r == -EWOULDBLOCK) {
			if (!nowait) {
				wait_for_room(s);
			} else {
				while (c.entry < count)
					tx[c.entry++].error = EAGAIN;
			}
		} else if (r != -EINTR && !was_switched(s, switched, out.piece[0].fragment)) {
			handle_failure(s, &c, &out.piece[0], r ? -r : EIO);
		}
	}
	for (unsigned i = 0; i < count; i++)
		good += tx[i].error == 0;
	return good;
}
