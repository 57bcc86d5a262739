# SPDX-License-Identifier: BSD-2-Clause
# The examples are not part of the build: `make installcheck` builds them against the installed copy.

example_sources = \
	examples/Makefile \
	examples/README.md \
	examples/shout-client.c \
	examples/shout-server.c

EXTRA_DIST += $(example_sources) src/tests/check-examples.sh

installcheck-local:
	@top_srcdir='$(abs_top_srcdir)' CC='$(CC)' SANITIZERS='$(enable_sanitizers)' DESTDIR='$(DESTDIR)' \
		$(SHELL) $(srcdir)/src/tests/check-examples.sh '$(prefix)' || test $$? -eq 77
