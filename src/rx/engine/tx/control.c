/* SPDX-License-Identifier: BSD-2-Clause */
/* Control packets: several of equal size to one client leave as one message. */
#include "engine/objects.h"
#include "engine/lock.h"
#include "engine/trace/trace.h"

#define TX_CTL	     128  /* control packets handed over at once */
#define TX_CTL_BYTES 8192 /* of them; on the stack, which may be the application's */
#define TX_CTL_LOOK  8	  /* messages looked through for one that another can join */

/* Control packets on their way to messages. */
struct ctl_batch {
	unsigned count;			    /* messages */
	uint8_t message[TX_CTL];	    /* of packet i */
	uint8_t packets[TX_CTL];	    /* of message m */
	const struct rxw_ctl *head[TX_CTL]; /* its first */
	/* what leaves in one message is side by side: to the kernel one piece costs less than many */
	uint8_t bytes[TX_CTL_BYTES];
};

/*
 * The message that the packet can leave in: towards a client, the latest to its address if all in
 * it are of the same size; so nothing overtakes anything. Towards a server packets go singly, for
 * the kernel steers a train by its first.
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

/* Which packets leave in which message, in the order of their first. */
static void join_ctl(struct ctl_batch *b, const struct rxw_ctl *ctl, unsigned n, bool joined)
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

static void send_ctl(struct rxw_shard *s, struct rxw_ctl *ctl, unsigned n)
{
	static const uint8_t zeros[9000];
	struct iovec iov[TX_CTL][2];
	struct rxw_io_tx tx[TX_CTL];
	struct ctl_batch b;
	size_t used = 0;

	join_ctl(&b, ctl, n, n > 1 && rxw_io_gso(s->sock));
	for (unsigned m = 0; m < b.count; m++) {
		const struct rxw_ctl *head = b.head[m];
		size_t pad = head->padding <= sizeof(zeros) ? head->padding : sizeof(zeros);
		bool train = b.packets[m] > 1; /* nothing in it is padded */

		iov[m][0] = (struct iovec){.iov_base = train ? b.bytes + used
							     : (uint8_t *)(uintptr_t)head->bytes,
					   .iov_len = train ? 0 : head->length};
		iov[m][1] = (struct iovec){.iov_base = (void *)(uintptr_t)zeros, .iov_len = pad};
		tx[m] = (struct rxw_io_tx){.path = &head->path,
					   .iov = iov[m],
					   .iov_count = pad ? 2 : 1,
					   .length = (uint32_t)(train ? 0 : head->length + pad),
					   .segment = train ? head->length : 0,
					   .reply = !head->client};
		used += train ? (size_t)b.packets[m] * head->length : 0;
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
	/* An ACK that the kernel refuses is owed again: a retransmission or a PING draws it. */
	rxw_shard_send(s, tx, b.count, rxw_receiving() != NULL);
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
