/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of volumes. */
#ifndef AFS_VOLNAME_H
#define AFS_VOLNAME_H

#include <stdbool.h>

#include "afs/vl.h"

/*
 * Is it the name of a volume: 1..64 bytes of letters, digits, '.', '_', '-', not all of them
 * digits, no suffix ".readonly" or ".backup"?
 */
bool afs_volume_name_valid(const char *name);

#endif
