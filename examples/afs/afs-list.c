/* SPDX-License-Identifier: BSD-2-Clause */
/* List a directory of a cell: afs-list [CELL=HOST[:VLPORT[:FSPORT]]] PATH */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <rxafs/rxafs.h>

static int list_directory(rxafs_object *directory, struct rxafs_request *request)
{
	struct rxafs_attributes attributes;
	struct rxafs_entry entry;
	rxafs_listing *listing;
	rxafs_object *object;
	int result = rxafs_open_listing(directory, request, &listing);

	if (result)
		return result;
	while ((result = rxafs_read_listing(listing, request, &entry, &object, &attributes)) == 1) {
		if (!object) {
			printf("%15s  %s\n", strerror(-entry.error), entry.name);
			continue;
		}
		printf("%15" PRIu64 "  %s%s\n", (uint64_t)attributes.stat.st_size, entry.name,
		       S_ISDIR(attributes.stat.st_mode) ? "/" : "");
		rxafs_release(object);
	}
	rxafs_close_listing(listing);
	return result;
}

int main(int argc, char **argv)
{
	struct rxafs_options options = {.size = sizeof options};
	struct rxafs_failure failure;
	struct rxafs_request request = {0};
	const char *cell = argc > 2 ? argv[1] : NULL, *path = argv[argc - 1];
	rxafs_client *client;
	rxafs_object *directory;
	int result;

	if (argc < 2 || argc > 3) {
		fprintf(stderr, "usage: afs-list [CELL=HOST[:VLPORT[:FSPORT]]] PATH\n");
		return 2;
	}
	if (cell) {
		options.cells = &cell;
		options.cell_count = 1;
	}
	if (rxafs_open_client(&options, &client, &failure)) {
		fprintf(stderr, "%s\n", failure.text);
		return 1;
	}
	/* The tickets that kinit has left, if there are any; otherwise what everybody may see. */
	if (!rxafs_get_user(client, 1, &request.user))
		rxafs_log_in(request.user, &request, NULL);
	request.deadline = rxafs_now() + UINT64_C(30000000000);
	result = rxafs_find_path(client, &request, path, true, &directory);
	if (!result) {
		result = list_directory(directory, &request);
		rxafs_release(directory);
	}
	if (result)
		fprintf(stderr, "%s: %s\n", path, rxafs_error_text(&request, result));
	rxafs_put_user(request.user);
	rxafs_close_client(client, 10000);
	return result != 0;
}
