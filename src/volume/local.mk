# SPDX-License-Identifier: BSD-2-Clause
# Volumes, an exported directory as one and the store of them: a convenience library for the file server and for tests.

volume_sources =
volume_sources += src/volume/acl.c
volume_sources += src/volume/acl.h
volume_sources += src/volume/interface.h
volume_sources += src/volume/export/export.c
volume_sources += src/volume/export/export.h
volume_sources += src/volume/export/fids.c
volume_sources += src/volume/export/fids.h
volume_sources += src/volume/export/image.c
volume_sources += src/volume/export/journal.c
volume_sources += src/volume/export/object.c
volume_sources += src/volume/export/object.h
volume_sources += src/volume/export/tree.h
volume_sources += src/volume/export/tree_posix.c
volume_sources += src/volume/export/usage.c
volume_sources += src/volume/export/watch.c
volume_sources += src/volume/store/data/data.h
volume_sources += src/volume/store/data/data_content.c
volume_sources += src/volume/store/data/data_lost.h
volume_sources += src/volume/store/data/data_objects.c
volume_sources += src/volume/store/data/data_private.h
volume_sources += src/volume/store/data/data_stream.c
volume_sources += src/volume/store/data/data_sync.c
volume_sources += src/volume/store/db/db.c
volume_sources += src/volume/store/db/db.h
volume_sources += src/volume/store/db/db_private.h
volume_sources += src/volume/store/db/record.c
volume_sources += src/volume/store/db/record.h
volume_sources += src/volume/store/db/rows.c
volume_sources += src/volume/store/dir/pages.c
volume_sources += src/volume/store/dir/pages.h
volume_sources += src/volume/store/disk/crc.c
volume_sources += src/volume/store/disk/crc.h
volume_sources += src/volume/store/disk/layer.h
volume_sources += src/volume/store/disk/layer_posix.c
volume_sources += src/volume/store/disk/report.c
volume_sources += src/volume/store/disk/report.h
volume_sources += src/volume/store/disk/vfs.c
volume_sources += src/volume/store/disk/vfs.h
volume_sources += src/volume/store/disk/wal.c
volume_sources += src/volume/store/disk/wal.h
volume_sources += src/volume/store/maint/check.c
volume_sources += src/volume/store/maint/keeper.c
volume_sources += src/volume/store/maint/maint.h
volume_sources += src/volume/store/maint/merge.c
volume_sources += src/volume/store/maint/prune.c
volume_sources += src/volume/store/op/admin.c
volume_sources += src/volume/store/op/names.c
volume_sources += src/volume/store/op/op.h
volume_sources += src/volume/store/op/read.c
volume_sources += src/volume/store/op/status.c
volume_sources += src/volume/store/op/write.c
volume_sources += src/volume/store/store.c
volume_sources += src/volume/store/store.h
volume_sources += src/volume/store/txn/cache.c
volume_sources += src/volume/store/txn/cache.h
volume_sources += src/volume/store/txn/change.c
volume_sources += src/volume/store/txn/change.h
volume_sources += src/volume/store/txn/core.h
volume_sources += src/volume/store/txn/lookup.c
volume_sources += src/volume/store/txn/lookup.h
volume_sources += src/volume/store/txn/rights.c
volume_sources += src/volume/store/txn/rights.h
volume_sources += src/volume/store/txn/space.c
volume_sources += src/volume/store/txn/space.h
volume_sources += src/volume/store/txn/txn.c
volume_sources += src/volume/store/txn/txn.h
volume_sources += src/volume/store/txn/volumes.c
volume_sources += src/volume/store/txn/volumes.h
volume_sources += src/volume/store/txn/work.c
volume_sources += src/volume/store/txn/work.h
volume_sources += src/volume/values.h

noinst_LTLIBRARIES += src/volume/libvolume.la
src_volume_libvolume_la_SOURCES = $(volume_sources)
src_volume_libvolume_la_LIBADD = src/afs/librxafs.la $(SQLITE_LIBS) \
	$(PTHREAD_LIBS)

# A target that is made by its name alone does not wait for BUILT_SOURCES.
$(src_volume_libvolume_la_OBJECTS): $(afs_headers)
