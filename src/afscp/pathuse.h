/* SPDX-License-Identifier: BSD-2-Clause */
/* Bytes of each path to a server and changes of its state, for --stats, --json and --verbose. Any thread. */
#ifndef AFSCP_PATHUSE_H
#define AFSCP_PATHUSE_H

#include <rxafs/stream.h>

#include "afscp/run.h"

#define PATH_SAMPLE_NS ((uint64_t)50 * NS_PER_MS) /* between samples, at first */

/* One transfer of a file; zeroed at first. */
struct path_watch {
	struct rxafs_path_use seen[RXAFS_PATHS]; /* what was added to the report so far */
	unsigned count;
};

/* The transfer has done this so far. The second function is for transfers in progress over several paths: the states count, too. */
void path_uses_add(struct run *run, struct path_watch *watch, const struct rxafs_path_use *uses,
		   unsigned count);
void path_uses_see(struct run *run, struct path_watch *watch, const struct rxafs_path_use *uses,
		   unsigned count);
/* The transfer begins again: its bytes so far count as repeated. */
void path_uses_drop(struct run *run, struct path_watch *watch);
/*
 * Adds to the report "paths" and, for --json, "path_samples": rows of milliseconds since the program began, and the bytes of each path
 * until then. Nothing if there is one path, unless paths were named.
 */
void path_uses_report(struct run *run, json_t *report);
/* A line for each path of the report. */
void path_uses_print(const json_t *report);

#endif
