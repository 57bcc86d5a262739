/* SPDX-License-Identifier: BSD-2-Clause */
/* rxperf server: the commands, with or without a thread, and the statistics for clients. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/held.h"
#include "common/siphash.h"
#include "program/address.h"
#include "rxperf/serve.h"

/* A call that is served. */
struct perf_job {
	struct perf_server *server;
	rxw_call *call;
	rxperf_sizes sizes;
	uint64_t to_take, to_give; /* bytes of data */
	uint64_t in, out;	   /* bytes of data moved */
	unsigned cookie_sent;	   /* bytes */
	int32_t code;		   /* of the ABORT, once something failed */
};

enum perf_progress {
	PERF_FAILED = -1,
	PERF_WAITS,
	PERF_DONE
};

#define BAD_REQUEST (-1)
#define COOKIE	    4
#define JOINED	    1024 /* replies of up to this many bytes are one write */
#define THREADLESS  ((uint64_t)64 << 10) /* a call that moves more has no thread while it waits */

/*
 * The code for a failed result. A stream that ends too early is an error of the client; other
 * failures are ours.
 */
static int32_t abort_code_of(rxw_call *call, ssize_t result)
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
static void count_job_bytes(uint64_t *of_job, _Atomic(uint64_t) *of_server, size_t bytes)
{
	*of_job += bytes;
	atomic_fetch_add_explicit(of_server, bytes, memory_order_relaxed);
}

/*
 * A non-blocking call waits for its client, or the call has failed. So has one of a short handler
 * that would have to wait: its code is set as well.
 */
static enum perf_progress stop_job(struct perf_job *job, ssize_t result)
{
	job->code = abort_code_of(job->call, result);
	return result == -RXW_EAGAIN ? PERF_WAITS : PERF_FAILED;
}

static bool matches_pattern(struct perf_job *job, const struct iovec *iov, unsigned count)
{
	uint64_t at = job->in;

	for (unsigned i = 0; i < count; at += iov[i].iov_len, i++)
		if (!perf_pattern_matches(at, iov[i].iov_base, iov[i].iov_len)) {
			atomic_fetch_add(&job->server->mismatches, 1);
			job->code = rxw_code_from_errno(EBADMSG);
			return false;
		}
	return true;
}

/* Receive data up to `end` bytes in all, in slices that the library lends. */
static enum perf_progress take_request(struct perf_job *job, uint64_t end)
{
	while (job->in < end) {
		struct iovec iov[64];
		unsigned count = 64;
		uint64_t left = end - job->in;
		size_t want = left < job->sizes.read_size ? (size_t)left : job->sizes.read_size;
		ssize_t n = rxw_call_readv(job->call, want, iov, &count);

		if (n <= 0)
			return stop_job(job, n);
		if (job->server->verify && !matches_pattern(job, iov, count))
			return PERF_FAILED;
		count_job_bytes(&job->in, &job->server->bytes_in, (size_t)n);
	}
	return PERF_DONE;
}

/* Send data up to `end` bytes in all. */
static enum perf_progress give_reply(struct perf_job *job, uint64_t end)
{
	while (job->out < end) {
		uint64_t left = end - job->out;
		size_t want = left < job->sizes.write_size ? (size_t)left : job->sizes.write_size,
		       n;
		const uint8_t *data = perf_pattern(job->out, want, &n);
		ssize_t done = rxw_call_write(job->call, data, n);

		if (done <= 0)
			return stop_job(job, done);
		count_job_bytes(&job->out, &job->server->bytes_out, (size_t)done);
	}
	return PERF_DONE;
}

static enum perf_progress give_cookie(struct perf_job *job)
{
	uint8_t cookie[COOKIE];

	rxw_xdr_store32(cookie, RXPERF_COOKIE);
	while (job->cookie_sent < COOKIE) {
		ssize_t done = rxw_call_write(job->call, cookie + job->cookie_sent,
					      COOKIE - job->cookie_sent);

		if (done <= 0)
			return stop_job(job, done);
		job->cookie_sent += (unsigned)done;
	}
	return PERF_DONE;
}

/* A small reply is one write. */
static enum perf_progress give_small_reply(struct perf_job *job)
{
	uint8_t reply[JOINED + COOKIE];
	size_t n = 0;
	ssize_t done;

	if (job->to_give)
		memcpy(reply, perf_pattern(0, (size_t)job->to_give, &n), (size_t)job->to_give);
	rxw_xdr_store32(reply + n, RXPERF_COOKIE);
	done = rxw_call_write(job->call, reply, n + COOKIE);
	if (done != (ssize_t)n + COOKIE)
		return stop_job(job, done);
	count_job_bytes(&job->out, &job->server->bytes_out, n);
	return PERF_DONE;
}

static bool is_small(const struct perf_job *job)
{
	return job->to_give <= JOINED && job->to_give <= job->sizes.write_size;
}

/* All data and the cookie have moved. */
static bool perf_job_is_over(const struct perf_job *job)
{
	return job->cookie_sent == COOKIE;
}

/* The smaller of `end` and what a turn allows after `done`. */
static uint64_t end_of_turn(uint64_t done, uint64_t end, uint64_t turn)
{
	return end - done < turn ? end : done + turn;
}

/*
 * Moves data of request and reply, and the cookie at the end, until `turn` bytes have moved in each
 * direction (PERF_DONE), a non-blocking call has to wait, or the call has failed: job->code.
 */
static enum perf_progress perf_job_move(struct perf_job *job, uint64_t turn)
{
	enum perf_progress progress = take_request(job, end_of_turn(job->in, job->to_take, turn));

	if (progress != PERF_DONE || job->in < job->to_take)
		return progress;
	progress = give_reply(job, end_of_turn(job->out, job->to_give, turn));
	if (progress != PERF_DONE || job->out < job->to_give)
		return progress;
	return give_cookie(job);
}

/* Transfer data according to the list. */
static bool serve_list(struct perf_job *job, const rxperf_list *list)
{
	unsigned direction = 0;

	for (uint32_t i = 0; i < list->words.len; i++) {
		uint64_t length = list->words.val[i];
		enum perf_progress progress = PERF_DONE;

		/* The first byte of a reply ends the request. */
		if (length > PERF_MAX_BYTES || (length && direction == 0 && job->out > 0)) {
			job->code = BAD_REQUEST;
			return false;
		}
		if (length == 0)
			direction ^= 1;
		else if (direction == 1)
			progress = give_reply(job, job->out + 4 * length);
		else
			progress = take_request(job, job->in + 4 * length);
		if (progress != PERF_DONE)
			return false;
	}
	return true;
}

/* A call has ended with that code. */
static void perf_count_call(struct perf_server *server, int32_t code)
{
	atomic_fetch_add_explicit(code == 0 ? &server->calls : &server->failed, 1,
				  memory_order_relaxed);
}

/*
 * ---- bulk calls without a thread ----
 *
 * A thread of the library that finds that a call can go on moves its data. Calls of one client take turns:
 * all at once, a thousand of them would fill its receive buffer with a few packets each.
 */

#define AT_ONCE 128		    /* calls of one client */
#define TURN	((uint64_t)4 << 20) /* bytes that a thread moves in a row */

struct perf_flow {
	struct perf_job job;
	struct perf_client *client;
	struct perf_flow *next; /* the lock of the server: waits, too */
};

/* A client that has flows. The lock of the server covers it. */
struct perf_client {
	struct perf_client *next; /* of the same chain */
	struct tools_address address;
	unsigned active;		 /* flows that have their turn; at least one */
	struct perf_flow *first, **last; /* flows that wait for their turn, the oldest first */
};

/* The link to the client, or to the end of its chain. */
static struct perf_client **find_client(struct perf_server *server,
					const struct tools_address *address)
{
	uint64_t hash = siphash(&address->sa, address->len, server->secret);
	struct perf_client **link = &server->clients[hash % PERF_CHAINS];

	assert(mutex_is_held(&server->lock));
	while (*link && ((*link)->address.len != address->len ||
			 memcmp(&(*link)->address.sa, &address->sa, address->len)))
		link = &(*link)->next;
	return link;
}

static void append_waiting(struct perf_client *client, struct perf_flow *flow)
{
	assert(mutex_is_held(&flow->job.server->lock));
	*(client->first ? client->last : &client->first) = flow;
	client->last = &flow->next;
}

static struct perf_flow *pop_waiting(struct perf_client *client)
{
	struct perf_flow *flow = client->first;

	assert(flow && mutex_is_held(&flow->job.server->lock));
	client->first = flow->next;
	return flow;
}

static void continue_perf_flow(rxw_call *call, unsigned events, void *arg);

/*
 * Watch the call of an active flow. Events that hold already are reported soon, on another thread.
 */
static void arm_perf_flow(struct perf_flow *flow)
{
	int watched = rxw_call_set_callback(flow->job.call, continue_perf_flow, flow);

	assert(watched == 0); /* the call is deferred */
	(void)watched;
}

/* Returns whether it has its turn at once. `fresh`: it becomes the client's, or is freed. */
static bool append_flow(struct perf_flow *flow, struct perf_client *fresh)
{
	struct perf_server *server = flow->job.server;
	struct perf_client **link;
	bool now;

	pthread_mutex_lock(&server->lock);
	link = find_client(server, &fresh->address);
	if (!*link) {
		*link = fresh;
		fresh = NULL;
	}
	flow->client = *link;
	now = flow->client->active < AT_ONCE;
	flow->client->active += now;
	if (!now)
		append_waiting(flow->client, flow);
	pthread_mutex_unlock(&server->lock);
	free(fresh);
	return now;
}

/* Remove an active flow. Returns the flow of the same client that has its turn now, or NULL. */
static struct perf_flow *remove_flow(struct perf_flow *flow)
{
	struct perf_server *server = flow->job.server;
	struct perf_client *client = flow->client, *left = NULL;
	struct perf_flow *next = NULL;

	pthread_mutex_lock(&server->lock);
	if (client->first) {
		next = pop_waiting(client);
	} else if (--client->active == 0) {
		*find_client(server, &client->address) = client->next;
		left = client;
	}
	pthread_mutex_unlock(&server->lock);
	free(left);
	return next;
}

/* Something moved, or the call has failed. */
static void continue_perf_flow(rxw_call *call, unsigned events, void *arg)
{
	struct perf_flow *flow = arg, *next;
	struct perf_job *job = &flow->job;
	enum perf_progress progress = perf_job_move(job, TURN);
	int32_t code = progress == PERF_DONE ? 0 : job->code;

	(void)events;
	if (progress == PERF_WAITS)
		return;
	if (progress == PERF_DONE && !perf_job_is_over(job)) {
		arm_perf_flow(
			flow); /* it goes on after other jobs, if a thread that verifies has any */
		return;
	}
	next = remove_flow(flow);
	perf_count_call(job->server, code);
	RXPERF_Run_reply(call, code);
	free(flow);
	if (next)
		arm_perf_flow(next);
}

/*
 * Serve the job without a thread. Copies it. True: the call is deferred, and will be ended.
 * False: too many calls are deferred, or there is no memory.
 */
static bool perf_flow_begin(const struct perf_job *job)
{
	struct perf_flow *flow = calloc(1, sizeof(*flow));
	struct perf_client *client = calloc(1, sizeof(*client));

	if (!flow || !client ||
	    rxw_call_peer(job->call, &client->address.sa, &client->address.len) < 0 ||
	    rxw_call_defer(job->call) < 0) {
		free(flow);
		free(client);
		return false;
	}
	flow->job = *job;
	if (append_flow(flow, client))
		arm_perf_flow(flow);
	return true;
}

/* ---- the services ---- */

static int32_t run_perf_command(void *context, rxw_call *call, const rxperf_command *command)
{
	struct perf_server *server = context;
	struct perf_job job = {.server = server, .call = call, .sizes = *perf_sizes(command)};
	bool ok;

	if (!perf_is_sane(command))
		return BAD_REQUEST;
	if (command->what == RXPERF_FILE) {
		ok = serve_list(&job, &command->u.file);
		goto out;
	}
	perf_totals(command, &job.to_take, &job.to_give);
	if (job.to_take + job.to_give > THREADLESS && perf_flow_begin(&job))
		return RXW_RPC_DEFERRED;
	if (is_small(&job))
		ok = take_request(&job, job.to_take) == PERF_DONE &&
		     give_small_reply(&job) == PERF_DONE;
	else
		ok = perf_job_move(&job, UINT64_MAX) == PERF_DONE;
out:
	if (ok)
		perf_count_call(server, 0);
	return ok ? 0 : job.code;
}

int32_t perf_handle(rxw_call *call, void *context)
{
	struct perf_server *server = context;
	int32_t code = RXPERF_ExecuteRequest(call, &server->service);

	if (code == 0)
		return 0; /* counted; or deferred, and will be */
	/* This service has one code for all these errors of the dispatcher. */
	if (code == RXW_RPC_DECODE || code == RXW_RPC_OPCODE || code == RXW_RPC_SS_UNMARSHAL)
		code = BAD_REQUEST;
	perf_count_call(server, code);
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

static int32_t mark_figures(void *context, rxw_call *call, uint32_t unused, uint32_t *token)
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

static int32_t report_figures(void *context, rxw_call *call, uint32_t token)
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
	static const struct RXPERF_handlers commands = {.Run = run_perf_command};
	static const struct RXPERFFIG_handlers figures = {.Mark = mark_figures,
							  .Report = report_figures};

	/* A client that knows the secret can only make the chains longer. */
	if (getentropy(server->secret, sizeof(server->secret)) < 0)
		memset(server->secret, 0, sizeof(server->secret));
	server->service.base.context = server;
	server->service.handlers = &commands;
	server->figures.base.context = server;
	server->figures.handlers = &figures;
}
