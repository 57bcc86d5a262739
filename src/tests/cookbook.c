/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs the recipes of doc/cookbook.md: check-cookbook.sh links them with this program. */
#include <arpa/inet.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rxwire/rxwire.h>

#include "kv.h"

/* -- the recipes ------------------------------------------------------------------------------ */

typedef void (*stat_done_fn)(void *arg, int32_t code, const kv_entry *entry);

int32_t stat_within(rxw_connection *connection, unsigned limit_ms, const char *key,
		    kv_entry *entry);
int cancel_on_interrupt(rxw_connection *connection, pthread_t *watcher);
void stop_watching(pthread_t watcher);
int32_t work_for(rxw_call *call, unsigned steps);
int32_t wait_for(rxw_call *call, int fd);
int32_t stat_retrying(rxw_endpoint *endpoint, const struct sockaddr *server, socklen_t length,
		      const char *key, kv_entry *entry);
int open_pool(rxw_endpoint *endpoint, const struct sockaddr *server, socklen_t length,
	      rxw_connpool **pool);
void *look_up(void *arg);
int add_queued(rxw_endpoint *endpoint, rxw_queue *queue);
int serve_arrivals(rxw_queue *queue, struct KV_service *service, int timeout_ms);
int stat_async(rxw_connection *connection, const char *key, stat_done_fn done, void *arg);
struct list;
struct job;
unsigned count_keys(struct job *job);
int32_t stat_later(void *context, rxw_call *call, const char *key, kv_entry *entry);
void answer_one(struct list *list);
rxw_code send_file(rxw_call *call, void *context);
int offer_with_rxkad(rxw_endpoint *endpoint, struct rxw_service_options *offer, const char *keytab,
		     const char *cell);
int32_t enter(void *context, rxw_call *call, int32_t opcode, int function);
rxw_connection *connect_with_rxkad(rxw_endpoint *endpoint, const struct sockaddr *server,
				   socklen_t length, uint16_t service, const char *cell,
				   rxw_keys *keys, const char *name);
void block_stop_signals(void);
int serve_until_signal(rxw_endpoint *endpoint);
int write_metrics(rxw_endpoint *endpoint, const char *path);

/* -- a server --------------------------------------------------------------------------------- */

#define CHECK(condition)                                                               \
	do {                                                                           \
		if (!(condition)) {                                                    \
			fprintf(stderr, "cookbook.c:%d: %s failed\n", __LINE__, \
				#condition);                                           \
			exit(1);                                                       \
		}                                                                      \
	} while (0)

#define SECURE_SERVICE 4712
#define LATER_SERVICE  4713
#define FILE_SERVICE   4714

static int never[2];		 /* a pipe that nothing is written to */
static sem_t begun;		 /* a handler of "slow" or "idle" has begun */
static sem_t given_up;		 /* and has ended before its work was done */
static atomic_uint refusals = 3; /* of "restarting" */

static int32_t stat_key(void *context, rxw_call *call, const char *key, kv_entry *entry)
{
	int32_t code = 0;

	(void)context;
	if (!strcmp(key, "slow")) {
		sem_post(&begun);
		code = work_for(call, 600000);
		sem_post(&given_up);
	} else if (!strcmp(key, "idle")) {
		sem_post(&begun);
		code = wait_for(call, never[0]);
		sem_post(&given_up);
	} else if (!strcmp(key, "restarting") && atomic_load(&refusals)) {
		atomic_fetch_sub(&refusals, 1);
		code = RXW_RESTARTING;
	} else if (!strcmp(key, "none")) {
		code = KV_NOTFOUND;
	}
	if (code)
		return code;
	entry->key = strdup(key);
	entry->size = strlen(key);
	return 0;
}

static int32_t remove_key(void *context, rxw_call *call, const char *key)
{
	(void)context;
	(void)call;
	return strcmp(key, "none") ? 0 : KV_NOTFOUND;
}

static const struct KV_handlers handlers = {.Stat = stat_key, .Remove = remove_key};
static struct KV_service plain = {.handlers = &handlers};
static const struct KV_handlers later_handlers = {.Stat = stat_later};
static struct KV_service deferring = {.handlers = &later_handlers};
static struct KV_service guarded = {.base = {.enter = enter}, .handlers = &handlers};

/* -- what each recipe promises ---------------------------------------------------------------- */

static rxw_endpoint *client;
static struct sockaddr_storage server;
static socklen_t length = sizeof(server);

static void deadline(rxw_connection *connection, const char *key)
{
	kv_entry entry = {0};
	unsigned limit_ms = 50;

	CHECK(stat_within(connection, 60000, "quick", &entry) == 0 && entry.size == 5);
	xdrfree_kv_entry(&entry);
	/* On a slow machine the deadline may pass before the handler begins. */
	do {
		CHECK(stat_within(connection, limit_ms, key, &entry) == RXW_CALL_TIMEOUT);
		limit_ms *= 2;
	} while (sem_trywait(&begun));
	sem_wait(&given_up); /* the server has noticed */
}

static void *interrupt_when_begun(void *arg)
{
	(void)arg;
	sem_wait(&begun);
	kill(getpid(), SIGINT);
	return NULL;
}

static void cancel(rxw_connection *connection)
{
	kv_entry entry = {0};
	pthread_t other, watcher;

	CHECK(!cancel_on_interrupt(connection, &watcher));
	CHECK(!pthread_create(&other, NULL, interrupt_when_begun, NULL));
	CHECK(KV_Stat(connection, "slow", &entry) == RXW_USER_ABORT);
	pthread_join(other, NULL);
	sem_wait(&given_up);
	stop_watching(watcher);
	/* The connection can be used again. */
	CHECK(KV_Stat(connection, "quick", &entry) == 0);
	xdrfree_kv_entry(&entry);
}

static void retry(void)
{
	const struct sockaddr *to = (const struct sockaddr *)&server;
	kv_entry entry = {0};

	CHECK(stat_retrying(client, to, length, "restarting", &entry) == 0);
	CHECK(entry.size == 10 && !atomic_load(&refusals));
	xdrfree_kv_entry(&entry);
	CHECK(stat_retrying(client, to, length, "none", &entry) == KV_NOTFOUND);
}

/* The members that the recipe has. */
struct lookup {
	rxw_connpool *pool;
	const char *key;
	int32_t code;
	uint64_t size;
};

static rxw_connpool *pool_to(const struct sockaddr_storage *to)
{
	rxw_connpool *pool;

	CHECK(!open_pool(client, (const struct sockaddr *)to, length, &pool));
	return pool;
}

static void look_up_in_parallel(rxw_connpool *pool)
{
	struct lookup lookups[40];
	pthread_t threads[40];

	for (unsigned i = 0; i < 40; i++) {
		lookups[i] = (struct lookup){.pool = pool, .key = i % 4 ? "quick" : "none"};
		CHECK(!pthread_create(&threads[i], NULL, look_up, &lookups[i]));
	}
	for (unsigned i = 0; i < 40; i++) {
		pthread_join(threads[i], NULL);
		CHECK(lookups[i].code == (i % 4 ? 0 : KV_NOTFOUND));
		CHECK(lookups[i].size == (i % 4 ? 5 : 0));
	}
	rxw_connpool_release(pool);
}

static void *serve_forty(void *queue)
{
	for (int served = 0; served < 40;) {
		int count = serve_arrivals(queue, &plain, 30000);

		CHECK(count > 0);
		served += count;
	}
	return NULL;
}

/* The same calls, served by a thread of the program. */
static void served_by_queue(rxw_engine *engine)
{
	struct sockaddr_in loopback = {.sin_family = AF_INET,
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct rxw_endpoint_options at = {.size = sizeof(at), .server = 1};
	struct sockaddr_storage there;
	socklen_t size = sizeof(there);
	rxw_endpoint *endpoint;
	rxw_queue *queue;
	pthread_t serving;

	at.address = (struct sockaddr *)&loopback;
	at.address_len = sizeof(loopback);
	CHECK(!rxw_queue_create(engine, NULL, &queue));
	CHECK(!rxw_endpoint_create(engine, &at, &endpoint));
	CHECK(!add_queued(endpoint, queue));
	CHECK(!rxw_endpoint_address(endpoint, &there, &size));
	CHECK(!pthread_create(&serving, NULL, serve_forty, queue));
	look_up_in_parallel(pool_to(&there));
	pthread_join(serving, NULL);
	CHECK(!rxw_endpoint_destroy(endpoint));
	CHECK(!rxw_queue_destroy(queue));
}

struct answer {
	sem_t done;
	int32_t code;
	uint64_t size;
};

static void answered(void *arg, int32_t code, const kv_entry *entry)
{
	struct answer *answer = arg;

	answer->code = code;
	answer->size = entry->size;
	sem_post(&answer->done);
}

static void asynchronous(rxw_connection *connection)
{
	char too_long[400];
	const char *const keys[] = {"quick", "none", too_long};
	const int32_t codes[] = {0, KV_NOTFOUND, RXW_RPC_CC_MARSHAL};
	struct answer answer;

	memset(too_long, 'x', sizeof(too_long));
	too_long[sizeof(too_long) - 1] = 0;
	for (unsigned i = 0; i < 3; i++) {
		sem_init(&answer.done, 0, 0);
		CHECK(stat_async(connection, keys[i], answered, &answer) == 0);
		sem_wait(&answer.done);
		CHECK(answer.code == codes[i] && answer.size == (i ? 0 : 5));
		sem_destroy(&answer.done);
	}
}

/* 100 keys, 90 of which exist, with 32 calls at a time. */
static void from_one_thread(rxw_engine *engine)
{
	const char *keys[101] = {NULL};
	struct {
		rxw_connpool *pool;
		rxw_queue *queue;
		const char *const *keys;
		unsigned numbers[3];
	} job = {.keys = keys}; /* the members that the recipe has */

	for (unsigned i = 0; i < 100; i++)
		keys[i] = i % 10 ? "quick" : "none";
	CHECK(!rxw_queue_create(engine, NULL, &job.queue));
	CHECK(!rxw_connpool_create(client, (struct sockaddr *)&server, length, KV_SERVICE, NULL, 8,
				   &job.pool));
	CHECK(count_keys((struct job *)&job) == 90);
	rxw_connpool_release(job.pool);
	CHECK(!rxw_queue_destroy(job.queue));
}

/* The members that the recipe has. */
static struct {
	pthread_mutex_t lock;
	pthread_cond_t added;
	void *first;
} tasks = {.lock = PTHREAD_MUTEX_INITIALIZER, .added = PTHREAD_COND_INITIALIZER};

static void *answer_three(void *unused)
{
	for (unsigned i = 0; i < 3; i++)
		answer_one((struct list *)&tasks);
	return unused;
}

/* The reply is the file, byte for byte. */
static void read_file(const struct sockaddr *server, socklen_t length, const char *path)
{
	char there[4096], got[sizeof(there)];
	FILE *file = fopen(path, "r");
	rxw_connection *connection;
	rxw_call *call;
	size_t size;

	CHECK(file);
	size = fread(there, 1, sizeof(there), file);
	fclose(file);
	CHECK(!rxw_connection_create(client, server, length, FILE_SERVICE, NULL, &connection));
	CHECK(!rxw_call_begin(connection, NULL, &call));
	CHECK(rxw_call_read(call, got, sizeof(got)) == (ssize_t)size && size > 0);
	CHECK(!memcmp(there, got, size));
	CHECK(!rxw_call_end(call, 0, NULL));
	rxw_connection_release(connection);
}

static void later(rxw_connection *connection)
{
	pthread_t other;

	CHECK(!pthread_create(&other, NULL, answer_three, NULL));
	for (unsigned i = 0; i < 3; i++) {
		kv_entry entry = {0};

		CHECK(KV_Stat(connection, "any key", &entry) == 0 && entry.size == 7);
		xdrfree_kv_entry(&entry);
	}
	pthread_join(other, NULL);
}

static void with_rxkad(rxw_keys *keys)
{
	const struct sockaddr *to = (const struct sockaddr *)&server;
	static const char *const names[] = {"alice@EXAMPLE.ORG", "bob@EXAMPLE.ORG"};
	rxw_connection *connection;
	kv_entry entry = {0};

	for (unsigned i = 0; i < 2; i++) {
		connection = connect_with_rxkad(client, to, length, SECURE_SERVICE, "example.org",
						keys, names[i]);
		CHECK(connection);
		CHECK(KV_Stat(connection, "quick", &entry) == 0);
		xdrfree_kv_entry(&entry);
		CHECK(KV_Remove(connection, "x") == (i ? KV_DENIED : 0));
		rxw_connection_release(connection);
	}
	/* The server refuses a client without a ticket. */
	CHECK(!rxw_connection_create(client, to, length, SECURE_SERVICE, NULL, &connection));
	CHECK(KV_Stat(connection, "quick", &entry) == RXW_INVALID_OPERATION);
	rxw_connection_release(connection);
	/* Without a credential cache the client has no token and prints the reason. */
	setenv("KRB5CCNAME", "FILE:/nonexistent/cache", 1);
	CHECK(!connect_with_rxkad(client, to, length, SECURE_SERVICE, "example.org", NULL, NULL));
}

static void *serving(void *endpoint)
{
	return (void *)(intptr_t)serve_until_signal(endpoint);
}

int main(int argc, char **argv)
{
	struct sockaddr_in loopback = {.sin_family = AF_INET,
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct rxw_endpoint_options at = {.size = sizeof(at), .server = 1, .paused = 1};
	struct rxw_service_options offer = {
		.size = sizeof(offer), .name = "kv", .handler = KV_ExecuteRequest};
	rxw_engine *engine;
	rxw_endpoint *endpoint;
	rxw_connection *connection, *other;
	rxw_keys *keys;
	pthread_t server_thread;
	void *stopped;
	char file[4096], line[256];
	FILE *metrics;
	bool found = false;

	CHECK(argc == 2 && !pipe(never));
	sem_init(&begun, 0, 0);
	sem_init(&given_up, 0, 0);
	block_stop_signals();
	at.address = (struct sockaddr *)&loopback;
	at.address_len = sizeof(loopback);
	CHECK(!rxw_engine_create(NULL, &engine));
	CHECK(!rxw_endpoint_create(engine, &at, &endpoint));
	offer.id = KV_SERVICE;
	offer.context = &plain;
	CHECK(!rxw_service_add(endpoint, &offer, NULL));
	CHECK(!rxw_keys_create(&keys));
	CHECK(!rxw_keys_generate(keys, RXW_KEY_KRB5, 1, 18));
	snprintf(file, sizeof(file), "%s/KeyFileExt", argv[1]);
	CHECK(!rxw_keys_write(keys, file, 0, NULL, 0));
	deferring.base.context = &tasks;
	offer.id = LATER_SERVICE;
	offer.context = &deferring;
	CHECK(!rxw_service_add(endpoint, &offer, NULL));
	offer.id = SECURE_SERVICE;
	offer.context = &guarded;
	CHECK(!offer_with_rxkad(endpoint, &offer, file, "example.org"));
	CHECK(offer_with_rxkad(endpoint, &offer, "/nonexistent/keytab", "example.org") ==
	      -RXW_ESYS);
	offer = (struct rxw_service_options){
		.size = sizeof(offer), .id = FILE_SERVICE, .handler = send_file, .context = file};
	CHECK(!rxw_service_add(endpoint, &offer, NULL));
	CHECK(!rxw_endpoint_start(endpoint));
	CHECK(!rxw_endpoint_address(endpoint, &server, &length));

	CHECK(!rxw_endpoint_create(engine, NULL, &client));
	CHECK(!rxw_connection_create(client, (struct sockaddr *)&server, length, KV_SERVICE, NULL,
				     &connection));
	cancel(connection);
	deadline(connection, "slow");
	deadline(connection, "idle");
	retry();
	look_up_in_parallel(pool_to(&server));
	served_by_queue(engine);
	asynchronous(connection);
	from_one_thread(engine);
	CHECK(!rxw_connection_create(client, (struct sockaddr *)&server, length, LATER_SERVICE,
				     NULL, &other));
	later(other);
	rxw_connection_release(other);
	read_file((struct sockaddr *)&server, length, file);
	with_rxkad(keys);

	snprintf(file, sizeof(file), "%s/metrics", argv[1]);
	CHECK(!write_metrics(endpoint, file));
	CHECK(write_metrics(endpoint, "/nonexistent/metrics"));
	metrics = fopen(file, "r");
	CHECK(metrics);
	while (fgets(line, sizeof(line), metrics))
		found |= !strncmp(line, "rxwire_build_info{", 18);
	fclose(metrics);
	CHECK(found);

	/* Both recipes wait for SIGINT, so the watcher has ended by now. */
	CHECK(!pthread_create(&server_thread, NULL, serving, endpoint));
	kill(getpid(), SIGTERM);
	pthread_join(server_thread, &stopped);
	CHECK(!stopped);
	rxw_connection_release(connection);
	CHECK(!rxw_endpoint_destroy(client));
	while (rxw_endpoint_destroy(endpoint) == -RXW_ESTATE)
		usleep(1000); /* the call of send_file() has not been ended quite yet */
	CHECK(!rxw_engine_destroy(engine));
	rxw_keys_unref(keys);
	return 0;
}
