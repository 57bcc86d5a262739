# SPDX-License-Identifier: BSD-2-Clause
# Conformance: a scripted peer against an endpoint of ours, of OpenAFS, or any Rx server. A stage of
# `./quickstart check`, not of `make check`: each item is a test by its own name there.
#
#   make conformance                                  everything, against ours
#   make conformance HOST=server[:PORT] [SERVICE=ID]  what any server may be asked without harm
#   make conformance-table                            the results in doc/conformance.md, of a run now

conformance_programs = src/tests/conformance/endpoint
EXTRA_PROGRAMS += $(conformance_programs)
CLEANFILES += $(conformance_programs)
src_tests_conformance_endpoint_SOURCES = src/tests/conformance/endpoint.c $(support_challenger) $(support_constants)
src_tests_conformance_endpoint_LDADD = src/rx/librxwire_core.la $(PTHREAD_LIBS)

EXTRA_DIST += \
	src/tests/conformance/README.md \
	src/tests/conformance/acks.py \
	src/tests/conformance/addresses.py \
	src/tests/conformance/basics.py \
	src/tests/conformance/calls.py \
	src/tests/conformance/clients.py \
	src/tests/conformance/guards.py \
	src/tests/conformance/harness.py \
	src/tests/conformance/items.py \
	src/tests/conformance/kerberos.py \
	src/tests/conformance/openafs.known \
	src/tests/conformance/peer.py \
	src/tests/conformance/recorded.py \
	src/tests/conformance/run \
	src/tests/conformance/rxgk.py \
	src/tests/conformance/rxkad.py \
	src/tests/conformance/sending.py \
	src/tests/conformance/table \
	src/tests/conformance/wire.py

.PHONY: conformance conformance-programs conformance-table
conformance-programs: $(conformance_programs) src/tests/interop/stubs_ours
conformance: conformance-programs
	python3 $(srcdir)/src/tests/conformance/run --build $(abs_top_builddir) \
		$(if $(HOST),--host $(HOST)) $(if $(SERVICE),--service $(SERVICE))

# OpenAFS's column keeps what it says where its packages cannot be had.
conformance-table: conformance-programs
	python3 $(srcdir)/src/tests/conformance/run --build $(abs_top_builddir) --results conformance.json
	programs=`bash $(srcdir)/src/tests/interop/run --programs $(abs_top_builddir)` && \
		RXW_CONFORMANCE_LIMIT=20 python3 $(srcdir)/src/tests/conformance/run \
		--openafs "$$programs" --known $(srcdir)/src/tests/conformance/openafs.known \
		--results conformance-openafs.json || test $$? -eq 77
	python3 $(srcdir)/src/tests/conformance/table write $(srcdir)/doc/conformance.md \
		conformance.json conformance-openafs.json
CLEANFILES += conformance.json conformance-openafs.json
