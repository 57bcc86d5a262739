/* SPDX-License-Identifier: BSD-2-Clause */
/* CHALLENGE and RESPONSE at live endpoints, by a class made for it: rx-protocol 6.1, 7.1. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/wire.h"
#include "proto/auth/auth.h"
#include "tests/rx/api/harness.h"
#include "tests/rx/api/streams.h"

#define INDEX	252
#define SERVICE 104
#define WRONG	4712

/* The server knows the client once its nonce came back; packets end in "seal". */
struct asking {
	uint8_t nonce[4];
};

static int conn_create(void *data, const struct rxw_security_id *id, void **conn)
{
	struct asking *c;

	(void)data;
	(void)id;
	c = calloc(1, sizeof(*c));
	*conn = c;
	return !c || rxw_random(c->nonce, sizeof(c->nonce)) ? -RXW_ENOMEM : 0;
}

static void conn_room(const void *conn, struct rxw_security_room *room)
{
	(void)conn;
	room->tail = 4;
}

static int seal(void *conn, struct rxw_security_packet *packets, size_t count)
{
	(void)conn;
	for (size_t i = 0; i < count; i++)
		memcpy(packets[i].data + packets[i].length, "seal", 4);
	return 0;
}

static void verify(void *conn, struct rxw_security_packet *packets, size_t count)
{
	(void)conn;
	for (size_t i = 0; i < count; i++) {
		struct rxw_security_packet *p = &packets[i];

		if (p->length >= 4 && !memcmp(p->data + p->length - 4, "seal", 4)) {
			p->result = 0;
			p->length -= 4;
		}
	}
}

static int challenge(void *conn, uint8_t *out, size_t room)
{
	struct asking *c = conn;

	(void)room;
	memcpy(out, c->nonce, sizeof(c->nonce));
	return sizeof(c->nonce);
}

static int respond(void *conn, const uint8_t *challenge, size_t size, const uint32_t calls[4],
		   uint8_t *out, size_t room, size_t *written, uint16_t *spare)
{
	struct asking *c = conn;

	(void)calls;
	(void)room;
	(void)spare;
	if (size != sizeof(c->nonce))
		return -1;
	memcpy(out, challenge, size);
	*written = size;
	return 0;
}

static int32_t check(void *conn, const uint8_t *response, size_t size, uint16_t spare,
		     uint32_t calls[4])
{
	struct asking *c = conn;

	(void)spare;
	(void)calls;
	return size != sizeof(c->nonce) || memcmp(response, c->nonce, size) ? WRONG : 0;
}

static struct rxw_security class = {
	.class = {
		.size = sizeof(struct rxw_security_class),
		.name = "asks",
		.index = INDEX,
		.broken = -4243,
		.conn_create = conn_create,
		.conn_destroy = free,
		.room = conn_room,
		.seal = seal,
		.verify = verify,
		.challenge = challenge,
		.respond = respond,
		.check_response = check,
	},
};

static struct h_bed bed;
static int fd;
static uint8_t body[H_ASK_SIZE + 4], packet[2048];

static void set_up(void)
{
	rxw_security *classes[] = {&class};
	struct rxw_service_options o = {.size = sizeof(o),
					.id = SERVICE,
					.name = "asks",
					.handler = h_serve,
					.context = &bed,
					.security = classes,
					.security_count = 1};
	rxw_service *service;

	h_open(&bed, NULL);
	ck_assert_int_eq(rxw_service_add(bed.server, &o, &service), 0);
	fd = h_raw_socket(&bed);
}

static void tear_down(void)
{
	close(fd);
	h_close(&bed);
}

/* A whole request with its seal. */
static struct h_raw request(uint32_t cid)
{
	struct h_raw raw = h_raw_request(body, H_PING, cid);

	memcpy(body + H_ASK_SIZE, "seal", 4);
	raw.body = body;
	raw.size = sizeof(body);
	raw.security = INDEX;
	raw.service = SERVICE;
	return raw;
}

/* The next CHALLENGE: its nonce. */
static uint32_t asked(void)
{
	ck_assert_int_eq(h_raw_receive(fd, RXW_CHALLENGE, packet), RXW_HEADER_SIZE + 4);
	ck_assert_uint_eq(rxw_get32(packet + 8), 0);
	ck_assert_uint_eq(packet[21], 0);
	return rxw_get32(packet + RXW_HEADER_SIZE);
}

static void respond_with(const struct h_raw *call, uint32_t nonce)
{
	struct h_raw raw = *call;
	uint8_t answer[4];

	rxw_put32(answer, nonce);
	raw.type = RXW_RESPONSE;
	raw.flags = RXW_CLIENT_INITIATED;
	raw.call = raw.seq = 0;
	raw.serial = 9;
	raw.body = answer;
	raw.size = 4;
	h_raw_send(fd, &raw);
}

START_TEST(both_ends_are_ours)
{
	rxw_connection *connection[3];
	struct rxw_stats s;

	bed.security = &class;
	for (int i = 0; i < 3; i++) {
		connection[i] = h_connect(&bed, SERVICE);
		for (int k = 0; k < 3; k++)
			h_good_call(&bed, connection[i],
				    &(struct h_ask){.op = H_BOTH, .bytes = 300000});
	}
	s = h_stats(bed.server);
	ck_assert_uint_ge(s.packets_sent[RXW_CHALLENGE], 3);
	ck_assert_uint_ge(s.packets_received[RXW_RESPONSE], 3);
	ck_assert_uint_eq(s.drops[RXW_DROP_VERIFY], 0);
	ck_assert_uint_eq(s.calls_started, 9);
	for (int i = 0; i < 3; i++)
		rxw_connection_release(connection[i]);
}
END_TEST

/* Whoever answers rightly is served what waited; nobody else is. */
START_TEST(served_after_the_answer)
{
	struct h_raw raw = request(0xa000);
	uint32_t nonce;

	h_raw_send(fd, &raw);
	nonce = asked();
	ck_assert_uint_eq(h_stats(bed.server).calls_started, 0);
	respond_with(&raw, nonce);
	ck_assert_int_eq(h_raw_receive(fd, RXW_DATA, packet), RXW_HEADER_SIZE + 4 + 4);
	ck_assert(!memcmp(packet + RXW_HEADER_SIZE, "pongseal", 8));
	ck_assert_uint_eq(packet[23], INDEX);
}
END_TEST

START_TEST(asked_three_times)
{
	struct h_raw raw = request(0xa100);
	uint64_t began = h_now_ms();
	uint32_t nonce;

	h_raw_send(fd, &raw);
	nonce = asked();
	for (int i = 0; i < 2; i++)
		ck_assert_uint_eq(asked(), nonce);
	ck_assert_uint_ge(h_now_ms() - began, 1250);
	ck_assert_uint_eq(h_stats(bed.server).calls_started, 0);
}
END_TEST

START_TEST(refused_after_a_second)
{
	struct h_raw raw = request(0xa200);
	uint64_t began = h_now_ms();

	h_raw_send(fd, &raw);
	respond_with(&raw, asked() + 1);
	ck_assert_int_eq(h_raw_receive(fd, RXW_ABORT, packet), RXW_HEADER_SIZE + 4);
	ck_assert_uint_ge(h_now_ms() - began, 999);
	ck_assert_uint_eq(rxw_get32(packet + 8), 0);
	ck_assert_int_eq((int32_t)rxw_get32(packet + RXW_HEADER_SIZE), WRONG);
	ck_assert_uint_eq(h_stats(bed.server).calls_started, 0);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("conformance: challenges, live");
	TCase *tc = tcase_create("live");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, set_up, tear_down);
	tcase_add_test(tc, both_ends_are_ours);
	tcase_add_test(tc, served_after_the_answer);
	tcase_add_test(tc, asked_three_times);
	tcase_add_test(tc, refused_after_a_second);
	suite_add_tcase(s, tc);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
