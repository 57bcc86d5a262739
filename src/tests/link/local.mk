# SPDX-License-Identifier: BSD-2-Clause
# An emulated link. The core, which has neither I/O nor a clock: way.c (one direction) with codel.c, packet.c, nat.c,
# profile.c. The program `link` joins two network namespaces by it.

link_core = src/tests/link/way.c src/tests/link/way.h src/tests/link/codel.c src/tests/link/codel.h \
	src/tests/link/random.h src/tests/link/packet.c src/tests/link/packet.h src/tests/link/nat.c \
	src/tests/link/nat.h src/tests/link/profile.c src/tests/link/profile.h

check_PROGRAMS += src/tests/link/link
src_tests_link_link_SOURCES = src/tests/link/main.c src/tests/link/wire.c src/tests/link/wire.h src/tests/link/device.c \
	src/tests/link/device.h src/tests/link/spoil.c src/tests/link/spoil.h $(link_core)
src_tests_link_link_LDADD = $(INIH_LIBS) -lm
EXTRA_DIST += src/tests/link/profiles

check_tests += src/tests/link/test_way src/tests/link/test_packet src/tests/link/test_profile
src_tests_link_test_way_SOURCES = src/tests/link/test_way.c $(link_core)
src_tests_link_test_way_LDADD = $(INIH_LIBS) $(CHECK_LIBS) $(PTHREAD_LIBS) -lm
src_tests_link_test_packet_SOURCES = src/tests/link/test_packet.c $(link_core)
src_tests_link_test_packet_LDADD = $(INIH_LIBS) $(CHECK_LIBS) $(PTHREAD_LIBS) -lm
src_tests_link_test_profile_SOURCES = src/tests/link/test_profile.c $(link_core)
src_tests_link_test_profile_LDADD = $(INIH_LIBS) $(CHECK_LIBS) $(PTHREAD_LIBS) -lm

# The program, between namespaces; skipped where there are none. lab runs any command there.
check_scripts += src/tests/link/link.sh src/tests/link/marks.sh src/tests/link/traced.sh src/tests/link/rule8.sh
EXTRA_DIST += src/tests/link/lab src/tests/link/marks.py src/tests/link/needs.sh src/tests/link/probe.py src/tests/link/limits \
	src/tests/link/traced.py src/tests/link/rule8.py src/tests/link/netem src/tests/link/netem.py src/tests/link/datagrams.c
