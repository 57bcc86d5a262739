/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Long reads of ranges, which the paths to a server share (several-paths 8): each takes the path that is expected to bring it first, and
 * leaves one that falls silent. For reads with a thread each; a copy of a whole file has a scheduler of its own (pathfetch.h).
 */
#ifndef CLIENT_NET_PATHLOAD_H
#define CLIENT_NET_PATHLOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "client/paths/spread.h"

#define CL_LONG_READ \
	1048576u	     /* bytes; a shorter one takes the path in use, unless that is silent */
#define CL_BRIEF_READ 65536u /* bytes; one that is still shorter is not looked after */

struct cl_path;
struct cl_sent;
struct cl_server;

/* A long read that had a choice; `path` NULL: none. */
struct cl_long_read {
	struct cl_path *path; /* with a reference */
	bool brief;	      /* it is no load: shorter than CL_LONG_READ */
	struct cl_path *named; /* that of the call if `path` is NULL, until it has begun: cl_path_take_named() */
	/* covered by the server's lock: bytes that have not come; packets that have; when the last bytes or packets came */
	uint64_t missing, packets, heard;
};

/* Of one path. Covered by the server's lock. */
struct cl_path_load {
	unsigned flying, brief; /* long reads, shorter ones */
	uint64_t missing;	/* bytes that they have still to bring */
	uint64_t heard; /* when packets or an answer came last, or when the first of them began */
	uint64_t came;	/* when bytes did */
	uint64_t gap;	/* between arrivals, smoothed */
	uint64_t worked, since, counted; /* the present measurement of the rate */
	unsigned measured;		 /* how often, since it lives */
	uint64_t asked, next_probe;	 /* the last probe, the next one */
	unsigned probing, probes_failed; /* in progress; in a row */
	uint64_t
		wanted; /* when somebody last wanted to know whether it lives; 0: nobody, or it has answered since */
	uint64_t answered; /* when the last probe began that was answered; 0 = none */
	uint32_t started;  /* when the server behind it did, as that says; 0 = unknown */
};

/*
 * The path for a read of `bytes`, unless there is no choice. A long one counts as load until cl_load_end(); a shorter one takes the path of
 * ordinary calls, unless that does not live. True: there was no load before, so the
 * prober is to be woken. No lock may be held.
 */
bool cl_load_choose(struct cl_server *server, uint64_t bytes, struct cl_long_read *read);
/* Bytes of a call have come. */
void cl_load_moved(struct cl_sent *sent, uint64_t bytes);
/* It begins anew at the first byte: all `bytes` are still to come. */
void cl_load_restart(struct cl_sent *sent, uint64_t bytes);
/* The call is over. Gives the reference back. */
void cl_load_end(struct cl_long_read *read);
/*
 * Paths that share long reads of a server now; at least 1. *share: bytes of a read such that the best of them brings it soon, but the round
 * trip before it takes a small part of that time; 0: there is no choice, and none is expected.
 */
unsigned cl_load_paths(struct cl_server *server, uint64_t *share);

/* ---- for the prober, which alone asks paths whether they live ---- */

/*
 * Look for silent paths, whose reads end (`lost` of struct cl_sent), and list those that are to be probed now, each with a reference and
 * counted as being probed. Returns their number. *busy: look again in CL_LOAD_MS. A probe does not end the one before: the answer may need
 * longer than the pause.
 */
#define CL_LOAD_MS 20
unsigned cl_load_look(struct cl_server *server, struct cl_path *list[CL_PATHS], bool *busy);
/*
 * The end of such a probe, which began at `asked`. `rtt_ns` 0: it was not answered. Gives the reference back. A path that leads to a server
 * which has started at another time than that at the address in use carries no reads.
 */
void cl_load_probed(struct cl_path *path, uint64_t asked, uint64_t rtt_ns, uint32_t started);

/* ---- for transfers with a scheduler of their own ---- */

/* Probes for the next second, or until one is answered. Cheap. */
void cl_load_want(struct cl_path *path);
/* When the last probe began that was answered; 0 = none. */
uint64_t cl_load_answered(struct cl_path *path);
/* Whether the server behind the path has started at another time than that at the address in use. */
bool cl_load_is_strange(struct cl_path *path);

#endif
