/* SPDX-License-Identifier: BSD-2-Clause */
/* The file of addresses of clients that may hold promises. */
#include "fileserver/callbacks/callbacks.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "fileserver/volume/volume.h"

/*
 * A record of the file. The first holds the date of the latest start in `address`, most significant
 * byte first. The others are a ring buffer of client addresses.
 */
#define FAMILY_DATE 1

struct record {
	uint8_t family; /* FAMILY_DATE, 4 or 6; other records are ignored */
	uint8_t zero;
	uint8_t port[2]; /* as on the wire */
	uint8_t address[16];
};

struct fsd_remember {
	int fd;
	size_t max;
	uint32_t date;
	pthread_mutex_t lock; /* covers next */
	size_t next;
};

static bool to_record(const struct sockaddr_storage *peer, struct record *record)
{
	const struct sockaddr_in6 *in6 = (const void *)peer;
	const struct sockaddr_in *in = (const void *)peer;

	*record = (struct record){0};
	if (peer->ss_family == AF_INET) {
		record->family = 4;
		memcpy(record->port, &in->sin_port, 2);
		memcpy(record->address, &in->sin_addr, 4);
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

static bool from_record(const struct record *record, struct sockaddr_storage *peer)
{
	struct sockaddr_in6 *in6 = (void *)peer;
	struct sockaddr_in *in = (void *)peer;

	memset(peer, 0, sizeof(*peer));
	if (record->family == 4) {
		in->sin_family = AF_INET;
		memcpy(&in->sin_port, record->port, 2);
		memcpy(&in->sin_addr, record->address, 4);
	} else if (record->family == 6) {
		in6->sin6_family = AF_INET6;
		memcpy(&in6->sin6_port, record->port, 2);
		memcpy(&in6->sin6_addr, record->address, 16);
	}
	return peer->ss_family && (record->port[0] || record->port[1]);
}

static int compare(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct record));
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

/* Read the addresses from the file and remove duplicates; returns their number. */
static size_t load(int fd, struct record *records, size_t max)
{
	ssize_t n = pread(fd, records, max * sizeof(*records), sizeof(*records));
	size_t count = n < 0 ? 0 : (size_t)n / sizeof(*records), kept = 0;
	struct sockaddr_storage peer;

	qsort(records, count, sizeof(*records), compare);
	for (size_t i = 0; i < count; i++)
		if (from_record(&records[i], &peer) &&
		    (!kept || compare(&records[kept - 1], &records[i])))
			records[kept++] = records[i];
	return kept;
}

static int start(struct fsd_remember *remember,
		 void (*each)(void *arg, const struct sockaddr_storage *peer), void *arg)
{
	struct record *head = calloc(1 + remember->max, sizeof(*head)), *records = head + 1;
	struct sockaddr_storage peer;
	size_t count;

	if (!head)
		return -1;
	remember->date = new_date(remember->fd);
	put_date(head, remember->date);
	count = load(remember->fd, records, remember->max);
	for (size_t i = 0; i < count; i++)
		if (from_record(&records[i], &peer))
			each(arg, &peer);
	if (ftruncate(remember->fd, 0) < 0 ||
	    pwrite(remember->fd, head, (1 + count) * sizeof(*head), 0) < 0)
		count = 0; /* the rest will be overwritten */
	remember->next = count % remember->max;
	free(head);
	return 0;
}

struct fsd_remember *fsd_remember_open(const char *path, size_t max,
				       void (*each)(void *arg, const struct sockaddr_storage *peer),
				       void *arg, char *message)
{
	struct fsd_remember *remember = calloc(1, sizeof(*remember));

	if (!remember) {
		snprintf(message, FSD_MESSAGE_MAX, "no memory");
		return NULL;
	}
	remember->max = max;
	remember->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (remember->fd < 0 || start(remember, each, arg) < 0) {
		snprintf(message, FSD_MESSAGE_MAX,
			 "addresses of clients are not kept for the next start: %.300s: %s", path,
			 strerror(errno));
		if (remember->fd >= 0)
			close(remember->fd);
		free(remember);
		return NULL;
	}
	pthread_mutex_init(&remember->lock, NULL);
	return remember;
}

void fsd_remember_close(struct fsd_remember *remember)
{
	if (!remember)
		return;
	close(remember->fd);
	pthread_mutex_destroy(&remember->lock);
	free(remember);
}

uint32_t fsd_remember_date(const struct fsd_remember *remember)
{
	return remember ? remember->date : (uint32_t)time(NULL);
}

void fsd_remember_add(struct fsd_remember *remember, const struct sockaddr_storage *peer)
{
	struct record record;
	size_t at;

	if (!remember || !to_record(peer, &record))
		return;
	pthread_mutex_lock(&remember->lock);
	at = remember->next;
	remember->next = (at + 1) % remember->max;
	pthread_mutex_unlock(&remember->lock);
	if (pwrite(remember->fd, &record, sizeof(record), (off_t)((1 + at) * sizeof(record))) < 0)
		return; /* see the header */
}
