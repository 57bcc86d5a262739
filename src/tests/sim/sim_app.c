/* SPDX-License-Identifier: BSD-2-Clause */
/* Simulation: the application at both ends sends known bytes and checks the received ones. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

#define PATTERN 65521u
#define HEAD	24u

/*
 * Byte i of a stream: a table, starting at an offset derived from the stream's seed. Returns the bytes from `at` on, and
 * how many of `length` there are before the table begins again.
 */
static const uint8_t *pattern(uint32_t seed, uint64_t at, size_t *length)
{
	static uint8_t table[PATTERN];
	size_t from = (size_t)((at + seed) % PATTERN);

	if (table[0] == 0) {
		uint64_t state = 4711;

		for (unsigned i = 0; i < PATTERN; i++)
			table[i] = (uint8_t)rxw_prng(&state);
		table[0] = 1;
	}
	if (*length > PATTERN - from)
		*length = PATTERN - from;
	return table + from;
}

static void put_pattern(uint8_t *out, uint32_t seed, uint64_t at, size_t length)
{
	for (size_t done = 0, n; done < length; done += n) {
		const uint8_t *bytes;

		n = length - done;
		bytes = pattern(seed, at + done, &n);
		memcpy(out + done, bytes, n);
	}
}

static bool is_pattern(const uint8_t *data, uint32_t seed, uint64_t at, size_t length)
{
	for (size_t done = 0, n; done < length; done += n) {
		const uint8_t *bytes;

		n = length - done;
		bytes = pattern(seed, at + done, &n);
		if (memcmp(bytes, data + done, n) != 0)
			return false;
	}
	return true;
}

static void later(struct sim_call *call, bool *set, enum sim_event_kind kind, uint64_t wait)
{
	if (*set)
		return;
	*set = true;
	call->refs++;
	sim_at(call->node->sim, call->node->sim->now + wait, kind, call, NULL);
}

/* The head of a request holds its length, the length of the reply, and both seeds. */
static void fill(struct sim_call *call, uint8_t *out, uint64_t at, size_t length)
{
	put_pattern(out, call->tx_seed, at, length);
	if (call->node->client)
		for (uint64_t i = at; i < HEAD && i < at + length; i++)
			out[i - at] = call->head[i];
}

static void put64(uint8_t *p, uint64_t v)
{
	rxw_put32(p, (uint32_t)(v >> 32));
	rxw_put32(p + 4, (uint32_t)v);
}

static uint64_t get64(const uint8_t *p)
{
	return (uint64_t)rxw_get32(p) << 32 | rxw_get32(p + 4);
}

/* One run of the data still to be written. */
static bool write_run(struct sim_call *call)
{
	struct sim *sim = call->node->sim;
	const struct rxw_security_room *room = &call->p.conn->auth.room;
	uint32_t payload =
		rxw_sealed_capacity(room, rxw_pcall_datagram_size(&call->p) - RXW_HEADER_SIZE);
	uint32_t size = RXW_HEADER_SIZE + rxw_sealed_size(room, payload), last = payload;
	uint64_t left = call->tx_total - call->tx_done;
	unsigned count = 1 + (unsigned)sim_draw(sim, sim->setup.max_run);
	struct rxw_txrun run = {.stride = (uint16_t)size};
	uint32_t seq = rxw_pcall_next_seq(&call->p);
	int result;

	if (count > RXW_BUF_SIZE / size)
		count = RXW_BUF_SIZE / size;
	if ((uint64_t)count * payload >= left) {
		count = (unsigned)((left + payload - 1) / payload);
		if (count == 0)
			count = 1;
		run.last = true;
	}
	run.buf = rxw_buf_get(call->node->pool);
	if (run.buf == NULL)
		return false;
	run.data = run.buf->data;
	run.count = (uint16_t)count;
	for (unsigned i = 0; i < count; i++) {
		uint8_t *d = run.data + (size_t)i * size;
		uint32_t n = left < payload ? (uint32_t)left : payload;

		fill(call, d + RXW_HEADER_SIZE + room->head, call->tx_done, n);
		memset(d, 0xee, RXW_HEADER_SIZE);
		call->tx_done += n;
		left -= n;
		last = n;
	}
	run.last_size = (uint16_t)(RXW_HEADER_SIZE + rxw_sealed_size(room, last));
	if (rxw_run_seal(call->p.conn, call->p.channel, call->p.number, seq, run.data, run.stride,
			 run.count, payload, last) != 0)
		sim_fail(sim, "a run was not sealed");
	call->tx_ended = run.last;
	result = rxw_pcall_push(&call->p, &run, sim_out(call->node));
	if (result != 0 && result != -RXW_ECALL)
		sim_fail(sim, "push says %d", result);
	return result == 0;
}

/* The application has no more data yet. */
static bool write_slowly(struct sim_call *call)
{
	const struct sim *sim = call->node->sim;
	uint64_t before = call->tx_done;

	if (call->node->client || sim->setup.write_rate == 0 ||
	    sim->now >= RXW_SEC + sim->setup.slow_until)
		return false;
	if (call->tx_ended || !rxw_pcall_writable(&call->p) || !write_run(call))
		return true;
	later(call, &call->write_set, SIM_WRITE,
	      (call->tx_done - before) * RXW_SEC / sim->setup.write_rate);
	return true;
}

void sim_app_write(struct sim_call *call)
{
	struct sim *sim = call->node->sim;

	call->write_set = false;
	if (!call->writing || call->p.error != 0)
		return;
	if (sim->now < call->node->silent_until) {
		later(call, &call->write_set, SIM_WRITE, call->node->silent_until - sim->now);
		return;
	}
	/* As the engine does: the queue may have become too long since the writer was told. */
	rxw_pcall_limit_queue(&call->p, 0);
	while (!call->tx_ended && !write_slowly(call) && rxw_pcall_writable(&call->p))
		if (!write_run(call))
			break;
	if (call->tx_ended) {
		call->writing = false;
		if (!call->node->client)
			rxw_pcall_finish(&call->p, sim_out(call->node));
	}
	sim_settle(call->node);
}

static void account(struct sim_call *call)
{
	struct sim *sim = call->node->sim;

	if (call->counted || !call->node->client)
		return;
	call->counted = true;
	sim->calls_running--;
	if (call->p.error != 0 && call->p.error == sim->setup.may_end) {
		sim->calls_done++;
		sim->calls_ended++;
	} else if (call->p.error == RXW_CALL_DEAD && sim->setup.may_starve && call->tried > 0 &&
		   call->passed == 0) {
		sim->calls_done++;
		sim->calls_starved++;
	} else if (call->p.error != 0) {
		sim->calls_failed++;
		sim_fail(sim, "call %u ended with %d after %llu of %llu bytes", call->index,
			 call->p.error, (unsigned long long)call->rx_done,
			 (unsigned long long)call->rx_total);
	} else {
		sim->calls_done++;
	}
	sim->call_seconds[call->index] = (double)(sim->now - call->began) / 1e9;
	sim->finished_at = sim->now;
	sim_at(sim, sim->now + sim->setup.think + sim_draw(sim, 3 * RXW_MS), SIM_BEGIN, call->conn,
	       NULL);
}

static void compare(struct sim_call *call, const uint8_t *data, size_t length)
{
	size_t skip = 0;

	if (!call->node->client)
		while (skip < length && call->rx_done + skip < HEAD) {
			call->head[call->rx_done + skip] = data[skip];
			if (++skip + call->rx_done == HEAD) {
				call->rx_total = get64(call->head);
				call->tx_total = get64(call->head + 8);
				call->rx_seed = rxw_get32(call->head + 16);
				call->tx_seed = rxw_get32(call->head + 20);
			}
		}
	if (!is_pattern(data + skip, call->rx_seed, call->rx_done + skip, length - skip))
		sim_fail(call->node->sim, "wrong bytes at %llu", (unsigned long long)call->rx_done);
	call->rx_done += length;
	call->node->sim->bytes_moved += length;
	if (call->node->client)
		call->node->sim->call_bytes[call->index] += length;
}

/* All data is read: the server replies, the client is done. */
static void ended(struct sim_call *call)
{
	struct sim *sim = call->node->sim;

	if (call->finished)
		return;
	call->finished = true;
	if (call->rx_done != call->rx_total)
		sim_fail(sim, "stream of %llu bytes has %llu", (unsigned long long)call->rx_total,
			 (unsigned long long)call->rx_done);
	if (call->node->client) {
		rxw_pcall_finish(&call->p, sim_out(call->node));
		account(call);
	} else {
		call->writing = true;
		later(call, &call->write_set, SIM_WRITE, sim_draw(sim, sim->setup.wake_wait + 1));
	}
}

void sim_app_read(struct sim_call *call)
{
	struct sim *sim = call->node->sim;
	struct rxw_rxpiece pieces[8];
	bool end;
	unsigned n, packets = 0;
	uint64_t bytes = 0;

	call->read_set = false;
	if (call->p.error != 0) {
		account(call);
		return;
	}
	if (call->p.state != RXW_CS_ACTIVE)
		return;
	if (sim->now < RXW_SEC + sim->setup.stall && call->p.channel == call->node->client) {
		later(call, &call->read_set, SIM_READ, RXW_SEC + sim->setup.stall - sim->now);
		return;
	}
	if (sim->now < call->node->stalled_until) {
		later(call, &call->read_set, SIM_READ, call->node->stalled_until - sim->now);
		return;
	}
	while ((n = rxw_pcall_take(&call->p, pieces, sim->setup.read_rate ? 1 : 8)) > 0) {
		for (unsigned i = 0; i < n; i++) {
			struct rxw_rxpiece *piece = &pieces[i];

			for (unsigned k = 0; k < piece->count; k++) {
				size_t length =
					k + 1u == piece->count ? piece->last_length : piece->length;

				compare(call, piece->data + (size_t)k * piece->stride, length);
				bytes += length;
			}
			packets += piece->count;
			rxw_buf_unref(piece->buf);
		}
		if (sim->setup.read_rate)
			break;
	}
	rxw_pcall_consumed(&call->p, packets, sim_out(call->node));
	rxw_pcall_read_pause(&call->p, sim_out(call->node));
	if (rxw_pcall_readable(&call->p, &end) == 0 && end)
		ended(call);
	else if (sim->setup.read_rate && packets > 0)
		later(call, &call->read_set, SIM_READ,
		      bytes * 1000000000ull / sim->setup.read_rate);
	sim_settle(call->node);
}

void sim_app_events(struct sim_call *call, uint32_t events)
{
	struct sim *sim = call->node->sim;

	if (events & RXW_OUT_DONE && call->p.error != 0) {
		call->node->failed_at = sim->now;
		call->node->calls_failed++;
	}
	if (events & RXW_OUT_ATTACH) {
		rxw_pcall_attach(&call->p, sim_out(call->node));
		events |= RXW_OUT_READ;
	}
	if (events & (RXW_OUT_READ | RXW_OUT_READ_LATER))
		later(call, &call->read_set, SIM_READ, sim_draw(sim, sim->setup.wake_wait + 1));
	if (events & RXW_OUT_WRITE)
		later(call, &call->write_set, SIM_WRITE, sim_draw(sim, sim->setup.wake_wait + 1));
	if (events & RXW_OUT_SEND)
		sim_send(call);
}

void sim_app_begin(struct sim_conn *conn)
{
	struct sim *sim = conn->node->sim;
	struct sim_call *call;
	uint64_t request = sim->setup.request, reply = sim->setup.reply;

	if (conn->calls_left == 0)
		return;
	if (conn->p.error != 0 && conn->p.error == sim->setup.may_end) {
		sim->calls_done += conn->calls_left;
		sim->calls_ended += conn->calls_left;
		conn->calls_left = 0;
		return;
	}
	call = (struct sim_call *)host_call_new((struct host_conn *)conn);
	if (rxw_pconn_begin(&conn->p, &call->p, sim_clock(conn->node)) != 0) {
		host_drop(&call->p);
		sim_fail(sim, "no channel is free");
		return;
	}
	conn->calls_left--;
	call->index = sim->call_count++;
	sim->calls_running++;
	if (sim->setup.vary) {
		request = sim_draw(sim, request + 1);
		reply = sim_draw(sim, reply + 1);
	}
	call->tx_total = request < HEAD ? HEAD : request;
	call->rx_total = reply;
	call->tx_seed = (uint32_t)sim_draw(sim, UINT32_MAX);
	call->rx_seed = (uint32_t)sim_draw(sim, UINT32_MAX);
	put64(call->head, call->tx_total);
	put64(call->head + 8, reply);
	rxw_put32(call->head + 16, call->tx_seed);
	rxw_put32(call->head + 20, call->rx_seed);
	call->began = sim->now;
	call->writing = true;
	later(call, &call->write_set, SIM_WRITE, 0);
	/* The channel keeps its reference. No other is needed. */
}

bool sim_run(struct sim *sim, const struct sim_setup *setup, uint64_t seed)
{
	struct sim_event event;
	unsigned total = setup->connections * setup->channels * setup->calls;

	memset(sim, 0, sizeof(*sim));
	sim->setup = *setup;
	sim->seed = seed;
	sim->prng = seed * 2 + 1;
	sim->now = RXW_SEC;
	sim_class_clock(sim);
	sim->call_seconds = calloc(total + 1, sizeof(double));
	sim->call_bytes = calloc(total + 1, sizeof(*sim->call_bytes));
	sim->call_marks = calloc(total + 1, sizeof(*sim->call_marks));
	if (sim->call_seconds == NULL || sim->call_bytes == NULL || sim->call_marks == NULL ||
	    !sim_node_init(sim, &sim->client, true, &setup->client) ||
	    !sim_node_init(sim, &sim->server, false, &setup->server))
		abort();
	for (unsigned i = 0; i < setup->connections; i++) {
		struct sim_conn *conn = sim_conn_new(&sim->client, SIM_CID + 4 * i, NULL);

		conn->calls_left = setup->channels * setup->calls;
		for (unsigned k = 0; k < setup->channels; k++)
			sim_at(sim, sim->now + i * setup->stagger + sim_draw(sim, RXW_MS),
			       SIM_BEGIN, conn, NULL);
	}
	for (unsigned i = 0; i < setup->change_count; i++)
		sim_at(sim, sim->now + setup->changes[i].at, SIM_CHANGE, &sim->setup.changes[i],
		       NULL);
	sim_way_start(sim);
	if (setup->references > 0)
		sim_ref_start(sim, setup->references);
	while (sim->failure[0] == '\0' && (sim->calls_done < total || sim->refs != NULL) &&
	       sim_next_event(sim, &event)) {
		if (setup->stop_at != 0 && sim->now > RXW_SEC + setup->stop_at) {
			/* Back into the queue, which frees its references with the rest. */
			sim_at(sim, event.at, event.kind, event.subject, event.more);
			return true;
		}
		if (sim->now > RXW_SEC + setup->limit) {
			sim_fail(sim, "%u of %u calls done after %.1f s", sim->calls_done, total,
				 (double)(sim->now - RXW_SEC) / 1e9);
			break;
		}
		sim_node_event(sim, &event);
	}
	if (sim->failure[0] == '\0' && sim->calls_done < total)
		sim_fail(sim, "nothing happens any more: %u of %u calls done", sim->calls_done,
			 total);
	return sim->failure[0] == '\0';
}

void sim_free(struct sim *sim)
{
	struct sim_event event;

	/* Releases references still pending: of calls, datagrams, bursts and verdicts. */
	sim->setup.trace = false;
	while (sim_next_event(sim, &event)) {
		switch (event.kind) {
		case SIM_ARRIVAL:
			sim_datagram_free(event.more);
			break;
		case SIM_REF_DATA:
		case SIM_REF_ACK:
			free(event.more);
			break;
		case SIM_BURST_DONE: {
			struct {
				struct rxw_burst burst;
			} *t = event.more;
			struct sim_call *call = event.subject;

			rxw_pcall_burst_done(&call->p, &t->burst, t->burst.count, 0,
					     sim_out(call->node));
			free(event.more);
			host_drop(&call->p);
			break;
		}
		case SIM_AUTH: {
			struct sim_conn *conn = event.subject;

			rxw_pconn_auth_drop(&conn->p, event.more, sim_out(conn->node));
			break;
		}
		case SIM_VERDICT:
			rxw_buf_unref(((struct rxw_rxrun *)event.more)->buf);
			free(event.more);
			break;
		case SIM_TIMER:
		case SIM_SEND:
		case SIM_READ:
		case SIM_WRITE:
			host_drop(event.subject);
			break;
		default:
			break;
		}
	}
	sim_way_free(sim);
	sim_node_free(&sim->client);
	sim_node_free(&sim->server);
	if (sim->client.live_calls + sim->server.live_calls != 0)
		sim_fail(sim, "%u calls leaked", sim->client.live_calls + sim->server.live_calls);
	sim_ref_free(sim);
	free(sim->call_seconds);
	free(sim->call_bytes);
	free(sim->call_marks);
	free(sim->heap);
	for (unsigned i = 0; i < SIM_LANES; i++)
		free(sim->lane[i].at);
}
