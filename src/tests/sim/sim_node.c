/* SPDX-License-Identifier: BSD-2-Clause */
/* Simulation: an endpoint. It receives in batches, runs the protocol, sends bursts, runs timers. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

#define BUFFER_SIZE 65507u
#define SERVICE	    147

static struct sim_conn *of_conn(struct rxw_pconn *c)
{
	return (struct sim_conn *)c;
}

static void made(struct host_conn *c, struct host_call *host_call)
{
	struct sim_call *call = (struct sim_call *)host_call;

	call->conn = (struct sim_conn *)c;
	call->node = call->conn->node;
	call->timer_set = UINT64_MAX;
}

static void on_control(struct host *h, const struct rxw_ctl *ctl);
static void on_events(struct host *h, struct host_call *call, uint32_t events);

static const struct host_ops ops = {
	.call_size = sizeof(struct sim_call),
	.made = made,
	.control = on_control,
	.events = on_events,
};

bool sim_node_init(struct sim *sim, struct sim_node *node, bool client,
		   const struct rxw_params *params)
{
	static const uint64_t key[2] = {0x0123456789abcdefull, 0xfedcba9876543210ull};
	struct sockaddr_in in = {.sin_family = AF_INET};
	int64_t wide = client ? sim->setup.client_wide : sim->setup.server_wide;

	memset(node, 0, sizeof(*node));
	node->sim = sim;
	node->client = client;
	host_init((struct host *)node, &ops, params,
		  sim->setup.memory != 0 ? sim->setup.memory : 256 << 20, 1 << 20, 64);
	if (wide != 0)
		node->wide.limit = wide;
	node->clock_ahead = 1000 * RXW_SEC; /* it may be postponed */
	in.sin_port = htons(client ? 7001 : 7000);
	in.sin_addr.s_addr = htonl(client ? 0x0a000001 : 0x0a000002);
	rxw_addr_set(&node->addr, (struct sockaddr *)&in, sizeof(in));
	return rxw_conntable_init(&node->table, key) == 0;
}

void sim_node_free(struct sim_node *node)
{
	size_t left;

	host_forget((struct host *)node);
	for (struct sim_conn *c = node->conns, *next; c != NULL; c = next) {
		next = c->next;
		rxw_conntable_remove(&node->table, &c->p);
		rxw_pconn_fini(&c->p, sim_clock(node));
		free(c);
	}
	while (node->queue_head != node->queue_tail)
		sim_datagram_free(node->queue[node->queue_head++]);
	free(node->queue);
	rxw_conntable_fini(&node->table);
	left = host_free((struct host *)node);
	if (left != 0)
		sim_fail(node->sim, "%s leaks %zu bytes of buffers",
			 node->client ? "client" : "server", left);
}

uint64_t sim_clock(const struct sim_node *node)
{
	return node->sim->now + node->clock_ahead;
}

uint64_t sim_when(const struct sim_node *node, uint64_t clock)
{
	uint64_t now = node->sim->now, shown = sim_clock(node);

	if (clock == UINT64_MAX)
		return UINT64_MAX;
	return clock > shown ? now + (clock - shown) : now;
}

struct rxw_out *sim_out(struct sim_node *node)
{
	node->out.now = sim_clock(node);
	return &node->out;
}

struct sim_conn *sim_conn_new(struct sim_node *node, uint32_t cid, const struct rxw_addr *peer)
{
	struct sim_conn *c = calloc(1, sizeof(*c));
	struct sim_node *other = node->client ? &node->sim->server : &node->sim->client;
	struct rxw_path path = {.peer = peer != NULL ? *peer : other->addr};
	struct rxw_security *security = node->sim->setup.security;

	if (c == NULL)
		abort();
	c->node = node;
	c->timer_set = UINT64_MAX;
	if (!node->client && node->sim->setup.server_security != NULL)
		security = node->sim->setup.server_security;
	sim_out(node);
	host_conn_init((struct host *)node, (struct host_conn *)c, &path, 0x80000077, cid, SERVICE,
		       security, node->client);
	if (rxw_conntable_insert(&node->table, &c->p) != 0)
		abort();
	c->next = node->conns;
	node->conns = c;
	return c;
}

static void arm(struct sim_call *call)
{
	uint64_t at = sim_when(call->node, rxw_pcall_deadline(&call->p));

	if (at >= call->timer_set)
		return;
	call->timer_set = at;
	call->refs++;
	sim_at(call->node->sim, at, SIM_TIMER, call, NULL);
}

static void arm_conn(struct sim_conn *c)
{
	uint64_t at = sim_when(c->node, rxw_pconn_deadline(&c->p));

	if (at >= c->timer_set)
		return;
	c->timer_set = at;
	sim_at(c->node->sim, at, SIM_CONN_TIMER, c, NULL);
}

/* An exchange job that has just become due: a thread runs it, or none is free. */
static void auth_due(struct sim_node *node)
{
	struct rxw_out *out = sim_out(node);
	struct rxw_pconn *c = out->auth;
	struct sim *sim = node->sim;
	struct rxw_auth_job *job;

	out->auth = NULL;
	job = c != NULL ? rxw_pconn_auth_take(c) : NULL;
	if (job == NULL)
		return;
	if (sim_chance(sim, sim->setup.auth_drop))
		rxw_pconn_auth_drop(c, job, out);
	else
		sim_at(sim, sim->now + sim_draw(sim, sim->setup.auth_wait + 1), SIM_AUTH,
		       of_conn(c), job);
}

static void on_control(struct host *h, const struct rxw_ctl *ctl)
{
	uint8_t padded[RXW_ACK_MAX_SIZE + 65536];
	struct sim_node *node = (struct sim_node *)h;

	memcpy(padded, ctl->bytes, ctl->length);
	memset(padded + ctl->length, 0, ctl->padding);
	sim_transmit(node->sim, node, padded, ctl->length + ctl->padding, false, RXW_ECN_NOT);
}

static void on_events(struct host *h, struct host_call *host_call, uint32_t events)
{
	struct sim_call *call = (struct sim_call *)host_call;

	sim_app_events(call, events);
	arm(call);
	arm_conn(call->conn);
	if (events & RXW_OUT_RELEASE)
		rxw_pcall_release(&call->p, UINT_MAX);
	if (events & RXW_OUT_DONE)
		rxw_pcall_retire(&call->p);
	auth_due((struct sim_node *)h);
}

void sim_settle(struct sim_node *node)
{
	sim_out(node);
	auth_due(node);
	/* A job in progress also handles packets received meanwhile. */
	if (node->settling)
		return;
	node->settling = true;
	host_settle((struct host *)node);
	node->settling = false;
}

/* --- sending --- */

struct pending {
	struct rxw_burst burst;
	unsigned sent;
	int error;
};

static void burst_over(struct sim_call *call, struct pending *t)
{
	struct sim_node *node = call->node;
	uint8_t *d = t->burst.data;

	/* Copied now, not when it was handed out, so that bytes changed meanwhile are detected. */
	for (unsigned i = 0; i < t->sent; i++, d += t->burst.segment) {
		uint32_t left = (uint32_t)(t->burst.data + t->burst.length - d);

		sim_transmit(node->sim, node, d, left < t->burst.segment ? left : t->burst.segment,
			     t->burst.fragment, t->burst.ect ? RXW_ECN_ECT0 : RXW_ECN_NOT);
	}
	rxw_pcall_burst_done(&call->p, &t->burst, t->sent, t->error, sim_out(node));
	free(t);
	sim_settle(node);
}

void sim_send(struct sim_call *call)
{
	struct sim_node *node = call->node;
	struct sim *sim = node->sim;
	uint64_t not_before = 0;

	call->refs++;
	for (;;) {
		struct pending *t = calloc(1, sizeof(*t));
		enum rxw_burst_result result;

		if (t == NULL)
			abort();
		result = rxw_pcall_burst(&call->p, sim->setup.max_burst, &t->burst, &not_before,
					 sim_out(node));
		if (result != RXW_BURST_READY) {
			free(t);
			if (result == RXW_BURST_PACED && !call->send_set) {
				call->send_set = true;
				call->refs++;
				sim_at(sim, sim_when(node, not_before), SIM_SEND, call, NULL);
			}
			break;
		}
		if (t->burst.count > sim->setup.max_burst ||
		    t->burst.length !=
			    (t->burst.count - 1u) * t->burst.segment +
				    (t->burst.length - (t->burst.count - 1u) * t->burst.segment))
			sim_fail(sim, "a burst of a wrong shape");
		t->sent = t->burst.count;
		if (sim_chance(sim, sim->setup.send_failure)) {
			t->sent = (unsigned)sim_draw(sim, t->burst.count);
			t->error = sim_chance(sim, 0.5) ? EAGAIN : ENOBUFS;
		}
		if (sim->setup.send_wait != 0) {
			call->refs++;
			sim_at(sim, sim->now + sim_draw(sim, sim->setup.send_wait), SIM_BURST_DONE,
			       call, t);
		} else {
			burst_over(call, t);
		}
	}
	sim_settle(node);
	host_drop(&call->p);
}

/* --- receiving --- */

struct verdict {
	struct rxw_rxrun run;
	struct rxw_path path;
};

/* Verified later. The reference of its buffer is transferred. */
static void verify_at(struct sim_conn *c, const struct rxw_rxrun *run, const struct rxw_path *path,
		      uint64_t at)
{
	struct verdict *v = malloc(sizeof(*v));

	if (v == NULL || run->verified)
		abort();
	v->run = *run;
	v->path = *path;
	sim_at(c->node->sim, at, SIM_VERDICT, c, v);
}

static void input(struct sim_node *node, struct sim_conn *c, const struct rxw_rxrun *run)
{
	struct sim *sim = node->sim;

	if (rxw_pconn_input(&c->p, run, sim_out(node)) == RXW_INPUT_VERIFY) {
		rxw_buf_ref(run->buf);
		c->verdict_at = (c->verdict_at > sim->now ? c->verdict_at : sim->now) +
				sim_draw(sim, sim->setup.verdict_wait + 1);
		verify_at(c, run, run->path, c->verdict_at);
		return;
	}
	auth_due(node);
	c->touched = true;
}

static void batch_end(struct sim_node *node, bool dry)
{
	for (struct sim_conn *c = node->conns; c != NULL; c = c->next)
		if (c->touched || (dry && rxw_pconn_owes(&c->p))) {
			c->touched = false;
			rxw_pconn_batch_end(&c->p, dry, sim_out(node));
			arm_conn(c);
		}
	sim_settle(node);
}

static void verdict(struct sim_conn *c, struct verdict *v)
{
	struct rxw_security_packet packet[RXW_VERIFY_MOST];
	struct rxw_rxrun *run = &v->run;

	run->path = &v->path;
	if (run->count > RXW_VERIFY_MOST)
		abort();
	rxw_run_verify(&c->p, run, packet);
	for (unsigned i = 0; i < run->count; i++)
		if (packet[i].result != 0 && packet[i].result != c->node->sim->setup.may_end)
			sim_fail(c->node->sim, "a packet did not verify");
	rxw_pconn_input_verified(&c->p, run, packet, sim_out(c->node));
	c->touched = true;
	batch_end(c->node, c->node->queue_head == c->node->queue_tail);
	rxw_buf_unref(run->buf);
	free(v);
}

/*
 * A CHALLENGE or RESPONSE is made or checked. The same thread then verifies the packets kept until
 * the exchange completed, in any order relative to those received meanwhile.
 */
static void auth_done(struct sim_conn *c, struct rxw_auth_job *job)
{
	struct sim_node *node = c->node;
	struct sim *sim = node->sim;
	struct rxw_rxrun run;
	struct rxw_buf *reply;
	uint32_t size = 0;

	rxw_auth_do(&c->p, job);
	reply = rxw_pconn_auth_done(&c->p, job, &size, sim_out(node));
	while (c->p.auth.authenticated && rxw_pconn_take_unverified(&c->p, &run))
		verify_at(c, &run, &c->p.path,
			  sim->now + sim_draw(sim, sim->setup.verdict_wait + 1));
	arm_conn(c);
	sim_settle(node);
	if (reply == NULL)
		return;
	sim_transmit(sim, node, reply->data, size, size > node->params.mtu, RXW_ECN_NOT);
	rxw_buf_unref(reply);
}

static void one_burst(struct sim_node *node)
{
	struct rxw_buf *buf = rxw_buf_get(node->pool);
	struct sim_datagram *d = node->queue[node->queue_head];
	uint32_t length = 0, segment = d->length, at = 0, n = 0;
	uint16_t port = d->port;
	uint8_t ecn = d->ecn;
	struct rxw_path path = {.peer = d->from->addr};
	struct rxw_jumbo jumbo = {0};
	struct rxw_rxrun run;

	if (buf == NULL)
		abort();
	path.peer.u.in.sin_port = htons(ntohs(path.peer.u.in.sin_port) + port);
	while (node->queue_head != node->queue_tail && n < 64) {
		d = node->queue[node->queue_head];
		if (n > 0 && (!node->sim->setup.gro || d->length > segment || d->port != port ||
			      d->ecn != ecn || length + d->length > BUFFER_SIZE))
			break;
		memcpy(buf->data + length, d->bytes, d->length);
		length += d->length;
		node->queue_bytes -= d->length;
		n++;
		node->queue_head++;
		segment = n == 1 ? d->length : segment;
		sim_datagram_free(d);
		if (length % segment != 0)
			break;
	}
	while (rxw_run_next(buf, &path, length, segment, &at, &jumbo, &run, &node->stats) == 1) {
		bool client = !(run.head.flags & RXW_CLIENT_INITIATED);
		struct rxw_pconn *c = rxw_conntable_find(&node->table, client, run.head.epoch,
							 run.head.cid, &path.peer, NULL);

		run.ecn = ecn;
		if (c == NULL && !client && run.head.type == RXW_DATA)
			c = &sim_conn_new(node, run.head.cid, &path.peer)->p;
		if (c != NULL)
			input(node, of_conn(c), &run);
	}
	rxw_buf_unref(buf);
}

static void receive(struct sim_node *node)
{
	for (unsigned n = 0; n < node->sim->setup.batch && node->queue_head != node->queue_tail;
	     n++)
		one_burst(node);
	node->receive_set = node->queue_head != node->queue_tail;
	if (node->receive_set)
		sim_at(node->sim, node->sim->now + 10000, SIM_RECEIVE, node, NULL);
	batch_end(node, !node->receive_set);
}

static void arrival(struct sim_node *node, struct sim_datagram *d)
{
	struct sim *sim = node->sim;

	if (sim->setup.receive_bytes != 0 &&
	    node->queue_bytes + d->length > sim->setup.receive_bytes) {
		sim_datagram_free(d);
		return;
	}
	node->queue_bytes += d->length;
	if (node->queue_tail == node->queue_size) {
		if (node->queue_head > 0)
			memmove(node->queue, node->queue + node->queue_head,
				(node->queue_tail - node->queue_head) * sizeof(*node->queue));
		node->queue_tail -= node->queue_head;
		node->queue_head = 0;
		if (node->queue_tail * 2 >= node->queue_size) {
			node->queue_size = node->queue_size ? node->queue_size * 2 : 256;
			node->queue = realloc(node->queue, node->queue_size * sizeof(*node->queue));
			if (node->queue == NULL)
				abort();
		}
	}
	node->queue[node->queue_tail++] = d;
	if (!node->receive_set) {
		node->receive_set = true;
		sim_at(sim, sim->now + sim_draw(sim, sim->setup.receive_wait + 1), SIM_RECEIVE,
		       node, NULL);
	}
}

/* The node whose thread handles an event, or NULL for events of the network or the kernel. */
static struct sim_node *node_of(const struct sim_event *e)
{
	switch (e->kind) {
	case SIM_RECEIVE:
		return e->subject;
	case SIM_VERDICT:
	case SIM_AUTH:
	case SIM_CONN_TIMER:
	case SIM_BEGIN:
		return ((struct sim_conn *)e->subject)->node;
	case SIM_BURST_DONE:
	case SIM_TIMER:
	case SIM_SEND:
	case SIM_READ:
	case SIM_WRITE:
		return ((struct sim_call *)e->subject)->node;
	default:
		return NULL;
	}
}

/* All deadlines have moved. A sleeping thread checks the clock every 10 ms. */
void sim_node_clock_stepped(struct sim_node *node)
{
	for (struct sim_conn *c = node->conns; c != NULL; c = c->next) {
		sim_at(node->sim, node->sim->now + 10 * RXW_MS, SIM_CONN_TIMER, c, NULL);
		for (unsigned i = 0; i < 4; i++) {
			struct sim_call *call = (struct sim_call *)c->p.channel[i];

			if (call == NULL)
				continue;
			call->timer_set = node->sim->now + 10 * RXW_MS;
			call->refs++;
			sim_at(node->sim, call->timer_set, SIM_TIMER, call, NULL);
		}
	}
}

void sim_node_event(struct sim *sim, const struct sim_event *e)
{
	struct sim_call *call = e->subject;
	struct sim_conn *conn = e->subject;
	struct sim_node *node = node_of(e);

	if (node != NULL && sim->now < node->paused_until) {
		sim_at(sim, node->paused_until, e->kind, e->subject, e->more);
		return;
	}
	switch (e->kind) {
	case SIM_ARRIVAL:
		arrival(e->subject, e->more);
		return;
	case SIM_RECEIVE:
		receive(e->subject);
		return;
	case SIM_VERDICT:
		verdict(conn, e->more);
		return;
	case SIM_AUTH:
		auth_done(conn, e->more);
		return;
	case SIM_CONN_TIMER:
		conn->timer_set = UINT64_MAX;
		rxw_pconn_timer(&conn->p, sim_out(conn->node));
		arm_conn(conn);
		sim_settle(conn->node);
		return;
	case SIM_BEGIN:
		sim_app_begin(conn);
		return;
	case SIM_BURST_DONE:
		burst_over(call, e->more);
		break;
	case SIM_TIMER:
		if (call->timer_set <= sim->now) {
			call->timer_set = UINT64_MAX;
			if (rxw_pcall_deadline(&call->p) <= sim_clock(call->node))
				rxw_pcall_timer(&call->p, sim_out(call->node));
			arm(call);
		}
		break;
	case SIM_SEND:
		call->send_set = false;
		sim_send(call);
		break;
	case SIM_READ:
		sim_app_read(call);
		break;
	case SIM_WRITE:
		sim_app_write(call);
		break;
	case SIM_CHANGE:
		sim_change(sim, e->subject);
		return;
	case SIM_WAY:
		sim_way_event(sim, e->subject);
		return;
	default:
		sim_ref_event(sim, e);
		return;
	}
	arm(call);
	sim_settle(call->node);
	host_drop(&call->p);
}
