/* SPDX-License-Identifier: BSD-2-Clause */
/* The client: posts, reads and awaits notes. */
#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include <rxwire/rxwire.h>

#include "notes.h"

struct settings {
	const char *host, *port;
	const char *cell;     /* use the user's ticket for this cell */
	const char *key_file; /* or make one, with the service's key, for ... */
	const char *user;     /* ... this principal */
	struct rxw_call_options call;
};

static void check(int result, const char *what)
{
	if (result >= 0)
		return;
	fprintf(stderr, "notes-client: cannot %s: %s\n", what, rxw_strerror(result));
	exit(1);
}

static int complain(const char *what, const char *name, int32_t code)
{
	static const char *const texts[] = {
		[NOTES_NONE - NOTES_NONE] = "no note has that name",
		[NOTES_FULL - NOTES_NONE] = "the board is full",
		[NOTES_DENIED - NOTES_NONE] = "only users with a ticket may post",
		[NOTES_BADNAME - NOTES_NONE] = "a name is empty or has control characters",
		[NOTES_BUSY - NOTES_NONE] = "too many calls wait",
	};
	bool ours = code >= NOTES_NONE && code <= NOTES_BUSY;

	fprintf(stderr, "notes-client: %s: %s: %s (%d)\n", what, name,
		ours ? texts[code - NOTES_NONE] : rxw_code_text(code), (int)code);
	return 1;
}

/* -- cancellation: ^C aborts the calls of the connection --------------------------------------- */

static atomic_bool finished;

static void *wait_for_interrupt(void *connection)
{
	sigset_t interrupt;
	int number;

	sigemptyset(&interrupt);
	sigaddset(&interrupt, SIGINT);
	sigwait(&interrupt, &number);
	/* A call may be about to begin: repeat it until the program has noticed. */
	while (!atomic_load(&finished)) {
		rxw_connection_abort(connection, RXW_USER_ABORT);
		usleep(100000);
	}
	return NULL;
}

static void block_interrupt(void)
{
	sigset_t interrupt;

	sigemptyset(&interrupt);
	sigaddset(&interrupt, SIGINT);
	pthread_sigmask(SIG_BLOCK, &interrupt, NULL);
}

/* -- commands: each is one call ---------------------------------------------------------------- */

static int post(rxw_connection *to, const struct settings *with, const char *name, const char *text)
{
	uint32_t version;
	int32_t code = NOTES_Post_opt(to, &with->call, name, text, &version);

	if (code)
		return complain("post", name, code);
	printf("%s: version %u\n", name, (unsigned)version);
	return 0;
}

static int show(const char *name, note *found)
{
	printf("%s, version %u, by %s: %s\n", name, (unsigned)found->version, found->author,
	       found->text);
	xdrfree_note(found);
	return 0;
}

static int read_note(rxw_connection *from, const struct settings *with, const char *name)
{
	note found;
	int32_t code = NOTES_Read_opt(from, &with->call, name, &found);

	return code ? complain("read", name, code) : show(name, &found);
}

static int wait_for(rxw_connection *from, const struct settings *with, const char *name,
		    uint32_t version)
{
	pthread_t watcher;
	note found;
	int32_t code;

	if (pthread_create(&watcher, NULL, wait_for_interrupt, from))
		return 1;
	printf("waiting for %s\n", name);
	fflush(stdout);
	code = NOTES_Wait_opt(from, &with->call, name, version, &found);
	atomic_store(&finished, true);
	pthread_kill(watcher, SIGINT);
	pthread_join(watcher, NULL);
	return code ? complain("wait", name, code) : show(name, &found);
}

/* -- a connection, anonymous or with a ticket -------------------------------------------------- */

/* NULL without -c and -k. */
static rxw_token *token_for(const struct settings *with)
{
	struct rxw_token_options options = {
		.size = sizeof(options),
		.source = with->key_file ? RXW_TOKEN_LOCAL : RXW_TOKEN_CACHE,
		.index = RXW_RXKAD_INDEX,
		.level = RXW_LEVEL_CRYPT,
		.cell = with->cell ? with->cell : "example.org",
		.client = with->user,
	};
	rxw_token *token;
	char why[256] = "";
	int result = 0;

	if (!with->key_file && !with->cell)
		return NULL;
	if (with->key_file) {
		check(rxw_keys_create(&options.keys), "make a table of keys");
		result = rxw_keys_load(options.keys, with->key_file, NULL, why, sizeof(why));
	}
	if (result >= 0)
		result = rxw_token_create(&options, &token, why, sizeof(why));
	rxw_keys_unref(options.keys);
	if (result >= 0)
		return token;
	fprintf(stderr, "notes-client: no token: %s\n", why);
	exit(1);
}

static rxw_connection *connect_to(rxw_endpoint *endpoint, const struct settings *with)
{
	struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_DGRAM}, *to;
	rxw_token *token = token_for(with);
	rxw_connection *connection;
	int bad = getaddrinfo(with->host, with->port, &hints, &to);

	if (bad) {
		fprintf(stderr, "notes-client: %s: %s\n", with->host, gai_strerror(bad));
		exit(1);
	}
	check(rxw_connection_create(endpoint, to->ai_addr, to->ai_addrlen, NOTES_SERVICE,
				    token ? rxw_token_security(token) : NULL, &connection),
	      "make a connection");
	freeaddrinfo(to);
	rxw_token_unref(token); /* the connection has a reference of its own */
	return connection;
}

static int usage(void)
{
	fprintf(stderr, "usage: notes-client [-s HOST] [-p PORT] [-t MILLISECONDS]\n"
			"                    [-c CELL | -k KEYFILE -u PRINCIPAL] COMMAND\n"
			"  post NAME TEXT\n  read NAME\n  wait NAME VERSION\n");
	return 2;
}

int main(int argc, char **argv)
{
	char port[16];
	struct settings with = {.host = "127.0.0.1", .port = port};
	rxw_engine *engine;
	rxw_endpoint *endpoint;
	rxw_connection *connection;
	int option, status;

	snprintf(port, sizeof(port), "%d", NOTES_PORT);
	with.call.size = sizeof(with.call);
	while ((option = getopt(argc, argv, "s:p:t:c:k:u:")) != -1) {
		if (option == 's')
			with.host = optarg;
		else if (option == 'p')
			with.port = optarg;
		else if (option == 't')
			with.call.deadline_ms = (unsigned)atoi(optarg);
		else if (option == 'c')
			with.cell = optarg;
		else if (option == 'k')
			with.key_file = optarg;
		else if (option == 'u')
			with.user = optarg;
		else
			return usage();
	}
	argv += optind;
	argc -= optind;
	block_interrupt();
	check(rxw_engine_create(NULL, &engine), "create the engine");
	check(rxw_endpoint_create(engine, NULL, &endpoint), "open a port");
	connection = connect_to(endpoint, &with);
	if (argc == 3 && !strcmp(argv[0], "post"))
		status = post(connection, &with, argv[1], argv[2]);
	else if (argc == 2 && !strcmp(argv[0], "read"))
		status = read_note(connection, &with, argv[1]);
	else if (argc == 3 && !strcmp(argv[0], "wait"))
		status = wait_for(connection, &with, argv[1], (uint32_t)atoi(argv[2]));
	else
		status = usage();
	rxw_connection_release(connection);
	check(rxw_endpoint_destroy(endpoint), "close the port");
	check(rxw_engine_destroy(engine), "destroy the engine");
	return status;
}
