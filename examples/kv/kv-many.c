/* SPDX-License-Identifier: BSD-2-Clause */
/* Looks up many keys at once with Start, a callback and End. No thread waits for a call. */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "servers.h"

#define AT_ONCE 4 /* concurrent calls on a connection */

struct look {
	struct run *run;
	const char *key;
	int32_t code;
	uint64_t size;
};

/* The look-ups of all keys. */
struct run {
	rxw_connection *connection;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct look *looks;
	unsigned count;
	unsigned begun, ended; /* guarded by lock */
};

static void answered(rxw_call *call, unsigned events, void *arg);

/* Begins the call for one key. Returns 0 or a code. */
static int32_t begin(struct look *look)
{
	struct rxw_call_options options = {
		.size = sizeof(options),
		.flags = RXW_CALL_NONBLOCK,
	};
	rxw_call *call;
	int32_t code;

	if (rxw_call_begin(look->run->connection, &options, &call) < 0)
		return RXW_CALL_DEAD;
	code = StartKV_Stat(call, look->key);
	if (code)
		return rxw_call_end(call, code, NULL);
	rxw_call_send_end(call); /* no read ends the request implicitly */
	rxw_call_set_callback(call, answered, look);
	return 0;
}

static void ended(struct run *run)
{
	pthread_mutex_lock(&run->lock);
	run->ended++;
	pthread_cond_signal(&run->changed);
	pthread_mutex_unlock(&run->lock);
}

/* Begins the next call, if there is one. */
static void begin_next(struct run *run)
{
	for (;;) {
		struct look *look = NULL;
		int32_t code;

		pthread_mutex_lock(&run->lock);
		if (run->begun < run->count)
			look = &run->looks[run->begun++];
		pthread_mutex_unlock(&run->lock);
		if (!look)
			return;
		code = begin(look);
		if (!code)
			return; /* the callback continues */
		look->code = code;
		ended(run);
	}
}

/* Called on a thread of the library when the events of the call change. */
static void answered(rxw_call *call, unsigned events, void *arg)
{
	struct look *look = arg;
	struct run *run = look->run;
	kv_entry entry = {0};

	if (!(events & RXW_EVENT_DONE))
		return;
	look->code = EndKV_Stat(call, &entry);
	look->code = rxw_call_end(call, look->code, NULL);
	look->size = entry.size;
	xdrfree_kv_entry(&entry);
	begin_next(run);
	ended(run);
}

int main(int argc, char **argv)
{
	struct servers servers = {.program = "kv-many"};
	struct run run = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
	int status = 0;

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
	run.connection = servers.connection[0];
	run.count = (unsigned)argc - 1;
	run.looks = calloc(run.count, sizeof(*run.looks));
	if (!run.looks)
		return 1;
	for (unsigned i = 0; i < run.count; i++)
		run.looks[i] = (struct look){.run = &run, .key = argv[i + 1]};
	for (unsigned i = 0; i < AT_ONCE; i++)
		begin_next(&run);
	pthread_mutex_lock(&run.lock);
	while (run.ended < run.count)
		pthread_cond_wait(&run.changed, &run.lock);
	pthread_mutex_unlock(&run.lock);
	for (unsigned i = 0; i < run.count; i++) {
		const struct look *look = &run.looks[i];

		if (look->code)
			status = servers_complain(&servers, "stat", 0, look->key, look->code);
		else
			printf("%10" PRIu64 " %s\n", look->size, look->key);
	}
	servers_close(&servers); /* no callback is running */
	free(run.looks);
	return status;
}
