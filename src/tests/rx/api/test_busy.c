/* SPDX-License-Identifier: BSD-2-Clause */
/* Services that change while they exist; calls that are refused with a code. */
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "harness.h"
#include "streams.h"
#include "tests/main.h"

#define SERVICE 300
#define OTHER	301
#define BUSY	110
#define MANY	12

static struct h_bed bed;

static rxw_service *offer(struct rxw_service_options o)
{
	rxw_service *service;

	o.size = sizeof(o);
	if (!o.id)
		o.id = SERVICE;
	if (!o.queue) {
		o.handler = h_serve;
		o.context = &bed;
	}
	o.security = bed.offered;
	o.security_count = 4;
	ck_assert_int_eq(rxw_service_add(bed.server, &o, &service), 0);
	return service;
}

/* A complete request that waits at the gate. */
static rxw_call *begin_on(rxw_connection *c)
{
	rxw_call *call = h_begin(c, &(struct h_ask){.op = H_WAIT});

	ck_assert_int_eq(rxw_call_send_end(call), 0);
	return call;
}

static bool calls_wait(void *arg)
{
	return counter_of(bed.server, "calls_waiting") >= *(unsigned *)arg;
}

static bool ended(void *arg)
{
	return rxw_call_events(arg) & RXW_EVENT_DONE;
}

/* `count` calls that have all arrived: `busy` of them were refused, the others are served. */
static void judge(rxw_call **call, unsigned count, unsigned busy)
{
	unsigned refused = 0;

	h_gate_open(&bed);
	for (unsigned i = 0; i < count; i++) {
		enum rxw_origin origin;
		rxw_code code = rxw_call_end(call[i], 0, &origin);

		ck_assert_msg(code == 0 || code == BUSY, "call %u: %d", i, code);
		ck_assert(code == 0 || origin == RXW_ORIGIN_PEER);
		refused += code == BUSY;
	}
	ck_assert_uint_eq(refused, busy);
	ck_assert_uint_eq(counter_of(bed.server, "packets.sent.busy"), 0);
}

static rxw_connection *own(uint16_t id)
{
	return h_connect(&bed, id);
}

/*
 * One worker and two places: of twelve calls, one after the other, three are served. The others end
 * at once, while the gate is still closed, and their connections remain usable.
 */
static void three_of_many(void)
{
	rxw_connection *c[MANY];
	rxw_call *call[MANY];
	unsigned two = 2;

	for (unsigned i = 0; i < MANY; i++) {
		c[i] = own(SERVICE);
		call[i] = begin_on(c[i]);
		if (i == 0)
			h_gate_arrived(&bed, 1);
		else if (i == 2)
			h_wait_for(calls_wait, &two, "two calls wait");
		else if (i > 2)
			h_wait_for(ended, call[i], "the call to end");
	}
	ck_assert_uint_ge(counter_of(bed.server, "calls_refused"), MANY - 3);
	judge(call, MANY, MANY - 3);
	for (unsigned i = 0; i < MANY; i++) {
		ck_assert_int_eq(rxw_connection_error(c[i], NULL), 0);
		h_good_call(&bed, c[i], &(struct h_ask){.op = H_PING});
		rxw_connection_release(c[i]);
	}
}

START_TEST(busy_by_limit_of_service)
{
	h_open(&bed, NULL);
	offer((struct rxw_service_options){.workers_max = 1, .waiting_max = 2, .busy_code = BUSY});
	three_of_many();
	h_close(&bed);
}
END_TEST

/* The same by the limits of the endpoint: the code replaces BUSY. Another service is unaffected. */
START_TEST(busy_by_limit_of_endpoint)
{
	h_open(&bed, &(struct h_options){
			     .server = "workers-max=1 queue=2 queue-burst-ms=0 reserved-peers=0"});
	offer((struct rxw_service_options){.busy_code = BUSY});
	three_of_many();
	h_close(&bed);
}
END_TEST

/* A limit without workers of its own: the endpoint's are busy. */
START_TEST(busy_without_workers_max)
{
	h_open(&bed, &(struct h_options){.server = "workers-max=1 reserved-peers=0"});
	offer((struct rxw_service_options){.waiting_max = 2, .busy_code = BUSY});
	three_of_many();
	h_close(&bed);
}
END_TEST

/* Calls that free workers take do not count, and another service has room. */
START_TEST(free_workers_do_not_refuse)
{
	rxw_connection *c[8], *other;
	rxw_call *call[8];

	h_open(&bed, &(struct h_options){.server = "workers-max=16 reserved-peers=0"});
	offer((struct rxw_service_options){.waiting_max = 1, .busy_code = BUSY});
	for (unsigned i = 0; i < 8; i++) {
		c[i] = own(SERVICE);
		call[i] = begin_on(c[i]);
	}
	h_gate_arrived(&bed, 8);
	other = own(H_SERVICE);
	h_good_call(&bed, other, &(struct h_ask){.op = H_PING});
	judge(call, 8, 0);
	for (unsigned i = 0; i < 8; i++)
		rxw_connection_release(c[i]);
	rxw_connection_release(other);
	h_close(&bed);
}
END_TEST

/* A held service: calls wait, as many as it lets, until it starts. Both settings come later. */
START_TEST(busy_while_held)
{
	rxw_connection *c[MANY];
	rxw_call *call[MANY];
	rxw_service *service;
	unsigned two = 2;

	h_open(&bed, NULL);
	service = offer((struct rxw_service_options){.flags = RXW_SERVICE_HELD});
	ck_assert_int_eq(rxw_service_set(service, RXW_SET_WAITING_MAX, 2), 0);
	ck_assert_int_eq(rxw_service_set(service, RXW_SET_BUSY_CODE, BUSY), 0);
	for (unsigned i = 0; i < MANY; i++) {
		c[i] = own(SERVICE);
		call[i] = begin_on(c[i]);
		if (i == 1)
			h_wait_for(calls_wait, &two, "two calls wait");
		else if (i > 1)
			h_wait_for(ended, call[i], "the call to end");
	}
	ck_assert_int_eq(rxw_service_start(service), 0);
	h_gate_arrived(&bed, 2);
	judge(call, MANY, MANY - 2);
	for (unsigned i = 0; i < MANY; i++)
		rxw_connection_release(c[i]);
	h_close(&bed);
}
END_TEST

/*
 * Clients that must authenticate and be validated first: the calls have no place until then, and
 * are refused after it.
 */
START_TEST(busy_after_validation)
{
	h_open(&bed, &(struct h_options){.security = "rxkad-crypt"});
	offer((struct rxw_service_options){
		.workers_max = 1, .waiting_max = 2, .busy_code = BUSY, .flags = RXW_SERVICE_REACH});
	three_of_many();
	h_close(&bed);
}
END_TEST

/* A queue that has as many calls of this client as it may: eight of nine. */
START_TEST(busy_queue)
{
	struct rxw_queue_event event;
	rxw_connection *c[9];
	rxw_call *call[9], *taken[8];
	rxw_service *service;
	rxw_queue *queue;

	h_open(&bed, NULL);
	ck_assert_int_eq(rxw_queue_create(bed.server_engine, NULL, &queue), 0);
	service = offer(
		(struct rxw_service_options){.queue = queue, .deferred_max = 9, .busy_code = BUSY});
	for (unsigned i = 0; i < 9; i++) {
		c[i] = own(SERVICE);
		call[i] = begin_on(c[i]);
		if (i == 8)
			break;
		ck_assert_int_eq(rxw_queue_next(queue, &event, 1, 60000), 1);
		ck_assert_uint_ne(event.events & RXW_EVENT_CALL, 0);
		taken[i] = event.call;
	}
	ck_assert_int_eq(rxw_call_end(call[8], 0, NULL), BUSY);
	ck_assert_uint_eq(counter_of(bed.server, "packets.sent.busy"), 0);
	for (unsigned i = 0; i < 8; i++) {
		rxw_call_end(taken[i], 0, NULL);
		ck_assert_int_eq(rxw_call_end(call[i], 0, NULL), 0);
	}
	for (unsigned i = 0; i < 9; i++)
		rxw_connection_release(c[i]);
	ck_assert_int_eq(rxw_service_remove(service, 60000), 0);
	ck_assert_int_eq(rxw_queue_destroy(queue), 0);
	h_close(&bed);
}
END_TEST

/* More workers at once: calls that wait get them. */
START_TEST(workers_max_changes)
{
	rxw_connection *c[4];
	rxw_call *call[4];
	rxw_service *service;

	h_open(&bed, NULL);
	service = offer((struct rxw_service_options){.workers_max = 1});
	for (unsigned i = 0; i < 4; i++) {
		c[i] = own(SERVICE);
		call[i] = begin_on(c[i]);
	}
	h_gate_arrived(&bed, 1);
	for (unsigned i = 2; i <= 3; i++) {
		ck_assert_int_eq(rxw_service_set(service, RXW_SET_WORKERS_MAX, i), 0);
		h_gate_arrived(&bed, i);
		pthread_mutex_lock(&bed.gate.lock);
		ck_assert_uint_eq(bed.gate.arrived, i);
		pthread_mutex_unlock(&bed.gate.lock);
	}
	ck_assert_int_eq(rxw_service_set(service, RXW_SET_WORKERS_MAX, 0), 0);
	h_gate_arrived(&bed, 4);
	judge(call, 4, 0);
	for (unsigned i = 0; i < 4; i++)
		rxw_connection_release(c[i]);
	h_close(&bed);
}
END_TEST

static const struct h_ask sink = {.op = H_SINK, .bytes = 1000};

/* A request whose data is missing. */
static rxw_call *begin_without_data(rxw_connection *c)
{
	rxw_call *call = h_begin(c, &sink);

	ck_assert_int_eq(rxw_call_flush(call), 0);
	return call;
}

/* The call's handler waits for data until the limit. */
static void ends_idle(rxw_call *call)
{
	h_wait_for(ended, call, "the call without data to end");
	ck_assert_int_eq(rxw_call_end(call, 0, NULL), RXW_CALL_TIMEOUT);
}

static void ends_well(rxw_call *call)
{
	ck_assert_int_eq(h_put(&bed, call, &sink), 0);
	ck_assert_int_eq(rxw_call_end(call, 0, NULL), 0);
}

/* A call without data ends by the endpoint's limit, unless its service has none. */
START_TEST(idle_never)
{
	rxw_connection *c[3];
	rxw_call *call[3];
	rxw_service *service;

	h_open(&bed, &(struct h_options){.server = "server-idle-ms=100"});
	offer((struct rxw_service_options){.idle_ms = RXW_TIMEOUT_OFF});
	service = offer((struct rxw_service_options){.id = OTHER});
	c[0] = own(SERVICE);
	call[0] = begin_without_data(c[0]);
	c[1] = own(OTHER);
	ends_idle(begin_without_data(c[1]));
	/* The same service, changed: it counts for new connections. */
	ck_assert_int_eq(rxw_service_set(service, RXW_SET_IDLE_MS, RXW_TIMEOUT_OFF), 0);
	c[2] = own(OTHER);
	call[2] = begin_without_data(c[2]);
	ends_idle(begin_without_data(c[1]));
	ends_well(call[0]);
	ends_well(call[2]);
	for (unsigned i = 0; i < 3; i++)
		rxw_connection_release(c[i]);
	h_close(&bed);
}
END_TEST

static bool handler_gone(void *arg)
{
	(void)arg;
	return counter_of(bed.server, "calls_timed_out") > 0;
}

/* A client that says nothing more is dead after the service's time, not the endpoint's hour. */
START_TEST(dead_by_service)
{
	uint8_t head[H_ASK_SIZE];
	struct h_raw request;
	rxw_service *service;
	int fd;

	h_open(&bed, &(struct h_options){.server = "dead-ms=3600000 server-idle-ms=off",
					 .security = "null"});
	service = offer((struct rxw_service_options){.dead_ms = 3600000});
	ck_assert_int_eq(rxw_service_set(service, RXW_SET_DEAD_MS, 1000), 0);
	fd = h_raw_socket(&bed);
	request = h_raw_request(head, H_WAIT, 0x12345670);
	request.service = SERVICE;
	h_raw_send(fd, &request);
	h_gate_arrived(&bed, 1);
	h_wait_for(handler_gone, NULL, "the silent client to be dead");
	close(fd);
	h_close(&bed);
}
END_TEST

/* Address validation is asked of connections that begin later. */
START_TEST(reach_changes)
{
	uint8_t head[H_ASK_SIZE], packet[2048];
	struct h_raw request;
	rxw_service *service;
	int fd;

	h_open(&bed, &(struct h_options){.security = "null"});
	service = offer((struct rxw_service_options){.id = SERVICE});
	fd = h_raw_socket(&bed);
	request = h_raw_request(head, H_PING, 0x12345670);
	request.service = SERVICE;
	h_raw_send(fd, &request);
	ck_assert_int_ge(h_raw_receive(fd, 1, packet), 0);
	ck_assert_int_eq(rxw_service_set(service, RXW_SET_REACH, 1), 0);
	close(fd);
	fd = h_raw_socket(&bed);
	request.cid += 4;
	h_raw_send(fd, &request);
	/* A PING, and no reply before its answer. */
	do
		ck_assert_int_ge(h_raw_receive(fd, 2, packet), 0);
	while (packet[28 + 16] != 6);
	ck_assert_uint_eq(counter_of(bed.server, "calls_started"), 1);
	close(fd);
	h_close(&bed);
}
END_TEST

START_TEST(wrong_settings)
{
	struct rxw_service_options o = {
		.size = sizeof(o), .id = 7, .handler = h_serve, .dead_ms = 999};
	rxw_service *service;

	h_open(&bed, NULL);
	ck_assert_int_eq(rxw_service_add(bed.server, &o, NULL), -RXW_EINVAL);
	o.dead_ms = RXW_TIMEOUT_OFF;
	ck_assert_int_eq(rxw_service_add(bed.server, &o, NULL), -RXW_EINVAL);
	service = offer((struct rxw_service_options){.id = SERVICE});
	ck_assert_int_eq(rxw_service_set(service, RXW_SET_DEAD_MS, 999), -RXW_EVALUE);
	ck_assert_int_eq(rxw_service_set(service, RXW_SET_DEAD_MS, RXW_TIMEOUT_OFF), -RXW_EVALUE);
	ck_assert_int_eq(rxw_service_set(service, RXW_SET_DEAD_MS, 0), 0);
	ck_assert_int_eq(rxw_service_set(service, RXW_SET_IDLE_MS, -1), -RXW_EVALUE);
	ck_assert_int_eq(rxw_service_set(service, RXW_SET_WORKERS_MAX, 1ll << 32), -RXW_EVALUE);
	ck_assert_int_eq(rxw_service_set(service, RXW_SET_BUSY_CODE, INT32_MIN), 0);
	ck_assert_int_eq(rxw_service_set(service, RXW_SET_BUSY_CODE, 1ll << 31), -RXW_EVALUE);
	ck_assert_int_eq(rxw_service_set(service, (enum rxw_service_setting)0, 1), -RXW_EINVAL);
	ck_assert_int_eq(rxw_service_set(service, (enum rxw_service_setting)99, 1), -RXW_EINVAL);
	h_close(&bed);
}
END_TEST

/* ---- refusing without stopping ---- */

/*
 * New calls get the code, on connections that the server knows and on others. A call that runs and
 * one that waits are served, and the endpoint calls others. Then calls are accepted again.
 */
START_TEST(refusing)
{
	static const rxw_code codes[] = {RXW_RESTARTING, BUSY, -1, 1700000000};
	rxw_connection *known, *fresh, *back;
	struct sockaddr_storage address;
	socklen_t length = sizeof(address);
	rxw_call *running, *waiting;
	rxw_endpoint *second;
	unsigned one = 1;

	h_open(&bed, &(struct h_options){.server = "workers-max=1 reserved-peers=0"});
	known = own(H_SERVICE);
	running = begin_on(known);
	h_gate_arrived(&bed, 1);
	waiting = begin_on(known);
	h_wait_for(calls_wait, &one, "a call waits");
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
		ck_assert_int_eq(rxw_endpoint_refuse(bed.server, codes[i]), 0);
		ck_assert_int_eq(h_call(&bed, known, &(struct h_ask){.op = H_PING}), codes[i]);
		ck_assert_int_eq(rxw_connection_error(known, NULL), 0);
		fresh = own(H_SERVICE);
		ck_assert_int_eq(h_call(&bed, fresh, &(struct h_ask){.op = H_PING}), codes[i]);
		ck_assert_int_eq(rxw_connection_error(fresh, NULL), 0);
		rxw_connection_release(fresh);
	}
	/* The server's own call, to the other endpoint of this test. */
	second = h_client(&bed, NULL);
	ck_assert_int_eq(rxw_endpoint_address(second, &address, &length), 0);
	ck_assert_int_eq(rxw_connection_create(bed.server, (struct sockaddr *)&address, length, 9,
					       NULL, &back),
			 0);
	ck_assert_int_eq(h_call(&bed, back, &(struct h_ask){.op = H_PING}), RXW_INVALID_OPERATION);
	rxw_connection_release(back);
	ck_assert_int_eq(rxw_endpoint_destroy(second), 0);
	h_gate_open(&bed);
	ck_assert_int_eq(rxw_call_end(running, 0, NULL), 0);
	ck_assert_int_eq(rxw_call_end(waiting, 0, NULL), 0);
	ck_assert_int_eq(rxw_endpoint_refuse(bed.server, 0), 0);
	h_good_call(&bed, known, &(struct h_ask){.op = H_PING});
	rxw_connection_release(known);
	ck_assert_int_eq(rxw_endpoint_refuse(bed.server, BUSY), 0);
	ck_assert_int_eq(rxw_endpoint_stop(bed.server, 10000), 0);
	ck_assert_int_eq(rxw_endpoint_refuse(bed.server, BUSY), -RXW_ESTATE);
	h_close(&bed);
}
END_TEST

/* ---- changes under load ---- */

static _Atomic(bool) enough;

static void *caller(void *arg)
{
	rxw_connection *c = own(SERVICE);
	unsigned *good = arg;

	while (!enough) {
		rxw_code code = h_call(&bed, c, &(struct h_ask){.op = H_PING});

		ck_assert_msg(!code || code == BUSY || code == RXW_RESTARTING, "code %d", code);
		*good += code == 0;
	}
	rxw_connection_release(c);
	return NULL;
}

/* Every setting changes while calls come: each call is served, or refused with a code given. */
START_TEST(changes_under_load)
{
	unsigned rounds = h_small() ? 100 : 2000, good[6] = {0};
	rxw_service *service;
	pthread_t thread[6];

	h_open(&bed, NULL);
	service = offer((struct rxw_service_options){.busy_code = BUSY});
	for (unsigned i = 0; i < 6; i++)
		ck_assert_int_eq(pthread_create(&thread[i], NULL, caller, &good[i]), 0);
	for (unsigned i = 0; i < rounds; i++) {
		ck_assert_int_eq(rxw_service_set(service, RXW_SET_WORKERS_MAX, i % 4), 0);
		ck_assert_int_eq(rxw_service_set(service, RXW_SET_WAITING_MAX, i % 3), 0);
		ck_assert_int_eq(rxw_service_set(service, RXW_SET_REACH, i % 2), 0);
		ck_assert_int_eq(rxw_service_set(service, RXW_SET_IDLE_MS, i % 2 * 60000), 0);
		ck_assert_int_eq(rxw_service_set(service, RXW_SET_DEAD_MS, i % 2 * 60000), 0);
		ck_assert_int_eq(rxw_endpoint_refuse(bed.server, i % 8 ? 0 : RXW_RESTARTING), 0);
		usleep(100);
	}
	ck_assert_int_eq(rxw_endpoint_refuse(bed.server, 0), 0);
	enough = true;
	for (unsigned i = 0; i < 6; i++) {
		pthread_join(thread[i], NULL);
		ck_assert_uint_gt(good[i], 0);
	}
	h_close(&bed);
}
END_TEST

TEST_MAIN_WITHIN(60, "busy and changed services", busy_by_limit_of_service,
		 busy_by_limit_of_endpoint, busy_without_workers_max, free_workers_do_not_refuse,
		 busy_while_held, busy_after_validation, busy_queue, workers_max_changes,
		 idle_never, dead_by_service, reach_changes, wrong_settings, refusing,
		 changes_under_load)
