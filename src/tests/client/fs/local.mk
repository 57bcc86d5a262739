# SPDX-License-Identifier: BSD-2-Clause
check_tests += src/tests/client/fs/test_executor
src_tests_client_fs_test_executor_SOURCES = src/tests/client/fs/test_executor.c
src_tests_client_fs_test_executor_LDADD = $(client_test_libs)
check_tests += src/tests/client/fs/test_lengths
src_tests_client_fs_test_lengths_SOURCES = src/tests/client/fs/test_lengths.c
src_tests_client_fs_test_lengths_LDADD = $(client_test_libs)
check_tests += src/tests/client/fs/test_paths
src_tests_client_fs_test_paths_SOURCES = src/tests/client/fs/test_paths.c src/tests/client/realserver.c
src_tests_client_fs_test_paths_LDADD = $(client_test_libs)
