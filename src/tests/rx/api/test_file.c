/* SPDX-License-Identifier: BSD-2-Clause */
/* Transfers between files and calls (rxwire/file.h). */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "harness.h"

#define FETCH	     120 /* replies with a part of served.fd */
#define STORE	     121 /* writes the request to served.fd */
#define FILE_THREADS 8u
#define MANY	     200u
#define SEED	     7u
#define MIB	     ((uint64_t)1 << 20)

/* The first bytes of a request. */
struct ask {
	uint64_t offset, length;
};

/* The end of a transfer of a client. */
struct end {
	sem_t done;
	int result, error;
	uint64_t moved;
	unsigned calls;
};

static struct h_bed bed;
/* What the handlers use; and the latest end of one of their transfers. */
static struct {
	int fd;
	sem_t begun, done;
	pthread_mutex_t lock; /* covers the rest */
	rxw_call *call;	      /* the latest one with a transfer */
	int result, error;
	uint64_t moved;
	unsigned begins, ends;
} served;

/* ---- files ---- */

static int open_file(void)
{
	char path[] = "/var/tmp/rxwire-test-file-XXXXXX";
	int fd = mkstemp(path);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(unlink(path), 0);
	return fd;
}

/* A file with that many bytes of the pattern. */
static int make_file(uint64_t length)
{
	uint8_t data[1 << 16];
	int fd = open_file();

	for (uint64_t at = 0; at < length;) {
		size_t n = length - at < sizeof(data) ? (size_t)(length - at) : sizeof(data);

		h_pattern(data, at, n, SEED);
		ck_assert_int_eq(pwrite(fd, data, n, (off_t)at), (ssize_t)n);
		at += n;
	}
	return fd;
}

static bool has_pattern(int fd, uint64_t length)
{
	uint8_t data[1 << 16];
	uint64_t at = 0;
	ssize_t n;

	while ((n = pread(fd, data, sizeof(data), (off_t)at)) > 0) {
		if (!h_pattern_is(data, at, (size_t)n, SEED))
			return false;
		at += (uint64_t)n;
	}
	return at == length;
}

/* ---- the server ---- */

static int32_t code_of(int result, int error)
{
	return result == -RXW_ESYS ? rxw_code_from_errno(error) : result ? 4000 - result : 0;
}

static void end_serving(rxw_call *call, int result, uint64_t moved, void *arg)
{
	int error = errno;

	(void)arg;
	rxw_call_end(call, code_of(result, error), NULL);
	pthread_mutex_lock(&served.lock);
	served.result = result;
	served.error = error;
	served.moved = moved;
	served.ends++;
	pthread_mutex_unlock(&served.lock);
	sem_post(&served.done);
}

static int32_t serve(rxw_call *call, bool store)
{
	struct ask ask;
	int r;

	if (rxw_call_read(call, &ask, sizeof(ask)) != sizeof(ask))
		return 1;
	if (rxw_file_send(call, served.fd, 0, 1, end_serving, NULL) != -RXW_ESTATE)
		return 2; /* it is not deferred yet */
	if (rxw_call_defer(call))
		return 3;
	pthread_mutex_lock(&served.lock);
	served.call = call;
	served.begins++;
	pthread_mutex_unlock(&served.lock);
	r = store ? rxw_file_receive(call, served.fd, ask.offset, ask.length, end_serving, NULL)
		  : rxw_file_send(call, served.fd, ask.offset, ask.length, end_serving, NULL);
	if (r)
		end_serving(call, r, 0, NULL);
	sem_post(&served.begun);
	return 0;
}

static int32_t serve_fetch(rxw_call *call, void *context)
{
	(void)context;
	return serve(call, false);
}

static int32_t serve_store(rxw_call *call, void *context)
{
	(void)context;
	return serve(call, true);
}

static void open_bed(void)
{
	struct rxw_service_options options = {.size = sizeof(options)};

	h_open(&bed, &(struct h_options){.server = "workers-max=2"});
	memset(&served, 0, sizeof(served));
	served.fd = -1;
	pthread_mutex_init(&served.lock, NULL);
	sem_init(&served.begun, 0, 0);
	sem_init(&served.done, 0, 0);
	options.id = FETCH;
	options.handler = serve_fetch;
	h_offer(&bed, options);
	options.id = STORE;
	options.handler = serve_store;
	h_offer(&bed, options);
}

static void await(sem_t *sem, unsigned count)
{
	while (count)
		count -= sem_wait(sem) == 0;
}

/* Of those that the handlers have begun. */
static unsigned count_ends(unsigned *begins)
{
	unsigned ends;

	pthread_mutex_lock(&served.lock);
	ends = served.ends;
	if (begins)
		*begins = served.begins;
	pthread_mutex_unlock(&served.lock);
	return ends;
}

static bool all_ended(void *unused)
{
	unsigned begins;

	(void)unused;
	return count_ends(&begins) == begins;
}

static void close_bed(void)
{
	h_wait_for(all_ended, NULL, "a transfer does not end");
	if (served.fd >= 0)
		close(served.fd);
	h_close(&bed);
}

/* ---- clients ---- */

static rxw_call *ask_for(rxw_connection *c, uint64_t offset, uint64_t length, unsigned flags)
{
	struct rxw_call_options options = {.size = sizeof(options), .flags = flags};
	struct ask ask = {offset, length};
	rxw_call *call;

	ck_assert_int_eq(rxw_call_begin(c, &options, &call), 0);
	ck_assert_int_eq(rxw_call_write(call, &ask, sizeof(ask)), sizeof(ask));
	return call;
}

/* A call of FETCH, whose request has been sent. */
static rxw_call *begin_fetch(rxw_connection *c, uint64_t offset, uint64_t length)
{
	rxw_call *call = ask_for(c, offset, length, 0);

	ck_assert_int_eq(rxw_call_send_end(call), 0);
	return call;
}

/* Reads the whole reply of a blocking call; bytes that are as expected. */
static uint64_t read_pattern(rxw_call *call, uint64_t offset)
{
	uint8_t data[8192];
	uint64_t at = 0;
	ssize_t n;

	while ((n = rxw_call_read(call, data, sizeof(data))) > 0) {
		ck_assert(h_pattern_is(data, offset + at, (size_t)n, SEED));
		at += (uint64_t)n;
	}
	return at;
}

static void note_end(rxw_call *call, int result, uint64_t moved, void *arg)
{
	struct end *end = arg;

	(void)call;
	end->error = errno;
	end->result = result;
	end->moved = moved;
	end->calls++;
	sem_post(&end->done);
}

static void init_end(struct end *end)
{
	memset(end, 0, sizeof(*end));
	sem_init(&end->done, 0, 0);
}

static void await_end(struct end *end, int result, uint64_t moved)
{
	await(&end->done, 1);
	ck_assert_int_eq(end->result, result);
	ck_assert_uint_eq(end->moved, moved);
	ck_assert_uint_eq(end->calls, 1);
}

static bool is_done(void *call)
{
	return rxw_call_events(call) & RXW_EVENT_DONE;
}

/* Waits for the reply of a non-blocking call, which is empty, and ends it. */
static int32_t end_call(rxw_call *call)
{
	ck_assert_int_eq(rxw_call_send_end(call), 0);
	h_wait_for(is_done, call, "the end of the call");
	return rxw_call_end(call, 0, NULL);
}

/* ---- what is moved ---- */

static void store_and_fetch(uint64_t length)
{
	rxw_connection *to = h_connect(&bed, STORE), *from = h_connect(&bed, FETCH);
	int fd = make_file(length), back = open_file();
	struct end end;
	rxw_call *call;

	served.fd = open_file();
	init_end(&end);
	call = ask_for(to, 0, length, RXW_CALL_NONBLOCK);
	ck_assert_int_eq(rxw_file_send(call, fd, 0, length, note_end, &end), 0);
	close(fd);
	await_end(&end, 0, length);
	ck_assert_int_eq(end_call(call), 0);
	await(&served.done, 1);
	ck_assert_uint_eq(served.moved, length);
	ck_assert(has_pattern(served.fd, length));

	init_end(&end);
	call = ask_for(from, 0, length, RXW_CALL_NONBLOCK);
	ck_assert_int_eq(rxw_file_receive(call, back, 0, length, note_end, &end), 0);
	await_end(&end, 0, length);
	ck_assert_int_eq(end_call(call), 0);
	await(&served.done, 1);
	ck_assert(has_pattern(back, length));
	close(back);
	close(served.fd);
	served.fd = -1;
	rxw_connection_release(to);
	rxw_connection_release(from);
}

START_TEST(files_arrive)
{
	open_bed();
	store_and_fetch(0);
	store_and_fetch(1);
	store_and_fetch(MIB + 1);
	store_and_fetch(h_small() ? 3 * MIB : 20 * MIB);
	close_bed();
}
END_TEST

/* Nothing before the offset and nothing behind the length leaves the file, or enters it. */
START_TEST(parts_of_files)
{
	rxw_connection *to, *from;
	const uint64_t offset = 4097, length = 300001;
	uint8_t data[64];
	rxw_call *call;

	open_bed();
	to = h_connect(&bed, STORE);
	from = h_connect(&bed, FETCH);
	served.fd = make_file(MIB);
	call = begin_fetch(from, offset, length);
	ck_assert_uint_eq(read_pattern(call, offset), length);
	ck_assert_int_eq(rxw_call_end(call, 0, NULL), 0);
	await(&served.done, 1);

	call = ask_for(to, MIB, 10, 0);
	h_pattern(data, MIB, sizeof(data), SEED);
	ck_assert_int_eq(rxw_call_write(call, data, sizeof(data)), sizeof(data));
	ck_assert_int_eq(rxw_call_end(call, 0, NULL), 0);
	await(&served.done, 1);
	ck_assert_uint_eq(served.moved, 10);
	ck_assert(has_pattern(served.fd, MIB + 10));
	rxw_connection_release(to);
	rxw_connection_release(from);
	close_bed();
}
END_TEST

/* A second transfer of a call begins at the end of the first one. */
static void send_again(rxw_call *call, int result, uint64_t moved, void *arg)
{
	ck_assert_int_eq(result, 0);
	ck_assert_uint_eq(moved, 70000);
	ck_assert_int_eq(rxw_file_send(call, *(int *)arg, 70000, 30001, end_serving, NULL), 0);
}

static int32_t serve_twice(rxw_call *call, void *context)
{
	ck_assert_int_eq(rxw_call_defer(call), 0);
	pthread_mutex_lock(&served.lock);
	served.begins++;
	pthread_mutex_unlock(&served.lock);
	ck_assert_int_eq(rxw_file_send(call, *(int *)context, 0, 70000, send_again, context), 0);
	return 0;
}

START_TEST(two_transfers_of_a_call)
{
	struct rxw_service_options options = {.size = sizeof(options),
					      .id = 122,
					      .handler = serve_twice,
					      .context = &served.fd,
					      .flags = RXW_SERVICE_INLINE};
	rxw_connection *c;
	rxw_call *call;

	open_bed();
	h_offer(&bed, options);
	served.fd = make_file(MIB);
	c = h_connect(&bed, 122);
	call = begin_fetch(c, 0, 0);
	ck_assert_uint_eq(read_pattern(call, 0), 100001);
	ck_assert_int_eq(rxw_call_end(call, 0, NULL), 0);
	rxw_connection_release(c);
	close_bed();
}
END_TEST

/* No file of /proc can be read with RWF_NOWAIT. */
START_TEST(files_without_nowait)
{
	char text[4096], got[sizeof(text)];
	rxw_connection *c;
	rxw_call *call;
	ssize_t length;

	open_bed();
	served.fd = open("/proc/version", O_RDONLY);
	ck_assert_int_ge(served.fd, 0);
	length = read(served.fd, text, sizeof(text));
	ck_assert_int_gt(length, 0);
	c = h_connect(&bed, FETCH);
	call = begin_fetch(c, 0, (uint64_t)length);
	ck_assert_int_eq(rxw_call_read(call, got, sizeof(got)), length);
	ck_assert(!memcmp(text, got, (size_t)length));
	ck_assert_int_eq(rxw_call_end(call, 0, NULL), 0);
	rxw_connection_release(c);
	close_bed();
}
END_TEST

/* From the disk, where the file system has one. */
START_TEST(files_that_are_not_cached)
{
	uint64_t length = h_small() ? 2 * MIB : 8 * MIB;
	rxw_connection *c;
	rxw_call *call;

	open_bed();
	served.fd = make_file(length);
	fdatasync(served.fd);
	posix_fadvise(served.fd, 0, 0, POSIX_FADV_DONTNEED);
	c = h_connect(&bed, FETCH);
	call = begin_fetch(c, 0, length);
	ck_assert_uint_eq(read_pattern(call, 0), length);
	ck_assert_int_eq(rxw_call_end(call, 0, NULL), 0);
	rxw_connection_release(c);
	close_bed();
}
END_TEST

/* ---- many calls ---- */

static unsigned count_threads(const char *name)
{
	DIR *tasks = opendir("/proc/self/task");
	struct dirent *entry;
	unsigned count = 0;

	ck_assert(tasks);
	while ((entry = readdir(tasks))) {
		char path[300], comm[32] = "";
		FILE *file;

		snprintf(path, sizeof(path), "/proc/self/task/%s/comm", entry->d_name);
		file = fopen(path, "r");
		if (!file)
			continue;
		if (fgets(comm, sizeof(comm), file))
			count += !strncmp(comm, name, strlen(name));
		fclose(file);
	}
	closedir(tasks);
	return count;
}

static void check_threads(void)
{
	unsigned files = count_threads("rxw-file"), all = count_threads("");

	ck_assert_uint_ge(files, 1);
	ck_assert_uint_le(files, 2 * FILE_THREADS); /* of two engines */
	ck_assert_uint_le(all, files + 24);
}

/* The window of each call is full, and its client does not read. Another client gets its file all the same. */
START_TEST(slow_receivers_hold_no_thread)
{
	rxw_connection *c[MANY / 4 + 1];
	uint64_t length = MIB;
	rxw_call *call[MANY], *quick;

	open_bed();
	served.fd = make_file(length);
	for (unsigned i = 0; i < MANY; i++) {
		if (i % 4 == 0)
			c[i / 4] = h_connect(&bed, FETCH);
		call[i] = begin_fetch(c[i / 4], 0, length);
	}
	await(&served.begun, MANY);
	check_threads();
	c[MANY / 4] = h_connect(&bed, FETCH);
	quick = begin_fetch(c[MANY / 4], 0, length);
	ck_assert_uint_eq(read_pattern(quick, 0), length);
	ck_assert_int_eq(rxw_call_end(quick, 0, NULL), 0);
	await(&served.done, 1);
	ck_assert_uint_eq(count_ends(NULL), 1);
	check_threads();
	for (unsigned i = 0; i < MANY; i++) {
		if (i < 8)
			ck_assert_uint_eq(read_pattern(call[i], 0), length);
		ck_assert_int_eq(rxw_call_end(call[i], i < 8 ? 0 : 9, NULL), i < 8 ? 0 : 9);
	}
	await(&served.done, MANY);
	for (unsigned i = 0; i <= MANY / 4; i++)
		rxw_connection_release(c[i]);
	close_bed();
}
END_TEST

/* 200 clients send a file to another one each, at the same time. */
START_TEST(many_at_a_time)
{
	uint64_t length = h_small() ? 20000 : 200000;
	int fd = make_file(length);
	rxw_connection *c[MANY / 4];
	struct end end[MANY];
	rxw_call *call[MANY];

	open_bed();
	served.fd = open_file();
	for (unsigned i = 0; i < MANY; i++) {
		if (i % 4 == 0)
			c[i / 4] = h_connect(&bed, STORE);
		init_end(&end[i]);
		call[i] = ask_for(c[i / 4], 0, length, RXW_CALL_NONBLOCK);
		ck_assert_int_eq(rxw_call_flush(call[i]), 0);
	}
	await(&served.begun, MANY);
	ck_assert_uint_eq(count_ends(NULL), 0);
	for (unsigned i = 0; i < MANY; i++)
		ck_assert_int_eq(rxw_file_send(call[i], fd, 0, length, note_end, &end[i]), 0);
	check_threads();
	for (unsigned i = 0; i < MANY; i++) {
		await_end(&end[i], 0, length);
		ck_assert_int_eq(end_call(call[i]), 0);
	}
	check_threads();
	await(&served.done, MANY);
	ck_assert(has_pattern(served.fd, length));
	for (unsigned i = 0; i < MANY / 4; i++)
		rxw_connection_release(c[i]);
	close(fd);
	close_bed();
}
END_TEST

/* ---- failures ---- */

START_TEST(what_is_refused)
{
	rxw_connection *c;
	int fd = make_file(10);
	rxw_call *call;
	struct end end;

	open_bed();
	init_end(&end);
	served.fd = make_file(10);
	c = h_connect(&bed, FETCH);
	call = ask_for(c, 0, 10, RXW_CALL_NONBLOCK);
	ck_assert_int_eq(rxw_file_send(NULL, fd, 0, 1, note_end, &end), -RXW_EINVAL);
	ck_assert_int_eq(rxw_file_send(call, fd, 0, 1, NULL, &end), -RXW_EINVAL);
	ck_assert_int_eq(rxw_file_send(call, fd, UINT64_MAX, 1, note_end, &end), -RXW_EINVAL);
	ck_assert_int_eq(rxw_file_receive(call, fd, 1, INT64_MAX, note_end, &end), -RXW_EINVAL);
	rxw_call_end(call, 1, NULL);
	call = ask_for(c, 0, 10, 0); /* it may block */
	ck_assert_int_eq(rxw_file_send(call, fd, 0, 1, note_end, &end), -RXW_ESTATE);
	ck_assert_int_eq(rxw_call_end(call, 0, NULL), 0);
	await(&served.done, 1);
	ck_assert_uint_eq(end.calls, 0);
	close(fd);
	rxw_connection_release(c);
	close_bed();
}
END_TEST

/* The call can go on after such an end: nothing has moved. */
static void refuse_file(rxw_call *call, int fd, bool receives, int error)
{
	struct end end;

	init_end(&end);
	ck_assert_int_eq(receives ? rxw_file_receive(call, fd, 0, 1, note_end, &end)
				  : rxw_file_send(call, fd, 0, 1, note_end, &end),
			 0);
	await_end(&end, -RXW_ESYS, 0);
	ck_assert_int_eq(end.error, error);
}

START_TEST(descriptors_of_no_use)
{
	int fd = make_file(10), directory = open(".", O_RDONLY), pipes[2];
	rxw_connection *c;
	rxw_call *call;
	struct end end;

	open_bed();
	init_end(&end);
	served.fd = make_file(10);
	c = h_connect(&bed, FETCH);
	call = ask_for(c, 0, 10, RXW_CALL_NONBLOCK);
	ck_assert_int_eq(pipe(pipes), 0);
	for (unsigned receives = 0; receives < 2; receives++) {
		refuse_file(call, -1, receives, EBADF);
		refuse_file(call, directory, receives, EISDIR);
		refuse_file(call, pipes[1 - receives], receives, ESPIPE);
	}
	fcntl(fd, F_SETFL, O_APPEND);
	refuse_file(call, fd, true, EINVAL);
	fcntl(fd, F_SETFL, 0);
	ck_assert_int_eq(rxw_file_receive(call, fd, 0, 11, note_end, &end), 0);
	await_end(&end, -RXW_EEOF, 10);
	ck_assert_int_eq(rxw_call_end(call, 0, NULL), 0);
	ck_assert(has_pattern(fd, 10));
	close(directory);
	close(pipes[0]);
	close(pipes[1]);
	close(fd);
	rxw_connection_release(c);
	close_bed();
}
END_TEST

START_TEST(one_transfer_at_a_time)
{
	rxw_connection *c;
	rxw_call *call;

	open_bed();
	served.fd = make_file(20 * MIB);
	c = h_connect(&bed, FETCH);
	call = begin_fetch(c, 0, 20 * MIB);
	await(&served.begun, 1);
	ck_assert_int_eq(rxw_file_send(served.call, served.fd, 0, 1, end_serving, NULL),
			 -RXW_ESTATE);
	ck_assert_int_eq(rxw_file_receive(served.call, served.fd, 0, 1, end_serving, NULL),
			 -RXW_ESTATE);
	ck_assert_uint_eq(read_pattern(call, 0), 20 * MIB);
	ck_assert_int_eq(rxw_call_end(call, 0, NULL), 0);
	rxw_connection_release(c);
	close_bed();
}
END_TEST

/* A part that the file does not have: what there is arrives, then an error. */
static void fetch_short(rxw_connection *c, uint64_t offset, uint64_t length, uint64_t there)
{
	rxw_call *call = begin_fetch(c, offset, length);

	read_pattern(call, offset);
	ck_assert_int_eq(rxw_call_end(call, 0, NULL), 4000 + RXW_EEOF);
	await(&served.done, 1);
	ck_assert_int_eq(served.result, -RXW_EEOF);
	ck_assert_uint_eq(served.moved, there);
}

START_TEST(files_that_are_too_short)
{
	rxw_connection *c;

	open_bed();
	served.fd = make_file(100000);
	c = h_connect(&bed, FETCH);
	fetch_short(c, 0, 100001, 100000);
	fetch_short(c, 99999, 2, 1);
	fetch_short(c, 100000, 1, 0);
	fetch_short(c, MIB, 20 * MIB, 0);
	fetch_short(c, 0, INT64_MAX, 100000);
	rxw_connection_release(c);
	close_bed();
}
END_TEST

START_TEST(a_file_that_shrinks)
{
	rxw_connection *c;
	rxw_call *call;

	open_bed();
	served.fd = make_file(20 * MIB);
	c = h_connect(&bed, FETCH);
	call = begin_fetch(c, 0, 20 * MIB);
	await(&served.begun, 1);
	ck_assert_int_eq(ftruncate(served.fd, 1000), 0);
	ck_assert_uint_lt(read_pattern(call, 0), 20 * MIB);
	ck_assert_int_eq(rxw_call_end(call, 0, NULL), 4000 + RXW_EEOF);
	await(&served.done, 1);
	ck_assert_uint_lt(served.moved, 20 * MIB);
	rxw_connection_release(c);
	close_bed();
}
END_TEST

/* The descriptors are open for the other direction. */
START_TEST(files_that_cannot_be_used)
{
	char path[] = "/var/tmp/rxwire-test-file-XXXXXX";
	rxw_connection *to, *from;
	rxw_call *call;

	open_bed();
	to = h_connect(&bed, STORE);
	from = h_connect(&bed, FETCH);
	close(mkstemp(path));
	served.fd = open(path, O_WRONLY);
	call = begin_fetch(from, 0, 10);
	ck_assert_uint_eq(read_pattern(call, 0), 0);
	ck_assert_int_eq(rxw_call_end(call, 0, NULL), rxw_code_from_errno(EBADF));
	await(&served.done, 1);
	ck_assert_int_eq(served.result, -RXW_ESYS);
	close(served.fd);

	served.fd = open(path, O_RDONLY);
	call = ask_for(to, 0, 4, 0);
	ck_assert_int_eq(rxw_call_write(call, "data", 4), 4);
	ck_assert_int_eq(rxw_call_end(call, 0, NULL), rxw_code_from_errno(EBADF));
	await(&served.done, 1);
	ck_assert_int_eq(served.result, -RXW_ESYS);
	ck_assert_uint_eq(served.moved, 0);
	unlink(path);
	rxw_connection_release(to);
	rxw_connection_release(from);
	close_bed();
}
END_TEST

/* The request ends before the file does. */
START_TEST(a_stream_that_is_too_short)
{
	rxw_connection *c;
	rxw_call *call;
	uint8_t data[5000];

	open_bed();
	served.fd = open_file();
	c = h_connect(&bed, STORE);
	call = ask_for(c, 0, sizeof(data) + 1, 0);
	h_pattern(data, 0, sizeof(data), SEED);
	ck_assert_int_eq(rxw_call_write(call, data, sizeof(data)), sizeof(data));
	ck_assert_int_eq(rxw_call_end(call, 0, NULL), 4000 + RXW_EEOF);
	await(&served.done, 1);
	ck_assert_uint_eq(served.moved, sizeof(data));
	ck_assert(has_pattern(served.fd, sizeof(data)));
	rxw_connection_release(c);
	close_bed();
}
END_TEST

/* ---- cancellation ---- */

static const uint16_t both[] = {FETCH, STORE};

/* A transfer that waits for a client. */
static rxw_call *begin_waiting(rxw_connection *c)
{
	rxw_call *call;

	served.fd = make_file(20 * MIB);
	call = ask_for(c, 0, 20 * MIB, 0);
	ck_assert_int_eq(rxw_call_flush(call), 0);
	await(&served.begun, 1);
	return call;
}

START_TEST(aborted_by_the_application)
{
	rxw_connection *c;
	rxw_call *call;

	open_bed();
	c = h_connect(&bed, both[_i]);
	call = begin_waiting(c);
	rxw_call_abort(served.call, 4711);
	await(&served.done, 1);
	ck_assert_int_eq(served.result, -RXW_ECALL);
	ck_assert_int_eq(rxw_call_end(call, 0, NULL), 4711);
	rxw_connection_release(c);
	close_bed();
}
END_TEST

START_TEST(aborted_by_the_peer)
{
	rxw_connection *c;

	open_bed();
	c = h_connect(&bed, both[_i]);
	ck_assert_int_eq(rxw_call_end(begin_waiting(c), 4712, NULL), 4712);
	await(&served.done, 1);
	ck_assert_int_eq(served.result, -RXW_ECALL);
	rxw_connection_release(c);
	close_bed();
}
END_TEST

START_TEST(stopped)
{
	rxw_connection *c;
	rxw_call *call;

	open_bed();
	c = h_connect(&bed, both[_i]);
	call = begin_waiting(c);
	rxw_endpoint_stop(bed.server, 0);
	await(&served.done, 1);
	ck_assert_int_eq(served.result, -RXW_ECALL);
	ck_assert_int_eq(rxw_call_end(call, 0, NULL), RXW_RESTARTING);
	rxw_connection_release(c);
	close_bed();
}
END_TEST

/* What a function of an end must not do. */
static void destroy_all(rxw_call *call, int result, uint64_t moved, void *arg)
{
	ck_assert_int_eq(rxw_call_end(call, 0, NULL), 0);
	ck_assert_int_eq(rxw_endpoint_stop(bed.server, 0), -RXW_EDEADLK);
	ck_assert_int_eq(rxw_endpoint_destroy(bed.server), -RXW_EDEADLK);
	ck_assert_int_eq(rxw_engine_destroy(bed.server_engine), -RXW_EDEADLK);
	note_end(NULL, result, moved, arg);
}

static int32_t serve_none(rxw_call *call, void *context)
{
	ck_assert_int_eq(rxw_call_defer(call), 0);
	ck_assert_int_eq(rxw_file_send(call, served.fd, 0, 0, destroy_all, context), 0);
	return 0;
}

START_TEST(an_end_destroys_nothing)
{
	struct end end;
	struct rxw_service_options options = {
		.size = sizeof(options), .id = 122, .handler = serve_none, .context = &end};
	rxw_connection *c;

	open_bed();
	init_end(&end);
	served.fd = open_file();
	h_offer(&bed, options);
	c = h_connect(&bed, 122);
	ck_assert_int_eq(rxw_call_end(begin_fetch(c, 0, 0), 0, NULL), 0);
	await_end(&end, 0, 0);
	rxw_connection_release(c);
	close_bed();
}
END_TEST

static _Atomic(bool) returned;

/* The call is over long before the function is. */
static void end_slowly(rxw_call *call, int result, uint64_t moved, void *arg)
{
	ck_assert_int_eq(rxw_call_end(call, 0, NULL), 0);
	note_end(NULL, result, moved, arg);
	usleep(50000);
	atomic_store(&returned, true);
}

static int32_t serve_slowly(rxw_call *call, void *context)
{
	ck_assert_int_eq(rxw_call_defer(call), 0);
	ck_assert_int_eq(rxw_file_send(call, served.fd, 0, 0, end_slowly, context), 0);
	return 0;
}

/* Functions of ends use what the destruction frees, as handlers do. */
START_TEST(destruction_waits_for_ends)
{
	struct end end;
	struct rxw_service_options options = {
		.size = sizeof(options), .id = 122, .handler = serve_slowly, .context = &end};
	rxw_connection *c;

	open_bed();
	init_end(&end);
	served.fd = open_file();
	h_offer(&bed, options);
	c = h_connect(&bed, 122);
	ck_assert_int_eq(rxw_call_end(begin_fetch(c, 0, 0), 0, NULL), 0);
	await_end(&end, 0, 0);
	ck_assert_int_eq(rxw_endpoint_destroy(bed.server), 0);
	ck_assert(atomic_load(&returned));
	bed.server = NULL;
	rxw_connection_release(c);
	close_bed();
}
END_TEST

/* ---- races ---- */

#define RACERS 4

static void *race(void *arg)
{
	unsigned rounds = h_small() ? 40 : 200, state = (unsigned)(uintptr_t)arg * 7919 + 1;
	int fd = make_file(200000);

	for (unsigned i = 0; i < rounds; i++) {
		bool store = (state = state * 1103515245 + 12345) >> 16 & 1;
		rxw_connection *c = h_connect(&bed, store ? STORE : FETCH);
		rxw_call *call = ask_for(c, 0, 200000, RXW_CALL_NONBLOCK);
		struct end end;

		init_end(&end);
		ck_assert_int_eq(store ? rxw_file_send(call, fd, 0, 200000, note_end, &end)
				       : rxw_file_receive(call, fd, 0, 200000, note_end, &end),
				 0);
		state = state * 1103515245 + 12345;
		if (state >> 16 & 1)
			usleep(state >> 17 & 511);
		if (state >> 18 & 1)
			rxw_call_abort(call, 77);
		await(&end.done, 1);
		ck_assert_uint_eq(end.calls, 1);
		rxw_call_end(call, state >> 19 & 1 ? 78 : 0, NULL);
		rxw_connection_release(c);
	}
	close(fd);
	return NULL;
}

/* Each transfer ends once, whoever ends its call. */
START_TEST(calls_that_end_at_any_time)
{
	pthread_t racer[RACERS];
	unsigned begins;

	open_bed();
	served.fd = make_file(200000);
	for (uintptr_t i = 0; i < RACERS; i++)
		ck_assert_int_eq(pthread_create(&racer[i], NULL, race, (void *)i), 0);
	for (unsigned i = 0; i < RACERS; i++)
		pthread_join(racer[i], NULL);
	rxw_endpoint_stop(bed.server, 0);
	count_ends(&begins);
	await(&served.done, begins);
	close_bed();
}
END_TEST

/* The file's thread would use a call that is gone: the library says so. */
START_TEST(an_end_during_a_transfer)
{
	rxw_connection *c;
	struct end end;
	rxw_call *call;

	setrlimit(RLIMIT_CORE, &(struct rlimit){0});
	open_bed();
	served.fd = open_file();
	init_end(&end);
	c = h_connect(&bed, STORE);
	call = ask_for(c, 0, MIB,
		       RXW_CALL_NONBLOCK); /* the server waits for the data, and does not reply */
	ck_assert_int_eq(rxw_file_receive(call, served.fd, 0, 1, note_end, &end), 0);
	rxw_call_end(call, 0, NULL);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("file");
	TCase *tc = tcase_create("file");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tc, 120);
	tcase_add_test(tc, files_arrive);
	tcase_add_test(tc, parts_of_files);
	tcase_add_test(tc, two_transfers_of_a_call);
	tcase_add_test(tc, files_without_nowait);
	tcase_add_test(tc, files_that_are_not_cached);
	tcase_add_test(tc, slow_receivers_hold_no_thread);
	tcase_add_test(tc, many_at_a_time);
	tcase_add_test(tc, what_is_refused);
	tcase_add_test(tc, descriptors_of_no_use);
	tcase_add_test(tc, one_transfer_at_a_time);
	tcase_add_test(tc, files_that_are_too_short);
	tcase_add_test(tc, a_file_that_shrinks);
	tcase_add_test(tc, files_that_cannot_be_used);
	tcase_add_test(tc, a_stream_that_is_too_short);
	tcase_add_loop_test(tc, aborted_by_the_application, 0, 2);
	tcase_add_loop_test(tc, aborted_by_the_peer, 0, 2);
	tcase_add_loop_test(tc, stopped, 0, 2);
	tcase_add_test(tc, an_end_destroys_nothing);
	tcase_add_test(tc, destruction_waits_for_ends);
	tcase_add_test(tc, calls_that_end_at_any_time);
	suite_add_tcase(suite, tc);
	runner = srunner_create(suite);
#if !defined(NDEBUG) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	if (srunner_fork_status(runner) == CK_FORK)
		tcase_add_test_raise_signal(tc, an_end_during_a_transfer, SIGABRT);
#else
	printf("skipped: the end of a call during a transfer, which ends the program\n");
	(void)an_end_during_a_transfer;
#endif
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
