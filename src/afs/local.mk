# SPDX-License-Identifier: BSD-2-Clause
# libafs: the AFS interfaces and what the programs share; not installed.

# -- Output of the interface compiler ----------------------------------------------------------------

# One run for each output, so that -j needs no lock; what an .xg includes comes from depfiles.
# A tree that is built for another machine runs a compiler that is installed here: see RXWGEN.
SUFFIXES += .xg .xdr.c .cs.c .ss.c
XGFLAGS = -i -b -x -R 65536 -I $(srcdir)/src/afs
RUN_XG = $(AM_V_GEN)$(MKDIR_P) $(@D) && $(RXWGEN) $(XGFLAGS)
.xg.h:
	$(RUN_XG) -h -o $@ -M $@.d $<
.xg.xdr.c:
	$(RUN_XG) -c -o $@ -M $@.d $<
.xg.cs.c:
	$(RUN_XG) -C -o $@ -M $@.d $<
.xg.ss.c:
	$(RUN_XG) -S -o $@ -M $@.d $<

# Every file that these rules make, here and in other folders' local.mk.
xg_generated = $(afs_generated)
$(xg_generated): $(RXWGEN_MADE_HERE)
CLEANFILES += $(xg_generated) $(xg_generated:=.d)
-include $(xg_generated:=.d)

afs_interfaces = \
	src/afs/rxafs.xg src/afs/rxafscb.xg src/afs/vl.xg src/afs/pt.xg src/afs/afsvol.xg \
	src/afs/bosint.xg src/afs/rxperf.xg src/afs/rxstats.xg
afs_headers = src/afs/afs-common.h $(afs_interfaces:.xg=.h)
afs_generated = $(afs_headers) src/afs/afs-common.xdr.c \
	$(afs_interfaces:.xg=.xdr.c) $(afs_interfaces:.xg=.cs.c) $(afs_interfaces:.xg=.ss.c)
EXTRA_DIST += src/afs/afs-common.xg $(afs_interfaces)
BUILT_SOURCES += $(afs_headers)

# -- libafs -----------------------------------------------------------------------------------------

afs_sources = \
	src/afs/acl.c src/afs/acl.h src/afs/address.c src/afs/address.h src/afs/bare.c src/afs/bare.h \
	src/afs/dir.c src/afs/dir.h src/afs/dirformat.h src/afs/fetch.c src/afs/fetch.h \
	src/afs/fetchstatus.h src/afs/numbers.h src/afs/rights.h src/afs/uuid.h src/afs/values.c src/afs/volname.h

noinst_LTLIBRARIES += src/afs/libafs.la
src_afs_libafs_la_SOURCES = $(afs_sources) src/rx/base/hash.c
nodist_src_afs_libafs_la_SOURCES = $(afs_generated)
# librxafs leaves out the functions that it does not call.
src_afs_libafs_la_CFLAGS = $(AM_CFLAGS) -ffunction-sections -fdata-sections
src_afs_libafs_la_LIBADD = src/rx/librxwire.la

# Targets that are built by name do not wait for BUILT_SOURCES.
$(src_afs_libafs_la_OBJECTS): $(afs_headers)
