/* SPDX-License-Identifier: BSD-2-Clause */
/* Records of a trace for the application: addresses of datagrams, descriptions of events. */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include <rxwire/error.h>

#include "base/assert.h"
#include "base/path_probe.h"
#include "base/measure.h"
#include "engine/observe/records.h"

#define TEXT_ROOM  288u
#define KNOWN_ENDS 64u /* entries: the local address that a peer uses */

struct reading {
	const struct rxw_snapshot *snapshot;
	struct {
		uint8_t flags, peer[16], local[16];
	} known[KNOWN_ENDS];
};

/* ---- addresses ---- */

static unsigned choose_known_end(const uint8_t peer[16])
{
	unsigned h = 0;

	for (unsigned i = 0; i < 16; i++)
		h = h * 31 + peer[i];
	return h % KNOWN_ENDS;
}

/*
 * Clients often send from an address that the kernel chooses. It is known from the packets received
 * there.
 */
static void learn_local_address(struct reading *s, const struct rxw_record *r,
				const struct rxw_record_packet *p)
{
	unsigned i = choose_known_end(p->peer);

	if (!(r->flags & RXW_RECORD_LOCAL))
		return;
	s->known[i].flags = r->flags;
	memcpy(s->known[i].peer, p->peer, 16);
	memcpy(s->known[i].local, p->local, 16);
}

static void set_address(struct rxw_addr *a, bool six, const uint8_t *bytes, uint16_t port)
{
	memset(a, 0, sizeof(*a));
	if (six) {
		a->u.in6.sin6_family = AF_INET6;
		a->u.in6.sin6_port = htons(port);
		memcpy(&a->u.in6.sin6_addr, bytes, 16);
		a->len = sizeof(a->u.in6);
	} else {
		a->u.in.sin_family = AF_INET;
		a->u.in.sin_port = htons(port);
		memcpy(&a->u.in.sin_addr, bytes, 4);
		a->len = sizeof(a->u.in);
	}
}

/* The address of the endpoint that the datagram was sent from, or arrived at. */
static const uint8_t *find_local_address(const struct reading *s, const struct rxw_record *r,
					 const struct rxw_record_packet *p)
{
	static const uint8_t any[16];
	const struct rxw_addr *bound = &s->snapshot->bound;
	bool six = r->flags & RXW_RECORD_IPV6;
	const void *at =
		six ? (const void *)&bound->u.in6.sin6_addr : (const void *)&bound->u.in.sin_addr;
	unsigned i = choose_known_end(p->peer);

	if (r->flags & RXW_RECORD_LOCAL)
		return p->local;
	if (memcmp(at, any, six ? 16 : 4) != 0)
		return at;
	if (((s->known[i].flags ^ r->flags) & RXW_RECORD_IPV6) == 0 &&
	    memcmp(s->known[i].peer, p->peer, 16) == 0)
		return s->known[i].local;
	if (six ? IN6_IS_ADDR_LOOPBACK((const struct in6_addr *)(const void *)p->peer)
		: p->peer[0] == 127)
		return p->peer;
	return any;
}

/* ---- events ---- */

static const char *format_duration(uint64_t ns, char text[32])
{
	if (ns < 10 * 1000000)
		snprintf(text, 32, "%llu us", (unsigned long long)ns / 1000);
	else
		snprintf(text, 32, "%llu ms", (unsigned long long)ns / 1000000);
	return text;
}

static void describe_end(const struct rxw_trace_event *e, char *text, size_t size)
{
	int32_t code = (int32_t)e->a;
	char took[32];

	format_duration(e->b, took);
	if (!code)
		snprintf(text, size, "succeeded after %s", took);
	else
		snprintf(text, size, "failed after %s with %d, %s%s", took, code,
			 rxw_code_text(code), e->c == RXW_ORIGIN_PEER ? " (from the peer)" : "");
}

/* Old fields keep their places: programs read them. */
static void describe_window(const struct rxw_trace_event *e, char *text, size_t size)
{
	int n = snprintf(text, size,
			 "congestion window %u, ssthresh %u, the peer's window %u, in flight %u",
			 (unsigned)e->a, (unsigned)e->b, (unsigned)e->c, (unsigned)e->d);

	assert(n > 0 && (size_t)n < size);
	if (e->controller && e->phase)
		snprintf(text + n, size - (size_t)n,
			 ", RTT %llu us, least %llu us, paced %llu packets/s, %s: %s",
			 (unsigned long long)e->srtt / 1000,
			 (unsigned long long)e->least_rtt / 1000,
			 e->interval ? 1000000000ull / e->interval : 0, e->controller, e->phase);
}

static void describe_call(const struct rxw_trace_event *e, char *text, size_t size)
{
	char took[32];

	text[0] = 0;
	switch (e->kind) {
	case RXW_TRACE_CALL_BEGIN:
		snprintf(text, size, "begins: %s, service %u, security %u",
			 e->b ? "client" : "server", (unsigned)e->a, (unsigned)e->c);
		break;
	case RXW_TRACE_CALL_HANDLER:
		snprintf(text, size, "handler started after %s", format_duration(e->a, took));
		break;
	case RXW_TRACE_CALL_END:
		describe_end(e, text, size);
		break;
	case RXW_TRACE_RETRANSMIT:
		snprintf(text, size, "retransmits %u packets from %u on", (unsigned)e->b,
			 (unsigned)e->a);
		break;
	case RXW_TRACE_TIMEOUT:
		snprintf(text, size, "retransmission timeout, after %u others", (unsigned)e->a);
		break;
	case RXW_TRACE_SPURIOUS:
		snprintf(text, size, "false loss: a packet was late by %u packets", (unsigned)e->a);
		break;
	case RXW_TRACE_WINDOW:
		describe_window(e, text, size);
		break;
	case RXW_TRACE_ECN:
		snprintf(text, size, "ECN: %s, %u packets marked%s",
			 rxw_ecn_name((enum rxw_ecn_state)e->a), (unsigned)e->b,
			 e->c ? ", the sender reacts" : "");
		break;
	case RXW_TRACE_DROP:
		break;
	}
}

static void describe_event(const struct rxw_trace_event *e, char text[TEXT_ROOM])
{
	int n;

	if (e->kind == RXW_TRACE_DROP) {
		assert(e->a < RXW_DROP_COUNT);
		snprintf(text, TEXT_ROOM, "dropped %u: %s", (unsigned)e->b, rxw_drop_names[e->a]);
		return;
	}
	n = snprintf(text, TEXT_ROOM, "call %08x.%08x #%u ", e->epoch, e->cid, e->call);
	assert(n > 0 && n < (int)TEXT_ROOM);
	describe_call(e, text + n, TEXT_ROOM - (size_t)n);
}

/* ---- records ---- */

struct shown {
	int (*see)(void *arg, const struct rxw_trace_record *record);
	void *arg;
};

static int show_packet(const struct reading *s, const struct rxw_record *r, const uint8_t *body,
		       const struct shown *to)
{
	bool sent = r->flags & RXW_RECORD_SENT, six = r->flags & RXW_RECORD_IPV6;
	struct rxw_addr peer, local;
	struct rxw_record_packet p;

	memcpy(&p, body, sizeof(p));
	assert(p.kept <= p.length && sizeof(*r) + sizeof(p) + p.kept <= r->size);
	set_address(&peer, six, p.peer, r->port);
	set_address(&local, six, find_local_address(s, r, &p), rxw_addr_port(&s->snapshot->bound));
	return to->see(to->arg, &(struct rxw_trace_record){
					.kind = r->flags & RXW_RECORD_REFUSED ? RXW_TRACE_REFUSED
						: sent			      ? RXW_TRACE_SENT
									      : RXW_TRACE_RECEIVED,
					.time_ns = r->at + (uint64_t)s->snapshot->wall,
					.source = sent ? &local.u.sa : &peer.u.sa,
					.target = sent ? &peer.u.sa : &local.u.sa,
					.ecn = (r->flags & RXW_RECORD_ECN) >> RXW_RECORD_ECN_SHIFT,
					.length = p.length,
					.kept = p.kept,
					.data = body + sizeof(p)});
}

static int show_event(const struct reading *s, const struct rxw_record *r, const uint8_t *body,
		      const struct shown *to)
{
	struct rxw_trace_event e;
	char text[TEXT_ROOM];

	assert(sizeof(*r) + sizeof(e) <= r->size);
	memcpy(&e, body, sizeof(e));
	describe_event(&e, text);
	return to->see(to->arg, &(struct rxw_trace_record){
					.kind = RXW_TRACE_EVENT,
					.time_ns = r->at + (uint64_t)s->snapshot->wall,
					.text = text,
					.announces = e.kind == RXW_TRACE_RETRANSMIT ||
						     (e.kind == RXW_TRACE_CALL_BEGIN && e.b)});
}

/* The header of the record at an offset. */
static struct rxw_record read_record(const struct rxw_snapshot *s, size_t at)
{
	struct rxw_record r;

	assert(s->size - at >= sizeof(r));
	memcpy(&r, s->records + at, sizeof(r));
	assert(r.size >= sizeof(r) && r.size % RXW_RECORD_ALIGN == 0 && r.size <= s->size - at);
	return r;
}

static void learn_local_addresses(struct reading *s)
{
	struct rxw_record_packet p;
	struct rxw_record r;

	for (size_t at = 0; at < s->snapshot->size; at += r.size) {
		r = read_record(s->snapshot, at);
		if (r.kind != RXW_RECORD_PACKET)
			continue;
		memcpy(&p, s->snapshot->records + at + sizeof(r), sizeof(p));
		learn_local_address(s, &r, &p);
	}
}

__attribute__((cold)) int
rxw_snapshot_show(const struct rxw_snapshot *snapshot,
		  int (*see)(void *arg, const struct rxw_trace_record *record), void *arg)
{
	struct reading s = {.snapshot = snapshot};
	const struct shown to = {.see = see, .arg = arg};
	struct rxw_record r;

	learn_local_addresses(&s);
	for (size_t at = 0; at < snapshot->size; at += r.size) {
		const uint8_t *body = snapshot->records + at + sizeof(r);
		int rc;

		r = read_record(snapshot, at);
		rc = r.kind == RXW_RECORD_PACKET ? show_packet(&s, &r, body, &to)
						 : show_event(&s, &r, body, &to);
		if (rc)
			return rc;
	}
	return 0;
}
