# SPDX-License-Identifier: BSD-2-Clause
# Unit tests of src/rx/rxgk: one line for each program; its source is the same name with .c.

rxgk_rig = src/tests/rx/rxgk/rig.c src/tests/rx/rxgk/rig.h

check_tests += src/tests/rx/rxgk/test_crypto

check_tests += src/tests/rx/rxgk/test_vectors
src_tests_rx_rxgk_test_vectors_SOURCES = src/tests/rx/rxgk/test_vectors.c $(rxgk_rig)
src_tests_rx_rxgk_test_vectors_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
src_tests_rx_rxgk_test_vectors_LDADD = $(LDADD) $(JANSSON_LIBS)

check_tests += src/tests/rx/rxgk/test_class
src_tests_rx_rxgk_test_class_SOURCES = src/tests/rx/rxgk/test_class.c $(rxgk_rig)

check_tests += src/tests/rx/rxgk/test_live
src_tests_rx_rxgk_test_live_SOURCES = src/tests/rx/rxgk/test_live.c \
	src/tests/rx/rxgk/live.c src/tests/rx/rxgk/live.h $(rxgk_rig)

# Run by the script, which starts a KDC.
check_scripts += src/tests/rx/rxgk/negotiate.sh
if HAVE_CHECK
check_PROGRAMS += src/tests/rx/rxgk/negotiate_live
endif
src_tests_rx_rxgk_negotiate_live_SOURCES = src/tests/rx/rxgk/negotiate_live.c \
	src/tests/rx/rxgk/live.c src/tests/rx/rxgk/live.h $(rxgk_rig)
