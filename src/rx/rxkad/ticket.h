/* SPDX-License-Identifier: BSD-2-Clause */
/* Opening tickets of all forms, and the names of clients (rx-protocol 7.3.5 to 7.3.7). */
#ifndef RXW_RXKAD_TICKET_H
#define RXW_RXKAD_TICKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rxwire/afs.h"

/* With NUL: names of rxkad have at most 63 bytes. */
#define RXW_RXKAD_NAME 64u
/* A principal of two components and a realm, if every byte is quoted. */
#define RXW_RXKAD_PRINCIPAL 1024u

/* What a server accepts. */
struct rxw_rxkad_opener {
	rxw_keys *keys;		   /* or NULL */
	rxw_rxkad_key_fn find_key; /* or NULL */
	void *find_context;
	bool allow_single_des, allow_dotted;
	const char *local_realm; /* or NULL */
	int64_t now;
};

/* The contents of a valid ticket. A secret: wiped by its user. */
struct rxw_rxkad_ticket {
	uint8_t session_key[8];
	int64_t start, end; /* seconds; start 0: always, end INT64_MAX: never */
	bool local;
	char name[RXW_RXKAD_NAME], instance[RXW_RXKAD_NAME], cell[RXW_RXKAD_NAME];
	char principal[RXW_RXKAD_PRINCIPAL]; /* in the notation of Kerberos */
};

/*
 * Open a ticket of the form `kvno`, and check its times. 0, or the code of 7.3.3 steps 4 to 6;
 * every failure of decryption is BADTICKET. The input may be hostile. Any thread.
 */
int32_t rxw_rxkad_ticket_open(const struct rxw_rxkad_opener *opener, uint32_t kvno,
			      const uint8_t *ticket, size_t size, struct rxw_rxkad_ticket *out);

/* The parts, for tests. */
/* The lifetime in seconds of a Kerberos 4 ticket's code; INT64_MAX for 255. */
int64_t rxw_rxkad_lifetime(uint8_t code);
/* A Kerberos 4 ticket in clear. 0 or a code. */
int32_t rxw_rxkad_ticket_v4(const struct rxw_rxkad_opener *opener, const uint8_t *clear,
			    size_t size, struct rxw_rxkad_ticket *out);
/* An EncTicketPart; anything after it (padding) is ignored. 0 or a code. */
int32_t rxw_rxkad_ticket_v5(const struct rxw_rxkad_opener *opener, const uint8_t *clear,
			    size_t size, struct rxw_rxkad_ticket *out);
/* The rules for times that both kinds have in common. 0 or a code. */
int32_t rxw_rxkad_check_times(int64_t start, int64_t end, int64_t now);

/* A string of a principal; not NUL-terminated. */
struct rxw_rxkad_component {
	const uint8_t *p;
	size_t size;
};
/* Fills name, instance, cell, principal and local. 0 or BADTICKET. */
int32_t rxw_rxkad_set_names(const struct rxw_rxkad_opener *opener,
			    const struct rxw_rxkad_component *components, size_t count,
			    struct rxw_rxkad_component realm, struct rxw_rxkad_ticket *out);
/* The same for name and instance (may be empty) of Kerberos 4, without translation. */
int32_t rxw_rxkad_set_names_v4(const struct rxw_rxkad_opener *opener,
			       const struct rxw_rxkad_component names[2],
			       struct rxw_rxkad_component realm, struct rxw_rxkad_ticket *out);

#endif
