/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bytes of objects that a flush lost: the database has a record of them, so that they are an error also after a restart. It is
 * written before the mark moves over the commits that refer to them.
 */
#ifndef STORE_LOST_H
#define STORE_LOST_H

#include "volume/store/txn/core.h"

/* When the store is opened: take over the records. 0 or a result of the database. */
int lost_load(struct core *core, struct db *db);
/* Record what was lost since: before there is a thread that commits, and afterwards. The same. */
int lost_record_first(struct core *core, struct db *db);
int lost_record(struct core *core);
/* Delete the record of an object, in the transaction that deletes its row. */
int lost_forget(struct core *core, struct db *db, uint64_t object);
/* -EIO: bytes of a file's newest version are lost. */
int lost_check(struct core *core, const struct store_fid *fid);

#endif
