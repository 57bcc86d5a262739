/* SPDX-License-Identifier: BSD-2-Clause */
/* The volume root.afs, which has nothing but mount points of the cell: /afs/CELL and /afs/.CELL. */
#ifndef FILESERVER_ROOTAFS_H
#define FILESERVER_ROOTAFS_H

#include "afs/rxafs.h"

/* Below the numbers that cells give to volumes. */
#define FSD_ROOTAFS_ID	 0x1fffffffu
#define FSD_ROOTAFS_NAME "root.afs"

/* Constant; any thread. */
struct fsd_rootafs;

/* For a cell; `date` is when it was made, seconds. NULL without memory, or if the name is too long. */
struct fsd_rootafs *fsd_rootafs_create(const char *cell, uint32_t date);
void fsd_rootafs_destroy(struct fsd_rootafs *root);
uint32_t fsd_rootafs_date(const struct fsd_rootafs *root);

/*
 * Status and bytes of an object, both owned by root: the directory's image, or the text of a mount
 * point. The rights in the status are those of everybody. 0 or 102.
 */
int fsd_rootafs_get(const struct fsd_rootafs *root, const AFSFid *fid, const AFSFetchStatus **status,
		    const uint8_t **bytes, size_t *size);

#endif
