# SPDX-License-Identifier: BSD-2-Clause
# Unit tests of src/rx/rxkad: one line for each program; its source is the same name with .c.

EXTRA_DIST += src/tests/rx/rxkad/vectors.h

check_tests += src/tests/rx/rxkad/test_derive
check_tests += src/tests/rx/rxkad/test_exchanges
check_tests += src/tests/rx/rxkad/test_fcrypt
check_tests += src/tests/rx/rxkad/test_ticket

src_tests_rx_rxkad_test_derive_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
src_tests_rx_rxkad_test_derive_LDADD = $(LDADD) $(JANSSON_LIBS)
src_tests_rx_rxkad_test_exchanges_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
src_tests_rx_rxkad_test_exchanges_LDADD = $(LDADD) $(JANSSON_LIBS)
src_tests_rx_rxkad_test_fcrypt_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
src_tests_rx_rxkad_test_fcrypt_LDADD = $(LDADD) $(JANSSON_LIBS)
src_tests_rx_rxkad_test_ticket_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
src_tests_rx_rxkad_test_ticket_LDADD = $(LDADD) $(JANSSON_LIBS) $(CRYPTO_LIBS)
