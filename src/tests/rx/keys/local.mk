# SPDX-License-Identifier: BSD-2-Clause
# Unit tests of src/rx/keys: one line for each program; its source is the same name with .c.

check_tests += src/tests/rx/keys/test_files
src_tests_rx_keys_test_files_LDADD = $(LDADD) $(KRB5_LIBS)
check_tests += src/tests/rx/keys/test_keys
check_tests += src/tests/rx/keys/test_secret

include src/tests/system/kdc/local.mk
