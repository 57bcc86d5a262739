# SPDX-License-Identifier: BSD-2-Clause
# Tests in src/tests/afs: check_tests += src/tests/afs/test_NAME (see src/tests/local.mk).

afs_test_libs = src/afs/libafs.la src/rx/librxwire.la $(CHECK_LIBS) $(PTHREAD_LIBS)

check_tests += src/tests/afs/test_dir
src_tests_afs_test_dir_LDADD = $(afs_test_libs)

check_tests += src/tests/afs/test_acl
src_tests_afs_test_acl_LDADD = $(afs_test_libs)

check_tests += src/tests/afs/test_fetchstatus
src_tests_afs_test_fetchstatus_LDADD = $(afs_test_libs)

check_tests += src/tests/afs/test_uuid
src_tests_afs_test_uuid_LDADD = $(afs_test_libs)

check_tests += src/tests/afs/test_volname
src_tests_afs_test_volname_LDADD = $(afs_test_libs)

# Interfaces, compared with known bytes.
afs_known = src/tests/afs/known.c src/tests/afs/known.h

check_tests += src/tests/afs/test_rxafs
src_tests_afs_test_rxafs_SOURCES = src/tests/afs/test_rxafs.c $(afs_known)
src_tests_afs_test_rxafs_LDADD = $(afs_test_libs)

check_tests += src/tests/afs/test_rxafscb
src_tests_afs_test_rxafscb_SOURCES = src/tests/afs/test_rxafscb.c $(afs_known)
src_tests_afs_test_rxafscb_LDADD = $(afs_test_libs)

check_tests += src/tests/afs/test_vl
src_tests_afs_test_vl_SOURCES = src/tests/afs/test_vl.c $(afs_known)
src_tests_afs_test_vl_LDADD = $(afs_test_libs)

check_tests += src/tests/afs/test_pt
src_tests_afs_test_pt_SOURCES = src/tests/afs/test_pt.c $(afs_known)
src_tests_afs_test_pt_LDADD = $(afs_test_libs)

check_tests += src/tests/afs/test_afsvol
src_tests_afs_test_afsvol_SOURCES = src/tests/afs/test_afsvol.c $(afs_known)
src_tests_afs_test_afsvol_LDADD = $(afs_test_libs)

check_tests += src/tests/afs/test_rxstats
src_tests_afs_test_rxstats_LDADD = $(afs_test_libs)

# When made by name, programs do not wait for BUILT_SOURCES (in other folders, too).
afs_tests = fetchstatus uuid volname rxafs rxafscb vl pt afsvol rxstats
$(afs_tests:%=src/tests/afs/test_%.$(OBJEXT)) src/tests/afs/known.$(OBJEXT): $(afs_headers)
