/* SPDX-License-Identifier: BSD-2-Clause */
/* Generated stubs with values of all types, on two endpoints. */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "scenario.h"
#include "short/all-types.h"

#define SERVICE 75
#define EACH	3u /* connections */
#define CALLS	6u /* of the multi call */
#define ROOM	8192u

static struct {
	rxw_engine *server_engine, *client_engine;
	rxw_endpoint *server, *client;
	rxw_connection *connection[EACH];
	struct sockaddr_storage address;
	socklen_t address_len;
} bed;

/* --- the server returns its arguments --- */

static int32_t lists(void *context, rxw_call *call, const at_given *given, at_returned *returned)
{
	(void)context;
	(void)call;
	returned->val = malloc(given->len + 1);
	if (!returned->val)
		return RXW_RPC_SS_UNMARSHAL;
	returned->len = given->len;
	for (uint32_t i = 0; i < given->len; i++)
		returned->val[i] = (char)given->val[i];
	return 0;
}

static int32_t swap(void *context, rxw_call *call, at_all *all, const at_choice *choice,
		    at_tree *tree)
{
	(void)context;
	(void)call;
	all->floats.f = -all->floats.f;
	tree->value = choice->what;
	tree->left = calloc(1, sizeof(*tree->left));
	return tree->left ? 0 : RXW_RPC_SS_UNMARSHAL;
}

static int32_t stream(void *context, rxw_call *call, const char *name, uint64_t size, int32_t *code)
{
	size_t length = strlen(name);
	char c;

	(void)context;
	while (size-- && rxw_call_read(call, &c, 1) == 1)
		*code += c == *name;
	return rxw_call_write(call, name, length) == (ssize_t)length ? 0 : RXW_USER_ABORT;
}

static const struct AT_handlers handlers = {.Lists = lists, .Swap = swap, .Stream = stream};
static struct AT_service service = {.handlers = &handlers};

/* --- the values: static, never freed --- */

/* Compound literals outside of functions have static lifetime. */
static at_node nodes[3] = {{(char[]){"one"}, &nodes[1]}, {(char[]){"two"}, &nodes[2]},
			   {(char[]){"last"}, NULL}};
static at_link links[2] = {{1, &links[1]}, {2, NULL}};
static at_scalars scalars[2] = {{.i = -1, .color = AT_RED}, {.h = -1, .color = AT_BELOW}};
static at_bytes more = {7, (char[]){"opaque"}};
static at_ints ints = {1, 2, 3};
static at_color hint = AT_GREEN;
static at_rich rich = {.hint = &hint,
		       .more = &more,
		       .text = (char[]){"rich"},
		       .ints = &ints,
		       .list = {2, scalars}};
static at_unsigned rest = {.kind = 0, .u = {.none = {3, (char[]){"non"}}}};
static double doubles[2] = {1.5, -1e300};
static at_choice choices[5] = {{.what = 3, .u = {.text = (char[]){"text"}}},
			       {.what = 4, .u = {.bytes = {6, (char[]){"bytes"}}}},
			       {.what = 5, .u = {.list = {2, scalars}}},
			       {.what = 7, .u = {.node = nodes}},
			       {.what = 8}};
static at_all all = {
	.choices = {5, choices},
	.strict = {.color = AT_RED, .u = {.red = (char[]){"red"}}},
	.either = {{.yes = true, .u = {.choice = {.what = 3, .u = {.text = (char[]){"x"}}}}}},
	.rest = &rest,
	.chains = {&links[0], &links[1], &nodes[1], &rich},
	.floats = {.f = 2.5f, .ds = {2, doubles}},
};

static size_t encode(const at_all *value, uint8_t data[ROOM])
{
	struct rxw_xdr x;

	rxw_xdr_writer(&x, data, ROOM);
	expect(xdr_put_at_all(&x, value), "values that cannot be encoded");
	return rxw_xdr_used(&x);
}

static bool empty(const void *value, size_t size)
{
	const uint8_t *p = value;

	while (size && !*p) {
		p++;
		size--;
	}
	return !size;
}

/* The results are equal to the arguments, or empty if the call failed. */
static void check_swapped(int32_t code, const at_all *back, const at_tree *tree)
{
	static uint8_t went[ROOM], came[ROOM];
	at_all same = *back;
	size_t size;

	if (code) {
		expect(empty(back, sizeof(*back)) && empty(tree, sizeof(*tree)),
		       "Swap failed with %d but has values", code);
		return;
	}
	expect(same.floats.f == -2.5f, "the wrong float");
	same.floats.f = 2.5f;
	size = encode(&same, came);
	expect(size == encode(&all, went) && !memcmp(went, came, size),
	       "the results differ from the arguments");
	expect(tree->value == 8 && tree->left && !tree->right, "the wrong tree");
}

/* --- the client --- */

static int32_t call_lists(rxw_connection *c)
{
	int32_t numbers[] = {1, -1, 'x', 0, 300};
	const at_given given = {5, numbers};
	at_returned returned;
	int32_t code;

	/*
	 * Padding counts as well where all bytes must be zero, and nothing guarantees that it is
	 * written.
	 */
	memset(&returned, 0, sizeof(returned));
	returned.len = 1;
	returned.val = (void *)numbers;
	code = AT_Lists(c, &given, &returned);
	expect(code ? empty(&returned, sizeof(returned))
		    : returned.len == 5 && !memcmp(returned.val, "\1\xffx\0\x2c", 5),
	       "Lists: wrong values with code %d", code);
	xdrfree_at_returned(&returned);
	return code;
}

static int32_t call_swap(rxw_connection *c)
{
	at_all value;
	at_tree tree;
	int32_t code;

	memcpy(&value, &all, sizeof(value));
	memset(&tree, 0, sizeof(tree));
	tree.value = 1;
	code = AT_Swap(c, &value, &choices[4], &tree);
	check_swapped(code, &value, &tree);
	xdrfree_at_all(&value);
	xdrfree_at_tree(&tree);
	return code;
}

static void on_swap(void *arg, unsigned index, int32_t code, at_all *value, at_tree *tree)
{
	unsigned *replies = arg;

	expect(index < CALLS && !(*replies & 1u << index), "reply %u came twice", index);
	*replies |= 1u << index;
	check_swapped(code, value, tree);
}

static int call_multi(void)
{
	rxw_connection *c[CALLS];
	unsigned replies = 0;
	int r;

	for (unsigned i = 0; i < CALLS; i++)
		c[i] = bed.connection[i % EACH];
	r = multi_AT_Swap(c, CALLS, &all, &choices[4], on_swap, &replies);
	scenario_sane("multi", r);
	expect(r || replies == (1u << CALLS) - 1, "multi: replies %x", replies);
	return r;
}

static int32_t call_stream(rxw_connection *c)
{
	char data[3000], back[5];
	int32_t r, code = 0;
	rxw_call *call;

	r = rxw_call_begin(c, NULL, &call);
	scenario_sane("begin", r);
	if (r)
		return r;
	memset(data, 'z', sizeof(data));
	r = StartAT_Stream(call, "zebra", sizeof(data));
	if (!r)
		r = rxw_call_write(call, data, sizeof(data)) == (ssize_t)sizeof(data) ? 0 : 1;
	if (!r)
		r = rxw_call_read(call, back, 5) == 5 ? 0 : 1;
	if (!r)
		r = EndAT_Stream(call, &code);
	expect(r || code == sizeof(data), "Stream counted %d", code);
	return rxw_call_end(call, r ? RXW_USER_ABORT : 0, NULL);
}

static void work(void)
{
	call_lists(bed.connection[0]);
	call_swap(bed.connection[1]);
	call_stream(bed.connection[2]);
	call_multi();
}

/* --- up and down --- */

static int connect_to(unsigned i)
{
	int r = rxw_connection_create(bed.client, (struct sockaddr *)&bed.address, bed.address_len,
				      SERVICE, NULL, &bed.connection[i]);

	scenario_sane("connection_create", r);
	if (r)
		bed.connection[i] = NULL;
	return r;
}

static bool up(void)
{
	struct rxw_service_options o = {.size = sizeof(o),
					.id = SERVICE,
					.name = "stubs",
					.handler = AT_ExecuteRequest,
					.context = &service};
	rxw_service *added;

	memset(&bed, 0, sizeof(bed));
	bed.address_len = sizeof(bed.address);
	if (scenario_engine(&bed.server_engine) || scenario_engine(&bed.client_engine) ||
	    scenario_endpoint(bed.server_engine, true, &bed.server) ||
	    rxw_service_add(bed.server, &o, &added) ||
	    rxw_endpoint_address(bed.server, &bed.address, &bed.address_len) ||
	    rxw_endpoint_start(bed.server) ||
	    scenario_endpoint(bed.client_engine, false, &bed.client))
		return false;
	for (unsigned i = 0; i < EACH; i++)
		if (connect_to(i))
			return false;
	return true;
}

static void lives_on(bool whole)
{
	int32_t code[4];

	if (!whole)
		return;
	for (unsigned i = 0; i < EACH; i++) {
		rxw_connection_release(bed.connection[i]);
		expect(!connect_to(i), "no connection afterwards");
	}
	code[0] = call_lists(bed.connection[0]);
	code[1] = call_swap(bed.connection[1]);
	code[2] = call_stream(bed.connection[2]);
	code[3] = call_multi();
	for (unsigned i = 0; i < 4; i++)
		expect(!code[i], "call %u afterwards ends with %d (%s)", i, code[i],
		       rxw_code_text(code[i]));
}

static void down(void)
{
	for (unsigned i = 0; i < EACH; i++)
		rxw_connection_release(bed.connection[i]);
	scenario_destroy(bed.client, bed.client_engine);
	scenario_destroy(bed.server, bed.server_engine);
}

const struct scenario scenario_stubs = {
	.calm_up = true, .up = up, .work = work, .lives_on = lives_on, .down = down};
