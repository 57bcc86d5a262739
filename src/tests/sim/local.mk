# SPDX-License-Identifier: BSD-2-Clause
# Simulation of floors 0 and 1 under a virtual clock. RXW_SIM_SEEDS: how many seeds (300).
# RXW_TEST_CLASS: under this security class.

sim_common = src/tests/sim/sim.h src/tests/sim/sim_app.c src/tests/sim/sim_args.c \
	src/tests/sim/sim_class.c src/tests/sim/sim_node.c src/tests/sim/sim_path.c src/tests/sim/sim_ref.c \
	src/tests/sim/sim_way.c src/tests/sim/sim_world.c src/tests/link/codel.c src/tests/link/codel.h \
	src/tests/link/way.c src/tests/link/way.h src/tests/link/random.h $(support_host)

check_tests += src/tests/sim/test_seeds
src_tests_sim_test_seeds_SOURCES = src/tests/sim/test_seeds.c $(sim_common)
src_tests_sim_test_seeds_LDADD = $(LDADD) -lm

# RXW_SIM_WINDOW_STEP=N takes every N-th pair.
check_tests += src/tests/sim/test_windows
src_tests_sim_test_windows_SOURCES = src/tests/sim/test_windows.c $(sim_common)
src_tests_sim_test_windows_LDADD = $(LDADD) -lm

# The profiles of the link emulator. RXW_SIM_LONG_SEEDS: how many seeds (1) of each.
check_tests += src/tests/sim/test_long
src_tests_sim_test_long_SOURCES = src/tests/sim/test_long.c src/tests/link/profile.c src/tests/link/profile.h $(sim_common)
src_tests_sim_test_long_LDADD = $(LDADD) $(INIH_LIBS) -lm
# The same with many seeds, with a table of percentiles: hours. make sim-long SIM_SEEDS=100 SIM_ARGS='--only mobile-100'
SIM_SEEDS = 1000
SIM_ARGS =
.PHONY: sim-long
sim-long: src/tests/sim/test_long$(EXEEXT)
	RXW_SIM_LONG_SEEDS=$(SIM_SEEDS) src/tests/sim/test_long$(EXEEXT) $(SIM_ARGS)

# Old peers see nothing of wide windows but the offer.
check_tests += src/tests/sim/test_offer
src_tests_sim_test_offer_SOURCES = src/tests/sim/test_offer.c $(sim_common)
src_tests_sim_test_offer_LDADD = $(LDADD) -lm

# ECN: queues that mark, and paths that change marks.
check_tests += src/tests/sim/test_marks
src_tests_sim_test_marks_SOURCES = src/tests/sim/test_marks.c $(sim_common)
src_tests_sim_test_marks_LDADD = $(LDADD) -lm

# RXW_SIM_PATH_SEEDS: how many seeds (1) of each case.
check_tests += src/tests/sim/test_path
src_tests_sim_test_path_SOURCES = src/tests/sim/test_path.c $(sim_common)
src_tests_sim_test_path_LDADD = $(LDADD) -lm

# Trains, and packets for an ACK. RXW_SIM_PACE_SEEDS: how many seeds (1) of each case.
check_tests += src/tests/sim/test_pace
src_tests_sim_test_pace_SOURCES = src/tests/sim/test_pace.c $(sim_common)
src_tests_sim_test_pace_LDADD = $(LDADD) -lm

# The work for acknowledgements, in instructions.
check_PROGRAMS += src/tests/sim/gaps
src_tests_sim_gaps_SOURCES = src/tests/sim/gaps.c $(sim_common)
src_tests_sim_gaps_LDADD = $(LDADD) -lm
check_scripts += src/tests/sim/gaps.sh

check_tests += src/tests/sim/test_room
src_tests_sim_test_room_SOURCES = src/tests/sim/test_room.c $(sim_common)
src_tests_sim_test_room_LDADD = $(LDADD) -lm

# RXW_SIM_MTU_SEEDS: how many seeds (1) of each case.
check_tests += src/tests/sim/test_mtu
src_tests_sim_test_mtu_SOURCES = src/tests/sim/test_mtu.c $(sim_common)
src_tests_sim_test_mtu_LDADD = $(LDADD) -lm

check_tests += src/tests/sim/test_limits
src_tests_sim_test_limits_SOURCES = src/tests/sim/test_limits.c $(sim_common)
src_tests_sim_test_limits_LDADD = $(LDADD) -lm

check_tests += src/tests/sim/test_cancel
src_tests_sim_test_cancel_SOURCES = src/tests/sim/test_cancel.c $(sim_common)
src_tests_sim_test_cancel_LDADD = $(LDADD) -lm

# What is promised, as statistics of many seeds. make soak takes 1,000.
check_tests += src/tests/sim/test_aims
src_tests_sim_test_aims_SOURCES = src/tests/sim/test_aims.c $(sim_common)
src_tests_sim_test_aims_LDADD = $(LDADD) -lm

# rxkad and rxgk at each level: RXW_SIM_CLASS_SEEDS (20) of each. make soak takes 1,000.
check_tests += src/tests/sim/test_security
src_tests_sim_test_security_SOURCES = src/tests/sim/test_security.c $(sim_common)
src_tests_sim_test_security_LDADD = $(LDADD) -lm

# RXW_SIM_PAUSES_SEEDS: how many seeds (1) of each case.
check_tests += src/tests/sim/test_pauses
src_tests_sim_test_pauses_SOURCES = src/tests/sim/test_pauses.c $(sim_common)
src_tests_sim_test_pauses_LDADD = $(LDADD) -lm
