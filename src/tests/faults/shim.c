/* SPDX-License-Identifier: BSD-2-Clause */
/* The functions of the system that the library calls, as the linker's --wrap gives them to us. */
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

#include "shim.h"

/*
 * The plan is made while nobody else runs; its fields are read by all threads afterwards. `armed`
 * is what ends it.
 */
static struct shim_plan plan;
static _Atomic(bool) armed;
static _Atomic(uint64_t) seen[SHIM_KINDS], refused, ahead, began;
static _Atomic(long) threads, descriptors;

static const char *const names[SHIM_KINDS] = {
	[SHIM_MEMORY] = "memory", [SHIM_THREAD] = "pthread_create", [SHIM_SOCKET] = "socket",
	[SHIM_BIND] = "bind",	  [SHIM_NAME] = "getsockname",	    [SHIM_SET] = "setsockopt",
	[SHIM_GET] = "getsockopt", [SHIM_EVENT] = "eventfd",	    [SHIM_RANDOM] = "getrandom",
	[SHIM_SEND] = "send",	  [SHIM_RECV] = "receive",	    [SHIM_POLL] = "poll",
	[SHIM_READ] = "read",	  [SHIM_WRITE] = "write",	    [SHIM_CLOCK] = "clock",
};

const char *shim_name(enum shim_kind kind)
{
	return names[kind];
}

void shim_arm(const struct shim_plan *p)
{
	atomic_store(&armed, false);
	plan = *p;
	for (unsigned i = 0; i < SHIM_KINDS; i++)
		atomic_store(&seen[i], 0);
	atomic_store(&refused, 0);
	atomic_store(&began, 0);
	atomic_store(&armed, true);
}

void shim_disarm(void)
{
	atomic_store(&armed, false);
}

void shim_set_clock_back(void)
{
	atomic_store(&ahead, 0);
}

uint64_t shim_seen(enum shim_kind kind)
{
	return atomic_load(&seen[kind]);
}

uint64_t shim_refused(void)
{
	return atomic_load(&refused);
}

#define NS 1000000000ull

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

/* One more of its kind: is it to fail? */
static bool fails(enum shim_kind kind)
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

/* The same for a system call: errno is set. */
static bool refuses(enum shim_kind kind)
{
	if (!fails(kind))
		return false;
	errno = plan.error;
	return true;
}

/* --- memory: what was given is remembered, since others' memory is freed by the same names --- */

#define ROOM (1u << 17) /* blocks; a power of two, and far more than a scenario holds */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Open addressing; lock. The addresses' complements: what is lost must look lost to sanitizers. */
static uintptr_t block[ROOM];
static long blocks; /* lock */

/* A remembered block, or where it would stand. */
static unsigned find(uintptr_t id)
{
	unsigned i = (unsigned)((id >> 4) * 0x9e3779b97f4a7c15ull >> 40) & (ROOM - 1);

	while (block[i] && block[i] != id)
		i = (i + 1) & (ROOM - 1);
	return i;
}

static void *remember(void *p)
{
	if (!p)
		return NULL;
	pthread_mutex_lock(&lock);
	if (++blocks > ROOM / 2)
		abort();
	block[find(~(uintptr_t)p)] = ~(uintptr_t)p;
	pthread_mutex_unlock(&lock);
	return p;
}

static void forget(void *p)
{
	unsigned i, next;

	if (!p)
		return;
	pthread_mutex_lock(&lock);
	i = find(~(uintptr_t)p);
	if (block[i]) {
		blocks--;
		block[i] = 0;
		/* Those that stand behind it for want of their own place are put again. */
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

#define WRAP(type, name, ...)             \
	type __real_##name(__VA_ARGS__);  \
	type __wrap_##name(__VA_ARGS__);  \
	type __wrap_##name(__VA_ARGS__)

WRAP(void, free, void *p)
{
	forget(p);
	__real_free(p);
}

WRAP(void *, malloc, size_t size)
{
	return fails(SHIM_MEMORY) ? NULL : remember(__real_malloc(size));
}

WRAP(void *, calloc, size_t count, size_t size)
{
	return fails(SHIM_MEMORY) ? NULL : remember(__real_calloc(count, size));
}

WRAP(void *, realloc, void *p, size_t size)
{
	void *q;

	if (fails(SHIM_MEMORY))
		return NULL;
	/* Forgotten first: another thread may be given its place. */
	forget(p);
	q = __real_realloc(p, size);
	remember(q ? q : p);
	return q;
}

WRAP(void *, aligned_alloc, size_t alignment, size_t size)
{
	return fails(SHIM_MEMORY) ? NULL : remember(__real_aligned_alloc(alignment, size));
}

WRAP(int, posix_memalign, void **p, size_t alignment, size_t size)
{
	int r = fails(SHIM_MEMORY) ? ENOMEM : __real_posix_memalign(p, alignment, size);

	if (!r)
		remember(*p);
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

	if (fails(SHIM_THREAD))
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

static int opened(int fd)
{
	if (fd >= 0)
		atomic_fetch_add(&descriptors, 1);
	return fd;
}

WRAP(int, socket, int domain, int type, int protocol)
{
	return refuses(SHIM_SOCKET) ? -1 : opened(__real_socket(domain, type, protocol));
}

WRAP(int, eventfd, unsigned value, int flags)
{
	return refuses(SHIM_EVENT) ? -1 : opened(__real_eventfd(value, flags));
}

WRAP(int, close, int fd)
{
	int r = __real_close(fd);

	if (!r)
		atomic_fetch_sub(&descriptors, 1);
	return r;
}

WRAP(int, bind, int fd, const struct sockaddr *address, socklen_t length)
{
	return refuses(SHIM_BIND) ? -1 : __real_bind(fd, address, length);
}

WRAP(int, getsockname, int fd, struct sockaddr *address, socklen_t *length)
{
	return refuses(SHIM_NAME) ? -1 : __real_getsockname(fd, address, length);
}

WRAP(int, setsockopt, int fd, int level, int name, const void *value, socklen_t length)
{
	return refuses(SHIM_SET) ? -1 : __real_setsockopt(fd, level, name, value, length);
}

WRAP(int, getsockopt, int fd, int level, int name, void *value, socklen_t *length)
{
	return refuses(SHIM_GET) ? -1 : __real_getsockopt(fd, level, name, value, length);
}

/* --- transfers --- */

WRAP(ssize_t, sendmsg, int fd, const struct msghdr *m, int flags)
{
	return refuses(SHIM_SEND) ? -1 : __real_sendmsg(fd, m, flags);
}

WRAP(int, sendmmsg, int fd, struct mmsghdr *m, unsigned count, int flags)
{
	return refuses(SHIM_SEND) ? -1 : __real_sendmmsg(fd, m, count, flags);
}

WRAP(ssize_t, recvmsg, int fd, struct msghdr *m, int flags)
{
	return refuses(SHIM_RECV) ? -1 : __real_recvmsg(fd, m, flags);
}

WRAP(int, recvmmsg, int fd, struct mmsghdr *m, unsigned count, int flags, struct timespec *t)
{
	return refuses(SHIM_RECV) ? -1 : __real_recvmmsg(fd, m, count, flags, t);
}

WRAP(int, poll, struct pollfd *p, nfds_t count, int timeout)
{
	return refuses(SHIM_POLL) ? -1 : __real_poll(p, count, timeout);
}

WRAP(ssize_t, read, int fd, void *data, size_t size)
{
	return refuses(SHIM_READ) ? -1 : __real_read(fd, data, size);
}

WRAP(ssize_t, write, int fd, const void *data, size_t size)
{
	return refuses(SHIM_WRITE) ? -1 : __real_write(fd, data, size);
}

WRAP(ssize_t, getrandom, void *data, size_t size, unsigned flags)
{
	return refuses(SHIM_RANDOM) ? -1 : __real_getrandom(data, size, flags);
}

/* --- the clock, and who waits by it --- */

static struct timespec shifted(struct timespec t, uint64_t forward)
{
	uint64_t ns = (uint64_t)t.tv_sec * NS + (uint64_t)t.tv_nsec + forward;

	return (struct timespec){.tv_sec = (time_t)(ns / NS), .tv_nsec = (long)(ns % NS)};
}

WRAP(int, clock_gettime, clockid_t clock, struct timespec *t)
{
	int r = __real_clock_gettime(clock, t);

	if (clock != CLOCK_MONOTONIC)
		return r;
	if (fails(SHIM_CLOCK))
		atomic_store(&ahead, plan.jump);
	*t = shifted(*t, atomic_load(&ahead));
	return r;
}

/* The kernel's clock has not jumped: what the library means is so much earlier on it. */
WRAP(int, pthread_cond_timedwait, pthread_cond_t *c, pthread_mutex_t *m, const struct timespec *at)
{
	uint64_t forward = atomic_load(&ahead);
	uint64_t ns = (uint64_t)at->tv_sec * NS + (uint64_t)at->tv_nsec;
	struct timespec t = {0, 0};

	if (ns > forward)
		t = shifted(t, ns - forward);
	return __real_pthread_cond_timedwait(c, m, &t);
}

#define SLICE 10000000u /* ns */

int __real_ppoll(struct pollfd *p, nfds_t count, const struct timespec *t, const sigset_t *set);

/* The kernel's clock would have jumped, and ended this wait: it is made of short ones. */
static int wait_by_clock(struct pollfd *p, nfds_t count, const struct timespec *t)
{
	uint64_t left = (uint64_t)t->tv_sec * NS + (uint64_t)t->tv_nsec, ns;
	uint64_t before = atomic_load(&ahead);
	int r = 0;

	do {
		ns = left < SLICE ? left : SLICE;
		r = __real_ppoll(p, count, &(struct timespec){.tv_nsec = (long)ns}, NULL);
		left -= ns;
	} while (!r && left && atomic_load(&ahead) == before);
	return r;
}

WRAP(int, ppoll, struct pollfd *p, nfds_t count, const struct timespec *t, const sigset_t *set)
{
	if (refuses(SHIM_POLL))
		return -1;
	return plan.kind == SHIM_CLOCK ? wait_by_clock(p, count, t)
				       : __real_ppoll(p, count, t, set);
}
