/* SPDX-License-Identifier: BSD-2-Clause */
/* Commands on librxafs: 0 or the exit status, after one line on stderr for each failure. */
#ifndef COPY_COMMANDS_H
#define COPY_COMMANDS_H

#include "afscp/place.h"

int run_acl(struct run *run);
int run_bench(struct run *run);
int run_cat(struct run *run);
int run_chmod(struct run *run);
int run_df(struct run *run);
int run_du(struct run *run);
int run_find(struct run *run);
int run_get(struct run *run);
int run_list(struct run *run);
int run_ln(struct run *run);
int run_lock(struct run *run);
int run_mkdir(struct run *run);
int run_mv(struct run *run);
int run_put(struct run *run);
int run_quota(struct run *run);
int run_rm(struct run *run);
int run_stat(struct run *run);
int run_sync(struct run *run);

/* Make a directory where nothing has the name. After a message unless COPY_GOOD. */
enum copy_result make_directory(struct run *run, const struct spot *spot, mode_t mode);
/* As rm does, with its options. */
enum copy_result remove_spot(struct run *run, const struct spot *spot);

/* Call one() for each place of the command line, with patterns expanded, and go on after failures. */
int run_each_place(struct run *run, bool (*one)(struct run *run, const struct place *place));
/* The same for changes: COPY_STOP ends it. */
int change_each_place(struct run *run,
		      enum copy_result (*one)(struct run *run, const struct place *place));

#endif
