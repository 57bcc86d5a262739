/* SPDX-License-Identifier: BSD-2-Clause */
/* Promises of objects that leave the cache go back to their servers (K-051). */
#include <stdio.h>
#include <unistd.h>

#include "client/fs/operate.h"
#include "tests/client/realserver.h"
#include "tests/main.h"

static void make_directories(rxafs_client *client, unsigned count)
{
	struct rxafs_request request = {0};
	struct rxafs_attributes attributes;
	rxafs_object *root = rxafs_root(client), *directory;

	for (unsigned i = 0; i < count; i++) {
		char name[16];

		snprintf(name, sizeof name, "%u", i);
		ck_assert_int_eq(rxafs_mkdir(root, &request, name, 0755, &directory, &attributes),
				 0);
		ck_assert_int_eq(rxafs_getattr(directory, &request, &attributes), 0);
		rxafs_release(directory);
	}
	rxafs_release(root);
}

START_TEST(promises_of_evicted_objects)
{
	static const char *const volumes[] = {"root.cell", NULL};
	struct rxafs_options options = {
		.size = sizeof options,
		.cell = "example.org",
		.cell_count = 1,
		.objects = 64,
		.root_volume = "root.cell",
	};
	struct rxafs_failure failure;
	struct cl_cache_counts counts;
	struct realserver server;
	rxafs_client *client;
	struct rxafs_fid fid;
	uint32_t number;
	const char *cell;

	realserver_open(&server, volumes);
	cell = realserver_cell(&server, "example.org");
	options.cells = &cell;
	ck_assert_int_eq(rxafs_open_client(&options, &client, &failure), 0);
	make_directories(client, 500);
	cl_cache_count(client->cache, &counts);
	ck_assert_uint_gt(counts.evicted, 0);
	while (atomic_load(&client->evicted) != counts.evicted ||
	       atomic_load(&client->giving_back))
		usleep(10000);
	ck_assert_uint_eq(cl_cache_give_up(client->cache, &number, &fid, 1), 0);
	ck_assert_int_eq(rxafs_close_client(client, 10000), 0);
	realserver_close(&server);
}
END_TEST

TEST_MAIN_WITHIN(60, "giveback", promises_of_evicted_objects)
