# SPDX-License-Identifier: BSD-2-Clause
# Tests on a bad network, in namespaces: not part of `make check`, since they need root or user
# namespaces. `make net` here, or a stage of `./quickstart check --all`.

net_programs = src/tests/system/net/net_io
EXTRA_PROGRAMS += $(net_programs)
CLEANFILES += $(net_programs)

# The I/O layer alone on such a link.
src_tests_system_net_net_io_SOURCES = src/tests/system/net/net_io.c
src_tests_system_net_net_io_LDADD = src/rx/librxwire_core.la $(PTHREAD_LIBS)

EXTRA_DIST += src/tests/system/net/run src/tests/system/net/narrow

.PHONY: net net-programs
net-programs: $(net_programs) src/tests/link/link
net: all net-programs
	bash $(srcdir)/src/tests/system/net/run $(abs_top_builddir)
	bash $(srcdir)/src/tests/system/net/narrow $(abs_top_builddir)
