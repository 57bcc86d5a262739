/* SPDX-License-Identifier: BSD-2-Clause */
/* Writing the write-ahead log: frames are gathered, and in strict mode the file is made longer ahead of them. */
#include "volume/store/disk/logfile.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <rxwire/xdr.h>

#define FRAME_HEADER \
	24 /* as SQLite defines it: bytes 4 to 7 are not 0 in the last frame of a transaction */
#define GATHERED 131072
#define ZEROS	 65536
#define AHEAD \
	(16 * ZEROS) /* bytes by which the file is made longer at most; a short one is doubled */

struct store_logfile {
	struct store_mark *mark;
	/* store_mark_hold() covers the rest. */
	bool ahead;
	uint64_t length; /* of the file, or less; 0: not known */
	uint64_t top;	 /* the end of what was ever written in this generation of the log */
	bool last; /* the header of a transaction's last frame was gathered, its page was not */
	uint64_t offset; /* of the bytes that were gathered */
	size_t used;
	uint8_t bytes[GATHERED];
};

struct store_logfile *store_logfile_create(struct store_mark *mark)
{
	struct store_logfile *log = calloc(1, sizeof(*log));

	if (!log)
		return NULL;
	log->mark = mark;
	return log;
}

void store_logfile_destroy(struct store_logfile *log)
{
	free(log);
}

void store_logfile_ahead(struct store_logfile *log, bool ahead)
{
	store_mark_hold(log->mark);
	log->ahead = ahead;
	store_mark_release(log->mark);
}

/*
 * A flush after a write that makes a file longer has to commit to the journal of the file system as well, with whatever
 * other programs have in it. So zeros are written ahead of the log, which SQLite takes for its end. If that fails, the
 * write itself will tell.
 */
static void lengthen_log(struct store_logfile *log, struct store_file *file, uint64_t end)
{
	static const uint8_t zeros[ZEROS];
	const struct store_layer_ops *ops = file->layer->ops;
	struct iovec iov[AHEAD / ZEROS];

	if (!log->ahead || end <= log->length || ops->size(file, &log->length))
		return;
	for (size_t i = 0; i < AHEAD / ZEROS; i++)
		iov[i] = (struct iovec){(void *)zeros, sizeof(zeros)};
	while (log->length < end) {
		uint64_t most = log->length < AHEAD ? log->length / ZEROS + 1 : AHEAD / ZEROS;
		ssize_t n = ops->pwritev(file, iov, (int)most, log->length);

		if (n != (ssize_t)(most * ZEROS))
			break;
		log->length += (uint64_t)n;
	}
}

static int write_log_bytes(struct store_logfile *log, struct store_file *file, const void *data,
			   size_t size, uint64_t offset)
{
	const struct iovec iov = {(void *)data, size};
	ssize_t n;

	lengthen_log(log, file, offset + size);
	n = file->layer->ops->pwritev(file, &iov, 1, offset);
	if (n != (ssize_t)size)
		return n < 0 ? (int)n : -EIO;
	if (log->top < offset + size)
		log->top = offset + size;
	return 0;
}

static void drop_gathered_frames(struct store_logfile *log)
{
	log->used = 0;
	log->last = false;
}

/* If it fails, so does the transaction. */
static int write_gathered_frames(struct store_logfile *log, struct store_file *file)
{
	int rc = log->used ? write_log_bytes(log, file, log->bytes, log->used, log->offset) : 0;

	drop_gathered_frames(log);
	return rc;
}

/* Whether these bytes are gathered: frames behind all others. SQLite also writes single frames again. */
static bool may_gather_bytes(const struct store_logfile *log, size_t size, uint64_t offset)
{
	if (!log->used)
		return size == FRAME_HEADER && log->top && offset >= log->top;
	return offset == log->offset + log->used && size <= GATHERED - log->used;
}

/* The page of a transaction's last frame: all of it must be in the file before SQLite says so. */
static int gather_log_bytes(struct store_logfile *log, struct store_file *file, const void *data,
			    size_t size, uint64_t offset)
{
	bool complete = log->last && size != FRAME_HEADER;

	assert(size <= GATHERED - log->used);
	if (!log->used)
		log->offset = offset;
	memcpy(log->bytes + log->used, data, size);
	log->used += size;
	log->last = size == FRAME_HEADER && rxw_xdr_load32((const uint8_t *)data + 4);
	return complete ? write_gathered_frames(log, file) : 0;
}

int store_logfile_write(struct store_logfile *log, struct store_file *file, const void *data,
			size_t size, uint64_t offset)
{
	int rc;

	store_mark_hold(log->mark);
	store_mark_writes(log->mark, offset);
	if (may_gather_bytes(log, size, offset)) {
		rc = gather_log_bytes(log, file, data, size, offset);
	} else {
		if (!offset) { /* a new generation begins */
			drop_gathered_frames(log);
			log->top = 0;
		}
		rc = write_gathered_frames(log, file);
		if (!rc && may_gather_bytes(log, size, offset))
			rc = gather_log_bytes(log, file, data, size, offset);
		else if (!rc)
			rc = write_log_bytes(log, file, data, size, offset);
	}
	if (!rc)
		store_mark_wrote(log->mark, data, size, offset);
	store_mark_release(log->mark);
	return rc;
}

int store_logfile_settle(struct store_logfile *log, struct store_file *file, uint64_t offset,
			 size_t size)
{
	int rc = 0;

	store_mark_hold(log->mark);
	/* If it fails, it is tried again before the transaction can end. */
	if (log->used && offset < log->offset + log->used && log->offset < offset + size) {
		rc = write_log_bytes(log, file, log->bytes, log->used, log->offset);
		if (!rc)
			drop_gathered_frames(log);
	}
	store_mark_release(log->mark);
	return rc;
}

static void forget_log_state(struct store_logfile *log)
{
	drop_gathered_frames(log);
	log->length = log->top = 0;
}

int store_logfile_truncate(struct store_logfile *log, struct store_file *file, uint64_t size)
{
	const struct store_layer_ops *ops = file->layer->ops;
	int rc;

	store_mark_hold(log->mark);
	rc = ops->truncate(file, size);
	if (!rc) {
		forget_log_state(log);
		store_mark_truncated(log->mark, size);
		rc = ops->sync(file);
	}
	store_mark_release(log->mark);
	return rc;
}

void store_logfile_removed(struct store_logfile *log)
{
	store_mark_hold(log->mark);
	forget_log_state(log);
	store_mark_truncated(log->mark, 0);
	store_mark_release(log->mark);
}
