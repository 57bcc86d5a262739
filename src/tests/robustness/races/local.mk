# SPDX-License-Identifier: BSD-2-Clause
# Random use of the API by several threads: for RXW_RACES_SECONDS, from seed RXW_TEST_SEED on.

check_tests += src/tests/robustness/races/test_races
src_tests_robustness_races_test_races_SOURCES = src/tests/robustness/races/test_races.c
