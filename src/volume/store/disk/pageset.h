/* SPDX-License-Identifier: BSD-2-Clause */
/* The pages of a database that nobody has open, each with a verdict on it: for copies, repairs and rescue. */
#ifndef STORE_PAGESET_H
#define STORE_PAGESET_H

#include "volume/store/disk/vfs.h"

/* One thread at a time. */
struct store_pageset;

/*
 * The files "db", "db-wal" and "mark" of a folder. What the log has counts, as after store_vfs_recover(), but nothing is
 * changed. Files may be missing or damaged: then there are fewer pages. 0 or -errno.
 */
int store_pageset_open(struct store_layer *layer, const char *folder, struct store_pageset **set);
/* The same with the log of another folder. */
int store_pageset_open_with(struct store_layer *layer, const char *folder,
			    struct store_layer *log_layer, const char *log_folder,
			    struct store_pageset **set);
/* Its pages have no checksums: they are those of a store of the format before. */
void store_pageset_plain(struct store_pageset *set);
unsigned
store_pageset_usable(const struct store_pageset *set); /* bytes of a page that are SQLite's */
void store_pageset_close(struct store_pageset *set); /* NULL is allowed */
/* Pages of the database; 0: there is none. They have the numbers from 1 on. */
uint32_t store_pageset_pages(const struct store_pageset *set);
/* Whether the database has its first page, and each other one that the log has not. */
bool store_pageset_is_whole(const struct store_pageset *set);
/* Whether there is a log, but no first page in front of it: SQLite would remove that log. */
bool store_pageset_is_headless(const struct store_pageset *set);
/* How many pages the database has, as its first page says. */
uint32_t store_pageset_length(const uint8_t first[STORE_DB_PAGE]);
/* Count the pages that the first page tells of, if it is sound, and that the file has lost. */
void store_pageset_count_lost(struct store_pageset *set);
/* Read one. 0; -EBADMSG: it is damaged or cannot be read. */
int store_pageset_read(struct store_pageset *set, uint32_t number, uint8_t page[STORE_DB_PAGE]);
/* Whether the log has a page, so that the one of the database does not count. */
bool store_pageset_logs(const struct store_pageset *set, uint32_t number);
/*
 * Whether two databases are the same as far as can be told: pages that are sound in both, at least a quarter, have the same
 * bytes. *bad: pages of `set` that are damaged.
 */
bool store_pageset_is_like(struct store_pageset *set, struct store_pageset *other, uint32_t *bad);
/*
 * Give a damaged file a name with ".damaged" and, if that is taken, a number. One that is missing is none. Not durably. 0 or
 * -errno.
 */
int store_file_keep(struct store_layer *layer, const char *path);

#endif
