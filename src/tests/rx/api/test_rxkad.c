/* SPDX-License-Identifier: BSD-2-Clause */
/* rxkad in use: keys from a function, tokens from a given key, names, a rule that changes. */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "harness.h"
#include "tests/main.h"

#define SERVICE 300
#define KVNO	7

static struct h_bed bed;
static rxw_security *server_class;
static rxw_service *service;
static const uint8_t key[32] = {9, 8, 7, 6, 5, 4, 3, 2, 1};
static const uint8_t session_key[8] = {0x13, 0x34, 0x57, 0x79, 0x9b, 0xbc, 0xdf, 0xf1};

/* What find_key() was asked, and what it answers. */
static struct {
	_Atomic(unsigned) asked;
	_Atomic(int32_t) kvno, enctype;
	_Atomic(int) result;
	_Atomic(size_t) length;
	_Atomic(unsigned) destroyed;
} finder;

static void destroy_finder(void *context)
{
	ck_assert_ptr_eq(context, &bed);
	finder.destroyed++;
}

/* Uses the library: no lock of it is held, or some of these would never return. */
static int find_key(void *context, int32_t kvno, int32_t enctype, void *to, size_t room,
		    size_t *length)
{
	struct rxw_effective effective = {.size = sizeof(effective)};
	rxw_connection *other = h_connect(context, SERVICE);

	ck_assert_int_eq(rxw_endpoint_set(bed.server, "poll-us", "0"), 0);
	ck_assert_int_eq(rxw_endpoint_effective(bed.server, &effective), 0);
	rxw_connection_release(other);
	finder.asked++;
	finder.kvno = kvno;
	finder.enctype = enctype;
	ck_assert_uint_eq(room, RXW_KEY_MAX);
	memcpy(to, key, sizeof(key));
	*length = finder.length;
	return finder.result;
}

/* The identity of the latest call, in one line. */
static char seen[512];
static bool seen_local;

static int32_t handler(rxw_call *call, void *context)
{
	struct rxw_identity id = {.size = sizeof(id)};

	(void)context;
	ck_assert_int_eq(rxw_call_identity(call, &id), 0);
	pthread_mutex_lock(&bed.lock);
	snprintf(seen, sizeof(seen), "%s|%s|%s|%s|%s|%d", id.name, id.rxkad_name, id.rxkad_primary,
		 id.rxkad_instance, id.rxkad_cell, id.rxkad_kvno);
	seen_local = id.local;
	pthread_mutex_unlock(&bed.lock);
	return 0;
}

static void open_with(rxw_keys *keys, rxw_rxkad_key_fn find)
{
	struct rxw_rxkad_server_options options = {.size = sizeof(options),
						   .keys = keys,
						   .find_key = find,
						   .find_context = &bed,
						   .find_destroy = destroy_finder};
	struct rxw_service_options o = {.size = sizeof(o),
					.id = SERVICE,
					.handler = handler,
					.security = &server_class,
					.security_count = 1};

	finder.asked = 0;
	finder.destroyed = 0;
	finder.result = 0;
	finder.length = sizeof(key);
	h_open(&bed, &(struct h_options){.security = "null"});
	ck_assert_int_eq(rxw_rxkad_server(&options, &server_class), 0);
	ck_assert_int_eq(rxw_service_add(bed.server, &o, &service), 0);
}

static void close_all(void)
{
	h_close(&bed);
	rxw_security_unref(server_class);
}

/* One call with a token; returns its code. */
static rxw_code call_with(const struct rxw_rxkad_token *token)
{
	rxw_security *security;
	rxw_connection *connection;
	rxw_call *call;
	rxw_code code;

	ck_assert_int_eq(rxw_rxkad_client(token, RXW_LEVEL_CRYPT, &security), 0);
	ck_assert_int_eq(rxw_connection_create(bed.client, (struct sockaddr *)&bed.address,
					       bed.address_len, SERVICE, security, &connection),
			 0);
	ck_assert_int_eq(rxw_call_begin(connection, NULL, &call), 0);
	code = rxw_call_end(call, 0, NULL);
	rxw_connection_release(connection);
	rxw_security_unref(security);
	return code;
}

/* A token for `name`, sealed with `key` as version KVNO of enctype 18. */
static struct rxw_rxkad_print_options printed(const char *name)
{
	return (struct rxw_rxkad_print_options){.size = sizeof(struct rxw_rxkad_print_options),
						.name = name,
						.key = key,
						.key_length = sizeof(key),
						.kvno = KVNO,
						.enctype = 18,
						.session_key = session_key};
}

static rxw_code call_as(const char *name)
{
	struct rxw_rxkad_print_options options = printed(name);
	struct rxw_rxkad_token token = {.size = sizeof(token)};
	rxw_code code;

	ck_assert_int_eq(rxw_rxkad_print_token(NULL, &options, &token), 0);
	ck_assert_mem_eq(token.session_key, session_key, 8);
	code = call_with(&token);
	rxw_rxkad_token_free(&token);
	return code;
}

/* The function is asked for each client, with the numbers of the ticket. */
START_TEST(key_function)
{
	open_with(NULL, find_key);
	for (unsigned i = 1; i <= 3; i++) {
		ck_assert_int_eq(call_as("carol/admin@RXWIRE.TEST"), 0);
		ck_assert_uint_eq(finder.asked, i);
		ck_assert_int_eq(finder.kvno, KVNO);
		ck_assert_int_eq(finder.enctype, 18);
	}
	ck_assert_str_eq(seen, "carol/admin@RXWIRE.TEST|carol.admin@RXWIRE.TEST|carol|admin|"
			       "RXWIRE.TEST|213");
	ck_assert(!seen_local);
	ck_assert_int_eq(call_as(NULL), 0);
	ck_assert_str_eq(seen, "afs|afs|afs|||213");
	ck_assert(seen_local);
	ck_assert_uint_eq(finder.destroyed, 0);
	close_all();
	ck_assert_uint_eq(finder.destroyed, 1);
}
END_TEST

/* The user sees a code; the log of the server has the client's address and the reason, once. */
START_TEST(refused_clients_are_logged)
{
	char line[256];
	unsigned lines;

	open_with(NULL, find_key);
	finder.result = -1;
	ck_assert_int_eq(call_as("carol@R"), RXW_RXKAD_UNKNOWNKEY);
	pthread_mutex_lock(&bed.lock);
	lines = bed.refusals;
	snprintf(line, sizeof(line), "%s", bed.refusal);
	pthread_mutex_unlock(&bed.lock);
	ck_assert_uint_eq(lines, 1);
	ck_assert_msg(strstr(line, " was refused by service 300 (rxkad): ") &&
			      strstr(line, rxw_code_text(RXW_RXKAD_UNKNOWNKEY)),
		      "%s", line);
	close_all();
}
END_TEST

/* No such key; a length of nothing, and one beyond the room. */
START_TEST(key_function_without_key)
{
	static const struct {
		int result;
		size_t length;
	} cases[] = {{-1, 32}, {0, 0}, {0, RXW_KEY_MAX + 1}};

	open_with(NULL, find_key);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		finder.result = cases[i].result;
		finder.length = cases[i].length;
		ck_assert_int_eq(call_as("carol@R"), RXW_RXKAD_UNKNOWNKEY);
	}
	finder.result = 0;
	finder.length = 16; /* not that of the enctype */
	ck_assert_int_eq(call_as("carol@R"), RXW_RXKAD_BADTICKET);
	close_all();
}
END_TEST

/* The table comes first; the function is asked for what it lacks. */
START_TEST(table_and_function)
{
	struct rxw_rxkad_token token = {.size = sizeof(token)};
	rxw_keys *keys;

	ck_assert_int_eq(rxw_keys_create(&keys), 0);
	ck_assert_int_eq(rxw_keys_generate(keys, RXW_KEY_KRB5, 1, 17), 0);
	open_with(keys, find_key);
	ck_assert_int_eq(rxw_rxkad_print_token(keys, NULL, &token), 0);
	ck_assert_int_eq(call_with(&token), 0);
	ck_assert_uint_eq(finder.asked, 0);
	ck_assert_int_eq(call_as("dave@R"), 0);
	ck_assert_uint_eq(finder.asked, 1);
	rxw_rxkad_token_free(&token);
	rxw_keys_unref(keys);
	close_all();
}
END_TEST

/* Names with dots: only the parts tell them apart. The rule changes while clients come. */
START_TEST(dotted_names)
{
	open_with(NULL, find_key);
	ck_assert_int_eq(call_as("a.b@C"), RXW_RXKAD_BADTICKET);
	ck_assert_int_eq(rxw_rxkad_allow_dotted(server_class, 1), 0);
	ck_assert_int_eq(call_as("a.b@C"), 0);
	ck_assert_str_eq(seen, "a.b@C|a.b@C|a.b||C|213");
	ck_assert_int_eq(call_as("a/b@C"), 0);
	ck_assert_str_eq(seen, "a/b@C|a.b@C|a|b|C|213");
	ck_assert_int_eq(rxw_rxkad_allow_dotted(server_class, 0), 0);
	ck_assert_int_eq(call_as("a.b@C"), RXW_RXKAD_BADTICKET);
	close_all();
}
END_TEST

static void ignore(void *data)
{
	(void)data;
}

/* Only a server's class of rxkad has the rule; data belongs to the class that made it. */
START_TEST(other_classes)
{
	struct rxw_security_class class = {.size = sizeof(class), .index = 9, .destroy = ignore};
	struct rxw_rxkad_print_options options = printed(NULL);
	struct rxw_rxkad_token token = {.size = sizeof(token)};
	rxw_security *client, *ours;
	int data;

	ck_assert_int_eq(rxw_security_create(&class, &data, &ours), 0);
	ck_assert_int_eq(rxw_rxkad_print_token(NULL, &options, &token), 0);
	ck_assert_int_eq(rxw_rxkad_client(&token, 0, &client), 0);
	ck_assert_int_eq(rxw_rxkad_allow_dotted(client, 1), -RXW_EINVAL);
	ck_assert_int_eq(rxw_rxkad_allow_dotted(ours, 1), -RXW_EINVAL);
	ck_assert_int_eq(rxw_rxkad_allow_dotted(rxw_security_null(), 1), -RXW_EINVAL);
	ck_assert_ptr_eq(rxw_security_data(ours, ignore), &data);
	ck_assert_ptr_null(rxw_security_data(client, ignore));
	ck_assert_ptr_null(rxw_security_data(rxw_security_null(), NULL));
	rxw_rxkad_token_free(&token);
	rxw_security_unref(client);
	rxw_security_unref(ours);
}
END_TEST

static int print_of(struct rxw_rxkad_print_options options, struct rxw_rxkad_token *token)
{
	return rxw_rxkad_print_token(NULL, &options, token);
}

/* Given times are those of the token, and servers judge by them. */
START_TEST(given_times)
{
	struct rxw_rxkad_print_options options = printed("carol@R");
	struct rxw_rxkad_token token = {.size = sizeof(token)};
	int64_t now = (int64_t)time(NULL);
	static const struct {
		int64_t begins, expires;
		rxw_code code;
	} cases[] = {
		{-60, 600, 0}, {-7200, -3600, RXW_RXKAD_EXPIRED}, {3600, 7200, RXW_RXKAD_NOAUTH}};

	open_with(NULL, find_key);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		options.begins = now + cases[i].begins;
		options.expires = now + cases[i].expires;
		ck_assert_int_eq(rxw_rxkad_print_token(NULL, &options, &token), 0);
		ck_assert_int_eq(token.begins, options.begins);
		ck_assert_int_eq(token.expires, options.expires);
		ck_assert_int_eq(call_with(&token), cases[i].code);
		rxw_rxkad_token_free(&token);
	}
	/* As OpenAFS's servers make them for themselves. */
	options.begins = 0;
	options.expires = 0xffffffff;
	ck_assert_int_eq(rxw_rxkad_print_token(NULL, &options, &token), 0);
	ck_assert_int_eq(call_with(&token), 0);
	rxw_rxkad_token_free(&token);
	close_all();
}
END_TEST

START_TEST(invalid_print_options)
{
	static const uint8_t weak[8] = {1, 1, 1, 1, 1, 1, 1, 1};
	struct rxw_rxkad_token token = {.size = sizeof(token)};
	struct rxw_rxkad_print_options o;

	o = printed(NULL);
	o.key_length = 31;
	ck_assert_int_eq(print_of(o, &token), -RXW_EINVAL);
	o = printed(NULL);
	o.enctype = 0;
	ck_assert_int_eq(print_of(o, &token), -RXW_EINVAL);
	o.enctype = 4711;
	ck_assert_int_eq(print_of(o, &token), -RXW_ENOTSUP);
	o = printed(NULL);
	o.kvno = -1;
	ck_assert_int_eq(print_of(o, &token), -RXW_EINVAL);
	o = printed(NULL);
	o.session_key = weak;
	ck_assert_int_eq(print_of(o, &token), -RXW_EINVAL);
	o = printed(NULL);
	o.begins = 5;
	ck_assert_int_eq(print_of(o, &token), -RXW_EINVAL);
	o.expires = 5;
	ck_assert_int_eq(print_of(o, &token), -RXW_EINVAL);
	o.expires = 6;
	o.lifetime_s = 1;
	ck_assert_int_eq(print_of(o, &token), -RXW_EINVAL);
	o = printed(NULL);
	o.key = NULL;
	ck_assert_int_eq(print_of(o, &token), -RXW_EINVAL);
	ck_assert_ptr_null(token.ticket);
}
END_TEST

TEST_MAIN_WITHIN(60, "rxkad in use", key_function, refused_clients_are_logged, key_function_without_key, table_and_function,
		 dotted_names, other_classes, given_times, invalid_print_options)
