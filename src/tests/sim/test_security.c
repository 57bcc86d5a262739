/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rxkad and rxgk in virtual time: exchanges with lost, late and repeated packets, rekeying under
 * loss, expiring tickets, and the goodput of each level. Every seed can be replayed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rxwire/rxgk.h>
#include <rxwire/rxkad.h>

#include "rxgk/rxgk_conn.h"
#include "sim.h"

#ifndef __has_feature
#	define __has_feature(x) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
#	define SEEDS 4u
#else
#	define SEEDS 20u
#endif

static const char *const names[] = {"rxkad-clear", "rxkad-auth", "rxkad-crypt",	 "rxgk-clear",
				    "rxgk-auth",   "rxgk-crypt", "rxgk-auth-19", "rxgk-crypt-20"};
#define NAMES (sizeof(names) / sizeof(names[0]))

static struct sim sim;
static bool tracing;
static unsigned runs, starved; /* of one_seed(); those with a call that failed */

/* --- the exchange on a bad path --- */

/* Treatment of CHALLENGEs and RESPONSEs in addition to the link's. */
static struct {
	unsigned lose[2];	  /* additional losses: of the server's, of the client's */
	unsigned seen[2], others; /* packets of those and of other types */
	uint8_t last[2][20000];	  /* the latest of each, which are replayed */
	uint32_t size[2];
	bool again;
} meddler;

static void repeat(struct sim *s, unsigned which)
{
	struct sim_node *from = which ? &s->client : &s->server;

	if (meddler.size[which] == 0)
		return;
	meddler.again = true;
	sim_transmit(s, from, meddler.last[which], meddler.size[which], true, RXW_ECN_NOT);
	meddler.again = false;
}

static bool meddle(struct sim *s, const struct sim_node *from, const uint8_t *bytes,
		   uint32_t length)
{
	unsigned type = bytes[20], which = type == RXW_RESPONSE;

	if (meddler.again)
		return false;
	if (type != RXW_CHALLENGE && type != RXW_RESPONSE) {
		/* Late ones of this connection or of another, at any time. */
		if (meddler.others++ % 32 == 5)
			repeat(s, from->client);
		return false;
	}
	meddler.seen[which]++;
	if (length > sizeof(meddler.last[0]))
		abort();
	memcpy(meddler.last[which], bytes, length);
	meddler.size[which] = length;
	if (meddler.lose[which] > 0) {
		meddler.lose[which]--;
		return true;
	}
	repeat(s, which);
	return false;
}

/* Two exchanges in three are disturbed: the first CHALLENGEs or RESPONSEs are lost. */
static void expect_trouble(uint64_t seed)
{
	memset(&meddler, 0, sizeof(meddler));
	meddler.lose[0] = (unsigned)(seed % 3);
	meddler.lose[1] = (unsigned)(seed / 3 % 3);
}

static bool one_seed(const struct sim_class *k, const char *name, uint64_t seed, bool changes)
{
	struct sim_setup s;

	sim_random(&s, seed);
	if (changes)
		sim_random_changes(&s, seed);
	sim_class_use(&s, k);
	s.tap = meddle;
	/*
	 * A server keeps unvalidated connections for 15 to 30 s, and clients PING every sixth of
	 * their dead time: some attempts must fall within it. No bad states of links that last for
	 * many PINGs.
	 */
	s.client.dead = s.server.dead = 30 * RXW_SEC;
	s.up.to_bad = s.down.to_bad = 0;
	/*
	 * Few attempts remain if an outage or a smaller path takes the first ones, and each waits
	 * twice as long as the last: all of the others may be lost by chance.
	 */
	s.may_starve = true;
	s.trace = tracing;
	expect_trouble(seed);
	sim_run(&sim, &s, seed);
	if (meddler.seen[0] == 0 || meddler.seen[1] == 0)
		sim_fail(&sim, "there was no exchange");
	sim_free(&sim);
	runs++;
	starved += sim.calls_starved != 0;
	if (sim.failure[0] != '\0')
		printf("FAILED %s, seed %llu: %s (replay it: test_security --class %s --seed "
		       "%llu%s)\n",
		       name, (unsigned long long)seed, sim.failure, name, (unsigned long long)seed,
		       changes ? " --changes" : "");
	return sim.failure[0] == '\0';
}

static unsigned seeds_of(const char *name, uint64_t count)
{
	struct sim_class k;
	unsigned failed = 0;

	if (!sim_class_make(&k, name, 0, 0))
		abort();
	for (uint64_t seed = 1; seed <= count; seed++)
		failed += !one_seed(&k, name, seed, false) + !one_seed(&k, name, seed, true);
	sim_class_free(&k);
	return failed;
}

/* --- rekeying --- */

/* Number of the key that a connection uses. */
static uint32_t key_number(const struct sim_node *node)
{
	return rxw_gk_current(node->conns->p.auth.sec);
}

/*
 * Four streams each way for many minutes, with a new key after 60 s, the minimum of 7.4.6, and 64
 * KiB: no packet may be refused for its key. `stall`: two of the streams are not read for this long
 * while the others change keys. Packets sealed with the first key are sent when the third or fourth
 * is in use.
 */
static bool rekeying(const char *name, uint64_t seed, uint64_t stall)
{
	uint32_t client, server;
	struct sim_class k;
	struct sim_setup s;

	if (!sim_class_make(&k, name, 0, 16))
		abort();
	sim_default(&s);
	sim_class_use(&s, &k);
	s.up.rate = s.down.rate = 60000;
	s.up.queue = s.down.queue = 30000;
	s.up.delay = s.down.delay = 20 * RXW_MS;
	s.up.loss = s.down.loss = seed % 3 * 0.01;
	s.up.reorder = s.down.reorder = 0.02;
	s.up.duplicate = s.down.duplicate = 0.01;
	s.channels = 4;
	s.calls = 2;
	s.request = s.reply = 1500000;
	s.stall = stall;
	if (stall != 0)
		s.server.server_idle = 0;
	s.verdict_wait = RXW_MS;
	s.client.dead = s.server.dead = 60 * RXW_SEC;
	s.trace = tracing;
	sim_run(&sim, &s, seed);
	client = key_number(&sim.client);
	server = sim.server.conns != NULL ? key_number(&sim.server) : 0;
	if (client < 3 || server + 1 < client || server > client + 1)
		sim_fail(&sim, "the keys are %u and %u", client, server);
	sim_free(&sim);
	sim_class_free(&k);
	printf("%s %s, new keys%s, seed %llu: %.0f s, keys %u and %u%s%s\n",
	       sim.failure[0] ? "FAILED" : "good", name, stall ? " beside readers that wait" : "",
	       (unsigned long long)seed, (double)(sim.finished_at - RXW_SEC) / 1e9, client, server,
	       sim.failure[0] ? ": " : "", sim.failure);
	return sim.failure[0] == '\0';
}

/* --- expiring tickets --- */

/*
 * A packet that the server receives after the ticket's expiry ends the connection with the class's
 * code.
 */
static bool expiry(const char *name, uint64_t seed)
{
	const uint32_t lifetime = 100;
	struct sim_class k;
	struct sim_setup s;
	double ended;

	if (!sim_class_make(&k, name, lifetime, 0))
		abort();
	sim_default(&s);
	sim_class_use(&s, &k);
	s.may_end = name[2] == 'k' ? RXW_RXKAD_EXPIRED : RXW_RXGK_EXPIRED;
	s.up.rate = 20000;
	s.up.queue = 30000;
	s.up.delay = s.down.delay = 20 * RXW_MS;
	s.up.loss = s.down.loss = seed % 3 * 0.01;
	s.request = 10000000;
	s.channels = 2;
	s.client.dead = s.server.dead = 60 * RXW_SEC;
	s.trace = tracing;
	sim_run(&sim, &s, seed);
	ended = (double)(sim.finished_at - RXW_SEC) / 1e9;
	if (sim.failure[0] == '\0' && sim.calls_ended != s.channels)
		sim_fail(&sim, "%u of %u calls ended with the ticket", sim.calls_ended, s.channels);
	/* The ABORT may be lost, and is sent again for the next packet. */
	if (sim.failure[0] == '\0' && (ended < lifetime || ended > lifetime + 5))
		sim_fail(&sim, "they ended after %.3f s", ended);
	sim_free(&sim);
	sim_class_free(&k);
	if (sim.failure[0] != '\0')
		printf("FAILED %s, end of the ticket, seed %llu: %s\n", name,
		       (unsigned long long)seed, sim.failure);
	return sim.failure[0] == '\0';
}

/* --- bounds --- */

/* Bulk over a path without losses, without retransmissions: its share of the capacity. */
static double share(const struct sim_class *k, bool upload)
{
	const double rate = 125e6, bytes = 20e6;
	struct sim_node *sender = upload ? &sim.client : &sim.server;
	struct sim_setup s;

	sim_default(&s);
	sim_class_use(&s, k);
	s.up.rate = s.down.rate = (uint64_t)rate;
	s.up.queue = s.down.queue = 1000000;
	s.up.delay = s.down.delay = 100 * 1000;
	s.auth_wait = RXW_MS;
	*(upload ? &s.request : &s.reply) = (uint64_t)bytes;
	sim_run(&sim, &s, 1);
	if (sender->stats.retransmitted != 0)
		sim_fail(&sim, "%llu packets were sent again",
			 (unsigned long long)sender->stats.retransmitted);
	sim_free(&sim);
	return bytes / ((double)(sim.finished_at - RXW_SEC) / 1e9) / rate;
}

/* The goodput of null, less the overhead of the class and at most 3 % for the exchange. */
static bool goodput(const char *name, bool upload)
{
	struct sim_class k, null;
	double got, least;

	if (!sim_class_make(&k, name, 0, 0) || !sim_class_make(&null, "null", 0, 0))
		abort();
	least = 0.97 * share(&null, upload) * sim_class_capacity(&k, 1416) / 1416;
	got = share(&k, upload);
	if (sim.failure[0] == '\0' && got < least)
		sim_fail(&sim, "%.3f of the capacity, less than %.3f", got, least);
	sim_class_free(&k);
	printf("%s %s, %s: %.3f of the capacity, at least %.3f%s%s\n",
	       sim.failure[0] ? "FAILED" : "good", name, upload ? "send" : "recv", got, least,
	       sim.failure[0] ? ": " : "", sim.failure);
	return sim.failure[0] == '\0';
}

static unsigned others_of(const char *name)
{
	unsigned failed = 0;

	for (uint64_t seed = 1; seed <= 3; seed++) {
		failed += !expiry(name, seed);
		if (strncmp(name, "rxgk-", 5) == 0 && strcmp(name, "rxgk-clear") != 0)
			failed += !rekeying(name, seed, 0) + !rekeying(name, seed, 170 * RXW_SEC);
	}
	return failed + !goodput(name, false) + !goodput(name, true);
}

int main(int argc, char **argv)
{
	struct sim_args args;
	unsigned failed = 0;

	if (!sim_args_parse(&args, argc, argv, "ksctw", "RXW_SIM_CLASS_SEEDS", SEEDS))
		return 2;
	tracing = args.trace;
	if (args.seed != 0) {
		const char *name = args.class != NULL ? args.class : names[0];
		struct sim_class k;

		if (!sim_class_make(&k, name, 0, 0))
			return 2;
		failed = !one_seed(&k, name, args.seed, args.changes);
		sim_class_free(&k);
		return failed == 0 ? 0 : 1;
	}
	for (size_t i = 0; i < NAMES; i++)
		if (args.class == NULL || strcmp(args.class, names[i]) == 0)
			failed += seeds_of(names[i], args.count) + others_of(names[i]);
	/* It must be rare, or it is not due to chance. */
	if (starved > 1 + runs / 500) {
		printf("FAILED: calls starved in %u of %u runs\n", starved, runs);
		failed++;
	}
	printf("%llu seeds of each class: %u failed, calls starved in %u of %u runs\n",
	       (unsigned long long)args.count, failed, starved, runs);
	return failed == 0 ? 0 : 1;
}
