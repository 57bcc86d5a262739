/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The attacks of rx-protocol 12.3 on a live server, while 16 honest clients use it. Each attack is
 * limited in packets and stays on this host. Only results that do not depend on the machine's speed
 * are asserted: honest calls have the right bytes, memory stays within its limits, the cause of
 * each dropped packet is counted, and silent addresses receive at most three times the bytes they
 * sent. goodput.c measures the goodput.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attacker.h"
#include "tests/support/internals.h"

/* The limits that the server is configured with. */
#define MEMORY	  (64u << 20)
#define STRANGERS 512u
/* the evicted and the kept: with 10,000 addresses an attack can reach both */
#define PEERS	  12000u
/* Buffers and objects that the attack may make the server hold. */
#define HELD (MEMORY + (16u << 20))

static struct h_bed bed;
static struct attacker attacker;

static unsigned number(const char *name, unsigned usual)
{
	const char *text = getenv(name);

	return text ? (unsigned)atoi(text) : usual;
}

static bool has_begun(void *arg)
{
	struct attacker *a = arg;

	return atomic_load(&a->sent) >= BURST;
}

static bool is_under_way(void *arg)
{
	struct attacker *a = arg;

	return atomic_load(&a->sent) >= 10 * BURST;
}

struct account {
	const struct attack *attack;
	struct counters before;
	uint64_t wanted, met;
	rxw_connection *honest;
};

/*
 * The kernel reports its drops with the next packet, hence the call. Retransmissions of honest
 * clients can only increase the count.
 */
static bool accounted(void *arg)
{
	struct account *k = arg;
	struct counters s;

	h_good_call(&bed, k->honest, &(struct h_ask){.op = H_PING});
	s = counters_of(bed.server);
	k->met = k->attack->met(&s) - k->attack->met(&k->before);
	return k->met + counter_in(&s, "kernel_drops") - counter_in(&k->before, "kernel_drops") >=
	       k->wanted;
}

static void check_bounds(const struct attack *attack)
{
	struct counters s = counters_of(bed.server);
	size_t peak;

	rxw_engine_memory(bed.server_engine, &peak);
	ck_assert_uint_le(peak, MEMORY);
	/* Twice the limit, since the attacker is on this host, plus honest and validated ones. */
	ck_assert_uint_le(counter_in(&s, "connections_server"),
			  2 * STRANGERS + HONEST + ADDRESSES + 1);
	ck_assert_uint_le(counter_in(&s, "peers"), PEERS);
	peak += counter_in(&s, "connections_server") *
			(internals_connection_size + 4 * internals_call_size) +
		counter_in(&s, "peers") * internals_peer_size;
	ck_assert_msg(peak <= HELD, "%s: %zu bytes held", attack->name, peak);
	if (attack->harmless && attack->harmless <= ADDRESSES)
		ck_assert_uint_le(counter_in(&s, "unvalidated_connections"), HONEST + ADDRESSES);
}

START_TEST(honest_clients_under_attack)
{
	const struct attack *attack = &attacks[_i];
	unsigned calls = number("RXW_ATTACK_CALLS", h_small() ? 10 : 40);
	uint64_t most = number("RXW_ATTACK_PACKETS", h_small() ? 5000 : 40000);
	struct account k = {.attack = attack};
	struct honest h[HONEST];

	h_open(&bed, &(struct h_options){.server = "memory=64M unvalidated-max=512 dead-ms=60000",
					 .security = attack->security});
	honest_open(h, &bed);
	honest_start(h, 2);
	honest_end(h, false);
	k.before = counters_of(bed.server);
	attacker_start(&attacker, attack, &bed.address, h, most);
	h_wait_for(has_begun, &attacker, "the attack");
	honest_start(h, calls);
	honest_end(h, false);
	/* Most attacks take effect soon; slow ones end after a while. */
	h_wait_for(is_under_way, &attacker, "ten bursts");
	attacker_end(&attacker, attack->rate);
	k.honest = h[0].connection;
	k.wanted = atomic_load(&attacker.sent);
	k.wanted = k.wanted > attack->harmless ? k.wanted - attack->harmless : 0;
	if (attack->met)
		h_wait_for(accounted, &k, attack->name);
	check_bounds(attack);
	honest_close(h);
	h_close(&bed);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("attack");
	TCase *tc = tcase_create("attack");
	SRunner *r = srunner_create(s);
	const struct attack *only = attack_find(getenv("RXW_ATTACK") ? getenv("RXW_ATTACK") : "");
	int failed;

	tcase_set_timeout(tc, 200);
	if (only)
		tcase_add_loop_test(tc, honest_clients_under_attack, (int)(only - attacks),
				    (int)(only - attacks) + 1);
	else
		tcase_add_loop_test(tc, honest_clients_under_attack, 0, (int)attack_count);
	suite_add_tcase(s, tc);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
