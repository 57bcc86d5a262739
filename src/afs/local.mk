# SPDX-License-Identifier: BSD-2-Clause
# librxafs: AFS encodings and the client side; linked into our programs, not installed yet.

afs_sources =

noinst_LTLIBRARIES += src/afs/librxafs.la
src_afs_librxafs_la_SOURCES = $(afs_sources)
src_afs_librxafs_la_LIBADD = src/rx/librxwire.la
