# SPDX-License-Identifier: BSD-2-Clause
# rxvol: the volumes of a store.

sbin_PROGRAMS += src/rxvol/rxvol
src_rxvol_rxvol_SOURCES = \
	src/rxvol/balance.c \
	src/rxvol/carry.c src/rxvol/carry.h \
	src/rxvol/cellside.c src/rxvol/cellside.h \
	src/rxvol/main.c \
	src/rxvol/move.c src/rxvol/move.h \
	src/rxvol/movein.c \
	src/rxvol/movelog.c src/rxvol/movelog.h \
	src/rxvol/owner.c \
	src/rxvol/places.c \
	src/rxvol/plan.c src/rxvol/plan.h \
	src/rxvol/request.c \
	src/rxvol/rescue.c \
	src/rxvol/session.c \
	src/rxvol/show.c \
	src/rxvol/survey.c src/rxvol/survey.h \
	src/rxvol/volumes.h
src_rxvol_rxvol_LDADD = src/program/libprogram.la src/client/librxafs_core.la src/admin/libadmin.la src/rx/librxwire.la \
	$(JANSSON_LIBS) $(PTHREAD_LIBS)
dist_man_MANS += doc/man/rxvol.8
$(src_rxvol_rxvol_OBJECTS): $(afs_headers)
