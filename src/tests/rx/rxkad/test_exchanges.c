/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Exchanges recorded from OpenAFS 1.8.9, replayed through the functions of the class, in both
 * roles: received packets are valid, and sent ones are equal, byte for byte.
 */
#include "vectors.h"

#include "base/wire.h"
#include "keys/keys.h"
#include "rxkad/rxkad_conn.h"
#include "rxkad/derive.h"
#include "rxwire/error.h"

/* The time of the recording. */
#define RECORDED 1795229458

static json_t *root;
static int64_t the_time = RECORDED;

static int64_t clock_of_test(void *context)
{
	(void)context;
	return the_time;
}

static void setup(void)
{
	root = vectors_load("rxkad-exchanges.json");
	the_time = RECORDED;
}

static void teardown(void)
{
	json_decref(root);
}

static rxw_keys *service_keys(void)
{
	json_t *service = member(root, "serviceKey"), *des = member(root, "desServiceKey");
	uint8_t key[32], des_key[8];
	rxw_keys *keys;

	bytes_of(service, "hex", key, sizeof(key));
	bytes_of(des, "hex", des_key, sizeof(des_key));
	ck_assert_int_eq(rxw_keys_create(&keys), 0);
	ck_assert_int_eq(rxw_keys_add(keys, RXW_KEY_KRB5, (int32_t)number(service, "kvno"),
				      (int32_t)number(service, "enctype"), key, sizeof(key)),
			 0);
	ck_assert_int_eq(rxw_keys_add(keys, RXW_KEY_DES, (int32_t)number(des, "kvno"), 0, des_key,
				      sizeof(des_key)),
			 0);
	return keys;
}

static struct rxw_rxkad *server_side(uint8_t level_min)
{
	struct rxw_rxkad_server_options options = {.size = sizeof(options),
						   .level_min = level_min,
						   .allow_single_des = rxw_des_ready(),
						   .time = clock_of_test};
	struct rxw_rxkad *side;

	options.keys = service_keys();
	ck_assert_int_eq(rxw_rxkad_server_side(&options, &side), 0);
	rxw_keys_unref(options.keys);
	return side;
}

static struct rxw_rxkad_conn *connection(struct rxw_rxkad *side, uint32_t epoch, uint32_t cid,
					 bool client)
{
	struct rxw_security_id id = {
		.epoch = epoch, .cid = cid & ~3u, .index = 2, .client = client};
	void *conn;

	ck_assert_int_eq(rxw_rxkad_conn_create(side, &id, &conn), 0);
	return conn;
}

/* A recorded datagram: header and payload, the latter on the heap in its exact size. */
struct datagram {
	struct rxw_header header;
	uint8_t *payload;
	size_t size;
};

static struct datagram datagram(const char *hex)
{
	struct datagram d;
	size_t size;
	uint8_t *all = unhex(hex, &size);

	ck_assert(rxw_header_get(all, size, &d.header));
	d.size = size - RXW_HEADER_SIZE;
	d.payload = malloc(d.size ? d.size : 1);
	memcpy(d.payload, all + RXW_HEADER_SIZE, d.size);
	free(all);
	return d;
}

static json_t *packet_of(json_t *exchange, unsigned type)
{
	json_t *p;
	size_t i;

	json_array_foreach(member(exchange, "packets"), i,
			   p) if (number(member(member(p, "fields"), "header"), "type") ==
				  type) return p;
	ck_abort_msg("%s: no packet of type %u", text(exchange, "id"), type);
}

/* Received DATA: it verifies, and has the recorded contents. */
static void check_received(struct rxw_rxkad_conn *c, json_t *p)
{
	struct datagram d = datagram(text(p, "hex"));
	struct rxw_security_packet packet = {.data = d.payload,
					     .call = d.header.call,
					     .seq = d.header.seq,
					     .channel = d.header.cid & 3,
					     .spare = d.header.spare,
					     .length = (uint32_t)d.size,
					     .result = 7};
	struct rxw_security_room room;
	uint8_t *plain;
	size_t size;

	rxw_rxkad_room(c, &room);
	rxw_rxkad_verify(c, &packet, 1);
	ck_assert_msg(packet.result == 0, "%s", text(p, "id"));
	plain = bytes(member(p, "plain"), "data", &size);
	ck_assert_uint_eq(packet.length, size);
	ck_assert_mem_eq(d.payload + room.head, plain, size);
	free(plain);
	free(d.payload);
}

/* Sent DATA: the same bytes, except OpenAFS's padding. */
static void check_sent(struct rxw_rxkad_conn *c, json_t *p)
{
	struct datagram d = datagram(text(p, "hex"));
	struct rxw_security_packet packet = {
		.call = d.header.call, .seq = d.header.seq, .channel = d.header.cid & 3};
	struct rxw_security_room room;
	size_t size, padding, sealed;
	uint8_t *plain = bytes(member(p, "plain"), "data", &size);
	const char *pad_hex = json_string_value(json_object_get(member(p, "plain"), "padding"));
	uint8_t *pad = unhex(pad_hex ? pad_hex : "", &padding);
	uint8_t *out;
	bool stale = false;

	rxw_rxkad_room(c, &room);
	sealed = room.head + size;
	if (room.block > 1)
		sealed = (sealed + room.block - 1) / room.block * room.block;
	sealed = (sealed < room.least ? room.least : sealed) + room.tail;
	ck_assert_msg(sealed == d.size, "%s: %zu bytes, not %zu", text(p, "id"), sealed, d.size);
	out = malloc(sealed);
	memset(out, 0xa5, sealed);
	memcpy(out + room.head, plain, size);
	packet.data = out;
	packet.length = (uint32_t)size;
	ck_assert_int_eq(rxw_rxkad_seal(c, &packet, 1), 0);
	ck_assert_uint_eq(packet.spare, d.header.spare);
	for (size_t i = 0; i < padding; i++)
		stale |= pad[i] != 0;
	ck_assert_mem_eq(out, d.payload, stale ? sealed - 8 : sealed);
	free(plain);
	free(pad);
	free(out);
	free(d.payload);
}

static void check_data(struct rxw_rxkad_conn *c, json_t *exchange)
{
	json_t *p;
	size_t i;

	json_array_foreach(member(exchange, "packets"), i, p)
	{
		json_t *header = member(member(p, "fields"), "header");
		bool by_client = hex_number(header, "flags") & RXW_CLIENT_INITIATED;

		if (number(header, "type") != RXW_DATA)
			continue;
		if (by_client == c->client)
			check_sent(c, p);
		else
			check_received(c, p);
	}
}

static bool is_v4(json_t *exchange)
{
	int64_t kvno = number(member(exchange, "rxkad"), "kvno");

	return kvno != 213 && kvno != 256;
}

/* The ticket's contents, in the form of both AFS implementations. */
static void check_identity(const struct rxw_rxkad_conn *c, json_t *exchange)
{
	json_t *contents = member(member(exchange, "rxkad"), "ticketContents");
	struct rxw_identity id = {.size = sizeof(id)};
	const char *name, *realm;
	char want[128];

	ck_assert_int_eq(rxw_rxkad_identity(c, &id), 0);
	if (is_v4(exchange)) {
		name = text(contents, "name");
		realm = text(contents, "realm");
	} else {
		name = json_string_value(json_array_get(member(contents, "cname"), 0));
		realm = text(contents, "crealm");
	}
	snprintf(want, sizeof(want), "%s%s%s", name, *realm ? "@" : "", realm);
	ck_assert_str_eq(id.name, want);
	ck_assert_str_eq(id.rxkad_name, want);
	ck_assert_str_eq(id.rxkad_primary, name);
	ck_assert_str_eq(id.rxkad_instance, "");
	ck_assert_str_eq(id.rxkad_cell, realm);
	ck_assert_int_eq(id.rxkad_kvno, number(member(exchange, "rxkad"), "kvno"));
	ck_assert_uint_eq(id.level, number(member(exchange, "rxkad"), "level"));
	ck_assert(id.local == (strcmp(name, "afs") == 0));
}

/* Gives the recorded service keys. */
static int find_recorded(void *context, int32_t kvno, int32_t enctype, void *key, size_t room,
			 size_t *length)
{
	return rxw_keys_find(context, enctype ? RXW_KEY_KRB5 : RXW_KEY_DES, kvno, enctype, key,
			     room, length);
}

/* A function that finds keys instead of a table: the same clients, with the form of their ticket. */
START_TEST(server_finds_keys)
{
	json_t *exchange = json_array_get(member(root, "exchanges"), (size_t)_i);
	json_t *info = member(exchange, "rxkad");
	struct datagram response = datagram(text(packet_of(exchange, RXW_RESPONSE), "hex"));
	struct rxw_rxkad_server_options options = {.size = sizeof(options),
						   .allow_single_des = rxw_des_ready(),
						   .find_key = find_recorded,
						   .time = clock_of_test};
	struct rxw_rxkad *side;
	struct rxw_rxkad_conn *c;
	uint32_t calls[4];

	if (is_v4(exchange) && !rxw_des_ready())
		goto out;
	options.find_context = service_keys();
	ck_assert_int_eq(rxw_rxkad_server_side(&options, &side), 0);
	c = connection(side, response.header.epoch, response.header.cid, false);
	c->nonce = hex_number(info, "challengeNonce");
	ck_assert_int_eq(rxw_rxkad_check_response(c, response.payload, response.size, 0, calls), 0);
	check_identity(c, exchange);
	rxw_rxkad_conn_destroy(c);
	rxw_rxkad_side_destroy(side);
	rxw_keys_unref(options.find_context);
out:
	free(response.payload);
}
END_TEST

START_TEST(server_replays_exchange)
{
	json_t *exchange = json_array_get(member(root, "exchanges"), (size_t)_i);
	json_t *info = member(exchange, "rxkad"), *plain = member(info, "responsePlain");
	struct datagram challenge = datagram(text(packet_of(exchange, RXW_CHALLENGE), "hex"));
	struct datagram response = datagram(text(packet_of(exchange, RXW_RESPONSE), "hex"));
	struct rxw_rxkad *side;
	struct rxw_rxkad_conn *c;
	uint8_t out[64];
	uint32_t calls[4];

	if (is_v4(exchange) && !rxw_des_ready())
		goto out;
	side = server_side(0);
	c = connection(side, challenge.header.epoch, challenge.header.cid, false);
	ck_assert_int_eq(rxw_rxkad_challenge(c, out, sizeof(out)), 16);
	/* All but the nonce, which comes from the kernel's generator. */
	ck_assert_mem_eq(out, challenge.payload, 4);
	ck_assert_mem_eq(out + 8, challenge.payload + 8, 8);
	c->nonce = hex_number(info, "challengeNonce");
	ck_assert_int_eq(rxw_rxkad_check_response(c, response.payload, response.size, 0, calls), 0);
	for (unsigned i = 0; i < 4; i++)
		ck_assert_int_eq(calls[i], json_integer_value(json_array_get(
						   member(plain, "callNumbers"), i)));
	check_identity(c, exchange);
	check_data(c, exchange);
	rxw_rxkad_conn_destroy(c);
	rxw_rxkad_side_destroy(side);
out:
	free(challenge.payload);
	free(response.payload);
}
END_TEST

START_TEST(client_replays_exchange)
{
	json_t *exchange = json_array_get(member(root, "exchanges"), (size_t)_i);
	json_t *info = member(exchange, "rxkad"), *plain = member(info, "responsePlain");
	struct datagram challenge = datagram(text(packet_of(exchange, RXW_CHALLENGE), "hex"));
	struct datagram response = datagram(text(packet_of(exchange, RXW_RESPONSE), "hex"));
	struct rxw_rxkad_token token = {.size = sizeof(token), .expires = INT64_MAX};
	uint8_t preseq[8], out[16384];
	struct rxw_rxkad *side;
	struct rxw_rxkad_conn *c;
	uint32_t calls[4];
	uint16_t spare = 7;
	size_t written = 0;

	token.kvno = (int32_t)number(info, "kvno");
	token.ticket = bytes(info, "ticket", &token.ticket_length);
	bytes_of(info, "connectionSessionKey", token.session_key, 8);
	bytes_of(info, "preSeq", preseq, 8);
	ck_assert_int_eq(rxw_rxkad_client_side(&token, (uint8_t)number(info, "level"), &side), 0);
	c = connection(side, challenge.header.epoch, challenge.header.cid, true);
	ck_assert_uint_eq(c->preseq, rxw_rxkad_number(preseq));
	for (unsigned i = 0; i < 4; i++)
		calls[i] = (uint32_t)json_integer_value(
			json_array_get(member(plain, "callNumbers"), i));
	ck_assert_int_eq(rxw_rxkad_respond(c, challenge.payload, challenge.size, calls, out,
					   sizeof(out), &written, &spare),
			 0);
	ck_assert_uint_eq(written, response.size);
	ck_assert_mem_eq(out, response.payload, written);
	/* OpenAFS leaves the word of an earlier packet there. */
	ck_assert_uint_eq(spare, 0);
	check_data(c, exchange);
	rxw_rxkad_conn_destroy(c);
	rxw_rxkad_side_destroy(side);
	rxw_rxkad_token_free(&token);
	free(challenge.payload);
	free(response.payload);
}
END_TEST

/* The session key that the ticket of each exchange leads to. */
START_TEST(session_keys)
{
	json_t *exchange;
	size_t i;

	json_array_foreach(member(root, "exchanges"), i, exchange)
	{
		json_t *info = member(exchange, "rxkad"),
		       *contents = member(info, "ticketContents");
		uint8_t want[8], got[8], *key;
		size_t size;

		if (is_v4(exchange))
			continue;
		bytes_of(info, "connectionSessionKey", want, 8);
		key = bytes(contents, "ticketSessionKey", &size);
		ck_assert_int_eq(
			rxw_rxkad_session_key((int32_t)number(contents, "ticketSessionKeyEnctype"),
					      key, size, got),
			0);
		ck_assert_mem_eq(got, want, 8);
		free(key);
	}
	ck_assert_uint_eq(i, 20);
}
END_TEST

START_TEST(errors_of_server)
{
	json_t *error;
	size_t i;

	json_array_foreach(member(root, "errors"), i, error)
	{
		struct datagram response = datagram(text(error, "responseHex"));
		struct datagram abort = datagram(text(error, "abortHex"));
		struct rxw_rxkad *side = server_side(0);
		struct rxw_rxkad_conn *c =
			connection(side, response.header.epoch, response.header.cid, false);
		struct rxw_identity id = {.size = sizeof(id)};
		uint32_t calls[4];
		int32_t code;

		code = rxw_rxkad_check_response(c, response.payload, response.size, 0, calls);
		if (rxw_des_ready() || strncmp(text(error, "case"), "v4", 2) != 0) {
			ck_assert_msg(code == number(error, "abortCode"), "%s: %d",
				      text(error, "case"), code);
			ck_assert_int_eq(code, rxw_get32(abort.payload));
		}
		ck_assert_int_eq(rxw_rxkad_identity(c, &id), -RXW_ESTATE);
		rxw_rxkad_conn_destroy(c);
		rxw_rxkad_side_destroy(side);
		free(response.payload);
		free(abort.payload);
	}
	ck_assert_uint_eq(i, 11);
}
END_TEST

/* Each flipped bit of a good RESPONSE is refused; the good one is valid afterwards. */
START_TEST(response_tampered)
{
	json_t *exchange = json_array_get(member(root, "exchanges"), 4);
	json_t *info = member(exchange, "rxkad");
	struct datagram response = datagram(text(packet_of(exchange, RXW_RESPONSE), "hex"));
	struct rxw_rxkad *side = server_side(0);
	struct rxw_rxkad_conn *c =
		connection(side, response.header.epoch, response.header.cid, false);
	uint32_t calls[4];

	c->nonce = hex_number(info, "challengeNonce");
	for (size_t bit = 0; bit < 8 * response.size; bit++) {
		int32_t code;

		/* Its second word is not covered by anything. */
		if (bit / 8 >= 4 && bit / 8 < 8)
			continue;
		response.payload[bit / 8] ^= (uint8_t)(1u << bit % 8);
		code = rxw_rxkad_check_response(c, response.payload, response.size, 0, calls);
		ck_assert_msg(code >= RXW_RXKAD_INCONSISTENCY && code <= RXW_RXKAD_SEALEDINCON,
			      "bit %zu: %d", bit, code);
		response.payload[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	/* Truncated anywhere, and with bytes after it. */
	for (size_t size = 0; size < response.size; size++) {
		uint8_t *copy = malloc(size ? size : 1);

		memcpy(copy, response.payload, size);
		ck_assert_int_eq(rxw_rxkad_check_response(c, copy, size, 0, calls),
				 RXW_RXKAD_PACKETSHORT);
		free(copy);
	}
	ck_assert_int_eq(rxw_rxkad_check_response(c, response.payload, response.size, 0, calls), 0);
	rxw_rxkad_conn_destroy(c);
	rxw_rxkad_side_destroy(side);
	free(response.payload);
}
END_TEST

/* Checks that no recorded case covers: version, connection, nonce, level. */
START_TEST(response_of_another)
{
	json_t *exchange = json_array_get(member(root, "exchanges"), 5);
	json_t *info = member(exchange, "rxkad");
	struct datagram response = datagram(text(packet_of(exchange, RXW_RESPONSE), "hex"));
	uint32_t epoch = response.header.epoch, cid = response.header.cid;
	uint32_t nonce = hex_number(info, "challengeNonce"), calls[4];
	struct {
		uint32_t epoch, cid, nonce;
		uint8_t level_min;
		int32_t code;
	} cases[] = {
		{epoch ^ 1, cid, nonce, 0, RXW_RXKAD_SEALEDINCON},
		{epoch, cid ^ 4, nonce, 0, RXW_RXKAD_SEALEDINCON},
		{epoch, cid, nonce + 1, 0, RXW_RXKAD_OUTOFSEQUENCE},
		{epoch, cid, nonce, RXW_LEVEL_CRYPT, RXW_RXKAD_LEVELFAIL},
		{epoch, cid, nonce, RXW_LEVEL_AUTH, 0},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct rxw_rxkad *side = server_side(cases[i].level_min);
		struct rxw_rxkad_conn *c = connection(side, cases[i].epoch, cases[i].cid, false);

		c->nonce = cases[i].nonce;
		ck_assert_int_eq(
			rxw_rxkad_check_response(c, response.payload, response.size, 0, calls),
			cases[i].code);
		rxw_rxkad_conn_destroy(c);
		rxw_rxkad_side_destroy(side);
	}
	free(response.payload);
}
END_TEST

/* Single DES is refused unless it is enabled. */
START_TEST(single_des_is_refused)
{
	json_t *exchange = json_array_get(member(root, "exchanges"), 16);
	json_t *info = member(exchange, "rxkad");
	struct datagram response = datagram(text(packet_of(exchange, RXW_RESPONSE), "hex"));
	struct rxw_rxkad *side = server_side(0);
	struct rxw_rxkad_conn *c =
		connection(side, response.header.epoch, response.header.cid, false);
	uint32_t calls[4];

	ck_assert(is_v4(exchange));
	side->allow_single_des = false;
	c->nonce = hex_number(info, "challengeNonce");
	ck_assert_int_eq(rxw_rxkad_check_response(c, response.payload, response.size, 0, calls),
			 RXW_RXKAD_UNKNOWNKEY);
	rxw_rxkad_conn_destroy(c);
	rxw_rxkad_side_destroy(side);
	free(response.payload);
}
END_TEST

/* A client ignores an old or short CHALLENGE, and answers one of a stronger level with its own. */
START_TEST(challenges_to_client)
{
	json_t *info = member(json_array_get(member(root, "exchanges"), 5), "rxkad");
	struct rxw_rxkad_token token = {.size = sizeof(token), .kvno = 213};
	uint8_t challenge[16] = {0}, out[16384];
	const uint32_t calls[4] = {0};
	struct rxw_rxkad *side;
	struct rxw_rxkad_conn *c;
	uint16_t spare;
	size_t written;

	token.ticket = bytes(info, "ticket", &token.ticket_length);
	ck_assert_int_eq(rxw_rxkad_client_side(&token, RXW_LEVEL_AUTH, &side), 0);
	c = connection(side, 1, 4, true);
	rxw_put32(challenge, 2);
	for (size_t size = 0; size < 16; size++)
		ck_assert_int_lt(rxw_rxkad_respond(c, challenge, size, calls, out, sizeof(out),
						   &written, &spare),
				 0);
	ck_assert_int_eq(rxw_rxkad_respond(c, challenge, 16, calls, out, token.ticket_length,
					   &written, &spare),
			 -RXW_ELIMIT);
	rxw_put32(challenge + 8, RXW_LEVEL_CRYPT);
	ck_assert_int_eq(
		rxw_rxkad_respond(c, challenge, 16, calls, out, sizeof(out), &written, &spare), 0);
	rxw_put32(challenge, 1);
	ck_assert_int_lt(
		rxw_rxkad_respond(c, challenge, 16, calls, out, sizeof(out), &written, &spare), 0);
	rxw_rxkad_conn_destroy(c);
	rxw_rxkad_side_destroy(side);
	rxw_rxkad_token_free(&token);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("exchanges");
	TCase *tc = tcase_create("recorded");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tc, 120);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_loop_test(tc, server_replays_exchange, 0, 20);
	tcase_add_loop_test(tc, server_finds_keys, 0, 20);
	tcase_add_loop_test(tc, client_replays_exchange, 0, 20);
	tcase_add_test(tc, session_keys);
	tcase_add_test(tc, errors_of_server);
	tcase_add_test(tc, response_tampered);
	tcase_add_test(tc, response_of_another);
	tcase_add_test(tc, single_des_is_refused);
	tcase_add_test(tc, challenges_to_client);
	suite_add_tcase(suite, tc);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? 0 : 1;
}
