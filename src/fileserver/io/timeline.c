/* SPDX-License-Identifier: BSD-2-Clause */
/* The time line of reads and sends, as JSON Lines. */
#include "fileserver/io/io.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

/* Large, so that writing it seldom disturbs the disk that is measured. */
#define BUFFER_BYTES ((size_t)1 << 20)

struct fsd_timeline {
	pthread_mutex_t lock; /* keeps lines whole */
	FILE *file;
	_Atomic uint64_t sends;
};

struct fsd_timeline *fsd_timeline_open(const char *path)
{
	struct fsd_timeline *timeline = calloc(1, sizeof(*timeline));

	if (!timeline)
		return NULL;
	timeline->file = fopen(path, "we");
	if (!timeline->file) {
		int saved = errno;

		free(timeline);
		errno = saved;
		return NULL;
	}
	setvbuf(timeline->file, NULL, _IOFBF, BUFFER_BYTES);
	pthread_mutex_init(&timeline->lock, NULL);
	return timeline;
}

uint64_t fsd_timeline_send(struct fsd_timeline *timeline)
{
	return atomic_fetch_add(&timeline->sends, 1) + 1;
}

void fsd_timeline_add(struct fsd_timeline *timeline, const struct fsd_moment *moment)
{
	FILE *file = timeline->file;

	pthread_mutex_lock(&timeline->lock);
	fprintf(file, "{\"send\":%" PRIu64 ",\"what\":\"%s\",\"offset\":%" PRIu64, moment->send,
		moment->what, moment->offset);
	fprintf(file, ",\"bytes\":%" PRIu64, moment->bytes);
	if (moment->posted_ns)
		fprintf(file, ",\"posted_ns\":%" PRIu64, moment->posted_ns);
	if (moment->allowed)
		fprintf(file, ",\"ahead\":%u,\"allowed\":%u", moment->ahead, moment->allowed);
	fprintf(file, ",\"begin_ns\":%" PRIu64 ",\"end_ns\":%" PRIu64 "}\n", moment->begin_ns,
		moment->end_ns);
	pthread_mutex_unlock(&timeline->lock);
}

int fsd_timeline_close(struct fsd_timeline *timeline)
{
	int rc, saved;

	if (!timeline)
		return 0;
	rc = ferror(timeline->file) ? -1 : 0;
	errno = EIO;
	if (fclose(timeline->file))
		rc = -1;
	saved = errno;
	pthread_mutex_destroy(&timeline->lock);
	free(timeline);
	errno = saved;
	return rc;
}
