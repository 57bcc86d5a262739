# SPDX-License-Identifier: BSD-2-Clause
# The benchmark: built and run by `make bench` only.

bench_programs =
EXTRA_PROGRAMS += $(bench_programs)
CLEANFILES += $(bench_programs)

# bench_programs += src/bench/rawdgram
# src_bench_rawdgram_SOURCES = src/bench/rawdgram.c
# src_bench_rawdgram_LDADD = $(PTHREAD_LIBS)

.PHONY: bench bench-programs
bench-programs: $(bench_programs)
bench: all bench-programs
	@test -f $(srcdir)/src/bench/run || { echo "src/bench/run is not there yet" >&2; exit 1; }
	top_srcdir=$(abs_top_srcdir) top_builddir=$(abs_top_builddir) bash $(srcdir)/src/bench/run
