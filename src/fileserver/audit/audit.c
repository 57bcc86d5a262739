/* SPDX-License-Identifier: BSD-2-Clause */
/* The audit log: a ring of records for each calling thread, and one thread that writes them. */
#include "fileserver/audit/audit.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fileserver/audit/line.h"
#include "fileserver/base/base.h"

#define RING	  64   /* records of a thread; a power of two */
#define RINGS_MAX 1024 /* threads with a ring of their own; further ones lose their records */
#define BATCH	  (64 << 10)
#define WAIT_US	  1000 /* pause of a call that waits for room */

/*
 * Records of one thread at a time: it alone writes `head`, the writer alone `tail`. A ring outlives
 * its thread, and the next thread without one takes it.
 */
struct ring {
	struct ring *next; /* constant once it is in the list */
	_Atomic bool owned;
	_Atomic uint32_t head, tail;
	struct audit_entry entries[RING];
};

struct fsd_audit {
	char *path;
	bool strict;
	int fd; /* of the writer; -1: the file cannot be opened */
	pthread_t thread;
	pthread_key_t key;	      /* the ring of a thread */
	_Atomic(struct ring *) rings; /* only added to, with `lock` */
	pthread_mutex_t lock;	      /* covers adding a ring, and rings_made */
	unsigned rings_made;
	sem_t wake;
	_Atomic bool sleeping, stop, reopen;
	_Atomic bool released; /* no call waits while the file is `broken` */
	_Atomic bool broken;   /* the last write has failed */
	_Atomic uint64_t written, lost, waits;
	bool complained; /* of the writer: the log has said that lines are missing */
	bool torn;	 /* of the writer: the file ends with a part of a line */
	size_t used;	 /* of `batch` */
	char batch[BATCH];
};

/* -- calling threads -- */

/* When a thread ends. */
static void release_ring(void *ring)
{
	atomic_store_explicit(&((struct ring *)ring)->owned, false, memory_order_release);
}

static bool take(struct ring *ring)
{
	bool owned = false;

	return atomic_compare_exchange_strong(&ring->owned, &owned, true);
}

static struct ring *make_ring(struct fsd_audit *audit)
{
	struct ring *ring = NULL;

	pthread_mutex_lock(&audit->lock);
	if (audit->rings_made < RINGS_MAX)
		ring = calloc(1, sizeof(*ring));
	if (ring) {
		audit->rings_made++;
		atomic_store(&ring->owned, true);
		ring->next = atomic_load(&audit->rings);
		atomic_store_explicit(&audit->rings, ring, memory_order_release);
	}
	pthread_mutex_unlock(&audit->lock);
	return ring;
}

/* The ring of this thread. NULL: there is no memory, or there are too many threads. */
static struct ring *own_ring(struct fsd_audit *audit)
{
	struct ring *ring = pthread_getspecific(audit->key);

	if (ring)
		return ring;
	for (ring = atomic_load_explicit(&audit->rings, memory_order_acquire); ring;
	     ring = ring->next)
		if (!atomic_load_explicit(&ring->owned, memory_order_relaxed) && take(ring))
			break;
	if (!ring)
		ring = make_ring(audit);
	if (ring && pthread_setspecific(audit->key, ring)) {
		release_ring(ring);
		ring = NULL;
	}
	return ring;
}

static bool is_full(const struct ring *ring)
{
	return atomic_load_explicit(&ring->head, memory_order_relaxed) -
		       atomic_load_explicit(&ring->tail, memory_order_acquire) ==
	       RING;
}

static void wake(struct fsd_audit *audit)
{
	if (atomic_exchange(&audit->sleeping, false))
		sem_post(&audit->wake);
}

/* False: there is no room, and the call does not wait for it. */
static bool have_room(struct fsd_audit *audit, struct ring *ring)
{
	if (!is_full(ring))
		return true;
	if (!audit->strict)
		return false;
	atomic_fetch_add(&audit->waits, 1);
	while (is_full(ring)) {
		if (audit->released && audit->broken)
			return false;
		wake(audit);
		usleep(WAIT_US);
	}
	return true;
}

void fsd_audit_add(struct fsd_audit *audit, const struct fsd_audit_record *record)
{
	struct ring *ring = audit ? own_ring(audit) : NULL;
	uint32_t head;

	if (!audit)
		return;
	if (!ring || !have_room(audit, ring)) {
		atomic_fetch_add_explicit(&audit->lost, 1, memory_order_relaxed);
		return;
	}
	head = atomic_load_explicit(&ring->head, memory_order_relaxed);
	audit_entry_fill(&ring->entries[head % RING], record);
	atomic_store_explicit(&ring->head, head + 1, memory_order_seq_cst);
	wake(audit);
}

/* -- the writer -- */

static void open_file(struct fsd_audit *audit)
{
	struct stat st;

	if (audit->fd >= 0)
		close(audit->fd);
	audit->fd = open(audit->path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (audit->fd < 0)
		fsd_log(RXW_LOG_ERROR, "--audit-log %s: %s; its lines are lost", audit->path,
			strerror(errno));
	else if (fstat(audit->fd, &st) == 0 && st.st_size == 0)
		audit->torn = false;
	audit->complained = audit->fd < 0;
}

/* The lines that are whole in so many bytes of the batch end there. */
static size_t whole_lines(const struct fsd_audit *audit, size_t bytes)
{
	while (bytes && audit->batch[bytes - 1] != '\n')
		bytes--;
	return bytes;
}

/* The next bytes of the batch. */
static ssize_t write_some(struct fsd_audit *audit, size_t done)
{
	if (audit->fd < 0)
		return -1;
	if (audit->torn && write(audit->fd, "\n", 1) != 1)
		return -1;
	audit->torn = false;
	return write(audit->fd, audit->batch + done, audit->used - done);
}

static void complain(struct fsd_audit *audit)
{
	if (!audit->complained)
		fsd_log(RXW_LOG_ERROR, "--audit-log %s: %s; %s", audit->path, strerror(errno),
			audit->strict ? "calls wait until it can be written"
				      : "its lines are lost");
	audit->complained = true;
}

/*
 * Write all of the batch. With `strict` until it succeeds, unless the server stops. Returns how many bytes are in the
 * file as whole lines.
 */
static size_t write_batch(struct fsd_audit *audit)
{
	size_t done = 0, whole;

	while (done < audit->used) {
		ssize_t n = write_some(audit, done);

		if (n >= 0) {
			done += (size_t)n;
			continue;
		}
		if (errno == EINTR)
			continue;
		complain(audit);
		audit->broken = true;
		whole = whole_lines(audit, done);
		if (!audit->strict || audit->stop || audit->released) {
			audit->torn |= done > whole;
			return whole;
		}
		usleep(100000);
		if (audit->fd < 0 || atomic_exchange(&audit->reopen, false)) {
			/* A line is never divided between two files. */
			audit->torn |= done > whole;
			done = whole;
			open_file(audit);
		}
		audit->complained = true;
	}
	audit->complained = false;
	audit->broken = false;
	return done;
}

static void flush(struct fsd_audit *audit, uint64_t lines)
{
	size_t bytes = audit->used ? write_batch(audit) : 0;
	uint64_t written = 0;

	for (size_t i = 0; i < bytes; i++)
		written += audit->batch[i] == '\n';
	atomic_fetch_add(&audit->written, written);
	atomic_fetch_add(&audit->lost, lines - written);
	audit->used = 0;
}

/* Write what is in the rings. Returns the number of records. */
static uint64_t drain(struct fsd_audit *audit)
{
	uint64_t total = 0, lines = 0;

	for (struct ring *ring = atomic_load_explicit(&audit->rings, memory_order_acquire); ring;
	     ring = ring->next) {
		uint32_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
		uint32_t head = atomic_load_explicit(&ring->head, memory_order_acquire);

		for (; tail != head; tail++, lines++, total++) {
			if (BATCH - audit->used < AUDIT_LINE_MAX) {
				flush(audit, lines);
				lines = 0;
			}
			audit->used +=
				audit_line(&ring->entries[tail % RING], audit->batch + audit->used);
			atomic_store_explicit(&ring->tail, tail + 1, memory_order_release);
		}
	}
	flush(audit, lines);
	return total;
}

static bool anything(struct fsd_audit *audit)
{
	for (struct ring *ring = atomic_load_explicit(&audit->rings, memory_order_acquire); ring;
	     ring = ring->next)
		if (atomic_load_explicit(&ring->head, memory_order_seq_cst) !=
		    atomic_load_explicit(&ring->tail, memory_order_relaxed))
			return true;
	return false;
}

static void *writer_main(void *arg)
{
	struct fsd_audit *audit = arg;

	for (;;) {
		bool stopping = atomic_load(&audit->stop);

		if (atomic_exchange(&audit->reopen, false))
			open_file(audit);
		if (drain(audit))
			continue;
		if (stopping)
			return NULL;
		/* A record that is added from here on either is seen or wakes this thread. */
		atomic_store(&audit->sleeping, true);
		if (anything(audit) || atomic_load(&audit->stop) || atomic_load(&audit->reopen)) {
			if (!atomic_exchange(&audit->sleeping, false))
				sem_wait(&audit->wake);
			continue;
		}
		while (sem_wait(&audit->wake) && errno == EINTR)
			;
	}
}

/* -- open and close -- */

static void free_audit(struct fsd_audit *audit)
{
	for (struct ring *ring = atomic_load(&audit->rings), *next; ring; ring = next) {
		next = ring->next;
		free(ring);
	}
	if (audit->fd >= 0)
		close(audit->fd);
	sem_destroy(&audit->wake);
	pthread_mutex_destroy(&audit->lock);
	free(audit->path);
	free(audit);
}

struct fsd_audit *fsd_audit_open(const char *path, bool strict, char *message)
{
	struct fsd_audit *audit = calloc(1, sizeof(*audit));
	int error = audit ? 0 : ENOMEM;

	if (audit) {
		audit->strict = strict;
		audit->path = strdup(path);
		pthread_mutex_init(&audit->lock, NULL);
		sem_init(&audit->wake, 0, 0);
		audit->fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
		error = audit->fd < 0 ? errno : 0;
		if (!error)
			error = audit->path ? pthread_key_create(&audit->key, release_ring)
					    : ENOMEM;
		if (!error) {
			error = pthread_create(&audit->thread, NULL, writer_main, audit);
			if (error)
				pthread_key_delete(audit->key);
		}
		if (!error)
			return audit;
		free_audit(audit);
	}
	snprintf(message, FSD_MESSAGE_MAX,
		 "--audit-log %.300s: %s; give a file that this user may write", path,
		 strerror(error));
	return NULL;
}

void fsd_audit_close(struct fsd_audit *audit)
{
	if (!audit)
		return;
	atomic_store(&audit->stop, true);
	wake(audit);
	pthread_join(audit->thread, NULL);
	pthread_key_delete(audit->key);
	free_audit(audit);
}

void fsd_audit_release(struct fsd_audit *audit)
{
	if (audit)
		audit->released = true;
}

void fsd_audit_reopen(struct fsd_audit *audit)
{
	if (!audit)
		return;
	atomic_store(&audit->reopen, true);
	wake(audit);
}

void fsd_audit_stats(struct fsd_audit *audit, struct fsd_audit_stats *stats)
{
	*stats = (struct fsd_audit_stats){0};
	if (!audit)
		return;
	stats->written = atomic_load(&audit->written);
	stats->lost = atomic_load(&audit->lost);
	stats->waits = atomic_load(&audit->waits);
}
