/* SPDX-License-Identifier: BSD-2-Clause */
/* Received DATA: new packets are queued, and their acknowledgements become due (3.4, 3.6). */
#include "proto/state.h"

#define ASK_APART RXW_SEC /* between two PINGs to validate an address, for a wide window */

static uint64_t payload_of(const struct rxw_rxrun *run, const struct rxw_rxpart *part)
{
	bool tail = part->skip + part->count == run->count;

	return (uint64_t)(part->count - 1) * rxw_run_data(run, false) + rxw_run_data(run, tail);
}

static void count_marks(struct rxw_pcall *p, unsigned bits, uint32_t packets,
			const struct rxw_out *out)
{
	if (bits == RXW_ECN_NOT)
		return;
	rxw_ecn_count(&p->ack.marks, bits, packets);
	if (bits != RXW_ECN_CE)
		return;
	p->count.marks_received += packets;
	rxw_tally(out->stats, &out->stats->marks_received, packets);
}

void rxw_recv_queue(struct rxw_pcall *p, const struct rxw_rxrun *run, uint32_t end,
		    struct rxw_queued *queued, struct rxw_out *out)
{
	struct rxw_recvq *q = &p->rx;
	struct rxw_rxpart part = {.first = run->head.seq};

	while ((part.count = rxw_recvq_missing(q, &part.first, end)) > 0) {
		bool in_order = part.first == q->next, gaps = rxw_recvq_has_later(q);
		uint32_t serial;

		part.skip = part.first - run->head.seq;
		serial = run->head.serial + part.skip;
		if (!(in_order ? rxw_recvq_append(p, run, &part)
			       : rxw_recvq_later(p, run, &part))) {
			rxw_drop(out->stats, RXW_DROP_MEMORY, part.count);
			rxw_ack_owe(p, RXW_ACK_NOSPACE, serial + part.count - 1, true);
			queued->refused = true;
			return;
		}
		queued->fresh += part.count;
		q->fresh += part.count;
		count_marks(p, run->ecn, part.count, out);
		p->count.bytes_received += payload_of(run, &part);
		if (in_order) {
			const struct rxw_arrival arrival = {
				.first = part.first,
				.count = part.count,
				.serial = serial,
				.requested = run->or_flags & RXW_REQUEST_ACK,
				.filled = gaps,
				.last = run->last_flags & RXW_LAST_PACKET &&
					part.skip + part.count == run->count,
			};

			queued->in_order += part.count + rxw_recvq_absorb(p);
			rxw_ack_in_order(p, &arrival, out);
		} else {
			rxw_ack_out_of_sequence(p, part.count, serial, out);
		}
		part.first += part.count;
	}
	if (!rxw_recvq_measure(p, out->now) &&
	    (p->conn->rx.proof_serial == 0 || out->now >= p->conn->rx.proof_asked + ASK_APART))
		rxw_ack_ping(p, 0, out);
}
