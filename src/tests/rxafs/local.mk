# SPDX-License-Identifier: BSD-2-Clause
# Mounts of cells on loopback, as users see them. Skipped where mounting is not permitted.

if HAVE_FUSE
check_scripts += src/tests/rxafs/cachedisk.sh src/tests/rxafs/calls.sh src/tests/rxafs/clock.sh \
	src/tests/rxafs/coherent.sh src/tests/rxafs/contents.sh src/tests/rxafs/crowded.sh src/tests/rxafs/delays.sh \
	src/tests/rxafs/ending.sh src/tests/rxafs/flush.sh src/tests/rxafs/guide.sh src/tests/rxafs/heldback.sh \
	src/tests/rxafs/hostile.sh src/tests/rxafs/identities.sh src/tests/rxafs/kerberos.sh src/tests/rxafs/killed.sh \
	src/tests/rxafs/kills.sh src/tests/rxafs/leftovers.sh src/tests/rxafs/limits.sh src/tests/rxafs/locks.sh \
	src/tests/rxafs/logins.sh src/tests/rxafs/messages.sh src/tests/rxafs/network.sh src/tests/rxafs/operations.sh \
	src/tests/rxafs/outages.sh src/tests/rxafs/own.sh src/tests/rxafs/programs.sh src/tests/rxafs/replaced.sh \
	src/tests/rxafs/required.sh src/tests/rxafs/semantics.sh src/tests/rxafs/service.sh src/tests/rxafs/sessions.sh \
	src/tests/rxafs/shared.sh src/tests/rxafs/silence.sh src/tests/rxafs/through.sh src/tests/rxafs/timers.sh \
	src/tests/rxafs/unending.sh src/tests/rxafs/walk.sh src/tests/rxafs/watchdog.sh src/tests/rxafs/ways.sh

check_tests += src/tests/rxafs/test_readers
src_tests_rxafs_test_readers_SOURCES = src/tests/rxafs/test_readers.c src/rxafs/readers.c
src_tests_rxafs_test_readers_CFLAGS = $(AM_CFLAGS) $(FUSE_CFLAGS)
src_tests_rxafs_test_readers_LDADD = $(CHECK_LIBS) $(PTHREAD_LIBS)
endif
EXTRA_DIST += src/tests/rxafs/cachedisk.sh src/tests/rxafs/calls.py src/tests/rxafs/calls.sh \
	src/tests/rxafs/clock.c src/tests/rxafs/clock.sh src/tests/rxafs/coherent.py src/tests/rxafs/coherent.sh \
	src/tests/rxafs/contents.py src/tests/rxafs/contents.sh src/tests/rxafs/crowded.py src/tests/rxafs/crowded.sh \
	src/tests/rxafs/delays.py src/tests/rxafs/delays.sh src/tests/rxafs/ending.sh src/tests/rxafs/flush.py \
	src/tests/rxafs/flush.sh src/tests/rxafs/guide.sh src/tests/rxafs/heldback.py src/tests/rxafs/heldback.sh \
	src/tests/rxafs/hostile.py src/tests/rxafs/hostile.sh src/tests/rxafs/identities.sh src/tests/rxafs/kerberos.sh \
	src/tests/rxafs/killed.py src/tests/rxafs/killed.sh src/tests/rxafs/kills.py src/tests/rxafs/kills.sh \
	src/tests/rxafs/leftovers.sh src/tests/rxafs/lib.sh src/tests/rxafs/limits.py src/tests/rxafs/limits.sh \
	src/tests/rxafs/locks.py src/tests/rxafs/locks.sh src/tests/rxafs/logins.py src/tests/rxafs/logins.sh \
	src/tests/rxafs/messages.sh src/tests/rxafs/network.sh src/tests/rxafs/operations.py \
	src/tests/rxafs/operations.sh src/tests/rxafs/orphans.py src/tests/rxafs/outages.py src/tests/rxafs/outages.sh \
	src/tests/rxafs/own.sh src/tests/rxafs/programs.sh src/tests/rxafs/proxy.py src/tests/rxafs/reopened.py \
	src/tests/rxafs/replaced.sh src/tests/rxafs/required.sh src/tests/rxafs/semantics.py \
	src/tests/rxafs/semantics.sh src/tests/rxafs/service.py src/tests/rxafs/service.sh src/tests/rxafs/sessions.sh \
	src/tests/rxafs/shared.py src/tests/rxafs/shared.sh src/tests/rxafs/silence.py src/tests/rxafs/silence.sh \
	src/tests/rxafs/sqlite.py src/tests/rxafs/through.py src/tests/rxafs/through.sh src/tests/rxafs/timers.c \
	src/tests/rxafs/timers.sh src/tests/rxafs/unending.py src/tests/rxafs/unending.sh src/tests/rxafs/walk.py \
	src/tests/rxafs/walk.sh src/tests/rxafs/watchdog.py src/tests/rxafs/watchdog.sh src/tests/rxafs/ways.sh
