/* SPDX-License-Identifier: BSD-2-Clause */
/* The state of a class (one for each rxw_security), and of its connections. */
#ifndef RXW_RXKAD_CONN_H
#define RXW_RXKAD_CONN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rxkad/fcrypt.h"
#include "rxkad/ticket.h"
#include "rxwire/rxkad.h"

/* A class with its keys, in memory of rxw_secret_alloc(). Constant, apart from allow_dotted. */
struct rxw_rxkad {
	bool server;

	/* server */
	rxw_keys *keys;		   /* or NULL */
	rxw_rxkad_key_fn find_key; /* or NULL */
	void *find_context;
	void (*find_destroy)(void *context); /* or NULL */
	uint8_t level_min;
	bool allow_single_des;
	_Atomic(bool) allow_dotted;	  /* relaxed */
	char local_realm[RXW_RXKAD_NAME]; /* "": none */
	int64_t (*time)(void *context);	  /* NULL: the system's clock */
	void *time_context;

	/* client */
	uint8_t level;
	uint8_t session_key[8];
	uint32_t kvno;
	uint8_t *ticket; /* rxw_secret_alloc() */
	size_t ticket_length;
	bool local;
	int64_t expires;
	char *client_name; /* or NULL */
};

/*
 * A connection, in memory of rxw_secret_alloc(); no lock. A client's is ready and constant from its
 * creation on; a server's once check_response() has returned 0, before which the library does not
 * use it otherwise.
 */
struct rxw_rxkad_conn {
	const struct rxw_rxkad *side;
	uint32_t epoch, cid, index;
	bool client, ready;
	uint8_t level;
	struct rxw_fcrypt cipher;
	uint64_t key;	 /* also the initial vector */
	uint64_t preseq; /* initial value of header checksums */
	int64_t expires;
	uint32_t nonce; /* server: of the CHALLENGE */
	bool local;
	char *name, *rxkad_name; /* of the peer (server), or NULL; malloc() */
	/* the parts of rxkad_name, after it in the same memory */
	const char *primary, *instance, *cell;
	uint32_t kvno; /* of the ticket; 0: not known yet */
};

int64_t rxw_rxkad_now(const struct rxw_rxkad *side);
/* Set the session key: cipher, initial vector, preseq. */
void rxw_rxkad_set_key(struct rxw_rxkad_conn *c, const uint8_t key[8]);

/* Create the state of a class. Results as of rxw_rxkad_server() and rxw_rxkad_client(). */
int rxw_rxkad_server_side(const struct rxw_rxkad_server_options *options,
			  struct rxw_rxkad **result);
int rxw_rxkad_client_side(const struct rxw_rxkad_token *token, uint8_t level,
			  struct rxw_rxkad **result);

/* The operations of the class. */
void rxw_rxkad_side_destroy(void *data);
int rxw_rxkad_conn_create(void *data, const struct rxw_security_id *id, void **conn);
void rxw_rxkad_conn_destroy(void *conn);
int rxw_rxkad_identity(const void *conn, struct rxw_identity *id);
void rxw_rxkad_room(const void *conn, struct rxw_security_room *room);
int rxw_rxkad_seal(void *conn, struct rxw_security_packet *packets, size_t count);
int rxw_rxkad_unseal(void *conn, struct rxw_security_packet *packets, size_t count);
void rxw_rxkad_verify(void *conn, struct rxw_security_packet *packets, size_t count);
int rxw_rxkad_challenge(void *conn, uint8_t *out, size_t room);
int rxw_rxkad_respond(void *conn, const uint8_t *challenge, size_t size, const uint32_t calls[4],
		      uint8_t *out, size_t room, size_t *written, uint16_t *spare);
int32_t rxw_rxkad_check_response(void *conn, const uint8_t *response, size_t size, uint16_t spare,
				 uint32_t calls[4]);

#endif
