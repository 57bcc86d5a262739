/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writers without memory: the bytes that a function of the call accepted are in the stream, or the
 * call fails at both ends.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "scenario.h"
#include "tests/main.h"

#define SERVICE 100
#define BYTES	(600u << 10)
#define CHUNK	7000u
#define WRONG	4001

enum form {
	BY_QUEUE,
	BY_CALLBACK,
	IN_PLACE,
	FROM_FILE,
	FLUSHED, /* after each chunk: many short runs are queued */
	BLOCKING,
	BY_TRANSFER,
	FORMS
};
static const char *const names[FORMS] = {"by queue", "by callback", "in place",	    "from a file",
					 "flushed",  "blocking",    "by a transfer"};

static enum form form;
static struct {
	rxw_engine *engine;
	rxw_endpoint *server, *client;
	rxw_connection *connection;
	rxw_queue *queue;
	struct sockaddr_storage address;
	socklen_t address_len;
	uint8_t *data; /* the request */
	int file;      /* the same */
	_Atomic(uint64_t) received;
} bed;

/* Counts and compares the request's bytes. */
static int32_t serve(rxw_call *call, void *context)
{
	uint8_t data[CHUNK];
	uint64_t at = 0;
	ssize_t n;

	(void)context;
	while ((n = rxw_call_read_some(call, data, sizeof(data))) > 0) {
		if (at + (uint64_t)n > BYTES || memcmp(data, bed.data + at, (size_t)n))
			return WRONG;
		at += (uint64_t)n;
	}
	if (n < 0)
		return RXW_USER_ABORT;
	atomic_store(&bed.received, at);
	return 0;
}

/* --- the writer --- */

struct writer {
	rxw_call *call;
	uint64_t at;
	bool flushed, ended;
	int result;
	sem_t done; /* by callback: it has ended, with this code */
	int32_t code;
};

static ssize_t put_in_place(struct writer *w, size_t want)
{
	struct iovec iov[8];
	unsigned count = 8;
	ssize_t n = rxw_call_reserve(w->call, want, iov, &count);
	size_t at = 0;
	int r;

	if (n < 0)
		return n;
	for (unsigned i = 0; i < count; at += iov[i++].iov_len)
		memcpy(iov[i].iov_base, bed.data + w->at + at, iov[i].iov_len);
	r = rxw_call_commit(w->call, (size_t)n);
	return r ? r : n;
}

static ssize_t put(struct writer *w)
{
	size_t want = BYTES - w->at < CHUNK ? (size_t)(BYTES - w->at) : CHUNK;

	switch (form) {
	case IN_PLACE:
		return put_in_place(w, want);
	case FROM_FILE:
		return rxw_call_sendfile(w->call, bed.file, (off_t)w->at, BYTES - w->at);
	default:
		return rxw_call_write(w->call, bed.data + w->at, want);
	}
}

/* 0: all is written and ended; else the result of the function that failed. */
static int step(struct writer *w)
{
	int r = 0;

	while (w->at < BYTES) {
		ssize_t n = form == FLUSHED && !w->flushed ? 0 : put(w);

		if (n < 0)
			return (int)n;
		w->at += (uint64_t)n;
		w->flushed = false;
		if (form == FLUSHED)
			r = rxw_call_flush(w->call);
		if (r)
			return r;
		w->flushed = true;
	}
	if (!w->ended)
		r = rxw_call_send_end(w->call);
	w->ended = !r;
	return r;
}

/* A result that means that nothing was accepted and the caller may try again. */
static bool again(int r)
{
	return r == -RXW_EAGAIN || r == -RXW_ENOMEM;
}

static void on_event(rxw_call *call, unsigned events, void *arg)
{
	struct writer *w = arg;

	w->call = call;
	if (!w->ended && !w->result) {
		w->result = step(w);
		if (again(w->result))
			w->result = 0;
	}
	if (!w->result && !(events & RXW_EVENT_DONE))
		return;
	w->code = rxw_call_end(call, again(w->result) ? RXW_USER_ABORT : 0, NULL);
	sem_post(&w->done);
}

static int32_t write_by_callback(void)
{
	struct writer w = {.flushed = true};
	struct rxw_call_options options = {.size = sizeof(options), .flags = RXW_CALL_NONBLOCK};
	rxw_call *call;
	int r;

	sem_init(&w.done, 0, 0);
	/* Set last, because the callback's thread is the only one that writes. */
	r = rxw_call_begin(bed.connection, &options, &call);
	scenario_sane("begin", r);
	if (r)
		return r;
	rxw_call_set_callback(call, on_event, &w);
	while (sem_wait(&w.done))
		;
	return w.code;
}

static void on_transfer(rxw_call *call, int result, uint64_t moved, void *arg)
{
	struct writer *w = arg;

	expect(result || moved == BYTES, "a transfer ended after %llu bytes",
	       (unsigned long long)moved);
	scenario_sane("transfer", result);
	w->result = result;
	w->at = moved;
	if (!result)
		result = rxw_call_set_callback(call, on_event, w);
	if (!result)
		return;
	w->code = rxw_call_end(call, RXW_USER_ABORT, NULL);
	sem_post(&w->done);
}

static int32_t write_by_transfer(void)
{
	struct writer w = {.flushed = true};
	struct rxw_call_options options = {.size = sizeof(options), .flags = RXW_CALL_NONBLOCK};
	rxw_call *call;
	int r;

	sem_init(&w.done, 0, 0);
	r = rxw_call_begin(bed.connection, &options, &call);
	scenario_sane("begin", r);
	if (r)
		return r;
	r = rxw_file_send(call, bed.file, 0, BYTES, on_transfer, &w);
	scenario_sane("file_send", r);
	if (r)
		return rxw_call_end(call, RXW_USER_ABORT, NULL);
	while (sem_wait(&w.done))
		;
	return w.code;
}

static int32_t write_here(void)
{
	struct rxw_call_options options = {.size = sizeof(options)};
	struct writer w = {.flushed = true};
	struct rxw_queue_event event;
	int r;

	if (form != BLOCKING) {
		options.flags = RXW_CALL_NONBLOCK;
		options.queue = bed.queue;
	}
	r = rxw_call_begin(bed.connection, &options, &w.call);
	scenario_sane("begin", r);
	if (r)
		return r;
	while (again(r = step(&w)) && form != BLOCKING) {
		expect(!(rxw_call_events(w.call) & RXW_EVENT_DONE) || rxw_call_error(w.call, NULL),
		       "the reply arrived before the end of the request");
		if (!rxw_call_events(w.call))
			scenario_sane("next", rxw_queue_next(bed.queue, &event, 1, -1));
	}
	scenario_sane("write", r);
	while (!r && form != BLOCKING && !(rxw_call_events(w.call) & RXW_EVENT_DONE))
		scenario_sane("next", rxw_queue_next(bed.queue, &event, 1, -1));
	return rxw_call_end(w.call, again(r) ? RXW_USER_ABORT : 0, NULL);
}

static int32_t write_all(void)
{
	switch (form) {
	case BY_CALLBACK:
		return write_by_callback();
	case BY_TRANSFER:
		return write_by_transfer();
	default:
		return write_here();
	}
}

static void work(void)
{
	int32_t code;

	atomic_store(&bed.received, 0);
	code = write_all();
	expect(code || atomic_load(&bed.received) == BYTES,
	       "%s: the call succeeded, but %llu of %u bytes arrived", names[form],
	       (unsigned long long)atomic_load(&bed.received), BYTES);
	expect(code != WRONG, "%s: wrong bytes arrived", names[form]);
}

/* --- up and down; nothing fails there --- */

static bool up(void)
{
	struct rxw_service_options o = {
		.size = sizeof(o), .id = SERVICE, .name = "writes", .handler = serve};
	int r;

	bed.address_len = sizeof(bed.address);
	r = scenario_engine(&bed.engine);
	r = r ? r : rxw_queue_create(bed.engine, NULL, &bed.queue);
	r = r ? r : scenario_endpoint(bed.engine, true, &bed.server);
	r = r ? r : rxw_service_add(bed.server, &o, NULL);
	r = r ? r : rxw_endpoint_address(bed.server, &bed.address, &bed.address_len);
	r = r ? r : rxw_endpoint_start(bed.server);
	r = r ? r : scenario_endpoint(bed.engine, false, &bed.client);
	r = r ? r
	      : rxw_connection_create(bed.client, (struct sockaddr *)&bed.address, bed.address_len,
				      SERVICE, NULL, &bed.connection);
	expect(!r, "setting up: %s", rxw_strerror(r));
	return true;
}

static void lives_on(bool whole)
{
	int32_t code;

	(void)whole;
	atomic_store(&bed.received, 0);
	code = write_all();
	expect(!code && atomic_load(&bed.received) == BYTES, "%s: afterwards %d, %llu bytes",
	       names[form], code, (unsigned long long)atomic_load(&bed.received));
}

static void down(void)
{
	int r;

	rxw_connection_release(bed.connection);
	r = rxw_endpoint_destroy(bed.client);
	expect(!r, "cannot destroy the client: %s", rxw_strerror(r));
	r = rxw_queue_destroy(bed.queue);
	expect(!r, "cannot destroy the queue: %s", rxw_strerror(r));
	scenario_destroy(bed.server, bed.engine);
}

static const struct scenario writes = {
	.calm_up = true, .up = up, .work = work, .lives_on = lives_on, .down = down};

static void make_data(void)
{
	bed.data = malloc(BYTES);
	ck_assert_ptr_nonnull(bed.data);
	for (uint32_t i = 0; i < BYTES; i++)
		bed.data[i] = (uint8_t)(i * 31 + i / 251 + i / 65537);
	bed.file = memfd_create("writes", MFD_CLOEXEC);
	ck_assert_int_ge(bed.file, 0);
	ck_assert_int_eq(write(bed.file, bed.data, BYTES), BYTES);
}

static void sweep(uint64_t many, unsigned step)
{
	make_data();
	for (form = 0; form < FORMS; form++)
		scenario_sweep(&writes, SHIM_MEMORY, ENOMEM, many, 1,
			       scenario_step(form == FLUSHED ? step : 3 * step));
	close(bed.file);
	free(bed.data);
}

/* What a transfer needs besides memory. */
START_TEST(a_transfer)
{
	make_data();
	form = BY_TRANSFER;
	scenario_sweep(&writes, SHIM_THREAD, EAGAIN, UINT64_MAX, 1, 1);
	scenario_sweep(&writes, SHIM_THREAD, EAGAIN, 1, 1, 1);
	scenario_sweep(&writes, SHIM_OPEN, EMFILE, 1, 1, 1);
	scenario_sweep(&writes, SHIM_STAT, EIO, 1, 1, 1);
	scenario_sweep(&writes, SHIM_FILE, EIO, 1, 1, 1);
	scenario_sweep(&writes, SHIM_FILE, EIO, UINT64_MAX, 1, scenario_step(3));
	scenario_sweep(&writes, SHIM_FILE, EOPNOTSUPP, 1, 1, scenario_step(3));
	scenario_sweep(&writes, SHIM_FILE, EINTR, 3, 1, scenario_step(3));
	close(bed.file);
	free(bed.data);
}
END_TEST

START_TEST(one)
{
	sweep(1, 2);
}
END_TEST

START_TEST(several_in_sequence)
{
	sweep(20, 5);
}
END_TEST

/* For a while: a non-blocking writer is notified when a new attempt is worthwhile. */
START_TEST(all_for_a_while)
{
	sweep(UINT64_MAX, 7);
}
END_TEST

TEST_MAIN_WITHIN(280, "faults: writes", a_transfer, one, several_in_sequence, all_for_a_while)
