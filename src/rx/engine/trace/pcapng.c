/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Traces as pcapng. The link layer is "raw IP": an endpoint sees the payloads of UDP datagrams, so
 * IP and UDP headers are made up from the addresses of each datagram. Time to live, DF and
 * identification are not those of the network, and fragmented datagrams appear whole. Events become
 * comments: of the packet before them, or of the next packet if they announce one.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rxwire/engine.h>
#include <rxwire/error.h>

#include "base/ecn.h"
#include "base/wire.h"
#include "engine/trace/pcapng.h"

enum {
	SECTION = 0x0a0d0d0a,
	INTERFACE = 1,
	STATISTICS = 5,
	PACKET = 6
};
enum {
	OPT_END = 0,
	OPT_COMMENT = 1
};
enum {
	SHB_APPLICATION = 4
};
enum {
	IDB_NAME = 2,
	IDB_DESCRIPTION = 3,
	IDB_RESOLUTION = 9
};
enum {
	EPB_FLAGS = 2,
	EPB_INBOUND = 1,
	EPB_OUTBOUND = 2
};
enum {
	ISB_RECEIVED = 4,
	ISB_DROPPED = 5
};

#define BYTE_ORDER_MAGIC 0x1a2b3c4du
#define RAW_IP		 101
#define IP4_HEADERS	 28u
#define IP6_HEADERS	 48u
#define NOTES		 32u /* comments of one packet; further ones are counted */
#define NOTE_ROOM	 288u
#define BUFFER		 65536u
#define BLOCK_ROOM	 (IP6_HEADERS + 65536u + NOTES * (NOTE_ROOM + 64u) + 512u)
#define ENDS		 64u /* entries: the local address that a peer uses */

struct notes {
	unsigned count, more;
	uint64_t at[NOTES];
	char text[NOTES][NOTE_ROOM];
};

struct writer {
	int fd;
	const struct rxw_snapshot *s;
	bool failed;	 /* errno says why */
	size_t used;	 /* bytes of room */
	uint64_t origin; /* time of the first packet */
	struct {
		uint8_t flags, peer[16], local[16];
	} ends[ENDS];
	/* The pending packet, at offset `waiting` in the records: further comments may follow. */
	bool waits;
	size_t waiting;
	struct notes behind, ahead; /* comments of the pending packet; of the next one */
	size_t made;		    /* size of the block in `bytes` */
	uint8_t bytes[BLOCK_ROOM];
	uint8_t room[BUFFER];
};

/* ---- blocks ---- */

static void flush(struct writer *w)
{
	for (size_t at = 0; at < w->used && !w->failed;) {
		ssize_t n = write(w->fd, w->room + at, w->used - at);

		if (n > 0) {
			at += (size_t)n;
		} else if (n == 0) {
			errno = EIO;
			w->failed = true;
		} else if (errno != EINTR) {
			w->failed = true;
		}
	}
	w->used = 0;
}

static void put(struct writer *w, const void *data, size_t size)
{
	memcpy(w->bytes + w->made, data, size);
	w->made += size;
}

/* Numbers have this machine's byte order, as the section's magic says. */
static void put32(struct writer *w, uint32_t v)
{
	put(w, &v, sizeof(v));
}

static void put16(struct writer *w, uint16_t v)
{
	put(w, &v, sizeof(v));
}

static void pad(struct writer *w)
{
	while (w->made % 4)
		w->bytes[w->made++] = 0;
}

static void put_time(struct writer *w, uint64_t at)
{
	uint64_t wall = at + (uint64_t)w->s->wall;

	put32(w, (uint32_t)(wall >> 32));
	put32(w, (uint32_t)wall);
}

static void option(struct writer *w, unsigned code, const void *data, size_t size)
{
	put16(w, (uint16_t)code);
	put16(w, (uint16_t)size);
	if (size)
		put(w, data, size);
	pad(w);
}

static void text_option(struct writer *w, unsigned code, const char *text)
{
	option(w, code, text, strlen(text));
}

static void begin(struct writer *w, uint32_t type)
{
	w->made = 0;
	put32(w, type);
	put32(w, 0); /* its length, filled in by end() */
}

/* Ends the block: its length is stored at both ends. */
static void end(struct writer *w)
{
	uint32_t size = (uint32_t)w->made + 4;

	memcpy(w->bytes + 4, &size, 4);
	put32(w, size);
	for (size_t at = 0; at < w->made;) {
		size_t n = BUFFER - w->used;

		if (n > w->made - at)
			n = w->made - at;
		memcpy(w->room + w->used, w->bytes + at, n);
		w->used += n;
		at += n;
		if (w->used == BUFFER)
			flush(w);
	}
}

static void put_head(struct writer *w)
{
	static const uint8_t nanoseconds = 9;
	char text[128];

	begin(w, SECTION);
	put32(w, BYTE_ORDER_MAGIC);
	put16(w, 1);
	put16(w, 0);
	put32(w, UINT32_MAX); /* length of the section: unspecified */
	put32(w, UINT32_MAX);
	snprintf(text, sizeof(text), "rxwire %s", rxw_version());
	text_option(w, SHB_APPLICATION, text);
	option(w, OPT_END, NULL, 0);
	end(w);

	begin(w, INTERFACE);
	put16(w, RAW_IP);
	put16(w, 0);
	put32(w, w->s->snap + IP6_HEADERS);
	text_option(w, IDB_NAME, "rxwire");
	text_option(w, IDB_DESCRIPTION, rxw_addr_text(&w->s->bound, text, sizeof(text)));
	option(w, IDB_RESOLUTION, &nanoseconds, 1);
	option(w, OPT_END, NULL, 0);
	end(w);
}

/* ---- headers of IP and UDP ---- */

static uint32_t sum16(uint32_t sum, const uint8_t *data, size_t size)
{
	for (size_t i = 0; i + 1 < size; i += 2)
		sum += (uint32_t)data[i] << 8 | data[i + 1];
	if (size & 1)
		sum += (uint32_t)data[size - 1] << 8;
	return (sum & 0xffff) + (sum >> 16);
}

static uint16_t fold(uint32_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

static unsigned end_of(const uint8_t peer[16])
{
	unsigned h = 0;

	for (unsigned i = 0; i < 16; i++)
		h = h * 31 + peer[i];
	return h % ENDS;
}

/*
 * Clients often send from an address that the kernel chooses. It is known from the packets received
 * there.
 */
static void learn_local_address(struct writer *w, const struct rxw_record *r,
				const struct rxw_record_packet *p)
{
	unsigned i = end_of(p->peer);

	if (!(r->flags & RXW_RECORD_LOCAL))
		return;
	w->ends[i].flags = r->flags;
	memcpy(w->ends[i].peer, p->peer, 16);
	memcpy(w->ends[i].local, p->local, 16);
}

static void local_address(const struct writer *w, const struct rxw_record *r,
			  const struct rxw_record_packet *p, uint8_t *to)
{
	bool six = r->flags & RXW_RECORD_IPV6;
	size_t size = six ? 16 : 4;
	const struct rxw_addr *bound = &w->s->bound;
	const void *at =
		six ? (const void *)&bound->u.in6.sin6_addr : (const void *)&bound->u.in.sin_addr;
	static const uint8_t any[16];
	unsigned i = end_of(p->peer);

	if (r->flags & RXW_RECORD_LOCAL)
		memcpy(to, p->local, size);
	else if (memcmp(at, any, size) != 0)
		memcpy(to, at, size);
	else if (((w->ends[i].flags ^ r->flags) & RXW_RECORD_IPV6) == 0 &&
		 memcmp(w->ends[i].peer, p->peer, 16) == 0)
		memcpy(to, w->ends[i].local, size);
	else if (six ? IN6_IS_ADDR_LOOPBACK((const struct in6_addr *)(const void *)p->peer)
		     : p->peer[0] == 127)
		memcpy(to, p->peer, size);
	else
		memset(to, 0, size);
}

/*
 * The UDP header, with a checksum if the whole datagram was recorded. Otherwise it is 0 over IPv4,
 * which means none; over IPv6, where one is required, it is wrong.
 */
static void udp_header(const struct writer *w, const struct rxw_record *r,
		       const struct rxw_record_packet *p, const uint8_t *addresses, size_t size,
		       const uint8_t *data, uint8_t *out)
{
	uint16_t here = rxw_addr_port(&w->s->bound), check;
	uint32_t length = 8 + p->length, sum = IPPROTO_UDP + length;

	rxw_put16(out, r->flags & RXW_RECORD_SENT ? here : r->port);
	rxw_put16(out + 2, r->flags & RXW_RECORD_SENT ? r->port : here);
	rxw_put16(out + 4, (uint16_t)length);
	rxw_put16(out + 6, 0);
	if (p->kept < p->length && size == 8)
		return;
	sum = sum16(sum16(sum16(sum, addresses, size), out, 8), data, p->kept);
	check = fold(sum);
	rxw_put16(out + 6, check ? check : 0xffff);
}

static size_t ip4_headers(const struct writer *w, const struct rxw_record *r,
			  const struct rxw_record_packet *p, const uint8_t *data, uint8_t *out)
{
	bool sent = r->flags & RXW_RECORD_SENT;

	memset(out, 0, 20);
	out[0] = 0x45;
	out[1] = (r->flags & RXW_RECORD_ECN) >> RXW_RECORD_ECN_SHIFT;
	rxw_put16(out + 2, (uint16_t)(IP4_HEADERS + p->length));
	out[6] = 0x40; /* DF */
	out[8] = 64;
	out[9] = IPPROTO_UDP;
	local_address(w, r, p, out + (sent ? 12 : 16));
	memcpy(out + (sent ? 16 : 12), p->peer, 4);
	rxw_put16(out + 10, fold(sum16(0, out, 20)));
	udp_header(w, r, p, out + 12, 8, data, out + 20);
	return IP4_HEADERS;
}

static size_t ip6_headers(const struct writer *w, const struct rxw_record *r,
			  const struct rxw_record_packet *p, const uint8_t *data, uint8_t *out)
{
	bool sent = r->flags & RXW_RECORD_SENT;

	memset(out, 0, 40);
	out[0] = 0x60;
	/* The lower half of the traffic class. */
	out[1] = r->flags & RXW_RECORD_ECN;
	rxw_put16(out + 4, (uint16_t)(8 + p->length));
	out[6] = IPPROTO_UDP;
	out[7] = 64;
	local_address(w, r, p, out + (sent ? 8 : 24));
	memcpy(out + (sent ? 24 : 8), p->peer, 16);
	udp_header(w, r, p, out + 8, 32, data, out + 40);
	return IP6_HEADERS;
}

/* ---- packets and their comments ---- */

/* The time of an event is shown like those of packets: in seconds since the first one. */
static void put_note(struct writer *w, uint64_t at, const char *text)
{
	uint64_t ns = at > w->origin ? at - w->origin : w->origin - at;
	char line[NOTE_ROOM + 48];

	snprintf(line, sizeof(line), "%s%llu.%09llu %s", at < w->origin ? "-" : "",
		 (unsigned long long)ns / 1000000000, (unsigned long long)ns % 1000000000, text);
	text_option(w, OPT_COMMENT, line);
}

static void put_notes(struct writer *w, struct notes *n)
{
	char text[64];

	for (unsigned i = 0; i < n->count; i++)
		put_note(w, n->at[i], n->text[i]);
	if (n->more) {
		snprintf(text, sizeof(text), "and %u more events", n->more);
		text_option(w, OPT_COMMENT, text);
	}
	n->count = n->more = 0;
}

static void put_statistics(struct writer *w, uint64_t at)
{
	begin(w, STATISTICS);
	put32(w, 0);
	put_time(w, at);
	option(w, ISB_RECEIVED, &w->s->packets, 8);
	option(w, ISB_DROPPED, &w->s->overwritten, 8);
	put_notes(w, &w->behind); /* if there are no packets */
	option(w, OPT_END, NULL, 0);
	end(w);
}

static void note(struct notes *n, uint64_t at, const char *text)
{
	if (n->count == NOTES) {
		n->more++;
		return;
	}
	n->at[n->count] = at;
	snprintf(n->text[n->count++], NOTE_ROOM, "%s", text);
}

static void put_packet(struct writer *w)
{
	const uint8_t *at = w->s->records + w->waiting, *data;
	struct rxw_record_packet p;
	struct rxw_record r;
	uint8_t headers[IP6_HEADERS];
	uint32_t made, flags;

	if (!w->waits)
		return;
	w->waits = false;
	memcpy(&r, at, sizeof(r));
	memcpy(&p, at + sizeof(r), sizeof(p));
	data = at + sizeof(r) + sizeof(p);
	made = (uint32_t)(r.flags & RXW_RECORD_IPV6 ? ip6_headers(w, &r, &p, data, headers)
						    : ip4_headers(w, &r, &p, data, headers));
	flags = r.flags & RXW_RECORD_SENT ? EPB_OUTBOUND : EPB_INBOUND;
	begin(w, PACKET);
	put32(w, 0);
	put_time(w, r.at);
	put32(w, made + p.kept);
	put32(w, made + p.length);
	put(w, headers, made);
	put(w, data, p.kept);
	pad(w);
	option(w, EPB_FLAGS, &flags, sizeof(flags));
	put_notes(w, &w->behind);
	option(w, OPT_END, NULL, 0);
	end(w);
}

static void take_packet(struct writer *w, const struct rxw_record *r, size_t at)
{
	if (r->flags & RXW_RECORD_REFUSED) {
		note(w->waits ? &w->behind : &w->ahead, r->at,
		     "a datagram was not sent: the kernel refused it");
		return;
	}
	put_packet(w);
	w->waits = true;
	w->waiting = at;
	w->behind = w->ahead;
	w->ahead.count = w->ahead.more = 0;
}

static const char *duration_text(uint64_t ns, char *text, size_t size)
{
	if (ns < 10000000)
		snprintf(text, size, "%llu us", (unsigned long long)ns / 1000);
	else
		snprintf(text, size, "%llu ms", (unsigned long long)ns / 1000000);
	return text;
}

static void end_text(const struct rxw_trace_event *e, char *text, size_t size)
{
	int32_t code = (int32_t)e->a;
	char took[32];

	duration_text(e->b, took, sizeof(took));
	if (!code)
		snprintf(text, size, "succeeded after %s", took);
	else
		snprintf(text, size, "failed after %s with %d, %s%s", took, code,
			 rxw_code_text(code), e->c == RXW_ORIGIN_PEER ? " (from the peer)" : "");
}

/* Old fields keep their places: programs read them. */
static void window_text(const struct rxw_trace_event *e, char *text, size_t size)
{
	int n = snprintf(text, size,
			 "congestion window %u, ssthresh %u, the peer's window %u, in flight %u",
			 (unsigned)e->a, (unsigned)e->b, (unsigned)e->c, (unsigned)e->d);

	if (e->controller && e->phase && n > 0 && (size_t)n < size)
		snprintf(text + n, size - (size_t)n,
			 ", RTT %llu us, least %llu us, paced %llu packets/s, %s: %s",
			 (unsigned long long)e->srtt / 1000,
			 (unsigned long long)e->least_rtt / 1000,
			 e->interval ? 1000000000ull / e->interval : 0, e->controller, e->phase);
}

static void event_text(const struct rxw_trace_event *e, char *text, size_t size)
{
	char took[32];

	text[0] = 0;
	switch (e->kind) {
	case RXW_TRACE_CALL_BEGIN:
		snprintf(text, size, "begins: %s, service %u, security %u",
			 e->b ? "client" : "server", (unsigned)e->a, (unsigned)e->c);
		break;
	case RXW_TRACE_CALL_HANDLER:
		snprintf(text, size, "handler started after %s",
			 duration_text(e->a, took, sizeof(took)));
		break;
	case RXW_TRACE_CALL_END:
		end_text(e, text, size);
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
		window_text(e, text, size);
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

__attribute__((cold)) void rxw_tracefile_text(const struct rxw_trace_event *e, char *text,
					      size_t size)
{
	char what[NOTE_ROOM];

	if (e->kind == RXW_TRACE_DROP) {
		snprintf(text, size, "dropped %u: %s", (unsigned)e->b,
			 e->a < RXW_DROP_COUNT ? rxw_drop_names[e->a] : "unknown");
		return;
	}
	event_text(e, what, sizeof(what));
	snprintf(text, size, "call %08x.%08x #%u %s", e->epoch, e->cid, e->call, what);
}

static void take_event(struct writer *w, const struct rxw_record *r,
		       const struct rxw_trace_event *e)
{
	bool sends = e->kind == RXW_TRACE_RETRANSMIT || (e->kind == RXW_TRACE_CALL_BEGIN && e->b);
	char text[NOTE_ROOM];

	rxw_tracefile_text(e, text, sizeof(text));
	note(sends || !w->waits ? &w->ahead : &w->behind, r->at, text);
}

/* Comments of a next packet that did not follow go to the last one. */
static void finish(struct writer *w)
{
	for (unsigned i = 0; i < w->ahead.count; i++)
		note(&w->behind, w->ahead.at[i], w->ahead.text[i]);
	w->behind.more += w->ahead.more;
	put_packet(w);
}

/* Collects the local addresses and the time of the first packet, before anything is written. */
static void scan(struct writer *w)
{
	const struct rxw_snapshot *s = w->s;
	struct rxw_record_packet p;
	struct rxw_record r;
	bool any = false;

	for (size_t at = 0; at < s->size; at += r.size) {
		memcpy(&r, s->records + at, sizeof(r));
		if (r.kind != RXW_RECORD_PACKET)
			continue;
		memcpy(&p, s->records + at + sizeof(r), sizeof(p));
		learn_local_address(w, &r, &p);
		if (!any && !(r.flags & RXW_RECORD_REFUSED)) {
			w->origin = r.at;
			any = true;
		}
	}
}

__attribute__((cold)) int rxw_tracefile_write(int fd, const struct rxw_snapshot *s)
{
	struct writer *w = calloc(1, sizeof(*w));
	uint64_t last = 0;
	int why;
	bool failed;

	if (!w)
		return -RXW_ENOMEM;
	w->fd = fd;
	w->s = s;
	scan(w);
	put_head(w);
	for (size_t at = 0; at < s->size && !w->failed;) {
		struct rxw_record r;
		struct rxw_trace_event e;

		memcpy(&r, s->records + at, sizeof(r));
		last = r.at;
		if (r.kind == RXW_RECORD_PACKET) {
			take_packet(w, &r, at);
		} else {
			memcpy(&e, s->records + at + sizeof(r), sizeof(e));
			take_event(w, &r, &e);
		}
		at += r.size;
	}
	finish(w);
	put_statistics(w, last);
	flush(w);
	why = errno;
	failed = w->failed;
	free(w);
	errno = why;
	return failed ? -RXW_ESYS : 0;
}
