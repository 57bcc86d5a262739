/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Functions between the parts of librxwire-classic, besides the public ones. Each part calls only
 * the parts before it in this list: base, core, xdr, watch.
 */
#ifndef RXWIRE_CLASSIC_H
#define RXWIRE_CLASSIC_H

#include <stdbool.h>

#include <rx/rx_types.h>
#include <rxwire/afs.h>
#include <rxwire/rxwire.h>

struct rx_call;
struct rx_connection;
struct rx_securityClass;

/* -- base: security ------------------------------------------------------------------------------- */

/* The library's class of a security object, without a new reference; NULL is the null class. */
rxw_security *classic_security(struct rx_securityClass *klass);
/* Accept names with dots from now on, or not (RXS_CONFIG_FLAGS). */
void classic_security_dots(struct rx_securityClass *klass, bool allow);

/* -- core ----------------------------------------------------------------------------------------- */

/*
 * The usage of one call so far, or in all if it has ended. A client's call keeps it until the next
 * call on its channel begins.
 */
struct classic_usage {
	bool server;		 /* this side is the server */
	afs_uint32 host;	 /* of the peer, network order */
	uint16_t port;		 /* of the peer, network order */
	uint64_t sent, received; /* bytes of the streams */
	uint64_t queue_ns;	 /* server: waited for a thread */
	uint64_t run_ns;	 /* client: from begin to end; server: in the handler so far */
};
void classic_usage(struct rx_call *call, struct classic_usage *usage);

/* Call fn() for each endpoint, the one of rx_Init() first. No endpoint ends meanwhile. */
void classic_each_endpoint(void (*fn)(rxw_endpoint *endpoint, void *arg), void *arg);

/* -- base ----------------------------------------------------------------------------------------- */

/*
 * Count that a program has changed a setting without effect, and say so and why in the log the
 * first time. Any thread.
 */
void classic_ignored(const char *setting, const char *why);
/* The number of such changes so far. */
unsigned classic_ignored_count(void);
/* A line in the log of the library: standard error. */
void classic_log(const char *format, ...) RXWIRE_CLASSIC_FORMAT(1, 2);

#endif
