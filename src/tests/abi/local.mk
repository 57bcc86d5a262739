# SPDX-License-Identifier: BSD-2-Clause
# The binary interface: src/tests/abi/check-abi.sh. headers/ are older headers, from before structures grew; they
# never change.

check_PROGRAMS += src/tests/abi/old
src_tests_abi_old_SOURCES = src/tests/abi/old.c
src_tests_abi_old_CPPFLAGS = -I$(srcdir)/src/tests/abi/headers
src_tests_abi_old_LDADD = src/rx/librxwire.la $(PTHREAD_LIBS)
check_scripts += src/tests/abi/check-abi.sh
EXTRA_DIST += \
	src/tests/abi/headers/rxwire/call.h \
	src/tests/abi/headers/rxwire/config.h \
	src/tests/abi/headers/rxwire/endpoint.h \
	src/tests/abi/headers/rxwire/engine.h \
	src/tests/abi/headers/rxwire/error.h \
	src/tests/abi/headers/rxwire/rxwire.h \
	src/tests/abi/headers/rxwire/security.h \
	src/tests/abi/headers/rxwire/service.h \
	src/tests/abi/headers/rxwire/stats.h \
	src/tests/abi/headers/rxwire/types.h \
	src/tests/abi/headers/rxwire/xdr.h \
	src/tests/abi/librxwire-x86_64.abi \
	src/tests/abi/suppressions
