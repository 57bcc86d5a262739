/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tickets: opening those of all forms, the names of clients (rx-protocol 7.3.5 to 7.3.7), and the DER of Kerberos (X.690;
 * RFC 4120 5).
 */
#ifndef RXW_RXKAD_TICKET_H
#define RXW_RXKAD_TICKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rxwire/afs.h"

/* --- DER, by libcrypto --- */

/* Larger than any ticket; longer inputs are refused. */
#define RXW_DER_MAX 0xffffffu

/* The rest of an input. Reading stays within it, and leaves it unchanged on failure. */
struct rxw_der {
	const uint8_t *p;
	size_t left;
};

#define RXW_DER_INTEGER	       0x02
#define RXW_DER_BIT_STRING     0x03
#define RXW_DER_OCTET_STRING   0x04
#define RXW_DER_TIME	       0x18 /* GeneralizedTime */
#define RXW_DER_GENERAL_STRING 0x1b
#define RXW_DER_SEQUENCE       0x30
#define RXW_DER_APPLICATION(n) (0x60 | (n))
#define RXW_DER_CONTEXT(n)     (0xa0 | (n))

/* Reads the next element, if it has this tag. Lengths must be in their shortest form. */
bool rxw_der_get(struct rxw_der *d, uint8_t tag, struct rxw_der *content);
/* [n] INTEGER; false if it is outside least..most. *value is undefined on failure. */
bool rxw_der_get_integer(struct rxw_der *d, unsigned n, int64_t least, int64_t most,
			 int64_t *value);
/* [n] GeneralizedTime, "YYYYMMDDhhmmssZ": seconds since 1970. */
bool rxw_der_get_time(struct rxw_der *d, unsigned n, int64_t *value);

/* Writing goes from the end to the front: the content first, then its header. */
struct rxw_der_out {
	uint8_t *start, *p; /* written: p..end */
	uint8_t *end;
	bool full; /* it did not fit; nothing more is written */
};

void rxw_der_put_bytes(struct rxw_der_out *o, const void *bytes, size_t size);
/* The header of everything written since o->p was `end_of`. */
void rxw_der_put_header(struct rxw_der_out *o, uint8_t tag, const uint8_t *end_of);
/* [n] INTEGER, 0 or more. */
void rxw_der_put_integer(struct rxw_der_out *o, unsigned n, uint32_t value);
/* [n] with a string of that tag. */
void rxw_der_put_in(struct rxw_der_out *o, unsigned n, uint8_t tag, const void *bytes, size_t size);
/* [n] GeneralizedTime; false: the year does not have four digits, or no memory. */
bool rxw_der_put_time(struct rxw_der_out *o, unsigned n, int64_t seconds);

/* --- tickets --- */

/* With NUL: names of rxkad have at most 63 bytes. */
#define RXW_RXKAD_NAME 64u
/* A principal of two components and a realm, if every byte is quoted. */
#define RXW_RXKAD_PRINCIPAL 1024u

/* The rules by which a server opens tickets. */
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

/* --- the contents of a token made with a service key --- */

/*
 * Encode an EncTicketPart for `name` with a session key of DES, at the start of `out`. -RXW_EINVAL:
 * invalid name or time, or no room.
 */
int rxw_rxkad_print_clear(const uint8_t session_key[8], const char *name, int64_t start,
			  int64_t end, uint8_t *out, size_t room, size_t *size);

#endif
