/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of volumes. */
#ifndef AFS_VOLNAME_H
#define AFS_VOLNAME_H

#include <stdbool.h>

#include "afs/vl.h"

/*
 * Whether this is a valid name of a volume: 1..64 letters, digits, '.', '_' and '-', not only
 * digits, without the suffix ".readonly" or ".backup".
 */
bool afs_volume_name_valid(const char *name);

#endif
