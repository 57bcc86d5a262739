# SPDX-License-Identifier: BSD-2-Clause
# rxperf, afscp, rxwstat, rxwplot, rxpt and rxvol, and libtools.la: options, config files and JSON for every program.

tools_common_sources = \
	src/tools/common/address.c src/tools/common/address.h \
	src/tools/common/auth.c src/tools/common/auth.h \
	src/tools/common/command.c src/tools/common/command.h \
	src/tools/common/endpoints.c src/tools/common/endpoints.h \
	src/tools/common/histogram.c src/tools/common/histogram.h \
	src/tools/common/message.c src/tools/common/message.h \
	src/tools/common/metrics.c src/tools/common/metrics.h \
	src/tools/common/number.c src/tools/common/number.h \
	src/tools/common/option_place.c src/tools/common/option_place.h \
	src/tools/common/options.c src/tools/common/options.h \
	src/tools/common/reachable.c src/tools/common/reachable.h \
	src/tools/common/renew.c src/tools/common/renew.h \
	src/tools/common/report.c src/tools/common/report.h \
	src/tools/common/signals.c src/tools/common/signals.h \
	src/tools/common/trace.c src/tools/common/trace.h

noinst_LTLIBRARIES += src/tools/libtools.la
src_tools_libtools_la_SOURCES = $(tools_common_sources) $(observe_sources)
src_tools_libtools_la_LIBTOOLFLAGS = $(COMPILE_ONCE)
src_tools_libtools_la_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS) $(INIH_CFLAGS)
src_tools_libtools_la_LIBADD = src/rx/librxwire.la $(JANSSON_LIBS) $(INIH_LIBS)

bin_PROGRAMS += src/tools/rxperf
src_tools_rxperf_SOURCES = \
	src/tools/perf/arrivals.c src/tools/perf/arrivals.h \
	src/tools/perf/bad_clients.c src/tools/perf/bad_clients.h \
	src/tools/perf/client.c src/tools/perf/client.h \
	src/tools/perf/figures.c \
	src/tools/perf/latency.c src/tools/perf/latency.h \
	src/tools/perf/main.c \
	src/tools/perf/links.c \
	src/tools/perf/openloop.c \
	src/tools/perf/perf.h \
	src/tools/perf/report.c \
	src/tools/perf/runner.c src/tools/perf/runner.h \
	src/tools/perf/flow.c src/tools/perf/job.h src/tools/perf/serve.c src/tools/perf/serve.h \
	src/tools/perf/server.c \
	src/tools/perf/settings.c \
	src/tools/perf/slot.c \
	src/tools/perf/wire.c src/tools/perf/wire.h
src_tools_rxperf_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
src_tools_rxperf_LDADD = src/tools/libtools.la src/afs/librxafs.la src/rx/librxwire.la \
	$(JANSSON_LIBS) $(PTHREAD_LIBS) -lm
$(src_tools_rxperf_OBJECTS): $(afs_headers)

bin_PROGRAMS += src/tools/afscp
src_tools_afscp_SOURCES = \
	src/tools/copy/acl.c \
	src/tools/copy/arguments.c src/tools/copy/arguments.h \
	src/tools/copy/beginning.c src/tools/copy/beginning.h \
	src/tools/copy/bench.c \
	src/tools/copy/change.c src/tools/copy/change.h \
	src/tools/copy/change_error.c src/tools/copy/change_error.h \
	src/tools/copy/chmod.c \
	src/tools/copy/climb.c src/tools/copy/climb.h \
	src/tools/copy/copy.h \
	src/tools/copy/df.c \
	src/tools/copy/entered_dirs.c src/tools/copy/entered_dirs.h \
	src/tools/copy/entries.c \
	src/tools/copy/get.c \
	src/tools/copy/getcount.c src/tools/copy/getcount.h \
	src/tools/copy/getfile.c \
	src/tools/copy/gettree.c \
	src/tools/copy/glob.c src/tools/copy/glob.h \
	src/tools/copy/list.c \
	src/tools/copy/lock.c \
	src/tools/copy/lookup.c \
	src/tools/copy/main.c \
	src/tools/copy/mix.c \
	src/tools/copy/mixspec.c src/tools/copy/mixspec.h \
	src/tools/copy/mode.c src/tools/copy/mode.h \
	src/tools/copy/name_commands.c \
	src/tools/copy/partname.c src/tools/copy/partname.h \
	src/tools/copy/pool.c src/tools/copy/pool.h \
	src/tools/copy/progress.c src/tools/copy/progress.h \
	src/tools/copy/put.c src/tools/copy/put.h \
	src/tools/copy/putfile.c \
	src/tools/copy/puttree.c \
	src/tools/copy/remove.c src/tools/copy/remove.h \
	src/tools/copy/retry.c \
	src/tools/copy/run.c src/tools/copy/run.h \
	src/tools/copy/same_names.c src/tools/copy/same_names.h \
	src/tools/copy/sink.c src/tools/copy/sink.h
src_tools_afscp_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
src_tools_afscp_LDADD = src/tools/libtools.la src/afs/librxafs.la src/rx/librxwire.la \
	$(JANSSON_LIBS) $(PTHREAD_LIBS)
$(src_tools_afscp_OBJECTS): $(afs_headers)

# The layouts of VERSION and DEBUG are those of the library, whose symbols for them are its own.
bin_PROGRAMS += src/tools/rxwstat
src_tools_rxwstat_SOURCES = \
	src/rx/base/debugfmt.c \
	src/rx/base/wire.c \
	src/tools/stat/ask.c \
	src/tools/stat/calls.c \
	src/tools/stat/collect.c \
	src/tools/stat/live.c \
	src/tools/stat/main.c \
	src/tools/stat/scrape.c \
	src/tools/stat/show.c \
	src/tools/stat/stat.h
src_tools_rxwstat_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS) $(NCURSES_CFLAGS)
src_tools_rxwstat_LDADD = src/tools/libtools.la src/rx/librxwire.la $(JANSSON_LIBS) $(NCURSES_LIBS) \
	$(PTHREAD_LIBS)
dist_man_MANS += doc/man/rxwstat.1 doc/man/rxw_metrics.3

sbin_PROGRAMS += src/tools/rxpt
src_tools_rxpt_SOURCES = \
	src/tools/protection/access.c \
	src/tools/protection/change.c \
	src/tools/protection/find.c \
	src/tools/protection/main.c \
	src/tools/protection/pt.h \
	src/tools/protection/show.c
src_tools_rxpt_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
src_tools_rxpt_LDADD = src/tools/libtools.la src/protection/libprotection.la src/rx/librxwire.la \
	$(JANSSON_LIBS) $(PTHREAD_LIBS)
dist_man_MANS += doc/man/rxpt.8

sbin_PROGRAMS += src/tools/rxvol
src_tools_rxvol_SOURCES = \
	src/tools/copy/progress.c src/tools/copy/progress.h \
	src/tools/volumes/main.c \
	src/tools/volumes/remote.c \
	src/tools/volumes/request.c \
	src/tools/volumes/session.c \
	src/tools/volumes/show.c \
	src/tools/volumes/volumes.h
src_tools_rxvol_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
src_tools_rxvol_LDADD = src/tools/libtools.la src/admin/libadmin.la src/rx/librxwire.la \
	$(JANSSON_LIBS) $(PTHREAD_LIBS)
dist_man_MANS += doc/man/rxvol.8

# Python 3, with its standard library alone.
EXTRA_DIST += src/tools/plot/rxwplot.py
bin_SCRIPTS += src/tools/rxwplot
CLEANFILES += src/tools/rxwplot
src/tools/rxwplot: src/tools/plot/rxwplot.py $(top_builddir)/config.status
	$(AM_V_GEN)$(MKDIR_P) src/tools && sed 's/[@]VERSION[@]/$(VERSION)/' '$(srcdir)/src/tools/plot/rxwplot.py' > $@.tmp && \
		chmod 755 $@.tmp && mv $@.tmp $@
dist_man_MANS += doc/man/rxwplot.1

dist_man_MANS += doc/man/rxperf.1 doc/man/afscp.1 doc/man/rxwire.conf.5
