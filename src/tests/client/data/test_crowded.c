/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads that read, write and flush the same files, with less memory than the files need and a disk cache. Each thread compares its own
 * part of each file.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/data/data.h"
#include "fake_server.h"
#include "tests/asserts.h"
#include "tests/main.h"

#define FILES	3u
#define THREADS 4u
#define PART	(200u * 1000) /* bytes of a thread in each file */
#define STEPS	400u

static struct fake fakes[FILES];
static struct cl_data *data;
static struct cl_data_file *files[FILES];

struct walker {
	pthread_t thread;
	unsigned number, state;
	unsigned char parts[FILES][PART], got[PART];
	struct cl_data_handle *handles[FILES];
	unsigned wrong;
};

static unsigned pick(struct walker *walker, unsigned below)
{
	return (unsigned)rand_r(&walker->state) % below;
}

static void write_some(struct walker *walker, unsigned file)
{
	size_t length = 1 + pick(walker, pick(walker, 4) ? 3000 : 60000);
	size_t at = pick(walker, (unsigned)(PART - length));

	memset(walker->parts[file] + at, (int)pick(walker, 256), length);
	walker->wrong += cl_data_write(walker->handles[file], NULL, walker->number * PART + at,
				       walker->parts[file] + at, length) != (ssize_t)length;
}

static void read_some(struct walker *walker, unsigned file)
{
	size_t length = 1 + pick(walker, 60000), at = pick(walker, (unsigned)(PART - length));

	walker->wrong += cl_data_read(walker->handles[file], NULL, walker->number * PART + at,
				      walker->got, length) != (ssize_t)length;
	walker->wrong += memcmp(walker->got, walker->parts[file] + at, length) != 0;
}

/* Reads a part in order, without copies; also another thread's, whose bytes change meanwhile. */
static void lend_all(struct walker *walker, unsigned file, unsigned whose)
{
	for (size_t at = 0, length = 20000; at < PART; at += length) {
		struct iovec iov[8];
		struct cl_data_loan *loan;
		unsigned count = 8;
		size_t done = at;
		ssize_t lent = cl_data_lend(walker->handles[file], NULL, whose * PART + at, length,
					    iov, &count, &loan);

		walker->wrong += lent != (ssize_t)length && lent != -E2BIG;
		for (unsigned i = 0; i < count && lent > 0 && whose == walker->number;
		     done += iov[i++].iov_len)
			walker->wrong += memcmp(iov[i].iov_base, walker->parts[file] + done,
						iov[i].iov_len) != 0;
		cl_data_give_back(loan);
	}
}

static void *run_walker(void *arg)
{
	struct walker *walker = arg;

	for (unsigned i = 0; i < STEPS; i++) {
		unsigned file = pick(walker, FILES), what = pick(walker, 20);

		if (what < 8)
			write_some(walker, file);
		else if (what < 16)
			read_some(walker, file);
		else if (what < 18)
			lend_all(walker, file, pick(walker, THREADS));
		else if (what < 19)
			walker->wrong +=
				cl_data_flush(walker->handles[file], NULL, pick(walker, 2)) != 0;
		else
			cl_data_forget(files[file]);
	}
	return NULL;
}

static void start_crowd(const char *folder, struct walker *walkers)
{
	struct cl_data_options options = {.memory_most = 512 * 1024,
					  .dirty_file_most = 200 * 1024,
					  .block = 16 * 1024,
					  .folder = folder,
					  .disk_most = 1024 * 1024};
	char message[200];

	if (cl_data_create(&options, &fake_ops, &data, message, sizeof(message)))
		ck_abort_msg("%s", message);
	for (unsigned i = 0; i < FILES; i++) {
		struct rxafs_fid fid = {1, 2, 4 + i, 5};
		struct cl_data_version version;
		unsigned char *bytes = calloc(THREADS, PART);

		fake_start(&fakes[i], bytes, THREADS * PART);
		free(bytes);
		ck_assert_int_eq(
			cl_data_file_create(data, &fid, "example.org", &fakes[i], &files[i]), 0);
		version = fake_status(&fakes[i]);
		cl_data_update(files[i], &version);
		for (unsigned t = 0; t < THREADS; t++)
			ck_assert_int_eq(cl_data_open(files[i], (void *)1, &walkers[t].handles[i]),
					 0);
	}
}

static void end_crowd(struct walker *walkers)
{
	for (unsigned i = 0; i < FILES; i++) {
		ck_assert_int_eq(cl_data_flush(walkers[0].handles[i], NULL, false), 0);
		for (unsigned t = 0; t < THREADS; t++)
			cl_data_close(walkers[t].handles[i]);
		fake_await_unheld(&fakes[i]);
		for (unsigned t = 0; t < THREADS; t++)
			ck_assert_int_eq(
				memcmp(fakes[i].bytes + t * PART, walkers[t].parts[i], PART), 0);
		cl_data_file_free(files[i]);
	}
	cl_data_free(data);
	for (unsigned i = 0; i < FILES; i++)
		fake_stop(&fakes[i]);
}

START_TEST(crowded)
{
	static const char *const names[] = {"lock", "index", "index.new", "blocks"};
	struct walker *walkers = calloc(THREADS, sizeof(*walkers));
	char folder[] = "/tmp/test-crowded.XXXXXX", path[100];

	ck_assert_ptr_nonnull(mkdtemp(folder));
	start_crowd(folder, walkers);
	for (unsigned t = 0; t < THREADS; t++) {
		walkers[t].number = t;
		walkers[t].state = t + 1;
		ck_assert_int_eq(pthread_create(&walkers[t].thread, NULL, run_walker, &walkers[t]),
				 0);
	}
	for (unsigned t = 0; t < THREADS; t++)
		pthread_join(walkers[t].thread, NULL);
	for (unsigned t = 0; t < THREADS; t++)
		ck_assert_uint_eq(walkers[t].wrong, 0);
	end_crowd(walkers);
	free(walkers);
	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
		unlink(path);
	}
	rmdir(folder);
}
END_TEST

TEST_MAIN_WITHIN(60, "crowded", crowded)
