/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Metrics of a running program for Prometheus: in a file that is replaced periodically, and on a
 * Unix socket, which also lists the calls in progress. These show addresses, so they are not in the
 * file, which everyone may read.
 */
#ifndef TOOLS_METRICS_H
#define TOOLS_METRICS_H

#include <stddef.h>
#include <stdint.h>

#include <rxwire/types.h>

struct tools_metrics;

struct tools_metrics_options {
	const char *file;     /* for node_exporter's textfile collector; NULL: none */
	const char *socket;   /* Unix socket that answers GET /metrics and /calls; NULL: none */
	uint64_t interval_ms; /* between writes of the file; 0 = 15 s */
	/*
	 * NULL, or a function that returns metrics of the program itself: a text in the format of
	 * Prometheus, which is freed here, or NULL without memory. Called on another thread until
	 * tools_metrics_stop() has returned.
	 */
	char *(*more)(void *arg);
	void *arg;
};

/*
 * Rows of a table of options; AT(OPTIONS.member) is the offset of a member of these in the target.
 */
#define TOOLS_METRICS_OPTIONS(AT, OPTIONS)                                                      \
	TOOLS_OPTION_AT("metrics-file", 0, TOOLS_STRING, AT(OPTIONS.file), "FILE",              \
			"write metrics for Prometheus to FILE periodically"),                   \
		TOOLS_OPTION_AT("metrics-interval", 0, TOOLS_DURATION, AT(OPTIONS.interval_ms), \
				"SECONDS", "interval of --metrics-file (15)", .min = 100,       \
				.max = 86400000),                                               \
		TOOLS_OPTION_AT("metrics-socket", 0, TOOLS_STRING, AT(OPTIONS.socket), "PATH",  \
				"answer GET /metrics and GET /calls on this Unix socket")

/*
 * Start a thread that provides the metrics of these endpoints and of this process; the list is
 * copied. With neither file nor socket *metrics is NULL. Returns 0, or -1 with a line in `message`.
 */
int tools_metrics_start(const struct tools_metrics_options *options, rxw_endpoint *const *endpoints,
			size_t count, struct tools_metrics **metrics, char *message, size_t size);

/*
 * Write the file once more, remove the socket and stop the thread. Before the endpoints are
 * destroyed. NULL is allowed.
 */
void tools_metrics_stop(struct tools_metrics *metrics);

#endif
