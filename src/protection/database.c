/* SPDX-License-Identifier: BSD-2-Clause */
/* The file of the database: finds, makes, checks and opens it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/failure.h"
#include "common/sql.h"
#include "protection/private.h"

#define APPLICATION 0x72787074 /* "rxpt", in the header of the file */
/*
 * Programs that know only format 1 see no groups in groups, so the first of these makes the format 2. Until then they may use the
 * file; the table is empty.
 */
#define FORMAT_FIRST 1
#define FORMAT	     2

/* The last ids are kept, so that the id of a removed entry, which ACLs may name, is not reused. */
static const char schema[] =
	"CREATE TABLE entry(id INTEGER PRIMARY KEY CHECK(id <> 0), name TEXT NOT NULL UNIQUE,"
	" owner INTEGER NOT NULL, creator INTEGER NOT NULL, access INTEGER NOT NULL,"
	" quota INTEGER NOT NULL) STRICT;"
	"CREATE INDEX owned ON entry(owner);"
	"CREATE TABLE member(grp INTEGER NOT NULL REFERENCES entry(id) ON DELETE CASCADE"
	" CHECK(grp < 0), user INTEGER NOT NULL REFERENCES entry(id) ON DELETE CASCADE"
	" CHECK(user > 0), PRIMARY KEY(grp, user)) STRICT, WITHOUT ROWID;"
	"CREATE INDEX groups ON member(user, grp);"
	"CREATE TABLE last(one INTEGER PRIMARY KEY CHECK(one = 1), user INTEGER NOT NULL,"
	" grp INTEGER NOT NULL) STRICT;"
	"INSERT INTO last VALUES(1, 0, -205);"
	"INSERT INTO entry VALUES"
	"(32766, 'anonymous', -204, -204, 128, 20),"
	"(-101, 'system:anyuser', -204, -204, 144, 0),"
	"(-102, 'system:authuser', -204, -204, 144, 0),"
	"(-203, 'system:ptsviewers', -204, -204, 144, 0),"
	"(-204, 'system:administrators', -204, -204, 144, 20),"
	"(-205, 'system:backup', -204, -204, 144, 0);";

static const char nested[] =
	"CREATE TABLE IF NOT EXISTS nested(grp INTEGER NOT NULL REFERENCES entry(id)"
	" ON DELETE CASCADE CHECK(grp < 0), member INTEGER NOT NULL REFERENCES entry(id)"
	" ON DELETE CASCADE CHECK(member < 0), PRIMARY KEY(grp, member), CHECK(grp <> member))"
	" STRICT, WITHOUT ROWID;"
	"CREATE INDEX IF NOT EXISTS supers ON nested(member, grp);";

int prot_damaged(const struct prot *prot, const char *what, char *message)
{
	return fail_with(
		PROT_UNUSABLE, message, PROT_MESSAGE_MAX,
		"%.250s is damaged (%.100s): move it and its -wal file away and restore a backup",
		prot->path, what);
}

/*
 * A file that this user cannot write, which may be one that SQLite has made while the database was
 * not writable. The text, or that of `path`.
 */
static const char *find_obstacle(const char *path, char *text, size_t size)
{
	static const char *const suffixes[] = {"", "-wal", "-shm"};

	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
		snprintf(text, size, "%.250s%s", path, suffixes[i]);
		if (access(text, W_OK) < 0 && errno == EROFS)
			return "the disk, which is mounted read-only";
		if (access(text, W_OK) < 0 && errno != ENOENT)
			return text;
	}
	return "the file and its directory";
}

int prot_database_error(struct prot *prot, const char *doing, char *message)
{
	int rc = sqlite3_errcode(prot->db);
	char file[256];

	switch (rc & 0xff) {
	case SQLITE_CORRUPT:
	case SQLITE_ERROR: /* our statements are right: a table is missing or has other columns */
	case SQLITE_CONSTRAINT:
		return prot_damaged(prot, sqlite3_errmsg(prot->db), message);
	case SQLITE_NOTADB:
		return fail_with(
			PROT_UNUSABLE, message, PROT_MESSAGE_MAX,
			"%.250s is not a protection database: name another file or directory",
			prot->path);
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return fail_with(PROT_ERROR, message, PROT_MESSAGE_MAX,
				 "%.250s: another process has been changing it for %d s: try again",
				 prot->path, SQL_BUSY_MS / 1000);
	case SQLITE_READONLY:
	case SQLITE_PERM:
	case SQLITE_CANTOPEN:
		return fail_with(
			PROT_ERROR, message, PROT_MESSAGE_MAX,
			"%.160s: cannot %.30s: %.80s; this user must be able to write %.170s",
			prot->path, doing, sqlite3_errmsg(prot->db),
			find_obstacle(prot->path, file, sizeof(file)));
	default:
		return fail_with(PROT_ERROR, message, PROT_MESSAGE_MAX, "%.250s: cannot %s: %.120s",
				 prot->path, doing, sqlite3_errmsg(prot->db));
	}
}

int prot_run(struct prot *prot, const char *sql)
{
	return sql_run(prot->db, sql);
}

static bool take_first_number(void *arg, sqlite3_stmt *row)
{
	int64_t **value = arg;

	if (*value)
		**value = sqlite3_column_int64(row, 0);
	return false;
}

int prot_query(struct prot *prot, const char *sql, const int64_t *parameters, int count,
	       const char *name, int64_t *value)
{
	return sql_query(prot->db, sql, parameters, count, name, take_first_number, &value);
}

/* -- copying -- */

/* 0 or a code. The file is empty. */
static int fill_copy(struct prot *prot, const char *path, int fd, char *message)
{
	int rc = 0;

	pthread_mutex_lock(&prot->db_lock);
	if (prot_query(prot, "VACUUM INTO ?", NULL, 0, path, NULL) != SQLITE_OK)
		rc = prot_database_error(prot, "be copied", message);
	pthread_mutex_unlock(&prot->db_lock);
	if (!rc && fsync(fd)) {
		snprintf(message, PROT_MESSAGE_MAX, "%.250s: %s", path, strerror(errno));
		rc = PROT_ERROR;
	}
	return rc;
}

int prot_copy(struct prot *prot, const char *path, char *message)
{
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600), rc;

	if (fd < 0)
		return fail_with(PROT_ERROR, message, PROT_MESSAGE_MAX, "%.250s: %s", path,
				 strerror(errno));
	rc = fill_copy(prot, path, fd, message);
	if (rc)
		unlink(path);
	close(fd);
	return rc;
}

/* -- opening -- */

/* options.path, or the file in that directory. */
static int find_path(struct prot *prot, char *message)
{
	const char *path = prot->options.path;
	struct stat st;
	bool folder = stat(path, &st) == 0 && S_ISDIR(st.st_mode);

	if (asprintf(&prot->path, folder ? "%s/" PROT_FILE : "%s", path) >= 0)
		return 0;
	prot->path = NULL;
	return fail_with(PROT_ERROR, message, PROT_MESSAGE_MAX, "no memory");
}

/* The directory of the file, to be freed; NULL without memory. */
static char *copy_folder_name(const char *path)
{
	char *folder = strdup(path), *slash = folder ? strrchr(folder, '/') : NULL;

	if (!folder || slash) {
		if (slash)
			slash[slash == folder] = 0;
		return folder;
	}
	free(folder);
	return strdup(".");
}

/* Put the schema into an empty file. */
static int write_schema(struct prot *prot, const char *path, char *message)
{
	char pragmas[128];
	int rc = sqlite3_open_v2(path, &prot->db, SQLITE_OPEN_READWRITE, NULL);

	snprintf(pragmas, sizeof(pragmas), "PRAGMA application_id = %d; PRAGMA user_version = %d",
		 APPLICATION, FORMAT_FIRST);
	if (rc == SQLITE_OK &&
	    (prot_run(prot, "PRAGMA synchronous = FULL; BEGIN") || prot_run(prot, schema) ||
	     prot_run(prot, pragmas) || prot_run(prot, "COMMIT; PRAGMA journal_mode = WAL")))
		rc = SQLITE_ERROR;
	if (rc != SQLITE_OK) {
		snprintf(message, PROT_MESSAGE_MAX, "%.250s cannot be made: %.120s", prot->path,
			 prot->db ? sqlite3_errmsg(prot->db) : "no memory");
		rc = PROT_ERROR;
	}
	sqlite3_close(prot->db);
	prot->db = NULL;
	return rc;
}

/* Give the complete file its name, unless another process was faster. 0, or an error number. */
static int name_file(const char *temporary, const char *path, const char *folder)
{
	int error = link(temporary, path) < 0 && errno != EEXIST ? errno : 0, fd;

	if (error)
		return error;
	fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || fsync(fd) < 0)
		error = errno;
	if (fd >= 0)
		close(fd);
	return error;
}

/*
 * Make the database under another name, so that no process sees half of it. It belongs to the owner
 * of its directory.
 */
static int make_file(struct prot *prot, char *message)
{
	char *folder = copy_folder_name(prot->path), *temporary = NULL;
	struct stat st;
	int fd = -1, error = 0, rc = 0;

	if (!folder || asprintf(&temporary, "%s.XXXXXX", prot->path) < 0) {
		free(folder);
		return fail_with(PROT_ERROR, message, PROT_MESSAGE_MAX, "no memory");
	}
	fd = mkostemp(temporary, O_CLOEXEC);
	if (fd < 0 || stat(folder, &st) < 0 ||
	    (geteuid() == 0 && fchown(fd, st.st_uid, st.st_gid) < 0))
		error = errno;
	if (fd >= 0)
		close(fd);
	if (error)
		goto out;
	rc = write_schema(prot, temporary, message);
	if (rc)
		goto out;
	error = name_file(temporary, prot->path, folder);
out:
	if (fd >= 0)
		unlink(temporary);
	free(temporary);
	free(folder);
	if (!error)
		return rc;
	return fail_with(
		PROT_ERROR, message, PROT_MESSAGE_MAX,
		"cannot make %.250s: %s; give a directory that exists and that this user may write",
		prot->path, strerror(error));
}

static int find_or_make_file(struct prot *prot, char *message)
{
	struct stat st;

	if (stat(prot->path, &st) == 0) {
		if (S_ISREG(st.st_mode))
			return 0;
		return fail_with(PROT_UNUSABLE, message, PROT_MESSAGE_MAX, "%.250s is not a file",
				 prot->path);
	}
	if (errno == ENOENT && prot->options.create) {
		prot->made = true;
		return make_file(prot, message);
	}
	if (errno == ENOENT)
		snprintf(message, PROT_MESSAGE_MAX,
			 "%.250s does not exist: the first \"rxpt adduser\" or \"rxpt addgroup\" "
			 "makes it",
			 prot->path);
	else
		snprintf(message, PROT_MESSAGE_MAX, "%.250s: %s%s", prot->path, strerror(errno),
			 errno == EACCES ? "; only root and the user to whom it belongs may use it"
					 : "");
	return PROT_ERROR;
}

/* Refuses the file of another program, and a version that this one does not know. */
static int check_header(struct prot *prot, char *message)
{
	int64_t application = 0, version = 0, pages = 0;

	if (prot_query(prot, "PRAGMA page_count", NULL, 0, NULL, &pages) ||
	    prot_query(prot, "PRAGMA application_id", NULL, 0, NULL, &application) ||
	    prot_query(prot, "PRAGMA user_version", NULL, 0, NULL, &version))
		return prot_database_error(prot, "be read", message);
	if (pages == 0)
		return prot_damaged(prot, "it is empty", message);
	if (application != APPLICATION)
		return fail_with(
			PROT_UNUSABLE, message, PROT_MESSAGE_MAX,
			"%.250s is a database of another program: name another file or directory",
			prot->path);
	if (version > FORMAT)
		return fail_with(
			PROT_UNUSABLE, message, PROT_MESSAGE_MAX,
			"%.250s has format %lld, this program knows only %d: install the version "
			"of rxwire that wrote it",
			prot->path, (long long)version, FORMAT);
	return version >= FORMAT_FIRST ? 0 : prot_damaged(prot, "it has no format", message);
}

#define FOUND_MAX 100

static bool take_finding(void *found, sqlite3_stmt *row)
{
	snprintf(found, FOUND_MAX, "%s", (const char *)sqlite3_column_text(row, 0));
	return false;
}

/* The structure of the file. The contents of the tables are checked when they are loaded. */
static int check_structure(struct prot *prot, char *message)
{
	char found[FOUND_MAX] = "";

	if (sql_query(prot->db, "PRAGMA quick_check(1)", NULL, 0, NULL, take_finding, found))
		return prot_database_error(prot, "be checked", message);
	return strcmp(found, "ok") == 0 ? 0 : prot_damaged(prot, found, message);
}

/* For the first group in a group. In a transaction. */
int prot_raise_format(struct prot *prot, char *message)
{
	char pragma[40];

	snprintf(pragma, sizeof(pragma), "PRAGMA user_version = %d", FORMAT);
	return prot_run(prot, pragma) ? prot_database_error(prot, "be changed", message) : 0;
}

static void note_file(struct prot *prot)
{
	struct stat st;

	if (stat(prot->path, &st) == 0) {
		prot->device = st.st_dev;
		prot->inode = st.st_ino;
	}
}

bool prot_database_replaced(const struct prot *prot, char *message)
{
	struct stat st;
	bool there = stat(prot->path, &st) == 0;

	if (there ? st.st_dev == prot->device && st.st_ino == prot->inode : errno != ENOENT)
		return false;
	return fail_with(
		true, message, PROT_MESSAGE_MAX,
		"%.250s was %s while it is in use: restart this program, so that it reads what is "
		"there",
		prot->path, there ? "replaced" : "removed");
}

int prot_database_open(struct prot *prot, char *message)
{
	int rc = find_path(prot, message);

	if (rc)
		return rc;
	rc = find_or_make_file(prot, message);
	if (rc)
		return rc;
	if (sql_open(prot->path, 0, NULL, &prot->db) != SQLITE_OK) {
		if (prot->db)
			return prot_database_error(prot, "be opened", message);
		return fail_with(PROT_ERROR, message, PROT_MESSAGE_MAX, "no memory");
	}
	note_file(prot);
	rc = check_header(prot, message);
	if (rc)
		return rc;
	if (prot_run(prot, "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; "
			   "PRAGMA foreign_keys = ON") ||
	    prot_run(prot, nested) ||
	    sqlite3_prepare_v2(prot->db, "PRAGMA data_version", -1, &prot->version, NULL))
		return prot_database_error(prot, "be opened", message);
	return check_structure(prot, message);
}

void prot_database_close(struct prot *prot)
{
	sqlite3_finalize(prot->version);
	sqlite3_close(prot->db);
	free(prot->path);
}
