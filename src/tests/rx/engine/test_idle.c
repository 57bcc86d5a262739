/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The limit on connections of validated addresses: idle ones are evicted, busy ones kept (12.3);
 * connections whose call numbers are used up.
 */
#include "engine/objects.h"
#include "engine/lock.h"
#include "tests/main.h"
#include "tests/support/counters.h"
#include "tests/rx/api/harness.h"
#include "tests/rx/api/streams.h"

#define BOUND 16u
#define MORE  40u /* more connections than the limit */

static struct h_bed bed;

static void open_bed(const char *security)
{
	h_open(&bed, &(struct h_options){
			     .server = "connections-max=16 listeners=1 workers-max=32 "
				       "reserved-peers=0 dead-ms=60000",
			     .client = "dead-ms=60000",
			     .security = security});
}

static rxw_call *wait_at_gate(rxw_connection *c)
{
	rxw_call *call = h_begin(c, &(struct h_ask){.op = H_WAIT});

	ck_assert_int_eq(rxw_call_flush(call), 0);
	return call;
}

/* Its ACKs name packets of the reply, which validates the address. */
static void fetch(rxw_connection *c)
{
	h_good_call(&bed, c, &(struct h_ask){.op = H_SOURCE, .bytes = 50000});
}

static bool there(rxw_connection *c)
{
	struct rxw_shard *s = &bed.server->shard[0];
	bool is;

	rxw_table_lock(s);
	is = rxw_conntable_has_cid(&s->table, c->p.cid);
	rxw_table_unlock(s);
	return is;
}

static bool ended(void *arg)
{
	return counter_of(bed.server, "calls_ended") >= *(uint64_t *)arg;
}

static bool evicted(void *arg)
{
	return counter_of(bed.server, "connections_evicted") >= *(uint64_t *)arg;
}

static bool few(void *arg)
{
	(void)arg;
	return counter_of(bed.server, "connections_server") <= BOUND;
}

static bool refused(void *arg)
{
	return counter_of(bed.server, "drops.limit") >= *(uint64_t *)arg;
}

/*
 * The connection idle longest is evicted, one with a call never. An evicted client can reconnect.
 */
static void silent_one_goes(const char *security)
{
	uint64_t two = 2, one = 1;
	rxw_connection *busy, *silent, *c[MORE];
	rxw_call *waiting;
	unsigned n;

	open_bed(security);
	busy = h_connect(&bed, H_SERVICE);
	fetch(busy);
	silent = h_connect(&bed, H_SERVICE);
	fetch(silent);
	h_wait_for(ended, &two, "both calls to end");
	waiting = wait_at_gate(busy);
	h_gate_arrived(&bed, 1);
	for (n = 0; n < MORE && !evicted(&one); n++) {
		c[n] = h_connect(&bed, H_SERVICE);
		fetch(c[n]);
	}
	h_wait_for(evicted, &one, "one to go");
	ck_assert(!there(silent));
	ck_assert(there(busy));
	fetch(silent);
	h_wait_for(few, NULL, "no more than there may be");
	h_gate_open(&bed);
	ck_assert_int_eq(rxw_call_end(waiting, 0, NULL), 0);
	ck_assert(there(busy));
	while (n) {
		fetch(c[--n]);
		rxw_connection_release(c[n]);
	}
	rxw_connection_release(silent);
	rxw_connection_release(busy);
	h_close(&bed);
}

START_TEST(who_is_silent_longest_goes)
{
	silent_one_goes(NULL);
}
END_TEST

/* Its address must be validated again. */
START_TEST(with_a_token)
{
	silent_one_goes("rxkad-crypt");
}
END_TEST

/* The limit is exceeded when no connection can be evicted, and enforced once some are idle. */
START_TEST(all_are_busy)
{
	rxw_connection *first, *c[BOUND + 4];
	rxw_call *call[BOUND + 4];
	uint64_t one = 1, three = 3;

	open_bed(NULL);
	first = h_connect(&bed, H_SERVICE);
	fetch(first);
	h_wait_for(ended, &one, "the address to be proven");
	for (unsigned i = 0; i < BOUND + 4; i++) {
		c[i] = h_connect(&bed, H_SERVICE);
		call[i] = wait_at_gate(c[i]);
		/* One connection beyond the limit triggers the check. */
		if (i <= BOUND)
			h_gate_arrived(&bed, i + 1);
	}
	h_wait_for(refused, &three, "the last three to be refused");
	ck_assert_uint_eq(counter_of(bed.server, "connections_server"), BOUND + 1);
	ck_assert(!there(first));
	h_gate_open(&bed);
	for (unsigned i = 0; i < BOUND + 4; i++) {
		ck_assert_int_eq(rxw_call_end(call[i], 0, NULL), 0);
		rxw_connection_release(c[i]);
	}
	fetch(first);
	rxw_connection_release(first);
	h_wait_for(few, NULL, "no more than there may be");
	h_close(&bed);
}
END_TEST

/*
 * While no connection may be evicted, the search for one costs little: it looks at a few slots of the tables, whatever
 * their number, and less often once it has looked at all connections.
 */
START_TEST(vain_searches)
{
	rxw_connection *first, *c[BOUND + 1];
	rxw_call *call[BOUND + 1];
	uint64_t one = 1, now;
	struct rxw_shard_admit *b;
	unsigned slots;

	h_open(&bed, &(struct h_options){.server = "connections-max=16 listeners=4 workers-max=32 "
						   "reserved-peers=0 dead-ms=60000",
					 .client = "dead-ms=60000"});
	first = h_connect(&bed, H_SERVICE);
	fetch(first);
	h_wait_for(ended, &one, "the address to be proven");
	for (unsigned i = 0; i < BOUND + 1; i++) {
		c[i] = h_connect(&bed, H_SERVICE);
		call[i] = wait_at_gate(c[i]);
		h_gate_arrived(&bed, i + 1);
	}
	/* Only this test searches, with its own clock. */
	atomic_store(&bed.server->life.quit, true);
	for (unsigned i = 0; i < 4; i++)
		rxw_shard_stop(&bed.server->shard[i]);
	b = &bed.server->shard[0].admit;
	now = rxw_now() + 2 * RXW_SEC;
	rxw_evict_idle(&bed.server->shard[0], now);
	ck_assert(rxw_must_evict(bed.server));
	for (unsigned i = 0; i < 10; i++) {
		slots = b->idle_slot;
		now = b->idle_at;
		rxw_evict_idle(&bed.server->shard[0], now);
		ck_assert_uint_le(b->idle_slot - slots, 256);
		/* All connections were looked at. */
		ck_assert_uint_ge(b->idle_at - now, 100 * RXW_MS);
	}
	/* Many others may have been overlooked. */
	atomic_fetch_add(&bed.server->usage.connections, 10000);
	b->in_vain = 0;
	now = b->idle_at;
	rxw_evict_idle(&bed.server->shard[0], now);
	ck_assert_uint_eq(b->idle_at - now, 10 * RXW_MS);
	atomic_fetch_sub(&bed.server->usage.connections, 10000);
	h_gate_open(&bed);
	for (unsigned i = 0; i < BOUND + 1; i++) {
		rxw_call_end(call[i], RXW_USER_ABORT, NULL);
		rxw_connection_release(c[i]);
	}
	rxw_connection_release(first);
	h_close(&bed);
}
END_TEST

/* Connections whose call numbers are used up are replaced; without a pool, the caller is told so. */
START_TEST(numbers_used_up)
{
	rxw_connpool *pool;
	rxw_connection *c;
	rxw_call *call;

	h_open(&bed, NULL);
	ck_assert_int_eq(rxw_connpool_create(bed.client, (struct sockaddr *)&bed.address,
					     bed.address_len, H_SERVICE, bed.security, 2, &pool),
			 0);
	for (unsigned round = 0; round < 3; round++) {
		ck_assert_int_eq(rxw_connpool_begin(pool, NULL, &call), 0);
		c = rxw_call_connection(call);
		for (unsigned i = 0; i < 4; i++)
			c->p.number[i] = 0x7ffffffe;
		rxw_call_end(call, 1, NULL);
		ck_assert_uint_eq(counter_of(bed.client, "calls_started"), round + 1);
	}
	rxw_connpool_release(pool);
	ck_assert_int_eq(rxw_connection_create(bed.client, (struct sockaddr *)&bed.address,
					       bed.address_len, H_SERVICE, bed.security, &c),
			 0);
	for (unsigned i = 0; i < 4; i++)
		c->p.number[i] = 0x7ffffffe;
	ck_assert_int_eq(rxw_call_begin(c, NULL, &call), -RXW_ELIMIT);
	rxw_connection_release(c);
	h_close(&bed);
}
END_TEST

TEST_MAIN_WITHIN(200, "idle connections", numbers_used_up, who_is_silent_longest_goes, with_a_token,
	  all_are_busy, vain_searches)
