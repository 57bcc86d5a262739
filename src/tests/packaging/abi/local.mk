# SPDX-License-Identifier: BSD-2-Clause
# The binary interfaces: src/tests/packaging/abi/check-abi.sh. headers/ has the public interface without the last
# members of structures: until the first release it follows the library, then it never changes.

check_PROGRAMS += src/tests/packaging/abi/old
src_tests_packaging_abi_old_SOURCES = src/tests/packaging/abi/old.c
src_tests_packaging_abi_old_CPPFLAGS = -I$(srcdir)/src/tests/packaging/abi/headers
src_tests_packaging_abi_old_LDADD = src/rx/librxwire.la $(PTHREAD_LIBS)
check_scripts += src/tests/packaging/abi/check-abi.sh
EXTRA_DIST += \
	src/tests/packaging/abi/headers/rxwire/rxwire.h \
	src/tests/packaging/abi/librxwire-classic-x86_64.abi \
	src/tests/packaging/abi/librxwire-x86_64.abi \
	src/tests/packaging/abi/suppressions
