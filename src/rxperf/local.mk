# SPDX-License-Identifier: BSD-2-Clause
# rxperf: measures Rx.

# All of rxperf but main(), for its tests as well.
noinst_LTLIBRARIES += src/rxperf/librxperf.la
src_rxperf_librxperf_la_SOURCES = \
	src/rxperf/client.c src/rxperf/client.h \
	src/rxperf/links.c \
	src/rxperf/openloop.c \
	src/rxperf/perf.h \
	src/rxperf/report.c \
	src/rxperf/results.c src/rxperf/runner.c src/rxperf/runner.h \
	src/rxperf/serve.c src/rxperf/serve.h \
	src/rxperf/server.c \
	src/rxperf/settings.c \
	src/rxperf/slot.c \
	src/rxperf/wire.c src/rxperf/wire.h

bin_PROGRAMS += src/rxperf/rxperf
src_rxperf_rxperf_SOURCES = src/rxperf/main.c
src_rxperf_rxperf_LDADD = src/rxperf/librxperf.la src/program/libprogram.la src/afs/libafs.la \
	src/rx/librxwire.la $(JANSSON_LIBS) $(PTHREAD_LIBS) -lm
$(src_rxperf_librxperf_la_OBJECTS) $(src_rxperf_rxperf_OBJECTS): $(afs_headers)

dist_man_MANS += doc/man/rxperf.1
