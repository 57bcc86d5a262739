# SPDX-License-Identifier: BSD-2-Clause
# Several paths for one transfer.

# A model of links and a server. RXW_SIM_SEEDS: how many seeds of each test (170), RXW_SIM_FIRST: from which on.
check_tests += src/tests/client/paths/test_spread
src_tests_client_paths_test_spread_LDADD = $(client_test_libs)

src/tests/client/paths/test_spread.$(OBJEXT): $(afs_headers)
