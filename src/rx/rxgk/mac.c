/* SPDX-License-Identifier: BSD-2-Clause */
/* HMAC with precomputed key blocks. */
#include <string.h>

#include "rxgk/mac.h"

static void start_hash(union rxw_gk_hash *h, enum rxw_gk_digest digest)
{
	switch (digest) {
	case RXW_GK_SHA1:
		SHA1_Init(&h->sha1);
		return;
	case RXW_GK_SHA256:
		SHA256_Init(&h->sha256);
		return;
	case RXW_GK_SHA384:
		SHA384_Init(&h->sha384);
		return;
	}
}

static void add_to_hash(union rxw_gk_hash *h, enum rxw_gk_digest digest, const void *data,
			size_t length)
{
	switch (digest) {
	case RXW_GK_SHA1:
		SHA1_Update(&h->sha1, data, length);
		return;
	case RXW_GK_SHA256:
		SHA256_Update(&h->sha256, data, length);
		return;
	case RXW_GK_SHA384:
		SHA384_Update(&h->sha384, data, length);
		return;
	}
}

static void finish_hash(union rxw_gk_hash *h, enum rxw_gk_digest digest, uint8_t *out)
{
	switch (digest) {
	case RXW_GK_SHA1:
		SHA1_Final(out, &h->sha1);
		return;
	case RXW_GK_SHA256:
		SHA256_Final(out, &h->sha256);
		return;
	case RXW_GK_SHA384:
		SHA384_Final(out, &h->sha384);
		return;
	}
}

size_t rxw_gk_digest_size(enum rxw_gk_digest digest)
{
	return digest == RXW_GK_SHA1 ? 20 : digest == RXW_GK_SHA256 ? 32 : 48;
}

void rxw_gk_mac_key(struct rxw_gk_mac *m, enum rxw_gk_digest digest, const void *key, size_t length)
{
	size_t block = digest == RXW_GK_SHA384 ? 128 : 64;
	uint8_t pad[128] = {0};

	if (length > block)
		rxw_gk_digest(digest, key, length, pad);
	else
		memcpy(pad, key, length);
	m->digest = digest;
	for (size_t i = 0; i < block; i++)
		pad[i] ^= 0x36;
	start_hash(&m->inner, digest);
	add_to_hash(&m->inner, digest, pad, block);
	for (size_t i = 0; i < block; i++)
		pad[i] ^= 0x36 ^ 0x5c;
	start_hash(&m->outer, digest);
	add_to_hash(&m->outer, digest, pad, block);
	explicit_bzero(pad, sizeof(pad));
}

/* `h` contains the digest now, not the keyed state. */
void rxw_gk_mac(const struct rxw_gk_mac *m, const void *a, size_t a_length, const void *b,
		size_t b_length, uint8_t out[RXW_GK_DIGEST_MAX])
{
	union rxw_gk_hash h = m->inner;

	if (a_length)
		add_to_hash(&h, m->digest, a, a_length);
	if (b_length)
		add_to_hash(&h, m->digest, b, b_length);
	finish_hash(&h, m->digest, out);
	h = m->outer;
	add_to_hash(&h, m->digest, out, rxw_gk_digest_size(m->digest));
	finish_hash(&h, m->digest, out);
}

void rxw_gk_digest(enum rxw_gk_digest digest, const void *data, size_t length,
		   uint8_t out[RXW_GK_DIGEST_MAX])
{
	union rxw_gk_hash h;

	start_hash(&h, digest);
	add_to_hash(&h, digest, data, length);
	finish_hash(&h, digest, out);
}
