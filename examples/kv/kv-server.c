/* SPDX-License-Identifier: BSD-2-Clause */
/* The server: the handlers of the procedures in kv.xg, access control, start and stop. */
#include <arpa/inet.h>
#include <ctype.h>
#include <inttypes.h>
#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include <rxwire/rxwire.h>

#include "kv.h"
#include "store.h"

#define MIB  (UINT64_C(1) << 20)
#define STEP (UINT64_C(1) << 16) /* bytes allocated before any data arrive */

struct tally {
	uint64_t calls, refused, bytes;
};

struct server {
	struct store *store;
	uint64_t value_max;
	const char *writer; /* the only address that may write; NULL: any */
	bool tell;	    /* print each connection that ends */
	pthread_mutex_t lock;
	struct tally tally[KV_NUMBER_OPCODES]; /* guarded by lock */
};

/* What the server knows of a connection. */
struct client {
	const struct server *server;
	char host[NI_MAXHOST];
	bool may_write;
	atomic_uint calls;
};

/* -- the procedures: run on several threads of the library at a time -------------------------- */

/* Why a read or a write of the call failed. */
static int32_t failure(rxw_call *call)
{
	int32_t code = rxw_call_error(call, NULL);

	return code ? code : RXW_USER_ABORT;
}

/* Reads exactly `size` bytes. Memory grows with the received data, not with the announced size. */
static int32_t receive(rxw_call *call, uint64_t size, char **bytes)
{
	uint64_t have = 0, room = 0;
	int32_t code = 0;
	ssize_t n;

	*bytes = NULL;
	while (have < size && !code) {
		char *more;

		room = room ? 2 * room : STEP;
		if (room > size)
			room = size;
		more = realloc(*bytes, room);
		if (!more) {
			code = KV_FULL;
			break;
		}
		*bytes = more;
		n = rxw_call_read(call, *bytes + have, room - have);
		if (n < 0)
			code = failure(call);
		else if ((uint64_t)n < room - have)
			code = RXW_CALL_EOF; /* the request has ended */
		have = room;
	}
	if (code) {
		free(*bytes);
		*bytes = NULL;
	}
	return code;
}

static bool good_name(const char *key)
{
	if (!*key)
		return false;
	for (; *key; key++)
		if (iscntrl((unsigned char)*key))
			return false;
	return true;
}

static int32_t put(void *context, rxw_call *call, const char *key, kv_how how, uint64_t size,
		   kv_entry *entry)
{
	struct server *server = context;
	int32_t code;
	char *bytes;

	if (!good_name(key))
		return KV_BADNAME;
	if (how != KV_SET && how != KV_CREATE && how != KV_REPLACE)
		return KV_BADHOW;
	if (size > server->value_max)
		return KV_TOOBIG;
	code = receive(call, size, &bytes);
	if (code)
		return code;
	return store_put(server->store, key, how, bytes, size, entry);
}

static int32_t get(void *context, rxw_call *call, const char *key, kv_entry *entry)
{
	struct server *server = context;
	struct value *value;
	uint8_t size[8];
	int32_t code = store_get(server->store, key, &value, entry);

	if (code)
		return code;
	rxw_xdr_store64(size, value->size);
	if (rxw_call_write(call, size, sizeof(size)) < 0 ||
	    rxw_call_write(call, value->bytes, value->size) < 0)
		code = failure(call);
	store_give_back(server->store, value);
	return code;
}

static int32_t stat_key(void *context, rxw_call *call, const char *key, kv_entry *entry)
{
	struct server *server = context;

	(void)call;
	return store_stat(server->store, key, entry);
}

static int32_t remove_key(void *context, rxw_call *call, const char *key)
{
	struct server *server = context;

	(void)call;
	return store_remove(server->store, key);
}

static int32_t list(void *context, rxw_call *call, const char *after, kv_entries *entries)
{
	struct server *server = context;

	(void)call;
	return store_list(server->store, after, entries);
}

static const struct KV_handlers handlers = {
	.Put = put,
	.Get = get,
	.Stat = stat_key,
	.Remove = remove_key,
	.List = list,
};

/* -- access control and statistics ------------------------------------------------------------ */

/* The connection has ended. On any thread, after all calls of the connection. */
static void forget_client(void *data)
{
	struct client *client = data;

	if (client->server->tell) {
		printf("kv-server: %s made %u calls\n", client->host, client->calls);
		fflush(stdout);
	}
	free(client);
}

static struct client *new_client(const struct server *server, const rxw_connection *connection)
{
	struct client *client = calloc(1, sizeof(*client));
	struct sockaddr_storage peer;
	socklen_t length = sizeof(peer);

	if (!client || rxw_connection_peer(connection, &peer, &length) < 0 ||
	    getnameinfo((struct sockaddr *)&peer, length, client->host, sizeof(client->host), NULL,
			0, NI_NUMERICHOST)) {
		free(client);
		return NULL;
	}
	client->server = server;
	client->may_write = !server->writer || !strcmp(client->host, server->writer);
	return client;
}

/*
 * The client of a call; NULL: no memory, or the connection has failed. The first call of a
 * connection makes it. Others may begin meanwhile, so a lock is held.
 */
static struct client *client_of(struct server *server, rxw_call *call)
{
	rxw_connection *connection = rxw_call_connection(call);
	struct client *client;

	pthread_mutex_lock(&server->lock);
	client = rxw_connection_data(connection);
	if (!client) {
		client = new_client(server, connection);
		if (client && rxw_connection_set_data(connection, client, forget_client) < 0) {
			free(client);
			client = NULL;
		}
	}
	pthread_mutex_unlock(&server->lock);
	return client;
}

/* Called when only the opcode of a request has been read. */
static int32_t enter(void *context, rxw_call *call, int32_t opcode, int function)
{
	struct client *client = client_of(context, call);

	(void)function;
	if (!client)
		return KV_DENIED;
	client->calls++;
	return client->may_write || (opcode != KV_OP_Put && opcode != KV_OP_Remove) ? 0 : KV_DENIED;
}

/* Called after each call of a known procedure. */
static void count(void *arg, const struct rxw_rpc_report *report)
{
	struct server *server = arg;
	struct tally *tally;

	if (report->interface != &KV_interface)
		return;
	tally = &server->tally[report->function];
	pthread_mutex_lock(&server->lock);
	tally->calls++;
	tally->refused += report->code != 0;
	tally->bytes += report->bytes_sent + report->bytes_received;
	pthread_mutex_unlock(&server->lock);
}

static void print_tallies(const struct server *server)
{
	for (unsigned i = 0; i < KV_NUMBER_OPCODES; i++) {
		const struct tally *t = &server->tally[i];

		if (t->calls)
			printf("%-10s %8" PRIu64 " calls, %" PRIu64 " refused, %" PRIu64 " bytes\n",
			       KV_function_names[i], t->calls, t->refused, t->bytes);
	}
}

/* Counters of the library, by their names (rxw_stats(3)). */
static void print_counters(rxw_endpoint *endpoint)
{
	static const char *const names[] = {"calls_aborted", "retransmitted", "kernel_drops"};

	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		uint64_t value;

		if (rxw_endpoint_counter(endpoint, names[i], &value) >= 0)
			printf("%-13s %8" PRIu64 "\n", names[i], value);
	}
}

/* -- start and stop --------------------------------------------------------------------------- */

static void usage(FILE *to)
{
	fprintf(to,
		"usage: kv-server [-a ADDRESS] [-p PORT] [-w ADDRESS] [-m MIB] [-v] [FILE...]\n"
		"Keeps named values in memory. Stop it with ^C. Each FILE is a value from the\n"
		"beginning; its key is the name without the folder.\n"
		"  -a ADDRESS  address to listen on (127.0.0.1)\n"
		"  -p PORT     UDP port (%d); 0 means any free port\n"
		"  -w ADDRESS  the only host that may put and remove (any)\n"
		"  -m MIB      memory for all values (1024); a value may use a quarter of it\n"
		"  -v          print a line for each connection that ends\n",
		KV_PORT);
}

static void check(int result, const char *what, const char *thing)
{
	if (result >= 0)
		return;
	fprintf(stderr, "kv-server: cannot %s %s: %s\n", what, thing, rxw_strerror(result));
	exit(1);
}

/* Creates the endpoint; exits on failure. */
static rxw_endpoint *listen_on(rxw_engine *engine, const char *host, const char *port)
{
	struct addrinfo hints = {.ai_socktype = SOCK_DGRAM, .ai_flags = AI_PASSIVE}, *at;
	struct rxw_endpoint_options options = {.size = sizeof(options), .server = 1, .paused = 1};
	rxw_endpoint *endpoint;
	char where[NI_MAXHOST + NI_MAXSERV];
	int bad = getaddrinfo(host, port, &hints, &at);

	if (bad) {
		fprintf(stderr, "kv-server: %s port %s: %s\n", host, port, gai_strerror(bad));
		exit(1);
	}
	snprintf(where, sizeof(where), "%s port %s", host, port);
	options.address = at->ai_addr;
	options.address_len = at->ai_addrlen;
	check(rxw_endpoint_create(engine, &options, &endpoint), "listen on", where);
	freeaddrinfo(at);
	return endpoint;
}

static void announce(const rxw_endpoint *endpoint)
{
	struct sockaddr_storage address;
	socklen_t length = sizeof(address);
	char host[NI_MAXHOST] = "?", port[NI_MAXSERV] = "?";

	check(rxw_endpoint_address(endpoint, &address, &length), "find", "the port");
	getnameinfo((struct sockaddr *)&address, length, host, sizeof(host), port, sizeof(port),
		    NI_NUMERICHOST | NI_NUMERICSERV);
	printf("kv-server: serving on %s port %s\n", host, port);
	fflush(stdout);
}

/* Exits on failure. */
static void load(struct server *server, const char *path)
{
	const char *slash = strrchr(path, '/'), *key = slash ? slash + 1 : path;
	FILE *file = fopen(path, "rbe");
	kv_entry entry = {0};
	long size = -1;
	char *bytes = NULL;
	int32_t code;

	if (file && !fseek(file, 0, SEEK_END)) {
		size = ftell(file);
		rewind(file);
	}
	if (size >= 0 && (uint64_t)size <= server->value_max)
		bytes = malloc((size_t)size + 1);
	if (!bytes || fread(bytes, 1, (size_t)size, file) != (size_t)size || !good_name(key)) {
		fprintf(stderr, "kv-server: %s: it cannot be read, or is too large\n", path);
		exit(1);
	}
	fclose(file);
	code = store_put(server->store, key, KV_SET, bytes, (size_t)size, &entry);
	if (code) {
		fprintf(stderr, "kv-server: %s: the memory for values is used up\n", path);
		exit(1);
	}
	xdrfree_kv_entry(&entry);
}

static void serve(struct server *server, const char *host, const char *port, char **files)
{
	struct KV_service service = {
		.base = {.context = server, .enter = enter},
		.handlers = &handlers,
	};
	struct rxw_service_options offer = {
		.size = sizeof(offer),
		.id = KV_SERVICE,
		.name = "kv",
		.handler = KV_ExecuteRequest,
		.context = &service,
		.flags = RXW_SERVICE_HELD, /* calls wait until the values are loaded */
	};
	const struct rxw_rpc_observer observer = {.report = count, .arg = server};
	rxw_engine *engine;
	rxw_endpoint *endpoint;
	rxw_service *added;
	sigset_t stop;
	int number;

	/* The library's threads block signals. With them blocked here too, sigwait() gets them. */
	sigemptyset(&stop);
	sigaddset(&stop, SIGINT);
	sigaddset(&stop, SIGTERM);
	sigprocmask(SIG_BLOCK, &stop, NULL);
	check(rxw_engine_create(NULL, &engine), "create", "the engine");
	endpoint = listen_on(engine, host, port);
	check(rxw_endpoint_set_observer(endpoint, &observer), "count", "calls");
	check(rxw_service_add(endpoint, &offer, &added), "offer", "the service");
	check(rxw_endpoint_start(endpoint), "start", "the server");
	announce(endpoint);
	while (*files)
		load(server, *files++);
	check(rxw_service_start(added), "start", "the service");
	sigwait(&stop, &number);
	rxw_endpoint_stop(endpoint, 5000); /* calls in progress get five seconds */
	print_counters(endpoint);
	check(rxw_endpoint_destroy(endpoint), "close", "the port");
	check(rxw_engine_destroy(engine), "destroy", "the engine");
}

int main(int argc, char **argv)
{
	struct server server = {.lock = PTHREAD_MUTEX_INITIALIZER};
	const char *host = "127.0.0.1";
	char port[16], *end, *at = port;
	uint64_t mib = 1024;
	int option;

	snprintf(port, sizeof(port), "%d", KV_PORT);
	while ((option = getopt(argc, argv, "a:p:w:m:vh")) != -1) {
		switch (option) {
		case 'a':
			host = optarg;
			break;
		case 'p':
			at = optarg;
			break;
		case 'w':
			server.writer = optarg;
			break;
		case 'm':
			mib = strtoul(optarg, &end, 10);
			if (!mib || mib > 1 << 20 || *end) {
				fprintf(stderr, "kv-server: -m %s: give 1 to 1048576 MiB\n",
					optarg);
				return 2;
			}
			break;
		case 'v':
			server.tell = true;
			break;
		case 'h':
			usage(stdout);
			return 0;
		default:
			usage(stderr);
			return 2;
		}
	}
	server.value_max = mib * MIB / 4;
	if (server.value_max > KV_VALUEMAX)
		server.value_max = KV_VALUEMAX;
	server.store = store_create(mib * MIB);
	if (!server.store) {
		fprintf(stderr, "kv-server: no memory for the store\n");
		return 1;
	}
	serve(&server, host, at, argv + optind);
	print_tallies(&server);
	store_destroy(server.store);
	return 0;
}
