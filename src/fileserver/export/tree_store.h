/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside the exported directory as a store. */
#ifndef FILESERVER_EXPORT_TREE_STORE_H
#define FILESERVER_EXPORT_TREE_STORE_H

#include "fileserver/export/export.h"

/* Constant. */
struct export
{
	struct store base;
	struct fsd_export_options options;
};

/* The caller; never NULL. */
const struct fsd_viewer *fsd_export_viewer(const struct store_caller *caller);
/*
 * Path and record of an object that the viewer may see, without access to the tree. It is watched
 * from now on if there is a promise on it. 0 or a result.
 */
int fsd_export_find(const struct export *export, const struct fsd_viewer *viewer,
		    const struct store_fid *fid, struct fsd_object *object);
/* All of the object, if the viewer may see it. 0 or a result. */
int fsd_export_get(const struct export *export, const struct fsd_viewer *viewer,
		   const struct store_fid *fid, struct fsd_object *object);
void fsd_export_fill(const struct export *export, const struct fsd_viewer *viewer,
		     const struct fsd_object *object, struct store_status *status);

/* reading.c: as in struct store_ops */
int fsd_export_read_begin(struct store *store, const struct store_caller *caller,
			  const struct store_fid *fid, struct store_reader **reader,
			  struct store_status *status);
ssize_t fsd_export_read(struct store_reader *reader, const struct iovec *iov, int count,
			uint64_t offset, unsigned flags);
void fsd_export_read_ahead(struct store_reader *reader, uint64_t offset, uint64_t length);
int fsd_export_read_end(struct store_reader *reader);

#endif
