/* SPDX-License-Identifier: BSD-2-Clause */
/* Sealing and opening packets (rx-protocol 7.4.5). */
#include <openssl/crypto.h>
#include <string.h>

#include <rxwire/error.h>

#include "rxgk/rxgk_conn.h"

void rxw_gk_room(const void *conn, struct rxw_security_room *room)
{
	const struct rxw_gk_conn *c = conn;

	memset(room, 0, sizeof(*room));
	room->quick = c->level == RXW_LEVEL_CLEAR;
	if (c->level == RXW_LEVEL_AUTH) {
		room->head = c->enctype->mac_length;
	} else if (c->level == RXW_LEVEL_CRYPT) {
		room->head = RXW_GK_CONFOUNDER + RXW_GK_PSEUDO;
		room->tail = c->enctype->mac_length;
	}
}

/* The pseudo-header: identity of the packet, and length of its data. */
static void pseudo_header(const struct rxw_gk_conn *c, const struct rxw_security_packet *p,
			  uint32_t length, uint8_t out[RXW_GK_PSEUDO])
{
	rxw_xdr_store32(out, c->id.epoch);
	rxw_xdr_store32(out + 4, c->id.cid | p->channel);
	rxw_xdr_store32(out + 8, p->call);
	rxw_xdr_store32(out + 12, p->seq);
	rxw_xdr_store32(out + 16, c->id.index);
	rxw_xdr_store32(out + 20, length);
}

/*
 * 16 random bytes. Many are generated at a time, because a call of the generator costs as much as a
 * packet.
 */
static int make_confounder(const struct rxw_gk_class *k, struct rxw_gk_work *w, uint8_t *out)
{
	if (w->random_left < RXW_GK_CONFOUNDER) {
		if (k->random(k->random_context, w->random, sizeof(w->random)))
			return -RXW_ESYS;
		w->random_left = sizeof(w->random);
	}
	memcpy(out, w->random + sizeof(w->random) - w->random_left, RXW_GK_CONFOUNDER);
	w->random_left -= RXW_GK_CONFOUNDER;
	return 0;
}

static int seal_one(struct rxw_gk_conn *c, struct rxw_gk_work *w, struct rxw_security_packet *p)
{
	const struct rxw_gk_protect *key = &w->key->protect[RXW_GK_SEAL];
	uint8_t pseudo[RXW_GK_PSEUDO];

	if (!key->crypt) {
		uint8_t mac = key->enctype->mac_length;

		pseudo_header(c, p, p->length, pseudo);
		rxw_gk_mic(key, pseudo, sizeof(pseudo), p->data + mac, p->length, p->data);
		return 0;
	}
	if (make_confounder(c->klass, w, p->data))
		return -RXW_ESYS;
	pseudo_header(c, p, p->length, p->data + RXW_GK_CONFOUNDER);
	return rxw_gk_encrypt(key, w->cipher, p->data,
			      RXW_GK_CONFOUNDER + RXW_GK_PSEUDO + (size_t)p->length);
}

int rxw_gk_seal(void *conn, struct rxw_security_packet *packets, size_t count)
{
	struct rxw_gk_conn *c = conn;
	struct rxw_gk_work *w;
	uint64_t bytes = 0;
	uint16_t word = 0;
	int r = 0;

	if (!atomic_load_explicit(&c->ready, memory_order_acquire))
		return -RXW_ESTATE;
	if (c->level == RXW_LEVEL_CLEAR) {
		for (size_t i = 0; i < count; i++)
			packets[i].spare =
				(uint16_t)atomic_load_explicit(&c->current, memory_order_relaxed);
		return 0;
	}
	w = rxw_gk_take_seal(c, &word);
	if (!w)
		return -RXW_ENOMEM;
	for (size_t i = 0; i < count && !r; i++) {
		packets[i].spare = word;
		r = seal_one(c, w, &packets[i]);
		bytes += packets[i].length;
	}
	rxw_gk_give(c, w, RXW_GK_SEAL, bytes, false);
	return r;
}

/* Reseal a payload of p->length bytes, sealed with `older`, with the key of `w`. */
static int renew_one(struct rxw_gk_conn *c, struct rxw_gk_work *w, const struct rxw_gk_key *older,
		     EVP_CIPHER_CTX *cipher, struct rxw_security_packet *p)
{
	const struct rxw_gk_protect *key = &older->protect[RXW_GK_SEAL];
	uint32_t whole = p->length, around = key->enctype->mac_length;
	int r;

	if (key->crypt)
		around += RXW_GK_CONFOUNDER + RXW_GK_PSEUDO;
	if (whole < around || (key->crypt && rxw_gk_decrypt(key, cipher, p->data, whole)))
		return -RXW_ESTATE;
	p->length = whole - around;
	r = seal_one(c, w, p);
	p->length = whole;
	return r;
}

/* Reseal the packets from `from` on that have the same key number with the key of `w`. */
static int renew_some(struct rxw_gk_conn *c, struct rxw_gk_work *w,
		      struct rxw_security_packet *from, const struct rxw_security_packet *end,
		      uint64_t *bytes)
{
	const uint16_t old = from->spare, word = (uint16_t)w->key->number;
	struct rxw_gk_key *older = rxw_gk_older(c, w->key->number, old);
	EVP_CIPHER_CTX *cipher = NULL;
	int r = 0;

	if (!older)
		return -RXW_ENOMEM;
	if (w->cipher && !(cipher = rxw_gk_cipher_new(&older->protect[RXW_GK_SEAL], false)))
		r = -RXW_ENOMEM;
	for (; from < end && !r; from++)
		if (from->spare == old) {
			r = renew_one(c, w, older, cipher, from);
			from->spare = word;
			*bytes += from->length;
		}
	EVP_CIPHER_CTX_free(cipher);
	rxw_gk_older_free(older);
	return r;
}

/*
 * The peer accepts its current key and the adjacent ones, and its key is at most one away from
 * ours. So packets sealed with our current key are accepted; packets sealed with others may not be.
 */
int rxw_gk_renew(void *conn, struct rxw_security_packet *packets, size_t count)
{
	struct rxw_gk_conn *c = conn;
	struct rxw_gk_work *w = NULL;
	uint64_t bytes = 0;
	uint16_t word = (uint16_t)atomic_load_explicit(&c->current, memory_order_relaxed);
	int r = 0;

	if (c->level == RXW_LEVEL_CLEAR)
		return 0;
	for (size_t i = 0; i < count && !r; i++) {
		if (packets[i].spare == word)
			continue;
		/*
		 * A new key may begin here: packets before this are one behind, which is accepted.
		 */
		if (!w && !(w = rxw_gk_take_seal(c, &word)))
			return -RXW_ENOMEM;
		if (packets[i].spare == word)
			continue;
		r = renew_some(c, w, &packets[i], packets + count, &bytes);
	}
	if (w)
		rxw_gk_give(c, w, RXW_GK_SEAL, bytes, false);
	return r;
}

/* True: the packet is valid, and p->length is the length of its data. */
static bool open_one(const struct rxw_gk_conn *c, const struct rxw_gk_protect *key,
		     EVP_CIPHER_CTX *cipher, struct rxw_security_packet *p)
{
	uint8_t pseudo[RXW_GK_PSEUDO], mic[RXW_GK_MAC_MAX];
	uint32_t mac = key->enctype->mac_length, plain, length;
	const uint8_t *header = p->data + RXW_GK_CONFOUNDER;

	if (!key->crypt) {
		if (p->length < mac)
			return false;
		p->length -= mac;
		pseudo_header(c, p, p->length, pseudo);
		rxw_gk_mic(key, pseudo, sizeof(pseudo), p->data + mac, p->length, mic);
		return CRYPTO_memcmp(mic, p->data, mac) == 0;
	}
	if (p->length < RXW_GK_CONFOUNDER + RXW_GK_PSEUDO + mac ||
	    rxw_gk_decrypt(key, cipher, p->data, p->length))
		return false;
	plain = p->length - RXW_GK_CONFOUNDER - RXW_GK_PSEUDO - mac;
	length = rxw_xdr_load32(header + 20);
	if (length > plain)
		return false;
	pseudo_header(c, p, length, pseudo);
	if (CRYPTO_memcmp(pseudo, header, sizeof(pseudo)))
		return false;
	p->length = length;
	return true;
}

void rxw_gk_verify(void *conn, struct rxw_security_packet *packets, size_t count)
{
	struct rxw_gk_conn *c = conn;
	struct rxw_gk_work *w = NULL;
	bool verified = false, ready = atomic_load_explicit(&c->ready, memory_order_acquire);
	int32_t good = 0;
	uint16_t word = 0;

	/* A server ends a connection when its token expires. */
	if (ready && !c->id.client && c->expires &&
	    c->klass->time(c->klass->time_context) > c->expires)
		good = RXW_RXGK_EXPIRED;
	for (size_t i = 0; i < count; i++) {
		struct rxw_security_packet *p = &packets[i];

		p->result = -1;
		if (!ready)
			continue;
		if (c->level == RXW_LEVEL_CLEAR) {
			p->result = good;
			continue;
		}
		if (w && p->spare != word) {
			rxw_gk_give(c, w, RXW_GK_OPEN, 0, verified);
			w = NULL;
		}
		if (!w) {
			word = p->spare;
			verified = false;
			w = rxw_gk_take_open(c, word);
			if (!w)
				continue;
		}
		if (open_one(c, &w->key->protect[RXW_GK_OPEN], w->cipher, p)) {
			p->result = good;
			verified = true;
		}
	}
	if (w)
		rxw_gk_give(c, w, RXW_GK_OPEN, 0, verified);
}

/* Unseal the packets from `from` on that have the same key number. Returns the first that has another. */
static struct rxw_security_packet *unseal_some(const struct rxw_gk_conn *c, uint32_t current,
					       struct rxw_security_packet *from,
					       const struct rxw_security_packet *end)
{
	struct rxw_gk_key *key = rxw_gk_older(c, current, from->spare);
	const struct rxw_gk_protect *own = key ? &key->protect[RXW_GK_SEAL] : NULL;
	const uint16_t word = from->spare;
	EVP_CIPHER_CTX *cipher = NULL;
	bool good = key != NULL;

	if (good && own->crypt && !(cipher = rxw_gk_cipher_new(own, false)))
		good = false;
	while (good && from < end && from->spare == word) {
		good = open_one(c, own, cipher, from);
		from++;
	}
	EVP_CIPHER_CTX_free(cipher);
	rxw_gk_older_free(key);
	return good ? from : NULL;
}

int rxw_gk_unseal(void *conn, struct rxw_security_packet *packets, size_t count)
{
	struct rxw_gk_conn *c = conn;
	const struct rxw_security_packet *end = packets + count;
	uint32_t current = rxw_gk_current(c);

	if (c->level == RXW_LEVEL_CLEAR)
		return 0;
	while (packets != NULL && packets < end)
		packets = unseal_some(c, current, packets, end);
	return packets != NULL ? 0 : -RXW_ESTATE;
}
