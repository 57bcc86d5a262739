# SPDX-License-Identifier: BSD-2-Clause
# `make package-check`: the packages of Debian, in clean roots. STEPS='build lintian' selects steps.

EXTRA_DIST += src/tests/packages/run src/tests/packages/lib.sh src/tests/packages/cycle src/tests/packages/debtests \
	src/tests/packages/run-unit src/tests/packages/boot src/tests/packages/manager \
	src/tests/packages/guide src/tests/packages/matrix src/tests/packages/newcomer \
	src/tests/packages/rpm contrib/rpm/rxwire.spec contrib/rpm/rxwire.rpmlintrc
# The packaging itself, so that packages can be built from the tarball alone.
EXTRA_DIST += \
	debian/changelog \
	debian/clean \
	debian/control \
	debian/copyright \
	debian/librxwire-dev.install \
	debian/librxwire0.install \
	debian/librxwire0.symbols \
	debian/rules \
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
	debian/tests/fetch
.PHONY: matrix-check package-check
package-check:
	bash $(srcdir)/src/tests/packages/run $(abs_top_builddir) $(STEPS)
# Builds and tests in roots of other releases: VARIANTS='debian-12 newcomer' selects some.
matrix-check:
	bash $(srcdir)/src/tests/packages/matrix $(abs_top_builddir) $(VARIANTS)
