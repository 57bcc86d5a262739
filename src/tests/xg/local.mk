# SPDX-License-Identifier: BSD-2-Clause
# Tests of generated code: all types of all interfaces against another XDR, hostile input, fuzzing.
#
# all-types.xg is compiled twice, with short field names (-b) and with long ones, into short/ and long/.

xg_coders = \
	src/afs/afs-common.xdr.c src/afs/afsvol.xdr.c src/afs/bosint.xdr.c src/afs/pt.xdr.c src/afs/rxafs.xdr.c \
	src/afs/rxafscb.xdr.c src/afs/rxperf.xdr.c src/afs/rxstats.xdr.c src/afs/vl.xdr.c
xg_headers = $(xg_coders:.xdr.c=.h)
xg_stubs = \
	src/afs/afsvol.cs.c src/afs/bosint.cs.c src/afs/pt.cs.c src/afs/rxafs.cs.c src/afs/rxafscb.cs.c src/afs/rxperf.cs.c \
	src/afs/rxstats.cs.c src/afs/vl.cs.c \
	src/afs/afsvol.ss.c src/afs/bosint.ss.c src/afs/pt.ss.c src/afs/rxafs.ss.c src/afs/rxafscb.ss.c src/afs/rxperf.ss.c \
	src/afs/rxstats.ss.c src/afs/vl.ss.c
xg_runtime = src/rx/base/xdr.c src/rx/rpc/multi.c src/rx/rpc/procedure.c src/rx/rpc/window.c
xg_wrap = -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=free

xg_short = \
	src/tests/xg/short/all-types.h src/tests/xg/short/all-types.xdr.c \
	src/tests/xg/short/all-types.cs.c src/tests/xg/short/all-types.ss.c
xg_long = \
	src/tests/xg/long/all-types.h src/tests/xg/long/all-types.xdr.c \
	src/tests/xg/long/all-types.cs.c src/tests/xg/long/all-types.ss.c
EXTRA_DIST += \
	src/tests/xg/all-types.xg src/tests/xg/corpus.py src/tests/xg/foreign.sh src/tests/xg/libfuzzer.sh \
	src/tests/xg/random.sh \
	src/tests/xg/roundtrip.py src/tests/xg/roundtrip.sh src/tests/xg/stubs.awk src/tests/xg/types.sh \
	src/tests/xg/values.py src/tests/xg/xgread.py
CLEANFILES += $(xg_short) $(xg_long) src/tests/xg/stubs.h src/tests/xg/types.h

xg_make = $(AM_V_GEN)$(MKDIR_P) $(@D) && $(RXWGEN) -x -o $@
$(xg_short) $(xg_long): src/tests/xg/all-types.xg $(RXWGEN_MADE_HERE)
src/tests/xg/short/all-types.h:
	$(xg_make) --copy --pool -b -h $(srcdir)/src/tests/xg/all-types.xg
src/tests/xg/short/all-types.xdr.c:
	$(xg_make) --copy -b -c $(srcdir)/src/tests/xg/all-types.xg
src/tests/xg/short/all-types.cs.c:
	$(xg_make) --pool -b -C $(srcdir)/src/tests/xg/all-types.xg
src/tests/xg/short/all-types.ss.c:
	$(xg_make) -b -S $(srcdir)/src/tests/xg/all-types.xg
src/tests/xg/long/all-types.h:
	$(xg_make) -h $(srcdir)/src/tests/xg/all-types.xg
src/tests/xg/long/all-types.xdr.c:
	$(xg_make) -c $(srcdir)/src/tests/xg/all-types.xg
src/tests/xg/long/all-types.cs.c:
	$(xg_make) -C $(srcdir)/src/tests/xg/all-types.xg
src/tests/xg/long/all-types.ss.c:
	$(xg_make) -S $(srcdir)/src/tests/xg/all-types.xg

src/tests/xg/types.h: $(xg_headers) src/tests/xg/short/all-types.h src/tests/xg/types.sh
	$(AM_V_GEN)$(SHELL) $(srcdir)/src/tests/xg/types.sh $(xg_headers) src/tests/xg/short/all-types.h \
		> $@.new && mv $@.new $@
src/tests/xg/stubs.h: $(xg_headers) src/tests/xg/short/all-types.h src/tests/xg/stubs.awk
	$(AM_V_GEN)LC_ALL=C $(AWK) -f $(srcdir)/src/tests/xg/stubs.awk $(xg_headers) src/tests/xg/short/all-types.h \
		> $@.new && mv $@.new $@

# -- Coders and stubs of all-types.xg, for several tests.

check_LIBRARIES += src/tests/xg/libshort.a
src_tests_xg_libshort_a_SOURCES =
nodist_src_tests_xg_libshort_a_SOURCES = src/tests/xg/short/all-types.xdr.c src/tests/xg/short/all-types.cs.c \
	src/tests/xg/short/all-types.ss.c
src_tests_xg_libshort_a_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_builddir)/src/tests/xg
$(src_tests_xg_libshort_a_OBJECTS): $(xg_short)

# -- All decoders and stubs with a counting heap on simulated calls, without the library.

check_LIBRARIES += src/tests/xg/libdecoders.a
src_tests_xg_libdecoders_a_SOURCES = \
	src/tests/xg/decoders.c src/tests/xg/decoders.h \
	src/tests/xg/heap.c src/tests/xg/heap.h \
	src/tests/xg/stream.c src/tests/xg/stream.h \
	$(xg_runtime)
nodist_src_tests_xg_libdecoders_a_SOURCES = $(xg_coders) $(xg_stubs)
src_tests_xg_libdecoders_a_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_builddir)/src/tests/xg
$(src_tests_xg_libdecoders_a_OBJECTS): src/tests/xg/types.h $(xg_short)

xg_test_cppflags = $(AM_CPPFLAGS) -I$(srcdir)/src/tests/xg -I$(top_builddir)/src/tests/xg
check_tests += src/tests/xg/fuzz_types
src_tests_xg_fuzz_types_SOURCES = src/tests/xg/fuzz_types.c src/rx/base/hash.c $(fuzz_replay)
src_tests_xg_fuzz_types_CPPFLAGS = $(xg_test_cppflags)
src_tests_xg_fuzz_types_LDFLAGS = $(AM_LDFLAGS) $(xg_wrap)
src_tests_xg_fuzz_types_LDADD = src/tests/xg/libdecoders.a src/tests/xg/libshort.a $(PTHREAD_LIBS)

check_tests += src/tests/xg/fuzz_stubs
src_tests_xg_fuzz_stubs_SOURCES = src/tests/xg/fuzz_stubs.c src/rx/base/hash.c $(fuzz_replay)
src_tests_xg_fuzz_stubs_CPPFLAGS = $(xg_test_cppflags)
src_tests_xg_fuzz_stubs_LDFLAGS = $(AM_LDFLAGS) $(xg_wrap)
src_tests_xg_fuzz_stubs_LDADD = src/tests/xg/libdecoders.a src/tests/xg/libshort.a $(PTHREAD_LIBS)
$(src_tests_xg_fuzz_stubs_OBJECTS): src/tests/xg/stubs.h

check_tests += src/tests/xg/test_hostile
src_tests_xg_test_hostile_SOURCES = src/tests/xg/test_hostile.c
src_tests_xg_test_hostile_CPPFLAGS = $(xg_test_cppflags)
src_tests_xg_test_hostile_LDFLAGS = $(AM_LDFLAGS) $(xg_wrap)
src_tests_xg_test_hostile_LDADD = src/tests/xg/libdecoders.a src/tests/xg/libshort.a $(CHECK_LIBS) $(PTHREAD_LIBS)
$(src_tests_xg_test_hostile_OBJECTS): $(xg_short)

check_tests += src/tests/xg/test_copy
src_tests_xg_test_copy_SOURCES = src/tests/xg/test_copy.c
src_tests_xg_test_copy_CPPFLAGS = $(xg_test_cppflags)
src_tests_xg_test_copy_LDFLAGS = $(AM_LDFLAGS) $(xg_wrap)
src_tests_xg_test_copy_LDADD = src/tests/xg/libdecoders.a src/tests/xg/libshort.a $(CHECK_LIBS) $(PTHREAD_LIBS)
$(src_tests_xg_test_copy_OBJECTS): src/tests/xg/types.h $(xg_short)

# -- With the library: recorded calls, and stubs of all-types.xg.

check_tests += src/tests/xg/test_calls
src_tests_xg_test_calls_SOURCES = src/tests/xg/test_calls.c
src_tests_xg_test_calls_CPPFLAGS = $(xg_test_cppflags)
src_tests_xg_test_calls_LDADD = src/tests/xg/libshort.a src/afs/libafs.la src/rx/librxwire.la $(JANSSON_LIBS) $(CHECK_LIBS) $(PTHREAD_LIBS)
$(src_tests_xg_test_calls_OBJECTS): $(xg_short)

# -- Random values against python's XDR. python cannot load sanitizers; the fuzz target runs with them.
# Each .xg file is a test, run by roundtrip.sh.

if !SANITIZERS
TESTS += \
	src/afs/afs-common.xg src/afs/afsvol.xg src/afs/bosint.xg src/afs/pt.xg src/afs/rxafs.xg src/afs/rxafscb.xg \
	src/afs/rxperf.xg src/afs/rxstats.xg src/afs/vl.xg src/tests/xg/all-types.xg src/tests/xg/random.sh
check_DATA = src/tests/xg/interfaces.so src/tests/xg/short.so src/tests/xg/long.so
CLEANFILES += src/tests/xg/interfaces.so src/tests/xg/short.so src/tests/xg/long.so
endif

xg_shared = $(AM_V_CCLD)$(CC) $(DEFS) $(DEFAULT_INCLUDES) $(AM_CPPFLAGS) $(CPPFLAGS) -std=gnu17 -O0 -g1 \
	-fPIC -shared $(xg_wrap) -o $@ $(srcdir)/src/tests/xg/heap.c $(srcdir)/src/rx/base/xdr.c
xg_shared_from = src/tests/xg/heap.c src/tests/xg/heap.h src/rx/base/xdr.c src/rx/include/rxwire/xdr.h
src/tests/xg/interfaces.so: $(xg_coders) $(xg_headers) $(xg_shared_from)
	$(xg_shared) $(xg_coders)
src/tests/xg/short.so: $(xg_short) $(xg_shared_from)
	$(xg_shared) src/tests/xg/short/all-types.xdr.c
src/tests/xg/long.so: $(xg_long) $(xg_shared_from)
	$(xg_shared) src/tests/xg/long/all-types.xdr.c
