/* SPDX-License-Identifier: BSD-2-Clause */
/* Looks up many keys at once, on one thread: a pool of connections, and a queue of events. */
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "servers.h"

#define CONNECTIONS 16 /* of the pool, for four calls each */

struct look {
	struct run *run;
	const char *key;
	int32_t code;
	uint64_t size;
};

/* The look-ups of all keys. */
struct run {
	rxw_connpool *pool;
	rxw_queue *queue;
	struct look *looks;
	unsigned count, begun, ended;
};

/* Sends the request. The queue reports when the reply is complete. */
static int32_t ask(rxw_call *call, const char *key)
{
	int32_t code = StartKV_Stat(call, key);

	/* No read ends the request implicitly. */
	return !code && rxw_call_send_end(call) < 0 ? RXW_USER_ABORT : code;
}

/* Begins calls until no channel is free; the queue tells when one is. */
static void begin_more(struct run *run)
{
	struct rxw_call_options options = {
		.size = sizeof(options),
		.flags = RXW_CALL_NONBLOCK,
		.queue = run->queue,
		.events = RXW_EVENT_DONE,
	};

	while (run->begun < run->count) {
		struct look *look = &run->looks[run->begun];
		rxw_call *call;
		int result;

		options.arg = look;
		result = rxw_connpool_begin(run->pool, &options, &call);
		if (result == -RXW_EAGAIN)
			return;
		run->begun++;
		look->code = result < 0 ? RXW_CALL_DEAD : ask(call, look->key);
		if (!look->code)
			continue;
		if (result >= 0)
			rxw_call_end(call, look->code, NULL);
		run->ended++;
	}
}

/* An entry of the queue: a reply is complete, a call has failed, or a channel is free. */
static void on_event(const struct rxw_queue_event *event)
{
	struct look *look = event->arg;
	kv_entry entry = {0};

	if (event->events & RXW_EVENT_CHANNEL) {
		begin_more(look->run);
		return;
	}
	look->code = EndKV_Stat(event->call, &entry);
	look->code = rxw_rpc_end(event->call, look->code, &KV_interface, KV_FN_Stat);
	look->size = entry.size;
	xdrfree_kv_entry(&entry);
	look->run->ended++;
}

static int print(const struct servers *servers, const struct run *run)
{
	int status = 0;

	for (unsigned i = 0; i < run->count; i++) {
		const struct look *look = &run->looks[i];

		if (look->code)
			status = servers_complain(servers, "stat", 0, look->key, look->code);
		else
			printf("%10" PRIu64 " %s\n", look->size, look->key);
	}
	return status;
}

int main(int argc, char **argv)
{
	struct servers servers = {.program = "kv-many"};
	struct run run = {0};
	int status;

	if (argc > 2 && !strcmp(argv[1], "-s")) {
		servers.name[servers.count++] = argv[2];
		argv += 2;
		argc -= 2;
	}
	if (argc < 2 || argv[1][0] == '-') {
		fprintf(stderr,
			"usage: kv-many [-s HOST[:PORT]] KEY...\n"
			"Prints the size of each value. Requests all of them at the same time.\n");
		return 2;
	}
	servers_open(&servers);
	run.pool = servers_pool(&servers, CONNECTIONS);
	run.queue = servers_queue(&servers);
	run.count = (unsigned)argc - 1;
	run.looks = calloc(run.count, sizeof(*run.looks));
	if (!run.looks)
		return 1;
	for (unsigned i = 0; i < run.count; i++)
		run.looks[i] = (struct look){.run = &run, .key = argv[i + 1]};
	rxw_batch_begin(); /* the first requests leave together */
	begin_more(&run);
	rxw_batch_end();
	while (run.ended < run.count)
		rxw_queue_run(run.queue, on_event, 64, -1);
	status = print(&servers, &run);
	rxw_connpool_release(run.pool);
	rxw_queue_destroy(run.queue);
	servers_close(&servers);
	free(run.looks);
	return status;
}
