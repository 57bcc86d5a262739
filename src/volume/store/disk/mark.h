/* SPDX-License-Identifier: BSD-2-Clause */
/* How far the write-ahead log is on stable storage: a part of the VFS, see vfs.h. */
#ifndef STORE_MARK_H
#define STORE_MARK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "volume/store/disk/vfs.h"

/* Any thread. */
struct store_mark;

/*
 * `path`: of the mark, `log`: of the write-ahead log; constant strings. before_sync as in
 * store_vfs_create(). 0 or -ENOMEM.
 */
int store_mark_create(struct store_layer *layer, const char *path, const char *log,
		      int (*before_sync)(void *arg), void *arg, struct store_mark **mark);
void store_mark_destroy(struct store_mark *mark);

/* Called around each write to the log and each cut of it, with the two calls below. */
void store_mark_hold(struct store_mark *mark);
void store_mark_release(struct store_mark *mark);
/* The log is about to be written to at `offset`. */
void store_mark_writes(struct store_mark *mark, uint64_t offset);
/* The log was written to or cut: follow the end of its last transaction. */
void store_mark_wrote(struct store_mark *mark, const void *data, size_t size, uint64_t offset);
void store_mark_truncated(struct store_mark *mark, uint64_t size);
uint64_t store_mark_log_size(struct store_mark *mark);

/*
 * Flush the log, after what it refers to, and move the mark. A checkpoint needs both: it copies what
 * the log has to the database, so the log must not be cut before that. After a flush that failed, the next one writes the
 * bytes again. 0 or -errno; -ENOTRECOVERABLE: they are gone, and the log must not be used any more.
 */
int store_mark_flush(struct store_mark *mark, struct store_file *log);

/* Bytes of the log were lost: nothing in it may be read, or added. */
bool store_mark_lost(struct store_mark *mark);

/* As the functions of vfs.h with similar names. */
int store_mark_recover(struct store_mark *mark, enum store_past *past);
int store_mark_begin(struct store_mark *mark, bool strict);
int store_mark_move(struct store_mark *mark);
int store_mark_emptied(struct store_mark *mark);
int store_mark_end(struct store_mark *mark);

#endif
