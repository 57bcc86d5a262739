/* SPDX-License-Identifier: BSD-2-Clause */
/* The process: its log, the service manager, the limit on stopping, memory that was freed. */
#include "fileserver/base/base.h"

#include <assert.h>
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/background.h"
#include "program/message.h"

#define TRIM_LEAST ((size_t)64 << 20)

/* -- the log -- */

/* Global, like stderr. `journal` is set before other threads exist. */
static bool journal;
static _Atomic int least_urgent = RXW_LOG_INFO;

/* Lines held back; the lock covers all of this. */
static pthread_mutex_t hold_lock = PTHREAD_MUTEX_INITIALIZER;
static bool holding;
static size_t held_length;
static char held[4096];

void fsd_log_start(void)
{
	journal = tools_stderr_is_journal();
}

void fsd_log_level(enum rxw_log_level level)
{
	atomic_store(&least_urgent, (int)level);
}

void fsd_log(enum rxw_log_level level, const char *format, ...)
{
	char line[1024];
	va_list ap;
	int n;

	if ((int)level > atomic_load(&least_urgent))
		return;
	if (journal)
		n = snprintf(line, sizeof(line), "<%d>", (int)level);
	else
		n = snprintf(line, sizeof(line), "rxfsd: ");
	va_start(ap, format);
	int m = vsnprintf(line + n, sizeof(line) - (size_t)n - 1, format, ap);
	va_end(ap);
	size_t length = (size_t)n + (m > 0 ? (size_t)m : 0);

	if (length > sizeof(line) - 2)
		length = sizeof(line) - 2;
	line[length] = '\0';
	tools_harmless(line); /* file names may contain control characters */
	line[length++] = '\n';
	pthread_mutex_lock(&hold_lock);
	if (!holding) {
		ssize_t done = write(2, line, length);

		(void)done; /* there is no other place to report it */
	} else if (length <= sizeof(held) - held_length) {
		memcpy(held + held_length, line, length);
		held_length += length;
	}
	pthread_mutex_unlock(&hold_lock);
}

bool fsd_log_permits(struct fsd_log_limit *lines, uint64_t now, unsigned most, unsigned *left_out)
{
	uint64_t minute = now / (60 * (uint64_t)NS_PER_S), before = atomic_load(&lines->minute);

	if (minute != before && atomic_compare_exchange_strong(&lines->minute, &before, minute))
		atomic_store(&lines->lines, 0);
	if (atomic_fetch_add(&lines->lines, 1) >= most) {
		atomic_fetch_add(&lines->left_out, 1);
		return false;
	}
	*left_out = atomic_exchange(&lines->left_out, 0);
	return true;
}

void fsd_log_hold(void)
{
	pthread_mutex_lock(&hold_lock);
	holding = true;
	pthread_mutex_unlock(&hold_lock);
}

void fsd_log_release(bool print)
{
	pthread_mutex_lock(&hold_lock);
	assert(held_length <= sizeof(held));
	if (print && held_length) {
		ssize_t done = write(2, held, held_length);

		(void)done;
	}
	holding = false;
	held_length = 0;
	pthread_mutex_unlock(&hold_lock);
}

void fsd_log_library(void *arg, enum rxw_log_level level, const char *line)
{
	(void)arg;
	fsd_log(level, "%s", line);
}

/* -- the limit on stopping -- */

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

/* -- memory that was freed -- */

static void trim_memory(void)
{
#ifdef __GLIBC__
	malloc_trim(0);
#endif
}

bool fsd_trim(struct fsd_trim *trim, size_t used, size_t peak)
{
	if (peak > trim->peak && peak > trim->most)
		trim->most = peak; /* between two looks */
	trim->peak = peak;
	if (used > trim->most)
		trim->most = used;
	assert(trim->most >= used);
	if (trim->most - used < TRIM_LEAST)
		return false;
	trim_memory();
	trim->most = used;
	return true;
}
