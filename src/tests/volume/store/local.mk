# SPDX-License-Identifier: BSD-2-Clause
# Tests in src/tests/volume/store: check_tests += src/tests/volume/store/test_NAME (see src/tests/local.mk).

store_test_libs = src/volume/libvolume.la src/afs/libafs.la $(CHECK_LIBS) $(CRYPTO_LIBS) $(PTHREAD_LIBS)

store_test_disk = src/tests/volume/store/crashdisk.c src/tests/volume/store/crashdisk.h \
	src/tests/volume/store/diskstore.c src/tests/volume/store/diskstore.h \
	src/tests/volume/store/state.c src/tests/volume/store/state.h

# The store with blocks of 1 KiB and slots of four, and the disk of its tests: small files then have many of them.
check_LIBRARIES += src/tests/volume/store/libtiny.a
src_tests_volume_store_libtiny_a_SOURCES = $(volume_sources) $(store_test_disk)
src_tests_volume_store_libtiny_a_CPPFLAGS = $(AM_CPPFLAGS) $(tiny_blocks)
$(src_tests_volume_store_libtiny_a_OBJECTS): $(afs_headers)
tiny_blocks = -DSTORE_BLOCK=1024u -DSTORE_SLOT=4096u -DWORK_ROWS=4
tiny_test_libs = src/tests/volume/store/libtiny.a src/afs/libafs.la $(CHECK_LIBS) $(CRYPTO_LIBS) $(SQLITE_LIBS) $(PTHREAD_LIBS)

check_tests += src/tests/volume/store/test_pages
src_tests_volume_store_test_pages_LDADD = $(store_test_libs)
src_tests_volume_store_test_pages_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=strcmp

check_tests += src/tests/volume/store/test_shares
src_tests_volume_store_test_shares_SOURCES = src/tests/volume/store/test_shares.c src/tests/volume/store/spy.c src/tests/volume/store/spy.h \
	src/tests/volume/store/store_fixture.c src/tests/volume/store/store_fixture.h $(store_test_disk)
src_tests_volume_store_test_shares_LDADD = $(store_test_libs) $(SQLITE_LIBS)

check_tests += src/tests/volume/store/test_layer_posix
src_tests_volume_store_test_layer_posix_LDADD = $(store_test_libs)

check_tests += src/tests/volume/store/test_map
src_tests_volume_store_test_map_LDADD = $(store_test_libs)

check_tests += src/tests/volume/store/test_data
src_tests_volume_store_test_data_SOURCES = src/tests/volume/store/test_data.c src/tests/volume/store/data_fixture.h \
	src/tests/volume/store/spy.c src/tests/volume/store/spy.h
src_tests_volume_store_test_data_LDADD = $(store_test_libs)

check_tests += src/tests/volume/store/test_data_threads
src_tests_volume_store_test_data_threads_SOURCES = src/tests/volume/store/test_data_threads.c \
	src/tests/volume/store/data_fixture.h src/tests/volume/store/spy.c src/tests/volume/store/spy.h
src_tests_volume_store_test_data_threads_LDADD = $(store_test_libs)

check_tests += src/tests/volume/store/test_punch
src_tests_volume_store_test_punch_SOURCES = src/tests/volume/store/test_punch.c src/tests/volume/store/data_fixture.h \
	src/tests/volume/store/spy.c src/tests/volume/store/spy.h
src_tests_volume_store_test_punch_LDADD = $(store_test_libs)

check_tests += src/tests/volume/store/test_vfs
src_tests_volume_store_test_vfs_SOURCES = src/tests/volume/store/test_vfs.c src/tests/volume/store/spy.c src/tests/volume/store/spy.h \
	$(store_test_disk)
src_tests_volume_store_test_vfs_LDADD = $(store_test_libs) $(SQLITE_LIBS)

check_tests += src/tests/volume/store/test_store
src_tests_volume_store_test_store_SOURCES = src/tests/volume/store/test_store.c \
	src/tests/volume/store/store_fixture.c src/tests/volume/store/store_fixture.h $(store_test_disk)
src_tests_volume_store_test_store_LDADD = $(store_test_libs) $(SQLITE_LIBS)

check_tests += src/tests/volume/store/test_volumes
src_tests_volume_store_test_volumes_SOURCES = src/tests/volume/store/test_volumes.c \
	src/tests/volume/store/store_fixture.c src/tests/volume/store/store_fixture.h $(store_test_disk)
src_tests_volume_store_test_volumes_LDADD = $(store_test_libs) $(SQLITE_LIBS)

check_tests += src/tests/volume/store/test_cellvol
src_tests_volume_store_test_cellvol_SOURCES = src/tests/volume/store/test_cellvol.c \
	src/tests/volume/store/store_fixture.c src/tests/volume/store/store_fixture.h $(store_test_disk)
src_tests_volume_store_test_cellvol_LDADD = $(store_test_libs) $(SQLITE_LIBS)

check_tests += src/tests/volume/store/test_blocks
src_tests_volume_store_test_blocks_SOURCES = src/tests/volume/store/test_blocks.c src/tests/volume/store/spy.c src/tests/volume/store/spy.h \
	src/tests/volume/store/store_fixture.c src/tests/volume/store/store_fixture.h $(store_test_disk)
src_tests_volume_store_test_blocks_LDADD = $(store_test_libs) $(SQLITE_LIBS)

check_tests += src/tests/volume/store/test_tiny
src_tests_volume_store_test_tiny_SOURCES = src/tests/volume/store/test_tiny.c \
	src/tests/volume/store/store_fixture.c src/tests/volume/store/store_fixture.h
src_tests_volume_store_test_tiny_CPPFLAGS = $(AM_CPPFLAGS) $(tiny_blocks)
src_tests_volume_store_test_tiny_LDADD = $(tiny_test_libs)

check_tests += src/tests/volume/store/test_damage
src_tests_volume_store_test_damage_SOURCES = src/tests/volume/store/test_damage.c \
	src/tests/volume/store/store_fixture.c src/tests/volume/store/store_fixture.h $(store_test_disk)
src_tests_volume_store_test_damage_LDADD = $(store_test_libs) $(SQLITE_LIBS)
src_tests_volume_store_test_damage_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=db_vnode_get_whole

check_tests += src/tests/volume/store/test_strict
src_tests_volume_store_test_strict_SOURCES = src/tests/volume/store/test_strict.c src/tests/volume/store/spy.c src/tests/volume/store/spy.h \
	src/tests/volume/store/store_fixture.c src/tests/volume/store/store_fixture.h $(store_test_disk)
src_tests_volume_store_test_strict_LDADD = $(store_test_libs) $(SQLITE_LIBS)

check_tests += src/tests/volume/store/test_times
src_tests_volume_store_test_times_SOURCES = src/tests/volume/store/test_times.c \
	src/tests/volume/store/store_fixture.c src/tests/volume/store/store_fixture.h $(store_test_disk)
src_tests_volume_store_test_times_LDADD = $(store_test_libs) $(SQLITE_LIBS)

check_tests += src/tests/volume/store/test_crash
src_tests_volume_store_test_crash_SOURCES = src/tests/volume/store/test_crash.c
src_tests_volume_store_test_crash_CPPFLAGS = $(AM_CPPFLAGS) $(tiny_blocks)
src_tests_volume_store_test_crash_LDADD = $(tiny_test_libs)

check_tests += src/tests/volume/store/test_transfer
src_tests_volume_store_test_transfer_SOURCES = src/tests/volume/store/test_transfer.c \
	src/tests/volume/store/transfer_fixture.c src/tests/volume/store/transfer_fixture.h $(store_test_disk)
src_tests_volume_store_test_transfer_LDADD = $(store_test_libs)

check_tests += src/tests/volume/store/test_replace
src_tests_volume_store_test_replace_SOURCES = src/tests/volume/store/test_replace.c \
	src/tests/volume/store/transfer_fixture.c src/tests/volume/store/transfer_fixture.h $(store_test_disk)
src_tests_volume_store_test_replace_LDADD = $(store_test_libs)

check_tests += src/tests/volume/store/test_crash_random
src_tests_volume_store_test_crash_random_SOURCES = src/tests/volume/store/test_crash_random.c \
	src/tests/volume/store/model.c src/tests/volume/store/model.h
src_tests_volume_store_test_crash_random_CPPFLAGS = $(AM_CPPFLAGS) $(tiny_blocks)
src_tests_volume_store_test_crash_random_LDADD = $(tiny_test_libs)

check_tests += src/tests/volume/store/test_lost_log
src_tests_volume_store_test_lost_log_SOURCES = src/tests/volume/store/test_lost_log.c \
	src/tests/volume/store/model.c src/tests/volume/store/model.h $(store_test_disk)
src_tests_volume_store_test_lost_log_LDADD = $(store_test_libs)

check_tests += src/tests/volume/store/test_kill
src_tests_volume_store_test_kill_SOURCES = src/tests/volume/store/test_kill.c \
	src/tests/volume/store/model.c src/tests/volume/store/model.h $(store_test_disk)
src_tests_volume_store_test_kill_LDADD = $(store_test_libs)

check_tests += src/tests/volume/store/test_faults
src_tests_volume_store_test_faults_SOURCES = src/tests/volume/store/test_faults.c
src_tests_volume_store_test_faults_CPPFLAGS = $(AM_CPPFLAGS) $(tiny_blocks)
src_tests_volume_store_test_faults_LDADD = $(tiny_test_libs)

check_tests += src/tests/volume/store/test_rescue
src_tests_volume_store_test_rescue_SOURCES = src/tests/volume/store/test_rescue.c $(store_test_disk)
src_tests_volume_store_test_rescue_LDADD = $(store_test_libs)

check_tests += src/tests/volume/store/test_flush
src_tests_volume_store_test_flush_SOURCES = src/tests/volume/store/test_flush.c $(store_test_disk)
src_tests_volume_store_test_flush_LDADD = $(store_test_libs)

check_tests += src/tests/volume/store/test_gather
src_tests_volume_store_test_gather_SOURCES = src/tests/volume/store/test_gather.c
src_tests_volume_store_test_gather_CPPFLAGS = $(AM_CPPFLAGS) $(tiny_blocks)
src_tests_volume_store_test_gather_LDADD = $(tiny_test_libs)

check_tests += src/tests/volume/store/test_writers
src_tests_volume_store_test_writers_SOURCES = src/tests/volume/store/test_writers.c
src_tests_volume_store_test_writers_CPPFLAGS = $(AM_CPPFLAGS) $(tiny_blocks)
src_tests_volume_store_test_writers_LDADD = $(tiny_test_libs)

check_tests += src/tests/volume/store/test_statuses
src_tests_volume_store_test_statuses_SOURCES = src/tests/volume/store/test_statuses.c \
	src/tests/volume/store/store_fixture.c src/tests/volume/store/store_fixture.h $(store_test_disk)
src_tests_volume_store_test_statuses_LDADD = $(store_test_libs) $(SQLITE_LIBS)

# A stage of src/tests/all.
EXTRA_DIST += src/tests/volume/store/replay src/tests/volume/store/replay.py src/tests/volume/store/replay_writers.c

check_tests += src/tests/volume/store/test_memory
src_tests_volume_store_test_memory_SOURCES = src/tests/volume/store/test_memory.c
src_tests_volume_store_test_memory_CPPFLAGS = $(AM_CPPFLAGS) $(tiny_blocks)
src_tests_volume_store_test_memory_LDADD = $(tiny_test_libs)
src_tests_volume_store_test_memory_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=free \
	-Wl,--wrap=strdup,--wrap=strndup,--wrap=posix_memalign,--wrap=aligned_alloc
