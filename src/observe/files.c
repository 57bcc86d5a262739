/* SPDX-License-Identifier: BSD-2-Clause */
/* Trace files, and the thread that writes one when a call has failed. */
#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <rxwire/endpoint.h>
#include <rxwire/error.h>
#include <rxwire/observe.h>

#include "common/cancel.h"
#include "common/clock.h"
#include "common/sigmask.h"
#include "common/sized.h"

#define TAIL_MS	   100 /* later packets of a call that has failed are recorded as well */
#define FILES	   16u
#define FILES_MOST 1000u
#define PAUSE_MS   10000u
#define NAME_ROOM  64
#define TRIES	   8

struct rxw_trace_watch {
	rxw_endpoint *endpoint;
	struct rxw_trace_files files;
	unsigned port; /* of the endpoint */
	int dir;
	pthread_t thread;
	sem_t woken;	      /* a call has failed, or the thread is to end */
	atomic_uint failures; /* calls that have failed since the latest file */
	pthread_mutex_t lock; /* of `quit` */
	pthread_cond_t quits;
	bool quit;
};

/* ---- files ---- */

/* Creates a file with an unpredictable name; `name` gets it. */
static int create_temporary(int dir, char *name, size_t size)
{
	int fd = -1;

	for (unsigned i = 0; i < TRIES; i++) {
		uint64_t random;

		if (getentropy(&random, sizeof(random)) < 0)
			return -1;
		snprintf(name, size, ".rxwire-trace-%016llx", (unsigned long long)random);
		fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
		if (fd >= 0 || errno != EEXIST)
			break;
	}
	return fd;
}

/* Writes a file of that name in an open directory, completely or not at all. */
static int save_trace_at(rxw_endpoint *endpoint, int dir, const char *name)
{
	char room[NAME_ROOM];
	int fd = create_temporary(dir, room, sizeof(room)), rc, why;

	if (fd < 0)
		return -RXW_ESYS;
	rc = rxw_trace_write(endpoint, fd);
	why = errno;
	if (close(fd) < 0 && !rc) {
		rc = -RXW_ESYS;
		why = errno;
	}
	if (!rc && renameat(dir, room, dir, name) < 0) {
		rc = -RXW_ESYS;
		why = errno;
	}
	if (rc)
		(void)unlinkat(dir, room, 0);
	errno = why;
	return rc;
}

/* Opens the parent directory of a path. -1 with errno. */
static int open_parent(const char *path, const char **name)
{
	const char *slash = strrchr(path, '/');
	char *parent;
	int fd, why;

	*name = slash ? slash + 1 : path;
	if (!**name) {
		errno = EISDIR;
		return -1;
	}
	parent = slash ? strndup(path, slash == path ? 1 : (size_t)(slash - path)) : strdup(".");
	if (!parent)
		return -1;
	fd = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	why = errno;
	free(parent);
	errno = why;
	return fd;
}

int rxw_trace_save(rxw_endpoint *endpoint, const char *path)
{
	struct rxw_trace_counts counts = {.size = sizeof(counts)};
	const char *name;
	int dir, rc, why;
	NOT_CANCELLED;

	if (!path)
		return -RXW_EINVAL;
	rc = rxw_trace_count(endpoint, &counts);
	if (rc)
		return rc;
	if (!counts.snap) /* no trace was started */
		return -RXW_ESTATE;
	dir = open_parent(path, &name);
	if (dir < 0)
		return -RXW_ESYS;
	rc = save_trace_at(endpoint, dir, name);
	why = errno;
	close(dir);
	errno = why;
	return rc;
}

/* ---- calls that fail ---- */

/* Whether the second file is older. */
static bool is_older(const struct timespec *first, const struct timespec *second)
{
	return second->tv_sec < first->tv_sec ||
	       (second->tv_sec == first->tv_sec && second->tv_nsec < first->tv_nsec);
}

/* Chooses a free name, or that of the oldest file. */
static void choose_file_name(const struct rxw_trace_watch *w, char name[NAME_ROOM])
{
	struct timespec oldest = {0};

	for (unsigned i = 0; i < w->files.most; i++) {
		char other[NAME_ROOM];
		struct stat st;

		snprintf(other, sizeof(other), "rxwire-%u-dead-%u.pcapng", w->port, i);
		if (fstatat(w->dir, other, &st, AT_SYMLINK_NOFOLLOW) < 0) {
			memcpy(name, other, NAME_ROOM);
			return;
		}
		if (i && !is_older(&oldest, &st.st_mtim))
			continue;
		oldest = st.st_mtim;
		memcpy(name, other, NAME_ROOM);
	}
}

static void write_file_of_call(struct rxw_trace_watch *w)
{
	char name[NAME_ROOM];
	int rc;

	choose_file_name(w, name);
	rc = save_trace_at(w->endpoint, w->dir, name);
	if (w->files.report)
		w->files.report(w->files.arg, name, rc);
}

/* Wait for so long, or until the thread is to end. */
static void pause_unless_quit(struct rxw_trace_watch *w, unsigned ms)
{
	uint64_t until = monotonic_ns() + (uint64_t)ms * NS_PER_MS;

	pthread_mutex_lock(&w->lock);
	while (!w->quit && monotonic_ns() < until)
		monotonic_wait(&w->quits, &w->lock, until);
	pthread_mutex_unlock(&w->lock);
}

static bool is_to_quit(struct rxw_trace_watch *w)
{
	bool quit;

	pthread_mutex_lock(&w->lock);
	quit = w->quit;
	pthread_mutex_unlock(&w->lock);
	return quit;
}

/* One file has all the calls that have failed until it is written. */
static void *write_files(void *arg)
{
	struct rxw_trace_watch *w = arg;

	pthread_setname_np(pthread_self(), "rxw-trace");
	for (;;) {
		while (sem_wait(&w->woken) < 0)
			assert(errno == EINTR);
		if (atomic_load(&w->failures)) {
			pause_unless_quit(w, TAIL_MS);
			atomic_store(&w->failures, 0);
			write_file_of_call(w);
			pause_unless_quit(w, w->files.pause_ms);
		} else if (is_to_quit(w)) {
			return NULL;
		}
	}
}

static void note_failed_call(void *arg)
{
	struct rxw_trace_watch *w = arg;

	atomic_fetch_add(&w->failures, 1);
	sem_post(&w->woken);
}

/* Refuses directories that other users may write to: they could choose what our files replace. */
static int open_own_dir(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct stat st;

	if (fd < 0)
		return -1;
	if (fstat(fd, &st) == 0 && (st.st_uid == geteuid() || st.st_uid == 0) &&
	    !(st.st_mode & (S_IWGRP | S_IWOTH)) && faccessat(fd, ".", W_OK | X_OK, AT_EACCESS) == 0)
		return fd;
	close(fd);
	errno = EPERM;
	return -1;
}

static unsigned read_endpoint_port(rxw_endpoint *endpoint)
{
	struct sockaddr_storage sa;
	socklen_t length = sizeof(sa);

	if (rxw_endpoint_address(endpoint, &sa, &length) < 0)
		return 0;
	return ntohs(sa.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)(void *)&sa)->sin6_port
					      : ((struct sockaddr_in *)(void *)&sa)->sin_port);
}

static void free_trace_watch(struct rxw_trace_watch *w)
{
	if (w->dir >= 0)
		close(w->dir);
	sem_destroy(&w->woken);
	pthread_cond_destroy(&w->quits);
	pthread_mutex_destroy(&w->lock);
	free(w);
}

static struct rxw_trace_watch *create_watch(rxw_endpoint *endpoint,
					    const struct rxw_trace_files *files)
{
	struct rxw_trace_watch *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	if (monotonic_cond_init(&w->quits)) {
		free(w);
		return NULL;
	}
	pthread_mutex_init(&w->lock, NULL);
	sem_init(&w->woken, 0, 0);
	w->endpoint = endpoint;
	w->files = *files;
	w->files.most = files->most ? files->most : FILES;
	w->files.pause_ms = files->pause_ms ? files->pause_ms : PAUSE_MS;
	w->port = read_endpoint_port(endpoint);
	w->dir = -1;
	return w;
}

int rxw_trace_watch_start(rxw_endpoint *endpoint, const struct rxw_trace_options *options,
			  const struct rxw_trace_files *files, rxw_trace_watch **watch)
{
	struct rxw_trace_options o = {.size = sizeof(o)};
	struct rxw_trace_files f = {.size = sizeof(f)};
	struct rxw_trace_watch *w;
	int rc, why;
	NOT_CANCELLED;

	if (!endpoint || !files || !watch || !sized_read(&f, sizeof(f), files) || !f.dir ||
	    f.most > FILES_MOST)
		return -RXW_EINVAL;
	if (options && (!sized_read(&o, sizeof(o), options) || o.failed))
		return -RXW_EINVAL;
	w = create_watch(endpoint, &f);
	if (!w)
		return -RXW_ENOMEM;
	o.failed = note_failed_call;
	o.arg = w;
	w->dir = open_own_dir(f.dir);
	rc = w->dir < 0 ? -RXW_ESYS : rxw_trace_start(endpoint, &o);
	if (rc)
		goto out;
	errno = create_thread_without_signals(&w->thread, write_files, w);
	if (!errno) {
		*watch = w;
		return 0;
	}
	rc = -RXW_ESYS;
	why = errno;
	(void)rxw_trace_stop(endpoint);
	errno = why;
out:
	why = errno;
	free_trace_watch(w);
	errno = why;
	return rc;
}

void rxw_trace_watch_stop(rxw_trace_watch *w)
{
	struct rxw_trace_counts counts = {.size = sizeof(counts)};
	NOT_CANCELLED;

	if (!w)
		return;
	/* In a child of fork() there is no thread, and its locks may be held. */
	if (rxw_trace_count(w->endpoint, &counts) == -RXW_ESTATE) {
		close(w->dir);
		return;
	}
	(void)rxw_trace_stop(w->endpoint);
	pthread_mutex_lock(&w->lock);
	assert(!w->quit);
	w->quit = true;
	pthread_mutex_unlock(&w->lock);
	pthread_cond_signal(&w->quits);
	sem_post(&w->woken);
	pthread_join(w->thread, NULL);
	free_trace_watch(w);
}
