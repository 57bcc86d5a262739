/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests of store/data_*.c: blocks that are given back beside runs and views, marks of verified blocks, writes that fail, space that
 * is taken ahead.
 */
#include <errno.h>
#include <sys/stat.h>

#include "tests/volume/store/data_fixture.h"

#define BLOCKS 3
#define LENGTH (BLOCKS * STORE_BLOCK + 100)
#define MORE   (2 * STORE_BLOCK)

static uint8_t bytes[LENGTH], more[MORE], got[LENGTH + MORE];
static struct store_content content;
static struct store_layer_ops ops; /* those of the spy, with some in their place */
static const struct store_layer_ops *below;

static void write_bytes(void)
{
	struct store_run *run;

	setup(8);
	for (size_t i = 0; i < LENGTH; i++)
		bytes[i] = (uint8_t)(i * 7 + i / 251 + 1);
	memset(more, 'A', MORE);
	content = (struct store_content){0};
	run = begin(&content, 0);
	put(run, bytes, LENGTH);
	store_run_end(apply(run, 0, &content), true);
	below = spy->layer.ops;
	ops = *below;
	spy->layer.ops = &ops;
}

static void end_bytes(void)
{
	spy->layer.ops = below;
	store_content_free(&content);
	teardown();
}

static uint64_t first_object(void)
{
	return store_content_block(&content, 0)->object;
}

static struct store_view *open_view(void)
{
	struct store_view *view;

	ck_assert_int_eq(store_view_open(data, &owner, &content, end_of(&content), &view), 0);
	return view;
}

static ssize_t read_from(struct store_view *view, size_t length, uint64_t offset)
{
	struct iovec iov = {got, length};

	return store_view_read(view, &iov, 1, offset, false);
}

/* -- runs -- */

/* A run goes on in a block that dies. It moves to another object with the bytes that it was given. */
START_TEST(beside_run)
{
	struct store_run *run;
	struct store_view *view;
	uint64_t object;

	write_bytes();
	object = first_object();
	run = begin(&content, LENGTH);
	ck_assert_uint_eq(store_run_object(run), object);
	put(run, more, MORE);
	ck_assert_int_eq(store_content_apply(&content, STORE_BLOCK, &(struct store_patch){0}), 0);
	ck_assert_int_eq(store_data_punch(data, &owner, object, 1, BLOCKS), -EBUSY);
	run = apply(run, LENGTH, &content);
	ck_assert_uint_ne(store_run_object(run), object);
	store_run_end(run, true);
	ck_assert_int_eq(store_data_punch(data, &owner, object, 1, BLOCKS), 0);
	view = open_view();
	ck_assert_int_eq(read_from(view, LENGTH + MORE, 0), LENGTH + MORE);
	ck_assert_mem_eq(got, bytes, STORE_BLOCK);
	for (size_t i = STORE_BLOCK; i < LENGTH; i++)
		ck_assert_uint_eq(got[i], 0);
	ck_assert_mem_eq(got + LENGTH, more, MORE);
	store_view_close(view);
	end_bytes();
}
END_TEST

/* Bytes that are gone get no new checksum. */
START_TEST(damaged_run)
{
	struct store_patch patch;
	struct store_run *run, *other;
	struct data_object *object;

	write_bytes();
	run = begin(&content, LENGTH);
	put(run, more, MORE);
	ck_assert_int_eq(finish(run, &content, &patch), 0);
	ck_assert_int_eq(store_content_apply(&content, STORE_BLOCK, &(struct store_patch){0}), 0);
	ck_assert_int_eq(data_acquire(data, &owner, first_object(), &object), 0);
	ck_assert_int_eq(ops.punch(object->file, BLOCKS * STORE_BLOCK, STORE_BLOCK), 0);
	data_release(data, object);
	other = begin(&content, LENGTH);
	ck_assert_int_eq(store_run_copy(run, other), -EBADMSG);
	store_run_end(other, false);
	store_run_end(run, false);
	end_bytes();
}
END_TEST

/* -- marks -- */

START_TEST(mark_of_dead_block)
{
	struct store_view *view;

	write_bytes();
	view = open_view();
	ck_assert_int_eq(read_from(view, LENGTH, 0), LENGTH);
	ck_assert_int_eq(read_from(view, 100, 50), 100);
	ck_assert_int_eq(store_data_punch(data, &owner, first_object(), 0, 1), 0);
	ck_assert_int_eq(read_from(view, 100, 50), -EBADMSG);
	ck_assert_int_eq(read_from(view, STORE_BLOCK, 0), -EBADMSG);
	ck_assert_int_eq(read_from(view, 100, STORE_BLOCK), 100);
	ck_assert_mem_eq(got, bytes + STORE_BLOCK, 100);
	store_view_close(view);
	end_bytes();
}
END_TEST

static ssize_t preadv_and_forget(struct store_file *file, const struct iovec *iov, int count,
				 uint64_t offset, bool cached)
{
	ssize_t n = below->preadv(file, iov, count, offset, cached);

	for (unsigned i = 0; i < DATA_VERIFIED; i++)
		atomic_store(&data->verified[i], 1);
	return n;
}

/* Other readers note so many blocks during a read that the marks of its own are gone. */
START_TEST(mark_replaced)
{
	struct store_view *view;
	ssize_t n;

	write_bytes();
	view = open_view();
	ck_assert_int_eq(read_from(view, LENGTH, 0), LENGTH);
	ops.preadv = preadv_and_forget;
	ck_assert_int_eq(read_from(view, 1000, 2000), 1000);
	ck_assert_mem_eq(got, bytes + 2000, 1000);
	ops.preadv = below->preadv;
	ck_assert_int_eq(read_from(view, LENGTH, 0), LENGTH);
	ops.preadv = preadv_and_forget;
	n = read_from(view, STORE_BLOCK, STORE_BLOCK + 100);
	ck_assert_int_gt(n, 0);
	ck_assert_mem_eq(got, bytes + STORE_BLOCK + 100, (size_t)n);
	store_view_close(view);
	end_bytes();
}
END_TEST

/* Files of 16 MiB that were opened one after the other: readers of all of them verify each block once. */
START_TEST(marks_of_many)
{
	enum {
		FILES = 16,
		COUNT = 256
	};
	static struct data_object object[FILES];
	unsigned found = 0;

	write_bytes();
	for (unsigned i = 0; i < FILES; i++) {
		object[i].opened = i + 1;
		for (uint32_t k = 0; k < COUNT; k++)
			data_note_verified(data, &object[i], k, k);
	}
	for (unsigned i = 0; i < FILES; i++)
		for (uint32_t k = 0; k < COUNT; k++)
			found += data_is_verified(data, &object[i], k, k) &&
				 !data_is_verified(data, &object[i], k, k + 1);
	ck_assert_uint_ge(found, FILES * COUNT - 10);
	end_bytes();
}
END_TEST

/* Damage after a block was verified is noticed after a while, also while the file stays open. */
START_TEST(mark_expires)
{
	struct store_view *view;
	struct data_object *object;

	write_bytes();
	view = open_view();
	ck_assert_int_eq(read_from(view, LENGTH, 0), LENGTH);
	ck_assert_int_eq(data_acquire(data, &owner, first_object(), &object), 0);
	ck_assert_int_eq(ops.punch(object->file, 0, STORE_BLOCK), 0);
	data_release(data, object);
	data->ahead += DATA_VERIFIED_NS;
	ck_assert_int_eq(read_from(view, 100, 50), -EBADMSG);
	ck_assert_int_eq(read_from(view, 100, STORE_BLOCK), 100);
	store_view_close(view);
	end_bytes();
}
END_TEST

/* -- writes that fail -- */

static ssize_t pwritev_half(struct store_file *file, const struct iovec *iov, int count,
			    uint64_t offset)
{
	struct iovec half = {iov->iov_base, iov->iov_len / 2};

	ck_assert_int_ge(count, 1);
	ck_assert_int_gt(below->pwritev(file, &half, 1, offset), 0);
	return -ENOSPC;
}

/* The first write of a run fails half done: nothing of it stays in the object of others. */
START_TEST(failed_write)
{
	struct store_patch patch;
	struct store_run *run;
	uint64_t length;

	write_bytes();
	run = begin(&content, LENGTH);
	ops.pwritev = pwritev_half;
	put(run, more, 1000);
	ck_assert_int_eq(finish(run, &content, &patch), -ENOSPC);
	store_run_end(run, false);
	ops.pwritev = below->pwritev;
	ck_assert_int_eq(store_data_stat(data, &owner, first_object(), &length), 0);
	ck_assert_uint_eq(length, LENGTH);
	run = begin(&content, LENGTH);
	ck_assert_uint_eq(store_run_object(run), first_object());
	store_run_end(run, false);
	end_bytes();
}
END_TEST

static unsigned reads;

static ssize_t count_read(struct store_file *file, const struct iovec *iov, int count,
			  uint64_t offset, bool cached)
{
	reads++;
	return below->preadv(file, iov, count, offset, cached);
}

/* A run of packets that ends within a block is one read, and takes nothing else once the blocks have marks. */
START_TEST(runs_of_packets)
{
	const size_t run = STORE_BLOCK / 4 * 3;
	struct store_view *view;
	uint64_t before;

	write_bytes();
	ops.preadv = count_read;
	view = open_view();
	for (unsigned turn = 0; turn < 2; turn++) {
		before = spy->data_read;
		reads = 0;
		for (size_t at = 0, want; at < LENGTH; at += want) {
			want = LENGTH - at < run ? LENGTH - at : run;
			ck_assert_int_eq(read_from(view, want, at), (ssize_t)want);
			ck_assert_mem_eq(got, bytes + at, want);
		}
		ck_assert_uint_eq(reads, (LENGTH + run - 1) / run);
	}
	ck_assert_uint_eq(spy->data_read - before, LENGTH);
	store_view_close(view);
	end_bytes();
}
END_TEST

/* -- space ahead -- */

static uint64_t count_space(void)
{
	char path[DATA_PATH], full[256];
	struct stat st;

	data_path_new(first_object(), path);
	snprintf(full, sizeof(full), "%s/%s", spy->folder, path);
	ck_assert_int_eq(stat(full, &st), 0);
	return (uint64_t)st.st_blocks * 512;
}

/* A writer that gives up, also without bytes, leaves none. */
START_TEST(space_ahead)
{
	const uint64_t most = 32 * DATA_GATHER;
	struct store_view *view;
	struct store_run *run;
	bool taken;

	write_bytes();
	run = begin(&content, LENGTH);
	ck_assert(!store_run_allocate(run, LENGTH + DATA_GATHER - 1));
	taken = store_run_allocate(run, most);
	ck_assert(!taken || count_space() >= most);
	/* It is taken once. */
	ck_assert(!store_run_allocate(run, most));
	store_run_end(run, false);
	ck_assert_int_eq(store_data_sync(data), 0);
	ck_assert_uint_lt(count_space(), LENGTH + DATA_GATHER);
	run = begin(&content, LENGTH);
	ck_assert(store_run_allocate(run, most) == taken);
	put(run, more, MORE);
	store_run_end(apply(run, LENGTH, &content), true);
	view = open_view();
	ck_assert_int_eq(read_from(view, LENGTH + MORE, 0), LENGTH + MORE);
	store_view_close(view);
	ck_assert_mem_eq(got, bytes, LENGTH);
	ck_assert_mem_eq(got + LENGTH, more, MORE);
	end_bytes();
}
END_TEST

TEST_MAIN_WITHIN(60, "punch", beside_run, damaged_run, mark_of_dead_block, mark_replaced,
		 marks_of_many, mark_expires, failed_write, runs_of_packets, space_ahead)
