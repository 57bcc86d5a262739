/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of the audit log: lines, escapes, many threads, a full ring, a renamed file. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fileserver/audit/audit.h"
#include "fileserver/base/base.h"
#include "tests/main.h"
#include "tests/tools/testing.h"

static char *folder;
static char path[4200];
static char message[FSD_MESSAGE_MAX];

static void setup(void)
{
	folder = test_folder();
	snprintf(path, sizeof(path), "%s/audit", folder);
}

static void teardown(void)
{
	char other[4300];

	unlink(path);
	snprintf(other, sizeof(other), "%s.1", path);
	unlink(other);
	rmdir(folder);
	free(folder);
}

static struct sockaddr_storage peer_of(const char *text, uint16_t port)
{
	struct sockaddr_storage sa = {0};
	struct sockaddr_in *in = (struct sockaddr_in *)&sa;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&sa;

	if (strchr(text, ':')) {
		in6->sin6_family = AF_INET6;
		in6->sin6_port = htons(port);
		inet_pton(AF_INET6, text, &in6->sin6_addr);
	} else {
		in->sin_family = AF_INET;
		in->sin_port = htons(port);
		inet_pton(AF_INET, text, &in->sin_addr);
	}
	return sa;
}

static const char *line_of(const struct fsd_audit_record *record)
{
	static char line[AUDIT_LINE_MAX + 1];
	struct audit_entry entry;
	size_t n;

	fsd_audit_fill(&entry, record);
	n = fsd_audit_line(&entry, line);
	ck_assert_uint_le(n, AUDIT_LINE_MAX);
	line[n] = 0;
	return line;
}

START_TEST(lines)
{
	struct sockaddr_storage four = peer_of("192.0.2.1", 7001), six = peer_of("2001:db8::1", 7);
	struct fsd_audit_record record = {.time_ns = 1700000000123456789,
					  .peer = &four,
					  .id = 32766,
					  .operation = "CreateFile",
					  .volume = 536870912,
					  .vnode = 1,
					  .unique = 1,
					  .name = "a \"b\"\\\n\xc3\xa9\xff\x1f"};

	ck_assert_str_eq(line_of(&record),
			 "{\"time\":\"2023-11-14T22:13:20.123456Z\",\"address\":\"192.0.2.1\","
			 "\"port\":7001,\"id\":32766,\"operation\":\"CreateFile\","
			 "\"fid\":\"536870912.1.1\",\"name\":\"a \\\"b\\\"\\\\\\u000a\xc3\xa9"
			 "\\u00ff\\u001f\",\"code\":0}\n");
	record = (struct fsd_audit_record){.peer = &six,
					   .who = "alice@EXAMPLE.ORG",
					   .id = 7,
					   .operation = "Rename",
					   .volume = 9,
					   .vnode = 1,
					   .unique = 1,
					   .name = "",
					   .to_volume = 9,
					   .to_vnode = 3,
					   .to_unique = 4,
					   .to_name = "b",
					   .code = -5};
	ck_assert_str_eq(line_of(&record),
			 "{\"time\":\"1970-01-01T00:00:00.000000Z\",\"address\":\"2001:db8::1\","
			 "\"port\":7,\"who\":\"alice@EXAMPLE.ORG\",\"id\":7,"
			 "\"operation\":\"Rename\",\"fid\":\"9.1.1\",\"name\":\"\","
			 "\"to_fid\":\"9.3.4\",\"to_name\":\"b\",\"code\":-5}\n");
}
END_TEST

/* The longest texts, all of bytes that become six. */
START_TEST(longest_line)
{
	struct sockaddr_storage peer = peer_of("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", 65535);
	char text[1000];
	struct fsd_audit_record record = {.time_ns = INT64_MAX,
					  .peer = &peer,
					  .who = text,
					  .id = INT32_MIN,
					  .operation = "GetVolumeStatusOfSomething",
					  .volume = UINT32_MAX,
					  .vnode = UINT32_MAX,
					  .unique = UINT32_MAX,
					  .name = text,
					  .to_volume = UINT32_MAX,
					  .to_vnode = UINT32_MAX,
					  .to_unique = UINT32_MAX,
					  .to_name = text,
					  .code = INT32_MIN};

	memset(text, 1, sizeof(text) - 1);
	text[sizeof(text) - 1] = 0;
	ck_assert_uint_gt(strlen(line_of(&record)), 6 * (127 + 255 + 255));
}
END_TEST

static unsigned lines_in(const char *name)
{
	FILE *file = fopen(name, "r");
	unsigned n = 0;
	char line[AUDIT_LINE_MAX + 2];

	if (!file)
		return 0;
	while (fgets(line, sizeof(line), file)) {
		ck_assert(line[0] == '{' && strcmp(line + strlen(line) - 2, "}\n") == 0);
		n++;
	}
	fclose(file);
	return n;
}

#define THREADS 8
#define EACH	2000

static struct fsd_audit *audit;

static void *add_many(void *arg)
{
	struct sockaddr_storage peer = peer_of("127.0.0.1", 1);
	const struct fsd_audit_record record = {.peer = &peer, .operation = "x", .name = "name"};

	(void)arg;
	for (int i = 0; i < EACH; i++)
		fsd_audit_add(audit, &record);
	return NULL;
}

static void run_threads(void)
{
	pthread_t threads[THREADS];

	for (int i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, add_many, NULL), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

START_TEST(strict_loses_nothing)
{
	setup();
	audit = fsd_audit_open(path, true, message);
	ck_assert_ptr_nonnull(audit);
	run_threads();
	run_threads(); /* other threads */
	fsd_audit_close(audit);
	ck_assert_uint_eq(lines_in(path), 2 * THREADS * EACH);
	teardown();
}
END_TEST

START_TEST(lost_lines_are_counted)
{
	struct fsd_audit_stats stats;

	setup();
	audit = fsd_audit_open(path, false, message);
	ck_assert_ptr_nonnull(audit);
	run_threads();
	do {
		fsd_audit_stats(audit, &stats);
		usleep(1000);
	} while (stats.written + stats.lost < THREADS * EACH);
	ck_assert_uint_eq(stats.written + stats.lost, THREADS * EACH);
	ck_assert_uint_eq(lines_in(path), stats.written);
	fsd_audit_close(audit);
	teardown();
}
END_TEST

/* The file was renamed: lines go to the old one until the server is told, then to a new one. */
START_TEST(rotation)
{
	struct fsd_audit_record record = {.operation = "x"};
	struct fsd_audit_stats stats;
	char other[4300];

	setup();
	snprintf(other, sizeof(other), "%s.1", path);
	audit = fsd_audit_open(path, true, message);
	ck_assert_ptr_nonnull(audit);
	fsd_audit_add(audit, &record);
	ck_assert_int_eq(rename(path, other), 0);
	fsd_audit_add(audit, &record);
	do
		fsd_audit_stats(audit, &stats);
	while (stats.written < 2);
	ck_assert_uint_eq(lines_in(other), 2);
	fsd_audit_reopen(audit);
	while (access(path, F_OK))
		usleep(1000);
	fsd_audit_add(audit, &record);
	fsd_audit_close(audit);
	ck_assert_uint_eq(lines_in(other), 2);
	ck_assert_uint_eq(lines_in(path), 1);
	teardown();
}
END_TEST

/* Lines that are whole, of all that begin; the others were cut when the disk was full. */
static unsigned whole_lines_in(const char *name)
{
	FILE *file = fopen(name, "r");
	char line[AUDIT_LINE_MAX + 2];
	unsigned n = 0;

	ck_assert_ptr_nonnull(file);
	while (fgets(line, sizeof(line), file))
		n += line[0] == '{' && strcmp(line + strlen(line) - 2, "}\n") == 0 &&
		     strstr(line + 1, "{\"time") == NULL;
	fclose(file);
	return n;
}

/* Whether the file has a whole line of JSON with that name, behind `before`. */
static bool holds_line(const char *file, const char *name, const char *before)
{
	char line[AUDIT_LINE_MAX + 2], text[32];
	FILE *f = fopen(file, "r");
	bool found = false;

	ck_assert_ptr_nonnull(f);
	snprintf(text, sizeof(text), "\"%s\"", name);
	while (!found && fgets(line, sizeof(line), f))
		found = strstr(line, before) && strstr(line, text) &&
			!strcmp(line + strlen(line) - 2, "}\n");
	fclose(f);
	return found;
}

/*
 * As on a full disk: a write to the audit log is done in part, then it fails. Limits of the process would cut the files of
 * the test's own messages as well.
 */
static _Atomic long limit; /* bytes of the file; 0: none */
static _Atomic ino_t limited;

ssize_t __real_write(int fd, const void *bytes, size_t size);
ssize_t __wrap_write(int fd, const void *bytes, size_t size);
ssize_t __wrap_write(int fd, const void *bytes, size_t size)
{
	long most = limit;
	struct stat st;

	if (!most || fstat(fd, &st) || st.st_ino != limited)
		return __real_write(fd, bytes, size);
	if (st.st_size >= most) {
		errno = ENOSPC;
		return -1;
	}
	if ((long)size > most - st.st_size)
		size = (size_t)(most - st.st_size);
	return __real_write(fd, bytes, size);
}

/* 0: as long as it wants to be. */
static void limit_file(long bytes)
{
	struct stat st;

	if (bytes) {
		ck_assert_int_eq(stat(path, &st), 0);
		limited = st.st_ino;
	}
	limit = bytes;
}

static void await_records(uint64_t count)
{
	struct fsd_audit_stats stats;

	do {
		usleep(1000);
		fsd_audit_stats(audit, &stats);
	} while (stats.written + stats.lost < count);
}

/* A line that was cut does not take the next one with it. */
START_TEST(full_disk)
{
	const struct fsd_audit_record record = {.operation = "x", .name = "name"};
	struct fsd_audit_stats stats;

	setup();
	audit = fsd_audit_open(path, false, message);
	ck_assert_ptr_nonnull(audit);
	limit_file(250);
	for (unsigned i = 0; i < 4; i++) {
		fsd_audit_add(audit, &record);
		await_records(i + 1);
	}
	limit_file(0);
	fsd_audit_add(audit, &record);
	await_records(5);
	fsd_audit_stats(audit, &stats);
	fsd_audit_close(audit);
	ck_assert_uint_ge(stats.written, 2);
	ck_assert_uint_eq(whole_lines_in(path), stats.written);
	teardown();
}
END_TEST

/* While calls wait for a full disk, the file is renamed: no line is divided between two files. */
START_TEST(full_disk_and_rotation)
{
	const struct fsd_audit_record record = {.operation = "x", .name = "name"};
	struct fsd_audit_stats stats;
	char other[4300];
	struct stat st;

	setup();
	snprintf(other, sizeof(other), "%s.1", path);
	audit = fsd_audit_open(path, true, message);
	ck_assert_ptr_nonnull(audit);
	limit_file(250);
	for (unsigned i = 0; i < 4; i++)
		fsd_audit_add(audit, &record);
	do
		ck_assert_int_eq(stat(path, &st), 0);
	while (st.st_size < 250);
	ck_assert_int_eq(rename(path, other), 0);
	limit_file(0);
	fsd_audit_reopen(audit);
	await_records(4);
	fsd_audit_stats(audit, &stats);
	fsd_audit_close(audit);
	ck_assert_uint_eq(stats.written, 4);
	ck_assert_uint_eq(lines_in(path) + whole_lines_in(other), 4);
	teardown();
}
END_TEST

/*
 * What cannot be recorded is refused before it is done, and nothing waits: not the calls, nor the end of the server.
 */
START_TEST(full_disk_and_strict)
{
	struct fsd_audit_record record = {.operation = "x", .name = "name", .reserved = true};
	struct fsd_audit_stats stats;
	unsigned added = 0;

	setup();
	audit = fsd_audit_open(path, true, message);
	ck_assert_ptr_nonnull(audit);
	ck_assert(fsd_audit_reserve(audit));
	fsd_audit_unreserve(audit);
	limit_file(250);
	/* Until the first write has failed. Places that were given stay good. */
	while (fsd_audit_reserve(audit)) {
		fsd_audit_add(audit, &record);
		added++;
	}
	ck_assert(!fsd_audit_reserve(audit));
	fsd_audit_stats(audit, &stats);
	ck_assert_uint_eq(stats.refused, 2);
	ck_assert_uint_eq(stats.lost, 0);
	/* There is room again: everything that was acknowledged gets its line. */
	limit_file(0);
	await_records(added);
	fsd_audit_stats(audit, &stats);
	ck_assert_uint_eq(stats.written, added);
	while (!fsd_audit_reserve(audit))
		usleep(1000);
	/* The server stops while the disk is full. */
	limit_file(1);
	fsd_audit_add(audit, &record);
	fsd_audit_release(audit);
	fsd_audit_close(audit);
	teardown();
}
END_TEST

/*
 * Changes are acknowledged before the first write fails. If the server stops before their lines can be written, they are
 * in its log.
 */
START_TEST(full_disk_and_stop)
{
	struct fsd_audit_record record = {.operation = "x", .reserved = true};
	unsigned added = 0, found = 0;
	char name[16], log[4300];

	setup();
	snprintf(log, sizeof(log), "%s.1", path);
	audit = fsd_audit_open(path, true, message);
	ck_assert_ptr_nonnull(audit);
	limit_file(250);
	while (added < 400 && fsd_audit_reserve(audit)) {
		snprintf(name, sizeof(name), "name%03u", added++);
		record.name = name;
		fsd_audit_add(audit, &record);
	}
	ck_assert_ptr_nonnull(freopen(log, "w", stderr));
	fsd_audit_release(audit);
	fsd_audit_close(audit);
	limit_file(0);
	ck_assert_uint_gt(added, 2);
	for (unsigned i = 0; i < added; i++) {
		snprintf(name, sizeof(name), "name%03u", i);
		found += holds_line(path, name, "{") + holds_line(log, name, ": not written: {");
	}
	ck_assert_uint_eq(found, added);
	teardown();
}
END_TEST

static void *read_all(void *arg)
{
	char bytes[65536];

	while (read(*(int *)arg, bytes, sizeof(bytes)) > 0)
		;
	return NULL;
}

/* A disk that does not answer: calls that are refused for that do not wait for it. */
START_TEST(silent_disk_and_strict)
{
	struct fsd_audit_record done = {.operation = "x", .name = "name", .reserved = true};
	struct fsd_audit_record refused = {.operation = "x", .name = "name", .code = 1};
	struct fsd_audit_stats stats;
	pthread_t reader;
	int fd;

	setup();
	ck_assert_int_eq(mkfifo(path, 0600), 0);
	fd = open(path, O_RDONLY | O_NONBLOCK);
	ck_assert_int_ge(fd, 0);
	audit = fsd_audit_open(path, true, message);
	ck_assert_ptr_nonnull(audit);
	while (fsd_audit_reserve(audit))
		fsd_audit_add(audit, &done);
	fsd_audit_add(audit, &refused);
	fsd_audit_add(audit, &refused);
	fsd_audit_stats(audit, &stats);
	ck_assert_uint_eq(stats.lost, 2);
	ck_assert_int_eq(fcntl(fd, F_SETFL, 0), 0);
	ck_assert_int_eq(pthread_create(&reader, NULL, read_all, &fd), 0);
	while (!fsd_audit_reserve(audit))
		usleep(1000);
	fsd_audit_add(audit, &done);
	fsd_audit_close(audit);
	pthread_join(reader, NULL);
	close(fd);
	teardown();
}
END_TEST

/* A thread that answers the calls of whole transactions adds many records at once, and loses none. */
START_TEST(bursts)
{
	const struct fsd_audit_record record = {.operation = "x", .name = "name"};
	struct fsd_audit_stats stats;

	setup();
	audit = fsd_audit_open(path, false, message);
	ck_assert_ptr_nonnull(audit);
	for (unsigned i = 0; i < 4 * 256; i++)
		fsd_audit_add(audit, &record);
	await_records(4 * 256);
	fsd_audit_stats(audit, &stats);
	ck_assert_uint_eq(stats.lost, 0);
	fsd_audit_close(audit);
	ck_assert_uint_eq(lines_in(path), 4 * 256);
	teardown();
}
END_TEST

START_TEST(unusable_file)
{
	setup();
	ck_assert_ptr_null(fsd_audit_open(folder, false, message));
	ck_assert_ptr_nonnull(strstr(message, "--audit-log"));
	fsd_audit_add(NULL, NULL);
	fsd_audit_reopen(NULL);
	fsd_audit_close(NULL);
	teardown();
}
END_TEST

TEST_MAIN("audit", lines, longest_line, strict_loses_nothing, lost_lines_are_counted, rotation,
	  full_disk, full_disk_and_rotation, full_disk_and_strict, full_disk_and_stop,
	  silent_disk_and_strict, bursts, unusable_file)
