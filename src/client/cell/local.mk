# SPDX-License-Identifier: BSD-2-Clause
# A library of its own: rxfsd reads the same files.
noinst_LTLIBRARIES += src/client/libcells.la
src_client_libcells_la_CFLAGS = $(AM_CFLAGS) -ffunction-sections -fdata-sections
src_client_libcells_la_SOURCES = \
	src/client/cell/cell.h \
	src/client/cell/cellfile.c \
	src/client/cell/cells.c \
	src/client/cell/cells.h \
	src/client/cell/dns.c
