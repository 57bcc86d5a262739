# SPDX-License-Identifier: BSD-2-Clause
# Unit tests of src/rx/rxgk: one line for each program; its source is the same name with .c.

check_tests += src/tests/rx/rxgk/test_crypto
