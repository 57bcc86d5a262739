/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections for reading, which threads borrow. */
#ifndef STORE_READERS_H
#define STORE_READERS_H

#include "volume/store/db/db.h"

struct readers;

int readers_create(const struct db_options *options, unsigned count, struct readers **readers);
void readers_destroy(struct readers *readers); /* NULL is allowed */
/* Waits until one is free. It is opened when it is first needed: 0 or a result of db_open(). */
int readers_get(struct readers *readers, struct db **db);
void readers_put(struct readers *readers, struct db *db);

#endif
