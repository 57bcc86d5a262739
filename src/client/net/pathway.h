/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The paths of one transfer of a large file, and its calls on them: which paths there are, silence, questions to those that carry nothing,
 * and reports. The prober asks whether they live (pathload.h). One thread; all calls report to one queue.
 */
#ifndef CLIENT_NET_PATHWAY_H
#define CLIENT_NET_PATHWAY_H

#include <rxwire/queue.h>

#include "client/net/calls.h"
#include "client/net/netpath.h"

#define CL_CALLS_OF_PATH 4u

struct cl_pathway {
	struct cl_path *path; /* a reference */
	struct cl_lane *lane; /* likewise, once it is needed */
	rxw_call *question; /* whether the path carries the transfer, in progress; or NULL */
	bool passed;	    /* it does */
	uint64_t asked, out; /* when the question began; since when the path is out */
	bool was_live, gone;
	unsigned deaths;
	/* Calls that it had when it died: the server hears that they have ended once it is back. */
	rxw_call *lost[CL_CALLS_OF_PATH];
	unsigned lost_count;
};

/* A kind of transfer. `arg` is that of struct cl_pathways. */
struct cl_pathway_ops {
	unsigned events;	  /* of its calls */
	unsigned question, transfer; /* numbers of the functions */
	/* Sends the question: 0, or another code. Whether the answer, which has come, is that of the transfer's server. */
	rxw_code (*ask)(void *arg, rxw_call *call);
	bool (*confirm)(void *arg, rxw_call *call);
	/* Begin the ranges that the scheduler asks for. */
	void (*begin)(void *arg, uint64_t now);
	/* A call is to end since its path is dead; one that reports something (NULL: all are looked at after a wait). */
	void (*lose)(void *arg, unsigned range);
	void (*use)(void *arg, unsigned range, uint64_t now);
};

struct cl_pathways {
	const struct cl_pathway_ops *ops;
	void *arg;
	struct cl_server *server;
	struct cl_credential *credential; /* a reference; NULL: anonymous */
	rxw_queue *queue;
	struct cl_spread spread;
	struct cl_pathway list[CL_PATHS];
	unsigned count, most;	     /* paths; most of them, 0: CL_PATHS */
	rxw_call *calls[CL_RANGES];  /* by range of the scheduler; NULL: none */
	uint64_t packets[CL_RANGES]; /* that have come by these calls */
	uint64_t seen;		     /* of cl_paths_changed() */
	uint64_t began, moved;	     /* when it began, and when the last bytes moved */
	cl_see_paths_fn *see;	     /* NULL: nobody watches */
	void *see_arg;
	uint64_t told; /* when it was called last, and with what: */
	enum cl_path_state told_states[CL_PATHS];
	uint64_t turned,
		waited; /* the last turn, and how much of it was a wait that ended in time */
};

/* The paths that there are now; those that are gone carry nothing any more. */
void cl_ways_list(struct cl_pathways *ways);
/* The first path carries the transfer at once: calls have just used it. 0 or -ENOMEM. */
int cl_ways_start(struct cl_pathways *ways);
/* A call on a path, of a range. NULL: not now. */
rxw_call *cl_ways_begin(struct cl_pathways *ways, unsigned path, unsigned range);
/* What the transport knows. One call fills a path if the server has large windows. */
struct rxw_call_statistics cl_ways_statistics(struct cl_pathways *ways, rxw_call *call);
/* The call of a dead path stays for later. */
void cl_ways_lose(struct cl_pathways *ways, unsigned range);
bool cl_ways_flying(const struct cl_pathways *ways);
/* Whether a path is left. */
bool cl_ways_live(const struct cl_pathways *ways);
/* Questions, new ranges, silence. */
void cl_ways_prepare(struct cl_pathways *ways);
/* Waits until something is to be done, and does it. 0; -EINTR; -ETIMEDOUT: the time of the caller is over; -ESTALE: nothing moves. */
int cl_ways_wait(struct cl_pathways *ways, const struct cl_caller *caller);
/* What each path has done so far; and to the watcher, if it is time. */
void cl_ways_report(const struct cl_pathways *ways, struct cl_path_report reports[CL_PATHS]);
void cl_ways_tell(struct cl_pathways *ways);
/*
 * The end, after that of the calls: what each path has done, and the references go. Calls go over a path that lives from now on. Without
 * cl_ways_start() there is nothing to report.
 */
void cl_ways_end(struct cl_pathways *ways, struct cl_path_report *reports, unsigned *count);

#endif
