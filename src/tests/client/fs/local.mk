# SPDX-License-Identifier: BSD-2-Clause
check_tests += src/tests/client/fs/test_executor
src_tests_client_fs_test_executor_SOURCES = src/tests/client/fs/test_executor.c
src_tests_client_fs_test_executor_LDADD = $(client_test_libs)
check_tests += src/tests/client/fs/test_giveback
src_tests_client_fs_test_giveback_SOURCES = src/tests/client/fs/test_giveback.c src/tests/client/realserver.c
src_tests_client_fs_test_giveback_LDADD = $(client_test_libs)
check_tests += src/tests/client/fs/test_lengths
src_tests_client_fs_test_lengths_SOURCES = src/tests/client/fs/test_lengths.c
src_tests_client_fs_test_lengths_LDADD = $(client_test_libs)

client_program = src/tests/client/fs/program.c src/tests/client/fs/program.h \
	src/tests/client/realserver.c src/tests/client/realserver.h $(support_ports)
check_tests += src/tests/client/fs/test_paths
src_tests_client_fs_test_paths_SOURCES = src/tests/client/fs/test_paths.c $(client_program)
src_tests_client_fs_test_paths_LDADD = $(client_test_libs)
check_tests += src/tests/client/fs/test_queue
src_tests_client_fs_test_queue_SOURCES = src/tests/client/fs/test_queue.c $(client_program)
src_tests_client_fs_test_queue_LDADD = $(client_test_libs)
check_tests += src/tests/client/fs/test_watch
src_tests_client_fs_test_watch_SOURCES = src/tests/client/fs/test_watch.c $(client_program)
src_tests_client_fs_test_watch_LDADD = $(client_test_libs)
check_tests += src/tests/client/fs/test_lanes
src_tests_client_fs_test_lanes_SOURCES = src/tests/client/fs/test_lanes.c src/rxafs/lanes.c
src_tests_client_fs_test_lanes_LDADD = $(client_test_libs)
check_tests += src/tests/client/fs/test_newfiles
src_tests_client_fs_test_newfiles_SOURCES = src/tests/client/fs/test_newfiles.c $(client_program)
src_tests_client_fs_test_newfiles_LDADD = $(client_test_libs)
