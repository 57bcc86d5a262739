/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Generated stubs on real calls: recorded requests and replies of the protection service
 * (vectors/rxkad-exchanges.json), byte for byte, and a client and a server of all-types.xg.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <jansson.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rxwire/rxwire.h>

#include "afs/pt.h"
#include "tests/asserts.h"

#include "short/all-types.h"

enum {
	PT_SERVICE = 73,
	RAW_SERVICE = 74,
	AT_SERVICE = 75
};

/* -- one server and one client on the loopback interface, for each test ----------------------- */

static rxw_engine *engine;
static rxw_endpoint *server, *client;
static rxw_queue *arrivals; /* of serve_by_queue() */

static void serve(uint16_t id, rxw_handler_fn handler, void *context)
{
	struct rxw_service_options o = {.size = sizeof(o),
					.id = id,
					.name = "test",
					.handler = handler,
					.context = context};
	rxw_service *added;

	ck_assert_int_eq(rxw_service_add(server, &o, &added), 0);
}

static void set_up(void)
{
	struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct rxw_endpoint_options o = {.size = sizeof(o),
					 .address = (struct sockaddr *)&any,
					 .address_len = sizeof(any),
					 .server = 1};

	ck_assert_int_eq(rxw_engine_create(NULL, &engine), 0);
	ck_assert_int_eq(rxw_endpoint_create(engine, &o, &server), 0);
	ck_assert_int_eq(rxw_endpoint_create(engine, NULL, &client), 0);
}

static void tear_down(void)
{
	ck_assert_int_eq(rxw_endpoint_destroy(client), 0);
	ck_assert_int_eq(rxw_endpoint_destroy(server), 0);
	ck_assert_int_eq(rxw_queue_destroy(arrivals), 0);
	ck_assert_int_eq(rxw_engine_destroy(engine), 0);
}

static rxw_connection *connect_to(uint16_t service)
{
	struct sockaddr_storage address;
	socklen_t length = sizeof(address);
	rxw_connection *c;

	ck_assert_int_eq(rxw_endpoint_address(server, &address, &length), 0);
	ck_assert_int_eq(rxw_connection_create(client, (struct sockaddr *)&address, length, service,
					       NULL, &c),
			 0);
	return c;
}

/* -- recorded calls --------------------------------------------------------------------------- */

struct bytes {
	uint8_t data[4096];
	size_t size;
};

static void from_hex(const char *hex, struct bytes *b)
{
	b->size = strlen(hex) / 2;
	ck_assert_uint_le(b->size, sizeof(b->data));
	for (size_t i = 0; i < b->size; i++) {
		unsigned byte;

		ck_assert_int_eq(sscanf(hex + 2 * i, "%2x", &byte), 1);
		b->data[i] = (uint8_t)byte;
	}
}

static void ck_same(const char *id, const struct bytes *got, const struct bytes *want)
{
	ck_assert_msg(got->size == want->size, "%s: %zu bytes, not %zu", id, got->size, want->size);
	for (size_t i = 0; i < want->size; i++)
		ck_assert_msg(got->data[i] == want->data[i], "%s: byte %zu is %02x, not %02x", id,
			      i, got->data[i], want->data[i]);
}

/* The arguments and results of the recorded calls. */
static int32_t name_to_id(void *context, rxw_call *call, const namelist *names, idlist *ids)
{
	(void)context;
	(void)call;
	if (names->len != 1 || strncmp(names->val[0], "alice", sizeof(names->val[0])))
		return 1;
	ids->val = malloc(sizeof(*ids->val));
	if (!ids->val)
		return 2;
	ids->len = 1;
	ids->val[0] = 1;
	return 0;
}

static int32_t id_to_name(void *context, rxw_call *call, const idlist *ids, namelist *names)
{
	(void)context;
	(void)call;
	(void)names;
	return ids->len ? 1 : 0;
}

static int32_t list_entry(void *context, rxw_call *call, int32_t id, prcheckentry *entry)
{
	(void)context;
	(void)call;
	entry->id = id;
	entry->reserved[4] = -1;
	memcpy(entry->name, "alice", 5);
	return 0;
}

static const struct PR_handlers pt_handlers = {
	.NameToID = name_to_id, .IDToName = id_to_name, .ListEntry = list_entry};
static struct PR_service pt_service = {.handlers = &pt_handlers};

/* A service without stubs: stores the request and returns a given reply. */
static struct bytes raw_request, raw_reply;

static int32_t raw(rxw_call *call, void *context)
{
	ssize_t n = rxw_call_read(call, raw_request.data, sizeof(raw_request.data));

	(void)context;
	if (n < 0)
		return 1;
	raw_request.size = (size_t)n;
	n = rxw_call_write(call, raw_reply.data, raw_reply.size);
	return n == (ssize_t)raw_reply.size ? 0 : 2;
}

/*
 * The generated server returns the recorded reply to a request, or the code of an unknown opcode.
 */
static void server_answers(const char *id, const struct bytes *request, const struct bytes *reply,
			   int32_t code)
{
	rxw_connection *c = connect_to(PT_SERVICE);
	struct bytes got;
	rxw_call *call;
	ssize_t n;

	ck_assert_int_eq(rxw_call_begin(c, NULL, &call), 0);
	ck_assert_int_eq(rxw_call_write(call, request->data, request->size), request->size);
	n = rxw_call_read(call, got.data, sizeof(got.data));
	got.size = n > 0 ? (size_t)n : 0;
	ck_assert_msg(rxw_call_error(call, NULL) == code, "%s: code %d, not %d", id,
		      rxw_call_error(call, NULL), code);
	rxw_call_end(call, 0, NULL);
	if (!code && reply)
		ck_same(id, &got, reply);
	rxw_connection_release(c);
}

/* The generated client sends the recorded request and decodes the recorded reply. */
static void client_asks(const char *id, const struct bytes *request, const struct bytes *reply)
{
	rxw_connection *c = connect_to(RAW_SERVICE);
	prname name = "alice";
	namelist names = {1, &name}, back;
	idlist none = {0}, ids;
	prcheckentry entry;

	raw_reply = *reply;
	switch (rxw_xdr_load32(request->data)) {
	case PR_OP_NameToID:
		ck_assert_int_eq(PR_NameToID(c, &names, &ids), 0);
		ck_assert_uint_eq(ids.len, 1);
		ck_assert_int_eq(ids.val[0], 1);
		xdrfree_idlist(&ids);
		break;
	case PR_OP_IDToName:
		ck_assert_int_eq(PR_IDToName(c, &none, &back), 0);
		ck_assert_uint_eq(back.len, 0);
		xdrfree_namelist(&back);
		break;
	case PR_OP_ListEntry:
		/* The reply was not recorded; an empty one is too short. */
		ck_assert_int_eq(PR_ListEntry(c, 1, &entry), RXW_RPC_CC_UNMARSHAL);
		break;
	default:
		ck_abort_msg("%s: a call without a stub", id);
	}
	ck_same(id, &raw_request, request);
	rxw_connection_release(c);
}

/* The plain payload of a packet; NULL if it is not DATA of the service. */
static const char *plain(json_t *packet, json_int_t port, json_int_t call)
{
	json_t *header = json_object_get(json_object_get(packet, "fields"), "header");
	const char *data =
		json_string_value(json_object_get(json_object_get(packet, "plain"), "data"));

	if (json_integer_value(json_object_get(header, "serviceId")) != PT_SERVICE ||
	    json_integer_value(json_object_get(header, "type")) != 1 ||
	    json_integer_value(json_object_get(header, "seq")) != 1 ||
	    (port && json_integer_value(json_object_get(packet, "udpDestinationPort")) != port) ||
	    (call && json_integer_value(json_object_get(header, "callNumber")) != call))
		return NULL;
	return data;
}

static json_int_t call_number(json_t *packet)
{
	return json_integer_value(json_object_get(
		json_object_get(json_object_get(packet, "fields"), "header"), "callNumber"));
}

/* The reply to packet `at` of an exchange; NULL if it was not recorded. */
static const char *reply_to(json_t *packets, size_t at)
{
	json_t *request = json_array_get(packets, at);
	json_int_t port = json_integer_value(json_object_get(request, "udpSourcePort"));

	for (size_t i = at + 1; i < json_array_size(packets); i++) {
		const char *data = plain(json_array_get(packets, i), port, call_number(request));

		if (data)
			return data;
	}
	return NULL;
}

/* This server does not make users. */
static bool has_handler(uint32_t operation)
{
	return operation == PR_OP_NameToID || operation == PR_OP_IDToName ||
	       operation == PR_OP_ListEntry;
}

START_TEST(recorded)
{
	json_error_t error;
	json_t *file = json_load_file(RXW_TEST_SRCDIR "/vectors/rxkad-exchanges.json", 0, &error);
	json_t *exchange, *packet;
	size_t i, k, asked = 0, answered = 0, unknown = 0;

	ck_assert_msg(file != NULL, "%s", error.text);
	serve(PT_SERVICE, PR_ExecuteRequest, &pt_service);
	serve(RAW_SERVICE, raw, NULL);
	json_array_foreach(json_object_get(file, "exchanges"), i, exchange)
	{
		json_t *packets = json_object_get(exchange, "packets");

		json_array_foreach(packets, k, packet)
		{
			const char *id = json_string_value(json_object_get(packet, "id"));
			const char *request_hex = plain(packet, 7002, 0), *reply_hex;
			struct bytes request, reply = {.size = 0};

			if (!request_hex)
				continue;
			reply_hex = reply_to(packets, k);
			from_hex(request_hex, &request);
			if (reply_hex)
				from_hex(reply_hex, &reply);
			if (!has_handler(rxw_xdr_load32(request.data))) {
				server_answers(id, &request, NULL, RXW_RPC_OPCODE);
				unknown++;
				continue;
			}
			server_answers(id, &request, reply_hex ? &reply : NULL, 0);
			answered += reply_hex != NULL;
			client_asks(id, &request, &reply);
			asked++;
		}
	}
	json_decref(file);
	/* The file contains this number of requests, of replies, and of requests that create users. */
	ck_assert_uint_eq(asked, 20);
	ck_assert_uint_eq(answered, 19);
	ck_assert_uint_eq(unknown, 1);
}
END_TEST

/* -- hostile calls ---------------------------------------------------------------------------- */

/* An invalid request ends the call with an error; the server continues. */
START_TEST(hostile_requests)
{
	static const struct {
		size_t size;
		uint32_t word[4];
		int32_t code;
	} requests[] = {
		{0, {0}, RXW_RPC_DECODE},
		{3, {0}, RXW_RPC_DECODE},
		{4, {0xffffffff}, RXW_RPC_OPCODE},
		{4, {PR_OP_NameToID}, RXW_RPC_SS_UNMARSHAL},
		{8, {PR_OP_NameToID, 0xffffffff}, RXW_RPC_SS_UNMARSHAL},
		{16, {PR_OP_NameToID, 500000, 0, 0}, RXW_RPC_SS_UNMARSHAL},
		{16, {PR_OP_NameToID, 500001, 0, 0}, RXW_RPC_SS_UNMARSHAL},
		{16, {PR_OP_IDToName, 3, 1, 1}, RXW_RPC_SS_UNMARSHAL},
		{8, {PR_OP_IDToName, 0x80000000}, RXW_RPC_SS_UNMARSHAL},
		{7, {PR_OP_ListEntry, 1}, RXW_RPC_SS_UNMARSHAL},
	};
	struct bytes request, reply = {.size = 4};

	serve(PT_SERVICE, PR_ExecuteRequest, &pt_service);
	for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
		char id[24];

		snprintf(id, sizeof(id), "request %zu", i);
		request.size = requests[i].size;
		for (size_t k = 0; k < 4; k++)
			rxw_xdr_store32(request.data + 4 * k, requests[i].word[k]);
		server_answers(id, &request, NULL, requests[i].code);
	}
	/* IDToName without names. */
	request.size = 8;
	rxw_xdr_store32(request.data, PR_OP_IDToName);
	rxw_xdr_store32(request.data + 4, 0);
	rxw_xdr_store32(reply.data, 0);
	server_answers("a valid call afterwards", &request, &reply, 0);
}
END_TEST

/* An invalid reply is an error for the client; results are zero, with nothing to free. */
START_TEST(hostile_replies)
{
	static const struct {
		size_t size;
		uint32_t word[4];
	} replies[] = {{0, {0}},
		       {3, {0}},
		       {4, {1}},
		       {8, {0xffffffff}},
		       {16, {500000, 1, 1, 1}},
		       {16, {500001, 1, 1, 1}},
		       {12, {3, 1, 1}},
		       {4, {0x40000000}}};
	rxw_connection *c;
	prname name = "alice";
	namelist names = {1, &name};
	idlist ids;

	serve(RAW_SERVICE, raw, NULL);
	c = connect_to(RAW_SERVICE);
	for (size_t i = 0; i < sizeof(replies) / sizeof(replies[0]); i++) {
		raw_reply.size = replies[i].size;
		for (size_t k = 0; k < 4; k++)
			rxw_xdr_store32(raw_reply.data + 4 * k, replies[i].word[k]);
		memset(&ids, 0xa5, sizeof(ids));
		ck_assert_int_eq(PR_NameToID(c, &names, &ids), RXW_RPC_CC_UNMARSHAL);
		ck_assert(ids.len == 0 && ids.val == NULL);
	}
	rxw_connection_release(c);
}
END_TEST

/* Interfaces are compiled with a limit of 64 KiB for a request: 255 names fit, 256 do not. */
START_TEST(request_limit)
{
	namelist names = {255, NULL};
	idlist ids;
	rxw_connection *c;

	serve(PT_SERVICE, PR_ExecuteRequest, &pt_service);
	c = connect_to(PT_SERVICE);
	names.val = calloc(1000, sizeof(*names.val));
	ck_assert_ptr_nonnull(names.val);
	ck_assert_int_eq(PR_NameToID(c, &names, &ids),
			 1); /* the handler's code for several names */
	names.len = 256;
	ck_assert_int_eq(PR_NameToID(c, &names, &ids), RXW_RPC_SS_UNMARSHAL);
	names.len = 1000;
	ck_assert_int_eq(PR_NameToID(c, &names, &ids), RXW_RPC_SS_UNMARSHAL);
	free(names.val);
	rxw_connection_release(c);
}
END_TEST

/* -- stubs of all-types.xg: parameters that imply types, INOUT, multi, split ------------------ */

static int32_t lists(void *context, rxw_call *call, const at_given *given, at_returned *returned)
{
	(void)call;
	ck_assert_ptr_eq(context, &engine);
	returned->len = given->len;
	returned->val = malloc(given->len + 1);
	if (!returned->val)
		return 12;
	for (uint32_t i = 0; i < given->len; i++)
		returned->val[i] = (char)given->val[i];
	return 0;
}

static int32_t swap(void *context, rxw_call *call, at_all *all, const at_choice *choice,
		    at_tree *tree)
{
	(void)context;
	(void)call;
	if (choice->what == 1)
		return choice->u.number;
	all->floats.f = -all->floats.f;
	tree->value = 5;
	tree->left = calloc(1, sizeof(*tree->left));
	if (tree->left)
		tree->left->value = 6;
	return 0;
}

static int32_t stream(void *context, rxw_call *call, const char *name, uint64_t size, int32_t *code)
{
	char c;

	(void)context;
	while (size-- && rxw_call_read(call, &c, 1) == 1)
		*code += c == *name;
	return rxw_call_write(call, name, strlen(name)) == (ssize_t)strlen(name) ? 0 : 3;
}

static const struct AT_handlers at_handlers = {.Lists = lists, .Swap = swap, .Stream = stream};
static struct AT_service at_service = {.base = {.context = &engine}, .handlers = &at_handlers};

START_TEST(plain_stubs)
{
	int32_t numbers[] = {1, -1, 'x', 0, 300, 6};
	at_given given = {5, numbers};
	at_returned returned;
	rxw_connection *c;

	serve(AT_SERVICE, AT_ExecuteRequest, &at_service);
	c = connect_to(AT_SERVICE);
	ck_assert_int_eq(AT_Lists(c, &given, &returned), 0);
	ck_assert_uint_eq(returned.len, 5);
	ck_assert_mem_eq(returned.val, "\1\xffx\0\x2c", 5);
	xdrfree_at_returned(&returned);
	given.len = 0;
	ck_assert_int_eq(AT_Lists(c, &given, &returned), 0);
	ck_assert(returned.len == 0 && returned.val == NULL);
	given.len = 6; /* above the bound: rejected before it is sent */
	ck_assert_int_eq(AT_Lists(c, &given, &returned), RXW_RPC_CC_MARSHAL);
	ck_assert(returned.len == 0 && returned.val == NULL);
	rxw_connection_release(c);
}
END_TEST

static void make_all(at_all *all, at_choice *choice, at_link *link)
{
	*all = (at_all){.strict = {.color = AT_BLUE}};
	all->choices.len = 1;
	all->choices.val = choice;
	all->floats.f = 2.5f;
	all->floats.d = -1e300;
	link->value = 9;
	link->next = NULL;
	all->chains.two = link;
}

static void ck_swapped(const at_all *all, const at_tree *tree)
{
	ck_assert(all->floats.f == -2.5f && all->floats.d == -1e300);
	ck_assert_uint_eq(all->choices.len, 1);
	ck_assert_int_eq(all->choices.val[0].what, 8);
	ck_assert_ptr_null(all->chains.one);
	ck_assert_int_eq(all->chains.two->value, 9);
	ck_assert_ptr_null(all->chains.two->next);
	ck_assert(tree->value == 5 && tree->left->value == 6 && !tree->right && !tree->left->left);
}

START_TEST(inout)
{
	at_choice nothing = {.what = 8}, refuse = {.what = 1, .u = {.number = 4711}};
	at_link link;
	at_tree tree;
	at_all all;
	rxw_connection *c;

	serve(AT_SERVICE, AT_ExecuteRequest, &at_service);
	c = connect_to(AT_SERVICE);
	make_all(&all, &nothing, &link);
	ck_assert_int_eq(AT_Swap(c, &all, &nothing, &tree), 0);
	ck_assert_ptr_ne(all.choices.val, &nothing); /* arguments are still the caller's */
	ck_swapped(&all, &tree);
	xdrfree_at_all(&all);
	xdrfree_at_tree(&tree);

	make_all(&all, &nothing, &link);
	ck_assert_int_eq(AT_Swap(c, &all, &refuse, &tree), 4711);
	ck_assert(all.choices.val == NULL && all.floats.f == 0 && !tree.left && !tree.value);
	rxw_connection_release(c);
}
END_TEST

static unsigned replies;

static void on_swap(void *arg, unsigned index, int32_t code, at_all *all, at_tree *tree)
{
	ck_assert_ptr_eq(arg, &replies);
	ck_assert_uint_lt(index, 12);
	ck_assert_int_eq(code, 0);
	ck_swapped(all, tree);
	replies |= 1u << index;
}

/* Twelve parallel calls on three connections with four channels each. */
START_TEST(multi)
{
	at_choice nothing = {.what = 8};
	rxw_connection *c[12];
	at_link link;
	at_all all;

	serve(AT_SERVICE, AT_ExecuteRequest, &at_service);
	for (size_t i = 0; i < 12; i++)
		c[i] = i < 3 ? connect_to(AT_SERVICE) : c[i % 3];
	make_all(&all, &nothing, &link);
	ck_assert_int_eq(multi_AT_Swap(c, 12, &all, &nothing, on_swap, &replies), 0);
	ck_assert_uint_eq(replies, 0xfff);
	ck_assert_ptr_eq(all.choices.val, &nothing);
	for (size_t i = 0; i < 3; i++)
		rxw_connection_release(c[i]);
}
END_TEST

static void on_silence(void *arg, unsigned index, int32_t code, at_all *all, at_tree *tree)
{
	(void)arg;
	(void)tree;
	ck_assert_int_eq(code, RXW_CALL_TIMEOUT);
	ck_assert_ptr_null(all->choices.val);
	replies |= 1u << index;
}

/* Call options: each call has its deadline if no server answers. */
START_TEST(with_options)
{
	struct rxw_call_options options = {.size = sizeof(options), .deadline_ms = 50};
	struct sockaddr_in silent = {.sin_family = AF_INET,
				     .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof(silent);
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int32_t number = 1;
	at_given given = {1, &number};
	at_choice nothing = {.what = 8};
	at_returned returned;
	rxw_connection *c[6];
	at_link link;
	at_all all;

	ck_assert_int_eq(bind(fd, (struct sockaddr *)&silent, length), 0);
	ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&silent, &length), 0);
	ck_assert_int_eq(rxw_connection_create(client, (struct sockaddr *)&silent, length,
					       AT_SERVICE, NULL, &c[0]),
			 0);
	ck_assert_int_eq(AT_Lists_opt(c[0], &options, &given, &returned), RXW_CALL_TIMEOUT);
	ck_assert(returned.len == 0 && returned.val == NULL);
	for (size_t i = 1; i < 6; i++)
		c[i] = c[0];
	make_all(&all, &nothing, &link);
	replies = 0;
	ck_assert_int_eq(multi_AT_Swap_opt(c, 6, &options, &all, &nothing, on_silence, NULL), 0);
	ck_assert_uint_eq(replies, 0x3f);
	/* A plain stub waits. */
	options.flags = RXW_CALL_NONBLOCK;
	ck_assert_int_eq(AT_Lists_opt(c[0], &options, &given, &returned),
			 rxw_code_from_errno(EINVAL));
	rxw_connection_release(c[0]);
	close(fd);
}
END_TEST

START_TEST(split)
{
	char data[3000], back[24] = {0};
	rxw_connection *c;
	rxw_call *call;
	int32_t code = 0;

	serve(AT_SERVICE, AT_ExecuteRequest, &at_service);
	c = connect_to(AT_SERVICE);
	memset(data, 'z', sizeof(data));
	ck_assert_int_eq(rxw_call_begin(c, NULL, &call), 0);
	ck_assert_int_eq(StartAT_Stream(call, "zebra", sizeof(data)), 0);
	ck_assert_int_eq(rxw_call_write(call, data, sizeof(data)), sizeof(data));
	ck_assert_int_eq(rxw_call_read(call, back, 5), 5);
	ck_assert_str_eq(back, "zebra");
	ck_assert_int_eq(EndAT_Stream(call, &code), 0);
	ck_assert_int_eq(code, sizeof(data));
	ck_assert_int_eq(rxw_call_end(call, 0, NULL), 0);
	rxw_connection_release(c);
}
END_TEST

/* -- answers by another thread ------------------------------------------------------------------ */

static rxw_call *held;	    /* the call that a function has deferred */
static pthread_t answering; /* the thread that answers it */

static int32_t hold(rxw_call *call, void *(*answer)(void *arg), void *arg)
{
	ck_assert_int_eq(rxw_call_defer(call), 0);
	held = call;
	ck_assert_int_eq(pthread_create(&answering, NULL, answer, arg), 0);
	return RXW_RPC_DEFERRED;
}

/* As many bytes as the first number says. */
static void *answer_lists(void *arg)
{
	char bytes[65];
	at_returned returned = {(uint32_t)(uintptr_t)arg, bytes};
	int32_t want = returned.len <= 64 ? 0 : RXW_RPC_SS_MARSHAL;

	memset(bytes, 'b', sizeof(bytes));
	ck_assert_int_eq(AT_Lists_reply(held, 0, &returned), want);
	return NULL;
}

static int32_t lists_later(void *context, rxw_call *call, const at_given *given,
			   at_returned *returned)
{
	(void)context;
	(void)returned;
	return hold(call, answer_lists, (void *)(uintptr_t)given->val[0]);
}

static void *answer_swap(void *arg)
{
	at_choice choice = {.what = 8};
	at_tree left = {.value = 6}, tree = {.value = 5, .left = &left};
	at_link link;
	at_all all;

	make_all(&all, &choice, &link);
	all.floats.f = -all.floats.f;
	if (arg)
		ck_assert_int_ne(AT_Swap_reply(held, (int32_t)(intptr_t)arg, NULL, NULL), 0);
	else
		ck_assert_int_eq(AT_Swap_reply(held, 0, &all, &tree), 0);
	return NULL;
}

static int32_t swap_later(void *context, rxw_call *call, at_all *all, const at_choice *choice,
			  at_tree *tree)
{
	(void)context;
	(void)all;
	(void)tree;
	return hold(call, answer_swap,
		    (void *)(intptr_t)(choice->what == 1 ? choice->u.number : 0));
}

static const struct AT_handlers later_handlers = {.Lists = lists_later, .Swap = swap_later};
static struct AT_service later_service = {.handlers = &later_handlers};

START_TEST(answered_later)
{
	at_choice nothing = {.what = 8}, refuse = {.what = 1};
	int32_t number = 64;
	at_given given = {1, &number};
	at_returned returned;
	rxw_connection *c;
	at_link link;
	at_tree tree;
	at_all all;

	serve(AT_SERVICE, AT_ExecuteRequest, &later_service);
	c = connect_to(AT_SERVICE);
	ck_assert_int_eq(AT_Lists(c, &given, &returned), 0);
	pthread_join(answering, NULL);
	ck_assert_uint_eq(returned.len, 64);
	ck_assert(returned.val[0] == 'b' && returned.val[63] == 'b');
	xdrfree_at_returned(&returned);
	number = 65; /* above the bound */
	ck_assert_int_eq(AT_Lists(c, &given, &returned), RXW_RPC_SS_MARSHAL);
	pthread_join(answering, NULL);

	make_all(&all, &nothing, &link);
	ck_assert_int_eq(AT_Swap(c, &all, &nothing, &tree), 0);
	pthread_join(answering, NULL);
	ck_swapped(&all, &tree);
	xdrfree_at_all(&all);
	xdrfree_at_tree(&tree);
	/* Translated by the server, and back by the client. */
	make_all(&all, &nothing, &link);
	refuse.u.number = ENOSPC;
	ck_assert_int_eq(AT_Swap(c, &all, &refuse, &tree), ENOSPC);
	pthread_join(answering, NULL);
	rxw_connection_release(c);
}
END_TEST

/* -- a service whose calls a queue delivers ----------------------------------------------------- */

static void serve_by_queue(void)
{
	struct rxw_service_options o = {.size = sizeof(o), .id = AT_SERVICE, .name = "queued"};
	rxw_service *added;

	ck_assert_int_eq(rxw_queue_create(engine, NULL, &arrivals), 0);
	o.queue = arrivals;
	ck_assert_int_eq(rxw_service_add(server, &o, &added), 0);
}

static void collect_arrivals(struct rxw_queue_event *arrived, unsigned count)
{
	for (unsigned n = 0; n < count;) {
		int r = rxw_queue_next(arrivals, arrived + n, count - n, 30000);

		ck_assert_int_gt(r, 0);
		n += (unsigned)r;
	}
}

/* Serve a call that the queue has delivered, as an application does. */
static void serve_arrived(rxw_call *call, const struct AT_service *service)
{
	int32_t code = AT_ExecuteRequest(call, (void *)service);

	if (code != RXW_RPC_DEFERRED)
		rxw_call_end(call, code, NULL);
}

/* The first number is the length of the result, or a negative code. */
static int32_t lists_of_length(void *context, rxw_call *call, const at_given *given,
			       at_returned *returned)
{
	(void)context;
	(void)call;
	if (given->val[0] < 0)
		return -given->val[0];
	returned->len = (uint32_t)given->val[0];
	returned->val = calloc(returned->len + 1, 1);
	return returned->val ? 0 : ENOMEM;
}

static int32_t swap_kept(void *context, rxw_call *call, at_all *all, const at_choice *choice,
			 at_tree *tree)
{
	(void)context;
	(void)all;
	(void)tree;
	held = call;
	ck_assert_int_eq(
		pthread_create(&answering, NULL, answer_swap,
			       (void *)(intptr_t)(choice->what == 1 ? choice->u.number : 0)),
		0);
	return RXW_RPC_DEFERRED;
}

static const struct AT_handlers queued_handlers = {.Lists = lists_of_length, .Swap = swap_kept};
static const struct AT_service queued_service = {.handlers = &queued_handlers};

static void *serve_next(void *arg)
{
	struct rxw_queue_event arrived;

	(void)arg;
	collect_arrivals(&arrived, 1);
	serve_arrived(arrived.call, &queued_service);
	return NULL;
}

/* The code of a request of these words, which the queue delivers. */
static int32_t queued_words(rxw_connection *c, const uint32_t *words, size_t count)
{
	pthread_t serving;
	uint8_t bytes[16];
	rxw_call *call;
	int32_t code;

	for (size_t i = 0; i < count; i++)
		rxw_xdr_store32(bytes + 4 * i, words[i]);
	ck_assert_int_eq(pthread_create(&serving, NULL, serve_next, NULL), 0);
	ck_assert_int_eq(rxw_call_begin(c, NULL, &call), 0);
	ck_assert_int_eq(rxw_call_write(call, bytes, 4 * count), (ssize_t)(4 * count));
	ck_assert_int_eq(rxw_call_send_end(call), 0);
	code = rxw_call_end(call, 0, NULL);
	pthread_join(serving, NULL);
	return code;
}

static int32_t queued_lists(rxw_connection *c, int32_t number, at_returned *returned)
{
	at_given given = {1, &number};
	pthread_t serving;
	int32_t code;

	ck_assert_int_eq(pthread_create(&serving, NULL, serve_next, NULL), 0);
	code = AT_Lists(c, &given, returned);
	pthread_join(serving, NULL);
	return code;
}

static int32_t queued_swap(rxw_connection *c, const at_choice *choice, at_all *all, at_tree *tree)
{
	pthread_t serving;
	int32_t code;

	ck_assert_int_eq(pthread_create(&serving, NULL, serve_next, NULL), 0);
	code = AT_Swap(c, all, choice, tree);
	pthread_join(serving, NULL);
	pthread_join(answering, NULL);
	return code;
}

/* The dispatcher answers results as results and errors as errors, at once and later. */
START_TEST(dispatcher_at_a_queue)
{
	at_choice nothing = {.what = 8}, refuse = {.what = 1, .u = {.number = ENOSPC}};
	at_returned returned;
	rxw_connection *c;
	at_link link;
	at_tree tree;
	at_all all;

	serve_by_queue();
	c = connect_to(AT_SERVICE);
	ck_assert_int_eq(queued_lists(c, 64, &returned), 0);
	ck_assert_uint_eq(returned.len, 64);
	xdrfree_at_returned(&returned);
	ck_assert_int_eq(queued_lists(c, -4711, &returned), 4711);
	ck_assert(returned.len == 0 && returned.val == NULL);
	/* Translated by the server, and back by the client. */
	ck_assert_int_eq(queued_lists(c, -ENOSPC, &returned), ENOSPC);
	ck_assert_int_eq(queued_lists(c, 65, &returned), RXW_RPC_SS_MARSHAL);
	ck_assert_int_eq(queued_words(c, (uint32_t[]){99}, 1), RXW_RPC_OPCODE);
	ck_assert_int_eq(queued_words(c, NULL, 0), RXW_RPC_DECODE);
	ck_assert_int_eq(queued_words(c, (uint32_t[]){AT_OP_Lists, 0xffffffff}, 2),
			 RXW_RPC_SS_UNMARSHAL);
	/* Without a function. */
	ck_assert_int_eq(queued_words(c, (uint32_t[]){AT_OP_Stream}, 1), RXW_RPC_OPCODE);
	make_all(&all, &nothing, &link);
	ck_assert_int_eq(queued_swap(c, &nothing, &all, &tree), 0);
	ck_swapped(&all, &tree);
	xdrfree_at_all(&all);
	xdrfree_at_tree(&tree);
	make_all(&all, &nothing, &link);
	ck_assert_int_eq(queued_swap(c, &refuse, &all, &tree), ENOSPC);
	ck_assert(all.choices.val == NULL && !tree.left);
	rxw_connection_release(c);
}
END_TEST

/* -- pools -------------------------------------------------------------------------------------- */

#define MOST	  3
#define IN_FLIGHT (4 * MOST)
#define CALLERS	  (IN_FLIGHT + 8)

static rxw_connpool *pool_to(uint16_t service, unsigned most)
{
	struct sockaddr_storage address;
	socklen_t length = sizeof(address);
	rxw_connpool *pool;

	ck_assert_int_eq(rxw_endpoint_address(server, &address, &length), 0);
	ck_assert_int_eq(rxw_connpool_create(client, (struct sockaddr *)&address, length, service,
					     NULL, most, &pool),
			 0);
	return pool;
}

struct caller {
	rxw_connpool *pool;
	pthread_t thread;
	_Atomic(pid_t) tid; /* 0: it has not begun */
	int32_t number, code;
	uint32_t length;
};

static void *call_lists(void *arg)
{
	struct caller *me = arg;
	at_given given = {1, &me->number};
	at_returned returned;

	atomic_store(&me->tid, gettid());
	me->code = AT_Lists_pool(me->pool, NULL, &given, &returned);
	me->length = returned.len;
	xdrfree_at_returned(&returned);
	return NULL;
}

static void start_callers(struct caller *callers, rxw_connpool *pool, unsigned from, unsigned to)
{
	for (unsigned i = from; i < to; i++) {
		callers[i] = (struct caller){.pool = pool, .number = (int32_t)i};
		if (i % 4 == 3)
			callers[i].number = -ENOSPC;
		ck_assert_int_eq(pthread_create(&callers[i].thread, NULL, call_lists, &callers[i]),
				 0);
	}
}

/* All channels of the pool are in use; further callers wait for one, or for their deadlines. */
START_TEST(many_calls_on_a_pool)
{
	struct rxw_call_options options = {.size = sizeof(options), .deadline_ms = 50};
	struct rxw_queue_event arrived[IN_FLIGHT];
	struct caller callers[CALLERS];
	int32_t number = 1;
	at_given given = {1, &number};
	at_returned returned;
	rxw_connpool *pool;

	serve_by_queue();
	pool = pool_to(AT_SERVICE, MOST);
	start_callers(callers, pool, 0, IN_FLIGHT);
	collect_arrivals(arrived, IN_FLIGHT);
	ck_assert_int_eq(AT_Lists_pool(pool, &options, &given, &returned), RXW_CALL_TIMEOUT);
	ck_assert(returned.len == 0 && returned.val == NULL);
	ck_assert_uint_eq(rxw_rpc_origin(), RXW_ORIGIN_LOCAL);
	start_callers(callers, pool, IN_FLIGHT, CALLERS);
	for (unsigned i = 0; i < IN_FLIGHT; i++)
		serve_arrived(arrived[i].call, &queued_service);
	for (unsigned i = IN_FLIGHT; i < CALLERS; i++)
		serve_next(NULL);
	for (unsigned i = 0; i < CALLERS; i++) {
		bool fails = callers[i].number < 0;

		pthread_join(callers[i].thread, NULL);
		ck_assert_int_eq(callers[i].code, fails ? ENOSPC : 0);
		ck_assert_uint_eq(callers[i].length, fails ? 0 : i);
	}
	rxw_connpool_release(pool);
}
END_TEST

/* rxw_connpool_abort() ends the calls with its code; the pool remains usable. */
START_TEST(abort_of_a_pool)
{
	struct rxw_queue_event arrived[4];
	struct caller callers[4], later;
	rxw_connpool *pool;

	serve_by_queue();
	pool = pool_to(AT_SERVICE, 1);
	start_callers(callers, pool, 0, 4);
	collect_arrivals(arrived, 4);
	ck_assert_int_eq(rxw_connpool_abort(pool, 77), 0);
	for (unsigned i = 0; i < 4; i++) {
		pthread_join(callers[i].thread, NULL);
		ck_assert_int_eq(callers[i].code, 77);
		rxw_call_end(arrived[i].call, 1, NULL);
	}
	start_callers(&later, pool, 0, 1);
	serve_next(NULL);
	pthread_join(later.thread, NULL);
	ck_assert_int_eq(later.code, 0);
	rxw_connpool_release(pool);
}
END_TEST

/* It waits for another thread, and not for the disk. */
static bool is_waiting(pid_t tid)
{
	char path[48], text[128] = "", *state;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)tid);
	file = fopen(path, "r");
	ck_assert_ptr_nonnull(file);
	state = fgets(text, sizeof(text), file) ? strrchr(text, ')') : NULL;
	fclose(file);
	return state && !strncmp(state, ") S", 3);
}

/* Code 0 is RXW_USER_ABORT, also for a stub that waits for a channel. */
START_TEST(abort_of_a_pool_without_code)
{
	rxw_call *begun[4];
	struct caller waiter;
	rxw_connpool *pool;

	pool = pool_to(AT_SERVICE, 1);
	for (unsigned i = 0; i < 4; i++)
		ck_assert_int_eq(rxw_connpool_begin(pool, NULL, &begun[i]), 0);
	start_callers(&waiter, pool, 0, 1);
	/* It has to wait first: calls that are aborted leave their channels. */
	while (!atomic_load(&waiter.tid) || !is_waiting(waiter.tid))
		usleep(1000);
	ck_assert_int_eq(rxw_connpool_abort(pool, 0), 0);
	pthread_join(waiter.thread, NULL);
	ck_assert_int_eq(waiter.code, RXW_USER_ABORT);
	for (unsigned i = 0; i < 4; i++)
		ck_assert_int_eq(rxw_call_end(begun[i], 0, NULL), RXW_USER_ABORT);
	rxw_connpool_release(pool);
}
END_TEST

/* Twelve calls on two pools, of which one is given nine times and has one connection. */
START_TEST(multi_on_pools)
{
	at_choice nothing = {.what = 8};
	rxw_connpool *few, *more, *pools[12];
	at_link link;
	at_all all;

	serve(AT_SERVICE, AT_ExecuteRequest, &at_service);
	few = pool_to(AT_SERVICE, 1);
	more = pool_to(AT_SERVICE, 2);
	for (size_t i = 0; i < 12; i++)
		pools[i] = i % 4 ? few : more;
	make_all(&all, &nothing, &link);
	replies = 0;
	ck_assert_int_eq(multi_AT_Swap_pool(pools, 12, NULL, &all, &nothing, on_swap, &replies), 0);
	ck_assert_uint_eq(replies, 0xfff);
	rxw_connpool_release(few);
	rxw_connpool_release(more);
}
END_TEST

/* The deadline of a member, also while calls that are no members have all channels of its pool. */
START_TEST(multi_and_busy_pools)
{
	struct rxw_call_options options = {.size = sizeof(options), .deadline_ms = 50};
	struct rxw_queue_event arrived[4];
	at_choice nothing = {.what = 8};
	struct caller callers[4];
	rxw_connpool *pools[2];
	at_link link;
	at_all all;

	serve_by_queue();
	pools[0] = pool_to(AT_SERVICE, 1);
	pools[1] = pool_to(AT_SERVICE, 1);
	start_callers(callers, pools[0], 0, 4);
	collect_arrivals(arrived, 4);
	make_all(&all, &nothing, &link);
	replies = 0;
	ck_assert_int_eq(multi_AT_Swap_pool(pools, 2, &options, &all, &nothing, on_silence, NULL),
			 0);
	ck_assert_uint_eq(replies, 3);
	for (unsigned i = 0; i < 4; i++)
		serve_arrived(arrived[i].call, &queued_service);
	for (unsigned i = 0; i < 4; i++)
		pthread_join(callers[i].thread, NULL);
	rxw_connpool_release(pools[0]);
	rxw_connpool_release(pools[1]);
}
END_TEST

START_TEST(pools_that_refuse)
{
	struct rxw_call_options options = {.size = sizeof(options), .flags = RXW_CALL_NONBLOCK};
	at_choice nothing = {.what = 8};
	int32_t number = 1;
	at_given given = {1, &number};
	at_returned returned;
	rxw_connpool *pool;
	at_link link;
	at_all all;

	serve(AT_SERVICE, AT_ExecuteRequest, &at_service);
	pool = pool_to(AT_SERVICE, 1);
	make_all(&all, &nothing, &link);
	ck_assert_int_eq(AT_Lists_pool(NULL, NULL, &given, &returned), rxw_code_from_errno(EINVAL));
	ck_assert_int_eq(AT_Lists_pool(pool, &options, &given, &returned),
			 rxw_code_from_errno(EINVAL));
	ck_assert_int_eq(multi_AT_Swap_pool(NULL, 1, NULL, &all, &nothing, on_swap, NULL),
			 -RXW_EINVAL);
	ck_assert_int_eq(multi_AT_Swap_pool(&pool, 1, NULL, &all, &nothing, NULL, NULL),
			 -RXW_EINVAL);
	ck_assert_int_eq(multi_AT_Swap_pool(NULL, 0, NULL, &all, &nothing, on_swap, NULL), 0);
	ck_assert_int_eq(rxw_endpoint_stop(client, 0), 0);
	ck_assert_int_eq(AT_Lists_pool(pool, NULL, &given, &returned),
			 rxw_code_from_errno(ESHUTDOWN));
	rxw_connpool_release(pool);
}
END_TEST

int main(void)
{
	SRunner *runner;
	Suite *s = suite_create("calls");
	TCase *t = tcase_create("all");
	int failed;

	tcase_add_checked_fixture(t, set_up, tear_down);
	tcase_add_test(t, recorded);
	tcase_add_test(t, hostile_requests);
	tcase_add_test(t, hostile_replies);
	tcase_add_test(t, request_limit);
	tcase_add_test(t, plain_stubs);
	tcase_add_test(t, inout);
	tcase_add_test(t, multi);
	tcase_add_test(t, with_options);
	tcase_add_test(t, answered_later);
	tcase_add_test(t, split);
	tcase_add_test(t, dispatcher_at_a_queue);
	tcase_add_test(t, many_calls_on_a_pool);
	tcase_add_test(t, abort_of_a_pool);
	tcase_add_test(t, abort_of_a_pool_without_code);
	tcase_add_test(t, multi_on_pools);
	tcase_add_test(t, multi_and_busy_pools);
	tcase_add_test(t, pools_that_refuse);
	suite_add_tcase(s, t);
	runner = srunner_create(s);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
