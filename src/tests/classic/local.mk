# SPDX-License-Identifier: BSD-2-Clause
# librxwire-classic: check_tests += src/tests/classic/test_NAME. Tests include headers as programs do.

EXTRA_DIST += src/tests/classic/port.h
classic_test_libs = src/classic/librxwire-classic.la src/rx/librxwire.la $(CHECK_LIBS) $(PTHREAD_LIBS)
CLASSIC_TEST_CPPFLAGS = $(AM_CPPFLAGS) $(CLASSIC_CPPFLAGS)

check_tests += src/tests/classic/test_calls
src_tests_classic_test_calls_CPPFLAGS = $(CLASSIC_TEST_CPPFLAGS)
src_tests_classic_test_calls_LDADD = $(classic_test_libs)
check_tests += src/tests/classic/test_security
src_tests_classic_test_security_CPPFLAGS = $(CLASSIC_TEST_CPPFLAGS)
src_tests_classic_test_security_LDADD = $(classic_test_libs)
check_tests += src/tests/classic/test_stubs
src_tests_classic_test_stubs_CPPFLAGS = $(CLASSIC_TEST_CPPFLAGS)
src_tests_classic_test_stubs_LDADD = $(classic_test_libs)
check_tests += src/tests/classic/test_values
src_tests_classic_test_values_CPPFLAGS = $(CLASSIC_TEST_CPPFLAGS)
src_tests_classic_test_values_LDADD = $(classic_test_libs)
check_tests += src/tests/classic/test_xdr
src_tests_classic_test_xdr_CPPFLAGS = $(CLASSIC_TEST_CPPFLAGS)
# Sees each allocation of a decoder, so it takes the library's objects.
src_tests_classic_test_xdr_LDADD = src/classic/librxwire_classic_core.la src/rx/librxwire.la $(CHECK_LIBS) $(PTHREAD_LIBS)
src_tests_classic_test_xdr_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=realloc

check_tests += src/tests/classic/test_rxdebug
src_tests_classic_test_rxdebug_CPPFLAGS = $(CLASSIC_TEST_CPPFLAGS)
src_tests_classic_test_rxdebug_LDADD = $(classic_test_libs)
check_tests += src/tests/classic/test_watch
src_tests_classic_test_watch_CPPFLAGS = $(CLASSIC_TEST_CPPFLAGS)
src_tests_classic_test_watch_LDADD = $(classic_test_libs)
check_scripts += src/tests/classic/headers.sh
