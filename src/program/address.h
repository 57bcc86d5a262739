/* SPDX-License-Identifier: BSD-2-Clause */
/* Hosts and ports as text. */
#ifndef TOOLS_ADDRESS_H
#define TOOLS_ADDRESS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

struct tools_address {
	struct sockaddr_storage sa;
	socklen_t len;
};

#define TOOLS_ADDRESS_TEXT 72 /* "[IPv6%scope]:port" and the NUL */

/*
 * Split "HOST", "HOST:PORT:PORT", "[V6]:PORT" and so on: the host goes to `host`, and at most `max`
 * ports to ports[], the rest of which keep their values. A text with two or more colons and no
 * brackets is an IPv6 address if it parses as one. Returns 0 or -1 (empty host, port not 0..65535,
 * too many).
 */
int tools_split_host(const char *text, char *host, size_t host_size, uint16_t *ports, size_t max);

/*
 * Look up `host` (a name or a literal of either family) with `port`. Returns 0 or -1 with the
 * reason in `message`; errno is EAGAIN if no name server answered, so that it may work later.
 * `passive` nonzero: an address to bind; "*" is then any IPv4 address.
 */
int tools_resolve(const char *host, uint16_t port, int passive, struct tools_address *address,
		  char *message, size_t message_size);

#define TOOLS_ADDRESSES 8 /* of a host; further ones are ignored */

/*
 * Look up all addresses of a host, in the order in which the system prefers them. Returns their
 * number, or 0 with the reason in `message`.
 */
size_t tools_resolve_all(const char *host, uint16_t port,
			 struct tools_address list[TOOLS_ADDRESSES], char *message,
			 size_t message_size);
/* Put the addresses of IPv4 first. Otherwise the order stays. */
void tools_addresses_prefer_ipv4(struct tools_address *list, size_t count);

/* "127.0.0.1:7009", "[::1]:7009". Returns text. */
char *tools_address_text(const struct sockaddr_storage *sa, char *text, size_t size);
uint16_t tools_address_port(const struct sockaddr_storage *sa);
void tools_address_set_port(struct sockaddr_storage *sa, uint16_t port);
/* Any address of the family of `like`, port 0: what a client binds to reach it. */
void tools_address_any(const struct sockaddr_storage *like, struct tools_address *any);

#endif
