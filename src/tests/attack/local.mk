# SPDX-License-Identifier: BSD-2-Clause
# Attacks on a live server beside honest clients. RXW_ATTACK_GOODPUT=1 RXW_ATTACK_CALLS=2000 for
# what depends on the machine's speed.

check_scripts += src/tests/attack/check-security.sh
check_tests += src/tests/attack/test_attack
src_tests_attack_test_attack_LDADD = $(harness_libs)
