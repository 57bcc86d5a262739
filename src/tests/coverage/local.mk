# SPDX-License-Identifier: BSD-2-Clause
# `make coverage`: lines of src/rx/base and src/rx/proto that are run by their tests and the fuzz corpora, at least 90
# %.

EXTRA_DIST += src/tests/coverage/run src/tests/coverage/table.py
.PHONY: coverage
coverage:
	bash $(srcdir)/src/tests/coverage/run $(abs_top_builddir)
