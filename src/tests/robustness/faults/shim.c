/* SPDX-License-Identifier: BSD-2-Clause */
/* Wrappers (the linker's --wrap) of the system functions that the library calls. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "shim_private.h"

/* The plan is written while no other thread runs and then read by all threads. `armed` ends it. */
static struct shim_plan plan;
/* number of the plan, for threads that wait while it is written */
static _Atomic(int) kind_of_plan;
static _Atomic(bool) armed;
static _Atomic(uint64_t) seen[SHIM_KINDS], refused, began;
/* ns by which CLOCK_MONOTONIC and CLOCK_REALTIME are ahead of the system's */
static _Atomic(int64_t) ahead, date;
static _Atomic(long) threads, descriptors;

#define NS 1000000000ull
/* Where a run's clock starts: late enough to be set back on a machine that has just booted. */
#define AHEAD ((int64_t)(36000 * NS))

static const char *const names[SHIM_KINDS] = {
	[SHIM_MEMORY] = "memory", [SHIM_THREAD] = "pthread_create", [SHIM_SOCKET] = "socket",
	[SHIM_BIND] = "bind",	  [SHIM_NAME] = "getsockname",	    [SHIM_SET] = "setsockopt",
	[SHIM_GET] = "getsockopt", [SHIM_EVENT] = "eventfd",	    [SHIM_RANDOM] = "getrandom",
	[SHIM_SEND] = "send",	  [SHIM_RECV] = "receive",	    [SHIM_POLL] = "poll",
	[SHIM_READ] = "read",	  [SHIM_WRITE] = "write",	    [SHIM_CLOCK] = "clock",
	[SHIM_DATE] = "date",	  [SHIM_OPEN] = "open",		    [SHIM_STAT] = "stat",
	[SHIM_FILE] = "pread",	  [SHIM_NOTIFY] = "inotify",
};

const char *shim_name(enum shim_kind kind)
{
	return names[kind];
}

void shim_arm(const struct shim_plan *p)
{
	atomic_store(&armed, false);
	plan = *p;
	atomic_store(&kind_of_plan, (int)plan.kind);
	for (unsigned i = 0; i < SHIM_KINDS; i++)
		atomic_store(&seen[i], 0);
	atomic_store(&refused, 0);
	atomic_store(&began, 0);
	if (plan.kind == SHIM_CLOCK)
		atomic_store(&ahead, AHEAD);
	atomic_store(&armed, true);
}

void shim_disarm(void)
{
	atomic_store(&armed, false);
}

void shim_set_clock_back(void)
{
	atomic_store(&ahead, 0);
	atomic_store(&date, 0);
}

uint64_t shim_seen(enum shim_kind kind)
{
	return atomic_load(&seen[kind]);
}

uint64_t shim_refused(void)
{
	return atomic_load(&refused);
}

int __real_clock_gettime(clockid_t clock, struct timespec *t);

/* Since the first failure. */
static uint64_t lasted(void)
{
	uint64_t first = 0, now;
	struct timespec t;

	__real_clock_gettime(CLOCK_MONOTONIC, &t);
	now = (uint64_t)t.tv_sec * NS + (uint64_t)t.tv_nsec;
	return atomic_compare_exchange_strong(&began, &first, now) || now < first ? 0 : now - first;
}

bool shim_fails(enum shim_kind kind)
{
	uint64_t n;

	if (!atomic_load(&armed))
		return false;
	n = atomic_fetch_add(&seen[kind], 1) + 1;
	if (kind != plan.kind || !plan.at || n < plan.at || n - plan.at >= plan.many)
		return false;
	if (plan.lasts && lasted() > plan.lasts)
		return false;
	atomic_fetch_add(&refused, 1);
	return true;
}

bool shim_refuses(enum shim_kind kind)
{
	if (!shim_fails(kind))
		return false;
	errno = plan.error;
	return true;
}

/*
 * --- memory: allocated blocks are recorded, since blocks of other owners are freed by the same
 * names ---
 */

#define ROOM (1u << 17) /* blocks; a power of two, and far more than a scenario holds */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Open addressing; lock. Stores complements, so that leak sanitizers do not see the pointers. */
static uintptr_t block[ROOM];
static long blocks; /* lock */

/* A recorded block, or its slot. */
static unsigned find(uintptr_t id)
{
	unsigned i = (unsigned)((id >> 4) * 0x9e3779b97f4a7c15ull >> 40) & (ROOM - 1);

	while (block[i] && block[i] != id)
		i = (i + 1) & (ROOM - 1);
	return i;
}

void *shim_remember(void *p)
{
	if (!p)
		return NULL;
	pthread_mutex_lock(&lock);
	if (++blocks > (long)(ROOM / 2))
		abort();
	block[find(~(uintptr_t)p)] = ~(uintptr_t)p;
	pthread_mutex_unlock(&lock);
	return p;
}

void shim_forget(void *p)
{
	unsigned i, next;

	if (!p)
		return;
	pthread_mutex_lock(&lock);
	i = find(~(uintptr_t)p);
	if (block[i]) {
		blocks--;
		block[i] = 0;
		/* Blocks after it that were displaced are inserted again. */
		for (next = (i + 1) & (ROOM - 1); block[next]; next = (next + 1) & (ROOM - 1)) {
			uintptr_t moved = block[next];

			block[next] = 0;
			block[find(moved)] = moved;
		}
	}
	pthread_mutex_unlock(&lock);
}

struct shim_held shim_held(void)
{
	struct shim_held h = {.descriptors = atomic_load(&descriptors),
			      .threads = atomic_load(&threads)};

	pthread_mutex_lock(&lock);
	h.memory = blocks;
	pthread_mutex_unlock(&lock);
	return h;
}

WRAP(void, free, void *p)
{
	shim_forget(p);
	__real_free(p);
}

WRAP(void *, malloc, size_t size)
{
	return shim_fails(SHIM_MEMORY) ? NULL : shim_remember(__real_malloc(size));
}

WRAP(void *, calloc, size_t count, size_t size)
{
	return shim_fails(SHIM_MEMORY) ? NULL : shim_remember(__real_calloc(count, size));
}

WRAP(void *, realloc, void *p, size_t size)
{
	void *q;

	if (shim_fails(SHIM_MEMORY))
		return NULL;
	/* Removed first, because another thread may get the same address. */
	shim_forget(p);
	q = __real_realloc(p, size);
	shim_remember(q ? q : p);
	return q;
}

WRAP(void *, aligned_alloc, size_t alignment, size_t size)
{
	return shim_fails(SHIM_MEMORY) ? NULL
				       : shim_remember(__real_aligned_alloc(alignment, size));
}

WRAP(int, posix_memalign, void **p, size_t alignment, size_t size)
{
	int r = shim_fails(SHIM_MEMORY) ? ENOMEM : __real_posix_memalign(p, alignment, size);

	if (!r)
		shim_remember(*p);
	return r;
}

/* --- threads --- */

struct start {
	void *(*run)(void *);
	void *arg;
};

static void *run_counted(void *arg)
{
	struct start s = *(struct start *)arg;
	void *result;

	__real_free(arg);
	result = s.run(s.arg);
	atomic_fetch_sub(&threads, 1);
	return result;
}

WRAP(int, pthread_create, pthread_t *t, const pthread_attr_t *attr, void *(*run)(void *), void *arg)
{
	struct start *s;
	int r;

	if (shim_fails(SHIM_THREAD))
		return EAGAIN;
	s = __real_malloc(sizeof(*s));
	if (!s)
		abort();
	*s = (struct start){run, arg};
	atomic_fetch_add(&threads, 1);
	r = __real_pthread_create(t, attr, run_counted, s);
	if (r) {
		atomic_fetch_sub(&threads, 1);
		__real_free(s);
	}
	return r;
}

/* --- descriptors --- */

int shim_opened(int fd)
{
	if (fd >= 0)
		atomic_fetch_add(&descriptors, 1);
	return fd;
}

int shim_closed(int r)
{
	if (!r)
		atomic_fetch_sub(&descriptors, 1);
	return r;
}

WRAP(int, socket, int domain, int type, int protocol)
{
	return shim_refuses(SHIM_SOCKET) ? -1 : shim_opened(__real_socket(domain, type, protocol));
}

WRAP(int, eventfd, unsigned value, int flags)
{
	return shim_refuses(SHIM_EVENT) ? -1 : shim_opened(__real_eventfd(value, flags));
}

WRAP(int, close, int fd)
{
	return shim_closed(__real_close(fd));
}

WRAP(int, bind, int fd, const struct sockaddr *address, socklen_t length)
{
	return shim_refuses(SHIM_BIND) ? -1 : __real_bind(fd, address, length);
}

WRAP(int, getsockname, int fd, struct sockaddr *address, socklen_t *length)
{
	return shim_refuses(SHIM_NAME) ? -1 : __real_getsockname(fd, address, length);
}

WRAP(int, setsockopt, int fd, int level, int name, const void *value, socklen_t length)
{
	return shim_refuses(SHIM_SET) ? -1 : __real_setsockopt(fd, level, name, value, length);
}

WRAP(int, getsockopt, int fd, int level, int name, void *value, socklen_t *length)
{
	return shim_refuses(SHIM_GET) ? -1 : __real_getsockopt(fd, level, name, value, length);
}

/* --- transfers --- */

WRAP(ssize_t, sendmsg, int fd, const struct msghdr *m, int flags)
{
	return shim_refuses(SHIM_SEND) ? -1 : __real_sendmsg(fd, m, flags);
}

WRAP(int, sendmmsg, int fd, struct mmsghdr *m, unsigned count, int flags)
{
	return shim_refuses(SHIM_SEND) ? -1 : __real_sendmmsg(fd, m, count, flags);
}

WRAP(ssize_t, recvmsg, int fd, struct msghdr *m, int flags)
{
	return shim_refuses(SHIM_RECV) ? -1 : __real_recvmsg(fd, m, flags);
}

WRAP(int, recvmmsg, int fd, struct mmsghdr *m, unsigned count, int flags, struct timespec *t)
{
	return shim_refuses(SHIM_RECV) ? -1 : __real_recvmmsg(fd, m, count, flags, t);
}

WRAP(int, poll, struct pollfd *p, nfds_t count, int timeout)
{
	return shim_refuses(SHIM_POLL) ? -1 : __real_poll(p, count, timeout);
}

WRAP(ssize_t, read, int fd, void *data, size_t size)
{
	return shim_refuses(SHIM_READ) ? -1 : __real_read(fd, data, size);
}

WRAP(ssize_t, write, int fd, const void *data, size_t size)
{
	return shim_refuses(SHIM_WRITE) ? -1 : __real_write(fd, data, size);
}

WRAP(ssize_t, getrandom, void *data, size_t size, unsigned flags)
{
	return shim_refuses(SHIM_RANDOM) ? -1 : __real_getrandom(data, size, flags);
}

/* --- the clocks, and timed waits --- */

static struct timespec shifted(struct timespec t, int64_t by)
{
	int64_t ns = (int64_t)t.tv_sec * (int64_t)NS + t.tv_nsec + by;

	if (ns < 0)
		ns = 0;
	return (struct timespec){.tv_sec = ns / (int64_t)NS, .tv_nsec = ns % (int64_t)NS};
}

WRAP(int, clock_gettime, clockid_t clock, struct timespec *t)
{
	int r = __real_clock_gettime(clock, t);

	switch (clock) {
	case CLOCK_MONOTONIC:
	case CLOCK_MONOTONIC_COARSE:
		if (shim_fails(SHIM_CLOCK))
			atomic_store(&ahead, AHEAD + plan.jump);
		*t = shifted(*t, atomic_load(&ahead));
		break;
	case CLOCK_REALTIME:
	case CLOCK_REALTIME_COARSE:
		if (shim_fails(SHIM_DATE))
			atomic_store(&date, plan.jump);
		*t = shifted(*t, atomic_load(&date));
		break;
	default:
		break;
	}
	return r;
}

WRAP(time_t, time, time_t *at)
{
	struct timespec t;

	__wrap_clock_gettime(CLOCK_REALTIME, &t);
	if (at)
		*at = t.tv_sec;
	return t.tv_sec;
}

/* The kernel's clock has not jumped: converts the library's time to the kernel's. */
WRAP(int, pthread_cond_timedwait, pthread_cond_t *c, pthread_mutex_t *m, const struct timespec *at)
{
	struct timespec t = shifted(*at, -atomic_load(&ahead));

	return __real_pthread_cond_timedwait(c, m, &t);
}

#define SLICE 10000000u /* ns */

int __real_ppoll(struct pollfd *p, nfds_t count, const struct timespec *t, const sigset_t *set);

/* The kernel's clock would have jumped and ended this wait, so wait in short steps. */
static int wait_by_clock(struct pollfd *p, nfds_t count, const struct timespec *t)
{
	uint64_t left = (uint64_t)t->tv_sec * NS + (uint64_t)t->tv_nsec, ns;
	int64_t before = atomic_load(&ahead);
	int r = 0;

	do {
		ns = left < SLICE ? left : SLICE;
		r = __real_ppoll(p, count, &(struct timespec){.tv_nsec = (long)ns}, NULL);
		left -= ns;
	} while (!r && left && atomic_load(&ahead) <= before);
	return r;
}

WRAP(int, ppoll, struct pollfd *p, nfds_t count, const struct timespec *t, const sigset_t *set)
{
	if (shim_refuses(SHIM_POLL))
		return -1;
	return atomic_load(&kind_of_plan) == SHIM_CLOCK && t ? wait_by_clock(p, count, t)
							     : __real_ppoll(p, count, t, set);
}
