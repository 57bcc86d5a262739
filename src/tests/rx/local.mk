# SPDX-License-Identifier: BSD-2-Clause
# Unit tests of src/rx. The names of the parts are those of the folders; the large ones have a local.mk of their own.

include src/tests/rx/base/local.mk
include src/tests/rx/proto/local.mk
include src/tests/rx/engine/local.mk
include src/tests/rx/api/local.mk

# -- io
#
# Unit tests of src/rx/io: one line for each program; its source is the same name with .c.
# The back-ends are two rows of one table: test_io_send and test_io_recv run with both.

check_tests += src/tests/rx/io/test_io_common
src_tests_rx_io_test_io_common_SOURCES = src/tests/rx/io/test_io_common.c $(support_faults)
check_tests += src/tests/rx/io/test_io_control
check_tests += src/tests/rx/io/test_io_errq
check_tests += src/tests/rx/io/test_io_faults
src_tests_rx_io_test_io_faults_SOURCES = src/tests/rx/io/test_io_faults.c $(support_faults)
check_tests += src/tests/rx/io/test_io_recv
check_tests += src/tests/rx/io/test_io_refused
check_tests += src/tests/rx/io/test_io_send
src_tests_rx_io_test_io_send_SOURCES = src/tests/rx/io/test_io_send.c $(support_faults)
check_tests += src/tests/rx/io/test_io_sock
src_tests_rx_io_test_io_sock_SOURCES = src/tests/rx/io/test_io_sock.c $(support_faults)
check_tests += src/tests/rx/io/test_io_steer
src_tests_rx_io_test_io_steer_SOURCES = src/tests/rx/io/test_io_steer.c $(support_faults)
EXTRA_DIST += src/tests/rx/io/io_test.h

# -- rpc
#
# Unit tests of src/rx/rpc: one line for each program; its source is the same name with .c.

check_LIBRARIES += src/tests/rx/rpc/libstubs.a
src_tests_rx_rpc_libstubs_a_SOURCES = src/tests/rx/rpc/stubs.c src/tests/rx/rpc/stubs.h
stubs_libs = src/tests/rx/rpc/libstubs.a $(harness_libs)

check_tests += src/tests/rx/rpc/test_multi
src_tests_rx_rpc_test_multi_LDADD = $(stubs_libs)
check_tests += src/tests/rx/rpc/test_procedure
src_tests_rx_rpc_test_procedure_LDADD = $(stubs_libs)
check_tests += src/tests/rx/rpc/test_window
src_tests_rx_rpc_test_window_LDADD = $(stubs_libs)
# Counts each allocation of a decoder.
src_tests_rx_rpc_test_window_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=realloc

# -- rpcstats
#
# Unit tests of src/rx/rpcstats.

check_tests += src/tests/rx/rpcstats/test_rpcstats

# -- rxkad
#
# Unit tests of src/rx/rxkad: one line for each program; its source is the same name with .c.

EXTRA_DIST += src/tests/rx/rxkad/vectors.h

check_tests += src/tests/rx/rxkad/test_derive
check_tests += src/tests/rx/rxkad/test_exchanges
check_tests += src/tests/rx/rxkad/test_fcrypt
check_tests += src/tests/rx/rxkad/test_ticket

src_tests_rx_rxkad_test_derive_LDADD = $(LDADD) $(JANSSON_LIBS)
src_tests_rx_rxkad_test_exchanges_LDADD = $(LDADD) $(JANSSON_LIBS)
src_tests_rx_rxkad_test_fcrypt_LDADD = $(LDADD) $(JANSSON_LIBS)
src_tests_rx_rxkad_test_ticket_LDADD = $(LDADD) $(JANSSON_LIBS) $(CRYPTO_LIBS)

# -- rxgk
#
# Unit tests of src/rx/rxgk: one line for each program; its source is the same name with .c.

rxgk_rig = src/tests/rx/rxgk/rig.c src/tests/rx/rxgk/rig.h

check_tests += src/tests/rx/rxgk/test_crypto

check_tests += src/tests/rx/rxgk/test_vectors
src_tests_rx_rxgk_test_vectors_SOURCES = src/tests/rx/rxgk/test_vectors.c $(rxgk_rig)
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
	src/tests/rx/rxgk/combine.c src/tests/rx/rxgk/combine.h \
	src/tests/rx/rxgk/live.c src/tests/rx/rxgk/live.h $(rxgk_rig)

# -- keys
#
# Unit tests of src/rx/keys: one line for each program; its source is the same name with .c.

check_tests += src/tests/rx/keys/test_files
src_tests_rx_keys_test_files_LDADD = $(LDADD) $(KRB5_LIBS)
check_tests += src/tests/rx/keys/test_keys
check_tests += src/tests/rx/keys/test_secret

# -- token
#
# Unit tests of src/rx/token.

check_tests += src/tests/rx/token/test_token

# -- security
#
# Properties of each security class at each level, the library's own and an application's.

security_suite = src/tests/rx/security/kinds.c src/tests/rx/security/kinds.h \
	src/tests/rx/security/relay.c src/tests/rx/security/relay.h \
	src/tests/rx/security/world.c src/tests/rx/security/world.h $(support_internals) \
	$(support_constants) \
	examples/psk/psk.c examples/psk/psk.h

check_tests += src/tests/rx/security/test_tamper
src_tests_rx_security_test_tamper_SOURCES = src/tests/rx/security/test_tamper.c $(security_suite)

check_tests += src/tests/rx/security/test_exchange
src_tests_rx_security_test_exchange_SOURCES = src/tests/rx/security/test_exchange.c $(security_suite)

check_tests += src/tests/rx/security/test_moved
src_tests_rx_security_test_moved_SOURCES = src/tests/rx/security/test_moved.c $(security_suite)

# The loopback suites, each under one class; `make check-classes`: under each class and level, which
# takes minutes, most of them asleep.
check_scripts += src/tests/rx/security/suites.sh
.PHONY: check-classes
check-classes: all
	$(MAKE) $(AM_MAKEFLAGS) `printf '%s\n' $(check_tests) | grep -E '^src/tests/rx/(api|engine|rpc)/'`
	top_builddir='$(abs_top_builddir)' $(SHELL) $(srcdir)/src/tests/rx/security/suites.sh all
