/* SPDX-License-Identifier: BSD-2-Clause */
/* One file of a fake server, opened once. For one test program each. */
#ifndef TESTS_CLIENT_ONE_FILE_H
#define TESTS_CLIENT_ONE_FILE_H

#include <stdlib.h>
#include <string.h>

#include "client/data/data.h"
#include "fake_server.h"
#include "tests/asserts.h"

#define KIB 1024u
#define MIB (1024u * KIB)

static struct fake fake;
static struct cl_data *data;
static struct cl_data_file *file;
static struct cl_data_handle *handle;
static const struct rxafs_fid fid = {1, 2, 4, 5};

static inline unsigned char *make_bytes(size_t length, unsigned seed)
{
	unsigned char *bytes = malloc(length ? length : 1);

	for (size_t i = 0; i < length; i++)
		bytes[i] = (unsigned char)((i * 2654435761u + seed) >> 13);
	return bytes;
}

/* A server with `length` bytes of make_bytes(…, 1), an instance and an open file. */
static inline void set_up(size_t length, const struct cl_data_options *options)
{
	unsigned char *bytes = make_bytes(length, 1);
	struct cl_data_version version;
	char message[200];

	fake_start(&fake, bytes, length);
	free(bytes);
	ck_assert_int_eq(cl_data_create(options, &fake_ops, &data, message, sizeof(message)), 0);
	ck_assert_int_eq(cl_data_file_create(data, &fid, "example.org", &fake, &file), 0);
	ck_assert_int_eq(cl_data_open(file, (void *)1, &handle), 0);
	version = fake_status(&fake);
	cl_data_update(file, &version);
}

static inline void tear_down(void)
{
	if (handle)
		cl_data_close(handle);
	fake_await_unheld(&fake);
	cl_data_file_free(file);
	cl_data_free(data);
	fake_stop(&fake);
}

static inline void check_read(uint64_t offset, const void *bytes, size_t length)
{
	unsigned char *got = malloc(length + 1);

	ck_assert_int_eq(cl_data_read(handle, NULL, offset, got, length), (ssize_t)length);
	ck_assert_int_eq(memcmp(got, bytes, length), 0);
	free(got);
}

static inline void write_bytes(uint64_t offset, const void *bytes, size_t length)
{
	ck_assert_int_eq(cl_data_write(handle, NULL, offset, bytes, length), (ssize_t)length);
}

static inline void check_server(const void *bytes, size_t length)
{
	pthread_mutex_lock(&fake.lock);
	ck_assert_uint_eq(fake.length, length);
	ck_assert_int_eq(memcmp(fake.bytes, bytes, length), 0);
	pthread_mutex_unlock(&fake.lock);
}

#endif
