/* SPDX-License-Identifier: BSD-2-Clause */
/* A thread ends the process if stopping takes too long. */
#include <stdlib.h>
#include <unistd.h>

#include "common/background.h"
#include "fileserver/base/base.h"

/* All but `background` is constant. */
struct fsd_limit {
	struct background background;
	uint64_t end; /* monotonic_ns() */
	void (*explain)(void *arg);
	void *arg;
};

static void *end_process_at_limit(void *arg)
{
	struct fsd_limit *limit = arg;
	bool stopped;

	pthread_mutex_lock(&limit->background.lock);
	while (!limit->background.stop && monotonic_ns() < limit->end)
		sleep_in_background(&limit->background, limit->end);
	stopped = limit->background.stop;
	pthread_mutex_unlock(&limit->background.lock);
	if (stopped)
		return NULL;
	limit->explain(limit->arg);
	_exit(EXIT_FAILURE);
}

struct fsd_limit *fsd_limit_start(uint64_t ms, void (*explain)(void *arg), void *arg)
{
	struct fsd_limit *limit = calloc(1, sizeof(*limit));

	if (!limit)
		return NULL;
	limit->explain = explain;
	limit->arg = arg;
	limit->end = monotonic_ns() + ms * NS_PER_MS;
	if (start_background(&limit->background, end_process_at_limit, limit) == 0)
		return limit;
	free(limit);
	return NULL;
}

void fsd_limit_end(struct fsd_limit *limit)
{
	if (!limit)
		return;
	stop_background(&limit->background);
	free(limit);
}
