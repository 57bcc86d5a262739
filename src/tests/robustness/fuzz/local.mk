# SPDX-License-Identifier: BSD-2-Clause
# Fuzz targets. `make check` runs each on its corpus and on mutations of it (replay.c); libfuzzer.sh
# builds the same files for libFuzzer. A further target is one fuzz_NAME.c, corpus/NAME.hex, three lines here.

EXTRA_DIST += src/tests/robustness/fuzz/README.md src/tests/robustness/fuzz/corpus src/tests/robustness/fuzz/corpus.py src/tests/robustness/fuzz/inputs.py \
	src/tests/robustness/fuzz/libfuzzer.sh src/tests/robustness/fuzz/links.sh
fuzz_replay = src/tests/robustness/fuzz/replay.c src/tests/robustness/fuzz/fuzz.h

check_tests += src/tests/robustness/fuzz/fuzz_abort
src_tests_robustness_fuzz_fuzz_abort_SOURCES = src/tests/robustness/fuzz/fuzz_abort.c $(fuzz_replay)
check_tests += src/tests/robustness/fuzz/fuzz_acl
src_tests_robustness_fuzz_fuzz_acl_SOURCES = src/tests/robustness/fuzz/fuzz_acl.c $(fuzz_replay)
src_tests_robustness_fuzz_fuzz_acl_LDADD = src/fileserver/libfileserver.la $(LDADD)
check_tests += src/tests/robustness/fuzz/fuzz_ack
src_tests_robustness_fuzz_fuzz_ack_SOURCES = src/tests/robustness/fuzz/fuzz_ack.c $(fuzz_replay)
check_tests += src/tests/robustness/fuzz/fuzz_config
src_tests_robustness_fuzz_fuzz_config_SOURCES = src/tests/robustness/fuzz/fuzz_config.c $(fuzz_replay)
src_tests_robustness_fuzz_fuzz_config_LDADD = src/tools/libtools.la $(LDADD)
check_tests += src/tests/robustness/fuzz/fuzz_conn
src_tests_robustness_fuzz_fuzz_conn_SOURCES = src/tests/robustness/fuzz/fuzz_conn.c $(fuzz_replay) $(support_host)
check_tests += src/tests/robustness/fuzz/fuzz_debug
src_tests_robustness_fuzz_fuzz_debug_SOURCES = src/tests/robustness/fuzz/fuzz_debug.c $(fuzz_replay)
check_tests += src/tests/robustness/fuzz/fuzz_dir
src_tests_robustness_fuzz_fuzz_dir_SOURCES = src/tests/robustness/fuzz/fuzz_dir.c $(fuzz_replay)
src_tests_robustness_fuzz_fuzz_dir_LDADD = src/afs/librxafs.la $(LDADD)
check_tests += src/tests/robustness/fuzz/fuzz_header
src_tests_robustness_fuzz_fuzz_header_SOURCES = src/tests/robustness/fuzz/fuzz_header.c $(fuzz_replay)
check_tests += src/tests/robustness/fuzz/fuzz_jumbo
src_tests_robustness_fuzz_fuzz_jumbo_SOURCES = src/tests/robustness/fuzz/fuzz_jumbo.c $(fuzz_replay)
check_tests += src/tests/robustness/fuzz/fuzz_keytab
src_tests_robustness_fuzz_fuzz_keytab_SOURCES = src/tests/robustness/fuzz/fuzz_keytab.c $(fuzz_replay)
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
src_tests_robustness_fuzz_fuzz_xg_LDADD = src/rxgen/librxgen.la $(LDADD)

# Whole endpoints; the I/O floor and what the library asks of the system are world.c's.
fuzz_world = src/tests/robustness/fuzz/world.c src/tests/robustness/fuzz/world.h $(fuzz_replay)
fuzz_world_wrap = -Wl,--wrap=clock_gettime,--wrap=nanosleep,--wrap=pthread_create,--wrap=rxw_random

check_tests += src/tests/robustness/fuzz/fuzz_endpoint
src_tests_robustness_fuzz_fuzz_endpoint_SOURCES = src/tests/robustness/fuzz/fuzz_endpoint.c $(fuzz_world)
src_tests_robustness_fuzz_fuzz_endpoint_LDFLAGS = $(AM_LDFLAGS) $(fuzz_world_wrap)
check_tests += src/tests/robustness/fuzz/fuzz_live
src_tests_robustness_fuzz_fuzz_live_SOURCES = src/tests/robustness/fuzz/fuzz_live.c $(fuzz_world)
src_tests_robustness_fuzz_fuzz_live_LDFLAGS = $(AM_LDFLAGS) $(fuzz_world_wrap)
