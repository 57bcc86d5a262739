# SPDX-License-Identifier: BSD-2-Clause
# Interoperation with OpenAFS: not part of `make check`, since it needs packages and namespaces.
# `make interop` here, or a stage of `./quickstart check --all`; see src/tests/interop/README.md.

EXTRA_DIST += \
	src/tests/interop/README.md \
	src/tests/interop/afsrx.h \
	src/tests/interop/afsrx_client.c \
	src/tests/interop/afsrx_rxkad.c \
	src/tests/interop/afsrx_server.c \
	src/tests/interop/afsrx_stats.c \
	src/tests/interop/afsrx_util.c \
	src/tests/interop/cell.bash \
	src/tests/interop/checks.bash \
	src/tests/interop/conformance.bash \
	src/tests/interop/groups.bash \
	src/tests/interop/inside \
	src/tests/interop/kernel \
	src/tests/interop/kernel_guest.c \
	src/tests/interop/kernel_tests.bash \
	src/tests/interop/library.bash \
	src/tests/interop/localauth_cell.bash \
	src/tests/interop/localauth_server.bash \
	src/tests/interop/lossy_relay.c \
	src/tests/interop/make_dump.c \
	src/tests/interop/packages.bash \
	src/tests/interop/run \
	src/tests/interop/rxdebug.bash \
	src/tests/interop/rxkad.bash \
	src/tests/interop/rxfsd.bash \
	src/tests/interop/rxperf_client.bash \
	src/tests/interop/rxperf_server.bash \
	src/tests/interop/unvalidated.py \
	src/tests/interop/tools.bash \
	src/tests/interop/interop.xg \
	src/tests/interop/stubs.bash \
	src/tests/interop/stubs.h \
	src/tests/interop/stubs_afs.c

# Our side of the group stubs: interop.xg without -b, so that the fields have OpenAFS's names.
interop_stubs = \
	src/tests/interop/interop.h src/tests/interop/interop.xdr.c \
	src/tests/interop/interop.cs.c src/tests/interop/interop.ss.c
CLEANFILES += $(interop_stubs)
$(interop_stubs): src/tests/interop/interop.xg $(RXWGEN_MADE_HERE)
interop_make = $(AM_V_GEN)$(MKDIR_P) $(@D) && $(RXWGEN) -x -o $@
src/tests/interop/interop.h:
	$(interop_make) -h $(srcdir)/src/tests/interop/interop.xg
src/tests/interop/interop.xdr.c:
	$(interop_make) -c $(srcdir)/src/tests/interop/interop.xg
src/tests/interop/interop.cs.c:
	$(interop_make) -C $(srcdir)/src/tests/interop/interop.xg
src/tests/interop/interop.ss.c:
	$(interop_make) -S $(srcdir)/src/tests/interop/interop.xg

check_PROGRAMS += src/tests/interop/stubs_ours
src_tests_interop_stubs_ours_SOURCES = src/tests/interop/stubs_ours.c
nodist_src_tests_interop_stubs_ours_SOURCES = $(interop_stubs)
src_tests_interop_stubs_ours_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_builddir)/src/tests/interop
src_tests_interop_stubs_ours_LDADD = src/rx/librxwire.la $(PTHREAD_LIBS)
$(src_tests_interop_stubs_ours_OBJECTS): $(interop_stubs)

# Our side of the group rxkad.
check_PROGRAMS += src/tests/interop/rxkad_ours
src_tests_interop_rxkad_ours_SOURCES = src/tests/interop/rxkad_ours.c
src_tests_interop_rxkad_ours_LDADD = src/rx/librxwire.la $(PTHREAD_LIBS)

# Our side of the groups localauth_server and localauth_cell.
check_PROGRAMS += src/tests/interop/cell_ours
src_tests_interop_cell_ours_SOURCES = src/tests/interop/cell_ours.c
src_tests_interop_cell_ours_LDADD = src/afs/librxafs.la src/rx/librxwire.la $(PTHREAD_LIBS)
$(src_tests_interop_cell_ours_OBJECTS): $(afs_headers)

.PHONY: interop
interop: all src/tests/interop/stubs_ours src/tests/interop/rxkad_ours src/tests/interop/cell_ours
	bash $(srcdir)/src/tests/interop/run $(abs_top_builddir)
