# SPDX-License-Identifier: BSD-2-Clause
# Unit tests of src/classic: programs for classic Rx.

CLASSIC_TEST_CPPFLAGS = $(AM_CPPFLAGS) $(CLASSIC_CPPFLAGS)
CLASSIC_TEST_LDADD = src/classic/librxwire_classic_core.la $(CHECK_LIBS) $(PTHREAD_LIBS)

check_tests += src/tests/classic/test_rxdebug
src_tests_classic_test_rxdebug_CPPFLAGS = $(CLASSIC_TEST_CPPFLAGS)
src_tests_classic_test_rxdebug_LDADD = $(CLASSIC_TEST_LDADD)
