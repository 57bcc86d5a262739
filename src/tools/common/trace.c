/* SPDX-License-Identifier: BSD-2-Clause */
/* Traces of all endpoints of a program, started and stopped together. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include <rxwire/endpoint.h>
#include <rxwire/error.h>
#include <rxwire/trace.h>

#include "tools/common/message.h"
#include "tools/common/trace.h"

struct tools_trace {
	struct tools_trace_options options;
	rxw_endpoint **endpoints;
	uint64_t *before; /* packets that each endpoint had seen at the start */
	size_t count;
	bool on;
	unsigned number; /* of this program's traces */
};

static const char *explain_trace_error(int rc)
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

static unsigned port_of_endpoint(rxw_endpoint *endpoint)
{
	struct sockaddr_storage sa;
	socklen_t length = sizeof(sa);

	if (rxw_endpoint_address(endpoint, &sa, &length) < 0)
		return 0;
	return ntohs(sa.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)(void *)&sa)->sin6_port
					      : ((struct sockaddr_in *)(void *)&sa)->sin_port);
}

/* Start the traces of all endpoints, or of none. */
static int start_traces(struct tools_trace *t)
{
	struct rxw_trace_options o = {.size = sizeof(o),
				      .memory = (size_t)t->options.memory,
				      .snap = (unsigned)t->options.snap,
				      .dead_dir = t->options.dir};

	for (size_t i = 0; i < t->count; i++) {
		int rc, why;

		t->before[i] = count_traced_packets(t->endpoints[i]);
		rc = rxw_trace_start(t->endpoints[i], &o);
		if (!rc)
			continue;
		why = errno;
		while (i-- > 0)
			rxw_trace_stop(t->endpoints[i]);
		errno = why;
		return rc;
	}
	t->on = true;
	t->number++;
	return 0;
}

static void save_trace(struct tools_trace *t, size_t i, const char *when)
{
	uint64_t seen = count_traced_packets(t->endpoints[i]) - t->before[i];
	char *name = NULL, line[512];
	int rc;

	if (!seen)
		return;
	if (asprintf(&name, "%s/rxwire-%u-%s-%u.pcapng", t->options.dir,
		     port_of_endpoint(t->endpoints[i]), when, t->number) < 0) {
		tools_error("--trace-dir: memory is exhausted");
		return;
	}
	rc = rxw_trace_save(t->endpoints[i], name);
	if (rc < 0)
		tools_error("--trace-dir: %s: %s", name, explain_trace_error(rc));
	snprintf(line, sizeof(line), "trace of %llu packets: %s", (unsigned long long)seen, name);
	if (!rc && t->options.say)
		t->options.say(line);
	free(name);
}

static void stop_traces(struct tools_trace *t)
{
	time_t now = time(NULL);
	char when[32];
	struct tm tm;

	for (size_t i = 0; i < t->count; i++)
		rxw_trace_stop(t->endpoints[i]);
	t->on = false;
	gmtime_r(&now, &tm);
	strftime(when, sizeof(when), "%Y%m%dT%H%M%SZ", &tm);
	for (size_t i = 0; i < t->count; i++)
		save_trace(t, i, when);
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

/* NULL: no memory. */
static struct tools_trace *new_trace(const struct tools_trace_options *options, size_t count)
{
	struct tools_trace *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->options = *options;
	t->endpoints = calloc(count + 1, sizeof(*t->endpoints));
	t->before = calloc(count + 1, sizeof(*t->before));
	if (t->endpoints && t->before)
		return t;
	tools_trace_close(t);
	return NULL;
}

int tools_trace_open(const struct tools_trace_options *options, rxw_endpoint *const *endpoints,
		     size_t count, struct tools_trace **trace, char *message, size_t size)
{
	struct tools_trace *t;
	int rc;

	*trace = NULL;
	if (!options->dir)
		return 0;
	t = new_trace(options, count);
	if (!t) {
		snprintf(message, size, "no memory");
		return -1;
	}
	memcpy(t->endpoints, endpoints, count * sizeof(*t->endpoints));
	t->count = count;
	/*
	 * Traces that are to start later start here too, so that a wrong directory is reported at
	 * once.
	 */
	rc = start_traces(t);
	if (rc < 0) {
		if (rc == -RXW_ENOMEM)
			snprintf(message, size,
				 "--trace-size: %zu ports need %llu MiB each, which must fit into the "
				 "rest of --memory: raise that, or lower --trace-size",
				 count, (unsigned long long)(options->memory + (1 << 20) - 1) >> 20);
		else
			snprintf(message, size, "--trace-dir %s: %s", options->dir,
				 explain_trace_error(rc));
		tools_trace_close(t);
		return -1;
	}
	*trace = t;
	if (options->start)
		return 0;
	for (size_t i = 0; i < count; i++)
		rxw_trace_stop(endpoints[i]);
	t->on = false;
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
		stop_traces(t);
		return;
	}
	rc = start_traces(t);
	if (rc < 0)
		tools_error("--trace-dir %s: %s", t->options.dir, explain_trace_error(rc));
	else if (t->options.say)
		t->options.say("trace started; SIGUSR2 ends and writes it");
}

void tools_trace_close(struct tools_trace *t)
{
	if (!t)
		return;
	if (t->on)
		stop_traces(t);
	free(t->endpoints);
	free(t->before);
	free(t);
}
