/* SPDX-License-Identifier: BSD-2-Clause */
/* Paths of numbers, and mount points: deep, many, moved, in clones, damaged. */
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#include "tests/admin/fixture.h"
#include "volume/store/disk/vfs.h"

static const int32_t ids[] = {STORE_ADMINISTRATORS};
static const struct store_caller caller = {
	.ids = ids, .id_count = 1, .administrator = true, .unrestricted = true};

/* An object in a directory; `text`: of a link. */
static struct store_fid make(struct fixture *f, struct store_fid dir, const char *name,
			     enum store_kind kind, const char *text)
{
	const struct store_set set = {.mask = STORE_SET_MODE, .mode = 0644};
	struct store_status status, above;
	struct store_changes changes = {0};

	ck_assert_int_eq(f->store->ops->create(f->store, &caller, &dir, name, kind, text, &set,
					       &status, &above, &changes),
			 0);
	return status.fid;
}

static struct store_fid root_of(struct fixture *f, const char *name)
{
	struct store_volume volume;

	ck_assert_int_eq(f->store->ops->volume_by_name(f->store, name, &volume), 0);
	return (struct store_fid){volume.id, STORE_ROOT_VNODE, STORE_ROOT_UNIQUE};
}

static const char *first_path(const json_t *result)
{
	return json_string_value(json_array_get(json_object_get(result, "paths"), 0));
}

static void expect_path(struct fixture *f, const char *volume, uint32_t vnode, const char *path)
{
	const json_t *result = fixture_do(
		f, "{\"command\": \"which\", \"volume\": \"%s\", \"vnode\": %u}", volume, vnode);

	ck_assert_str_eq(first_path(result), path);
}

/* Do something to the closed database. */
/* As an open store would, so that pages get their checksums. */
static void change_database(struct fixture *f, const char *sql)
{
	char path[128], message[STORE_MESSAGE_MAX];
	struct store_options options = {.path = path};
	struct store_layer *layer;
	struct store_vfs *vfs;
	sqlite3 *db;

	f->store->ops->close(f->store);
	snprintf(path, sizeof(path), "%s/store", f->folder);
	ck_assert_int_eq(store_layer_posix(path, &layer), 0);
	ck_assert_int_eq(store_vfs_create(layer, NULL, NULL, &vfs), 0);
	ck_assert_int_eq(
		sqlite3_open_v2("meta/db", &db, SQLITE_OPEN_READWRITE, store_vfs_name(vfs)),
		SQLITE_OK);
	ck_assert_int_eq(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
	ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
	store_vfs_destroy(vfs);
	layer->ops->destroy(layer);
	ck_assert_msg(store_open(&options, &f->store, message) == 0, "%s", message);
}

/* A path is as deep as one likes, up to a bound that is reported. */
START_TEST(deep_paths)
{
	struct fixture f;
	struct store_fid dir;
	char name[201], text[8300] = "v:";

	memset(name, 'n', 200);
	name[200] = 0;
	fixture_open(&f);
	fixture_do(&f, "{\"command\": \"create\", \"name\": \"v\"}");
	dir = root_of(&f, "v");
	for (unsigned i = 0; i < 400; i++) {
		dir = make(&f, dir, name, STORE_DIR, NULL);
		if (i < 40)
			strcat(strcat(text, "/"), name);
		if (i == 39)
			expect_path(&f, "v", dir.vnode, text);
	}
	fixture_refuses(&f, 1, "name too long",
			"{\"command\": \"which\", \"volume\": \"v\", \"vnode\": %u}", dir.vnode);
	fixture_close(&f);
}
END_TEST

/* A number shows what the volume or the clone shows under it. */
START_TEST(moved_objects)
{
	struct store_status before, after;
	struct store_changes changes = {0};
	struct store_fid root, a, b, file;
	struct fixture f;

	fixture_open(&f);
	fixture_do(&f, "{\"command\": \"create\", \"name\": \"v\"}");
	root = root_of(&f, "v");
	a = make(&f, root, "a", STORE_DIR, NULL);
	b = make(&f, a, "b", STORE_DIR, NULL);
	file = make(&f, b, "x\n\377", STORE_FILE, NULL);
	expect_path(&f, "v", file.vnode, "v:/a/b/x\\x0a\\xff");
	fixture_do(&f, "{\"command\": \"clone\", \"volume\": \"v\"}");
	ck_assert_int_eq(f.store->ops->rename(f.store, &caller, &a, "b", &root, "c", &before,
					      &after, &changes),
			 0);
	expect_path(&f, "v", file.vnode, "v:/c/x\\x0a\\xff");
	expect_path(&f, "v.readonly", file.vnode, "v.readonly:/a/b/x\\x0a\\xff");
	ck_assert_int_eq(f.store->ops->remove(f.store, &caller, &b, "x\n\377", STORE_FILE, &before,
					      &changes),
			 0);
	fixture_refuses(&f, 1, "no object has this number now",
			"{\"command\": \"which\", \"volume\": \"v\", \"vnode\": %u}", file.vnode);
	expect_path(&f, "v.readonly", file.vnode, "v.readonly:/a/b/x\\x0a\\xff");
	fixture_do(&f, "{\"command\": \"offline\", \"volume\": \"v\"}");
	expect_path(&f, "v", b.vnode, "v:/c");
	fixture_refuses(
		&f, 2, "give a path or a vnode",
		"{\"command\": \"which\", \"volume\": \"v\", \"vnode\": 1, \"path\": \"\"}");
	fixture_refuses(&f, 2, "numbers of an object",
			"{\"command\": \"which\", \"volume\": \"v\", \"vnode\": 4294967296}");
	fixture_close(&f);
}
END_TEST

/* The log names vnodes whose records are damaged or gone. The names that lead to them are there. */
START_TEST(damaged_records)
{
	struct store_fid root, dir, file, lost;
	const json_t *result;
	struct fixture f;
	char sql[200];

	fixture_open(&f);
	fixture_do(&f, "{\"command\": \"create\", \"name\": \"v\"}");
	root = root_of(&f, "v");
	dir = make(&f, root, "dir", STORE_DIR, NULL);
	file = make(&f, dir, "file", STORE_FILE, NULL);
	lost = make(&f, dir, "lost", STORE_FILE, NULL);
	snprintf(sql, sizeof(sql),
		 "UPDATE vnode SET record = zeroblob(60) WHERE vnode = %u;"
		 "DELETE FROM vnode WHERE vnode = %u",
		 file.vnode, lost.vnode);
	change_database(&f, sql);
	for (unsigned i = 0; i < 2; i++) {
		ck_assert_int_eq(
			fixture_ask(&f,
				    "{\"command\": \"which\", \"volume\": \"v\", \"vnode\": %u}",
				    i ? lost.vnode : file.vnode),
			1);
		result = json_object_get(f.last, "result");
		ck_assert(json_is_true(json_object_get(result, "damaged")));
		ck_assert_str_eq(first_path(result), i ? "v:/dir/lost" : "v:/dir/file");
	}
	/* Without the directory nothing leads to it any more. */
	snprintf(sql, sizeof(sql), "UPDATE vnode SET record = zeroblob(60) WHERE vnode = %u",
		 dir.vnode);
	change_database(&f, sql);
	ck_assert_int_eq(fixture_ask(&f,
				     "{\"command\": \"which\", \"volume\": \"v\", \"vnode\": %u}",
				     file.vnode),
			 1);
	result = json_object_get(f.last, "result");
	ck_assert_uint_eq(json_array_size(json_object_get(result, "paths")), 0);
	fixture_ask(&f, "{\"command\": \"which\", \"volume\": \"v\", \"vnode\": %u}", dir.vnode);
	ck_assert_str_eq(first_path(json_object_get(f.last, "result")), "v:/dir");
	fixture_close(&f);
}
END_TEST

#define MANY 5000 /* more than one step reads, and more than it keeps */

START_TEST(many_mount_points)
{
	struct store_fid root, dir;
	struct fixture f;
	char name[32];

	fixture_open(&f);
	fixture_do(&f, "{\"command\": \"create\", \"name\": \"v\"}");
	fixture_do(&f, "{\"command\": \"create\", \"name\": \"other\"}");
	root = root_of(&f, "v");
	dir = make(&f, root, "dir", STORE_DIR, NULL);
	for (unsigned i = 0; i < MANY; i++) {
		snprintf(name, sizeof(name), "%u", i);
		if (i % 10)
			make(&f, dir, name, STORE_FILE, NULL);
		else
			make(&f, dir, name, STORE_SYMLINK,
			     i % 20   ? "#other."
			     : i % 40 ? "no mount point"
				      : "%gone.backup.");
	}
	make(&f, root_of(&f, "other"), "up", STORE_SYMLINK, "#v.");
	fixture_do(&f, "{\"command\": \"clone\", \"volume\": \"v\"}");
	fixture_do(&f, "{\"command\": \"mounts\"}");
	ck_assert_uint_eq(f.mounts, MANY / 20 + MANY / 40 + 1);
	ck_assert_int_eq(
		json_integer_value(json_object_get(json_object_get(f.last, "result"), "dangling")),
		MANY / 40);
	fixture_do(&f, "{\"command\": \"mounts\", \"volume\": \"other\"}");
	ck_assert_uint_eq(f.mounts, MANY / 20 + 1);
	fixture_do(&f, "{\"command\": \"mounts\", \"volume\": \"gone\"}");
	ck_assert_uint_eq(f.mounts, MANY / 40);
	/* Mount points to the read-write volume do not lead to its clone; those in the clone are seen on demand. */
	fixture_do(&f, "{\"command\": \"mounts\", \"volume\": \"v.readonly\"}");
	ck_assert_uint_eq(f.mounts, MANY / 20 + MANY / 40);
	fixture_do(&f, "{\"command\": \"mounts\", \"volume\": \"v\"}");
	ck_assert_uint_eq(f.mounts, MANY / 20 + MANY / 40 + 1);
	f.stop_after = 2;
	fixture_refuses(&f, 1, "interrupted", "{\"command\": \"mounts\"}");
	fixture_close(&f);
}
END_TEST

/* A volume that cannot be read does not hide those of others. */
START_TEST(damaged_volume)
{
	struct fixture f;

	fixture_open(&f);
	fixture_do(&f, "{\"command\": \"create\", \"name\": \"v\"}");
	fixture_do(&f, "{\"command\": \"create\", \"name\": \"w\"}");
	make(&f, root_of(&f, "v"), "m", STORE_SYMLINK, "#w.");
	make(&f, root_of(&f, "w"), "m", STORE_SYMLINK, "#v.");
	change_database(&f, "UPDATE volume SET record = zeroblob(60) WHERE name = 'v'");
	ck_assert_int_eq(fixture_ask(&f, "{\"command\": \"mounts\"}"), 1);
	ck_assert_uint_eq(f.mounts, 1);
	ck_assert_uint_eq(f.skipped, 1);
	ck_assert_ptr_nonnull(strstr(f.reason, "record is damaged"));
	fixture_close(&f);
}
END_TEST

START_TEST(unmounting)
{
	struct store_fid root;
	struct fixture f;

	fixture_open(&f);
	fixture_do(&f, "{\"command\": \"create\", \"name\": \"v\"}");
	root = root_of(&f, "v");
	fixture_do(&f, "{\"command\": \"mount\", \"volume\": \"v\", \"path\": \"m\", "
		       "\"target\": \"v\"}");
	f.changes = 0;
	fixture_do(&f, "{\"command\": \"unmount\", \"volume\": \"v\", \"path\": \"m\"}");
	ck_assert_uint_eq(f.changes, 2);
	ck_assert(f.change[0].fid.vnode == root.vnode || f.change[1].fid.vnode == root.vnode);
	fixture_refuses(&f, 1, "does not exist",
			"{\"command\": \"unmount\", \"volume\": \"v\", \"path\": \"m\"}");
	fixture_do(&f, "{\"command\": \"mount\", \"volume\": \"v\", \"path\": \"m\", "
		       "\"target\": \"v\"}");
	fixture_do(&f, "{\"command\": \"clone\", \"volume\": \"v\"}");
	fixture_refuses(&f, 1, "a clone cannot be changed",
			"{\"command\": \"unmount\", \"volume\": \"v.readonly\", \"path\": \"m\"}");
	fixture_close(&f);
}
END_TEST

TEST_MAIN_WITHIN(120, "administration of a store: paths of numbers, mount points", deep_paths,
		 moved_objects, damaged_records, many_mount_points, damaged_volume, unmounting)
