# SPDX-License-Identifier: BSD-2-Clause
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
