# SPDX-License-Identifier: BSD-2-Clause
# Tests in src/tests/fileserver: check_tests += src/tests/fileserver/test_NAME (see src/tests/local.mk).

