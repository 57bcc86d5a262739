# SPDX-License-Identifier: BSD-2-Clause
# librxwire-classic: the interface of classic Rx, as OpenAFS's programs use it, on librxwire.

classic_sources =
classic_headers =

# Memory, codes and the log; security objects: below the other parts.

classic_headers += src/classic/rx/fcrypt.h src/classic/rx/rx_misc.h src/classic/rx/rxkad.h src/classic/rx/rxkad_prototypes.h
classic_sources += src/classic/base/misc.c src/classic/base/security.c

# The engine, services, connections, calls and streams.

classic_headers += \
	src/classic/rx/rx.h src/classic/rx/rx_event.h src/classic/rx/rx_globals.h \
	src/classic/rx/rx_multi.h src/classic/rx/rx_null.h src/classic/rx/rx_packet.h src/classic/rx/rxkad_convert.h src/classic/rx/rx_prototypes.h \
	src/classic/rx/rx_pthread.h src/classic/rx/rx_types.h src/classic/rx/rx_user.h
classic_sources += \
	src/classic/core/calls.c src/classic/core/connections.c src/classic/core/core.h src/classic/core/services.c \
	src/classic/core/specific.c src/classic/core/start.c src/classic/core/streams.c

# XDR coders with the interface of classic Rx; identities and opaque values.

classic_headers += \
	src/classic/rx/xdr.h src/classic/rx/xdr_prototypes.h src/classic/rx/rx_atomic.h src/classic/rx/rx_identity.h \
	src/classic/rx/rx_opaque.h src/classic/rx/rx_queue.h
classic_sources += src/classic/xdr/coders.c src/classic/xdr/identity.c src/classic/xdr/xdrstreams.c

# Statistics, the client side of rxdebug, and addresses of interfaces.

classic_headers += src/classic/rx/rx_clock.h src/classic/rx/rx_debug.h
classic_sources += src/classic/watch/addresses.c src/classic/watch/rxdebug.c src/classic/watch/statistics.c

# The headers have the names of classic Rx, so they lie in a folder of their own.
classicincludedir = $(includedir)/rxwire-classic/rx
classicinclude_HEADERS = $(classic_headers)
pkgconfig_DATA += rxwire-classic.pc

CLASSIC_CPPFLAGS = -DAFS_PTHREAD_ENV -I$(top_srcdir)/src/classic

# Every object without a symbol map, for tests of internals.
noinst_LTLIBRARIES += src/classic/librxwire_classic_core.la
src_classic_librxwire_classic_core_la_SOURCES = src/classic/classic.h $(classic_sources) $(classic_headers)
src_classic_librxwire_classic_core_la_LIBTOOLFLAGS = $(COMPILE_ONCE)
src_classic_librxwire_classic_core_la_CPPFLAGS = $(AM_CPPFLAGS) $(CLASSIC_CPPFLAGS)
src_classic_librxwire_classic_core_la_LIBADD = src/rx/librxwire.la $(CRYPTO_LIBS) $(PTHREAD_LIBS)

lib_LTLIBRARIES += src/classic/librxwire-classic.la
src_classic_librxwire_classic_la_SOURCES =
src_classic_librxwire_classic_la_LIBADD = src/classic/librxwire_classic_core.la src/rx/librxwire.la $(PTHREAD_LIBS)
src_classic_librxwire_classic_la_LDFLAGS = $(AM_LDFLAGS) $(RXW_LIBRARY_LDFLAGS) -no-undefined -version-info 0:0:0
if VERSION_SCRIPT
src_classic_librxwire_classic_la_LDFLAGS += -Wl,--version-script=$(top_srcdir)/src/classic/librxwire-classic.map
src_classic_librxwire_classic_la_DEPENDENCIES = src/classic/librxwire_classic_core.la src/classic/librxwire-classic.map
endif
EXTRA_DIST += src/classic/librxwire-classic.map
