# SPDX-License-Identifier: BSD-2-Clause
# rxfsd. Its code is a convenience library, so that the tests can link it without main.

fileserver_sources =

noinst_LTLIBRARIES += src/fileserver/libfileserver.la
src_fileserver_libfileserver_la_SOURCES = $(fileserver_sources)
src_fileserver_libfileserver_la_CFLAGS = $(AM_CFLAGS) $(LMDB_CFLAGS)
src_fileserver_libfileserver_la_LIBADD = src/afs/librxafs.la src/rx/librxwire.la $(LMDB_LIBS)

# sbin_PROGRAMS += src/fileserver/rxfsd
# src_fileserver_rxfsd_SOURCES = src/fileserver/main.c
# src_fileserver_rxfsd_LDADD = src/fileserver/libfileserver.la src/tools/libtools.la \
#	src/afs/librxafs.la src/rx/librxwire.la $(LMDB_LIBS) $(PTHREAD_LIBS)
