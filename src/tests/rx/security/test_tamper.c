/* SPDX-License-Identifier: BSD-2-Clause */
/* Changed packets: dropped, counted, and without effect on their call. */
#include "world.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/wire.h"

#define SIZE 40u /* bytes of a small call, each way */

/* The relay's task; datagrams of the previous call may still be in flight. */
static struct {
	_Atomic(bool) to_server;	 /* of which direction */
	/* the byte to change, from the beginning of the datagram */
	_Atomic(unsigned) bit;
	_Atomic(unsigned) every;	 /* bulk: one in so many DATA packets is changed */
	_Atomic(unsigned) seen, changed; /* bulk */
	_Atomic(bool) lose;		 /* drop the genuine one */
	_Atomic(int) left;		 /* packets to change */
	_Atomic(size_t) size;		 /* of the latest DATA packet of that direction */
	_Atomic(uint32_t) call[4];	 /* the latest of each channel; relay */
} plan;

static void forget_calls(void)
{
	for (unsigned i = 0; i < 4; i++)
		plan.call[i] = 0;
}

/* The first transmission of a packet of this call; a retransmission would be dropped as such. */
static bool is_new(const uint8_t *data)
{
	_Atomic(uint32_t) *known = &plan.call[data[7] & 3];
	uint32_t call = rxw_get32(data + AT_CALL);

	if (call <= *known)
		return false;
	*known = call;
	return true;
}

static void change_one(struct relay *r, bool to_server, uint8_t *data, size_t size)
{
	if (to_server == plan.to_server && type_of(data) == TYPE_DATA) {
		unsigned bit = plan.bit;

		plan.size = size;
		if (is_new(data) && plan.left > 0 && bit / 8 < size) {
			data[bit / 8] ^= (uint8_t)(1u << bit % 8);
			relay_pass(r, to_server, data, size);
			data[bit / 8] ^= (uint8_t)(1u << bit % 8);
			plan.left--;
		}
	}
	relay_pass(r, to_server, data, size);
}

/* Threads may count late. */
static void wait_for_refused(struct world *w, bool at_server, uint64_t many)
{
	for (unsigned i = 0; i < 20000 && world_refused(w, at_server) < many; i++)
		usleep(1000);
}

/* Bits whose change a class detects, without those that misdirect the packet first. */
static bool guarded(const struct kind *kind, unsigned bit)
{
	unsigned at = bit / 8;

	if (at >= HEADER)
		return at - HEADER < kind->guarded;
	return at / 2 * 2 == AT_SPARE && kind->header;
}

/*
 * Each bit of the payload, and of the word that belongs to it. The changed packet arrives first: if
 * it were accepted, the genuine one would be the duplicate.
 */
static void each_bit(struct world *w, bool to_server)
{
	rxw_connection *connection = world_connect(w);
	uint64_t before;
	unsigned changed = 0, wrong = 0, calls = 1;
	size_t size;

	plan.to_server = to_server;
	plan.left = 0;
	forget_calls();
	w->relay.filter = change_one;
	world_good(w, connection, SIZE);
	size = plan.size;
	ck_assert_uint_ge(size, HEADER + SIZE);
	before = world_refused(w, to_server);
	for (plan.bit = 0; plan.bit < 8 * size; plan.bit++) {
		bool same;
		int32_t code;

		if (!guarded(w->kind, plan.bit))
			continue;
		plan.left = 1;
		code = world_call(connection, SIZE, &same);
		ck_assert_msg(!code, "%s, bit %u of byte %u: the call ends with %d", w->kind->name,
			      plan.bit % 8, plan.bit / 8, code);
		ck_assert_msg(plan.left == 0, "nothing was changed");
		changed++;
		calls++;
		wrong += !same;
	}
	ck_assert_msg(wrong <= w->kind->misses, "%s: %u calls have wrong bytes", w->kind->name,
		      wrong);
	wait_for_refused(w, to_server, before + changed - w->kind->misses);
	ck_assert_uint_ge(world_refused(w, to_server), before + changed - w->kind->misses);
	ck_assert_uint_le(world_refused(w, to_server), before + changed);
	ck_assert_uint_eq(w->served, calls);
	rxw_connection_release(connection);
}

START_TEST(every_bit)
{
	struct world w;

	world_open(&w, &kinds[_i]);
	each_bit(&w, true);
	w.served = 0;
	each_bit(&w, false);
	world_close(&w);
}
END_TEST

/*
 * Bits of the header that name the connection, the call and the packet: a changed packet belongs to
 * none. No class protects type and flags, status and serial number: 7.1.
 */
START_TEST(every_header_bit)
{
	struct world w;
	rxw_connection *connection;
	unsigned calls = 1, wrong = 0;

	if (!kinds[_i].header)
		return;
	world_open(&w, &kinds[_i]);
	w.relay.filter = change_one;
	for (unsigned way = 0; way < 2; way++) {
		plan.to_server = way;
		plan.left = 0;
		forget_calls();
		connection = world_connect(&w);
		world_good(&w, connection, SIZE);
		w.served = calls = 1;
		for (plan.bit = 0; plan.bit < 8 * (AT_SEQ + 4); plan.bit++) {
			bool same;
			int32_t code;

			plan.left = 1;
			code = world_call(connection, SIZE, &same);
			ck_assert_msg(!code, "%s, bit %u of byte %u: the call ends with %d",
				      w.kind->name, plan.bit % 8, plan.bit / 8, code);
			wrong += !same;
			calls++;
		}
		ck_assert_uint_le(wrong, w.kind->misses);
		ck_assert_uint_ge(w.served, calls);
		ck_assert_uint_le(w.served, calls + w.kind->misses);
		rxw_connection_release(connection);
	}
	world_close(&w);
}
END_TEST

static void change_some(struct relay *r, bool to_server, uint8_t *data, size_t size)
{
	bool hit = to_server == plan.to_server && type_of(data) == TYPE_DATA && size > HEADER &&
		   ++plan.seen % plan.every == 0;

	if (hit) {
		/* Within the part that every class protects. */
		unsigned at = HEADER + plan.seen % 8;

		data[at] ^= 0x10;
		relay_pass(r, to_server, data, size);
		data[at] ^= 0x10;
		plan.changed++;
	}
	if (!hit || !plan.lose)
		relay_pass(r, to_server, data, size);
}

/* Runs of packets, some of them bad; and some that arrive only when retransmitted. */
START_TEST(bulk)
{
	struct world w;
	rxw_connection *connection;
	uint64_t before;

	if (!kinds[_i].guarded)
		return;
	world_open(&w, &kinds[_i]);
	connection = world_connect(&w);
	world_good(&w, connection, SIZE);
	for (unsigned round = 0; round < 4; round++) {
		plan.to_server = round & 1;
		plan.lose = round & 2;
		plan.every = plan.lose ? 41 : 3;
		plan.seen = 0;
		plan.changed = 0;
		before = world_refused(&w, plan.to_server);
		w.relay.filter = change_some;
		if (w.kind->misses) {
			bool same;

			ck_assert_int_eq(world_call(connection, 300000, &same), 0);
		} else {
			world_good(&w, connection, 300000);
		}
		w.relay.filter = NULL;
		ck_assert_uint_gt(plan.changed, 0);
		/* A changed copy of a packet that has arrived is dropped as a duplicate. */
		wait_for_refused(&w, plan.to_server, before + 1);
		ck_assert_uint_gt(world_refused(&w, plan.to_server), before);
		ck_assert_uint_le(world_refused(&w, plan.to_server), before + plan.changed);
	}
	rxw_connection_release(connection);
	world_close(&w);
}
END_TEST

/* --- random errors --- */

#define SHARE  100u /* one in so many datagrams is damaged */
#define ROUNDS 40u  /* connections of a kind, a call each */
#define FAR    1000000u

static uint64_t chance(void)
{
	static uint64_t state = 0x9e3779b97f4a7c15;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state * 0x2545f4914f6cdd1d;
}

/*
 * Errors that a class cannot detect are left to the application, and not made here: flags, packets
 * that become an ABORT, BUSY or ACKALL, ACKs for packets that were sent and did not arrive, and a
 * first packet for another service or class, which a server without it refuses.
 */
static bool believed(const uint8_t *was, const uint8_t *is, size_t size)
{
	unsigned type = type_of(is);

	if (memcmp(was + AT_SERVICE, is + AT_SERVICE, 2) || was[AT_CLASS] != is[AT_CLASS])
		return true;
	if (was[AT_FLAGS] != is[AT_FLAGS] || (type != was[AT_TYPE] && type >= 3 && type <= 5))
		return true;
	return type == TYPE_ACK && size > HEADER + 8 && memcmp(was + HEADER, is + HEADER, 8) &&
	       rxw_get32(is + HEADER + 4) < FAR;
}

/* One word, half of the time among the first 16, where a packet's header is. */
static void spoil_word(uint8_t *data, size_t size)
{
	uint8_t was[RELAY_ROOM];
	size_t words = size / 2, at;
	uint64_t r;

	memcpy(was, data, size);
	do {
		memcpy(data, was, size);
		r = chance();
		at = 2 * ((r >> 1 & 0xffffffff) % (r & 1 && words > 16 ? 16 : words));
		data[at] ^= (uint8_t)(r >> 40);
		data[at + 1] ^= (uint8_t)(r >> 48 | 1);
	} while (believed(was, data, size));
}

static void spoil_some(struct relay *r, bool to_server, uint8_t *data, size_t size)
{
	if (chance() % SHARE == 0) {
		spoil_word(data, size);
		plan.changed++;
	}
	relay_pass(r, to_server, data, size);
}

/*
 * One datagram in a hundred is damaged, of any kind, in both directions, from the first of a
 * connection on. It counts as lost, and its call goes on.
 */
START_TEST(random_damage)
{
	struct world w;

	world_open(&w, &kinds[_i]);
	w.relay.filter = spoil_some;
	plan.changed = 0;
	for (unsigned i = 0; i < ROUNDS && w.kind->header; i++) {
		rxw_connection *connection = world_connect(&w);
		bool same;
		int32_t code = world_call(connection, 300000, &same);

		ck_assert_msg(!code, "%s: call %u ends with %d (%s)", w.kind->name, i, code,
			      rxw_code_text(code));
		/* Otherwise data are not protected, or by 16 bits only. */
		ck_assert_msg(same || w.kind->guarded <= 8, "%s: call %u has wrong bytes",
			      w.kind->name, i);
		rxw_connection_release(connection);
	}
	ck_assert(plan.changed > ROUNDS || !w.kind->header);
	world_close(&w);
}
END_TEST

/* Each ACK is followed by one for packets that were never sent. */
static void acknowledge_unsent(struct relay *r, bool to_server, uint8_t *data, size_t size)
{
	relay_pass(r, to_server, data, size);
	if (type_of(data) == TYPE_ACK && size > HEADER + 8) {
		rxw_put32(data + HEADER + 4, rxw_get32(data + HEADER + 4) + FAR);
		relay_pass(r, to_server, data, size);
		plan.changed++;
	}
}

START_TEST(acks_of_unsent_packets)
{
	struct world w;
	rxw_connection *connection;

	world_open(&w, &kinds[_i]);
	w.relay.filter = acknowledge_unsent;
	plan.changed = 0;
	connection = world_connect(&w);
	for (unsigned i = 0; i < 4; i++)
		world_good(&w, connection, 300000);
	ck_assert_uint_gt(plan.changed, 0);
	rxw_connection_release(connection);
	world_close(&w);
}
END_TEST

/* --- a call that the server has forgotten --- */

#define LATE 31u /* beyond the window of a call before the key is known */

static _Atomic(bool) forgotten;

static void damage_two(struct relay *r, bool to_server, uint8_t *data, size_t size)
{
	if (!forgotten && type_of(data) == TYPE_RESPONSE)
		return;
	if (!forgotten && !to_server && type_of(data) == TYPE_ACK)
		rxw_put32(data + HEADER + 18 + data[HEADER + 17] + 3 + 8, 255);
	if (!forgotten && type_of(data) == TYPE_DATA && rxw_get32(data + AT_SEQ) == LATE) {
		data[AT_CALL + 2] ^= 0x7c;
		forgotten = true;
	}
	relay_pass(r, to_server, data, size);
}

/*
 * ACKs with a damaged window let the client send more than the server permits, and all of it counts as received. Then a
 * damaged call number ends the call at the server, which answers no PING of it any more. The client sends it again.
 */
START_TEST(all_acknowledged_and_forgotten)
{
	const struct kind *kind = kinds;
	rxw_connection *connection;
	struct world w;

	while (!kind->exchange || !kind->header)
		kind++;
	world_open_with(&w, kind, &(struct world_options){.dead_ms = 20000});
	w.relay.filter = damage_two;
	connection = world_connect(&w);
	world_good(&w, connection, 300000);
	ck_assert(forgotten);
	rxw_connection_release(connection);
	world_close(&w);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("security: changed packets");
	TCase *tc = tcase_create("changed packets");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_set_timeout(tc, 250);
	tcase_add_loop_test(tc, every_bit, 0, kind_count);
	tcase_add_loop_test(tc, every_header_bit, 0, kind_count);
	tcase_add_loop_test(tc, bulk, 0, kind_count);
	tcase_add_loop_test(tc, random_damage, 0, kind_count);
	tcase_add_test(tc, all_acknowledged_and_forgotten);
	tcase_add_loop_test(tc, acks_of_unsent_packets, 0, kind_count);
	suite_add_tcase(s, tc);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
