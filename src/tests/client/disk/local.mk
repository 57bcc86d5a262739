# SPDX-License-Identifier: BSD-2-Clause
check_tests += src/tests/client/disk/test_disk
src_tests_client_disk_test_disk_LDADD = $(client_test_libs)

check_tests += src/tests/client/disk/test_disk_kills
src_tests_client_disk_test_disk_kills_LDADD = $(client_test_libs)
