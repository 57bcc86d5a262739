/* SPDX-License-Identifier: BSD-2-Clause */
/* Security classes, and the identities that they establish. See rxw_security(3). */
#ifndef RXWIRE_SECURITY_H
#define RXWIRE_SECURITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rxwire/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Levels, with the numbers of rxkad and rxgk on the wire (rx-protocol 7.3.1, 7.4.1). */
enum rxw_level {
	RXW_LEVEL_CLEAR = 0, /* the client is authenticated; data is not protected */
	RXW_LEVEL_AUTH = 1,  /* data is protected against modification */
	RXW_LEVEL_CRYPT = 2  /* data is encrypted as well */
};

/*
 * Space that a sealed packet needs around its data: sealed size = max(least, roundup(head +
 * length, block)) + tail. All zero, as for the null class: none.
 */
struct rxw_security_room {
	uint8_t head;  /* bytes before the data; 0..64 */
	uint8_t tail;  /* bytes after data and padding; 0..64 */
	uint8_t block; /* 1..16: head + data are padded with zeros to a multiple of it; 0 = 1 */
	uint8_t least; /* minimum of head + data after padding; 0..64 */
	bool quick;    /* verification is cheap: RXW_CLASS_SLOW does not apply to this level */
};

/* The connection that a packet belongs to; the same for all its packets. */
struct rxw_security_id {
	uint32_t epoch, cid; /* cid with channel bits 0 */
	uint16_t service;
	uint8_t index; /* securityIndex */
	bool client;   /* this side is the client */
};

/* A packet of a run. */
struct rxw_security_packet {
	uint8_t *data; /* the payload, after the header of 28 bytes; sealed and opened in place */
	uint32_t call, seq;
	uint8_t channel; /* 0..3 */
	uint16_t spare;	 /* header field: set by seal(), read by verify() */
	/*
	 * seal(): bytes of data at data + room.head; the caller knows the sealed size. verify():
	 * on entry, bytes of the payload as received; on return, bytes of data, which start at
	 * data + room.head and are within the payload.
	 */
	uint32_t length;
	/*
	 * verify(): 0 valid; -1 drop the packet as if lost; > 0 the packet is valid, but the
	 * ticket has expired and the connection ends with this code.
	 */
	rxw_code result;
};

/*
 * Identity of a peer. Set `size` before the call. The strings are valid as long as the call or
 * connection.
 */
struct rxw_identity {
	size_t size;
	uint8_t index; /* security index */
	uint8_t level; /* enum rxw_level; CLEAR for the null class */
	/* the token was made with the service key: the superuser, if the server grants that */
	bool local;
	const char *name;	/* "user@REALM", "host/name@REALM", as Kerberos; NULL = anonymous */
	const char *rxkad_name; /* "name.instance@cell" (rx-protocol 7.3.5); NULL = none */
	int64_t expires;	/* seconds since 1970; INT64_MAX = never */
	/*
	 * The parts of rxkad_name, at most 63 bytes each, "" = absent. If a server allows dots,
	 * only these tell name and instance apart. NULL if rxkad_name is.
	 */
	const char *rxkad_primary, *rxkad_instance, *rxkad_cell;
	/* rxkad: form of the ticket, as in struct rxw_rxkad_token; 0 = none */
	int32_t rxkad_kvno;
};

/*
 * Processing a run costs more than passing it to another thread: bulk data is verified on several
 * threads, and sealed there if callbacks write it.
 */
#define RXW_CLASS_SLOW 0x1u

/*
 * A security class. Zero the structure, set `size`, then fill in the other members; functions
 * that the class does not need remain NULL. `data` is the argument of rxw_security_create(),
 * `conn` the result of conn_create(). The library holds a lock only while it calls conn_create(),
 * conn_destroy(), room(), identity(), renew() and unseal(), which must not wait.
 */
struct rxw_security_class {
	size_t size;
	const char *name; /* "rxkad"; for logs and statistics */
	uint8_t index;	  /* securityIndex, unique within a service */
	unsigned flags;	  /* RXW_CLASS_… */
	/* code of a call if no packet verified for 60 s (rx-protocol 7.1); 0 = -1 */
	rxw_code broken;

	void (*destroy)(void *data); /* called with the last reference */
	/* 0, or a negative result: no connection is created. NULL: conn is NULL. */
	int (*conn_create)(void *data, const struct rxw_security_id *id, void **conn);
	void (*conn_destroy)(void *conn); /* wipes keys; not called for NULL */

	/*
	 * Client: called from conn_create() on. Server with an exchange: after check_response()
	 * has returned 0. The result must not change.
	 */
	void (*room)(const void *conn, struct rxw_security_room *room);
	/* Fill in all members except `size` and `index`. 0, or negative: anonymous. */
	int (*identity)(const void *conn, struct rxw_identity *identity);

	/*
	 * Any thread, several runs of a connection at the same time. All packets of a run belong
	 * to one call. seal(): 0, or negative: the call ends. verify() NULL: packets are not
	 * verified.
	 */
	int (*seal)(void *conn, struct rxw_security_packet *packets, size_t count);
	void (*verify)(void *conn, struct rxw_security_packet *packets, size_t count);

	/*
	 * The exchange, one function at a time per connection. challenge() and check_response()
	 * NULL: no exchange, connections of a server are valid from the start.
	 */
	/* Server: bytes written, or negative. The library stores them for retransmission. */
	int (*challenge)(void *conn, uint8_t *out, size_t room);
	/*
	 * Client: write a RESPONSE to `out` (`room`: 16 KiB; -RXW_ELIMIT if that is too little)
	 * and the header field. `calls`: see rx-protocol 7.3.3. Negative: not a CHALLENGE of this
	 * class; it is dropped.
	 */
	int (*respond)(void *conn, const uint8_t *challenge, size_t size, const uint32_t calls[4],
		       uint8_t *out, size_t room, size_t *written, uint16_t *spare);
	/*
	 * Server: 0 valid, otherwise the code for the ABORT. An invalid RESPONSE may have been
	 * damaged: the client gets the same CHALLENGE again, and the function is called up to 8
	 * times until it returns 0, and not after that. The connection ends with the code if no
	 * other RESPONSE follows within a second. `calls`: on entry the call numbers that the
	 * server knows, on return those that the client claims. The library checks them, and ends
	 * a connection with impossible numbers with `broken`.
	 */
	rxw_code (*check_response)(void *conn, const uint8_t *response, size_t size, uint16_t spare,
				  uint32_t calls[4]);
	/* code for clients below the level of the service; 0 = RXW_INVALID_OPERATION */
	rxw_code weak;

	/*
	 * For classes whose keys change: packets may be sent long after seal(), because the peer
	 * reads slowly or a packet was lost. renew() receives packets of one call, as they were
	 * sealed, each time before they are sent: `spare` is their header field, `length` the
	 * size of the sealed payload. It reseals those that the peer would no longer accept in
	 * place, with the same size, and sets `spare`. 0, or negative: the call ends and nothing
	 * is sent. NULL: sealed packets are valid as long as the connection. Called with the lock
	 * of the connection.
	 */
	int (*renew)(void *conn, struct rxw_security_packet *packets, size_t count);

	/*
	 * The reverse of seal(): recover the data of packets of this connection's own, in place, and
	 * set their `length`. The library needs it where the path begins to drop packets of the size
	 * that was sealed: the data are then cut into smaller packets and sealed again. `spare` and
	 * `length` as for renew(). 0, or negative: the call ends. NULL: calls with such packets end with
	 * RXW_CALL_MSGSIZE. Called with the lock of the connection.
	 */
	int (*unseal)(void *conn, struct rxw_security_packet *packets, size_t count);
};

/*
 * Create a security object, for rxw_connection_create() and struct rxw_service_options. The class
 * is copied; on success `data` belongs to it (destroy()). The caller owns *security. -RXW_EINVAL:
 * invalid size, seal() without verify() or the reverse, an incomplete exchange; -RXW_ENOMEM. Any
 * thread.
 */
RXW_MUST_USE
int rxw_security_create(const struct rxw_security_class *klass, void *data,
			rxw_security **security);
/*
 * The `data` of an object whose class has this `destroy` function; NULL for any other, for NULL,
 * and if `destroy` is NULL. So a class finds its own objects. Any thread.
 */
void *rxw_security_data(const rxw_security *security, void (*destroy)(void *data));
/* Endpoints, services and connections hold references of their own. NULL is ignored. Any thread. */
rxw_security *rxw_security_ref(rxw_security *security);
void rxw_security_unref(rxw_security *security);

/* The null class, index 0: no protection (rx-protocol 7.2). Static; need not be released. */
rxw_security *rxw_security_null(void);

/*
 * The identity of the client of a call (server), or the identity by which the server knows this
 * client. Fills in identity->size bytes. -RXW_EINVAL; -RXW_ESTATE: the exchange is not complete;
 * -RXW_ECALL: the connection has failed, for example because the server refused the client. A
 * server keeps the identity of a client whose connection fails later. Any thread.
 */
RXW_MUST_USE int rxw_call_identity(const rxw_call *call, struct rxw_identity *identity);
RXW_MUST_USE
int rxw_connection_identity(const rxw_connection *connection, struct rxw_identity *identity);

#ifdef __cplusplus
}
#endif
#endif
