# SPDX-License-Identifier: BSD-2-Clause
client_data_fake = src/tests/client/data/fake_server.c src/tests/client/data/fake_server.h

check_tests += src/tests/client/data/test_contents
src_tests_client_data_test_contents_SOURCES = src/tests/client/data/test_contents.c src/tests/client/data/one_file.h $(client_data_fake)
src_tests_client_data_test_contents_LDADD = $(client_test_libs)

check_tests += src/tests/client/data/test_random_contents
src_tests_client_data_test_random_contents_SOURCES = src/tests/client/data/test_random_contents.c $(client_data_fake)
src_tests_client_data_test_random_contents_LDADD = $(client_test_libs)

check_tests += src/tests/client/data/test_sharing
src_tests_client_data_test_sharing_SOURCES = src/tests/client/data/test_sharing.c src/tests/client/data/one_file.h $(client_data_fake)
src_tests_client_data_test_sharing_LDADD = $(client_test_libs)

check_tests += src/tests/client/data/test_crowded
src_tests_client_data_test_crowded_SOURCES = src/tests/client/data/test_crowded.c $(client_data_fake)
src_tests_client_data_test_crowded_LDADD = $(client_test_libs)
check_tests += src/tests/client/data/test_jobs
src_tests_client_data_test_jobs_SOURCES = src/tests/client/data/test_jobs.c
src_tests_client_data_test_jobs_LDADD = $(client_test_libs)
