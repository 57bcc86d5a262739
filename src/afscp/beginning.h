/* SPDX-License-Identifier: BSD-2-Clause */
/* Whether an incomplete file, stored or local, is the beginning of the other one. */
#ifndef COPY_BEGINNING_H
#define COPY_BEGINNING_H

#include "afscp/change.h"

/*
 * Compare the first `length` bytes of the object with those of the open file `fd`: up to 64 KiB at
 * their beginning, and at their end. False also if they cannot be read; then without a message.
 */
bool beginning_matches(struct copy *copy, const struct afs_object *object, uint64_t length, int fd,
		   const char *label);

#endif
