/* SPDX-License-Identifier: BSD-2-Clause */
/* Threads that write, read, flush and remove objects of one file (store/data_*.c). */
#include "tests/volume/store/data_fixture.h"

#define BLOCK	STORE_BLOCK
#define BLOCKS	16u
#define ROUNDS	1500
#define READERS 3

/* The current version: each block holds the number of the round that wrote it. */
static struct {
	pthread_mutex_t lock;
	struct store_content content;
	uint32_t block[BLOCKS];
	uint32_t count;
	uint64_t versions;
	atomic_bool done;
} shared = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void fill(uint8_t block[BLOCK], uint32_t value)
{
	for (unsigned i = 0; i < BLOCK; i += 4)
		memcpy(block + i, &value, 4);
}

static void *reader_thread(void *arg)
{
	static _Thread_local uint8_t got[BLOCKS * BLOCK], want[BLOCK];

	(void)arg;
	while (!atomic_load(&shared.done)) {
		uint64_t version;
		bool current;
		struct store_content content;
		struct store_view *view;
		uint32_t block[BLOCKS], count;
		struct iovec iov = {got, sizeof(got)};

		pthread_mutex_lock(&shared.lock);
		store_content_copy(&shared.content, &content);
		memcpy(block, shared.block, sizeof(block));
		count = shared.count;
		version = shared.versions;
		pthread_mutex_unlock(&shared.lock);
		int rc = store_view_open(data, &owner, &content, count * BLOCK, &view);

		if (rc == -ENOENT) {
			store_content_free(&content);
			continue; /* an object is gone: there is a newer version */
		}
		ck_assert_int_eq(rc, 0);
		/* From now on its objects stay, if it is still the current one. */
		pthread_mutex_lock(&shared.lock);
		current = version == shared.versions;
		pthread_mutex_unlock(&shared.lock);
		if (current)
			ck_assert_int_eq(store_view_read(view, &iov, 1, 0, false), count * BLOCK);
		store_view_close(view);
		store_content_free(&content);
		for (uint32_t i = 0; current && i < count; i++) {
			fill(want, block[i]);
			ck_assert(memcmp(got + i * BLOCK, want, BLOCK) == 0);
		}
	}
	return NULL;
}

/* With the lock held: objects that the content had and has no more, for removal. */
static uint32_t collect_dead(const struct store_content *before, uint64_t dead[BLOCKS])
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < BLOCKS; i++) {
		const struct store_block *block = store_content_block(before, i);

		if (block && !store_content_has(&shared.content, block->object))
			dead[count++] = block->object;
	}
	return count;
}

/*
 * A run of the other thread may have gone on in an object that was dead already, so that the content has it again. In a store the
 * commit refuses that.
 */
static void remove_dead(const uint64_t *dead, uint32_t count)
{
	pthread_mutex_lock(&shared.lock);
	for (uint32_t i = 0; i < count; i++) {
		int rc = -EBUSY;

		if (!store_content_has(&shared.content, dead[i]) &&
		    !store_data_shown(data, &owner, dead[i], 0, 0))
			rc = store_data_remove(data, &owner, dead[i]);
		ck_assert(rc == 0 || rc == -EBUSY);
	}
	pthread_mutex_unlock(&shared.lock);
}

static void write_block(uint32_t round, uint32_t block)
{
	struct store_content known, before;
	uint64_t dead[BLOCKS];
	uint8_t bytes[BLOCK];
	struct store_run *run;

	pthread_mutex_lock(&shared.lock);
	store_content_copy(&shared.content, &known);
	pthread_mutex_unlock(&shared.lock);
	run = begin(&known, block * BLOCK);
	store_content_free(&known);
	fill(bytes, round);
	put(run, bytes, 200);
	put(run, bytes + 200, BLOCK - 200);
	pthread_mutex_lock(&shared.lock);
	store_content_copy(&shared.content, &before);
	if (block >= shared.count) {
		for (uint32_t i = shared.count; i < block; i++)
			shared.block[i] = 0;
		shared.count = block + 1;
	}
	run = apply(run, block * BLOCK, &shared.content);
	shared.versions++;
	shared.block[block] = round;
	uint32_t count = collect_dead(&before, dead);

	pthread_mutex_unlock(&shared.lock);
	uint64_t object = store_run_object(run);

	store_run_end(run, true);
	/* Another thread may have overwritten it, and removed it, already. */
	int rc = store_data_settle(data, &owner, object);

	ck_assert(rc == 0 || rc == -ENOENT);
	remove_dead(dead, count);
	store_content_free(&before);
}

static void *writer_thread(void *arg)
{
	uint32_t own = *(uint32_t *)arg, state = own;

	for (uint32_t i = 1; i <= ROUNDS; i++) {
		state = state * 1664525u + 1013904223u;
		write_block(own << 24 | i, state % 3 ? i % BLOCKS : (state >> 8) % BLOCKS);
		if (i % 200 == 0)
			ck_assert_int_eq(store_data_sync(data), 0);
	}
	return NULL;
}

START_TEST(threads)
{
	pthread_t reader[READERS], writer[2];
	uint32_t own[2] = {1, 2};

	setup(8);
	for (int i = 0; i < READERS; i++)
		ck_assert_int_eq(pthread_create(&reader[i], NULL, reader_thread, NULL), 0);
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(pthread_create(&writer[i], NULL, writer_thread, &own[i]), 0);
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(pthread_join(writer[i], NULL), 0);
	atomic_store(&shared.done, true);
	for (int i = 0; i < READERS; i++)
		ck_assert_int_eq(pthread_join(reader[i], NULL), 0);
	store_content_free(&shared.content);
	teardown();
}
END_TEST

TEST_MAIN_WITHIN(120, "data, threads", threads)
