/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes of the write-ahead log, with one system call for a transaction: a part of the VFS. */
#ifndef STORE_LOGFILE_H
#define STORE_LOGFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "volume/store/disk/layer.h"
#include "volume/store/disk/mark.h"

/*
 * SQLite writes each frame of a transaction as a header and a page. Here they are gathered until the last frame of the
 * transaction, whose write then returns the result for all. What was gathered belongs to no committed transaction.
 * Any thread; one at a time writes.
 */
struct store_logfile;

/* NULL: no memory. The mark follows what is written. */
struct store_logfile *store_logfile_create(struct store_mark *mark);
void store_logfile_destroy(struct store_logfile *log); /* NULL is allowed */
/* From now on the log is made longer ahead of what is written, so that flushes find it as long as before. */
void store_logfile_ahead(struct store_logfile *log, bool ahead);
/* Each connection has a file of its own. 0 or -errno. */
int store_logfile_write(struct store_logfile *log, struct store_file *file, const void *data,
			size_t size, uint64_t offset);
/* Before the file is read from `offset` on, flushed, or asked for its length: write what was gathered. 0 or -errno. */
int store_logfile_settle(struct store_logfile *log, struct store_file *file, uint64_t offset,
			 size_t size);
/*
 * Cut the file, durably. Everything in it is in the database. If the cut were lost and the beginning of the log were
 * overwritten in part, the rest of it would hide newer pages of the database. 0 or -errno.
 */
int store_logfile_truncate(struct store_logfile *log, struct store_file *file, uint64_t size);
/* The file was removed: what was gathered is dropped. */
void store_logfile_removed(struct store_logfile *log);

#endif
