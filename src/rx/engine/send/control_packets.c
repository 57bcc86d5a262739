/* SPDX-License-Identifier: BSD-2-Clause */
/* Control packets: those of equal size to one client leave as one message. */
#include <errno.h>

#include "engine/objects.h"
#include "engine/lock.h"
#include "engine/observe/trace.h"

#define TX_CTL	     128  /* control packets in one system call */
#define TX_CTL_BYTES 8192 /* their bytes; on the stack, which may be the application's */
#define TX_CTL_LOOK  8	  /* recent messages that a packet may join */

/* Control packets, assigned to messages. */
struct ctl_batch {
	unsigned count;			    /* messages */
	uint8_t message[TX_CTL];	    /* message of packet i */
	uint8_t packets[TX_CTL];	    /* packets of message m */
	const struct rxw_ctl *head[TX_CTL]; /* its first packet */
	/* packets of a message are contiguous: one piece costs the kernel less than many */
	uint8_t bytes[TX_CTL_BYTES];
};

/*
 * The message that the packet joins. Towards a client: the latest one to its address, if all its
 * packets have the same size, which keeps the order. Towards a server each packet is a message of
 * its own: the kernel steers a burst by its first packet.
 */
static unsigned message_of(const struct ctl_batch *b, const struct rxw_ctl *c)
{
	unsigned last = b->count > TX_CTL_LOOK ? b->count - TX_CTL_LOOK : 0;

	if (c->client || c->padding)
		return b->count;
	for (unsigned m = b->count; m-- > last;) {
		const struct rxw_ctl *head = b->head[m];

		if (head->client || !rxw_addr_equal(&head->path.peer, &c->path.peer))
			continue;
		if (head->length != c->length || head->padding ||
		    head->path.ifindex != c->path.ifindex ||
		    !rxw_addr_equal(&head->path.local, &c->path.local))
			break;
		return m;
	}
	return b->count;
}

/* Assign packets to messages, in the order of their first packets. */
static void assign_messages(struct ctl_batch *b, const struct rxw_ctl *ctl, unsigned n, bool joined)
{
	b->count = 0;
	for (unsigned i = 0; i < n; i++) {
		unsigned m = joined ? message_of(b, &ctl[i]) : b->count;

		if (m == b->count) {
			b->head[b->count++] = &ctl[i];
			b->packets[m] = 0;
		}
		b->message[i] = (uint8_t)m;
		b->packets[m]++;
	}
}

/* Our own device cannot carry a probe of this size: no need to wait for an answer. */
static void probe_refused(struct rxw_shard *s, const struct rxw_addr *addr, uint32_t size)
{
	struct rxw_peer *peer;

	rxw_peers_lock(s->ep);
	peer = rxw_peer_find(s->ep->peers, addr);
	if (peer)
		atomic_store_explicit(&peer->mtu_refused, size, memory_order_relaxed);
	rxw_peers_unlock(s->ep);
}

static void send_ctl(struct rxw_shard *s, struct rxw_ctl *ctl, unsigned n)
{
	static uint8_t
		zeros[9000]; /* not constant, so that the library's file does not contain it */
	struct iovec iov[TX_CTL][2];
	struct rxw_io_tx tx[TX_CTL];
	struct ctl_batch b;
	size_t used = 0;

	assert(n && n <= TX_CTL);
	assign_messages(&b, ctl, n, n > 1 && rxw_io_gso(s->sock));
	for (unsigned m = 0; m < b.count; m++) {
		const struct rxw_ctl *head = b.head[m];
		size_t pad = head->padding <= sizeof(zeros) ? head->padding : sizeof(zeros);
		bool burst = b.packets[m] > 1; /* joined packets are never padded */

		iov[m][0] = (struct iovec){.iov_base = burst ? b.bytes + used
							     : (uint8_t *)(uintptr_t)head->bytes,
					   .iov_len = burst ? 0 : head->length};
		iov[m][1] = (struct iovec){.iov_base = zeros, .iov_len = pad};
		tx[m] = (struct rxw_io_tx){.path = &head->path,
					   .iov = iov[m],
					   .iov_count = pad ? 2 : 1,
					   .length = (uint32_t)(burst ? 0 : head->length + pad),
					   .segment = burst ? head->length : 0};
		used += burst ? (size_t)b.packets[m] * head->length : 0;
	}
	for (unsigned i = 0; i < n && used; i++) {
		struct rxw_io_tx *t = &tx[b.message[i]];
		struct iovec *v = iov[b.message[i]];

		if (!t->segment)
			continue;
		memcpy((uint8_t *)v->iov_base + v->iov_len, ctl[i].bytes, ctl[i].length);
		v->iov_len += ctl[i].length;
		t->length += ctl[i].length;
	}
	/*
	 * An ACK that the kernel refuses is not queued again: a retransmission or a PING causes
	 * another.
	 */
	if (rxw_shard_send(s, tx, b.count, rxw_receiving() != NULL) == b.count)
		return;
	for (unsigned m = 0; m < b.count; m++)
		if (tx[m].error == EMSGSIZE && b.head[m]->padding)
			probe_refused(s, &b.head[m]->path.peer, tx[m].length);
}

void rxw_ctl_send(struct rxw_shard *s, struct rxw_ctl *ctl, unsigned count)
{
	for (unsigned at = 0, n; at < count; at += n) {
		size_t bytes = 0;

		for (n = 0; n < TX_CTL && at + n < count; n++) {
			bytes += ctl[at + n].length;
			if (bytes > TX_CTL_BYTES)
				break;
		}
		send_ctl(s, ctl + at, n);
	}
}
