/* SPDX-License-Identifier: BSD-2-Clause */
/* Common parts of reports: machine, CPU use, the library's counters as JSON, progress. */
#ifndef TOOLS_REPORT_H
#define TOOLS_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>
#include <rxwire/config.h>
#include <rxwire/endpoint.h>

#include "common/counters.h"
#include "program/histogram.h"

/* Resources used by this process since its start. */
struct tools_usage {
	uint64_t wall_ns;	   /* monotonic_ns() */
	double user_s, sys_s;	   /* CPU seconds */
	uint64_t context_switches; /* voluntary and not */
	uint64_t peak_rss;	   /* bytes */
};
void tools_usage_now(struct tools_usage *usage);
/* The difference `to` - `from`, with the peak_rss of `to`. */
struct tools_usage tools_usage_between(const struct tools_usage *from,
				       const struct tools_usage *to);

/* The difference `to` - `from` of counters, and the gauges of `to`. */
struct counters tools_stats_between(const struct counters *from, const struct counters *to);
/* Add the counters of `from` to `into` (several endpoints as one). */
void tools_stats_add(struct counters *into, const struct counters *from);

/* New references, NULL without memory. */

/* {"kernel", "machine", "cpu", "cpus", "mitigations": {...}}: what results depend on. */
json_t *tools_facts_json(void);
/* Every tunable by name, as text in the syntax of the command line. */
json_t *tools_config_json(const struct rxw_config *config);
/* The effective settings of an endpoint. */
json_t *tools_effective_json(rxw_endpoint *endpoint);
/*
 * Every counter by its name; "lock_contended_per_Mpackets" has the contended locks per million
 * packets of both directions, if there were packets.
 */
json_t *tools_stats_json(const struct counters *stats);

/*
 * Put the keys that all reports share into `object`: bytes seconds MBps calls calls_per_s p50_us
 * p99_us p999_us max_us mean_us cpu_user_s cpu_sys_s cpu_s_per_GB cpu_us_per_call packets_sent
 * packets_received retransmitted acks_sent acks_received syscalls_send syscalls_recv
 * context_switches drops peak_rss (bytes). `latency` may be NULL. Returns 0 or -1 (no memory).
 */
int tools_report_fill(json_t *object, uint64_t bytes, uint64_t calls,
		      const struct tools_usage *usage, const struct counters *stats,
		      const struct tools_histogram *latency);

/* Print the report as text on stdout, after `title`. */
void tools_report_print(const char *title, json_t *object);

/* A member of an object: a number, a whole number, a text. 0 or "" if there is none. */
double tools_number_of(const json_t *object, const char *name);
unsigned long long tools_count_of(const json_t *object, const char *name);
const char *tools_text_of(const json_t *object, const char *name);

/*
 * Text that may not be UTF-8, for example a name of a file: a byte that is not becomes the
 * character of the same number, as in the audit log of rxfsd. NULL without memory.
 */
json_t *tools_json_text(const char *bytes);
/*
 * Print a JSON object and a newline to stdout, and flush it. Takes the reference. Returns 0 or -1;
 * NULL stands for lack of memory, which is reported.
 */
int tools_json_print(json_t *object);

/* ---- the progress line of a copy ---- */

/* One line on the terminal, for a file or for all files of a run. */
struct progress {
	bool on, many; /* many: show the numbers of files */
	uint64_t start_ns, shown_ns;
	uint64_t shown_bytes;
	double rate; /* bytes per second, smoothed */
};

void progress_start(struct progress *p, bool on, bool many);
/*
 * Show it, up to five times a second. total, all_files: 0 = unknown. files: completed files, shown if
 * `many`.
 */
void progress_update(struct progress *p, const char *label, uint64_t done, uint64_t total,
		     uint64_t files, uint64_t all_files);
/* End the line; complete: show the total and the mean rate. */
void progress_end(struct progress *p, const char *label, uint64_t done, bool complete,
		  uint64_t files);
/* The line itself; for progress_update() and its test. Returns text. */
char *progress_line(char *text, size_t size, const char *label, uint64_t done, uint64_t total,
		    double rate);
/* "3 of 7 files  ", which the line begins with if there are many. Returns text. */
char *progress_count(char *text, size_t size, uint64_t files, uint64_t all);

#endif
