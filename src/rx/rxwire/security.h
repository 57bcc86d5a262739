/* SPDX-License-Identifier: BSD-2-Clause */
/* Security classes: the table by which one plugs in, and the identity that it establishes. */
#ifndef RXWIRE_SECURITY_H
#define RXWIRE_SECURITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rxwire/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Levels, as rxkad and rxgk number them on the wire (rx-protocol 7.3.1, 7.4.1). */
enum rxw_level {
	RXW_LEVEL_CLEAR = 0, /* the peer is known; data are neither hidden nor bound to it */
	RXW_LEVEL_AUTH = 1,  /* data cannot be changed unnoticed */
	RXW_LEVEL_CRYPT = 2  /* nor read */
};

/*
 * Room that a sealed packet needs around its data: sealed size = max(least, roundup(head + length,
 * block)) + tail. All zero: none, as with the null class.
 */
struct rxw_security_room {
	uint8_t head;  /* bytes before the data; 0..64 */
	uint8_t tail;  /* bytes behind data and padding; 0..64 */
	uint8_t block; /* 1..16: the class pads head + data with zeros to a multiple of it; 0 as 1 */
	uint8_t least; /* head + data are padded to so many bytes at least; 0..64 */
	bool quick;    /* verifying costs next to nothing: RXW_CLASS_SLOW is not for this level */
};

/* Which connection this is about: the same for all its packets. */
struct rxw_security_id {
	uint32_t epoch, cid; /* cid with channel bits 0 */
	uint16_t service;
	uint8_t index; /* securityIndex */
	bool client;   /* this side is the client end of the connection */
};

/* One packet of a run. */
struct rxw_security_packet {
	uint8_t *data; /* the payload, behind the 28 bytes of the header; sealed, opened in place */
	uint32_t call, seq;
	uint8_t channel; /* 0..3 */
	uint16_t spare;  /* the header's word: seal() sets it, verify() reads it */
	/*
	 * seal(): bytes of data at data + room.head; the caller knows the sealed size. verify():
	 * before, bytes of the payload as received; after, bytes of data, which begin at data +
	 * room.head and lie within the payload.
	 */
	uint32_t length;
	/*
	 * verify(): 0 good; -1 drop it as if lost; > 0 the connection ends with this code: the
	 * ticket has expired, nothing else, and the packet was good.
	 */
	int32_t result;
};

/*
 * Who is at the other end. Set `size` before asking. Strings live as long as the call or connection
 * that was asked.
 */
struct rxw_identity {
	size_t size;
	uint8_t index; /* security index */
	uint8_t level; /* enum rxw_level; CLEAR for the null class */
	/* made with the service's own key ("printed"): the superuser, where the server grants that */
	bool local;
	const char *name; /* "user@REALM", "host/name@REALM" as Kerberos writes it; NULL anonymous */
	const char *rxkad_name; /* "name.instance@cell" (7.3.5); NULL where the class has none */
	int64_t expires;        /* seconds since 1970; INT64_MAX never */
};

/*
 * A run costs more than handing it to another thread does: bulk is verified on several, and sealed
 * there if callbacks write it.
 */
#define RXW_CLASS_SLOW 0x1u

/*
 * A security class. Zero, set `size`, then fill; functions that a class does not need stay NULL.
 * `data` is what rxw_security_create() was given, `conn` what conn_create() made. The library calls
 * none of these with a lock held, but conn_create(), conn_destroy(), room(), identity() and renew(),
 * which must not wait.
 */
struct rxw_security_class {
	size_t size;
	const char *name;  /* "rxkad"; for logs and statistics */
	uint8_t index;     /* securityIndex, unique within a service */
	unsigned flags;    /* RXW_CLASS_… */
	/* code of a call that ends because none of its packets verified for 60 s (7.1); 0 = -1 */
	int32_t broken;

	void (*destroy)(void *data); /* the last reference of the rxw_security is gone */
	/* 0 or a negative result: the connection is not made. NULL: conn is NULL everywhere. */
	int (*conn_create)(void *data, const struct rxw_security_id *id, void **conn);
	void (*conn_destroy)(void *conn); /* wipes keys; not called for NULL */

	/*
	 * Client: from conn_create() on. Server: with an exchange, after check_response() returned
	 * 0. Constant then.
	 */
	void (*room)(const void *conn, struct rxw_security_room *room);
	/* Everything but `size` and `index`, which are set. 0, or negative: anonymous. */
	int (*identity)(const void *conn, struct rxw_identity *identity);

	/*
	 * Any thread, several runs of a connection at a time. All packets of a run are of one call.
	 * seal(): 0, or negative: the call ends. verify() NULL: packets are taken as they are.
	 */
	int (*seal)(void *conn, struct rxw_security_packet *packets, size_t count);
	void (*verify)(void *conn, struct rxw_security_packet *packets, size_t count);

	/*
	 * The exchange; one at a time per connection. challenge() and check_response() NULL: none,
	 * a server's connection is good from the start.
	 */
	/* Server: bytes written, or negative. The library keeps them for resends. */
	int (*challenge)(void *conn, uint8_t *out, size_t room);
	/*
	 * Client: a RESPONSE into out (room: 16 KiB; -RXW_ELIMIT if that is too little) and the
	 * header's word. `calls`: see 7.3.3. Negative: not a CHALLENGE of this class; it is dropped.
	 */
	int (*respond)(void *conn, const uint8_t *challenge, size_t size, const uint32_t calls[4],
		       uint8_t *out, size_t room, size_t *written, uint16_t *spare);
	/*
	 * Server: 0 good, else the code for the ABORT. What is refused may have been damaged: the
	 * client is asked again with the same CHALLENGE, and this is called again, up to 8 times
	 * within a second, until it returns 0; then never more. `calls`: in, the numbers that the server
	 * knows; out, those that the client claims. The library judges them, and ends a connection
	 * whose numbers cannot be with `broken`.
	 */
	int32_t (*check_response)(void *conn, const uint8_t *response, size_t size,
				  uint16_t spare, uint32_t calls[4]);
	/* code for a client whose level is below the service's; 0 = RXW_INVALID_OPERATION */
	int32_t weak;

	/*
	 * A class whose keys change is responsible for what it sealed: packets leave long after
	 * seal() where a reader stands still, and again when they were lost. renew() sees them, of
	 * one call, each time that they leave, as they were sealed: `spare` is their word, `length`
	 * the bytes of the sealed payload. Those that the peer would not take any more it seals
	 * again in place, in as many bytes, and sets their words; the rest it leaves alone. 0, or
	 * negative: the call ends, nothing leaves. NULL: what is sealed stays good as long as the
	 * connection. Under the connection's lock.
	 */
	int (*renew)(void *conn, struct rxw_security_packet *packets, size_t count);
};

/*
 * A class with its keys, for rxw_connection_create() and struct rxw_service_options. `class` is
 * copied, `data` belongs to it (destroy()) if this returns 0. -RXW_EINVAL: size, seal() without
 * verify() or the reverse, half an exchange; -RXW_ENOMEM.
 */
int rxw_security_create(const struct rxw_security_class *klass, void *data,
			rxw_security **security);
/* Endpoints, services and connections hold references of their own. NULL is allowed. Any thread. */
rxw_security *rxw_security_ref(rxw_security *security);
void rxw_security_unref(rxw_security *security);

/* The null class, index 0: no protection. Static; need not be released. */
rxw_security *rxw_security_null(void);

/*
 * Who calls (server), who the server takes us for (client). -RXW_EINVAL; -RXW_ESTATE: the exchange
 * is not over. Fills identity->size bytes.
 */
int rxw_call_identity(const rxw_call *call, struct rxw_identity *identity);
int rxw_connection_identity(const rxw_connection *connection, struct rxw_identity *identity);

#ifdef __cplusplus
}
#endif
#endif
