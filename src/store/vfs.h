/* SPDX-License-Identifier: BSD-2-Clause */
/* SQLite's files on a store_layer: a VFS for write-ahead logging in one process. */
#ifndef STORE_VFS_H
#define STORE_VFS_H

#include "store/layer.h"

struct store_vfs;

/*
 * Register a VFS under a name of its own, for databases "meta/db". Locks and the index of the log
 * live in memory, because layer->lock() keeps other processes out. `before_log_sync` is called
 * without locks of the VFS before the write-ahead log is flushed: what the log refers to must be on
 * stable storage first; its result, 0 or -errno, becomes that of the flush. 0 or -errno.
 */
int store_vfs_create(struct store_layer *layer, int (*before_log_sync)(void *arg), void *arg,
		     struct store_vfs **vfs);
/* All connections are closed. NULL is allowed. */
void store_vfs_destroy(struct store_vfs *vfs);
/* For sqlite3_open_v2(). */
const char *store_vfs_name(const struct store_vfs *vfs);

/* The last errno that a function of the layer returned to SQLite in this thread; 0: none. */
int store_vfs_errno(void);

/*
 * A point in the write-ahead log up to which it is on stable storage, with all that it refers to:
 * kept in the file "meta/mark". After a restart of the machine the log is cut there: what follows
 * may refer to data that was never written.
 */
/* Flush the log if it has grown, then record the point. The caller keeps commits away meanwhile. */
int store_vfs_mark(struct store_vfs *vfs);
/* Before the first connection: cut the log at the mark. */
int store_vfs_cut(struct store_vfs *vfs);

#endif
