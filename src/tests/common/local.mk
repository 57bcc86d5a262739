# SPDX-License-Identifier: BSD-2-Clause
# Unit tests of src/common: one line for each program; its source is the same name with .c.

check_tests += src/tests/common/test_clock
check_tests += src/tests/common/test_held
check_tests += src/tests/common/test_histogram
check_tests += src/tests/common/test_htable
