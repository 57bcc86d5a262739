# SPDX-License-Identifier: BSD-2-Clause
# librxafs: AFS for programs. Each module adds its files to client_sources, in its local.mk.

client_sources =
rxafs_public_headers =

include src/client/cell/local.mk
include src/client/net/local.mk
include src/client/cache/local.mk
include src/client/disk/local.mk
include src/client/data/local.mk
include src/client/fs/local.mk

# Every object, without a symbol map: librxafs is made of it, and the tests of internals link it.
noinst_LTLIBRARIES += src/client/librxafs_core.la
src_client_librxafs_core_la_SOURCES = $(client_sources) $(rxafs_public_headers)
src_client_librxafs_core_la_LIBADD = src/afs/libafs.la src/rx/librxwire.la $(PTHREAD_LIBS)
$(src_client_librxafs_core_la_OBJECTS): $(afs_headers)
