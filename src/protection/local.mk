# SPDX-License-Identifier: BSD-2-Clause
# Users, groups and memberships in an SQLite database, for rxfsd and rxpt.

noinst_LTLIBRARIES += src/protection/libprotection.la
src_protection_libprotection_la_SOURCES = \
	src/protection/change.c src/protection/database.c src/protection/ids.c \
	src/protection/names.c src/protection/nested.c src/protection/private.h \
	src/protection/protection.c src/protection/protection.h \
	src/protection/request.c src/protection/request.h \
	src/protection/view.c
src_protection_libprotection_la_LIBADD = $(SQLITE_LIBS) $(PTHREAD_LIBS)
