# SPDX-License-Identifier: BSD-2-Clause
# Simulation of floors 0 and 1 under a virtual clock. RXW_SIM_SEEDS: how many seeds (300).

sim_common = src/tests/sim/sim.h src/tests/sim/sim_app.c src/tests/sim/sim_node.c src/tests/sim/sim_world.c

check_tests += src/tests/sim/test_seeds
src_tests_sim_test_seeds_SOURCES = src/tests/sim/test_seeds.c $(sim_common)
