/* SPDX-License-Identifier: BSD-2-Clause */
/* The write-ahead log: writing it, and how far it is on stable storage. A restart of the machine cuts the rest. */
#include "volume/store/disk/wal.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/bytes.h"
#include "common/held.h"
#include "volume/store/disk/crc.h"
#include "volume/store/disk/twin.h"

/* The log as SQLite defines it: a header, then frames of a header and a page. Big-endian. */
#define LOG_HEADER STORE_LOG_HEADER
#define FRAME_HEADER \
	STORE_FRAME_HEADER	 /* bytes 4 to 7 are not 0 in the last frame of a transaction */
#define LOG_MAGIC    0x377f0682u /* the last bit: its checksums are of big-endian words */

#define LOG_CUT	     1	   /* in the mark, in place of an end: the file was cut to nothing */
#define LATER_FRAMES 16384 /* that are looked at behind the end of the log */

#define FOLDER_ROOM  32

#define GATHERED     131072 /* bytes of frames that wait for the last one of the transaction */
#define ZEROS	     65536
#define AHEAD \
	(16 * ZEROS) /* bytes by which the file is made longer at most; a short one is doubled */
#define AHEAD_ROOM (8 * AHEAD) /* bytes that are free on the disk, else it is not */

/* The file of the mark has two records, then the tail. */
#define MAGIC	   0x314b52414d575852ull
#define TAIL_MAGIC 0x324c494154575852ull

enum state {
	STATE_LAZY = 1,
	STATE_STRICT,
	STATE_CLOSED
};

struct record {
	struct store_twin twin;
	uint32_t state;
	uint32_t
		time; /* CLOCK_REALTIME in seconds: what was committed before is in front of `end`; or 0 */
	uint64_t salt, end; /* of the log: its generation, and the bytes that are safe */
	char boot[64];
	uint64_t check;
};

/* The log as a process that is killed leaves it: written with each transaction, and not flushed. */
struct tail {
	uint64_t magic;
	uint64_t salt, end; /* 0: the log may be missing */
	uint64_t moved;	    /* all of it is in the database: nothing is lost with it */
	uint64_t check;
};

struct store_wal {
	struct store_layer *layer;
	const char *path, *log;
	char folder[FOLDER_ROOM]; /* of both */
	int (*before_sync)(void *arg);
	void *arg;
	void (*before_restart)(void *arg); /* or NULL */
	void *follower;
	pthread_mutex_t moving;		/* covers what follows; taken before `writing` */
	struct record record;		/* the last one written or read */
	uint64_t known_salt, known_end; /* the log for which the record holds */
	/* The log of the last flush: its bytes are on stable storage. */
	uint64_t safe_salt, safe_end;
	/* Bytes behind these may be in memory only, although the kernel takes them for written. */
	bool doubt;
	bool damaged, empty; /* what inspect_log() has found */
	bool unmarked;	     /* there is a log, or a file of the mark, without a record */
	struct tail tail;    /* of the process before; magic 0: there is none */
	uint64_t named; /* generation of the log whose name is on stable storage; 0: none */
	struct store_file *file, *log_file; /* kept open: a flush needs no descriptor; or NULL */
	pthread_mutex_t writing; /* held while the log is written to or cut; taken before `lock` */
	struct store_file *tail_file; /* or NULL; covered by `writing` */
	atomic_bool lost; /* bytes of the log are gone: it must not be read or written any more */
	pthread_mutex_t lock;  /* covers the rest */
	uint64_t salt;	       /* generation of the log; 0: it is empty */
	uint64_t end;	       /* of the last transaction in it; 0: it is empty */
	uint64_t frame;	       /* bytes of a frame; 0: not known */
	uint64_t commit_frame; /* offset of a last frame whose page is still to come; 0: none */
	/* Strict mode: the end of the log when a flush failed, which may be the end of a failed commit; 0: none. */
	uint64_t failed_end;
	/* How often transactions of this log were overwritten, and the lowest offset at which that happened. */
	uint64_t rewinds, rewound_to;
	/* Checksums of the pages of its frames, from the first one on, as they were written or recovered. */
	uint32_t *page_sum;
	size_t sums, sum_room;
	/* Frames that are not in the file yet; covered by `writing`. */
	struct {
		bool ahead;	 /* the file is made longer ahead of what is written */
		uint64_t length; /* of the file, or less; 0: not known */
		uint64_t top; /* the end of what was ever written in this generation of the log */
		bool last; /* the header of a transaction's last frame was gathered, its page was not */
		uint64_t offset; /* of the bytes that were gathered */
		size_t used;
		uint8_t bytes[GATHERED];
	} gather;
};

/* This thread has flushed a log since it last moved a page from it, as a checkpoint begins with. */
static _Thread_local bool has_flushed;

int store_wal_create(struct store_layer *layer, const char *path, const char *log,
		     int (*before_sync)(void *arg), void *arg, struct store_wal **out)
{
	struct store_wal *wal = calloc(1, sizeof(*wal));

	*out = wal;
	if (!wal)
		return -ENOMEM;
	wal->layer = layer;
	wal->path = path;
	wal->log = log;
	assert(strchr(log, '/') && strchr(log, '/') - log < FOLDER_ROOM);
	memcpy(wal->folder, log, (size_t)(strchr(log, '/') - log));
	wal->before_sync = before_sync;
	wal->arg = arg;
	pthread_mutex_init(&wal->moving, NULL);
	pthread_mutex_init(&wal->writing, NULL);
	pthread_mutex_init(&wal->lock, NULL);
	return 0;
}

static void close_mark_file(struct store_file **file)
{
	if (*file)
		(*file)->layer->ops->close(*file);
	*file = NULL;
}

void store_wal_destroy(struct store_wal *wal)
{
	close_mark_file(&wal->file);
	close_mark_file(&wal->log_file);
	close_mark_file(&wal->tail_file);
	pthread_mutex_destroy(&wal->moving);
	pthread_mutex_destroy(&wal->writing);
	pthread_mutex_destroy(&wal->lock);
	free(wal->page_sum);
	free(wal);
}

/*
 * -- checksums of pages: SQLite looks at those of frames in a recovery only. Otherwise a checkpoint would give a damaged page a
 * good checksum in the database --
 */

/* The frame whose page is at `offset`. False: no page is. */
static bool find_frame_of_page(uint64_t frame, uint64_t offset, size_t size, size_t *which)
{
	if (!frame || size != frame - FRAME_HEADER || offset < LOG_HEADER + FRAME_HEADER ||
	    (offset - LOG_HEADER - FRAME_HEADER) % frame)
		return false;
	*which = (size_t)((offset - LOG_HEADER - FRAME_HEADER) / frame);
	return true;
}

/* Without memory, this page and the following ones are not verified. */
static void note_page_sum(struct store_wal *wal, size_t which, uint32_t sum)
{
	assert(mutex_is_held(&wal->lock));
	if (which == wal->sum_room && which == wal->sums) {
		size_t room = wal->sum_room ? 2 * wal->sum_room : 1024;
		uint32_t *more = realloc(wal->page_sum, room * sizeof(*more));

		if (!more)
			return;
		wal->page_sum = more;
		wal->sum_room = room;
	}
	if (which > wal->sums)
		return;
	wal->page_sum[which] = sum;
	wal->sums += which == wal->sums;
}

bool store_wal_is_sound(struct store_wal *wal, const void *page, size_t size, uint64_t offset)
{
	uint32_t want = 0;
	size_t which;
	bool known;

	pthread_mutex_lock(&wal->lock);
	known = find_frame_of_page(wal->frame, offset, size, &which) && which < wal->sums;
	if (known)
		want = wal->page_sum[which];
	pthread_mutex_unlock(&wal->lock);
	return !known || store_crc(0, page, size) == want;
}

/* -- following what SQLite writes -- */

/* Take over a header of the log. */
static void take_log_header(struct store_wal *wal, const uint8_t *header)
{
	assert(mutex_is_held(&wal->lock));
	wal->salt = get64(header + 16);
	wal->frame = FRAME_HEADER + (uint64_t)get32(header + 8);
	wal->end = LOG_HEADER;
	wal->commit_frame = wal->failed_end = 0;
	wal->rewound_to = UINT64_MAX;
	wal->sums = 0;
}

/* Bytes of the log were lost: nothing in it may be read, or added. */
static bool is_log_lost(struct store_wal *wal)
{
	return atomic_load(&wal->lost);
}

/* Before a write. Bytes behind `offset` belong to a failed transaction: SQLite goes on after the last good one. */
static void begin_log_write(struct store_wal *wal, uint64_t offset)
{
	assert(mutex_is_held(&wal->writing));
	pthread_mutex_lock(&wal->lock);
	if (offset == 0) {
		wal->salt = wal->end = wal->frame = 0;
	} else if (offset >= LOG_HEADER && offset < wal->end) {
		wal->end = offset;
		wal->failed_end = 0;
		wal->rewinds++;
		if (wal->rewound_to > offset)
			wal->rewound_to = offset;
	}
	pthread_mutex_unlock(&wal->lock);
}

/* SQLite writes a frame's header and its page separately, and nothing else of those sizes. True: a transaction is complete. */
static bool follow_log_write(struct store_wal *wal, const void *data, size_t size, uint64_t offset)
{
	const uint8_t *bytes = data;
	uint32_t sum = size > LOG_HEADER ? store_crc(0, data, size) : 0;
	bool complete = false;
	size_t which;

	assert(mutex_is_held(&wal->writing));
	pthread_mutex_lock(&wal->lock);
	if (find_frame_of_page(wal->frame, offset, size, &which))
		note_page_sum(wal, which, sum);
	if (offset == 0 && size == LOG_HEADER) {
		take_log_header(wal, bytes);
	} else if (wal->frame && size == FRAME_HEADER) {
		/* The header of a transaction's last frame has the size of the database. */
		wal->commit_frame = get32(bytes + 4) ? offset : 0;
	} else if (wal->commit_frame && offset == wal->commit_frame + FRAME_HEADER) {
		wal->end = offset + size;
		wal->commit_frame = 0;
		complete = true;
	}
	pthread_mutex_unlock(&wal->lock);
	return complete;
}

static void follow_log_cut(struct store_wal *wal, uint64_t size)
{
	assert(mutex_is_held(&wal->writing));
	pthread_mutex_lock(&wal->lock);
	if (size == 0)
		wal->salt = wal->end = wal->frame = wal->sums = 0;
	pthread_mutex_unlock(&wal->lock);
}

static void get_log_end(struct store_wal *wal, uint64_t *salt, uint64_t *end)
{
	pthread_mutex_lock(&wal->lock);
	*salt = wal->salt;
	*end = wal->end;
	pthread_mutex_unlock(&wal->lock);
}

/* If it fails, the next start may say that something is lost that is not. */
static void write_tail(struct store_wal *wal, struct tail tail)
{
	const struct iovec iov = {&tail, sizeof(tail)};

	assert(mutex_is_held(&wal->writing));
	if (!wal->tail_file)
		return;
	tail.magic = TAIL_MAGIC;
	store_twin_seal(&tail, sizeof(tail));
	wal->layer->ops->pwritev(wal->tail_file, &iov, 1, STORE_TWIN_END);
}

/* `moved`: all of the log is in the database. */
static void write_tail_of_log(struct store_wal *wal, bool moved)
{
	struct tail tail = {.moved = moved};

	get_log_end(wal, &tail.salt, &tail.end);
	write_tail(wal, tail);
}

uint64_t store_wal_size(struct store_wal *wal)
{
	uint64_t salt, end;

	get_log_end(wal, &salt, &end);
	return end;
}

/* -- writing: frames are gathered, and in strict mode the file is made longer ahead of them -- */

/*
 * A flush after a write that makes a file longer has to commit to the journal of the file system as well, with whatever
 * other programs have in it. So zeros are written ahead of the log, which SQLite takes for its end. If that fails, the
 * write itself will tell. On a disk that is nearly full, the database needs the room.
 */
static void lengthen_log(struct store_wal *wal, struct store_file *file, uint64_t end)
{
	static const uint8_t zeros[ZEROS];
	const struct store_layer_ops *ops = file->layer->ops;
	struct iovec iov[AHEAD / ZEROS];
	uint64_t available, total;

	if (!wal->gather.ahead || end <= wal->gather.length || ops->size(file, &wal->gather.length))
		return;
	if (ops->space(wal->layer, &available, &total) || available < AHEAD_ROOM)
		return;
	for (size_t i = 0; i < AHEAD / ZEROS; i++)
		iov[i] = (struct iovec){(void *)zeros, sizeof(zeros)};
	while (wal->gather.length < end) {
		uint64_t most =
			wal->gather.length < AHEAD ? wal->gather.length / ZEROS + 1 : AHEAD / ZEROS;
		ssize_t n = ops->pwritev(file, iov, (int)most, wal->gather.length);

		if (n != (ssize_t)(most * ZEROS))
			break;
		wal->gather.length += (uint64_t)n;
	}
}

static int write_log_bytes(struct store_wal *wal, struct store_file *file, const void *data,
			   size_t size, uint64_t offset)
{
	const struct iovec iov = {(void *)data, size};
	ssize_t n;

	lengthen_log(wal, file, offset + size);
	n = file->layer->ops->pwritev(file, &iov, 1, offset);
	if (n != (ssize_t)size)
		return n < 0 ? (int)n : -EIO;
	if (wal->gather.top < offset + size)
		wal->gather.top = offset + size;
	return 0;
}

static void drop_gathered_frames(struct store_wal *wal)
{
	wal->gather.used = 0;
	wal->gather.last = false;
}

/* If it fails, so does the transaction. */
static int write_gathered_frames(struct store_wal *wal, struct store_file *file)
{
	int rc = wal->gather.used ? write_log_bytes(wal, file, wal->gather.bytes, wal->gather.used,
						    wal->gather.offset)
				  : 0;

	drop_gathered_frames(wal);
	return rc;
}

/* Whether these bytes are gathered: frames behind all others. SQLite also writes single frames again. */
static bool may_gather_bytes(const struct store_wal *wal, size_t size, uint64_t offset)
{
	if (!wal->gather.used)
		return size == FRAME_HEADER && wal->gather.top && offset >= wal->gather.top;
	return offset == wal->gather.offset + wal->gather.used &&
	       size <= GATHERED - wal->gather.used;
}

/* The page of a transaction's last frame: all of it must be in the file before SQLite says so. */
static int gather_log_bytes(struct store_wal *wal, struct store_file *file, const void *data,
			    size_t size, uint64_t offset)
{
	bool complete = wal->gather.last && size != FRAME_HEADER;

	assert(size <= GATHERED - wal->gather.used);
	if (!wal->gather.used)
		wal->gather.offset = offset;
	memcpy(wal->gather.bytes + wal->gather.used, data, size);
	wal->gather.used += size;
	wal->gather.last = size == FRAME_HEADER && get32((const uint8_t *)data + 4);
	return complete ? write_gathered_frames(wal, file) : 0;
}

/* All that the log has is in the database, and flushed. */
static void tell_follower(struct store_wal *wal)
{
	if (wal->before_restart)
		wal->before_restart(wal->follower);
}

int store_wal_write(struct store_wal *wal, struct store_file *file, const void *data, size_t size,
		    uint64_t offset)
{
	int rc;

	if (is_log_lost(wal))
		return -ENOTRECOVERABLE;
	if (offset == 0)
		tell_follower(wal);
	pthread_mutex_lock(&wal->writing);
	begin_log_write(wal, offset);
	if (may_gather_bytes(wal, size, offset)) {
		rc = gather_log_bytes(wal, file, data, size, offset);
	} else {
		if (!offset) { /* a new generation begins */
			drop_gathered_frames(wal);
			wal->gather.top = 0;
		}
		rc = write_gathered_frames(wal, file);
		if (!rc && may_gather_bytes(wal, size, offset))
			rc = gather_log_bytes(wal, file, data, size, offset);
		else if (!rc)
			rc = write_log_bytes(wal, file, data, size, offset);
	}
	if (!rc && follow_log_write(wal, data, size, offset))
		write_tail_of_log(wal, false);
	pthread_mutex_unlock(&wal->writing);
	return rc;
}

int store_wal_settle(struct store_wal *wal, struct store_file *file, uint64_t offset, size_t size)
{
	int rc = 0;

	if (is_log_lost(wal))
		return -ENOTRECOVERABLE;
	pthread_mutex_lock(&wal->writing);
	/* If it fails, it is tried again before the transaction can end. */
	if (wal->gather.used && offset < wal->gather.offset + wal->gather.used &&
	    wal->gather.offset < offset + size) {
		rc = write_log_bytes(wal, file, wal->gather.bytes, wal->gather.used,
				     wal->gather.offset);
		if (!rc)
			drop_gathered_frames(wal);
	}
	pthread_mutex_unlock(&wal->writing);
	return rc;
}

static void forget_log_state(struct store_wal *wal)
{
	drop_gathered_frames(wal);
	wal->gather.length = wal->gather.top = 0;
}

void store_wal_follow(struct store_wal *wal, void (*before_restart)(void *arg), void *arg)
{
	wal->before_restart = before_restart;
	wal->follower = arg;
}

static uint32_t read_mark_time(void)
{
	return (uint32_t)time(NULL);
}

static bool is_known_log(const struct store_wal *wal, uint64_t salt, uint64_t end)
{
	return salt == wal->known_salt && end == wal->known_end;
}

static void fill_marked_place(const struct store_wal *wal, struct store_place *place)
{
	place->sequence = wal->record.twin.sequence;
	place->marked_time = wal->record.time;
	place->closed = wal->record.state == STATE_CLOSED;
	if (wal->record.state == STATE_STRICT) {
		/* The end of the log may be that of a commit whose flush has failed, or is to come. */
		place->marked_salt = place->doubtful ? 0 : wal->safe_salt;
		place->marked_end = place->doubtful ? 0 : wal->safe_end;
	} else if (wal->record.state != STATE_LAZY) {
		place->marked_salt = place->salt;
		place->marked_end = place->end;
	} else {
		place->marked_salt = wal->record.salt;
		place->marked_end = wal->record.end;
	}
	place->flushed_end = place->marked_end > LOG_CUT || place->marked_salt != wal->known_salt
				     ? place->marked_end
				     : wal->known_end;
}

void store_wal_place(struct store_wal *wal, struct store_place *place)
{
	pthread_mutex_lock(&wal->lock);
	*place = (struct store_place){.salt = wal->salt,
				      .end = wal->end,
				      .rewinds = wal->rewinds,
				      .rewound_to = wal->rewound_to,
				      .doubtful = wal->end && wal->end == wal->failed_end};
	pthread_mutex_unlock(&wal->lock);
}

void store_wal_marked(struct store_wal *wal, struct store_place *place)
{
	pthread_mutex_lock(&wal->moving);
	store_wal_place(wal, place);
	fill_marked_place(wal, place);
	if (wal->record.state == STATE_STRICT || is_known_log(wal, place->salt, place->end))
		place->marked_time = read_mark_time();
	pthread_mutex_unlock(&wal->moving);
}

void store_wal_removed(struct store_wal *wal)
{
	pthread_mutex_lock(&wal->writing);
	write_tail(wal, (struct tail){0});
	forget_log_state(wal);
	follow_log_cut(wal, 0);
	pthread_mutex_unlock(&wal->writing);
}

/* -- reading a log -- */

/* A walk through the log, which gives its generation and the end of its last whole transaction. */
struct scan {
	struct store_file *file;
	struct store_wal *wal; /* takes the checksums of pages; or NULL */
	bool big; /* checksums of big-endian words */
	uint32_t sum[2];
	uint8_t header[LOG_HEADER];
	uint64_t salt, frame, end; /* as in struct store_wal */
	uint64_t stop;		   /* the first frame that is not whole */
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
		uint32_t a = get32(data + i), b = get32(data + i + 4);

		if (!scan->big) {
			a = __builtin_bswap32(a);
			b = __builtin_bswap32(b);
		}
		scan->sum[0] += a + scan->sum[1];
		scan->sum[1] += b + scan->sum[0];
	}
}

static bool is_next_frame(struct scan *scan, const uint8_t *frame)
{
	if (get64(frame + 8) != scan->salt)
		return false;
	add_log_checksum(scan, frame, 8);
	add_log_checksum(scan, frame + FRAME_HEADER, (size_t)scan->frame - FRAME_HEADER);
	return get32(frame + 16) == scan->sum[0] && get32(frame + 20) == scan->sum[1];
}

static void note_scanned_page(struct scan *scan, const uint8_t *page, uint64_t at)
{
	size_t which = (size_t)((at - LOG_HEADER) / scan->frame);
	uint32_t sum = store_crc(0, page, (size_t)scan->frame - FRAME_HEADER);

	pthread_mutex_lock(&scan->wal->lock);
	note_page_sum(scan->wal, which, sum);
	pthread_mutex_unlock(&scan->wal->lock);
}

/* Follow the frames as far as they belong to this generation and are whole. */
static int scan_log_frames(struct scan *scan, uint8_t *frame)
{
	int rc = 0;

	assert(scan->frame > FRAME_HEADER);
	for (uint64_t at = LOG_HEADER; !rc && (!scan->until || at < scan->until);
	     at += scan->frame) {
		rc = read_exactly(scan, frame, (size_t)scan->frame, at);
		scan->stop = at;
		if (rc || !is_next_frame(scan, frame))
			return rc == -ENODATA ? 0 : rc;
		rc = rewrite_log_bytes(scan, frame, (size_t)scan->frame, at);
		if (scan->wal)
			note_scanned_page(scan, frame + FRAME_HEADER, at);
		if (get32(frame + 4))
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
	page = get32(header + 8);
	if ((get32(header) & ~1u) != LOG_MAGIC || page < 512 || page > 65536 || (page & (page - 1)))
		return 0;
	scan->big = get32(header) & 1;
	add_log_checksum(scan, header, 24);
	if (get32(header + 24) != scan->sum[0] || get32(header + 28) != scan->sum[1])
		return 0;
	scan->salt = get64(header + 16);
	scan->frame = FRAME_HEADER + (uint64_t)page;
	scan->end = LOG_HEADER;
	frame = malloc((size_t)scan->frame);
	rc = frame ? rewrite_log_bytes(scan, header, LOG_HEADER, 0) : -ENOMEM;
	if (!rc)
		rc = scan_log_frames(scan, frame);
	free(frame);
	return rc;
}

/* Whether frames of this generation come behind one that is not whole: then that one is damaged. */
static bool has_later_frames(struct scan *scan)
{
	uint8_t header[FRAME_HEADER];

	for (unsigned i = 0; i < LATER_FRAMES && scan->stop; i++) {
		uint64_t at = scan->stop + (i + 1) * scan->frame;

		if (read_exactly(scan, header, sizeof(header), at))
			break;
		if (get64(header + 8) == scan->salt)
			return true;
	}
	return false;
}

/* Zeros may be written ahead of the header. */
static bool is_blank_log(const struct scan *scan, uint64_t length)
{
	static const uint8_t zeros[LOG_HEADER];

	return length < LOG_HEADER || memcmp(scan->header, zeros, LOG_HEADER) == 0;
}

/* Find the generation and the end of the log as it is. `thorough`: and whether it is damaged. */
static int inspect_log(struct store_wal *wal, bool thorough)
{
	struct scan scan = {.wal = wal};
	uint64_t length = 0;
	int rc = wal->layer->ops->open(wal->layer, wal->log, 0, &scan.file);

	wal->empty = rc == -ENOENT;
	if (rc)
		return rc == -ENOENT ? 0 : rc;
	pthread_mutex_lock(&wal->lock);
	wal->sums = 0;
	pthread_mutex_unlock(&wal->lock);
	rc = scan_log(&scan);
	if (!rc && thorough)
		rc = wal->layer->ops->size(scan.file, &length);
	wal->empty = !rc && thorough && is_blank_log(&scan, length);
	wal->damaged = !rc && thorough && !wal->empty && (!scan.salt || has_later_frames(&scan));
	wal->layer->ops->close(scan.file);
	pthread_mutex_lock(&wal->lock);
	wal->salt = scan.salt;
	wal->frame = scan.frame;
	wal->end = scan.end;
	pthread_mutex_unlock(&wal->lock);
	return rc;
}

/* Cut the log to `size` bytes, durably. */
static int cut_log(struct store_wal *wal, uint64_t size)
{
	const struct store_layer_ops *ops = wal->layer->ops;
	struct store_file *file;
	int rc = ops->open(wal->layer, wal->log, STORE_OPEN_WRITE, &file);

	if (rc)
		return rc == -ENOENT ? 0 : rc;
	if (size <= LOG_HEADER)
		size = 0;
	rc = ops->truncate(file, size);
	if (!rc)
		rc = ops->sync(file);
	ops->close(file);
	pthread_mutex_lock(&wal->lock);
	wal->end = size;
	if (size == 0)
		wal->salt = wal->frame = 0;
	pthread_mutex_unlock(&wal->lock);
	return rc;
}

/* -- the file of the mark -- */

static void read_tail(struct store_wal *wal, struct store_file *file)
{
	const struct iovec iov = {&wal->tail, sizeof(wal->tail)};
	ssize_t n = wal->layer->ops->preadv(file, &iov, 1, STORE_TWIN_END, false);

	if (n != (ssize_t)sizeof(wal->tail) ||
	    !store_twin_is_sound(&wal->tail, sizeof(wal->tail), TAIL_MAGIC))
		wal->tail.magic = 0;
}

/* Read the newest record; *found: there is one. */
static int read_mark_record(struct store_wal *wal, bool *found)
{
	struct store_file *file;
	int rc = wal->layer->ops->open(wal->layer, wal->path, 0, &file);

	*found = wal->unmarked = false;
	if (rc)
		return rc == -ENOENT ? 0 : rc;
	rc = store_twin_read(file, &wal->record, sizeof(wal->record), MAGIC);
	read_tail(wal, file);
	wal->layer->ops->close(file);
	*found = wal->record.twin.magic;
	wal->unmarked = !*found;
	return rc;
}

/* Write wal->record to the place that the newest one is not in. */
static int write_mark_record(struct store_wal *wal, bool make)
{
	const struct store_layer_ops *ops = wal->layer->ops;
	struct store_twin *twin = &wal->record.twin;
	int rc = wal->file ? 0
			   : ops->open(wal->layer, wal->path, STORE_OPEN_WRITE | STORE_OPEN_CREATE,
				       &wal->file);

	assert(mutex_is_held(&wal->moving));
	if (rc)
		return rc;
	/* A mark in the place of one that was lost is not taken for it. */
	if (!twin->magic)
		*twin = (struct store_twin){MAGIC, (uint64_t)time(NULL) << 24};
	rc = store_twin_write(wal->file, &wal->record, sizeof(wal->record));
	if (!rc)
		rc = ops->sync(wal->file);
	if (!rc && make)
		rc = ops->sync_dir(wal->layer, wal->folder);
	return rc;
}

/* In both slots, so that the damage of one does not bring back what was before. */
static int write_mark_twice(struct store_wal *wal, bool make)
{
	int rc = write_mark_record(wal, make);

	return rc ? rc : write_mark_record(wal, false);
}

/*
 * The log was at `at` at `time`, and the bytes up to `end` count after a restart of the machine. If that fails, the old record
 * stays, and the next one is written to the same slot.
 */
static int move_mark_record(struct store_wal *wal, uint64_t salt, uint64_t end, uint64_t at,
			    uint32_t time)
{
	const struct record before = wal->record;
	int rc;

	assert(salt && (wal->record.state == STATE_LAZY || wal->record.state == STATE_STRICT));
	wal->record.salt = salt;
	wal->record.end = end;
	wal->record.time = time;
	rc = write_mark_record(wal, false);
	if (rc) {
		wal->record = before;
		return rc;
	}
	wal->known_salt = salt;
	wal->known_end = at;
	return 0;
}

/* The record is that of the whole log as it is. */
static void note_known_log(struct store_wal *wal)
{
	wal->record.salt = wal->known_salt = wal->salt;
	wal->record.end = wal->known_end = wal->end;
}

/* Its pages would hide newer ones in the database. */
static bool is_part_of_moved_log(const struct store_wal *wal, const struct tail *tail)
{
	return tail->magic && tail->moved && wal->salt == tail->salt && wal->end < tail->end;
}

/* What happened before, and how much of the log counts. *cut: the rest is to be cut off. */
static int judge_log(struct store_wal *wal, enum store_past *past, uint64_t *keep, bool *cut,
		     bool thorough)
{
	char boot[64] = "";
	bool found, restarted;
	int rc = wal->layer->ops->boot(wal->layer, boot);

	*cut = false;
	if (!rc)
		rc = read_mark_record(wal, &found);
	if (!rc)
		rc = inspect_log(wal, thorough);
	if (rc)
		return rc;
	*past = STORE_PAST_CLOSED;
	*keep = wal->end;
	wal->unmarked |= !found && wal->end > LOG_HEADER;
	if (!found || wal->record.state == STATE_CLOSED) {
		/*
		 * Without a mark there was no commit yet: it is made before the first one.
		 */
		note_known_log(wal);
		return 0;
	}
	wal->known_salt = wal->record.salt;
	wal->known_end = wal->record.end;
	/* A flush of the killed process may have failed. The kernel reports such an error only once. */
	wal->doubt = true;
	wal->safe_salt = wal->record.salt;
	wal->safe_end = wal->record.end;
	restarted = strncmp(boot, wal->record.boot, sizeof(boot)) != 0;
	*past = restarted ? STORE_PAST_CRASHED : STORE_PAST_KILLED;
	if (!restarted && is_part_of_moved_log(wal, &wal->tail)) {
		*cut = true;
		*keep = 0;
	}
	if (!restarted || wal->record.state == STATE_STRICT)
		return 0;
	*cut = true;
	if (wal->salt != wal->record.salt || wal->record.end == 0)
		/* All of the marked generation went to the database before this one began. */
		*keep = 0;
	else if (wal->record.end < wal->end)
		*keep = wal->record.end;
	return 0;
}

int store_wal_recover(struct store_wal *wal, enum store_past *past)
{
	uint64_t keep;
	bool cut;
	int rc = judge_log(wal, past, &keep, &cut, false);

	/* Also a log that was cut before: that flush may have failed. */
	return rc || !cut ? rc : cut_log(wal, keep);
}

int store_wal_find(struct store_file *log, uint64_t end, uint32_t page, uint64_t *offset)
{
	struct scan scan = {.file = log};
	uint8_t header[LOG_HEADER];
	int rc = end > LOG_HEADER ? read_exactly(&scan, header, LOG_HEADER, 0) : 0;

	*offset = 0;
	if (rc || end <= LOG_HEADER)
		return rc;
	scan.frame = FRAME_HEADER + (uint64_t)get32(header + 8);
	for (uint64_t at = LOG_HEADER; !rc && at < end; at += scan.frame) {
		rc = read_exactly(&scan, header, FRAME_HEADER, at);
		if (!rc && get32(header) == page)
			*offset = at + FRAME_HEADER;
	}
	return rc;
}

/* What is missing of the log. The machine may have stopped without the last tail, and without what it tells of. */
static void judge_log_end(const struct store_wal *wal, enum store_past past,
			  struct store_place *place)
{
	const struct record *record = &wal->record;
	const struct tail *tail = &wal->tail;
	bool moved;

	place->exact = past == STORE_PAST_KILLED && tail->magic;
	place->tail_salt = tail->salt;
	place->tail_end = tail->moved ? 0 : tail->end;
	moved = place->exact && tail->moved && (!wal->salt || wal->salt == tail->salt);
	/* A machine that stops leaves a log in any state. Without a mark, nobody knows that it did. */
	place->damaged =
		(wal->damaged && past != STORE_PAST_CRASHED && !moved) ||
		(place->salt == place->marked_salt && place->marked_end > LOG_CUT &&
		 place->end < place->marked_end) ||
		(place->exact && !moved && place->salt == tail->salt && place->end < tail->end);
	/* In strict mode the mark has the generation before the first commit in it is acknowledged. */
	place->unsure =
		wal->unmarked || (past == STORE_PAST_KILLED && record->time && !tail->magic);
	place->gone = wal->empty &&
		      (wal->unmarked ||
		       (place->exact ? place->tail_end != 0
				     : record->salt && record->end != LOG_CUT &&
					       (record->end || record->state == STATE_LAZY)));
}

int store_wal_inspect(struct store_wal *wal, struct store_place *place)
{
	enum store_past past;
	uint64_t keep = 0;
	bool cut;
	int rc = judge_log(wal, &past, &keep, &cut, true);

	*place = (struct store_place){.salt = keep ? wal->salt : 0, .end = keep};
	fill_marked_place(wal, place);
	if (!rc && !place->closed)
		judge_log_end(wal, past, place);
	return rc;
}

int store_wal_frames(struct store_wal *wal, int (*each)(void *arg, const struct store_frame *frame),
		     void *arg)
{
	struct scan scan = {0};
	enum store_past past;
	uint64_t keep;
	bool cut;
	int rc = judge_log(wal, &past, &keep, &cut, false);

	if (rc || keep <= LOG_HEADER)
		return rc;
	rc = wal->layer->ops->open(wal->layer, wal->log, 0, &scan.file);
	if (rc)
		return rc;
	for (uint64_t at = LOG_HEADER; !rc && at < keep; at += wal->frame) {
		uint8_t header[FRAME_HEADER];

		rc = read_exactly(&scan, header, sizeof(header), at);
		if (!rc)
			rc = each(arg, &(struct store_frame){.page = get32(header),
							     .pages = get32(header + 4),
							     .offset = at + FRAME_HEADER});
	}
	wal->layer->ops->close(scan.file);
	return rc;
}

int store_wal_begin(struct store_wal *wal, bool strict)
{
	int rc;

	pthread_mutex_lock(&wal->writing);
	wal->gather.ahead = strict;
	pthread_mutex_unlock(&wal->writing);
	pthread_mutex_lock(&wal->moving);
	memset(wal->record.boot, 0, sizeof(wal->record.boot));
	rc = wal->layer->ops->boot(wal->layer, wal->record.boot);
	/* Strict mode does not move the mark: what it left in the log counts. */
	if (wal->record.state == STATE_STRICT)
		note_known_log(wal);
	if (wal->record.state != STATE_LAZY)
		wal->record.time = read_mark_time();
	wal->record.state = strict ? STATE_STRICT : STATE_LAZY;
	if (!rc)
		rc = write_mark_twice(wal, true);
	pthread_mutex_lock(&wal->writing);
	if (!rc && !wal->tail_file)
		rc = wal->layer->ops->open(wal->layer, wal->path, STORE_OPEN_WRITE,
					   &wal->tail_file);
	write_tail_of_log(wal, false);
	pthread_mutex_unlock(&wal->writing);
	pthread_mutex_unlock(&wal->moving);
	return rc;
}

/*
 * Bytes of the log are neither on stable storage nor in memory. What was acknowledged as durable
 * lies before the mark. The next start cuts the log there, as after a restart of the machine.
 */
static int lose_log(struct store_wal *wal)
{
	assert(mutex_is_held(&wal->moving));
	atomic_store(&wal->lost, true);
	if (wal->record.state == STATE_LAZY) {
		memset(wal->record.boot, 0, sizeof(wal->record.boot));
		write_mark_record(wal, false);
	}
	return -ENOTRECOVERABLE;
}

/*
 * After a flush that failed, the kernel takes the bytes for written, and the next flush succeeds without them. So all that
 * came after the last good flush is written again, if its checksums are right.
 */
static int rewrite_unsafe_log(struct store_wal *wal, struct store_file *log)
{
	struct scan scan = {.file = log};
	uint64_t salt;
	int rc = 0;

	assert(mutex_is_held(&wal->moving));
	pthread_mutex_lock(&wal->writing);
	get_log_end(wal, &salt, &scan.until);
	if (wal->safe_salt == salt)
		scan.from = wal->safe_end;
	if (scan.until)
		rc = scan_log(&scan);
	pthread_mutex_unlock(&wal->writing);
	if (!rc && (scan.until != scan.end || (scan.until && scan.salt != salt)))
		return lose_log(wal);
	wal->doubt = rc != 0;
	return rc;
}

static int sync_log(struct store_wal *wal, struct store_file *log, uint64_t salt, uint64_t end)
{
	int rc = wal->doubt ? rewrite_unsafe_log(wal, log) : 0;

	if (rc)
		return rc;
	rc = wal->layer->ops->sync(log);
	if (!rc) {
		wal->safe_salt = salt;
		wal->safe_end = end;
		return 0;
	}
	wal->doubt = true;
	/* At once, while the bytes are in memory. In strict mode the transaction fails instead. */
	if (wal->record.state == STATE_LAZY && rewrite_unsafe_log(wal, log) == -ENOTRECOVERABLE)
		rc = -ENOTRECOVERABLE;
	return rc;
}

/* In strict mode the commit that ends there may fail with its flush. */
static void note_failed_flush(struct store_wal *wal, uint64_t salt, uint64_t end)
{
	assert(mutex_is_held(&wal->moving));
	pthread_mutex_lock(&wal->lock);
	if (wal->record.state == STATE_STRICT && wal->salt == salt)
		wal->failed_end = end;
	pthread_mutex_unlock(&wal->lock);
}

/*
 * In strict mode only a generation needs a flush of the mark, without which it is not known that there was such a log. No commit
 * fails because of that.
 */
static int mark_flushed_log(struct store_wal *wal, uint64_t salt, uint64_t end, uint32_t time)
{
	bool strict = wal->record.state == STATE_STRICT;
	int rc;

	if (!salt || (!strict && wal->record.state != STATE_LAZY) || is_known_log(wal, salt, end))
		return 0;
	if (strict && salt == wal->record.salt)
		return 0;
	rc = move_mark_record(wal, salt, end, end, time);
	return strict ? 0 : rc;
}

int store_wal_flush(struct store_wal *wal, struct store_file *log)
{
	uint64_t salt, end;
	uint32_t time = read_mark_time();
	int rc;

	pthread_mutex_lock(&wal->moving);
	get_log_end(wal, &salt, &end);
	/* SQLite flushes the header of a new log in a commit. After a restart of the machine that log is cut anyway. */
	if (wal->record.state == STATE_LAZY && !wal->record.end && end <= LOG_HEADER) {
		pthread_mutex_unlock(&wal->moving);
		return 0;
	}
	rc = is_log_lost(wal) ? -ENOTRECOVERABLE : 0;
	if (!rc && wal->before_sync)
		rc = wal->before_sync(wal->arg);
	if (!rc)
		rc = sync_log(wal, log, salt, end);
	/* A new log has a name to be kept, too. */
	if (!rc && salt != wal->named) {
		rc = wal->layer->ops->sync_dir(wal->layer, wal->folder);
		wal->named = rc ? 0 : salt;
	}
	if (!rc)
		rc = mark_flushed_log(wal, salt, end, time);
	if (rc)
		note_failed_flush(wal, salt, end);
	pthread_mutex_unlock(&wal->moving);
	has_flushed = true;
	return rc;
}

int store_wal_moves(struct store_wal *wal)
{
	int rc = 0;

	if (!has_flushed)
		return 0;
	pthread_mutex_lock(&wal->moving);
	if (wal->record.state == STATE_STRICT && wal->safe_salt &&
	    (wal->record.salt != wal->safe_salt || wal->record.end != wal->safe_end))
		rc = move_mark_record(wal, wal->safe_salt, wal->safe_end, wal->safe_end,
				      read_mark_time());
	pthread_mutex_unlock(&wal->moving);
	has_flushed = rc != 0;
	return rc;
}

static int note_empty_log(struct store_wal *wal, uint64_t mark)
{
	uint64_t salt, end;
	int rc = 0;

	pthread_mutex_lock(&wal->moving);
	get_log_end(wal, &salt, &end);
	if ((wal->record.state == STATE_LAZY || wal->record.state == STATE_STRICT) && salt &&
	    (wal->record.salt != salt || wal->record.end != mark))
		rc = move_mark_record(wal, salt, mark, end, read_mark_time());
	pthread_mutex_unlock(&wal->moving);
	return rc;
}

int store_wal_truncate(struct store_wal *wal, struct store_file *file, uint64_t size)
{
	const struct store_layer_ops *ops = file->layer->ops;
	int rc;

	if (size == 0) {
		tell_follower(wal);
		/* Else the mark would say that the log has lost something. */
		rc = note_empty_log(wal, LOG_CUT);
		if (rc)
			return rc;
	}
	pthread_mutex_lock(&wal->writing);
	if (size == 0)
		write_tail_of_log(wal, true);
	rc = ops->truncate(file, size);
	if (!rc) {
		forget_log_state(wal);
		follow_log_cut(wal, size);
		rc = ops->sync(file);
	}
	pthread_mutex_unlock(&wal->writing);
	return rc;
}

int store_wal_emptied(struct store_wal *wal)
{
	pthread_mutex_lock(&wal->writing);
	write_tail_of_log(wal, true);
	pthread_mutex_unlock(&wal->writing);
	return note_empty_log(wal, 0);
}

static bool has_log_grown(struct store_wal *wal)
{
	uint64_t salt, end;
	bool grown;

	pthread_mutex_lock(&wal->moving);
	get_log_end(wal, &salt, &end);
	grown = !is_known_log(wal, salt, end) || is_log_lost(wal);
	pthread_mutex_unlock(&wal->moving);
	return grown;
}

int store_wal_move(struct store_wal *wal)
{
	int rc = 0;

	if (!has_log_grown(wal))
		return 0;
	if (!wal->log_file)
		rc = wal->layer->ops->open(wal->layer, wal->log, STORE_OPEN_WRITE, &wal->log_file);
	if (rc)
		return rc == -ENOENT ? 0 : rc;
	return store_wal_flush(wal, wal->log_file);
}

int store_wal_end(struct store_wal *wal)
{
	int rc;

	pthread_mutex_lock(&wal->moving);
	wal->record.state = STATE_CLOSED;
	wal->record.time = read_mark_time();
	rc = write_mark_twice(wal, false);
	pthread_mutex_unlock(&wal->moving);
	return rc;
}
