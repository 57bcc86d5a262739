/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of StoreData while the disk does not take the bytes of a file, with a store over loopback. */
#include "tests/fileserver/shop.h"

#include <unistd.h>

#include "afs/numbers.h"
#include "tests/main.h"
#include "tests/volume/store/spy.h"

#define LENGTH (8u << 20)
#define PIECE  (128u << 10)
#define PIECES 32u	    /* at most, before the disk stops */
#define GATHER (256u << 10) /* bytes that the store collects for a write */
#define ALIGN  4096u	    /* and so many more */
#define WINDOW 255u	    /* packets; the largest between processes of one machine */
#define HEADER 32u	    /* bytes of a packet, at most */
#define MEMORY (2u << 20)   /* bytes of received data that a call may queue: rxwire.conf(5) */

static struct shop shop;
static struct spy *spy;
static uint8_t wanted[LENGTH], got[LENGTH];

/* A store of all bytes of `wanted`. A thread of its own sends what is behind `begun`. */
struct storing {
	rxw_call *call;
	size_t begun;
	uint64_t packets; /* of these */
	uint64_t written; /* bytes that are on the disk while it takes no more */
	int32_t code;
	bool ended; /* lock of the shop */
	pthread_t thread;
};

static void *send_rest(void *arg)
{
	struct storing *storing = arg;
	size_t rest = LENGTH - storing->begun;
	AFSFetchStatus st;
	AFSVolSync sync;
	int32_t code = RXW_RPC_CC_MARSHAL;

	if (rxw_call_write(storing->call, wanted + storing->begun, rest) == (ssize_t)rest)
		code = EndRXAFS_StoreData64(storing->call, &st, &sync);
	pthread_mutex_lock(&shop.lock);
	storing->code = code;
	storing->ended = true;
	pthread_mutex_unlock(&shop.lock);
	return NULL;
}

static uint64_t on_disk(void)
{
	uint64_t bytes;

	pthread_mutex_lock(&spy->lock);
	bytes = spy->data_written;
	pthread_mutex_unlock(&spy->lock);
	return bytes;
}

static struct rxw_call_statistics stats_of(const struct storing *storing)
{
	struct rxw_call_statistics stats = {.size = sizeof(stats)};

	ck_assert_int_eq(rxw_call_stats(storing->call, &stats), 0);
	return stats;
}

/* The window grows as long as the server reads what arrives. */
static void storing_begin(struct storing *storing, struct shop_client *client, const AFSFid *file)
{
	const AFSStoreStatus nothing = {0};

	ck_assert_int_eq(rxw_call_begin(client->fs, NULL, &storing->call), 0);
	ck_assert_int_eq(StartRXAFS_StoreData64(storing->call, file, &nothing, 0, LENGTH, LENGTH),
			 0);
	while (stats_of(storing).peer_window < WINDOW) {
		ck_assert_uint_lt(storing->begun, PIECES * PIECE);
		ck_assert_int_eq(rxw_call_write(storing->call, wanted + storing->begun, PIECE),
				 PIECE);
		ck_assert_int_eq(rxw_call_flush(storing->call), 0);
		storing->begun += PIECE;
		while (on_disk() + GATHER + ALIGN < storing->begun || stats_of(storing).in_flight)
			usleep(1000);
	}
	storing->packets = stats_of(storing).packets_sent;
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

static uint64_t packet_size(void)
{
	struct rxw_effective effective = {.size = sizeof(effective)};

	ck_assert_int_eq(rxw_endpoint_effective(shop.server, &effective), 0);
	return effective.mtu;
}

/* Bytes that the server has acknowledged, at least, and that are not on the disk. */
static uint64_t accepted(const struct storing *storing)
{
	struct rxw_call_statistics stats = stats_of(storing);
	uint64_t packets = stats.packets_sent - stats.in_flight - storing->packets;

	return storing->begun + packets * (packet_size() - HEADER) - storing->written;
}

/* Bytes that the client has sent, at most, and that are not on the disk. */
static uint64_t sent(const struct storing *storing)
{
	uint64_t packets = stats_of(storing).packets_sent - storing->packets;

	return storing->begun + packets * packet_size() - storing->written;
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
	storing_begin(&storing, a, &file);
	spy_hold(spy, SPY_BYTES);
	ck_assert_int_eq(pthread_create(&storing.thread, NULL, send_rest, &storing), 0);
	spy_await_held(spy);
	spy_pass(spy);
	storing.written = on_disk();
	while (accepted(&storing) < 2 * GATHER)
		usleep(1000);
	/* Others are served meanwhile, also the same client, also for the same file. */
	ck_assert_uint_eq(length_of(a, &file), 0);
	ck_assert_uint_eq(length_of(b, &file), 0);
	ck_assert_int_eq(shop_put(b, &other, 0, LENGTH, LENGTH, wanted, LENGTH, NULL), 0);
	expect_bytes(b, &other);
	/* The client has had time to send all of it, but memory is bounded. */
	ck_assert(!has_ended(&storing));
	ck_assert_uint_lt(sent(&storing), MEMORY + GATHER);
	spy_hold(spy, 0);
	ck_assert_int_eq(storing_end(&storing), 0);
	expect_bytes(b, &file);
	ck_assert_uint_eq(length_of(a, &file), LENGTH);
	shop_close(&shop);
	spy_free(spy);
}
END_TEST

#define EACH	150
#define SHORT	16384u /* not a small file, and few packets: all of them come before the handler runs */
#define WORKERS 56u    /* threads of the library that a client may occupy; there are more for stores alone */

/* A short store whose bytes are sent at once. */
static rxw_call *short_begin(rxw_connection *connection, const AFSFid *file)
{
	const AFSStoreStatus nothing = {0};
	rxw_call *call;

	ck_assert_int_eq(rxw_call_begin(connection, NULL, &call), 0);
	ck_assert_int_eq(StartRXAFS_StoreData64(call, file, &nothing, 0, SHORT, SHORT), 0);
	ck_assert_int_eq(rxw_call_write(call, wanted, SHORT), SHORT);
	ck_assert_int_eq(rxw_call_flush(call), 0);
	return call;
}

/* The disk takes no bytes of very many stores. Other calls of the same client are served. */
START_TEST(stores_leave_workers)
{
	static rxw_connection *connection[EACH];
	static rxw_call *call[EACH];
	struct shop_client *a;
	AFSFetchStatus st;
	AFSVolSync sync;
	AFSFid root, file;
	unsigned held;

	shop_make(&shop);
	spy = spy_on(shop.path);
	shop_open_on(&shop, &spy->layer);
	shop_serve(&shop);
	a = shop_client(&shop, 0);
	root = shop_root(&shop);
	file = shop_file(&shop, &root, "file");
	spy_hold(spy, SPY_BYTES);
	for (unsigned i = 0; i < EACH; i++) {
		connection[i] = shop_connect(&shop, 0, AFS_SERVICE_FS);
		call[i] = short_begin(connection[i], &file);
	}
	do {
		usleep(1000);
		pthread_mutex_lock(&spy->lock);
		held = spy->held;
		pthread_mutex_unlock(&spy->lock);
	} while (held < WORKERS);
	for (unsigned i = 0; i < 100; i++)
		ck_assert_uint_eq(length_of(a, &file), 0);
	spy_hold(spy, 0);
	for (unsigned i = 0; i < EACH; i++) {
		int32_t code = EndRXAFS_StoreData64(call[i], &st, &sync);

		ck_assert_int_eq(rxw_call_end(call[i], code, NULL), 0);
		rxw_connection_release(connection[i]);
	}
	ck_assert_uint_eq(length_of(a, &file), SHORT);
	shop_close(&shop);
	spy_free(spy);
}
END_TEST

TEST_MAIN_WITHIN(120, "slow disk", window_does_not_wait_for_the_disk, stores_leave_workers)
