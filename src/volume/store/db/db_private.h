/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by db.c (connections) and rows.c (tables). */
#ifndef STORE_DB_PRIVATE_H
#define STORE_DB_PRIVATE_H

#include <sqlite3.h>

#include "common/sql.h"
#include "volume/store/db/db.h"

enum statement {
	DB_BEGIN,
	DB_BEGIN_READ,
	DB_COMMIT,
	DB_ROLLBACK,
	NUMBER_GET,
	NUMBER_PUT,
	NUMBER_DELETE,
	NUMBER_EACH,
	VOLUME_EACH,
	VOLUME_GET,
	VOLUME_PUT,
	VOLUME_UPDATE,
	VOLUME_DELETE,
	VNODE_GET,
	VNODE_INSERT,
	VNODE_UPDATE,
	VNODE_DELETE,
	VNODE_ROWS,
	VNODE_GROUP,
	VNODE_OUTLINE,
	GROUP_NEXT,
	CHANGES,
	PAGE_GET,
	PAGE_FIND,
	PAGE_INSERT,
	PAGE_UPDATE,
	PAGE_DELETE,
	PAGE_DELETE_SOME,
	PAGE_PRUNE,
	SLOT_GET,
	SLOT_PUT,
	SLOT_DELETE,
	SLOT_ROWS,
	SLOT_EACH,
	SLOT_DROP,
	MAP_NEXT,
	DROP_PUT,
	DROP_FIRST,
	DROP_DELETE,
	DROP_EACH,
	SMALL_GET,
	SMALL_PUT,
	SMALL_DELETE,
	SMALL_EACH,
	OBJECT_GET,
	OBJECT_PUT,
	OBJECT_DELETE,
	OBJECT_EACH,
	OBJECT_DEAD,
	PRUNE_FIRST,
	PRUNE_FIRST_OF,
	PRUNE_INSERT,
	PRUNE_UPDATE,
	PRUNE_DELETE,
	PRUNE_COUNT,
	PRUNE_HAS,
	LOCATION_TABLE,
	LOCATION_PUT,
	LOCATION_DELETE,
	LOCATION_EACH,
	REFERENCE_PUT,
	REFERENCE_OWNER,
	STATEMENTS
};

struct db {
	sqlite3 *sql;
	struct db_options options;
	sqlite3_stmt *statement[STATEMENTS]; /* prepared when first used */
	bool begun; /* a transaction has */
	int unready; /* why the last statement could not be prepared */
	int lost;   /* SQLite has undone it, because of this error; 0: it has not */
	uint32_t rows_read;
};

#define DB_SLOT_TABLES                                                                           \
	"CREATE TABLE slot(id INTEGER PRIMARY KEY, map INTEGER, slot INTEGER, epoch INTEGER,"    \
	" data BLOB NOT NULL);"                                                                  \
	"CREATE UNIQUE INDEX slot_key ON slot(map, slot, epoch);"                                \
	"CREATE TABLE dropped(id INTEGER PRIMARY KEY AUTOINCREMENT, map INTEGER, above INTEGER," \
	" until INTEGER, next INTEGER, slot INTEGER);"

#define DB_ROW 1000 /* of db_step(): a row; 0: the end */

/* A result of SQLite as one of this module; damage is reported. */
int db_result(struct db *db, int rc);
/*
 * The statement; NULL: it cannot be prepared. Then SQLite ignores its parameters, the functions below give the reason, and
 * db_done() does nothing.
 */
sqlite3_stmt *db_statement(struct db *db, enum statement which);
/* The same with its parameters, which are integers, from the first one on. */
sqlite3_stmt *db_bind(struct db *db, enum statement which, const uint64_t *number, size_t count);
#define BIND(db, which, ...)                                \
	db_bind(db, which, (const uint64_t[]){__VA_ARGS__}, \
		sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t))
/* A statement of its own, to be finalized. NULL: *result. And several without rows. */
sqlite3_stmt *db_prepare(struct db *db, const char *sql, int *result);
int db_sql(struct db *db, const char *sql);
int db_step(struct db *db, sqlite3_stmt *statement);
/* The first row: 0, or -ENOENT. */
int db_first(struct db *db, sqlite3_stmt *statement);
void db_done(sqlite3_stmt *statement);
/* A statement without rows, which ends. */
int db_run(struct db *db, sqlite3_stmt *statement);

#endif
