/* SPDX-License-Identifier: BSD-2-Clause */
/* New small files, made and stored some at a time: contents and status, names that cannot be made, other readers of the cache. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include <rxafs/stream.h>

#include "tests/client/fs/program.h"
#include "tests/main.h"

#define TIME 1000000000

static struct rxafs_new_file new_file(const char *name, const char *text)
{
	return (struct rxafs_new_file){.name = name,
				       .bytes = text,
				       .length = strlen(text),
				       .set = {.set = RXAFS_SET_MODE | RXAFS_SET_TIME,
					       .mode = 0440,
					       .time = TIME}};
}

static struct rxafs_attributes attributes_at(const char *path)
{
	rxafs_object *object = object_at(path);
	struct rxafs_attributes a;

	ck_assert_int_eq(rxafs_getattr(object, &request, &a), 0);
	rxafs_release(object);
	return a;
}

START_TEST(files_are_made_whole)
{
	char longest[300] = "";
	struct rxafs_new_file files[] = {new_file("one", "first"), new_file("there", "x"),
					 new_file("empty", ""),	   new_file("..", "x"),
					 new_file(longest, "x"),   new_file("two", "second")};
	const int results[] = {0, -EEXIST, 0, -EINVAL, -ENAMETOOLONG, 0};
	rxafs_object *music;

	memset(longest, 'n', sizeof longest);
	longest[299] = '\0';
	open_program_cell();
	write_text("music:there", "old");
	music = object_at("music:");
	ck_assert_int_eq(rxafs_store_small(music, &request, files, 6), 0);
	for (unsigned i = 0; i < 6; i++) {
		ck_assert_int_eq(files[i].result, results[i]);
		ck_assert_int_eq(files[i].made, !results[i]);
		if (files[i].result)
			continue;
		ck_assert_int_eq(files[i].attributes.stat.st_size, (int64_t)files[i].length);
		ck_assert_int_eq(files[i].attributes.stat.st_mtime, TIME);
		ck_assert_uint_eq(files[i].attributes.stat.st_mode & 0777, 0440);
	}
	expect_text("music:one", "first");
	expect_text("music:two", "second");
	expect_text("music:there", "old");
	expect_text("music:empty", "");
	ck_assert_int_eq(attributes_at("music:two").stat.st_mtime, TIME);
	ck_assert_int_eq(attributes_at("music:empty").stat.st_mtime, TIME);
	ck_assert_int_eq(rxafs_store_small(music, &request, files, 0), 0);
	ck_assert_int_eq(rxafs_store_small(music, &request, files, RXAFS_SMALL_MOST + 1), -EINVAL);
	rxafs_release(music);
	close_program_cell();
}
END_TEST

/* Names that are in the cache are edited, once for each file. */
START_TEST(names_in_the_cache)
{
	struct rxafs_new_file files[RXAFS_SMALL_MOST];
	char names[RXAFS_SMALL_MOST][16];
	rxafs_object *music;
	struct rxafs_names listed;

	open_program_cell();
	music = object_at("music:");
	ck_assert_int_eq(result_at("music:f0"), -ENOENT);
	for (unsigned i = 0; i < RXAFS_SMALL_MOST; i++) {
		snprintf(names[i], sizeof names[i], "f%u", i);
		files[i] = new_file(names[i], "text");
	}
	ck_assert_int_eq(rxafs_store_small(music, &request, files, RXAFS_SMALL_MOST), 0);
	for (unsigned i = 0; i < RXAFS_SMALL_MOST; i++) {
		char path[32];

		ck_assert_int_eq(files[i].result, 0);
		snprintf(path, sizeof path, "music:f%u", i);
		expect_text(path, "text");
	}
	ck_assert_int_eq(rxafs_list_names(music, &request, &listed), 0);
	ck_assert_uint_eq(listed.count, RXAFS_SMALL_MOST);
	rxafs_free_names(&listed);
	rxafs_release(music);
	close_program_cell();
}
END_TEST

static atomic_bool looking;

/* Looks at a file again and again, so that the cache knows it from the first moment on. */
static void *look_at_file(void *arg)
{
	struct rxafs_request own = {0};
	struct rxafs_attributes a;
	rxafs_object *object;

	while (atomic_load(&looking)) {
		if (rxafs_find_path(client, &own, arg, true, &object))
			continue;
		rxafs_getattr(object, &own, &a);
		rxafs_release(object);
	}
	return NULL;
}

START_TEST(readers_see_what_was_stored)
{
	open_program_cell();
	for (unsigned i = 0; i < 20; i++) {
		char path[32];
		struct rxafs_new_file file;
		rxafs_object *music = object_at("music:");
		pthread_t thread;

		snprintf(path, sizeof path, "music:f%u", i);
		file = new_file(path + 6, "contents");
		atomic_store(&looking, true);
		pthread_create(&thread, NULL, look_at_file, path);
		ck_assert_int_eq(rxafs_store_small(music, &request, &file, 1), 0);
		ck_assert_int_eq(file.result, 0);
		ck_assert_int_eq(attributes_at(path).stat.st_size, 8);
		expect_text(path, "contents");
		atomic_store(&looking, false);
		pthread_join(thread, NULL);
		rxafs_release(music);
	}
	close_program_cell();
}
END_TEST

/* Breaks the promises of other clients on a directory, then removes it. A removal alone breaks none on what it removes. */
static void remove_changed_directory(rxafs_client *remover, const char *path)
{
	struct rxafs_request asked = {0};
	struct rxafs_attributes attributes;
	rxafs_object *parent, *directory, *made;
	char name[256];

	ck_assert_int_eq(rxafs_find_parent(remover, &asked, path, &parent, name), 0);
	ck_assert_int_eq(rxafs_find_path(remover, &asked, path, true, &directory), 0);
	ck_assert_int_eq(rxafs_mkdir(directory, &asked, "in", 0755, &made, &attributes), 0);
	rxafs_release(made);
	ck_assert_int_eq(rxafs_rmdir(directory, &asked, "in"), 0);
	rxafs_release(directory);
	ck_assert_int_eq(rxafs_rmdir(parent, &asked, name), 0);
	rxafs_release(parent);
}

/* A directory that another client has removed has no names, and is not one that changes. */
START_TEST(names_of_a_removed_directory)
{
	rxafs_client *remover;
	rxafs_object *gone;
	struct rxafs_names listed;

	open_program_cell();
	make_directory("music:gone");
	gone = object_at("music:gone");
	ck_assert_int_eq(rxafs_list_names(gone, &request, &listed), 0);
	ck_assert_uint_eq(listed.count, 0);
	rxafs_free_names(&listed);
	remover = open_program_client();
	remove_changed_directory(remover, "music:gone");
	rxafs_close_client(remover, 1000);
	ck_assert_int_eq(rxafs_list_names(gone, &request, &listed), -ESTALE);
	rxafs_release(gone);
	close_program_cell();
}
END_TEST

/* A link that the server has refused says nothing about its file, whose promise goes on. */
START_TEST(a_refused_link)
{
	struct rxafs_request quick = {.quick = true};
	struct rxafs_attributes a;
	rxafs_object *file, *music;

	open_program_cell();
	write_text("music:file", "text");
	write_text("music:there", "text");
	file = object_at("music:file");
	music = object_at("music:");
	/* A server gives no promises until it knows its client. */
	while (rxafs_getattr(file, &quick, &a))
		ck_assert_int_eq(rxafs_getattr(file, &request, &a), 0);
	ck_assert_int_eq(rxafs_link(file, &request, music, "there", &a), -EEXIST);
	ck_assert_int_eq(rxafs_getattr(file, &request, &a), 0);
	ck_assert_int_eq(a.stat.st_nlink, 1);
	ck_assert_int_eq(rxafs_getattr(file, &quick, &a), 0);
	rxafs_release(music);
	rxafs_release(file);
	close_program_cell();
}
END_TEST

TEST_MAIN_WITHIN(120, "newfiles", files_are_made_whole, names_in_the_cache,
		 readers_see_what_was_stored, names_of_a_removed_directory, a_refused_link)
