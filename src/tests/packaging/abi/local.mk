# SPDX-License-Identifier: BSD-2-Clause
# The binary interfaces: src/tests/packaging/abi/check-abi.sh. headers/ are those of the library without the last members
# of structures: until the first release they follow the library, then they never change.

check_PROGRAMS += src/tests/packaging/abi/old
src_tests_packaging_abi_old_SOURCES = src/tests/packaging/abi/old.c
src_tests_packaging_abi_old_CPPFLAGS = -I$(srcdir)/src/tests/packaging/abi/headers
src_tests_packaging_abi_old_LDADD = src/rx/librxwire.la $(PTHREAD_LIBS)
check_scripts += src/tests/packaging/abi/check-abi.sh
EXTRA_DIST += \
	src/tests/packaging/abi/headers/rxwire/call.h \
	src/tests/packaging/abi/headers/rxwire/config.h \
	src/tests/packaging/abi/headers/rxwire/connection.h \
	src/tests/packaging/abi/headers/rxwire/endpoint.h \
	src/tests/packaging/abi/headers/rxwire/engine.h \
	src/tests/packaging/abi/headers/rxwire/error.h \
	src/tests/packaging/abi/headers/rxwire/rxwire.h \
	src/tests/packaging/abi/headers/rxwire/security.h \
	src/tests/packaging/abi/headers/rxwire/service.h \
	src/tests/packaging/abi/headers/rxwire/stats.h \
	src/tests/packaging/abi/headers/rxwire/types.h \
	src/tests/packaging/abi/headers/rxwire/xdr.h \
	src/tests/packaging/abi/librxwire-classic-x86_64.abi \
	src/tests/packaging/abi/librxwire-x86_64.abi \
	src/tests/packaging/abi/suppressions
