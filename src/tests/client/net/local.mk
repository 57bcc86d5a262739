# SPDX-License-Identifier: BSD-2-Clause
check_tests += src/tests/client/net/test_net_real
src_tests_client_net_test_net_real_SOURCES = src/tests/client/net/test_net_real.c \
	src/tests/client/realserver.c src/tests/client/realserver.h $(support_ports)
src_tests_client_net_test_net_real_LDADD = $(client_test_libs)

client_fake_cell = src/tests/client/net/fake.c src/tests/client/net/fake.h $(support_ports)
check_tests += src/tests/client/net/test_net_locations
src_tests_client_net_test_net_locations_SOURCES = src/tests/client/net/test_net_locations.c $(client_fake_cell)
src_tests_client_net_test_net_locations_LDADD = $(client_test_libs)
check_tests += src/tests/client/net/test_net_sites
src_tests_client_net_test_net_sites_SOURCES = src/tests/client/net/test_net_sites.c $(client_fake_cell)
src_tests_client_net_test_net_sites_LDADD = $(client_test_libs)
check_tests += src/tests/client/net/test_net_callers
src_tests_client_net_test_net_callers_SOURCES = src/tests/client/net/test_net_callers.c $(client_fake_cell)
src_tests_client_net_test_net_callers_LDADD = $(client_test_libs)
check_tests += src/tests/client/net/test_releases
src_tests_client_net_test_releases_LDADD = $(client_test_libs)

src/tests/client/net/test_releases.$(OBJEXT): $(afs_headers)
check_tests += src/tests/client/net/test_net_paths
src_tests_client_net_test_net_paths_SOURCES = src/tests/client/net/test_net_paths.c $(client_fake_cell)
src_tests_client_net_test_net_paths_LDADD = $(client_test_libs)
