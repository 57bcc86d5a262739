/* SPDX-License-Identifier: BSD-2-Clause */
/* The write-ahead log, a part of the VFS (vfs.h): its writes, and how far it is on stable storage. */
#ifndef STORE_WAL_H
#define STORE_WAL_H

#include <stddef.h>
#include <stdint.h>

#include "volume/store/disk/vfs.h"

#define STORE_LOG_HEADER   32 /* bytes in front of the first frame */
#define STORE_FRAME_HEADER 24 /* bytes in front of the page of a frame */

/* Any thread; one at a time writes. */
struct store_wal;

/*
 * `path`: of the mark, `log`: of the write-ahead log; constant strings. before_sync as in
 * store_vfs_create(). 0 or -ENOMEM.
 */
int store_wal_create(struct store_layer *layer, const char *path, const char *log,
		     int (*before_sync)(void *arg), void *arg, struct store_wal **wal);
void store_wal_destroy(struct store_wal *wal);

/*
 * SQLite writes each frame of a transaction as a header and a page. Here they are gathered until the last frame of the
 * transaction, whose write then returns the result for all: one system call. What was gathered belongs to no committed
 * transaction. Each connection has a file of its own. 0 or -errno; -ENOTRECOVERABLE: bytes of the log are gone, and it must
 * not be used any more.
 */
int store_wal_write(struct store_wal *wal, struct store_file *file, const void *data, size_t size,
		    uint64_t offset);
/* Before the file is read from `offset` on, flushed, or asked for its length: write what was gathered. The same results. */
int store_wal_settle(struct store_wal *wal, struct store_file *file, uint64_t offset, size_t size);
/*
 * Cut the file, durably. Everything in it is in the database. If the cut were lost and the beginning of the log were
 * overwritten in part, the rest of it would hide newer pages of the database. 0 or -errno.
 */
int store_wal_truncate(struct store_wal *wal, struct store_file *file, uint64_t size);
/* The file was removed: what was gathered is dropped. */
void store_wal_removed(struct store_wal *wal);
/* Whether a page that was read from the log, at `offset`, is as it was written. True as well if that is not known. */
bool store_wal_is_sound(struct store_wal *wal, const void *page, size_t size, uint64_t offset);
/*
 * Flush the log, after what it refers to, and move the mark. A checkpoint needs both: it copies what
 * the log has to the database, so the log must not be cut before that. After a flush that failed, the next one writes the
 * bytes again. 0, -errno or -ENOTRECOVERABLE.
 */
int store_wal_flush(struct store_wal *wal, struct store_file *log);

/*
 * Before pages of the log are written to the database: in strict mode, move the mark over what was flushed. A log that ends before
 * the mark does not have all that the database has. 0 or -errno.
 */
int store_wal_moves(struct store_wal *wal);

/*
 * For a copy of the log. `before_restart` is called without locks of the log, and without commits, before it begins anew or
 * is cut to nothing: all of it is in the database, and flushed. Before the first connection.
 */
void store_wal_follow(struct store_wal *wal, void (*before_restart)(void *arg), void *arg);
struct store_place {
	uint64_t salt; /* generation of the log; 0: it is empty */
	uint64_t end;  /* bytes of its transactions */
	/* SQLite overwrites a commit that failed: how often, and the lowest offset at which it did in this generation. */
	uint64_t rewinds, rewound_to;
	bool doubtful; /* strict mode: the last transaction may have failed, with a flush */
	/* The members that follow are not filled by store_wal_place(). */
	uint64_t marked_salt, marked_end; /* as far as what the log refers to is flushed */
	uint64_t flushed_end; /* the same; also of a log that went to the database, whose mark has no end */
	uint32_t marked_time; /* all commits before were; CLOCK_REALTIME in seconds, or 0 */
	uint64_t sequence;    /* of the mark; 0: there is none */
	bool closed;			  /* the mark says so */
	/* Only of store_wal_inspect(): in the middle of the log, or at its beginning, bytes are damaged. */
	bool damaged;
	bool gone;   /* there is no log although there was one */
	bool unsure; /* so is the mark, or the tail */
	bool exact;  /* the machine went on, so it is known how long the log was: */
	uint64_t tail_salt, tail_end;
};
void store_wal_place(struct store_wal *wal, struct store_place *place);
void store_wal_marked(struct store_wal *wal, struct store_place *place); /* may wait for a flush */
/*
 * Find the last frame of a page among the first `end` bytes of the log in a file. *offset: of its bytes; 0: there is none. 0
 * or -errno.
 */
int store_wal_find(struct store_file *log, uint64_t end, uint32_t page, uint64_t *offset);
/* As store_wal_marked(), of a log that nobody has open, as store_wal_recover() would leave it. 0 or -errno. */
int store_wal_inspect(struct store_wal *wal, struct store_place *place);

/*
 * Call `each` for the frames that count, of a log that nobody has open, without changing anything. Nonzero stops. 0, -errno,
 * or what `each` returned.
 */
struct store_frame {
	uint32_t page;	 /* its number */
	uint32_t pages;	 /* of the database, after the transaction that ends here; 0: it goes on */
	uint64_t offset; /* of its bytes in the file of the log */
};
int store_wal_frames(struct store_wal *wal, int (*each)(void *arg, const struct store_frame *frame),
		     void *arg);

/* As the functions of vfs.h with similar names. */
int store_wal_recover(struct store_wal *wal, enum store_past *past);
int store_wal_begin(struct store_wal *wal, bool strict);
int store_wal_move(struct store_wal *wal);
int store_wal_emptied(struct store_wal *wal);
int store_wal_end(struct store_wal *wal);
uint64_t store_wal_size(struct store_wal *wal);

#endif
