# SPDX-License-Identifier: BSD-2-Clause
# `make soak`: what takes hours, one after the other. SOAK_SECONDS=60 shortens it, SOAK='sim races'
# names what to run.

EXTRA_DIST += src/tests/soak/run
.PHONY: soak
soak: all
	bash $(srcdir)/src/tests/soak/run $(abs_top_builddir) $(SOAK)
