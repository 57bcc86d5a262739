/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Flows that wait for their turn while the server is saturated: in memory, and with a store over loopback. A thread that
 * never sleeps stands for one that sends, so that the server is saturated for as long as a test needs that.
 */
#include "tests/fileserver/shop.h"
#include "afs/numbers.h"
#include "fileserver/io/chunk.h"
#include "tests/main.h"

#include <unistd.h>

#define MIB ((uint64_t)1 << 20)

static struct busy {
	pthread_t thread;
	_Atomic pid_t tid;
	_Atomic bool over;
} busy;

static void *never_sleep(void *arg)
{
	(void)arg;
	atomic_store(&busy.tid, gettid());
	while (!atomic_load(&busy.over))
		;
	return NULL;
}

static void saturate(struct fsd_readers *readers)
{
	busy.over = false;
	busy.tid = 0;
	ck_assert_int_eq(pthread_create(&busy.thread, NULL, never_sleep, NULL), 0);
	while (!atomic_load(&busy.tid))
		usleep(100);
	fsd_saturation_begin(&readers->saturation, busy.tid);
	ck_assert(readers->saturation.on);
}

/* The thread counts for a second after it was seen last. */
static void keep_saturated(struct fsd_readers *readers)
{
	struct fsd_saturation *all = &readers->saturation;

	pthread_mutex_lock(&all->lock);
	for (unsigned i = 0; i < FSD_SENDERS; i++)
		if (all->sender[i].tid == busy.tid)
			all->sender[i].seen = monotonic_ns() + 3600 * (uint64_t)NS_PER_S;
	pthread_mutex_unlock(&all->lock);
}

static void end_saturation(struct fsd_readers *readers)
{
	atomic_store(&busy.over, true);
	pthread_join(busy.thread, NULL);
	while (atomic_load(&readers->saturation.on))
		usleep(1000);
}

static uint64_t turns_of(struct fsd_readers *readers)
{
	struct fsd_reader_stats stats;

	fsd_readers_stats(readers, &stats);
	return stats.turns;
}

/* -- in memory -- */

#define GREEDY 24
#define MANY   100 /* flows, so that their address may have to wait */
#define SIZE   (16 * MIB)
#define STEP   8192

struct client {
	struct memory_stream m;
	struct fsd_source source;
	pthread_mutex_t callback; /* held while it runs; the end of the call waits for it */
	bool silent;		  /* lock `callback` */
	_Atomic bool over;
	int result;
};

static struct fsd_readers *readers;
static struct slow_layer *slow;
static struct export_file *file;
static struct client greedy[GREEDY], modest;

static ssize_t read_file(struct fsd_source *source, const struct iovec *iov, int count,
			 uint64_t offset, bool cached)
{
	(void)source;
	return file->layer->ops->preadv(file, iov, count, offset, cached ? STORE_CACHED : 0);
}

static const struct fsd_source_ops file_ops = {.read = read_file};

static void end_client(struct fsd_source *source, int result)
{
	struct client *client =
		(struct client *)(void *)((char *)source - offsetof(struct client, source));

	pthread_mutex_lock(&client->callback);
	client->result = result;
	client->silent = true;
	pthread_mutex_unlock(&client->callback);
	atomic_store(&client->over, true);
}

static void begin_client(struct client *client, uint8_t address, uint64_t length)
{
	*client = (struct client){.source.ops = &file_ops};
	memory_stream_init(&client->m);
	client->m.stream.caller.bytes[0] = address;
	client->m.discard = true;
	client->m.has_window = true;
	pthread_mutex_init(&client->callback, NULL);
	ck_assert_int_eq(
		fsd_flow_start(readers, &client->source, 0, length, &client->m.stream, end_client),
		0);
}

static void acknowledge(struct client *client, size_t bytes)
{
	pthread_mutex_lock(&client->callback);
	if (!client->silent) {
		atomic_fetch_add(&client->m.window, bytes);
		client->m.visit(client->m.visited);
	}
	pthread_mutex_unlock(&client->callback);
}

static void make_readers(uint64_t cached)
{
	struct export_stat st;

	slow = slow_layer_make(SIZE, 0);
	slow->cached_below = cached;
	readers = fsd_readers_start(4, 64 * MIB, NULL);
	ck_assert_ptr_nonnull(readers);
	file = slow_layer_open(slow, &st);
	saturate(readers);
	keep_saturated(readers);
}

static void setup(uint64_t cached)
{
	make_readers(cached);
	for (unsigned i = 0; i < GREEDY; i++)
		begin_client(&greedy[i], 1, SIZE);
	begin_client(&modest, 2, SIZE);
}

static void teardown(void)
{
	for (unsigned i = 0; i < GREEDY; i++)
		memory_stream_free(&greedy[i].m);
	memory_stream_free(&modest.m);
	ck_assert_uint_eq(readers->flows, 0);
	ck_assert_ptr_null(readers->saturation.first);
	slow->base.ops->close(file);
	fsd_readers_stop(readers);
	slow->base.ops->destroy(&slow->base);
}

/* Each takes the same, until the address with most flows has to wait. */
static void await_waiting(void)
{
	uint64_t before = turns_of(readers);

	while (turns_of(readers) < before + GREEDY) {
		for (unsigned i = 0; i < GREEDY; i++)
			acknowledge(&greedy[i], STEP);
		acknowledge(&modest, STEP);
		usleep(100);
	}
	ck_assert(!modest.over);
}

/* The rest of what it asked for fails, as if the client were gone. */
static void lose(struct client *client)
{
	pthread_mutex_lock(&client->callback);
	client->m.fail_at = 1;
	pthread_mutex_unlock(&client->callback);
	acknowledge(client, STEP);
	while (!client->over)
		usleep(100);
	ck_assert_int_eq(client->result, FSD_LOST);
}

/* Whether it comes from the page cache or from the disk. A call that is lost ends at once. */
START_TEST(a_flow_waits_for_its_turn)
{
	for (unsigned disk = 0; disk < 2; disk++) {
		setup(disk ? 0 : SIZE);
		await_waiting();
		for (unsigned i = 0; i < GREEDY; i++)
			lose(&greedy[i]);
		lose(&modest);
		end_saturation(readers);
		teardown();
	}
}
END_TEST

/* Nobody visits it: it goes on by itself when the server has time left. */
START_TEST(all_go_on_at_the_end)
{
	setup(SIZE);
	await_waiting();
	for (unsigned i = 0; i < GREEDY; i++)
		acknowledge(&greedy[i], SIZE);
	end_saturation(readers);
	acknowledge(&modest, SIZE);
	for (unsigned i = 0; i < GREEDY; i++) {
		while (!greedy[i].over)
			usleep(1000);
		ck_assert_int_eq(greedy[i].result, 0);
		ck_assert_uint_eq(greedy[i].m.reply_length, SIZE);
	}
	while (!modest.over)
		usleep(1000);
	ck_assert_int_eq(modest.result, 0);
	teardown();
}
END_TEST

/* Whether there is an account of an address without flows. */
static bool is_kept(uint8_t address)
{
	struct fsd_saturation *all = &readers->saturation;
	bool kept;

	pthread_mutex_lock(&all->lock);
	kept = fsd_saturation_keeps(all, &(struct fsd_share_key){{address}});
	pthread_mutex_unlock(&all->lock);
	return kept;
}

/* What an address has sent is known when it begins its next flow. */
START_TEST(accounts_are_kept)
{
	setup(SIZE);
	await_waiting();
	for (unsigned i = 0; i < GREEDY; i++) {
		ck_assert(!is_kept(1));
		lose(&greedy[i]);
	}
	while (!is_kept(1)) /* the end of the last flow is posted */
		usleep(1000);
	begin_client(&greedy[0], 1, SIZE);
	ck_assert(!is_kept(1));
	end_saturation(readers);
	acknowledge(&greedy[0], STEP);
	lose(&greedy[0]);
	lose(&modest);
	teardown();
}
END_TEST

static void end_charged_turn(struct fsd_saturation *all, struct fsd_turn *turn, uint64_t bytes)
{
	fsd_turn_charge(all, turn, bytes);
	fsd_turn_end(all, turn, &(struct fsd_share_key){{4}});
}

/* A flow began before the saturation, so that the account that is kept was not taken up again. */
START_TEST(an_account_has_one_place)
{
	static const struct fsd_share_key key = {{4}};
	struct fsd_crowd_caller first = {0}, second = {0};
	struct fsd_turn turn = {.caller = &first};
	struct fsd_saturation *all;

	make_readers(0);
	all = &readers->saturation;
	fsd_turn_begin(all, &turn, &key);
	end_charged_turn(all, &turn, MIB);
	ck_assert(is_kept(4));
	end_saturation(readers);
	turn = (struct fsd_turn){.caller = &second};
	fsd_turn_begin(all, &turn, &key);
	saturate(readers);
	keep_saturated(readers);
	end_charged_turn(all, &turn, MIB);
	ck_assert(is_kept(4));
	fsd_turn_begin(all, &turn, &key);
	ck_assert(!is_kept(4));
	fsd_turn_end(all, &turn, &key);
	end_saturation(readers);
	slow->base.ops->close(file);
	fsd_readers_stop(readers);
	slow->base.ops->destroy(&slow->base);
}
END_TEST

/* Its address waits, as if another one had sent as much as its part. */
static void expect_another(void)
{
	struct fsd_saturation *all = &readers->saturation;

	pthread_mutex_lock(&all->lock);
	all->rate.began_ns = monotonic_ns();
	all->rate.mean = 1;
	all->rate.senders = 2;
	all->rate.sent = 2 * MIB;
	/* not a time in which nobody waits */
	all->rate.open = false;
	all->rate.open_ns = monotonic_ns() + 3600 * (uint64_t)NS_PER_S;
	pthread_mutex_unlock(&all->lock);
}

static bool is_pool_busy(void)
{
	bool rests;

	fsd_pool_threads(readers->pool, &rests);
	return !rests;
}

/* The room ends with a buffer that was read ahead, and so does the part of the address. */
START_TEST(no_room_when_a_wait_begins)
{
	struct caller *caller;

	make_readers(0);
	caller = (struct caller *)fsd_pool_enter(readers->pool, &(struct fsd_share_key){{2}});
	ck_assert_ptr_nonnull(caller);
	caller->crowd.flows = MANY;
	begin_client(&modest, 2, SIZE);
	expect_another();
	acknowledge(&modest, MIB);
	while (is_pool_busy())
		usleep(100);
	ck_assert_uint_eq(modest.m.reply_length, MIB);
	end_saturation(readers);
	lose(&modest);
	fsd_pool_leave(readers->pool, &caller->base);
	teardown();
}
END_TEST

static _Atomic bool told;

static void note_turn(struct fsd_turn *turn)
{
	(void)turn;
	atomic_store(&told, true);
}

/* A flow that went on has less room than its address has paid for: it sends the rest without a further wait. */
START_TEST(what_is_paid_is_sent)
{
	static const struct fsd_share_key key = {{3}};
	struct fsd_crowd_caller caller = {.flows = MANY};
	_Atomic unsigned visits = 0;
	struct fsd_turn turn = {.caller = &caller, .resume = note_turn, .visits = &visits};
	struct fsd_saturation *all;

	make_readers(0);
	all = &readers->saturation;
	fsd_turn_begin(all, &turn, &key);
	expect_another();
	fsd_turn_charge(all, &turn, 4 * MIB);
	ck_assert(!fsd_turn_has(all, &turn));
	ck_assert(fsd_turn_wait(all, &turn));
	while (!atomic_load(&told))
		usleep(100);
	ck_assert(fsd_turn_has(all, &turn));
	for (unsigned sent = 0; sent < 40; sent++) {
		fsd_turn_charge(all, &turn, 1000);
		ck_assert(fsd_turn_has(all, &turn));
	}
	fsd_turn_end(all, &turn, &key);
	end_saturation(readers);
	slow->base.ops->close(file);
	fsd_readers_stop(readers);
	slow->base.ops->destroy(&slow->base);
}
END_TEST

/* -- over loopback -- */

#define FETCHERS 24
#define LARGE	 (4 * MIB)

static struct shop shop;
static char *content;

struct fetcher {
	pthread_t thread;
	struct shop_client client;
	AFSFid fid;
	_Atomic bool *stop; /* NULL: one fetch */
};

static void *fetch_large(void *arg)
{
	struct fetcher *fetcher = arg;
	char *got = malloc(LARGE);

	ck_assert_ptr_nonnull(got);
	do {
		AFSFetchStatus st;
		AFSCallBack cb;

		memset(got, 0, LARGE);
		ck_assert_int_eq(shop_get(&fetcher->client, &fetcher->fid, 0, LARGE, got, &st, &cb),
				 (int64_t)LARGE);
		ck_assert_mem_eq(got, content, LARGE);
	} while (fetcher->stop && !atomic_load(fetcher->stop));
	free(got);
	return NULL;
}

/* `number`: of the client; each of these has an address, its port. */
static void begin_fetcher(struct fetcher *fetcher, unsigned number, const AFSFid *fid,
			  _Atomic bool *stop)
{
	fetcher->client = *shop_client(&shop, number);
	fetcher->client.fs = shop_connect(&shop, number, AFS_SERVICE_FS);
	fetcher->fid = *fid;
	fetcher->stop = stop;
	ck_assert_int_eq(pthread_create(&fetcher->thread, NULL, fetch_large, fetcher), 0);
}

static void end_fetcher(struct fetcher *fetcher)
{
	pthread_join(fetcher->thread, NULL);
	rxw_connection_release(fetcher->client.fs);
}

static AFSFid make_large(void)
{
	AFSFid root = shop_root(&shop), fid = shop_file(&shop, &root, "large");

	content = malloc(LARGE);
	ck_assert_ptr_nonnull(content);
	for (uint64_t i = 0; i < LARGE; i++)
		content[i] = (char)(i * 2654435761u >> 24);
	ck_assert_int_eq(
		shop_put(shop_client(&shop, 0), &fid, 0, LARGE, LARGE, content, LARGE, NULL), 0);
	return fid;
}

/* An address with very many fetches beside one with a single one: some of them have to wait, and all get each byte. */
START_TEST(fetches_take_turns)
{
	static struct fetcher many[FETCHERS], one;
	_Atomic bool stop = false;
	AFSFid fid;

	shop_make(&shop);
	shop_serve(&shop);
	fid = make_large();
	saturate(shop.readers);
	keep_saturated(shop.readers);
	for (unsigned i = 0; i < FETCHERS; i++)
		begin_fetcher(&many[i], 0, &fid, &stop);
	begin_fetcher(&one, 1, &fid, &stop);
	while (turns_of(shop.readers) < FETCHERS)
		usleep(1000);
	atomic_store(&stop, true);
	for (unsigned i = 0; i < FETCHERS; i++)
		end_fetcher(&many[i]);
	end_fetcher(&one);
	end_saturation(shop.readers);
	shop_close(&shop);
	free(content);
}
END_TEST

TEST_MAIN_WITHIN(120, "saturation", a_flow_waits_for_its_turn, all_go_on_at_the_end,
		 accounts_are_kept, an_account_has_one_place, no_room_when_a_wait_begins,
		 what_is_paid_is_sent, fetches_take_turns)
