# SPDX-License-Identifier: BSD-2-Clause
# Tests in src/tests/afs: check_tests += src/tests/afs/test_NAME (see src/tests/local.mk).

