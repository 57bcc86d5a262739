# SPDX-License-Identifier: BSD-2-Clause
# `make soak`: runs that take hours, in sequence. SOAK_SECONDS=60 shortens it, SOAK='sim races' selects some.

EXTRA_DIST += src/tests/robustness/soak/run
.PHONY: soak
soak: all
	bash $(srcdir)/src/tests/robustness/soak/run $(abs_top_builddir) $(SOAK)
