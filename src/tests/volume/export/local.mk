# SPDX-License-Identifier: BSD-2-Clause
# Tests in src/tests/volume/export, which make their trees as those of the file server do.

check_tests += src/tests/volume/export/test_tree
src_tests_volume_export_test_tree_SOURCES = \
	src/tests/volume/export/test_tree.c $(fileserver_test_fixture)
src_tests_volume_export_test_tree_LDADD = $(fileserver_test_libs)

check_tests += src/tests/volume/export/test_fids
src_tests_volume_export_test_fids_SOURCES = \
	src/tests/volume/export/test_fids.c $(fileserver_test_fixture)
src_tests_volume_export_test_fids_LDADD = $(fileserver_test_libs)

check_tests += src/tests/volume/export/test_object
src_tests_volume_export_test_object_SOURCES = \
	src/tests/volume/export/test_object.c $(fileserver_test_fixture)
src_tests_volume_export_test_object_LDADD = $(fileserver_test_libs)
