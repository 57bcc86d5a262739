# SPDX-License-Identifier: BSD-2-Clause
# Tests of src/protection: check_tests += src/tests/protection/test_NAME (see src/tests/local.mk).

protection_test_libs = src/protection/libprotection.la $(SQLITE_LIBS) $(CHECK_LIBS) $(PTHREAD_LIBS)
protection_test_fixture = src/tests/protection/database.c src/tests/protection/database.h

check_tests += src/tests/protection/test_names
src_tests_protection_test_names_LDADD = $(protection_test_libs)

check_tests += src/tests/protection/test_identity
src_tests_protection_test_identity_SOURCES = src/tests/protection/test_identity.c $(protection_test_fixture)
src_tests_protection_test_identity_LDADD = $(protection_test_libs)

check_tests += src/tests/protection/test_entries
src_tests_protection_test_entries_SOURCES = src/tests/protection/test_entries.c $(protection_test_fixture)
src_tests_protection_test_entries_LDADD = $(protection_test_libs)

check_tests += src/tests/protection/test_machines
src_tests_protection_test_machines_SOURCES = src/tests/protection/test_machines.c $(protection_test_fixture)
src_tests_protection_test_machines_LDADD = $(protection_test_libs)

check_tests += src/tests/protection/test_nested
src_tests_protection_test_nested_SOURCES = src/tests/protection/test_nested.c $(protection_test_fixture)
src_tests_protection_test_nested_LDADD = $(protection_test_libs)

check_tests += src/tests/protection/test_file
src_tests_protection_test_file_SOURCES = src/tests/protection/test_file.c $(protection_test_fixture)
src_tests_protection_test_file_LDADD = $(protection_test_libs)

check_tests += src/tests/protection/test_sharing
src_tests_protection_test_sharing_SOURCES = src/tests/protection/test_sharing.c $(protection_test_fixture)
src_tests_protection_test_sharing_LDADD = $(protection_test_libs)

check_tests += src/tests/protection/test_requests
src_tests_protection_test_requests_SOURCES = src/tests/protection/test_requests.c $(protection_test_fixture)
src_tests_protection_test_requests_LDADD = $(protection_test_libs)
