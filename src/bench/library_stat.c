/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Nanoseconds of one stat through librxafs under a promise, of a file and of a name in a directory:
 * library_stat CELL=HOST:VLPORT:FSPORT FOLDER NAME, a folder below the root of the name space.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <rxafs/client.h>
#include <rxafs/object.h>

#define COUNT 1000000

static double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int time_getattr(rxafs_object *object, double *ns)
{
	struct rxafs_attributes attributes;
	double start;
	int result = 0;

	start = now_ns();
	for (unsigned i = 0; i < COUNT && !result; i++) {
		struct rxafs_request request = {.user = NULL};

		result = rxafs_getattr(object, &request, &attributes);
	}
	*ns = (now_ns() - start) / COUNT;
	return result;
}

static int time_lookup(rxafs_object *directory, const char *name, double *ns)
{
	struct rxafs_attributes attributes;
	rxafs_object *object;
	double start;
	int result = 0;

	start = now_ns();
	for (unsigned i = 0; i < COUNT && !result; i++) {
		struct rxafs_request request = {.user = NULL};

		result = rxafs_lookup(directory, &request, name, &object, &attributes);
		if (!result)
			rxafs_release(object);
	}
	*ns = (now_ns() - start) / COUNT;
	return result;
}

int main(int argc, char **argv)
{
	const char *const *cells = (const char *const *)&argv[1];
	struct rxafs_options options = {
		.size = sizeof(options), .cells = cells, .cell_count = 1};
	struct rxafs_request request = {.user = NULL};
	struct rxafs_failure failure;
	rxafs_object *root, *folder = NULL, *object = NULL;
	struct rxafs_attributes attributes;
	rxafs_client *client;
	double stat_ns, name_ns;
	int result;

	if (argc != 4) {
		fprintf(stderr, "usage: library_stat CELL=HOST:VLPORT:FSPORT FOLDER NAME\n");
		return 2;
	}
	if (rxafs_open_client(&options, &client, &failure)) {
		fprintf(stderr, "library_stat: %s\n", failure.text);
		return 1;
	}
	root = rxafs_root(client);
	result = rxafs_walk(root, &request, argv[2], true, &folder);
	if (!result)
		result = rxafs_lookup(folder, &request, argv[3], &object, &attributes);
	if (!result)
		result = time_getattr(object, &stat_ns);
	if (!result)
		result = time_lookup(folder, argv[3], &name_ns);
	if (!result)
		printf("%.0f %.0f\n", stat_ns, name_ns);
	else
		fprintf(stderr, "library_stat: %s\n", strerror(-result));
	if (object)
		rxafs_release(object);
	if (folder)
		rxafs_release(folder);
	rxafs_release(root);
	rxafs_close_client(client, 1000);
	return result != 0;
}
