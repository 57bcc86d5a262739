# SPDX-License-Identifier: BSD-2-Clause
# `make package-check`: the packages of Debian, in clean roots. STEPS='build lintian' selects steps.

EXTRA_DIST += src/tests/packaging/packages/run src/tests/packaging/packages/lib.sh src/tests/packaging/packages/cycle src/tests/packaging/packages/debtests \
	src/tests/packaging/packages/run-unit src/tests/packaging/packages/boot src/tests/packaging/packages/manager \
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
