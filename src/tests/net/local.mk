# SPDX-License-Identifier: BSD-2-Clause
# Tests in src/tests/net: check_tests += src/tests/net/test_NAME (see src/tests/local.mk).

