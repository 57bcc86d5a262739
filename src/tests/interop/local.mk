# SPDX-License-Identifier: BSD-2-Clause
# Tests in src/tests/interop: check_tests += src/tests/interop/test_NAME (see src/tests/local.mk).

