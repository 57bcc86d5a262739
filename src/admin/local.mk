# SPDX-License-Identifier: BSD-2-Clause
# Administration of a store of volumes, for rxvol and rxfsd.

noinst_LTLIBRARIES += src/admin/libadmin.la
src_admin_libadmin_la_SOURCES = \
	src/admin/admin.h src/admin/attributes.c src/admin/attributes.h src/admin/compare.c \
	src/admin/directory.c src/admin/dumps.c src/admin/execute.c src/admin/export.c src/admin/import.c \
	src/admin/import.h src/admin/locate.h src/admin/mounts.c src/admin/names.c src/admin/private.h \
	src/admin/request.c src/admin/source.c src/admin/update.c src/admin/volumes.c src/admin/walk.c \
	src/admin/which.c
src_admin_libadmin_la_LIBADD = src/volume/libvolume.la src/protection/libprotection.la \
	src/afs/libafs.la $(JANSSON_LIBS)
$(src_admin_libadmin_la_OBJECTS): $(afs_headers)
