# SPDX-License-Identifier: BSD-2-Clause
# Unit tests of src/rx/engine, with the server and client of src/tests/rx/face/harness.c.

check_tests += src/tests/rx/engine/test_inspect
src_tests_rx_engine_test_inspect_SOURCES = src/tests/rx/engine/test_inspect.c $(face_harness)
check_tests += src/tests/rx/engine/test_receive
src_tests_rx_engine_test_receive_SOURCES = src/tests/rx/engine/test_receive.c $(face_harness)
check_tests += src/tests/rx/engine/test_timer
src_tests_rx_engine_test_timer_SOURCES = src/tests/rx/engine/test_timer.c $(face_harness)
check_tests += src/tests/rx/engine/test_transmit
src_tests_rx_engine_test_transmit_SOURCES = src/tests/rx/engine/test_transmit.c $(face_harness)
