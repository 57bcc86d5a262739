# SPDX-License-Identifier: BSD-2-Clause
# Packet traces: the ring and the files, read by the tests' own reader and by tshark.

trace_reader = src/tests/system/trace/reader.c src/tests/system/trace/reader.h

check_tests += src/tests/system/trace/test_trace
src_tests_system_trace_test_trace_SOURCES = src/tests/system/trace/test_trace.c $(trace_reader)
src_tests_system_trace_test_trace_LDADD = $(harness_libs)

check_tests += src/tests/system/trace/test_tshark
src_tests_system_trace_test_tshark_SOURCES = src/tests/system/trace/test_tshark.c $(trace_reader) \
	src/tests/rx/security/relay.c src/tests/rx/security/relay.h
src_tests_system_trace_test_tshark_LDADD = $(harness_libs)

check_scripts += src/tests/system/trace/programs.sh
