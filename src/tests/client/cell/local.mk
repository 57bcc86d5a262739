# SPDX-License-Identifier: BSD-2-Clause
check_tests += src/tests/client/cell/test_cells
src_tests_client_cell_test_cells_SOURCES = src/tests/client/cell/test_cells.c
src_tests_client_cell_test_cells_LDADD = $(client_test_libs)
