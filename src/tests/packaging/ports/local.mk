# SPDX-License-Identifier: BSD-2-Clause
# `make port-check`: other machines and another C library. PORTS='i386 s390x' selects some.
# In the check: kernels without certain features.

EXTRA_DIST += src/tests/packaging/ports/run src/tests/packaging/ports/libraries.sh src/tests/packaging/ports/emulated \
	src/tests/packaging/ports/refused.sh
.PHONY: port-check list-check-tests
port-check: all
	bash $(srcdir)/src/tests/packaging/ports/run $(abs_top_builddir) $(PORTS)
# The unit tests: programs that can be run by an emulator named on the command line.
list-check-tests:
	@echo $(check_tests)

check_PROGRAMS += src/tests/packaging/ports/refusing
src_tests_packaging_ports_refusing_SOURCES = src/tests/packaging/ports/refusing.c src/tests/packaging/ports/refuse.c src/tests/packaging/ports/refuse.h
src_tests_packaging_ports_refusing_LDADD =
check_scripts += src/tests/packaging/ports/footprint.sh
check_tests += src/tests/packaging/ports/test_refused
src_tests_packaging_ports_test_refused_SOURCES = src/tests/packaging/ports/test_refused.c src/tests/packaging/ports/refuse.c src/tests/packaging/ports/refuse.h
src_tests_packaging_ports_test_refused_LDADD = $(harness_libs)
