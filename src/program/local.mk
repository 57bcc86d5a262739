# SPDX-License-Identifier: BSD-2-Clause
# libprogram.la: options, configuration files, messages and JSON of every program.

noinst_LTLIBRARIES += src/program/libprogram.la
src_program_libprogram_la_SOURCES = \
	src/program/address.c src/program/address.h \
	src/program/auth.c src/program/auth.h \
	src/program/endpoints.c src/program/endpoints.h \
	src/program/histogram.c src/program/histogram.h \
	src/program/manager.c src/program/manager.h \
	src/program/message.c src/program/message.h \
	src/program/metrics.c src/program/metrics.h \
	src/program/number.c src/program/number.h \
	src/program/options.c src/program/options.h \
	src/program/report.c src/program/report.h \
	src/program/signals.c src/program/signals.h \
	src/program/trace.c src/program/trace.h \
	$(observe_sources)
src_program_libprogram_la_LIBTOOLFLAGS = $(COMPILE_ONCE)
src_program_libprogram_la_CFLAGS = $(AM_CFLAGS) -DTOOLS_SERVER_CONFIG='"$(sysconfdir)/rxwire/rxfsd.conf"'
src_program_libprogram_la_LIBADD = src/rx/librxwire.la $(JANSSON_LIBS) $(INIH_LIBS)

dist_man_MANS += doc/man/rxwire.conf.5
