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
/* And short enough for clones, whose names are longer by ".readonly": at most 55. */
#define AFS_VOLUME_NAME_LONGEST (VL_MAXNAMELEN - 1 - 9)
bool afs_volume_name_has_room(const char *name);

#endif
