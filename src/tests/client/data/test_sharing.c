/* SPDX-License-Identifier: BSD-2-Clause */
/* Several threads and identities at one file; calls that wait or fail; other clients. */
#include <errno.h>
#include <time.h>

#include "common/clock.h"
#include "one_file.h"
#include "tests/main.h"

#define READERS 6u

/* A read on a thread of its own. */
struct reader {
	pthread_t thread;
	uint64_t offset;
	size_t length;
	const struct cl_data_wait *wait;
	unsigned char *bytes;
	ssize_t result;
	unsigned done; /* protected by fake.lock */
};

static void *run_reader(void *arg)
{
	struct reader *reader = arg;

	reader->bytes = malloc(reader->length);
	reader->result =
		cl_data_read(handle, reader->wait, reader->offset, reader->bytes, reader->length);
	pthread_mutex_lock(&fake.lock);
	reader->done = 1;
	pthread_cond_broadcast(&fake.changed);
	pthread_mutex_unlock(&fake.lock);
	return NULL;
}

static void start_reader(struct reader *reader, uint64_t offset, size_t length,
			 const struct cl_data_wait *wait)
{
	*reader = (struct reader){.offset = offset, .length = length, .wait = wait};
	ck_assert_int_eq(pthread_create(&reader->thread, NULL, run_reader, reader), 0);
}

static void end_reader(struct reader *reader, ssize_t result, const unsigned char *bytes)
{
	pthread_join(reader->thread, NULL);
	ck_assert_int_eq(reader->result, result);
	if (result > 0)
		ck_assert_int_eq(memcmp(reader->bytes, bytes + reader->offset, (size_t)result), 0);
	free(reader->bytes);
}

static bool never_cancelled(const void *arg)
{
	(void)arg;
	return false;
}

/* Readers of one range share a call, and get bytes before it ends (K-066). */
START_TEST(joined)
{
	unsigned char *bytes = make_bytes(MIB, 1);
	struct cl_data_wait wait = {.cancelled = never_cancelled};
	struct reader readers[READERS];

	set_up(MIB, NULL);
	fake.stop_at = 600000;
	/* One that begins in the middle before it would have a call of its own. */
	start_reader(&readers[0], 0, 90000, &wait);
	fake_await(&fake, &fake.fetches, 1);
	for (unsigned i = 1; i < READERS; i++)
		start_reader(&readers[i], i * 90000, 90000, &wait);
	for (unsigned i = 0; i < READERS; i++)
		fake_await(&fake, &readers[i].done, 1);
	fake_await(&fake, &fake.stopped, 1);
	ck_assert_uint_eq(fake.fetches, 1);
	fake_release(&fake);
	for (unsigned i = 0; i < READERS; i++)
		end_reader(&readers[i], 90000, bytes);
	free(bytes);
	tear_down();
}
END_TEST

/* A call that fails concerns those who wait for it, and nothing is kept of it. */
START_TEST(failed_fetch)
{
	unsigned char *bytes = make_bytes(MIB, 1), got[100];

	set_up(MIB, NULL);
	fake.fetch_error = -EIO;
	fake.error_calls = 1;
	ck_assert_int_eq(cl_data_read(handle, NULL, 0, got, 100), -EIO);
	check_read(0, bytes, MIB);
	free(bytes);
	tear_down();
}
END_TEST

static unsigned cancel_now;

static bool is_cancelled(const void *arg)
{
	(void)arg;
	return __atomic_load_n(&cancel_now, __ATOMIC_ACQUIRE);
}

/* Waits end at the deadline, or when they are cancelled; what was begun goes on. */
START_TEST(bounded_waits)
{
	unsigned char *bytes = make_bytes(MIB, 1), got[100];
	struct cl_data_wait late = {.deadline = (uint64_t)read_clock_ns(CLOCK_BOOTTIME) +
						20 * NS_PER_MS},
			    cancelled = {.cancelled = is_cancelled}, try = {.only_try = true};
	struct reader reader;

	set_up(MIB, NULL);
	ck_assert_int_eq(cl_data_read(handle, &try, 0, got, 100), -EAGAIN);
	ck_assert_uint_eq(fake.fetches, 0);
	fake.stop_at = 0;
	ck_assert_int_eq(cl_data_read(handle, &late, 0, got, 100), -ETIMEDOUT);
	cancel_now = 0;
	start_reader(&reader, 0, 100, &cancelled);
	__atomic_store_n(&cancel_now, 1, __ATOMIC_RELEASE);
	cl_data_wake(file);
	end_reader(&reader, -EINTR, bytes);
	/* A store that nobody waits for. */
	fake_release(&fake);
	fake.stop_stores = true;
	write_bytes(5, "five", 4);
	late.deadline = (uint64_t)read_clock_ns(CLOCK_BOOTTIME) + 20 * NS_PER_MS;
	ck_assert_int_eq(cl_data_flush(handle, &late, false), -ETIMEDOUT);
	ck_assert_int_eq(cl_data_flush(handle, &cancelled, false), -EINTR);
	fake_release(&fake);
	ck_assert_int_eq(cl_data_flush(handle, NULL, false), 0);
	ck_assert_uint_eq(fake.stores, 1);
	memcpy(bytes + 5, "five", 4);
	check_server(bytes, MIB);
	check_read(0, bytes, MIB);
	ck_assert_int_eq(cl_data_read(handle, &try, 0, got, 100), 100);
	free(bytes);
	tear_down();
}
END_TEST

/* Another client changes the file: clean bytes go, changes stay (K-060, K-077). */
START_TEST(conflicts)
{
	unsigned char *bytes = make_bytes(3 * MIB, 1);
	struct cl_data_version version;

	set_up(3 * MIB, NULL);
	check_read(0, bytes, 3 * MIB);
	write_bytes(100, "mine", 4);
	fake_change(&fake, 50, "theirs", 6);
	memcpy(bytes + 100, "mine", 4);
	/* Nobody has told yet. */
	check_read(0, bytes, 3 * MIB);
	version = fake_status(&fake);
	cl_data_update(file, &version);
	memcpy(bytes + 50, "theirs", 6);
	check_read(0, bytes, 3 * MIB);
	/* It is the reply to a store that tells. */
	fake_change(&fake, 60, "again", 5);
	memcpy(bytes + 60, "again", 5);
	ck_assert_int_eq(cl_data_flush(handle, NULL, false), 0);
	ck_assert_uint_eq(fake.changes, 1);
	check_read(0, bytes, 3 * MIB);
	check_server(bytes, 3 * MIB);
	/* The reply to a fetch. */
	cl_data_forget(file);
	check_read(0, bytes, 1000);
	fake_change(&fake, 70, "third", 5);
	memcpy(bytes + 70, "third", 5);
	check_read(2 * MIB, bytes + 2 * MIB, MIB / 2);
	check_read(0, bytes, 3 * MIB);
	free(bytes);
	tear_down();
}
END_TEST

/* A server that lost its last changes: the same numbers come again with other bytes. */
START_TEST(back_in_time)
{
	unsigned char *bytes = make_bytes(1000, 1);
	struct cl_data_version version, late;

	set_up(1000, NULL);
	late = fake_status(&fake);
	write_bytes(0, "lost", 4);
	ck_assert_int_eq(cl_data_flush(handle, NULL, false), 0);
	/* This status was read before the store. */
	cl_data_update(file, &late);
	ck_assert_uint_eq(fake.fetches, 0);
	pthread_mutex_lock(&fake.lock);
	memcpy(fake.bytes, bytes, 4);
	fake.version--;
	pthread_mutex_unlock(&fake.lock);
	version = fake_status(&fake);
	cl_data_update(file, &version);
	check_read(0, bytes, 1000);
	free(bytes);
	tear_down();
}
END_TEST

/* What is written while a store is under way is stored next, and the store has the bytes of its begin. */
START_TEST(writing_during_store)
{
	size_t length = 300 * KIB;
	unsigned char *bytes = make_bytes(length, 2);
	struct cl_data_wait late = {.deadline = 1};

	set_up(0, NULL);
	write_bytes(0, bytes, length);
	fake.stop_stores = true;
	ck_assert_int_eq(cl_data_flush(handle, &late, false), -ETIMEDOUT);
	fake_await(&fake, &fake.stopped, 1);
	write_bytes(1000, "later", 5);
	write_bytes(length, "longer", 6);
	ck_assert_int_eq(cl_data_truncate(handle, NULL, length + 3), 0);
	ck_assert_uint_eq(cl_data_length(file), length + 3);
	pthread_mutex_lock(&fake.lock);
	fake.stop_stores = false;
	pthread_cond_broadcast(&fake.changed);
	pthread_mutex_unlock(&fake.lock);
	ck_assert_int_eq(cl_data_flush(handle, NULL, false), 0);
	bytes = realloc(bytes, length + 3);
	memcpy(bytes + 1000, "later", 5);
	memcpy(bytes + length, "lon", 3);
	check_server(bytes, length + 3);
	check_read(0, bytes, length + 3);
	ck_assert_uint_eq(fake.fetches, 0);
	free(bytes);
	tear_down();
}
END_TEST

/* A truncation to a length that only the store under way has given the file. */
START_TEST(cut_during_store)
{
	size_t length = 300 * KIB;
	unsigned char *bytes = make_bytes(length, 2);
	struct cl_data_wait late = {.deadline = 1};

	set_up(0, NULL);
	write_bytes(0, bytes, length);
	fake.stop_stores = true;
	ck_assert_int_eq(cl_data_flush(handle, &late, false), -ETIMEDOUT);
	fake_await(&fake, &fake.stopped, 1);
	ck_assert_int_eq(cl_data_truncate(handle, NULL, 1000), 0);
	fake_release(&fake);
	ck_assert_int_eq(cl_data_flush(handle, NULL, false), 0);
	ck_assert_uint_eq(cl_data_length(file), 1000);
	check_server(bytes, 1000);
	check_read(0, bytes, 1000);
	free(bytes);
	tear_down();
}
END_TEST

/* A change that was taken back leaves nothing to store: fsync() with a limit ends, too. */
START_TEST(nothing_to_sync)
{
	struct cl_data_wait limit = {.deadline = (uint64_t)read_clock_ns(CLOCK_BOOTTIME) +
						 20 * (uint64_t)NS_PER_S,
				     .cancelled = never_cancelled};

	set_up(0, NULL);
	for (unsigned turn = 0; turn < 2; turn++) {
		write_bytes(0, "text", 4);
		ck_assert_int_eq(cl_data_truncate(handle, NULL, 0), 0);
		ck_assert_int_eq(cl_data_flush(handle, NULL, false), 0);
		ck_assert_int_eq(cl_data_flush(handle, &limit, true), 0);
	}
	tear_down();
}
END_TEST

/* Large files are stored while they are written; a writer that is too fast waits (K-071). */
START_TEST(back_pressure)
{
	size_t length = 40 * MIB, piece = 100 * 1000;
	unsigned char *bytes = make_bytes(length, 3);
	struct cl_data_options options = {.memory_most = 32 * MIB, .dirty_file_most = 8 * MIB};

	set_up(0, &options);
	for (size_t at = 0; at < length; at += piece)
		write_bytes(at, bytes + at, length - at < piece ? length - at : piece);
	ck_assert_int_eq(cl_data_flush(handle, NULL, false), 0);
	fake_await_idle(&fake);
	ck_assert_uint_gt(fake.stores, 1);
	ck_assert_uint_le(fake.stores, 18);
	ck_assert_uint_eq(fake.stored, length);
	check_server(bytes, length);
	free(bytes);
	tear_down();
}
END_TEST

/* A full quota: told at write and at each flush; later writes work; after the last close the rest is lost, with a report (K-078). */
START_TEST(errors)
{
	unsigned char *bytes = make_bytes(12 * MIB, 1);
	struct cl_data_options options = {.memory_most = 32 * MIB, .dirty_file_most = 6 * MIB};
	unsigned failed = 0;

	set_up(0, &options);
	fake.store_error = -EDQUOT;
	for (size_t at = 0; at < 12 * MIB; at += MIB)
		failed += cl_data_write(handle, NULL, at, bytes + at, MIB) == -EDQUOT;
	ck_assert_uint_gt(failed, 0);
	ck_assert_int_eq(cl_data_flush(handle, NULL, false), -EDQUOT);
	ck_assert_int_eq(cl_data_flush(handle, NULL, false), -EDQUOT);
	fake.store_error = 0;
	ck_assert_int_eq(cl_data_truncate(handle, NULL, 0), -EDQUOT);
	ck_assert_int_eq(cl_data_truncate(handle, NULL, 0), 0);
	write_bytes(0, "small", 5);
	ck_assert_int_eq(cl_data_flush(handle, NULL, false), 0);
	check_server("small", 5);
	fake.store_error = -ENOSPC;
	write_bytes(0, "never", 5);
	ck_assert_int_eq(cl_data_flush(handle, NULL, false), -ENOSPC);
	cl_data_close(handle);
	handle = NULL;
	fake_await(&fake, &fake.losses, 1);
	ck_assert_int_eq(fake.lost_error, -ENOSPC);
	ck_assert_uint_eq(cl_data_length(file), 5);
	check_server("small", 5);
	free(bytes);
	tear_down();
}
END_TEST

/* A server that is away: the changes stay, and are stored when it is back, also after the close. */
START_TEST(server_away)
{
	set_up(0, NULL);
	write_bytes(0, "patience", 8);
	fake.store_error = -ETIMEDOUT;
	fake.applied = true;
	ck_assert_int_eq(cl_data_flush(handle, NULL, false), -ETIMEDOUT);
	fake.store_error = 0;
	cl_data_close(handle);
	handle = NULL;
	fake_await_unheld(&fake);
	check_server("patience", 8);
	tear_down();
}
END_TEST

/* Who wrote stores; if he may not any more, another one who wrote (K-081). The time is that of the last change, or a given one (K-083). */
START_TEST(identities_and_times)
{
	struct cl_data_handle *other;
	int64_t mtime;

	set_up(0, NULL);
	ck_assert_int_eq(cl_data_open(file, (void *)2, &other), 0);
	fake.refused = 2;
	write_bytes(0, "one", 3);
	ck_assert_int_eq(cl_data_write(other, NULL, 3, "two", 3), 3);
	ck_assert(cl_data_set_mtime(file, 1234567));
	ck_assert(cl_data_is_dirty(file, &mtime));
	ck_assert_int_eq(mtime, 1234567);
	ck_assert_int_eq(cl_data_flush(handle, NULL, false), 0);
	ck_assert_uint_eq(fake.refusals, 1);
	ck_assert_int_eq(fake.mtime, 1234567);
	ck_assert(!cl_data_set_mtime(file, 7654321));
	check_server("onetwo", 6);
	/* fsync of what close has stored. */
	ck_assert_uint_eq(fake.durable, 0);
	ck_assert_int_eq(cl_data_flush(handle, NULL, true), 0);
	ck_assert_uint_eq(fake.durable, 1);
	ck_assert_int_eq(cl_data_flush(handle, NULL, true), 0);
	ck_assert_uint_eq(fake.durable, 1);
	cl_data_close(other);
	check_server("onetwo", 6);
	tear_down();
}
END_TEST

/* A time that is set while a store with another one is under way. */
START_TEST(time_during_store)
{
	struct cl_data_wait late = {.deadline = 1};

	set_up(0, NULL);
	write_bytes(0, "x", 1);
	fake.stop_stores = true;
	ck_assert_int_eq(cl_data_flush(handle, &late, false), -ETIMEDOUT);
	fake_await(&fake, &fake.stopped, 1);
	ck_assert(cl_data_set_mtime(file, 99));
	fake_release(&fake);
	ck_assert_int_eq(cl_data_flush(handle, NULL, false), 0);
	ck_assert_int_eq(fake.mtime, 99);
	check_server("x", 1);
	tear_down();
}
END_TEST

/* The server comes back while the end waits; a permanent error does not make it wait. */
START_TEST(end_with_a_server_that_returns)
{
	uint64_t now = (uint64_t)read_clock_ns(CLOCK_BOOTTIME);
	struct cl_data_wait wait = {.deadline = now + 60ull * NS_PER_S};

	set_up(0, NULL);
	fake.store_error = -ETIMEDOUT;
	fake.error_calls = 3;
	write_bytes(0, "new", 3);
	ck_assert_int_eq(cl_data_flush_all(data, 0, 0, true, &wait), 0);
	ck_assert_uint_eq(fake.stores, 4);
	check_server("new", 3);
	fake.store_error = -EDQUOT;
	fake.error_calls = 0;
	write_bytes(0, "NEW", 3);
	ck_assert_int_eq(cl_data_flush_all(data, 0, 0, true, &wait), -EDQUOT);
	ck_assert_uint_lt((uint64_t)read_clock_ns(CLOCK_BOOTTIME), wait.deadline);
	fake_await_idle(&fake);
	fake.store_error = 0;
	ck_assert_int_eq(cl_data_flush_all(data, 0, 0, true, &wait), 0);
	check_server("NEW", 3);
	tear_down();
}
END_TEST

/* Old changes are stored though nobody asks (K-071); the end gives up what cannot be stored. */
START_TEST(by_time_and_end)
{
	struct cl_data_options options = {.store_after_s = 1};
	struct cl_data_wait late = {.deadline = 1};

	set_up(0, &options);
	write_bytes(0, "old", 3);
	fake_await(&fake, &fake.stores, 1);
	fake.stop_stores = true;
	write_bytes(0, "new", 3);
	ck_assert_int_eq(cl_data_flush_all(data, 9, 9, false, &late), 0);
	ck_assert_int_eq(cl_data_flush_all(data, 0, 0, true, &late), -ETIMEDOUT);
	fake_release(&fake);
	ck_assert_int_eq(cl_data_flush_all(data, 1, 2, true, NULL), 0);
	check_server("new", 3);
	fake.store_error = -ETIMEDOUT;
	write_bytes(0, "bad", 3);
	ck_assert_int_eq(cl_data_flush_all(data, 0, 0, false, NULL), -ETIMEDOUT);
	cl_data_give_up(data);
	ck_assert_uint_eq(fake.losses, 1);
	check_server("new", 3);
	tear_down();
}
END_TEST

/* Read-ahead keeps several calls in flight, and ends with the file or a jump. */
START_TEST(reading_ahead)
{
	size_t length = 32 * MIB;
	unsigned char *bytes = make_bytes(length, 1);
	struct cl_data_wait wait = {.cancelled = never_cancelled};
	unsigned char *got = malloc(128 * KIB);

	set_up(length, NULL);
	fake.delay_us = 2000;
	for (size_t at = 0; at < length; at += 128 * KIB) {
		ck_assert_int_eq(cl_data_read(handle, &wait, at, got, 128 * KIB), 128 * KIB);
		ck_assert_int_eq(memcmp(got, bytes + at, 128 * KIB), 0);
	}
	fake_await_idle(&fake);
	ck_assert_uint_ge(fake.running_most, 3);
	ck_assert_uint_eq(fake.fetched, length);
	ck_assert_uint_le(fake.fetches, 40);
	/* Random reads fetch what they need. */
	cl_data_forget(file);
	fake.fetched = 0;
	for (unsigned i = 0; i < 8; i++) {
		size_t at = (size_t)((i * 5 + 3) % 8) * 4 * MIB + 1000;

		check_read(at, bytes + at, 100);
	}
	ck_assert_uint_le(fake.fetched, 8 * 256 * KIB);
	free(got);
	free(bytes);
	tear_down();
}
END_TEST

/* A file that is larger than all memory. */
START_TEST(little_memory)
{
	struct cl_data_options options = {.memory_most = 4 * MIB};
	unsigned char *got = malloc(MIB);
	struct cl_data_version version;

	set_up(0, &options);
	fake.sparse = true;
	fake.length = 4096ull * MIB;
	fake.version++;
	version = fake_status(&fake);
	cl_data_update(file, &version);
	for (uint64_t at = 4000ull * MIB; at < 4096ull * MIB; at += MIB) {
		ck_assert_int_eq(cl_data_read(handle, NULL, at, got, MIB), MIB);
		ck_assert_uint_eq(got[77], fake_byte(at + 77));
	}
	ck_assert_int_eq(cl_data_read(handle, NULL, 4096ull * MIB - 1, got, MIB), 1);
	free(got);
	tear_down();
}
END_TEST

TEST_MAIN_WITHIN(30, "sharing", joined, failed_fetch, bounded_waits, conflicts, back_in_time,
		 writing_during_store, cut_during_store, nothing_to_sync, back_pressure, errors,
		 server_away, identities_and_times, time_during_store,
		 end_with_a_server_that_returns, by_time_and_end, reading_ahead, little_memory)
