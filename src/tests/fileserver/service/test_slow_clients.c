/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of stores and fetches whose clients are slow, and of those that wait for places, with a store over loopback. */
#include "tests/fileserver/shop.h"

#include <semaphore.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <unistd.h>

#include "afs/numbers.h"
#include "common/clock.h"
#include "fileserver/service/services.h"
#include "tests/main.h"

static struct shop shop;
static struct shop_client *a, *b;
static AFSFid root;
static AFSFetchStatus st;
static AFSCallBack cb;
static AFSVolSync sync_;
static const AFSStoreStatus nothing = {0};

static void setup(void)
{
	root = shop_open(&shop, &a, &b);
}

static void teardown(void)
{
	shop_close(&shop);
}

static unsigned storing(void)
{
	struct fsd_places *all = &shop.service->storing;
	unsigned count;

	pthread_mutex_lock(&all->lock);
	count = all->count;
	pthread_mutex_unlock(&all->lock);
	return count;
}

/* A store whose data comes, or not. */
struct slow {
	rxw_connection *connection;
	rxw_call *call;
};

static void slow_begin(struct slow *slow, unsigned client, const AFSFid *file, uint64_t length)
{
	slow->connection = shop_connect(&shop, client, AFS_SERVICE_FS);
	ck_assert_int_eq(rxw_call_begin(slow->connection, NULL, &slow->call), 0);
	ck_assert_int_eq(StartRXAFS_StoreData64(slow->call, file, &nothing, 0, length, length), 0);
	ck_assert_int_eq(rxw_call_flush(slow->call), 0);
}

static void slow_feed(struct slow *slow, const char *data, size_t length)
{
	ck_assert_int_eq(rxw_call_write(slow->call, data, length), (ssize_t)length);
	ck_assert_int_eq(rxw_call_flush(slow->call), 0);
}

static void slow_drop(struct slow *slow)
{
	rxw_call_end(slow->call, RXW_USER_ABORT, NULL);
	rxw_connection_release(slow->connection);
}

/* With all its bytes: the code. */
static int32_t slow_end(struct slow *slow)
{
	int32_t code = EndRXAFS_StoreData64(slow->call, &st, &sync_);

	code = rxw_call_end(slow->call, code, NULL);
	rxw_connection_release(slow->connection);
	return code;
}

static void await_storing(unsigned count)
{
	while (storing() != count)
		usleep(1000);
}

/* The server waits for the client of the store that began first, or does not. */
static void await_first(bool waiting)
{
	struct fsd_place *place;
	bool waits;

	await_storing(1);
	do {
		usleep(1000);
		pthread_mutex_lock(&shop.service->storing.lock);
		place = shop.service->storing.place[0];
		pthread_mutex_lock(&place->lock);
		waits = place->begun != 0;
		pthread_mutex_unlock(&place->lock);
		pthread_mutex_unlock(&shop.service->storing.lock);
	} while (waits != waiting);
}

static void await_first_waiting(void)
{
	await_first(true);
}

#define SLOW_EACH 60
#define PLACES	  96

static void await_stores_held(uint64_t count)
{
	while (fsd_counted(&shop.service->counters.stores_held) != count)
		usleep(1000);
}

/*
 * Three clients send the data of many stores slowly. They share the places, their other stores wait without a thread, and
 * other clients can store.
 */
START_TEST(slow_stores)
{
	static struct slow slow[3][SLOW_EACH];
	static const unsigned share[] = {PLACES / 2, PLACES / 4, PLACES / 8};
	unsigned total = 0, held = 0;
	struct shop_client *c;
	AFSFid file, other;

	setup();
	shop.service->storing.max = PLACES;
	c = shop_client(&shop, 3);
	file = shop_file(&shop, &root, "file");
	other = shop_file(&shop, &root, "other");
	for (unsigned k = 0; k < 3; k++) {
		for (unsigned i = 0; i < SLOW_EACH; i++)
			slow_begin(&slow[k][i], k, &file, 5);
		held += SLOW_EACH - share[k];
		await_stores_held(held);
		total += share[k];
		await_storing(total);
	}
	shop_await_idle(&shop);
	for (unsigned i = 0; i < 10; i++)
		ck_assert_int_eq(shop_put(c, &other, 0, 3, 3, "abc", 3, &st), 0);
	await_storing(total);
	for (unsigned k = 0; k < 3; k++)
		for (unsigned i = 0; i < SLOW_EACH; i++)
			slow_drop(&slow[k][i]);
	await_storing(0);
	teardown();
}
END_TEST

#define PATIENT 40 /* of each client */

/* Stores whose clients pause occupy no thread. They go on when the rest comes. */
START_TEST(stores_without_threads)
{
	static struct slow slow[3][PATIENT];
	AFSFid file[3];
	char name[2] = "a";

	setup();
	for (unsigned k = 0; k < 3; k++, name[0]++)
		file[k] = shop_file(&shop, &root, name);
	for (unsigned k = 0; k < 3; k++)
		for (unsigned i = 0; i < PATIENT; i++) {
			slow_begin(&slow[k][i], k, &file[k], 5);
			slow_feed(&slow[k][i], "he", 2);
		}
	await_storing(3 * PATIENT);
	shop_await_idle(&shop);
	for (unsigned i = 0; i < PATIENT; i++)
		for (unsigned k = 0; k < 3; k++) {
			slow_feed(&slow[k][i], "llo", 3);
			ck_assert_int_eq(slow_end(&slow[k][i]), 0);
			ck_assert_uint_eq(st.Length, 5);
		}
	await_storing(0);
	teardown();
}
END_TEST

static struct {
	_Atomic unsigned running;
	sem_t go;
} disk;

static void wait_for_disk(struct fsd_job *job)
{
	(void)job;
	atomic_fetch_add(&disk.running, 1);
	sem_wait(&disk.go);
}

/* A client that has sent its data is not slow because all threads wait for the disk. */
START_TEST(stores_and_a_slow_disk)
{
	static struct fsd_job jobs[FSD_STORERS_MAX];
	const struct fsd_share_key key = {{1}};
	struct fsd_pool_caller *caller;
	struct slow slow;
	AFSFid file;

	setup();
	file = shop_file(&shop, &root, "file");
	slow_begin(&slow, 1, &file, 5);
	await_first_waiting();
	sem_init(&disk.go, 0, 0);
	caller = fsd_pool_enter(shop.service->storers, &key);
	for (unsigned i = 0; i < FSD_STORERS_MAX; i++) {
		jobs[i] = (struct fsd_job){.run = wait_for_disk, .caller = caller};
		fsd_pool_post(shop.service->storers, &jobs[i]);
	}
	while (atomic_load(&disk.running) < FSD_STORERS_MAX)
		usleep(1000);
	slow_feed(&slow, "hello", 5);
	await_first(false);
	for (unsigned i = 0; i < FSD_STORERS_MAX; i++)
		sem_post(&disk.go);
	ck_assert_int_eq(slow_end(&slow), 0);
	fsd_pool_leave(shop.service->storers, caller);
	teardown();
	sem_destroy(&disk.go);
}
END_TEST

/* A server that stops does not wait for the clients of stores. */
START_TEST(stores_at_a_stop)
{
	struct slow slow;
	AFSFid file;

	setup();
	file = shop_file(&shop, &root, "file");
	slow_begin(&slow, 1, &file, 5);
	slow_feed(&slow, "he", 2);
	await_first_waiting();
	rxw_endpoint_stop(shop.server, 0);
	fsd_service_settle(shop.service);
	ck_assert_uint_eq(storing(), 0);
	ck_assert_uint_eq(shop.service->counters.store_aborts, 1);
	slow_drop(&slow);
	teardown();
}
END_TEST

/* The calls that have places keep them, however slow this machine is. */
static void keep_places(struct fsd_places *all)
{
	pthread_mutex_lock(&all->lock);
	for (unsigned i = 0; i < all->count; i++)
		all->place[i]->open = false;
	pthread_mutex_unlock(&all->lock);
}

/* A store on a thread of its own. */
struct putter {
	const AFSFid *file;
	int32_t code;
	pthread_t thread;
	_Atomic bool ended;
};

static void *put_main(void *arg)
{
	struct putter *p = arg;

	p->code = shop_put(shop_client(&shop, 3), p->file, 0, 3, 3, "abc", 3, &(AFSFetchStatus){0});
	p->ended = true;
	return NULL;
}

static void put_begins(struct putter *p, const AFSFid *file)
{
	shop_client(&shop, 3);
	p->file = file;
	p->ended = false;
	ck_assert_int_eq(pthread_create(&p->thread, NULL, put_main, p), 0);
}

static size_t waiting(struct fsd_places *all)
{
	size_t count;

	pthread_mutex_lock(&all->lock);
	count = all->waiters.count;
	pthread_mutex_unlock(&all->lock);
	return count;
}

/* A store that finds no place waits without a thread, and is done when another one has left its place. */
START_TEST(stores_wait)
{
	AFSFid file, other;
	struct putter putter;
	struct slow slow;
	char got[3];

	setup();
	shop.service->storing.max = 1;
	file = shop_file(&shop, &root, "file");
	other = shop_file(&shop, &root, "other");
	slow_begin(&slow, 0, &file, 5);
	await_storing(1);
	keep_places(&shop.service->storing);
	put_begins(&putter, &other);
	await_stores_held(1);
	shop_await_idle(&shop);
	ck_assert(!putter.ended);
	slow_feed(&slow, "hello", 5);
	ck_assert_int_eq(slow_end(&slow), 0);
	pthread_join(putter.thread, NULL);
	ck_assert_int_eq(putter.code, 0);
	ck_assert_int_eq(shop_get(b, &other, 0, sizeof(got), got, &st, &cb), sizeof(got));
	ck_assert_mem_eq(got, "abc", sizeof(got));
	await_storing(0);
	teardown();
}
END_TEST

/* The object was removed, the client is gone, or the server stops: nothing is held back. */
START_TEST(stores_that_wait_end)
{
	struct slow first, second;
	AFSFid file, other;

	setup();
	shop.service->storing.max = 1;
	file = shop_file(&shop, &root, "file");
	other = shop_file(&shop, &root, "other");
	slow_begin(&first, 0, &file, 5);
	await_storing(1);
	keep_places(&shop.service->storing);
	slow_begin(&second, 1, &other, 5);
	await_stores_held(1);
	ck_assert_int_eq(RXAFS_RemoveFile(a->fs, &root, "other", &st, &sync_), 0);
	slow_drop(&first);
	while (rxw_call_error(second.call, NULL) != AFS_VNOVNODE)
		usleep(1000);
	slow_drop(&second);
	await_storing(0);

	slow_begin(&first, 0, &file, 5);
	await_storing(1);
	keep_places(&shop.service->storing);
	slow_begin(&second, 1, &file, 5);
	await_stores_held(2);
	slow_drop(&second);
	while (waiting(&shop.service->storing))
		usleep(1000);
	slow_feed(&first, "hello", 5);
	ck_assert_int_eq(slow_end(&first), 0);
	await_storing(0);

	slow_begin(&first, 0, &file, 5);
	await_storing(1);
	keep_places(&shop.service->storing);
	slow_begin(&second, 1, &file, 5);
	await_stores_held(3);
	rxw_endpoint_stop(shop.server, 0);
	fsd_service_settle(shop.service);
	ck_assert_uint_eq(storing(), 0);
	slow_drop(&second);
	slow_drop(&first);
	teardown();
}
END_TEST

#define PART 65536
#define LATE (FSD_PLACE_PERIOD * (uint64_t)NS_PER_MS / 2)

/*
 * All places are taken. A client that has none gets that of the slowest store. One that sends enough stays, and so do
 * slow ones as long as places are free. False: the machine was too slow to tell.
 */
static bool take_place(const AFSFid *file, const AFSFid *other)
{
	static char data[PART];
	struct slow fast, modem[2], dead;
	uint64_t begun = monotonic_ns(), now;
	struct putter putter;
	bool late = false;

	/* It waits for longest, and is the slowest as soon as any is slow. */
	slow_begin(&dead, 1, &file[2], 5);
	await_first_waiting();
	slow_begin(&fast, 0, &file[0], 4096 * (uint64_t)PART);
	await_storing(2);
	slow_begin(&modem[0], 0, &file[1], PART);
	await_storing(3);
	slow_begin(&modem[1], 2, &file[3], PART);
	await_storing(4);
	put_begins(&putter, other);
	do {
		slow_feed(&fast, data, PART);
		slow_feed(&modem[0], "x", 1);
		slow_feed(&modem[1], "x", 1);
		now = monotonic_ns();
		late |= now - begun > LATE;
		begun = now;
		usleep(20000);
		fsd_waiting_look(shop.service);
	} while (!putter.ended);
	pthread_join(putter.thread, NULL);
	ck_assert_int_eq(putter.code, 0);
	if (!late) {
		ck_assert_int_eq(rxw_call_error(fast.call, NULL), 0);
		ck_assert_int_eq(rxw_call_error(modem[0].call, NULL), 0);
		ck_assert_int_eq(rxw_call_error(modem[1].call, NULL), 0);
		ck_assert_int_eq(slow_end(&dead), AFS_VBUSY);
	} else {
		slow_drop(&dead);
	}
	slow_drop(&fast);
	slow_drop(&modem[0]);
	slow_drop(&modem[1]);
	await_storing(0);
	return !late;
}

START_TEST(slowest_store)
{
	AFSFid file[4], other;
	char name[2] = "a";

	setup();
	shop.service->storing.max = 4;
	for (unsigned i = 0; i < 4; i++, name[0]++)
		file[i] = shop_file(&shop, &root, name);
	other = shop_file(&shop, &root, "other");
	while (!take_place(file, &other))
		;
	ck_assert_uint_ge(shop.service->counters.stores_given_up, 1);
	teardown();
}
END_TEST

static unsigned sending(void)
{
	struct fsd_places *all = &shop.service->sending;
	unsigned count;

	pthread_mutex_lock(&all->lock);
	count = all->count;
	pthread_mutex_unlock(&all->lock);
	return count;
}

/* A fetch of which only the first bytes are read. */
static void slow_fetch(struct slow *slow, unsigned client, const AFSFid *file, uint64_t length)
{
	uint8_t head[8];

	slow->connection = shop_connect(&shop, client, AFS_SERVICE_FS);
	ck_assert_int_eq(rxw_call_begin(slow->connection, NULL, &slow->call), 0);
	ck_assert_int_eq(StartRXAFS_FetchData64(slow->call, file, 0, (int64_t)length), 0);
	ck_assert_int_eq(rxw_call_read(slow->call, head, sizeof(head)), sizeof(head));
}

/* A fetch on a thread of its own. */
struct fetcher {
	const AFSFid *file;
	char got[3 << 20];
	int64_t n; /* bytes, or the code, negative */
	AFSVolSync sync;
	pthread_t thread;
	_Atomic bool ended;
};

static void *fetch_main(void *arg)
{
	struct fetcher *f = arg;
	uint8_t head[8] = {0};
	AFSFetchStatus its;
	AFSCallBack promise;
	uint64_t n = 0;
	rxw_call *call;
	int32_t code;

	ck_assert_int_eq(rxw_call_begin(shop_client(&shop, 3)->fs, NULL, &call), 0);
	code = StartRXAFS_FetchData64(call, f->file, 0, sizeof(f->got));
	if (!code && rxw_call_read(call, head, 8) == 8) {
		for (int i = 0; i < 8; i++)
			n = n << 8 | head[i];
		ck_assert_uint_le(n, sizeof(f->got));
		if (rxw_call_read(call, f->got, n) != (ssize_t)n)
			code = RXW_RPC_CC_UNMARSHAL;
	}
	if (!code)
		code = EndRXAFS_FetchData64(call, &its, &promise, &f->sync);
	code = rxw_call_end(call, code, NULL);
	f->n = code ? -(int64_t)code : (int64_t)n;
	f->ended = true;
	return NULL;
}

static void fetch_begins(struct fetcher *f, const AFSFid *file)
{
	shop_client(&shop, 3);
	f->file = file;
	f->ended = false;
	memset(f->got, 0, sizeof(f->got));
	ck_assert_int_eq(pthread_create(&f->thread, NULL, fetch_main, f), 0);
}

static void await_held(uint64_t count)
{
	while (fsd_counted(&shop.service->counters.fetches_held) != count)
		usleep(1000);
}

/*
 * Unread fetches hold all places and no thread. Another client waits until one of them is slow, and
 * then gets its place. One that reads keeps its own.
 */
START_TEST(slowest_fetch)
{
	static char large[3 << 20], got[sizeof(large)];
	static struct fetcher fetcher;
	struct slow slow[2], reader;
	AFSFid file;

	setup();
	shop.service->sending.max = 3;
	file = shop_file(&shop, &root, "file");
	ck_assert_int_eq(
		shop_put(a, &file, 0, sizeof(large), sizeof(large), large, sizeof(large), &st), 0);
	for (unsigned i = 0; i < 2; i++)
		slow_fetch(&slow[i], i, &file, sizeof(large));
	slow_fetch(&reader, 2, &file, sizeof(large));
	ck_assert_uint_eq(sending(), 3);
	fetch_begins(&fetcher, &file);
	while (!fetcher.ended) {
		ck_assert_int_eq(rxw_call_read(reader.call, got, 16384), 16384);
		usleep(20000);
		fsd_waiting_look(shop.service);
	}
	pthread_join(fetcher.thread, NULL);
	ck_assert_int_eq(fetcher.n, sizeof(fetcher.got));
	ck_assert_uint_eq(shop.service->counters.fetches_given_up, 1);
	ck_assert_int_eq(rxw_call_error(reader.call, NULL), 0);
	for (unsigned i = 0; i < 2; i++)
		slow_drop(&slow[i]);
	slow_drop(&reader);
	while (sending())
		usleep(1000);
	/* All three were incomplete, whoever ended them. */
	ck_assert_uint_eq(fsd_counted(&shop.service->counters.fetch_aborts), 3);
	teardown();
}
END_TEST

/*
 * While the server drains, no thread of its own calls it every second. A fetch that waits gets the place of a slow one all
 * the same.
 */
START_TEST(fetches_wait_during_a_drain)
{
	static char large[3 << 20];
	static struct fetcher fetcher;
	struct slow slow;
	AFSFid file;

	setup();
	shop.service->sending.max = 1;
	file = shop_file(&shop, &root, "file");
	ck_assert_int_eq(
		shop_put(a, &file, 0, sizeof(large), sizeof(large), large, sizeof(large), &st), 0);
	slow_fetch(&slow, 0, &file, sizeof(large));
	fetch_begins(&fetcher, &file);
	await_held(1);
	ck_assert_int_eq(rxw_endpoint_stop(shop.server, 60000), 0);
	pthread_join(fetcher.thread, NULL);
	ck_assert_int_eq(fetcher.n, sizeof(fetcher.got));
	ck_assert_uint_eq(shop.service->counters.fetches_given_up, 1);
	slow_drop(&slow);
	teardown();
}
END_TEST

/*
 * A fetch that finds no place waits, without a thread and with nothing open. It goes on with the file as it is then, or
 * fails if that has another length, since the client has got the length before.
 */
START_TEST(fetches_wait)
{
	static char large[3 << 20];
	static struct fetcher fetcher;
	struct slow slow;
	AFSFid file;

	setup();
	shop.service->sending.max = 1;
	file = shop_file(&shop, &root, "file");
	for (unsigned round = 0; round < 3; round++) {
		uint64_t length = sizeof(large) - (round == 2);

		memset(large, 'a', sizeof(large));
		ck_assert_int_eq(shop_put(a, &file, 0, sizeof(large), sizeof(large), large,
					  sizeof(large), &st),
				 0);
		slow_fetch(&slow, 0, &file, sizeof(large));
		keep_places(&shop.service->sending);
		fetch_begins(&fetcher, &file);
		await_held(round + 1);
		shop_await_idle(&shop);
		memset(large, round ? 'b' : 'a', sizeof(large));
		if (round)
			ck_assert_int_eq(shop_put(a, &file, 0, length, length, large, length, &st),
					 0);
		slow_drop(&slow);
		pthread_join(fetcher.thread, NULL);
		ck_assert_int_eq(fetcher.n, round == 2 ? -AFS_VBUSY : (int64_t)sizeof(large));
		ck_assert(round == 2 || memcmp(fetcher.got, large, sizeof(large)) == 0);
		while (sending())
			usleep(1000);
	}
	teardown();
}
END_TEST

static struct store_volume volume_of(uint32_t id)
{
	struct store_volume volume;

	ck_assert_int_eq(shop.store->ops->volume(shop.store, id, &volume), 0);
	return volume;
}

/* The volume is released meanwhile: the reply has the date of the new release. */
START_TEST(fetches_wait_for_a_release)
{
	static char large[3 << 20];
	static struct fetcher fetcher;
	uint32_t clone, before;
	struct slow slow;
	AFSFid file, copy;

	setup();
	shop.service->sending.max = 1;
	file = shop_file(&shop, &root, "file");
	ck_assert_int_eq(
		shop_put(a, &file, 0, sizeof(large), sizeof(large), large, sizeof(large), &st), 0);
	ck_assert_int_eq(store_volume_clone(shop.store, shop.volume, STORE_RO, &clone), 0);
	before = volume_of(clone).sync;
	copy = (AFSFid){clone, file.Vnode, file.Unique};
	slow_fetch(&slow, 0, &file, sizeof(large));
	keep_places(&shop.service->sending);
	fetch_begins(&fetcher, &copy);
	await_held(1);
	while (volume_of(clone).sync == before) {
		usleep(100000);
		ck_assert_int_eq(store_volume_clone(shop.store, shop.volume, STORE_RO, &clone), 0);
	}
	slow_drop(&slow);
	pthread_join(fetcher.thread, NULL);
	ck_assert_int_eq(fetcher.n, sizeof(large));
	ck_assert_uint_eq(fetcher.sync.spare1, volume_of(clone).sync);
	while (sending())
		usleep(1000);
	teardown();
}
END_TEST

/*
 * A client that gave up meanwhile has no share of those that wait any more. Neither it nor one that waits when the server
 * stops holds anything back.
 */
START_TEST(fetches_that_wait_end)
{
	static char large[3 << 20];
	static struct fetcher fetcher;
	struct slow first, gone;
	AFSFid file;

	setup();
	shop.service->sending.max = 1;
	file = shop_file(&shop, &root, "file");
	ck_assert_int_eq(
		shop_put(a, &file, 0, sizeof(large), sizeof(large), large, sizeof(large), &st), 0);
	slow_fetch(&first, 0, &file, sizeof(large));
	keep_places(&shop.service->sending);
	gone.connection = shop_connect(&shop, 2, AFS_SERVICE_FS);
	ck_assert_int_eq(rxw_call_begin(gone.connection, NULL, &gone.call), 0);
	ck_assert_int_eq(StartRXAFS_FetchData64(gone.call, &file, 0, sizeof(large)), 0);
	ck_assert_int_eq(rxw_call_flush(gone.call), 0);
	await_held(1);
	slow_drop(&gone);
	while (waiting(&shop.service->sending))
		usleep(1000);
	while (fsd_counted(&shop.service->counters.fetches) != 1)
		usleep(1000);
	/* It was not refused at the end of its time. */
	ck_assert_uint_eq(fsd_counted(&shop.service->counters.fetch_aborts), 1);
	fetch_begins(&fetcher, &file);
	await_held(2);
	slow_drop(&first);
	pthread_join(fetcher.thread, NULL);
	ck_assert_int_eq(fetcher.n, sizeof(large));
	while (sending())
		usleep(1000);
	slow_fetch(&first, 0, &file, sizeof(large));
	keep_places(&shop.service->sending);
	fetch_begins(&fetcher, &file);
	await_held(3);
	rxw_endpoint_stop(shop.server, 0);
	fsd_service_settle(shop.service);
	pthread_join(fetcher.thread, NULL);
	ck_assert_int_ne(fetcher.n, sizeof(large));
	slow_drop(&first);
	teardown();
}
END_TEST

/* Each fetch has a file open, and other calls need descriptors, too. */
START_TEST(places_and_descriptors)
{
	struct rlimit before, few;

	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
	few = before;
	few.rlim_cur = 256;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
	setup();
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
	ck_assert_uint_eq(shop.service->sending.max, 128);
	teardown();
}
END_TEST

/*
 * With reads in the audit log, a thread that may wait ends the call. It is held up here, and the client aborts the
 * call meanwhile: the flow is gone, and is not visited any more, or the address sanitizer sees that.
 */
START_TEST(fetch_ends_on_another_thread)
{
	static char large[1 << 20], got[sizeof(large)];
	struct fsd_places *all;
	struct slow slow;
	rxw_call *rx;
	AFSFid file;

	setup();
	all = &shop.service->sending;
	shop.service->audit_reads = true;
	file = shop_file(&shop, &root, "file");
	ck_assert_int_eq(
		shop_put(a, &file, 0, sizeof(large), sizeof(large), large, sizeof(large), &st), 0);
	slow_fetch(&slow, 0, &file, sizeof(large));
	pthread_mutex_lock(&all->lock);
	ck_assert_uint_eq(all->count, 1);
	rx = all->place[0]->rx;
	/* A part of a buffer of packets leaves with the end of the reply. */
	ck_assert_int_eq(rxw_call_read(slow.call, got, sizeof(got) - 131072), sizeof(got) - 131072);
	while (!fsd_counted(&shop.service->counters.fetches))
		usleep(1000);
	slow_drop(&slow);
	while (!rxw_call_error(rx, NULL))
		usleep(1000);
	/* The thread that received the abort has gone on. */
	ck_assert_int_eq(RXAFS_FetchStatus(b->fs, &root, &st, &cb, &sync_), 0);
	pthread_mutex_unlock(&all->lock);
	while (sending())
		usleep(1000);
	teardown();
}
END_TEST

/* While places are free, a store may take as long as it likes. */
START_TEST(slow_but_alone)
{
	char data[8] = "", got[8];
	AFSFid file, other;
	struct slow slow;
	uint64_t begun;

	setup();
	file = shop_file(&shop, &root, "file");
	other = shop_file(&shop, &root, "other");
	slow_begin(&slow, 0, &file, sizeof(data));
	for (unsigned i = 0; i < sizeof(data); i++) {
		data[i] = (char)('a' + i);
		slow_feed(&slow, &data[i], 1);
		begun = monotonic_ns();
		do
			ck_assert_int_eq(shop_put(b, &other, 0, 3, 3, "abc", 3, &st), 0);
		while (monotonic_ns() - begun < LATE);
	}
	ck_assert_int_eq(slow_end(&slow), 0);
	ck_assert_int_eq(shop_get(b, &file, 0, sizeof(got), got, &st, &cb), sizeof(got));
	ck_assert_mem_eq(got, data, sizeof(got));
	ck_assert_uint_eq(shop.service->counters.stores_given_up, 0);
	teardown();
}
END_TEST

TEST_MAIN_WITHIN(120, "slow clients", slow_stores, stores_without_threads, stores_and_a_slow_disk,
		 stores_at_a_stop, stores_wait, stores_that_wait_end, slowest_store, slowest_fetch,
		 fetches_wait_during_a_drain, fetches_wait, fetches_wait_for_a_release,
		 fetches_that_wait_end, places_and_descriptors, fetch_ends_on_another_thread,
		 slow_but_alone)
