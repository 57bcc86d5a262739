# SPDX-License-Identifier: BSD-2-Clause
# `make check`: no root, no network beyond loopback, nothing installed, in parallel.
#
# A unit test is one line in the local.mk of its folder, or of the folder above: check_tests +=
# src/tests/.../test_NAME. Its source is src/tests/.../test_NAME.c; it is linked with $(LDADD) below. A test that needs
# more sets src_tests_..._test_NAME_SOURCES, _LDADD, _CFLAGS. A script is one line check_scripts += NAME.sh. An
# interface file, NAME.xg, is a test of rxwgen's output: src/tests/xg/roundtrip.sh.
# Exit status: 0 pass, 77 skip (print the reason), others fail.

check_tests =
check_scripts =

LDADD = src/observe/librxwire-observe.a src/rx/librxwire_core.la $(CHECK_LIBS) $(PTHREAD_LIBS)
TEST_CPPFLAGS = -DRXW_TEST_SRCDIR='"$(abs_top_srcdir)/src/tests"' -I$(top_srcdir) $(CHECK_CFLAGS)
AM_CPPFLAGS += $(TEST_CPPFLAGS)

# What several kinds of tests share: each list is the sources of one part.

support_test_class = src/tests/support/test_class.c src/tests/support/test_class.h
support_internals = src/tests/support/internals.c src/tests/support/internals.h $(support_test_class)
support_counters = src/tests/support/counters.h
support_ports = src/tests/support/ports.h
support_host = src/tests/support/host.c src/tests/support/host.h $(support_test_class)
support_challenger = src/tests/support/challenger.c src/tests/support/challenger.h
support_faults = src/tests/support/faults.c src/tests/support/faults.h
support_constants = src/tests/support/constants.c src/tests/support/constants.h $(support_faults)
support_asked = src/tests/support/asked.c src/tests/support/asked.h
support_asked_flags = -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=free,--wrap=aligned_alloc,--wrap=posix_memalign

# The longest tests start first, so that the run does not end waiting for them.
include src/tests/robustness/local.mk
include src/tests/sim/local.mk
include src/tests/common/local.mk
include src/tests/link/local.mk
include src/tests/system/local.mk
include src/tests/rx/local.mk
include src/tests/observe/local.mk
include src/tests/lines/local.mk
include src/tests/classic/local.mk
include src/tests/afs/local.mk
include src/tests/client/local.mk
include src/tests/rxafs/local.mk
include src/tests/volume/store/local.mk
include src/tests/protection/local.mk
include src/tests/admin/local.mk
include src/tests/fileserver/local.mk
include src/tests/volume/export/local.mk
include src/tests/tools/local.mk
include src/tests/bench/local.mk
include src/tests/packaging/local.mk
include src/tests/rxwgen/local.mk
include src/tests/xg/local.mk
include src/tests/python/local.mk

# `make coverage`: lines of src/rx/base and src/rx/proto that are run by their tests and the fuzz corpora, at
# least 90 %.

EXTRA_DIST += src/tests/coverage/run src/tests/coverage/table.py
.PHONY: coverage
coverage:
	bash $(srcdir)/src/tests/coverage/run $(abs_top_builddir)

# Recorded packets that the tests read (RXW_TEST_SRCDIR "/vectors/NAME.json").

EXTRA_DIST += \
	src/tests/vectors/README.md \
	src/tests/vectors/packets-ack.json \
	src/tests/vectors/packets-data.json \
	src/tests/vectors/packets-jumbo.json \
	src/tests/vectors/packets-misc.json \
	src/tests/vectors/rxgk-exchanges.json \
	src/tests/vectors/rxkad-exchanges.json \
	src/tests/vectors/rxkad-primitives.json \
	src/tests/vectors/rxstats.json \
	src/tests/vectors/scenarios.json

check_scripts += src/tests/check-calls.sh
check_scripts += src/tests/check-layers.sh
check_scripts += src/tests/check-headers.sh
check_scripts += src/tests/check-names.sh
check_scripts += src/tests/check-exports.sh
check_scripts += src/tests/check-manual.sh
check_scripts += src/tests/check-documents.sh
check_scripts += src/tests/check-words.sh
check_scripts += src/tests/check-build-systems.sh
check_scripts += src/tests/check-cookbook.sh
check_scripts += src/tests/check-loops.sh
EXTRA_DIST += src/tests/asserts.h src/tests/documents.py src/tests/kernel.h src/tests/main.h src/tests/mentions.py
EXTRA_DIST += src/tests/check-calls.py src/tests/check-names.py src/tests/cookbook.c src/tests/words.py
check_scripts += src/tests/check-conformance.sh

if HAVE_CHECK
check_PROGRAMS += $(check_tests)
TESTS += $(check_tests)
else
check-local:
	@echo "NOTE: the unit tests were left out: libcheck was not found (Debian package: check)"
endif
dist_check_SCRIPTS += $(check_scripts)
TESTS += $(check_scripts)

# Time limit in seconds for one program or script. A slow or busy builder needs several times that of an idle machine.
TEST_LIMIT = 900
TEST_EXTENSIONS = .sh .xg
LOG_COMPILER = timeout -k 10 $(TEST_LIMIT)
SH_LOG_COMPILER = timeout -k 10 $(TEST_LIMIT) $(SHELL)
XG_LOG_COMPILER = timeout -k 10 $(TEST_LIMIT) $(SHELL) $(srcdir)/src/tests/xg/roundtrip.sh

AM_TESTS_ENVIRONMENT = \
	export top_srcdir='$(abs_top_srcdir)' top_builddir='$(abs_top_builddir)' \
		CC='$(CC)' CXX='$(CXX)' NM='$(NM)' SANITIZERS='$(enable_sanitizers)'; \
	. $(srcdir)/src/tests/environment;
EXTRA_DIST += src/tests/environment src/tests/all
