# SPDX-License-Identifier: BSD-2-Clause
# `make coverage`: lines of floors 0 and 1 that their tests and the fuzz corpora run, 90 % at least.

EXTRA_DIST += src/tests/coverage/run src/tests/coverage/table.py
.PHONY: coverage
coverage:
	bash $(srcdir)/src/tests/coverage/run $(abs_top_builddir)
