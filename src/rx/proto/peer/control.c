/* SPDX-License-Identifier: BSD-2-Clause */
/* The output record: events of calls, and packets without stream data (rx-protocol 1.5, 2.8, 2.9). */
#include "proto/state.h"

#define ABORT_INTERVAL (100 * RXW_MS)
#define VERSION_EPOCH  999u

void rxw_pcall_post_event(struct rxw_pcall *p, struct rxw_out *out, uint32_t events)
{
	p->out.events |= events;
	if (p->out.linked)
		return;
	p->conn->ops->hold(p);
	p->out.linked = true;
	p->out.next = out->posted;
	out->posted = p;
}

void rxw_event_send(const struct rxw_pcall *p, struct rxw_tracer *tracer,
		    struct rxw_trace_event *seen)
{
	seen->epoch = p->conn->epoch;
	seen->cid = p->conn->cid | p->channel;
	seen->call = p->number;
	tracer->note(tracer, seen);
}

struct rxw_ctl *rxw_ctl_add(struct rxw_pconn *c, struct rxw_out *out, unsigned type, unsigned flags,
			    unsigned channel, uint32_t call, unsigned status, size_t body)
{
	struct rxw_ctl *ctl;
	struct rxw_header h = {
		.epoch = c->epoch,
		.cid = c->cid | channel,
		.call = call,
		.type = (uint8_t)type,
		.flags = (uint8_t)(flags | (c->client ? RXW_CLIENT_INITIATED : 0)),
		.user_status = (uint8_t)status,
		.security = c->security_index,
		.service = c->service,
	};

	if (out->ctl_count >= out->ctl_room)
		return NULL;
	if (!c->client && !rxw_peer_may_send(c->peer, RXW_HEADER_SIZE + body, 1, out->now)) {
		rxw_drop(out->stats, RXW_DROP_RATE, 1);
		return NULL;
	}
	ctl = &out->ctl[out->ctl_count++];
	h.serial = ++c->serial;
	ctl->path = *rxw_pconn_path(c);
	ctl->client = c->client;
	ctl->padding = 0;
	ctl->length = (uint16_t)(RXW_HEADER_SIZE + body);
	rxw_header_put(ctl->bytes, &h);
	RXW_PROBE(packet_out, h.cid, h.call, h.type, 0, 1, ctl->length);
	c->last_sent = out->now;
	c->count.packets_sent++;
	c->count.bytes_sent += ctl->length;
	rxw_tally(out->stats, &out->stats->packets_sent[type], 1);
	return ctl;
}

bool rxw_ctl_abort(struct rxw_pconn *c, struct rxw_aborting *a, struct rxw_out *out)
{
	struct rxw_ctl *ctl;

	if (a->state->at != 0 && out->now < a->state->at + ABORT_INTERVAL) {
		rxw_drop(out->stats, RXW_DROP_RATE, 1);
		return false;
	}
	ctl = rxw_ctl_add(c, out, RXW_ABORT, 0, a->channel, a->number, a->status, 4);
	a->state->owed = ctl == NULL;
	if (ctl == NULL)
		return false;
	rxw_put32(ctl->bytes + RXW_HEADER_SIZE, (uint32_t)a->error);
	a->state->at = out->now ? out->now : 1;
	return true;
}

bool rxw_pcall_write_abort(struct rxw_pcall *p, struct rxw_out *out)
{
	struct rxw_aborting a = {.channel = p->channel,
				 .number = p->number,
				 .error = p->error,
				 .status = p->local_status,
				 .state = &p->abort};
	bool sent = rxw_ctl_abort(p->conn, &a, out);

	if (sent)
		p->time.last_sent = out->now;
	return sent;
}

void rxw_pconn_write_abort(struct rxw_pconn *c, struct rxw_out *out)
{
	struct rxw_ctl *ctl;

	if (c->error_sent_at != 0 && out->now < c->error_sent_at + ABORT_INTERVAL) {
		rxw_drop(out->stats, RXW_DROP_RATE, 1);
		return;
	}
	ctl = rxw_ctl_add(c, out, RXW_ABORT, 0, 0, 0, 0, 4);
	if (ctl == NULL)
		return;
	rxw_put32(ctl->bytes + RXW_HEADER_SIZE, (uint32_t)c->error);
	c->error_sent_at = out->now ? out->now : 1;
}

void rxw_pconn_write_busy(struct rxw_pconn *c, unsigned channel, uint32_t call, struct rxw_out *out)
{
	rxw_tally(out->stats, &out->stats->calls_refused, 1);
	rxw_ctl_add(c, out, RXW_BUSY, 0, channel, call, 0, 0);
}

void rxw_pconn_write_version(struct rxw_pconn *c, struct rxw_out *out)
{
	/* Without CLIENT_INITIATED nothing is sent back. It belongs to no connection. */
	const struct rxw_header h = {
		.epoch = VERSION_EPOCH, .type = RXW_VERSION, .flags = RXW_LAST_PACKET};
	struct rxw_ctl *ctl = rxw_ctl_add(c, out, RXW_VERSION, 0, 0, 0, 0, 1);

	if (ctl == NULL)
		return;
	c->serial--;
	rxw_header_put(ctl->bytes, &h);
	ctl->bytes[RXW_HEADER_SIZE] = 0;
}
