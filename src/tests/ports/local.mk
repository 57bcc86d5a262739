# SPDX-License-Identifier: BSD-2-Clause
# `make port-check`: other machines and another C library. PORTS='i386 s390x' selects some.
# In the check: kernels without certain features.

EXTRA_DIST += src/tests/ports/run src/tests/ports/libraries.sh src/tests/ports/emulated \
	src/tests/ports/refused.sh
.PHONY: port-check list-check-tests
port-check: all
	bash $(srcdir)/src/tests/ports/run $(abs_top_builddir) $(PORTS)
# The unit tests: programs that can be run by an emulator named on the command line.
list-check-tests:
	@echo $(check_tests)

check_PROGRAMS += src/tests/ports/refusing
src_tests_ports_refusing_SOURCES = src/tests/ports/refusing.c src/tests/ports/refuse.c src/tests/ports/refuse.h
src_tests_ports_refusing_LDADD =
check_scripts += src/tests/ports/footprint.sh
check_tests += src/tests/ports/test_refused
src_tests_ports_test_refused_SOURCES = src/tests/ports/test_refused.c src/tests/ports/refuse.c src/tests/ports/refuse.h
src_tests_ports_test_refused_LDADD = $(harness_libs)
