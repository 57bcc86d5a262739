/* SPDX-License-Identifier: BSD-2-Clause */
/* Hand-written stubs in the form of compiled ones: types, client, server and its functions. */
#include <stdio.h>

#include "stubs.h"

static const struct rxw_rpc_function functions[T_FUNCTIONS] = {
	{ T_OP_ECHO, "T_Echo" }, { T_OP_FAIL, "T_Fail" }, { T_OP_LIST, "T_List" },
	{ T_OP_WAIT, "T_Wait" }, { T_OP_PUT, "T_Put" },   { T_OP_ABSENT, "T_Absent" },
};
const struct rxw_rpc_interface T_interface = { "T_", 77, T_FUNCTIONS, functions, false };

/* -- types ---------------------------------------------------------------------------------- */

bool t_put_items(struct rxw_xdr *x, const struct t_items *v)
{
	if (v->len > T_ITEMS_MAX)
		return rxw_xdr_fail(x);
	rxw_xdr_put_u32(x, v->len);
	for (uint32_t i = 0; i < v->len; i++) {
		rxw_xdr_put_u32(x, v->val[i].number);
		if (!rxw_xdr_put_string(x, v->val[i].name, T_NAME_MAX))
			return false;
	}
	return rxw_xdr_ok(x);
}

bool t_get_items(struct rxw_xdr *x, struct t_items *v)
{
	size_t room = 0;
	uint32_t count;

	*v = (struct t_items){ 0 };
	if (!rxw_xdr_get_count(x, T_ITEMS_MAX, 8, &count))
		return false;
	while (v->len < count) {
		struct t_item *one;

		if (v->len == room) {
			struct t_item *more = rxw_xdr_grow(x, v->val, &room, count, sizeof(*more));

			if (!more)
				goto fail;
			v->val = more;
		}
		one = &v->val[v->len];
		*one = (struct t_item){ 0 };
		if (!rxw_xdr_get_u32(x, &one->number) ||
		    !rxw_xdr_get_string(x, T_NAME_MAX, &one->name))
			goto fail;
		v->len++;
	}
	return true;
fail:
	t_free_items(v);
	return false;
}

void t_free_items(struct t_items *v)
{
	for (uint32_t i = 0; i < v->len; i++)
		free(v->val[i].name);
	free(v->val);
	*v = (struct t_items){ 0 };
}

/* -- client --------------------------------------------------------------------------------- */

int32_t T_Echo(rxw_connection *connection, const struct rxw_opaque *in, struct rxw_opaque *out)
{
	struct rxw_rpc_stream s;
	rxw_call *call;
	int32_t code = rxw_rpc_begin(connection, NULL, &call);

	*out = (struct rxw_opaque){ 0 };
	if (code)
		return code;
	rxw_rpc_writer(&s, call);
	rxw_xdr_put_u32(&s.xdr, T_OP_ECHO);
	rxw_xdr_put_bytes(&s.xdr, in->val, in->len, T_DATA_MAX);
	if (!rxw_rpc_flush(&s))
		code = RXW_RPC_CC_MARSHAL;
	if (!code) {
		rxw_rpc_reader(&s, call, RXW_RPC_WHOLE, 0);
		if (!rxw_xdr_get_bytes(&s.xdr, T_DATA_MAX, &out->val, &out->len))
			code = RXW_RPC_CC_UNMARSHAL;
	}
	code = rxw_rpc_end(call, code, &T_interface, T_FN_ECHO);
	if (code) {
		free(out->val);
		*out = (struct rxw_opaque){ 0 };
	}
	return code;
}

static int32_t end_items(rxw_call *call, struct rxw_rpc_stream *s, struct t_items *items,
			 unsigned function)
{
	int32_t code = rxw_rpc_flush(s) ? 0 : RXW_RPC_CC_MARSHAL;

	if (!code) {
		rxw_rpc_reader(s, call, RXW_RPC_WHOLE, 0);
		if (!t_get_items(&s->xdr, items))
			code = RXW_RPC_CC_UNMARSHAL;
	}
	code = rxw_rpc_end(call, code, &T_interface, function);
	if (code)
		t_free_items(items);
	return code;
}

int32_t T_Fail(rxw_connection *connection, int32_t fail, enum t_when when, struct t_items *items)
{
	struct rxw_rpc_stream s;
	rxw_call *call;
	int32_t code = rxw_rpc_begin(connection, NULL, &call);

	*items = (struct t_items){ 0 };
	if (code)
		return code;
	rxw_rpc_writer(&s, call);
	rxw_xdr_put_u32(&s.xdr, T_OP_FAIL);
	rxw_xdr_put_u32(&s.xdr, (uint32_t)fail);
	rxw_xdr_put_u32(&s.xdr, when);
	return end_items(call, &s, items, T_FN_FAIL);
}

int32_t T_List(rxw_connection *connection, uint32_t count, struct t_items *items)
{
	struct rxw_rpc_stream s;
	rxw_call *call;
	int32_t code = rxw_rpc_begin(connection, NULL, &call);

	*items = (struct t_items){ 0 };
	if (code)
		return code;
	rxw_rpc_writer(&s, call);
	rxw_xdr_put_u32(&s.xdr, T_OP_LIST);
	rxw_xdr_put_u32(&s.xdr, count);
	return end_items(call, &s, items, T_FN_LIST);
}

int32_t StartT_Wait(rxw_call *call, uint32_t key)
{
	struct rxw_rpc_stream s;

	rxw_rpc_writer(&s, call);
	rxw_xdr_put_u32(&s.xdr, T_OP_WAIT);
	rxw_xdr_put_u32(&s.xdr, key);
	return rxw_rpc_flush(&s) ? 0 : RXW_RPC_CC_MARSHAL;
}

int32_t EndT_Wait(rxw_call *call, uint32_t *key)
{
	struct rxw_rpc_stream s;

	*key = 0;
	rxw_rpc_reader(&s, call, RXW_RPC_WHOLE, 0);
	return rxw_xdr_get_u32(&s.xdr, key) ? 0 : RXW_RPC_CC_UNMARSHAL;
}

int32_t StartT_Put(rxw_call *call, const char *name, uint32_t length)
{
	struct rxw_rpc_stream s;

	rxw_rpc_writer(&s, call);
	rxw_xdr_put_u32(&s.xdr, T_OP_PUT);
	rxw_xdr_put_string(&s.xdr, name, T_NAME_MAX);
	rxw_xdr_put_u32(&s.xdr, length);
	return rxw_rpc_flush(&s) ? 0 : RXW_RPC_CC_MARSHAL;
}

int32_t EndT_Put(rxw_call *call, struct rxw_opaque *name, uint32_t *sum)
{
	struct rxw_rpc_stream s;

	*name = (struct rxw_opaque){ 0 };
	*sum = 0;
	rxw_rpc_reader(&s, call, RXW_RPC_EXACT, 0);
	if (!rxw_xdr_get_bytes(&s.xdr, T_NAME_MAX, &name->val, &name->len))
		return RXW_RPC_CC_UNMARSHAL;
	if (rxw_xdr_get_u32(&s.xdr, sum))
		return 0;
	free(name->val);
	*name = (struct rxw_opaque){ 0 };
	return RXW_RPC_CC_UNMARSHAL;
}

/* -- server --------------------------------------------------------------------------------- */

static int32_t serve_echo(rxw_call *call, const void *service)
{
	const struct t_service *to = service;
	struct rxw_rpc_stream s;
	struct rxw_opaque in = { 0 }, out = { 0 };
	int32_t code;

	rxw_rpc_reader(&s, call, RXW_RPC_WHOLE, T_LIMIT);
	if (!rxw_xdr_get_bytes(&s.xdr, T_DATA_MAX, &in.val, &in.len)) {
		code = RXW_RPC_SS_UNMARSHAL;
		goto out;
	}
	code = to->handlers->Echo(to->base.context, call, &in, &out);
	if (code)
		goto out;
	rxw_rpc_writer(&s, call);
	rxw_xdr_put_bytes(&s.xdr, out.val, out.len, T_DATA_MAX);
	if (!rxw_rpc_flush(&s))
		code = RXW_RPC_SS_MARSHAL;
out:
	free(in.val);
	free(out.val);
	return code;
}

static int32_t send_items(rxw_call *call, const struct t_items *items)
{
	struct rxw_rpc_stream s;

	rxw_rpc_writer(&s, call);
	t_put_items(&s.xdr, items);
	return rxw_rpc_flush(&s) ? 0 : RXW_RPC_SS_MARSHAL;
}

static int32_t serve_fail(rxw_call *call, const void *service)
{
	const struct t_service *to = service;
	struct rxw_rpc_stream s;
	struct t_items items = { 0 };
	int32_t fail = 0, code;
	uint32_t when = 0;

	rxw_rpc_reader(&s, call, RXW_RPC_WHOLE, T_LIMIT);
	rxw_xdr_get_i32(&s.xdr, &fail);
	if (!rxw_xdr_get_u32(&s.xdr, &when))
		return RXW_RPC_SS_UNMARSHAL;
	code = to->handlers->Fail(to->base.context, call, fail, when, &items);
	if (!code && when != T_TORN)
		code = send_items(call, &items);
	t_free_items(&items);
	return when == T_AFTER ? fail : code;
}

static int32_t serve_list(rxw_call *call, const void *service)
{
	const struct t_service *to = service;
	struct rxw_rpc_stream s;
	struct t_items items = { 0 };
	uint32_t count = 0;
	int32_t code;

	rxw_rpc_reader(&s, call, RXW_RPC_WHOLE, T_LIMIT);
	if (!rxw_xdr_get_u32(&s.xdr, &count))
		return RXW_RPC_SS_UNMARSHAL;
	code = to->handlers->List(to->base.context, call, count, &items);
	if (!code)
		code = send_items(call, &items);
	t_free_items(&items);
	return code;
}

static int32_t serve_wait(rxw_call *call, const void *service)
{
	const struct t_service *to = service;
	struct rxw_rpc_stream s;
	uint32_t key = 0, back = 0;
	int32_t code;

	rxw_rpc_reader(&s, call, RXW_RPC_WHOLE, T_LIMIT);
	if (!rxw_xdr_get_u32(&s.xdr, &key))
		return RXW_RPC_SS_UNMARSHAL;
	code = to->handlers->Wait(to->base.context, call, key, &back);
	if (code)
		return code;
	rxw_rpc_writer(&s, call);
	rxw_xdr_put_u32(&s.xdr, back);
	return rxw_rpc_flush(&s) ? 0 : RXW_RPC_SS_MARSHAL;
}

static int32_t serve_put(rxw_call *call, const void *service)
{
	const struct t_service *to = service;
	struct rxw_rpc_stream s;
	struct rxw_opaque back = { 0 };
	uint32_t length = 0, sum = 0;
	char *name = NULL;
	int32_t code;

	rxw_rpc_reader(&s, call, RXW_RPC_EXACT, T_LIMIT);
	rxw_xdr_get_string(&s.xdr, T_NAME_MAX, &name);
	if (!rxw_xdr_get_u32(&s.xdr, &length)) {
		code = RXW_RPC_SS_UNMARSHAL;
		goto out;
	}
	code = to->handlers->Put(to->base.context, call, name, length, &back, &sum);
	if (code)
		goto out;
	rxw_rpc_writer(&s, call);
	rxw_xdr_put_bytes(&s.xdr, back.val, back.len, T_NAME_MAX);
	rxw_xdr_put_u32(&s.xdr, sum);
	if (!rxw_rpc_flush(&s))
		code = RXW_RPC_SS_MARSHAL;
out:
	free(name);
	free(back.val);
	return code;
}

static int32_t serve_absent(rxw_call *call, const void *service)
{
	const struct t_service *to = service;

	return to->handlers->Absent ? to->handlers->Absent(to->base.context, call)
				    : RXW_RPC_OPCODE;
}

static const struct rxw_rpc_entry entries[] = {
	{ T_OP_ECHO, T_FN_ECHO, serve_echo },	    { T_OP_FAIL, T_FN_FAIL, serve_fail },
	{ T_OP_LIST, T_FN_LIST, serve_list },	    { T_OP_WAIT, T_FN_WAIT, serve_wait },
	{ T_OP_PUT, T_FN_PUT, serve_put },	    { T_OP_ABSENT, T_FN_ABSENT, serve_absent },
};
struct rxw_rpc_table T_table = { &T_interface, entries, T_FUNCTIONS, false };

int32_t T_ExecuteRequest(rxw_call *call, void *service)
{
	struct t_service *to = service;

	return rxw_rpc_serve(call, &T_table, &to->base, to);
}

/* -- the functions of the application ------------------------------------------------------- */

struct h_bed bed;
static struct {
	pthread_mutex_t lock;
	pthread_cond_t cond;
	unsigned came, opened;
	bool all;
	uint32_t open[64]; /* keys that were opened and whose calls have not continued yet */
} doors = { .lock = PTHREAD_MUTEX_INITIALIZER, .cond = PTHREAD_COND_INITIALIZER };

void t_open(uint32_t key)
{
	pthread_mutex_lock(&doors.lock);
	ck_assert_uint_lt(doors.opened, 64);
	doors.open[doors.opened++] = key;
	pthread_cond_broadcast(&doors.cond);
	pthread_mutex_unlock(&doors.lock);
}

void t_open_all(void)
{
	pthread_mutex_lock(&doors.lock);
	doors.all = true;
	pthread_cond_broadcast(&doors.cond);
	pthread_mutex_unlock(&doors.lock);
}

void t_waiting(unsigned count)
{
	pthread_mutex_lock(&doors.lock);
	while (doors.came < count)
		pthread_cond_wait(&doors.cond, &doors.lock);
	pthread_mutex_unlock(&doors.lock);
}

static bool go_on(uint32_t key)
{
	for (unsigned i = 0; i < doors.opened; i++)
		if (doors.open[i] == key) {
			doors.open[i] = doors.open[--doors.opened];
			return true;
		}
	return doors.all;
}

static int32_t do_wait(void *context, rxw_call *call, uint32_t key, uint32_t *back)
{
	(void)context;
	(void)call;
	pthread_mutex_lock(&doors.lock);
	doors.came++;
	pthread_cond_broadcast(&doors.cond);
	while (!go_on(key))
		pthread_cond_wait(&doors.cond, &doors.lock);
	pthread_mutex_unlock(&doors.lock);
	*back = ~key;
	return 0;
}

static int32_t do_echo(void *context, rxw_call *call, const struct rxw_opaque *in,
		       struct rxw_opaque *out)
{
	(void)context;
	(void)call;
	if (!in->len)
		return 0;
	out->val = malloc(in->len);
	memcpy(out->val, in->val, in->len);
	out->len = in->len;
	return 0;
}

static int32_t do_list(void *context, rxw_call *call, uint32_t count, struct t_items *items)
{
	(void)context;
	(void)call;
	items->val = calloc(count + 1, sizeof(*items->val));
	for (items->len = 0; items->len < count; items->len++) {
		items->val[items->len].number = items->len * 3;
		items->val[items->len].name = malloc(16);
		snprintf(items->val[items->len].name, 16, "item %u", items->len);
	}
	return 0;
}

static int32_t do_fail(void *context, rxw_call *call, int32_t code, uint32_t when,
		       struct t_items *items)
{
	static const uint8_t words[6000];
	uint8_t count[8] = { 0, 0, 0, 2, 0, 0, 0, 1 };

	do_list(context, call, 3, items);
	switch (when) {
	case T_BEFORE:
		return code;
	case T_WITHIN:
		if (rxw_call_write(call, words, sizeof(words)) != sizeof(words) ||
		    rxw_call_flush(call))
			return RXW_USER_ABORT;
		return code;
	case T_TORN:
		return rxw_call_write(call, count, sizeof(count)) == sizeof(count) ? 0 : code;
	default:
		return 0;
	}
}

static int32_t do_put(void *context, rxw_call *call, const char *name, uint32_t length,
		      struct rxw_opaque *back, uint32_t *sum)
{
	uint8_t raw[1000];

	(void)context;
	while (length) {
		size_t want = length < sizeof(raw) ? length : sizeof(raw);
		ssize_t n = rxw_call_read(call, raw, want);

		if (n != (ssize_t)want)
			return RXW_CALL_EOF;
		for (size_t i = 0; i < want; i++)
			*sum = *sum * 31 + raw[i];
		length -= (uint32_t)want;
	}
	back->len = (uint32_t)strlen(name);
	back->val = strdup(name);
	/* Raw data between arguments and results: four bytes before the results. */
	return rxw_call_write(call, "raw!", 4) == 4 ? 0 : RXW_USER_ABORT;
}

static const struct t_handlers handlers = {
	.Echo = do_echo, .Fail = do_fail, .List = do_list, .Wait = do_wait, .Put = do_put
};
struct t_service t_service;

/* -- the bed -------------------------------------------------------------------------------- */

static int32_t answer_raw(rxw_call *call, void *context)
{
	uint8_t buf[1 << 15];
	ssize_t n = rxw_call_read(call, buf, sizeof(buf));

	(void)context;
	if (n < 0 || rxw_call_write(call, buf, (size_t)n) != n)
		return RXW_USER_ABORT;
	return 0;
}

static void offer(uint16_t id, rxw_handler_fn handler, unsigned flags)
{
	struct rxw_service_options o = { .size = sizeof(o), .id = id, .name = "stubs",
					 .handler = handler, .context = &t_service,
					 .flags = flags };

	h_offer(&bed, o);
}

void t_set_up(void)
{
	t_service = (struct t_service){ .handlers = &handlers };
	T_table.swap_errno = false;
	doors.came = doors.opened = 0;
	doors.all = false;
	/* Where handlers run must not depend on the machine's speed. */
	h_open(&bed, &(struct h_options){ .server = "inline-us=0" });
	offer(T_SERVICE, T_ExecuteRequest, 0);
	offer(T_SHORT, T_ExecuteRequest, RXW_SERVICE_INLINE);
	offer(T_RAW, answer_raw, 0);
}

void t_tear_down(void)
{
	t_open_all();
	h_close(&bed);
}
