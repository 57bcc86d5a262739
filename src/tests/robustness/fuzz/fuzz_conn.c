/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzz target: a connection under a script of packets, time and application calls. The input is one
 * byte of setup, then operations of a few bytes each (see step()). For all input: no access out of
 * bounds, our packets are well formed, and at the end there are no leaks and no memory is charged.
 */

#include "fuzz.h"

#include <arpa/inet.h>
#include <stdbool.h>
#include <string.h>

#include "tests/support/host.h"

const char fuzz_name[] = "conn";
const size_t fuzz_max = 1200;
const unsigned fuzz_cost = 8;

#define EPOCH	0x80000077u
#define CID	0x00001000u
#define SERVICE 147
#define CTLS	16

struct call {
	HOST_CALL;
	bool finished; /* LAST_PACKET was pushed */
	bool ended;
};

struct world {
	HOST;
	struct host_conn conn;
	struct rxw_path path;
	uint32_t serial;
	const uint8_t *at, *end;
};

static uint8_t byte(struct world *w)
{
	return w->at < w->end ? *w->at++ : 0;
}

/*
 * -- Effects of the protocol core ----------------------------------------------------------------
 */

static void check_header(struct world *w, const uint8_t *bytes, size_t size, struct rxw_header *h)
{
	FUZZ_CHECK(rxw_header_get(bytes, size, h));
	FUZZ_CHECK(h->epoch == EPOCH && (h->cid & ~3u) == CID && h->service == SERVICE);
	FUZZ_CHECK(!!(h->flags & RXW_CLIENT_INITIATED) == w->conn.p.client);
	FUZZ_CHECK(h->serial != 0);
}

static void check_control(struct world *w, const struct rxw_ctl *ctl)
{
	const uint8_t *body = ctl->bytes + RXW_HEADER_SIZE;
	struct rxw_header h;
	struct rxw_ack ack;
	int32_t code;

	check_header(w, ctl->bytes, ctl->length, &h);
	FUZZ_CHECK(h.type != RXW_DATA);
	if (h.type == RXW_ACK) {
		FUZZ_CHECK(rxw_ack_get(body, ctl->length - RXW_HEADER_SIZE, 0, &ack));
		FUZZ_CHECK(ack.trailer_words == 4);
		FUZZ_CHECK(ack.reason != RXW_ACK_PING || (h.flags & RXW_REQUEST_ACK));
	}
	if (h.type == RXW_ABORT) {
		FUZZ_CHECK(ctl->length == RXW_HEADER_SIZE + 4 && rxw_get32(body) != 0);
		FUZZ_CHECK(rxw_abort_get(body, 4, &code));
	}
}

static void send_bursts(struct world *w, struct rxw_pcall *p)
{
	uint64_t not_before = 0;
	struct rxw_burst t;

	/* The peer's window bounds the packets. The bound here only stops an endless loop. */
	for (unsigned n = 0; n < 2000; n++) {
		memset(&t, 0, sizeof(t));
		if (rxw_pcall_burst(p, 45, &t, &not_before, &w->out) != RXW_BURST_READY)
			return;
		FUZZ_CHECK(t.count >= 1 && t.length <= (uint32_t)t.count * t.segment);
		for (uint32_t i = 0; i < t.count; i++) {
			uint32_t off = i * t.segment;
			uint32_t size = t.length - off < t.segment ? t.length - off : t.segment;
			struct rxw_header h;

			check_header(w, t.data + off, size, &h);
			FUZZ_CHECK(h.type == RXW_DATA && h.seq == t.first_seq + i);
			FUZZ_CHECK(h.call == p->number && (h.cid & 3) == p->channel);
		}
		rxw_pcall_burst_done(p, &t, t.count, 0, &w->out);
	}
	FUZZ_CHECK(!"the sender comes to an end");
}

static void on_control(struct host *h, const struct rxw_ctl *ctl)
{
	check_control((struct world *)h, ctl);
}

static void on_events(struct host *h, struct host_call *call, uint32_t events)
{
	if (events & RXW_OUT_ATTACH)
		rxw_pcall_attach(&call->p, &h->out);
	if (events & RXW_OUT_SEND)
		send_bursts((struct world *)h, &call->p);
	if (events & RXW_OUT_RELEASE)
		rxw_pcall_release(&call->p, 3);
	if (events & RXW_OUT_DONE)
		rxw_pcall_retire(&call->p);
}

static const struct host_ops ops = {
	.call_size = sizeof(struct call), .control = on_control, .events = on_events};

static void settle(struct world *w)
{
	FUZZ_CHECK(w->out.ctl_count <= CTLS);
	host_settle((struct host *)w);
}

/*
 * -- Operations -----------------------------------------------------------------------------------
 */

static void receive(struct world *w, uint8_t *bytes, uint32_t length, uint32_t segment)
{
	struct rxw_buf *buf = rxw_buf_get_small(w->pool, length);
	struct rxw_jumbo jumbo;
	struct rxw_rxrun run;
	uint32_t at = 0;

	if (!buf)
		return;
	memcpy(buf->data, bytes, length);
	memset(&jumbo, 0, sizeof(jumbo));
	while (rxw_run_next(buf, &w->path, length, segment, &at, &jumbo, &run, &w->stats) == 1) {
		bool from_client = run.head.flags & RXW_CLIENT_INITIATED;

		run.ecn = (uint8_t)(run.head.serial >> 2 & 3); /* a path that marks as it likes */
		if (from_client != w->conn.p.client && run.head.type != RXW_DEBUG &&
		    run.head.type != RXW_VERSION)
			FUZZ_CHECK(rxw_pconn_input(&w->conn.p, &run, &w->out) == RXW_INPUT_DONE);
		settle(w);
	}
	rxw_buf_unref(buf);
}

/*
 * A burst of packets: type, flags, channel and call, seq, count, length of the body; then the body,
 * shared by all of them. The body of an ACK names packets near those in flight.
 */
static void packets(struct world *w)
{
	static uint8_t burst[32 * 1500];
	uint8_t type = byte(w), flags = byte(w), where = byte(w), count = byte(w) % 32;
	struct rxw_header h = {.epoch = EPOCH, .service = SERVICE, .type = type};
	struct rxw_pcall *p = w->conn.p.channel[where & 3];
	uint32_t size = byte(w), next = p ? p->rx.next : 1;

	if (size > 200)
		size = (size - 200) * 26; /* up to 1430 */
	h.cid = CID | (where & 3);
	h.flags = (uint8_t)((flags & ~RXW_CLIENT_INITIATED) |
			    (w->conn.p.client ? 0 : RXW_CLIENT_INITIATED));
	h.call = w->conn.p.number[where & 3] + (where >> 2) % 4 - (where >> 6);
	h.seq = type == RXW_DATA ? next + byte(w) - 4 : 0;
	h.security = flags & 0x80 ? 1 : 0;
	h.serial = w->serial;
	size += RXW_HEADER_SIZE;
	for (unsigned i = 0; i <= count; i++) {
		uint8_t *at = burst + i * size, *body = at + RXW_HEADER_SIZE;
		const uint8_t *save = w->at;

		rxw_header_put(at, &h);
		for (uint32_t k = 0; k < size - RXW_HEADER_SIZE; k++)
			body[k] = byte(w);
		if (type == RXW_ACK && size >= RXW_HEADER_SIZE + 18 && p) {
			rxw_put32(body + 4, p->tx.una + body[7] % 8 - 1);
			rxw_put32(body + 12, w->conn.p.serial - body[15] % 16);
		}
		h.seq++;
		h.serial++;
		if (i < count)
			w->at = save;
	}
	w->serial = h.serial;
	receive(w, burst, (count + 1u) * size, size);
}

static void read_some(struct world *w, struct rxw_pcall *p)
{
	struct rxw_rxpiece pieces[4];
	unsigned n = rxw_pcall_take(p, pieces, 4);
	uint32_t packets_read = 0;

	for (unsigned i = 0; i < n; i++) {
		const struct rxw_rxpiece *r = &pieces[i];
		unsigned sum = 0;

		for (uint32_t k = 0; k < r->count; k++) {
			uint32_t length = k + 1u == r->count ? r->last_length : r->length;

			for (uint32_t b = 0; b < length; b++)
				sum += r->data[(size_t)k * r->stride + b];
		}
		FUZZ_CHECK(sum <= 255u * 65536u);
		packets_read += r->count;
		rxw_buf_unref(r->buf);
	}
	if (packets_read)
		rxw_pcall_consumed(p, packets_read, &w->out);
	rxw_pcall_read_pause(p, &w->out);
}

static void write_some(struct world *w, struct rxw_pcall *p, uint8_t how)
{
	struct call *call = (struct call *)p;
	uint32_t size = rxw_pcall_datagram_size(p), count = 1 + (how >> 2) % 16;
	struct rxw_txrun run = {
		.stride = (uint16_t)size, .count = (uint16_t)count, .last = how & 1};

	if (call->finished || (!p->client && p->state != RXW_CS_ACTIVE))
		return;
	run.buf = rxw_buf_get_small(w->pool, count * size);
	if (!run.buf)
		return;
	memset(run.buf->data, 0x55, count * size);
	run.data = run.buf->data;
	run.last_size = (uint16_t)(how & 2 ? RXW_HEADER_SIZE + how : size);
	call->finished = run.last;
	rxw_pcall_push(p, &run, &w->out);
	rxw_pcall_flush(p, &w->out);
}

static void end(struct world *w, struct rxw_pcall *p, int32_t code)
{
	struct call *call = (struct call *)p;

	if (call->ended)
		return;
	call->ended = true;
	call->finished = true;
	if (code)
		rxw_pcall_fail(p, code, RXW_ORIGIN_LOCAL, true, &w->out);
	rxw_pcall_finish(p, &w->out);
}

static void pass_time(struct world *w, uint8_t how)
{
	static const uint64_t spans[] = {10000,	  RXW_MS,      20 * RXW_MS,  300 * RXW_MS,
					 RXW_SEC, 5 * RXW_SEC, 13 * RXW_SEC, 70 * RXW_SEC};

	w->out.now += spans[how % 8];
	if (rxw_pconn_deadline(&w->conn.p) <= w->out.now)
		rxw_pconn_timer(&w->conn.p, &w->out);
	settle(w);
	for (unsigned i = 0; i < 4; i++) {
		struct rxw_pcall *p = w->conn.p.channel[i];

		if (!p || rxw_pcall_deadline(p) > w->out.now)
			continue;
		host_hold(p);
		rxw_pcall_timer(p, &w->out);
		settle(w);
		host_drop(p);
	}
}

static void begin(struct world *w)
{
	struct host_call *call;

	if (!w->conn.p.client || w->conn.p.error ||
	    !rxw_pconn_has_free_channel(&w->conn.p, w->out.now))
		return;
	call = host_call_new(&w->conn);
	if (rxw_pconn_begin(&w->conn.p, &call->p, w->out.now))
		host_drop(&call->p);
}

static void step(struct world *w)
{
	uint8_t op = byte(w), how;
	struct rxw_pcall *p = w->conn.p.channel[op >> 6];

	if (p)
		host_hold(p);
	switch (op % 10) {
	case 0:
	case 1:
	case 2:
		packets(w);
		break;
	case 3:
		pass_time(w, byte(w));
		break;
	case 4:
		if (p && !((struct call *)p)->ended)
			read_some(w, p);
		break;
	case 5:
		how = byte(w);
		if (p)
			write_some(w, p, how);
		break;
	case 6:
		how = byte(w);
		if (p)
			end(w, p, how < 128 ? 0 : how);
		break;
	case 7:
		rxw_pconn_batch_end(&w->conn.p, op & 16, &w->out);
		break;
	case 8:
		begin(w);
		break;
	default:
		how = byte(w);
		if (how > 250)
			rxw_pconn_icmp(&w->conn.p, 111, 1000, &w->out);
		else if (p && rxw_pcall_sendable(p, w->out.now))
			send_bursts(w, p);
	}
	settle(w);
	if (p)
		host_drop(p);
}

/*
 * -- A run ----------------------------------------------------------------------------------------
 */

static void set_up(struct world *w, uint8_t how)
{
	struct rxw_params params = host_params();
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(7001)};

	in.sin_addr.s_addr = htonl(how & 2 ? 0x7f000001 : 0x0a000001);
	rxw_addr_set(&w->path.peer, (struct sockaddr *)&in, sizeof(in));
	params.window = how & 32 ? 1024 : how & 4 ? 255 : 32;
	params.ecn = how & 32;
	params.wide_memory = how & 32 ? 1 << 20 : 0;
	params.cc_wide = how & 64 ? &rxw_cc_rate : NULL;
	params.mtu_ceiling = how & 8 ? 8972 : 1444;
	params.call_memory = how & 16 ? 1 << 20 : 32768;
	params.conn_memory = 1 << 21;
	params.peer_memory = 1 << 22;
	host_init((struct host *)w, &ops, &params, 8 << 20, 65536, 2);
	w->out.ctl_room = CTLS;
	w->out.now = RXW_SEC;
	w->serial = 1;
	host_conn_init((struct host *)w, &w->conn, &w->path, EPOCH, CID, SERVICE,
		       &rxw_security_null_class, how & 1);
}

static void tear_down(struct world *w)
{
	for (unsigned i = 0; i < 4; i++) {
		struct rxw_pcall *p = w->conn.p.channel[i];

		if (!p)
			continue;
		host_hold(p);
		end(w, p, RXW_USER_ABORT);
		settle(w);
		host_drop(p);
	}
	rxw_pconn_close(&w->conn.p, &w->out);
	settle(w);
	rxw_pconn_fini(&w->conn.p, w->out.now);
	FUZZ_CHECK(w->live_calls == 0);
	FUZZ_CHECK(w->conn.p.rx.memory.used == 0);
	FUZZ_CHECK(host_free((struct host *)w) == 0);
	FUZZ_CHECK(w->budget.used == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct world w;

	if (!size)
		return 0;
	memset(&w, 0, sizeof(w));
	w.at = data + 1;
	w.end = data + size;
	set_up(&w, data[0]);
	for (unsigned n = 0; n < 300 && w.at < w.end; n++)
		step(&w);
	tear_down(&w);
	return 0;
}
