/* SPDX-License-Identifier: BSD-2-Clause */
/* The server: keeps notes in memory until it is stopped. */
#include <ctype.h>
#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
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

/* A call that waits for a note. */
struct waiting {
	struct waiting *next, **link; /* link NULL: not in the list */
	struct board *board;
	rxw_call *call;
	char name[NOTES_NAMEMAX + 1];
	uint32_t version; /* a newer one is wanted */
};

struct board {
	bool tickets;	      /* only users with a ticket may post */
	pthread_mutex_t lock; /* guards what follows */
	bool closed;	      /* no call may wait any more */
	struct waiting *waiting;
	unsigned count;
	struct entry entries[NOTES_MAX];
};

/* -- the notes --------------------------------------------------------------------------------- */

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

/* -- calls that wait: no thread waits with them ------------------------------------------------ */

/* With the lock held. */
static void unlink_waiting(struct waiting *waiting)
{
	*waiting->link = waiting->next;
	if (waiting->next)
		waiting->next->link = waiting->link;
	waiting->link = NULL;
}

static void link_waiting(struct board *board, struct waiting *waiting)
{
	waiting->next = board->waiting;
	waiting->link = &board->waiting;
	if (waiting->next)
		waiting->next->link = &waiting->next;
	board->waiting = waiting;
}

/* With the lock held: the calls that this version of a note answers; all if `name` is NULL. */
static struct waiting *take(struct board *board, const char *name, uint32_t version)
{
	struct waiting *taken = NULL, *next;

	for (struct waiting *w = board->waiting; w; w = next) {
		next = w->next;
		if (name && (strcmp(w->name, name) || w->version >= version))
			continue;
		unlink_waiting(w);
		w->next = taken;
		taken = w;
	}
	return taken;
}

/* Without the lock: an answer waits for the callback of the call, which may be about to take it. */
static void answer(struct waiting *taken, int32_t code, const note *found)
{
	while (taken) {
		struct waiting *next = taken->next;

		NOTES_Wait_reply(taken->call, code, found);
		free(taken); /* its callback does not run any more */
		taken = next;
	}
}

/* On a thread of the library: something has happened to a call that waits. */
static void changed(rxw_call *call, unsigned events, void *arg)
{
	struct waiting *waiting = arg;
	bool mine;
	int32_t code;

	if (!(events & RXW_EVENT_DONE))
		return;
	/* The client has given up, or it is gone. Unless the call is being answered: */
	pthread_mutex_lock(&waiting->board->lock);
	mine = waiting->link != NULL;
	if (mine)
		unlink_waiting(waiting);
	pthread_mutex_unlock(&waiting->board->lock);
	if (!mine)
		return;
	code = NOTES_Wait_reply(call, RXW_USER_ABORT, NULL); /* the code of the call comes first */
	printf("notes-server: stopped waiting for %s: %s (%d)\n", waiting->name,
	       rxw_code_text(code), (int)code);
	fflush(stdout);
	free(waiting);
}

/* With the lock held: the call is answered later. */
static int32_t wait_later(struct board *board, rxw_call *call, const char *name, uint32_t version)
{
	struct waiting *waiting = calloc(1, sizeof(*waiting));

	if (board->closed || !waiting || rxw_call_defer(call) < 0) {
		free(waiting);
		return board->closed ? RXW_RESTARTING : NOTES_BUSY;
	}
	waiting->board = board;
	waiting->call = call;
	strcpy(waiting->name, name); /* its bound is NOTES_NAMEMAX */
	waiting->version = version;
	link_waiting(board, waiting);
	rxw_call_set_callback(call, changed, waiting);
	return RXW_RPC_DEFERRED;
}

/* -- the procedures: on threads of the library, several at a time ------------------------------ */

static int32_t post(void *context, rxw_call *call, const char *name, const char *text,
		    uint32_t *version)
{
	struct rxw_identity caller = {.size = sizeof(caller)};
	char author[NOTES_AUTHORMAX + 1] = "anonymous";
	note posted = {.text = (char *)text, .author = author};
	struct board *board = context;
	struct waiting *taken = NULL;
	struct entry *entry;

	if (!good_name(name))
		return NOTES_BADNAME;
	if (rxw_call_identity(call, &caller) >= 0 && caller.name)
		snprintf(author, sizeof(author), "%s", caller.name);
	else if (board->tickets)
		return NOTES_DENIED;
	pthread_mutex_lock(&board->lock);
	entry = find(board, name);
	if (!entry && board->count < NOTES_MAX) {
		entry = &board->entries[board->count++];
		strcpy(entry->name, name); /* its bound is NOTES_NAMEMAX */
	}
	if (entry) {
		strcpy(entry->text, text); /* its bound is NOTES_TEXTMAX */
		strcpy(entry->author, author);
		*version = posted.version = ++entry->version;
		taken = take(board, name, *version);
	}
	pthread_mutex_unlock(&board->lock);
	answer(taken, 0, &posted);
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
	struct entry *entry;
	int32_t code;

	pthread_mutex_lock(&board->lock);
	entry = find(board, name);
	if (entry && entry->version > version)
		code = copy(entry, found);
	else
		code = wait_later(board, call, name, version);
	pthread_mutex_unlock(&board->lock);
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

/* Calls that wait would delay the end. Their clients may try again. */
static void close_board(struct board *board)
{
	struct waiting *taken;

	pthread_mutex_lock(&board->lock);
	board->closed = true;
	taken = take(board, NULL, 0);
	pthread_mutex_unlock(&board->lock);
	answer(taken, RXW_RESTARTING, NULL);
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
	close_board(board);
	rxw_endpoint_stop(endpoint, 2000); /* calls in progress have two seconds */
	check(rxw_endpoint_destroy(endpoint), "close the port");
	check(rxw_engine_destroy(engine), "destroy the engine");
	rxw_security_unref(classes[1]);
}

int main(int argc, char **argv)
{
	static struct board board = {.lock = PTHREAD_MUTEX_INITIALIZER};
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
