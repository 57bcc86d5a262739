# SPDX-License-Identifier: BSD-2-Clause
# Tests of whole programs on real sockets and networks. The names of the parts are those of the folders.

# -- kdc
#
# A Kerberos realm on loopback, and tests with real tickets.

EXTRA_DIST += src/tests/system/kdc/kdc.sh src/tests/system/kdc/programs.sh

check_tests += src/tests/system/kdc/test_renewal

check_PROGRAMS += src/tests/system/kdc/ticket_forms
src_tests_system_kdc_ticket_forms_SOURCES = src/tests/system/kdc/ticket_forms.c

check_scripts += src/tests/system/kdc/kdc-forms.sh
check_scripts += src/tests/system/kdc/kdc-long.sh
check_scripts += src/tests/system/kdc/kdc-renew.sh
check_scripts += src/tests/system/kdc/kdc-rig.sh
check_scripts += src/tests/system/kdc/kdc-rxfsd.sh
check_scripts += src/tests/system/kdc/kdc-rxgk.sh
check_scripts += src/tests/system/kdc/kdc-rxperf.sh

# -- trace
#
# Packet traces: the ring and the files, read by the tests' own reader and by tshark.

trace_reader = src/tests/system/trace/reader.c src/tests/system/trace/reader.h

check_tests += src/tests/system/trace/test_trace
src_tests_system_trace_test_trace_SOURCES = src/tests/system/trace/test_trace.c $(trace_reader)
src_tests_system_trace_test_trace_LDADD = $(harness_libs)

check_tests += src/tests/system/trace/test_tshark
src_tests_system_trace_test_tshark_SOURCES = src/tests/system/trace/test_tshark.c $(trace_reader) \
	src/tests/rx/security/relay.c src/tests/rx/security/relay.h
src_tests_system_trace_test_tshark_LDADD = $(harness_libs)

check_scripts += src/tests/system/trace/programs.sh

# -- probes
#
# Static probes: their manual page, their notes in the library, scripts that use them.

check_scripts += src/tests/system/probes/notes.sh
check_scripts += src/tests/system/probes/scripts.sh

# -- net
#
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

# -- interop
#
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
	src/tests/system/interop/bench_volumes.bash \
	src/tests/system/interop/bos.bash \
	src/tests/system/interop/cell.bash \
	src/tests/system/interop/checks.bash \
	src/tests/system/interop/classic.bash \
	src/tests/system/interop/conformance.bash \
	src/tests/system/interop/dumps.bash \
	src/tests/system/interop/groups.bash \
	src/tests/system/interop/inside \
	src/tests/system/interop/kernel \
	src/tests/system/interop/kill_at.py \
	src/tests/system/interop/kernel_calls.c \
	src/tests/system/interop/kernel_guest.c \
	src/tests/system/interop/kernel_load.c \
	src/tests/system/interop/kernel_machine.bash \
	src/tests/system/interop/kernel_pattern.h \
	src/tests/system/interop/kernel_tests.bash \
	src/tests/system/interop/kernel_writes \
	src/tests/system/interop/kernel_writes.bash \
	src/tests/system/interop/killed_at.c \
	src/tests/system/interop/library.bash \
	src/tests/system/interop/list_dump.py \
	src/tests/system/interop/localauth_cell.bash \
	src/tests/system/interop/localauth_server.bash \
	src/tests/system/interop/lossy_relay.c \
	src/tests/system/interop/make_dump.c \
	src/tests/system/interop/mount.bash \
	src/tests/system/interop/move_in.bash \
	src/tests/system/interop/moving.bash \
	src/tests/system/interop/offer.bash \
	src/tests/system/interop/offer.py \
	src/tests/system/interop/offer_relay.py \
	src/tests/system/interop/packages.bash \
	src/tests/system/interop/protection.bash \
	src/tests/system/interop/pts.bash \
	src/tests/system/interop/pts_calls.txt \
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
	src/tests/system/interop/vl_calls.txt \
	src/tests/system/interop/vos.bash \
	src/tests/system/interop/vos_kills.bash \
	src/tests/system/interop/vos_levels.bash \
	src/tests/system/interop/vos_locations.bash \
	src/tests/system/interop/vos_openafs.bash \
	src/tests/system/interop/vos_servers.bash \
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
src_tests_system_interop_cell_ours_LDADD = src/afs/libafs.la src/rx/librxwire.la $(PTHREAD_LIBS)
$(src_tests_system_interop_cell_ours_OBJECTS): $(afs_headers)

# Our client of the group protection.
check_PROGRAMS += src/tests/system/interop/pt_ours
src_tests_system_interop_pt_ours_SOURCES = src/tests/system/interop/pt_ours.c
src_tests_system_interop_pt_ours_LDADD = src/afs/libafs.la src/rx/librxwire.la $(PTHREAD_LIBS)
$(src_tests_system_interop_pt_ours_OBJECTS): $(afs_headers)

# Our client of the group vos_locations.
check_PROGRAMS += src/tests/system/interop/vl_ours
src_tests_system_interop_vl_ours_SOURCES = src/tests/system/interop/vl_ours.c
src_tests_system_interop_vl_ours_LDADD = src/afs/libafs.la src/rx/librxwire.la $(PTHREAD_LIBS)
$(src_tests_system_interop_vl_ours_OBJECTS): $(afs_headers)

.PHONY: interop
interop: all src/tests/system/interop/stubs_ours src/tests/system/interop/rxkad_ours src/tests/system/interop/cell_ours \
		src/tests/system/interop/pt_ours src/tests/system/interop/vl_ours
	bash $(srcdir)/src/tests/system/interop/run $(abs_top_builddir)

# -- cell
#
# A cell of several machines under faults: not part of `make check`, since it needs packages, root and ten minutes. `./quickstart cell`,
# or a stage of `./quickstart check --all`; see src/tests/system/cell/README.md.

EXTRA_DIST += \
	src/tests/system/cell/README.md \
	src/tests/system/cell/hands.py \
	src/tests/system/cell/load.py \
	src/tests/system/cell/machines.py \
	src/tests/system/cell/main.py \
	src/tests/system/cell/run

# -- conformance
#
# Conformance: a scripted peer against an endpoint of ours, of OpenAFS, or any Rx server. A stage of
# `./quickstart check`, not of `make check`: each item is a test by its own name there.
#
#   make conformance                                  everything, against ours
#   make conformance HOST=server[:PORT] [SERVICE=ID]  what any server may be asked without harm
#   make conformance-table                            the results in doc/conformance.md, of a run now

conformance_programs = src/tests/system/conformance/endpoint
EXTRA_PROGRAMS += $(conformance_programs)
CLEANFILES += $(conformance_programs)
src_tests_system_conformance_endpoint_SOURCES = src/tests/system/conformance/endpoint.c $(support_challenger) $(support_constants)
src_tests_system_conformance_endpoint_LDADD = src/rx/librxwire_core.la $(PTHREAD_LIBS)

EXTRA_DIST += \
	src/tests/system/conformance/README.md \
	src/tests/system/conformance/acks.py \
	src/tests/system/conformance/addresses.py \
	src/tests/system/conformance/basics.py \
	src/tests/system/conformance/calls.py \
	src/tests/system/conformance/clients.py \
	src/tests/system/conformance/guards.py \
	src/tests/system/conformance/harness.py \
	src/tests/system/conformance/items.py \
	src/tests/system/conformance/kerberos.py \
	src/tests/system/conformance/openafs.known \
	src/tests/system/conformance/peer.py \
	src/tests/system/conformance/recorded.py \
	src/tests/system/conformance/run \
	src/tests/system/conformance/rxgk.py \
	src/tests/system/conformance/rxkad.py \
	src/tests/system/conformance/sending.py \
	src/tests/system/conformance/table \
	src/tests/system/conformance/wire.py

.PHONY: conformance conformance-programs conformance-table all-with-conformance
conformance-programs: $(conformance_programs) src/tests/system/interop/stubs_ours
# `all` is a make of its own: beside it, this one would link the same libraries at the same time.
all-with-conformance: all
	$(MAKE) $(AM_MAKEFLAGS) conformance-programs
conformance: conformance-programs
	python3 $(srcdir)/src/tests/system/conformance/run --build $(abs_top_builddir) \
		$(if $(HOST),--host $(HOST)) $(if $(SERVICE),--service $(SERVICE))

# OpenAFS's column keeps what it says where its packages cannot be had.
conformance-table: conformance-programs
	python3 $(srcdir)/src/tests/system/conformance/run --build $(abs_top_builddir) --results conformance.json
	programs=`bash $(srcdir)/src/tests/system/interop/run --programs $(abs_top_builddir)` && \
		RXW_CONFORMANCE_LIMIT=20 python3 $(srcdir)/src/tests/system/conformance/run \
		--openafs "$$programs" --known $(srcdir)/src/tests/system/conformance/openafs.known \
		--results conformance-openafs.json || test $$? -eq 77
	python3 $(srcdir)/src/tests/system/conformance/table write $(srcdir)/doc/conformance.md \
		conformance.json conformance-openafs.json
CLEANFILES += conformance.json conformance-openafs.json

# -- copier
#
# afscp with a scripted cell, see run and cell.py; the packet formats are those of ../conformance/wire.py.

check_scripts += src/tests/system/copier/hostile.sh
EXTRA_DIST += src/tests/system/copier/cell.py src/tests/system/copier/run
