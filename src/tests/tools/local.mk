# SPDX-License-Identifier: BSD-2-Clause
# Tests in src/tests/tools: check_tests += src/tests/tools/test_NAME (see src/tests/local.mk).

