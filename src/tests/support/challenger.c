/* SPDX-License-Identifier: BSD-2-Clause */
/* A security class for tests that challenges. */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "challenger.h"
#include "proto/peer/auth.h"

#define SEAL_SIZE 4

struct half {
	uint32_t epoch;
	uint8_t nonce[CHALLENGER_NONCE];
	struct challenger_asked asked;
};

static const uint8_t seal_bytes[SEAL_SIZE] = {'s', 'e', 'a', 'l'};

const uint8_t *challenger_nonce(const void *sec)
{
	return ((const struct half *)sec)->nonce;
}

const struct challenger_asked *challenger_asked(const void *sec)
{
	return &((const struct half *)sec)->asked;
}

static int conn_create(void *data, const struct rxw_security_id *id, void **conn)
{
	struct half *half = calloc(1, sizeof(*half));

	(void)data;
	*conn = half;
	if (!half || rxw_random(half->nonce, sizeof(half->nonce)))
		return -RXW_ENOMEM;
	half->epoch = id->epoch;
	return 0;
}

static void conn_room(const void *conn, struct rxw_security_room *room)
{
	(void)conn;
	room->tail = SEAL_SIZE;
}

static int seal(void *conn, struct rxw_security_packet *packets, size_t count)
{
	(void)conn;
	for (size_t i = 0; i < count; i++) {
		memcpy(packets[i].data + packets[i].length, seal_bytes, SEAL_SIZE);
		packets[i].spare = CHALLENGER_SPARE;
	}
	return 0;
}

static void verify(void *conn, struct rxw_security_packet *packets, size_t count)
{
	(void)conn;
	for (size_t i = 0; i < count; i++) {
		struct rxw_security_packet *p = &packets[i];

		if (p->length < SEAL_SIZE || p->spare != CHALLENGER_SPARE ||
		    memcmp(p->data + p->length - SEAL_SIZE, seal_bytes, SEAL_SIZE) != 0)
			continue;
		p->result = 0;
		p->length -= SEAL_SIZE;
	}
}

static int challenge(void *conn, uint8_t *out, size_t room)
{
	struct half *half = conn;

	if (room < sizeof(half->nonce))
		return -1;
	memcpy(out, half->nonce, sizeof(half->nonce));
	return sizeof(half->nonce);
}

static int respond(void *conn, const uint8_t *challenge, size_t size, const uint32_t calls[4],
		   uint8_t *out, size_t room, size_t *written, uint16_t *spare)
{
	struct half *half = conn;

	(void)spare;
	half->asked = (struct challenger_asked){.epoch = half->epoch, .room = room};
	memcpy(half->asked.calls, calls, sizeof(half->asked.calls));
	if (size != CHALLENGER_NONCE || room < size)
		return -1;
	memcpy(out, challenge, size);
	*written = size;
	return 0;
}

static int32_t check_response(void *conn, const uint8_t *response, size_t size, uint16_t spare,
			      uint32_t calls[4])
{
	struct half *half = conn;

	(void)spare;
	(void)calls;
	if (size != sizeof(half->nonce) || memcmp(response, half->nonce, size) != 0)
		return CHALLENGER_WRONG;
	return 0;
}

static struct rxw_security class = {
	.class =
		{
			.size = sizeof(struct rxw_security_class),
			.name = "challenger",
			.index = CHALLENGER_INDEX,
			.broken = -4243,
			.conn_create = conn_create,
			.conn_destroy = free,
			.room = conn_room,
			.seal = seal,
			.verify = verify,
			.challenge = challenge,
			.respond = respond,
			.check_response = check_response,
		},
};

rxw_security *challenger_class(void)
{
	return &class;
}
