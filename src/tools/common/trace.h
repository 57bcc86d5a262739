/* SPDX-License-Identifier: BSD-2-Clause */
/* Packet traces of a running program: begun and ended by SIGUSR2, or for as long as it runs. */
#ifndef TOOLS_TRACE_H
#define TOOLS_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rxwire/types.h>

struct tools_trace;

struct tools_trace_options {
	const char *dir;	       /* where files go; NULL: no traces */
	uint64_t memory, snap;	       /* of each endpoint; 0 = what the library takes */
	bool start;		       /* from the beginning on */
	void (*say)(const char *line); /* which files were written; NULL: nobody */
};

/*
 * Rows of a table of options; AT(OPTIONS.member) is the offset of a member of these in the target.
 */
#define TOOLS_TRACE_OPTIONS(AT, OPTIONS)                                                        \
	{.name = "trace-dir",                                                                   \
	 .kind = TOOLS_STRING,                                                                  \
	 .offset = AT(OPTIONS.dir),                                                             \
	 .argument = "DIR",                                                                     \
	 .help = "directory for packet traces (pcapng); must not be "                           \
	         "writable by others"},                                                         \
	{.name = "trace-size",                                                                  \
	 .kind = TOOLS_SIZE,                                                                    \
	 .offset = AT(OPTIONS.memory),                                                          \
	 .argument = "BYTES",                                                                   \
	 .min = 64 << 10,                                                                       \
	 .max = 1 << 30,                                                                        \
	 .help = "trace memory for each port (4M)"},                                            \
	{.name = "trace-snap",                                                                  \
	 .kind = TOOLS_UINT,                                                                    \
	 .offset = AT(OPTIONS.snap),                                                            \
	 .argument = "BYTES",                                                                   \
	 .min = 28,                                                                             \
	 .max = 65535,                                                                          \
	 .help = "bytes to keep of each datagram (352)"}

#define TOOLS_TRACE_OPTIONS_OF_SERVERS(AT, OPTIONS)                                             \
	TOOLS_TRACE_OPTIONS(AT, OPTIONS),                                                       \
	{.name = "trace-start",                                                                 \
	 .kind = TOOLS_FLAG,                                                                    \
	 .offset = AT(OPTIONS.start),                                                           \
	 .help = "with --trace-dir: start at once, not with the first SIGUSR2"}

/*
 * Look whether the directory is there and closed to others, as traces need; it may be another
 * user's. Returns 0, or -1 with a line in `message`.
 */
int tools_trace_check(const struct tools_trace_options *options, char *message, size_t size);

/*
 * Look at the directory and, if that is wanted, begin; the list is copied. Without a directory
 * *trace is NULL. Returns 0, or -1 with a line in `message`.
 */
int tools_trace_open(const struct tools_trace_options *options, rxw_endpoint *const *endpoints,
		     size_t count, struct tools_trace **trace, char *message, size_t size);

/*
 * Begin if it is off; else write what there is, a file for each endpoint that saw any packet, and
 * end it. Complains if there is no directory (trace NULL). The thread that opened it.
 */
void tools_trace_switch(struct tools_trace *trace);

/* Write what there is if it is on; before the endpoints are destroyed. NULL is allowed. */
void tools_trace_close(struct tools_trace *trace);

#endif
