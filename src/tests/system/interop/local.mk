# SPDX-License-Identifier: BSD-2-Clause
# Interoperation with OpenAFS: not part of `make check`, since it needs packages and namespaces.
# `make interop` here, or a stage of `./quickstart check --all`; see src/tests/system/interop/README.md.

EXTRA_DIST += \
	src/tests/system/interop/README.md \
	src/tests/system/interop/admin.bash \
	src/tests/system/interop/admin_afs.c \
	src/tests/system/interop/afsrx.h \
	src/tests/system/interop/afsrx_client.c \
	src/tests/system/interop/afsrx_rxkad.c \
	src/tests/system/interop/afsrx_server.c \
	src/tests/system/interop/afsrx_stats.c \
	src/tests/system/interop/afsrx_util.c \
	src/tests/system/interop/bench.bash \
	src/tests/system/interop/cell.bash \
	src/tests/system/interop/checks.bash \
	src/tests/system/interop/classic.bash \
	src/tests/system/interop/conformance.bash \
	src/tests/system/interop/groups.bash \
	src/tests/system/interop/inside \
	src/tests/system/interop/kernel \
	src/tests/system/interop/kernel_calls.c \
	src/tests/system/interop/kernel_guest.c \
	src/tests/system/interop/kernel_load.c \
	src/tests/system/interop/kernel_machine.bash \
	src/tests/system/interop/kernel_pattern.h \
	src/tests/system/interop/kernel_tests.bash \
	src/tests/system/interop/kernel_writes \
	src/tests/system/interop/kernel_writes.bash \
	src/tests/system/interop/library.bash \
	src/tests/system/interop/localauth_cell.bash \
	src/tests/system/interop/localauth_server.bash \
	src/tests/system/interop/lossy_relay.c \
	src/tests/system/interop/make_dump.c \
	src/tests/system/interop/offer.bash \
	src/tests/system/interop/offer.py \
	src/tests/system/interop/offer_relay.py \
	src/tests/system/interop/packages.bash \
	src/tests/system/interop/protection.bash \
	src/tests/system/interop/run \
	src/tests/system/interop/rxdebug.bash \
	src/tests/system/interop/rxkad.bash \
	src/tests/system/interop/rxfsd.bash \
	src/tests/system/interop/rxperf_client.bash \
	src/tests/system/interop/rxperf_server.bash \
	src/tests/system/interop/served.bash \
	src/tests/system/interop/served.c \
	src/tests/system/interop/served_client.c \
	src/tests/system/interop/store.bash \
	src/tests/system/interop/store_calls.c \
	src/tests/system/interop/store_calls.txt \
	src/tests/system/interop/unvalidated.py \
	src/tests/system/interop/writes.bash \
	src/tests/system/interop/tools.bash \
	src/tests/system/interop/xfstests \
	src/tests/system/interop/xfstests.bash \
	src/tests/system/interop/interop.xg \
	src/tests/system/interop/stubs.bash \
	src/tests/system/interop/stubs.h \
	src/tests/system/interop/stubs_afs.c

# Our side of the group stubs: interop.xg without -b, so that the fields have OpenAFS's names.
interop_stubs = \
	src/tests/system/interop/interop.h src/tests/system/interop/interop.xdr.c \
	src/tests/system/interop/interop.cs.c src/tests/system/interop/interop.ss.c
CLEANFILES += $(interop_stubs)
$(interop_stubs): src/tests/system/interop/interop.xg $(RXWGEN_MADE_HERE)
interop_make = $(AM_V_GEN)$(MKDIR_P) $(@D) && $(RXWGEN) -x -o $@
src/tests/system/interop/interop.h:
	$(interop_make) -h $(srcdir)/src/tests/system/interop/interop.xg
src/tests/system/interop/interop.xdr.c:
	$(interop_make) -c $(srcdir)/src/tests/system/interop/interop.xg
src/tests/system/interop/interop.cs.c:
	$(interop_make) -C $(srcdir)/src/tests/system/interop/interop.xg
src/tests/system/interop/interop.ss.c:
	$(interop_make) -S $(srcdir)/src/tests/system/interop/interop.xg

check_PROGRAMS += src/tests/system/interop/stubs_ours
src_tests_system_interop_stubs_ours_SOURCES = src/tests/system/interop/stubs_ours.c
nodist_src_tests_system_interop_stubs_ours_SOURCES = $(interop_stubs)
src_tests_system_interop_stubs_ours_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_builddir)/src/tests/system/interop
src_tests_system_interop_stubs_ours_LDADD = src/rx/librxwire.la $(PTHREAD_LIBS)
$(src_tests_system_interop_stubs_ours_OBJECTS): $(interop_stubs)

# Our side of the group rxkad.
check_PROGRAMS += src/tests/system/interop/rxkad_ours
src_tests_system_interop_rxkad_ours_SOURCES = src/tests/system/interop/rxkad_ours.c
src_tests_system_interop_rxkad_ours_LDADD = src/rx/librxwire.la $(PTHREAD_LIBS)

# Our side of the groups localauth_server and localauth_cell, and the keys of protection.
check_PROGRAMS += src/tests/system/interop/cell_ours
src_tests_system_interop_cell_ours_SOURCES = src/tests/system/interop/cell_ours.c
src_tests_system_interop_cell_ours_LDADD = src/afs/librxafs.la src/rx/librxwire.la $(PTHREAD_LIBS)
$(src_tests_system_interop_cell_ours_OBJECTS): $(afs_headers)

# Our client of the group protection.
check_PROGRAMS += src/tests/system/interop/pt_ours
src_tests_system_interop_pt_ours_SOURCES = src/tests/system/interop/pt_ours.c
src_tests_system_interop_pt_ours_LDADD = src/afs/librxafs.la src/rx/librxwire.la $(PTHREAD_LIBS)
$(src_tests_system_interop_pt_ours_OBJECTS): $(afs_headers)

.PHONY: interop
interop: all src/tests/system/interop/stubs_ours src/tests/system/interop/rxkad_ours src/tests/system/interop/cell_ours \
		src/tests/system/interop/pt_ours
	bash $(srcdir)/src/tests/system/interop/run $(abs_top_builddir)
