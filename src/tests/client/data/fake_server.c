/* SPDX-License-Identifier: BSD-2-Clause */
/* A file server with one file, for tests of the contents of files. */
#include "fake_server.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/asserts.h"

unsigned char fake_byte(uint64_t offset)
{
	return (unsigned char)((offset * 0x9e3779b97f4a7c15ull) >> 56);
}

void fake_start(struct fake *fake, const void *bytes, size_t length)
{
	*fake = (struct fake){.version = 1000, .piece = 60000, .stop_at = UINT64_MAX};
	pthread_mutex_init(&fake->lock, NULL);
	pthread_cond_init(&fake->changed, NULL);
	if (length) {
		fake->bytes = malloc(length);
		memcpy(fake->bytes, bytes, length);
	}
	fake->length = fake->room = length;
}

void fake_stop(struct fake *fake)
{
	ck_assert_uint_eq(fake->holds, 0);
	for (unsigned i = 0; i < FAKE_WHOS; i++)
		ck_assert_uint_eq(fake->whos[i], 0);
	free(fake->bytes);
	pthread_mutex_destroy(&fake->lock);
	pthread_cond_destroy(&fake->changed);
}

/* The file becomes longer. */
static void fake_extend(struct fake *fake, size_t length)
{
	if (fake->sparse) {
		if (length > fake->length)
			fake->length = length;
		return;
	}
	if (length > fake->room) {
		fake->bytes = realloc(fake->bytes, 2 * length);
		fake->room = 2 * length;
	}
	if (length > fake->length) {
		memset(fake->bytes + fake->length, 0, length - fake->length);
		fake->length = length;
	}
}

void fake_change(struct fake *fake, size_t offset, const void *bytes, size_t length)
{
	pthread_mutex_lock(&fake->lock);
	fake_extend(fake, offset + length);
	memcpy(fake->bytes + offset, bytes, length);
	fake->version++;
	pthread_mutex_unlock(&fake->lock);
}

void fake_cut(struct fake *fake, size_t length)
{
	pthread_mutex_lock(&fake->lock);
	fake->length = length;
	fake->version++;
	pthread_mutex_unlock(&fake->lock);
}

/* The client learns of the present version. */
static struct cl_data_version fake_see(struct fake *fake)
{
	if (fake->seen != fake->version)
		fake->clean_from = fake->version;
	fake->seen = fake->version;
	return (struct cl_data_version){.version = fake->version,
					.clean_from = fake->clean_from,
					.length = fake->length,
					.order = ++fake->order,
					.incarnation = fake->incarnation};
}

struct cl_data_version fake_status(struct fake *fake)
{
	struct cl_data_version version;

	pthread_mutex_lock(&fake->lock);
	version = fake_see(fake);
	pthread_mutex_unlock(&fake->lock);
	return version;
}

void fake_await(struct fake *fake, const unsigned *member, unsigned value)
{
	pthread_mutex_lock(&fake->lock);
	while (*member < value)
		pthread_cond_wait(&fake->changed, &fake->lock);
	pthread_mutex_unlock(&fake->lock);
}

void fake_await_unheld(struct fake *fake)
{
	pthread_mutex_lock(&fake->lock);
	while (fake->holds)
		pthread_cond_wait(&fake->changed, &fake->lock);
	pthread_mutex_unlock(&fake->lock);
}

void fake_await_idle(struct fake *fake)
{
	pthread_mutex_lock(&fake->lock);
	while (fake->running)
		pthread_cond_wait(&fake->changed, &fake->lock);
	pthread_mutex_unlock(&fake->lock);
}

void fake_release(struct fake *fake)
{
	pthread_mutex_lock(&fake->lock);
	fake->stop_at = UINT64_MAX;
	fake->stop_stores = false;
	pthread_cond_broadcast(&fake->changed);
	pthread_mutex_unlock(&fake->lock);
}

static int fake_fault(struct fake *fake, int *member)
{
	int error = *member;

	if (error && fake->error_calls && !--fake->error_calls)
		*member = 0;
	return error;
}

static void fake_begin(struct fake *fake, unsigned *count)
{
	++*count;
	if (++fake->running > fake->running_most)
		fake->running_most = fake->running;
	pthread_cond_broadcast(&fake->changed);
	if (fake->delay_us) {
		pthread_mutex_unlock(&fake->lock);
		usleep(fake->delay_us);
		pthread_mutex_lock(&fake->lock);
	}
}

/* Gives one piece. With the lock held, which is released meanwhile. */
static int fake_give_piece(struct fake *fake, uint64_t at, size_t length, cl_data_take_fn *take,
			   void *to)
{
	unsigned char *copy = malloc(length);
	struct iovec iov[2] = {{copy, length / 2}, {copy + length / 2, length - length / 2}};
	int error;

	if (fake->sparse)
		for (size_t i = 0; i < length; i++)
			copy[i] = fake_byte(at + i);
	else
		memcpy(copy, fake->bytes + at, length);
	pthread_mutex_unlock(&fake->lock);
	error = take(to, at, iov, 2);
	free(copy);
	pthread_mutex_lock(&fake->lock);
	fake->fetched += length;
	return error;
}

static int fake_fetch(void *owner, void *who, uint64_t offset, uint64_t length,
		      cl_data_take_fn *take, void *to, uint64_t *read,
		      struct cl_data_version *known)
{
	struct fake *fake = owner;
	uint64_t at = offset, end;
	bool again;
	int error;

	(void)who;
	pthread_mutex_lock(&fake->lock);
	fake_begin(fake, &fake->fetches);
	again = fake->again;
	error = fake_fault(fake, &fake->fetch_error);
	*read = fake->version;
	while (!error) {
		size_t piece = fake->piece;

		end = offset + length < fake->length ? offset + length : fake->length;
		if (at >= end)
			break;
		if (at >= fake->stop_at) {
			fake->stopped++;
			pthread_cond_broadcast(&fake->changed);
			while (at >= fake->stop_at)
				pthread_cond_wait(&fake->changed, &fake->lock);
			fake->stopped--;
		}
		if (piece > end - at)
			piece = (size_t)(end - at);
		error = fake_give_piece(fake, at, piece, take, to);
		at += piece;
		if (again && at > offset + length / 2) {
			at = offset;
			again = false;
			*read = fake->version;
		}
	}
	*known = fake_see(fake);
	fake->running--;
	pthread_cond_broadcast(&fake->changed);
	pthread_mutex_unlock(&fake->lock);
	return error;
}

/* Takes the bytes of a store. With the lock held, which is released meanwhile. */
static int fake_take_bytes(struct fake *fake, const struct cl_data_store *store,
			   cl_data_give_fn *give, void *from, unsigned char *bytes)
{
	int error = 0;

	pthread_mutex_unlock(&fake->lock);
	for (uint64_t done = 0; done < store->length && !error;) {
		size_t part = fake->piece < store->length - done ? fake->piece
								 : (size_t)(store->length - done);
		struct iovec iov[2] = {{bytes + done, part / 3},
				       {bytes + done + part / 3, part - part / 3}};

		error = give(from, store->offset + done, iov, 2);
		done += part;
	}
	pthread_mutex_lock(&fake->lock);
	return error;
}

static void fake_apply(struct fake *fake, const struct cl_data_store *store,
		       const unsigned char *bytes)
{
	uint64_t end = store->offset + store->length;

	if (store->file_length < fake->length)
		fake->length = (size_t)store->file_length;
	fake_extend(fake, (size_t)end);
	if (store->length && !fake->sparse)
		memcpy(fake->bytes + store->offset, bytes, (size_t)store->length);
	if (fake->version == fake->seen)
		fake->seen++;
	else
		fake->clean_from = fake->version + 1;
	fake->seen = ++fake->version;
	fake->mtime = store->mtime;
	fake->durable += store->durable;
	fake->stored += store->length;
}

static int fake_store(void *owner, void *who, const struct cl_data_store *store,
		      cl_data_give_fn *give, void *from, struct cl_data_version *known)
{
	struct fake *fake = owner;
	unsigned char *bytes = malloc(store->length ? (size_t)store->length : 1);
	int error;

	pthread_mutex_lock(&fake->lock);
	fake_begin(fake, &fake->stores);
	while (fake->stop_stores) {
		fake->stopped++;
		pthread_cond_broadcast(&fake->changed);
		pthread_cond_wait(&fake->changed, &fake->lock);
		fake->stopped--;
	}
	error = fake_fault(fake, &fake->store_error);
	if (!error && (uintptr_t)who == fake->refused) {
		fake->refusals++;
		error = -EACCES;
	}
	if (!error || fake->applied) {
		int failed = fake_take_bytes(fake, store, give, from, bytes);

		if (!failed)
			fake_apply(fake, store, bytes);
		if (error)
			fake->seen = 0;
		error = error ? error : failed;
	}
	*known = fake_see(fake);
	fake->running--;
	pthread_cond_broadcast(&fake->changed);
	pthread_mutex_unlock(&fake->lock);
	free(bytes);
	return error;
}

static void fake_count(struct fake *fake, unsigned *member, int by)
{
	pthread_mutex_lock(&fake->lock);
	*member += (unsigned)by;
	pthread_cond_broadcast(&fake->changed);
	pthread_mutex_unlock(&fake->lock);
}

static void fake_hold(void *owner)
{
	struct fake *fake = owner;

	fake_count(fake, &fake->holds, 1);
}

static void fake_drop(void *owner)
{
	struct fake *fake = owner;

	fake_count(fake, &fake->holds, -1);
}

static void fake_changed(void *owner)
{
	struct fake *fake = owner;

	fake_count(fake, &fake->changes, 1);
}

static void fake_lost(void *owner, int error, uint64_t bytes)
{
	struct fake *fake = owner;

	(void)bytes;
	fake->lost_error = error;
	fake_count(fake, &fake->losses, 1);
}

const struct cl_data_ops fake_ops = {.fetch = fake_fetch,
				     .store = fake_store,
				     .hold = fake_hold,
				     .drop = fake_drop,
				     .changed = fake_changed,
				     .lost = fake_lost};
