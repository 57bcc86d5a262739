/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of state.c: identity, refused directories. */
#include "tests/fileserver/fixture.h"

#include "afs/uuid.h"
#include "fileserver/storage.h"

static char message[FSD_MESSAGE_MAX];

static void one_line_with(const char *what)
{
	ck_assert_msg(strstr(message, what), "\"%s\" does not name %s", message, what);
	ck_assert_ptr_null(strchr(message, '\n'));
}

START_TEST(uuid_stays)
{
	char *folder = test_folder(), *export = tree_make();
	struct fsd_state a, b;
	char path[4200];

	snprintf(path, sizeof(path), "%s/new/deep/state", folder);
	ck_assert_msg(fsd_state_open(&a, path, export, message) == 0, "%s", message);
	fsd_state_close(&a);
	ck_assert_int_eq(fsd_state_open(&b, path, export, message), 0);
	ck_assert(afs_uuid_same(&a.uuid, &b.uuid));
	ck_assert_uint_eq(b.uuid.time_hi_and_version >> 12, 4);
	/* a second server is refused */
	ck_assert_int_eq(fsd_state_open(&a, path, export, message), -1);
	one_line_with("in use by another rxfsd");
	fsd_state_close(&b);

	tree_text(path, "uuid", "nonsense\n");
	ck_assert_int_eq(fsd_state_open(&b, path, export, message), -1);
	one_line_with("uuid");
	tree_remove(folder);
	tree_remove(export);
}
END_TEST

START_TEST(not_inside_the_export)
{
	char *export = tree_make(), *outside = test_folder();
	struct fsd_state state;
	char path[4200];

	tree_dir(export, "sub", 0755);
	static const char *const inside[] = {"", "state", "sub/state", "sub/a/b/c"};

	for (size_t i = 0; i < sizeof(inside) / sizeof(inside[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", export, inside[i]);
		ck_assert_int_eq(fsd_state_open(&state, path, export, message), FSD_STATE_INSIDE);
		one_line_with("inside the export");
	}
	/* not through a link either, and nothing has been created */
	ck_assert_int_eq(symlink(export, tree_path(outside, "link")), 0);
	snprintf(path, sizeof(path), "%s/link/state", outside);
	ck_assert_int_eq(fsd_state_open(&state, path, export, message), FSD_STATE_INSIDE);
	one_line_with("inside the export");
	ck_assert_int_ne(access(tree_path(export, "state"), F_OK), 0);
	ck_assert_int_ne(access(tree_path(export, "sub/state"), F_OK), 0);
	/* a path that only has a common prefix is outside */
	snprintf(path, sizeof(path), "%s-state", export);
	ck_assert_int_eq(fsd_state_open(&state, path, export, message), 0);
	fsd_state_close(&state);
	tree_remove(strdup(path));
	tree_remove(export);
	tree_remove(outside);
}
END_TEST

START_TEST(not_writable)
{
	char *export = tree_make(), *folder = test_folder();
	struct fsd_state state;
	char path[4200];

	tree_text(folder, "file", "");
	snprintf(path, sizeof(path), "%s/file/state", folder);
	ck_assert_int_eq(fsd_state_open(&state, path, export, message), -1);
	one_line_with("--state");
	ck_assert_int_eq(fsd_state_open(&state, "/proc/rxfsd-state", export, message), -1);
	one_line_with("/proc/rxfsd-state");
	one_line_with("--state");
	if (geteuid() != 0) {
		ck_assert_int_eq(chmod(folder, 0500), 0);
		ck_assert_int_eq(fsd_state_open(&state, folder, export, message), -1);
		one_line_with(folder);
	}
	tree_remove(export);
	tree_remove(folder);
}
END_TEST

START_TEST(default_place)
{
	char path[4096];

	setenv("STATE_DIRECTORY", "/run/one:/run/two", 1);
	ck_assert_int_eq(fsd_state_default(path, sizeof(path), message), 0);
	ck_assert_str_eq(path, "/run/one");
	unsetenv("STATE_DIRECTORY");
	setenv("XDG_STATE_HOME", "/x/state", 1);
	ck_assert_int_eq(fsd_state_default(path, sizeof(path), message), 0);
	ck_assert_str_eq(path, geteuid() ? "/x/state/rxfsd" : "/var/lib/rxfsd");
	unsetenv("XDG_STATE_HOME");
	setenv("HOME", "/home/somebody", 1);
	ck_assert_int_eq(fsd_state_default(path, sizeof(path), message), 0);
	ck_assert_str_eq(path, geteuid() ? "/home/somebody/.local/state/rxfsd" : "/var/lib/rxfsd");
}
END_TEST

/* A lost state never yields the same id again; the two ids after it belong to the volume, too. */
START_TEST(volumes_get_random_ids)
{
	char *export = tree_make(), *folder = test_folder();
	struct fsd_state state;
	struct fids *store;
	uint32_t ids[8];

	for (int i = 0; i < 8; i++) {
		char name[16];

		snprintf(name, sizeof(name), "v%d", i);
		ck_assert_int_eq(fsd_state_open(&state, folder, export, message), 0);
		ck_assert_int_eq(fsd_state_fids(&state, name, &store, &ids[i], message), 0);
		fids_close(store);
		fsd_state_close(&state);
		ck_assert_uint_ge(ids[i], 0x20000000);
		ck_assert_uint_le(ids[i], 0x7ffffffc);
		for (int j = 0; j < i; j++)
			ck_assert_uint_ne(ids[i] & ~3u, ids[j] & ~3u);
	}
	tree_remove(export);
	tree_remove(folder);
}
END_TEST

TEST_MAIN("state directory", uuid_stays, not_inside_the_export, not_writable, default_place,
	  volumes_get_random_ids)
