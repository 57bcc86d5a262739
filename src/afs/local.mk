# SPDX-License-Identifier: BSD-2-Clause
# librxafs: AFS encodings and the client side; linked into our programs, not installed yet.

afs_sources = \
	src/afs/dir.c src/afs/dir.h \
	src/afs/numbers.h \
	src/afs/opcodes.h \
	src/afs/status.c src/afs/status.h \
	src/afs/types.c src/afs/types.h \
	src/afs/vlentry.c src/afs/vlentry.h

# The client side.
afs_sources += \
	src/afs/client.c src/afs/client.h src/afs/client_internal.h \
	src/afs/client_callback.c src/afs/client_fetch.c src/afs/client_path.c

noinst_LTLIBRARIES += src/afs/librxafs.la
src_afs_librxafs_la_SOURCES = $(afs_sources)
src_afs_librxafs_la_LIBADD = src/rx/librxwire.la
