/* SPDX-License-Identifier: BSD-2-Clause */
/* The library as a program sees it: options, paths, volumes without mount points, listings, texts of errors. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "tests/client/fs/program.h"
#include "tests/main.h"

START_TEST(paths_of_both_forms)
{
	rxafs_object *root, *music;

	open_program_cell();
	make_directory("music:albums");
	write_text("music:/albums//one", "first");
	expect_text("music:albums/one", "first");
	root = object_at("root.cell:");
	ck_assert_int_eq(rxafs_make_mount(root, &request, "music", "#music."), 0);
	expect_text("/afs/example.org/music/albums/one", "first");
	expect_text("/afs/example.org/music/albums/../albums/./one", "first");

	/* Nothing is above the root of a volume that was opened by its name. */
	ck_assert_int_eq(result_at("music:albums/../.."), -EXDEV);
	music = object_at("music:albums/..");
	rxafs_object *above = rxafs_parent(music);
	ck_assert_ptr_eq(above, music);
	rxafs_release(above);
	rxafs_release(music);
	rxafs_release(root);
	close_program_cell();
}
END_TEST

START_TEST(nothing_is_given_back)
{
	rxafs_close(NULL);
	rxafs_close_listing(NULL);
	rxafs_release(NULL);
	rxafs_put_user(NULL);
	rxafs_free_cancel(NULL);
	rxafs_free_watch(NULL);
	rxafs_free_queue(NULL);
	ck_assert_int_eq(rxafs_close_client(NULL, 0), 0);
}
END_TEST

START_TEST(paths_that_lead_nowhere)
{
	rxafs_object *parent;
	char name[256], longest[300];
	int result;

	open_program_cell();
	write_text("music:file", "x");
	ck_assert_int_eq(result_at(""), -EINVAL);
	ck_assert_int_eq(result_at("music"), -EINVAL);
	ck_assert_int_eq(result_at(":x"), -EINVAL);
	ck_assert_int_eq(result_at("/etc/passwd"), -EINVAL);
	ck_assert_int_eq(result_at("/afsx/y"), -EINVAL);
	ck_assert_int_eq(result_at("nobody:"), -ENODEV);
	ck_assert_int_eq(result_at("music:none"), -ENOENT);
	ck_assert_int_eq(result_at("music:file/none"), -ENOTDIR);
	ck_assert_int_eq(result_at("music:file/"), -ENOTDIR);
	ck_assert_int_eq(result_at("music:none/"), -ENOENT);
	ck_assert_int_eq(result_at("/afs/nowhere"), -ENOENT);
	ck_assert_int_eq(rxafs_find_parent(client, &request, "music:", &parent, name), -EINVAL);
	ck_assert_int_eq(rxafs_find_parent(client, &request, "music:a/..", &parent, name), -EINVAL);
	ck_assert_int_eq(rxafs_find_parent(client, &request, "music:none/x", &parent, name), -ENOENT);
	ck_assert_int_eq(rxafs_find_parent(client, &request, "music:file/x", &parent, name), -ENOTDIR);
	memset(longest, 'n', sizeof longest);
	memcpy(longest, "music:", 6);
	longest[299] = '\0';
	ck_assert_int_eq(rxafs_find_parent(client, &request, longest, &parent, name), -ENAMETOOLONG);

	/* A text of its own, that of the errno, and no text of a failure before. */
	result = result_at("music");
	ck_assert_ptr_nonnull(strstr(rxafs_error_text(&request, result), "VOLUME:"));
	ck_assert_str_eq(rxafs_error_text(&request, -ENOENT), strerror(ENOENT));
	close_program_cell();
}
END_TEST

START_TEST(volumes_by_name_and_number)
{
	struct rxafs_volume volume;
	struct rxafs_attributes attributes;
	rxafs_object *by_name, *by_number, *copy;
	char number[16];

	open_program_cell();
	ck_assert_int_eq(rxafs_open_volume(client, &request, NULL, "music", &by_name), 0);
	ck_assert_int_eq(rxafs_examine(by_name, &request, &volume), 0);
	ck_assert_str_eq(volume.name, "music");
	ck_assert(volume.writable);
	snprintf(number, sizeof number, "%u", volume.id);
	ck_assert_int_eq(rxafs_open_volume(client, &request, "example.org", number, &by_number), 0);
	ck_assert_ptr_eq(by_name, by_number);
	ck_assert_int_eq(rxafs_getattr(by_name, &request, &attributes), 0);
	ck_assert(S_ISDIR(attributes.stat.st_mode));
	ck_assert_int_eq(rxafs_open_volume(client, &request, NULL, "music.readonly", &copy), -ENODEV);
	ck_assert_int_eq(rxafs_open_volume(client, &request, "no.cell", "music", &copy), -ENOENT);
	rxafs_release(by_name);
	rxafs_release(by_number);
	close_program_cell();
}
END_TEST

#define FILES 60 /* more than one call asks about */

START_TEST(listings_with_attributes)
{
	bool seen[FILES] = {false};
	struct rxafs_attributes attributes;
	struct rxafs_entry entry;
	rxafs_object *music, *object;
	rxafs_listing *listing;
	unsigned count = 0, i;
	char path[32], text[FILES + 1] = "";
	int result;

	open_program_cell();
	for (i = 0; i < FILES; i++) {
		snprintf(path, sizeof path, "music:%u", i);
		write_text(path, text);
		text[i] = 'x';
	}
	music = object_at("music:");
	ck_assert_int_eq(rxafs_open_listing(music, &request, &listing), 0);
	while ((result = rxafs_read_listing(listing, &request, &entry, &object, &attributes)) == 1) {
		ck_assert_int_eq(entry.error, 0);
		ck_assert_int_eq(sscanf(entry.name, "%u", &i), 1);
		ck_assert(i < FILES && !seen[i]);
		seen[i] = true;
		ck_assert_int_eq(attributes.stat.st_size, i);
		ck_assert(rxafs_fid_same(&attributes.fid, &entry.fid));
		rxafs_release(object);
		count++;
	}
	ck_assert_int_eq(result, 0);
	ck_assert_int_eq(count, FILES);
	rxafs_close_listing(listing);

	/* Names alone. */
	ck_assert_int_eq(rxafs_open_listing(music, &request, &listing), 0);
	for (count = 0; rxafs_read_listing(listing, &request, &entry, NULL, NULL) == 1; count++)
		ck_assert(strcmp(entry.name, ".") && strcmp(entry.name, ".."));
	ck_assert_int_eq(count, FILES);
	rxafs_close_listing(listing);
	rxafs_release(music);
	close_program_cell();
}
END_TEST

static int64_t time_after_setting(rxafs_object *object, int64_t time)
{
	struct rxafs_changes changes = {.set = RXAFS_SET_TIME, .time = time};
	struct rxafs_attributes attributes;

	ck_assert_int_eq(rxafs_setattr(object, &request, &changes, &attributes), 0);
	return attributes.stat.st_mtime;
}

START_TEST(limits_of_files)
{
	rxafs_object *object;
	rxafs_file *file;
	char byte;

	open_program_cell();
	write_text("music:one", "first");
	object = object_at("music:one");
	ck_assert_int_eq(rxafs_open(object, &request, O_WRONLY, &file), 0);
	ck_assert_int_eq(rxafs_read(file, &request, &byte, 1, 0), -EBADF);
	rxafs_close(file);
	ck_assert_int_eq(time_after_setting(object, 1000000000), 1000000000);
	ck_assert_int_eq(time_after_setting(object, -1), 0);
	ck_assert_int_eq(time_after_setting(object, INT64_C(1) << 33), UINT32_MAX);
	rxafs_release(object);
	close_program_cell();
}
END_TEST

START_TEST(options_have_a_size)
{
	struct rxafs_options options = {.size = sizeof options, .cell = "example.org"};
	struct {
		struct rxafs_options known;
		uint64_t unknown;
	} longer = {.known = {.size = sizeof longer, .cell = "example.org"}};
	struct rxafs_failure failure;

	ck_assert_int_eq(rxafs_open_client(&options, &client, &failure), 0);
	ck_assert_int_eq(rxafs_close_client(client, 0), 0);
	ck_assert_int_eq(rxafs_open_client(&longer.known, &client, &failure), 0);
	ck_assert_int_eq(rxafs_close_client(client, 0), 0);
	longer.unknown = 1;
	ck_assert_int_eq(rxafs_open_client(&longer.known, &client, &failure), -EINVAL);
	ck_assert(failure.number == EINVAL && failure.text[0]);
	options.size = 0;
	ck_assert_int_eq(rxafs_open_client(&options, &client, NULL), -EINVAL);
	/* Only a name: what this machine has configured suffices. */
	ck_assert_int_eq(rxafs_open_client(NULL, &client, &failure), 0);
	ck_assert_int_eq(rxafs_close_client(client, 0), 0);
}
END_TEST

TEST_MAIN_WITHIN(120, "paths", paths_of_both_forms, nothing_is_given_back, paths_that_lead_nowhere,
		 volumes_by_name_and_number, listings_with_attributes, limits_of_files,
		 options_have_a_size)
