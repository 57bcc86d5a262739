/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Traces as pcapng. The link layer is "raw IP": an endpoint sees the payloads of UDP datagrams, so
 * IP and UDP headers are made up from the addresses of each datagram. Time to live, DF and
 * identification are not those of the network, and fragmented datagrams appear whole. Events become
 * comments: of the packet before them, or of the next packet if they announce one.
 */
#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rxwire/engine.h>
#include <rxwire/error.h>
#include <rxwire/observe.h>

#include "common/cancel.h"
#include "observe/observe.h"

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
#define BLOCK_ROOM	 (IP6_HEADERS + 65536u + (NOTES + 1) * (NOTE_ROOM + 64u) + 512u)

/* Comments of the next packet. */
struct notes {
	unsigned count, more;
	uint64_t at[NOTES];
	char text[NOTES][NOTE_ROOM];
};

struct writer {
	int fd;
	int why;	       /* 0, or the errno of a write that has failed */
	size_t used;	       /* bytes of room */
	uint64_t origin, last; /* times of the first packet (0: none yet) and of the last record */
	bool in_packet;	      /* the block of the latest packet is not ended: comments may follow */
	unsigned notes, more; /* comments of the block; those that it has no room for */
	struct notes ahead;
	size_t made; /* size of the block in `bytes` */
	uint8_t bytes[BLOCK_ROOM];
	uint8_t room[BUFFER];
};

/* ---- blocks ---- */

static void write_room(struct writer *w)
{
	for (size_t at = 0; at < w->used && !w->why;) {
		ssize_t n = write(w->fd, w->room + at, w->used - at);

		if (n > 0)
			at += (size_t)n;
		else if (n == 0)
			w->why = EIO;
		else if (errno != EINTR)
			w->why = errno;
	}
	w->used = 0;
}

static void put_block_bytes(struct writer *w, const void *data, size_t size)
{
	assert(size <= BLOCK_ROOM - w->made);
	memcpy(w->bytes + w->made, data, size);
	w->made += size;
}

/* Numbers have this machine's byte order, as the section's magic says. */
static void put_block_word(struct writer *w, uint32_t v)
{
	put_block_bytes(w, &v, sizeof(v));
}

static void put_block_half(struct writer *w, uint16_t v)
{
	put_block_bytes(w, &v, sizeof(v));
}

static void pad_block(struct writer *w)
{
	while (w->made % 4)
		w->bytes[w->made++] = 0;
}

static void put_block_time(struct writer *w, uint64_t time_ns)
{
	put_block_word(w, (uint32_t)(time_ns >> 32));
	put_block_word(w, (uint32_t)time_ns);
}

static void put_option(struct writer *w, unsigned code, const void *data, size_t size)
{
	put_block_half(w, (uint16_t)code);
	put_block_half(w, (uint16_t)size);
	if (size)
		put_block_bytes(w, data, size);
	pad_block(w);
}

static void put_text_option(struct writer *w, unsigned code, const char *text)
{
	put_option(w, code, text, strlen(text));
}

static void begin_block(struct writer *w, uint32_t type)
{
	assert(!w->in_packet);
	w->made = 0;
	put_block_word(w, type);
	put_block_word(w, 0); /* its length, filled in by end_block() */
}

/* Its length is stored at both ends. */
static void end_block(struct writer *w)
{
	uint32_t size;

	put_option(w, OPT_END, NULL, 0);
	size = (uint32_t)w->made + 4;
	memcpy(w->bytes + 4, &size, 4);
	put_block_word(w, size);
	for (size_t at = 0; at < w->made;) {
		size_t n = BUFFER - w->used;

		if (n > w->made - at)
			n = w->made - at;
		memcpy(w->room + w->used, w->bytes + at, n);
		w->used += n;
		at += n;
		if (w->used == BUFFER)
			write_room(w);
	}
}

static void put_head(struct writer *w, rxw_endpoint *endpoint, unsigned snap)
{
	static const uint8_t nanoseconds = 9;
	char text[128];

	begin_block(w, SECTION);
	put_block_word(w, BYTE_ORDER_MAGIC);
	put_block_half(w, 1);
	put_block_half(w, 0);
	put_block_word(w, UINT32_MAX); /* length of the section: unspecified */
	put_block_word(w, UINT32_MAX);
	snprintf(text, sizeof(text), "rxwire %s", rxw_version());
	put_text_option(w, SHB_APPLICATION, text);
	end_block(w);

	begin_block(w, INTERFACE);
	put_block_half(w, RAW_IP);
	put_block_half(w, 0);
	put_block_word(w, snap + IP6_HEADERS);
	put_text_option(w, IDB_NAME, "rxwire");
	put_text_option(w, IDB_DESCRIPTION, rxw_bound_text(endpoint, text));
	put_option(w, IDB_RESOLUTION, &nanoseconds, 1);
	end_block(w);
}

/* ---- headers of IP and UDP ---- */

/* Bytes in network order. */
static void set_half(uint8_t *to, uint32_t v)
{
	to[0] = (uint8_t)(v >> 8);
	to[1] = (uint8_t)v;
}

static uint32_t add_to_sum(uint32_t sum, const uint8_t *data, size_t size)
{
	for (size_t i = 0; i + 1 < size; i += 2)
		sum += (uint32_t)data[i] << 8 | data[i + 1];
	if (size & 1)
		sum += (uint32_t)data[size - 1] << 8;
	return (sum & 0xffff) + (sum >> 16);
}

static uint16_t fold_sum(uint32_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

/*
 * With a checksum if the whole datagram was recorded. Otherwise it is 0 over IPv4, which means
 * none; over IPv6, where one is required, it is wrong.
 */
static void make_udp_header(const struct rxw_trace_record *r, const uint8_t *addresses, size_t size,
			    uint16_t from, uint16_t to, uint8_t *out)
{
	uint32_t length = 8 + (uint32_t)r->length, sum = IPPROTO_UDP + length;
	uint16_t check;

	memcpy(out, &from, 2);
	memcpy(out + 2, &to, 2);
	set_half(out + 4, length);
	set_half(out + 6, 0);
	if (r->kept < r->length && size == 8)
		return;
	sum = add_to_sum(add_to_sum(add_to_sum(sum, addresses, size), out, 8), r->data, r->kept);
	check = fold_sum(sum);
	set_half(out + 6, check ? check : 0xffff);
}

static size_t make_ip4_headers(const struct rxw_trace_record *r, uint8_t *out)
{
	const struct sockaddr_in *from = (const void *)r->source, *to = (const void *)r->target;

	memset(out, 0, 20);
	out[0] = 0x45;
	out[1] = (uint8_t)r->ecn;
	set_half(out + 2, IP4_HEADERS + (uint32_t)r->length);
	out[6] = 0x40; /* DF */
	out[8] = 64;
	out[9] = IPPROTO_UDP;
	memcpy(out + 12, &from->sin_addr, 4);
	memcpy(out + 16, &to->sin_addr, 4);
	set_half(out + 10, fold_sum(add_to_sum(0, out, 20)));
	make_udp_header(r, out + 12, 8, from->sin_port, to->sin_port, out + 20);
	return IP4_HEADERS;
}

static size_t make_ip6_headers(const struct rxw_trace_record *r, uint8_t *out)
{
	const struct sockaddr_in6 *from = (const void *)r->source, *to = (const void *)r->target;

	memset(out, 0, 40);
	out[0] = 0x60;
	out[1] = (uint8_t)(r->ecn << 4); /* the lower half of the traffic class */
	set_half(out + 4, 8 + (uint32_t)r->length);
	out[6] = IPPROTO_UDP;
	out[7] = 64;
	memcpy(out + 8, &from->sin6_addr, 16);
	memcpy(out + 24, &to->sin6_addr, 16);
	make_udp_header(r, out + 8, 32, from->sin6_port, to->sin6_port, out + 40);
	return IP6_HEADERS;
}

/* ---- packets and their comments ---- */

/* A comment of the block. Times are in seconds since the first packet, as those of packets are shown. */
static void put_note(struct writer *w, uint64_t at, const char *text)
{
	uint64_t ns = at > w->origin ? at - w->origin : w->origin - at;
	char line[NOTE_ROOM + 48];

	if (w->notes == NOTES) {
		w->more++;
		return;
	}
	w->notes++;
	snprintf(line, sizeof(line), "%s%llu.%09llu %.*s", at < w->origin ? "-" : "",
		 (unsigned long long)ns / 1000000000, (unsigned long long)ns % 1000000000,
		 (int)NOTE_ROOM, text);
	put_text_option(w, OPT_COMMENT, line);
}

/* Keep a comment for the next packet. */
static void keep_note(struct notes *n, uint64_t at, const char *text)
{
	if (n->count == NOTES) {
		n->more++;
		return;
	}
	n->at[n->count] = at;
	snprintf(n->text[n->count++], NOTE_ROOM, "%s", text);
}

static void put_kept_notes(struct writer *w)
{
	for (unsigned i = 0; i < w->ahead.count; i++)
		put_note(w, w->ahead.at[i], w->ahead.text[i]);
	w->more += w->ahead.more;
	w->ahead.count = w->ahead.more = 0;
}

static void put_count_of_more(struct writer *w)
{
	char text[64];

	if (w->more) {
		snprintf(text, sizeof(text), "and %u more events", w->more);
		put_text_option(w, OPT_COMMENT, text);
	}
	w->notes = w->more = 0;
}

static void end_packet(struct writer *w)
{
	if (!w->in_packet)
		return;
	put_count_of_more(w);
	end_block(w);
	w->in_packet = false;
}

static void begin_packet(struct writer *w, const struct rxw_trace_record *r)
{
	uint32_t flags = r->kind == RXW_TRACE_SENT ? EPB_OUTBOUND : EPB_INBOUND;
	uint8_t headers[IP6_HEADERS];
	size_t made = r->source->sa_family == AF_INET6 ? make_ip6_headers(r, headers)
						       : make_ip4_headers(r, headers);

	assert(r->kept <= r->length && r->source->sa_family == r->target->sa_family);
	end_packet(w);
	if (!w->origin)
		w->origin = r->time_ns;
	begin_block(w, PACKET);
	w->in_packet = true;
	put_block_word(w, 0);
	put_block_time(w, r->time_ns);
	put_block_word(w, (uint32_t)(made + r->kept));
	put_block_word(w, (uint32_t)(made + r->length));
	put_block_bytes(w, headers, made);
	put_block_bytes(w, r->data, r->kept);
	pad_block(w);
	put_option(w, EPB_FLAGS, &flags, sizeof(flags));
	put_kept_notes(w);
}

static void take_note(struct writer *w, uint64_t at, const char *text, bool announces)
{
	if (w->in_packet && !announces)
		put_note(w, at, text);
	else
		keep_note(&w->ahead, at, text);
}

static int take_record(void *arg, const struct rxw_trace_record *r)
{
	struct writer *w = arg;

	w->last = r->time_ns;
	switch (r->kind) {
	case RXW_TRACE_RECEIVED:
	case RXW_TRACE_SENT:
		begin_packet(w, r);
		break;
	case RXW_TRACE_REFUSED:
		take_note(w, r->time_ns, "a datagram was not sent: the kernel refused it", false);
		break;
	case RXW_TRACE_EVENT:
		take_note(w, r->time_ns, r->text, r->announces);
		break;
	}
	return w->why;
}

/* Comments of a next packet that did not follow go to the last one, or here if there is none. */
static void put_end(struct writer *w, const struct rxw_trace_counts *counts)
{
	if (w->in_packet)
		put_kept_notes(w);
	end_packet(w);
	begin_block(w, STATISTICS);
	put_block_word(w, 0);
	put_block_time(w, w->last);
	put_option(w, ISB_RECEIVED, &counts->packets, 8);
	put_option(w, ISB_DROPPED, &counts->overwritten, 8);
	put_kept_notes(w);
	put_count_of_more(w);
	end_block(w);
	write_room(w);
}

int rxw_trace_write(rxw_endpoint *endpoint, int fd)
{
	struct rxw_trace_counts counts = {.size = sizeof(counts)};
	int rc = rxw_trace_count(endpoint, &counts);
	struct writer *w;
	NOT_CANCELLED;

	if (rc)
		return rc;
	w = calloc(1, sizeof(*w));
	if (!w)
		return -RXW_ENOMEM;
	w->fd = fd;
	put_head(w, endpoint, counts.snap);
	rc = rxw_trace_read(endpoint, take_record, w);
	if (!rc)
		rc = rxw_trace_count(endpoint, &counts);
	if (!rc)
		put_end(w, &counts);
	if (w->why) {
		errno = w->why;
		rc = -RXW_ESYS;
	}
	free(w);
	return rc;
}
