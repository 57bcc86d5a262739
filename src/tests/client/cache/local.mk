# SPDX-License-Identifier: BSD-2-Clause
# Tests of the client's state: contents of directories, statuses and promises.

check_tests += src/tests/client/cache/test_names
src_tests_client_cache_test_names_LDADD = $(client_test_libs)

check_tests += src/tests/client/cache/test_objects
src_tests_client_cache_test_objects_SOURCES = src/tests/client/cache/test_objects.c src/tests/client/cache/fixture.h
src_tests_client_cache_test_objects_LDADD = $(client_test_libs)

check_tests += src/tests/client/cache/test_listing
src_tests_client_cache_test_listing_SOURCES = src/tests/client/cache/test_listing.c src/tests/client/cache/fixture.h
src_tests_client_cache_test_listing_LDADD = $(client_test_libs)


# A model of servers, clients and the network between them. RXW_SIM_SEEDS: how many seeds (1,000), RXW_SIM_FIRST: from which on.
check_tests += src/tests/client/cache/test_promises
src_tests_client_cache_test_promises_SOURCES = src/tests/client/cache/test_promises.c src/tests/client/cache/model.c src/tests/client/cache/model.h
src_tests_client_cache_test_promises_LDADD = $(client_test_libs)

check_tests += src/tests/client/cache/test_cache_threads
src_tests_client_cache_test_cache_threads_LDADD = $(client_test_libs)

# Time of look-ups, memory of objects: make src/tests/client/cache/cost
EXTRA_PROGRAMS += src/tests/client/cache/cost
src_tests_client_cache_cost_LDADD = $(client_test_libs)
CLEANFILES += src/tests/client/cache/cost

client_cache_tests = names objects listing promises cache_threads
$(client_cache_tests:%=src/tests/client/cache/test_%.$(OBJEXT)) src/tests/client/cache/cost.$(OBJEXT): $(afs_headers)
