# SPDX-License-Identifier: BSD-2-Clause
# Unit tests of src/rx/face: one line for each program; its source is the same name with .c.

face_harness = \
	src/tests/rx/face/harness.c src/tests/rx/face/harness.h \
	src/tests/rx/face/streams.c src/tests/rx/face/streams.h

check_tests += src/tests/rx/face/test_config
check_tests += src/tests/rx/face/test_async
src_tests_rx_face_test_async_SOURCES = src/tests/rx/face/test_async.c $(face_harness)
check_tests += src/tests/rx/face/test_endpoint
src_tests_rx_face_test_endpoint_SOURCES = src/tests/rx/face/test_endpoint.c $(face_harness)
check_tests += src/tests/rx/face/test_loopback
src_tests_rx_face_test_loopback_SOURCES = src/tests/rx/face/test_loopback.c $(face_harness)
check_tests += src/tests/rx/face/test_matrix
src_tests_rx_face_test_matrix_SOURCES = src/tests/rx/face/test_matrix.c $(face_harness)
check_tests += src/tests/rx/face/test_service
src_tests_rx_face_test_service_SOURCES = src/tests/rx/face/test_service.c $(face_harness)
check_tests += src/tests/rx/face/test_stats
src_tests_rx_face_test_stats_SOURCES = src/tests/rx/face/test_stats.c $(face_harness)
check_tests += src/tests/rx/face/test_stream
src_tests_rx_face_test_stream_SOURCES = src/tests/rx/face/test_stream.c $(face_harness)
