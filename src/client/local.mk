# SPDX-License-Identifier: BSD-2-Clause
# librxafs: AFS for programs. Each module adds its files to client_sources, in its local.mk.

client_sources =
rxafs_public_headers = \
	src/client/include/rxafs/admin.h src/client/include/rxafs/client.h src/client/include/rxafs/file.h \
	src/client/include/rxafs/object.h src/client/include/rxafs/path.h src/client/include/rxafs/queue.h \
	src/client/include/rxafs/rxafs.h src/client/include/rxafs/stream.h src/client/include/rxafs/types.h \
	src/client/include/rxafs/watch.h

include src/client/cell/local.mk
include src/client/paths/local.mk
include src/client/net/local.mk
include src/client/cache/local.mk
include src/client/disk/local.mk
include src/client/data/local.mk
include src/client/fs/local.mk

# Every object, without a symbol map: librxafs is made of it, and the tests of internals link it.
noinst_LTLIBRARIES += src/client/librxafs_core.la
src_client_librxafs_core_la_SOURCES = $(client_sources) $(rxafs_public_headers) src/client/include/rxafs/daemon.h
src_client_librxafs_core_la_CFLAGS = $(AM_CFLAGS) -ffunction-sections -fdata-sections
src_client_librxafs_core_la_LIBADD = src/client/libcells.la src/afs/libafs.la src/rx/librxwire.la $(PTHREAD_LIBS)
$(src_client_librxafs_core_la_OBJECTS): $(afs_headers)

rxafsincludedir = $(includedir)/rxafs
rxafsinclude_HEADERS = $(rxafs_public_headers)
pkgconfig_DATA += rxafs.pc

# What the numbers mean: doc/soname.md. Functions that nothing calls are left out.
lib_LTLIBRARIES += src/client/librxafs.la
src_client_librxafs_la_SOURCES =
src_client_librxafs_la_LIBADD = src/client/librxafs_core.la src/rx/librxwire.la $(PTHREAD_LIBS)
src_client_librxafs_la_LDFLAGS = $(AM_LDFLAGS) $(RXW_LIBRARY_LDFLAGS) -no-undefined -version-info 0:0:0 -Wl,--gc-sections
if VERSION_SCRIPT
src_client_librxafs_la_LDFLAGS += -Wl,--version-script=$(top_srcdir)/src/client/librxafs.map
src_client_librxafs_la_DEPENDENCIES = src/client/librxafs_core.la src/rx/librxwire.la src/client/librxafs.map
else
src_client_librxafs_la_LDFLAGS += -export-symbols-regex '^rxafs_'
endif
EXTRA_DIST += src/client/librxafs.map
