# SPDX-License-Identifier: BSD-2-Clause
# Unit tests of src/rx/io: one line for each program; its source is the same name with .c.
# io_msg.c and io_mmsg.c are two rows of one table: test_io_send and test_io_recv run with both.

check_tests += src/tests/rx/io/test_io_common
check_tests += src/tests/rx/io/test_io_control
check_tests += src/tests/rx/io/test_io_errq
check_tests += src/tests/rx/io/test_io_inject
check_tests += src/tests/rx/io/test_io_recv
check_tests += src/tests/rx/io/test_io_refused
check_tests += src/tests/rx/io/test_io_send
check_tests += src/tests/rx/io/test_io_sock
check_tests += src/tests/rx/io/test_io_steer
EXTRA_DIST += src/tests/rx/io/io_test.h
