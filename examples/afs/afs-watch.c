/* SPDX-License-Identifier: BSD-2-Clause */
/* Tell what happens in a directory of a cell, with poll(): afs-watch [CELL=HOST[:VLPORT[:FSPORT]]] PATH [EVENTS] */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rxafs/rxafs.h>

static const char *const kinds[] = {
	[RXAFS_EVENT_ADDED] = "added",	   [RXAFS_EVENT_REMOVED] = "removed",
	[RXAFS_EVENT_CHANGED] = "changed", [RXAFS_EVENT_GONE] = "gone",
	[RXAFS_EVENT_FAILED] = "failed",   [RXAFS_EVENT_RECOVERED] = "recovered",
};

/* Until the directory is gone, or `most` events have come. */
static void print_events(rxafs_queue *queue, long most)
{
	struct pollfd wait = {.fd = rxafs_queue_fd(queue), .events = POLLIN};
	struct rxafs_event events[16];

	while (most > 0 && poll(&wait, 1, -1) >= 0) {
		int count = rxafs_next_events(queue, events, 16, 0);

		for (int i = 0; i < count && most > 0; i++, most--) {
			if (events[i].kind == RXAFS_EVENT_FAILED)
				printf("failed %s\n", strerror(-events[i].error));
			else
				printf("%s %s\n", kinds[events[i].kind], events[i].name);
			fflush(stdout);
			if (events[i].kind == RXAFS_EVENT_GONE)
				return;
		}
	}
}

int main(int argc, char **argv)
{
	bool given = argc > 2 && strchr(argv[1], '=');
	struct rxafs_options options = {.size = sizeof options};
	struct rxafs_watch_options how = {.size = sizeof how, .attributes = true};
	struct rxafs_failure failure;
	struct rxafs_request request = {0};
	const char *cell = argv[1], *path = argv[1 + given];
	rxafs_client *client;
	rxafs_object *object;
	rxafs_queue *queue;
	rxafs_watch *watch;
	int result;

	if (argc < 2) {
		fprintf(stderr, "usage: afs-watch [CELL=HOST[:VLPORT[:FSPORT]]] PATH [EVENTS]\n");
		return 2;
	}
	if (given) {
		options.cells = &cell;
		options.cell_count = 1;
	}
	if (rxafs_open_client(&options, &client, &failure)) {
		fprintf(stderr, "%s\n", failure.text);
		return 1;
	}
	result = rxafs_create_queue(client, &queue);
	if (result)
		return 1;
	result = rxafs_find_path(client, &request, path, true, &object);
	if (!result) {
		result = rxafs_create_watch(queue, object, &request, &how, &watch);
		rxafs_release(object);
	}
	if (result) {
		fprintf(stderr, "%s: %s\n", path, rxafs_error_text(&request, result));
	} else {
		printf("watching\n");
		fflush(stdout);
		print_events(queue, argv[2 + given] ? atol(argv[2 + given]) : 1000000);
		rxafs_free_watch(watch);
	}
	rxafs_free_queue(queue);
	rxafs_close_client(client, 10000);
	return result != 0;
}
