# SPDX-License-Identifier: BSD-2-Clause
# The store of volumes: a convenience library for the file server and for tests.

store_sources =
store_sources += src/store/layer.h
store_sources += src/store/layer_posix.c
store_sources += src/store/pages.c
store_sources += src/store/pages.h
store_sources += src/store/store.h

store_sources += src/store/acl.c
store_sources += src/store/admin.c
store_sources += src/store/admin.h
store_sources += src/store/adminop.h
store_sources += src/store/bytes.h
store_sources += src/store/cache.c
store_sources += src/store/cache.h
store_sources += src/store/change.c
store_sources += src/store/change.h
store_sources += src/store/clone.c
store_sources += src/store/commit.c
store_sources += src/store/compact.c
store_sources += src/store/core.h
store_sources += src/store/crc.c
store_sources += src/store/crc.h
store_sources += src/store/data.h
store_sources += src/store/db.c
store_sources += src/store/db.h
store_sources += src/store/db_private.h
store_sources += src/store/entry.c
store_sources += src/store/entry.h
store_sources += src/store/format.c
store_sources += src/store/format.h
store_sources += src/store/keeper.c
store_sources += src/store/keeper.h
store_sources += src/store/lookup.c
store_sources += src/store/lookup.h
store_sources += src/store/mark.c
store_sources += src/store/mark.h
store_sources += src/store/names.c
store_sources += src/store/names.h
store_sources += src/store/prune.c
store_sources += src/store/prune.h
store_sources += src/store/read.c
store_sources += src/store/read.h
store_sources += src/store/readers.c
store_sources += src/store/readers.h
store_sources += src/store/real.c
store_sources += src/store/real.h
store_sources += src/store/rename.c
store_sources += src/store/report.c
store_sources += src/store/report.h
store_sources += src/store/rights.c
store_sources += src/store/rights.h
store_sources += src/store/rows.c
store_sources += src/store/space.c
store_sources += src/store/space.h
store_sources += src/store/status.c
store_sources += src/store/status.h
store_sources += src/store/txn.c
store_sources += src/store/txn.h
store_sources += src/store/version.c
store_sources += src/store/version.h
store_sources += src/store/vfs.c
store_sources += src/store/vfs.h
store_sources += src/store/volrec.c
store_sources += src/store/volrec.h
store_sources += src/store/volumes.c
store_sources += src/store/volumes.h
store_sources += src/store/work.c
store_sources += src/store/work.h
store_sources += src/store/workwrite.c
store_sources += src/store/workwrite.h
store_sources += src/store/write.c
store_sources += src/store/write.h
store_sources += src/store/writer.h
store_sources += src/store/data_content.c
store_sources += src/store/data_names.c
store_sources += src/store/data_objects.c
store_sources += src/store/data_run.c
store_sources += src/store/data_sync.c
store_sources += src/store/data_view.c
store_sources += src/store/data_private.h

noinst_LTLIBRARIES += src/store/libstore.la
src_store_libstore_la_SOURCES = $(store_sources)
src_store_libstore_la_LIBADD = src/afs/librxafs.la $(SQLITE3_LIBS) \
	$(PTHREAD_LIBS)

# A target that is made by its name alone does not wait for BUILT_SOURCES.
$(src_store_libstore_la_OBJECTS): $(afs_headers)
