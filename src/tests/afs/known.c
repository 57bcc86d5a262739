/* SPDX-License-Identifier: BSD-2-Clause */
/* Compares known bytes with the stubs of both sides, over loopback. */
#include "tests/afs/known.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <rxwire/engine.h>

#define CANNED	   200 /* service ids */
#define DISPATCHED 201
#define BYTES_MAX  65536

struct bytes {
	uint8_t data[BYTES_MAX];
	size_t length;
};

static rxw_engine *engine;
static rxw_endpoint *server, *client;
static struct sockaddr_storage address;
static socklen_t address_len;
static rxw_connection *to_canned, *to_dispatched;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* expected bytes of the next comparison */
static struct bytes seen, answer;
static int32_t refusal;

/* One unit: pairs of digits, or text in quotes. Returns its end. */
static const char *parse_unit(const char *text, struct bytes *out)
{
	if (*text == '\'') {
		for (text++; *text != '\''; text++) {
			ck_assert(*text && out->length < BYTES_MAX);
			out->data[out->length++] = (uint8_t)*text;
		}
		return text + 1;
	}
	while (isxdigit((unsigned char)*text)) {
		char pair[3] = {text[0], text[1], 0};

		ck_assert_msg(isxdigit((unsigned char)text[1]) && out->length < BYTES_MAX,
			      "no bytes: %s", text);
		out->data[out->length++] = (uint8_t)strtoul(pair, NULL, 16);
		text += 2;
	}
	return text;
}

static void parse(const char *text, struct bytes *out)
{
	out->length = 0;
	while (*text) {
		size_t start = out->length, unit, times;
		char *end;

		if (*text == ' ' || *text == '|') {
			text++;
			continue;
		}
		text = parse_unit(text, out);
		unit = out->length - start;
		ck_assert_msg(unit > 0, "no bytes: %s", text);
		if (*text != '*')
			continue;
		times = strtoul(text + 1, &end, 10);
		text = end;
		ck_assert(times > 0 && start + times * unit <= BYTES_MAX);
		for (size_t i = 1; i < times; i++, out->length += unit)
			memcpy(out->data + out->length, out->data + start, unit);
	}
}

static void same(const struct bytes *got, const char *text, const char *what)
{
	struct bytes *want = malloc(sizeof(*want));
	size_t at = 0;

	parse(text, want);
	while (at < got->length && at < want->length && got->data[at] == want->data[at])
		at++;
	ck_assert_msg(
		at == want->length && at == got->length,
		"%s: %zu bytes instead of %zu; the first that differs is byte %zu of word %zu",
		what, got->length, want->length, at % 4, at / 4);
	free(want);
}

static int32_t canned(rxw_call *call, void *context)
{
	struct bytes *reply = malloc(sizeof(*reply));
	int32_t code;
	ssize_t n;

	(void)context;
	pthread_mutex_lock(&lock);
	n = rxw_call_read(call, seen.data, sizeof(seen.data));
	seen.length = n < 0 ? 0 : (size_t)n;
	*reply = answer;
	code = refusal;
	refusal = 0;
	pthread_mutex_unlock(&lock);
	if (code == 0 && reply->length > 0 &&
	    rxw_call_write(call, reply->data, reply->length) != (ssize_t)reply->length)
		code = rxw_call_error(call, NULL);
	free(reply);
	return code;
}

static rxw_connection *connect_to(uint16_t id)
{
	rxw_connection *connection;

	ck_assert_int_eq(rxw_connection_create(client, (struct sockaddr *)&address, address_len, id,
					       NULL, &connection),
			 0);
	return connection;
}

static void add_service(uint16_t id, rxw_handler_fn handler, void *context)
{
	struct rxw_service_options so = {.size = sizeof(so),
					 .id = id,
					 .name = "known",
					 .handler = handler,
					 .context = context};
	rxw_service *service;

	ck_assert_int_eq(rxw_service_add(server, &so, &service), 0);
}

void known_setup(void)
{
	struct sockaddr_in loopback = {.sin_family = AF_INET,
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct rxw_endpoint_options eo = {.size = sizeof(eo),
					  .address = (struct sockaddr *)&loopback,
					  .address_len = sizeof(loopback)};
	struct rxw_config config;

	rxw_config_init(&config, sizeof(config));
	ck_assert_int_eq(rxw_engine_create(&config, &engine), 0);
	ck_assert_int_eq(rxw_endpoint_create(engine, &eo, &client), 0);
	eo.server = 1;
	ck_assert_int_eq(rxw_endpoint_create(engine, &eo, &server), 0);
	address_len = sizeof(address);
	ck_assert_int_eq(rxw_endpoint_address(server, &address, &address_len), 0);
	add_service(CANNED, canned, NULL);
	to_canned = connect_to(CANNED);
	to_dispatched = NULL;
	refusal = 0;
}

void known_teardown(void)
{
	rxw_connection_release(to_canned);
	if (to_dispatched)
		rxw_connection_release(to_dispatched);
	ck_assert_int_eq(rxw_endpoint_destroy(client), 0);
	ck_assert_int_eq(rxw_endpoint_destroy(server), 0);
	ck_assert_int_eq(rxw_engine_destroy(engine), 0);
}

rxw_connection *known_peer(void)
{
	return to_canned;
}

void known_answer(const char *reply)
{
	pthread_mutex_lock(&lock);
	parse(reply, &answer);
	pthread_mutex_unlock(&lock);
}

void known_refusal(int32_t code)
{
	pthread_mutex_lock(&lock);
	refusal = code;
	pthread_mutex_unlock(&lock);
}

void known_request(const char *request)
{
	pthread_mutex_lock(&lock);
	same(&seen, request, "request");
	pthread_mutex_unlock(&lock);
}

void known_dispatcher(rxw_handler_fn execute, void *service)
{
	add_service(DISPATCHED, execute, service);
	to_dispatched = connect_to(DISPATCHED);
}

/* The call's code, and the reply received before it. */
static int32_t exchange(const char *request, struct bytes *reply)
{
	rxw_call *call;
	ssize_t n;

	parse(request, reply);
	ck_assert_int_eq(rxw_call_begin(to_dispatched, NULL, &call), 0);
	if (reply->length > 0) {
		/* A long request may be refused before it was sent completely. */
		n = rxw_call_write(call, reply->data, reply->length);
		ck_assert(n == (ssize_t)reply->length || n == -RXW_ECALL);
	}
	n = rxw_call_read(call, reply->data, sizeof(reply->data));
	reply->length = n < 0 ? 0 : (size_t)n;
	return rxw_call_end(call, 0, NULL);
}

void known_exchange(const char *request, const char *reply)
{
	struct bytes *got = malloc(sizeof(*got));

	ck_assert_int_eq(exchange(request, got), 0);
	same(got, reply, "reply");
	free(got);
}

void known_failure(const char *request, int32_t code)
{
	struct bytes *got = malloc(sizeof(*got));

	ck_assert_int_eq(exchange(request, got), code);
	free(got);
}

int known_main(const char *name, const TTest *const *tests, size_t count)
{
	Suite *suite = suite_create(name);
	TCase *tcase = tcase_create(name);
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tcase, known_setup, known_teardown);
	for (size_t i = 0; i < count; i++)
		tcase_add_test(tcase, tests[i]);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
