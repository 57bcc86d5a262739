# SPDX-License-Identifier: BSD-2-Clause
# Tests of the client library, a folder for each module: check_tests += src/tests/client/MODULE/test_NAME.

client_test_libs = src/client/librxafs_core.la src/afs/libafs.la src/rx/librxwire.la $(CHECK_LIBS) $(PTHREAD_LIBS)

include src/tests/client/cell/local.mk
include src/tests/client/net/local.mk
include src/tests/client/cache/local.mk
include src/tests/client/disk/local.mk
include src/tests/client/data/local.mk
include src/tests/client/fs/local.mk
include src/tests/client/paths/local.mk
