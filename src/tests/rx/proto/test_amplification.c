/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A peer that never answers is sent at most three bytes per byte received, IP and UDP headers
 * included. This holds for all input and all application behaviour, until the last timer has
 * expired (rx-protocol 6.7, C-063).
 */
#include <string.h>

#include "base/hash.h"
#include "bench.h"

#define UDP	     28u
#define SILENCE	     (700 * RXW_SEC) /* longer than a server keeps any connection */
#define CALLS	     5u		     /* numbers used in the packets */
#define CHALLENGE_AT 88		     /* index of the class */

/* The server's treatment of a call. */
enum application {
	WORKS_FOR_EVER,
	SMALL_REPLY,
	REPLIES_EARLY,
	LARGE_REPLY,
	ABORTS,
	REFUSES,
	HAS_NO_MEMORY,
	APPLICATIONS
};

static const char *const application_names[] = {"works for ever", "small reply", "early reply",
						"large reply",	  "aborts",	 "refuses",
						"no memory"};

static int give_challenge(void *conn, uint8_t *out, size_t room)
{
	(void)conn;
	(void)room;
	memset(out, 1, 64);
	return 64;
}

static int32_t refuse_response(void *conn, const uint8_t *response, size_t size, uint16_t spare,
			       uint32_t calls[4])
{
	(void)conn;
	(void)response;
	(void)size;
	(void)spare;
	(void)calls;
	return -4242;
}

static struct rxw_security challenging = {
	.class =
		{
			.size = sizeof(struct rxw_security_class),
			.name = "challenging",
			.index = CHALLENGE_AT,
			.challenge = give_challenge,
			.check_response = refuse_response,
		},
};

static struct world {
	struct bench b;
	struct bench_conn *c;
	enum application application;
	bool secured, strict, pressed;
	uint64_t in, out;
	const char *packet;
} w;

/* The application's part of a call, once. */
static void serve(struct bench_call *call, uint32_t events)
{
	if (!(events & RXW_OUT_ATTACH))
		return;
	bench_read(call);
	switch (w.application) {
	case SMALL_REPLY:
	case REPLIES_EARLY:
		bench_write(call, 1, 4, true);
		break;
	case LARGE_REPLY:
		bench_write(call, 20, 1416, true);
		break;
	case ABORTS:
		rxw_pcall_fail(&call->p, 4711, RXW_ORIGIN_LOCAL, true, &w.b.out);
		return;
	default:
		return;
	}
	if (w.application != REPLIES_EARLY)
		rxw_pcall_finish(&call->p, &w.b.out);
}

static void tally(void)
{
	struct bench_packet *k;

	while ((k = bench_next(&w.b)) != NULL) {
		w.out += k->length + k->padding + UDP;
		ck_assert_msg(w.out <= 3 * w.in, "%s, %s%s%s%s: %llu bytes for %llu, the last a %s",
			      w.packet, application_names[w.application],
			      w.secured ? ", secured" : "", w.strict ? ", strict" : "",
			      w.pressed ? ", pressed" : "", (unsigned long long)w.out,
			      (unsigned long long)w.in, rxw_packet_type_name(k->h.type));
	}
	w.b.count = w.b.next = 0;
	ck_assert_msg(!rxw_peer_validated(w.c->p.peer, w.b.out.now), "%s proves an address",
		      w.packet);
}

static void open_world(enum application application, unsigned kind)
{
	memset(&w, 0, sizeof(w));
	w.application = application;
	w.secured = kind & 1;
	w.strict = kind & 2;
	w.pressed = kind & 4;
	bench_init(&w.b, false);
	if (w.secured)
		w.b.security = &challenging;
	w.b.on_events = serve;
	w.b.refuse_calls = application == REFUSES;
	w.b.memory_short = application == HAS_NO_MEMORY;
	w.c = bench_conn(&w.b, BENCH_EPOCH, BENCH_CID, 7001);
	w.c->p.validate_first = w.strict;
	w.c->p.crowded = w.pressed;
}

static void close_world(void)
{
	bench_free(&w.b);
}

static void wait_for(uint64_t ns)
{
	for (uint64_t part = ns / 20 + 1, passed = 0; passed < ns; passed += part) {
		bench_pass(&w.b, part);
		tally();
	}
}

static void say(const uint8_t *packet, uint32_t size)
{
	w.in += size + UDP;
	bench_input(&w.b, w.c, packet, size, size);
	tally();
}

/* --- one packet of each kind, then silence --- */

static const uint8_t flags_of[] = {0, RXW_LAST_PACKET, RXW_REQUEST_ACK,
				   RXW_LAST_PACKET | RXW_REQUEST_ACK};
static const uint32_t sizes[] = {0, 1, 4, 16, 200};

static void one_data(enum application application, unsigned kind, unsigned flags, uint32_t size,
		     uint32_t seq)
{
	uint8_t packet[1500];

	open_world(application, kind);
	w.packet = "a DATA packet";
	say(packet, bench_data(&w.b, packet, 1, seq, flags, size));
	wait_for(SILENCE);
	close_world();
}

START_TEST(one_packet_of_data)
{
	for (unsigned kind = 0; kind < 8; kind++)
		for (unsigned f = 0; f < sizeof(flags_of); f++)
			for (unsigned s = 0; s < sizeof(sizes) / sizeof(*sizes); s++) {
				one_data((enum application)_i, kind, flags_of[f], sizes[s], 1);
				one_data((enum application)_i, kind, flags_of[f], sizes[s], 9);
			}
}
END_TEST

/* An ACK of a sender that sees none of our packets and may guess serials. It validates nothing. */
static uint32_t guessed_ack(uint8_t *packet, uint32_t call, uint64_t *random)
{
	uint64_t r = rxw_prng(random);
	uint32_t serial = r & 32 ? 1 + (uint32_t)(r >> 32) % 4 : 0x40000000u | (uint32_t)(r >> 32);

	return bench_ack(&w.b, packet, call, 1 + r % 3, serial, 1 + r % 9,
			 r & 16 ? RXW_REQUEST_ACK : 0, &"1101"[(r >> 8) % 5], 32);
}

static uint32_t other(uint8_t *packet, unsigned type, uint32_t call, uint64_t *random)
{
	uint32_t size = rxw_prng(random) % 60;

	memset(packet + RXW_HEADER_SIZE, 7, size);
	return bench_header(&w.b, packet, type, call, rxw_prng(random) & 1 ? RXW_REQUEST_ACK : 0) +
	       size;
}

/* The same, with or without a call that the packet may refer to. */
START_TEST(one_packet_of_another_type)
{
	uint8_t packet[1500];
	uint64_t random = 1;

	for (unsigned kind = 0; kind < 8; kind++)
		for (unsigned type = 0; type < 32; type++)
			for (uint32_t call = 0; call < 3; call++) {
				open_world((enum application)_i, kind);
				if (type & 16) {
					w.packet = "a DATA packet before another";
					say(packet,
					    bench_data(&w.b, packet, 1, 1, RXW_LAST_PACKET, 4));
				}
				w.packet = rxw_packet_type_name(type % 16);
				if (type % 16 == RXW_ACK)
					say(packet, guessed_ack(packet, call, &random));
				else
					say(packet, other(packet, type % 16, call, &random));
				wait_for(SILENCE);
				close_world();
			}
}
END_TEST

/* --- many packets of any kind, at any time --- */

static uint32_t any_packet(uint8_t *packet, uint64_t *random)
{
	uint64_t r = rxw_prng(random);
	uint32_t call = (uint32_t)(1 + (r >> 8) % CALLS);

	switch (r % 8) {
	case 0:
		return guessed_ack(packet, call, random);
	case 1:
		return other(packet, (r >> 20) % 16, (r >> 30) & 1 ? call : 0, random);
	default:
		return bench_data(&w.b, packet, call, (uint32_t)(1 + (r >> 20) % 20),
				  (r >> 40) & (RXW_LAST_PACKET | RXW_REQUEST_ACK),
				  (r >> 50) & 1 ? 0 : (uint32_t)(r >> 51) % 100);
	}
}

START_TEST(many_packets)
{
	static const uint64_t pauses[] = {0, 3 * RXW_MS, 100 * RXW_MS, RXW_SEC, 20 * RXW_SEC};
	uint8_t packet[1500];

	for (uint64_t seed = 1; seed <= 400; seed++) {
		uint64_t random = seed;

		open_world((enum application)(seed % APPLICATIONS),
			   (unsigned)(seed / APPLICATIONS % 8));
		for (unsigned i = 0; i < 30; i++) {
			w.packet = "many packets";
			rxw_put32(packet, 0);
			say(packet, any_packet(packet, &random));
			wait_for(pauses[rxw_prng(&random) % 5]);
		}
		wait_for(SILENCE);
		close_world();
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("amplification");
	TCase *tc = tcase_create("silent peers");

	tcase_set_timeout(tc, 120);
	tcase_add_loop_test(tc, one_packet_of_data, 0, APPLICATIONS);
	tcase_add_loop_test(tc, one_packet_of_another_type, 0, APPLICATIONS);
	tcase_add_test(tc, many_packets);
	suite_add_tcase(suite, tc);
	return bench_main(suite);
}
