# SPDX-License-Identifier: BSD-2-Clause
# rxpt: users and groups.

sbin_PROGRAMS += src/rxpt/rxpt
src_rxpt_rxpt_SOURCES = \
	src/rxpt/change.c \
	src/rxpt/main.c \
	src/rxpt/pt.h \
	src/rxpt/show.c
src_rxpt_rxpt_LDADD = src/program/libprogram.la src/protection/libprotection.la src/rx/librxwire.la \
	$(JANSSON_LIBS) $(PTHREAD_LIBS)
dist_man_MANS += doc/man/rxpt.8
