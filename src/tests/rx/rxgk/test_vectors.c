/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Exchanges recorded from OpenAFS's rxgk, in both roles: the class produces each packet as recorded
 * and derives the same keys, and our server's reaction to deviating clients equals that of the
 * recorded one.
 */
#include "rig.h"

#include <jansson.h>

static json_t *root;

static const json_t *get(const json_t *o, const char *key)
{
	const json_t *v = json_object_get(o, key);

	ck_assert_msg(v != NULL, "no \"%s\"", key);
	return v;
}

static const char *text(const json_t *o, const char *key)
{
	const char *s = json_string_value(get(o, key));

	ck_assert_msg(s != NULL, "\"%s\" is no string", key);
	return s;
}

static int64_t number(const json_t *o, const char *key)
{
	ck_assert_msg(json_is_integer(get(o, key)), "\"%s\" is no number", key);
	return json_integer_value(get(o, key));
}

static uint32_t hex_number(const json_t *o, const char *key)
{
	return (uint32_t)strtoul(text(o, key), NULL, 16);
}

/* The bytes of a hex string; returns their number. */
static size_t hex(const json_t *o, const char *key, uint8_t *out, size_t room)
{
	const char *s = text(o, key);
	size_t n = strlen(s) / 2;

	ck_assert_uint_le(n, room);
	for (size_t i = 0; i < n; i++) {
		unsigned v;

		ck_assert_int_eq(sscanf(s + 2 * i, "%2x", &v), 1);
		out[i] = (uint8_t)v;
	}
	return n;
}

static void same(const void *ours, const void *theirs, size_t size, const char *what)
{
	ck_assert_msg(memcmp(ours, theirs, size) == 0, "%s differs", what);
}

/* One recorded exchange. */
struct exchange {
	const json_t *e, *g;
	struct rig_side client, server;
	struct rxw_rxgk_token token;
	uint8_t tk[32], response[1024];
	size_t response_size;
	rxw_keys *keys;
};

static const json_t *packet_of(const struct exchange *x, const char *type)
{
	size_t i;
	json_t *p;

	json_array_foreach(get(x->e, "packets"), i, p)
		if (!strcmp(text(get(get(p, "fields"), "header"), "typeName"), type))
			return p;
	ck_abort_msg("no packet of type %s", type);
	return NULL;
}

static size_t payload(const json_t *packet, uint8_t *out, size_t room)
{
	uint8_t whole[2048];
	size_t n = hex(packet, "hex", whole, sizeof(whole));

	ck_assert_uint_ge(n, 28);
	ck_assert_uint_le(n - 28, room);
	memcpy(out, whole + 28, n - 28);
	return n - 28;
}

static void set_up(struct exchange *x, const json_t *e)
{
	struct rxw_security_id id = {.service = 200, .index = 4};
	uint8_t key[32];
	const json_t *t, *a;
	size_t n;
	uint32_t length;

	memset(x, 0, sizeof(*x));
	x->e = e;
	x->g = get(e, "rxgk");
	t = get(x->g, "token");
	a = get(x->g, "authenticator");
	id.epoch = hex_number(a, "epoch");
	id.cid = hex_number(a, "cid");
	ck_assert_int_eq(rxw_keys_create(&x->keys), 0);
	n = hex(x->g, "serviceKey", key, sizeof(key));
	ck_assert_int_eq(rxw_keys_add(x->keys, RXW_KEY_RXGK,
				      (int32_t)number(get(x->g, "container"), "kvno"),
				      (int32_t)number(x->g, "serviceKeyEnctype"), key, n), 0);
	x->client.now = x->server.now = number(x->g, "startTime");
	rig_server(&x->server, x->keys, 0, 4, &id);
	hex(x->g, "transportKey", x->tk, sizeof(x->tk));

	x->response_size = payload(packet_of(x, "RESPONSE"), x->response, sizeof(x->response));
	length = rxw_xdr_load32(x->response + 8);
	x->token = (struct rxw_rxgk_token){.enctype = (int32_t)number(t, "enctype"),
					   .level = (uint32_t)number(t, "level"),
					   .lifetime = (uint32_t)number(t, "lifetime"),
					   .bytelife = (uint32_t)number(t, "bytelife"),
					   .expires = number(t, "expirationtime"),
					   .token = rxw_secret_alloc(length),
					   .token_length = length};
	memcpy(x->token.token, x->response + 12, length);
	hex(t, "K0", x->token.key, sizeof(x->token.key));
	id.client = true;
	rig_client(&x->client, &x->token, 4, &id);
}

static void tear_down(struct exchange *x)
{
	rig_end(&x->client);
	rig_end(&x->server);
	rxw_rxgk_token_free(&x->token);
	rxw_keys_unref(x->keys);
}

/* The recorded side's confounder: the first block of its decrypted text. */
static void confounder_of(const struct exchange *x, uint32_t usage, const uint8_t *sealed,
			  size_t size, uint8_t out[16])
{
	uint8_t copy[2048];

	memcpy(copy, sealed, size);
	ck_assert_int_eq(rxw_gk_decrypt_once(rxw_gk_enctype(x->token.enctype), x->tk, usage, copy,
					     size), 0);
	memcpy(out, copy, 16);
}

static void exchange_packets(struct exchange *x)
{
	uint8_t nonce[20], challenge[64], out[1024], confounder[16];
	const json_t *a = get(x->g, "authenticator");
	uint32_t calls[4], claimed[4], token_length = rxw_xdr_load32(x->response + 8);
	uint8_t *auth = x->response + 12 + token_length + 4;
	size_t written = 0;
	uint16_t spare = 99;

	/* The server's CHALLENGE, twice: a retransmission is the same. */
	hex(x->g, "challengeNonce", nonce, sizeof(nonce));
	rig_chance(&x->server, nonce, sizeof(nonce));
	ck_assert_uint_eq(payload(packet_of(x, "CHALLENGE"), challenge, sizeof(challenge)), 20);
	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(rxw_gk_table.challenge(x->server.conn, out, sizeof(out)), 20);
		same(out, challenge, 20, "CHALLENGE");
	}

	/* The client's RESPONSE. */
	for (size_t i = 0; i < 4; i++)
		calls[i] = (uint32_t)json_integer_value(
			json_array_get(get(a, "callNumbers"), i));
	confounder_of(x, RXW_GK_CLIENT_ENC_RESPONSE, auth, rxw_xdr_load32(auth - 4), confounder);
	rig_chance(&x->client, confounder, 16);
	ck_assert_int_eq(rxw_gk_table.respond(x->client.conn, challenge, 20, calls, out,
					      sizeof(out), &written, &spare), 0);
	ck_assert_uint_eq(written, x->response_size);
	same(out, x->response, written, "RESPONSE");
	ck_assert_uint_eq(spare, number(x->g, "keyNumber"));

	/* The server accepts the recorded one. */
	ck_assert_int_eq(rxw_gk_table.check_response(x->server.conn, x->response,
						     x->response_size, spare, claimed), 0);
	same(claimed, calls, sizeof(calls), "call numbers");
}

static void data_packet(struct exchange *x, const json_t *p)
{
	const json_t *h = get(get(p, "fields"), "header"), *plain = get(p, "plain");
	bool by_client = strtoul(text(h, "flags"), NULL, 16) & 1;
	struct rig_side *from = by_client ? &x->client : &x->server,
			*to = by_client ? &x->server : &x->client;
	uint32_t call = (uint32_t)number(h, "callNumber"), seq = (uint32_t)number(h, "seq");
	uint8_t channel = (uint8_t)number(h, "channel");
	uint8_t sealed[2048], data[2048], out[2048], confounder[16];
	size_t size = payload(p, sealed, sizeof(sealed)), out_size,
	       length = hex(plain, "data", data, sizeof(data)), out_length = 0;

	ck_assert_int_eq(rig_open(to, call, seq, channel, (uint16_t)hex_number(h, "spare"), sealed,
				  size, out, &out_length), 0);
	ck_assert_uint_eq(out_length, length);
	same(out, data, length, "data");
	if (x->token.level == 2) {
		confounder_of(x, (uint32_t)number(plain, "usage"), sealed, size, confounder);
		rig_chance(from, confounder, 16);
	}
	ck_assert_uint_eq(rig_seal(from, call, seq, channel, data, length, out, &out_size),
			  hex_number(h, "spare"));
	ck_assert_uint_eq(out_size, size);
	same(out, sealed, size, "sealed packet");
}

START_TEST(recorded_exchanges)
{
	size_t i, k, data = 0;
	json_t *e, *p;

	json_array_foreach(get(root, "exchanges"), i, e) {
		struct exchange x;
		struct rxw_identity id = {.size = sizeof(id)};

		set_up(&x, e);
		exchange_packets(&x);
		ck_assert_int_eq(rxw_gk_table.identity(x.server.conn, &id), 0);
		ck_assert_str_eq(id.name, "alice");
		ck_assert_str_eq(id.rxkad_name, "alice");
		ck_assert_uint_eq(id.level, x.token.level);
		ck_assert(!id.local);
		ck_assert_int_eq(id.expires, x.token.expires / RXW_RXGK_SECOND);
		json_array_foreach(get(e, "packets"), k, p)
			if (!strcmp(text(get(get(p, "fields"), "header"), "typeName"), "DATA")) {
				data_packet(&x, p);
				data++;
			}
		tear_down(&x);
	}
	ck_assert_uint_eq(i, 6);
	ck_assert_uint_ge(data, 24);
}
END_TEST

/* The contents of the recorded tokens. */
START_TEST(recorded_tokens)
{
	size_t i;
	json_t *e;

	json_array_foreach(get(root, "exchanges"), i, e) {
		struct exchange x;
		struct rxw_gk_body b;
		uint8_t plain[512];
		size_t n;
		char name[64];

		set_up(&x, e);
		n = hex(x.g, "tokenPlain", plain, sizeof(plain));
		ck_assert_int_eq(rxw_gk_token_open(x.keys, 4, x.token.token, x.token.token_length,
						   &b), 0);
		same((uint8_t *)x.token.token + 12 + 16, plain, n, "token");
		ck_assert_uint_eq(b.level, x.token.level);
		ck_assert_uint_eq(b.lifetime, x.token.lifetime);
		ck_assert_uint_eq(b.bytelife, x.token.bytelife);
		ck_assert_int_eq(b.expires, x.token.expires);
		ck_assert_int_eq(b.enctype->id, x.token.enctype);
		same(b.k0, x.token.key, b.enctype->key_length, "K0");
		ck_assert_uint_eq(b.names, 1);
		ck_assert_int_eq(b.name.kind, 1);
		ck_assert(rxw_gk_name_text(&b.name, name, sizeof(name)));
		ck_assert_str_eq(name, "alice");
		tear_down(&x);
	}
}
END_TEST

START_TEST(transport_keys)
{
	size_t i;
	json_t *d;

	json_array_foreach(get(root, "transportKeyDerivation"), i, d) {
		const struct rxw_gk_enctype *e = rxw_gk_enctype((int32_t)number(d, "enctype"));
		uint8_t k0[32], tk[32], ours[32];

		ck_assert_uint_eq(hex(d, "K0", k0, sizeof(k0)), e->key_length);
		ck_assert_uint_eq(hex(d, "TK", tk, sizeof(tk)), e->key_length);
		ck_assert_int_eq(rxw_gk_transport_key(e, k0, hex_number(d, "epoch"),
						      hex_number(d, "cid"),
						      number(d, "startTime"),
						      (uint32_t)number(d, "keyNumber"), ours), 0);
		same(ours, tk, e->key_length, "TK");
	}
	ck_assert_uint_eq(i, 12);
}
END_TEST

/* -- The recorded server's reactions to clients that deviate ----------------------------------- */

struct deviation {
	const char *name;
	uint32_t level; /* of the token */
	uint8_t channel;
	uint16_t response_word, data_word;
	bool other_nonce, other_level, other_service_key, yfs, trailing;
	int calls; /* 0 = four */
	int32_t kvno; /* 0 = 5; -1 = really 0 */
	int names; /* 0 = one, kind 1; -1 none; 2 two; -3 one of kind 3; -2 one of kind 2 */
	int expiry; /* 0 = in an hour; 1 never; -1 an hour ago */
};

static const struct deviation deviations[] = {
	{.name = "plain crypt", .level = 2},
	{.name = "channel 2 crypt", .level = 2, .channel = 2},
	{.name = "auth ch3", .level = 1, .channel = 3},
	{.name = "response kvno 1, data kvno 1", .level = 2, .response_word = 1, .data_word = 1},
	{.name = "response kvno 0, data kvno 1", .level = 2, .data_word = 1},
	{.name = "resp kvno 2", .level = 2, .response_word = 2},
	{.name = "data kvno 2 resp 0", .level = 2, .data_word = 2},
	{.name = "wrong nonce", .level = 2, .other_nonce = true},
	{.name = "auth level differs", .level = 2, .other_level = true},
	{.name = "1 call number", .level = 2, .calls = 1},
	{.name = "5 call numbers", .level = 2, .calls = 5},
	{.name = "expired", .level = 2, .expiry = -1},
	{.name = "never", .level = 2, .expiry = 1},
	{.name = "unknown kvno 99 (getkey accepts)", .level = 2, .kvno = 99},
	{.name = "kvno 0", .level = 2, .kvno = -1},
	{.name = "wrong service key", .level = 2, .other_service_key = true},
	{.name = "no identities (printed)", .level = 2, .names = -1},
	{.name = "2 ids", .level = 2, .names = 2},
	{.name = "id kind 3", .level = 2, .names = -3},
	{.name = "gss id", .level = 2, .names = -2},
	{.name = "yfs-style token", .level = 2, .yfs = true},
	{.name = "trailing bytes after response", .level = 2, .trailing = true},
	{.name = "clear kvno 7", .level = 0, .data_word = 7},
};

#define SERVICE_KEY "0123456789abcdef0123456789abcdef"
#define K0	    "fedcba9876543210"

/* Encoded by hand, so that it can be wrong. */
static size_t write_body(const struct deviation *d, uint8_t *out, size_t room)
{
	struct rxw_xdr x;
	int names = d->names == 2 ? 2 : d->names == -1 ? 0 : 1;
	uint32_t kind = d->names < -1 ? (uint32_t)-d->names : 1;
	int64_t hour = 3600 * RXW_RXGK_SECOND;

	rxw_xdr_writer(&x, out, room);
	rxw_xdr_put_u32(&x, 17);
	rxw_gk_put_opaque(&x, K0, 16);
	rxw_xdr_put_u32(&x, d->level);
	if (d->yfs)
		rxw_xdr_put_u64(&x, (uint64_t)RIG_NOW);
	rxw_xdr_put_u32(&x, 3600);
	rxw_xdr_put_u32(&x, 30);
	rxw_xdr_put_u64(&x, (uint64_t)(d->expiry == 1 ? 0 : RIG_NOW + (d->expiry ? -hour : hour)));
	rxw_xdr_put_u32(&x, (uint32_t)names);
	for (int i = 0; i < names; i++) {
		rxw_xdr_put_u32(&x, kind);
		rxw_gk_put_opaque(&x, "alice", 5);
		rxw_gk_put_opaque(&x, "alice", 5);
	}
	ck_assert(rxw_xdr_ok(&x));
	return rxw_xdr_used(&x);
}

static size_t write_token(const struct deviation *d, uint8_t *out, size_t room)
{
	char key[] = SERVICE_KEY;
	size_t n;

	(void)room;
	if (d->other_service_key)
		key[5] ^= 1;
	memset(out, 0x5a, 12 + 16);
	n = write_body(d, out + 12 + 16, 512);
	ck_assert_int_eq(rxw_gk_encrypt_once(rxw_gk_enctype(18), (uint8_t *)key,
					     RXW_GK_SERVER_ENC_TOKEN, out + 12, 16 + n), 0);
	n += 16 + 12;
	rxw_xdr_store32(out, d->kvno < 0 ? 0 : d->kvno ? (uint32_t)d->kvno : 5);
	rxw_xdr_store32(out + 4, 18);
	rxw_xdr_store32(out + 8, (uint32_t)n);
	memset(out + 12 + n, 0, 3);
	return 12 + ((n + 3) & ~(size_t)3);
}

/* The complete RESPONSE of a deviating client. */
static size_t write_response(const struct deviation *d, const struct rxw_security_id *id,
			     const uint8_t *nonce, uint8_t *out, size_t room)
{
	const struct rxw_gk_enctype *e = rxw_gk_enctype(17);
	uint8_t token[1024], auth[512], tk[32];
	size_t token_length = write_token(d, token, sizeof(token));
	int calls = d->calls ? d->calls : 4;
	struct rxw_xdr x;
	size_t n;

	memset(auth, 0x33, 16);
	memcpy(auth + 16, nonce, 20);
	if (d->other_nonce)
		auth[20] ^= 0x10;
	rxw_xdr_writer(&x, auth + 36, 256);
	rxw_gk_put_opaque(&x, NULL, 0);
	rxw_xdr_put_u32(&x, d->other_level ? d->level - 1 : d->level);
	rxw_xdr_put_u32(&x, id->epoch);
	rxw_xdr_put_u32(&x, id->cid);
	rxw_xdr_put_u32(&x, (uint32_t)calls);
	for (int i = 0; i < calls; i++)
		rxw_xdr_put_u32(&x, i == 0);
	n = 36 + rxw_xdr_used(&x);
	ck_assert_int_eq(rxw_gk_transport_key(e, (const uint8_t *)K0, id->epoch, id->cid, RIG_NOW,
					      d->response_word, tk), 0);
	ck_assert_int_eq(rxw_gk_encrypt_once(e, tk, RXW_GK_CLIENT_ENC_RESPONSE, auth, n), 0);
	rxw_xdr_writer(&x, out, room);
	rxw_xdr_put_u64(&x, (uint64_t)RIG_NOW);
	rxw_gk_put_opaque(&x, token, token_length);
	rxw_gk_put_opaque(&x, auth, n + 12);
	if (d->trailing)
		rxw_xdr_put_u64(&x, 0x1122334455667788);
	ck_assert(rxw_xdr_ok(&x));
	return rxw_xdr_used(&x);
}

/* A client with these keys whose packets carry key number `word`, right or wrong. */
static void client_packet(const struct deviation *d, const struct rxw_security_id *id,
			  uint8_t *out, size_t *size, uint16_t *word)
{
	struct rxw_security_id own = *id;
	struct rig_side c = {0};
	struct rxw_rxgk_token t = {.enctype = 17,
				   .level = d->level,
				   .key = K0,
				   .token = (void *)"none",
				   .token_length = 4};

	own.client = true;
	rig_client(&c, &t, 4, &own);
	if (d->level) {
		pthread_mutex_lock(&c.conn->lock);
		c.conn->current = d->data_word;
		pthread_mutex_unlock(&c.conn->lock);
		/* The key of number 0 is not valid for it. */
		rxw_gk_conn_forget(c.conn);
		memset(c.conn->slot, 0, sizeof(c.conn->slot));
		c.conn->name = NULL;
	}
	*word = rig_seal(&c, 1, 1, d->channel, "REQUEST-DATA-0123", 16, out, size);
	if (!d->level)
		*word = d->data_word;
	rig_end(&c);
}

/*
 * One case and its result: a code if the RESPONSE was refused, 0 if the data arrived (*reply is
 * then the word of a reply), -1 if they were dropped.
 */
static int32_t play(const struct deviation *d, uint16_t *reply)
{
	struct rxw_security_id id = rig_id(false);
	struct rig_side s = {.seed = 5};
	rxw_keys *keys;
	uint8_t nonce[20], out[2048], packet[512], data[512];
	uint32_t calls[4];
	size_t size, length = 0;
	uint16_t word;
	int32_t code;

	ck_assert_int_eq(rxw_keys_create(&keys), 0);
	ck_assert_int_eq(rxw_keys_add(keys, RXW_KEY_RXGK, 5, 18, SERVICE_KEY, 32), 0);
	/* The recorded server had one key for every number. */
	ck_assert_int_eq(rxw_keys_add(keys, RXW_KEY_RXGK, 99, 18, SERVICE_KEY, 32), 0);
	rig_server(&s, keys, 0, 4, &id);
	ck_assert_int_eq(rxw_gk_table.challenge(s.conn, nonce, sizeof(nonce)), 20);
	size = write_response(d, &id, nonce, out, sizeof(out));
	code = rxw_gk_table.check_response(s.conn, out, size, d->response_word, calls);
	if (!code) {
		client_packet(d, &id, packet, &size, &word);
		code = rig_open(&s, 1, 1, d->channel, word, packet, size, data, &length);
		if (!code) {
			ck_assert_uint_eq(length, 16);
			same(data, "REQUEST-DATA-0123", 16, "data");
			*reply = rig_seal(&s, 1, 1, d->channel, "REPLY", 5, out, &size);
		}
	}
	rig_end(&s);
	rxw_keys_unref(keys);
	return code;
}

START_TEST(recorded_deviations)
{
	const json_t *cases = get(get(root, "serverBehaviour"), "cases");
	size_t i;
	json_t *c;

	json_array_foreach(cases, i, c) {
		const char *name = text(c, "case"), *last, *code, *word;
		const json_t *results = get(c, "result");
		const struct deviation *d = NULL;
		uint16_t reply = 99;
		int32_t ours;

		for (size_t k = 0; k < sizeof(deviations) / sizeof(deviations[0]); k++)
			if (!strcmp(deviations[k].name, name))
				d = &deviations[k];
		ck_assert_msg(d != NULL, "case \"%s\" is not replayed", name);
		last = json_string_value(json_array_get(results, json_array_size(results) - 1));
		ours = play(d, &reply);
		code = strstr(last, "code=");
		word = strstr(last, "ck=");
		ck_assert_ptr_nonnull(word);
		if (!strcmp(name, "data kvno 2 resp 0")) {
			/*
			 * The recorded server ended the connection; by 7.1 such a packet is
			 * dropped.
			 */
			ck_assert_int_eq(ours, -1);
		} else if (code) {
			ck_assert_msg(ours == atoi(code + 5), "%s: %d", name, (int)ours);
		} else {
			ck_assert_msg(ours == 0, "%s: %d", name, (int)ours);
			ck_assert_uint_eq(reply, strtoul(word + 3, NULL, 16));
		}
	}
	ck_assert_uint_eq(i, sizeof(deviations) / sizeof(deviations[0]));
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {recorded_exchanges, recorded_tokens, transport_keys,
				      recorded_deviations};
	int r;

	root = json_load_file(RXW_TEST_SRCDIR "/vectors/rxgk-exchanges.json", 0, NULL);
	if (!root) {
		fprintf(stderr, "the vectors cannot be read\n");
		return EXIT_FAILURE;
	}
	r = test_main("rxgk_vectors", 0, tests, sizeof(tests) / sizeof(tests[0]));
	json_decref(root);
	return r;
}
