# SPDX-License-Identifier: BSD-2-Clause
# Attacks on a live server with honest clients, and their cost for these (`make attack-report`).

attack_sources = \
	src/tests/robustness/attack/attacker.c src/tests/robustness/attack/attacker.h \
	src/tests/robustness/attack/attacks.c src/tests/robustness/attack/honest.c

check_scripts += src/tests/robustness/attack/check-security.sh
check_tests += src/tests/robustness/attack/test_attack
src_tests_robustness_attack_test_attack_SOURCES = src/tests/robustness/attack/test_attack.c $(attack_sources)
src_tests_robustness_attack_test_attack_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
src_tests_robustness_attack_test_attack_LDADD = $(harness_libs)

check_tests += src/tests/robustness/attack/test_cookies
src_tests_robustness_attack_test_cookies_LDADD = $(harness_libs)

check_tests += src/tests/robustness/attack/test_silent
src_tests_robustness_attack_test_silent_LDADD = $(harness_libs)

check_tests += src/tests/robustness/attack/test_client
src_tests_robustness_attack_test_client_LDADD = $(harness_libs)

# The worst cost of a packet. The core is compiled once more, to count basic blocks.
cost_sources = src/tests/robustness/attack/cost.c src/tests/robustness/attack/cost.h $(support_host)
check_LTLIBRARIES += src/tests/robustness/attack/libcounted.la
src_tests_robustness_attack_libcounted_la_SOURCES = $(rx_base_sources) $(rx_proto_sources)
src_tests_robustness_attack_libcounted_la_LIBTOOLFLAGS = $(COMPILE_ONCE)
src_tests_robustness_attack_libcounted_la_CFLAGS = $(AM_CFLAGS) $(COUNTED_CFLAGS)
check_tests += src/tests/robustness/attack/test_cost
src_tests_robustness_attack_test_cost_SOURCES = src/tests/robustness/attack/cost_blocks.c $(cost_sources)
src_tests_robustness_attack_test_cost_LDADD = src/tests/robustness/attack/libcounted.la $(LDADD)
src_tests_robustness_attack_test_cost_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=memcpy,--wrap=memmove,--wrap=memset
# Its CPU time: make src/tests/robustness/attack/cost
EXTRA_PROGRAMS += src/tests/robustness/attack/cost
src_tests_robustness_attack_cost_SOURCES = src/tests/robustness/attack/cost_time.c $(cost_sources)
CLEANFILES += src/tests/robustness/attack/cost

EXTRA_DIST += src/tests/robustness/attack/report.py
.PHONY: attack-report
if HAVE_CHECK
EXTRA_PROGRAMS += src/tests/robustness/attack/goodput
src_tests_robustness_attack_goodput_SOURCES = src/tests/robustness/attack/goodput.c $(attack_sources)
src_tests_robustness_attack_goodput_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
src_tests_robustness_attack_goodput_LDADD = $(harness_libs)
CLEANFILES += src/tests/robustness/attack/goodput

attack-report: src/tests/robustness/attack/goodput
	python3 -B $(srcdir)/src/tests/robustness/attack/report.py src/tests/robustness/attack/goodput
endif
