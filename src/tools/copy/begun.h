/* SPDX-License-Identifier: BSD-2-Clause */
/* Whether a stored file is the beginning of a local one. */
#ifndef COPY_BEGUN_H
#define COPY_BEGUN_H

#include "tools/copy/change.h"

/*
 * Compare the first and the last bytes that the volume has of the object with those of the open file
 * `fd` at the same places. False also if they cannot be read; then without a message.
 */
bool begun_matches(struct copy *copy, const struct afs_object *object, int fd, const char *label);

#endif
