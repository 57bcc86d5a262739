/* SPDX-License-Identifier: BSD-2-Clause */
/* Children of fork(): they are refused, do no harm to the parent, and can have engines of their own. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rxwire/afs.h>
#include <rxwire/connpool.h>
#include <rxwire/observe.h>
#include <rxwire/rpc.h>
#include <rxwire/stub.h>
#include <rxwire/trace.h>

#include "harness.h"

/* The sanitizer of threads ends a child that starts a thread. */
#ifdef __SANITIZE_THREAD__
#define CHILDREN_HAVE_THREADS false
#else
#define CHILDREN_HAVE_THREADS true
#endif

#define FORKER	   130 /* its handler forks */
#define CHILD_TIME 60	/* seconds; a child that hangs is killed by SIGALRM */

static struct h_bed bed;

static void set_up(void)
{
	h_open(&bed, NULL);
}

static void tear_down(void)
{
	h_close(&bed);
}

/* -- children -------------------------------------------------------------------------------- */

/* In a child: libcheck's assertions would report to the wrong process. */
#define REQUIRE(condition) \
	do { \
		if (!(condition)) { \
			fprintf(stderr, "child: line %d: %s\n", __LINE__, #condition); \
			_exit(1); \
		} \
	} while (0)

static void in_child(void (*run)(void *arg), void *arg)
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		alarm(CHILD_TIME);
		run(arg);
		_exit(0);
	}
	ck_assert_int_gt(pid, 0);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_msg(status == 0, "the child ended with status %#x", (unsigned)status);
}

/* A call on the connection whose reply is the request. Returns its code. */
static int32_t echo(rxw_connection *c, const char *word, char reply[64])
{
	struct rxw_call_options options = {.size = sizeof(options), .deadline_ms = 30000};
	rxw_call *call;
	ssize_t n;

	if (rxw_call_begin(c, &options, &call))
		return -999;
	h_write_ask(call, &(struct h_ask){.op = H_ECHO});
	n = rxw_call_write(call, word, strlen(word));
	if (n == (ssize_t)strlen(word))
		n = rxw_call_read(call, reply, 63);
	reply[n > 0 ? n : 0] = 0;
	return rxw_call_end(call, 0, NULL);
}

static void good_echoes(rxw_connection *c, unsigned count)
{
	char word[32], reply[64];

	for (unsigned i = 0; i < count; i++) {
		snprintf(word, sizeof(word), "parent %u", i);
		ck_assert_int_eq(echo(c, word, reply), 0);
		ck_assert_str_eq(reply, word);
	}
}

struct objects {
	rxw_connection *connection;
	rxw_call *call; /* its request is written in part */
	rxw_connpool *pool;
	rxw_queue *queue;
	rxw_service *service;
	struct rxw_rpc_multi *multi, *pooled;
};

static int32_t never(rxw_call *call, void *context)
{
	(void)call;
	(void)context;
	return 0;
}

static void make_objects(struct objects *o)
{
	struct rxw_service_options service = {
		.size = sizeof(service), .id = 131, .name = "x", .handler = never};

	o->connection = h_connect(&bed, H_SERVICE);
	good_echoes(o->connection, 1);
	ck_assert_int_eq(rxw_call_begin(o->connection, NULL, &o->call), 0);
	h_write_ask(o->call, &(struct h_ask){.op = H_ECHO});
	ck_assert_int_eq(rxw_connpool_create(bed.client, (struct sockaddr *)&bed.address,
					     bed.address_len, H_SERVICE, bed.security, 2, &o->pool),
			 0);
	ck_assert_int_eq(rxw_queue_create(bed.client_engine, NULL, &o->queue), 0);
	ck_assert_int_ge(rxw_queue_fd(o->queue), 0);
	ck_assert_int_eq(rxw_service_add(bed.client, &service, &o->service), 0);
	o->multi = rxw_rpc_multi_create(&o->connection, 1, NULL);
	o->pooled = rxw_rpc_multi_create_pool(&o->pool, 1, NULL);
	ck_assert_ptr_nonnull(o->multi);
	ck_assert_ptr_nonnull(o->pooled);
}

static void end_objects(struct objects *o)
{
	rxw_rpc_multi_destroy(o->multi);
	rxw_rpc_multi_destroy(o->pooled);
	rxw_connpool_release(o->pool);
	rxw_connection_release(o->connection);
	ck_assert_int_eq(rxw_queue_destroy(o->queue), 0);
}

/* -- every function -------------------------------------------------------------------------- */

static const struct rxw_rpc_interface none_such = {.name = "none"};

static void file_ended(rxw_call *call, int result, uint64_t moved, void *arg)
{
	(void)call;
	(void)result;
	(void)moved;
	(void)arg;
	REQUIRE(false); /* it was refused */
}

static void refuse_calls(const struct objects *o)
{
	struct rxw_call_statistics stats = {.size = sizeof(stats)};
	struct rxw_identity identity = {.size = sizeof(identity)};
	struct sockaddr_storage address;
	socklen_t length = sizeof(address);
	rxw_call *call = o->call, *none;
	struct iovec iov[1];
	unsigned one = 1;
	rxw_code code;
	char b[8];

	REQUIRE(rxw_call_begin(o->connection, NULL, &none) == -RXW_ESTATE);
	REQUIRE(rxw_connpool_begin(o->pool, NULL, &none) == -RXW_ESTATE);
	REQUIRE(rxw_rpc_begin(o->connection, NULL, &none) != 0);
	REQUIRE(rxw_rpc_begin_pool(o->pool, NULL, &none) != 0);
	REQUIRE(rxw_call_write(call, "x", 1) == -RXW_ESTATE);
	REQUIRE(rxw_call_reserve(call, 1, iov, &one) == -RXW_ESTATE);
	REQUIRE(rxw_call_commit(call, 0) == -RXW_ESTATE);
	REQUIRE(rxw_call_sendfile(call, 0, 0, 1) == -RXW_ESTATE);
	REQUIRE(rxw_file_send(call, 0, 0, 1, file_ended, NULL) == -RXW_ESTATE);
	REQUIRE(rxw_file_receive(call, 0, 0, 1, file_ended, NULL) == -RXW_ESTATE);
	REQUIRE(rxw_call_flush(call) == -RXW_ESTATE);
	REQUIRE(rxw_call_send_end(call) == -RXW_ESTATE);
	REQUIRE(rxw_call_read(call, b, 1) == -RXW_ESTATE);
	REQUIRE(rxw_call_read_some(call, b, 1) == -RXW_ESTATE);
	one = 1;
	REQUIRE(rxw_call_readv(call, 1, iov, &one) == -RXW_ESTATE);
	REQUIRE(rxw_call_set_callback(call, NULL, NULL) == -RXW_ESTATE);
	REQUIRE(rxw_call_set_queue(call, o->queue, NULL) == -RXW_ESTATE);
	REQUIRE(rxw_call_set_events(call, RXW_EVENT_READ) == -RXW_ESTATE);
	REQUIRE(rxw_call_events(call) == 0);
	REQUIRE(rxw_call_stats(call, &stats) == -RXW_ESTATE);
	REQUIRE(rxw_call_identity(call, &identity) == -RXW_ESTATE);
	REQUIRE(rxw_call_peer(call, &address, &length) == -RXW_ESTATE);
	REQUIRE(rxw_call_local(call, &address, &length) == -RXW_ESTATE);
	REQUIRE(rxw_call_error(call, NULL) == RXW_INVALID_OPERATION);
	REQUIRE(rxw_call_packet_size(call) == 0);
	REQUIRE(rxw_call_peer_status(call) == 0);
	REQUIRE(rxw_rpc_answer(call, 0, &none_such, 0) == RXW_INVALID_OPERATION);
	REQUIRE(rxw_rpc_multi_next(o->multi, &one, &none, &code) == RXW_RPC_FAILED);
	REQUIRE(code != 0);
	REQUIRE(rxw_rpc_multi_next(o->multi, &one, &none, &code) == RXW_RPC_DONE);
	rxw_rpc_multi_destroy(o->multi);
	REQUIRE(rxw_rpc_multi_next(o->pooled, &one, &none, &code) == RXW_RPC_FAILED);
	REQUIRE(code != 0);
	rxw_rpc_multi_destroy(o->pooled);
	rxw_call_set_status(call, 1);
	rxw_call_abort(call, 4);
	REQUIRE(rxw_call_end(call, 4, NULL) == RXW_INVALID_OPERATION);
}

static void refuse_connections(const struct objects *o)
{
	struct rxw_identity identity = {.size = sizeof(identity)};
	struct sockaddr_storage address;
	socklen_t length = sizeof(address);
	rxw_connection *c = o->connection, *none;

	REQUIRE(rxw_connection_create(bed.client, (struct sockaddr *)&bed.address, bed.address_len,
				      H_SERVICE, NULL, &none) == -RXW_ESTATE);
	REQUIRE(rxw_connection_set_timeouts(c, 1000, 0, 0) == -RXW_ESTATE);
	REQUIRE(rxw_connection_set_nat_ping(c, 1) == -RXW_ESTATE);
	REQUIRE(rxw_connection_set_local(c, (struct sockaddr *)&bed.address, bed.address_len) ==
		-RXW_ESTATE);
	REQUIRE(rxw_connection_set_data(c, &bed, NULL) == -RXW_ESTATE);
	REQUIRE(rxw_connection_data(c) == NULL);
	REQUIRE(rxw_connection_identity(c, &identity) == -RXW_ESTATE);
	REQUIRE(rxw_connection_peer(c, &address, &length) == -RXW_ESTATE);
	REQUIRE(rxw_connection_error(c, NULL) == RXW_INVALID_OPERATION);
	REQUIRE(rxw_connection_close(c, 1) == -RXW_ESTATE);
	REQUIRE(rxw_connection_abort(c, 1) == -RXW_ESTATE);
	REQUIRE(rxw_connection_ref(c) == c);
	REQUIRE(rxw_connpool_abort(o->pool, 1) == -RXW_ESTATE);
	REQUIRE(rxw_connpool_set_timeouts(o->pool, 1000, 0, 0) == -RXW_ESTATE);
	REQUIRE(rxw_connpool_set_local(o->pool, (struct sockaddr *)&bed.address, bed.address_len,
				       0) == -RXW_ESTATE);
	rxw_connection_release(c);
	rxw_connpool_release(o->pool);
}

static void take_nothing(const struct rxw_queue_event *event)
{
	(void)event;
}

static int see_record(void *arg, const struct rxw_trace_record *record)
{
	(void)arg;
	(void)record;
	return 0;
}

static void see_call(void *arg, const struct rxw_call_view *view)
{
	(void)arg;
	(void)view;
}

static void refuse_endpoints(const struct objects *o)
{
	struct rxw_service_options service = {
		.size = sizeof(service), .id = 132, .name = "y", .handler = never};
	struct rxw_effective effective = {.size = sizeof(effective)};
	struct rxw_trace_counts counts = {.size = sizeof(counts)};
	struct rxw_durations durations = {.size = sizeof(durations)};
	struct rxw_queue_event event;
	rxw_endpoint *ep = bed.client, *none;
	rxw_connpool *pool;
	rxw_queue *queue;
	uint64_t value;
	char *text;

	REQUIRE(rxw_endpoint_create(bed.client_engine, NULL, &none) == -RXW_ESTATE);
	REQUIRE(rxw_queue_create(bed.client_engine, NULL, &queue) == -RXW_ESTATE);
	REQUIRE(rxw_connpool_create(ep, (struct sockaddr *)&bed.address, bed.address_len, H_SERVICE,
				    NULL, 2, &pool) == -RXW_ESTATE);
	REQUIRE(rxw_queue_next(o->queue, &event, 1, -1) == -RXW_ESTATE);
	REQUIRE(rxw_queue_run(o->queue, take_nothing, 1, -1) == -RXW_ESTATE);
	REQUIRE(rxw_queue_post(o->queue, NULL) == -RXW_ESTATE);
	REQUIRE(rxw_queue_fd(o->queue) == -RXW_ESTATE);
	REQUIRE(rxw_service_add(ep, &service, NULL) == -RXW_ESTATE);
	REQUIRE(rxw_service_start(o->service) == -RXW_ESTATE);
	REQUIRE(rxw_service_set(o->service, RXW_SET_REACH, 1) == -RXW_ESTATE);
	REQUIRE(rxw_service_remove(o->service, 0) == -RXW_ESTATE);
	REQUIRE(rxw_endpoint_set(ep, "idle", "9s") == -RXW_ESTATE);
	REQUIRE(rxw_endpoint_start(ep) == -RXW_ESTATE);
	REQUIRE(rxw_endpoint_refuse(ep, 1) == -RXW_ESTATE);
	REQUIRE(rxw_endpoint_effective(ep, &effective) == -RXW_ESTATE);
	REQUIRE(rxw_endpoint_counters(ep, &value, 1) == -RXW_ESTATE);
	REQUIRE(rxw_endpoint_counter(ep, "calls_started", &value) < 0);
	REQUIRE(rxw_endpoint_durations(ep, &durations) == -RXW_ESTATE);
	REQUIRE(rxw_endpoint_calls(ep, see_call, NULL) == -RXW_ESTATE);
	REQUIRE(rxw_metrics_text(&ep, 1, &text) == -RXW_ESTATE);
	REQUIRE(rxw_metrics_calls(&ep, 1, 1, &text) == -RXW_ESTATE);
	REQUIRE(rxw_trace_start(ep, NULL) == -RXW_ESTATE);
	REQUIRE(rxw_trace_stop(ep) == -RXW_ESTATE);
	REQUIRE(rxw_trace_read(ep, see_record, NULL) == -RXW_ESTATE);
	REQUIRE(rxw_trace_write(ep, 2) == -RXW_ESTATE);
	REQUIRE(rxw_trace_save(ep, "/nonexistent/x") == -RXW_ESTATE);
	REQUIRE(rxw_trace_count(ep, &counts) == -RXW_ESTATE);
	REQUIRE(rxw_endpoint_set_observer(ep, NULL) == -RXW_ESTATE);
	REQUIRE(rxw_endpoint_hand_over(bed.server, 0) == -RXW_ESTATE);
	REQUIRE(rxw_endpoint_stop(ep, 0) == -RXW_ESTATE);
}

/* Twice: the second time must do no harm either. */
static void destroy_all(const struct objects *o)
{
	int free_fd, fd;

	for (int i = 0; i < 2; i++) {
		REQUIRE(rxw_endpoint_destroy(bed.client) == 0);
		REQUIRE(rxw_endpoint_destroy(bed.server) == 0);
		if (o)
			REQUIRE(rxw_queue_destroy(o->queue) == 0);
		REQUIRE(rxw_engine_destroy(bed.client_engine) == 0);
		REQUIRE(rxw_engine_destroy(bed.server_engine) == 0);
		if (i)
			break;
		/* A number that was freed by the first round and is used again. */
		free_fd = dup(0);
		REQUIRE(free_fd >= 0);
	}
	fd = dup(free_fd);
	REQUIRE(fd >= 0);
}

static void refuse_everything(void *arg)
{
	refuse_endpoints(arg);
	refuse_connections(arg);
	refuse_calls(arg);
	destroy_all(arg);
}

START_TEST(children_are_refused)
{
	struct objects o;
	char reply[64];

	make_objects(&o);
	in_child(refuse_everything, &o);
	/* The parent's objects work on, and the call that was open goes on. */
	ck_assert_int_eq(rxw_call_write(o.call, "later", 5), 5);
	ck_assert_int_eq(rxw_call_read(o.call, reply, 5), 5);
	ck_assert_mem_eq(reply, "later", 5);
	ck_assert_int_eq(rxw_call_end(o.call, 0, NULL), 0);
	good_echoes(o.connection, 50);
	end_objects(&o);
}
END_TEST

/* -- engines of children --------------------------------------------------------------------- */

static void call_server(void)
{
	rxw_engine *engine;
	rxw_endpoint *client;
	rxw_connection *c;
	char reply[64];

	REQUIRE(rxw_engine_create(NULL, &engine) == 0);
	REQUIRE(rxw_endpoint_create(engine, NULL, &client) == 0);
	REQUIRE(rxw_connection_create(client, (struct sockaddr *)&bed.address, bed.address_len,
				      H_SERVICE, NULL, &c) == 0);
	for (int i = 0; i < 20; i++) {
		REQUIRE(echo(c, "child", reply) == 0);
		REQUIRE(!strcmp(reply, "child"));
	}
	rxw_connection_release(c);
	REQUIRE(rxw_endpoint_destroy(client) == 0);
	REQUIRE(rxw_engine_destroy(engine) == 0);
}

static void use_new_engine(void *arg)
{
	(void)arg;
	destroy_all(NULL);
	call_server();
}

START_TEST(children_have_engines_of_their_own)
{
	rxw_connection *c;

	if (h_index(&bed) || !CHILDREN_HAVE_THREADS)
		return; /* the child has no token */
	c = h_connect(&bed, H_SERVICE);
	in_child(use_new_engine, NULL);
	good_echoes(c, 20);
	rxw_connection_release(c);
}
END_TEST

/* What the child makes is refused in its child. */
static void be_parent(void *arg)
{
	rxw_engine *engine;
	rxw_endpoint *client, *none;
	int status;
	pid_t pid;

	(void)arg;
	REQUIRE(rxw_engine_create(NULL, &engine) == 0);
	REQUIRE(rxw_endpoint_create(engine, NULL, &client) == 0);
	pid = fork();
	REQUIRE(pid >= 0);
	if (!pid) {
		alarm(CHILD_TIME);
		REQUIRE(rxw_endpoint_create(engine, NULL, &none) == -RXW_ESTATE);
		REQUIRE(rxw_endpoint_stop(client, 0) == -RXW_ESTATE);
		REQUIRE(rxw_endpoint_stop(bed.client, 0) == -RXW_ESTATE);
		_exit(0);
	}
	REQUIRE(waitpid(pid, &status, 0) == pid && status == 0);
	REQUIRE(rxw_endpoint_destroy(client) == 0);
	REQUIRE(rxw_engine_destroy(engine) == 0);
}

START_TEST(grandchildren)
{
	if (CHILDREN_HAVE_THREADS)
		in_child(be_parent, NULL);
}
END_TEST

/* -- forks at any moment --------------------------------------------------------------------- */

#define CALLERS 3

static _Atomic bool done;
static _Atomic unsigned wrong;

static void *call_on(void *arg)
{
	char word[32], reply[64];

	for (unsigned i = 0; !atomic_load(&done); i++) {
		snprintf(word, sizeof(word), "%p %u", arg, i);
		if (echo(arg, word, reply) || strcmp(reply, word))
			atomic_fetch_add(&wrong, 1);
	}
	return NULL;
}

static void refuse_and_leave(void *arg)
{
	rxw_call *call;

	REQUIRE(rxw_call_begin(arg, NULL, &call) == -RXW_ESTATE);
	REQUIRE(rxw_connection_abort(arg, 1) == -RXW_ESTATE);
	REQUIRE(rxw_endpoint_stop(bed.server, 0) == -RXW_ESTATE);
	rxw_connection_release(arg);
	destroy_all(NULL);
}

/* Locks are held at some of these forks. */
START_TEST(forks_during_calls)
{
	unsigned forks = h_small() ? 20 : 100;
	rxw_connection *c[CALLERS];
	pthread_t thread[CALLERS];

	for (int i = 0; i < CALLERS; i++) {
		c[i] = h_connect(&bed, H_SERVICE);
		ck_assert_int_eq(pthread_create(&thread[i], NULL, call_on, c[i]), 0);
	}
	for (unsigned i = 0; i < forks; i++)
		in_child(refuse_and_leave, c[i % CALLERS]);
	atomic_store(&done, true);
	for (int i = 0; i < CALLERS; i++) {
		pthread_join(thread[i], NULL);
		rxw_connection_release(c[i]);
	}
	ck_assert_uint_eq(atomic_load(&wrong), 0);
}
END_TEST

/* -- forks on threads of the library ---------------------------------------------------------- */

static void refuse_call(void *arg)
{
	char b[4];

	REQUIRE(rxw_call_read(arg, b, 4) == -RXW_ESTATE);
	REQUIRE(rxw_call_write(arg, b, 4) == -RXW_ESTATE);
	REQUIRE(rxw_call_defer(arg) == -RXW_ESTATE);
}

/* The server receives meanwhile: a deputy does if this was the listener. */
static void refuse_call_and_make_one(void *arg)
{
	refuse_call(arg);
	if (!h_index(&bed) && CHILDREN_HAVE_THREADS)
		call_server();
}

/* An inline handler keeps the server from receiving. */
static int32_t fork_in_handler(rxw_call *call, void *context)
{
	bool is_inline = context != NULL;

	in_child(is_inline ? refuse_call : refuse_call_and_make_one, call);
	return rxw_call_write(call, "pong", 4) == 4 ? 0 : RXW_USER_ABORT;
}

START_TEST(forks_in_handlers)
{
	struct rxw_service_options o = {
		.size = sizeof(o), .id = FORKER, .name = "forker", .handler = fork_in_handler};
	rxw_connection *c;

	h_offer(&bed, o);
	o.id = FORKER + 1;
	o.flags = RXW_SERVICE_INLINE;
	o.context = &bed;
	h_offer(&bed, o);
	for (uint16_t id = FORKER; id <= FORKER + 1; id++) {
		c = h_connect(&bed, id);
		for (int i = 0; i < 3; i++) {
			char reply[4];
			rxw_call *call;

			ck_assert_int_eq(rxw_call_begin(c, NULL, &call), 0);
			ck_assert_int_eq(rxw_call_read(call, reply, 4), 4);
			ck_assert_mem_eq(reply, "pong", 4);
			ck_assert_int_eq(rxw_call_end(call, 0, NULL), 0);
		}
		rxw_connection_release(c);
	}
}
END_TEST

/* Packets that the parent has collected are sent by the parent only. */
static void end_batch(void *arg)
{
	(void)arg;
	rxw_batch_end();
}

START_TEST(forks_within_batches)
{
	struct rxw_call_options options = {.size = sizeof(options), .flags = RXW_CALL_NONBLOCK};
	rxw_connection *c = h_connect(&bed, H_SERVICE);
	uint64_t received;
	char reply[4];
	rxw_call *call;

	good_echoes(c, 1);
	received = counter_of(bed.server, "packets.received.data");
	ck_assert_int_eq(rxw_call_begin(c, &options, &call), 0);
	rxw_batch_begin();
	h_write_ask(call, &(struct h_ask){.op = H_PING});
	ck_assert_int_eq(rxw_call_send_end(call), 0);
	in_child(end_batch, NULL);
	rxw_batch_end();
	while (rxw_call_read(call, reply, 4) == -RXW_EAGAIN)
		usleep(1000);
	ck_assert_int_eq(rxw_call_end(call, 0, NULL), 0);
	/* One request: another thread of the parent may have sent it before its batch ended. */
	ck_assert_uint_eq(counter_of(bed.server, "packets.received.data"), received + 1);
	rxw_connection_release(c);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("fork");
	TCase *tc = tcase_create("loopback");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_set_timeout(tc, 300);
	tcase_add_checked_fixture(tc, set_up, tear_down);
	tcase_add_test(tc, children_are_refused);
	tcase_add_test(tc, children_have_engines_of_their_own);
	tcase_add_test(tc, grandchildren);
	tcase_add_test(tc, forks_during_calls);
	tcase_add_test(tc, forks_in_handlers);
	tcase_add_test(tc, forks_within_batches);
	suite_add_tcase(s, tc);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
