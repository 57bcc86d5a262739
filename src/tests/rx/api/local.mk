# SPDX-License-Identifier: BSD-2-Clause
# Tests of the public functions: one line for each program; its source is the same name with .c.

# A server and a client on loopback; the tests of the engine use it too.
check_LIBRARIES += src/tests/rx/api/libharness.a
src_tests_rx_api_libharness_a_SOURCES = \
	src/tests/rx/api/harness.c src/tests/rx/api/harness.h \
	src/tests/rx/api/streams.c src/tests/rx/api/streams.h $(support_internals) $(support_constants) \
	$(support_counters)
harness_libs = src/tests/rx/api/libharness.a $(LDADD)

check_tests += src/tests/rx/api/test_config

check_tests += src/tests/rx/api/test_async
src_tests_rx_api_test_async_LDADD = $(harness_libs)
check_tests += src/tests/rx/api/test_blocking
src_tests_rx_api_test_blocking_LDADD = $(harness_libs)
check_tests += src/tests/rx/api/test_busy
src_tests_rx_api_test_busy_LDADD = $(harness_libs)
check_tests += src/tests/rx/api/test_cancel
src_tests_rx_api_test_cancel_SOURCES = src/tests/rx/api/test_cancel.c \
	src/tests/rx/security/relay.c src/tests/rx/security/relay.h
src_tests_rx_api_test_cancel_LDADD = $(harness_libs)
check_tests += src/tests/rx/api/test_classes
src_tests_rx_api_test_classes_LDADD = $(harness_libs)
check_tests += src/tests/rx/api/test_codes
src_tests_rx_api_test_codes_LDADD = $(harness_libs)
check_tests += src/tests/rx/api/test_defer
src_tests_rx_api_test_defer_LDADD = $(harness_libs)
check_tests += src/tests/rx/api/test_connection
src_tests_rx_api_test_connection_LDADD = $(harness_libs)
check_tests += src/tests/rx/api/test_counters
src_tests_rx_api_test_counters_LDADD = $(harness_libs)
check_tests += src/tests/rx/api/test_endpoint
src_tests_rx_api_test_endpoint_LDADD = $(harness_libs)
check_tests += src/tests/rx/api/test_file
src_tests_rx_api_test_file_LDADD = $(harness_libs)
check_tests += src/tests/rx/api/test_fork
src_tests_rx_api_test_fork_LDADD = $(harness_libs)
check_scripts += src/tests/rx/api/fork.sh
check_tests += src/tests/rx/api/test_hand_over
src_tests_rx_api_test_hand_over_LDADD = $(harness_libs)
check_tests += src/tests/rx/api/test_quick
src_tests_rx_api_test_quick_LDADD = $(harness_libs)
check_tests += src/tests/rx/api/test_limits
src_tests_rx_api_test_limits_LDADD = $(harness_libs)
check_tests += src/tests/rx/api/test_loopback
src_tests_rx_api_test_loopback_LDADD = $(harness_libs)
check_tests += src/tests/rx/api/test_matrix
src_tests_rx_api_test_matrix_LDADD = $(harness_libs)
check_tests += src/tests/rx/api/test_connpool
src_tests_rx_api_test_connpool_LDADD = $(harness_libs)
check_tests += src/tests/rx/api/test_queue
src_tests_rx_api_test_queue_LDADD = $(harness_libs)
check_tests += src/tests/rx/api/test_sequences
src_tests_rx_api_test_sequences_LDADD = $(harness_libs)
check_tests += src/tests/rx/api/test_shared
src_tests_rx_api_test_shared_LDADD = $(harness_libs)
check_tests += src/tests/rx/api/test_service
src_tests_rx_api_test_service_LDADD = $(harness_libs)
check_tests += src/tests/rx/api/test_threads
src_tests_rx_api_test_threads_LDADD = $(harness_libs)
check_tests += src/tests/rx/api/test_misuse
src_tests_rx_api_test_misuse_LDADD = $(harness_libs)
check_tests += src/tests/rx/api/test_null
src_tests_rx_api_test_null_LDADD = $(harness_libs)
check_tests += src/tests/rx/api/test_rxkad
src_tests_rx_api_test_rxkad_LDADD = $(harness_libs)
check_tests += src/tests/rx/api/test_settings
src_tests_rx_api_test_settings_LDADD = $(harness_libs)
check_tests += src/tests/rx/api/test_stats
src_tests_rx_api_test_stats_LDADD = $(harness_libs)
check_tests += src/tests/rx/api/test_stream
src_tests_rx_api_test_stream_LDADD = $(harness_libs)
check_tests += src/tests/rx/api/test_sized
src_tests_rx_api_test_sized_LDADD = $(harness_libs)
