/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Traces of endpoints as pcapng files, and their statistics as text. These functions use the public
 * functions of librxwire, and are in a static library, librxwire-observe (`pkg-config rxwire-observe`). See rxw_trace(3) and rxw_metrics(3).
 */
#ifndef RXWIRE_OBSERVE_H
#define RXWIRE_OBSERVE_H

#include <rxwire/trace.h>
#include <rxwire/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Write the records of a trace as one section of a pcapng file; the trace continues. A file may
 * have several sections, for several endpoints. Errors: those of rxw_trace_read(), -RXW_ESYS
 * (errno; part of the section may have been written). Any thread.
 */
RXW_MUST_USE int rxw_trace_write(rxw_endpoint *endpoint, int fd);

/*
 * The same to a file with mode 0600, which appears when it is complete and replaces an existing
 * one. After a failure no file remains.
 */
RXW_MUST_USE int rxw_trace_save(rxw_endpoint *endpoint, const char *path);

/* Files for calls that fail. Zero the structure, set `size`, then fill in the other members. */
struct rxw_trace_files {
	size_t size; /* sizeof(struct rxw_trace_files) */
	/* It must belong to this user or root, and must not be writable by anyone else. */
	const char *dir;
	unsigned most;	   /* number of files, 1 to 1000; the oldest is replaced; 0 = 16 */
	unsigned pause_ms; /* minimum time between two files; 0 = 10,000 */
	/*
	 * Called by the thread that writes them, after each file: `result` is 0, or the error; may be
	 * NULL.
	 */
	void (*report)(void *arg, const char *name, int result);
	void *arg;
};

typedef struct rxw_trace_watch rxw_trace_watch;

/*
 * Start a trace, and a thread that writes its records to a file a tenth of a second after a call has
 * failed. `options` may be NULL; otherwise its member `failed` must be NULL. Errors: those of
 * rxw_trace_start(), -RXW_EINVAL, -RXW_ESYS (errno; EPERM: others may write to the directory). Any
 * thread.
 */
RXW_MUST_USE int rxw_trace_watch_start(rxw_endpoint *endpoint,
				       const struct rxw_trace_options *options,
				       const struct rxw_trace_files *files,
				       rxw_trace_watch **watch);

/*
 * End the trace, write the files of calls that have failed until now, and free the watch. Before
 * the endpoint is destroyed. NULL is ignored. Any thread, but not `report`.
 */
void rxw_trace_watch_stop(rxw_trace_watch *watch);

/*
 * Format the statistics of `count` endpoints, the durations of their calls and the memory of
 * their engines as text for Prometheus (version 0.0.4). The address of the endpoint is a label.
 * Times are in seconds, sizes in bytes. Names and labels stay the same between releases.
 *
 * The caller frees *text with free(). Returns its length, -RXW_EINVAL (an argument is NULL;
 * `count` may be 0) or -RXW_ENOMEM. Any thread, while the endpoints exist. Traverses the
 * connection tables: call it every few seconds at most.
 */
RXW_MUST_USE int rxw_metrics_text(rxw_endpoint *const *endpoints, size_t count, char **text);

/*
 * List the calls in progress of `count` endpoints, with their windows, rates, RTTs, losses and
 * controllers, as JSON; see rxw_metrics(3). If there are more than `most` (or 10,000), those with the
 * highest mean rates, and the number of the others as "left_out". The text has addresses of
 * peers and ids of connections: show it only to those who may see them.
 *
 * The caller frees *text with free(). Returns its length, -RXW_EINVAL (an argument is NULL;
 * `count` may be 0) or -RXW_ENOMEM. Any thread, while the endpoints exist. Takes the locks of
 * connection tables in steps, and of each connection: call it about once a second at most.
 */
RXW_MUST_USE int rxw_metrics_calls(rxw_endpoint *const *endpoints, size_t count, size_t most,
				   char **text);

#ifdef __cplusplus
}
#endif
#endif
