/* SPDX-License-Identifier: BSD-2-Clause */
/* Options as mount(8) and fstab give them. */
#ifndef RXAFS_MOUNT_OPTIONS_H
#define RXAFS_MOUNT_OPTIONS_H

#include "program/options.h"

/*
 * Replaces each "-o one,two=x" by "--one --two=x" for options of the program, and by one "-o" with the others, for the
 * kernel. Those of mount(8) itself are left out. The new vector lives as long as the process. 0, or -1: no memory.
 */
int options_of_mount(const struct tools_program *program, int *argc, char ***argv);

#endif
