/* SPDX-License-Identifier: BSD-2-Clause */
/* Streams of a pattern that reveals missing bytes, and a server for them. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "streams.h"

/*
 * A table of random bytes whose length is a prime: shifting a stream of a test by any number of
 * packets gives other bytes.
 */
#define PERIOD 1048573u
#define CHUNK  65536u

static uint8_t table[PERIOD];
static pthread_once_t table_made = PTHREAD_ONCE_INIT;

static void make_table(void)
{
	uint64_t x = 0x9e3779b97f4a7c15ull;

	for (size_t i = 0; i < PERIOD; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		table[i] = (uint8_t)(x >> 32);
	}
}

static size_t place(uint64_t offset, uint32_t seed)
{
	pthread_once(&table_made, make_table);
	return (size_t)((offset + seed * 7919ull) % PERIOD);
}

void h_pattern(uint8_t *to, uint64_t offset, size_t length, uint32_t seed)
{
	while (length) {
		size_t at = place(offset, seed), n = PERIOD - at < length ? PERIOD - at : length;

		memcpy(to, table + at, n);
		to += n;
		offset += n;
		length -= n;
	}
}

bool h_pattern_is(const uint8_t *data, uint64_t offset, size_t length, uint32_t seed)
{
	while (length) {
		size_t at = place(offset, seed), n = PERIOD - at < length ? PERIOD - at : length;

		if (memcmp(data, table + at, n))
			return false;
		data += n;
		offset += n;
		length -= n;
	}
	return true;
}

int h_pattern_file(void)
{
	int fd = memfd_create("pattern", MFD_CLOEXEC);

	place(0, 0);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, table, PERIOD), PERIOD);
	return fd;
}

/* ---- requests ---- */

void h_encode_ask(uint8_t head[H_ASK_SIZE], const struct h_ask *ask)
{
	struct rxw_xdr x;

	rxw_xdr_writer(&x, head, H_ASK_SIZE);
	rxw_xdr_put_u32(&x, (uint32_t)ask->op);
	rxw_xdr_put_u32(&x, ask->how);
	rxw_xdr_put_u64(&x, ask->bytes);
	rxw_xdr_put_u32(&x, ask->seed);
	rxw_xdr_put_u32(&x, ask->chunk);
	rxw_xdr_put_u32(&x, (uint32_t)ask->code);
	rxw_xdr_put_u32(&x, 0x68617321);
}

bool h_decode_ask(const uint8_t head[H_ASK_SIZE], struct h_ask *ask)
{
	uint32_t op = 0, magic = 0;
	struct rxw_xdr x;

	rxw_xdr_reader(&x, head, H_ASK_SIZE);
	rxw_xdr_get_u32(&x, &op);
	rxw_xdr_get_u32(&x, &ask->how);
	rxw_xdr_get_u64(&x, &ask->bytes);
	rxw_xdr_get_u32(&x, &ask->seed);
	rxw_xdr_get_u32(&x, &ask->chunk);
	rxw_xdr_get_i32(&x, &ask->code);
	rxw_xdr_get_u32(&x, &magic);
	ask->op = (enum h_op)op;
	return rxw_xdr_ok(&x) && magic == 0x68617321;
}

/* ---- streams ---- */

static size_t chunk_of(const struct h_ask *ask)
{
	return ask->chunk && ask->chunk < CHUNK ? ask->chunk : CHUNK;
}

/* Fills lent memory, several times if the library lends less than requested. */
static int put_in_place(rxw_call *call, const struct h_ask *ask, uint64_t offset, size_t length)
{
	struct iovec iov[64];

	while (length) {
		unsigned count = 64;
		ssize_t n = rxw_call_reserve(call, length, iov, &count);
		uint64_t at = offset;
		int rc;

		if (n < 0)
			return (int)n;
		for (unsigned i = 0; i < count; i++) {
			h_pattern(iov[i].iov_base, at, iov[i].iov_len, ask->seed);
			at += iov[i].iov_len;
		}
		if (!n || at - offset != (uint64_t)n || (size_t)n > length)
			return -H_MISMATCH;
		rc = rxw_call_commit(call, (size_t)n);
		if (rc < 0)
			return rc;
		offset += (uint64_t)n;
		length -= (size_t)n;
	}
	return 0;
}

static int put_file(struct h_bed *bed, rxw_call *call, const struct h_ask *ask, uint64_t offset,
		    size_t length)
{
	while (length) {
		size_t at = place(offset, ask->seed);
		size_t n = PERIOD - at < length ? PERIOD - at : length;
		ssize_t sent = rxw_call_sendfile(call, bed->file, (off_t)at, n);

		if (sent < 0)
			return (int)sent;
		if ((size_t)sent != n)
			return -H_MISMATCH;
		offset += n;
		length -= n;
	}
	return 0;
}

int h_put(struct h_bed *bed, rxw_call *call, const struct h_ask *ask)
{
	size_t chunk = chunk_of(ask);
	uint8_t *buffer = malloc(chunk);
	int rc = 0;

	for (uint64_t at = 0; at < ask->bytes && !rc;) {
		size_t n = ask->bytes - at < chunk ? (size_t)(ask->bytes - at) : chunk;

		if (ask->how & H_FILE) {
			rc = put_file(bed, call, ask, at, n);
		} else if (ask->how & H_INPLACE) {
			rc = put_in_place(call, ask, at, n);
		} else {
			ssize_t wrote;

			h_pattern(buffer, at, n, ask->seed);
			wrote = rxw_call_write(call, buffer, n);
			rc = wrote < 0 ? (int)wrote : (size_t)wrote == n ? 0 : -H_MISMATCH;
		}
		if (!rc && (ask->how & H_FLUSH))
			rc = rxw_call_flush(call);
		at += n;
	}
	free(buffer);
	return rc;
}

/* Compares lent slices. Returns their bytes, 0 at the end, or a negative result. */
static ssize_t get_lent(rxw_call *call, const struct h_ask *ask, uint64_t offset, size_t chunk)
{
	struct iovec iov[64];
	unsigned count = 64;
	ssize_t n = rxw_call_readv(call, chunk, iov, &count);
	size_t sum = 0;

	if (n <= 0)
		return n;
	for (unsigned i = 0; i < count; i++) {
		if (!h_pattern_is(iov[i].iov_base, offset + sum, iov[i].iov_len, ask->seed))
			return -H_MISMATCH;
		sum += iov[i].iov_len;
	}
	return sum == (size_t)n && sum <= chunk ? n : -H_MISMATCH;
}

int h_get(rxw_call *call, const struct h_ask *ask)
{
	size_t chunk = chunk_of(ask);
	uint8_t *buffer = malloc(chunk);
	uint64_t at = 0;
	ssize_t n;

	for (;;) {
		if (ask->how & H_INPLACE)
			n = get_lent(call, ask, at, chunk);
		else if (ask->how & H_SOME)
			n = rxw_call_read_some(call, buffer, chunk);
		else
			n = rxw_call_read(call, buffer, chunk);
		if (n <= 0)
			break;
		if (!(ask->how & H_INPLACE) && !h_pattern_is(buffer, at, (size_t)n, ask->seed)) {
			n = -H_MISMATCH;
			break;
		}
		at += (uint64_t)n;
	}
	free(buffer);
	if (n < 0)
		return (int)n;
	return at == ask->bytes ? 0 : -H_MISMATCH;
}

/* ---- the server ---- */

static int32_t code_of(rxw_call *call, int rc)
{
	int32_t code = rxw_call_error(call, NULL);

	if (!rc)
		return 0;
	return rc == -H_MISMATCH || !code ? H_MISMATCH : code;
}

static int32_t echo(rxw_call *call)
{
	size_t room = 1u << 20, used = 0;
	uint8_t *all = malloc(room);
	ssize_t n;

	while (used < room && (n = rxw_call_read(call, all + used, room - used)) > 0)
		used += (size_t)n;
	n = rxw_call_write(call, all, used);
	free(all);
	return code_of(call, n < 0 ? (int)n : 0);
}

static void wait_at_gate(struct h_gate *gate)
{
	pthread_mutex_lock(&gate->lock);
	gate->arrived++;
	pthread_cond_broadcast(&gate->cond);
	while (!gate->open)
		pthread_cond_wait(&gate->cond, &gate->lock);
	pthread_mutex_unlock(&gate->lock);
}

static int32_t write_once(struct h_bed *bed, rxw_call *call, const struct h_ask *ask)
{
	struct rxw_call_statistics s = { .size = sizeof(s) };
	uint8_t *all = malloc((size_t)ask->bytes);
	ssize_t n;

	h_pattern(all, 0, (size_t)ask->bytes, ask->seed);
	n = rxw_call_write(call, all, (size_t)ask->bytes);
	rxw_call_stats(call, &s);
	free(all);
	pthread_mutex_lock(&bed->lock);
	bed->seen = s;
	pthread_mutex_unlock(&bed->lock);
	return code_of(call, n == (ssize_t)ask->bytes ? 0 : n < 0 ? (int)n : -H_MISMATCH);
}

static int32_t destroy_all(struct h_bed *bed, rxw_call *call)
{
	uint8_t results[12];
	struct rxw_xdr x;
	ssize_t n;

	rxw_xdr_writer(&x, results, sizeof(results));
	rxw_xdr_put_u32(&x, (uint32_t)rxw_endpoint_stop(bed->server, 0));
	rxw_xdr_put_u32(&x, (uint32_t)rxw_endpoint_destroy(bed->server));
	rxw_xdr_put_u32(&x, (uint32_t)rxw_engine_destroy(bed->server_engine));
	n = rxw_call_write(call, results, sizeof(results));
	return code_of(call, n < 0 ? (int)n : 0);
}

static int32_t finish_sink(struct h_bed *bed, rxw_call *call, const struct h_ask *ask)
{
	int rc = h_get(call, ask);

	if (!rc && ask->op == H_BOTH)
		rc = h_put(bed, call, ask);
	return code_of(call, rc);
}

int32_t h_serve(rxw_call *call, void *context)
{
	struct h_bed *bed = context;
	uint8_t head[H_ASK_SIZE];
	struct h_ask ask;
	ssize_t n = rxw_call_read(call, head, sizeof(head));

	if (n < 0)
		return code_of(call, (int)n);
	if (n != sizeof(head) || !h_decode_ask(head, &ask))
		return RXW_RPC_DECODE;
	switch (ask.op) {
	case H_ECHO:
		return echo(call);
	case H_SINK:
	case H_BOTH:
		return finish_sink(bed, call, &ask);
	case H_SOURCE:
		return code_of(call, h_put(bed, call, &ask));
	case H_LATE:
		h_put(bed, call, &ask);
		return ask.code;
	case H_ABORT:
		return ask.code;
	case H_WAIT:
		wait_at_gate(&bed->gate);
		return finish_sink(bed, call, &ask);
	case H_ONCE:
		return write_once(bed, call, &ask);
	case H_DESTROY:
		return destroy_all(bed, call);
	case H_PING:
		n = rxw_call_write(call, "pong", 4);
		return code_of(call, n < 0 ? (int)n : 0);
	}
	return RXW_RPC_OPCODE;
}
