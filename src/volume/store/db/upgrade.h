/* SPDX-License-Identifier: BSD-2-Clause */
/* From format 2 to format 3: lists of extents become maps of blocks with checksums. */
#ifndef STORE_UPGRADE_H
#define STORE_UPGRADE_H

#include "volume/store/db/slots.h"

/*
 * In a transaction, after all rows of the old database were taken over. All contents are read. Objects that are made, and that
 * are not committed, are removed when the store is opened. 0, a volume code, or -errno.
 */
int db_upgrade_contents(struct db *db, struct store_layer *layer);

#endif
