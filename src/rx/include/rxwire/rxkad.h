/* SPDX-License-Identifier: BSD-2-Clause */
/* Security class rxkad: Kerberos tickets and fcrypt (rx-protocol 7.3). See rxw_rxkad(3). */
#ifndef RXWIRE_RXKAD_H
#define RXWIRE_RXKAD_H

#include <rxwire/keys.h>
#include <rxwire/security.h>
#include <rxwire/types.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RXW_RXKAD_INDEX 2

/* Codes of calls and connections (rx-protocol 7.3.10). */
#define RXW_RXKAD_INCONSISTENCY 19270400
#define RXW_RXKAD_PACKETSHORT	19270401
#define RXW_RXKAD_LEVELFAIL	19270402
#define RXW_RXKAD_TICKETLEN	19270403
#define RXW_RXKAD_OUTOFSEQUENCE 19270404
#define RXW_RXKAD_NOAUTH	19270405
#define RXW_RXKAD_BADKEY	19270406
#define RXW_RXKAD_BADTICKET	19270407
#define RXW_RXKAD_UNKNOWNKEY	19270408
#define RXW_RXKAD_EXPIRED	19270409
#define RXW_RXKAD_SEALEDINCON	19270410
#define RXW_RXKAD_DATALEN	19270411
#define RXW_RXKAD_ILLEGALLEVEL	19270412

/* Ticket forms; Kerberos 4 tickets have the version of their key instead (rx-protocol 7.3.5). */
#define RXW_RXKAD_KVNO_ENCPART 213 /* the EncryptedData of a Kerberos 5 ticket */
#define RXW_RXKAD_KVNO_TICKET  256 /* a complete Kerberos 5 ticket */
/* Length of a ticket in bytes. */
#define RXW_RXKAD_TICKET_MIN 32
#define RXW_RXKAD_TICKET_MAX 12000

/*
 * Finds the service key that a ticket names: version and enctype, 0 for single DES. Writes at most
 * `room` bytes (RXW_KEY_MAX) to `key`, which is wiped after use, and sets *length. Returns 0, or a
 * negative result: there is no such key. kvno and enctype come from the network. Called for each
 * RESPONSE on a thread of the library, without a lock of the library, on several threads at the
 * same time. Other authentications may wait meanwhile, so it should answer from memory.
 */
typedef int (*rxw_rxkad_key_fn)(void *context, int32_t kvno, int32_t enctype, void *key,
				size_t room, size_t *length);

/* Zero the structure, set `size`, then fill in the other members. */
struct rxw_rxkad_server_options {
	size_t size;
	/*
	 * Keys of types RXW_KEY_KRB5 and _DES decrypt tickets; a reference is taken. NULL only
	 * with `find_key`.
	 */
	rxw_keys *keys;
	uint8_t level_min; /* enum rxw_level; clients that request less are refused */
	/*
	 * Accept Kerberos 4 tickets and tickets protected by single DES. Anyone who has seen such
	 * a ticket can compute the service key within hours.
	 */
	bool allow_single_des;
	bool allow_dotted; /* principals with a dot in the first component: "a.b" is also a/b */
	/* "afs" of this realm is the service itself, like "afs" without a realm; NULL = none */
	const char *local_realm;
	int64_t (*time)(void *context); /* seconds since 1970; NULL = system clock */
	void *time_context;
	/*
	 * Asked for keys that `keys` does not have; NULL = none. `find_context` must exist until
	 * the last reference to the class is gone: of the caller, services and connections.
	 * find_destroy(find_context) is called then, on any thread and without a lock; NULL =
	 * nothing to do. It is not called if rxw_rxkad_server() fails.
	 */
	rxw_rxkad_key_fn find_key;
	void *find_context;
	void (*find_destroy)(void *context);
};

/*
 * The server side, for struct rxw_service_options. Keys are looked up at each authentication, so
 * keys that are loaded later are used. The caller owns *security. -RXW_EINVAL; -RXW_ENOTSUP:
 * single DES was requested and the legacy provider of libcrypto is missing; -RXW_ENOMEM. Any
 * thread.
 */
RXW_MUST_USE
int rxw_rxkad_server(const struct rxw_rxkad_server_options *options, rxw_security **security);

#ifdef __cplusplus
}
#endif
#endif
