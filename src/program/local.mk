# SPDX-License-Identifier: BSD-2-Clause
# rxperf, afscp, rxwstat, rxwplot, rxpt and rxvol, and libtools.la: options, config files and JSON for every program.

tools_common_sources = \
	src/program/address.c src/program/address.h \
	src/program/auth.c src/program/auth.h \
	src/program/command.c src/program/command.h \
	src/program/endpoints.c src/program/endpoints.h \
	src/program/histogram.c src/program/histogram.h \
	src/program/message.c src/program/message.h \
	src/program/metrics.c src/program/metrics.h \
	src/program/number.c src/program/number.h \
	src/program/option_place.c src/program/option_place.h \
	src/program/options.c src/program/options.h \
	src/program/reachable.c src/program/reachable.h \
	src/program/renew.c src/program/renew.h \
	src/program/report.c src/program/report.h \
	src/program/signals.c src/program/signals.h \
	src/program/trace.c src/program/trace.h

noinst_LTLIBRARIES += src/program/libprogram.la
src_program_libprogram_la_SOURCES = $(tools_common_sources) $(observe_sources)
src_program_libprogram_la_LIBTOOLFLAGS = $(COMPILE_ONCE)
src_program_libprogram_la_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS) $(INIH_CFLAGS)
src_program_libprogram_la_LIBADD = src/rx/librxwire.la $(JANSSON_LIBS) $(INIH_LIBS)

bin_PROGRAMS += src/rxperf/rxperf
src_rxperf_rxperf_SOURCES = \
	src/rxperf/arrivals.c src/rxperf/arrivals.h \
	src/rxperf/bad_clients.c src/rxperf/bad_clients.h \
	src/rxperf/client.c src/rxperf/client.h \
	src/rxperf/figures.c \
	src/rxperf/latency.c src/rxperf/latency.h \
	src/rxperf/main.c \
	src/rxperf/links.c \
	src/rxperf/openloop.c \
	src/rxperf/perf.h \
	src/rxperf/report.c \
	src/rxperf/runner.c src/rxperf/runner.h \
	src/rxperf/flow.c src/rxperf/job.h src/rxperf/serve.c src/rxperf/serve.h \
	src/rxperf/server.c \
	src/rxperf/settings.c \
	src/rxperf/slot.c \
	src/rxperf/wire.c src/rxperf/wire.h
src_rxperf_rxperf_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
src_rxperf_rxperf_LDADD = src/program/libprogram.la src/afs/librxafs.la src/rx/librxwire.la \
	$(JANSSON_LIBS) $(PTHREAD_LIBS) -lm
$(src_rxperf_rxperf_OBJECTS): $(afs_headers)

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
	src/afscp/pool.c src/afscp/pool.h \
	src/afscp/progress.c src/afscp/progress.h \
	src/afscp/put.c src/afscp/put.h \
	src/afscp/putfile.c \
	src/afscp/rights.c \
	src/afscp/run.c src/afscp/run.h
src_afscp_libafscp_la_LIBTOOLFLAGS = $(COMPILE_ONCE)
src_afscp_libafscp_la_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
src_afscp_libafscp_la_LIBADD = src/program/libprogram.la src/afs/librxafs.la src/rx/librxwire.la \
	$(JANSSON_LIBS) $(PTHREAD_LIBS)

bin_PROGRAMS += src/afscp/afscp
src_afscp_afscp_SOURCES = src/afscp/main.c
src_afscp_afscp_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
src_afscp_afscp_LDADD = src/afscp/libafscp.la
$(src_afscp_libafscp_la_OBJECTS) $(src_afscp_afscp_OBJECTS): $(afs_headers)

# The layouts of VERSION and DEBUG are those of the library, whose symbols for them are its own.
bin_PROGRAMS += src/rxwstat/rxwstat
src_rxwstat_rxwstat_SOURCES = \
	src/rx/base/debugfmt.c \
	src/rx/base/wire.c \
	src/rxwstat/ask.c \
	src/rxwstat/calls.c \
	src/rxwstat/collect.c \
	src/rxwstat/live.c \
	src/rxwstat/main.c \
	src/rxwstat/scrape.c \
	src/rxwstat/show.c \
	src/rxwstat/stat.h
src_rxwstat_rxwstat_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS) $(NCURSES_CFLAGS)
src_rxwstat_rxwstat_LDADD = src/program/libprogram.la src/rx/librxwire.la $(JANSSON_LIBS) $(NCURSES_LIBS) \
	$(PTHREAD_LIBS)
dist_man_MANS += doc/man/rxwstat.1 doc/man/rxw_metrics.3

sbin_PROGRAMS += src/rxpt/rxpt
src_rxpt_rxpt_SOURCES = \
	src/rxpt/access.c \
	src/rxpt/change.c \
	src/rxpt/find.c \
	src/rxpt/main.c \
	src/rxpt/pt.h \
	src/rxpt/show.c
src_rxpt_rxpt_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
src_rxpt_rxpt_LDADD = src/program/libprogram.la src/protection/libprotection.la src/rx/librxwire.la \
	$(JANSSON_LIBS) $(PTHREAD_LIBS)
dist_man_MANS += doc/man/rxpt.8

sbin_PROGRAMS += src/rxvol/rxvol
src_rxvol_rxvol_SOURCES = \
	src/afscp/progress.c src/afscp/progress.h \
	src/rxvol/main.c \
	src/rxvol/remote.c \
	src/rxvol/request.c \
	src/rxvol/session.c \
	src/rxvol/show.c \
	src/rxvol/volumes.h
src_rxvol_rxvol_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
src_rxvol_rxvol_LDADD = src/program/libprogram.la src/admin/libadmin.la src/rx/librxwire.la \
	$(JANSSON_LIBS) $(PTHREAD_LIBS)
dist_man_MANS += doc/man/rxvol.8

# Python 3, with its standard library alone.
EXTRA_DIST += src/rxwplot/rxwplot.py
bin_SCRIPTS += src/rxwplot/rxwplot
CLEANFILES += src/rxwplot/rxwplot
src/rxwplot/rxwplot: src/rxwplot/rxwplot.py $(top_builddir)/config.status
	$(AM_V_GEN)$(MKDIR_P) src/rxwplot && sed 's/[@]VERSION[@]/$(VERSION)/' '$(srcdir)/src/rxwplot/rxwplot.py' > $@.tmp && \
		chmod 755 $@.tmp && mv $@.tmp $@
dist_man_MANS += doc/man/rxwplot.1

dist_man_MANS += doc/man/rxperf.1 doc/man/afscp.1 doc/man/rxwire.conf.5
