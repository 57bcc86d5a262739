/* SPDX-License-Identifier: BSD-2-Clause */
/* Both ends of a connection as the class sees them. */
#include "rig.h"

static int64_t now(void *context)
{
	return ((struct rig_side *)context)->now;
}

static int chance(void *context, void *out, size_t size)
{
	struct rig_side *s = context;
	size_t some = size < s->chance_left ? size : s->chance_left;

	if (s->no_chance)
		return -1;
	memcpy(out, s->chance, some);
	memmove(s->chance, s->chance + some, s->chance_left - some);
	s->chance_left -= some;
	test_fill(&s->seed, (uint8_t *)out + some, size - some);
	return 0;
}

static void begin(struct rig_side *s, const struct rxw_security_id *id)
{
	void *conn = NULL;

	s->klass->random = chance;
	s->klass->random_context = s;
	ck_assert_int_eq(rxw_gk_table.conn_create(s->klass, id, &conn), 0);
	s->conn = conn;
}

void rig_server(struct rig_side *s, rxw_keys *keys, uint8_t level_min, uint8_t index,
		const struct rxw_security_id *id)
{
	struct rxw_rxgk_server_options o = {.size = sizeof(o), .keys = keys,
					    .level_min = level_min, .index = index,
					    .time = now, .time_context = s};

	if (!s->now)
		s->now = RIG_NOW;
	ck_assert_int_eq(rxw_gk_class_server(&o, &s->klass), 0);
	begin(s, id);
}

void rig_client(struct rig_side *s, const struct rxw_rxgk_token *token, uint8_t index,
		const struct rxw_security_id *id)
{
	struct rxw_rxgk_client_options o = {.index = index, .time = now, .time_context = s};

	if (!s->now)
		s->now = RIG_NOW;
	ck_assert_int_eq(rxw_gk_class_client(token, &o, &s->klass), 0);
	begin(s, id);
}

void rig_end(struct rig_side *s)
{
	rxw_gk_table.conn_destroy(s->conn);
	rxw_gk_table.destroy(s->klass);
	memset(s, 0, sizeof(*s));
}

void rig_chance(struct rig_side *s, const void *bytes, size_t length)
{
	ck_assert_uint_le(length, sizeof(s->chance));
	memcpy(s->chance, bytes, length);
	s->chance_left = length;
	/* Bytes drawn ahead do not count. */
	for (int i = 0; i < 4; i++)
		for (struct rxw_gk_key *k = s->conn->slot[i]; k; k = NULL)
			for (struct rxw_gk_work *w = k->idle[RXW_GK_SEAL]; w; w = w->next)
				w->random_left = 0;
}

int32_t rig_exchange(struct rig_side *client, struct rig_side *server)
{
	uint8_t challenge[64], response[16384];
	uint32_t calls[4] = {3, 0, 7, 0xfffffff0}, claimed[4] = {0};
	size_t written = 0;
	uint16_t spare = 99;
	int32_t code;
	int n = rxw_gk_table.challenge(server->conn, challenge, sizeof(challenge));

	ck_assert_int_eq(n, 20);
	ck_assert_int_eq(rxw_gk_table.respond(client->conn, challenge, 20, calls, response,
					      sizeof(response), &written, &spare), 0);
	code = rxw_gk_table.check_response(server->conn, response, written, spare, claimed);
	if (!code)
		ck_assert_int_eq(memcmp(calls, claimed, sizeof(calls)), 0);
	return code;
}

uint16_t rig_seal(struct rig_side *s, uint32_t call, uint32_t seq, uint8_t channel,
		  const void *data, size_t length, uint8_t *out, size_t *size)
{
	struct rxw_security_room room;
	struct rxw_security_packet p = {.data = out, .call = call, .seq = seq,
					.channel = channel, .length = (uint32_t)length};

	rxw_gk_table.room(s->conn, &room);
	ck_assert(room.block <= 1 && !room.least);
	memcpy(out + room.head, data, length);
	ck_assert_int_eq(rxw_gk_table.seal(s->conn, &p, 1), 0);
	ck_assert_uint_eq(p.length, length);
	*size = room.head + length + room.tail;
	return p.spare;
}

int32_t rig_open(struct rig_side *s, uint32_t call, uint32_t seq, uint8_t channel, uint16_t word,
		 const void *packet, size_t size, uint8_t *data, size_t *length)
{
	struct rxw_security_room room = {0};
	uint8_t *copy = malloc(size ? size : 1);
	struct rxw_security_packet p = {.data = copy, .call = call, .seq = seq,
					.channel = channel, .spare = word,
					.length = (uint32_t)size, .result = 77};

	ck_assert_ptr_nonnull(copy);
	memcpy(copy, packet, size);
	rxw_gk_table.verify(s->conn, &p, 1);
	if (p.result >= 0) {
		rxw_gk_table.room(s->conn, &room);
		ck_assert_uint_le(room.head + p.length, size);
		memcpy(data, copy + room.head, p.length);
		*length = p.length;
	}
	free(copy);
	return p.result;
}

void rig_send(struct rig_side *from, struct rig_side *to, uint32_t seq)
{
	uint8_t packet[256], data[256];
	size_t size, length = 0;
	uint16_t word = rig_seal(from, 1, seq, 0, "of one to the other", 20, packet, &size);

	ck_assert_int_eq(rig_open(to, 1, seq, 0, word, packet, size, data, &length), 0);
	ck_assert_uint_eq(length, 20);
	ck_assert_int_eq(memcmp(data, "of one to the other", 20), 0);
}

rxw_keys *rig_keys(int32_t kvno, int32_t enctype)
{
	rxw_keys *keys;

	ck_assert_int_eq(rxw_keys_create(&keys), 0);
	ck_assert_int_eq(rxw_keys_generate(keys, RXW_KEY_RXGK, kvno, enctype), 0);
	return keys;
}
