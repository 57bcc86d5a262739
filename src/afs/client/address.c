/* SPDX-License-Identifier: BSD-2-Clause */
/* Addresses of servers: their text, and comparing two of them. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "afs/client/private.h"

const char *afs_server_text(const struct sockaddr_storage *address, const char *kind, char *text,
			    size_t size)
{
	char host[INET6_ADDRSTRLEN] = "?";
	struct sockaddr_in6 six;
	struct sockaddr_in four;

	if (address->ss_family == AF_INET6) {
		memcpy(&six, address, sizeof(six));
		inet_ntop(AF_INET6, &six.sin6_addr, host, sizeof(host));
		snprintf(text, size, "%s [%s]:%u", kind, host, ntohs(six.sin6_port));
	} else {
		memcpy(&four, address, sizeof(four));
		inet_ntop(AF_INET, &four.sin_addr, host, sizeof(host));
		snprintf(text, size, "%s %s:%u", kind, host, ntohs(four.sin_port));
	}
	return text;
}

bool afs_same_address(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
	struct sockaddr_in in[2];
	struct sockaddr_in6 in6[2];

	if (a->ss_family != b->ss_family)
		return false;
	if (a->ss_family == AF_INET6) {
		memcpy(&in6[0], a, sizeof(in6[0]));
		memcpy(&in6[1], b, sizeof(in6[1]));
		return in6[0].sin6_port == in6[1].sin6_port &&
		       memcmp(&in6[0].sin6_addr, &in6[1].sin6_addr, sizeof(in6[0].sin6_addr)) == 0;
	}
	memcpy(&in[0], a, sizeof(in[0]));
	memcpy(&in[1], b, sizeof(in[1]));
	return in[0].sin_port == in[1].sin_port && in[0].sin_addr.s_addr == in[1].sin_addr.s_addr;
}
