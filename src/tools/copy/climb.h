/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Deep trees with few descriptors: folders are closed on the way down, and opened again on the way
 * up.
 */
#ifndef COPY_CLIMB_H
#define COPY_CLIMB_H

#include <stdbool.h>
#include <sys/stat.h>

#define CLIMB_OPEN  64	 /* levels that stay open */
#define CLIMB_DEPTH 1536 /* levels of a tree; each takes some of the stack */

/* Before a folder is entered from *fd, at a depth: close *fd, which becomes -1, if it is deep. */
bool climb_down(int *fd, unsigned depth, struct stat *left);
/*
 * After that: open the folder again, through the one that was entered, unless that was moved. 0, or
 * -1 after a message.
 */
int climb_up(int *fd, int below, const struct stat *left, const char *label);

#endif
