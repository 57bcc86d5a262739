# SPDX-License-Identifier: BSD-2-Clause
# Properties of each security class at each level, the library's own and an application's.

security_suite = src/tests/rx/security/kinds.c src/tests/rx/security/kinds.h \
	src/tests/rx/security/relay.c src/tests/rx/security/relay.h \
	src/tests/rx/security/world.c src/tests/rx/security/world.h $(support_internals) \
	$(support_constants) \
	examples/psk/psk.c examples/psk/psk.h
security_suite_cppflags = $(AM_CPPFLAGS) -I$(srcdir)

check_tests += src/tests/rx/security/test_tamper
src_tests_rx_security_test_tamper_SOURCES = src/tests/rx/security/test_tamper.c $(security_suite)
src_tests_rx_security_test_tamper_CPPFLAGS = $(security_suite_cppflags)

check_tests += src/tests/rx/security/test_exchange
src_tests_rx_security_test_exchange_SOURCES = src/tests/rx/security/test_exchange.c $(security_suite)
src_tests_rx_security_test_exchange_CPPFLAGS = $(security_suite_cppflags)

check_tests += src/tests/rx/security/test_moved
src_tests_rx_security_test_moved_SOURCES = src/tests/rx/security/test_moved.c $(security_suite)
src_tests_rx_security_test_moved_CPPFLAGS = $(security_suite_cppflags)

# The loopback suites, each under one class; `make check-classes`: under each class and level, which
# takes minutes, most of them asleep.
check_scripts += src/tests/rx/security/suites.sh
.PHONY: check-classes
check-classes: all
	$(MAKE) $(AM_MAKEFLAGS) `printf '%s\n' $(check_tests) | grep -E '^src/tests/rx/(api|engine|rpc)/'`
	top_builddir='$(abs_top_builddir)' $(SHELL) $(srcdir)/src/tests/rx/security/suites.sh all
