/* SPDX-License-Identifier: BSD-2-Clause */
/* The file: where it is made, and which files are refused. */
#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include "tests/protection/database.h"

static struct database d;

/* The file is refused, and the message names it. */
static void refused(const char *path, bool create, int code, const char *part)
{
	const struct prot_options options = {.path = path, .create = create};
	struct prot *prot;

	d.message[0] = 0;
	ck_assert_msg(prot_open(&options, &prot, d.message) == code, "%s: %s", part, d.message);
	ck_assert_ptr_null(prot);
	ck_assert_msg(strstr(d.message, part) != NULL, "no \"%s\" in: %s", part, d.message);
	ck_assert_msg(strstr(d.message, path) != NULL, "no file in: %s", d.message);
	ck_assert_ptr_null(strchr(d.message, '\n'));
}

/* Run SQL in the file of the closed database. */
static void edit(const char *sql)
{
	sqlite3 *db;

	ck_assert_int_eq(sqlite3_open_v2(d.file, &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
	ck_assert_msg(sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK, "%s",
		      sqlite3_errmsg(db));
	ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
}

static void make(void)
{
	database_open(&d, NULL);
	database_user(&d, "alice", 1);
	database_group(&d, "staff", -206, 1);
	ck_assert_int_eq(prot_add_member(d.prot, -206, 1, d.message), 0);
	database_shut(&d);
}

START_TEST(made)
{
	struct stat st;
	char *other;

	database_open(&d, NULL);
	ck_assert_int_eq(stat(d.file, &st), 0);
	ck_assert_uint_eq(st.st_mode & 0777, 0600);
	database_user(&d, "alice", 1);
	database_reopen(&d);
	ck_assert_str_eq(database_cps(&d, 1), "-102 -101 1");
	database_close(&d);
	/* A file of another name. */
	d.folder = test_folder();
	ck_assert_int_gt(asprintf(&other, "%s/other", d.folder), 0);
	refused(other, false, PROT_ERROR, "rxpt");
	{
		const struct prot_options options = {.path = other, .create = true};

		ck_assert_int_eq(prot_open(&options, &d.prot, d.message), 0);
	}
	d.file = other;
	database_close(&d);
}
END_TEST

/* Also the ids of removed entries, and of a database that is lost or replaced by an older copy, because ACLs may name them. */
START_TEST(ids_are_kept)
{
	struct prot_options options = {.create = true, .warn = database_warn};
	char *command;

	database_open(&d, NULL);
	ck_assert_int_eq(database_user(&d, "alice", 0), 1);
	ck_assert_int_gt(asprintf(&command, "cp '%s' '%s/old'", d.file, d.folder), 0);
	database_shut(&d);
	ck_assert_int_eq(system(command), 0);
	free(command);
	database_reopen(&d);
	ck_assert_int_eq(database_user(&d, "bob", 5), 5);
	ck_assert_int_eq(database_group(&d, "staff", 0, 0), -206);
	database_shut(&d);
	options.path = d.folder;
	for (int lost = 0; lost < 2; lost++) {
		ck_assert_int_eq(unlink(d.file), 0);
		if (!lost) {
			ck_assert_int_gt(asprintf(&command, "mv '%s/old' '%s'", d.folder, d.file),
					 0);
			ck_assert_int_eq(system(command), 0);
			free(command);
		}
		database_warnings = 0;
		ck_assert_int_eq(prot_open(&options, &d.prot, d.message), 0);
		ck_assert_uint_eq(database_warnings, 1);
		ck_assert_int_eq(database_user(&d, "mallory", 0), 6 + lost);
		ck_assert_int_eq(database_group(&d, "others", 0, 0), -207 - lost);
		database_shut(&d);
		ck_assert_int_eq(prot_open(&options, &d.prot, d.message), 0);
		ck_assert_uint_eq(database_warnings, 1);
		database_shut(&d);
	}
	database_close(&d);
}
END_TEST

/* The file of the last ids: a damaged one is told and made again; one that cannot be read stays, because it may have later ones. */
START_TEST(file_of_ids)
{
	const struct prot_options warn = {.warn = database_warn};
	struct prot_options options = warn;
	char *path, target[16];
	FILE *file;

	database_open(&d, &warn);
	ck_assert_int_eq(database_user(&d, "alice", 0), 1);
	database_shut(&d);
	options.path = d.folder;
	ck_assert_int_gt(asprintf(&path, "%s-ids", d.file), 0);
	file = fopen(path, "w");
	ck_assert_ptr_nonnull(file);
	fclose(file);
	for (unsigned warnings = 1; warnings <= 2; warnings++) {
		database_warnings = warnings - 1;
		ck_assert_int_eq(prot_open(&options, &d.prot, d.message), 0);
		ck_assert_uint_eq(database_warnings, 1);
		database_shut(&d);
	}
	ck_assert_int_eq(unlink(path), 0);
	ck_assert_int_eq(symlink("protection.db-ids", path), 0); /* ELOOP */
	database_warnings = 0;
	ck_assert_int_eq(prot_open(&options, &d.prot, d.message), 0);
	ck_assert_int_eq(database_user(&d, "bob", 0), 2);
	ck_assert_uint_eq(database_warnings, 2);
	ck_assert_int_gt(readlink(path, target, sizeof(target)), 0);
	free(path);
	database_close(&d);
}
END_TEST

START_TEST(not_there)
{
	char *file;

	d.folder = test_folder();
	ck_assert_int_gt(asprintf(&file, "%s/missing/file", d.folder), 0);
	refused(file, true, PROT_ERROR, "directory that exists");
	ck_assert_int_eq(rmdir(d.folder), 0);
	refused("/dev/null", true, PROT_UNUSABLE, "not a file");
	free(file);
	free(d.folder);
}
END_TEST

START_TEST(foreign)
{
	FILE *f;

	make();
	edit("PRAGMA application_id = 12345");
	refused(d.file, true, PROT_UNUSABLE, "another program");
	edit("PRAGMA application_id = 1920495732; PRAGMA user_version = 3");
	refused(d.file, true, PROT_UNUSABLE, "format 3");
	edit("PRAGMA user_version = 0");
	refused(d.file, true, PROT_UNUSABLE, "damaged");
	edit("PRAGMA user_version = 1");
	database_reopen(&d);
	database_shut(&d);
	f = fopen(d.file, "w");
	ck_assert_ptr_nonnull(f);
	for (int i = 0; i < 1000; i++)
		fprintf(f, "line %d of something else\n", i);
	fclose(f);
	refused(d.file, true, PROT_UNUSABLE, "not a protection database");
	ck_assert_int_eq(truncate(d.file, 0), 0);
	refused(d.file, true, PROT_UNUSABLE, "empty");
	database_close(&d);
}
END_TEST

/* Contents that this library does not write. */
START_TEST(damaged_contents)
{
	static const char *const damages[] = {
		"DROP TABLE member",
		"DROP TABLE last",
		"DELETE FROM last",
		"UPDATE last SET user = -1",
		"UPDATE last SET grp = 99999999999",
		"DELETE FROM entry WHERE id = -101",
		"INSERT INTO entry VALUES(99999999999, 'big', 1, 1, 0, 0)",
		"INSERT INTO entry VALUES(7, 'two words', 1, 1, 0, 0)",
		"INSERT INTO entry VALUES(7, 'a:b', 1, 1, 0, 0)",
		"INSERT INTO entry VALUES(7, 'nul' || char(0) || 'l', 1, 1, 0, 0)",
		"INSERT INTO entry VALUES(7, 'x', 0, 1, 0, 0)",
		"INSERT INTO entry VALUES(7, 'x', 1, 1, 256, 0)",
		"INSERT INTO entry VALUES(7, 'x', 1, 1, 0, 9999999999)",
		"PRAGMA foreign_keys = OFF; INSERT INTO member VALUES(-206, 9)",
		"PRAGMA foreign_keys = OFF; INSERT INTO member VALUES(-777, 1)",
		"PRAGMA foreign_keys = OFF; INSERT INTO member VALUES(-9999999999, 1)",
		"PRAGMA foreign_keys = OFF; INSERT INTO nested VALUES(-206, -777)",
		"PRAGMA foreign_keys = OFF; INSERT INTO nested VALUES(-777, -206)",
		"PRAGMA ignore_check_constraints = ON; INSERT INTO nested VALUES(-206, -206)",
		"PRAGMA ignore_check_constraints = ON; INSERT INTO nested VALUES(-206, 1)",
	};

	for (size_t i = 0; i < sizeof(damages) / sizeof(damages[0]); i++) {
		make();
		edit(damages[i]);
		refused(d.folder, true, PROT_UNUSABLE, "restore a backup");
		database_close(&d);
	}
}
END_TEST

/* Bytes of the file: it is refused, or nothing that was in it is wrong. */
START_TEST(damaged_bytes)
{
	struct stat st;
	unsigned refusals = 0;

	make();
	ck_assert_int_eq(stat(d.file, &st), 0);
	for (off_t at = 0; at < st.st_size; at += 97) {
		const struct prot_options options = {.path = d.file};
		int fd = open(d.file, O_RDWR | O_CLOEXEC);
		uint8_t byte, changed;

		ck_assert_int_ge(fd, 0);
		ck_assert_int_eq(pread(fd, &byte, 1, at), 1);
		changed = byte ^ 0x55;
		ck_assert_int_eq(pwrite(fd, &changed, 1, at), 1);
		if (prot_open(&options, &d.prot, d.message)) {
			refusals++;
			ck_assert(d.message[0]);
		} else {
			const struct prot_view *view = prot_view_get(d.prot);

			for (size_t i = 0; i < prot_count(view); i++) {
				const struct prot_entry *entry = prot_at(view, i);

				ck_assert_ptr_eq(prot_by_name(view, entry->name), entry);
				for (uint32_t k = 0; k < entry->count; k++)
					ck_assert_ptr_nonnull(prot_by_id(view, entry->members[k]));
			}
			prot_view_put(view);
			database_shut(&d);
		}
		d.prot = NULL;
		ck_assert_int_eq(pwrite(fd, &byte, 1, at), 1);
		close(fd);
	}
	ck_assert_uint_gt(refusals, 5);
	database_reopen(&d);
	ck_assert_str_eq(database_cps(&d, 1), "-206 -102 -101 1");
	database_close(&d);
}
END_TEST

TEST_MAIN("protection file", made, ids_are_kept, file_of_ids, not_there, foreign, damaged_contents,
	  damaged_bytes)
