/* SPDX-License-Identifier: BSD-2-Clause */
/* Removal of objects of a volume. */
#ifndef COPY_REMOVE_H
#define COPY_REMOVE_H

#include "afscp/change.h"

/* Remove a file, a link or an empty directory; with --force it may be gone. After a message. */
enum copy_result remove_one(struct copy *copy, const AFSFid *dir, const char *name, bool directory,
			    const char *label);
/* Remove a directory with everything in it. COPY_FAILED: something is left. */
enum copy_result remove_tree(struct copy *copy, const AFSFid *dir, const char *name,
			     const AFSFid *fid, const char *label);

#endif
