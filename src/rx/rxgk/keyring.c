/* SPDX-License-Identifier: BSD-2-Clause */
/* The transport keys of a connection, and changing them (rx-protocol 7.4.6). */
#include <stdlib.h>
#include <string.h>

#include <rxwire/error.h>

#include "keys/keys.h"
#include "rxgk/rxgk_conn.h"

uint64_t rxw_gk_byte_limit(uint32_t bytelife)
{
	if (!bytelife || bytelife == 63)
		return 0;
	return bytelife < 63 ? UINT64_C(1) << bytelife : bytelife;
}

bool rxw_gk_whole_number(uint32_t current, uint16_t word, uint32_t *number)
{
	uint16_t d = (uint16_t)(word - current);

	if (d == 0 || (d == 1 && current < UINT32_MAX))
		*number = current + d;
	else if (d == UINT16_MAX && current)
		*number = current - 1;
	else
		return false;
	return true;
}

static void free_works(struct rxw_gk_work *w)
{
	while (w) {
		struct rxw_gk_work *next = w->next;

		EVP_CIPHER_CTX_free(w->cipher);
		rxw_secret_free(w);
		w = next;
	}
}

static void key_free(struct rxw_gk_key *k)
{
	if (!k)
		return;
	free_works(k->idle[RXW_GK_SEAL]);
	free_works(k->idle[RXW_GK_OPEN]);
	rxw_secret_free(k);
}

static struct rxw_gk_key *key_new(const struct rxw_gk_conn *c, uint32_t number)
{
	struct rxw_gk_key *k = rxw_secret_alloc(sizeof(*k));
	uint8_t tk[RXW_GK_KEY_MAX];
	int r;

	if (!k)
		return NULL;
	k->number = number;
	k->refs = 1;
	r = rxw_gk_transport_key(c->enctype, c->k0, c->id.epoch, c->id.cid, c->start_time, number,
				 tk);
	for (int way = 0; way < 2 && !r && c->level; way++) {
		bool crypt = c->level == RXW_LEVEL_CRYPT,
		     by_client = c->id.client == (way == RXW_GK_SEAL);
		uint32_t usage = by_client ? RXW_GK_CLIENT_ENC_PACKET : RXW_GK_SERVER_ENC_PACKET;

		/* The key usage for MICs is that for encryption plus one. */
		r = rxw_gk_protect_init(&k->protect[way], c->enctype, tk, usage + !crypt, crypt);
	}
	explicit_bzero(tk, sizeof(tk));
	if (r) {
		key_free(k);
		return NULL;
	}
	return k;
}

/*
 * Lock held: key `number`, which is next to the current one; created if missing. Takes no
 * reference.
 */
static struct rxw_gk_key *find_or_make_key(struct rxw_gk_conn *c, uint32_t number)
{
	struct rxw_gk_key **slot = &c->slot[number % 4];

	if (!*slot && (*slot = key_new(c, number)))
		(*slot)->since = c->klass->time(c->klass->time_context);
	return *slot;
}

/*
 * Lock held: make the existing key `number` the current one. A key to be freed is stored in *old.
 */
static void advance_key(struct rxw_gk_conn *c, uint32_t number, struct rxw_gk_key **old)
{
	struct rxw_gk_key **slot;

	c->current = number;
	c->slot[number % 4]->since = c->klass->time(c->klass->time_context);
	slot = &c->slot[(number + 2) % 4]; /* the slot of number - 2 */
	*old = NULL;
	if (*slot && --(*slot)->refs == 0)
		*old = *slot;
	*slot = NULL;
}

/* Lock held: whether the current key should be replaced, and a new one may begin. */
static bool is_worn(const struct rxw_gk_conn *c, const struct rxw_gk_key *k)
{
	int64_t age;

	if (!k->heard || c->current == UINT32_MAX || (!c->lifetime && !c->byte_limit))
		return false;
	age = c->klass->time(c->klass->time_context) - k->since;
	if (age < RXW_GK_REKEY_S * RXW_RXGK_SECOND)
		return false;
	return (c->lifetime && age >= c->lifetime * RXW_RXGK_SECOND) ||
	       (c->byte_limit && k->bytes >= c->byte_limit);
}

static struct rxw_gk_work *work_new(struct rxw_gk_key *k, enum rxw_gk_way way)
{
	struct rxw_gk_work *w = rxw_secret_alloc(sizeof(*w));

	if (!w)
		return NULL;
	w->key = k;
	/* At level auth there is no cipher, and its key is zero. */
	if (k->protect[way].crypt &&
	    !(w->cipher = rxw_gk_cipher_new(&k->protect[way], way == RXW_GK_SEAL))) {
		rxw_secret_free(w);
		return NULL;
	}
	return w;
}

/* Lock held: an idle work, or NULL; takes a reference of the key in both cases. */
static struct rxw_gk_work *take_idle(struct rxw_gk_key *k, enum rxw_gk_way way)
{
	struct rxw_gk_work *w = k->idle[way];

	k->refs++;
	if (w)
		k->idle[way] = w->next;
	return w;
}

static void unref_key(struct rxw_gk_conn *c, struct rxw_gk_key *k)
{
	bool last;

	pthread_mutex_lock(&c->lock);
	last = --k->refs == 0;
	pthread_mutex_unlock(&c->lock);
	if (last)
		key_free(k);
}

/* No lock held: create a work for a key that take_idle() took a reference of. */
static struct rxw_gk_work *complete_work(struct rxw_gk_conn *c, struct rxw_gk_key *k,
					 struct rxw_gk_work *w, enum rxw_gk_way way)
{
	if (!k)
		return NULL;
	if (!w && !(w = work_new(k, way)))
		unref_key(c, k);
	return w;
}

struct rxw_gk_work *rxw_gk_take_seal(struct rxw_gk_conn *c, uint16_t *word)
{
	struct rxw_gk_key *k, *old = NULL;
	struct rxw_gk_work *w = NULL;

	pthread_mutex_lock(&c->lock);
	k = find_or_make_key(c, c->current);
	if (k && is_worn(c, k) && find_or_make_key(c, c->current + 1)) {
		advance_key(c, c->current + 1, &old);
		k = find_or_make_key(c, c->current);
	}
	if (k) {
		*word = (uint16_t)k->number;
		w = take_idle(k, RXW_GK_SEAL);
	}
	pthread_mutex_unlock(&c->lock);
	key_free(old);
	return complete_work(c, k, w, RXW_GK_SEAL);
}

struct rxw_gk_work *rxw_gk_take_open(struct rxw_gk_conn *c, uint16_t word)
{
	struct rxw_gk_key *k = NULL;
	struct rxw_gk_work *w = NULL;
	uint32_t number;

	pthread_mutex_lock(&c->lock);
	if (rxw_gk_whole_number(c->current, word, &number) && (k = find_or_make_key(c, number)))
		w = take_idle(k, RXW_GK_OPEN);
	pthread_mutex_unlock(&c->lock);
	return complete_work(c, k, w, RXW_GK_OPEN);
}

void rxw_gk_give(struct rxw_gk_conn *c, struct rxw_gk_work *w, enum rxw_gk_way way, uint64_t bytes,
		 bool verified)
{
	struct rxw_gk_key *k = w->key, *old = NULL;
	bool last;

	pthread_mutex_lock(&c->lock);
	if (way == RXW_GK_SEAL)
		k->bytes += bytes;
	if (verified) {
		k->heard = true;
		/* Only if its slot has not been reused meanwhile. */
		if (k->number == c->current + 1 && c->slot[k->number % 4] == k)
			advance_key(c, k->number, &old);
	}
	w->next = k->idle[way];
	k->idle[way] = w;
	last = --k->refs == 0;
	pthread_mutex_unlock(&c->lock);
	if (last)
		key_free(k);
	key_free(old);
}

struct rxw_gk_key *rxw_gk_older(const struct rxw_gk_conn *c, uint32_t current, uint16_t word)
{
	return key_new(c, current - (uint16_t)(current - word));
}

void rxw_gk_older_free(struct rxw_gk_key *k)
{
	key_free(k);
}

uint32_t rxw_gk_current(struct rxw_gk_conn *c)
{
	uint32_t number;

	pthread_mutex_lock(&c->lock);
	number = c->current;
	pthread_mutex_unlock(&c->lock);
	return number;
}

int rxw_gk_conn_ready(struct rxw_gk_conn *c, const struct rxw_gk_body *token, int64_t start_time,
		      uint32_t number)
{
	bool made;

	c->enctype = token->enctype;
	memcpy(c->k0, token->k0, sizeof(c->k0));
	c->level = token->level;
	c->lifetime = token->lifetime;
	c->byte_limit = rxw_gk_byte_limit(token->bytelife);
	c->start_time = start_time;
	c->expires = token->expires;
	c->local = !token->names;
	c->name_kind = token->name.kind;
	/* An earlier RESPONSE that failed may have left a key. */
	free(c->name);
	c->name = NULL;
	/* A name without a text form must be refused, not taken for another name or anonymous. */
	if (token->names) {
		char text[RXW_GK_NAME_ROOM];

		if (!rxw_gk_name_text(&token->name, text, sizeof(text)))
			return -RXW_EDECODE;
		c->name = strdup(text);
		if (!c->name)
			return -RXW_ENOMEM;
	}
	pthread_mutex_lock(&c->lock);
	c->current = number;
	made = find_or_make_key(c, number) != NULL;
	pthread_mutex_unlock(&c->lock);
	if (!made)
		return -RXW_ENOMEM;
	atomic_store_explicit(&c->ready, true, memory_order_release);
	return 0;
}

void rxw_gk_conn_forget(struct rxw_gk_conn *c)
{
	for (int i = 0; i < 4; i++)
		key_free(c->slot[i]);
	free(c->name);
}
