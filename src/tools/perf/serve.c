/* SPDX-License-Identifier: BSD-2-Clause */
/* Serving rxperf: the commands, and the figures that clients of ours ask for. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tools/perf/serve.h"

#define BAD_REQUEST (-1)

/* One call being served. */
struct job {
	struct perf_server *server;
	rxw_call *call;
	struct perf_request r;
	uint64_t in, out; /* bytes of data moved */
	int32_t code;     /* of the ABORT, once something failed */
};

/* What a failed result of the library means for the call. */
static int32_t code_of(rxw_call *call, ssize_t result)
{
	int32_t code = result == -RXW_ECALL ? rxw_call_error(call, NULL) : 0;

	return code ? code : BAD_REQUEST;
}

static bool read_exactly(struct job *job, void *data, size_t length)
{
	ssize_t n = rxw_call_read(job->call, data, length);

	if (n == (ssize_t)length)
		return true;
	job->code = code_of(job->call, n);
	return false;
}

/* Take `length` bytes of data from the client, in slices lent by the library. */
static bool take(struct job *job, uint64_t length)
{
	while (length > 0) {
		struct iovec iov[64];
		unsigned count = 64;
		size_t want = length < job->r.read_size ? (size_t)length : job->r.read_size;
		ssize_t n = rxw_call_readv(job->call, want, iov, &count);

		if (n <= 0) {
			job->code = code_of(job->call, n);
			return false;
		}
		if (job->server->verify) {
			uint64_t at = job->in;

			for (unsigned i = 0; i < count; at += iov[i].iov_len, i++)
				if (!perf_pattern_matches(at, iov[i].iov_base, iov[i].iov_len)) {
					atomic_fetch_add(&job->server->mismatches, 1);
					job->code = rxw_code_from_errno(EBADMSG);
					return false;
				}
		}
		job->in += (uint64_t)n;
		length -= (uint64_t)n;
	}
	return true;
}

static bool give(struct job *job, uint64_t length)
{
	while (length > 0) {
		size_t want = length < job->r.write_size ? (size_t)length : job->r.write_size, n;
		const uint8_t *data = perf_pattern(job->out, want, &n);
		ssize_t done = rxw_call_write(job->call, data, n);

		if (done <= 0) {
			job->code = code_of(job->call, done);
			return false;
		}
		job->out += (uint64_t)done;
		length -= (uint64_t)done;
	}
	return true;
}

static bool give_cookie(struct job *job)
{
	static const uint8_t cookie[4] = { PERF_COOKIE >> 24 & 0xff, PERF_COOKIE >> 16 & 0xff,
					   PERF_COOKIE >> 8 & 0xff, PERF_COOKIE & 0xff };
	ssize_t done = rxw_call_write(job->call, cookie, sizeof(cookie));

	if (done == sizeof(cookie))
		return true;
	job->code = code_of(job->call, done);
	return false;
}

/* The words behind the count, then data as they say. */
static bool serve_list(struct job *job)
{
	uint32_t count = job->r.word_count;
	uint8_t *raw = malloc(4 * (size_t)count + 1);
	unsigned direction = 0;
	bool ok = raw && read_exactly(job, raw, 4 * (size_t)count);

	if (!raw)
		job->code = rxw_code_from_errno(ENOMEM);
	for (uint32_t i = 0; ok && i < count; i++) {
		const uint8_t *w = raw + 4 * (size_t)i;
		uint64_t length = (uint64_t)w[0] << 24 | w[1] << 16 | w[2] << 8 | w[3];

		if (length > PERF_MAX_BYTES) {
			job->code = BAD_REQUEST;
			ok = false;
		} else if (length == 0) {
			direction ^= 1;
		} else if (direction == 1) {
			ok = give(job, 4 * length);
		} else if (job->out > 0) {
			/* The first byte of a reply has ended the request. */
			job->code = BAD_REQUEST;
			ok = false;
		} else {
			ok = take(job, 4 * length);
		}
	}
	free(raw);
	return ok;
}

static bool serve(struct job *job)
{
	uint8_t words[PERF_COMMON_LEN];
	size_t more;

	if (!read_exactly(job, words, PERF_COMMON_LEN))
		return false;
	if (perf_decode_common(&job->r, words, &more) < 0) {
		job->code = BAD_REQUEST;
		return false;
	}
	if (!read_exactly(job, words, more))
		return false;
	if (perf_decode_sizes(&job->r, words) < 0) {
		job->code = BAD_REQUEST;
		return false;
	}
	if (job->r.command == PERF_FILE)
		return serve_list(job);
	return take(job, job->r.request) && give(job, job->r.reply) && give_cookie(job);
}

int32_t perf_handle(rxw_call *call, void *context)
{
	struct perf_server *server = context;
	struct job job = { .server = server, .call = call };
	bool ok = serve(&job);

	atomic_fetch_add_explicit(&server->bytes_in, job.in, memory_order_relaxed);
	atomic_fetch_add_explicit(&server->bytes_out, job.out, memory_order_relaxed);
	atomic_fetch_add_explicit(ok ? &server->calls : &server->failed, 1, memory_order_relaxed);
	return ok ? 0 : job.code;
}

void perf_moment_now(struct perf_server *server, struct perf_moment *moment)
{
	memset(moment, 0, sizeof(*moment));
	moment->bytes_in = atomic_load(&server->bytes_in);
	moment->bytes_out = atomic_load(&server->bytes_out);
	moment->calls = atomic_load(&server->calls);
	moment->failed = atomic_load(&server->failed);
	tools_usage_now(&moment->usage);
	moment->stats.size = sizeof(moment->stats);
	for (size_t i = 0; i < server->endpoint_count; i++) {
		struct rxw_stats one = { .size = sizeof(one) };

		if (rxw_endpoint_stats(server->endpoints[i], &one) == 0)
			tools_stats_add(&moment->stats, &one);
	}
}

json_t *perf_server_report(struct perf_server *server, const struct perf_moment *since)
{
	struct perf_moment now;
	struct tools_usage usage;
	struct rxw_stats stats;
	json_t *object = json_object(), *effective = json_array();
	uint64_t in, out;

	if (!object || !effective) {
		json_decref(object);
		json_decref(effective);
		return NULL;
	}
	perf_moment_now(server, &now);
	usage = tools_usage_between(&since->usage, &now.usage);
	stats = tools_stats_between(&since->stats, &now.stats);
	in = now.bytes_in - since->bytes_in;
	out = now.bytes_out - since->bytes_out;
	tools_report_fill(object, in + out, now.calls - since->calls, &usage, &stats, NULL);
	json_object_set_new(object, "bytes_in", json_integer((json_int_t)in));
	json_object_set_new(object, "bytes_out", json_integer((json_int_t)out));
	json_object_set_new(object, "calls_failed",
			    json_integer((json_int_t)(now.failed - since->failed)));
	json_object_set_new(object, "mismatches",
			    json_integer((json_int_t)atomic_load(&server->mismatches)));
	json_object_set_new(object, "version", json_string(rxw_version()));
	for (size_t i = 0; i < server->endpoint_count; i++)
		json_array_append_new(effective, tools_effective_json(server->endpoints[i]));
	json_object_set_new(object, "effective", effective);
	json_object_set_new(object, "config", tools_config_json(server->config));
	json_object_set_new(object, "transport", tools_stats_json(&stats));
	json_object_set_new(object, "machine", tools_facts_json());
	return object;
}

static int32_t answer_mark(rxw_call *call, struct perf_server *server)
{
	struct perf_moment now;
	uint8_t word[4];
	struct rxw_xdr x;

	perf_moment_now(server, &now);
	pthread_mutex_lock(&server->lock);
	if (++server->last_token == 0)
		server->last_token = 1;
	now.token = server->last_token;
	server->marks[now.token % PERF_MARKS] = now;
	pthread_mutex_unlock(&server->lock);
	rxw_xdr_writer(&x, word, sizeof(word));
	rxw_xdr_put_u32(&x, now.token);
	return rxw_call_write(call, word, sizeof(word)) < 0 ? RXW_USER_ABORT : 0;
}

static int32_t answer_figures(rxw_call *call, struct perf_server *server, uint32_t token)
{
	struct perf_moment since;
	json_t *report;
	char *text;
	int32_t code = 0;

	pthread_mutex_lock(&server->lock);
	since = server->marks[token % PERF_MARKS];
	if (token == 0 || since.token != token)
		since = server->start;
	pthread_mutex_unlock(&server->lock);
	report = perf_server_report(server, &since);
	text = report ? json_dumps(report, JSON_COMPACT) : NULL;
	json_decref(report);
	if (!text)
		return rxw_code_from_errno(ENOMEM);
	if (rxw_call_write(call, text, strlen(text)) < 0)
		code = RXW_USER_ABORT;
	free(text);
	return code;
}

int32_t perf_handle_figures(rxw_call *call, void *context)
{
	struct perf_server *server = context;
	uint8_t words[8];
	struct rxw_xdr x;
	uint32_t operation = 0, token = 0;

	if (rxw_call_read(call, words, sizeof(words)) != sizeof(words))
		return RXW_RPC_DECODE;
	rxw_xdr_reader(&x, words, sizeof(words));
	rxw_xdr_get_u32(&x, &operation);
	rxw_xdr_get_u32(&x, &token);
	if (operation == PERF_OP_MARK)
		return answer_mark(call, server);
	if (operation == PERF_OP_FIGURES)
		return answer_figures(call, server, token);
	return RXW_RPC_OPCODE;
}
