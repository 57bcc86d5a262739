# SPDX-License-Identifier: BSD-2-Clause
# `make release-check`: all that must be true before a release (STEPS='news tarball' names some of it,
# KEY= the key that signs). The tarball has a bill of materials, if there is a python3 to write it.

EXTRA_DIST += src/tests/release/run src/tests/release/sbom
dist-hook:
	test -z '$(PYTHON3)' || $(PYTHON3) $(srcdir)/src/tests/release/sbom '$(distdir)' '$(VERSION)' \
		> '$(distdir)/rxwire.spdx.json'
.PHONY: release-check
release-check:
	bash $(srcdir)/src/tests/release/run $(abs_top_builddir) $(STEPS)
