/* SPDX-License-Identifier: BSD-2-Clause */
/* The file of addresses of clients that may hold promises. */
#include "fileserver/callbacks/memory.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/failure.h"
#include "common/held.h"
#include "fileserver/base/base.h"

/*
 * A record of the file. The first holds the date of the latest start in `address`, most significant
 * byte first. The others are addresses of clients; those that are all zeros are free.
 */
#define FAMILY_DATE 1

struct record {
	uint8_t family; /* FAMILY_DATE, 4 or 6; other records are ignored */
	uint8_t zero;
	uint8_t port[2];     /* as on the wire */
	uint8_t address[16]; /* of IPv4: 4 bytes, then that of the server, or zeros */
};

struct fsd_remember {
	int fd;
	size_t max;
	uint32_t date;
	pthread_mutex_t lock; /* covers the rest */
	bool *used;	      /* of each record */
	size_t next;	      /* where the search for a free one begins */
	uint64_t written, flushed; /* additions so far, and those of them that are on the disk */
	bool flushing;
	bool doubt; /* a flush failed: the kernel takes what it did not write for written */
	pthread_cond_t turn; /* a flush has ended */
};

static bool to_record(const struct sockaddr_storage *peer, const struct sockaddr_storage *local,
		      struct record *record)
{
	const struct sockaddr_in6 *in6 = (const void *)peer;
	const struct sockaddr_in *in = (const void *)peer, *own = (const void *)local;

	*record = (struct record){0};
	if (peer->ss_family == AF_INET) {
		record->family = 4;
		memcpy(record->port, &in->sin_port, 2);
		memcpy(record->address, &in->sin_addr, 4);
		if (local->ss_family == AF_INET)
			memcpy(record->address + 4, &own->sin_addr, 4);
		return true;
	}
	/* Scope ids may change between starts. */
	if (peer->ss_family != AF_INET6 || in6->sin6_scope_id)
		return false;
	record->family = 6;
	memcpy(record->port, &in6->sin6_port, 2);
	memcpy(record->address, &in6->sin6_addr, 16);
	return true;
}

static bool from_record(const struct record *record, struct sockaddr_storage *peer,
			struct sockaddr_storage *local)
{
	static const uint8_t unknown[4];
	struct sockaddr_in6 *in6 = (void *)peer;
	struct sockaddr_in *in = (void *)peer, *own = (void *)local;

	memset(peer, 0, sizeof(*peer));
	memset(local, 0, sizeof(*local));
	if (record->family == 4) {
		in->sin_family = AF_INET;
		memcpy(&in->sin_port, record->port, 2);
		memcpy(&in->sin_addr, record->address, 4);
		if (memcmp(record->address + 4, unknown, 4)) {
			own->sin_family = AF_INET;
			memcpy(&own->sin_addr, record->address + 4, 4);
		}
	} else if (record->family == 6) {
		in6->sin6_family = AF_INET6;
		memcpy(&in6->sin6_port, record->port, 2);
		memcpy(&in6->sin6_addr, record->address, 16);
	}
	return peer->ss_family && (record->port[0] || record->port[1]);
}

static int compare_records(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct record));
}

/* Whether both are of one client, which may have called two addresses of the server. */
static bool same_client(const struct record *a, const struct record *b)
{
	return memcmp(a, b, a->family == 4 ? offsetof(struct record, address) + 4 : sizeof(*a)) == 0;
}

/* The date of this start: later than that of the previous start, even if the clock was set back. */
static uint32_t new_date(int fd)
{
	uint32_t now = (uint32_t)time(NULL), before = 0;
	struct record head;

	if (pread(fd, &head, sizeof(head), 0) == sizeof(head) && head.family == FAMILY_DATE)
		for (int i = 0; i < 4; i++)
			before = before << 8 | head.address[i];
	return now > before ? now : before + 1;
}

static void put_date(struct record *record, uint32_t date)
{
	*record = (struct record){.family = FAMILY_DATE};
	for (int i = 0; i < 4; i++)
		record->address[i] = (uint8_t)(date >> (24 - 8 * i));
}

/* Pointers to records, by their contents. */
static int compare_pointers(const void *a, const void *b)
{
	return compare_records(*(struct record *const *)a, *(struct record *const *)b);
}

/* Records of the same client become free, but for one. -1: no memory. */
static int drop_doubles(struct record *records, size_t count)
{
	struct record **sorted = malloc(count * sizeof(struct record *) + 1);
	size_t kept = 0;

	if (!sorted)
		return -1;
	for (size_t i = 0; i < count; i++)
		sorted[i] = &records[i];
	qsort(sorted, count, sizeof(*sorted), compare_pointers);
	for (size_t i = 1; i < count; i++) {
		if (same_client(sorted[kept], sorted[i]))
			*sorted[i] = (struct record){0};
		else
			kept = i;
	}
	free(sorted);
	return 0;
}

/*
 * Read the addresses from the file, without doubles. Each stays where it is: a write in place that a crash interrupts must not
 * lose one. *damaged: some may be missing. 0 or -1 without memory.
 */
static int load_addresses(int fd, struct record *records, size_t max, bool *damaged)
{
	static const struct record none;
	struct sockaddr_storage peer, local;
	struct record head = {0};
	ssize_t had = pread(fd, &head, sizeof(head), 0);
	ssize_t n = pread(fd, records, max * sizeof(*records), sizeof(*records));
	size_t count = n < 0 ? 0 : (size_t)n / sizeof(*records);

	*damaged = had < 0 || n < 0 ||
		   (had && (had != sizeof(head) || head.family != FAMILY_DATE)) ||
		   (size_t)n % sizeof(*records);
	memset(records + count, 0, (max - count) * sizeof(*records));
	for (size_t i = 0; i < count; i++) {
		if (from_record(&records[i], &peer, &local))
			continue;
		*damaged |= compare_records(&records[i], &none) != 0;
		records[i] = none;
	}
	return drop_doubles(records, count);
}

/* Flush a folder: its names are on the disk then. */
static int flush_folder(const char *path)
{
	const char *slash = strrchr(path, '/');
	char folder[4096 + 64];
	int fd, rc;

	snprintf(folder, sizeof(folder), "%.*s", slash ? (int)(slash - path) + 1 : 1,
		 slash ? path : ".");
	fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	rc = fsync(fd);
	close(fd);
	return rc;
}

static int write_records(int fd, const struct record *records, size_t size)
{
	ssize_t n = pwrite(fd, records, size, 0);

	if (n == (ssize_t)size)
		return fsync(fd);
	if (n >= 0)
		errno = ENOSPC;
	return -1;
}

/* The new file takes the place of the old one in one step. Its size is final. */
static int replace_address_file(struct fsd_remember *remember, const char *path,
				const struct record *records)
{
	const size_t size = (1 + remember->max) * sizeof(*records);
	char new_path[4096 + 64];
	int fd, rc;

	snprintf(new_path, sizeof(new_path), "%s.new", path);
	fd = open(new_path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0)
		return -1;
	rc = write_records(fd, records, size);
	if (!rc)
		rc = rename(new_path, path);
	if (rc) {
		int error = errno;

		close(fd);
		unlink(new_path);
		errno = error;
		/* On a full disk the old one has the room: each record is right by itself. */
		return error == ENOSPC || error == EDQUOT
			       ? write_records(remember->fd, records, size)
			       : -1;
	}
	close(remember->fd);
	remember->fd = fd;
	return flush_folder(path);
}

static int start_remembering(struct fsd_remember *remember, const char *path,
			     void (*each)(void *arg, const struct sockaddr_storage *peer,
					  const struct sockaddr_storage *local, int record),
			     void *arg, bool *damaged)
{
	struct record *head = calloc(1 + remember->max, sizeof(*head)), *records = head + 1;
	struct sockaddr_storage peer, local;
	bool bad = false;
	int rc;

	remember->used = calloc(remember->max, sizeof(*remember->used));
	if (!head || !remember->used) {
		free(head);
		errno = ENOMEM;
		return -1;
	}
	remember->date = new_date(remember->fd);
	rc = load_addresses(remember->fd, records, remember->max, &bad);
	if (damaged)
		*damaged = bad;
	if (rc)
		goto out;
	put_date(head, remember->date);
	rc = replace_address_file(remember, path, head);
	for (size_t i = 0; !rc && i < remember->max; i++) {
		remember->used[i] = from_record(&records[i], &peer, &local);
		if (remember->used[i])
			each(arg, &peer, &local, (int)i);
	}
out:
	free(head);
	return rc;
}

struct fsd_remember *fsd_remember_open(const char *path, size_t max,
				       void (*each)(void *arg, const struct sockaddr_storage *peer,
						    const struct sockaddr_storage *local,
						    int record),
				       void *arg, bool *damaged, char *message)
{
	struct fsd_remember *remember = calloc(1, sizeof(*remember));

	if (!remember)
		return fail_with(NULL, message, FSD_MESSAGE_MAX, "no memory");
	remember->max = max;
	pthread_mutex_init(&remember->lock, NULL);
	pthread_cond_init(&remember->turn, NULL);
	remember->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (remember->fd < 0 || start_remembering(remember, path, each, arg, damaged) < 0) {
		int error = errno;

		snprintf(message, FSD_MESSAGE_MAX,
			 "addresses of clients are not kept for the next start: %.300s: %s", path,
			 strerror(error));
		fsd_remember_close(remember);
		errno = error;
		return NULL;
	}
	return remember;
}

void fsd_remember_close(struct fsd_remember *remember)
{
	if (!remember)
		return;
	if (remember->fd >= 0)
		close(remember->fd);
	pthread_cond_destroy(&remember->turn);
	pthread_mutex_destroy(&remember->lock);
	free(remember->used);
	free(remember);
}

uint32_t fsd_remember_date(const struct fsd_remember *remember)
{
	return remember ? remember->date : (uint32_t)time(NULL);
}

static int write_record(struct fsd_remember *remember, size_t at, const struct record *record)
{
	off_t offset = (off_t)((1 + at) * sizeof(*record));

	return pwrite(remember->fd, record, sizeof(*record), offset) == sizeof(*record) ? 0 : -1;
}

/* All records, which are in memory still. Without the lock. */
static int rewrite_records(struct fsd_remember *remember)
{
	struct record record;

	for (size_t i = 0; i <= remember->max; i++) {
		int rc;

		pthread_mutex_lock(&remember->lock);
		rc = pread(remember->fd, &record, sizeof(record), (off_t)(i * sizeof(record))) ==
					     sizeof(record) &&
				     pwrite(remember->fd, &record, sizeof(record),
					    (off_t)(i * sizeof(record))) == sizeof(record)
			     ? 0
			     : -1;
		pthread_mutex_unlock(&remember->lock);
		if (rc)
			return rc;
	}
	return 0;
}

/* Flushes all records that were written so far, together with other calls. */
static int flush_records(struct fsd_remember *remember)
{
	const uint64_t mine = remember->written;
	int rc = 0;

	assert(mutex_is_held(&remember->lock));
	while (!rc && remember->flushed < mine) {
		uint64_t upto = remember->written;
		bool doubt = remember->doubt;

		if (remember->flushing) {
			pthread_cond_wait(&remember->turn, &remember->lock);
			continue;
		}
		remember->flushing = true;
		pthread_mutex_unlock(&remember->lock);
		rc = doubt ? rewrite_records(remember) : 0;
		if (!rc)
			rc = fdatasync(remember->fd);
		pthread_mutex_lock(&remember->lock);
		assert(remember->flushing && remember->flushed <= upto);
		remember->doubt = rc != 0;
		remember->flushing = false;
		if (!rc)
			remember->flushed = upto;
		pthread_cond_broadcast(&remember->turn);
	}
	return rc;
}

int fsd_remember_add(struct fsd_remember *remember, const struct sockaddr_storage *peer,
		     const struct sockaddr_storage *local, bool durable)
{
	struct record record;
	size_t at;
	int rc;

	if (!remember || !to_record(peer, local, &record))
		return -1;
	pthread_mutex_lock(&remember->lock);
	for (size_t i = 0; i < remember->max && remember->used[remember->next]; i++)
		remember->next = (remember->next + 1) % remember->max;
	at = remember->next;
	remember->next = (at + 1) % remember->max;
	remember->used[at] = true;
	rc = write_record(remember, at, &record);
	remember->written++;
	if (!rc && durable)
		rc = flush_records(remember);
	if (rc)
		remember->used[at] = false;
	pthread_mutex_unlock(&remember->lock);
	return rc ? -1 : (int)at;
}

void fsd_remember_drop(struct fsd_remember *remember, int number)
{
	static const struct record none;

	if (!remember || number < 0)
		return;
	assert((size_t)number < remember->max);
	pthread_mutex_lock(&remember->lock);
	/* A record that stays in the file costs a call at the next start. */
	if (write_record(remember, (size_t)number, &none) == 0)
		remember->used[number] = false;
	pthread_mutex_unlock(&remember->lock);
}
