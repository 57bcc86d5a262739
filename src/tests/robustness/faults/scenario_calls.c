/* SPDX-License-Identifier: BSD-2-Clause */
/* Two endpoints with calls of all kinds. */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <string.h>

#include "tests/support/internals.h"
#include "scenario.h"

#define WORKER 100 /* handlers on workers */
#define SHORT  101 /* handlers on the receiving thread */
#define BULK   (1u << 20)
#define CHUNK  16384u
#define WRONG  4001 /* wrong bytes */

static struct {
	rxw_engine *server_engine, *client_engine;
	rxw_endpoint *server, *client;
	rxw_connection *connection[3]; /* workers, inline, the test class */
	struct sockaddr_storage address;
	socklen_t address_len;
} bed;

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
		scenario_sane("write", wrote);
		if (wrote < 0)
			return (int32_t)wrote;
		at += (uint64_t)wrote;
	}
	return 0;
}

/* Reads the stream and expects exactly `count` right bytes: 0, WRONG, or a negative result. */
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
	scenario_sane("read", n);
	if (n < 0)
		return (int32_t)n;
	return at == bytes ? 0 : WRONG;
}

/* The request gives the number of bytes that follow it and that of the reply's, four bytes each. */
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

	scenario_sane("write", n);
	return n < 0 ? (int32_t)n : put(call, out);
}

/* --- calls --- */

/* One call: returns its code, or a negative result of the library if it did not begin. */
static int32_t call_once(rxw_connection *connection, uint32_t out, uint32_t in)
{
	rxw_call *call;
	int32_t r = rxw_call_begin(connection, NULL, &call), code;

	scenario_sane("begin", r);
	if (r)
		return r;
	r = ask(call, out, in);
	if (!r)
		r = get(call, in);
	expect(r != WRONG, "wrong bytes in a call of %u and %u", out, in);
	code = rxw_call_end(call, r == 0 || r == -RXW_ECALL ? 0 : RXW_USER_ABORT, NULL);
	expect(code != WRONG, "the server got wrong bytes in a call of %u and %u", out, in);
	expect(r == 0 || code != 0, "a call of %u and %u failed (%d) without a code", out,
	       in, r);
	return code;
}

/* Non-blocking, with the descriptor of a queue. */
static int32_t call_polled(rxw_connection *connection, rxw_queue *queue)
{
	struct rxw_call_options options = {.size = sizeof(options), .flags = RXW_CALL_NONBLOCK};
	struct pollfd p = {.events = POLLIN, .fd = rxw_queue_fd(queue)};
	struct rxw_queue_event event;
	uint8_t reply[64];
	rxw_call *call;
	ssize_t n = 0;
	int32_t r;

	scenario_sane("fd", p.fd);
	options.queue = queue;
	r = rxw_call_begin(connection, &options, &call);
	scenario_sane("begin", r);
	if (r)
		return r;
	r = ask(call, 100, 40);
	if (!r)
		r = rxw_call_send_end(call);
	scenario_sane("send_end", r);
	while (!r && p.fd >= 0 && !(rxw_call_events(call) & RXW_EVENT_DONE)) {
		if (poll(&p, 1, 10) < 0 && errno == EINTR)
			break;
		scenario_sane("next", rxw_queue_next(queue, &event, 1, 0));
	}
	if (!r && p.fd >= 0)
		n = rxw_call_read(call, reply, sizeof(reply));
	return rxw_call_end(call, r || p.fd < 0 || n != 40 ? RXW_USER_ABORT : 0, NULL);
}

static void call_queued(rxw_connection *connection)
{
	rxw_queue *queue;
	int r = rxw_queue_create(bed.client_engine, NULL, &queue);

	scenario_sane("queue_create", r);
	if (r)
		return;
	call_polled(connection, queue);
	expect(!rxw_queue_destroy(queue), "a queue without calls is in use");
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
		call_queued(bed.connection[1]);
	if (bed.connection[0]) {
		call_once(bed.connection[0], BULK, 100);
		call_once(bed.connection[0], 100, BULK);
	}
	if (bed.connection[2])
		call_once(bed.connection[2], 50000, 50000);
}

/* --- up and down --- */

static int add_service(uint16_t id, unsigned flags)
{
	rxw_security *classes[] = {rxw_security_null(), internals_test_class()};
	struct rxw_service_options o = {.size = sizeof(o),
					.id = id,
					.name = "faults",
					.handler = serve,
					.flags = flags,
					.security = classes,
					.security_count = 2};
	rxw_service *service;
	int r = rxw_service_add(bed.server, &o, &service);

	scenario_sane("service_add", r);
	return r;
}

static void connect_to(unsigned i)
{
	rxw_security *test = internals_test_class();
	int r = rxw_connection_create(bed.client, (struct sockaddr *)&bed.address, bed.address_len,
				      i == 1 ? SHORT : WORKER, i == 2 ? test : NULL,
				      &bed.connection[i]);

	scenario_sane("connection_create", r);
	if (r)
		bed.connection[i] = NULL;
}

static bool up(void)
{
	memset(&bed, 0, sizeof(bed));
	if (scenario_engine(&bed.server_engine) || scenario_engine(&bed.client_engine) ||
	    scenario_endpoint(bed.server_engine, true, &bed.server) || add_service(WORKER, 0) ||
	    add_service(SHORT, RXW_SERVICE_INLINE))
		return false;
	bed.address_len = sizeof(bed.address);
	expect(!rxw_endpoint_address(bed.server, &bed.address, &bed.address_len), "no address");
	if (rxw_endpoint_start(bed.server) ||
	    scenario_endpoint(bed.client_engine, false, &bed.client))
		return false;
	for (unsigned i = 0; i < 3; i++)
		connect_to(i);
	return true;
}

static void down(void)
{
	for (unsigned i = 0; i < 3; i++)
		rxw_connection_release(bed.connection[i]);
	scenario_destroy(bed.client, bed.client_engine);
	scenario_destroy(bed.server, bed.server_engine);
}

/* New connections are served, whatever happened to the others. */
static void lives_on(bool whole)
{
	for (unsigned i = 0; whole && i < 3; i++) {
		int32_t code;

		rxw_connection_release(bed.connection[i]);
		connect_to(i);
		expect(bed.connection[i], "no connection afterwards");
		/* An inline handler must find a complete request. */
		code = call_once(bed.connection[i], i == 1 ? 1000 : 20000, i == 1 ? 5000 : 20000);
		expect(!code, "a call afterwards ends with %d (%s)", code, rxw_code_text(code));
	}
}

const struct scenario scenario_calls = {
	.up = up, .work = all_calls, .lives_on = lives_on, .down = down};
