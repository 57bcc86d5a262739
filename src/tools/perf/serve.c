/* SPDX-License-Identifier: BSD-2-Clause */
/* rxperf server: the commands, and the statistics for clients. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tools/perf/serve.h"

#define BAD_REQUEST (-1)
#define JOINED	    1024 /* replies of up to this many bytes are one write */

/* One call being served. */
struct job {
	struct perf_server *server;
	rxw_call *call;
	rxperf_sizes sizes;
	uint64_t in, out; /* bytes of data moved */
	int32_t code;	  /* of the ABORT, once something failed */
};

/*
 * The code for a failed result. A stream that ends too early is an error of the client; other
 * failures are ours.
 */
static int32_t code_of(rxw_call *call, ssize_t result)
{
	int32_t code = result == -RXW_ECALL ? rxw_call_error(call, NULL) : 0;

	if (code)
		return code;
	switch (result) {
	case -RXW_ENOMEM:
		return rxw_code_from_errno(ENOMEM);
	case -RXW_ESYS:
		return rxw_code_from_errno(errno);
	case -RXW_ESTOPPED:
		return RXW_RESTARTING;
	case -RXW_ESTATE:
		return RXW_PROTOCOL_ERROR;
	default:
		return result < 0 && result != -RXW_EEOF ? RXW_USER_ABORT : BAD_REQUEST;
	}
}

/* Count bytes as they move, so that figures show the rate of a call in progress. */
static void moved(uint64_t *of_job, _Atomic(uint64_t) *of_server, size_t bytes)
{
	*of_job += bytes;
	atomic_fetch_add_explicit(of_server, bytes, memory_order_relaxed);
}

/* Receive `length` bytes of data, in slices that the library lends. */
static bool take(struct job *job, uint64_t length)
{
	while (length > 0) {
		struct iovec iov[64];
		unsigned count = 64;
		size_t want = length < job->sizes.read_size ? (size_t)length : job->sizes.read_size;
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
		moved(&job->in, &job->server->bytes_in, (size_t)n);
		length -= (uint64_t)n;
	}
	return true;
}

static bool give(struct job *job, uint64_t length)
{
	while (length > 0) {
		size_t want = length < job->sizes.write_size ? (size_t)length
							     : job->sizes.write_size,
		       n;
		const uint8_t *data = perf_pattern(job->out, want, &n);
		ssize_t done = rxw_call_write(job->call, data, n);

		if (done <= 0) {
			job->code = code_of(job->call, done);
			return false;
		}
		moved(&job->out, &job->server->bytes_out, (size_t)done);
		length -= (uint64_t)done;
	}
	return true;
}

/* Send data and cookie, in one write if they are small. */
static bool give_reply(struct job *job, uint64_t length)
{
	uint8_t tail[JOINED + 4];
	size_t n = 0;
	ssize_t done;

	if (length > JOINED || length > job->sizes.write_size) {
		if (!give(job, length))
			return false;
	} else if (length > 0) {
		memcpy(tail, perf_pattern(0, (size_t)length, &n), (size_t)length);
	}
	rxw_xdr_store32(tail + n, RXPERF_COOKIE);
	done = rxw_call_write(job->call, tail, n + 4);
	if (done != (ssize_t)n + 4) {
		job->code = code_of(job->call, done);
		return false;
	}
	moved(&job->out, &job->server->bytes_out, n);
	return true;
}

/* Transfer data according to the list. */
static bool serve_list(struct job *job, const rxperf_list *list)
{
	unsigned direction = 0;
	bool ok = true;

	for (uint32_t i = 0; ok && i < list->words.len; i++) {
		uint64_t length = list->words.val[i];

		if (length > PERF_MAX_BYTES) {
			job->code = BAD_REQUEST;
			ok = false;
		} else if (length == 0) {
			direction ^= 1;
		} else if (direction == 1) {
			ok = give(job, 4 * length);
		} else if (job->out > 0) {
			/* The first byte of a reply ends the request. */
			job->code = BAD_REQUEST;
			ok = false;
		} else {
			ok = take(job, 4 * length);
		}
	}
	return ok;
}

static int32_t run(void *context, rxw_call *call, const rxperf_command *command)
{
	struct perf_server *server = context;
	struct job job = {.server = server, .call = call, .sizes = *perf_sizes(command)};
	uint64_t to_server, to_client;
	bool ok;

	if (!perf_is_sane(command))
		return BAD_REQUEST;
	if (command->what == RXPERF_FILE) {
		ok = serve_list(&job, &command->u.file);
	} else {
		perf_totals(command, &to_server, &to_client);
		ok = take(&job, to_server) && give_reply(&job, to_client);
	}
	return ok ? 0 : job.code;
}

int32_t perf_handle(rxw_call *call, void *context)
{
	struct perf_server *server = context;
	int32_t code = RXPERF_ExecuteRequest(call, &server->service);

	/* This service has one code for all these errors of the dispatcher. */
	if (code == RXW_RPC_DECODE || code == RXW_RPC_OPCODE || code == RXW_RPC_SS_UNMARSHAL)
		code = BAD_REQUEST;
	atomic_fetch_add_explicit(code == 0 ? &server->calls : &server->failed, 1,
				  memory_order_relaxed);
	return code;
}

void perf_moment_now(struct perf_server *server, struct perf_moment *moment)
{
	memset(moment, 0, sizeof(*moment));
	moment->bytes_in = atomic_load(&server->bytes_in);
	moment->bytes_out = atomic_load(&server->bytes_out);
	moment->calls = atomic_load(&server->calls);
	moment->failed = atomic_load(&server->failed);
	tools_usage_now(&moment->usage);
	for (size_t i = 0; i < server->endpoint_count; i++) {
		struct counters one;

		if (counters_read(&one, server->endpoints[i]) == 0)
			tools_stats_add(&moment->stats, &one);
	}
}

json_t *perf_server_report(struct perf_server *server, const struct perf_moment *since)
{
	struct perf_moment now;
	struct tools_usage usage;
	struct counters stats;
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

static int32_t mark(void *context, rxw_call *call, uint32_t unused, uint32_t *token)
{
	struct perf_server *server = context;
	struct perf_moment now;

	(void)call;
	(void)unused;
	perf_moment_now(server, &now);
	pthread_mutex_lock(&server->lock);
	if (++server->last_token == 0)
		server->last_token = 1;
	now.token = server->last_token;
	server->marks[now.token % PERF_MARKS] = now;
	pthread_mutex_unlock(&server->lock);
	*token = now.token;
	return 0;
}

static int32_t report(void *context, rxw_call *call, uint32_t token)
{
	struct perf_server *server = context;
	struct perf_moment since;
	json_t *object;
	char *text;
	int32_t code = 0;

	pthread_mutex_lock(&server->lock);
	since = server->marks[token % PERF_MARKS];
	if (token == 0 || since.token != token)
		since = server->start;
	pthread_mutex_unlock(&server->lock);
	object = perf_server_report(server, &since);
	text = object ? json_dumps(object, JSON_COMPACT) : NULL;
	json_decref(object);
	if (!text)
		return rxw_code_from_errno(ENOMEM);
	if (rxw_call_write(call, text, strlen(text)) < 0)
		code = RXW_USER_ABORT;
	free(text);
	return code;
}

void perf_server_init(struct perf_server *server)
{
	static const struct RXPERF_handlers commands = {.Run = run};
	static const struct RXPERFFIG_handlers figures = {.Mark = mark, .Report = report};

	server->service.base.context = server;
	server->service.handlers = &commands;
	server->figures.base.context = server;
	server->figures.handlers = &figures;
}
