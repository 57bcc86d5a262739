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
	const char *dir;       /* where files go; NULL: no traces */
	uint64_t memory, snap; /* of each endpoint; 0 = what the library takes */
	bool start;	       /* from the beginning on */
	void (*say)(const char *line); /* which files were written; NULL: nobody */
};

#define TOOLS_TRACE_DIR_HELP  "write packet traces (pcapng) into this directory, which nobody else may write to"
#define TOOLS_TRACE_SIZE_HELP "memory for the trace of each port (4M)"
#define TOOLS_TRACE_SNAP_HELP "bytes that are kept of each datagram (352)"
#define TOOLS_TRACE_SIZE_MIN  (64 << 10)
#define TOOLS_TRACE_SIZE_MAX  (1 << 30)
#define TOOLS_TRACE_SNAP_MIN  28
#define TOOLS_TRACE_SNAP_MAX  65535

/*
 * Look at the directory and, if that is wanted, begin; the list is copied. Without a directory *trace
 * is NULL. Returns 0, or -1 with a line in `message`.
 */
int tools_trace_open(const struct tools_trace_options *options, rxw_endpoint *const *endpoints,
		     size_t count, struct tools_trace **trace, char *message, size_t size);

/*
 * Begin if it is off; else write what there is, a file for each endpoint that saw any packet, and end
 * it. Complains if there is no directory (trace NULL). The thread that opened it.
 */
void tools_trace_switch(struct tools_trace *trace);

/* Write what there is if it is on; before the endpoints are destroyed. NULL is allowed. */
void tools_trace_close(struct tools_trace *trace);

#endif
