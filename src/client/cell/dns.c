/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Location servers of a cell by DNS: SRV records, or AFSDB records if there are none (afs-location
 * 1.1, K-003).
 */
#include <arpa/inet.h>
#include <arpa/nameser.h>
#include <assert.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <resolv.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "afs/numbers.h"
#include "client/cell/cell.h"
#include "common/clock.h"

#define REPLY_MAX     8192
#define TYPE_AFSDB    18
#define AFSDB_SERVERS 1 /* subtype: location servers at the usual port */

/* ---- replies ---- */

/* Steps over a question or reads the head of a record. -1: malformed. */
static int skip_name(const struct cl_dns_reply *r, size_t *at)
{
	char name[NS_MAXDNAME];
	int used = dn_expand(r->data, r->data + r->length, r->data + *at, name, sizeof(name));

	if (used < 0 || *at + (size_t)used > r->length)
		return -1;
	*at += (size_t)used;
	return 0;
}

static uint16_t dns_word(const struct cl_dns_reply *r, size_t at)
{
	return (uint16_t)(r->data[at] << 8 | r->data[at + 1]);
}

/* A host name within the contents of a record. False: malformed, or ".". */
static bool take_host(const struct cl_dns_reply *r, size_t at, char host[CL_CELL_NAME])
{
	return dn_expand(r->data, r->data + r->length, r->data + at, host, CL_CELL_NAME) > 0 &&
	       host[0] != 0;
}

/* One record of the answer. *at is behind its name. -1: malformed; 0: another type; 1: *record. */
static int take_dns_record(const struct cl_dns_reply *r, size_t *at, uint16_t type,
			   struct cl_dns_record *record)
{
	size_t data, size;

	if (*at + 10 > r->length)
		return -1;
	size = dns_word(r, *at + 8);
	data = *at + 10;
	if (data + size > r->length)
		return -1;
	*record = (struct cl_dns_record){0};
	record->ttl_s = (uint32_t)dns_word(r, *at + 4) << 16 | dns_word(r, *at + 6);
	if (dns_word(r, *at) != type || dns_word(r, *at + 2) != ns_c_in) {
		*at = data + size;
		return 0;
	}
	*at = data + size;
	switch (type) {
	case ns_t_srv:
		if (size < 7)
			return -1;
		record->priority = dns_word(r, data);
		record->weight = dns_word(r, data + 2);
		record->port = dns_word(r, data + 4);
		return take_host(r, data + 6, record->host);
	case TYPE_AFSDB:
		if (size < 3)
			return -1;
		record->port = AFS_PORT_VL;
		return dns_word(r, data) == AFSDB_SERVERS && take_host(r, data + 2, record->host);
	case ns_t_a:
	case ns_t_aaaa:
		record->size = type == ns_t_a ? 4 : 16;
		if (size != record->size)
			return -1;
		memcpy(record->address, r->data + data, size);
		return 1;
	default:
		return 0;
	}
}

int cl_cell_read_dns(const struct cl_dns_reply *r, uint16_t type,
		     struct cl_dns_record records[CL_CELL_SERVERS])
{
	size_t at = NS_HFIXEDSZ;
	int count = 0;
	uint16_t questions, answers;

	if (r->length < NS_HFIXEDSZ)
		return -EIO;
	questions = dns_word(r, 4);
	answers = dns_word(r, 6);
	for (; questions > 0; questions--) {
		if (skip_name(r, &at) < 0 || at + NS_QFIXEDSZ > r->length)
			return -EIO;
		at += NS_QFIXEDSZ;
	}
	for (; answers > 0 && count < CL_CELL_SERVERS; answers--) {
		int rc = skip_name(r, &at);

		if (rc == 0)
			rc = take_dns_record(r, &at, type, &records[count]);
		if (rc < 0)
			return -EIO;
		count += rc;
	}
	return count;
}

/* ---- questions ---- */

#ifndef __GLIBC__
/* C libraries without states of their own for each thread: their limits of time hold. */
#	define res_ninit(state)       (0)
#	define res_nclose(state)      ((void)(state))
#	define res_nquery(state, ...) res_query(__VA_ARGS__)
#	define has_no_records(state)  (h_errno == HOST_NOT_FOUND || h_errno == NO_DATA)
#else
#	define has_no_records(state) \
		((state)->res_h_errno == HOST_NOT_FOUND || (state)->res_h_errno == NO_DATA)
#endif

/* Questions with one time limit for all of them. */
struct asker {
	struct __res_state state;
	uint64_t until; /* monotonic_ns() */
};

/*
 * Limits one question to what is left, however many name servers there are. False: nothing is left.
 */
static bool limit_question(struct asker *asker)
{
	uint64_t now = monotonic_ns();
	int servers = asker->state.nscount > 0 ? asker->state.nscount : 1;
	uint64_t left_s;

	if (now >= asker->until)
		return false;
	left_s = (asker->until - now) / NS_PER_S;
	asker->state.retry = left_s >= 4 ? 2 : 1;
	asker->state.retrans = (int)(left_s / (uint64_t)(servers * asker->state.retry));
	if (asker->state.retrans < 1)
		asker->state.retrans = 1;
	if (asker->state.retrans > 3)
		asker->state.retrans = 3;
	return true;
}

/*
 * The records of a name. Their number; 0: there are none; -ETIMEDOUT, -EIO: no answer, or none that
 * can be read.
 */
static int ask_records(struct asker *asker, const char *name, uint16_t type,
		       struct cl_dns_record records[CL_CELL_SERVERS], uint32_t *ttl_s)
{
	uint8_t data[REPLY_MAX];
	struct cl_dns_reply reply = {.data = data};
	int n, count;

	if (!limit_question(asker))
		return -ETIMEDOUT;
	n = res_nquery(&asker->state, name, ns_c_in, type, data, sizeof(data));
	if (n < 0)
		return has_no_records(&asker->state) ? 0 : -ETIMEDOUT;
	reply.length = (size_t)n < sizeof(data) ? (size_t)n : sizeof(data);
	count = cl_cell_read_dns(&reply, type, records);
	for (int i = 0; i < count; i++)
		if (i == 0 || records[i].ttl_s < *ttl_s)
			*ttl_s = records[i].ttl_s;
	return count;
}

static void set_server_address(struct cl_cell_server *server, const struct cl_dns_record *a,
			       uint16_t port)
{
	struct sockaddr_in sin = {.sin_family = AF_INET, .sin_port = htons(port)};
	struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons(port)};

	if (a->size == 4) {
		memcpy(&sin.sin_addr, a->address, 4);
		memcpy(&server->address, &sin, sizeof(sin));
		server->len = sizeof(sin);
	} else {
		assert(a->size == 16);
		memcpy(&six.sin6_addr, a->address, 16);
		memcpy(&server->address, &six, sizeof(six));
		server->len = sizeof(six);
	}
}

/* The address of a host of a record. False: it has none. */
static bool find_server_address(struct asker *asker, const struct cl_dns_record *record,
				struct cl_cell_server *server, uint32_t *ttl_s)
{
	struct cl_dns_record found[CL_CELL_SERVERS];
	uint32_t own = UINT32_MAX;
	int count = ask_records(asker, record->host, ns_t_a, found, &own);

	if (count <= 0)
		count = ask_records(asker, record->host, ns_t_aaaa, found, &own);
	if (count <= 0)
		return false;
	*server = (struct cl_cell_server){.priority = record->priority, .weight = record->weight};
	set_server_address(server, &found[0], record->port);
	if (own < *ttl_s)
		*ttl_s = own;
	return true;
}

/* Lower priorities first, of equal ones the greater weight. */
static int compare_dns_records(const void *a, const void *b)
{
	const struct cl_dns_record *x = a, *y = b;

	if (x->priority != y->priority)
		return x->priority < y->priority ? -1 : 1;
	return x->weight == y->weight ? 0 : x->weight > y->weight ? -1 : 1;
}

static int start_asking(struct asker *asker, const struct sockaddr_in *name_server,
			unsigned limit_ms)
{
	memset(asker, 0, sizeof(*asker));
	asker->until = monotonic_ns() + (uint64_t)limit_ms * NS_PER_MS;
	if (res_ninit(&asker->state) != 0)
		return -EIO;
	/* Names are whole: no search list. */
	asker->state.options &= ~(unsigned long)(RES_DNSRCH | RES_DEFNAMES);
	if (name_server) {
		asker->state.nscount = 1;
		asker->state.nsaddr_list[0] = *name_server;
	}
	return 0;
}

int cl_cell_ask_dns(void *name_server, const char *cell, unsigned limit_ms,
		    struct cl_cell_server servers[CL_CELL_SERVERS], uint32_t *ttl_s)
{
	struct cl_dns_record records[CL_CELL_SERVERS];
	char name[CL_CELL_NAME + 32];
	struct asker asker;
	int count, found = 0, rc = start_asking(&asker, name_server, limit_ms);

	*ttl_s = 0;
	if (rc < 0)
		return rc;
	snprintf(name, sizeof(name), "_afs3-vlserver._udp.%s", cell);
	count = ask_records(&asker, name, ns_t_srv, records, ttl_s);
	if (count == 0)
		count = ask_records(&asker, cell, TYPE_AFSDB, records, ttl_s);
	if (count > 0)
		qsort(records, (size_t)count, sizeof(records[0]), compare_dns_records);
	for (int i = 0; i < count; i++)
		found += find_server_address(&asker, &records[i], &servers[found], ttl_s);
	res_nclose(&asker.state);
	/* Servers that have no address now may have one later. */
	return count > 0 && found == 0 ? -ETIMEDOUT : count > 0 ? found : count;
}
