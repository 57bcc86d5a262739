/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory, numbers of threads, codes that differ between systems, and the log. */
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <rx/rx.h>

#include "../classic.h"

char *osi_alloc(afs_int32 size)
{
	return malloc(size > 0 ? (size_t)size : 1);
}

int osi_free(char *pointer, afs_int32 size)
{
	(void)size;
	free(pointer);
	return 0;
}

void *rxi_Alloc(size_t size)
{
	return calloc(1, size ? size : 1);
}

void rxi_Free(void *pointer, size_t size)
{
	(void)size;
	free(pointer);
}

void osi_Panic(char *format, ...)
{
	va_list args;

	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fflush(stderr);
	abort();
}

static _Thread_local int thread_number;

int rx_SetThreadNum(void)
{
	static atomic_int last;

	return thread_number = atomic_fetch_add(&last, 1) + 1;
}

int rx_GetThreadNum(void)
{
	return thread_number;
}

int hton_syserr_conv(afs_int32 code)
{
	return code == ENOSPC ? VDISKFULL : code == EDQUOT ? VOVERQUOTA : code;
}

int ntoh_syserr_conv(int code)
{
	return code == VDISKFULL ? ENOSPC : code == VOVERQUOTA ? EDQUOT : code;
}

void classic_log(const char *format, ...)
{
	char line[512];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	fprintf(stderr, "rxwire-classic: %s\n", line);
}

#define SETTINGS 32
static struct {
	pthread_mutex_t lock; /* of the rest */
	const char *setting[SETTINGS];
	unsigned count; /* of `setting` */
	unsigned times;
} ignored = {.lock = PTHREAD_MUTEX_INITIALIZER};

void classic_ignored(const char *setting, const char *why)
{
	bool known = false;

	pthread_mutex_lock(&ignored.lock);
	ignored.times++;
	for (unsigned i = 0; i < ignored.count && !known; i++)
		known = !strcmp(ignored.setting[i], setting);
	if (!known && ignored.count < SETTINGS)
		ignored.setting[ignored.count++] = setting;
	pthread_mutex_unlock(&ignored.lock);
	if (!known)
		classic_log("%s has no effect: %s", setting, why);
}

unsigned classic_ignored_count(void)
{
	unsigned times;

	pthread_mutex_lock(&ignored.lock);
	times = ignored.times;
	pthread_mutex_unlock(&ignored.lock);
	return times;
}
