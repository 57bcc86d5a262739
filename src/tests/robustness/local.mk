# SPDX-License-Identifier: BSD-2-Clause
# Tests of robustness. The names of the parts are those of the folders; a large one has a local.mk of its own.

# -- races
#
# Random use of the API by several threads: for RXW_RACES_SECONDS, from seed RXW_TEST_SEED on.

check_tests += src/tests/robustness/races/test_races
src_tests_robustness_races_test_races_SOURCES = src/tests/robustness/races/test_races.c

include src/tests/robustness/faults/local.mk

# -- attack
#
# Attacks on a live server with honest clients, and their cost for these (`make attack-report`).

attack_sources = \
	src/tests/robustness/attack/attacker.c src/tests/robustness/attack/attacker.h \
	src/tests/robustness/attack/attacks.c src/tests/robustness/attack/honest.c

check_scripts += src/tests/robustness/attack/check-security.sh
check_tests += src/tests/robustness/attack/test_attack
src_tests_robustness_attack_test_attack_SOURCES = src/tests/robustness/attack/test_attack.c $(attack_sources)
src_tests_robustness_attack_test_attack_LDADD = $(harness_libs)

check_tests += src/tests/robustness/attack/test_cookies
src_tests_robustness_attack_test_cookies_LDADD = $(harness_libs)

check_tests += src/tests/robustness/attack/test_silent
src_tests_robustness_attack_test_silent_LDADD = $(harness_libs)

check_tests += src/tests/robustness/attack/test_client
src_tests_robustness_attack_test_client_LDADD = $(harness_libs)

# The worst cost of a packet. The core is compiled once more, to count basic blocks.
cost_sources = src/tests/robustness/attack/cost.c src/tests/robustness/attack/cost.h $(support_host)
check_LIBRARIES += src/tests/robustness/attack/libcounted.a
src_tests_robustness_attack_libcounted_a_SOURCES = $(rx_base_sources) $(rx_proto_sources)
src_tests_robustness_attack_libcounted_a_CFLAGS = $(AM_CFLAGS) $(COUNTED_CFLAGS)
check_tests += src/tests/robustness/attack/test_cost
src_tests_robustness_attack_test_cost_SOURCES = src/tests/robustness/attack/cost_blocks.c $(cost_sources)
src_tests_robustness_attack_test_cost_LDADD = src/tests/robustness/attack/libcounted.a $(LDADD)
src_tests_robustness_attack_test_cost_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=memcpy,--wrap=memmove,--wrap=memset
# Its CPU time: make src/tests/robustness/attack/cost
EXTRA_PROGRAMS += src/tests/robustness/attack/cost
src_tests_robustness_attack_cost_SOURCES = src/tests/robustness/attack/cost_time.c $(cost_sources)
CLEANFILES += src/tests/robustness/attack/cost

EXTRA_DIST += src/tests/robustness/attack/report.py
.PHONY: attack-report
if HAVE_CHECK
EXTRA_PROGRAMS += src/tests/robustness/attack/goodput
src_tests_robustness_attack_goodput_SOURCES = src/tests/robustness/attack/goodput.c $(attack_sources)
src_tests_robustness_attack_goodput_LDADD = $(harness_libs)
CLEANFILES += src/tests/robustness/attack/goodput

attack-report: src/tests/robustness/attack/goodput
	python3 -B $(srcdir)/src/tests/robustness/attack/report.py src/tests/robustness/attack/goodput
endif

# -- fuzz
#
# Fuzz targets. `make check` runs each on its corpus and on mutations of it (replay.c); libfuzzer.sh
# builds the same files for libFuzzer. A further target is one fuzz_NAME.c, corpus/NAME.hex, three lines here.

EXTRA_DIST += src/tests/robustness/fuzz/README.md src/tests/robustness/fuzz/corpus src/tests/robustness/fuzz/corpus.py src/tests/robustness/fuzz/inputs.py \
	src/tests/robustness/fuzz/libfuzzer.sh src/tests/robustness/fuzz/links.sh
fuzz_replay = src/tests/robustness/fuzz/replay.c src/tests/robustness/fuzz/fuzz.h

check_tests += src/tests/robustness/fuzz/fuzz_abort
src_tests_robustness_fuzz_fuzz_abort_SOURCES = src/tests/robustness/fuzz/fuzz_abort.c $(fuzz_replay)
check_tests += src/tests/robustness/fuzz/fuzz_acl
# Some have the few files that they look into as sources of their own, so that a build of the targets alone does not wait for
# the libraries of the file server and the store.
src_tests_robustness_fuzz_fuzz_acl_SOURCES = src/tests/robustness/fuzz/fuzz_acl.c $(fuzz_replay) \
	src/fileserver/guard/acl.c src/volume/acl.c
src_tests_robustness_fuzz_fuzz_acl_CPPFLAGS = $(AM_CPPFLAGS)
check_tests += src/tests/robustness/fuzz/fuzz_ack
src_tests_robustness_fuzz_fuzz_ack_SOURCES = src/tests/robustness/fuzz/fuzz_ack.c $(fuzz_replay)
check_tests += src/tests/robustness/fuzz/fuzz_config
src_tests_robustness_fuzz_fuzz_config_SOURCES = src/tests/robustness/fuzz/fuzz_config.c $(fuzz_replay)
src_tests_robustness_fuzz_fuzz_config_LDADD = src/program/libprogram.la $(LDADD)
check_tests += src/tests/robustness/fuzz/fuzz_conn
src_tests_robustness_fuzz_fuzz_conn_SOURCES = src/tests/robustness/fuzz/fuzz_conn.c $(fuzz_replay) $(support_host)
check_tests += src/tests/robustness/fuzz/fuzz_debug
src_tests_robustness_fuzz_fuzz_debug_SOURCES = src/tests/robustness/fuzz/fuzz_debug.c $(fuzz_replay)
check_tests += src/tests/robustness/fuzz/fuzz_dir
src_tests_robustness_fuzz_fuzz_dir_SOURCES = src/tests/robustness/fuzz/fuzz_dir.c $(fuzz_replay)
src_tests_robustness_fuzz_fuzz_dir_LDADD = src/afs/libafs.la $(LDADD)
check_tests += src/tests/robustness/fuzz/fuzz_dump
src_tests_robustness_fuzz_fuzz_dump_SOURCES = src/tests/robustness/fuzz/fuzz_dump.c $(fuzz_replay) \
	src/volume/dump/dump_read.c src/volume/acl.c
src_tests_robustness_fuzz_fuzz_dump_CPPFLAGS = $(AM_CPPFLAGS)
src_tests_robustness_fuzz_fuzz_dump_LDADD = src/afs/libafs.la $(LDADD)
$(src_tests_robustness_fuzz_fuzz_dump_OBJECTS): $(afs_headers)
check_tests += src/tests/robustness/fuzz/fuzz_header
src_tests_robustness_fuzz_fuzz_header_SOURCES = src/tests/robustness/fuzz/fuzz_header.c $(fuzz_replay)
check_tests += src/tests/robustness/fuzz/fuzz_jumbo
src_tests_robustness_fuzz_fuzz_jumbo_SOURCES = src/tests/robustness/fuzz/fuzz_jumbo.c $(fuzz_replay)
check_tests += src/tests/robustness/fuzz/fuzz_keytab
src_tests_robustness_fuzz_fuzz_keytab_SOURCES = src/tests/robustness/fuzz/fuzz_keytab.c $(fuzz_replay)
check_tests += src/tests/robustness/fuzz/fuzz_meta
src_tests_robustness_fuzz_fuzz_meta_SOURCES = src/tests/robustness/fuzz/fuzz_meta.c $(fuzz_replay) \
	src/volume/acl.c src/volume/store/data/data_map.c src/volume/store/db/record.c \
	src/volume/store/dir/pages.c src/volume/store/disk/crc.c src/volume/store/disk/pageset.c \
	src/volume/store/disk/copystate.c src/volume/store/disk/mend.c src/volume/store/disk/replica.c src/volume/store/disk/report.c src/volume/store/disk/twin.c src/volume/store/disk/vfs.c \
	src/volume/store/disk/wal.c src/volume/store/format.c \
	src/tests/volume/store/crashdisk.c src/tests/volume/store/crashdisk.h
src_tests_robustness_fuzz_fuzz_meta_CPPFLAGS = $(AM_CPPFLAGS)
src_tests_robustness_fuzz_fuzz_meta_LDADD = src/afs/libafs.la $(LDADD) $(SQLITE_LIBS)
$(src_tests_robustness_fuzz_fuzz_meta_OBJECTS): $(afs_headers)
check_tests += src/tests/robustness/fuzz/fuzz_names
src_tests_robustness_fuzz_fuzz_names_SOURCES = src/tests/robustness/fuzz/fuzz_names.c $(fuzz_replay) src/client/cache/names.c
src_tests_robustness_fuzz_fuzz_names_CPPFLAGS = $(AM_CPPFLAGS)
src_tests_robustness_fuzz_fuzz_names_LDADD = src/afs/libafs.la $(LDADD)
check_tests += src/tests/robustness/fuzz/fuzz_run
src_tests_robustness_fuzz_fuzz_run_SOURCES = src/tests/robustness/fuzz/fuzz_run.c $(fuzz_replay)
check_tests += src/tests/robustness/fuzz/fuzz_rxgk
src_tests_robustness_fuzz_fuzz_rxgk_SOURCES = src/tests/robustness/fuzz/fuzz_rxgk.c $(fuzz_replay)
check_tests += src/tests/robustness/fuzz/fuzz_rxkad
src_tests_robustness_fuzz_fuzz_rxkad_SOURCES = src/tests/robustness/fuzz/fuzz_rxkad.c $(fuzz_replay)
src_tests_robustness_fuzz_fuzz_rxkad_LDADD = $(LDADD) $(KRB5_LIBS)
check_tests += src/tests/robustness/fuzz/fuzz_xdr
src_tests_robustness_fuzz_fuzz_xdr_SOURCES = src/tests/robustness/fuzz/fuzz_xdr.c $(fuzz_replay)
check_tests += src/tests/robustness/fuzz/fuzz_xg
src_tests_robustness_fuzz_fuzz_xg_SOURCES = src/tests/robustness/fuzz/fuzz_xg.c $(fuzz_replay)
src_tests_robustness_fuzz_fuzz_xg_LDADD = src/rxwgen/librxwgen.la $(LDADD)

# Whole endpoints; the I/O floor and what the library asks of the system are world.c's.
fuzz_world = src/tests/robustness/fuzz/world.c src/tests/robustness/fuzz/world.h $(fuzz_replay)
fuzz_world_wrap = -Wl,--wrap=clock_gettime,--wrap=nanosleep,--wrap=pthread_create,--wrap=rxw_random

check_tests += src/tests/robustness/fuzz/fuzz_endpoint
src_tests_robustness_fuzz_fuzz_endpoint_SOURCES = src/tests/robustness/fuzz/fuzz_endpoint.c $(fuzz_world)
src_tests_robustness_fuzz_fuzz_endpoint_LDFLAGS = $(AM_LDFLAGS) $(fuzz_world_wrap)
check_tests += src/tests/robustness/fuzz/fuzz_live
src_tests_robustness_fuzz_fuzz_live_SOURCES = src/tests/robustness/fuzz/fuzz_live.c $(fuzz_world)
src_tests_robustness_fuzz_fuzz_live_LDFLAGS = $(AM_LDFLAGS) $(fuzz_world_wrap)

# -- soak
#
# `make soak`: runs that take hours, in sequence. SOAK_SECONDS=60 shortens it, SOAK='sim races' selects some.

EXTRA_DIST += src/tests/robustness/soak/run
.PHONY: soak
soak: all
	bash $(srcdir)/src/tests/robustness/soak/run $(abs_top_builddir) $(SOAK)
