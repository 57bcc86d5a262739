# SPDX-License-Identifier: BSD-2-Clause
# Cache lines that shards share. The transport is compiled once more, so that it tells of each access to memory.

lines_sources = src/tests/lines/lines.c src/tests/lines/lines.h
lines_calls = -Wl,--wrap=memcpy,--wrap=memmove,--wrap=memset,--wrap=pthread_mutex_lock,--wrap=pthread_mutex_trylock,--wrap=pthread_mutex_unlock,--wrap=pthread_cond_signal,--wrap=pthread_cond_broadcast,--wrap=rxw_thread_create,--wrap=rxw_workers_slow,--wrap=sched_getaffinity

check_scripts += src/tests/lines/lines.sh
if ACCESSES_TOLD
check_LIBRARIES += src/tests/lines/libtold.a
src_tests_lines_libtold_a_SOURCES = $(rx_transport_sources)
src_tests_lines_libtold_a_CFLAGS = $(AM_CFLAGS) $(TOLD_CFLAGS)

check_PROGRAMS += src/tests/lines/streams
src_tests_lines_streams_SOURCES = src/tests/lines/streams.c $(lines_sources)
src_tests_lines_streams_LDADD = src/tests/lines/libtold.a src/rx/librxwire_core.la $(PTHREAD_LIBS)
src_tests_lines_streams_LDFLAGS = $(AM_LDFLAGS) $(lines_calls)
endif
