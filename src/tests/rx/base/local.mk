# SPDX-License-Identifier: BSD-2-Clause
# Unit tests of src/rx/base: one line for each program; its source is the same name with .c.

EXTRA_DIST += src/tests/rx/base/testing.h

check_tests += src/tests/rx/base/test_addr
check_tests += src/tests/rx/base/test_ascii
check_tests += src/tests/rx/base/test_bitmap
check_tests += src/tests/rx/base/test_buf
check_tests += src/tests/rx/base/test_cc
check_tests += src/tests/rx/base/test_cc_rate
check_tests += src/tests/rx/base/test_cc_reno
check_tests += src/tests/rx/base/test_debugfmt
check_tests += src/tests/rx/base/test_ecn
check_tests += src/tests/rx/base/test_error
check_tests += src/tests/rx/base/test_hash
check_tests += src/tests/rx/base/test_mtu
check_tests += src/tests/rx/base/test_recovery
check_tests += src/tests/rx/base/test_rtt
check_tests += src/tests/rx/base/test_slots
check_tests += src/tests/rx/base/test_vectors
check_tests += src/tests/rx/base/test_wire
check_tests += src/tests/rx/base/test_xdr

src_tests_rx_base_test_cc_reno_LDADD = $(LDADD) -lm
# Counts each allocation of a decoder.
src_tests_rx_base_test_xdr_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=realloc
src_tests_rx_base_test_vectors_LDADD = $(LDADD) $(JANSSON_LIBS)
