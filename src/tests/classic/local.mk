# SPDX-License-Identifier: BSD-2-Clause
# librxwire-classic: check_tests += src/tests/classic/test_NAME. Tests include headers as programs do.

classic_test_libs = src/classic/librxwire-classic.la src/rx/librxwire.la $(CHECK_LIBS) $(PTHREAD_LIBS)
CLASSIC_TEST_CPPFLAGS = $(AM_CPPFLAGS) $(CLASSIC_CPPFLAGS)

check_tests += src/tests/classic/test_calls
src_tests_classic_test_calls_CPPFLAGS = $(CLASSIC_TEST_CPPFLAGS)
src_tests_classic_test_calls_LDADD = $(classic_test_libs)

check_tests += src/tests/classic/test_rxdebug
src_tests_classic_test_rxdebug_CPPFLAGS = $(CLASSIC_TEST_CPPFLAGS)
src_tests_classic_test_rxdebug_LDADD = $(classic_test_libs)
check_tests += src/tests/classic/test_watch
src_tests_classic_test_watch_CPPFLAGS = $(CLASSIC_TEST_CPPFLAGS)
src_tests_classic_test_watch_LDADD = $(classic_test_libs)
# Internals, which the library does not export.
check_tests += src/tests/classic/test_rpctable
src_tests_classic_test_rpctable_CPPFLAGS = $(CLASSIC_TEST_CPPFLAGS)
src_tests_classic_test_rpctable_LDADD = \
	src/classic/librxwire_classic_core.la src/rx/librxwire.la $(CHECK_LIBS) $(PTHREAD_LIBS)
