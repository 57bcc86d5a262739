# SPDX-License-Identifier: BSD-2-Clause
# Tests in src/tests/tools: check_tests += src/tests/tools/test_NAME (see src/tests/local.mk).

tools_test_libs = src/program/libprogram.la src/rx/librxwire.la \
	$(JANSSON_LIBS) $(INIH_LIBS) $(CHECK_LIBS) $(PTHREAD_LIBS)
afscp_test_libs = src/afscp/libafscp.la src/client/librxafs_core.la src/afs/libafs.la $(tools_test_libs)
rxperf_test_libs = src/rxperf/librxperf.la src/afs/libafs.la $(tools_test_libs) -lm

check_tests += src/tests/program/test_address
src_tests_program_test_address_SOURCES = src/tests/program/test_address.c src/tests/tools/testing.h
src_tests_program_test_address_LDADD = $(tools_test_libs)

check_tests += src/tests/rxperf/test_arrivals
src_tests_rxperf_test_arrivals_SOURCES = src/tests/rxperf/test_arrivals.c src/tests/tools/testing.h
src_tests_rxperf_test_arrivals_LDADD = $(rxperf_test_libs)
$(src_tests_rxperf_test_arrivals_OBJECTS): $(afs_headers)

check_tests += src/tests/program/test_histogram
src_tests_program_test_histogram_SOURCES = src/tests/program/test_histogram.c src/tests/tools/testing.h
src_tests_program_test_histogram_LDADD = $(tools_test_libs)

check_tests += src/tests/rxperf/test_latency
src_tests_rxperf_test_latency_SOURCES = src/tests/rxperf/test_latency.c src/tests/tools/testing.h
src_tests_rxperf_test_latency_LDADD = $(rxperf_test_libs)
$(src_tests_rxperf_test_latency_OBJECTS): $(afs_headers)

check_tests += src/tests/program/test_endpoints
src_tests_program_test_endpoints_SOURCES = src/tests/program/test_endpoints.c src/tests/tools/testing.h
src_tests_program_test_endpoints_LDADD = $(tools_test_libs)

check_tests += src/tests/program/test_message
src_tests_program_test_message_SOURCES = src/tests/program/test_message.c src/tests/tools/testing.h
src_tests_program_test_message_LDADD = $(tools_test_libs)

check_tests += src/tests/program/test_metrics
src_tests_program_test_metrics_SOURCES = src/tests/program/test_metrics.c src/tests/tools/testing.h
src_tests_program_test_metrics_LDADD = $(tools_test_libs)

check_tests += src/tests/program/test_number
src_tests_program_test_number_SOURCES = src/tests/program/test_number.c src/tests/tools/testing.h
src_tests_program_test_number_LDADD = $(tools_test_libs)

check_tests += src/tests/program/test_options
src_tests_program_test_options_SOURCES = src/tests/program/test_options.c src/tests/tools/testing.h
src_tests_program_test_options_LDADD = $(tools_test_libs)

check_tests += src/tests/afscp/test_arguments
src_tests_afscp_test_arguments_SOURCES = src/tests/afscp/test_arguments.c src/tests/tools/testing.h
src_tests_afscp_test_arguments_LDADD = $(afscp_test_libs)
$(src_tests_afscp_test_arguments_OBJECTS): $(afs_headers)

check_tests += src/tests/afscp/test_session
src_tests_afscp_test_session_SOURCES = src/tests/afscp/test_session.c src/tests/tools/testing.h
src_tests_afscp_test_session_LDADD = $(afscp_test_libs)
$(src_tests_afscp_test_session_OBJECTS): $(afs_headers)

check_tests += src/tests/afscp/test_change_error
src_tests_afscp_test_change_error_SOURCES = src/tests/afscp/test_change_error.c src/tests/tools/testing.h
src_tests_afscp_test_change_error_LDADD = $(afscp_test_libs)
$(src_tests_afscp_test_change_error_OBJECTS): $(afs_headers)

check_tests += src/tests/afscp/test_mix
src_tests_afscp_test_mix_SOURCES = src/tests/afscp/test_mix.c src/tests/tools/testing.h
src_tests_afscp_test_mix_LDADD = $(afscp_test_libs)
$(src_tests_afscp_test_mix_OBJECTS): $(afs_headers)

check_tests += src/tests/afscp/test_mode
src_tests_afscp_test_mode_SOURCES = src/tests/afscp/test_mode.c src/tests/tools/testing.h
src_tests_afscp_test_mode_LDADD = $(afscp_test_libs)
$(src_tests_afscp_test_mode_OBJECTS): $(afs_headers)

check_tests += src/tests/rxvol/test_plan
src_tests_rxvol_test_plan_SOURCES = src/tests/rxvol/test_plan.c src/rxvol/plan.c src/tests/tools/testing.h
src_tests_rxvol_test_plan_LDADD = $(tools_test_libs) -lm

check_tests += src/tests/program/test_progress
src_tests_program_test_progress_SOURCES = src/tests/program/test_progress.c src/tests/tools/testing.h
src_tests_program_test_progress_LDADD = $(tools_test_libs)

check_tests += src/tests/program/test_report
src_tests_program_test_report_SOURCES = src/tests/program/test_report.c src/tests/tools/testing.h
src_tests_program_test_report_LDADD = $(tools_test_libs)

check_tests += src/tests/rxperf/test_serve
src_tests_rxperf_test_serve_SOURCES = src/tests/rxperf/test_serve.c src/tests/afs/known.c src/tests/afs/known.h
src_tests_rxperf_test_serve_LDADD = $(rxperf_test_libs)
$(src_tests_rxperf_test_serve_OBJECTS): $(afs_headers)

check_tests += src/tests/program/test_signals
src_tests_program_test_signals_SOURCES = src/tests/program/test_signals.c src/tests/tools/testing.h
src_tests_program_test_signals_LDADD = $(tools_test_libs)

check_tests += src/tests/afscp/test_filter
src_tests_afscp_test_filter_SOURCES = src/tests/afscp/test_filter.c src/tests/tools/testing.h
src_tests_afscp_test_filter_LDADD = $(afscp_test_libs)
$(src_tests_afscp_test_filter_OBJECTS): $(afs_headers)

check_tests += src/tests/afscp/test_local
src_tests_afscp_test_local_SOURCES = src/tests/afscp/test_local.c src/tests/tools/testing.h
src_tests_afscp_test_local_LDADD = $(afscp_test_libs)
src_tests_afscp_test_local_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=flock,--wrap=renameat,--wrap=unlinkat
$(src_tests_afscp_test_local_OBJECTS): $(afs_headers)

check_tests += src/tests/rxperf/test_wire
src_tests_rxperf_test_wire_SOURCES = src/tests/rxperf/test_wire.c src/tests/tools/testing.h
src_tests_rxperf_test_wire_LDADD = $(rxperf_test_libs)
$(src_tests_rxperf_test_wire_OBJECTS): $(afs_headers)

# Programs with each other on loopback.
check_scripts += src/tests/tools/addresses.sh
check_scripts += src/tests/tools/afscp.sh
check_scripts += src/tests/tools/sync.sh
check_scripts += src/tests/tools/badinput.sh
check_scripts += src/tests/tools/browse.sh
check_scripts += src/tests/tools/changes.sh
check_scripts += src/tests/tools/interrupts.sh
check_scripts += src/tests/tools/completions.sh
check_scripts += src/tests/tools/convert.sh
check_scripts += src/tests/tools/dumps.sh
check_scripts += src/tests/tools/backup.sh
check_scripts += src/tests/tools/man.sh
check_scripts += src/tests/tools/machines.sh
check_scripts += src/tests/tools/interfaces.sh src/tests/tools/paths.sh src/tests/tools/namedpaths.sh src/tests/tools/mountpaths.sh
check_scripts += src/tests/tools/pathguide.sh src/tests/tools/pathreads.sh
check_scripts += src/tests/tools/putpaths.sh
check_scripts += src/tests/tools/metrics.sh
check_scripts += src/tests/tools/rxperf.sh
check_scripts += src/tests/tools/rxpt.sh
check_scripts += src/tests/tools/rxvol.sh
check_scripts += src/tests/tools/rxwstat.sh
check_scripts += src/tests/rxwplot/rxwplot.sh
EXTRA_DIST += src/tests/rxwplot/plot.py src/tests/tools/lib.sh src/tests/tools/twolinks.sh src/tests/tools/pathreads.py src/tests/tools/rules.test.yml
