/* SPDX-License-Identifier: BSD-2-Clause */
/* What each path to a server has carried, for --stats and --json. Any thread. */
#ifndef AFSCP_PATHUSE_H
#define AFSCP_PATHUSE_H

#include <rxafs/stream.h>

#include "afscp/run.h"

/* Add what one file says, if it had several paths. */
void path_uses_add(struct run *run, const struct rxafs_path_use *uses, unsigned count);
/* A list for the report, a reference; NULL: no file had several paths. */
json_t *path_uses_list(struct run *run);
/* A line for each. */
void path_uses_print(const json_t *list);

#endif
