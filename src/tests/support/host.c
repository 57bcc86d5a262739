/* SPDX-License-Identifier: BSD-2-Clause */
/* The host of the protocol core in tests: memory, calls, and the output record. */
#include <stdlib.h>

#include "host.h"

static struct host *host_of(struct rxw_pconn *p)
{
	return ((struct host_conn *)p)->host;
}

struct host_call *host_call_new(struct host_conn *c)
{
	struct host_call *call = calloc(1, c->host->ops->call_size);

	if (call == NULL)
		abort();
	call->host = c->host;
	call->refs = 1;
	c->host->live_calls++;
	if (c->host->ops->made != NULL)
		c->host->ops->made(c, call);
	return call;
}

static struct rxw_pcall *call_new(struct rxw_pconn *p, int32_t *code)
{
	*code = host_of(p)->refusal;
	return host_of(p)->refuse_calls ? NULL : &host_call_new((struct host_conn *)p)->p;
}

void host_hold(struct rxw_pcall *p)
{
	((struct host_call *)p)->refs++;
}

void host_drop(struct rxw_pcall *p)
{
	struct host_call *call = (struct host_call *)p;

	if (call->refs == 0)
		abort();
	if (--call->refs > 0)
		return;
	call->host->live_calls--;
	rxw_pcall_fini(p);
	free(call);
}

static struct rxw_pool *pool_of(struct rxw_pconn *p)
{
	return host_of(p)->pool;
}

static bool memory_short(struct rxw_pconn *p)
{
	return host_of(p)->memory_short;
}

static const struct rxw_proto_ops proto_ops = {
	.call_new = call_new,
	.hold = host_hold,
	.drop = host_drop,
	.pool = pool_of,
	.memory_short = memory_short,
};

struct rxw_params host_params(void)
{
	return (struct rxw_params){
		.window = 255,
		.initial_window = 16,
		.mtu = 1444,
		.mtu_ceiling = 1444,
		.dead = 12 * RXW_SEC,
		.server_idle = 60 * RXW_SEC,
		.ack_delay = 50 * RXW_MS,
		.call_memory = 2 << 20,
		.conn_memory = 8 << 20,
		.peer_memory = 32 << 20,
		.sendq_high = 512,
		.sendq_low = 256,
		.wake_packets = 64,
		.unread_packets = 256,
		.cc = &rxw_cc_reno,
	};
}

void host_init(struct host *h, const struct host_ops *ops, const struct rxw_params *params,
	       size_t memory, size_t lease, unsigned keep)
{
	static const uint64_t key[2] = {1, 2};

	h->ops = ops;
	h->params = *params;
	rxw_budget_init(&h->budget, memory);
	h->pool = rxw_pool_create(&h->budget, lease, keep);
	rxw_budget_init(&h->wide, INT64_MAX / 4); /* tests may lower the limit */
	h->peers = rxw_peer_table_create(key, params->peer_memory, &h->wide);
	if (h->pool == NULL || h->peers == NULL)
		abort();
	h->out.stats = &h->stats;
	h->out.ctl = h->ctl;
	h->out.ctl_room = HOST_CTLS;
}

void host_forget(struct host *h)
{
	struct rxw_pcall *list = h->out.posted;

	h->out.posted = NULL;
	while (list != NULL) {
		struct rxw_pcall *next = list->out.next;

		list->out = (struct rxw_outlink){.linked = false};
		host_drop(list);
		list = next;
	}
}

size_t host_free(struct host *h)
{
	size_t left = rxw_pool_live(h->pool);

	rxw_peer_table_destroy(h->peers);
	rxw_pool_destroy(h->pool);
	return left;
}

void host_conn_init(struct host *h, struct host_conn *c, const struct rxw_path *path,
		    uint32_t epoch, uint32_t cid, uint16_t service, struct rxw_security *security,
		    bool client)
{
	struct rxw_peer *peer = rxw_peer_get(h->peers, &path->peer, h->out.now);

	c->host = h;
	if (rxw_pconn_init(&c->p, &h->params, &proto_ops, peer, path, epoch, cid, service, security,
			   client, h->out.now) != 0)
		abort();
}

void host_settle(struct host *h)
{
	while (h->out.ctl_count > 0 || h->out.posted != NULL) {
		struct rxw_pcall *list = h->out.posted;
		unsigned count = h->out.ctl_count;

		h->out.ctl_count = 0;
		h->out.posted = NULL;
		for (unsigned i = 0; i < count; i++)
			h->ops->control(h, &h->ctl[i]);
		while (list != NULL) {
			struct rxw_pcall *p = list;
			uint32_t events = p->out.events;

			list = p->out.next;
			p->out = (struct rxw_outlink){.linked = false};
			h->ops->events(h, (struct host_call *)p, events);
			host_drop(p);
		}
	}
}
