# SPDX-License-Identifier: BSD-2-Clause
# Tests of src/admin: check_tests += src/tests/admin/test_NAME (see src/tests/local.mk).

admin_test_libs = src/admin/libadmin.la $(JANSSON_LIBS) $(CHECK_LIBS) $(PTHREAD_LIBS)
admin_test_fixture = src/tests/admin/fixture.c src/tests/admin/fixture.h

check_tests += src/tests/admin/test_requests
src_tests_admin_test_requests_SOURCES = src/tests/admin/test_requests.c $(admin_test_fixture)
src_tests_admin_test_requests_LDADD = $(admin_test_libs)

check_tests += src/tests/admin/test_trees
src_tests_admin_test_trees_SOURCES = src/tests/admin/test_trees.c $(admin_test_fixture)
src_tests_admin_test_trees_LDADD = $(admin_test_libs)

check_tests += src/tests/admin/test_places
src_tests_admin_test_places_SOURCES = src/tests/admin/test_places.c $(admin_test_fixture)
src_tests_admin_test_places_LDADD = $(admin_test_libs) $(SQLITE_LIBS)

check_tests += src/tests/admin/test_text
src_tests_admin_test_text_LDADD = $(admin_test_libs)
