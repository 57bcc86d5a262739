# SPDX-License-Identifier: BSD-2-Clause
# Unit tests of src/rx/rxkad: one line for each program; its source is the same name with .c.

EXTRA_DIST += src/tests/rx/rxkad/vectors.h

check_tests += src/tests/rx/rxkad/test_fcrypt

src_tests_rx_rxkad_test_fcrypt_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
src_tests_rx_rxkad_test_fcrypt_LDADD = $(LDADD) $(JANSSON_LIBS)
