/* SPDX-License-Identifier: BSD-2-Clause */
/* Hosts and ports as text. */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "program/address.h"
#include "program/number.h"

static int parse_ports(const char *text, uint16_t *ports, size_t max)
{
	for (size_t i = 0; *text; i++) {
		char part[8];
		size_t length;
		uint64_t port;

		if (*text++ != ':' || i == max)
			return -1;
		length = strcspn(text, ":");
		if (length >= sizeof(part))
			return -1;
		memcpy(part, text, length);
		part[length] = 0;
		text += length;
		/* "HOST::7000" leaves the first port as it is. */
		if (length == 0 && *text == ':')
			continue;
		if (tools_parse_uint(part, &port) < 0 || port == 0 || port > 65535)
			return -1;
		ports[i] = (uint16_t)port;
	}
	return 0;
}

int tools_split_host(const char *text, char *host, size_t host_size, uint16_t *ports, size_t max)
{
	struct in6_addr v6;
	char literal[INET6_ADDRSTRLEN + 1];
	const char *rest;
	size_t length = strcspn(text, "%");

	if (length < sizeof(literal)) {
		memcpy(literal, text, length);
		literal[length] = 0;
		if (inet_pton(AF_INET6, literal, &v6) == 1) {
			if (strlen(text) >= host_size)
				return -1;
			strcpy(host, text);
			return 0;
		}
	}
	if (*text == '[') {
		text++;
		length = strcspn(text, "]");
		if (text[length] != ']')
			return -1;
		rest = text + length + 1;
	} else {
		length = strcspn(text, ":");
		rest = text + length;
	}
	if (length == 0 || length >= host_size)
		return -1;
	memcpy(host, text, length);
	host[length] = 0;
	return parse_ports(rest, ports, max);
}

static void store_address(struct tools_address *address, const struct addrinfo *from, uint16_t port)
{
	memset(address, 0, sizeof(*address));
	memcpy(&address->sa, from->ai_addr, from->ai_addrlen);
	address->len = from->ai_addrlen;
	tools_address_set_port(&address->sa, port);
}

static void explain_lookup(char *message, size_t size, const char *host, int rc)
{
	snprintf(message, size, "cannot resolve host \"%s\": %s", host,
		 rc ? gai_strerror(rc) : "no address");
}

int tools_resolve(const char *host, uint16_t port, int passive, struct tools_address *address,
		  char *message, size_t message_size)
{
	/*
	 * Cells are IPv4 first: "localhost" shall not mean ::1 where a server listens on 0.0.0.0.
	 */
	struct addrinfo hints = {.ai_family = AF_INET,
				 .ai_socktype = SOCK_DGRAM,
				 .ai_protocol = IPPROTO_UDP,
				 .ai_flags = passive ? AI_PASSIVE : 0};
	struct addrinfo *found = NULL;
	int rc;

	if (passive && strcmp(host, "*") == 0)
		host = "0.0.0.0";
	rc = getaddrinfo(host, NULL, &hints, &found);
	if (rc != 0) {
		hints.ai_family = AF_UNSPEC;
		rc = getaddrinfo(host, NULL, &hints, &found);
	}
	if (rc != 0 || !found) {
		explain_lookup(message, message_size, host, rc);
		errno = rc == EAI_AGAIN ? EAGAIN : ENOENT;
		return -1;
	}
	store_address(address, found, port);
	freeaddrinfo(found);
	return 0;
}

size_t tools_resolve_all(const char *host, uint16_t port,
			 struct tools_address list[TOOLS_ADDRESSES], char *message,
			 size_t message_size)
{
	struct addrinfo hints = {.ai_socktype = SOCK_DGRAM, .ai_protocol = IPPROTO_UDP};
	struct addrinfo *found = NULL;
	size_t count = 0;
	int rc = getaddrinfo(host, NULL, &hints, &found);

	for (const struct addrinfo *a = found; rc == 0 && a && count < TOOLS_ADDRESSES;
	     a = a->ai_next) {
		if (a->ai_family == AF_INET || a->ai_family == AF_INET6)
			store_address(&list[count++], a, port);
	}
	if (found)
		freeaddrinfo(found);
	if (count == 0)
		explain_lookup(message, message_size, host, rc);
	return count;
}

void tools_addresses_prefer_ipv4(struct tools_address *list, size_t count)
{
	struct tools_address one;
	size_t next = 0;

	for (size_t i = 0; i < count; i++) {
		if (list[i].sa.ss_family != AF_INET)
			continue;
		one = list[i];
		memmove(&list[next + 1], &list[next], (i - next) * sizeof(one));
		list[next++] = one;
	}
}

char *tools_address_text(const struct sockaddr_storage *sa, char *text, size_t size)
{
	char host[INET6_ADDRSTRLEN + 20] = "?";
	int v6 = sa->ss_family == AF_INET6;

	getnameinfo((const struct sockaddr *)sa,
		    v6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in), host,
		    sizeof(host), NULL, 0, NI_NUMERICHOST | NI_DGRAM);
	snprintf(text, size, v6 ? "[%s]:%u" : "%s:%u", host, tools_address_port(sa));
	return text;
}

/* Ports lie at the same place in both families; reached bytewise, as aliasing rules want. */
_Static_assert(offsetof(struct sockaddr_in, sin_port) == offsetof(struct sockaddr_in6, sin6_port),
	       "tools_address_port()");

uint16_t tools_address_port(const struct sockaddr_storage *sa)
{
	in_port_t port;

	memcpy(&port, (const char *)sa + offsetof(struct sockaddr_in, sin_port), sizeof(port));
	return ntohs(port);
}

void tools_address_set_port(struct sockaddr_storage *sa, uint16_t port)
{
	in_port_t net = htons(port);

	memcpy((char *)sa + offsetof(struct sockaddr_in, sin_port), &net, sizeof(net));
}

void tools_address_any(const struct sockaddr_storage *like, struct tools_address *any)
{
	memset(any, 0, sizeof(*any));
	any->sa.ss_family = like->ss_family;
	any->len = like->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) :
						 sizeof(struct sockaddr_in);
}
