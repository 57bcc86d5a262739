# SPDX-License-Identifier: BSD-2-Clause
# Attacks on a live server with honest clients, and their cost for these (`make attack-report`).

attack_sources = \
	src/tests/attack/attacker.c src/tests/attack/attacker.h \
	src/tests/attack/attacks.c src/tests/attack/honest.c

check_scripts += src/tests/attack/check-security.sh
check_tests += src/tests/attack/test_attack
src_tests_attack_test_attack_SOURCES = src/tests/attack/test_attack.c $(attack_sources)
src_tests_attack_test_attack_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
src_tests_attack_test_attack_LDADD = $(harness_libs)

check_tests += src/tests/attack/test_cookies
src_tests_attack_test_cookies_LDADD = $(harness_libs)

check_tests += src/tests/attack/test_silent
src_tests_attack_test_silent_LDADD = $(harness_libs)

check_tests += src/tests/attack/test_client
src_tests_attack_test_client_LDADD = $(harness_libs)

EXTRA_DIST += src/tests/attack/report.py
.PHONY: attack-report
if HAVE_CHECK
EXTRA_PROGRAMS += src/tests/attack/goodput
src_tests_attack_goodput_SOURCES = src/tests/attack/goodput.c $(attack_sources)
src_tests_attack_goodput_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
src_tests_attack_goodput_LDADD = $(harness_libs)
CLEANFILES += src/tests/attack/goodput

attack-report: src/tests/attack/goodput
	python3 -B $(srcdir)/src/tests/attack/report.py src/tests/attack/goodput
endif
