/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The endpoint under test: a server or a client on librxwire that executes commands from its
 * standard input, so that a scripted peer controls the order of events.
 *
 *   endpoint server [NAME=VALUE...]            prints "port N"
 *   endpoint client PORT [NAME=VALUE...]
 *
 * NAME is a tunable of rxwire.conf(5), or one of these:
 *   address, service, class, clock, delay
 *   rxgk: the key of a service with that class, in hex (32 bytes; number 5, enctype 18); for
 *     clients also level and enctype of their token
 *   rxkad: the same (number 3); level, of a client or the minimum of a server
 * A server accepts the commands "go" (releases all waiting handlers) and "memory", a client those
 * of client_line(). Both exit at the end of their input.
 */
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/syscall.h>

#include <rxwire/afs.h>
#include <rxwire/rxwire.h>

#include "base/wire.h"
#include "rxgk/client.h"
#include "tests/support/challenger.h"
#include "tests/support/constants.h"

#define RXGK_SERVICE  150
#define RXGK_KVNO     5
#define RXKAD_SERVICE 151
#define RXKAD_KVNO    3
#define COOKIE	      0x4711u
#define MOST_BYTES    (1u << 20)
#define NAME_TO_ID    504
#define NAME_BYTES    264u /* opcode, count and one name of 64 words */

/* Commands of the service; 0, 1 and 3 are those of rxperf. */
enum command {
	SEND = 0,
	RECEIVE = 1,
	RPC = 3,
	ABORT_WITH = 100,   /* code */
	ABORT_BEHIND = 101, /* code, bytes: output, then the code */
	WAIT = 102,	    /* bytes: waits for "go", then as SEND */
	COUNT = 103,	    /* replies with the number of such calls */
	NOTHING = 104,	    /* an empty reply */
	ECHO = 105	    /* the following data is sent back when the request has ended */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static unsigned gone;	 /* number of "go" commands; under `lock` */
static uint32_t counted; /* under `lock` */

static rxw_engine *engine;
static rxw_endpoint *endpoint;
static struct test_constants constants;
static rxw_connection *connection;
static struct sockaddr_in peer = {.sin_family = AF_INET};
static uint16_t service_id = 147;
static struct in_addr own_address; /* of a server */
static unsigned delay_ms; /* delay of a reply; written before the threads start */

_Noreturn static void die(const char *what, int rc)
{
	fprintf(stderr, "endpoint: %s: %s\n", what, rxw_strerror(rc));
	exit(1);
}

static void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void say(const char *format, ...)
{
	va_list list;

	va_start(list, format);
	flockfile(stdout);
	vprintf(format, list);
	putchar('\n');
	fflush(stdout);
	funlockfile(stdout);
	va_end(list);
}

/* --- an unreliable wall clock: each reading is off by an hour, forwards or backwards --- */

static bool clock_jumps;

int clock_gettime(clockid_t id, struct timespec *t)
{
	static _Atomic(unsigned) looks;
	long rc = syscall(SYS_clock_gettime, id, t);

	if (rc == 0 && clock_jumps && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE))
		t->tv_sec += looks++ % 2 ? 3600 : -3600;
	return (int)rc;
}

/* --- streams --- */

/* Byte `at` of the pattern. */
static uint8_t pattern(size_t at)
{
	return (uint8_t)(at * 167 + (at >> 8) * 13);
}

static int read_words(rxw_call *call, uint32_t *words, unsigned count)
{
	uint8_t bytes[32];

	if (rxw_call_read(call, bytes, 4 * (size_t)count) != 4 * (ssize_t)count)
		return -1;
	for (unsigned i = 0; i < count; i++)
		words[i] = rxw_get32(bytes + 4 * (size_t)i);
	return 0;
}

static int write_word(rxw_call *call, uint32_t word)
{
	uint8_t bytes[4];

	rxw_put32(bytes, word);
	return rxw_call_write(call, bytes, 4) == 4 ? 0 : -1;
}

/* Reads `length` bytes, or to the end for SIZE_MAX. Counts those that differ from the pattern. */
static size_t take(rxw_call *call, size_t length, size_t *bad)
{
	uint8_t bytes[8192];
	size_t done = 0;

	while (done < length) {
		size_t want = length - done < sizeof(bytes) ? length - done : sizeof(bytes);
		ssize_t n = rxw_call_read(call, bytes, want);

		for (ssize_t i = 0; i < n; i++)
			*bad += bytes[i] != pattern(done + (size_t)i);
		if (n > 0)
			done += (size_t)n;
		if (n < (ssize_t)want)
			break;
	}
	return done;
}

static int give(rxw_call *call, size_t length)
{
	uint8_t bytes[8192];
	size_t done = 0;

	while (done < length) {
		size_t n = length - done < sizeof(bytes) ? length - done : sizeof(bytes);

		for (size_t i = 0; i < n; i++)
			bytes[i] = pattern(done + i);
		if (rxw_call_write(call, bytes, n) != (ssize_t)n)
			return -1;
		done += n;
	}
	return 0;
}

/* --- the server --- */

static void wait_for_go(rxw_call *call)
{
	unsigned before;

	pthread_mutex_lock(&lock);
	for (before = gone; gone == before && !rxw_call_error(call, NULL);) {
		struct timespec until;

		syscall(SYS_clock_gettime, CLOCK_REALTIME, &until);
		until.tv_nsec += 20000000;
		until.tv_sec += until.tv_nsec / 1000000000;
		until.tv_nsec %= 1000000000;
		pthread_cond_timedwait(&changed, &lock, &until);
	}
	pthread_mutex_unlock(&lock);
}

static int32_t send_to_us(rxw_call *call, bool wait)
{
	uint32_t bytes;
	size_t bad = 0;

	if (read_words(call, &bytes, 1))
		return -1;
	if (wait)
		wait_for_go(call);
	if (take(call, bytes, &bad) != bytes || bad > 0)
		return -1;
	return write_word(call, COOKIE);
}

static int32_t echo(rxw_call *call)
{
	uint8_t *bytes = malloc(MOST_BYTES);
	size_t n = 0;
	ssize_t got = -1;
	int32_t code = -1;

	while (bytes && n < MOST_BYTES &&
	       (got = rxw_call_read(call, bytes + n, MOST_BYTES - n)) > 0)
		n += (size_t)got;
	if (got == 0)
		code = rxw_call_write(call, bytes, n) == (ssize_t)n ? 0 : -1;
	free(bytes);
	return code;
}

static int32_t work(rxw_call *call, void *context)
{
	uint32_t head[4], words[2];
	size_t bad = 0;

	(void)context;
	if (read_words(call, head, 4) || head[0] != 3)
		return -1;
	switch (head[1]) {
	case SEND:
	case WAIT:
		return send_to_us(call, head[1] == WAIT);
	case RECEIVE:
		if (read_words(call, words, 1) || words[0] > INT32_MAX || give(call, words[0]))
			return -1;
		return write_word(call, COOKIE);
	case RPC:
		if (read_words(call, words, 2) || take(call, words[0], &bad) != words[0])
			return -1;
		if (delay_ms)
			usleep(delay_ms * 1000);
		return give(call, words[1]) ? -1 : write_word(call, COOKIE);
	case ABORT_WITH:
		return read_words(call, words, 1) ? -1 : (int32_t)words[0];
	case ABORT_BEHIND:
		if (read_words(call, words, 2) || give(call, words[1]))
			return -1;
		return (int32_t)words[0];
	case COUNT:
		pthread_mutex_lock(&lock);
		words[0] = ++counted;
		pthread_mutex_unlock(&lock);
		return write_word(call, words[0]);
	case NOTHING:
		return 0;
	case ECHO:
		return echo(call);
	default:
		return -1;
	}
}

/* The one operation of the recorded scenarios. It maps every name to the id 1. */
static int32_t name_to_id(rxw_call *call, void *context)
{
	uint32_t word;
	uint8_t rest[NAME_BYTES - 4];

	(void)context;
	if (read_words(call, &word, 1))
		return -454;
	if (word != NAME_TO_ID)
		return -455;
	if (rxw_call_read(call, rest, sizeof(rest)) != sizeof(rest))
		return -453;
	return write_word(call, 1) ? -452 : write_word(call, 1);
}

/* --- rxgk, with a key shared with the scripted peer --- */

static rxw_keys *rxgk_keys;
static struct rxw_rxgk_print_options rxgk_token = {.name = "alice@REALM"};

static void rxgk_key(const char *hex)
{
	uint8_t key[32];
	int rc;

	for (size_t i = 0; i < sizeof(key); i++) {
		unsigned v = 0;

		if (sscanf(hex + 2 * i, "%2x", &v) != 1)
			die("rxgk: a key of 64 hex digits", -RXW_EINVAL);
		key[i] = (uint8_t)v;
	}
	rc = rxw_keys_create(&rxgk_keys);
	if (!rc)
		rc = rxw_keys_add(rxgk_keys, RXW_KEY_RXGK, RXGK_KVNO, 18, key, sizeof(key));
	if (rc)
		die("rxgk", rc);
}

static rxw_security *rxgk_server(void)
{
	struct rxw_rxgk_server_options o = {.size = sizeof(o), .keys = rxgk_keys};
	rxw_security *made;
	int rc = rxw_rxgk_server(&o, &made);

	if (rc)
		die("rxgk", rc);
	return made;
}

static rxw_security *rxgk_client(void)
{
	struct rxw_rxgk_token token = {0};
	rxw_security *made;
	int rc = rxw_rxgk_print_token(rxgk_keys, &rxgk_token, &token);

	if (!rc)
		rc = rxw_rxgk_client(&token, NULL, &made);
	if (rc)
		die("rxgk", rc);
	rxw_rxgk_token_free(&token);
	return made;
}

/* --- rxkad, likewise --- */

static rxw_keys *rxkad_keys;
static uint8_t rxkad_level;

static void rxkad_key(const char *hex)
{
	uint8_t key[32];
	int rc;

	for (size_t i = 0; i < sizeof(key); i++) {
		unsigned v = 0;

		if (sscanf(hex + 2 * i, "%2x", &v) != 1)
			die("rxkad: a key of 64 hex digits", -RXW_EINVAL);
		key[i] = (uint8_t)v;
	}
	rc = rxw_keys_create(&rxkad_keys);
	if (!rc)
		rc = rxw_keys_add(rxkad_keys, RXW_KEY_KRB5, RXKAD_KVNO, 18, key, sizeof(key));
	if (rc)
		die("rxkad", rc);
}

static rxw_security *rxkad_server(void)
{
	struct rxw_rxkad_server_options o = {
		.size = sizeof(o), .keys = rxkad_keys, .level_min = rxkad_level};
	rxw_security *made;
	int rc = rxw_rxkad_server(&o, &made);

	if (rc)
		die("rxkad", rc);
	return made;
}

static rxw_security *rxkad_client(void)
{
	struct rxw_rxkad_token token = {.size = sizeof(token)};
	rxw_security *made;
	int rc = rxw_rxkad_print_token(rxkad_keys, NULL, &token);

	if (!rc)
		rc = rxw_rxkad_client(&token, rxkad_level, &made);
	if (rc)
		die("rxkad", rc);
	rxw_rxkad_token_free(&token);
	return made;
}

static void offer(uint16_t id, rxw_handler_fn handler, unsigned flags, rxw_security *asks)
{
	struct rxw_service_options o = {
		.size = sizeof(o), .id = id, .name = "test", .handler = handler, .flags = flags};
	rxw_service *service;
	int rc;

	if (asks) {
		o.security = &asks;
		o.security_count = 1;
	}
	rc = rxw_service_add(endpoint, &o, &service);
	if (rc)
		die("service", rc);
}

static void be_server(void)
{
	struct rxw_endpoint_options o = {.size = sizeof(o), .server = 1, .paused = 1};
	struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr = own_address};
	struct sockaddr_storage bound;
	socklen_t length = sizeof(bound);
	char line[256];
	int rc;

	o.address = (struct sockaddr *)&any;
	o.address_len = sizeof(any);
	rc = rxw_endpoint_create_with(engine, &o, &constants.set, &endpoint);
	if (rc)
		die("port", rc);
	offer(147, work, 0, NULL);
	offer(148, work, 0, challenger_class());
	offer(149, work, RXW_SERVICE_REACH, NULL);
	offer(73, name_to_id, 0, NULL);
	if (rxgk_keys)
		offer(RXGK_SERVICE, work, 0, rxgk_server());
	if (rxkad_keys)
		offer(RXKAD_SERVICE, work, 0, rxkad_server());
	rc = rxw_endpoint_start(endpoint);
	if (rc)
		die("start", rc);
	rxw_endpoint_address(endpoint, &bound, &length);
	say("port %u", ntohs(((struct sockaddr_in *)&bound)->sin_port));
	while (fgets(line, sizeof(line), stdin)) {
		if (!strncmp(line, "go", 2)) {
			pthread_mutex_lock(&lock);
			gone++;
			pthread_cond_broadcast(&changed);
			pthread_mutex_unlock(&lock);
		} else if (!strncmp(line, "memory", 6)) {
			size_t peak;

			rxw_engine_memory(engine, &peak);
			say("memory %zu", peak);
		}
	}
}

/* --- the client --- */

struct script {
	char *name, *ops;
	rxw_call *call;
};

static void write_command(rxw_call *call, uint32_t command, uint32_t a, uint32_t b, bool two)
{
	const uint32_t words[] = {3, command, 65536, 65536, a, b};

	for (unsigned i = 0; i < (two ? 6u : 5u); i++)
		write_word(call, words[i]);
}

/* One call on its own thread. Prints NAME CODE BYTES BAD; CODE is that of the end. */
static void *run_script(void *arg)
{
	struct script *s = arg;
	size_t got = 0, bad = 0;
	unsigned a, b;
	int32_t code = 0;
	char *save = NULL;

	for (char *op = strtok_r(s->ops, " \n", &save); op; op = strtok_r(NULL, " \n", &save)) {
		if (sscanf(op, "rpc:%u:%u", &a, &b) == 2) {
			write_command(s->call, RPC, a, b, true);
			give(s->call, a);
		} else if (sscanf(op, "command:%u:%u", &a, &b) == 2) {
			write_command(s->call, a, b, 0, false);
		} else if (sscanf(op, "write:%u", &a) == 1) {
			give(s->call, a);
		} else if (!strcmp(op, "flush")) {
			rxw_call_flush(s->call);
		} else if (!strcmp(op, "sent")) {
			rxw_call_send_end(s->call);
		} else if (sscanf(op, "read:%u", &a) == 1) {
			got += take(s->call, a, &bad);
		} else if (!strcmp(op, "rest")) {
			got += take(s->call, SIZE_MAX, &bad);
		} else if (!strcmp(op, "wait")) {
			wait_for_go(s->call);
		} else if (sscanf(op, "end:%u", &a) == 1) {
			code = -(int32_t)a;
		}
	}
	code = rxw_call_end(s->call, code, NULL);
	say("%s %d %zu %zu", s->name, code, got, bad);
	free(s->name);
	free(s->ops);
	free(s);
	return NULL;
}

static void connect_again(rxw_security *security)
{
	int rc;

	if (connection)
		rxw_connection_release(connection);
	rc = rxw_connection_create(endpoint, (struct sockaddr *)&peer, sizeof(peer), service_id,
				   security, &connection);
	if (rc)
		die("connection", rc);
}

/*
 * "call NAME OP...": a call; OP is rpc:REQUEST:REPLY (the request of such a command),
 * command:N:ARG, write:BYTES, flush, sent, read:BYTES, rest, wait (for "go"), end:-CODE.
 * "connect": another connection, for later calls. "go": releases "wait".
 */
static void client_line(char *line, rxw_security *security)
{
	char name[32];
	int at = 0, rc;

	if (sscanf(line, "call %31s%n", name, &at) == 1) {
		struct script *s = calloc(1, sizeof(*s));
		pthread_t thread;

		if (!s)
			die("script", -RXW_ENOMEM);
		s->name = strdup(name);
		s->ops = strdup(line + at);
		rc = rxw_call_begin(connection, NULL, &s->call);
		if (rc) {
			say("%s begin %d 0", name, rc);
			free(s->name);
			free(s->ops);
			free(s);
		} else if (pthread_create(&thread, NULL, run_script, s)) {
			die("thread", -RXW_ENOMEM);
		} else {
			pthread_detach(thread);
		}
	} else if (!strncmp(line, "connect", 7)) {
		connect_again(security);
	} else if (!strncmp(line, "go", 2)) {
		pthread_mutex_lock(&lock);
		gone++;
		pthread_cond_broadcast(&changed);
		pthread_mutex_unlock(&lock);
	}
}

static void be_client(const char *port, rxw_security *security)
{
	struct rxw_endpoint_options o = {.size = sizeof(o)};
	struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	char line[512];
	int rc;

	o.address = (struct sockaddr *)&any;
	o.address_len = sizeof(any);
	rc = rxw_endpoint_create_with(engine, &o, &constants.set, &endpoint);
	if (rc)
		die("port", rc);
	peer.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	peer.sin_port = htons((uint16_t)atoi(port));
	connect_again(security);
	say("ready");
	while (fgets(line, sizeof(line), stdin))
		client_line(line, security);
}

int main(int argc, char **argv)
{
	bool client = argc > 2 && !strcmp(argv[1], "client");
	rxw_security *security = NULL;
	struct rxw_config config;
	char message[256];
	int rc;

	if (!client && (argc < 2 || strcmp(argv[1], "server"))) {
		fprintf(stderr, "usage: endpoint server|client PORT [NAME=VALUE...]\n");
		return 2;
	}
	own_address.s_addr = htonl(INADDR_LOOPBACK);
	rxw_config_init(&config, sizeof(config));
	test_constants_init(&constants);
	for (int i = client ? 3 : 2; i < argc; i++) {
		char *value = strchr(argv[i], '=');

		if (!value)
			continue;
		*value++ = '\0';
		if (!strcmp(argv[i], "address")) {
			if (inet_pton(AF_INET, value, &own_address) != 1)
				die("address", -RXW_EINVAL);
		} else if (!strcmp(argv[i], "service")) {
			service_id = (uint16_t)atoi(value);
		} else if (!strcmp(argv[i], "class")) {
			security = challenger_class();
		} else if (!strcmp(argv[i], "rxgk")) {
			rxgk_key(value);
		} else if (!strcmp(argv[i], "rxkad")) {
			rxkad_key(value);
		} else if (!strcmp(argv[i], "level")) {
			rxgk_token.level = (uint32_t)atoi(value);
			rxkad_level = (uint8_t)atoi(value);
		} else if (!strcmp(argv[i], "enctype")) {
			rxgk_token.enctype = atoi(value);
		} else if (!strcmp(argv[i], "delay")) {
			delay_ms = (unsigned)atoi(value);
		} else if (!strcmp(argv[i], "clock")) {
			clock_jumps = true;
		} else if (!test_constants_set(&constants, argv[i], value) &&
			   rxw_config_set(&config, argv[i], value, message, sizeof(message))) {
			fprintf(stderr, "endpoint: %s\n", message);
			return 2;
		}
	}
	rc = rxw_engine_create(&config, &engine);
	if (rc)
		die("engine", rc);
	if (client)
		be_client(argv[2], rxgk_keys	? rxgk_client()
				   : rxkad_keys ? rxkad_client()
						: security);
	else
		be_server();
	/* Calls may be active: the peer that sent the command has gone. */
	fflush(stdout);
	_exit(0);
}
