/* SPDX-License-Identifier: BSD-2-Clause */
/* SQLite's files on a store_layer: a VFS for write-ahead logging in one process. */
#ifndef STORE_VFS_H
#define STORE_VFS_H

#include <stdbool.h>

#include "volume/store/disk/layer.h"
#include "volume/store/disk/report.h"

struct store_vfs;

/*
 * Pages of the database, which all have this size. The last bytes of each are its checksum: a database is to be made with
 * so many spare bytes (SQLITE_FCNTL_RESERVE_BYTES). A page with a wrong one is not given to SQLite: the statement that
 * needs it fails, and others go on.
 */
#define STORE_DB_PAGE  4096
#define STORE_DB_SPARE 4
/* A file beside the database: a damaged page was found, so all are to be looked at before it is opened again. */
#define STORE_DAMAGED "damaged"
/* The folder of the copy of the metadata (replica.h). */
#define STORE_COPY "copy"

/* `number`: from 1 on. */
uint32_t store_page_sum(uint32_t number, const void *page);
bool store_page_is_sound(uint32_t number, const void *page);
bool store_page_is_zero(const void *page); /* it was never used */

/*
 * Register a VFS under a name of its own, for the database "meta/db". Locks and the index of the log
 * live in memory, because layer->lock() keeps other processes out. `before_log_sync` is called
 * without locks of the VFS before the write-ahead log is flushed, also by a checkpoint: what the log
 * refers to must be on stable storage first. Its result, 0 or -errno, becomes that of the flush. 0
 * or -errno.
 */
int store_vfs_create(struct store_layer *layer, int (*before_log_sync)(void *arg), void *arg,
		     struct store_vfs **vfs);
/* The same for a database in another folder. */
int store_vfs_create_in(struct store_layer *layer, const char *folder,
			int (*before_log_sync)(void *arg), void *arg, struct store_vfs **vfs);
/* Its log, for the copy of the metadata. */
struct store_wal *store_vfs_wal(struct store_vfs *vfs);
/* All connections are closed. NULL is allowed. */
void store_vfs_destroy(struct store_vfs *vfs);
/* Damaged pages are reported there from now on. While one thread uses the connections. */
void store_vfs_report(struct store_vfs *vfs, struct report *report);
/* Asked for a page that is damaged: true, and its bytes, if they are known. */
struct store_spare {
	/* Of the database, for certain. */
	bool (*page)(void *arg, uint32_t number, uint8_t page[STORE_DB_PAGE]);
	/* At an offset of the log; the caller verifies it. */
	bool (*frame)(void *arg, uint64_t offset, uint8_t page[STORE_DB_PAGE]);
	void *arg; /* NULL: nobody is asked */
};
void store_vfs_spare(struct store_vfs *vfs, const struct store_spare *spare);
/* For sqlite3_open_v2(). */
const char *store_vfs_name(const struct store_vfs *vfs);
/* The errno, positive, of the layer's last failure in this thread; 0: none since the last call. */
int store_vfs_errno(void);

/*
 * -- loss of data in a restart of the machine --
 *
 * A commit without a flush may reach the disk before the files that it refers to. So the file
 * "meta/mark" names the last point of the log up to which everything is on stable storage. If the
 * machine restarts, the log is cut there. In strict mode nothing is cut: the user flushes what a
 * transaction refers to BEFORE the commit writes to the log, and SQLite flushes the log
 * (synchronous=FULL). In lazy mode: synchronous=NORMAL, which never flushes in a commit but always in
 * a checkpoint; never OFF. After STORE_PAST_KILLED, files of the last process may not be flushed:
 * the first `before_log_sync` has to call layer->sync_all(). All functions return 0 or -errno.
 */

enum store_past {
	STORE_PAST_CLOSED,  /* flushed and closed, or new */
	STORE_PAST_KILLED,  /* the process ended; its files are whole, but may not be flushed */
	STORE_PAST_CRASHED, /* the machine restarted */
};
/*
 * Before the first connection: read the mark, and cut the log after a restart of the machine. The
 * database may be missing.
 */
int store_vfs_recover(struct store_vfs *vfs, enum store_past *past);
/*
 * Record the mode, before the first commit. For strict mode everything must be on stable storage:
 * after STORE_PAST_KILLED, call layer->sync_all() first.
 */
int store_vfs_begin(struct store_vfs *vfs, bool strict);
/*
 * Lazy mode: if the log has grown, flush it and what it refers to, then move the mark. Commits may go
 * on meanwhile. Every flush of the log by SQLite moves the mark as well.
 */
int store_vfs_mark(struct store_vfs *vfs);
/*
 * While no commit can come: a checkpoint has moved all of the log to the database. After a restart of the machine the log
 * is cut to nothing. So the commit with which it starts again need not flush its header, in lazy mode.
 */
int store_vfs_emptied(struct store_vfs *vfs);
/* After the last commit and a flush of everything. */
int store_vfs_end(struct store_vfs *vfs);
/* Bytes of committed transactions in the log. */
uint64_t store_vfs_log_size(const struct store_vfs *vfs);

#endif
