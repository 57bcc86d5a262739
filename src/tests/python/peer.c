/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The C side of the tests of the Python package.
 *
 *   peer serve           prints its port; serves until standard input ends
 *   peer call PORT FILE  calls the service of all-types.xg; FILE has pairs of values of at_all and
 *                        at_choice, each with its length before it
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rxwire/rxwire.h>

#include "types.h"

enum {
	AT_SERVICE = 75,
	TYPES_SERVICE = 76, /* a name and a value, which is decoded and encoded again */
	RAW_SERVICE = 77,   /* the reply is the request without its first word */
	CODE_SERVICE = 78,  /* the first word is the code of the call */
	SIZE = 1 << 20
};

static void need(bool good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "peer: %s\n", what);
	exit(1);
}

/* -- values ----------------------------------------------------------------------------------- */

struct coder {
	const char *name;
	size_t size;
	bool (*put)(struct rxw_xdr *x, const void *v);
	bool (*get)(struct rxw_xdr *x, void *v);
	void (*release)(void *v);
};

#define CODER(T)                                              \
	static bool put_##T(struct rxw_xdr *x, const void *v) \
	{                                                     \
		return xdr_put_##T(x, v);                     \
	}                                                     \
	static bool get_##T(struct rxw_xdr *x, void *v)       \
	{                                                     \
		return xdr_get_##T(x, v);                     \
	}                                                     \
	static void release_##T(void *v)                      \
	{                                                     \
		xdrfree_##T(v);                               \
	}
#define EACH(T) CODER(T)
XG_TYPES(EACH)
#define ROW(T) {#T, sizeof(T), put_##T, get_##T, release_##T},
static const struct coder coders[] = {XG_TYPES(ROW)};

static const struct coder *coder_named(const char *name)
{
	for (size_t i = 0; i < sizeof(coders) / sizeof(coders[0]); i++)
		if (!strcmp(coders[i].name, name))
			return &coders[i];
	return NULL;
}

/* A checksum that depends on the order of the bytes. */
static int32_t sum(const uint8_t *data, size_t size)
{
	uint32_t a = 1;

	for (size_t i = 0; i < size; i++)
		a = a * 31 + data[i];
	return (int32_t)a;
}

/* The encoding of a value, malloc'ed. */
static uint8_t *encode(const struct coder *c, const void *v, size_t *size)
{
	uint8_t *data = malloc(SIZE);
	struct rxw_xdr x;

	need(data != NULL, "no memory");
	rxw_xdr_writer(&x, data, SIZE);
	need(c->put(&x, v), "a value cannot be encoded");
	*size = rxw_xdr_used(&x);
	return data;
}

/* -- services --------------------------------------------------------------------------------- */

static int32_t lists(void *context, rxw_call *call, const at_given *given, at_returned *returned)
{
	(void)context;
	(void)call;
	returned->len = given->len;
	returned->val = malloc(given->len + 1);
	if (!returned->val)
		return 12;
	for (uint32_t i = 0; i < given->len; i++)
		returned->val[i] = (char)given->val[i];
	return 0;
}

/* Returns `all` as it is, and the checksum of `choice` as this side encodes it. */
static int32_t swap(void *context, rxw_call *call, at_all *all, const at_choice *choice,
		    at_tree *tree)
{
	size_t size;
	uint8_t *data = encode(coder_named("at_choice"), choice, &size);

	(void)context;
	(void)call;
	(void)all;
	tree->value = sum(data, size);
	free(data);
	return 0;
}

static int32_t stream(void *context, rxw_call *call, const char *name, uint64_t size, int32_t *code)
{
	char data[4096];
	ssize_t n;

	(void)context;
	while (size && (n = rxw_call_read(call, data, size < sizeof(data) ? size : sizeof(data)))) {
		if (n < 0)
			return -1;
		for (ssize_t i = 0; i < n; i++)
			*code += data[i] == *name;
		size -= (uint64_t)n;
	}
	return rxw_call_write(call, name, strlen(name)) == (ssize_t)strlen(name) ? 0 : 3;
}

static const struct AT_handlers at_handlers = {.Lists = lists, .Swap = swap, .Stream = stream};
static struct AT_service at_service = {.handlers = &at_handlers};

static int32_t types(rxw_call *call, void *context)
{
	uint8_t *data = malloc(SIZE), *again;
	struct rxw_xdr x;
	const struct coder *c;
	char *name = NULL;
	int32_t code = 1;
	size_t used, size;
	ssize_t n = data ? rxw_call_read(call, data, SIZE) : -1;
	void *v;

	(void)context;
	rxw_xdr_reader(&x, data, n > 0 ? (size_t)n : 0);
	if (n > 0 && rxw_xdr_get_string(&x, 100, &name) && (c = coder_named(name))) {
		v = calloc(1, c->size);
		used = rxw_xdr_used(&x);
		code = 2;
		if (v && c->get(&x, v) && rxw_xdr_used(&x) == (size_t)n) {
			again = encode(c, v, &size);
			code = size == (size_t)n - used && !memcmp(again, data + used, size) ? 0
											     : 3;
			if (rxw_call_write(call, again, size) != (ssize_t)size)
				code = 4;
			c->release(v);
			free(again);
		}
		free(v);
	}
	free(name);
	free(data);
	return code;
}

static int32_t raw(rxw_call *call, void *context)
{
	uint8_t *data = malloc(SIZE);
	ssize_t n = data ? rxw_call_read(call, data, SIZE) : -1;
	int32_t code = 0;

	(void)context;
	if (n > 4 && rxw_call_write(call, data + 4, (size_t)n - 4) != n - 4)
		code = 1;
	free(data);
	return code;
}

static int32_t fail(rxw_call *call, void *context)
{
	uint8_t word[4];

	(void)context;
	if (rxw_call_read(call, word, sizeof(word)) != sizeof(word))
		return 1;
	return (int32_t)rxw_xdr_load32(word);
}

static void add(rxw_endpoint *endpoint, uint16_t id, rxw_handler_fn handler, void *context)
{
	struct rxw_service_options o = {.size = sizeof(o),
					.id = id,
					.name = "peer",
					.handler = handler,
					.context = context};

	need(!rxw_service_add(endpoint, &o, NULL), "rxw_service_add");
}

static int serve(rxw_engine *engine)
{
	struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct rxw_endpoint_options o = {.size = sizeof(o),
					 .address = (struct sockaddr *)&any,
					 .address_len = sizeof(any),
					 .server = 1};
	struct sockaddr_storage address;
	socklen_t length = sizeof(address);
	rxw_endpoint *endpoint;

	need(!rxw_endpoint_create(engine, &o, &endpoint), "rxw_endpoint_create");
	add(endpoint, AT_SERVICE, AT_ExecuteRequest, &at_service);
	add(endpoint, TYPES_SERVICE, types, NULL);
	add(endpoint, RAW_SERVICE, raw, NULL);
	add(endpoint, CODE_SERVICE, fail, NULL);
	need(!rxw_endpoint_address(endpoint, &address, &length), "rxw_endpoint_address");
	printf("%u\n", ntohs(((struct sockaddr_in *)&address)->sin_port));
	fflush(stdout);
	while (getchar() != EOF)
		;
	need(!rxw_endpoint_destroy(endpoint), "rxw_endpoint_destroy");
	return 0;
}

/* -- client ----------------------------------------------------------------------------------- */

/* Decode the next value of the file; its encoding remains in `data`, of *size bytes. False: end. */
static bool next(FILE *file, const char *type, void *v, uint8_t *data, size_t *size)
{
	const struct coder *c = coder_named(type);
	struct rxw_xdr x;
	uint8_t word[4];

	if (fread(word, 4, 1, file) != 1)
		return false;
	*size = rxw_xdr_load32(word);
	need(*size <= SIZE && fread(data, 1, *size, file) == *size, "the file is too short");
	memset(v, 0, c->size);
	rxw_xdr_reader(&x, data, *size);
	need(c->get(&x, v) && rxw_xdr_used(&x) == *size, "a value cannot be decoded");
	return true;
}

static void call_swap(rxw_connection *connection, at_all *all, const uint8_t *data, size_t size,
		      const at_choice *choice, int32_t want)
{
	at_all given = *all;
	at_tree tree;
	uint8_t *again;
	size_t length;

	need(AT_Swap(connection, all, choice, &tree) == 0, "AT_Swap");
	again = encode(coder_named("at_all"), all, &length);
	need(length == size && !memcmp(again, data, size), "another at_all has come back");
	need(tree.value == want && !tree.left && tree.right && tree.right->value == -1,
	     "another at_tree");
	free(again);
	xdrfree_at_tree(&tree);
	xdrfree_at_all(all);
	xdrfree_at_all(&given);
}

static void call_others(rxw_connection *connection)
{
	int32_t numbers[] = {1, -1, 'x', 0, 300};
	at_given given = {5, numbers};
	at_returned returned;
	char data[30000], back[8] = {0};
	int32_t code = 0;
	rxw_call *call;

	need(AT_Lists(connection, &given, &returned) == 0 && returned.len == 5 &&
		     !memcmp(returned.val, "\1\377x\0\54", 5),
	     "AT_Lists");
	xdrfree_at_returned(&returned);
	numbers[0] = 4711;
	need(AT_Lists(connection, &given, &returned) == 4711, "the code of an exception");
	numbers[0] = 28;
	need(AT_Lists(connection, &given, &returned) == 28, "ENOSPC is translated and turned back");
	numbers[0] = 1000;
	need(AT_Lists(connection, &given, &returned) == RXW_USER_ABORT, "any other exception");
	numbers[0] = 2000;
	need(AT_Lists(connection, &given, &returned) == RXW_RPC_SS_MARSHAL, "a wrong result");
	memset(data, 'z', sizeof(data));
	need(!rxw_call_begin(connection, NULL, &call) &&
		     !StartAT_Stream(call, "zebra", sizeof(data)) &&
		     rxw_call_write(call, data, sizeof(data)) == sizeof(data) &&
		     rxw_call_read(call, back, 5) == 5 && !strcmp(back, "zebra") &&
		     !EndAT_Stream(call, &code) && code == sizeof(data) &&
		     !rxw_call_end(call, 0, NULL),
	     "AT_Stream");
}

/* Requests that a server must refuse, and the code. */
static void call_hostile(rxw_connection *connection)
{
	static const struct {
		size_t size;
		uint32_t word[4];
		int32_t code;
	} requests[] = {
		{0, {0}, RXW_RPC_DECODE},
		{3, {0}, RXW_RPC_DECODE},
		{4, {0xffffffff}, RXW_RPC_OPCODE},
		{4, {1}, RXW_RPC_SS_UNMARSHAL},
		{8, {1, 0xffffffff}, RXW_RPC_SS_UNMARSHAL},
		{8, {1, 6}, RXW_RPC_SS_UNMARSHAL},
		{12, {1, 5, 1}, RXW_RPC_SS_UNMARSHAL},
		{16, {2, 5, 2, 1}, RXW_RPC_SS_UNMARSHAL},
		{16, {3, 2, 0x41004200, 0}, RXW_RPC_SS_UNMARSHAL},
		{8, {3, 0x7fffffff}, RXW_RPC_SS_UNMARSHAL},
	};
	uint8_t data[16], reply[16];
	rxw_call *call;

	for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
		for (size_t k = 0; k < 4; k++)
			rxw_xdr_store32(data + 4 * k, requests[i].word[k]);
		need(!rxw_call_begin(connection, NULL, &call), "rxw_call_begin");
		need(rxw_call_write(call, data, requests[i].size) == (ssize_t)requests[i].size,
		     "rxw_call_write");
		need(rxw_call_read(call, reply, sizeof(reply)) == -RXW_ECALL &&
			     rxw_call_error(call, NULL) == requests[i].code,
		     "the code of a hostile request");
		rxw_call_end(call, 0, NULL);
	}
}

static int call(rxw_engine *engine, const char *port, const char *path)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	uint8_t *data = malloc(SIZE), *other = malloc(SIZE);
	FILE *file = fopen(path, "rb");
	size_t size, other_size;
	rxw_connection *connection;
	rxw_endpoint *endpoint;
	unsigned count = 0;
	at_choice choice;
	at_all all;

	need(data && other && file, path);
	to.sin_port = htons((uint16_t)atoi(port));
	need(!rxw_endpoint_create(engine, NULL, &endpoint), "rxw_endpoint_create");
	need(!rxw_connection_create(endpoint, (struct sockaddr *)&to, sizeof(to), AT_SERVICE, NULL,
				    &connection),
	     "rxw_connection_create");
	for (; next(file, "at_all", &all, data, &size); count++) {
		need(next(file, "at_choice", &choice, other, &other_size), "no at_choice");
		call_swap(connection, &all, data, size, &choice, sum(other, other_size));
		xdrfree_at_choice(&choice);
	}
	call_others(connection);
	call_hostile(connection);
	printf("%u values\n", count);
	fclose(file);
	free(data);
	free(other);
	rxw_connection_release(connection);
	need(!rxw_endpoint_destroy(endpoint), "rxw_endpoint_destroy");
	return 0;
}

int main(int argc, char **argv)
{
	rxw_engine *engine;
	int status;

	need((argc == 2 && !strcmp(argv[1], "serve")) || (argc == 4 && !strcmp(argv[1], "call")),
	     "usage: peer serve | peer call PORT FILE");
	need(!rxw_engine_create(NULL, &engine), "rxw_engine_create");
	status = argc == 2 ? serve(engine) : call(engine, argv[2], argv[3]);
	need(!rxw_engine_destroy(engine), "rxw_engine_destroy");
	return status;
}
