/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections to the database: opening, transactions, errors, statements. */
#include "volume/store/db/db_private.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "volume/store/disk/vfs.h"

static const char *const schema =
	"PRAGMA page_size=4096;"
	"PRAGMA journal_mode=WAL;"
	"BEGIN;"
	"CREATE TABLE number(name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;"
	"CREATE TABLE volume(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, record BLOB NOT NULL);"
	"CREATE TABLE vnode(grp INTEGER, vnode INTEGER, epoch INTEGER, record BLOB NOT NULL,"
	" PRIMARY KEY(grp, vnode, epoch)) WITHOUT ROWID;"
	"CREATE INDEX change ON vnode(grp, epoch, vnode);"
	"CREATE TABLE page(id INTEGER PRIMARY KEY, grp INTEGER, vnode INTEGER, page INTEGER,"
	" epoch INTEGER, data BLOB NOT NULL);"
	"CREATE UNIQUE INDEX page_key ON page(grp, vnode, page, epoch);"
	"CREATE TABLE small(id INTEGER PRIMARY KEY, data BLOB NOT NULL);"
	"CREATE TABLE object(id INTEGER PRIMARY KEY, grp INTEGER, vnode INTEGER, uniq INTEGER,"
	" refs INTEGER NOT NULL);"
	"CREATE INDEX object_dead ON object(id) WHERE refs=0;" DB_SLOT_TABLES
	"CREATE TABLE prune(id INTEGER PRIMARY KEY AUTOINCREMENT, grp INTEGER, epoch INTEGER,"
	" done_epoch INTEGER, done_vnode INTEGER);"
	"CREATE INDEX prune_group ON prune(grp);"
	"COMMIT;";

static const char *const text[STATEMENTS] = {
	[DB_BEGIN] = "BEGIN IMMEDIATE",
	[DB_BEGIN_READ] = "BEGIN",
	[DB_COMMIT] = "COMMIT",
	[DB_ROLLBACK] = "ROLLBACK",
	[NUMBER_GET] = "SELECT value FROM number WHERE name=?1",
	[NUMBER_PUT] = "INSERT OR REPLACE INTO number(name, value) VALUES(?1, ?2)",
	[NUMBER_DELETE] = "DELETE FROM number WHERE name=?1",
	[NUMBER_EACH] =
		"SELECT name, value FROM number WHERE name>=?1 AND substr(name, 1, length(?1))=?1"
		" ORDER BY name",
	[VOLUME_EACH] = "SELECT id, name, record FROM volume ORDER BY id",
	[VOLUME_GET] = "SELECT id, name, record FROM volume WHERE id=?1",
	[VOLUME_PUT] = "INSERT INTO volume(id, name, record) VALUES(?1, ?2, ?3)"
		       " ON CONFLICT(id) DO UPDATE SET name=excluded.name, record=excluded.record",
	[VOLUME_UPDATE] = "UPDATE volume SET record=?2 WHERE id=?1",
	[VOLUME_DELETE] = "DELETE FROM volume WHERE id=?1",
	[VNODE_GET] = "SELECT epoch, record FROM vnode WHERE grp=?1 AND vnode=?2 AND epoch<=?3"
		      " ORDER BY epoch DESC LIMIT 1",
	[VNODE_INSERT] = "INSERT INTO vnode(grp, vnode, epoch, record) VALUES(?1, ?2, ?3, ?4)",
	[VNODE_UPDATE] = "UPDATE vnode SET record=?4 WHERE grp=?1 AND vnode=?2 AND epoch=?3",
	[VNODE_DELETE] = "DELETE FROM vnode WHERE grp=?1 AND vnode=?2 AND epoch=?3",
	[VNODE_ROWS] = "SELECT vnode, epoch, record FROM vnode WHERE grp=?1 AND vnode=?2"
		       " ORDER BY epoch DESC",
	[VNODE_GROUP] = "SELECT vnode, epoch, record FROM vnode"
			" WHERE grp=?1 AND (vnode, epoch)>=(?2, ?3) ORDER BY vnode, epoch",
	[VNODE_OUTLINE] = "SELECT vnode, epoch, record FROM vnode"
			  " WHERE grp=?1 AND vnode>=?2 AND vnode<?3 ORDER BY vnode, epoch",
	[GROUP_NEXT] = "SELECT grp FROM vnode WHERE grp>?1 ORDER BY grp LIMIT 1",
	[CHANGES] = "SELECT epoch, vnode FROM vnode INDEXED BY change"
		    " WHERE grp=?1 AND (epoch, vnode)>(?2, ?3) AND epoch<=?4"
		    " ORDER BY epoch, vnode LIMIT ?5",
	[PAGE_GET] = "SELECT epoch, data FROM page WHERE grp=?1 AND vnode=?2 AND page=?3"
		     " AND epoch<=?4 ORDER BY epoch DESC LIMIT 1",
	[PAGE_FIND] = "SELECT id, epoch FROM page WHERE grp=?1 AND vnode=?2 AND page=?3"
		      " AND epoch>?4 ORDER BY epoch DESC LIMIT 1",
	[PAGE_INSERT] =
		"INSERT INTO page(grp, vnode, page, epoch, data) VALUES(?1, ?2, ?3, ?4, ?5)",
	[PAGE_UPDATE] = "UPDATE page SET data=?2 WHERE id=?1",
	[PAGE_DELETE] = "DELETE FROM page WHERE grp=?1 AND vnode=?2 AND epoch>?3",
	[PAGE_DELETE_SOME] = "DELETE FROM page WHERE id IN (SELECT id FROM page"
			     " WHERE grp=?1 AND vnode=?2 AND epoch>?3 LIMIT ?4)",
	[PAGE_PRUNE] = "DELETE FROM page WHERE grp=?1 AND vnode=?2 AND epoch>?3 AND epoch<=?4"
		       " AND (?5=0 OR"
		       " EXISTS(SELECT 1 FROM page AS next WHERE next.grp=?1"
		       " AND next.vnode=?2 AND next.page=page.page AND next.epoch>page.epoch"
		       " AND next.epoch<=?5))",
	[SLOT_GET] = "SELECT slot, epoch, data FROM slot WHERE map=?1 AND epoch<=?2"
		     " ORDER BY slot, epoch",
	[SLOT_PUT] = "INSERT INTO slot(map, slot, epoch, data) VALUES(?1, ?2, ?3, ?4)"
		     " ON CONFLICT(map, slot, epoch) DO UPDATE SET data=excluded.data",
	[SLOT_DELETE] = "DELETE FROM slot WHERE map=?1 AND slot=?2 AND epoch=?3",
	[SLOT_ROWS] = "SELECT slot, epoch, data FROM slot WHERE map=?1 AND slot=?2",
	[SLOT_EACH] = "SELECT slot, epoch, data FROM slot WHERE map=?1 ORDER BY slot, epoch",
	[SLOT_DROP] = "SELECT slot, epoch, data FROM slot WHERE map=?1 AND slot>=?2 AND epoch>?3"
		      " AND epoch<=?4 AND (?5=0 OR EXISTS(SELECT 1 FROM slot AS next"
		      " WHERE next.map=?1 AND next.slot=slot.slot AND next.epoch>slot.epoch"
		      " AND next.epoch<=?5)) ORDER BY slot, epoch LIMIT ?6",
	[MAP_NEXT] = "SELECT map FROM slot WHERE map>?1 ORDER BY map LIMIT 1",
	[DROP_PUT] = "INSERT INTO dropped(id, map, above, until, next, slot)"
		     " VALUES(?1, ?2, ?3, ?4, ?5, ?6)"
		     " ON CONFLICT(id) DO UPDATE SET slot=excluded.slot",
	[DROP_FIRST] = "SELECT id, map, above, until, next, slot FROM dropped ORDER BY id LIMIT 1",
	[DROP_DELETE] = "DELETE FROM dropped WHERE id=?1",
	[DROP_EACH] = "SELECT id, map, above, until, next, slot FROM dropped ORDER BY id",
	[SMALL_GET] = "SELECT data FROM small WHERE id=?1",
	[SMALL_PUT] = "INSERT INTO small(id, data) VALUES(?1, ?2)",
	[SMALL_DELETE] = "DELETE FROM small WHERE id=?1",
	[SMALL_EACH] = "SELECT id FROM small WHERE id>?1 ORDER BY id",
	[OBJECT_GET] = "SELECT id, grp, vnode, uniq, refs FROM object WHERE id=?1",
	[OBJECT_PUT] = "INSERT OR REPLACE INTO object(id, grp, vnode, uniq, refs)"
		       " VALUES(?1, ?2, ?3, ?4, ?5)",
	[OBJECT_DELETE] = "DELETE FROM object WHERE id=?1",
	[OBJECT_EACH] = "SELECT id, grp, vnode, uniq, refs FROM object",
	[OBJECT_DEAD] = "SELECT id, grp, vnode, uniq, refs FROM object WHERE refs=0",
	[PRUNE_FIRST] =
		"SELECT id, grp, epoch, done_epoch, done_vnode FROM prune ORDER BY id LIMIT 1",
	[PRUNE_FIRST_OF] = "SELECT id, grp, epoch, done_epoch, done_vnode FROM prune"
			   " WHERE grp=?1 ORDER BY id LIMIT 1",
	[PRUNE_INSERT] = "INSERT INTO prune(grp, epoch, done_epoch, done_vnode)"
			 " VALUES(?1, ?2, ?3, ?4)",
	[PRUNE_UPDATE] = "UPDATE prune SET done_epoch=?2, done_vnode=?3 WHERE id=?1",
	[PRUNE_DELETE] = "DELETE FROM prune WHERE id=?1",
	[PRUNE_COUNT] = "SELECT count(*) FROM prune WHERE grp=?1",
	[PRUNE_HAS] = "SELECT count(*) FROM prune WHERE grp=?1 AND epoch=0",
	[LOCATION_TABLE] = "SELECT 1 FROM sqlite_master WHERE type='table' AND name='location'",
	[LOCATION_PUT] = "INSERT INTO location(id, entry) VALUES(?1, ?2)"
			 " ON CONFLICT(id) DO UPDATE SET entry=excluded.entry",
	[LOCATION_DELETE] = "DELETE FROM location WHERE id=?1",
	[LOCATION_EACH] = "SELECT id, entry FROM location ORDER BY id",
	/* Of settle.c, which makes the table. */
	[REFERENCE_PUT] = "INSERT INTO temp.reference VALUES(?1, ?2, 1, ?3, ?4, ?5)"
			  " ON CONFLICT(id) DO UPDATE SET count=count+1",
	[REFERENCE_OWNER] = "SELECT grp, vnode, uniq FROM temp.reference WHERE id=?1 AND kind=2",
};

static void configure_sqlite(void)
{
	/* Counting memory would take a lock in each allocation. Fails if SQLite is in use already. */
	sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
	sqlite3_initialize();
}

static int translate_sqlite_error(struct db *db, int rc)
{
	int error = db->options.vfs_errno ? db->options.vfs_errno() : sqlite3_system_errno(db->sql);

	switch (rc & 0xff) {
	case SQLITE_OK:
	case SQLITE_ROW:
	case SQLITE_DONE:
		return 0;
	case SQLITE_FULL:
		return STORE_VDISKFULL;
	case SQLITE_INTERRUPT:
		return -EINTR;
	case SQLITE_NOMEM:
		return -ENOMEM;
	case SQLITE_READONLY:
		return -EROFS;
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return -EBUSY;
	case SQLITE_IOERR:
	case SQLITE_CANTOPEN:
		if (error == ENOSPC || error == EDQUOT || error == EFBIG)
			return STORE_VDISKFULL;
		if (rc == SQLITE_IOERR_NOMEM)
			return -ENOMEM;
		return error && error != ENOENT ? -error : -EIO;
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
		report_damage(db->options.report, "%s: the database is damaged: %s",
			      db->options.path, sqlite3_errmsg(db->sql));
		return -EIO;
	default:
		report_line(db->options.report, REPORT_ERROR, "%s: %s", db->options.path,
			    sqlite3_errmsg(db->sql));
		return -EIO;
	}
}

int db_result(struct db *db, int rc)
{
	int result = translate_sqlite_error(db, rc);

	/* SQLite has ended the transaction: later statements would be committed one by one. */
	if (result && db->begun && !db->lost && sqlite3_get_autocommit(db->sql))
		db->lost = result;
	return result;
}

int db_sql(struct db *db, const char *sql)
{
	return db_result(db, sql_run(db->sql, sql));
}

static int set_up_connection(struct db *db)
{
	char sql[512];

	/* A library may be built to leave the contents of unused pages, which a rescue must not find. */
	snprintf(sql, sizeof(sql),
		 "PRAGMA cell_size_check=ON;PRAGMA mmap_size=0;"
		 "PRAGMA secure_delete=ON;PRAGMA temp_store=MEMORY;"
		 "PRAGMA cache_size=-%u;PRAGMA wal_autocheckpoint=0;"
		 "PRAGMA synchronous=%s;PRAGMA query_only=%d",
		 db->options.cache_kib, db->options.full ? "FULL" : "NORMAL",
		 db->options.read_only);
	return db_sql(db, sql);
}

int db_open(const struct db_options *options, struct db **out)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	int flags = options->create ? SQLITE_OPEN_CREATE : 0;
	struct db *db = calloc(1, sizeof(*db));
	int result;

	if (!db)
		return -ENOMEM;
	pthread_once(&once, configure_sqlite);
	db->options = *options;
	result = db_result(db, sql_open(options->path, flags, options->vfs, &db->sql));
	if (!result)
		result = set_up_connection(db);
	/* Without memory, a transaction must end nevertheless. */
	if (!result && !db_statement(db, DB_ROLLBACK))
		result = db->unready;
	if (result) {
		db_close(db);
		return result;
	}
	*out = db;
	return 0;
}

void db_close(struct db *db)
{
	if (!db)
		return;
	for (int i = 0; i < STATEMENTS; i++)
		sqlite3_finalize(db->statement[i]);
	sqlite3_close(db->sql);
	free(db);
}

void db_leave(struct db *db)
{
	if (db)
		sqlite3_db_config(db->sql, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
	db_close(db);
}

int db_make(struct db *db)
{
	int spare = STORE_DB_SPARE;

	sqlite3_file_control(db->sql, "main", SQLITE_FCNTL_RESERVE_BYTES, &spare);
	return db_sql(db, schema);
}

sqlite3_stmt *db_statement(struct db *db, enum statement which)
{
	sqlite3_stmt **statement = &db->statement[which];

	assert(which < STATEMENTS);
	db->unready = db->lost;
	if (!db->lost && !*statement) {
		int rc = sqlite3_prepare_v3(db->sql, text[which], -1, SQLITE_PREPARE_PERSISTENT,
					    statement, NULL);

		db->unready = db_result(db, rc);
		if (!db->unready && !*statement)
			db->unready = -EIO;
	}
	return db->unready ? NULL : *statement;
}

sqlite3_stmt *db_bind(struct db *db, enum statement which, const uint64_t *number, size_t count)
{
	sqlite3_stmt *statement = db_statement(db, which);

	for (size_t i = 0; statement && i < count; i++)
		sqlite3_bind_int64(statement, (int)i + 1, (sqlite3_int64)number[i]);
	return statement;
}

sqlite3_stmt *db_prepare(struct db *db, const char *sql, int *result)
{
	sqlite3_stmt *statement = NULL;

	*result = db_result(db, sqlite3_prepare_v2(db->sql, sql, -1, &statement, NULL));
	return statement;
}

int db_step(struct db *db, sqlite3_stmt *statement)
{
	int rc;

	assert(statement || db->unready);
	if (!statement)
		return db->unready;
	rc = sqlite3_step(statement);
	if (rc == SQLITE_ROW) {
		db->rows_read++;
		return DB_ROW;
	}
	return db_result(db, rc);
}

int db_first(struct db *db, sqlite3_stmt *statement)
{
	int result = db_step(db, statement);

	if (result == DB_ROW)
		return 0;
	return result ? result : -ENOENT;
}

void db_done(sqlite3_stmt *statement)
{
	if (!statement)
		return;
	sqlite3_reset(statement);
	sqlite3_clear_bindings(statement);
}

int db_run(struct db *db, sqlite3_stmt *statement)
{
	int result = db_step(db, statement);

	db_done(statement);
	return result == DB_ROW ? 0 : result;
}

static int run_plain_statement(struct db *db, enum statement which)
{
	return db_run(db, db_statement(db, which));
}

int db_begin(struct db *db)
{
	int result = run_plain_statement(db, DB_BEGIN);

	assert(!db->begun);
	db->begun = !result;
	return result;
}

int db_begin_read(struct db *db)
{
	int result = run_plain_statement(db, DB_BEGIN_READ);

	assert(!db->begun);
	db->begun = !result;
	return result;
}

void db_end_read(struct db *db)
{
	assert(db->begun);
	db_rollback(db);
}

int db_commit(struct db *db)
{
	int result = run_plain_statement(db, DB_COMMIT);

	assert(db->begun);
	if (!result)
		db->begun = false;
	return result;
}

void db_rollback(struct db *db)
{
	db->begun = false;
	db->lost = 0;
	/* Some errors have ended the transaction already. */
	if (!sqlite3_get_autocommit(db->sql))
		run_plain_statement(db, DB_ROLLBACK);
}

uint32_t db_rows(const struct db *db)
{
	return db->rows_read + (uint32_t)sqlite3_total_changes(db->sql);
}

int db_checkpoint(struct db *db, unsigned *left)
{
	int frames = -1, moved = 0;
	int rc = sqlite3_wal_checkpoint_v2(db->sql, NULL, SQLITE_CHECKPOINT_PASSIVE, &frames,
					   &moved);

	*left = rc == SQLITE_OK && frames >= moved ? (unsigned)(frames - moved) : UINT_MAX;
	return rc == SQLITE_BUSY ? 0 : db_result(db, rc);
}

void db_log_cut(struct db *db)
{
	/* Readers are not waited for. */
	sqlite3_busy_timeout(db->sql, 0);
	sqlite3_wal_checkpoint_v2(db->sql, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
	sqlite3_busy_timeout(db->sql, SQL_BUSY_MS);
}

int db_checkpoint_all(struct db *db)
{
	return db_result(db, sqlite3_wal_checkpoint_v2(db->sql, NULL, SQLITE_CHECKPOINT_TRUNCATE,
						       NULL, NULL));
}

int db_number_get(struct db *db, const char *name, uint64_t *value)
{
	sqlite3_stmt *statement = db_statement(db, NUMBER_GET);
	int result;

	sqlite3_bind_text(statement, 1, name, -1, SQLITE_STATIC);
	result = db_first(db, statement);
	if (!result)
		*value = (uint64_t)sqlite3_column_int64(statement, 0);
	db_done(statement);
	return result;
}

int db_number_put(struct db *db, const char *name, uint64_t value)
{
	sqlite3_stmt *statement = db_statement(db, NUMBER_PUT);

	sqlite3_bind_text(statement, 1, name, -1, SQLITE_STATIC);
	sqlite3_bind_int64(statement, 2, (sqlite3_int64)value);
	return db_run(db, statement);
}

int db_number_delete(struct db *db, const char *name)
{
	sqlite3_stmt *statement = db_statement(db, NUMBER_DELETE);

	sqlite3_bind_text(statement, 1, name, -1, SQLITE_STATIC);
	return db_run(db, statement);
}

int db_numbers(struct db *db, const char *prefix,
	       int (*each)(void *arg, const char *name, uint64_t value), void *arg)
{
	sqlite3_stmt *statement = db_statement(db, NUMBER_EACH);
	int result;

	sqlite3_bind_text(statement, 1, prefix, -1, SQLITE_STATIC);
	while ((result = db_step(db, statement)) == DB_ROW) {
		const char *name = (const char *)sqlite3_column_text(statement, 0);

		result = name ? each(arg, name, (uint64_t)sqlite3_column_int64(statement, 1))
			      : -ENOMEM;
		if (result)
			break;
	}
	db_done(statement);
	return result;
}

static const char *const identity[2] = {"identity-first", "identity-last"};

int db_identity_put(struct db *db, const uint8_t uuid[16])
{
	int result = 0;

	for (int i = 0; i < 2 && !result; i++)
		result = db_number_put(db, identity[i], get64(uuid + 8 * i));
	return result;
}

int db_identity_get(struct db *db, uint8_t uuid[16])
{
	uint64_t half = 0;
	int result = 0;

	for (int i = 0; i < 2 && !result; i++) {
		result = db_number_get(db, identity[i], &half);
		put32(uuid + 8 * i, (uint32_t)(half >> 32));
		put32(uuid + 8 * i + 4, (uint32_t)half);
	}
	return result;
}

void db_interrupt(struct db *db)
{
	sqlite3_interrupt(db->sql);
}

struct fault_report {
	void (*each)(void *arg, const char *line);
	void *arg;
};

static bool report_fault_row(void *arg, sqlite3_stmt *row)
{
	const struct fault_report *report = arg;
	const char *line = (const char *)sqlite3_column_text(row, 0);

	if (line && strcmp(line, "ok") != 0)
		report->each(report->arg, line);
	return true;
}

int db_integrity(struct db *db, bool fast, void (*each)(void *arg, const char *line), void *arg)
{
	struct fault_report report = {each, arg};

	return db_result(
		db,
		sql_query(
			db->sql,
			fast ? "SELECT replace(quick_check, char(10), ' ') FROM pragma_quick_check(100)"
			     : "SELECT replace(integrity_check, char(10), ' ') FROM pragma_integrity_check(100)",
			NULL, 0, NULL, report_fault_row, &report));
}

/* -- connections that threads borrow -- */

/* `lock` covers the rest. */
struct readers {
	struct db_options options;
	pthread_mutex_t lock;
	pthread_cond_t freed;
	unsigned idle, unopened;
	struct db *db[]; /* those that are idle */
};

int readers_create(const struct db_options *options, unsigned count, struct readers **out)
{
	struct readers *readers = calloc(1, sizeof(*readers) + count * sizeof(readers->db[0]));

	if (!readers)
		return -ENOMEM;
	readers->options = *options;
	readers->unopened = count;
	pthread_mutex_init(&readers->lock, NULL);
	pthread_cond_init(&readers->freed, NULL);
	*out = readers;
	return 0;
}

void readers_destroy(struct readers *readers)
{
	if (!readers)
		return;
	while (readers->idle)
		db_close(readers->db[--readers->idle]);
	pthread_mutex_destroy(&readers->lock);
	pthread_cond_destroy(&readers->freed);
	free(readers);
}

static int open_connection(struct readers *readers, struct db **db)
{
	int result = db_open(&readers->options, db);

	if (result) {
		pthread_mutex_lock(&readers->lock);
		readers->unopened++;
		pthread_cond_signal(&readers->freed);
		pthread_mutex_unlock(&readers->lock);
	}
	return result;
}

int readers_get(struct readers *readers, struct db **db)
{
	pthread_mutex_lock(&readers->lock);
	while (!readers->idle && !readers->unopened)
		pthread_cond_wait(&readers->freed, &readers->lock);
	*db = readers->idle ? readers->db[--readers->idle] : NULL;
	if (!*db)
		readers->unopened--;
	pthread_mutex_unlock(&readers->lock);
	return *db ? 0 : open_connection(readers, db);
}

void readers_put(struct readers *readers, struct db *db)
{
	pthread_mutex_lock(&readers->lock);
	readers->db[readers->idle++] = db;
	pthread_cond_signal(&readers->freed);
	pthread_mutex_unlock(&readers->lock);
}
