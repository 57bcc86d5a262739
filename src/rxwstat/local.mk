# SPDX-License-Identifier: BSD-2-Clause
# rxwstat: statistics of running programs.

# The layouts of VERSION and DEBUG are those of the library, whose symbols for them are its own.
bin_PROGRAMS += src/rxwstat/rxwstat
src_rxwstat_rxwstat_SOURCES = \
	src/rx/base/debugfmt.c \
	src/rx/base/wire.c \
	src/rxwstat/collect.c \
	src/rxwstat/live.c \
	src/rxwstat/main.c \
	src/rxwstat/scrape.c \
	src/rxwstat/show.c \
	src/rxwstat/stat.h
src_rxwstat_rxwstat_CFLAGS = $(AM_CFLAGS) $(NCURSES_CFLAGS)
src_rxwstat_rxwstat_LDADD = src/program/libprogram.la src/rx/librxwire.la $(JANSSON_LIBS) $(NCURSES_LIBS) \
	$(PTHREAD_LIBS)
dist_man_MANS += doc/man/rxwstat.1 doc/man/rxw_metrics.3
