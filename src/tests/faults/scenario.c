/* SPDX-License-Identifier: BSD-2-Clause */
/* What the library is made to do while the system refuses: two endpoints and all sorts of calls. */
#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rxwire/rxwire.h>

#include "proto/security.h"
#include "scenario.h"

#define WORKER 100 /* handlers on workers */
#define SHORT  101 /* handlers on the receiving thread */
#define BULK   (1u << 20)
#define CHUNK  16384u
#define WRONG  4001  /* bytes are not what they must be */
#define LIMIT  60    /* seconds that a run may take before it counts as hanging */
#define MANY   1000000u
/*
 * A peer that answers and has no room is waited for without end, and less and less often: want ends
 * before that takes long.
 */
#define LASTS  200000000u /* ns */

static struct {
	rxw_engine *server_engine, *client_engine;
	rxw_endpoint *server, *client;
	rxw_connection *connection[3]; /* workers, short, the test class */
	struct sockaddr_storage address;
	socklen_t address_len;
} bed;

/* --- hanging --- */

static char running[160];

static void hangs(int sig)
{
	static const char text[] = " does not end\n";

	(void)sig;
	if (write(2, running, strlen(running)) < 0 || write(2, text, sizeof(text) - 1) < 0)
		_exit(3);
	_exit(2);
}

static void announce(const struct shim_plan *p)
{
	snprintf(running, sizeof(running), "%s: occurrence %llu, %llu in a row, %s, jump %llu s",
		 shim_name(p->kind), (unsigned long long)p->at, (unsigned long long)p->many,
		 strerror(p->error), (unsigned long long)(p->jump / 1000000000));
	signal(SIGALRM, hangs);
	alarm(LIMIT);
	if (getenv("RXW_TEST_LOG"))
		fprintf(stderr, "%s\n", running);
}

#define expect(condition, ...)                                                \
	do {                                                                  \
		if (!(condition)) {                                           \
			char text[200];                                       \
			snprintf(text, sizeof(text), __VA_ARGS__);            \
			ck_abort_msg("%s: %s", running, text);                \
		}                                                             \
	} while (0)

/* A result of a function: 0 or more, or the negative of a documented number. */
static void sane(const char *what, long result)
{
	expect(result >= -RXW_EDECODE, "%s returned %ld", what, result);
}

/* --- bytes --- */

static uint8_t byte_at(uint64_t offset)
{
	return (uint8_t)(offset * 31 + offset / 251 + offset / 65537);
}

static int32_t put(rxw_call *call, uint64_t bytes)
{
	uint8_t data[CHUNK];

	for (uint64_t at = 0; at < bytes;) {
		size_t n = bytes - at < CHUNK ? (size_t)(bytes - at) : CHUNK;
		ssize_t wrote;

		for (size_t i = 0; i < n; i++)
			data[i] = byte_at(at + i);
		wrote = rxw_call_write(call, data, n);
		sane("write", wrote);
		if (wrote < 0)
			return (int32_t)wrote;
		at += (uint64_t)wrote;
	}
	return 0;
}

/* The stream has exactly so many right bytes: 0; WRONG, or a negative result. */
static int32_t get(rxw_call *call, uint64_t bytes)
{
	uint8_t data[CHUNK];
	uint64_t at = 0;
	ssize_t n;

	while ((n = rxw_call_read_some(call, data, CHUNK)) > 0) {
		for (ssize_t i = 0; i < n; i++)
			if (data[i] != byte_at(at + (uint64_t)i))
				return WRONG;
		at += (uint64_t)n;
	}
	sane("read", n);
	if (n < 0)
		return (int32_t)n;
	return at == bytes ? 0 : WRONG;
}

/* The request is the number of bytes that follow it and that of the reply's, four bytes each. */
static int32_t serve(rxw_call *call, void *context)
{
	uint32_t head[2];
	ssize_t n = rxw_call_read(call, head, sizeof(head));
	int32_t r;

	(void)context;
	if (n != sizeof(head))
		return n < 0 ? RXW_USER_ABORT : WRONG;
	r = get(call, ntohl(head[0]));
	if (!r)
		r = put(call, ntohl(head[1]));
	return r < 0 ? RXW_USER_ABORT : r;
}

static int32_t ask(rxw_call *call, uint32_t out, uint32_t in)
{
	uint32_t head[2] = {htonl(out), htonl(in)};
	ssize_t n = rxw_call_write(call, head, sizeof(head));

	sane("write", n);
	return n < 0 ? (int32_t)n : put(call, out);
}

/* --- calls --- */

/* Begin to end: the code of the call, or a negative result of the library if it did not begin. */
static int32_t call_once(rxw_connection *connection, uint32_t out, uint32_t in)
{
	rxw_call *call;
	int32_t r = rxw_call_begin(connection, NULL, &call), code;

	sane("begin", r);
	if (r)
		return r;
	r = ask(call, out, in);
	if (!r)
		r = get(call, in);
	expect(r != WRONG, "wrong bytes in a call of %u and %u", out, in);
	code = rxw_call_end(call, r == 0 || r == -RXW_ECALL ? 0 : RXW_USER_ABORT, NULL);
	expect(code != WRONG, "the server got wrong bytes in a call of %u and %u", out, in);
	expect(r == 0 || code != 0, "a call of %u and %u was cut short (%d) without a code", out,
	       in, r);
	return code;
}

/* The asynchronous form, by a descriptor. */
static int32_t call_polled(rxw_connection *connection)
{
	struct rxw_call_options options = {.size = sizeof(options), .flags = RXW_CALL_NONBLOCK};
	struct pollfd p = {.events = POLLIN};
	uint8_t reply[64];
	rxw_call *call;
	int32_t r = rxw_call_begin(connection, &options, &call);
	ssize_t n = 0;

	sane("begin", r);
	if (r)
		return r;
	p.fd = rxw_call_fd(call);
	sane("fd", p.fd);
	r = ask(call, 100, 40);
	if (!r)
		r = rxw_call_send_end(call);
	sane("send_end", r);
	while (!r && p.fd >= 0 && !(rxw_call_events(call) & RXW_EVENT_DONE))
		if (poll(&p, 1, 10) < 0 && errno == EINTR)
			break;
	if (!r && p.fd >= 0)
		n = rxw_call_read(call, reply, sizeof(reply));
	return rxw_call_end(call, r || p.fd < 0 || n != 40 ? RXW_USER_ABORT : 0, NULL);
}

static void all_calls(void)
{
	for (unsigned i = 0; i < 3; i++) {
		if (!bed.connection[i])
			continue;
		call_once(bed.connection[i], 0, 0);
		call_once(bed.connection[i], 300, 5000);
	}
	if (bed.connection[1])
		call_polled(bed.connection[1]);
	if (bed.connection[0]) {
		call_once(bed.connection[0], BULK, 100);
		call_once(bed.connection[0], 100, BULK);
	}
	if (bed.connection[2])
		call_once(bed.connection[2], 50000, 50000);
}

/* --- up and down --- */

static void loopback(struct sockaddr_in *a)
{
	memset(a, 0, sizeof(*a));
	a->sin_family = AF_INET;
	a->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
}

static int make_engine(rxw_engine **engine)
{
	struct rxw_config config;
	int r;

	rxw_config_init(&config, sizeof(config));
	config.listeners = 2;
	config.dead_ms = 1000;
	r = rxw_engine_create(&config, engine);
	sane("engine_create", r);
	return r;
}

static int make_endpoint(rxw_engine *engine, bool server, rxw_endpoint **endpoint)
{
	struct sockaddr_in any;
	struct rxw_endpoint_options o = {.size = sizeof(o),
					 .address = (struct sockaddr *)&any,
					 .address_len = sizeof(any),
					 .server = server,
					 .paused = server};
	int r;

	loopback(&any);
	r = rxw_endpoint_create(engine, &o, endpoint);
	sane("endpoint_create", r);
	return r;
}

static int add_service(uint16_t id, unsigned flags)
{
	rxw_security *classes[] = {rxw_security_null(), &rxw_security_test_class};
	struct rxw_service_options o = {.size = sizeof(o),
					.id = id,
					.name = "faults",
					.handler = serve,
					.flags = flags,
					.security = classes,
					.security_count = 2};
	rxw_service *service;
	int r = rxw_service_add(bed.server, &o, &service);

	sane("service_add", r);
	return r;
}

static void connect_to(unsigned i)
{
	rxw_security *test = &rxw_security_test_class;
	int r = rxw_connection_create(bed.client, (struct sockaddr *)&bed.address,
				      bed.address_len, i == 1 ? SHORT : WORKER,
				      i == 2 ? test : NULL, &bed.connection[i]);

	sane("connection_create", r);
	if (r)
		bed.connection[i] = NULL;
}

static bool up(void)
{
	memset(&bed, 0, sizeof(bed));
	if (make_engine(&bed.server_engine) || make_engine(&bed.client_engine) ||
	    make_endpoint(bed.server_engine, true, &bed.server) || add_service(WORKER, 0) ||
	    add_service(SHORT, RXW_SERVICE_SHORT))
		return false;
	bed.address_len = sizeof(bed.address);
	expect(!rxw_endpoint_address(bed.server, &bed.address, &bed.address_len), "no address");
	if (rxw_endpoint_start(bed.server) || make_endpoint(bed.client_engine, false, &bed.client))
		return false;
	for (unsigned i = 0; i < 3; i++)
		connect_to(i);
	return true;
}

static void down(void)
{
	int r;

	for (unsigned i = 0; i < 3; i++)
		rxw_connection_release(bed.connection[i]);
	r = rxw_endpoint_destroy(bed.client);
	expect(!r, "destroying the client's endpoint: %s", rxw_strerror(r));
	r = rxw_engine_destroy(bed.client_engine);
	expect(!r, "destroying the client's engine: %s", rxw_strerror(r));
	r = rxw_endpoint_destroy(bed.server);
	expect(!r, "destroying the server's endpoint: %s", rxw_strerror(r));
	r = rxw_engine_destroy(bed.server_engine);
	expect(!r, "destroying the server's engine: %s", rxw_strerror(r));
}

/* Nothing fails any more: connections made now are served, whatever happened to the others. */
static void lives_on(void)
{
	for (unsigned i = 0; i < 3; i++) {
		int32_t code;

		rxw_connection_release(bed.connection[i]);
		connect_to(i);
		expect(bed.connection[i], "no connection afterwards");
		/* A handler on the receiving thread must find its request whole. */
		code = call_once(bed.connection[i], i == 1 ? 1000 : 20000, i == 1 ? 5000 : 20000);
		expect(!code, "a call afterwards ends with %d (%s)", code, rxw_code_text(code));
	}
}

/* Workers are nobody's to join: their last instructions are waited for. */
static void nothing_left(struct shim_held before)
{
	struct shim_held now = shim_held();

	for (unsigned i = 0; now.threads != before.threads && i < MANY; i++) {
		usleep(100);
		now = shim_held();
	}
	expect(now.threads == before.threads, "%ld threads are left", now.threads - before.threads);
	expect(now.memory == before.memory, "%ld blocks are left", now.memory - before.memory);
	expect(now.descriptors == before.descriptors, "%ld descriptors are left",
	       now.descriptors - before.descriptors);
}

void scenario_run(const struct shim_plan *plan)
{
	struct shim_held before = shim_held();
	bool whole;

	announce(plan);
	shim_arm(plan);
	whole = up();
	if (whole)
		all_calls();
	shim_disarm();
	if (whole)
		lives_on();
	down();
	nothing_left(before);
	shim_set_clock_back();
	alarm(0);
}

void scenario_sweep(enum shim_kind kind, int error, uint64_t many, unsigned first, unsigned step)
{
	struct shim_plan plan = {.kind = kind, .many = many, .lasts = LASTS, .error = error};
	unsigned runs = 0;

	for (plan.at = first;; plan.at += step) {
		scenario_run(&plan);
		if (!shim_refused())
			break;
		runs++;
	}
	if (getenv("RXW_TEST_LOG"))
		fprintf(stderr, "%s, %s: %u runs\n", shim_name(kind), strerror(error), runs);
}

unsigned scenario_step(unsigned usual)
{
	const char *text = getenv("RXW_FAULTS_STEP");
	unsigned step = text ? (unsigned)atoi(text) : usual;

	return step ? step : 1;
}
