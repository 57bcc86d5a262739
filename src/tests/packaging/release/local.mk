# SPDX-License-Identifier: BSD-2-Clause
# `make release-check`: the checks before a release (STEPS='news tarball' selects some, KEY= is the signing key). The
# tarball has a bill of materials, if python3 is installed.

EXTRA_DIST += src/tests/packaging/release/run src/tests/packaging/release/sbom
dist-hook:
	test -z '$(PYTHON3)' || $(PYTHON3) $(srcdir)/src/tests/packaging/release/sbom '$(distdir)' '$(VERSION)' \
		> '$(distdir)/rxwire.spdx.json'
.PHONY: release-check
release-check:
	bash $(srcdir)/src/tests/packaging/release/run $(abs_top_builddir) $(STEPS)
