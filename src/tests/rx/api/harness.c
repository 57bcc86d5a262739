/* SPDX-License-Identifier: BSD-2-Clause */
/* A server and a client on loopback: set-up, tear-down, waiting. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "base/wire.h"
#include "harness.h"
#include "rxgk/client.h"
#include "streams.h"
#include "tests/support/constants.h"
#include "tests/support/internals.h"

#ifndef __has_feature
#	define __has_feature(x) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || \
	__has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#	define SANITIZED 1
#else
#	define SANITIZED 0
#endif

#define PATIENCE_MS 60000 /* longest wait for an event before a test fails */

bool h_small(void)
{
	return SANITIZED || getenv("RXW_TEST_SMALL");
}

/* The class of connections that name none, or NULL for null. */
static const char *common_class(void)
{
	const char *name = getenv("RXW_TEST_CLASS");

	return name && *name && strcmp(name, "null") ? name : NULL;
}

bool h_left_out(const char *what, const char *why)
{
	if (!common_class())
		return false;
	printf("SKIP: %s under %s (%s)\n", what, common_class(), why);
	return true;
}

uint64_t h_bulk_size(void)
{
	const char *mebibytes = getenv("RXW_TEST_BULK");

	if (h_small())
		return 4u << 20;
	return (uint64_t)(mebibytes ? atoi(mebibytes) : 64) << 20;
}

uint64_t h_now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

bool h_have_ipv6(void)
{
	struct sockaddr_in6 a = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool ok = fd >= 0 && !bind(fd, (struct sockaddr *)&a, sizeof(a));

	if (fd >= 0)
		close(fd);
	return ok;
}

static void on_log(void *arg, enum rxw_log_level level, const char *line)
{
	struct h_bed *bed = arg;

	if (getenv("RXW_TEST_LOG"))
		fprintf(stderr, "%d: %s\n", level, line);
	pthread_mutex_lock(&bed->lock);
	bed->warnings += level <= RXW_LOG_WARNING;
	if (strstr(line, "the client at 127.0.0.1:") && strstr(line, " was refused by service ")) {
		bed->refusals++;
		snprintf(bed->refusal, sizeof(bed->refusal), "%s", line);
	}
	pthread_mutex_unlock(&bed->lock);
}

/* "name=value name=value": tunables, and constants of the library. */
static void set_all(struct rxw_config *config, struct test_constants *constants,
		    const char *tunables)
{
	char copy[512], message[256], *save, *item;

	snprintf(copy, sizeof(copy), "%s", tunables ? tunables : "");
	for (item = strtok_r(copy, " ", &save); item; item = strtok_r(NULL, " ", &save)) {
		char *value = strchr(item, '=');

		ck_assert_msg(value, "\"%s\" is no NAME=VALUE", item);
		*value++ = 0;
		ck_assert_msg(test_constants_set(constants, item, value) ||
				      !rxw_config_set(config, item, value, message,
						      sizeof(message)),
			      "%s", message);
	}
}

static void loopback(struct sockaddr_storage *address, socklen_t *length, bool ipv6)
{
	memset(address, 0, sizeof(*address));
	if (ipv6) {
		struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)address;

		in6->sin6_family = AF_INET6;
		in6->sin6_addr = in6addr_loopback;
		*length = sizeof(*in6);
	} else {
		struct sockaddr_in *in = (struct sockaddr_in *)address;

		in->sin_family = AF_INET;
		in->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		*length = sizeof(*in);
	}
}

static rxw_engine *make_engine(struct h_bed *bed, const struct h_options *o, const char *own,
			       struct test_constants *constants)
{
	struct rxw_config config;
	rxw_engine *engine;

	rxw_config_init(&config, sizeof(config));
	test_constants_init(constants);
	set_all(&config, constants, o->both);
	set_all(&config, constants, own);
	config.log = on_log;
	config.log_arg = bed;
	ck_assert_int_eq(rxw_engine_create(&config, &engine), 0);
	return engine;
}

static rxw_endpoint *make_endpoint(rxw_engine *engine, bool ipv6, bool server,
				   const struct rxw_config *config,
				   const struct test_constants *constants)
{
	struct rxw_endpoint_options options = {.size = sizeof(options)};
	struct sockaddr_storage any;
	rxw_endpoint *endpoint = NULL;
	int rc;

	loopback(&any, &options.address_len, ipv6);
	options.address = (struct sockaddr *)&any;
	options.server = server;
	options.config = config;
	options.version_text = "rxwire test";
	rc = rxw_endpoint_create_with(engine, &options, &constants->set, &endpoint);
	ck_assert_msg(rc == 0, "endpoint: %s", rxw_strerror(rc));
	return endpoint;
}

static void make_classes(struct h_bed *bed)
{
	struct rxw_rxkad_server_options kad = {.size = sizeof(kad)};
	struct rxw_rxgk_server_options gk = {.size = sizeof(gk)};
	uint8_t key[32];

	for (unsigned i = 0; i < sizeof(key); i++)
		key[i] = (uint8_t)(i * 29 + 7);
	ck_assert_int_eq(rxw_keys_create(&bed->keys), 0);
	ck_assert_int_eq(rxw_keys_add(bed->keys, RXW_KEY_KRB5, 3, 18, key, 32), 0);
	ck_assert_int_eq(rxw_keys_add(bed->keys, RXW_KEY_RXGK, 3, 17, key, 16), 0);
	kad.keys = gk.keys = bed->keys;
	bed->offered[0] = rxw_security_null();
	bed->offered[1] = internals_test_class();
	ck_assert_int_eq(rxw_rxkad_server(&kad, &bed->offered[2]), 0);
	ck_assert_int_eq(rxw_rxgk_server(&gk, &bed->offered[3]), 0);
}

static rxw_security *kad_client(struct h_bed *bed, uint8_t level)
{
	struct rxw_rxkad_token token = {.size = sizeof(token)};
	rxw_security *s;

	ck_assert_int_eq(rxw_rxkad_print_token(bed->keys, NULL, &token), 0);
	ck_assert_int_eq(rxw_rxkad_client(&token, level, &s), 0);
	rxw_rxkad_token_free(&token);
	return s;
}

static rxw_security *gk_client(struct h_bed *bed, uint8_t level)
{
	struct rxw_rxgk_print_options print = {.level = level};
	struct rxw_rxgk_client_options options = {0};
	struct rxw_rxgk_token token = {0};
	rxw_security *s;

	ck_assert_int_eq(rxw_rxgk_print_token(bed->keys, &print, &token), 0);
	ck_assert_int_eq(rxw_rxgk_client(&token, &options, &s), 0);
	rxw_rxgk_token_free(&token);
	return s;
}

rxw_security *h_class(struct h_bed *bed, const char *name)
{
	static const char *const levels[] = {"clear", "auth", "crypt"};
	const char *level = strchr(name, '-');

	for (uint8_t i = 0; level && i < 3; i++) {
		if (strcmp(level + 1, levels[i]))
			continue;
		if (!strncmp(name, "rxkad-", 6))
			return kad_client(bed, i);
		if (!strncmp(name, "rxgk-", 5))
			return gk_client(bed, i);
	}
	ck_assert_msg(!strcmp(name, "test") || !strcmp(name, "null"), "no class \"%s\"", name);
	return !strcmp(name, "test") ? internals_test_class() : rxw_security_null();
}

void h_offer(struct h_bed *bed, struct rxw_service_options options)
{
	options.security = bed->offered;
	options.security_count = 4;
	ck_assert_int_eq(rxw_service_add(bed->server, &options, NULL), 0);
}

uint8_t h_index(const struct h_bed *bed)
{
	return bed->security ? internals_class_index(bed->security) : 0;
}

static void add_service(struct h_bed *bed, uint16_t id, const char *name, unsigned flags,
			unsigned workers_max)
{
	h_offer(bed, (struct rxw_service_options){.size = sizeof(struct rxw_service_options),
						  .id = id,
						  .name = name,
						  .handler = h_serve,
						  .context = bed,
						  .flags = flags,
						  .workers_max = workers_max});
}

void h_open(struct h_bed *bed, const struct h_options *options)
{
	static const struct h_options plain;
	struct test_constants constants;
	const char *class;

	if (!options)
		options = &plain;
	class = options->security ? options->security : options->secure ? "test" : common_class();
	memset(bed, 0, sizeof(*bed));
	pthread_mutex_init(&bed->lock, NULL);
	pthread_mutex_init(&bed->gate.lock, NULL);
	pthread_cond_init(&bed->gate.cond, NULL);
	bed->file = h_pattern_file();
	make_classes(bed);
	bed->security = class ? h_class(bed, class) : NULL;
	bed->server_engine = make_engine(bed, options, options->server, &constants);
	bed->server = make_endpoint(bed->server_engine, options->ipv6, true, NULL, &constants);
	bed->address_len = sizeof(bed->address);
	ck_assert_int_eq(rxw_endpoint_address(bed->server, &bed->address, &bed->address_len), 0);
	add_service(bed, H_SERVICE, "harness", 0, 0);
	add_service(bed, H_INLINE, "short", RXW_SERVICE_INLINE, 0);
	add_service(bed, H_SECOND, "second", 0, 1);
	if (options->no_client)
		return;
	bed->client_engine = make_engine(bed, options, options->client, &constants);
	bed->client = make_endpoint(bed->client_engine, options->ipv6, false, NULL, &constants);
}

void h_close(struct h_bed *bed)
{
	h_gate_open(bed);
	if (bed->client)
		ck_assert_int_eq(rxw_endpoint_destroy(bed->client), 0);
	if (bed->client_engine)
		ck_assert_int_eq(rxw_engine_destroy(bed->client_engine), 0);
	if (bed->server)
		ck_assert_int_eq(rxw_endpoint_destroy(bed->server), 0);
	ck_assert_int_eq(rxw_engine_destroy(bed->server_engine), 0);
	rxw_security_unref(bed->security);
	for (unsigned i = 0; i < 4; i++)
		rxw_security_unref(bed->offered[i]);
	rxw_keys_unref(bed->keys);
	close(bed->file);
	pthread_cond_destroy(&bed->gate.cond);
	pthread_mutex_destroy(&bed->gate.lock);
	pthread_mutex_destroy(&bed->lock);
}

rxw_endpoint *h_client(struct h_bed *bed, const char *tunables)
{
	struct test_constants constants;
	struct rxw_config config;

	rxw_config_init(&config, sizeof(config));
	test_constants_init(&constants);
	set_all(&config, &constants, tunables);
	return make_endpoint(bed->client_engine, bed->address.ss_family == AF_INET6, false,
			     &config, &constants);
}

rxw_connection *h_connect(struct h_bed *bed, uint16_t service)
{
	rxw_connection *connection;
	int rc = rxw_connection_create(bed->client, (struct sockaddr *)&bed->address,
				       bed->address_len, service, bed->security, &connection);

	ck_assert_int_eq(rc, 0);
	return connection;
}

bool h_try_write_ask(rxw_call *call, const struct h_ask *ask)
{
	uint8_t head[H_ASK_SIZE];

	h_encode_ask(head, ask);
	return rxw_call_write(call, head, sizeof(head)) == sizeof(head);
}

void h_write_ask(rxw_call *call, const struct h_ask *ask)
{
	uint8_t head[H_ASK_SIZE];
	ssize_t n;

	h_encode_ask(head, ask);
	n = rxw_call_write(call, head, sizeof(head));
	ck_assert_msg(n == sizeof(head), "cannot write the request: %s",
		      n < 0 ? rxw_strerror((int)n) : "short");
}

rxw_call *h_begin(rxw_connection *connection, const struct h_ask *ask)
{
	rxw_call *call;
	int rc = rxw_call_begin(connection, NULL, &call);

	ck_assert_msg(rc == 0, "beginning a call: %s", rxw_strerror(rc));
	h_write_ask(call, ask);
	return call;
}

int32_t h_call(struct h_bed *bed, rxw_connection *connection, const struct h_ask *ask)
{
	rxw_call *call = h_begin(connection, ask);
	struct h_ask nothing = {.bytes = 0};
	int rc = 0;

	if (ask->op == H_SINK || ask->op == H_BOTH || ask->op == H_WAIT)
		rc = h_put(bed, call, ask);
	if (!rc &&
	    (ask->op == H_SOURCE || ask->op == H_BOTH || ask->op == H_LATE || ask->op == H_ONCE))
		rc = h_get(call, ask);
	else if (!rc && (ask->op == H_SINK || ask->op == H_WAIT))
		rc = h_get(call, &nothing);
	if (rc == -H_MISMATCH)
		return rxw_call_end(call, H_MISMATCH, NULL);
	return rxw_call_end(call, 0, NULL);
}

void h_good_call(struct h_bed *bed, rxw_connection *connection, const struct h_ask *ask)
{
	int32_t code = h_call(bed, connection, ask);

	ck_assert_msg(code == 0, "call with op %d, %llu bytes: code %d (%s)", ask->op,
		      (unsigned long long)ask->bytes, code, rxw_code_text(code));
}

void h_wait_for(bool (*fn)(void *arg), void *arg, const char *what)
{
	uint64_t limit = h_now_ms() + PATIENCE_MS;

	while (!fn(arg)) {
		ck_assert_msg(h_now_ms() < limit, "this did not happen in time: %s", what);
		usleep(1000);
	}
}

void h_gate_arrived(struct h_bed *bed, unsigned count)
{
	struct timespec limit;
	int rc = 0;

	clock_gettime(CLOCK_REALTIME, &limit);
	limit.tv_sec += PATIENCE_MS / 1000;
	pthread_mutex_lock(&bed->gate.lock);
	while (bed->gate.arrived < count && !rc)
		rc = pthread_cond_timedwait(&bed->gate.cond, &bed->gate.lock, &limit);
	ck_assert_msg(bed->gate.arrived >= count, "%u of %u calls reached their handlers",
		      bed->gate.arrived, count);
	pthread_mutex_unlock(&bed->gate.lock);
}

void h_gate_open(struct h_bed *bed)
{
	pthread_mutex_lock(&bed->gate.lock);
	bed->gate.open = true;
	pthread_cond_broadcast(&bed->gate.cond);
	pthread_mutex_unlock(&bed->gate.lock);
}

unsigned h_warnings(struct h_bed *bed)
{
	unsigned n;

	pthread_mutex_lock(&bed->lock);
	n = bed->warnings;
	pthread_mutex_unlock(&bed->lock);
	return n;
}

int h_raw_socket(struct h_bed *bed)
{
	struct timeval patience = {.tv_sec = 10};
	int fd = socket(bed->address.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&bed->address, bed->address_len), 0);
	ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)), 0);
	return fd;
}

struct h_raw h_raw_request(uint8_t head[H_ASK_SIZE], enum h_op op, uint32_t cid)
{
	struct h_ask ask = {.op = op};

	h_encode_ask(head, &ask);
	return (struct h_raw){.epoch = 0x80000123,
			      .cid = cid,
			      .call = 1,
			      .seq = 1,
			      .serial = 1,
			      .type = RXW_DATA,
			      .flags = RXW_CLIENT_INITIATED | RXW_LAST_PACKET,
			      .service = H_SERVICE,
			      .body = head,
			      .size = H_ASK_SIZE};
}

size_t h_raw_encode(uint8_t packet[2048], const struct h_raw *raw)
{
	struct rxw_header h = {.epoch = raw->epoch,
			       .cid = raw->cid,
			       .call = raw->call,
			       .seq = raw->seq,
			       .serial = raw->serial,
			       .type = raw->type,
			       .flags = raw->flags,
			       .security = raw->security,
			       .service = raw->service};

	ck_assert_uint_le(raw->size, 2048 - RXW_HEADER_SIZE);
	rxw_header_put(packet, &h);
	if (raw->size)
		memcpy(packet + RXW_HEADER_SIZE, raw->body, raw->size);
	return RXW_HEADER_SIZE + raw->size;
}

void h_raw_send(int fd, const struct h_raw *raw)
{
	uint8_t packet[2048];
	size_t size = h_raw_encode(packet, raw);

	ck_assert_int_eq(send(fd, packet, size, 0), (ssize_t)size);
}

ssize_t h_raw_receive(int fd, unsigned type, uint8_t packet[2048])
{
	for (;;) {
		ssize_t n = recv(fd, packet, 2048, 0);

		if (n < 0 || (n >= (ssize_t)RXW_HEADER_SIZE && packet[20] == type))
			return n;
	}
}
