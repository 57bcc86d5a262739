/* SPDX-License-Identifier: BSD-2-Clause */
/* Trace files, and the thread that writes one when a call died. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "engine/trace/ring.h"

#define TAIL	   (100 * RXW_MS) /* later packets of a call that died are recorded as well */
#define FILES	   16u
#define FILES_MOST 1000u
#define PAUSE_MS   10000u
#define NAME_ROOM  64
#define TRIES	   8

bool rxw_trace_dead(const struct rxw_trace_event *seen)
{
	if (seen->kind != RXW_TRACE_CALL_END || seen->c != RXW_ORIGIN_LOCAL)
		return false;
	switch ((int32_t)seen->a) {
	case RXW_CALL_DEAD:
	case RXW_CALL_TIMEOUT:
	case RXW_PROTOCOL_ERROR:
	case RXW_CALL_MSGSIZE:
	case RXW_NETWORK_RESET:
		return true;
	default:
		return false;
	}
}

int rxw_trace_put(struct rxw_trace *t, int fd)
{
	struct rxw_snapshot snapshot;
	size_t room;
	uint8_t *copy = rxw_trace_copy(t, &snapshot, &room);
	int rc;

	if (!copy)
		return -RXW_ENOMEM;
	snapshot.wall = wall_ns() - (int64_t)monotonic_ns();
	rc = rxw_tracefile_write(fd, &snapshot);
	rxw_trace_unmap(copy, room);
	return rc;
}

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

int rxw_trace_put_at(struct rxw_trace *t, int dir, const char *name)
{
	char room[NAME_ROOM];
	int fd = create_temporary(dir, room, sizeof(room)), rc, saved;

	if (fd < 0)
		return -RXW_ESYS;
	rc = rxw_trace_put(t, fd);
	saved = errno;
	if (close(fd) < 0 && !rc) {
		rc = -RXW_ESYS;
		saved = errno;
	}
	if (!rc && renameat(dir, room, dir, name) < 0) {
		rc = -RXW_ESYS;
		saved = errno;
	}
	if (rc)
		(void)unlinkat(dir, room, 0);
	errno = saved;
	return rc;
}

/* Chooses a free name, or that of the oldest file. */
static void choose_name(const struct rxw_trace *t, char *name, size_t size)
{
	struct timespec oldest = {0};
	unsigned port = rxw_addr_port(&t->bound);

	for (unsigned i = 0; i < t->files; i++) {
		char other[NAME_ROOM];
		struct stat st;

		snprintf(other, sizeof(other), "rxwire-%u-dead-%u.pcapng", port, i);
		if (fstatat(t->dir, other, &st, AT_SYMLINK_NOFOLLOW) < 0) {
			snprintf(name, size, "%s", other);
			return;
		}
		if (i &&
		    (st.st_mtim.tv_sec > oldest.tv_sec ||
		     (st.st_mtim.tv_sec == oldest.tv_sec && st.st_mtim.tv_nsec >= oldest.tv_nsec)))
			continue;
		oldest = st.st_mtim;
		snprintf(name, size, "%s", other);
	}
}

static void write_one(struct rxw_trace *t)
{
	char name[NAME_ROOM];
	int rc;

	choose_name(t, name, sizeof(name));
	rc = rxw_trace_put_at(t, t->dir, name);
	if (rc)
		rxw_log(t->ep->engine, RXW_LOG_WARNING,
			"cannot write the trace of a call that died: %s: %s", name,
			rc == -RXW_ESYS ? strerror(errno) : rxw_strerror(rc));
	else
		rxw_log(t->ep->engine, RXW_LOG_INFO,
			"the trace of a call that died was written: %s", name);
	pthread_mutex_lock(&t->lock);
	if (rc)
		t->failed++;
	else
		t->dead_files++;
	pthread_mutex_unlock(&t->lock);
}

/* Trace's lock held: waits for `ns`, or until the thread is to end. */
static void pause_for(struct rxw_trace *t, uint64_t ns)
{
	uint64_t until = rxw_now() + ns;

	while (!t->quit && rxw_now() < until)
		rxw_cond_wait_until(&t->died, &t->lock, until);
}

static void *run(void *arg)
{
	struct rxw_trace *t = arg;
	uint64_t seen_deaths;

	pthread_mutex_lock(&t->lock);
	seen_deaths = t->told;
	for (;;) {
		while (t->deaths == seen_deaths && !t->quit)
			pthread_cond_wait(&t->died, &t->lock);
		if (t->deaths == seen_deaths)
			break;
		pause_for(t, TAIL);
		seen_deaths = t->deaths;
		pthread_mutex_unlock(&t->lock);
		write_one(t);
		pthread_mutex_lock(&t->lock);
		pause_for(t, t->pause);
	}
	pthread_mutex_unlock(&t->lock);
	return NULL;
}

/* Refuses directories that other users may write to: they could choose what our files replace. */
static int open_dir(const char *path)
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

int rxw_trace_dead_start(struct rxw_trace *t, const struct rxw_trace_options *options)
{
	int rc;

	if (!options || !options->dead_dir)
		return 0;
	t->files = options->dead_files ? options->dead_files : FILES;
	t->pause = (options->dead_pause_ms ? options->dead_pause_ms : PAUSE_MS) * RXW_MS;
	if (t->files > FILES_MOST)
		return -RXW_EINVAL;
	t->dir = open_dir(options->dead_dir);
	if (t->dir < 0)
		return -RXW_ESYS;
	t->quit = false;
	t->told = t->deaths;
	rc = rxw_thread_create(&t->thread, t->ep, 0, "rxw-trace", run, t);
	if (rc) {
		close(t->dir);
		t->dir = -1;
		return rc;
	}
	t->threaded = true;
	return 0;
}

void rxw_trace_dead_stop(struct rxw_trace *t)
{
	if (!t->threaded)
		return;
	pthread_mutex_lock(&t->lock);
	t->quit = true;
	pthread_mutex_unlock(&t->lock);
	pthread_cond_signal(&t->died);
	pthread_join(t->thread, NULL);
	close(t->dir);
	t->dir = -1;
	t->threaded = false;
}
