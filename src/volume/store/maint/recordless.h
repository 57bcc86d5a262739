/* SPDX-License-Identifier: BSD-2-Clause */
/* Files out of contents whose records are lost. */
#ifndef STORE_RECORDLESS_H
#define STORE_RECORDLESS_H

#include "volume/store/db/db.h"

/*
 * In a transaction, after the rows of a damaged database were taken over: each vnode whose record is lost, and that has objects
 * in `layer`, gets a record with VNODE_LOST. Its blocks come from the newest object that has data there. They have new
 * checksums, which do not show whether the data are as they were. *count: how many. 0 or a result.
 */
int recordless_adopt(struct db *db, struct store_layer *layer, uint64_t *count);

#endif
