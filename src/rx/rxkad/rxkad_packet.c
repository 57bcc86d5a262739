/* SPDX-License-Identifier: BSD-2-Clause */
/* Sealing and opening of DATA packets, in runs (rx-protocol 7.3.4). */
#include <string.h>

#include <rxwire/error.h>

#include "base/wire.h"
#include "rxkad/rxkad_conn.h"

/* Packets that are processed together: as many as the widest kernel has lanes. */
#define SLICE	   64u

#define AUTH_HEAD  4u
#define CRYPT_HEAD 8u

void rxw_rxkad_room(const void *conn, struct rxw_security_room *room)
{
	const struct rxw_rxkad_conn *c = conn;

	memset(room, 0, sizeof(*room));
	/*
	 * Below crypt a packet costs two blocks of the cipher, less than handing it to another
	 * thread.
	 */
	room->quick = c->level < RXW_LEVEL_CRYPT;
	if (c->level == RXW_LEVEL_AUTH) {
		room->head = AUTH_HEAD;
		room->least = RXW_FCRYPT_BLOCK;
	} else if (c->level == RXW_LEVEL_CRYPT) {
		room->head = CRYPT_HEAD;
		room->block = RXW_FCRYPT_BLOCK;
	}
}

/* The input of the header checksum, in a block that is to be encrypted. */
static void checksum_input(const struct rxw_rxkad_conn *c, const struct rxw_security_packet *p,
			   uint8_t block[8])
{
	rxw_put32(block, p->call ^ (uint32_t)(c->preseq >> 32));
	rxw_put32(block + 4,
		  ((uint32_t)p->channel << 30 | (p->seq & 0x3fffffff)) ^ (uint32_t)c->preseq);
}

static uint16_t checksum_of(const uint8_t block[8])
{
	uint16_t sum = rxw_get16(block + 4);

	return sum ? sum : 1;
}

/* The upper half of the first word of a sealed packet. */
static uint16_t label(const struct rxw_security_packet *p)
{
	return (uint16_t)(p->seq ^ p->call);
}

static void seal_slice(const struct rxw_rxkad_conn *c, struct rxw_security_packet *p, size_t count)
{
	uint8_t blocks[2 * SLICE][RXW_FCRYPT_BLOCK];
	struct rxw_fcrypt_text texts[SLICE];
	size_t used = count;

	for (size_t i = 0; i < count; i++) {
		size_t size = c->level == RXW_LEVEL_AUTH ? AUTH_HEAD + p[i].length
							 : CRYPT_HEAD + p[i].length;

		checksum_input(c, &p[i], blocks[i]);
		if (c->level == RXW_LEVEL_CLEAR)
			continue;
		rxw_put32(p[i].data, (uint32_t)label(&p[i]) << 16 | (p[i].length & 0xffff));
		if (c->level == RXW_LEVEL_AUTH) {
			if (size < RXW_FCRYPT_BLOCK)
				memset(p[i].data + size, 0, RXW_FCRYPT_BLOCK - size);
			memcpy(blocks[used++], p[i].data, RXW_FCRYPT_BLOCK);
			continue;
		}
		rxw_put32(p[i].data + 4, 0);
		texts[i].blocks = (size + RXW_FCRYPT_BLOCK - 1) / RXW_FCRYPT_BLOCK;
		texts[i].data = p[i].data;
		texts[i].x = c->key;
		memset(p[i].data + size, 0, RXW_FCRYPT_BLOCK * texts[i].blocks - size);
	}
	rxw_fcrypt_encrypt(&c->cipher, blocks[0], used);
	for (size_t i = 0; i < count; i++)
		p[i].spare = checksum_of(blocks[i]);
	if (c->level == RXW_LEVEL_AUTH)
		for (size_t i = 0; i < count; i++)
			memcpy(p[i].data, blocks[count + i], RXW_FCRYPT_BLOCK);
	else if (c->level == RXW_LEVEL_CRYPT)
		rxw_fcrypt_pcbc_encrypt(&c->cipher, texts, count);
}

int rxw_rxkad_seal(void *conn, struct rxw_security_packet *packets, size_t count)
{
	const struct rxw_rxkad_conn *c = conn;

	for (size_t n; count > 0; packets += n, count -= n) {
		n = count < SLICE ? count : SLICE;
		seal_slice(c, packets, n);
	}
	return 0;
}

/* Check the decrypted first word, and set the length of the data. */
static bool open_word(struct rxw_security_packet *p, const uint8_t *first, uint32_t head)
{
	uint32_t word = rxw_get32(first), length = word & 0xffff;
	bool good = (word >> 16) == label(p);

	if (!good || length > p->length - head)
		return false;
	p->length = length;
	return true;
}

static void verify_auth(const struct rxw_rxkad_conn *c, struct rxw_security_packet *p, size_t count)
{
	uint8_t blocks[SLICE][RXW_FCRYPT_BLOCK];
	size_t which[SLICE], used = 0;

	for (size_t i = 0; i < count; i++) {
		if (p[i].result == 0 && p[i].length < RXW_FCRYPT_BLOCK)
			p[i].result = -1;
		if (p[i].result)
			continue;
		which[used] = i;
		memcpy(blocks[used++], p[i].data, RXW_FCRYPT_BLOCK);
	}
	rxw_fcrypt_decrypt(&c->cipher, blocks[0], used);
	for (size_t i = 0; i < used; i++) {
		struct rxw_security_packet *packet = &p[which[i]];

		memcpy(packet->data, blocks[i], RXW_FCRYPT_BLOCK);
		if (!open_word(packet, blocks[i], AUTH_HEAD))
			packet->result = -1;
	}
}

static void verify_crypt(const struct rxw_rxkad_conn *c, struct rxw_security_packet *p,
			 size_t count)
{
	struct rxw_fcrypt_text texts[SLICE];
	size_t used = 0;

	for (size_t i = 0; i < count; i++) {
		if (p[i].result == 0 &&
		    (p[i].length < CRYPT_HEAD || p[i].length % RXW_FCRYPT_BLOCK != 0))
			p[i].result = -1;
		if (p[i].result)
			continue;
		texts[used].data = p[i].data;
		texts[used].blocks = p[i].length / RXW_FCRYPT_BLOCK;
		texts[used++].x = c->key;
	}
	rxw_fcrypt_pcbc_decrypt(&c->cipher, texts, used);
	for (size_t i = 0; i < count; i++)
		if (p[i].result == 0 && !open_word(&p[i], p[i].data, CRYPT_HEAD))
			p[i].result = -1;
}

static void verify_slice(const struct rxw_rxkad_conn *c, struct rxw_security_packet *p,
			 size_t count, bool expired)
{
	uint8_t blocks[SLICE][RXW_FCRYPT_BLOCK];

	for (size_t i = 0; i < count; i++)
		checksum_input(c, &p[i], blocks[i]);
	rxw_fcrypt_encrypt(&c->cipher, blocks[0], count);
	for (size_t i = 0; i < count; i++)
		p[i].result = p[i].spare == checksum_of(blocks[i]) ? 0 : -1;
	if (c->level == RXW_LEVEL_AUTH)
		verify_auth(c, p, count);
	else if (c->level == RXW_LEVEL_CRYPT)
		verify_crypt(c, p, count);
	for (size_t i = 0; i < count; i++)
		if (p[i].result == 0 && expired)
			p[i].result = RXW_RXKAD_EXPIRED;
}

void rxw_rxkad_verify(void *conn, struct rxw_security_packet *packets, size_t count)
{
	const struct rxw_rxkad_conn *c = conn;
	/* Only a server checks the expiration of the ticket. */
	bool expired = !c->client && rxw_rxkad_now(c->side) > c->expires;

	for (size_t n; count > 0; packets += n, count -= n) {
		n = count < SLICE ? count : SLICE;
		verify_slice(c, packets, n, expired);
	}
}

int rxw_rxkad_unseal(void *conn, struct rxw_security_packet *packets, size_t count)
{
	const struct rxw_rxkad_conn *c = conn;

	for (size_t n; count > 0; packets += n, count -= n) {
		n = count < SLICE ? count : SLICE;
		/* Both directions have the same key, and all that names a packet is in the checksums. */
		verify_slice(c, packets, n, false);
		for (size_t i = 0; i < n; i++)
			if (packets[i].result != 0)
				return -RXW_ESTATE;
	}
	return 0;
}
