/* SPDX-License-Identifier: BSD-2-Clause */
/* Procedures, plain and split: results, codes of every origin, dispatch, and observers. */
#include <arpa/inet.h>
#include <stdatomic.h>
#include <unistd.h>

#include "stubs.h"

/*
 * A request of hand-made bytes; returns the code of the call. A reply that begins before the
 * request was complete stops the writer (rx-protocol 2.1), and is delivered all the same.
 */
static int32_t send_bytes(rxw_connection *c, const void *bytes, size_t length)
{
	uint8_t reply[64];
	rxw_call *call;
	ssize_t n;

	ck_assert_int_eq(rxw_call_begin(c, NULL, &call), 0);
	n = rxw_call_write(call, bytes, length);
	ck_assert(n == (ssize_t)length || (length > 1400 && n == -RXW_ECALL));
	ck_assert_int_le(rxw_call_read(call, reply, sizeof(reply)), (ssize_t)sizeof(reply));
	return rxw_call_end(call, 0, NULL);
}

static int32_t send_words(rxw_connection *c, uint32_t first, uint32_t second, size_t length)
{
	uint8_t words[8];

	rxw_xdr_store32(words, first);
	rxw_xdr_store32(words + 4, second);
	return send_bytes(c, words, length);
}

/* ---- split ---- */

static void put_once(rxw_connection *c, uint32_t length)
{
	uint8_t *raw = malloc(length + 1);
	struct rxw_opaque name;
	uint32_t sum, want = 0;
	char word[4];
	rxw_call *call;
	int32_t code;

	h_pattern(raw, 0, length, 3);
	for (uint32_t i = 0; i < length; i++)
		want = want * 31 + raw[i];
	ck_assert_int_eq(rxw_call_begin(c, NULL, &call), 0);
	ck_assert_int_eq(StartT_Put(call, "a name", length), 0);
	ck_assert_int_eq(rxw_call_write(call, raw, length), (ssize_t)length);
	ck_assert_int_eq(rxw_call_read(call, word, 4), 4);
	ck_assert_mem_eq(word, "raw!", 4);
	code = EndT_Put(call, &name, &sum);
	ck_assert_int_eq(rxw_call_end(call, code, NULL), 0);
	ck_assert_uint_eq(name.len, 6);
	ck_assert_mem_eq(name.val, "a name", 6);
	ck_assert_uint_eq(sum, want);
	free(name.val);
	free(raw);
}

START_TEST(split_calls)
{
	static const uint32_t sizes[] = { 0, 1, 999, 1400, 4096, 20000, 300000 };
	rxw_connection *c = h_connect(&bed, T_SERVICE);

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		put_once(c, sizes[i]);
	rxw_connection_release(c);
}
END_TEST

/* ---- failures ---- */

static void fails(rxw_connection *c, int32_t code, enum t_when when, int32_t want)
{
	struct t_items items;

	ck_assert_int_eq(T_Fail(c, code, when, &items), want);
	ck_assert(!items.len && !items.val);
}

/* The code of the abort takes precedence over the stub's. */
START_TEST(aborts_arrive)
{
	rxw_connection *c = h_connect(&bed, T_SERVICE);

	fails(c, 4711, T_BEFORE, 4711);
	fails(c, -17, T_BEFORE, -17);
	fails(c, 4712, T_WITHIN, 4712);
	fails(c, 4713, T_AFTER, 4713);
	/* A truncated stream that ends without an error is refused by the client. */
	fails(c, 4714, T_TORN, RXW_RPC_CC_UNMARSHAL);
	rxw_connection_release(c);
}
END_TEST

START_TEST(undecodable_requests)
{
	rxw_connection *c = h_connect(&bed, T_SERVICE);

	ck_assert_int_eq(send_words(c, T_OP_ECHO, 0, 0), RXW_RPC_DECODE);
	ck_assert_int_eq(send_words(c, T_OP_ECHO, 0, 3), RXW_RPC_DECODE);
	ck_assert_int_eq(send_words(c, T_OP_ECHO, 0, 4), RXW_RPC_SS_UNMARSHAL);
	ck_assert_int_eq(send_words(c, T_OP_ECHO, 0, 7), RXW_RPC_SS_UNMARSHAL);
	ck_assert_int_eq(send_words(c, T_OP_ECHO, UINT32_MAX, 8), RXW_RPC_SS_UNMARSHAL);
	ck_assert_int_eq(send_words(c, T_OP_ECHO, 1, 8), RXW_RPC_SS_UNMARSHAL);
	ck_assert_int_eq(send_words(c, T_OP_ECHO, 0, 8), 0);
	rxw_connection_release(c);
}
END_TEST

/* Bytes after the arguments are ignored. */
START_TEST(bytes_after_the_arguments)
{
	rxw_connection *c = h_connect(&bed, T_SERVICE);
	uint8_t request[9000] = { 0, 0, 0, T_OP_ECHO, 0, 0, 0, 0, 1, 2, 3 };

	ck_assert_int_eq(send_bytes(c, request, 11), 0);
	ck_assert_int_eq(send_bytes(c, request, sizeof(request)), 0);
	rxw_connection_release(c);
}
END_TEST

/* A reply that arrives while arguments are still being written is the reply. */
START_TEST(early_answers)
{
	static const uint8_t more[20000];
	rxw_connection *c = h_connect(&bed, T_SERVICE);

	for (int i = 0; i < 50; i++) {
		struct rxw_rpc_stream s;
		uint8_t reply[4] = { 1, 1, 1, 1 };
		rxw_call *call;

		ck_assert_int_eq(rxw_call_begin(c, NULL, &call), 0);
		rxw_rpc_writer(&s, call);
		rxw_xdr_put_u32(&s.xdr, T_OP_ECHO);
		rxw_xdr_put_u32(&s.xdr, 0);
		for (int k = 0; k < 20; k++)
			ck_assert(rxw_xdr_put_opaque(&s.xdr, more, sizeof(more)));
		ck_assert(rxw_rpc_flush(&s));
		ck_assert_int_eq(rxw_call_read(call, reply, 4), 4);
		ck_assert_uint_eq(rxw_xdr_load32(reply), 0);
		ck_assert_int_eq(rxw_call_end(call, 0, NULL), 0);
	}
	rxw_connection_release(c);
}
END_TEST

START_TEST(opcodes)
{
	static const uint32_t unknown[] = { 0, 3, 4, 6, 8, 10, 11, 13, 0x7fffffff, UINT32_MAX };
	rxw_connection *c = h_connect(&bed, T_SERVICE);

	for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++)
		ck_assert_int_eq(send_words(c, unknown[i], 0, 8), RXW_RPC_OPCODE);
	ck_assert_int_eq(send_words(c, T_OP_ABSENT, 0, 8), RXW_RPC_OPCODE);
	ck_assert_int_eq(send_words(c, T_OP_LIST, 0, 8), 0);
	rxw_connection_release(c);
}
END_TEST

START_TEST(errno_on_the_wire)
{
	rxw_connection *c = h_connect(&bed, T_SERVICE);

	fails(c, 28, T_BEFORE, 28);
	T_table.swap_errno = true;
	fails(c, 28, T_BEFORE, 108);
	fails(c, 122, T_BEFORE, 109);
	fails(c, 28, T_AFTER, 108);
	fails(c, 5, T_BEFORE, 5);
	rxw_connection_release(c);
}
END_TEST

/* Fails with a code of the server, as a client of the interface sees it. */
static int32_t swapped(rxw_connection *c, int32_t code, const struct rxw_rpc_interface *interface)
{
	struct rxw_rpc_stream s;
	rxw_call *call;

	ck_assert_int_eq(rxw_rpc_begin(c, NULL, &call), 0);
	ck_assert_int_eq(rxw_rpc_origin(), RXW_ORIGIN_NONE);
	rxw_rpc_writer(&s, call);
	rxw_xdr_put_u32(&s.xdr, T_OP_FAIL);
	rxw_xdr_put_u32(&s.xdr, (uint32_t)code);
	rxw_xdr_put_u32(&s.xdr, T_BEFORE);
	ck_assert(rxw_rpc_flush(&s));
	return rxw_rpc_end(call, 0, interface, 0);
}

/* Clients turn the two codes back where servers swap them, and only codes of the server. */
START_TEST(errno_comes_back)
{
	struct rxw_rpc_interface interface = T_interface;
	rxw_connection *c = h_connect(&bed, T_SERVICE);
	rxw_call *call;

	T_table.swap_errno = true;
	interface.swap_errno = true;
	ck_assert_int_eq(swapped(c, 28, &interface), 28);
	ck_assert_int_eq(rxw_rpc_origin(), RXW_ORIGIN_PEER);
	ck_assert_int_eq(swapped(c, 122, &interface), 122);
	ck_assert_int_eq(swapped(c, 107, &interface), 107);
	ck_assert_int_eq(swapped(c, -1, &interface), -1);
	ck_assert_int_eq(rxw_rpc_origin(), RXW_ORIGIN_PEER);
	ck_assert_int_eq(swapped(c, 28, &T_interface), 108);
	ck_assert_int_eq(rxw_rpc_begin(c, NULL, &call), 0);
	ck_assert_int_eq(rxw_rpc_end(call, 108, &interface, 0), 108);
	ck_assert_int_eq(rxw_rpc_origin(), RXW_ORIGIN_LOCAL);
	rxw_connection_release(c);
}
END_TEST

/* A server whose reply cannot be encoded aborts with -452. */
static int32_t too_many(void *context, rxw_call *call, uint32_t count, struct t_items *items)
{
	(void)context;
	(void)call;
	(void)count;
	items->len = 1;
	items->val = calloc(1, sizeof(*items->val)); /* a text that is NULL */
	return 0;
}

START_TEST(unencodable_results)
{
	static struct t_handlers handlers;
	rxw_connection *c = h_connect(&bed, T_SERVICE);
	struct t_items items;

	handlers = *t_service.handlers;
	handlers.List = too_many;
	t_service.handlers = &handlers;
	ck_assert_int_eq(T_List(c, 1, &items), RXW_RPC_SS_MARSHAL);
	rxw_connection_release(c);
}
END_TEST

/* No server: the code of the call, not that of its decoder. */
START_TEST(dead_server)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(9) };
	struct rxw_opaque none = { 0 }, out;
	rxw_connection *c;
	int32_t code;

	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	ck_assert_int_eq(rxw_connection_create(bed.client, (struct sockaddr *)&in, sizeof(in),
					       T_SERVICE, NULL, &c), 0);
	rxw_connection_set_timeouts(c, 1000, 0, 1000);
	code = T_Echo(c, &none, &out);
	ck_assert_msg(code == RXW_CALL_DEAD || code == RXW_CALL_TIMEOUT, "code %d", code);
	rxw_connection_release(c);
}
END_TEST

/* A peer that refuses the connection, like a server after the expiry of the client's ticket. */
static void *refuse(void *arg)
{
	int fd = *(int *)arg;
	uint8_t packet[2048], code[4] = { 0x01, 0x26, 0x19, 0x09 };
	struct sockaddr_storage from;
	socklen_t length = sizeof(from);
	struct h_raw raw = { .serial = 1, .type = 4, .service = T_SERVICE, .body = code,
			     .size = sizeof(code) };

	if (recvfrom(fd, packet, sizeof(packet), 0, (struct sockaddr *)&from, &length) < 28)
		return NULL;
	raw.epoch = rxw_xdr_load32(packet);
	raw.cid = rxw_xdr_load32(packet + 4) & ~3u;
	sendto(fd, packet, h_raw_encode(packet, &raw), 0, (struct sockaddr *)&from, length);
	return NULL;
}

START_TEST(connections_that_are_refused)
{
	struct sockaddr_in in = { .sin_family = AF_INET };
	struct rxw_opaque none = { 0 }, out;
	socklen_t length = sizeof(in);
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	rxw_connection *c;
	pthread_t thread;

	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&in, sizeof(in)), 0);
	ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&in, &length), 0);
	ck_assert_int_eq(pthread_create(&thread, NULL, refuse, &fd), 0);
	ck_assert_int_eq(rxw_connection_create(bed.client, (struct sockaddr *)&in, sizeof(in),
					       T_SERVICE, NULL, &c), 0);
	/* Returned by the first call, and by the library for the next ones. */
	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(T_Echo(c, &none, &out), 0x01261909);
	pthread_join(thread, NULL);
	rxw_connection_release(c);
	close(fd);
}
END_TEST

/* The peer gave up while the server's function ran: the stub's failure to write is not reported. */
static _Atomic bool seen_call;
static _Atomic int32_t seen_code;

static int32_t serve_and_look(rxw_call *call, void *service)
{
	int32_t code;

	atomic_store(&seen_call, true);
	code = T_ExecuteRequest(call, service);
	atomic_store(&seen_code, code);
	return code;
}

static bool call_seen(void *arg)
{
	(void)arg;
	return atomic_load(&seen_call);
}

static bool code_seen(void *arg)
{
	(void)arg;
	return atomic_load(&seen_code) != 0;
}

START_TEST(calls_given_up_by_peer)
{
	struct rxw_service_options o = { .size = sizeof(o), .id = 210, .name = "look",
					 .handler = serve_and_look, .context = &t_service };
	rxw_connection *c;
	uint8_t word[4] = { 0, 0, 0, T_OP_ECHO };
	rxw_call *call;

	h_offer(&bed, o);
	c = h_connect(&bed, 210);
	ck_assert_int_eq(rxw_call_begin(c, NULL, &call), 0);
	ck_assert_int_eq(rxw_call_write(call, word, 4), 4);
	ck_assert_int_eq(rxw_call_flush(call), 0);
	h_wait_for(call_seen, NULL, "the server's stub began");
	ck_assert_int_eq(rxw_call_end(call, 815, NULL), 815);
	h_wait_for(code_seen, NULL, "the server's stub returned");
	ck_assert_int_eq(atomic_load(&seen_code), 815);
	rxw_connection_release(c);
}
END_TEST

/* ---- refusal before decoding ---- */

static _Atomic int checked_function;

static int32_t check_access(void *context, rxw_call *call, int32_t opcode, int function)
{
	ck_assert_ptr_eq(context, &bed);
	ck_assert_ptr_nonnull(call);
	atomic_store(&checked_function, function);
	return opcode == T_OP_LIST ? 13 : 0;
}

START_TEST(access_checked_before_decoding)
{
	rxw_connection *c;

	/* Set before the first call, because handlers read it without a lock. */
	t_service.base.context = &bed;
	t_service.base.enter = check_access;
	c = h_connect(&bed, T_SERVICE);
	ck_assert_int_eq(send_words(c, T_OP_LIST, 0, 4), 13);
	ck_assert_int_eq(atomic_load(&checked_function), T_FN_LIST);
	ck_assert_int_eq(send_words(c, 99, 0, 4), RXW_RPC_OPCODE);
	ck_assert_int_eq(atomic_load(&checked_function), -1);
	ck_assert_int_eq(send_words(c, T_OP_ECHO, 0, 8), 0);
	ck_assert_int_eq(atomic_load(&checked_function), T_FN_ECHO);
	rxw_connection_release(c);
}
END_TEST

/* ---- inline handlers ---- */

START_TEST(inline_services)
{
	rxw_connection *c = h_connect(&bed, T_SHORT);
	struct rxw_opaque in = {100, "0123456789012345678901234567890123456789012345678901234567890"
				     "12345678901234567890123456789012345678"},
			  out;
	struct t_items items;

	for (int i = 0; i < 200; i++) {
		ck_assert_int_eq(T_Echo(c, &in, &out), 0);
		ck_assert(out.len == 100 && !memcmp(out.val, in.val, 100));
		free(out.val);
	}
	ck_assert_int_eq(T_List(c, 40, &items), 0);
	ck_assert_uint_eq(items.len, 40);
	t_free_items(&items);
	ck_assert_int_eq(send_words(c, 99, 0, 4), RXW_RPC_OPCODE);
	ck_assert_int_eq(send_words(c, T_OP_ECHO, 9, 8), RXW_RPC_SS_UNMARSHAL);
	ck_assert_uint_gt(counter_of(bed.server, "handlers.receiver"), 200);
	rxw_connection_release(c);
}
END_TEST

/* An incomplete request cannot be waited for; the server must not hang over it. */
START_TEST(inline_services_do_not_wait)
{
	rxw_connection *c = h_connect(&bed, T_SHORT);
	uint8_t head[8] = { 0, 0, 0, T_OP_ECHO, 0, 0, 0, 100 };
	struct rxw_opaque none = { 0 }, out;
	uint8_t rest[100] = { 0 };
	rxw_call *call;

	/* A worker serves the first call of a class with an exchange. */
	ck_assert_int_eq(T_Echo(c, &none, &out), 0);
	ck_assert_int_eq(rxw_call_begin(c, NULL, &call), 0);
	ck_assert_int_eq(rxw_call_write(call, head, sizeof(head)), sizeof(head));
	ck_assert_int_eq(rxw_call_flush(call), 0);
	ck_assert_int_eq(T_Echo(c, &none, &out), 0); /* the first part has been received by now */
	ck_assert_int_ne(rxw_call_write(call, rest, sizeof(rest)), 0);
	ck_assert_int_eq(rxw_call_end(call, 0, NULL), RXW_RPC_SS_UNMARSHAL);
	rxw_connection_release(c);
}
END_TEST

/* ---- calls of a queue ---- */

#define T_QUEUED 212

static rxw_queue *calls;
static rxw_call *kept;

/* Serves one call of the queue as a program does. Returns what the dispatcher returned. */
static int32_t serve_next(void)
{
	struct rxw_queue_event event;
	int32_t code;

	ck_assert_int_eq(rxw_queue_next(calls, &event, 1, 30000), 1);
	ck_assert_uint_ne(event.events & RXW_EVENT_CALL, 0);
	code = T_ExecuteRequest(event.call, &t_service);
	if (code != RXW_RPC_DEFERRED)
		rxw_call_end(event.call, code, NULL);
	return code;
}

static void offer_queue(void)
{
	struct rxw_service_options o = {.size = sizeof(o), .id = T_QUEUED, .name = "queued"};

	ck_assert_int_eq(rxw_queue_create(bed.server_engine, NULL, &calls), 0);
	o.queue = calls;
	h_offer(&bed, o);
}

/* The queue of a service is destroyed after the endpoint. */
static void end_queue(rxw_connection *c)
{
	rxw_connection_release(c);
	ck_assert_int_eq(rxw_endpoint_destroy(bed.client), 0);
	ck_assert_int_eq(rxw_endpoint_destroy(bed.server), 0);
	bed.client = bed.server = NULL;
	ck_assert_int_eq(rxw_queue_destroy(calls), 0);
}

/* Sends the beginning of a request, and returns when the server has received it. */
static rxw_call *ask_words(rxw_connection *c, uint32_t first, uint32_t second, size_t length)
{
	uint8_t words[8];
	rxw_call *call;

	rxw_xdr_store32(words, first);
	rxw_xdr_store32(words + 4, second);
	ck_assert_int_eq(rxw_call_begin(c, NULL, &call), 0);
	ck_assert_int_eq(rxw_call_write(call, words, length), (ssize_t)length);
	ck_assert_int_eq(rxw_call_flush(call), 0);
	return call;
}

/* The code that the server returned, and the one that the client gets. */
static void queue_serves(rxw_connection *c, uint32_t first, uint32_t second, size_t length,
			 int32_t want)
{
	rxw_call *call = ask_words(c, first, second, length);
	char reply[8];

	ck_assert_int_eq(serve_next(), want);
	if (!want)
		ck_assert_int_eq(rxw_call_read(call, reply, 4), 4);
	ck_assert_int_eq(rxw_call_end(call, 0, NULL), want);
}

START_TEST(errors_of_queued_calls)
{
	rxw_connection *c;

	offer_queue();
	c = h_connect(&bed, T_QUEUED);
	queue_serves(c, T_OP_ECHO, 0, 8, 0);
	queue_serves(c, T_OP_ABSENT, 0, 8, RXW_RPC_OPCODE);
	queue_serves(c, 99, 0, 8, RXW_RPC_OPCODE);
	queue_serves(c, T_OP_ECHO, 0, 3, RXW_RPC_DECODE);
	queue_serves(c, T_OP_ECHO, 0, 4, RXW_RPC_SS_UNMARSHAL);
	queue_serves(c, T_OP_ECHO, 100, 8, RXW_RPC_SS_UNMARSHAL);
	queue_serves(c, T_OP_FAIL, 4711, 8, RXW_RPC_SS_UNMARSHAL);
	end_queue(c);
}
END_TEST

static int32_t keep(void *context, rxw_call *call, uint32_t key, uint32_t *back)
{
	(void)context;
	(void)key;
	(void)back;
	kept = call;
	return RXW_RPC_DEFERRED;
}

static int32_t answer_at_once(void *context, rxw_call *call, uint32_t key, uint32_t *back)
{
	(void)context;
	(void)key;
	(void)back;
	ck_assert_int_eq(rxw_rpc_answer(call, 4712, &T_interface, T_FN_WAIT), 4712);
	return RXW_RPC_DEFERRED; /* the call is freed */
}

START_TEST(queued_calls_that_are_kept)
{
	static struct t_handlers handlers;
	rxw_connection *c;
	rxw_call *call;

	handlers = *t_service.handlers;
	handlers.Wait = keep;
	t_service.handlers = &handlers;
	offer_queue();
	c = h_connect(&bed, T_QUEUED);
	call = ask_words(c, T_OP_WAIT, 1, 8);
	ck_assert_int_eq(serve_next(), RXW_RPC_DEFERRED);
	ck_assert_int_eq(rxw_rpc_answer(kept, 4711, &T_interface, T_FN_WAIT), 4711);
	ck_assert_int_eq(rxw_call_end(call, 0, NULL), 4711);
	handlers.Wait = answer_at_once;
	call = ask_words(c, T_OP_WAIT, 1, 8);
	ck_assert_int_eq(serve_next(), RXW_RPC_DEFERRED);
	ck_assert_int_eq(rxw_call_end(call, 0, NULL), 4712);
	end_queue(c);
}
END_TEST

/* ---- the observer ---- */

struct note {
	struct rxw_rpc_report report;
	struct sockaddr_storage peer;
};

struct book {
	pthread_mutex_t lock;
	unsigned count;
	struct note note[64];
};

static void write_down(void *arg, const struct rxw_rpc_report *report)
{
	struct book *book = arg;

	ck_assert_uint_eq(report->size, sizeof(*report));
	pthread_mutex_lock(&book->lock);
	if (book->count < 64) {
		struct note *n = &book->note[book->count++];

		n->report = *report;
		memcpy(&n->peer, report->peer, report->peer_len);
	}
	pthread_mutex_unlock(&book->lock);
}

static struct book at_client = { .lock = PTHREAD_MUTEX_INITIALIZER };
static struct book at_server = { .lock = PTHREAD_MUTEX_INITIALIZER };
static const struct rxw_rpc_observer client_observer = { write_down, &at_client };
static const struct rxw_rpc_observer server_observer = { write_down, &at_server };

static void check_note(const struct book *b, unsigned i, unsigned function, int32_t code,
		       uint64_t sent, uint64_t received)
{
	const struct rxw_rpc_report *r = &b->note[i].report;

	ck_assert_ptr_eq(r->interface, &T_interface);
	ck_assert_uint_eq(r->function, function);
	ck_assert_int_eq(r->code, code);
	ck_assert_uint_eq(r->bytes_sent, sent);
	ck_assert_uint_eq(r->bytes_received, received);
	ck_assert_uint_gt(r->run_ns, 0);
	ck_assert_uint_lt(r->run_ns, 60000000000u);
	ck_assert_uint_lt(r->queue_ns, 60000000000u);
}

START_TEST(reports)
{
	rxw_connection *c = h_connect(&bed, T_SERVICE);
	struct rxw_opaque in = {100, "0123456789012345678901234567890123456789012345678901234567890"
				     "12345678901234567890123456789012345678"},
			  out;
	const struct sockaddr_in *peer = (const struct sockaddr_in *)&at_client.note[0].peer;
	struct rxw_rpc_observer faulty = { NULL, NULL };

	at_client.count = at_server.count = 0;
	ck_assert_int_eq(T_Echo(c, &in, &out), 0);
	free(out.val);
	ck_assert_int_eq(rxw_endpoint_set_observer(NULL, &client_observer), -RXW_EINVAL);
	ck_assert_int_eq(rxw_endpoint_set_observer(bed.client, &faulty), -RXW_EINVAL);
	ck_assert_int_eq(rxw_endpoint_set_observer(bed.client, &client_observer), 0);
	ck_assert_int_eq(rxw_endpoint_set_observer(bed.server, &server_observer), 0);
	ck_assert_int_eq(T_Echo(c, &in, &out), 0);
	free(out.val);
	fails(c, 4711, T_BEFORE, 4711);
	ck_assert_int_eq(send_words(c, 99, 0, 4), RXW_RPC_OPCODE); /* no procedure: no report */
	ck_assert_int_eq(rxw_endpoint_set_observer(bed.client, NULL), 0);
	ck_assert_int_eq(rxw_endpoint_set_observer(bed.server, NULL), 0);
	ck_assert_int_eq(T_Echo(c, &in, &out), 0);
	free(out.val);
	ck_assert_uint_eq(at_client.count, 2);
	ck_assert_uint_eq(at_server.count, 2);
	check_note(&at_client, 0, T_FN_ECHO, 0, 108, 104);
	check_note(&at_client, 1, T_FN_FAIL, 4711, 12, 0);
	check_note(&at_server, 0, T_FN_ECHO, 0, 104, 108);
	check_note(&at_server, 1, T_FN_FAIL, 4711, 0, 12);
	ck_assert(at_client.note[0].report.client && !at_server.note[0].report.client);
	ck_assert_uint_eq(at_client.note[0].report.queue_ns, 0);
	ck_assert_int_eq(peer->sin_port, ((struct sockaddr_in *)&bed.address)->sin_port);
	rxw_connection_release(c);
}
END_TEST

/* A call that waits for the only worker has waited before its handler ran. */
static void *echo_thread(void *arg)
{
	struct rxw_opaque none = { 0 }, out;

	ck_assert_int_eq(T_Echo(arg, &none, &out), 0);
	return NULL;
}

static bool one_waits(void *arg)
{
	(void)arg;
	return counter_of(bed.server, "calls_waiting") == 1;
}

START_TEST(time_in_the_queue)
{
	struct rxw_service_options o = { .size = sizeof(o), .id = 211, .name = "one",
					 .handler = T_ExecuteRequest, .context = &t_service,
					 .workers_max = 1 };
	rxw_connection *first, *second;
	rxw_call *call;
	pthread_t thread;
	uint32_t key;

	at_server.count = 0;
	h_offer(&bed, o);
	ck_assert_int_eq(rxw_endpoint_set_observer(bed.server, &server_observer), 0);
	first = h_connect(&bed, 211);
	second = h_connect(&bed, 211);
	ck_assert_int_eq(rxw_call_begin(first, NULL, &call), 0);
	ck_assert_int_eq(StartT_Wait(call, 1), 0);
	ck_assert_int_eq(rxw_call_send_end(call), 0);
	t_waiting(1);
	ck_assert_int_eq(pthread_create(&thread, NULL, echo_thread, second), 0);
	h_wait_for(one_waits, NULL, "the second call waits for the worker");
	usleep(2000); /* this time is measured, so no event can end it */
	t_open(1);
	ck_assert_int_eq(EndT_Wait(call, &key), 0);
	ck_assert_int_eq(rxw_call_end(call, 0, NULL), 0);
	pthread_join(thread, NULL);
	ck_assert_int_eq(rxw_endpoint_set_observer(bed.server, NULL), 0);
	ck_assert_uint_eq(at_server.count, 2);
	ck_assert_uint_eq(at_server.note[0].report.function, T_FN_WAIT);
	ck_assert_uint_ge(at_server.note[0].report.run_ns, 2000000);
	ck_assert_uint_eq(at_server.note[1].report.function, T_FN_ECHO);
	ck_assert_uint_ge(at_server.note[1].report.queue_ns, 2000000);
	rxw_connection_release(first);
	rxw_connection_release(second);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("procedure");
	TCase *tc = tcase_create("loopback");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_set_timeout(tc, 120);
	tcase_add_checked_fixture(tc, t_set_up, t_tear_down);
	tcase_add_test(tc, split_calls);
	tcase_add_test(tc, aborts_arrive);
	tcase_add_test(tc, undecodable_requests);
	tcase_add_test(tc, bytes_after_the_arguments);
	tcase_add_test(tc, early_answers);
	tcase_add_test(tc, opcodes);
	tcase_add_test(tc, errno_on_the_wire);
	tcase_add_test(tc, errno_comes_back);
	tcase_add_test(tc, unencodable_results);
	tcase_add_test(tc, dead_server);
	tcase_add_test(tc, connections_that_are_refused);
	tcase_add_test(tc, calls_given_up_by_peer);
	tcase_add_test(tc, access_checked_before_decoding);
	tcase_add_test(tc, inline_services);
	tcase_add_test(tc, inline_services_do_not_wait);
	tcase_add_test(tc, errors_of_queued_calls);
	tcase_add_test(tc, queued_calls_that_are_kept);
	tcase_add_test(tc, reports);
	tcase_add_test(tc, time_in_the_queue);
	suite_add_tcase(s, tc);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
