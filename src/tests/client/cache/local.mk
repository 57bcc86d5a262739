# SPDX-License-Identifier: BSD-2-Clause
# Tests of the client's state: contents of directories, statuses and promises.

check_tests += src/tests/client/cache/test_names
src_tests_client_cache_test_names_LDADD = $(client_test_libs)

check_tests += src/tests/client/cache/test_objects
src_tests_client_cache_test_objects_LDADD = $(client_test_libs)


client_cache_tests = names objects
$(client_cache_tests:%=src/tests/client/cache/test_%.$(OBJEXT)): $(afs_headers)
