# SPDX-License-Identifier: BSD-2-Clause
# Tests in src/tests/store: check_tests += src/tests/store/test_NAME (see src/tests/local.mk).

store_test_libs = src/store/libstore.la src/afs/librxafs.la $(CHECK_LIBS) $(CRYPTO_LIBS) $(PTHREAD_LIBS)

check_tests += src/tests/store/test_pages
src_tests_store_test_pages_LDADD = $(store_test_libs)

check_tests += src/tests/store/test_layer_posix
src_tests_store_test_layer_posix_LDADD = $(store_test_libs)

check_tests += src/tests/store/test_content
src_tests_store_test_content_LDADD = $(store_test_libs)

check_tests += src/tests/store/test_data
src_tests_store_test_data_SOURCES = src/tests/store/test_data.c src/tests/store/spy.c src/tests/store/spy.h
src_tests_store_test_data_LDADD = $(store_test_libs)
