# SPDX-License-Identifier: BSD-2-Clause
# librxwire: the layers add their files to rx_sources (and to rx_public_headers what is installed).

# Without RPC and security classes.
rx_transport_sources =
rx_sources = $(rx_transport_sources)
rx_public_headers =

include src/rx/base/local.mk
include src/rx/proto/local.mk
include src/rx/io/local.mk
include src/rx/engine/local.mk
include src/rx/rpc/local.mk
include src/rx/rpcstats/local.mk
include src/rx/keys/local.mk
include src/rx/rxkad/local.mk
include src/rx/rxgk/local.mk
include src/rx/token/local.mk

# Every object, without a symbol map: librxwire is made of it, and the tests of internals link it.
noinst_LTLIBRARIES += src/rx/librxwire_core.la
src_rx_librxwire_core_la_SOURCES = $(rx_sources) $(rx_public_headers)
src_rx_librxwire_core_la_LIBADD = $(CRYPTO_LIBS) $(KRB5_LIBS) $(PTHREAD_LIBS)

rxwireincludedir = $(includedir)/rxwire
rxwireinclude_HEADERS = $(rx_public_headers)

# What the three numbers mean and when they change: doc/soname.md.
lib_LTLIBRARIES += src/rx/librxwire.la
src_rx_librxwire_la_SOURCES =
src_rx_librxwire_la_LIBADD = src/rx/librxwire_core.la $(CRYPTO_LIBS) $(KRB5_LIBS) $(PTHREAD_LIBS)
src_rx_librxwire_la_LDFLAGS = $(AM_LDFLAGS) $(RXW_LIBRARY_LDFLAGS) -no-undefined -version-info 0:0:0
if VERSION_SCRIPT
src_rx_librxwire_la_LDFLAGS += -Wl,--version-script=$(top_srcdir)/src/rx/librxwire.map
src_rx_librxwire_la_DEPENDENCIES = src/rx/librxwire_core.la src/rx/librxwire.map
else
src_rx_librxwire_la_LDFLAGS += -export-symbols-regex '^rxw_'
endif
EXTRA_DIST += src/rx/librxwire.map
