# SPDX-License-Identifier: BSD-2-Clause
# `make package-check`: the packages of Debian, in clean roots. STEPS='build lintian' names what to do.

EXTRA_DIST += src/tests/packages/run src/tests/packages/lib.sh src/tests/packages/cycle src/tests/packages/debtests \
	src/tests/packages/run-unit src/tests/packages/boot \
	src/tests/packages/rpm contrib/rpm/rxwire.spec contrib/rpm/rxwire.rpmlintrc
# The packaging itself, so that packages can be built from the tarball alone.
EXTRA_DIST += \
	debian/changelog \
	debian/control \
	debian/copyright \
	debian/librxwire-dev.install \
	debian/librxwire0.install \
	debian/librxwire0.symbols \
	debian/rules \
	debian/rxwire-doc.install \
	debian/rxwire-fileserver.install \
	debian/rxwire-fileserver.lintian-overrides \
	debian/rxwire-fileserver.postrm \
	debian/rxwire-tools.install \
	debian/rxwire-tools.lintian-overrides \
	debian/source/format \
	debian/source/lintian-overrides \
	debian/tests/control \
	debian/tests/build \
	debian/tests/fetch
.PHONY: package-check
package-check:
	bash $(srcdir)/src/tests/packages/run $(abs_top_builddir) $(STEPS)
