# SPDX-License-Identifier: BSD-2-Clause
# rxvol: the volumes of a store.

sbin_PROGRAMS += src/rxvol/rxvol
src_rxvol_rxvol_SOURCES = \
	src/rxvol/main.c \
	src/rxvol/owner.c \
	src/rxvol/places.c \
	src/rxvol/request.c \
	src/rxvol/rescue.c \
	src/rxvol/session.c \
	src/rxvol/show.c \
	src/rxvol/volumes.h
src_rxvol_rxvol_LDADD = src/program/libprogram.la src/admin/libadmin.la src/rx/librxwire.la \
	$(JANSSON_LIBS) $(PTHREAD_LIBS)
dist_man_MANS += doc/man/rxvol.8
