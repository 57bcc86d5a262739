/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * For LD_PRELOAD: the time of day is $CLOCK_SHIFT seconds later, or as many as the 64-bit number in the file $CLOCK_FILE says,
 * which may change. Other clocks go right. A wait until a time of day takes as long as without the shift.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *shared_shift;

/* The file stays mapped: a program may later have no right to open it. */
static void __attribute__((constructor)) map_shift(void)
{
	const char *path = getenv("CLOCK_FILE");
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	void *page;

	if (fd < 0)
		return;
	page = mmap(NULL, sizeof(int64_t), PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
	if (page != MAP_FAILED)
		shared_shift = page;
}

static time_t clock_shift(void)
{
	const char *text = shared_shift ? NULL : getenv("CLOCK_SHIFT");

	return shared_shift ? (time_t)*shared_shift : text ? atol(text) : 0;
}

int clock_gettime(clockid_t clock, struct timespec *ts)
{
	static int (*real)(clockid_t, struct timespec *);
	int result;

	if (!real)
		real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
	result = real(clock, ts);
	if (!result && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
		ts->tv_sec += clock_shift();
	return result;
}

int gettimeofday(struct timeval *tv, void *zone)
{
	struct timespec ts;
	int result = clock_gettime(CLOCK_REALTIME, &ts);

	(void)zone;
	tv->tv_sec = ts.tv_sec;
	tv->tv_usec = (suseconds_t)(ts.tv_nsec / 1000);
	return result;
}

time_t time(time_t *t)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	if (t)
		*t = ts.tv_sec;
	return ts.tv_sec;
}

/* On machines with older versions of it dlsym() gives one of these. */
static void *clock_symbol(const char *name)
{
	void *symbol = dlvsym(RTLD_NEXT, name, "GLIBC_2.3.2");

	return symbol ? symbol : dlsym(RTLD_NEXT, name);
}

/* A time of day: other clocks count from the start of the machine. */
static struct timespec real_time(const struct timespec *until)
{
	struct timespec ts = *until;

	if (ts.tv_sec > 1000000000)
		ts.tv_sec -= clock_shift();
	return ts;
}

int pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex,
			   const struct timespec *until)
{
	static int (*real)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
	struct timespec ts = real_time(until);

	if (!real)
		real = (int (*)(pthread_cond_t *, pthread_mutex_t *,
				const struct timespec *))clock_symbol("pthread_cond_timedwait");
	return real(cond, mutex, &ts);
}
