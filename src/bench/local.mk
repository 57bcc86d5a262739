# SPDX-License-Identifier: BSD-2-Clause
# The benchmark: built and run by `make bench` only.

bench_programs = src/bench/raw src/bench/ping
EXTRA_PROGRAMS += $(bench_programs)
CLEANFILES += $(bench_programs)

# The same transfer without a protocol: what the kernel gives.
src_bench_raw_SOURCES = src/bench/raw.c src/bench/raw_io.c src/bench/raw.h
src_bench_raw_LDADD =

# The state of the machine.
src_bench_ping_SOURCES = src/bench/ping.c
src_bench_ping_LDADD = $(PTHREAD_LIBS)

EXTRA_DIST += src/bench/run src/bench/measure.py src/bench/contest.py src/bench/report.py

# What to hand to the runner: make bench BENCH_ARGS='--runs 1 --bytes 256M'
BENCH_ARGS =

.PHONY: bench bench-programs
bench-programs: $(bench_programs)
bench: all bench-programs
	top_srcdir='$(abs_top_srcdir)' top_builddir='$(abs_top_builddir)' \
		python3 $(srcdir)/src/bench/run $(BENCH_ARGS)
