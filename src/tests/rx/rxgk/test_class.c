/* SPDX-License-Identifier: BSD-2-Clause */
/* The class: tokens, levels, tampering, key numbers and key changes. */
#include "rig.h"

#define SECOND RXW_RXGK_SECOND

/* A token of these keys for "alice@REALM". */
static struct rxw_rxgk_token token_for(rxw_keys *keys, int32_t enctype, uint32_t level,
				       const char *name, uint8_t index)
{
	struct rxw_rxgk_print_options o = {
		.enctype = enctype, .level = level, .name = name, .index = index};
	struct rxw_rxgk_token t = {0};

	ck_assert_int_eq(rxw_rxgk_print_token(keys, &o, &t), 0);
	return t;
}

struct pair {
	rxw_keys *keys;
	struct rxw_rxgk_token token;
	struct rig_side client, server;
};

static void pair_begin(struct pair *p, int32_t enctype, uint32_t level, uint8_t index)
{
	struct rxw_security_id id = rig_id(false);

	memset(p, 0, sizeof(*p));
	id.index = index;
	p->client.seed = 1;
	p->server.seed = 2;
	p->client.now = p->server.now = rxw_gk_clock(NULL);
	p->keys = rig_keys(3, enctype);
	p->token = token_for(p->keys, enctype, level, "alice@REALM", index);
	rig_server(&p->server, p->keys, 0, index, &id);
	id.client = true;
	rig_client(&p->client, &p->token, index, &id);
}

static void pair_end(struct pair *p)
{
	rig_end(&p->client);
	rig_end(&p->server);
	rxw_rxgk_token_free(&p->token);
	rxw_keys_unref(p->keys);
}

/* Every enctype and level, both indexes, both directions, sizes from nothing to a large packet. */
START_TEST(levels)
{
	static uint8_t data[16384], packet[16600], out[16600];
	static const size_t sizes[] = {0, 1, 7, 8, 15, 16, 17, 31, 1364, 1404, 16000};
	uint64_t seed = test_seed();

	test_fill(&seed, data, sizeof(data));
	for (const int32_t *type = rxw_gk_enctypes; *type; type++) {
		for (unsigned which = 0; which < 6; which++) {
			uint32_t level = which % 3, seq = 1;
			uint8_t index = which < 3 ? 4 : 6;
			struct rxw_security_room room;
			struct pair p;
			uint8_t mac = rxw_gk_enctype(*type)->mac_length;

			pair_begin(&p, *type, level, index);
			ck_assert_int_eq(rig_exchange(&p.client, &p.server), 0);
			rxw_gk_table.room(p.server.conn, &room);
			ck_assert_uint_eq(room.head, level == 0 ? 0 : level == 1 ? mac : 40);
			ck_assert_uint_eq(room.tail, level == 2 ? mac : 0);
			for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++, seq++) {
				for (int way = 0; way < 2; way++) {
					struct rig_side *a = way ? &p.server : &p.client,
							*b = way ? &p.client : &p.server;
					size_t size, length = 0;
					uint16_t w = rig_seal(a, 9, seq, 2, data, sizes[i], packet,
							      &size);

					ck_assert_int_eq(rig_open(b, 9, seq, 2, w, packet, size,
								  out, &length),
							 0);
					ck_assert_uint_eq(length, sizes[i]);
					ck_assert_int_eq(memcmp(out, data, length), 0);
					/*
					 * A packet that one end sealed is not valid from the other.
					 */
					if (level)
						ck_assert_int_eq(rig_open(a, 9, seq, 2, w, packet,
									  size, out, &length), -1);
				}
			}
			pair_end(&p);
		}
	}
}
END_TEST

/* The packet and all header fields that its seal covers: any change is a drop. */
START_TEST(tampering)
{
	uint8_t packet[256], copy[256], out[256];

	for (const int32_t *type = rxw_gk_enctypes; *type; type++) {
		for (uint32_t level = 1; level <= 2; level++) {
			struct pair p;
			size_t size, length = 0;
			uint16_t w;

			pair_begin(&p, *type, level, 4);
			ck_assert_int_eq(rig_exchange(&p.client, &p.server), 0);
			w = rig_seal(&p.client, 5, 6, 1, "some data here", 14, packet, &size);
			for (size_t bit = 0; bit < 8 * size; bit++) {
				memcpy(copy, packet, size);
				copy[bit / 8] ^= (uint8_t)(1u << bit % 8);
				ck_assert_int_eq(rig_open(&p.server, 5, 6, 1, w, copy, size, out,
							  &length), -1);
			}
			for (size_t less = 0; less < size; less++)
				ck_assert_int_eq(rig_open(&p.server, 5, 6, 1, w, packet, less, out,
							  &length), -1);
			memcpy(copy, packet, size);
			memset(copy + size, 0, 16);
			ck_assert_int_eq(rig_open(&p.server, 5, 6, 1, w, copy, size + 16, out,
						  &length), -1);
			ck_assert_int_eq(
				rig_open(&p.server, 4, 6, 1, w, packet, size, out, &length), -1);
			ck_assert_int_eq(
				rig_open(&p.server, 5, 7, 1, w, packet, size, out, &length), -1);
			ck_assert_int_eq(
				rig_open(&p.server, 5, 6, 2, w, packet, size, out, &length), -1);
			for (unsigned word = 1; word <= UINT16_MAX; word += word < 4 ? 1 : 1009)
				ck_assert_int_eq(rig_open(&p.server, 5, 6, 1, (uint16_t)(w + word),
							  packet, size, out, &length), -1);
			/* Afterwards the genuine packet is valid, under the first key. */
			ck_assert_int_eq(
				rig_open(&p.server, 5, 6, 1, w, packet, size, out, &length), 0);
			ck_assert_uint_eq(rxw_gk_current(p.server.conn), 0);
			pair_end(&p);
		}
	}
}
END_TEST

/* Padding: OpenAFS sends the length of the data, and more may follow within the encrypted part. */
START_TEST(padding_after_the_data)
{
	struct pair p;
	uint8_t packet[256] = {0}, out[256], tk[32];
	size_t length = 0, size = 16 + 24 + 5 + 3;
	const struct rxw_gk_enctype *e = rxw_gk_enctype(17);

	pair_begin(&p, 17, 2, 4);
	ck_assert_int_eq(rig_exchange(&p.client, &p.server), 0);
	ck_assert_int_eq(rxw_gk_transport_key(e, p.token.key, p.client.conn->id.epoch,
					      p.client.conn->id.cid, p.client.conn->start_time, 0,
					      tk), 0);
	for (uint32_t said = 5; said <= 9; said++) {
		rxw_xdr_store32(packet + 16, p.client.conn->id.epoch);
		rxw_xdr_store32(packet + 20, p.client.conn->id.cid);
		rxw_xdr_store32(packet + 24, 1);
		rxw_xdr_store32(packet + 28, 1);
		rxw_xdr_store32(packet + 32, 4);
		rxw_xdr_store32(packet + 36, said);
		memcpy(packet + 40, "hello\0\0", 8);
		ck_assert_int_eq(rxw_gk_encrypt_once(e, tk, RXW_GK_CLIENT_ENC_PACKET, packet, size),
				 0);
		ck_assert_int_eq(rig_open(&p.server, 1, 1, 0, 0, packet, size + 12, out, &length),
				 said <= 8 ? 0 : -1);
		if (said <= 8)
			ck_assert_uint_eq(length, said);
		memset(packet, 0, sizeof(packet));
	}
	pair_end(&p);
}
END_TEST

START_TEST(before_the_exchange)
{
	struct pair p;
	uint8_t packet[64] = {0};
	struct rxw_security_packet q = {.data = packet, .length = 60, .result = 5};
	struct rxw_identity id = {.size = sizeof(id)};
	uint32_t calls[4];

	pair_begin(&p, 18, 2, 4);
	rxw_gk_table.verify(p.server.conn, &q, 1);
	ck_assert_int_eq(q.result, -1);
	ck_assert_int_lt(rxw_gk_table.seal(p.server.conn, &q, 1), 0);
	ck_assert_int_lt(rxw_gk_table.identity(p.server.conn, &id), 0);
	/* A RESPONSE to another CHALLENGE. */
	ck_assert_int_ne(rxw_gk_table.check_response(p.server.conn, packet, 60, 0, calls), 0);
	pair_end(&p);
}
END_TEST

/* A truncated or changed RESPONSE gets a code, and the right one still works after it. */
START_TEST(responses_changed)
{
	struct pair p;
	uint8_t nonce[20], response[1024], copy[1024];
	uint32_t calls[4] = {1, 2, 3, 4}, out[4];
	size_t size;
	uint16_t spare;

	pair_begin(&p, 20, 2, 4);
	ck_assert_int_eq(rxw_gk_table.challenge(p.server.conn, nonce, sizeof(nonce)), 20);
	ck_assert_int_eq(rxw_gk_table.respond(p.client.conn, nonce, 20, calls, response,
					      sizeof(response), &size, &spare), 0);
	for (size_t less = 0; less < size; less++)
		ck_assert_int_ne(rxw_gk_table.check_response(p.server.conn, response, less, spare,
							     out), 0);
	for (size_t bit = 0; bit < 8 * size; bit++) {
		memcpy(copy, response, size);
		copy[bit / 8] ^= (uint8_t)(1u << bit % 8);
		ck_assert_int_ne(rxw_gk_table.check_response(p.server.conn, copy, size, spare, out),
				 0);
	}
	ck_assert_int_eq(rxw_gk_table.check_response(p.server.conn, response, size, 7, out),
			 RXW_RXGK_BADKEYNO);
	ck_assert_int_eq(rxw_gk_table.check_response(p.server.conn, response, size, spare, out), 0);
	pair_end(&p);
}
END_TEST

/* CHALLENGEs that are too short are dropped; of longer ones the first 20 bytes count. */
START_TEST(challenges_of_other_sizes)
{
	struct pair p;
	uint8_t challenge[64] = {1}, out[1024];
	uint32_t calls[4] = {0};
	size_t size;
	uint16_t spare;

	pair_begin(&p, 19, 1, 4);
	for (size_t length = 0; length < 64; length++)
		ck_assert_int_eq(rxw_gk_table.respond(p.client.conn, challenge, length, calls, out,
						      sizeof(out), &size, &spare) == 0,
				 length >= 20);
	for (size_t room = 0; room < size; room++)
		ck_assert_int_eq(rxw_gk_table.respond(p.client.conn, challenge, 20, calls, out,
						      room, &size, &spare), -RXW_ELIMIT);
	pair_end(&p);
}
END_TEST

START_TEST(without_random_bytes)
{
	struct pair p;
	uint8_t out[1024], data[256] = {0};
	uint32_t calls[4] = {0};
	size_t size;
	uint16_t spare;
	struct rxw_security_packet q = {.data = data, .length = 10};

	pair_begin(&p, 17, 2, 4);
	p.client.no_chance = p.server.no_chance = true;
	ck_assert_int_lt(rxw_gk_table.challenge(p.server.conn, out, sizeof(out)), 0);
	ck_assert_int_lt(rxw_gk_table.respond(p.client.conn, out, 20, calls, out, sizeof(out),
					      &size, &spare), 0);
	ck_assert_int_lt(rxw_gk_table.seal(p.client.conn, &q, 1), 0);
	pair_end(&p);
}
END_TEST

/* The identity of the other end. */
START_TEST(identities)
{
	struct pair p;
	struct rxw_identity id = {.size = sizeof(id)};
	struct rxw_security_id cid = rig_id(true), sid = rig_id(false);
	struct rxw_rxgk_token printed = {0};
	void *wrong;

	pair_begin(&p, 20, 2, 4);
	ck_assert_int_eq(rig_exchange(&p.client, &p.server), 0);
	ck_assert_int_eq(rxw_gk_table.identity(p.server.conn, &id), 0);
	ck_assert_str_eq(id.name, "alice@REALM");
	ck_assert_ptr_null(id.rxkad_name);
	ck_assert(!id.local);
	ck_assert_int_eq(id.expires, INT64_MAX);
	ck_assert_uint_eq(id.level, 2);
	ck_assert_int_eq(rxw_gk_table.identity(p.client.conn, &id), 0);
	ck_assert_ptr_null(id.name);
	ck_assert(!id.local);
	rig_end(&p.client);
	rig_end(&p.server);

	printed = token_for(p.keys, 0, 1, NULL, 4);
	rig_server(&p.server, p.keys, 0, 4, &sid);
	/* A server's class cannot call, a client's cannot serve. */
	ck_assert_int_eq(rxw_gk_table.conn_create(p.server.klass, &cid, &wrong), -RXW_EINVAL);
	rig_client(&p.client, &printed, 4, &cid);
	ck_assert_int_eq(rxw_gk_table.conn_create(p.client.klass, &sid, &wrong), -RXW_EINVAL);
	ck_assert_int_eq(rig_exchange(&p.client, &p.server), 0);
	ck_assert_int_eq(rxw_gk_table.identity(p.server.conn, &id), 0);
	ck_assert_ptr_null(id.name);
	ck_assert(id.local);
	rxw_rxgk_token_free(&printed);
	pair_end(&p);
}
END_TEST

/* A RESPONSE with a name that cannot be represented is refused. */
START_TEST(invalid_names)
{
	static const char *const bad[] = {"a\nb", "\x7f", "tab\there"};
	char long_name[1200];
	struct rxw_gk_name n = {.kind = RXW_GK_NAME_KRB4};
	char out[1024];

	for (size_t i = 0; i < 3; i++) {
		n.data = (const uint8_t *)bad[i];
		n.data_length = (uint32_t)strlen(bad[i]);
		ck_assert(!rxw_gk_name_text(&n, out, sizeof(out)));
	}
	n.data = (const uint8_t *)"a\0b";
	n.data_length = 3;
	ck_assert(!rxw_gk_name_text(&n, out, sizeof(out)));
	n.data_length = 0;
	ck_assert(!rxw_gk_name_text(&n, out, sizeof(out)));
	memset(long_name, 'x', sizeof(long_name));
	n.data = (const uint8_t *)long_name;
	n.data_length = 1023;
	ck_assert(rxw_gk_name_text(&n, out, sizeof(out)));
	ck_assert_uint_eq(strlen(out), 1023);
	n.data_length = 1024;
	ck_assert(!rxw_gk_name_text(&n, out, sizeof(out)));
	/* An exported name of another mechanism: its display form. */
	n = (struct rxw_gk_name){.kind = RXW_GK_NAME_GSS, .data = (const uint8_t *)"\4\1\0\3\6\1\7",
				 .data_length = 7, .display = (const uint8_t *)"bob",
				 .display_length = 3};
	ck_assert(rxw_gk_name_text(&n, out, sizeof(out)));
	ck_assert_str_eq(out, "bob");
}
END_TEST

static int32_t try(struct pair *p, struct rxw_rxgk_token *t, uint8_t level_min)
{
	struct rxw_security_id cid = rig_id(true), sid = rig_id(false);
	struct rig_side c = {.now = p->client.now}, s = {.now = p->server.now};
	int32_t code;

	rig_server(&s, p->keys, level_min, 4, &sid);
	rig_client(&c, t, 4, &cid);
	code = rig_exchange(&c, &s);
	rig_end(&c);
	rig_end(&s);
	return code;
}

/* Keys, levels and times that a server refuses. */
START_TEST(refusals)
{
	struct rxw_rxgk_print_options o = {.lifetime_s = 100, .level = 1};
	struct rxw_rxgk_token t = {0};
	struct pair p;

	pair_begin(&p, 18, 1, 4);
	ck_assert_int_eq(rxw_rxgk_print_token(p.keys, &o, &t), 0);
	ck_assert_int_eq(try(&p, &t, 0), 0);
	ck_assert_int_eq(try(&p, &t, 1), 0);
	ck_assert_int_eq(try(&p, &t, 2), RXW_RXGK_BADLEVEL);
	p.server.now += 99 * SECOND;
	ck_assert_int_eq(try(&p, &t, 0), 0);
	p.server.now += 10 * SECOND;
	ck_assert_int_eq(try(&p, &t, 0), RXW_RXGK_EXPIRED);
	p.server.now = p.client.now;
	/* A malformed container, and one with a key that the server does not have. */
	rxw_xdr_store32(t.token, 4);
	ck_assert_int_eq(try(&p, &t, 0), RXW_RXGK_BADKEYNO);
	rxw_xdr_store32(t.token, 3);
	rxw_xdr_store32((uint8_t *)t.token + 4, 23);
	ck_assert_int_eq(try(&p, &t, 0), RXW_RXGK_BADETYPE);
	rxw_xdr_store32((uint8_t *)t.token + 4, 0x80000001);
	ck_assert_int_eq(try(&p, &t, 0), RXW_RXGK_BAD_TOKEN);
	rxw_xdr_store32((uint8_t *)t.token + 4, 18);
	rxw_xdr_store32((uint8_t *)t.token + 8, 0xfffffffe);
	ck_assert_int_eq(try(&p, &t, 0), RXW_RPC_SS_UNMARSHAL);
	rxw_rxgk_token_free(&t);
	pair_end(&p);
}
END_TEST

/* Index 6: a token that begins in an hour is not valid yet; a small difference is clock skew. */
START_TEST(tokens_of_the_future)
{
	struct pair p;

	pair_begin(&p, 18, 1, 6);
	p.server.now -= 3600 * SECOND;
	ck_assert_int_eq(rig_exchange(&p.client, &p.server), RXW_RXGK_NOTAUTH);
	p.server.now += 3400 * SECOND;
	ck_assert_int_eq(rig_exchange(&p.client, &p.server), 0);
	pair_end(&p);
}
END_TEST

/*
 * A service key is replaced while a token of the old one is in use: both are valid while both keys
 * exist.
 */
START_TEST(service_keys_rotate)
{
	struct pair p;
	struct rxw_rxgk_token fresh = {0};

	pair_begin(&p, 18, 2, 4);
	ck_assert_int_eq(rxw_keys_generate(p.keys, RXW_KEY_RXGK, 4, 20), 0);
	fresh = token_for(p.keys, 17, 2, "bob@REALM", 4);
	ck_assert_uint_eq(rxw_xdr_load32(fresh.token), 4);
	ck_assert_uint_eq(rxw_xdr_load32((uint8_t *)fresh.token + 4), 20);
	ck_assert_int_eq(try(&p, &p.token, 2), 0);
	ck_assert_int_eq(try(&p, &fresh, 2), 0);
	rxw_rxgk_token_free(&fresh);
	pair_end(&p);
}
END_TEST

/* After the token's expiry a server ends the connection, but not because of an invalid packet. */
START_TEST(expiry_of_a_connection)
{
	struct rxw_security_id cid = rig_id(true), sid = rig_id(false);
	struct rxw_rxgk_print_options o = {.lifetime_s = 100};

	for (o.level = 0; o.level <= 2; o.level++) {
		struct rig_side c = {0}, s = {0};
		rxw_keys *keys = rig_keys(1, 18);
		struct rxw_rxgk_token t = {0};
		uint8_t packet[256], out[256];
		size_t size, length;
		uint16_t w;

		c.now = s.now = rxw_gk_clock(NULL);
		ck_assert_int_eq(rxw_rxgk_print_token(keys, &o, &t), 0);
		rig_server(&s, keys, 0, 4, &sid);
		rig_client(&c, &t, 4, &cid);
		ck_assert_int_eq(rig_exchange(&c, &s), 0);
		rig_send(&c, &s, 1);
		rig_send(&s, &c, 1);
		c.now += 110 * SECOND;
		s.now += 110 * SECOND;
		rig_send(&s, &c, 2);
		w = rig_seal(&c, 1, 2, 0, "late", 4, packet, &size);
		ck_assert_int_eq(rig_open(&s, 1, 2, 0, w, packet, size, out, &length),
				 RXW_RXGK_EXPIRED);
		if (o.level) {
			packet[0] ^= 1;
			ck_assert_int_eq(rig_open(&s, 1, 2, 0, w, packet, size, out, &length), -1);
		}
		rig_end(&c);
		rig_end(&s);
		rxw_rxgk_token_free(&t);
		rxw_keys_unref(keys);
	}
}
END_TEST

/* -- Key numbers ------------------------------------------------------------------------------ */

START_TEST(numbers_from_words)
{
	uint32_t n;

	ck_assert(rxw_gk_whole_number(0, 0, &n) && n == 0);
	ck_assert(rxw_gk_whole_number(0, 1, &n) && n == 1);
	ck_assert(!rxw_gk_whole_number(0, 65535, &n));
	ck_assert(!rxw_gk_whole_number(0, 2, &n));
	ck_assert(rxw_gk_whole_number(65535, 0, &n) && n == 65536);
	ck_assert(rxw_gk_whole_number(65536, 0, &n) && n == 65536);
	ck_assert(rxw_gk_whole_number(65536, 65535, &n) && n == 65535);
	ck_assert(rxw_gk_whole_number(0x12345678, 0x5677, &n) && n == 0x12345677);
	ck_assert(!rxw_gk_whole_number(0x12345678, 0x567a, &n));
	ck_assert(!rxw_gk_whole_number(UINT32_MAX, 0, &n));
	ck_assert_uint_eq(rxw_gk_byte_limit(0), 0);
	ck_assert_uint_eq(rxw_gk_byte_limit(1), 2);
	ck_assert_uint_eq(rxw_gk_byte_limit(30), 1 << 30);
	ck_assert(rxw_gk_byte_limit(62) == UINT64_C(1) << 62);
	ck_assert_uint_eq(rxw_gk_byte_limit(63), 0);
	ck_assert_uint_eq(rxw_gk_byte_limit(64), 64);
	ck_assert_uint_eq(rxw_gk_byte_limit(UINT32_MAX), UINT32_MAX);
}
END_TEST

/* A pair whose token advises new keys. */
static void advised(struct pair *p, uint32_t level, uint32_t seconds, uint32_t bytes)
{
	pair_begin(p, 17, level, 4);
	p->client.conn->lifetime = seconds;
	p->client.conn->byte_limit = bytes;
	ck_assert_int_eq(rig_exchange(&p->client, &p->server), 0);
}

static uint16_t word_of(struct rig_side *s)
{
	uint8_t packet[256];
	size_t size;

	return rig_seal(s, 1, 1, 0, "0123456789", 10, packet, &size);
}

static void later(struct pair *p, int64_t seconds)
{
	p->client.now += seconds * SECOND;
	p->server.now += seconds * SECOND;
}

/* By seconds: not before the peer was heard, and each side follows the other's change. */
START_TEST(new_key_by_time)
{
	struct pair p;

	for (uint32_t level = 1; level <= 2; level++) {
		advised(&p, level, 100, 0);
		later(&p, 500);
		ck_assert_uint_eq(word_of(&p.client), 0); /* nothing was heard */
		rig_send(&p.client, &p.server, 1);
		rig_send(&p.server, &p.client, 1);
		ck_assert_uint_eq(word_of(&p.client), 1);
		/* the server has no advice, and has learnt no number yet */
		ck_assert_uint_eq(word_of(&p.server), 0);
		rig_send(&p.client, &p.server, 2);
		ck_assert_uint_eq(word_of(&p.server), 1);
		later(&p, 500);
		ck_assert_uint_eq(word_of(&p.client), 1); /* nothing was heard under number 1 */
		rig_send(&p.server, &p.client, 2);
		ck_assert_uint_eq(word_of(&p.client), 2);
		rig_send(&p.client, &p.server, 3);
		pair_end(&p);
	}
}
END_TEST

/* By bytes, at most once a minute. */
START_TEST(new_key_by_bytes)
{
	struct pair p;

	advised(&p, 2, 0, 50);
	rig_send(&p.client, &p.server, 1);
	rig_send(&p.server, &p.client, 1);
	later(&p, 61);
	ck_assert_uint_eq(word_of(&p.client), 0); /* 20 bytes, then 30 */
	rig_send(&p.client, &p.server, 2);	  /* 50 */
	ck_assert_uint_eq(word_of(&p.client), 1);
	for (uint32_t seq = 3; seq < 20; seq++) {
		rig_send(&p.client, &p.server, seq);
		rig_send(&p.server, &p.client, seq);
	}
	ck_assert_uint_eq(word_of(&p.client), 1); /* the minute has not passed */
	later(&p, 59);
	ck_assert_uint_eq(word_of(&p.client), 1);
	later(&p, 1);
	ck_assert_uint_eq(word_of(&p.client), 2);
	pair_end(&p);
}
END_TEST

/* Packets sealed before the change are valid after it: one number back, but not two. */
START_TEST(late_packets)
{
	struct pair p;
	uint8_t packet[2][256], out[256];
	size_t size[2], length;
	uint16_t word[2] = { 0 };

	advised(&p, 2, 100, 0);
	word[0] = rig_seal(&p.client, 1, 1, 0, "oldest", 6, packet[0], &size[0]);
	for (uint16_t n = 0; n < 2; n++) {
		rig_send(&p.client, &p.server, 2);
		rig_send(&p.server, &p.client, 2);
		if (n == 1)
			word[1] = rig_seal(&p.client, 1, 3, 0, "newer", 5, packet[1], &size[1]);
		later(&p, 200);
		rig_send(&p.client, &p.server, 4);
		ck_assert_uint_eq(rxw_gk_current(p.server.conn), n + 1u);
		ck_assert_int_eq(rig_open(&p.server, 1, 1, 0, word[0], packet[0], size[0], out,
					  &length), n ? -1 : 0);
	}
	ck_assert_uint_eq(word[1], 1);
	ck_assert_int_eq(rig_open(&p.server, 1, 3, 0, word[1], packet[1], size[1], out, &length),
			 0);
	pair_end(&p);
}
END_TEST

/* Four packets of client and server, the last two under a newer key. */
static void sealed_before(struct pair *p, struct rxw_security_packet run[4], uint8_t packet[4][256])
{
	size_t size;

	memset(run, 0, 4 * sizeof(run[0]));
	for (uint32_t i = 0; i < 4; i++) {
		if (i == 2) {
			later(p, 200);
			rig_send(&p->client, &p->server, 90);
			rig_send(&p->server, &p->client, 90);
		}
		run[i].spare = rig_seal(&p->client, 1, 10 + i, 2, "0123456789abcdef", 5 + i,
					packet[i], &size);
		run[i].data = packet[i];
		run[i].call = 1;
		run[i].seq = 10 + i;
		run[i].channel = 2;
		run[i].length = (uint32_t)size;
	}
}

/* Sealed long ago, sent now: resealed under the current key; the data are the same. */
START_TEST(sealed_again)
{
	static const int32_t enctypes[] = {17, 18, 19, 20};
	struct rxw_security_packet run[4], before[4];
	uint8_t packet[4][256], out[256];
	size_t length;
	struct pair p;

	for (uint32_t i = 0; i < 8; i++) {
		pair_begin(&p, enctypes[i / 2], 1 + i % 2, 4);
		p.client.conn->lifetime = 100;
		ck_assert_int_eq(rig_exchange(&p.client, &p.server), 0);
		rig_send(&p.client, &p.server, 1);
		rig_send(&p.server, &p.client, 1);
		sealed_before(&p, run, packet);
		ck_assert_uint_eq(run[1].spare, 0);
		ck_assert_uint_eq(run[2].spare, 1);
		for (uint32_t n = 0; n < 2; n++) {
			later(&p, 200);
			rig_send(&p.client, &p.server, 91);
			rig_send(&p.server, &p.client, 91);
		}
		ck_assert_uint_eq(rxw_gk_current(p.server.conn), 3);
		ck_assert_int_eq(rig_open(&p.server, 1, 12, 2, 1, packet[2], run[2].length, out,
					  &length), -1);
		memcpy(before, run, sizeof(run));
		ck_assert_int_eq(rxw_gk_table.renew(p.client.conn, run, 4), 0);
		for (uint32_t k = 0; k < 4; k++) {
			ck_assert_uint_eq(run[k].spare, 3);
			ck_assert_uint_eq(run[k].length, before[k].length);
			ck_assert_int_eq(rig_open(&p.server, 1, 10 + k, 2, 3, packet[k],
						  run[k].length, out, &length), 0);
			ck_assert_uint_eq(length, 5 + k);
			ck_assert_int_eq(memcmp(out, "0123456789abcdef", 5 + k), 0);
		}
		pair_end(&p);
	}
}
END_TEST

/* The data of sealed packets are recovered from them, whatever their keys; a changed one is refused. */
START_TEST(unsealed)
{
	static const int32_t enctypes[] = {17, 18, 19, 20};
	struct rxw_security_packet run[4];
	struct rxw_security_room room;
	uint8_t packet[4][256];
	struct pair p;

	for (uint32_t i = 0; i < 8; i++) {
		pair_begin(&p, enctypes[i / 2], 1 + i % 2, 4);
		p.client.conn->lifetime = 100;
		ck_assert_int_eq(rig_exchange(&p.client, &p.server), 0);
		rig_send(&p.client, &p.server, 1);
		rig_send(&p.server, &p.client, 1);
		sealed_before(&p, run, packet);
		rxw_gk_table.room(p.client.conn, &room);
		packet[3][run[3].length - 1] ^= 1;
		ck_assert_int_eq(rxw_gk_table.unseal(p.client.conn, run, 3), 0);
		for (uint32_t k = 0; k < 3; k++) {
			ck_assert_uint_eq(run[k].length, 5 + k);
			ck_assert_int_eq(memcmp(packet[k] + room.head, "0123456789abcdef", 5 + k), 0);
		}
		ck_assert_int_lt(rxw_gk_table.unseal(p.client.conn, run + 3, 1), 0);
		pair_end(&p);
	}
}
END_TEST

/*
 * A packet under the current key is not sealed again, and its bytes count for a key change only
 * when it is sealed.
 */
START_TEST(not_sealed_again)
{
	struct rxw_security_packet run[4];
	uint8_t packet[4][256], copy[4][256];
	struct pair p;

	for (uint32_t level = 0; level <= 2; level++) {
		advised(&p, level, 100, 0);
		rig_send(&p.client, &p.server, 1);
		rig_send(&p.server, &p.client, 1);
		sealed_before(&p, run, packet);
		memcpy(copy, packet, sizeof(copy));
		ck_assert_int_eq(rxw_gk_table.renew(p.client.conn, run + 2, 2), 0);
		later(&p, 200);
		ck_assert_int_eq(rxw_gk_table.renew(p.client.conn, run + 2, 2), 0);
		ck_assert_int_eq(memcmp(packet[2], copy[2], run[2].length), 0);
		ck_assert_int_eq(memcmp(packet[3], copy[3], run[3].length), 0);
		/* An older packet is sealed again, and makes the due key change. */
		ck_assert_int_eq(rxw_gk_table.renew(p.client.conn, run, 4), 0);
		for (uint32_t k = 0; k < 4; k++)
			ck_assert_uint_eq(run[k].spare, level ? 2 : 0);
		pair_end(&p);
	}
}
END_TEST

/*
 * A packet that was changed since it was sealed is not sealed again, nor is one too short for its
 * level.
 */
START_TEST(damaged_before_sending)
{
	struct rxw_security_packet run[4];
	uint8_t packet[4][256];
	struct pair p;

	for (uint32_t level = 1; level <= 2; level++) {
		advised(&p, level, 100, 0);
		rig_send(&p.client, &p.server, 1);
		rig_send(&p.server, &p.client, 1);
		sealed_before(&p, run, packet);
		run[0].length = 8;
		ck_assert_int_lt(rxw_gk_table.renew(p.client.conn, run, 1), 0);
		if (level == 2) {
			packet[1][20] ^= 1;
			ck_assert_int_lt(rxw_gk_table.renew(p.client.conn, run + 1, 1), 0);
		}
		pair_end(&p);
	}
}
END_TEST

/* Far beyond 65,536 keys: the word wraps, the number does not. */
START_TEST(words_wrap)
{
	struct pair p;
	uint32_t start = 65530;

	advised(&p, 1, 100, 0);
	for (struct rig_side *s = &p.client;; s = &p.server) {
		char *name = s->conn->name;

		s->conn->name = NULL;
		rxw_gk_conn_forget(s->conn);
		s->conn->name = name;
		memset(s->conn->slot, 0, sizeof(s->conn->slot));
		s->conn->current = start;
		if (s == &p.server)
			break;
	}
	for (uint32_t n = 0; n < 20; n++) {
		rig_send(&p.client, &p.server, 2);
		rig_send(&p.server, &p.client, 2);
		later(&p, 200);
		ck_assert_uint_eq(word_of(&p.client), (uint16_t)(start + n + 1));
	}
	pair_end(&p);
}
END_TEST

/* Packets of several keys in one run. */
START_TEST(runs_of_mixed_keys)
{
	struct pair p;
	uint8_t packet[4][256];
	struct rxw_security_packet run[4];
	size_t size;

	advised(&p, 2, 100, 0);
	rig_send(&p.client, &p.server, 1);
	rig_send(&p.server, &p.client, 1);
	memset(run, 0, sizeof(run));
	for (uint32_t i = 0; i < 4; i++) {
		if (i == 2)
			later(&p, 200);
		run[i].spare = rig_seal(&p.client, 1, 2 + i, 0, "mixed", 5, packet[i], &size);
		ck_assert_uint_eq(run[i].spare, i >= 2);
		run[i].data = packet[i];
		run[i].call = 1;
		run[i].seq = 2 + i;
		run[i].length = (uint32_t)size;
	}
	packet[1][50] ^= 1;
	packet[2][50] ^= 1;
	rxw_gk_table.verify(p.server.conn, run, 4);
	ck_assert_int_eq(run[0].result, 0);
	ck_assert_int_eq(run[1].result, -1);
	ck_assert_int_eq(run[2].result, -1);
	ck_assert_int_eq(run[3].result, 0);
	ck_assert_uint_eq(run[3].length, 5);
	ck_assert_uint_eq(rxw_gk_current(p.server.conn), 1);
	pair_end(&p);
}
END_TEST

START_TEST(arguments)
{
	rxw_keys *keys = rig_keys(1, 20), *none;
	struct rxw_rxgk_print_options o = {0};
	struct rxw_rxgk_token t = token_for(keys, 0, 2, NULL, 4);
	struct rxw_rxgk_server_options so = {.size = sizeof(so), .keys = keys};
	struct rxw_gk_class *k;
	static char long_name[4000];

	ck_assert_int_eq(t.enctype, 20);
	ck_assert_int_eq(rxw_keys_create(&none), 0);
	ck_assert_int_eq(rxw_rxgk_print_token(none, &o, &t), -RXW_ENOKEY);
	o.level = 3;
	ck_assert_int_eq(rxw_rxgk_print_token(keys, &o, &t), -RXW_EINVAL);
	o.level = 2;
	o.enctype = 23;
	ck_assert_int_eq(rxw_rxgk_print_token(keys, &o, &t), -RXW_ENOTSUP);
	o.enctype = 0;
	o.index = 5;
	ck_assert_int_eq(rxw_rxgk_print_token(keys, &o, &t), -RXW_EINVAL);
	o.index = 0;
	memset(long_name, 'x', sizeof(long_name) - 1);
	o.name = long_name;
	ck_assert_int_eq(rxw_rxgk_print_token(keys, &o, &t), -RXW_EINVAL);
	o.name = "";
	ck_assert_int_eq(rxw_rxgk_print_token(keys, &o, &t), -RXW_EINVAL);
	so.level_min = 3;
	ck_assert_int_eq(rxw_gk_class_server(&so, &k), -RXW_EINVAL);
	so.level_min = 0;
	so.keys = NULL;
	ck_assert_int_eq(rxw_gk_class_server(&so, &k), -RXW_EINVAL);
	t.enctype = 16;
	ck_assert_int_eq(rxw_gk_class_client(&t, NULL, &k), -RXW_ENOTSUP);
	t.enctype = 20;
	t.level = 3;
	ck_assert_int_eq(rxw_gk_class_client(&t, NULL, &k), -RXW_EINVAL);
	rxw_rxgk_token_free(&t);
	ck_assert_int_eq(rxw_gk_class_client(&t, NULL, &k), -RXW_EINVAL);
	rxw_rxgk_token_free(NULL);
	rxw_keys_unref(keys);
	rxw_keys_unref(none);
}
END_TEST

TEST_MAIN("rxgk_class", levels, tampering, padding_after_the_data, before_the_exchange,
	  responses_changed, challenges_of_other_sizes, without_random_bytes, identities,
	  invalid_names, refusals, tokens_of_the_future, service_keys_rotate,
	  expiry_of_a_connection, numbers_from_words, new_key_by_time, new_key_by_bytes,
	  late_packets, sealed_again, unsealed, not_sealed_again, damaged_before_sending, words_wrap,
	  runs_of_mixed_keys, arguments)
