/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of StoreData while the disk does not take the bytes of a file, with a store over loopback. */
#include "tests/fileserver/shop.h"

#include <unistd.h>

#include "tests/main.h"
#include "tests/store/spy.h"

#define LENGTH (8u << 20)
#define GATHER (256u << 10) /* bytes that the store collects for a write */
#define WINDOW 255u	    /* packets, of a call between processes of one machine */
#define ON_TOP 256u	    /* packets that are acknowledged before the store has them */
#define HEADER 32u	    /* at most, of a packet */
#define MEMORY (2u << 20)   /* bytes of received data that a call may queue: rxwire.conf(5) */

static struct shop shop;
static struct spy *spy;
static uint8_t wanted[LENGTH], got[LENGTH];

/* A store of all bytes of `wanted`, sent by a thread of its own. */
struct storing {
	rxw_call *call;
	int32_t code;
	bool ended; /* lock of the shop */
	pthread_t thread;
};

static void *send_all(void *arg)
{
	struct storing *storing = arg;
	AFSFetchStatus st;
	AFSVolSync sync;
	int32_t code = RXW_RPC_CC_MARSHAL;

	if (rxw_call_write(storing->call, wanted, LENGTH) == LENGTH)
		code = EndRXAFS_StoreData64(storing->call, &st, &sync);
	pthread_mutex_lock(&shop.lock);
	storing->code = code;
	storing->ended = true;
	pthread_mutex_unlock(&shop.lock);
	return NULL;
}

static void storing_begin(struct storing *storing, struct shop_client *client, const AFSFid *file)
{
	const AFSStoreStatus nothing = {0};

	ck_assert_int_eq(rxw_call_begin(client->fs, NULL, &storing->call), 0);
	ck_assert_int_eq(StartRXAFS_StoreData64(storing->call, file, &nothing, 0, LENGTH, LENGTH),
			 0);
	ck_assert_int_eq(pthread_create(&storing->thread, NULL, send_all, storing), 0);
}

static int32_t storing_end(struct storing *storing)
{
	pthread_join(storing->thread, NULL);
	return rxw_call_end(storing->call, storing->code, NULL);
}

static bool has_ended(struct storing *storing)
{
	bool ended;

	pthread_mutex_lock(&shop.lock);
	ended = storing->ended;
	pthread_mutex_unlock(&shop.lock);
	return ended;
}

/* Packets that the client has sent; *taken: of these, the server has acknowledged. */
static uint64_t packets_of(const struct storing *storing, uint64_t *taken)
{
	struct rxw_call_statistics stats = {.size = sizeof(stats)};

	ck_assert_int_eq(rxw_call_stats(storing->call, &stats), 0);
	*taken = stats.packets_sent - stats.in_flight;
	return stats.packets_sent;
}

static uint64_t packet_size(void)
{
	struct rxw_effective effective = {.size = sizeof(effective)};

	ck_assert_int_eq(rxw_endpoint_effective(shop.server, &effective), 0);
	return effective.mtu;
}

static uint64_t length_of(struct shop_client *client, const AFSFid *file)
{
	AFSFetchStatus st;
	AFSCallBack cb;
	AFSVolSync sync;

	ck_assert_int_eq(RXAFS_FetchStatus(client->fs, file, &st, &cb, &sync), 0);
	return (uint64_t)st.Length_hi << 32 | st.Length;
}

static void expect_bytes(struct shop_client *client, const AFSFid *file)
{
	memset(got, 0, LENGTH);
	ck_assert_int_eq(shop_get(client, file, 0, LENGTH, got, NULL, NULL), LENGTH);
	ck_assert(memcmp(got, wanted, LENGTH) == 0);
}

/*
 * The server acknowledges packets that the store cannot take yet, up to a limit, so that the client goes on sending while
 * the disk works. Nobody else waits for that disk operation.
 */
START_TEST(window_does_not_wait_for_the_disk)
{
	struct storing storing = {0};
	struct shop_client *a, *b;
	uint64_t sent, taken;
	AFSFid root, file, other;

	shop_make(&shop);
	spy = spy_on(shop.path);
	shop_open_on(&shop, &spy->layer);
	shop_serve(&shop);
	a = shop_client(&shop, 0);
	b = shop_client(&shop, 1);
	root = shop_root(&shop);
	file = shop_file(&shop, &root, "file");
	other = shop_file(&shop, &root, "other");
	for (uint32_t i = 0; i < LENGTH; i++)
		wanted[i] = (uint8_t)(i * 2654435761u >> 24);
	spy_hold(spy, SPY_BYTES);
	storing_begin(&storing, a, &file);
	spy_await_held(spy);
	spy_pass(spy);
	/* One window, and on top of it what is acknowledged without having been read. */
	while (packets_of(&storing, &taken), taken < WINDOW + ON_TOP)
		usleep(1000);
	ck_assert_uint_gt(taken * (packet_size() - HEADER), 2 * GATHER);
	/* Others are served meanwhile, also the same client, also for the same file. */
	ck_assert_uint_eq(length_of(a, &file), 0);
	ck_assert_uint_eq(length_of(b, &file), 0);
	ck_assert_int_eq(shop_put(b, &other, 0, LENGTH, LENGTH, wanted, LENGTH, NULL), 0);
	expect_bytes(b, &other);
	ck_assert(!has_ended(&storing));
	/* The client has had time for all of it, but memory is bounded. */
	sent = packets_of(&storing, &taken);
	ck_assert_uint_lt(sent * packet_size(), MEMORY + GATHER);
	spy_hold(spy, 0);
	ck_assert_int_eq(storing_end(&storing), 0);
	expect_bytes(b, &file);
	ck_assert_uint_eq(length_of(a, &file), LENGTH);
	shop_close(&shop);
	spy_free(spy);
}
END_TEST

TEST_MAIN_WITHIN(120, "slow disk", window_does_not_wait_for_the_disk)
