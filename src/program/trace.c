/* SPDX-License-Identifier: BSD-2-Clause */
/* Traces of all endpoints of a program, started and stopped together. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include <rxwire/endpoint.h>
#include <rxwire/error.h>
#include <rxwire/observe.h>

#include "program/address.h"
#include "program/message.h"
#include "program/trace.h"

struct tools_trace {
	struct tools_trace_options options;
	rxw_endpoint **endpoints;
	rxw_trace_watch **watches; /* of the endpoints, while it is on */
	uint64_t *before;	   /* packets that each endpoint had seen at the start */
	size_t count;
	bool on;
	unsigned number; /* of this program's traces */
};

static const char *explain_failure(int rc)
{
	return rc != -RXW_ESYS	? rxw_strerror(rc)
	       : errno == EPERM ? "other users can write to it or own it"
				: strerror(errno);
}

static uint64_t count_traced_packets(rxw_endpoint *endpoint)
{
	struct rxw_trace_counts c = {.size = sizeof(c)};

	rxw_trace_count(endpoint, &c);
	return c.packets;
}

static unsigned read_port(rxw_endpoint *endpoint)
{
	struct sockaddr_storage sa;
	socklen_t length = sizeof(sa);

	return rxw_endpoint_address(endpoint, &sa, &length) < 0 ? 0 : tools_address_port(&sa);
}

/* On the thread of the watch. */
static void report_file(void *arg, const char *name, int result)
{
	struct tools_trace *t = arg;
	char line[512];

	if (result < 0) {
		tools_error("cannot write the trace of a call that died: %s: %s", name,
			    explain_failure(result));
		return;
	}
	snprintf(line, sizeof(line), "the trace of a call that died was written: %s", name);
	if (t->options.say)
		t->options.say(line);
}

static void stop_watches(struct tools_trace *t)
{
	for (size_t i = 0; i < t->count; i++) {
		rxw_trace_watch_stop(t->watches[i]);
		t->watches[i] = NULL;
	}
	t->on = false;
}

/* All of them or none. */
static int begin_traces(struct tools_trace *t)
{
	const struct rxw_trace_options o = {.size = sizeof(o),
					    .memory = (size_t)t->options.memory,
					    .snap = (unsigned)t->options.snap};
	const struct rxw_trace_files files = {
		.size = sizeof(files), .dir = t->options.dir, .report = report_file, .arg = t};

	for (size_t i = 0; i < t->count; i++) {
		int rc, why;

		t->before[i] = count_traced_packets(t->endpoints[i]);
		rc = rxw_trace_watch_start(t->endpoints[i], &o, &files, &t->watches[i]);
		if (!rc)
			continue;
		why = errno;
		stop_watches(t);
		errno = why;
		return rc;
	}
	t->on = true;
	t->number++;
	return 0;
}

static void write_trace(struct tools_trace *t, size_t i, const char *when)
{
	uint64_t seen = count_traced_packets(t->endpoints[i]) - t->before[i];
	char *name = NULL, line[512];
	int rc;

	if (!seen)
		return;
	if (asprintf(&name, "%s/rxwire-%u-%s-%u.pcapng", t->options.dir, read_port(t->endpoints[i]),
		     when, t->number) < 0) {
		tools_error("--trace-dir: memory is exhausted");
		return;
	}
	rc = rxw_trace_save(t->endpoints[i], name);
	if (rc < 0)
		tools_error("--trace-dir: %s: %s", name, explain_failure(rc));
	snprintf(line, sizeof(line), "trace of %llu packets: %s", (unsigned long long)seen, name);
	if (!rc && t->options.say)
		t->options.say(line);
	free(name);
}

static void end_traces(struct tools_trace *t)
{
	time_t now = time(NULL);
	char when[32];
	struct tm tm;

	stop_watches(t);
	gmtime_r(&now, &tm);
	strftime(when, sizeof(when), "%Y%m%dT%H%M%SZ", &tm);
	for (size_t i = 0; i < t->count; i++)
		write_trace(t, i, when);
}

int tools_trace_check(const struct tools_trace_options *options, char *message, size_t size)
{
	struct stat st;

	if (!options->dir && !options->start)
		return 0;
	if (!options->dir)
		snprintf(message, size, "--trace-start without a place: give --trace-dir DIR");
	else if (stat(options->dir, &st) < 0)
		snprintf(message, size, "--trace-dir %.300s: %s", options->dir, strerror(errno));
	else if (!S_ISDIR(st.st_mode))
		snprintf(message, size, "--trace-dir %.300s: not a directory", options->dir);
	else if (st.st_mode & (S_IWGRP | S_IWOTH))
		snprintf(message, size,
			 "--trace-dir %.300s: other users can write to it; run "
			 "chmod go-w",
			 options->dir);
	else
		return 0;
	return -1;
}

int tools_trace_open(const struct tools_trace_options *options, rxw_endpoint *const *endpoints,
		     size_t count, struct tools_trace **trace, char *message, size_t size)
{
	struct tools_trace *t;
	int rc;

	*trace = NULL;
	if (!options->dir)
		return 0;
	t = calloc(1, sizeof(*t));
	if (t) {
		t->options = *options;
		t->endpoints = calloc(count + 1, sizeof(*t->endpoints));
		t->watches = calloc(count + 1, sizeof(*t->watches));
		t->before = calloc(count + 1, sizeof(*t->before));
	}
	if (!t || !t->endpoints || !t->watches || !t->before) {
		snprintf(message, size, "no memory");
		*trace = t;
		tools_trace_close(*trace);
		*trace = NULL;
		return -1;
	}
	memcpy(t->endpoints, endpoints, count * sizeof(*t->endpoints));
	t->count = count;
	/* A wrong directory is reported at once, even if tracing starts later. */
	rc = begin_traces(t);
	if (rc < 0) {
		if (rc == -RXW_ENOMEM)
			snprintf(message, size,
				 "--trace-size: %zu ports need %llu MiB each, which must fit into the "
				 "rest of --memory: raise that, or lower --trace-size",
				 count, (unsigned long long)(options->memory + (1 << 20) - 1) >> 20);
		else
			snprintf(message, size, "--trace-dir %s: %s", options->dir,
				 explain_failure(rc));
		tools_trace_close(t);
		return -1;
	}
	*trace = t;
	if (options->start)
		return 0;
	stop_watches(t);
	t->number = 0;
	return 0;
}

void tools_trace_switch(struct tools_trace *t)
{
	int rc;

	if (!t) {
		tools_error("SIGUSR2 starts and ends a packet trace, but --trace-dir is not set");
		return;
	}
	if (t->on) {
		end_traces(t);
		return;
	}
	rc = begin_traces(t);
	if (rc < 0)
		tools_error("--trace-dir %s: %s", t->options.dir, explain_failure(rc));
	else if (t->options.say)
		t->options.say("trace started; SIGUSR2 ends and writes it");
}

void tools_trace_close(struct tools_trace *t)
{
	if (!t)
		return;
	if (t->on)
		end_traces(t);
	free(t->endpoints);
	free(t->watches);
	free(t->before);
	free(t);
}
