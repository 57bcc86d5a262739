# SPDX-License-Identifier: BSD-2-Clause
# Unit tests of src/rx/proto: one line for each program; its source is the same name with .c.

proto_bench = src/tests/rx/proto/bench.c src/tests/rx/proto/bench.h

check_tests += src/tests/rx/proto/test_scenarios
src_tests_rx_proto_test_scenarios_SOURCES = src/tests/rx/proto/test_scenarios.c $(proto_bench)
