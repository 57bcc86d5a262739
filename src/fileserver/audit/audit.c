/* SPDX-License-Identifier: BSD-2-Clause */
/* The audit log: a queue of records, and one thread that writes them. */
#include "fileserver/audit/audit.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/background.h"
#include "common/failure.h"
#include "common/utf8.h"
#include "fileserver/base/base.h"

/*
 * Records that wait to be written; a power of two. The thread that commits adds those of a whole transaction, 256, before
 * it goes on. Calls that failed, which cost their client nothing, get half of it. The other half is more than the stores that
 * run or wait may have reserved (FSD_STORES_MAX and FSD_WAITERS_MAX).
 */
#define QUEUE	  8192
#define OF_FAILED (QUEUE / 2)
#define BATCH	  (64 << 10)
#define PATIENCE \
	(1000 * (uint64_t)NS_PER_MS) /* that a call waits for a writer that makes no progress */
#define TELL_S 60		     /* between two lines about records that were lost */

/* -- a record as it lies in the queue, and its line of JSON -- */

static void copy_field(char *to, size_t size, const char *from)
{
	size_t n = from ? strnlen(from, size - 1) : 0;

	memcpy(to, from ? from : "", n);
	to[n] = '\0';
}

void fsd_audit_fill(struct audit_entry *entry, const struct fsd_audit_record *record)
{
	const struct sockaddr_in6 *in6 = (const void *)record->peer;
	const struct sockaddr_in *in = (const void *)record->peer;

	entry->time_ns = record->time_ns;
	entry->family = 0;
	if (record->peer && record->peer->ss_family == AF_INET) {
		entry->family = 4;
		entry->port = ntohs(in->sin_port);
		memcpy(entry->address, &in->sin_addr, 4);
	} else if (record->peer && record->peer->ss_family == AF_INET6) {
		entry->family = 6;
		entry->port = ntohs(in6->sin6_port);
		memcpy(entry->address, &in6->sin6_addr, 16);
	}
	entry->anonymous = !record->who;
	entry->has_name = record->name;
	entry->has_to_name = record->to_name;
	entry->id = record->id;
	entry->code = record->code;
	entry->operation = record->operation;
	memcpy(entry->fid, (uint32_t[]){record->volume, record->vnode, record->unique},
	       sizeof(entry->fid));
	memcpy(entry->to, (uint32_t[]){record->to_volume, record->to_vnode, record->to_unique},
	       sizeof(entry->to));
	copy_field(entry->who, sizeof(entry->who), record->who);
	copy_field(entry->name, sizeof(entry->name), record->name);
	copy_field(entry->to_name, sizeof(entry->to_name), record->to_name);
}

/*
 * A string of JSON. A byte that is not UTF-8 becomes the character of the same number, so that every
 * name has a text.
 */
static char *put_string(char *at, const char *text)
{
	const unsigned char *s = (const unsigned char *)text;

	*at++ = '"';
	while (*s) {
		size_t n = utf8_character_bytes(s);

		if (*s == '"' || *s == '\\') {
			*at++ = '\\';
			*at++ = (char)*s++;
		} else if (*s < 0x20 || *s == 0x7f || n == 0) {
			at += sprintf(at, "\\u%04x", *s++);
		} else if (*s == 0xc2 && s[1] < 0xa0) { /* C1: terminals take orders from them */
			at += sprintf(at, "\\u%04x", s[1]);
			s += 2;
		} else {
			while (n--)
				*at++ = (char)*s++;
		}
	}
	*at++ = '"';
	return at;
}

static char *put_fid(char *at, const char *key, const uint32_t fid[3])
{
	return at + sprintf(at, ",\"%s\":\"%u.%u.%u\"", key, fid[0], fid[1], fid[2]);
}

static char *put_text(char *at, const char *key, const char *text)
{
	return put_string(at + sprintf(at, ",\"%s\":", key), text);
}

static char *put_record_time(char *at, int64_t time_ns)
{
	time_t seconds = (time_t)(time_ns / 1000000000);
	struct tm tm;

	gmtime_r(&seconds, &tm);
	return at + sprintf(at, "{\"time\":\"%04d-%02d-%02dT%02d:%02d:%02d.%06dZ\"",
			    (tm.tm_year + 1900) % 10000, tm.tm_mon + 1, tm.tm_mday, tm.tm_hour,
			    tm.tm_min, tm.tm_sec, (int)(time_ns % 1000000000 / 1000));
}

static char *put_peer_address(char *at, const struct audit_entry *entry)
{
	char text[INET6_ADDRSTRLEN] = "?";

	if (entry->family)
		inet_ntop(entry->family == 4 ? AF_INET : AF_INET6, entry->address, text,
			  sizeof(text));
	return at + sprintf(at, ",\"address\":\"%s\",\"port\":%u", text, entry->port);
}

size_t fsd_audit_line(const struct audit_entry *entry, char *line)
{
	char *at = put_peer_address(put_record_time(line, entry->time_ns), entry);

	if (!entry->anonymous)
		at = put_text(at, "who", entry->who);
	at += sprintf(at, ",\"id\":%d,\"operation\":\"%s\"", (int)entry->id, entry->operation);
	if (entry->fid[0])
		at = put_fid(at, "fid", entry->fid);
	if (entry->has_name)
		at = put_text(at, "name", entry->name);
	if (entry->to[0])
		at = put_fid(at, "to_fid", entry->to);
	if (entry->has_to_name)
		at = put_text(at, "to_name", entry->to_name);
	at += sprintf(at, ",\"code\":%d}\n", (int)entry->code);
	return (size_t)(at - line);
}

/* -- the log -- */

struct fsd_audit {
	char *path;
	bool strict;
	int fd; /* of the writer; -1: the file cannot be opened */

	struct background writer; /* its lock covers the following members, up to `reopen` */
	pthread_cond_t room;
	uint32_t head, tail; /* adders write entries at `head`; the writer alone moves `tail` */
	unsigned reserved;   /* places that calls in progress will use */
	bool sleeping;	     /* the writer */
	bool stuck;    /* the writer made no progress for PATIENCE: nobody waits until it does */
	uint64_t told; /* when the log has said that records were lost; seconds, 0: never */
	_Atomic bool reopen;

	_Atomic bool released; /* no call waits while the file is `broken` */
	_Atomic bool broken;   /* the last write has failed */
	_Atomic uint64_t written, lost, waits, refused;
	bool complained; /* of the writer: the log has said that lines are missing */
	bool torn;	 /* of the writer: the file ends with a part of a line */
	size_t used;	 /* of `batch` */
	char batch[BATCH];
	struct audit_entry entries[QUEUE];
};

/* -- calls -- */

/* The number of free places. The lock is held. */
static unsigned count_vacant_places(struct fsd_audit *audit)
{
	assert(mutex_is_held(&audit->writer.lock));
	assert(audit->head - audit->tail + audit->reserved <= QUEUE);
	return QUEUE - (audit->head - audit->tail) - audit->reserved;
}

/*
 * Waits until there are more free places than `others`. False: the file cannot be written; with `patience` also: the
 * writer makes no progress.
 */
static bool await_room(struct fsd_audit *audit, unsigned others, bool patience)
{
	uint64_t until = monotonic_ns() + PATIENCE;

	if (count_vacant_places(audit) > others)
		return true;
	atomic_fetch_add(&audit->waits, 1);
	while (count_vacant_places(audit) <= others) {
		uint32_t tail = audit->tail;

		if (audit->broken || (audit->stuck && (patience || audit->released)))
			return false;
		if (audit->sleeping)
			wake_background(&audit->writer);
		monotonic_wait(&audit->room, &audit->writer.lock, until);
		if (audit->tail != tail)
			until = monotonic_ns() + PATIENCE;
		else if (monotonic_ns() >= until)
			audit->stuck = true;
	}
	return true;
}

/* A record is lost: it is counted, and now and then a line of the log says so. */
static void count_lost_record(struct fsd_audit *audit)
{
	uint64_t lost = atomic_fetch_add(&audit->lost, 1) + 1, now = fsd_now();

	if (audit->told && now < audit->told + TELL_S)
		return;
	audit->told = now;
	fsd_log(RXW_LOG_ERROR,
		"--audit-log %s: cannot be written as fast as calls come: %llu lines are lost so far",
		audit->path, (unsigned long long)lost);
}

bool fsd_audit_reserve(struct fsd_audit *audit)
{
	bool may = true;

	if (!audit || !audit->strict)
		return true;
	pthread_mutex_lock(&audit->writer.lock);
	may = !audit->broken && await_room(audit, 0, true);
	audit->reserved += may;
	pthread_mutex_unlock(&audit->writer.lock);
	if (!may)
		atomic_fetch_add(&audit->refused, 1);
	return may;
}

void fsd_audit_unreserve(struct fsd_audit *audit)
{
	if (!audit || !audit->strict)
		return;
	pthread_mutex_lock(&audit->writer.lock);
	assert(audit->reserved > 0);
	audit->reserved--;
	pthread_cond_signal(&audit->room);
	pthread_mutex_unlock(&audit->writer.lock);
}

void fsd_audit_add(struct fsd_audit *audit, const struct fsd_audit_record *record)
{
	bool reserved = audit && audit->strict && record->reserved;
	/* Records of refused calls must not take the threads of calls that are served. */
	bool patience = audit && (!audit->strict || record->code);
	struct audit_entry entry;

	if (!audit)
		return;
	fsd_audit_fill(&entry, record);
	pthread_mutex_lock(&audit->writer.lock);
	assert(!reserved || audit->reserved > 0);
	audit->reserved -= reserved;
	if (reserved || await_room(audit, record->code ? OF_FAILED : 0, patience)) {
		audit->entries[audit->head++ % QUEUE] = entry;
		if (audit->sleeping)
			wake_background(&audit->writer);
	} else {
		count_lost_record(audit);
	}
	pthread_mutex_unlock(&audit->writer.lock);
}

/* -- the writer -- */

static void open_log_file(struct fsd_audit *audit)
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

/* Sets a flag for which the writer, or calls that wait for room, may wait. */
static void set_writer_flag(struct fsd_audit *audit, _Atomic bool *flag)
{
	pthread_mutex_lock(&audit->writer.lock);
	*flag = true;
	pthread_cond_broadcast(&audit->room);
	wake_background(&audit->writer);
	pthread_mutex_unlock(&audit->writer.lock);
}

static void log_write_failure(struct fsd_audit *audit)
{
	if (!audit->complained)
		fsd_log(RXW_LOG_ERROR, "--audit-log %s: %s; %s", audit->path, strerror(errno),
			audit->strict ? "changes are refused until it can be written"
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
		log_write_failure(audit);
		set_writer_flag(audit, &audit->broken);
		whole = whole_lines(audit, done);
		if (!audit->strict || audit->writer.stop || audit->released) {
			audit->torn |= done > whole;
			return whole;
		}
		usleep(100000);
		if (audit->fd < 0 || atomic_exchange(&audit->reopen, false)) {
			/* A line is never divided between two files. */
			audit->torn |= done > whole;
			done = whole;
			open_log_file(audit);
		}
		audit->complained = true;
	}
	audit->complained = false;
	audit->broken = false;
	return done;
}

/* The server stops before the lines behind `at` could be written: their changes were acknowledged. */
static void log_rest(const struct fsd_audit *audit, size_t at)
{
	const char *end = audit->batch + audit->used, *line = audit->batch + at, *next;

	for (; line < end; line = next + 1) {
		next = memchr(line, '\n', (size_t)(end - line));
		assert(next);
		fsd_log(RXW_LOG_ERROR, "--audit-log: not written: %.*s", (int)(next - line), line);
	}
}

static void flush_batch(struct fsd_audit *audit, uint64_t lines)
{
	size_t bytes = audit->used ? write_batch(audit) : 0;
	uint64_t written = 0;

	for (size_t i = 0; i < bytes; i++)
		written += audit->batch[i] == '\n';
	if (audit->strict)
		log_rest(audit, bytes);
	atomic_fetch_add(&audit->written, written);
	atomic_fetch_add(&audit->lost, lines - written);
	audit->used = 0;
}

/* Write the records up to `head`. Their places are free once they are in the batch. */
static void write_queued_records(struct fsd_audit *audit, uint32_t head)
{
	uint64_t lines = 0;

	for (uint32_t tail = audit->tail; tail != head; tail++, lines++) {
		if (BATCH - audit->used < AUDIT_LINE_MAX) {
			flush_batch(audit, lines);
			lines = 0;
		}
		audit->used +=
			fsd_audit_line(&audit->entries[tail % QUEUE], audit->batch + audit->used);
		assert(audit->used <= BATCH);
		pthread_mutex_lock(&audit->writer.lock);
		assert(audit->tail == tail);
		audit->tail = tail + 1;
		audit->stuck = false;
		pthread_cond_signal(&audit->room);
		pthread_mutex_unlock(&audit->writer.lock);
	}
	flush_batch(audit, lines);
}

static void *writer_main(void *arg)
{
	struct fsd_audit *audit = arg;

	pthread_mutex_lock(&audit->writer.lock);
	for (;;) {
		uint32_t head = audit->head;

		if (head != audit->tail || audit->reopen) {
			pthread_mutex_unlock(&audit->writer.lock);
			if (atomic_exchange(&audit->reopen, false))
				open_log_file(audit);
			write_queued_records(audit, head);
			pthread_mutex_lock(&audit->writer.lock);
			continue;
		}
		if (audit->writer.stop)
			break;
		audit->sleeping = true;
		sleep_in_background(&audit->writer, UINT64_MAX);
		audit->sleeping = false;
	}
	pthread_mutex_unlock(&audit->writer.lock);
	return NULL;
}

/* -- open and close -- */

static void free_audit(struct fsd_audit *audit)
{
	if (audit->fd >= 0)
		close(audit->fd);
	pthread_cond_destroy(&audit->room);
	free(audit->path);
	free(audit);
}

struct fsd_audit *fsd_audit_open(const char *path, bool strict, char *message)
{
	struct fsd_audit *audit = calloc(1, sizeof(*audit));
	int error = ENOMEM;

	if (!audit)
		goto fail;
	audit->strict = strict;
	monotonic_cond_init(&audit->room);
	audit->fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (audit->fd < 0) {
		error = errno;
		goto fail;
	}
	audit->path = strdup(path);
	if (!audit->path)
		goto fail;
	error = start_background(&audit->writer, writer_main, audit);
	if (!error)
		return audit;
fail:
	if (audit)
		free_audit(audit);
	return fail_with(NULL, message, FSD_MESSAGE_MAX,
			 "--audit-log %.300s: %s; give a file that this user may write", path,
			 strerror(error));
}

void fsd_audit_close(struct fsd_audit *audit)
{
	if (!audit)
		return;
	/* Nobody waits for room any more: the endpoints were stopped. */
	stop_background(&audit->writer);
	assert(audit->head == audit->tail);
	free_audit(audit);
}

void fsd_audit_release(struct fsd_audit *audit)
{
	if (audit)
		set_writer_flag(audit, &audit->released);
}

void fsd_audit_reopen(struct fsd_audit *audit)
{
	if (audit)
		set_writer_flag(audit, &audit->reopen);
}

void fsd_audit_stats(struct fsd_audit *audit, struct fsd_audit_stats *stats)
{
	*stats = (struct fsd_audit_stats){0};
	if (!audit)
		return;
	stats->written = atomic_load(&audit->written);
	stats->lost = atomic_load(&audit->lost);
	stats->waits = atomic_load(&audit->waits);
	stats->refused = atomic_load(&audit->refused);
}
