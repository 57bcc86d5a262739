/* SPDX-License-Identifier: BSD-2-Clause */
/* Growing texts, and addresses as text. */
#include <arpa/inet.h>
#include <assert.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rxwire/endpoint.h>
#include <rxwire/error.h>

#include "observe/observe.h"

#define FIRST_ROOM 16384u

void rxw_text_add(struct rxw_text *t, const char *format, ...)
{
	va_list args;
	int n;

	for (;;) {
		size_t left = t->room - t->used;
		char *more;

		assert(t->used <= t->room);
		va_start(args, format);
		n = t->at ? vsnprintf(t->at + t->used, left, format, args) : 0;
		va_end(args);
		if (t->at && n >= 0 && (size_t)n < left) {
			t->used += (size_t)n;
			return;
		}
		more = t->failed ? NULL : realloc(t->at, t->room ? 2 * t->room : FIRST_ROOM);
		if (!more) {
			t->failed = true;
			return;
		}
		t->room = t->room ? 2 * t->room : FIRST_ROOM;
		t->at = more;
	}
}

int rxw_text_finish(struct rxw_text *t, char **text)
{
	assert(t->at || t->failed);
	if (t->failed) {
		free(t->at);
		*text = NULL;
		return -RXW_ENOMEM;
	}
	*text = t->at;
	return (int)t->used;
}

const char *rxw_seconds_text(uint64_t ns, char text[32])
{
	snprintf(text, 32, "%llu.%09llu", (unsigned long long)(ns / 1000000000u),
		 (unsigned long long)(ns % 1000000000u));
	return text;
}

const char *rxw_address_text(const struct sockaddr *sa, char text[RXW_ADDRESS_TEXT])
{
	char host[INET6_ADDRSTRLEN];

	assert(sa->sa_family == AF_INET || sa->sa_family == AF_INET6);
	if (sa->sa_family == AF_INET6) {
		const struct sockaddr_in6 *six = (const void *)sa;
		char scope[16] = "";

		inet_ntop(AF_INET6, &six->sin6_addr, host, sizeof(host));
		if (six->sin6_scope_id)
			snprintf(scope, sizeof(scope), "%%%u", (unsigned)six->sin6_scope_id);
		snprintf(text, RXW_ADDRESS_TEXT, "[%s%s]:%u", host, scope, ntohs(six->sin6_port));
	} else {
		const struct sockaddr_in *four = (const void *)sa;

		inet_ntop(AF_INET, &four->sin_addr, host, sizeof(host));
		snprintf(text, RXW_ADDRESS_TEXT, "%s:%u", host, ntohs(four->sin_port));
	}
	return text;
}

const char *rxw_bound_text(rxw_endpoint *endpoint, char text[RXW_ADDRESS_TEXT])
{
	struct sockaddr_storage sa;
	socklen_t length = sizeof(sa);

	if (rxw_endpoint_address(endpoint, &sa, &length) < 0)
		return strcpy(text, "?");
	return rxw_address_text((const struct sockaddr *)&sa, text);
}

int rxw_endpoints_check(rxw_endpoint *const *endpoints, size_t count)
{
	if (count && !endpoints)
		return -RXW_EINVAL;
	for (size_t i = 0; i < count; i++)
		if (!endpoints[i])
			return -RXW_EINVAL;
	return 0;
}
