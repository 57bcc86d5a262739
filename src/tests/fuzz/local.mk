# SPDX-License-Identifier: BSD-2-Clause
# Tests in src/tests/fuzz: check_tests += src/tests/fuzz/test_NAME (see src/tests/local.mk).

