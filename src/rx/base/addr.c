/* SPDX-License-Identifier: BSD-2-Clause */
/* Socket addresses as values: the peer of a datagram and its local address. */

#include "base/addr.h"

#include <arpa/inet.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"

/* A scope distinguishes only link-local addresses; for others the kernel ignores it. */
static bool scope_matters(const struct in6_addr *a)
{
	return IN6_IS_ADDR_LINKLOCAL(a) || IN6_IS_ADDR_MC_LINKLOCAL(a);
}

static void set_ipv4(struct rxw_addr *a, in_port_t port, const void *address)
{
	a->u.in.sin_family = AF_INET;
	a->u.in.sin_port = port;
	memcpy(&a->u.in.sin_addr, address, sizeof(a->u.in.sin_addr));
	a->len = sizeof(a->u.in);
}

bool rxw_addr_set(struct rxw_addr *a, const struct sockaddr *sa, socklen_t len)
{
	memset(a, 0, sizeof(*a));
	if (!sa || len < (socklen_t)sizeof(sa->sa_family))
		return false;
	if (sa->sa_family == AF_INET && len >= (socklen_t)sizeof(struct sockaddr_in)) {
		struct sockaddr_in in;

		memcpy(&in, sa, sizeof(in));
		set_ipv4(a, in.sin_port, &in.sin_addr);
		return true;
	}
	if (sa->sa_family == AF_INET6 && len >= (socklen_t)sizeof(struct sockaddr_in6)) {
		struct sockaddr_in6 in6;

		memcpy(&in6, sa, sizeof(in6));
		if (IN6_IS_ADDR_V4MAPPED(&in6.sin6_addr)) {
			set_ipv4(a, in6.sin6_port, in6.sin6_addr.s6_addr + 12);
			return true;
		}
		a->u.in6.sin6_family = AF_INET6;
		a->u.in6.sin6_port = in6.sin6_port;
		a->u.in6.sin6_addr = in6.sin6_addr;
		if (scope_matters(&in6.sin6_addr))
			a->u.in6.sin6_scope_id = in6.sin6_scope_id;
		a->len = sizeof(a->u.in6);
		return true;
	}
	return false;
}

bool rxw_addr_set_local(struct rxw_addr *a, const struct sockaddr *sa, socklen_t len)
{
	if (!rxw_addr_set(a, sa, len))
		return false;
	if (a->u.sa.sa_family == AF_INET)
		a->u.in.sin_port = 0;
	else
		a->u.in6.sin6_port = 0;
	return true;
}

bool rxw_addr_same_host(const struct rxw_addr *a, const struct rxw_addr *b)
{
	if (a->len != b->len)
		return false;
	if (!a->len)
		return true;
	if (a->u.sa.sa_family != b->u.sa.sa_family)
		return false;
	if (a->u.sa.sa_family == AF_INET)
		return a->u.in.sin_addr.s_addr == b->u.in.sin_addr.s_addr;
	return !memcmp(&a->u.in6.sin6_addr, &b->u.in6.sin6_addr, sizeof(struct in6_addr)) &&
	       a->u.in6.sin6_scope_id == b->u.in6.sin6_scope_id;
}

bool rxw_addr_equal(const struct rxw_addr *a, const struct rxw_addr *b)
{
	/* Called for every packet: in IPv4, the first bytes are family, port and address. */
	if (a->len == sizeof(a->u.in) && b->len == a->len)
		return !memcmp(&a->u.in, &b->u.in, offsetof(struct sockaddr_in, sin_zero));
	return rxw_addr_same_host(a, b) && rxw_addr_port(a) == rxw_addr_port(b);
}

uint16_t rxw_addr_port(const struct rxw_addr *a)
{
	if (!a->len)
		return 0;
	return ntohs(a->u.sa.sa_family == AF_INET ? a->u.in.sin_port : a->u.in6.sin6_port);
}

/* The IPv4 address, host order; false for others. */
static bool get_ipv4(const struct rxw_addr *a, uint32_t *v4)
{
	if (!a->len || a->u.sa.sa_family != AF_INET)
		return false;
	*v4 = ntohl(a->u.in.sin_addr.s_addr);
	return true;
}

bool rxw_addr_is_loopback(const struct rxw_addr *a)
{
	uint32_t v4;

	if (get_ipv4(a, &v4))
		return v4 >> 24 == 127;
	return a->len && IN6_IS_ADDR_LOOPBACK(&a->u.in6.sin6_addr);
}

uint64_t rxw_addr_hash(const struct rxw_addr *a, const uint64_t key[2], bool with_port)
{
	uint8_t bytes[22];
	size_t n = 0;

	if (a->len && a->u.sa.sa_family == AF_INET) {
		memcpy(bytes, &a->u.in.sin_addr, 4);
		n = 4;
	} else if (a->len) {
		memcpy(bytes, &a->u.in6.sin6_addr, 16);
		memcpy(bytes + 16, &a->u.in6.sin6_scope_id, 4);
		n = 20;
	}
	if (with_port) {
		uint16_t port = rxw_addr_port(a);

		memcpy(bytes + n, &port, 2);
		n += 2;
	}
	return rxw_siphash(bytes, n, key);
}

const char *rxw_addr_text(const struct rxw_addr *a, char *text, size_t size)
{
	char host[INET6_ADDRSTRLEN] = "";
	char scope[16] = "";

	if (!size)
		return text;
	if (!a->len) {
		snprintf(text, size, "none");
	} else if (a->u.sa.sa_family == AF_INET) {
		inet_ntop(AF_INET, &a->u.in.sin_addr, host, sizeof(host));
		snprintf(text, size, "%s:%u", host, (unsigned)rxw_addr_port(a));
	} else {
		inet_ntop(AF_INET6, &a->u.in6.sin6_addr, host, sizeof(host));
		if (a->u.in6.sin6_scope_id)
			snprintf(scope, sizeof(scope), "%%%u", (unsigned)a->u.in6.sin6_scope_id);
		snprintf(text, size, "[%s%s]:%u", host, scope, (unsigned)rxw_addr_port(a));
	}
	return text;
}

static void mask_bits(uint8_t *net, unsigned prefix, unsigned bits)
{
	for (unsigned i = 0; i < bits / 8; i++) {
		unsigned keep = prefix > i * 8 ? prefix - i * 8 : 0;

		if (keep < 8)
			net[i] &= (uint8_t)(0xff00u >> keep);
	}
}

bool rxw_cidr_parse(struct rxw_cidr *c, const char *text)
{
	char host[INET6_ADDRSTRLEN];
	const char *slash = strchr(text, '/');
	size_t length = slash ? (size_t)(slash - text) : strlen(text);
	unsigned prefix = 0;

	memset(c, 0, sizeof(*c));
	if (!length || length >= sizeof(host))
		return false;
	memcpy(host, text, length);
	host[length] = 0;
	if (inet_pton(AF_INET, host, c->net) == 1)
		c->family_bits = 32;
	else if (inet_pton(AF_INET6, host, c->net) == 1)
		c->family_bits = 128;
	else
		return false;
	if (!slash) {
		c->prefix = c->family_bits;
		return true;
	}
	text = slash + 1;
	if (!*text || strlen(text) > 3)
		return false;
	for (; *text; text++) {
		if (*text < '0' || *text > '9')
			return false;
		prefix = prefix * 10 + (unsigned)(*text - '0');
	}
	if (prefix > c->family_bits)
		return false;
	c->prefix = (uint8_t)prefix;
	mask_bits(c->net, prefix, c->family_bits);
	return true;
}

bool rxw_cidr_has(const struct rxw_cidr *c, const struct rxw_addr *a)
{
	uint8_t bytes[16] = { 0 };
	uint32_t v4;

	if (c->family_bits == 32) {
		if (!get_ipv4(a, &v4))
			return false;
		v4 = htonl(v4);
		memcpy(bytes, &v4, 4);
	} else if (c->family_bits == 128 && a->len && a->u.sa.sa_family == AF_INET6) {
		memcpy(bytes, &a->u.in6.sin6_addr, 16);
	} else {
		return false;
	}
	mask_bits(bytes, c->prefix, c->family_bits);
	return !memcmp(bytes, c->net, c->family_bits / 8u);
}
