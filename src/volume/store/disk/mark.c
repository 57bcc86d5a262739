/* SPDX-License-Identifier: BSD-2-Clause */
/* How far the write-ahead log is on stable storage. A restart of the machine cuts the rest. */
#include "volume/store/disk/mark.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <rxwire/xdr.h>

#include "common/held.h"
#include "volume/store/disk/crc.h"

/* The log as SQLite defines it: a header, then frames of a header and a page. Big-endian. */
#define LOG_HEADER   32
#define FRAME_HEADER 24
#define LOG_MAGIC    0x377f0682u /* the last bit: its checksums are of big-endian words */

/* The file of the mark has two of these, SLOT bytes apart, written in turn. */
#define SLOT  4096
#define MAGIC 0x314b52414d575852ull

enum state {
	STATE_LAZY = 1,
	STATE_STRICT,
	STATE_CLOSED
};

struct record {
	uint64_t magic, sequence;
	uint64_t state;
	uint64_t salt, end; /* of the log: its generation, and the bytes that are safe */
	char boot[64];
	uint64_t check;
};

struct store_mark {
	struct store_layer *layer;
	const char *path, *log;
	int (*before_sync)(void *arg);
	void *arg;
	pthread_mutex_t moving; /* covers what follows; taken before `writing` */
	struct record record;	/* the last one written or read */
	uint64_t known_salt, known_end; /* the log for which the record holds */
	/* The log of the last flush: its bytes are on stable storage. */
	uint64_t safe_salt, safe_end;
	/* Bytes behind these may be in memory only, although the kernel takes them for written. */
	bool doubt;
	uint64_t named;	       /* generation of the log whose name is on stable storage; 0: none */
	struct store_file *file, *log_file; /* kept open: a flush needs no descriptor; or NULL */
	pthread_mutex_t writing; /* held while the log is written to or cut; taken before `lock` */
	atomic_bool lost; /* bytes of the log are gone: it must not be read or written any more */
	pthread_mutex_t lock;  /* covers the rest */
	uint64_t salt;	       /* generation of the log; 0: it is empty */
	uint64_t end;	       /* of the last transaction in it; 0: it is empty */
	uint64_t frame;	       /* bytes of a frame; 0: not known */
	uint64_t commit_frame; /* offset of a last frame whose page is still to come; 0: none */
};

static uint32_t load32_little(const uint8_t *p)
{
	return (uint32_t)p[3] << 24 | (uint32_t)p[2] << 16 | (uint32_t)p[1] << 8 | p[0];
}

static uint64_t compute_record_check(const struct record *record)
{
	return store_crc(0, record, offsetof(struct record, check));
}

int store_mark_create(struct store_layer *layer, const char *path, const char *log,
		      int (*before_sync)(void *arg), void *arg, struct store_mark **out)
{
	struct store_mark *mark = calloc(1, sizeof(*mark));

	*out = mark;
	if (!mark)
		return -ENOMEM;
	mark->layer = layer;
	mark->path = path;
	mark->log = log;
	mark->before_sync = before_sync;
	mark->arg = arg;
	pthread_mutex_init(&mark->moving, NULL);
	pthread_mutex_init(&mark->writing, NULL);
	pthread_mutex_init(&mark->lock, NULL);
	return 0;
}

static void close_mark_file(struct store_file **file)
{
	if (*file)
		(*file)->layer->ops->close(*file);
	*file = NULL;
}

void store_mark_destroy(struct store_mark *mark)
{
	close_mark_file(&mark->file);
	close_mark_file(&mark->log_file);
	pthread_mutex_destroy(&mark->moving);
	pthread_mutex_destroy(&mark->writing);
	pthread_mutex_destroy(&mark->lock);
	free(mark);
}

/* -- following what SQLite writes -- */

/* Take over a header of the log. */
static void take_log_header(struct store_mark *mark, const uint8_t *header)
{
	assert(mutex_is_held(&mark->lock));
	mark->salt = rxw_xdr_load64(header + 16);
	mark->frame = FRAME_HEADER + (uint64_t)rxw_xdr_load32(header + 8);
	mark->end = LOG_HEADER;
	mark->commit_frame = 0;
}

void store_mark_hold(struct store_mark *mark)
{
	pthread_mutex_lock(&mark->writing);
}

void store_mark_release(struct store_mark *mark)
{
	pthread_mutex_unlock(&mark->writing);
}

bool store_mark_lost(struct store_mark *mark)
{
	return atomic_load(&mark->lost);
}

/* Bytes behind `offset` belong to a failed transaction: SQLite goes on after the last good one. */
void store_mark_writes(struct store_mark *mark, uint64_t offset)
{
	assert(mutex_is_held(&mark->writing));
	pthread_mutex_lock(&mark->lock);
	if (offset == 0)
		mark->salt = mark->end = mark->frame = 0;
	else if (offset >= LOG_HEADER && offset < mark->end)
		mark->end = offset;
	pthread_mutex_unlock(&mark->lock);
}

/* SQLite writes a frame's header and its page separately, and nothing else of those sizes. */
void store_mark_wrote(struct store_mark *mark, const void *data, size_t size, uint64_t offset)
{
	const uint8_t *bytes = data;

	assert(mutex_is_held(&mark->writing));
	pthread_mutex_lock(&mark->lock);
	if (offset == 0 && size == LOG_HEADER) {
		take_log_header(mark, bytes);
	} else if (mark->frame && size == FRAME_HEADER) {
		/* The header of a transaction's last frame has the size of the database. */
		mark->commit_frame = rxw_xdr_load32(bytes + 4) ? offset : 0;
	} else if (mark->commit_frame && offset == mark->commit_frame + FRAME_HEADER) {
		mark->end = offset + size;
		mark->commit_frame = 0;
	}
	pthread_mutex_unlock(&mark->lock);
}

void store_mark_truncated(struct store_mark *mark, uint64_t size)
{
	assert(mutex_is_held(&mark->writing));
	pthread_mutex_lock(&mark->lock);
	if (size == 0)
		mark->salt = mark->end = mark->frame = 0;
	pthread_mutex_unlock(&mark->lock);
}

uint64_t store_mark_log_size(struct store_mark *mark)
{
	uint64_t end;

	pthread_mutex_lock(&mark->lock);
	end = mark->end;
	pthread_mutex_unlock(&mark->lock);
	return end;
}

/* -- reading a log -- */

/* A walk through the log, which gives its generation and the end of its last whole transaction. */
struct scan {
	struct store_file *file;
	bool big; /* checksums of big-endian words */
	uint32_t sum[2];
	uint8_t header[LOG_HEADER];
	uint64_t salt, frame, end; /* as in struct store_mark */
	/* Write the bytes of [from, until) again; until = 0: none, and the walk has no limit. */
	uint64_t from, until;
};

static int read_exactly(struct scan *scan, void *data, size_t size, uint64_t offset)
{
	const struct iovec iov = {data, size};
	ssize_t n = scan->file->layer->ops->preadv(scan->file, &iov, 1, offset, false);

	return n < 0 ? (int)n : (size_t)n == size ? 0 : -ENODATA;
}

static int rewrite_log_bytes(struct scan *scan, void *data, size_t size, uint64_t offset)
{
	const struct iovec iov = {data, size};
	ssize_t n;

	if (!scan->until || offset + size <= scan->from)
		return 0;
	n = scan->file->layer->ops->pwritev(scan->file, &iov, 1, offset);
	return n < 0 ? (int)n : 0;
}

static void add_log_checksum(struct scan *scan, const uint8_t *data, size_t size)
{
	for (size_t i = 0; i < size; i += 8) {
		uint32_t a = scan->big ? rxw_xdr_load32(data + i) : load32_little(data + i);
		uint32_t b = scan->big ? rxw_xdr_load32(data + i + 4) : load32_little(data + i + 4);

		scan->sum[0] += a + scan->sum[1];
		scan->sum[1] += b + scan->sum[0];
	}
}

static bool is_next_frame(struct scan *scan, const uint8_t *frame)
{
	if (rxw_xdr_load64(frame + 8) != scan->salt)
		return false;
	add_log_checksum(scan, frame, 8);
	add_log_checksum(scan, frame + FRAME_HEADER, (size_t)scan->frame - FRAME_HEADER);
	return rxw_xdr_load32(frame + 16) == scan->sum[0] &&
	       rxw_xdr_load32(frame + 20) == scan->sum[1];
}

/* Follow the frames as far as they belong to this generation and are whole. */
static int scan_log_frames(struct scan *scan, uint8_t *frame)
{
	int rc = 0;

	assert(scan->frame > FRAME_HEADER);
	for (uint64_t at = LOG_HEADER; !rc && (!scan->until || at < scan->until);
	     at += scan->frame) {
		rc = read_exactly(scan, frame, (size_t)scan->frame, at);
		if (rc || !is_next_frame(scan, frame))
			return rc == -ENODATA ? 0 : rc;
		rc = rewrite_log_bytes(scan, frame, (size_t)scan->frame, at);
		if (rxw_xdr_load32(frame + 4))
			scan->end = at + scan->frame;
	}
	return rc;
}

static int scan_log(struct scan *scan)
{
	uint8_t *header = scan->header, *frame;
	uint32_t page;
	int rc = read_exactly(scan, header, LOG_HEADER, 0);

	if (rc)
		return rc == -ENODATA ? 0 : rc;
	page = rxw_xdr_load32(header + 8);
	if ((rxw_xdr_load32(header) & ~1u) != LOG_MAGIC || page < 512 || page > 65536 || (page & (page - 1)))
		return 0;
	scan->big = rxw_xdr_load32(header) & 1;
	add_log_checksum(scan, header, 24);
	if (rxw_xdr_load32(header + 24) != scan->sum[0] || rxw_xdr_load32(header + 28) != scan->sum[1])
		return 0;
	scan->salt = rxw_xdr_load64(header + 16);
	scan->frame = FRAME_HEADER + (uint64_t)page;
	scan->end = LOG_HEADER;
	frame = malloc((size_t)scan->frame);
	rc = frame ? rewrite_log_bytes(scan, header, LOG_HEADER, 0) : -ENOMEM;
	if (!rc)
		rc = scan_log_frames(scan, frame);
	free(frame);
	return rc;
}

/* Find the generation and the end of the log as it is. */
static int inspect_log(struct store_mark *mark)
{
	struct scan scan = {0};
	int rc = mark->layer->ops->open(mark->layer, mark->log, 0, &scan.file);

	if (rc)
		return rc == -ENOENT ? 0 : rc;
	rc = scan_log(&scan);
	mark->layer->ops->close(scan.file);
	pthread_mutex_lock(&mark->lock);
	mark->salt = scan.salt;
	mark->frame = scan.frame;
	mark->end = scan.end;
	pthread_mutex_unlock(&mark->lock);
	return rc;
}

/* Cut the log to `size` bytes, durably. */
static int cut_log(struct store_mark *mark, uint64_t size)
{
	const struct store_layer_ops *ops = mark->layer->ops;
	struct store_file *file;
	int rc = ops->open(mark->layer, mark->log, STORE_OPEN_WRITE, &file);

	if (rc)
		return rc == -ENOENT ? 0 : rc;
	if (size <= LOG_HEADER)
		size = 0;
	rc = ops->truncate(file, size);
	if (!rc)
		rc = ops->sync(file);
	ops->close(file);
	pthread_mutex_lock(&mark->lock);
	mark->end = size;
	if (size == 0)
		mark->salt = mark->frame = 0;
	pthread_mutex_unlock(&mark->lock);
	return rc;
}

/* -- the file of the mark -- */

/* Read the newest valid slot into mark->record; *found: there is one. */
static int read_mark_record(struct store_mark *mark, bool *found)
{
	const struct store_layer_ops *ops = mark->layer->ops;
	struct store_file *file;
	struct record record;
	int rc = ops->open(mark->layer, mark->path, 0, &file);

	*found = false;
	if (rc)
		return rc == -ENOENT ? 0 : rc;
	for (unsigned i = 0; i < 2; i++) {
		const struct iovec iov = {&record, sizeof(record)};
		ssize_t n = ops->preadv(file, &iov, 1, (uint64_t)i * SLOT, false);

		if (n < 0)
			rc = (int)n;
		if (n != (ssize_t)sizeof(record) || record.magic != MAGIC ||
		    record.check != compute_record_check(&record))
			continue;
		if (*found && record.sequence < mark->record.sequence)
			continue;
		mark->record = record;
		*found = true;
	}
	ops->close(file);
	return *found ? 0 : rc;
}

/* Write mark->record to the slot that the newest one is not in. */
static int write_mark_record(struct store_mark *mark, bool make)
{
	const struct store_layer_ops *ops = mark->layer->ops;
	struct record *record = &mark->record;
	const struct iovec iov = {record, sizeof(*record)};
	ssize_t n;
	int rc = mark->file ? 0
			    : ops->open(mark->layer, mark->path,
					STORE_OPEN_WRITE | STORE_OPEN_CREATE, &mark->file);

	assert(mutex_is_held(&mark->moving));
	if (rc)
		return rc;
	record->magic = MAGIC;
	record->sequence++;
	record->check = compute_record_check(record);
	n = ops->pwritev(mark->file, &iov, 1, record->sequence % 2 * SLOT);
	rc = n < 0 ? (int)n : ops->sync(mark->file);
	if (!rc && make)
		rc = ops->sync_dir(mark->layer, "meta");
	return rc;
}

/*
 * The log is at `at`, of which the bytes up to `end` count after a restart of the machine. If that fails, the old record
 * stays, and the next one is written to the same slot.
 */
static int move_mark_record(struct store_mark *mark, uint64_t salt, uint64_t end, uint64_t at)
{
	const struct record before = mark->record;
	int rc;

	mark->record.salt = salt;
	mark->record.end = end;
	rc = write_mark_record(mark, false);
	if (rc) {
		mark->record = before;
		return rc;
	}
	mark->known_salt = salt;
	mark->known_end = at;
	return 0;
}

static bool is_known_log(const struct store_mark *mark, uint64_t salt, uint64_t end)
{
	return salt == mark->known_salt && end == mark->known_end;
}

/* The record is that of the whole log as it is. */
static void note_known_log(struct store_mark *mark)
{
	mark->record.salt = mark->known_salt = mark->salt;
	mark->record.end = mark->known_end = mark->end;
}

int store_mark_recover(struct store_mark *mark, enum store_past *past)
{
	char boot[64] = "";
	bool found, restarted;
	int rc = mark->layer->ops->boot(mark->layer, boot);

	if (!rc)
		rc = read_mark_record(mark, &found);
	if (!rc)
		rc = inspect_log(mark);
	if (rc)
		return rc;
	*past = STORE_PAST_CLOSED;
	if (!found || mark->record.state == STATE_CLOSED) {
		/*
		 * Without a mark there was no commit yet: it is made before the first one.
		 */
		note_known_log(mark);
		return 0;
	}
	mark->known_salt = mark->record.salt;
	mark->known_end = mark->record.end;
	/* A flush of the killed process may have failed. The kernel reports such an error only once. */
	mark->doubt = true;
	if (mark->record.state == STATE_LAZY) {
		mark->safe_salt = mark->record.salt;
		mark->safe_end = mark->record.end;
	}
	restarted = strncmp(boot, mark->record.boot, sizeof(boot)) != 0;
	*past = restarted ? STORE_PAST_CRASHED : STORE_PAST_KILLED;
	if (!restarted || mark->record.state == STATE_STRICT)
		return 0;
	if (mark->salt != mark->record.salt || mark->record.end == 0)
		/* All of the marked generation went to the database before this one began. */
		return cut_log(mark, 0);
	/* Also a log that was cut before: that flush may have failed. */
	return cut_log(mark, mark->end > mark->record.end ? mark->record.end : mark->end);
}

int store_mark_begin(struct store_mark *mark, bool strict)
{
	int rc;

	pthread_mutex_lock(&mark->moving);
	memset(mark->record.boot, 0, sizeof(mark->record.boot));
	rc = mark->layer->ops->boot(mark->layer, mark->record.boot);
	/* Strict mode does not move the mark: what it left in the log counts. */
	if (mark->record.state == STATE_STRICT)
		note_known_log(mark);
	mark->record.state = strict ? STATE_STRICT : STATE_LAZY;
	if (!rc)
		rc = write_mark_record(mark, true);
	pthread_mutex_unlock(&mark->moving);
	return rc;
}

static void get_log_end(struct store_mark *mark, uint64_t *salt, uint64_t *end)
{
	pthread_mutex_lock(&mark->lock);
	*salt = mark->salt;
	*end = mark->end;
	pthread_mutex_unlock(&mark->lock);
}

/*
 * Bytes of the log are neither on stable storage nor in memory. What was acknowledged as durable
 * lies before the mark. The next start cuts the log there, as after a restart of the machine.
 */
static int lose_log(struct store_mark *mark)
{
	assert(mutex_is_held(&mark->moving));
	atomic_store(&mark->lost, true);
	if (mark->record.state == STATE_LAZY) {
		memset(mark->record.boot, 0, sizeof(mark->record.boot));
		write_mark_record(mark, false);
	}
	return -ENOTRECOVERABLE;
}

/*
 * After a flush that failed, the kernel takes the bytes for written, and the next flush succeeds without them. So all that
 * came after the last good flush is written again, if its checksums are right.
 */
static int rewrite_unsafe_log(struct store_mark *mark, struct store_file *log)
{
	struct scan scan = {.file = log};
	uint64_t salt;
	int rc = 0;

	assert(mutex_is_held(&mark->moving));
	store_mark_hold(mark);
	get_log_end(mark, &salt, &scan.until);
	if (mark->safe_salt == salt)
		scan.from = mark->safe_end;
	if (scan.until)
		rc = scan_log(&scan);
	store_mark_release(mark);
	if (!rc && (scan.until != scan.end || (scan.until && scan.salt != salt)))
		return lose_log(mark);
	mark->doubt = rc != 0;
	return rc;
}

static int sync_log(struct store_mark *mark, struct store_file *log, uint64_t salt, uint64_t end)
{
	int rc = mark->doubt ? rewrite_unsafe_log(mark, log) : 0;

	if (rc)
		return rc;
	rc = mark->layer->ops->sync(log);
	if (!rc) {
		mark->safe_salt = salt;
		mark->safe_end = end;
		return 0;
	}
	mark->doubt = true;
	/* At once, while the bytes are in memory. In strict mode the transaction fails instead. */
	if (mark->record.state == STATE_LAZY && rewrite_unsafe_log(mark, log) == -ENOTRECOVERABLE)
		rc = -ENOTRECOVERABLE;
	return rc;
}

int store_mark_flush(struct store_mark *mark, struct store_file *log)
{
	uint64_t salt, end;
	int rc;

	pthread_mutex_lock(&mark->moving);
	get_log_end(mark, &salt, &end);
	/* SQLite flushes the header of a new log in a commit. After a restart of the machine that log is cut anyway. */
	if (mark->record.state == STATE_LAZY && !mark->record.end && end <= LOG_HEADER) {
		pthread_mutex_unlock(&mark->moving);
		return 0;
	}
	rc = store_mark_lost(mark) ? -ENOTRECOVERABLE : 0;
	if (!rc && mark->before_sync)
		rc = mark->before_sync(mark->arg);
	if (!rc)
		rc = sync_log(mark, log, salt, end);
	/* A new log has a name to be kept, too. */
	if (!rc && salt != mark->named) {
		rc = mark->layer->ops->sync_dir(mark->layer, "meta");
		mark->named = rc ? 0 : salt;
	}
	if (!rc && mark->record.state == STATE_LAZY && !is_known_log(mark, salt, end))
		rc = move_mark_record(mark, salt, end, end);
	pthread_mutex_unlock(&mark->moving);
	return rc;
}

int store_mark_emptied(struct store_mark *mark)
{
	uint64_t salt, end;
	int rc = 0;

	pthread_mutex_lock(&mark->moving);
	get_log_end(mark, &salt, &end);
	if (mark->record.state == STATE_LAZY)
		rc = move_mark_record(mark, salt, 0, end);
	pthread_mutex_unlock(&mark->moving);
	return rc;
}

static bool has_log_grown(struct store_mark *mark)
{
	uint64_t salt, end;
	bool grown;

	pthread_mutex_lock(&mark->moving);
	get_log_end(mark, &salt, &end);
	grown = !is_known_log(mark, salt, end) || store_mark_lost(mark);
	pthread_mutex_unlock(&mark->moving);
	return grown;
}

int store_mark_move(struct store_mark *mark)
{
	int rc = 0;

	if (!has_log_grown(mark))
		return 0;
	if (!mark->log_file)
		rc = mark->layer->ops->open(mark->layer, mark->log, STORE_OPEN_WRITE,
					    &mark->log_file);
	if (rc)
		return rc == -ENOENT ? 0 : rc;
	return store_mark_flush(mark, mark->log_file);
}

int store_mark_end(struct store_mark *mark)
{
	int rc;

	pthread_mutex_lock(&mark->moving);
	mark->record.state = STATE_CLOSED;
	rc = write_mark_record(mark, false);
	pthread_mutex_unlock(&mark->moving);
	return rc;
}
