# SPDX-License-Identifier: BSD-2-Clause
# The store of volumes: a convenience library for the file server and for tests.

store_sources =
store_sources += src/store/data.h
store_sources += src/store/data_content.c
store_sources += src/store/data_names.c
store_sources += src/store/data_objects.c
store_sources += src/store/data_private.h
store_sources += src/store/data_run.c
store_sources += src/store/data_sync.c
store_sources += src/store/data_view.c
store_sources += src/store/layer.h
store_sources += src/store/layer_posix.c
store_sources += src/store/pages.c
store_sources += src/store/pages.h
store_sources += src/store/pages_index.c
store_sources += src/store/pages_index.h
store_sources += src/store/store.h

noinst_LTLIBRARIES += src/store/libstore.la
src_store_libstore_la_SOURCES = $(store_sources)
src_store_libstore_la_LIBADD = src/afs/librxafs.la $(PTHREAD_LIBS)
