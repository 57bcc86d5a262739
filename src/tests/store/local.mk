# SPDX-License-Identifier: BSD-2-Clause
# Tests in src/tests/store: check_tests += src/tests/store/test_NAME (see src/tests/local.mk).

store_test_libs = src/store/libstore.la src/afs/librxafs.la $(CHECK_LIBS) $(CRYPTO_LIBS) $(PTHREAD_LIBS)

check_tests += src/tests/store/test_pages
src_tests_store_test_pages_LDADD = $(store_test_libs)
src_tests_store_test_pages_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=strcmp

check_tests += src/tests/store/test_shares
src_tests_store_test_shares_SOURCES = src/tests/store/test_shares.c src/tests/store/spy.c src/tests/store/spy.h \
	src/tests/store/store_fixture.c src/tests/store/store_fixture.h $(store_test_disk)
src_tests_store_test_shares_LDADD = $(store_test_libs) $(SQLITE_LIBS)

check_tests += src/tests/store/test_layer_posix
src_tests_store_test_layer_posix_LDADD = $(store_test_libs)

check_tests += src/tests/store/test_content
src_tests_store_test_content_LDADD = $(store_test_libs)

check_tests += src/tests/store/test_data
src_tests_store_test_data_SOURCES = src/tests/store/test_data.c src/tests/store/data_fixture.h \
	src/tests/store/spy.c src/tests/store/spy.h
src_tests_store_test_data_LDADD = $(store_test_libs)

check_tests += src/tests/store/test_data_threads
src_tests_store_test_data_threads_SOURCES = src/tests/store/test_data_threads.c \
	src/tests/store/data_fixture.h src/tests/store/spy.c src/tests/store/spy.h
src_tests_store_test_data_threads_LDADD = $(store_test_libs)

store_test_disk = src/tests/store/crashdisk.c src/tests/store/crashdisk.h \
	src/tests/store/diskstore.c src/tests/store/diskstore.h \
	src/tests/store/state.c src/tests/store/state.h

check_tests += src/tests/store/test_vfs
src_tests_store_test_vfs_SOURCES = src/tests/store/test_vfs.c src/tests/store/spy.c src/tests/store/spy.h \
	$(store_test_disk)
src_tests_store_test_vfs_LDADD = $(store_test_libs) $(SQLITE_LIBS)

check_tests += src/tests/store/test_store
src_tests_store_test_store_SOURCES = src/tests/store/test_store.c \
	src/tests/store/store_fixture.c src/tests/store/store_fixture.h $(store_test_disk)
src_tests_store_test_store_LDADD = $(store_test_libs) $(SQLITE_LIBS)

check_tests += src/tests/store/test_volumes
src_tests_store_test_volumes_SOURCES = src/tests/store/test_volumes.c \
	src/tests/store/store_fixture.c src/tests/store/store_fixture.h $(store_test_disk)
src_tests_store_test_volumes_LDADD = $(store_test_libs) $(SQLITE_LIBS)

check_tests += src/tests/store/test_extents
src_tests_store_test_extents_SOURCES = src/tests/store/test_extents.c src/tests/store/spy.c src/tests/store/spy.h \
	src/tests/store/store_fixture.c src/tests/store/store_fixture.h $(store_test_disk)
src_tests_store_test_extents_LDADD = $(store_test_libs) $(SQLITE_LIBS)

check_tests += src/tests/store/test_strict
src_tests_store_test_strict_SOURCES = src/tests/store/test_strict.c src/tests/store/spy.c src/tests/store/spy.h \
	src/tests/store/store_fixture.c src/tests/store/store_fixture.h $(store_test_disk)
src_tests_store_test_strict_LDADD = $(store_test_libs) $(SQLITE_LIBS)

check_tests += src/tests/store/test_times
src_tests_store_test_times_SOURCES = src/tests/store/test_times.c \
	src/tests/store/store_fixture.c src/tests/store/store_fixture.h $(store_test_disk)
src_tests_store_test_times_LDADD = $(store_test_libs) $(SQLITE_LIBS)

check_tests += src/tests/store/test_crash
src_tests_store_test_crash_SOURCES = src/tests/store/test_crash.c $(store_test_disk)
src_tests_store_test_crash_LDADD = $(store_test_libs)

check_tests += src/tests/store/test_crash_random
src_tests_store_test_crash_random_SOURCES = src/tests/store/test_crash_random.c \
	src/tests/store/model.c src/tests/store/model.h $(store_test_disk)
src_tests_store_test_crash_random_LDADD = $(store_test_libs)

check_tests += src/tests/store/test_kill
src_tests_store_test_kill_SOURCES = src/tests/store/test_kill.c \
	src/tests/store/model.c src/tests/store/model.h $(store_test_disk)
src_tests_store_test_kill_LDADD = $(store_test_libs)

check_tests += src/tests/store/test_faults
src_tests_store_test_faults_SOURCES = src/tests/store/test_faults.c $(store_test_disk)
src_tests_store_test_faults_LDADD = $(store_test_libs)

check_tests += src/tests/store/test_flush
src_tests_store_test_flush_SOURCES = src/tests/store/test_flush.c $(store_test_disk)
src_tests_store_test_flush_LDADD = $(store_test_libs)

check_tests += src/tests/store/test_writers
src_tests_store_test_writers_SOURCES = src/tests/store/test_writers.c $(store_test_disk)
src_tests_store_test_writers_LDADD = $(store_test_libs)

check_tests += src/tests/store/test_merging
src_tests_store_test_merging_SOURCES = src/tests/store/test_merging.c $(store_test_disk)
src_tests_store_test_merging_LDADD = $(store_test_libs)

check_tests += src/tests/store/test_statuses
src_tests_store_test_statuses_SOURCES = src/tests/store/test_statuses.c \
	src/tests/store/store_fixture.c src/tests/store/store_fixture.h $(store_test_disk)
src_tests_store_test_statuses_LDADD = $(store_test_libs) $(SQLITE_LIBS)

# A stage of src/tests/all.
EXTRA_DIST += src/tests/store/replay src/tests/store/replay.py src/tests/store/replay_writers.c

check_tests += src/tests/store/test_memory
src_tests_store_test_memory_SOURCES = src/tests/store/test_memory.c $(store_test_disk)
src_tests_store_test_memory_LDADD = $(store_test_libs) $(SQLITE_LIBS)
src_tests_store_test_memory_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=free \
	-Wl,--wrap=strdup,--wrap=strndup,--wrap=posix_memalign,--wrap=aligned_alloc
