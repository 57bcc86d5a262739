/* SPDX-License-Identifier: BSD-2-Clause */
/* A cell with a client, and what tests do with paths. */
#include "tests/client/fs/program.h"

#include <fcntl.h>
#include <string.h>

#include "tests/asserts.h"

struct realserver server;
rxafs_client *client;
struct rxafs_request request;

void open_program_cell(void)
{
	const char *volumes[] = {"root.cell", "music", NULL};

	realserver_open(&server, volumes);
	request = (struct rxafs_request){0};
	client = open_program_client();
}

rxafs_client *open_program_client(void)
{
	const char *cell = realserver_cell(&server, "example.org");
	struct rxafs_options options = {.size = sizeof options,
					.cell = "example.org",
					.cells = &cell,
					.cell_count = 1};
	struct rxafs_failure failure;
	rxafs_client *opened;

	ck_assert_msg(!rxafs_open_client(&options, &opened, &failure), "%s", failure.text);
	return opened;
}

void close_program_cell(void)
{
	ck_assert_int_eq(rxafs_close_client(client, 10000), 0);
	realserver_close(&server);
}

rxafs_object *object_at(const char *path)
{
	rxafs_object *object = NULL;
	int result = rxafs_find_path(client, &request, path, true, &object);

	ck_assert_msg(!result, "%s: %s", path, rxafs_error_text(&request, result));
	return object;
}

int result_at(const char *path)
{
	rxafs_object *object;

	return rxafs_find_path(client, &request, path, true, &object);
}

void make_directory(const char *path)
{
	struct rxafs_attributes attributes;
	rxafs_object *parent, *made;
	char name[256];

	ck_assert_int_eq(rxafs_find_parent(client, &request, path, &parent, name), 0);
	ck_assert_int_eq(rxafs_mkdir(parent, &request, name, 0755, &made, &attributes), 0);
	rxafs_release(made);
	rxafs_release(parent);
}

void write_text(const char *path, const char *text)
{
	struct rxafs_attributes attributes;
	rxafs_object *parent, *made;
	rxafs_file *file;
	char name[256];

	ck_assert_int_eq(rxafs_find_parent(client, &request, path, &parent, name), 0);
	ck_assert_int_eq(rxafs_create(parent, &request, name, 0644, O_WRONLY | O_EXCL, &made,
				      &attributes, &file),
			 0);
	ck_assert_int_eq(rxafs_write(file, &request, text, strlen(text), 0), (int)strlen(text));
	ck_assert_int_eq(rxafs_flush(file, &request, false), 0);
	rxafs_close(file);
	rxafs_release(made);
	rxafs_release(parent);
}

void expect_text(const char *path, const char *text)
{
	rxafs_object *object = object_at(path);
	char buffer[64] = "";
	rxafs_file *file;

	ck_assert_int_eq(rxafs_open(object, &request, O_RDONLY, &file), 0);
	ck_assert_int_eq(rxafs_read(file, &request, buffer, sizeof buffer, 0), (int)strlen(text));
	ck_assert_str_eq(buffer, text);
	rxafs_close(file);
	rxafs_release(object);
}

