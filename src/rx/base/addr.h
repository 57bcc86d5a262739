/* SPDX-License-Identifier: BSD-2-Clause */
/* Socket addresses as values: the peer of a datagram and its local address. */
#ifndef RXW_BASE_ADDR_H
#define RXW_BASE_ADDR_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

struct rxw_addr {
	union {
		struct sockaddr sa;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
	} u;
	socklen_t len; /* 0 = none */
};

/* `local` has the address only (port 0); len 0 = let the kernel choose. */
struct rxw_path {
	struct rxw_addr peer;
	struct rxw_addr local;
	int ifindex; /* 0 = that of the route; set for IPv6 link-local, and where an application names one */
};

/*
 * Copy and normalise: flow label and padding are zeroed, and an IPv4-mapped IPv6 address becomes an
 * IPv4 address, so that a host has one address whatever socket it used. False if the family is not
 * IPv4 or IPv6 or `len` is too small.
 */
bool rxw_addr_set(struct rxw_addr *a, const struct sockaddr *sa, socklen_t len);
/* The same for an address of this machine: the port becomes 0. */
bool rxw_addr_set_local(struct rxw_addr *a, const struct sockaddr *sa, socklen_t len);
bool rxw_addr_equal(const struct rxw_addr *a, const struct rxw_addr *b); /* address, port, scope */
bool rxw_addr_same_host(const struct rxw_addr *a, const struct rxw_addr *b); /* without the port */
uint16_t rxw_addr_port(const struct rxw_addr *a);                            /* host order */
bool rxw_addr_is_loopback(const struct rxw_addr *a);
/* Keyed hash of address and port (or of the address alone). */
uint64_t rxw_addr_hash(const struct rxw_addr *a, const uint64_t key[2], bool with_port);
/* "1.2.3.4:7000", "[::1]:7000". Returns text. */
const char *rxw_addr_text(const struct rxw_addr *a, char *text, size_t size);
/* A network such as "10.0.0.0/8"; false if it does not parse. */
struct rxw_cidr {
	uint8_t family_bits;
	uint8_t prefix;
	uint8_t net[16];
};
bool rxw_cidr_parse(struct rxw_cidr *c, const char *text);
bool rxw_cidr_has(const struct rxw_cidr *c, const struct rxw_addr *a);

#endif
