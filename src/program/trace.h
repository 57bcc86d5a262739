/* SPDX-License-Identifier: BSD-2-Clause */
/* Packet traces of a running program: started and stopped by SIGUSR2, or for its whole run. */
#ifndef TOOLS_TRACE_H
#define TOOLS_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rxwire/types.h>

struct tools_trace;

struct tools_trace_options {
	const char *dir;	       /* directory of the files; NULL: no traces */
	uint64_t memory, snap;	       /* of each endpoint; 0 = default of the library */
	bool start;		       /* start at once */
	void (*say)(const char *line); /* called for each file that was written; may be NULL */
};

/*
 * Rows of a table of options; AT(OPTIONS.member) is the offset of a member of these in the target.
 */
#define TOOLS_TRACE_OPTIONS(AT, OPTIONS)                                                         \
	TOOLS_OPTION_AT("trace-dir", 0, TOOLS_STRING, AT(OPTIONS.dir), "DIR",                    \
			"directory for packet traces (pcapng); must not be writable by others"), \
		TOOLS_OPTION_AT("trace-size", 0, TOOLS_SIZE, AT(OPTIONS.memory), "BYTES",        \
				"trace memory for each port (4M)", .min = 64 << 10,              \
				.max = 1 << 30),                                                 \
		TOOLS_OPTION_AT("trace-snap", 0, TOOLS_UINT, AT(OPTIONS.snap), "BYTES",          \
				"bytes to keep of each datagram (352)", .min = 28, .max = 65535)

#define TOOLS_TRACE_OPTIONS_OF_SERVERS(AT, OPTIONS)                                    \
	TOOLS_TRACE_OPTIONS(AT, OPTIONS),                                              \
		TOOLS_OPTION_AT("trace-start", 0, TOOLS_FLAG, AT(OPTIONS.start), NULL, \
				"with --trace-dir: start at once, not with the first SIGUSR2")

/*
 * Check that the directory exists and that no other user may write to it; it may belong to another
 * user. Without one, no trace may start. Returns 0, or -1 with a line in `message`.
 */
int tools_trace_check(const struct tools_trace_options *options, char *message, size_t size);

/*
 * Check the directory, and start if options->start is set; the list is copied. Without a directory
 * *trace is NULL. Returns 0, or -1 with a line in `message`.
 */
int tools_trace_open(const struct tools_trace_options *options, rxw_endpoint *const *endpoints,
		     size_t count, struct tools_trace **trace, char *message, size_t size);

/*
 * Start tracing; or, if it is on, stop it and write a file for each endpoint that saw a packet.
 * Prints an error if there is no directory (trace NULL). Only on the thread that opened the trace.
 */
void tools_trace_switch(struct tools_trace *trace);

/* Stop tracing and write the files, before the endpoints are destroyed. NULL is allowed. */
void tools_trace_close(struct tools_trace *trace);

#endif
