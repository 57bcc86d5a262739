/* SPDX-License-Identifier: BSD-2-Clause */
/* A NAT: a table of mappings, and the rewriting of addresses, ports and checksums. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "nat.h"
#include "packet.h"

#define MAPPINGS   256u /* the oldest is replaced */
#define ADDRESSES  8u
#define FIRST_PORT 20000u
#define PORTS	   40000u

/* Of UDP or TCP. IPv4 addresses have zeros behind them. */
struct end {
	uint8_t address[16];
	uint8_t port[2];
	uint8_t version, protocol;
};

struct mapping {
	struct end inside;
	unsigned outside; /* port; 0: unused */
};

struct link_nat {
	uint8_t address[ADDRESSES][16];
	unsigned version[ADDRESSES], addresses;
	unsigned turn; /* which of the addresses of a version is used */
	unsigned port; /* of the next mapping, from FIRST_PORT */
	struct mapping mapping[MAPPINGS];
	unsigned oldest;
	struct link_nat_counters n;
};

struct link_nat *link_nat_new(void)
{
	return calloc(1, sizeof(struct link_nat));
}

void link_nat_free(struct link_nat *nat)
{
	free(nat);
}

bool link_nat_add(struct link_nat *nat, const char *text)
{
	uint8_t *address;

	if (nat->addresses == ADDRESSES)
		return false;
	address = nat->address[nat->addresses];
	memset(address, 0, sizeof(nat->address[0]));
	if (inet_pton(AF_INET, text, address) == 1)
		nat->version[nat->addresses++] = 4;
	else if (inet_pton(AF_INET6, text, address) == 1)
		nat->version[nat->addresses++] = 6;
	else
		return false;
	return true;
}

/* The outside address in use, or NULL. */
static const uint8_t *outside(const struct link_nat *nat, unsigned version)
{
	unsigned count = 0, turn;

	for (unsigned i = 0; i < nat->addresses; i++)
		count += nat->version[i] == version;
	if (count == 0)
		return NULL;
	turn = nat->turn % count;
	for (unsigned i = 0;; i++)
		if (nat->version[i] == version && turn-- == 0)
			return nat->address[i];
}

static uint32_t size_of(unsigned version)
{
	return version == 4 ? 4 : 16;
}

static uint8_t *address_of(uint8_t *packet, const struct packet_view *v, bool source)
{
	if (v->version == 4)
		return packet + (source ? 12 : 16);
	return packet + (source ? 8 : 24);
}

static void read_end(uint8_t *packet, const struct packet_view *v, bool source, struct end *e)
{
	memset(e, 0, sizeof(*e));
	memcpy(e->address, address_of(packet, v, source), size_of(v->version));
	memcpy(e->port, packet + v->header + (source ? 0 : 2), 2);
	e->version = (uint8_t)v->version;
	e->protocol = v->protocol;
}

/* Replaces bytes, an even number of them, and corrects a checksum, which may be stored complemented. */
static void replace(uint8_t *at, const uint8_t *with, uint32_t length, uint8_t *sum,
		    bool complemented)
{
	uint64_t s = (unsigned)sum[0] << 8 | sum[1];

	if (complemented)
		s = ~s & 0xffff;
	for (uint32_t i = 0; i < length; i += 2) {
		s += ~((unsigned)at[i] << 8 | at[i + 1]) & 0xffff;
		s += (unsigned)with[i] << 8 | with[i + 1];
	}
	s = packet_fold(s);
	if (complemented)
		s = ~s & 0xffff;
	memcpy(at, with, length);
	sum[0] = (uint8_t)(s >> 8);
	sum[1] = (uint8_t)s;
}

static void write_end(uint8_t *packet, const struct packet_view *v, bool source,
		      const uint8_t *address, const uint8_t *port, bool partial)
{
	uint8_t *at = address_of(packet, v, source), *sum = packet + v->sum;
	uint8_t was[16], unused[2] = {0};
	bool without = v->protocol == IPPROTO_UDP && sum[0] == 0 && sum[1] == 0 && !partial;

	memcpy(was, at, size_of(v->version));
	if (v->version == 4)
		replace(at, address, 4, packet + 10, true);
	memcpy(at, was, size_of(v->version));
	replace(at, address, size_of(v->version), without ? unused : sum, !partial);
	/* Ports are not part of the pseudo header. */
	replace(packet + v->header + (source ? 0 : 2), port, 2, without || partial ? unused : sum,
		true);
	if (v->protocol == IPPROTO_UDP && !without && !partial && sum[0] == 0 && sum[1] == 0)
		sum[0] = sum[1] = 0xff;
}

static unsigned map(struct link_nat *nat, const struct end *inside)
{
	struct mapping *m;

	for (unsigned i = 0; i < MAPPINGS; i++) {
		m = &nat->mapping[i];
		if (m->outside != 0 && memcmp(&m->inside, inside, sizeof(*inside)) == 0)
			return m->outside;
	}
	m = &nat->mapping[nat->oldest++ % MAPPINGS];
	m->inside = *inside;
	m->outside = FIRST_PORT + nat->port++ % PORTS;
	nat->n.mappings++;
	return m->outside;
}

bool link_nat_out(struct link_nat *nat, uint8_t *packet, uint32_t length, bool partial)
{
	struct packet_view v = packet_view(packet, length);
	const uint8_t *address = outside(nat, v.version);
	uint8_t port[2];
	struct end inside;
	unsigned number;

	if (address == NULL)
		return true;
	if (v.inner == 0) {
		bool passes = !v.fragment;

		nat->n.refused += !passes;
		return passes;
	}
	read_end(packet, &v, true, &inside);
	number = map(nat, &inside);
	port[0] = (uint8_t)(number >> 8);
	port[1] = (uint8_t)number;
	write_end(packet, &v, true, address, port, partial);
	return true;
}

/* The mapping of a packet to this address and port. */
static const struct mapping *mapping_of(const struct link_nat *nat, const struct end *e)
{
	unsigned port = (unsigned)e->port[0] << 8 | e->port[1];

	for (unsigned i = 0; i < MAPPINGS; i++) {
		const struct mapping *m = &nat->mapping[i];

		if (m->outside == port && port != 0 && m->inside.version == e->version &&
		    m->inside.protocol == e->protocol)
			return m;
	}
	return NULL;
}

static bool is_outside(const struct link_nat *nat, const uint8_t *address, unsigned version)
{
	for (unsigned i = 0; i < nat->addresses; i++)
		if (nat->version[i] == version &&
		    memcmp(nat->address[i], address, size_of(version)) == 0)
			return true;
	return false;
}

/* An ICMP error about a packet that went out: it quotes the outside address and port. */
static bool report_in(struct link_nat *nat, uint8_t *packet, uint32_t length,
		      const struct packet_view *v)
{
	uint32_t at = v->header + 8;
	uint8_t *quoted = packet + at;
	struct packet_view q = {.version = v->version};
	const struct mapping *m;
	struct end e;

	q.header = v->version == 4 ? 20 : 40;
	if (length < at + q.header + 4 || quoted[0] >> 4 != v->version ||
	    (v->version == 4 && (quoted[0] & 15) != 5))
		return true;
	q.protocol = quoted[v->version == 4 ? 9 : 6];
	read_end(quoted, &q, true, &e);
	m = mapping_of(nat, &e);
	if (m == NULL)
		return false;
	/* The checksum of the quoted packet may lie beyond its end; ends do not look at it. */
	memcpy(address_of(quoted, &q, true), m->inside.address, size_of(v->version));
	memcpy(quoted + q.header, m->inside.port, 2);
	memcpy(address_of(packet, v, false), m->inside.address, size_of(v->version));
	packet[v->header + 2] = packet[v->header + 3] = 0;
	if (v->version == 4) {
		uint16_t sum = (uint16_t)~packet_fold(packet_sum(packet + 20, length - 20, 0));

		packet_set_length(packet, v, length);
		packet[22] = (uint8_t)(sum >> 8);
		packet[23] = (uint8_t)sum;
	} else {
		struct packet_view whole = *v;

		whole.sum = 42;
		packet_set_sum(packet, &whole, length, false);
	}
	return true;
}

bool link_nat_in(struct link_nat *nat, uint8_t *packet, uint32_t length, bool partial)
{
	struct packet_view v = packet_view(packet, length);
	const struct mapping *m;
	bool passes = true;
	struct end e;

	if (v.version == 0 || !is_outside(nat, address_of(packet, &v, false), v.version))
		return true;
	if (packet_is_report(packet, length) && !(v.version == 4 && v.header != 20)) {
		passes = report_in(nat, packet, length, &v);
	} else if (v.inner != 0) {
		read_end(packet, &v, false, &e);
		m = mapping_of(nat, &e);
		passes = m != NULL &&
			 memcmp(e.address, outside(nat, v.version), size_of(v.version)) == 0;
		if (passes)
			write_end(packet, &v, false, m->inside.address, m->inside.port, partial);
	} else {
		passes = !v.fragment;
	}
	nat->n.refused += !passes;
	return passes;
}

void link_nat_rebind(struct link_nat *nat)
{
	memset(nat->mapping, 0, sizeof(nat->mapping));
	nat->turn++;
	nat->n.rebindings++;
}

const struct link_nat_counters *link_nat_counters(const struct link_nat *nat)
{
	return &nat->n;
}
