/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every function of the library with NULL for each pointer that it takes: it refuses, or ignores
 * it, and never dereferences it. The last test compares the table with the list of exported
 * functions.
 */
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <rxwire/observe.h>

#include "rxgk/client.h"
#include "tests/main.h"
#include "tests/rx/api/harness.h"

static struct h_bed bed;
static rxw_connection *conn;
static rxw_call *call;

/* Good arguments. */
static char text[512];
static unsigned count;
static size_t length;
static uint8_t bytes[64];
static struct iovec iov[4];
static struct sockaddr_storage address;
static socklen_t address_len;
static enum rxw_origin origin;
static struct rxw_config config;
static struct rxw_xdr xdr;
static struct rxw_rpc_stream stream;
static int32_t code;

/* A function with an argument that is NULL: a result that says no, or nothing at all. */
#define REFUSES(expression) ck_assert_msg((expression) == -RXW_EINVAL, "%s", #expression)
#define IS_NULL(expression) ck_assert_msg((expression) == NULL, "%s", #expression)
#define IS_FALSE(expression) ck_assert_msg(!(expression), "%s", #expression)
#define FAILS(expression)   ck_assert_msg((expression) != 0, "%s", #expression)
#define IGNORES(expression) expression
#define WORKS(expression)   ck_assert_msg((expression) >= 0, "%s", #expression)

static void open_bed(void)
{
	h_open(&bed, &(struct h_options){.security = "null"});
	conn = h_connect(&bed, H_SERVICE);
	call = h_begin(conn, &(struct h_ask){.op = H_WAIT});
	rxw_config_init(&config, sizeof(config));
}

static void close_bed(void)
{
	rxw_call_end(call, 1, NULL);
	rxw_connection_release(conn);
	h_close(&bed);
}

static void ignore_event(const struct rxw_queue_event *event)
{
	(void)event;
}

START_TEST(queues_and_pools)
{
	struct sockaddr *to = (struct sockaddr *)&address;
	struct rxw_queue_event event;
	rxw_connpool *pool;
	rxw_queue *queue;

	open_bed();
	REFUSES(rxw_call_defer(NULL));
	REFUSES(rxw_call_set_queue(NULL, NULL, NULL));
	WORKS(rxw_call_set_queue(call, NULL, NULL));
	REFUSES(rxw_queue_create(NULL, NULL, &queue));
	REFUSES(rxw_queue_create(bed.client_engine, NULL, NULL));
	WORKS(rxw_queue_create(bed.client_engine, NULL, &queue));
	REFUSES(rxw_queue_fd(NULL));
	REFUSES(rxw_queue_next(NULL, &event, 1, 0));
	REFUSES(rxw_queue_next(queue, NULL, 1, 0));
	REFUSES(rxw_queue_run(queue, NULL, 1, 0));
	REFUSES(rxw_queue_run(NULL, ignore_event, 1, 0));
	IGNORES(rxw_batch_begin());
	IGNORES(rxw_batch_end());
	REFUSES(rxw_queue_post(NULL, NULL));
	WORKS(rxw_queue_post(queue, NULL));
	WORKS(rxw_queue_destroy(NULL));
	WORKS(rxw_queue_destroy(queue));
	REFUSES(rxw_connpool_create(NULL, to, sizeof(struct sockaddr_in), 1, NULL, 1, &pool));
	REFUSES(rxw_connpool_create(bed.client, NULL, 0, 1, NULL, 1, &pool));
	REFUSES(rxw_connpool_create(bed.client, to, sizeof(struct sockaddr_in), 1, NULL, 1, NULL));
	REFUSES(rxw_connpool_begin(NULL, NULL, &call));
	REFUSES(rxw_connpool_abort(NULL, 1));
	REFUSES(rxw_connpool_set_local(NULL, NULL, 0, 0));
	REFUSES(rxw_connpool_set_timeouts(NULL, 0, 0, 0));
	IGNORES(rxw_connpool_release(NULL));
	WORKS(rxw_connpool_create(bed.client, (struct sockaddr *)&bed.address, bed.address_len, 1,
				  NULL, 1, &pool));
	REFUSES(rxw_connpool_begin(pool, NULL, NULL));
	rxw_connpool_release(pool);
	close_bed();
}
END_TEST

static void file_ended(rxw_call *which, int result, uint64_t moved, void *arg)
{
	(void)which;
	(void)arg;
	ck_abort_msg("a file that was refused ended with %d after %llu bytes", result,
		     (unsigned long long)moved);
}

START_TEST(calls)
{
	struct rxw_call_statistics stats = {.size = sizeof(stats)};
	struct rxw_identity identity = {.size = sizeof(identity)};

	open_bed();
	REFUSES(rxw_call_begin(NULL, NULL, &call));
	REFUSES(rxw_call_begin(conn, NULL, NULL));
	REFUSES(rxw_call_write(NULL, bytes, 1));
	REFUSES(rxw_call_write(call, NULL, 1));
	WORKS(rxw_call_write(call, NULL, 0));
	REFUSES(rxw_call_reserve(NULL, 1, iov, &count));
	REFUSES(rxw_call_reserve(call, 1, NULL, &count));
	REFUSES(rxw_call_reserve(call, 1, iov, NULL));
	REFUSES(rxw_call_commit(NULL, 0));
	REFUSES(rxw_call_sendfile(NULL, 0, 0, 1));
	REFUSES(rxw_file_send(NULL, 0, 0, 1, file_ended, NULL));
	REFUSES(rxw_file_send(call, 0, 0, 1, NULL, NULL));
	REFUSES(rxw_file_receive(NULL, 0, 0, 1, file_ended, NULL));
	REFUSES(rxw_file_receive(call, 0, 0, 1, NULL, NULL));
	REFUSES(rxw_call_flush(NULL));
	REFUSES(rxw_call_send_end(NULL));
	REFUSES(rxw_call_read(NULL, bytes, 1));
	REFUSES(rxw_call_read(call, NULL, 1));
	REFUSES(rxw_call_read_some(NULL, bytes, 1));
	REFUSES(rxw_call_read_some(call, NULL, 1));
	REFUSES(rxw_call_readv(NULL, 1, iov, &count));
	REFUSES(rxw_call_readv(call, 1, NULL, &count));
	REFUSES(rxw_call_readv(call, 1, iov, NULL));
	REFUSES(rxw_call_stats(NULL, &stats));
	REFUSES(rxw_call_stats(call, NULL));
	FAILS(rxw_call_end(NULL, 0, &origin));
	FAILS(rxw_call_end(NULL, 0, NULL));
	IGNORES(rxw_call_abort(NULL, 1));
	FAILS(rxw_call_error(NULL, &origin));
	WORKS(rxw_call_error(call, NULL));
	REFUSES(rxw_call_set_events(NULL, RXW_EVENT_READ));
	IS_FALSE(rxw_call_events(NULL));
	REFUSES(rxw_call_set_callback(NULL, NULL, NULL));
	WORKS(rxw_call_set_callback(call, NULL, NULL));
	REFUSES(rxw_call_peer(NULL, &address, &address_len));
	REFUSES(rxw_call_peer(call, NULL, &address_len));
	REFUSES(rxw_call_peer(call, &address, NULL));
	REFUSES(rxw_call_local(NULL, &address, &address_len));
	REFUSES(rxw_call_local(call, NULL, &address_len));
	REFUSES(rxw_call_local(call, &address, NULL));
	IS_FALSE(rxw_call_service_id(NULL));
	IGNORES(rxw_call_set_status(NULL, 1));
	IS_FALSE(rxw_call_peer_status(NULL));
	IS_FALSE(rxw_call_packet_size(NULL));
	IS_NULL(rxw_call_connection(NULL));
	REFUSES(rxw_call_identity(NULL, &identity));
	REFUSES(rxw_call_identity(call, NULL));
	close_bed();
}
END_TEST

START_TEST(connections)
{
	struct rxw_identity identity = {.size = sizeof(identity)};
	const struct sockaddr *to = (const struct sockaddr *)&bed.address;
	rxw_connection *made;
	uint32_t word;

	open_bed();
	REFUSES(rxw_connection_create(NULL, to, bed.address_len, 1, NULL, &made));
	REFUSES(rxw_connection_create(bed.client, NULL, bed.address_len, 1, NULL, &made));
	REFUSES(rxw_connection_create(bed.client, to, bed.address_len, 1, NULL, NULL));
	IS_NULL(rxw_connection_ref(NULL));
	IGNORES(rxw_connection_release(NULL));
	REFUSES(rxw_connection_set_data(NULL, bytes, NULL));
	WORKS(rxw_connection_set_data(conn, NULL, NULL));
	IS_NULL(rxw_connection_data(NULL));
	REFUSES(rxw_connection_id(NULL, &word, &word));
	WORKS(rxw_connection_id(conn, NULL, NULL));
	REFUSES(rxw_connection_peer(NULL, &address, &address_len));
	REFUSES(rxw_connection_peer(conn, NULL, &address_len));
	REFUSES(rxw_connection_peer(conn, &address, NULL));
	REFUSES(rxw_connection_security_index(NULL));
	FAILS(rxw_connection_error(NULL, &origin));
	WORKS(rxw_connection_error(conn, NULL));
	REFUSES(rxw_connection_close(NULL, 1));
	REFUSES(rxw_connection_abort(NULL, 1));
	REFUSES(rxw_connection_set_timeouts(NULL, 1000, 0, 0));
	REFUSES(rxw_connection_set_local(NULL, NULL, 0));
	REFUSES(rxw_connection_set_nat_ping(NULL, 20));
	REFUSES(rxw_connection_identity(NULL, &identity));
	REFUSES(rxw_connection_identity(conn, NULL));
	close_bed();
}
END_TEST

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

START_TEST(endpoints)
{
	uint64_t value;
	struct rxw_effective effective = {.size = sizeof(effective)};
	struct rxw_service_options o = {.size = sizeof(o), .id = 9};
	struct rxw_trace_options trace = {.size = sizeof(trace)};
	struct rxw_trace_counts counts = {.size = sizeof(counts)};
	struct rxw_durations durations = {.size = sizeof(durations)};
	rxw_endpoint *endpoint, *one[1] = {NULL};
	char *metrics;

	open_bed();
	WORKS(rxw_engine_destroy(NULL));
	REFUSES(rxw_engine_create(NULL, NULL));
	IS_FALSE(rxw_engine_memory(NULL, &length));
	WORKS((int)rxw_engine_memory(bed.client_engine, NULL));
	REFUSES(rxw_endpoint_create(NULL, NULL, &endpoint));
	REFUSES(rxw_endpoint_create(bed.client_engine, NULL, NULL));
	REFUSES(rxw_endpoint_start(NULL));
	REFUSES(rxw_endpoint_address(NULL, &address, &address_len));
	REFUSES(rxw_endpoint_address(bed.client, NULL, &address_len));
	REFUSES(rxw_endpoint_address(bed.client, &address, NULL));
	REFUSES(rxw_endpoint_set(NULL, "queue", "1"));
	REFUSES(rxw_endpoint_set(bed.client, NULL, "1"));
	REFUSES(rxw_endpoint_set(bed.client, "queue", NULL));
	REFUSES(rxw_endpoint_hand_over(NULL, 0));
	REFUSES(rxw_endpoint_stop(NULL, 0));
	WORKS(rxw_endpoint_destroy(NULL));
	REFUSES(rxw_endpoint_set_observer(NULL, NULL));
	WORKS(rxw_endpoint_set_observer(bed.client, NULL));
	REFUSES(rxw_endpoint_counters(NULL, &value, 1));
	REFUSES(rxw_endpoint_counters(bed.client, NULL, 1));
	REFUSES(rxw_endpoint_counter(NULL, "peers", &value));
	REFUSES(rxw_endpoint_counter(bed.client, NULL, &value));
	REFUSES(rxw_endpoint_counter(bed.client, "peers", NULL));
	REFUSES(rxw_endpoint_effective(NULL, &effective));
	REFUSES(rxw_endpoint_effective(bed.client, NULL));
	REFUSES(rxw_endpoint_durations(NULL, &durations));
	REFUSES(rxw_endpoint_durations(bed.client, NULL));
	REFUSES(rxw_endpoint_calls(NULL, see_call, NULL));
	REFUSES(rxw_endpoint_calls(bed.client, NULL, NULL));
	REFUSES(rxw_metrics_text(NULL, 1, &metrics));
	REFUSES(rxw_metrics_text(one, 1, &metrics));
	REFUSES(rxw_metrics_text(one, 0, NULL));
	REFUSES(rxw_metrics_calls(NULL, 1, 1, &metrics));
	REFUSES(rxw_metrics_calls(one, 1, 1, &metrics));
	REFUSES(rxw_metrics_calls(one, 0, 1, NULL));
	REFUSES(rxw_service_add(NULL, &o, NULL));
	REFUSES(rxw_service_add(bed.server, NULL, NULL));
	REFUSES(rxw_service_add(bed.server, &o, NULL)); /* its handler is NULL */
	REFUSES(rxw_service_start(NULL));
	REFUSES(rxw_service_set(NULL, RXW_SET_REACH, 1));
	REFUSES(rxw_endpoint_refuse(NULL, RXW_RESTARTING));
	REFUSES(rxw_service_remove(NULL, 0));
	REFUSES(rxw_trace_start(NULL, &trace));
	REFUSES(rxw_trace_stop(NULL));
	REFUSES(rxw_trace_read(NULL, see_record, NULL));
	REFUSES(rxw_trace_read(bed.client, NULL, NULL));
	REFUSES(rxw_trace_write(NULL, 1));
	REFUSES(rxw_trace_save(NULL, "/nowhere"));
	REFUSES(rxw_trace_save(bed.client, NULL));
	REFUSES(rxw_trace_count(NULL, &counts));
	REFUSES(rxw_trace_count(bed.client, NULL));
	close_bed();
}
END_TEST

/* Functions without pointers to objects are called, too: the table is to be complete. */
START_TEST(settings_and_texts)
{
	rxw_config_init(&config, sizeof(config));
	IGNORES(rxw_config_init(NULL, sizeof(config)));
	FAILS(rxw_config_options(NULL) != NULL);
	REFUSES(rxw_config_set(NULL, "mtu", "1444", text, sizeof(text)));
	REFUSES(rxw_config_set(&config, NULL, "1444", text, sizeof(text)));
	REFUSES(rxw_config_set(&config, "mtu", NULL, text, sizeof(text)));
	WORKS(rxw_config_set(&config, "mtu", "1444", NULL, 10));
	REFUSES(rxw_config_get(NULL, "mtu", text, sizeof(text)));
	REFUSES(rxw_config_get(&config, NULL, text, sizeof(text)));
	REFUSES(rxw_config_get(&config, "mtu", NULL, sizeof(text)));
	FAILS(rxw_version() != NULL);
	FAILS(rxw_strerror(0) != NULL);
	FAILS(rxw_code_text(0) != NULL);
	FAILS(rxw_code_text_from(0, RXW_ORIGIN_PEER) != NULL);
	IS_FALSE(rxw_code_from_errno(0));
	IS_FALSE(rxw_code_to_errno(0));
	FAILS(rxw_counter_at(0) != NULL);
}
END_TEST

START_TEST(security)
{
	struct rxw_security_class klass = {.size = sizeof(klass)};
	struct rxw_token_options options = {.size = sizeof(options)};
	struct rxw_token_details info = {.size = sizeof(info)};
	struct rxw_key_info key_info = {.size = sizeof(key_info)};
	rxw_security *s;
	rxw_token *token;
	rxw_keys *keys;

	REFUSES(rxw_security_create(NULL, NULL, &s));
	REFUSES(rxw_security_create(&klass, NULL, NULL));
	IS_NULL(rxw_security_data(NULL, free));
	IS_NULL(rxw_security_data(rxw_security_null(), NULL));
	IS_NULL(rxw_security_ref(NULL));
	IGNORES(rxw_security_unref(NULL));
	FAILS(rxw_security_null() != NULL);
	REFUSES(rxw_token_create(NULL, &token, text, sizeof(text)));
	REFUSES(rxw_token_create(&options, NULL, text, sizeof(text)));
	REFUSES(rxw_token_create(NULL, &token, NULL, sizeof(text)));
	IS_NULL(rxw_token_ref(NULL));
	IGNORES(rxw_token_unref(NULL));
	IS_NULL(rxw_token_security(NULL));
	REFUSES(rxw_token_info(NULL, &info));
	REFUSES(rxw_keys_create(NULL));
	ck_assert_int_eq(rxw_keys_create(&keys), 0);
	IS_NULL(rxw_keys_ref(NULL));
	IGNORES(rxw_keys_unref(NULL));
	REFUSES(rxw_keys_add(NULL, RXW_KEY_DES, 1, 0, bytes, 8));
	REFUSES(rxw_keys_add(keys, RXW_KEY_DES, 1, 0, NULL, 8));
	REFUSES(rxw_keys_generate(NULL, RXW_KEY_RXGK, 1, 17));
	REFUSES(rxw_keys_info(NULL, 0, &key_info));
	REFUSES(rxw_keys_info(keys, 0, NULL));
	REFUSES(rxw_keys_load(NULL, "/nowhere", NULL, text, sizeof(text)));
	REFUSES(rxw_keys_load(keys, NULL, NULL, text, sizeof(text)));
	FAILS(rxw_keys_load(keys, "/nowhere", NULL, NULL, sizeof(text)));
	REFUSES(rxw_keys_reload(NULL, text, sizeof(text)));
	WORKS(rxw_keys_reload(keys, NULL, sizeof(text)));
	REFUSES(rxw_keys_write(NULL, "/nowhere", 0, text, sizeof(text)));
	REFUSES(rxw_keys_write(keys, NULL, 0, text, sizeof(text)));
	FAILS(rxw_keys_write(keys, "/nowhere/file", 0, NULL, sizeof(text)));
	rxw_keys_unref(keys);
}
END_TEST

START_TEST(rxkad_and_rxgk)
{
	struct rxw_rxkad_token kad = {.size = sizeof(kad)};
	struct rxw_rxkad_print_options kad_print = {.size = sizeof(kad_print)};
	struct rxw_rxkad_server_options kad_server = {.size = sizeof(kad_server)};
	struct rxw_rxgk_server_options gk_server = {.size = sizeof(gk_server)};
	struct rxw_rxgk_negotiation_options negotiation = {.size = sizeof(negotiation)};
	rxw_rxgk_negotiation *n;
	rxw_security *s;

	open_bed();
	REFUSES(rxw_rxkad_session_key(18, NULL, 8, bytes));
	REFUSES(rxw_rxkad_session_key(18, bytes, 8, NULL));
	REFUSES(rxw_rxkad_print_token(NULL, &kad_print, &kad));
	REFUSES(rxw_rxkad_print_token(bed.keys, &kad_print, NULL));
	REFUSES(rxw_rxkad_server(NULL, &s));
	REFUSES(rxw_rxkad_server(&kad_server, NULL));
	REFUSES(rxw_rxkad_server(&kad_server, &s)); /* it has neither keys nor find_key */
	REFUSES(rxw_rxkad_allow_dotted(NULL, 1));
	REFUSES(rxw_rxkad_client(NULL, 0, &s));
	REFUSES(rxw_rxkad_client(&kad, 0, NULL));
	REFUSES(rxw_rxkad_client(&kad, 0, &s)); /* its ticket is NULL */
	IGNORES(rxw_rxkad_token_free(NULL));
	IGNORES(rxw_rxgk_token_free(NULL));
	REFUSES(rxw_rxgk_server(NULL, &s));
	REFUSES(rxw_rxgk_server(&gk_server, NULL));
	REFUSES(rxw_rxgk_server(&gk_server, &s));
	REFUSES(rxw_rxgk_negotiation_create(NULL, &n, text, sizeof(text)));
	REFUSES(rxw_rxgk_negotiation_create(&negotiation, NULL, text, sizeof(text)));
	REFUSES(rxw_rxgk_negotiation_create(&negotiation, &n, NULL, sizeof(text)));
	IGNORES(rxw_rxgk_negotiation_destroy(NULL));
	REFUSES(rxw_rxgk_negotiation_add(NULL, bed.server, NULL));
	close_bed();
}
END_TEST

START_TEST(rpc)
{
	static const struct rxw_rpc_interface interface = {.name = "none"};
	static const struct rxw_rpc_table table = {.interface = &interface, .count = 1};
	struct rxw_rpc_multi *multi;
	rxw_call *made = NULL;
	unsigned index;

	open_bed();
	FAILS(rxw_rpc_begin(NULL, NULL, &made));
	FAILS(rxw_rpc_begin(conn, NULL, NULL));
	FAILS(rxw_rpc_begin_pool(NULL, NULL, &made));
	FAILS(rxw_rpc_end(NULL, 0, &interface, 0));
	ck_assert_int_eq(rxw_rpc_begin(conn, NULL, &made), 0);
	ck_assert_int_eq(rxw_rpc_end(made, 7, NULL, 0), 7);
	IS_FALSE(rxw_rpc_origin() != RXW_ORIGIN_LOCAL);
	IGNORES(rxw_rpc_writer(NULL, call));
	IGNORES(rxw_rpc_reader(NULL, call, RXW_RPC_WHOLE, 0));
	IGNORES(rxw_rpc_expect(NULL, 1));
	IS_FALSE(rxw_rpc_flush(NULL));
	rxw_rpc_writer(&stream, NULL);
	ck_assert(rxw_xdr_put_u32(&stream.xdr, 1));
	IS_FALSE(rxw_rpc_flush(&stream));
	rxw_rpc_reader(&stream, NULL, RXW_RPC_WHOLE, 0);
	IS_FALSE(rxw_xdr_skip(&stream.xdr, 4));
	IS_NULL(rxw_rpc_multi_create(NULL, 1, NULL));
	IS_NULL(rxw_rpc_multi_create_pool(NULL, 1, NULL));
	multi = rxw_rpc_multi_create(&conn, 1, NULL);
	ck_assert_ptr_nonnull(multi);
	ck_assert_int_eq(rxw_rpc_multi_next(NULL, &index, &made, &code), RXW_RPC_DONE);
	ck_assert_int_eq(rxw_rpc_multi_next(multi, NULL, &made, &code), RXW_RPC_DONE);
	ck_assert_int_eq(rxw_rpc_multi_next(multi, &index, NULL, &code), RXW_RPC_DONE);
	ck_assert_int_eq(rxw_rpc_multi_next(multi, &index, &made, NULL), RXW_RPC_DONE);
	IGNORES(rxw_rpc_multi_started(NULL, 0, 0));
	FAILS(rxw_rpc_multi_ended(NULL, 0, 0, &interface, 0));
	IGNORES(rxw_rpc_multi_destroy(NULL));
	rxw_rpc_multi_destroy(multi);
	FAILS(rxw_rpc_answer(NULL, 0, &interface, 0));
	FAILS(rxw_rpc_answer(call, 0, NULL, 0));
	FAILS(rxw_rpc_serve(NULL, &table, NULL, NULL));
	FAILS(rxw_rpc_serve(call, NULL, NULL, NULL));
	FAILS(rxw_rpc_serve(call, &table, NULL, NULL)); /* its entries are NULL */
	close_bed();
}
END_TEST

START_TEST(xdr_coders)
{
	struct rxw_uuid uuid = {0};
	const uint8_t *lent;
	size_t room = 0;
	uint32_t n;
	double d = 0;
	float f = 0;
	char *got;

	IGNORES(rxw_xdr_writer(NULL, bytes, sizeof(bytes)));
	IGNORES(rxw_xdr_reader(NULL, bytes, sizeof(bytes)));
	rxw_xdr_writer(&xdr, NULL, 64);
	IS_FALSE(rxw_xdr_put_u32(&xdr, 1));
	rxw_xdr_reader(&xdr, NULL, 64);
	IS_FALSE(rxw_xdr_get_u32(&xdr, &n));
	IS_FALSE(rxw_xdr_used(NULL));
	IS_FALSE(rxw_xdr_left(NULL));
	IS_FALSE(rxw_xdr_ok(NULL));
	IS_FALSE(rxw_xdr_fail(NULL));
	IS_NULL(rxw_xdr_take_more(NULL, 4));
	IS_FALSE(rxw_xdr_put_float(NULL, f));
	IS_FALSE(rxw_xdr_get_float(NULL, &f));
	IS_FALSE(rxw_xdr_put_double(NULL, d));
	IS_FALSE(rxw_xdr_get_double(NULL, &d));
	IS_FALSE(rxw_xdr_put_uuid(NULL, &uuid));
	IS_FALSE(rxw_xdr_get_uuid(NULL, &uuid));
	IS_FALSE(rxw_xdr_put_words(NULL, bytes, 1));
	IS_FALSE(rxw_xdr_get_words(NULL, bytes, 1));
	IS_FALSE(rxw_xdr_put_opaque(NULL, bytes, 1));
	IS_FALSE(rxw_xdr_get_opaque(NULL, bytes, 1));
	IS_FALSE(rxw_xdr_skip(NULL, 1));
	IS_FALSE(rxw_xdr_put_bytes(NULL, bytes, 1, 4));
	IS_FALSE(rxw_xdr_put_string(NULL, "a", 4));
	IS_FALSE(rxw_xdr_get_bytes(NULL, 4, &got, &n));
	IS_FALSE(rxw_xdr_get_string(NULL, 4, &got));
	IS_FALSE(rxw_xdr_copy_string(NULL, 4, text));
	IS_FALSE(rxw_xdr_lend_bytes(NULL, 4, &lent, &length));
	IS_FALSE(rxw_xdr_get_count(NULL, 4, 1, &n));
	IS_NULL(rxw_xdr_grow(NULL, NULL, &room, 1, 1));
	IS_NULL(rxw_xdr_new(NULL, 1));
	IS_FALSE(rxw_xdr_enter(NULL));
	IGNORES(rxw_xdr_leave(NULL));
	/* Nowhere to put what was decoded, or nothing to encode: the cursor fails. */
#define WITHOUT(expression)                                    \
	do {                                                   \
		memset(bytes, 0, sizeof(bytes));               \
		rxw_xdr_reader(&xdr, bytes, sizeof(bytes));    \
		IS_FALSE(expression);                          \
		IS_FALSE(rxw_xdr_ok(&xdr));                    \
	} while (0)
	WITHOUT(rxw_xdr_get_float(&xdr, NULL));
	WITHOUT(rxw_xdr_get_double(&xdr, NULL));
	WITHOUT(rxw_xdr_put_uuid(&xdr, NULL));
	WITHOUT(rxw_xdr_get_uuid(&xdr, NULL));
	WITHOUT(rxw_xdr_put_words(&xdr, NULL, 1));
	WITHOUT(rxw_xdr_get_words(&xdr, NULL, 1));
	WITHOUT(rxw_xdr_put_opaque(&xdr, NULL, 1));
	WITHOUT(rxw_xdr_get_opaque(&xdr, NULL, 1));
	WITHOUT(rxw_xdr_put_bytes(&xdr, NULL, 1, 4));
	WITHOUT(rxw_xdr_put_string(&xdr, NULL, 4));
	WITHOUT(rxw_xdr_get_bytes(&xdr, 4, NULL, &n));
	WITHOUT(rxw_xdr_get_bytes(&xdr, 4, &got, NULL));
	WITHOUT(rxw_xdr_get_string(&xdr, 4, NULL));
	WITHOUT(rxw_xdr_copy_string(&xdr, 4, NULL));
	WITHOUT(rxw_xdr_lend_bytes(&xdr, 4, NULL, &length));
	WITHOUT(rxw_xdr_lend_bytes(&xdr, 4, &lent, NULL));
	WITHOUT(rxw_xdr_get_count(&xdr, 4, 1, NULL));
	WITHOUT(rxw_xdr_grow(&xdr, NULL, NULL, 1, 1) != NULL);
	/* Nothing at all is fine. */
	rxw_xdr_writer(&xdr, bytes, sizeof(bytes));
	ck_assert(rxw_xdr_put_bytes(&xdr, NULL, 0, 4) && rxw_xdr_put_opaque(&xdr, NULL, 0) &&
		  rxw_xdr_put_words(&xdr, NULL, 0));
}
END_TEST

START_TEST(rpcstats)
{
	struct rxw_rpcstats_counters counters = {.size = sizeof(counters)};
	static const struct rxw_rpc_interface interface = {.name = "N_", .stat_index = 1};
	uint32_t *words;
	rxw_rpcstats *stats;

	REFUSES(rxw_rpcstats_create(NULL, NULL));
	WORKS(rxw_rpcstats_create(NULL, &stats));
	REFUSES(rxw_rpcstats_observe(NULL, NULL));
	REFUSES(rxw_rpcstats_observe(stats, NULL));
	IGNORES(rxw_rpcstats_report(NULL, NULL));
	IGNORES(rxw_rpcstats_report(stats, NULL));
	REFUSES(rxw_rpcstats_record(NULL, NULL));
	REFUSES(rxw_rpcstats_record(stats, NULL));
	REFUSES(rxw_rpcstats_enable(NULL, RXW_RPCSTATS_PEERS, true));
	IS_FALSE(rxw_rpcstats_enabled(NULL, RXW_RPCSTATS_PEERS));
	REFUSES(rxw_rpcstats_clear(NULL, RXW_RPCSTATS_PEERS, 1));
	REFUSES(rxw_rpcstats_get(NULL, &interface, 0, false, &counters));
	REFUSES(rxw_rpcstats_get(stats, NULL, 0, false, &counters));
	REFUSES(rxw_rpcstats_get(stats, &interface, 0, false, NULL));
	REFUSES(rxw_rpcstats_entries(NULL, RXW_RPCSTATS_PROCESS, &words));
	REFUSES(rxw_rpcstats_entries(stats, RXW_RPCSTATS_PROCESS, NULL));
	REFUSES(rxw_rpcstats_serve(NULL, NULL));
	REFUSES(rxw_rpcstats_serve(stats, NULL));
	IGNORES(rxw_rpcstats_destroy(NULL));
	rxw_rpcstats_destroy(stats);
}
END_TEST

static char *whole_file(const char *path)
{
	static char name[4096];
	const char *top = getenv("top_srcdir");
	FILE *file;
	char *data;
	size_t n;

	snprintf(name, sizeof(name), "%s/%s", top ? top : "..", path);
	file = fopen(name, "r");
	if (!file)
		return NULL;
	data = calloc(1, 1 << 18);
	ck_assert_ptr_nonnull(data);
	n = fread(data, 1, (1 << 18) - 1, file);
	ck_assert_uint_lt(n, (1 << 18) - 1);
	fclose(file);
	return data;
}

/* This file calls each exported function. */
START_TEST(complete)
{
	char *map = whole_file("src/rx/librxwire.map"), *own;
	unsigned found = 0;

	if (!map) {
		printf("left out: the comparison with the exported functions, without sources\n");
		return;
	}
	own = whole_file("src/tests/rx/api/test_null.c");
	ck_assert_ptr_nonnull(own);
	for (char *at = map; (at = strstr(at, "\t\trxw_")); found++) {
		char name[100];

		snprintf(name, sizeof(name), "%.*s(", (int)strcspn(at + 2, ";"), at + 2);
		ck_assert_msg(strstr(own, name) != NULL, "test_null.c does not call %s)", name);
		at += 2;
	}
	ck_assert_uint_ge(found, 150);
	free(map);
	free(own);
}
END_TEST

TEST_MAIN_WITHIN(60, "null", calls, queues_and_pools, connections, endpoints, settings_and_texts, security,
		 rxkad_and_rxgk, rpc, xdr_coders, rpcstats, complete)
