/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections to SQLite and single statements, as the store and the database of users have them. Not for the library. */
#ifndef COMMON_SQL_H
#define COMMON_SQL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sqlite3.h>

#define SQL_BUSY_MS 10000 /* to wait for locks of other connections */

/* A connection of one thread at a time. `flags` are added; `vfs` may be NULL. A result of SQLite; *db: NULL without memory. */
static inline int sql_open(const char *path, int flags, const char *vfs, sqlite3 **db)
{
	int rc = sqlite3_open_v2(path, db,
				 flags | SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX |
					 SQLITE_OPEN_PRIVATECACHE,
				 vfs);

	if (rc != SQLITE_OK)
		return rc;
	sqlite3_extended_result_codes(*db, 1);
	sqlite3_busy_timeout(*db, SQL_BUSY_MS);
	/* A damaged file must not make the library run what is in its schema. */
	sqlite3_db_config(*db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	sqlite3_db_config(*db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	return SQLITE_OK;
}

/* SQL without results, perhaps several statements. A result of SQLite. */
static inline int sql_run(sqlite3 *db, const char *sql)
{
	return sqlite3_exec(db, sql, NULL, NULL, NULL);
}

/*
 * One statement. Its parameters are `count` integers, and after them `name` unless that is NULL. `each` is called for the rows
 * of its result, as long as it returns true; NULL: the first row is not looked at, and there is no other. A result of SQLite.
 */
static inline int sql_query(sqlite3 *db, const char *sql, const int64_t *parameters, int count,
			    const char *name, bool (*each)(void *arg, sqlite3_stmt *row), void *arg)
{
	sqlite3_stmt *statement = NULL;
	int rc = sqlite3_prepare_v2(db, sql, -1, &statement, NULL);

	for (int i = 0; rc == SQLITE_OK && i < count; i++)
		rc = sqlite3_bind_int64(statement, i + 1, parameters[i]);
	if (rc == SQLITE_OK && name)
		rc = sqlite3_bind_text(statement, count + 1, name, -1, SQLITE_STATIC);
	if (rc == SQLITE_OK) {
		do
			rc = sqlite3_step(statement);
		while (rc == SQLITE_ROW && each && each(arg, statement));
		if (rc == SQLITE_ROW || rc == SQLITE_DONE)
			rc = SQLITE_OK;
	}
	/* The code of a failed step comes again; that of a failed prepare stays. */
	if (statement && sqlite3_finalize(statement) != SQLITE_OK && rc == SQLITE_OK)
		rc = sqlite3_errcode(db);
	return rc;
}

#endif
