/* SPDX-License-Identifier: BSD-2-Clause */
/* The server: keeps notes in memory until it is stopped. */
#include <ctype.h>
#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include <rxwire/rxwire.h>

#include "notes.h"

#define NOTES_MAX 1000

struct entry {
	char name[NOTES_NAMEMAX + 1];
	char text[NOTES_TEXTMAX + 1];
	char author[NOTES_AUTHORMAX + 1];
	uint32_t version;
};

struct board {
	bool tickets; /* only users with a ticket may post */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	unsigned count; /* guarded by lock, as the entries are */
	struct entry entries[NOTES_MAX];
};

/* -- the procedures: on threads of the library, several at a time ------------------------------ */

static bool good_name(const char *name)
{
	const char *c = name;

	while (*c && !iscntrl((unsigned char)*c))
		c++;
	return *name && !*c;
}

/* With the lock held. NULL: none has that name. */
static struct entry *find(struct board *board, const char *name)
{
	for (unsigned i = 0; i < board->count; i++)
		if (!strcmp(board->entries[i].name, name))
			return &board->entries[i];
	return NULL;
}

/* A result: its strings are allocated, and freed by the generated code. */
static int32_t copy(const struct entry *entry, note *found)
{
	found->text = strdup(entry->text);
	found->author = strdup(entry->author);
	found->version = entry->version;
	return found->text && found->author ? 0 : NOTES_FULL;
}

static int32_t post(void *context, rxw_call *call, const char *name, const char *text,
		    uint32_t *version)
{
	struct rxw_identity caller = {.size = sizeof(caller)};
	struct board *board = context;
	struct entry *entry;

	if (!good_name(name))
		return NOTES_BADNAME;
	if (rxw_call_identity(call, &caller) < 0 || !caller.name) {
		if (board->tickets)
			return NOTES_DENIED;
		caller.name = "anonymous";
	}
	pthread_mutex_lock(&board->lock);
	entry = find(board, name);
	if (!entry && board->count < NOTES_MAX) {
		entry = &board->entries[board->count++];
		strcpy(entry->name, name); /* its bound is NOTES_NAMEMAX */
	}
	if (entry) {
		strcpy(entry->text, text); /* its bound is NOTES_TEXTMAX */
		snprintf(entry->author, sizeof(entry->author), "%s", caller.name);
		*version = ++entry->version;
		pthread_cond_broadcast(&board->changed);
	}
	pthread_mutex_unlock(&board->lock);
	return entry ? 0 : NOTES_FULL;
}

static int32_t read_note(void *context, rxw_call *call, const char *name, note *found)
{
	struct board *board = context;
	struct entry *entry;
	int32_t code = NOTES_NONE;

	(void)call;
	pthread_mutex_lock(&board->lock);
	entry = find(board, name);
	if (entry)
		code = copy(entry, found);
	pthread_mutex_unlock(&board->lock);
	return code;
}

static int32_t wait_for(void *context, rxw_call *call, const char *name, uint32_t version,
			note *found)
{
	struct board *board = context;
	struct entry *entry = NULL;
	int32_t code = 0;

	pthread_mutex_lock(&board->lock);
	while (!code) {
		struct timespec until;

		entry = find(board, name);
		if (entry && entry->version > version) {
			code = copy(entry, found);
			break;
		}
		/* Every second: is the client still there? */
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_sec++;
		pthread_cond_timedwait(&board->changed, &board->lock, &until);
		code = rxw_call_error(call, NULL);
	}
	pthread_mutex_unlock(&board->lock);
	if (code) {
		printf("notes-server: stopped waiting for %s: %s (%d)\n", name, rxw_code_text(code),
		       (int)code);
		fflush(stdout);
	}
	return code;
}

static const struct NOTES_handlers handlers = {
	.Post = post,
	.Read = read_note,
	.Wait = wait_for,
};

/* -- start and end ---------------------------------------------------------------------------- */

static void check(int result, const char *what)
{
	if (result >= 0)
		return;
	fprintf(stderr, "notes-server: cannot %s: %s\n", what, rxw_strerror(result));
	exit(1);
}

static rxw_endpoint *listen_on(rxw_engine *engine, const char *host, const char *port)
{
	struct addrinfo hints = {.ai_socktype = SOCK_DGRAM, .ai_flags = AI_PASSIVE}, *at;
	struct rxw_endpoint_options options = {.size = sizeof(options), .server = 1, .paused = 1};
	rxw_endpoint *endpoint;
	int bad = getaddrinfo(host, port, &hints, &at);

	if (bad) {
		fprintf(stderr, "notes-server: %s port %s: %s\n", host, port, gai_strerror(bad));
		exit(1);
	}
	options.address = at->ai_addr;
	options.address_len = at->ai_addrlen;
	check(rxw_endpoint_create(engine, &options, &endpoint), "listen");
	freeaddrinfo(at);
	return endpoint;
}

/* The security class rxkad, with the keys of a keytab or KeyFileExt. */
static rxw_security *rxkad_with(const char *file)
{
	struct rxw_rxkad_server_options options = {
		.size = sizeof(options),
		.level_min = RXW_LEVEL_CRYPT,
	};
	rxw_security *rxkad;
	char why[256] = "";
	int result;

	check(rxw_keys_create(&options.keys), "make a table of keys");
	result = rxw_keys_load(options.keys, file, NULL, why, sizeof(why));
	if (*why)
		fprintf(stderr, "notes-server: %s\n", why); /* an error or a warning */
	check(result, "load the keys");
	check(rxw_rxkad_server(&options, &rxkad), "offer rxkad");
	rxw_keys_unref(options.keys); /* the class has a reference of its own */
	return rxkad;
}

static void serve(struct board *board, const char *host, const char *port, const char *key_file)
{
	struct NOTES_service service = {.base = {.context = board}, .handlers = &handlers};
	rxw_security *classes[2] = {rxw_security_null(), NULL};
	struct rxw_service_options offer = {
		.size = sizeof(offer),
		.id = NOTES_SERVICE,
		.name = "notes",
		.handler = NOTES_ExecuteRequest,
		.context = &service,
		.security = classes,
		.security_count = 1,
	};
	rxw_engine *engine;
	rxw_endpoint *endpoint;
	sigset_t stop;
	int number;

	if (key_file)
		classes[offer.security_count++] = rxkad_with(key_file);
	/* Threads of the library take no signals. Blocked here, they wait for sigwait(). */
	sigemptyset(&stop);
	sigaddset(&stop, SIGINT);
	sigaddset(&stop, SIGTERM);
	sigprocmask(SIG_BLOCK, &stop, NULL);
	check(rxw_engine_create(NULL, &engine), "create the engine");
	endpoint = listen_on(engine, host, port);
	check(rxw_service_add(endpoint, &offer, NULL), "offer the service");
	check(rxw_endpoint_start(endpoint), "start");
	printf("notes-server: serving on %s port %s\n", host, port);
	fflush(stdout);
	sigwait(&stop, &number);
	rxw_endpoint_stop(endpoint, 2000); /* calls in progress have two seconds */
	check(rxw_endpoint_destroy(endpoint), "close the port");
	check(rxw_engine_destroy(engine), "destroy the engine");
	rxw_security_unref(classes[1]);
}

int main(int argc, char **argv)
{
	static struct board board = {
		.lock = PTHREAD_MUTEX_INITIALIZER,
		.changed = PTHREAD_COND_INITIALIZER,
	};
	char standard[16];
	const char *host = "127.0.0.1", *port = standard, *key_file = NULL;
	int option;

	snprintf(standard, sizeof(standard), "%d", NOTES_PORT);
	while ((option = getopt(argc, argv, "a:p:k:")) != -1) {
		if (option == 'a') {
			host = optarg;
		} else if (option == 'p') {
			port = optarg;
		} else if (option == 'k') {
			key_file = optarg;
		} else {
			fprintf(stderr,
				"usage: notes-server [-a ADDRESS] [-p PORT] [-k KEYFILE]\n");
			return 2;
		}
	}
	board.tickets = key_file != NULL;
	serve(&board, host, port, key_file);
	return 0;
}
