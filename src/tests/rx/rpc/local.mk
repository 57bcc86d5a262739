# SPDX-License-Identifier: BSD-2-Clause
# Unit tests of src/rx/rpc: one line for each program; its source is the same name with .c.

check_LTLIBRARIES += src/tests/rx/rpc/libstubs.la
src_tests_rx_rpc_libstubs_la_SOURCES = src/tests/rx/rpc/stubs.c src/tests/rx/rpc/stubs.h
src_tests_rx_rpc_libstubs_la_LIBTOOLFLAGS = $(COMPILE_ONCE)
src_tests_rx_rpc_libstubs_la_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
stubs_libs = src/tests/rx/rpc/libstubs.la $(harness_libs)

check_tests += src/tests/rx/rpc/test_multi
src_tests_rx_rpc_test_multi_LDADD = $(stubs_libs)
check_tests += src/tests/rx/rpc/test_procedure
src_tests_rx_rpc_test_procedure_LDADD = $(stubs_libs)
check_tests += src/tests/rx/rpc/test_window
src_tests_rx_rpc_test_window_LDADD = $(stubs_libs)
# Counts each allocation of a decoder.
src_tests_rx_rpc_test_window_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=realloc
