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

/* Close *fd, which becomes -1, before a folder is entered from it, if the depth is large. */
bool climb_down(int *fd, unsigned depth, struct stat *left);
/*
 * Open that folder again, through the one that was entered, unless that was moved. 0, or -1 after a
 * message.
 */
int climb_up(int *fd, int below, const struct stat *left, const char *label);

#endif
