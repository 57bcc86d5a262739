/* SPDX-License-Identifier: BSD-2-Clause */
/* The state of a class, of its connections, and of their transport keys. */
#ifndef RXW_RXGK_CONN_H
#define RXW_RXGK_CONN_H

#include <pthread.h>
#include <stdatomic.h>

#include <rxwire/rxgk.h>
#include <rxwire/xdr.h>

#include "rxgk/client.h"
#include "rxgk/crypto.h"
#include "rxgk/rxgk_token.h"

#define RXW_GK_NONCE	 20
#define RXW_GK_PSEUDO	 24   /* bytes of the pseudo-header, which is sealed before the data */
#define RXW_GK_AUTH_MAX	 1416 /* an encrypted authenticator */
#define RXW_GK_RANDOM	 1024 /* bytes fetched at once for confounders */
#define RXW_GK_REKEY_S	 60   /* minimal interval between new keys of a side */
#define RXW_GK_SKEW_S	 300  /* allowed clock difference to the issuer of a token */
#define RXW_GK_NAME_ROOM 1024 /* of the text of an identity, including its NUL */

/* The data of a rxw_security: constant after its creation. A secret. */
struct rxw_gk_class {
	bool server;
	uint8_t index;
	int64_t (*time)(void *context);
	void *time_context;
	/* Random bytes; 0, or negative. Only tests replace it. */
	int (*random)(void *context, void *out, size_t size);
	void *random_context;

	rxw_keys *keys; /* server */
	uint8_t level_min;

	struct rxw_gk_body token; /* client: what it knows of the token; without a name */
	uint8_t *blob;		  /* client: the token; owned */
	size_t blob_length;
	char *client_name; /* client: the name in the token, or NULL */
};

struct rxw_gk_key;

/* State that a thread needs for sealing or opening a run. */
struct rxw_gk_work {
	struct rxw_gk_work *next;
	struct rxw_gk_key *key;
	EVP_CIPHER_CTX *cipher; /* NULL below level crypt */
	unsigned random_left;
	uint8_t random[RXW_GK_RANDOM];
};

enum rxw_gk_way {
	RXW_GK_SEAL,
	RXW_GK_OPEN
};

/*
 * A transport key. The lock of the connection covers everything except `protect`, which is
 * constant. Counted: its slot and each work in use hold a reference; it owns idle works. A secret.
 */
struct rxw_gk_key {
	uint32_t number;
	unsigned refs;
	int64_t since;			  /* when this side first used it; 100 ns since 1970 */
	uint64_t bytes;			  /* bytes sealed with it */
	bool heard;			  /* a packet of the peer was verified with it */
	struct rxw_gk_protect protect[2]; /* by enum rxw_gk_way */
	struct rxw_gk_work *idle[2];
};

/*
 * A connection. `id`, `klass` and, once it has keys, `enctype`, `level` and the values of the token
 * are constant. The lock is a leaf: only libcrypto is called under it. Invariant: slot[n % 4] holds
 * key number n or nothing, only for n in current - 1 .. current + 1.
 */
struct rxw_gk_conn {
	const struct rxw_gk_class *klass;
	struct rxw_security_id id;
	uint8_t nonce[RXW_GK_NONCE]; /* server: of the CHALLENGE */
	bool nonce_made;

	_Atomic(bool) ready; /* the members below are set */
	const struct rxw_gk_enctype *enctype;
	uint8_t k0[RXW_GK_KEY_MAX];
	uint32_t level, lifetime;
	uint64_t byte_limit; /* 0 = none */
	int64_t start_time, expires;
	bool local;
	int32_t name_kind;
	char *name; /* allocated; NULL = none */

	pthread_mutex_t lock;
	_Atomic(uint32_t)
		current; /* written under the lock; may be read without it for comparing */
	struct rxw_gk_key *slot[4];
};

/*
 * -- common.c
 * ---------------------------------------------------------------------------------------
 */

/* Whether a class index is one of rxgk: 4 or 6. */
bool rxw_gk_index_ok(uint8_t index);
/* The system's clock, in 100 ns since 1970; the default clock of a class. */
int64_t rxw_gk_clock(void *unused);
/* XDR opaque<max>. *data points into the stream. */
bool rxw_gk_get_opaque(struct rxw_xdr *x, const uint8_t **data, uint32_t *length, uint32_t max);
bool rxw_gk_put_opaque(struct rxw_xdr *x, const void *data, size_t length);

/*
 * -- keyring.c
 * -------------------------------------------------------------------------------------
 */

/* Set the values of the token; then the connection has keys. Key `number` is the current one. */
int rxw_gk_conn_ready(struct rxw_gk_conn *c, const struct rxw_gk_body *token, int64_t start_time,
		      uint32_t number);
void rxw_gk_conn_forget(struct rxw_gk_conn *c);
/* The byte limit of a token; 0 = none. */
uint64_t rxw_gk_byte_limit(uint32_t bytelife);
/* Extend a 16-bit key number, given the current one; false: it is not next to the current one. */
bool rxw_gk_whole_number(uint32_t current, uint16_t word, uint32_t *number);

/*
 * A work for sealing with the current key, which is replaced first if it is due; or for opening
 * with the key that the header's word names. NULL: no memory, or BADKEYNO.
 */
struct rxw_gk_work *rxw_gk_take_seal(struct rxw_gk_conn *c, uint16_t *word);
struct rxw_gk_work *rxw_gk_take_open(struct rxw_gk_conn *c, uint16_t word);
/* Return it. `bytes`: bytes of sealed packets; `verified`: at least one packet was valid. */
void rxw_gk_give(struct rxw_gk_conn *c, struct rxw_gk_work *w, enum rxw_gk_way way, uint64_t bytes,
		 bool verified);
/*
 * The key that `word` names, up to number `current`, for opening what this side has sealed. Owned
 * by the caller: rxw_gk_older_free(). NULL: no memory. Any thread.
 */
struct rxw_gk_key *rxw_gk_older(const struct rxw_gk_conn *c, uint32_t current, uint16_t word);
void rxw_gk_older_free(struct rxw_gk_key *k);
/* The number of the current key, which the client's RESPONSE uses. */
uint32_t rxw_gk_current(struct rxw_gk_conn *c);

/*
 * -- rxgk_packet.c, rxgk_exchange.c, rxgk_class.c
 * -------------------------------------------------------------------
 */

void rxw_gk_room(const void *conn, struct rxw_security_room *room);
int rxw_gk_seal(void *conn, struct rxw_security_packet *packets, size_t count);
int rxw_gk_renew(void *conn, struct rxw_security_packet *packets, size_t count);
int rxw_gk_unseal(void *conn, struct rxw_security_packet *packets, size_t count);
void rxw_gk_verify(void *conn, struct rxw_security_packet *packets, size_t count);
int rxw_gk_challenge(void *conn, uint8_t *out, size_t room);
int rxw_gk_respond(void *conn, const uint8_t *challenge, size_t size, const uint32_t calls[4],
		   uint8_t *out, size_t room, size_t *written, uint16_t *spare);
int32_t rxw_gk_check_response(void *conn, const uint8_t *response, size_t size, uint16_t spare,
			      uint32_t calls[4]);

/* The operations of the class; tests call them without a rxw_security. */
extern const struct rxw_security_class rxw_gk_table;
int rxw_gk_class_server(const struct rxw_rxgk_server_options *options, struct rxw_gk_class **klass);
int rxw_gk_class_client(const struct rxw_rxgk_token *token,
			const struct rxw_rxgk_client_options *options, struct rxw_gk_class **klass);

#endif
