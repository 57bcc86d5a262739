/* SPDX-License-Identifier: BSD-2-Clause */
/* Growing texts, and addresses as text: shared by the files of librxwire-observe. */
#ifndef OBSERVE_OBSERVE_H
#define OBSERVE_OBSERVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include <rxwire/types.h>

#define RXW_ADDRESS_TEXT 72 /* bytes of "[IPv6%scope]:port" and the NUL */

/* Initially zero; the owner frees `at`. */
struct rxw_text {
	char *at;
	size_t used, room;
	bool failed; /* no memory: the text is incomplete */
};

void rxw_text_add(struct rxw_text *t, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/*
 * Stores the complete text, which the caller frees, and returns its length; or stores NULL and returns
 * -RXW_ENOMEM.
 */
int rxw_text_finish(struct rxw_text *t, char **text);

/* Nanoseconds as exact seconds, with a point in every locale. Returns `text`. */
const char *rxw_seconds_text(uint64_t ns, char text[32]);
/* "1.2.3.4:7000", "[::1]:7000". Returns `text`. */
const char *rxw_address_text(const struct sockaddr *sa, char text[RXW_ADDRESS_TEXT]);
/* The same for the address that an endpoint is bound to. */
const char *rxw_bound_text(rxw_endpoint *endpoint, char text[RXW_ADDRESS_TEXT]);

/* 0; -RXW_EINVAL: the list, unless it is empty, or one of the endpoints is NULL. */
int rxw_endpoints_check(rxw_endpoint *const *endpoints, size_t count);

#endif
