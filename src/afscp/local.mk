# SPDX-License-Identifier: BSD-2-Clause
# afscp: files of AFS volumes.

# All of afscp but main(), for its tests as well.
noinst_LTLIBRARIES += src/afscp/libafscp.la
src_afscp_libafscp_la_SOURCES = \
	src/afscp/arguments.c src/afscp/arguments.h \
	src/afscp/bench.c \
	src/afscp/change.c src/afscp/change.h \
	src/afscp/copy.h \
	src/afscp/get.c \
	src/afscp/gettree.c \
	src/afscp/list.c \
	src/afscp/local.c src/afscp/local.h \
	src/afscp/lock.c \
	src/afscp/lookup.c src/afscp/lookup.h \
	src/afscp/mix.c src/afscp/mix.h \
	src/afscp/name_commands.c \
	src/afscp/put.c src/afscp/put.h \
	src/afscp/putfile.c \
	src/afscp/rights.c \
	src/afscp/run.c src/afscp/run.h

bin_PROGRAMS += src/afscp/afscp
src_afscp_afscp_SOURCES = src/afscp/main.c
src_afscp_afscp_LDADD = src/afscp/libafscp.la src/program/libprogram.la src/afs/libafs.la \
	src/rx/librxwire.la $(JANSSON_LIBS) $(PTHREAD_LIBS)
$(src_afscp_libafscp_la_OBJECTS) $(src_afscp_afscp_OBJECTS): $(afs_headers)

dist_man_MANS += doc/man/afscp.1
