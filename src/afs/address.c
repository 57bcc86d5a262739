/* SPDX-License-Identifier: BSD-2-Clause */
/* Addresses as text, and comparing two of them. */
#include "afs/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

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
	const struct sockaddr_in6 *x6 = (const void *)a, *y6 = (const void *)b;
	const struct sockaddr_in *x = (const void *)a, *y = (const void *)b;

	if (a->ss_family != b->ss_family)
		return false;
	if (a->ss_family == AF_INET6)
		return x6->sin6_port == y6->sin6_port && x6->sin6_scope_id == y6->sin6_scope_id &&
		       memcmp(&x6->sin6_addr, &y6->sin6_addr, sizeof(x6->sin6_addr)) == 0;
	return x->sin_port == y->sin_port && x->sin_addr.s_addr == y->sin_addr.s_addr;
}
