/* SPDX-License-Identifier: BSD-2-Clause */
/* Common parts of reports: machine, CPU use, and the library's counters as JSON. */
#ifndef TOOLS_REPORT_H
#define TOOLS_REPORT_H

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
/* All drops: by cause, and the kernel's. */
uint64_t tools_stats_drops(const struct counters *stats);

/* Rx packets of all types, sent and received. */
uint64_t tools_stats_packets(const struct counters *stats);

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

#endif
