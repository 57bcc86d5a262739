/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzz target: the parsers of rxkad. The first byte selects the format of the rest. Where a key
 * would reject mutations, the target seals the rest with it.
 */

#include "fuzz.h"

#include <krb5.h>
#include <string.h>

#include "rxkad/rxkad_conn.h"
#include "rxkad/ticket.h"

const char fuzz_name[] = "rxkad";
const size_t fuzz_max = 600;
const unsigned fuzz_cost = 40;

enum kind {
	CLEAR_V5,
	CLEAR_V4,
	TICKET,
	SEALED_V5,
	WHOLE_RESPONSE,
	CHALLENGE_OF_SERVER,
	PACKETS,
	KINDS
};

static uint8_t service_key[32];
static const uint8_t session_key[8] = {0xa4, 0x4c, 0xcb, 0x19, 0x25, 0x31, 0xba, 0x1c};
static rxw_keys *keys;

static int64_t now(void *context)
{
	(void)context;
	return 1795229458;
}

static void begin(void)
{
	if (keys)
		return;
	for (unsigned i = 0; i < sizeof(service_key); i++)
		service_key[i] = (uint8_t)(i + 1);
	FUZZ_CHECK(!rxw_keys_create(&keys));
	FUZZ_CHECK(!rxw_keys_add(keys, RXW_KEY_KRB5, 1, 18, service_key, sizeof(service_key)));
}

/* An accepted name is valid in AFS. */
static void check(int32_t code, const struct rxw_rxkad_ticket *t)
{
	FUZZ_CHECK(code == 0 || (code >= RXW_RXKAD_INCONSISTENCY && code <= RXW_RXKAD_SEALEDINCON));
	if (code)
		return;
	FUZZ_CHECK(t->name[0] && memchr(t->name, 0, sizeof(t->name)));
	FUZZ_CHECK(memchr(t->instance, 0, sizeof(t->instance)));
	FUZZ_CHECK(memchr(t->cell, 0, sizeof(t->cell)));
	FUZZ_CHECK(memchr(t->principal, 0, sizeof(t->principal)));
	FUZZ_CHECK(t->start < t->end);
}

/* As a ticket of form 213 that can be decrypted. */
static void sealed(const struct rxw_rxkad_opener *opener, const uint8_t *data, size_t size)
{
	uint8_t cipher[1024], all[1200];
	krb5_keyblock key = {.magic = KV5M_KEYBLOCK,
			     .enctype = 18,
			     .length = sizeof(service_key),
			     .contents = service_key};
	krb5_data in = {
		.magic = KV5M_DATA, .length = (unsigned)size, .data = (char *)(uintptr_t)data};
	krb5_enc_data out = {.magic = KV5M_ENC_DATA};
	struct rxw_der_out o = {all, all + sizeof(all), all + sizeof(all), false};
	struct rxw_rxkad_ticket ticket;

	if (size > 900)
		return;
	out.ciphertext.data = (char *)cipher;
	out.ciphertext.length = sizeof(cipher);
	FUZZ_CHECK(!krb5_c_encrypt(NULL, &key, 2, NULL, &in, &out));
	rxw_der_put_in(&o, 2, RXW_DER_OCTET_STRING, cipher, out.ciphertext.length);
	rxw_der_put_integer(&o, 1, 1);
	rxw_der_put_integer(&o, 0, 18);
	rxw_der_put_header(&o, RXW_DER_SEQUENCE, o.end);
	FUZZ_CHECK(!o.full);
	check(rxw_rxkad_ticket_open(opener, RXW_RXKAD_KVNO_ENCPART, o.p, (size_t)(o.end - o.p),
				    &ticket),
	      &ticket);
}

static void response(const uint8_t *data, size_t size)
{
	struct rxw_rxkad_server_options o = {.size = sizeof(o), .keys = keys, .time = now};
	struct rxw_security_id id = {.epoch = 7, .cid = 8, .index = 2};
	struct rxw_rxkad *side;
	uint32_t calls[4] = {0};
	uint8_t out[16];
	int32_t code;
	void *conn;

	FUZZ_CHECK(!rxw_rxkad_server_side(&o, &side));
	FUZZ_CHECK(!rxw_rxkad_conn_create(side, &id, &conn));
	FUZZ_CHECK(rxw_rxkad_challenge(conn, out, sizeof(out)) == sizeof(out));
	code = rxw_rxkad_check_response(conn, data, size, 0, calls);
	FUZZ_CHECK(code >= RXW_RXKAD_INCONSISTENCY && code <= RXW_RXKAD_SEALEDINCON);
	rxw_rxkad_conn_destroy(conn);
	rxw_rxkad_side_destroy(side);
}

/* A client, at the level of the first byte: a CHALLENGE, or fragments of packets. */
static void client(const uint8_t *data, size_t size, bool packets)
{
	static uint8_t text[RXW_RXKAD_TICKET_MIN];
	struct rxw_rxkad_token token = {.size = sizeof(token),
					.kvno = 213,
					.ticket = text,
					.ticket_length = sizeof(text),
					.expires = INT64_MAX};
	struct rxw_security_id id = {.epoch = 7, .cid = 8, .index = 2, .client = true};
	struct rxw_security_packet p[8];
	struct rxw_security_room room;
	struct rxw_rxkad *side;
	uint8_t out[256], copy[8][700];
	const uint32_t calls[4] = {1, 0, 0, 0};
	size_t written = 0, count = 0;
	uint16_t spare;
	void *conn;

	if (size < 1)
		return;
	memcpy(token.session_key, session_key, sizeof(session_key));
	FUZZ_CHECK(!rxw_rxkad_client_side(&token, data[0] % 3, &side));
	FUZZ_CHECK(!rxw_rxkad_conn_create(side, &id, &conn));
	data++;
	size--;
	if (!packets) {
		if (!rxw_rxkad_respond(conn, data, size, calls, out, sizeof(out), &written, &spare))
			FUZZ_CHECK(size >= 16 && written == 56 + sizeof(text));
	}
	rxw_rxkad_room(conn, &room);
	while (packets && count < 8 && size >= 4) {
		size_t n = (size_t)data[0] % (size - 3);

		p[count] = (struct rxw_security_packet){.data = copy[count],
							.call = data[1],
							.seq = data[2],
							.channel = data[1] & 3,
							.result = -1};
		/* Half of them get the right word, so that later fields are parsed. */
		rxw_rxkad_seal(conn, &p[count], data[3] & 1 ? 1 : 0);
		memcpy(copy[count], data + 3, n);
		p[count].length = (uint32_t)n;
		count++;
		data += 3 + n;
		size -= 3 + n;
	}
	rxw_rxkad_verify(conn, p, count);
	for (size_t i = 0; i < count; i++) {
		FUZZ_CHECK(p[i].result == 0 || p[i].result == -1);
		FUZZ_CHECK(p[i].result || p[i].length + room.head <= sizeof(copy[i]));
	}
	rxw_rxkad_conn_destroy(conn);
	rxw_rxkad_side_destroy(side);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rxw_rxkad_opener opener = {.now = 1795229458};
	struct rxw_rxkad_ticket ticket;

	if (size < 2)
		return 0;
	begin();
	opener.keys = keys;
	switch (data[0] % KINDS) {
	case CLEAR_V5:
		check(rxw_rxkad_ticket_v5(&opener, data + 1, size - 1, &ticket), &ticket);
		break;
	case CLEAR_V4:
		check(rxw_rxkad_ticket_v4(&opener, data + 1, size - 1, &ticket), &ticket);
		break;
	case TICKET:
		check(rxw_rxkad_ticket_open(&opener, data[1] & 1 ? 213 : 256, data + 2, size - 2,
					    &ticket),
		      &ticket);
		break;
	case SEALED_V5:
		sealed(&opener, data + 1, size - 1);
		break;
	case WHOLE_RESPONSE:
		response(data + 1, size - 1);
		break;
	case CHALLENGE_OF_SERVER:
		client(data + 1, size - 1, false);
		break;
	default:
		client(data + 1, size - 1, true);
		break;
	}
	return 0;
}
