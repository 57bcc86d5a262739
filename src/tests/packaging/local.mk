# SPDX-License-Identifier: BSD-2-Clause
# Tests of packages, releases and ports. The names of the parts are those of the folders.

# -- abi
#
# The binary interfaces: src/tests/packaging/abi/check-abi.sh. headers/ has the public interface without the last
# members of structures: until the first release it follows the library, then it never changes.

check_PROGRAMS += src/tests/packaging/abi/old
src_tests_packaging_abi_old_SOURCES = src/tests/packaging/abi/old.c
src_tests_packaging_abi_old_CPPFLAGS = -I$(srcdir)/src/tests/packaging/abi/headers
src_tests_packaging_abi_old_LDADD = src/rx/librxwire.la $(PTHREAD_LIBS)
check_scripts += src/tests/packaging/abi/check-abi.sh
EXTRA_DIST += \
	src/tests/packaging/abi/headers/rxwire/rxwire.h \
	src/tests/packaging/abi/librxafs-x86_64.abi \
	src/tests/packaging/abi/librxwire-classic-x86_64.abi \
	src/tests/packaging/abi/librxwire-x86_64.abi \
	src/tests/packaging/abi/suppressions

# -- packages
#
# `make package-check`: the packages of Debian, in clean roots. STEPS='build lintian' selects steps.

EXTRA_DIST += src/tests/packaging/packages/run src/tests/packaging/packages/lib.sh src/tests/packaging/packages/cycle src/tests/packaging/packages/debtests \
	src/tests/packaging/packages/run-unit src/tests/packaging/packages/boot src/tests/packaging/packages/manager \
	src/tests/packaging/packages/mount \
	src/tests/packaging/packages/guide src/tests/packaging/packages/user src/tests/packaging/packages/upgrade src/tests/packaging/packages/matrix src/tests/packaging/packages/newcomer \
	src/tests/packaging/packages/rpm contrib/rpm/rxwire.spec contrib/rpm/rxwire.rpmlintrc
# The packaging itself, so that packages can be built from the tarball alone.
EXTRA_DIST += \
	debian/changelog \
	debian/clean \
	debian/control \
	debian/copyright \
	debian/librxwire-classic-dev.install \
	debian/librxwire-classic0.install \
	debian/librxwire-classic0.symbols \
	debian/librxafs-dev.install \
	debian/librxafs0.install \
	debian/librxafs0.symbols \
	debian/python3-rxafs.install \
	debian/librxwire-dev.install \
	debian/librxwire0.install \
	debian/librxwire0.symbols \
	debian/rules \
	debian/python3-rxwire.install \
	debian/rxwire-doc.doc-base \
	debian/rxwire-doc.install \
	debian/rxwire-fileserver.README.Debian \
	debian/rxwire-fileserver.install \
	debian/rxwire-fileserver.postrm \
	debian/rxafs.install \
	debian/rxwire-tools.install \
	debian/rxwire-tools.lintian-overrides \
	debian/source/format \
	debian/source/lintian-overrides \
	debian/tests/control \
	debian/tests/build \
	debian/tests/build-static \
	debian/tests/classic \
	debian/tests/classic-shout.c \
	debian/tests/fetch \
	debian/tests/python
.PHONY: matrix-check package-check
package-check:
	bash $(srcdir)/src/tests/packaging/packages/run $(abs_top_builddir) $(STEPS)
# Builds and tests in roots of other releases: VARIANTS='debian-12 newcomer' selects some.
matrix-check:
	bash $(srcdir)/src/tests/packaging/packages/matrix $(abs_top_builddir) $(VARIANTS)

# -- ports
#
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

# -- release
#
# `make release-check`: the checks before a release (STEPS='news tarball' selects some, KEY= is the signing key). The
# tarball has a bill of materials, if python3 is installed.

EXTRA_DIST += src/tests/packaging/release/run src/tests/packaging/release/sbom
dist-hook:
	test -z '$(PYTHON3)' || $(PYTHON3) $(srcdir)/src/tests/packaging/release/sbom '$(distdir)' '$(VERSION)' \
		> '$(distdir)/rxwire.spdx.json'
.PHONY: release-check
release-check:
	bash $(srcdir)/src/tests/packaging/release/run $(abs_top_builddir) $(STEPS)
