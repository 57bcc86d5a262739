/* SPDX-License-Identifier: BSD-2-Clause */
/* Test bench for the protocol core: hand-made packets, captured output, a manual clock. */
#include <stdlib.h>
#include <string.h>

#include "bench.h"

static struct bench *bench_of(const struct bench_call *call)
{
	return (struct bench *)call->host;
}

static void on_control(struct host *h, const struct rxw_ctl *ctl);
static void on_events(struct host *h, struct host_call *call, uint32_t events);

static const struct host_ops ops = {
	.call_size = sizeof(struct bench_call),
	.control = on_control,
	.events = on_events,
};

void bench_init(struct bench *b, bool client)
{
	static const uint64_t key[2] = {1, 2};
	struct rxw_params params = host_params();

	memset(b, 0, sizeof(*b));
	host_init((struct host *)b, &ops, &params, 256 << 20, 1 << 20, 16);
	b->client = client;
	b->auto_attach = b->auto_send = true;
	b->security = &rxw_security_null_class;
	ck_assert_int_eq(rxw_conntable_init(&b->table, key), 0);
	b->out.now = 1000 * RXW_SEC;
}

void bench_free(struct bench *b)
{
	host_forget((struct host *)b);
	for (struct bench_call *call; (call = b->over) != NULL;) {
		b->over = call->next;
		b->live_calls++;
		host_drop(&call->p);
	}
	for (struct bench_conn *c = b->conns, *next; c != NULL; c = next) {
		next = c->next;
		rxw_conntable_remove(&b->table, &c->p);
		ck_assert_int_eq(atomic_load(&c->p.rx.memory.used) == 0 || c->p.channel[0] ||
					 c->p.channel[1] || c->p.channel[2] || c->p.channel[3],
				 1);
		rxw_pconn_fini(&c->p, b->out.now);
		free(c);
	}
	ck_assert_uint_eq(b->live_calls, 0);
	rxw_conntable_fini(&b->table);
	ck_assert_uint_eq(host_free((struct host *)b), 0);
}

struct bench_conn *bench_conn(struct bench *b, uint32_t epoch, uint32_t cid, unsigned port)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	struct bench_conn *c = calloc(1, sizeof(*c));
	struct rxw_path path = {0};

	ck_assert_ptr_nonnull(c);
	in.sin_addr.s_addr = htonl(0x0a000002);
	rxw_addr_set(&path.peer, (struct sockaddr *)&in, sizeof(in));
	host_conn_init((struct host *)b, (struct host_conn *)c, &path, epoch, cid, BENCH_SERVICE,
		       b->security, b->client);
	ck_assert_int_eq(rxw_conntable_insert(&b->table, &c->p), 0);
	c->next = b->conns;
	b->conns = c;
	return c;
}

struct bench_call *bench_begin(struct bench *b, struct bench_conn *c)
{
	struct host_call *call = host_call_new((struct host_conn *)c);

	if (rxw_pconn_begin(&c->p, &call->p, b->out.now) != 0) {
		host_drop(&call->p);
		return NULL;
	}
	return (struct bench_call *)call;
}

struct rxw_pcall *bench_channel(const struct bench_conn *c, unsigned i)
{
	if (c->p.channel[i] != NULL)
		return c->p.channel[i];
	return c->p.finished[i].state != RXW_CS_NOTINIT ? &c->over[i]->p : NULL;
}

static void catch (struct bench *b, const struct rxw_path *path, const uint8_t *bytes,
		   uint32_t length, uint32_t padding, bool burst)
{
	struct bench_packet *k = &b->sent[b->count++];

	ck_assert_uint_lt(b->count, 512);
	ck_assert_uint_le(length, sizeof(k->bytes));
	memset(k, 0, sizeof(*k));
	k->at = b->out.now;
	k->length = length;
	k->padding = padding;
	k->burst = burst;
	k->port = rxw_addr_port(&path->peer);
	memcpy(k->bytes, bytes, length);
	ck_assert(rxw_header_get(k->bytes, length, &k->h));
	if (k->h.type == RXW_ACK)
		ck_assert(
			rxw_ack_get(k->bytes + RXW_HEADER_SIZE, length - RXW_HEADER_SIZE, k->h.flags,
				    &k->ack));
	if (k->h.type == RXW_ABORT)
		ck_assert(rxw_abort_get(k->bytes + RXW_HEADER_SIZE, length - RXW_HEADER_SIZE,
					&k->code));
}

unsigned bench_send(struct bench_call *call)
{
	struct bench *b = bench_of(call);
	struct rxw_burst burst;
	uint64_t not_before;
	unsigned n = 0;

	while (rxw_pcall_burst(&call->p, 64, &burst, &not_before, &b->out) == RXW_BURST_READY) {
		for (unsigned i = 0; i < burst.count; i++) {
			uint32_t size = i + 1u == burst.count ? burst.length - i * burst.segment
							      : burst.segment;

			catch (b, &call->p.conn->path, burst.data + (size_t)i * burst.segment, size,
			       0, true);
		}
		n += burst.count;
		rxw_pcall_burst_done(&call->p, &burst, burst.count, 0, &b->out);
	}
	return n;
}

/* A channel does not keep a finished call, but a test may. */
static void retire(struct bench *b, struct bench_call *call)
{
	struct bench_conn *c = (struct bench_conn *)call->p.conn;
	unsigned i = call->p.channel;

	if (c->p.channel[i] != &call->p)
		return;
	rxw_pcall_retire(&call->p);
	if (c->p.channel[i] != NULL)
		return;
	host_hold(&call->p);
	c->over[i] = call;
	call->next = b->over;
	b->over = call;
	b->live_calls--;
}

static void on_control(struct host *h, const struct rxw_ctl *ctl)
{
	catch ((struct bench *)h, &ctl->path, ctl->bytes, ctl->length, ctl->padding, false);
}

static void on_events(struct host *h, struct host_call *host_call, uint32_t events)
{
	struct bench_call *call = (struct bench_call *)host_call;
	struct bench *b = (struct bench *)h;

	call->events |= events;
	if ((events & RXW_OUT_ATTACH) && b->auto_attach)
		rxw_pcall_attach(&call->p, &b->out);
	if (b->on_events != NULL)
		b->on_events(call, events);
	if ((events & RXW_OUT_SEND) && b->auto_send)
		bench_send(call);
	if (events & RXW_OUT_DONE)
		retire(b, call);
}

void bench_settle(struct bench *b)
{
	host_settle((struct host *)b);
}

/* Runs the work of exchanges at once. A RESPONSE is sent like other packets. */
static void bench_auth(struct bench *b)
{
	struct rxw_security_packet packet[RXW_VERIFY_MOST];
	struct rxw_pconn *c = b->out.auth;
	struct rxw_auth_job *job;
	struct rxw_rxrun kept[64];
	struct rxw_buf *reply;
	unsigned n = 0;
	uint32_t size;

	b->out.auth = NULL;
	if (c == NULL || (job = rxw_pconn_auth_take(c)) == NULL)
		return;
	if (b->drop_auth > 0) {
		b->drop_auth--;
		rxw_pconn_auth_drop(c, job, &b->out);
		return;
	}
	rxw_auth_do(c, job);
	reply = rxw_pconn_auth_done(c, job, &size, &b->out);
	if (reply != NULL)
		catch (b, &c->path, reply->data, size, 0, false);
	rxw_buf_unref(reply);
	while (c->auth.authenticated && rxw_pconn_take_unverified(c, &kept[n]))
		ck_assert_uint_lt(++n, 64);
	for (unsigned i = 0; i < n; i++) {
		kept[i].path = &c->path;
		ck_assert_uint_le(kept[i].count, RXW_VERIFY_MOST);
		rxw_run_verify(c, &kept[i], packet);
		rxw_pconn_input_verified(c, &kept[i], packet, &b->out);
		rxw_buf_unref(kept[i].buf);
	}
}

void bench_feed(struct bench *b, struct bench_conn *c, const void *bytes, uint32_t length,
		uint32_t segment)
{
	struct rxw_buf *buf = rxw_buf_get(b->pool);
	struct rxw_security_packet packet[RXW_VERIFY_MOST];
	struct rxw_jumbo jumbo = {0};
	struct rxw_rxrun run;
	uint32_t at = 0;

	ck_assert_ptr_nonnull(buf);
	memcpy(buf->data, bytes, length);
	while (rxw_run_next(buf, &c->p.path, length, segment, &at, &jumbo, &run, &b->stats) == 1) {
		run.waited = b->waited;
		if (rxw_pconn_input(&c->p, &run, &b->out) == RXW_INPUT_VERIFY) {
			ck_assert_uint_le(run.count, RXW_VERIFY_MOST);
			rxw_run_verify(&c->p, &run, packet);
			rxw_pconn_input_verified(&c->p, &run, packet, &b->out);
		}
	}
	bench_auth(b);
	rxw_buf_unref(buf);
}

void bench_end(struct bench *b, struct bench_conn *c, bool dry)
{
	rxw_pconn_batch_end(&c->p, dry, &b->out);
	bench_settle(b);
}

void bench_input(struct bench *b, struct bench_conn *c, const void *bytes, uint32_t length,
		 uint32_t segment)
{
	bench_feed(b, c, bytes, length, segment);
	bench_end(b, c, true);
}

static uint32_t header(struct bench *b, uint8_t *to, unsigned type, uint32_t call, uint32_t seq,
		       unsigned flags)
{
	struct rxw_header h = {
		.epoch = BENCH_EPOCH,
		.cid = BENCH_CID,
		.call = call,
		.seq = seq,
		.serial = ++b->serial,
		.type = (uint8_t)type,
		.flags = (uint8_t)(flags | (b->client ? 0 : RXW_CLIENT_INITIATED)),
		.security = b->security->class.index,
		.service = BENCH_SERVICE,
	};

	rxw_header_put(to, &h);
	return RXW_HEADER_SIZE;
}

uint32_t bench_header(struct bench *b, uint8_t *to, unsigned type, uint32_t call, unsigned flags)
{
	return header(b, to, type, call, 0, flags);
}

uint32_t bench_data(struct bench *b, uint8_t *to, uint32_t call, uint32_t seq, unsigned flags,
		    uint32_t payload)
{
	header(b, to, RXW_DATA, call, seq, flags);
	for (uint32_t i = 0; i < payload; i++)
		to[RXW_HEADER_SIZE + i] = (uint8_t)(seq + i);
	return RXW_HEADER_SIZE + payload;
}

uint32_t bench_ack(struct bench *b, uint8_t *to, uint32_t call, uint32_t first, uint32_t serial,
		   unsigned reason, unsigned flags, const char *acks, uint32_t rwind)
{
	uint8_t table[RXW_MAX_ACKS];
	struct rxw_ack ack = {
		.first = first,
		.previous = first - 1,
		.serial = serial,
		.reason = (uint8_t)reason,
		.acks = table,
		.count = (uint8_t)strlen(acks),
		.max_mtu = 1444,
		.if_mtu = 1444,
		.rwind = rwind,
		.jumbo_max = 1,
	};

	for (unsigned i = 0; i < ack.count; i++)
		table[i] = acks[i] == '1';
	header(b, to, RXW_ACK, call, 0, flags | RXW_SLOW_START_OK);
	return RXW_HEADER_SIZE + (uint32_t)rxw_ack_put(to + RXW_HEADER_SIZE, &ack);
}

void bench_get_data(struct bench *b, struct bench_conn *c, uint32_t call, uint32_t seq,
		    unsigned flags, uint32_t payload)
{
	uint8_t packet[2048];
	uint32_t size = bench_data(b, packet, call, seq, flags, payload);

	bench_input(b, c, packet, size, size);
}

void bench_get_ack(struct bench *b, struct bench_conn *c, uint32_t call, uint32_t first,
		   uint32_t serial, unsigned reason, const char *acks, uint32_t rwind)
{
	uint8_t packet[RXW_ACK_MAX_SIZE];
	uint32_t size = bench_ack(b, packet, call, first, serial, reason, 0, acks, rwind);

	bench_input(b, c, packet, size, size);
}

void bench_write(struct bench_call *call, unsigned packets, uint32_t payload, bool last)
{
	struct bench *b = bench_of(call);
	struct rxw_txrun run = {.stride = (uint16_t)(RXW_HEADER_SIZE + payload),
				.count = (uint16_t)packets,
				.last = last};
	uint32_t seq = rxw_pcall_next_seq(&call->p);

	run.last_size = run.stride;
	run.buf = rxw_buf_get(b->pool);
	ck_assert_ptr_nonnull(run.buf);
	run.data = run.buf->data;
	for (unsigned i = 0; i < packets; i++) {
		uint8_t *d = run.data + (size_t)i * run.stride;

		memset(d, 0, RXW_HEADER_SIZE);
		for (uint32_t k = 0; k < payload; k++)
			d[RXW_HEADER_SIZE + k] = (uint8_t)(seq + i + k);
	}
	ck_assert_int_eq(rxw_pcall_push(&call->p, &run, &b->out), 0);
	bench_settle(b);
}

unsigned bench_read(struct bench_call *call)
{
	struct rxw_rxpiece pieces[64];
	unsigned packets = 0, n = rxw_pcall_take(&call->p, pieces, 64);

	for (unsigned i = 0; i < n; i++) {
		packets += pieces[i].count;
		rxw_buf_unref(pieces[i].buf);
	}
	rxw_pcall_consumed(&call->p, packets, &bench_of(call)->out);
	rxw_pcall_read_pause(&call->p, &bench_of(call)->out);
	bench_settle(bench_of(call));
	return packets;
}

/* The earliest deadline of all calls and connections. Runs its timer if `run`. */
static uint64_t timers(struct bench *b, bool run)
{
	uint64_t least = UINT64_MAX;

	for (struct bench_conn *c = b->conns; c != NULL; c = c->next) {
		if (run && rxw_pconn_deadline(&c->p) <= b->out.now) {
			rxw_pconn_timer(&c->p, &b->out);
			bench_auth(b);
		}
		least = rxw_min64(least, rxw_pconn_deadline(&c->p));
		for (unsigned i = 0; i < 4; i++) {
			struct rxw_pcall *p = c->p.channel[i];

			if (p == NULL)
				continue;
			if (run && rxw_pcall_deadline(p) <= b->out.now)
				rxw_pcall_timer(p, &b->out);
			least = rxw_min64(least, rxw_pcall_deadline(p));
		}
	}
	if (run)
		bench_settle(b);
	return least;
}

void bench_pass(struct bench *b, uint64_t ns)
{
	uint64_t end = b->out.now + ns;
	unsigned rounds = 0;

	for (;;) {
		uint64_t at = timers(b, false);

		if (at > end)
			break;
		ck_assert_msg(++rounds < 100000, "timers that never end");
		if (at > b->out.now)
			b->out.now = at;
		timers(b, true);
	}
	b->out.now = end;
}

struct bench_packet *bench_next(struct bench *b)
{
	return b->next < b->count ? &b->sent[b->next++] : NULL;
}

struct bench_packet *bench_expect(struct bench *b, unsigned type)
{
	struct bench_packet *k = bench_next(b);

	ck_assert_msg(k != NULL, "no %s was sent", rxw_packet_type_name(type));
	ck_assert_msg(k->h.type == type, "%s was sent instead of %s",
		      rxw_packet_type_name(k->h.type), rxw_packet_type_name(type));
	return k;
}

int bench_main(Suite *suite)
{
	SRunner *runner = srunner_create(suite);
	int failed;

	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? 0 : 1;
}
