# SPDX-License-Identifier: BSD-2-Clause
# The benchmark: built and run by `make bench` only.

bench_programs = src/bench/bad_clients src/bench/classic src/bench/raw src/bench/rawcall src/bench/ping src/bench/queue src/bench/small src/bench/xdr \
	src/bench/scaling_load src/bench/overload_load src/bench/rxgk src/bench/fcrypt src/bench/store src/bench/store_stall src/bench/store_site \
	src/bench/fileserver_load src/bench/crowd_load src/bench/crowd_raw_server src/bench/long_tcp src/bench/library_stat
EXTRA_PROGRAMS += $(bench_programs)
CLEANFILES += $(bench_programs)

# The same transfer without a protocol: the kernel's limit.
src_bench_raw_SOURCES = src/bench/raw.c src/bench/raw_io.c src/bench/raw_process.c src/bench/raw.h
src_bench_raw_LDADD = $(PTHREAD_LIBS)

# The same for small calls.
src_bench_rawcall_SOURCES = src/bench/rawcall.c src/bench/rawcall_io.c src/bench/rawcall.h \
	src/bench/raw_io.c src/bench/raw_process.c src/bench/raw.h
src_bench_rawcall_LDADD =

# The state of the machine.
src_bench_ping_SOURCES = src/bench/ping.c
src_bench_ping_LDADD = $(PTHREAD_LIBS)

# Dead and slow clients beside a load.
src_bench_bad_clients_SOURCES = src/bench/bad_clients.c
src_bench_bad_clients_LDADD = src/rxperf/librxperf.la src/program/libprogram.la src/afs/libafs.la src/rx/librxwire.la \
	$(JANSSON_LIBS) $(PTHREAD_LIBS) -lm
$(src_bench_bad_clients_OBJECTS): $(afs_headers)

# Small calls through queues and callbacks, for counting instructions.
src_bench_queue_SOURCES = src/bench/queue.c
src_bench_queue_LDADD = src/rx/librxwire.la $(PTHREAD_LIBS)

# The interface of classic Rx, compared with the library's own.
src_bench_classic_SOURCES = src/bench/classic.c
src_bench_classic_CPPFLAGS = $(AM_CPPFLAGS) $(CLASSIC_CPPFLAGS)
src_bench_classic_LDADD = src/classic/librxwire-classic.la src/rx/librxwire.la $(PTHREAD_LIBS)

# A load for counting instructions.
src_bench_scaling_load_SOURCES = src/bench/scaling_load.c
src_bench_scaling_load_LDADD = src/rx/librxwire.la $(PTHREAD_LIBS)
EXTRA_DIST += src/bench/scaling

# Overload: more calls than a server can serve.
src_bench_overload_load_SOURCES = src/bench/overload_load.c
src_bench_overload_load_LDADD = src/rx/librxwire_core.la $(PTHREAD_LIBS)
EXTRA_DIST += src/bench/overload

# Sealing and opening packets, compared with libcrypto alone.
src_bench_rxgk_SOURCES = src/bench/rxgk.c src/bench/count.c src/bench/count.h
src_bench_rxgk_LDADD = src/rx/librxwire_core.la $(CRYPTO_LIBS)

# The cipher of rxkad; src/bench/fcrypt-rivals compares it with OpenAFS's.
src_bench_fcrypt_SOURCES = src/bench/fcrypt.c src/bench/count.c src/bench/count.h
src_bench_fcrypt_LDADD = src/rx/librxwire_core.la
EXTRA_DIST += src/bench/fcrypt-rivals

# The cost of compiled stubs, compared with hand-written calls.
small_generated = src/bench/small.h src/bench/small.xdr.c src/bench/small.cs.c src/bench/small.ss.c
xg_generated += $(small_generated)
EXTRA_DIST += src/bench/small.xg
src_bench_small_SOURCES = src/bench/small.c src/bench/count.c src/bench/count.h
nodist_src_bench_small_SOURCES = $(small_generated)
src_bench_small_LDADD = src/rx/librxwire.la
$(src_bench_small_OBJECTS): src/bench/small.h

# Compiled coders, compared with libtirpc's XDR.
src_bench_xdr_SOURCES = src/bench/xdr.c src/bench/xdr.h src/bench/xdr_compiled.c \
	src/bench/xdr_tirpc.c src/bench/count.c src/bench/count.h
src_bench_xdr_LDADD = src/afs/libafs.la src/rx/librxwire.la
src_bench_xdr_CPPFLAGS = $(AM_CPPFLAGS)
if HAVE_TIRPC
src_bench_xdr_CPPFLAGS += -DHAVE_TIRPC $(TIRPC_CFLAGS)
src_bench_xdr_LDADD += $(TIRPC_LIBS)
endif
$(src_bench_xdr_OBJECTS): $(afs_headers)

EXTRA_DIST += src/bench/run src/bench/measure.py src/bench/contest.py src/bench/report.py \
	src/bench/classes.py
EXTRA_DIST += src/bench/ladder src/bench/rungs.py src/bench/rivals.py src/bench/calls.py \
	src/bench/ours.py src/bench/load.py \
	src/bench/spending.py src/bench/samples.py src/bench/page.py src/bench/plots.py src/bench/data.py

# Tables and plots of the pages of results (`make charts`, in doc/local.mk).
EXTRA_DIST += src/bench/charts

# Disk to wire.
EXTRA_DIST += src/bench/disk-ladder src/bench/disk.py src/bench/diskline.py

# Options for the runner: make bench BENCH_ARGS='--runs 1 --bytes 256M'
BENCH_ARGS =
# The same for make ladder LADDER_ARGS=--quick
LADDER_ARGS =

# The same for the file server: make bench-fileserver FILESERVER_ARGS=--quick
FILESERVER_ARGS =

.PHONY: bench bench-fileserver ladder bench-programs
# Behind all else: what both need would otherwise be made twice at a time.
bench-programs: all
	$(MAKE) $(AM_MAKEFLAGS) $(bench_programs) src/tests/system/interop/cell_ours src/tests/link/link
# Both, even if the first one fails.
bench: bench-programs
	top_srcdir='$(abs_top_srcdir)'; top_builddir='$(abs_top_builddir)'; export top_srcdir top_builddir; result=0; \
	python3 $(srcdir)/src/bench/run $(BENCH_ARGS) || result=$$?; \
	python3 $(srcdir)/src/bench/fileserver --page $(srcdir)/doc/notes/store-performance.md $(FILESERVER_ARGS) || \
		result=$$?; \
	exit $$result
bench-fileserver: bench-programs
	top_srcdir='$(abs_top_srcdir)' top_builddir='$(abs_top_builddir)' python3 $(srcdir)/src/bench/fileserver \
		--page $(srcdir)/doc/notes/store-performance.md $(FILESERVER_ARGS)
ladder: bench-programs
	PYTHON3='$(PYTHON3)'; top_srcdir='$(abs_top_srcdir)' top_builddir='$(abs_top_builddir)' \
		"$${PYTHON3:-python3}" $(srcdir)/src/bench/ladder $(LADDER_ARGS)

# The store of volumes without a network.
src_bench_store_SOURCES = src/bench/store.c
src_bench_store_LDADD = src/volume/libvolume.la src/afs/libafs.la $(PTHREAD_LIBS)
# How long its largest operations let other writers wait.
src_bench_store_stall_SOURCES = src/bench/store_stall.c
src_bench_store_stall_LDADD = src/volume/libvolume.la src/afs/libafs.la src/rx/librxwire.la $(PTHREAD_LIBS)
# A store of a large site, and how long it takes to work with.
src_bench_store_site_SOURCES = src/bench/store_site.c
src_bench_store_site_LDADD = src/volume/libvolume.la src/afs/libafs.la src/rx/librxwire.la $(PTHREAD_LIBS)

# The writable file server, beside OpenAFS's.
src_bench_fileserver_load_SOURCES = src/bench/fileserver_load.c src/bench/site.c src/bench/site.h src/bench/count.c src/bench/count.h
src_bench_fileserver_load_LDADD = src/client/librxafs_core.la src/program/libprogram.la src/afs/libafs.la src/rx/librxwire.la \
	$(PTHREAD_LIBS)
$(src_bench_fileserver_load_OBJECTS): $(afs_headers)
EXTRA_DIST += src/bench/fileserver src/bench/fsbed.py src/bench/fssteps.py

# Many clients that fetch one volume at the same time; options: make bench-crowd CROWD_ARGS=--quick
src_bench_crowd_load_SOURCES = src/bench/crowd_load.c src/bench/crowd_load.h src/bench/crowd_options.c \
	src/bench/crowd_files.c src/bench/crowd_report.c src/bench/crowd_afs.c src/bench/crowd_http.c src/bench/crowd_raw.c \
	src/bench/crowd.h src/bench/crowd_raw.h src/bench/site.c src/bench/site.h src/bench/count.c src/bench/count.h \
	src/bench/raw_io.c src/bench/raw_process.c src/bench/raw.h
src_bench_crowd_load_LDADD = src/client/librxafs_core.la src/program/libprogram.la src/afs/libafs.la src/rx/librxwire.la \
	$(PTHREAD_LIBS)
$(src_bench_crowd_load_OBJECTS): $(afs_headers)
src_bench_crowd_raw_server_SOURCES = src/bench/crowd_raw_server.c src/bench/crowd_raw.h \
	src/bench/raw_io.c src/bench/raw_process.c src/bench/raw.h
src_bench_crowd_raw_server_LDADD = $(PTHREAD_LIBS)
EXTRA_DIST += src/bench/crowd src/bench/crowds.py src/bench/overloads.py
CROWD_ARGS =
.PHONY: bench-crowd bench-crowd-overload
# More clients than fit, slow ones and a greedy one.
bench-crowd-overload: bench-programs
	top_srcdir='$(abs_top_srcdir)' top_builddir='$(abs_top_builddir)' python3 $(srcdir)/src/bench/crowd --overload \
		$(CROWD_ARGS)
bench-crowd: bench-programs
	top_srcdir='$(abs_top_srcdir)' top_builddir='$(abs_top_builddir)' python3 $(srcdir)/src/bench/crowd \
		--page $(srcdir)/doc/notes/crowd.md $(CROWD_ARGS)

# Calls and times of the mount daemon; options: make bench-mount MOUNT_ARGS='--only calls'
EXTRA_DIST += src/bench/mount src/bench/mountbed.py src/bench/mountfar.py src/bench/mounttimes.py

src_bench_library_stat_SOURCES = src/bench/library_stat.c
src_bench_library_stat_LDADD = src/client/librxafs_core.la src/afs/libafs.la src/rx/librxwire.la $(PTHREAD_LIBS)
.PHONY: bench-mount
bench-mount: bench-programs
	python3 $(srcdir)/src/bench/mount --build '$(abs_top_builddir)' $(MOUNT_ARGS)

# The volume service and whole volumes, beside OpenAFS's; options: make bench-volumes VOLUMES_ARGS=--quick
EXTRA_DIST += src/bench/volumes
VOLUMES_ARGS =
.PHONY: bench-volumes
bench-volumes: bench-programs
	python3 $(srcdir)/src/bench/volumes --source '$(abs_top_srcdir)' --build '$(abs_top_builddir)' $(VOLUMES_ARGS)

# Copies by afscp get, beside rsync and rxperf; options: make bench-copies COPIES_ARGS='--only tree'
EXTRA_DIST += src/bench/copies
COPIES_ARGS =
.PHONY: bench-copies
bench-copies: all
	python3 $(srcdir)/src/bench/copies --source '$(abs_top_srcdir)' --build '$(abs_top_builddir)' $(COPIES_ARGS)

# One large file over two emulated links; options: make bench-paths PATHS_ARGS='--only equal'
EXTRA_DIST += src/bench/paths
PATHS_ARGS =
.PHONY: bench-paths
bench-paths: all src/tests/link/link
	python3 $(srcdir)/src/bench/paths --build '$(abs_top_builddir)' $(PATHS_ARGS)

# Long paths: emulated links (src/tests/link), with the kernel's TCP beside rxwire.
src_bench_long_tcp_SOURCES = src/bench/long_tcp.c
src_bench_long_tcp_LDADD = $(PTHREAD_LIBS)
EXTRA_DIST += src/bench/long src/bench/longpath.py src/bench/kernel_long src/bench/hoard
# Options: make bench-long LONG_ARGS='--profile gigabit-100 --rounds 1'
LONG_ARGS =
.PHONY: bench-long
bench-long: bench-programs
	top_srcdir='$(abs_top_srcdir)' top_builddir='$(abs_top_builddir)' python3 $(srcdir)/src/bench/long \
		--page $(srcdir)/doc/notes/long-paths.md $(LONG_ARGS)

# Copying, and sending by reference to pages. Not one of bench_programs, since it needs liburing. Options: see src/bench/zerocopy
EXTRA_PROGRAMS += src/bench/zerocopy_load
CLEANFILES += src/bench/zerocopy_load
src_bench_zerocopy_load_SOURCES = src/bench/zerocopy_load.c src/bench/count.c src/bench/count.h \
	src/bench/raw_io.c src/bench/raw_process.c src/bench/raw.h
src_bench_zerocopy_load_LDADD = -luring
EXTRA_DIST += src/bench/zerocopy
ZEROCOPY_ARGS =
.PHONY: bench-zerocopy
bench-zerocopy:
	$(MAKE) $(AM_MAKEFLAGS) src/bench/zerocopy_load
	PYTHON3='$(PYTHON3)'; "$${PYTHON3:-python3}" $(srcdir)/src/bench/zerocopy src/bench/zerocopy_load $(ZEROCOPY_ARGS)
