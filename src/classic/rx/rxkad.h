/* SPDX-License-Identifier: BSD-2-Clause */
/* The security class rxkad: Kerberos tickets, with the interface of classic Rx. */
#ifndef RXWIRE_CLASSIC_RXKAD_H
#define RXWIRE_CLASSIC_RXKAD_H

#include <rx/rx_types.h>

/* Bytes of a name, an instance and a cell, each with its NUL, and of a ticket. */
#define MAXKTCNAMELEN	 64
#define MAXKTCREALMLEN	 64
#define MINKTCTICKETLEN	 32
#define MAXKTCTICKETLEN	 12000
#define MAXKRB5TICKETLEN MAXKTCTICKETLEN

/* Seconds: the longest lifetime of a ticket, and how far clocks may differ. */
#define MAXKTCTICKETLIFETIME (30 * 24 * 3600)
#define KTC_TIME_UNCERTAINTY (15 * 60)
#ifndef NEVERDATE
#	define NEVERDATE 0xffffffff
#endif

/* Forms of tickets. Kerberos 4 tickets have the version of their key instead, 0 to 255. */
#define RXKAD_TKT_TYPE_KERBEROS_V5		256
#define RXKAD_TKT_TYPE_KERBEROS_V5_ENCPART_ONLY 213
/* Reserved for translators of other tickets. */
#define RXKAD_TKT_TYPE_ADAPT_RESERVED_MIN 257
#define RXKAD_TKT_TYPE_ADAPT_RESERVED_MAX 511

struct ktc_encryptionKey {
	char data[8];
};

struct ktc_principal {
	char name[MAXKTCNAMELEN];
	char instance[MAXKTCNAMELEN];
	char cell[MAXKTCREALMLEN];
};

/* Up to a multiple of the cipher's block. */
#define round_up_to_ebs(size) (((size) + 7) & ~7)

typedef signed char rxkad_level;
#define rxkad_clear 0 /* the client is authenticated */
#define rxkad_auth  1 /* and data is protected against changes */
#define rxkad_crypt 2 /* and encrypted */

/* Codes of calls and connections. */
#define ERROR_TABLE_BASE_RXK (19270400L)
#define RXKADINCONSISTENCY   (19270400L)
#define RXKADPACKETSHORT     (19270401L)
#define RXKADLEVELFAIL	     (19270402L) /* the server wants a higher level */
#define RXKADTICKETLEN	     (19270403L)
#define RXKADOUTOFSEQUENCE   (19270404L)
#define RXKADNOAUTH	     (19270405L) /* not authenticated */
#define RXKADBADKEY	     (19270406L)
#define RXKADBADTICKET	     (19270407L)
#define RXKADUNKNOWNKEY	     (19270408L) /* the server does not have the key of the ticket */
#define RXKADEXPIRED	     (19270409L)
#define RXKADSEALEDINCON     (19270410L) /* a packet does not verify */
#define RXKADDATALEN	     (19270411L)
#define RXKADILLEGALLEVEL    (19270412L)

/*
 * Finds a service key: by version and enctype. *length is the room at `key`, and on return the
 * length. 0: found.
 */
typedef int (*rxkad_get_key_enctype_func)(void *rock, int kvno, int enctype, void *key,
					  size_t *length);

#include <rx/rxkad_prototypes.h>

#endif
