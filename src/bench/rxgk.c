/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Speed of sealing and opening packets under rxgk, by enctype and level, compared with libcrypto's
 * cipher and HMAC on 16 KiB, each alone: rxgk. Runs alternate. Prints one line of JSON.
 */
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "count.h"
#include "rxgk/client.h"
#include "rxgk/rxgk_conn.h"

#define ROUNDS 31
#define PACKET 1364u /* bytes of data in a full packet under crypt */
#define STRIDE 1536u
#define RUN    45u    /* packets per batch */
#define BLOCK  16384u /* libcrypto's */
#define EACH   4u     /* runs per round */

static const char *const digests[] = {"SHA1", "SHA1", "SHA256", "SHA384"};
static uint8_t memory[RUN][STRIDE], sealed[RUN][STRIDE], block[BLOCK];

/* Seconds per byte, by enctype 17..20 and operation. */
enum what { CIPHER, DECIPHER, HMAC_, SEAL1, OPEN1, SEAL2, OPEN2, WHATS };
static const char *const names[] = {"encrypt", "decrypt", "hmac", "seal_auth", "open_auth", "seal_crypt",
				    "open_crypt"};
static double seconds[4][WHATS][ROUNDS];

struct types {
	EVP_CIPHER_CTX *ctx[2];
	EVP_MAC_CTX *mac;
	void *conn[2][2]; /* by level - 1; server, client */
} types[4];

static int64_t now(void *context)
{
	(void)context;
	return RXW_RXGK_SECOND;
}

static int make_conn(const struct rxw_gk_enctype *e, uint32_t level, bool client, void **conn)
{
	struct rxw_rxgk_token t = {.enctype = e->id,
				   .level = level,
				   .key = {1, 2, 3},
				   .token = "token",
				   .token_length = 5};
	struct rxw_rxgk_client_options o = {.time = now};
	struct rxw_security_id id = {.epoch = 1, .cid = 4, .index = 4, .client = client};
	struct rxw_gk_class *k;

	/*
	 * Both ends as a client creates them. The opening end gets the state of a completed
	 * exchange.
	 */
	return rxw_gk_class_client(&t, &o, &k) || rxw_gk_table.conn_create(k, &id, conn);
}

static int prepare(unsigned n)
{
	const struct rxw_gk_enctype *e = rxw_gk_enctype((int32_t)(17 + n));
	struct types *t = &types[n];
	uint8_t key[32] = {7};
	EVP_CIPHER *cipher = EVP_CIPHER_fetch(NULL, e->cbc, NULL);
	EVP_MAC *mac = EVP_MAC_fetch(NULL, "HMAC", NULL);
	OSSL_PARAM params[] = {OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST,
								(char *)digests[n], 0),
			       OSSL_PARAM_construct_end()};

	for (int back = 0; back < 2; back++) {
		t->ctx[back] = EVP_CIPHER_CTX_new();
		if (!EVP_CipherInit_ex2(t->ctx[back], cipher, key, key, !back, NULL) ||
		    !EVP_CIPHER_CTX_set_padding(t->ctx[back], 0))
			return -1;
	}
	t->mac = EVP_MAC_CTX_new(mac);
	if (!t->mac || !EVP_MAC_init(t->mac, key, sizeof(key), params))
		return -1;
	for (uint32_t level = 1; level <= 2; level++)
		for (int client = 0; client < 2; client++)
			if (make_conn(e, level, client, &t->conn[level - 1][client]))
				return -1;
	return 0;
}

static void fill(struct rxw_security_packet *run, uint8_t (*where)[STRIDE], uint32_t length)
{
	memset(run, 0, RUN * sizeof(*run));
	for (uint32_t i = 0; i < RUN; i++) {
		run[i].data = where[i];
		run[i].call = 1;
		run[i].seq = i + 1;
		run[i].length = length;
	}
}

static void must(bool good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "rxgk: %s failed\n", what);
	exit(1);
}

/* Seconds per byte of data. */
static double pass(unsigned n, enum what what)
{
	struct types *t = &types[n];
	struct rxw_security_packet run[RUN];
	struct rxw_security_room room;
	unsigned level = what >= SEAL2 ? 2 : 1;
	void **conn = t->conn[level - 1];
	uint8_t out[64];
	double spent = 0, start;
	size_t got;
	int some;

	if (what <= HMAC_) {
		start = count_now();
		for (unsigned i = 0; i < 4 * EACH; i++) {
			if (what == HMAC_) {
				EVP_MAC_init(t->mac, NULL, 0, NULL);
				EVP_MAC_update(t->mac, block, BLOCK);
				EVP_MAC_final(t->mac, out, &got, sizeof(out));
			} else {
				EVP_CipherUpdate(t->ctx[what], block, &some, block, BLOCK);
			}
		}
		return (count_now() - start) / (4.0 * EACH * BLOCK);
	}
	rxw_gk_table.room(conn[0], &room);
	for (unsigned i = 0; i < EACH; i++) {
		bool opens = what == OPEN1 || what == OPEN2;

		fill(run, memory, PACKET);
		start = count_now();
		must(!rxw_gk_table.seal(conn[1], run, RUN), "sealing");
		if (!opens)
			spent += count_now() - start;
		if (opens) {
			uint16_t word = run[0].spare;

			memcpy(sealed, memory, sizeof(sealed));
			fill(run, sealed, room.head + PACKET + room.tail);
			for (unsigned k = 0; k < RUN; k++)
				run[k].spare = word;
			start = count_now();
			rxw_gk_table.verify(conn[0], run, RUN);
			spent += count_now() - start;
			for (unsigned k = 0; k < RUN; k++)
				must(!run[k].result && run[k].length == PACKET, "opening");
		}
	}
	return spent / (1.0 * EACH * RUN * PACKET);
}

int main(void)
{
	double median[WHATS];

	for (unsigned n = 0; n < 4; n++)
		must(!prepare(n), "libcrypto");
	for (unsigned round = 0; round < ROUNDS; round++)
		for (unsigned n = 0; n < 4; n++)
			for (enum what w = 0; w < WHATS; w++)
				seconds[n][w][round] = pass(n, w);
	printf("{\"packet\": %u", PACKET);
	for (unsigned n = 0; n < 4; n++) {
		for (enum what w = 0; w < WHATS; w++) {
			median[w] = count_median(seconds[n][w], ROUNDS);
			printf(", \"%u_%s_MBps\": %.1f", 17 + n, names[w], 1e-6 / median[w]);
		}
		/* The rate of one core for libcrypto at each end, and ours. */
		printf(", \"%u_own_seal_MBps\": %.1f, \"%u_own_open_MBps\": %.1f", 17 + n,
		       1e-6 / (median[CIPHER] + median[HMAC_]), 17 + n,
		       1e-6 / (median[DECIPHER] + median[HMAC_]));
		printf(", \"%u_seal_share\": %.3f, \"%u_open_share\": %.3f", 17 + n,
		       (median[CIPHER] + median[HMAC_]) / median[SEAL2], 17 + n,
		       (median[DECIPHER] + median[HMAC_]) / median[OPEN2]);
	}
	printf("}\n");
	return 0;
}
