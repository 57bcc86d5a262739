/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections for reading. */
#include "volume/store/db/readers.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

/* `lock` covers the rest. */
struct readers {
	struct db_options options;
	pthread_mutex_t lock;
	pthread_cond_t freed;
	unsigned idle, unopened;
	struct db *db[]; /* those that are idle */
};

int readers_create(const struct db_options *options, unsigned count, struct readers **out)
{
	struct readers *readers = calloc(1, sizeof(*readers) + count * sizeof(readers->db[0]));

	if (!readers)
		return -ENOMEM;
	readers->options = *options;
	readers->unopened = count;
	pthread_mutex_init(&readers->lock, NULL);
	pthread_cond_init(&readers->freed, NULL);
	*out = readers;
	return 0;
}

void readers_destroy(struct readers *readers)
{
	if (!readers)
		return;
	while (readers->idle)
		db_close(readers->db[--readers->idle]);
	pthread_mutex_destroy(&readers->lock);
	pthread_cond_destroy(&readers->freed);
	free(readers);
}

static int open_connection(struct readers *readers, struct db **db)
{
	int result = db_open(&readers->options, db);

	if (result) {
		pthread_mutex_lock(&readers->lock);
		readers->unopened++;
		pthread_cond_signal(&readers->freed);
		pthread_mutex_unlock(&readers->lock);
	}
	return result;
}

int readers_get(struct readers *readers, struct db **db)
{
	pthread_mutex_lock(&readers->lock);
	while (!readers->idle && !readers->unopened)
		pthread_cond_wait(&readers->freed, &readers->lock);
	*db = readers->idle ? readers->db[--readers->idle] : NULL;
	if (!*db)
		readers->unopened--;
	pthread_mutex_unlock(&readers->lock);
	return *db ? 0 : open_connection(readers, db);
}

void readers_put(struct readers *readers, struct db *db)
{
	pthread_mutex_lock(&readers->lock);
	readers->db[readers->idle++] = db;
	pthread_cond_signal(&readers->freed);
	pthread_mutex_unlock(&readers->lock);
}
