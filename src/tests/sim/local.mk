# SPDX-License-Identifier: BSD-2-Clause
# Simulation of floors 0 and 1 under a virtual clock. RXW_SIM_SEEDS: how many seeds (300).

sim_common = src/tests/sim/sim.h src/tests/sim/sim_app.c src/tests/sim/sim_node.c src/tests/sim/sim_world.c

check_tests += src/tests/sim/test_seeds
src_tests_sim_test_seeds_SOURCES = src/tests/sim/test_seeds.c $(sim_common)

# RXW_SIM_WINDOW_STEP=N takes every N-th pair.
check_tests += src/tests/sim/test_windows
src_tests_sim_test_windows_SOURCES = src/tests/sim/test_windows.c $(sim_common)

check_tests += src/tests/sim/test_limits
src_tests_sim_test_limits_SOURCES = src/tests/sim/test_limits.c $(sim_common)
src_tests_sim_test_limits_LDADD = $(LDADD) -lm
