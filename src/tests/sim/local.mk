# SPDX-License-Identifier: BSD-2-Clause
# Tests in src/tests/sim: check_tests += src/tests/sim/test_NAME (see src/tests/local.mk).

