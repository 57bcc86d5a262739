/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The encryption types of Kerberos 5 that rxgk uses: RFC 3961, 3962 and 8009 (rx-protocol 7.4.1). HMAC with precomputed
 * key blocks.
 */
#include "rxgk/crypto.h" /* first: it chooses the API of libcrypto */

#include <rxwire/error.h>
#include <rxwire/xdr.h>

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/kdf.h>
#include <string.h>

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

/* Bytes of a digest: 20, 32 or 48. */
static size_t rxw_gk_digest_size(enum rxw_gk_digest digest)
{
	return digest == RXW_GK_SHA1 ? 20 : digest == RXW_GK_SHA256 ? 32 : 48;
}

static void rxw_gk_mac_key(struct rxw_gk_mac *m, enum rxw_gk_digest digest, const void *key,
			   size_t length)
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

#define SEED_MAX 64

static const struct rxw_gk_enctype types[] = {
	{17, 16, 12, 16, false, RXW_GK_SHA1, "AES-128-CBC", "AES-128-CBC-CTS"},
	{18, 32, 12, 16, false, RXW_GK_SHA1, "AES-256-CBC", "AES-256-CBC-CTS"},
	{19, 16, 16, 32, true, RXW_GK_SHA256, "AES-128-CBC", "AES-128-CBC-CTS"},
	{20, 32, 24, 48, true, RXW_GK_SHA384, "AES-256-CBC", "AES-256-CBC-CTS"},
};

const int32_t rxw_gk_enctypes[5] = {20, 19, 18, 17, 0};

const struct rxw_gk_enctype *rxw_gk_enctype(int32_t id)
{
	return id >= 17 && id <= 20 ? &types[id - 17] : NULL;
}

/* RFC 3961 5.1: DK(key, constant); libcrypto does the folding and chaining. */
static int derive_3961(const struct rxw_gk_enctype *e, const uint8_t *key, const void *constant,
		       size_t length, uint8_t *out)
{
	EVP_KDF *kdf = EVP_KDF_fetch(NULL, "KRB5KDF", NULL);
	EVP_KDF_CTX *ctx = kdf ? EVP_KDF_CTX_new(kdf) : NULL;
	OSSL_PARAM params[] = {
		OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_CIPHER, (char *)e->cbc, 0),
		OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, (void *)key, e->key_length),
		OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_CONSTANT, (void *)constant,
						  length),
		OSSL_PARAM_construct_end(),
	};
	int ok = ctx && EVP_KDF_derive(ctx, out, e->key_length, params) > 0;

	EVP_KDF_CTX_free(ctx);
	EVP_KDF_free(kdf);
	return ok ? 0 : -RXW_ENOMEM;
}

/* RFC 8009 3: KDF-HMAC-SHA2(key, label, context, bits) with one round of the counter. */
static void derive_8009(const struct rxw_gk_enctype *e, const uint8_t *key, const void *label,
			size_t label_length, const void *context, size_t context_length,
			uint8_t *out, size_t out_length)
{
	uint8_t text[4 + 8 + 1 + SEED_MAX + 4], digest[RXW_GK_DIGEST_MAX];
	size_t at = 4;
	struct rxw_gk_mac m;

	rxw_xdr_store32(text, 1);
	memcpy(text + at, label, label_length);
	at += label_length;
	text[at++] = 0;
	if (context_length)
		memcpy(text + at, context, context_length);
	at += context_length;
	rxw_xdr_store32(text + at, (uint32_t)(out_length * 8));
	rxw_gk_mac_key(&m, e->digest, key, e->key_length);
	rxw_gk_mac(&m, text, at + 4, NULL, 0, digest);
	memcpy(out, digest, out_length);
	explicit_bzero(&m, sizeof(m));
	explicit_bzero(digest, sizeof(digest));
}

/* The key for `kind` (0xaa encryption, 0x55 integrity, 0x99 checksum) of a usage. */
static int derive_usage_key(const struct rxw_gk_enctype *e, const uint8_t *key, uint32_t usage,
			    uint8_t kind, uint8_t *out, size_t length)
{
	uint8_t constant[5];

	rxw_xdr_store32(constant, usage);
	constant[4] = kind;
	if (!e->encrypt_then_mac)
		return derive_3961(e, key, constant, sizeof(constant), out);
	derive_8009(e, key, constant, sizeof(constant), NULL, 0, out, length);
	return 0;
}

int rxw_gk_protect_init(struct rxw_gk_protect *p, const struct rxw_gk_enctype *enctype,
			const uint8_t *key, uint32_t usage, bool crypt)
{
	/* RFC 8009: the keys of its checksums are as long as the checksums. */
	size_t mac_key = enctype->encrypt_then_mac ? enctype->mac_length : enctype->key_length;
	uint8_t ki[RXW_GK_KEY_MAX];
	int r;

	memset(p, 0, sizeof(*p));
	p->enctype = enctype;
	p->crypt = crypt;
	r = derive_usage_key(enctype, key, usage, crypt ? 0x55 : 0x99, ki, mac_key);
	if (r)
		goto out;
	if (crypt) {
		r = derive_usage_key(enctype, key, usage, 0xaa, p->ke, enctype->key_length);
		if (r)
			goto out;
	}
	rxw_gk_mac_key(&p->mac, enctype->digest, ki, mac_key);
out:
	explicit_bzero(ki, sizeof(ki));
	return r;
}

EVP_CIPHER_CTX *rxw_gk_cipher_new(const struct rxw_gk_protect *p, bool encrypt)
{
	EVP_CIPHER *cipher = EVP_CIPHER_fetch(NULL, p->enctype->cts, NULL);
	EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
	OSSL_PARAM params[] = {
		OSSL_PARAM_construct_utf8_string(OSSL_CIPHER_PARAM_CTS_MODE, (char *)"CS3", 0),
		OSSL_PARAM_construct_end(),
	};
	static const uint8_t zero[RXW_GK_CONFOUNDER];

	if (!cipher || !ctx || EVP_CipherInit_ex2(ctx, cipher, p->ke, zero, encrypt, params) != 1) {
		EVP_CIPHER_CTX_free(ctx);
		ctx = NULL;
	}
	EVP_CIPHER_free(cipher);
	return ctx;
}

/*
 * Encrypt or decrypt a message. The initial vector is zero; the confounder makes messages differ.
 */
static int run_cipher(EVP_CIPHER_CTX *cipher, uint8_t *text, size_t length)
{
	static const uint8_t zero[RXW_GK_CONFOUNDER];
	int n = 0;

	if (EVP_CipherInit_ex2(cipher, NULL, NULL, zero, -1, NULL) != 1 ||
	    EVP_CipherUpdate(cipher, text, &n, text, (int)length) != 1 || (size_t)n != length)
		return -RXW_ESYS;
	return 0;
}

/* RFC 8009 also authenticates the initial vector, which is zero. */
static void mac_cipher_text(const struct rxw_gk_protect *p, const uint8_t *text, size_t length,
			    uint8_t *digest)
{
	static const uint8_t zero[RXW_GK_CONFOUNDER];

	rxw_gk_mac(&p->mac, zero, sizeof(zero), text, length, digest);
}

int rxw_gk_encrypt(const struct rxw_gk_protect *p, EVP_CIPHER_CTX *cipher, uint8_t *text,
		   size_t length)
{
	uint8_t digest[RXW_GK_DIGEST_MAX];
	int r;

	if (!p->enctype->encrypt_then_mac)
		rxw_gk_mac(&p->mac, text, length, NULL, 0, digest);
	r = run_cipher(cipher, text, length);
	if (p->enctype->encrypt_then_mac)
		mac_cipher_text(p, text, length, digest);
	memcpy(text + length, digest, p->enctype->mac_length);
	return r;
}

int rxw_gk_decrypt(const struct rxw_gk_protect *p, EVP_CIPHER_CTX *cipher, uint8_t *text,
		   size_t size)
{
	uint8_t digest[RXW_GK_DIGEST_MAX];
	size_t mac = p->enctype->mac_length, length = size - mac;

	if (size < RXW_GK_CONFOUNDER + mac)
		return -RXW_EDECODE;
	if (p->enctype->encrypt_then_mac) {
		mac_cipher_text(p, text, length, digest);
		if (CRYPTO_memcmp(digest, text + length, mac))
			return -RXW_EDECODE;
	}
	if (run_cipher(cipher, text, length))
		return -RXW_EDECODE;
	if (!p->enctype->encrypt_then_mac) {
		rxw_gk_mac(&p->mac, text, length, NULL, 0, digest);
		if (CRYPTO_memcmp(digest, text + length, mac))
			return -RXW_EDECODE;
	}
	return 0;
}

void rxw_gk_mic(const struct rxw_gk_protect *p, const void *a, size_t a_length, const void *b,
		size_t b_length, uint8_t out[RXW_GK_MAC_MAX])
{
	uint8_t digest[RXW_GK_DIGEST_MAX];

	rxw_gk_mac(&p->mac, a, a_length, b, b_length, digest);
	memcpy(out, digest, p->enctype->mac_length);
}

static int crypt_once(const struct rxw_gk_enctype *enctype, const uint8_t *key, uint32_t usage,
		      uint8_t *text, size_t length, bool encrypt)
{
	struct rxw_gk_protect p;
	EVP_CIPHER_CTX *cipher = NULL;
	int r = rxw_gk_protect_init(&p, enctype, key, usage, true);

	if (r)
		goto out;
	cipher = rxw_gk_cipher_new(&p, encrypt);
	if (!cipher)
		r = -RXW_ENOMEM;
	else if (encrypt)
		r = rxw_gk_encrypt(&p, cipher, text, length);
	else
		r = rxw_gk_decrypt(&p, cipher, text, length);
out:
	EVP_CIPHER_CTX_free(cipher);
	explicit_bzero(&p, sizeof(p));
	return r;
}

int rxw_gk_encrypt_once(const struct rxw_gk_enctype *enctype, const uint8_t *key, uint32_t usage,
			uint8_t *text, size_t length)
{
	return crypt_once(enctype, key, usage, text, length, true);
}

int rxw_gk_decrypt_once(const struct rxw_gk_enctype *enctype, const uint8_t *key, uint32_t usage,
			uint8_t *text, size_t size)
{
	return crypt_once(enctype, key, usage, text, size, false);
}

/* RFC 3962: one block, the digest's first 16 bytes, under the key derived for "prf". */
static int prf_3961(const struct rxw_gk_enctype *e, const uint8_t *key, const void *seed,
		    size_t length, uint8_t *out)
{
	uint8_t kp[RXW_GK_KEY_MAX], digest[RXW_GK_DIGEST_MAX];
	static const uint8_t zero[16];
	EVP_CIPHER *cipher = EVP_CIPHER_fetch(NULL, e->cbc, NULL);
	EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
	int n = 0, r = derive_3961(e, key, "prf", 3, kp);

	rxw_gk_digest(e->digest, seed, length, digest);
	if (!r && (!cipher || !ctx || EVP_EncryptInit_ex2(ctx, cipher, kp, zero, NULL) != 1 ||
		   EVP_CIPHER_CTX_set_padding(ctx, 0) != 1 ||
		   EVP_EncryptUpdate(ctx, out, &n, digest, 16) != 1 || n != 16))
		r = -RXW_ENOMEM;
	EVP_CIPHER_CTX_free(ctx);
	EVP_CIPHER_free(cipher);
	explicit_bzero(kp, sizeof(kp));
	return r;
}

int rxw_gk_prf(const struct rxw_gk_enctype *enctype, const uint8_t *key, const void *seed,
	       size_t length, uint8_t out[RXW_GK_PRF_MAX])
{
	if (length > SEED_MAX)
		return -RXW_EINVAL;
	if (!enctype->encrypt_then_mac)
		return prf_3961(enctype, key, seed, length, out);
	derive_8009(enctype, key, "prf", 3, seed, length, out, enctype->prf_length);
	return 0;
}

/* PRF+ with a counter of `count_size` bytes, starting at 1: RFC 4402 has four, RFC 6113 one. */
static int prf_plus(const struct rxw_gk_enctype *e, const uint8_t *key, const void *seed,
		    size_t length, size_t count_size, uint8_t *out, size_t out_length)
{
	uint8_t text[SEED_MAX], part[RXW_GK_PRF_MAX];
	int r = 0;

	if (length + count_size > sizeof(text))
		return -RXW_EINVAL;
	memset(text, 0, count_size);
	memcpy(text + count_size, seed, length);
	for (uint8_t n = 1; out_length; n++) {
		size_t some = out_length < e->prf_length ? out_length : e->prf_length;

		text[count_size - 1] = n;
		r = rxw_gk_prf(e, key, text, count_size + length, part);
		if (r)
			break;
		memcpy(out, part, some);
		out += some;
		out_length -= some;
	}
	explicit_bzero(part, sizeof(part));
	return r;
}

static int rxw_gk_prf_plus(const struct rxw_gk_enctype *enctype, const uint8_t *key,
			   const void *seed, size_t length, uint8_t *out, size_t out_length)
{
	return prf_plus(enctype, key, seed, length, 4, out, out_length);
}

int rxw_gk_transport_key(const struct rxw_gk_enctype *enctype, const uint8_t *k0, uint32_t epoch,
			 uint32_t cid, int64_t start_time, uint32_t number,
			 uint8_t out[RXW_GK_KEY_MAX])
{
	uint8_t seed[20];

	rxw_xdr_store32(seed, epoch);
	rxw_xdr_store32(seed + 4, cid);
	rxw_xdr_store64(seed + 8, (uint64_t)start_time);
	rxw_xdr_store32(seed + 16, number);
	return rxw_gk_prf_plus(enctype, k0, seed, sizeof(seed), out, enctype->key_length);
}

/* RFC 6113 5.1: the XOR of the PRF+ outputs of both keys, each with its pepper. */
int rxw_gk_combine_keys(const struct rxw_gk_enctype *type0, const uint8_t *k0,
			const struct rxw_gk_enctype *type1, const uint8_t *k1,
			const struct rxw_gk_enctype *out_type, uint8_t out[RXW_GK_KEY_MAX])
{
	uint8_t other[RXW_GK_KEY_MAX];
	int r = prf_plus(type0, k0, "AFS", 3, 1, out, out_type->key_length);

	if (r)
		return r;
	r = prf_plus(type1, k1, "rxgk", 4, 1, other, out_type->key_length);
	for (size_t i = 0; i < out_type->key_length && !r; i++)
		out[i] ^= other[i];
	explicit_bzero(other, sizeof(other));
	return r;
}
