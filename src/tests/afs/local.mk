# SPDX-License-Identifier: BSD-2-Clause
# Tests in src/tests/afs: check_tests += src/tests/afs/test_NAME (see src/tests/local.mk).

afs_test_libs = src/afs/librxafs.la src/rx/librxwire.la $(CHECK_LIBS) $(PTHREAD_LIBS)

check_tests += src/tests/afs/test_types
src_tests_afs_test_types_LDADD = $(afs_test_libs)

check_tests += src/tests/afs/test_dir
src_tests_afs_test_dir_LDADD = $(afs_test_libs)

check_tests += src/tests/afs/test_vl
src_tests_afs_test_vl_LDADD = $(afs_test_libs)

check_tests += src/tests/afs/test_client
src_tests_afs_test_client_SOURCES = src/tests/afs/test_client.c
src_tests_afs_test_client_LDADD = src/afs/librxafs.la src/rx/librxwire.la $(CHECK_LIBS) $(PTHREAD_LIBS)
