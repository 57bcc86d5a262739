# SPDX-License-Identifier: BSD-2-Clause
# Unit tests of src/rx/engine: one line for each program; its source is the same name with .c.
# All use the server and client of src/tests/rx/face.

check_tests += src/tests/rx/engine/test_callers
src_tests_rx_engine_test_callers_LDADD = $(harness_libs)
check_tests += src/tests/rx/engine/test_conformance_challenge
src_tests_rx_engine_test_conformance_challenge_LDADD = $(harness_libs)
check_tests += src/tests/rx/engine/test_conformance_live
src_tests_rx_engine_test_conformance_live_LDADD = $(harness_libs)
check_tests += src/tests/rx/engine/test_conformance_strangers
src_tests_rx_engine_test_conformance_strangers_LDADD = $(harness_libs)
check_tests += src/tests/rx/engine/test_idle
src_tests_rx_engine_test_idle_LDADD = $(harness_libs)
check_tests += src/tests/rx/engine/test_inspect
src_tests_rx_engine_test_inspect_LDADD = $(harness_libs)
check_tests += src/tests/rx/engine/test_listener
src_tests_rx_engine_test_listener_LDADD = $(harness_libs)
check_tests += src/tests/rx/engine/test_many
src_tests_rx_engine_test_many_LDADD = $(harness_libs)
check_tests += src/tests/rx/engine/test_memory
src_tests_rx_engine_test_memory_LDADD = $(harness_libs)
check_tests += src/tests/rx/engine/test_overload
src_tests_rx_engine_test_overload_LDADD = $(harness_libs)
check_tests += src/tests/rx/engine/test_receive
src_tests_rx_engine_test_receive_LDADD = $(harness_libs)
check_tests += src/tests/rx/engine/test_sealing
src_tests_rx_engine_test_sealing_LDADD = $(harness_libs)
check_tests += src/tests/rx/engine/test_senders
src_tests_rx_engine_test_senders_LDADD = $(harness_libs)
check_tests += src/tests/rx/engine/test_timer
src_tests_rx_engine_test_timer_LDADD = $(harness_libs)
check_tests += src/tests/rx/engine/test_transmit
src_tests_rx_engine_test_transmit_LDADD = $(harness_libs)
check_tests += src/tests/rx/engine/test_trains
src_tests_rx_engine_test_trains_LDADD = $(harness_libs)
check_tests += src/tests/rx/engine/test_waiting
src_tests_rx_engine_test_waiting_LDADD = $(harness_libs)
