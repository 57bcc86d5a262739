/* SPDX-License-Identifier: BSD-2-Clause */
/* The negotiation service: its messages (rx-protocol 7.4.7). */
#ifndef RXW_RXGK_NEGOTIATE_H
#define RXW_RXGK_NEGOTIATE_H

#include <gssapi/gssapi.h>

#include <rxwire/rpc.h>
#include <rxwire/rxgk.h>

#include "rxgk/rxgk_conn.h"

#define RXW_GK_LIST_MAX	   255
#define RXW_GK_NONCE_MAX   1024
#define RXW_GK_REQUEST_MAX 65536 /* maximum request that a server reads, bytes */
#define RXW_GK_REPLY_MAX   (RXW_GK_TOKEN_MAX + 65536) /* maximum reply that a client reads, bytes */
#define RXW_GK_UUID	   44			      /* bytes of an afsUUID on the wire */

enum rxw_gk_opcode {
	RXW_GK_NEGOTIATE = 1,
	RXW_GK_COMBINE = 2,
	RXW_GK_AFS_COMBINE = 3
};

extern const struct rxw_rpc_interface rxw_gk_interface;

/* Bytes within a message. */
struct rxw_gk_bytes {
	const uint8_t *data;
	uint32_t length;
};

struct rxw_gk_list {
	uint32_t count, item[RXW_GK_LIST_MAX];
};

struct rxw_gk_start {
	struct rxw_gk_list enctypes, levels;
	uint32_t lifetime, bytelife;
	struct rxw_gk_bytes nonce;
};

struct rxw_gk_info {
	int32_t error, enctype;
	uint32_t level, lifetime, bytelife;
	int64_t expires;
	struct rxw_gk_bytes mic, token, nonce;
};

/* Each fails if its cursor fails. */
bool rxw_gk_get_list(struct rxw_xdr *x, struct rxw_gk_list *l);
bool rxw_gk_put_list(struct rxw_xdr *x, const struct rxw_gk_list *l);
bool rxw_gk_get_start(struct rxw_xdr *x, struct rxw_gk_start *s);
bool rxw_gk_put_start(struct rxw_xdr *x, const struct rxw_gk_start *s);
bool rxw_gk_get_info(struct rxw_xdr *x, struct rxw_gk_info *i);
bool rxw_gk_put_info(struct rxw_xdr *x, const struct rxw_gk_info *i);
bool rxw_gk_get_bytes(struct rxw_xdr *x, struct rxw_gk_bytes *b, uint32_t max);

/* Whether the value is in the list. */
bool rxw_gk_in_list(const struct rxw_gk_list *l, uint32_t item);

/*
 * Read the stream of a call, at most `max` bytes, into rxw_secret_alloc(); NULL: too long, or
 * error.
 */
uint8_t *rxw_gk_read_all(rxw_call *call, size_t max, size_t *size);

/*
 * K0 of a negotiation, of the length of `enctype`. False: GSSAPI failed.
 */
bool rxw_gk_k0(gss_ctx_id_t context, const struct rxw_gk_start *start,
	       const struct rxw_gk_bytes *server_nonce, const struct rxw_gk_enctype *enctype,
	       uint8_t out[RXW_GK_KEY_MAX]);

/* The text of an error of GSSAPI. */
void rxw_gk_gss_text(OM_uint32 major, OM_uint32 minor, char *out, size_t room);

/*
 * -- server
 * ------------------------------------------------------------------------------------------
 */

struct rxw_gk_negotiation {
	struct rxw_rpc_service base;
	struct rxw_rxgk_negotiation_options options;
	gss_cred_id_t cred;
	int64_t skew_s; /* clock skew that GSSAPI adds to the lifetime of a ticket */
};

#endif
