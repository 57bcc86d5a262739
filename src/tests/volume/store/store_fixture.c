/* SPDX-License-Identifier: BSD-2-Clause */
/* A store for tests. */
#include "tests/volume/store/store_fixture.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/asserts.h"
#include "volume/store/disk/vfs.h"
#include "volume/store/upkeep.h"

struct store *store;
uint32_t volume;
struct store_fid root;
struct store_status status, dir_status, old_status, new_status;
struct store_changes changes;
struct store_volume about;
struct store_stats stats;
char message[STORE_MESSAGE_MAX];
int lines;
char last_line[600];
bool faults_expected;

static const int32_t admin_ids[] = {STORE_ADMINISTRATORS, STORE_AUTHUSER, STORE_ANYUSER, 1};
static const int32_t user_ids[] = {STORE_AUTHUSER, STORE_ANYUSER, 10};
static const int32_t anonymous_ids[] = {STORE_ANYUSER, STORE_ANONYMOUS};
const struct store_caller admin = {.id = 1, .ids = admin_ids, .id_count = 4, .administrator = true};
const struct store_caller user = {.id = 10, .ids = user_ids, .id_count = 3};
const struct store_caller anonymous = {.id = STORE_ANONYMOUS, .ids = anonymous_ids, .id_count = 2};
const struct store_set nothing;

static char folder[200], path[256];
static struct store_options options;

static void log_line(void *arg, int level, const char *line)
{
	(void)arg;
	(void)level;
	snprintf(last_line, sizeof(last_line), "%s", line);
	lines++;
}

void fixture_start(void)
{
	const char *tmp = getenv("TMPDIR");

	snprintf(folder, sizeof(folder), "%s/store-XXXXXX", tmp ? tmp : "/tmp");
	ck_assert_ptr_nonnull(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/store", folder);
	options = (struct store_options){.path = path, .log = log_line};
}

void fixture_end(void)
{
	char command[300];

	if (store && !faults_expected)
		ck_assert_int_eq(fixture_check(), 0);
	if (store)
		fixture_close();
	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	ck_assert_int_eq(system(command), 0);
}

const char *fixture_path(void)
{
	return path;
}

void fixture_file(const char *name, const char *text)
{
	char file_path[300];
	FILE *file;

	mkdir(path, 0700);
	snprintf(file_path, sizeof(file_path), "%s/%s", path, name);
	file = fopen(file_path, "w");
	ck_assert_ptr_nonnull(file);
	fputs(text, file);
	ck_assert_int_eq(fclose(file), 0);
}

void fixture_memory(size_t bytes)
{
	options.memory = bytes;
}

void fixture_scrub(unsigned wait_ms)
{
	options.scrub_kib = UINT_MAX - 1;
	options.scrub_wait_ms = wait_ms;
}

void fixture_layer(struct store_layer *layer)
{
	options.layer = layer;
}

void fixture_expect(const char *name, const char *text)
{
	char file_path[300], got[200] = "";
	FILE *file;

	snprintf(file_path, sizeof(file_path), "%s/%s", path, name);
	file = fopen(file_path, "r");
	ck_assert_ptr_nonnull(file);
	ck_assert_uint_gt(fread(got, 1, sizeof(got) - 1, file), 0);
	ck_assert_int_eq(fclose(file), 0);
	got[strlen(text)] = '\0';
	ck_assert_str_eq(got, text);
}

void fixture_open(enum store_durability durability)
{
	struct store_new_volume new = {.name = "v", .owner = 1};
	struct store_acl acl = {0};

	options.durability = durability;
	ck_assert_msg(store_make(&options, message) == 0, "%s", message);
	fixture_open_again();
	store_acl_add(&acl, false, STORE_ADMINISTRATORS, STORE_ALL);
	new.acl = &acl;
	ck_assert_int_eq(store_volume_create(store, &new, &volume), 0);
	root = (struct store_fid){volume, STORE_ROOT_VNODE, STORE_ROOT_UNIQUE};
}

void fixture_open_again(void)
{
	ck_assert_msg(store_open(&options, &store, message) == 0, "%s", message);
}

void fixture_close(void)
{
	store->ops->close(store);
	store = NULL;
}

void fixture_reopen(void)
{
	fixture_close();
	fixture_open_again();
}

static int first_number(void *arg, int columns, char **value, char **name)
{
	(void)name;
	ck_assert_int_eq(columns, 1);
	*(int *)arg = atoi(value[0]);
	return 0;
}

/* As an open store would, so that pages get their checksums. */
static int run_sql(const char *sql)
{
	struct store_layer *layer;
	struct store_vfs *vfs;
	char *error = NULL;
	sqlite3 *db;
	int number = -1;

	fixture_close();
	ck_assert_int_eq(store_layer_posix(path, &layer), 0);
	ck_assert_int_eq(store_vfs_create(layer, NULL, NULL, &vfs), 0);
	ck_assert_int_eq(
		sqlite3_open_v2("meta/db", &db, SQLITE_OPEN_READWRITE, store_vfs_name(vfs)),
		SQLITE_OK);
	ck_assert_msg(sqlite3_exec(db, sql, first_number, &number, &error) == SQLITE_OK, "%s: %s",
		      sql, error);
	ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
	store_vfs_destroy(vfs);
	layer->ops->destroy(layer);
	fixture_open_again();
	return number;
}

void fixture_sql(const char *sql)
{
	run_sql(sql);
}

int fixture_rows(const char *sql)
{
	return run_sql(sql);
}

static void print_fault(void *arg, const char *line)
{
	(void)arg;
	if (!faults_expected)
		fprintf(stderr, "fault: %s\n", line);
}

int fixture_check(void)
{
	return store_check(store, &(struct store_checker){.each = print_fault});
}

void fixture_pruned(void)
{
	/* The thread in the background prunes; the test's time limit ends a wait without end. */
	do {
		usleep(1000);
		store_stats(store, &stats);
	} while (stats.pruning);
	ck_assert_int_eq(fixture_check(), 0);
}

void fixture_volume(uint32_t id)
{
	ck_assert_int_eq(store->ops->volume(store, id, &about), 0);
}

void fixture_same(const struct store_fid *fid, const void *bytes, size_t length)
{
	struct store_reader *reader;
	uint8_t *got = malloc(length + 100);
	struct iovec iov[2] = {
		{.iov_base = got, .iov_len = length / 3},
		{.iov_base = got + length / 3, .iov_len = length + 100 - length / 3}};

	ck_assert_int_eq(store->ops->read_begin(store, &admin, fid, &reader, &status), 0);
	ck_assert_uint_eq(status.length, length);
	ck_assert_int_eq(store->ops->read(reader, iov, 2, 0, 0), (ssize_t)length);
	for (size_t i = 0; i < length; i++)
		if (got[i] != ((const uint8_t *)bytes)[i])
			ck_abort_msg("byte %zu of %zu differs", i, length);
	ck_assert_int_eq(store->ops->read_end(reader), 0);
	free(got);
}

void fixture_keeps(const struct store_fid *fid)
{
	static uint8_t bytes[50000], got[50001];
	struct iovec iov = {.iov_base = got, .iov_len = sizeof(got)};
	struct store_reader *small, *large;

	ck_assert_int_eq(try_write(&admin, fid, 0, "small", 5, 0), 0);
	ck_assert_int_eq(store->ops->read_begin(store, &admin, fid, &small, &status), 0);
	memset(bytes, 9, sizeof(bytes));
	ck_assert_int_eq(try_write(&admin, fid, 0, bytes, sizeof(bytes), 0), 0);
	ck_assert_int_eq(store->ops->read_begin(store, &admin, fid, &large, &status), 0);
	ck_assert_int_eq(try_write(&admin, fid, 0, "other", 5, 0), 0);
	/* Its object is removed after a flush. */
	ck_assert_int_eq(store_flush(store), 0);
	ck_assert_int_eq(store_flush(store), 0);
	ck_assert_int_eq(store->ops->read(small, &iov, 1, 0, 0), 5);
	ck_assert_mem_eq(got, "small", 5);
	ck_assert_int_eq(store->ops->read(large, &iov, 1, 0, 0), sizeof(bytes));
	ck_assert_mem_eq(got, bytes, sizeof(bytes));
	ck_assert_int_eq(store->ops->read(large, &iov, 1, sizeof(bytes), 0), 0);
	store->ops->read_ahead(large, 0, sizeof(bytes));
	ck_assert_int_eq(store->ops->read_end(small), 0);
	ck_assert_int_eq(store->ops->read_end(large), 0);
	ck_assert_int_eq(store->ops->read_end(NULL), 0);
}

/* -- operations -- */

struct store_fid make_as(const struct store_caller *caller, const struct store_fid *dir,
			 const char *name, enum store_kind kind)
{
	int result = try_create(caller, dir, name, kind);

	ck_assert_msg(!result, "%s: %d", name, result);
	return status.fid;
}

struct store_fid make(const struct store_fid *dir, const char *name, enum store_kind kind)
{
	return make_as(&admin, dir, name, kind);
}

struct store_fid make_link(const struct store_fid *dir, const char *name, const char *text)
{
	ck_assert_int_eq(store->ops->create(store, &admin, dir, name, STORE_SYMLINK, text, &nothing,
					    &status, &dir_status, &changes),
			 0);
	return status.fid;
}

int byte_at(const struct store_fid *fid, uint64_t offset)
{
	struct store_reader *reader;
	uint8_t byte = 0;
	struct iovec iov = {.iov_base = &byte, .iov_len = 1};

	ck_assert_int_eq(store->ops->read_begin(store, &admin, fid, &reader, &status), 0);
	ck_assert_int_eq(store->ops->read(reader, &iov, 1, offset, 0), 1);
	ck_assert_int_eq(store->ops->read_end(reader), 0);
	return byte;
}

int try_status(const struct store_caller *caller, const struct store_fid *fid)
{
	return store->ops->status(store, caller, fid, &status);
}

int try_acl(const struct store_caller *caller, const struct store_fid *fid)
{
	struct store_acl acl;

	return store->ops->acl(store, caller, fid, &acl, &status);
}

int try_read(const struct store_caller *caller, const struct store_fid *fid)
{
	struct store_reader *reader;
	int result = store->ops->read_begin(store, caller, fid, &reader, &status);

	return result ? result : store->ops->read_end(reader);
}

int try_set(const struct store_caller *caller, const struct store_fid *fid, uint32_t mask,
	    uint32_t mode)
{
	struct store_set set = {.mask = mask, .mode = mode, .mtime = 1};

	return store->ops->set_status(store, caller, fid, &set, &status, &changes);
}

int try_create(const struct store_caller *caller, const struct store_fid *dir, const char *name,
	       enum store_kind kind)
{
	return store->ops->create(store, caller, dir, name, kind, NULL, &nothing, &status,
				  &dir_status, &changes);
}

int try_remove(const struct store_caller *caller, const struct store_fid *dir, const char *name,
	       enum store_kind kind)
{
	return store->ops->remove(store, caller, dir, name, kind, &dir_status, &changes);
}

int try_link(const struct store_caller *caller, const struct store_fid *dir, const char *name,
	     const struct store_fid *existing)
{
	return store->ops->link(store, caller, dir, name, existing, &status, &dir_status, &changes);
}

int try_rename(const struct store_caller *caller, const struct store_fid *from, const char *name,
	       const struct store_fid *to, const char *new_name)
{
	return store->ops->rename(store, caller, from, name, to, new_name, &old_status, &new_status,
				  &changes);
}

int try_begin(const struct store_caller *caller, const struct store_fid *fid, uint64_t offset,
	      uint64_t length, uint64_t file_length, struct store_writer **writer)
{
	return store->ops->write_begin(store, caller, fid, &nothing, offset, length, file_length,
				       writer);
}

int try_write(const struct store_caller *caller, const struct store_fid *fid, uint64_t offset,
	      const void *bytes, size_t length, uint64_t file_length)
{
	struct iovec iov = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = length};
	struct store_writer *writer;
	int result = try_begin(caller, fid, offset, length, file_length, &writer);

	if (result)
		return result;
	result = store->ops->write(writer, &iov, 1);
	if (!result)
		return store->ops->write_commit(writer, &status, &changes);
	store->ops->write_abort(writer);
	return result;
}
